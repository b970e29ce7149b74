// Winograd's filtering of blocks against the definition of a convolution and its
// adjoints in double precision. Errors are counted against the sum of the
// magnitudes of what is added up, since rounding of other outputs of a tile
// reaches each of them: the largest such sum of the whole result.
#include "../helper/blocks.h"
#include "kernels/blocks.h"
#include "kernels/conv.h"
#include "kernels/shapes.h"

struct shape {
    int c, h, w, kernel, pad, maps, groups, n;
};

// A result by definition, and what it is held against.
struct wanted {
    double *value, *magnitude;
    size_t size;
};

static struct wanted wanted_of(size_t size) {
    return (struct wanted){mem_zeroed(size, sizeof(double)), mem_zeroed(size, sizeof(double)),
                           size};
}

static void wanted_add(struct wanted *r, size_t at, double value) {
    r->value[at] += value;
    r->magnitude[at] += fabs(value);
}

static void wanted_free(struct wanted *r) {
    free(r->value), free(r->magnitude);
}

static struct convolution convolution_of(const struct shape *s) {
    return (struct convolution){.window = {.c = s->c,
                                           .h = s->h,
                                           .w = s->w,
                                           .out_h = s->h + 2 * s->pad - s->kernel + 1,
                                           .out_w = s->w + 2 * s->pad - s->kernel + 1,
                                           .kernel_h = s->kernel,
                                           .kernel_w = s->kernel,
                                           .stride_h = 1,
                                           .stride_w = 1,
                                           .pad_h = s->pad,
                                           .pad_w = s->pad},
                                .maps = s->maps,
                                .groups = s->groups};
}

// One output of one sample, by definition, and its part in both gradients.
static void convolve_one(const struct convolution *v, size_t out, const float *x,
                         const float *weights, const float *dy, struct wanted *y, struct wanted *dx,
                         struct wanted *dw) {
    const struct window *w = &v->window;
    size_t pixels = (size_t)(w->out_h * w->out_w), in = (size_t)(w->h * w->w);
    size_t sample = out / pixels / (size_t)v->maps, map = out / pixels % (size_t)v->maps;
    int oy = (int)(out % pixels) / w->out_w, ox = (int)(out % pixels) % w->out_w;
    size_t channels = (size_t)(w->c / v->groups);
    size_t first = map / (size_t)(v->maps / v->groups) * channels;
    int taps = w->kernel_h * w->kernel_w;
    for (size_t c = 0; c < channels; c++)
        for (int t = 0; t < taps; t++) {
            int iy = oy + t / w->kernel_w - w->pad_h, ix = ox + t % w->kernel_w - w->pad_w;
            if (iy < 0 || ix < 0 || iy >= w->h || ix >= w->w)
                continue;
            size_t from =
                (sample * (size_t)w->c + first + c) * in + (size_t)iy * (size_t)w->w + (size_t)ix;
            size_t weight = (map * channels + c) * (size_t)taps + (size_t)t;
            wanted_add(y, out, (double)weights[weight] * (double)x[from]);
            wanted_add(dx, from, (double)weights[weight] * (double)dy[out]);
            wanted_add(dw, weight, (double)dy[out] * (double)x[from]);
        }
}

// Takes the wanted values.
static void check_near(struct family *f, const char *what, const struct shape *s, const float *got,
                       struct wanted r, double most_allowed, double mean_allowed) {
    double most = 0, worst = 0, squares = 0, magnitudes = 0;
    for (size_t i = 0; i < r.size; i++)
        most = fmax(most, r.magnitude[i]);
    for (size_t i = 0; i < r.size; i++) {
        double error = fabs((double)got[i] - r.value[i]);
        worst = error <= worst ? worst : error;
        squares += error * error;
        magnitudes += r.magnitude[i] * r.magnitude[i];
    }
    double mean = sqrt(squares / fmax(magnitudes, 1e-30));
    if (!(worst <= most_allowed * most) || !(mean <= mean_allowed))
        FAIL(f->tap, "%s of %s, %d x %d x %d, kernel %d, %d maps: off by %.2g, mean %.2g", what,
             f->k->name, s->c, s->h, s->w, s->kernel, s->maps, worst / most, mean);
    wanted_free(&r);
}

// Samples of blocks. Takes the blocks.
static float *samples_of(struct family *f, float *blocks, int n, int c, int pixels, int lanes) {
    float *samples = mem_floats((size_t)(n * c * pixels));
    f->k->blocks->unblock(samples, blocks, n, c, pixels, lanes);
    free(blocks);
    return samples;
}

// What a pass tells of its outputs, for each map and lane, over those lanes that have a sample in
// all blocks: sums of `value` - from and of its products with `other` - from, of n samples.
struct told {
    const struct conv_sums *sums;
    const float *value, *other, *from; // from: NULL: 0
    int n, maps, pixels, lanes;
};

// Of one map in one lane.
static void check_told_lane(struct family *f, const struct told *t, int m, int lane) {
    int at = m * t->lanes + lane;
    double sum = 0, product = 0, most = 0, from = t->from ? (double)t->from[at] : 0;
    for (int i = lane; i < t->n; i += t->lanes)
        for (int p = 0; p < t->pixels; p++) {
            size_t one = (size_t)((i * t->maps + m) * t->pixels + p);
            double value = (double)t->value[one] - from, other = (double)t->other[one] - from;
            sum += value, product += value * other;
            most += fabs(value) + fabs(value * other);
        }
    CHECK_NEAR(f->tap, (double)t->sums->sum[at], sum, 1e-5 * most + 1e-6);
    CHECK_NEAR(f->tap, (double)t->sums->product[at], product, 1e-5 * most + 1e-6);
}

static void check_told(struct family *f, const struct told *t) {
    int full = t->n % t->lanes ? t->n % t->lanes : t->lanes;
    for (int m = 0; m < t->maps; m++)
        for (int lane = 0; lane < full; lane++)
            check_told_lane(f, t, m, lane);
}

static struct conv_sums sums_room(int maps, int lanes) {
    size_t floats = (size_t)(maps * lanes);
    struct conv_sums sums = {mem_floats(floats), mem_floats(floats), mem_floats(floats), NULL};
    for (size_t i = 0; i < floats; i++)
        sums.from[i] = sums.sum[i] = sums.product[i] = NAN; // nobody clears them
    return sums;
}

static void sums_free(struct conv_sums *sums) {
    free(sums->from), free(sums->sum), free(sums->product);
}

static void check_shape(struct family *f, const struct shape *s, int lanes, double most,
                        double mean) {
    struct convolution conv = convolution_of(s);
    const struct window *v = &conv.window;
    int n = s->n, blocks = block_count(n, lanes);
    int in_pixels = v->h * v->w, out_pixels = v->out_h * v->out_w;
    size_t weight_count = (size_t)(s->maps * (s->c / s->groups) * s->kernel * s->kernel);
    struct wanted y = wanted_of((size_t)(n * s->maps * out_pixels));
    struct wanted dx = wanted_of((size_t)(n * s->c * in_pixels)), dw = wanted_of(weight_count);
    float *x = noise(f, dx.size), *dy = noise(f, y.size), *weights = noise(f, weight_count);
    float *biases = noise(f, (size_t)s->maps), *dbiases = noise(f, (size_t)s->maps);
    size_t scratch_count = conv_block_scratch(&conv);
    float *dweights = noise(f, weight_count), *scratch = mem_floats(scratch_count);
    for (size_t i = 0; i < scratch_count; i++)
        scratch[i] = NAN; // nobody clears it
    float *bx = blocks_of(f, x, n, s->c, in_pixels, lanes);
    float *bdy = blocks_of(f, dy, n, s->maps, out_pixels, lanes);
    float *by = blocks_of(f, NULL, n, s->maps, out_pixels, lanes);
    float *bdx = blocks_of(f, NULL, n, s->c, in_pixels, lanes);
    bool relu = s->groups > 1 || s->pad == 0;
    for (size_t i = 0; i < y.size; i++)
        convolve_one(&conv, i, x, weights, dy, &y, &dx, &dw);
    struct wanted db = wanted_of((size_t)s->maps);
    for (size_t i = 0; i < y.size; i++) {
        size_t map = i / (size_t)out_pixels % (size_t)s->maps;
        y.value[i] += (double)biases[map];
        y.value[i] = relu ? fmax(y.value[i], 0) : y.value[i];
        wanted_add(&db, map, (double)dy[i]);
    }
    struct conv_sums sums = sums_room(s->maps, lanes), back = sums_room(s->c, lanes);
    f->k->winograd->passes.forward(by, bx, weights, biases, relu, relu ? NULL : &sums, blocks,
                                   lanes, &conv, scratch);
    bool adds = s->maps % 2;
    float *more = mem_floats(dx.size);
    for (size_t i = 0; i < dx.size; i++)
        more[i] = x[dx.size - 1 - i];
    float *bmore = blocks_of(f, more, n, s->c, in_pixels, lanes);
    back.other = adds ? bmore : NULL;
    bool bound = s->maps % 3 == 0; // relu that has an upper one
    const struct conv_ends ends = {.more = adds ? bmore : NULL,
                                   .relu = relu ? bx : NULL,
                                   .most = bound ? 1 : INFINITY,
                                   .sums = relu ? &back : NULL};
    f->k->winograd->passes.back_input(bdx, bdy, weights, &ends, blocks, lanes, &conv, scratch);
    for (size_t i = 0; i < dx.size; i++) {
        dx.value[i] += adds ? (double)more[i] : 0;
        dx.value[i] = !relu || (x[i] > 0 && x[i] < ends.most) ? dx.value[i] : 0;
    }
    f->k->winograd->passes.back_weights(dweights, dbiases, bdy, bx, blocks, lanes, &conv, scratch);
    float *alone = mem_floats(dw.size);
    f->k->winograd->passes.back_weights(alone, NULL, bdy, bx, blocks, lanes, &conv, scratch);
    CHECK(f->tap, !memcmp(alone, dweights, dw.size * sizeof *alone));
    float *got_y = samples_of(f, by, n, s->maps, out_pixels, lanes);
    float *got_dx = samples_of(f, bdx, n, s->c, in_pixels, lanes);
    if (relu)
        check_told(f,
                   &(struct told){&back, got_dx, adds ? more : x, NULL, n, s->c, in_pixels, lanes});
    else
        check_told(f,
                   &(struct told){&sums, got_y, got_y, sums.from, n, s->maps, out_pixels, lanes});
    for (int m = 0; !relu && m < s->maps; m++) // of the first pixel of the first sample
        CHECK(f->tap, sums.from[m * lanes] == got_y[m * out_pixels]);
    sums_free(&sums), sums_free(&back), free(more), free(bmore);
    check_near(f, "winograd_block", s, got_y, y, most, mean);
    check_near(f, "winograd_block_back_input", s, got_dx, dx, most, mean);
    check_near(f, "winograd_block_back_weights", s, dweights, dw, most, mean);
    check_near(f, "winograd_block_back_weights' biases", s, dbiases, db, most, mean);
    free(x), free(dy), free(weights), free(biases), free(dbiases), free(dweights), free(scratch);
    free(alone);
    free(bx), free(bdy), free(got_y), free(got_dx);
}

// Maps that no vector holds evenly, pictures that no tile divides, one pixel,
// groups, padding of 0 to kernel - 1, two blocks, the last one not full; pictures that end with
// tiles of 1, 2 and 3 outputs either way, or are no larger.
static void test_awkward(struct family *f, int lanes) {
    static const struct shape shapes[] = {
        {3, 7, 7, 3, 1, 5, 1, 0},     {10, 14, 14, 5, 2, 20, 1, 0}, {4, 9, 10, 5, 0, 33, 1, 0},
        {6, 13, 13, 3, 1, 8, 2, 0},   {3, 1, 1, 3, 1, 3, 1, 0},     {20, 6, 7, 3, 2, 10, 2, 0},
        {34, 8, 9, 5, 4, 34, 2, 0},   {1, 5, 5, 5, 0, 1, 1, 0},     {1, 12, 3, 3, 0, 17, 1, 0},
        {65, 27, 4, 5, 2, 2, 1, 0},   {2, 1, 40, 5, 2, 49, 1, 0},   {16, 13, 14, 3, 1, 16, 1, 0},
        {17, 15, 13, 3, 1, 18, 1, 0}, {16, 14, 15, 3, 1, 33, 1, 0}, {16, 13, 14, 5, 2, 16, 1, 0},
        {17, 15, 13, 5, 2, 18, 1, 0}, {32, 14, 15, 5, 2, 34, 2, 0}, {16, 1, 21, 3, 1, 16, 1, 0},
        {16, 22, 2, 3, 1, 16, 1, 0},  {16, 3, 3, 5, 2, 16, 1, 0},
    };
    if (lanes == f->k->lanes)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            struct shape s = shapes[i];
            s.n = lanes + 3;
            check_shape(f, &s, lanes, 2e-5, 4e-6); // a few terms: errors of the tile weigh more
        }
}

// As many channels as nets have.
static void test_accuracy(struct family *f, int lanes) {
    static const struct shape alexnet_3 = {384, 13, 13, 3, 1, 16, 1, 2};
    static const struct shape alexnet_5 = {48, 27, 27, 5, 2, 16, 1, 2};
    if (lanes == f->k->lanes) {
        check_shape(f, &alexnet_3, lanes, 6e-7, 1e-7);
        check_shape(f, &alexnet_5, lanes, 2e-6, 3e-7);
    }
}

// Kernels that lie beyond the L2 cache: the gradient goes through several chunks of tiles, share
// by share of the maps, the last of which is not full.
static void test_far(struct family *f, int lanes) {
    struct shape far = {130, 4, 20, 3, 1, 227, 1, lanes + 1};
    if (lanes == f->k->lanes)
        check_shape(f, &far, lanes, 6e-7, 1e-7);
}

// Blocks of one sample, whose channels and maps, here counted in vectors, are in the lanes.
static void test_single(struct family *f, int lanes) {
    static const struct shape shapes[] = {
        {1, 7, 7, 3, 1, 2, 1, 1},   {2, 14, 14, 5, 2, 1, 1, 3}, {3, 9, 10, 5, 0, 4, 1, 2},
        {1, 1, 1, 3, 1, 1, 1, 2},   {1, 6, 7, 3, 2, 5, 1, 9},   {2, 8, 9, 5, 4, 2, 1, 1},
        {4, 12, 3, 3, 0, 4, 1, 1},  {1, 27, 4, 5, 2, 1, 1, 2},  {1, 1, 40, 5, 2, 3, 1, 1},
        {1, 13, 14, 3, 1, 1, 1, 5}, {2, 15, 13, 3, 1, 2, 1, 6}, {11, 4, 8, 3, 1, 11, 1, 2},
    };
    if (lanes != 1)
        return;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct shape s = shapes[i];
        s.c *= f->k->lanes, s.maps *= f->k->lanes;
        check_shape(f, &s, lanes, 2e-5, 4e-6);
    }
}

static void test_winograd(struct family *f, int lanes) {
    test_awkward(f, lanes);
    test_single(f, lanes);
    test_far(f, lanes);
    test_accuracy(f, lanes);
}

int main(void) {
    return test_families("Winograd's filtering is the convolution", test_winograd);
}
