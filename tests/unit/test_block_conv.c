// Convolutions of blocks and the errors of their inputs, over awkward shapes and
// every number of lanes, against their definition in double precision.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/conv.h"
#include "kernels/kernels.h"
#include "kernels/shapes.h"

// Largest difference allowed, relative to the sum of the magnitudes that are added:
// a few units in the last place of a float, since errors of a sum in any order stay
// far below its length times that.
#define TOLERANCE 2e-6

enum { GUARD = 32 }; // floats behind a result that must stay as they are

static const float UNTOUCHED = -7;

struct shape {
    int c, h, w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, maps, groups;
};

struct family {
    struct tap *tap;
    const struct kernels *k;
    struct random random;
};

static float *noise(struct family *f, size_t n) {
    float *x = mem_floats(n + GUARD);
    for (size_t i = 0; i < n; i++)
        x[i] = random_normal(&f->random);
    for (size_t i = n; i < n + GUARD; i++)
        x[i] = UNTOUCHED;
    return x;
}

static struct convolution convolution_of(const struct shape *s) {
    struct window w = {.c = s->c,
                       .h = s->h,
                       .w = s->w,
                       .out_h = (s->h + 2 * s->pad_h - s->kernel_h) / s->stride_h + 1,
                       .out_w = (s->w + 2 * s->pad_w - s->kernel_w) / s->stride_w + 1,
                       .kernel_h = s->kernel_h,
                       .kernel_w = s->kernel_w,
                       .stride_h = s->stride_h,
                       .stride_w = s->stride_w,
                       .pad_h = s->pad_h,
                       .pad_w = s->pad_w};
    return (struct convolution){w, s->maps, s->groups};
}

// What is added up at each place, and the magnitudes of it.
struct sums {
    double *sum, *magnitude;
};

static struct sums sums_of(size_t n) {
    return (struct sums){mem_zeroed(n, sizeof(double)), mem_zeroed(n, sizeof(double))};
}

static void sums_free(struct sums *s) {
    free(s->sum), free(s->magnitude);
}

static void sums_add(struct sums *s, size_t at, double product) {
    s->sum[at] += product;
    s->magnitude[at] += fabs(product);
}

// Place of a value in blocks of pixels x maps x lanes.
static size_t place(int sample, int lanes, int map, int maps, int pixel, int pixels) {
    int block = sample / lanes;
    return (size_t)(((block * pixels + pixel) * maps + map) * lanes + sample % lanes);
}

// One output value: the pixels that it sees, and the errors that it sends to them.
static void convolve_place(const struct convolution *v, const float *x, const float *weights,
                           double error, int sample, int lanes, int map, int pixel, struct sums *y,
                           size_t y_at, struct sums *dx) {
    const struct window *w = &v->window;
    int channels = w->c / v->groups, group = map / (v->maps / v->groups);
    for (int c = 0; c < channels; c++)
        for (int ky = 0; ky < w->kernel_h; ky++)
            for (int kx = 0; kx < w->kernel_w; kx++) {
                int row = pixel / w->out_w * w->stride_h + ky - w->pad_h;
                int column = pixel % w->out_w * w->stride_w + kx - w->pad_w;
                if (row < 0 || row >= w->h || column < 0 || column >= w->w)
                    continue;
                size_t from = place(sample, lanes, group * channels + c, w->c, row * w->w + column,
                                    w->h * w->w);
                double weight =
                    (double)weights[((map * channels + c) * w->kernel_h + ky) * w->kernel_w + kx];
                sums_add(y, y_at, weight * (double)x[from]);
                sums_add(dx, from, weight * error);
            }
}

static void convolve_blocks(const struct convolution *v, int blocks, int lanes, const float *x,
                            const float *weights, const float *biases, const float *dy,
                            struct sums *y, struct sums *dx) {
    int pixels = v->window.out_h * v->window.out_w;
    for (int sample = 0; sample < blocks * lanes; sample++)
        for (int map = 0; map < v->maps; map++)
            for (int p = 0; p < pixels; p++) {
                size_t at = place(sample, lanes, map, v->maps, p, pixels);
                convolve_place(v, x, weights, (double)dy[at], sample, lanes, map, p, y, at, dx);
                sums_add(y, at, (double)biases[map]);
            }
}

static void check_sums(struct family *f, const char *what, const struct shape *s, int lanes,
                       const float *got, const struct sums *wanted, size_t n, bool relu) {
    for (size_t i = 0; i < n; i++) {
        double sum = relu ? fmax(wanted->sum[i], 0) : wanted->sum[i];
        if (!(fabs((double)got[i] - sum) <= TOLERANCE * wanted->magnitude[i])) {
            FAIL(f->tap,
                 "%s of %s, %d lanes, %dx%dx%d, %dx%d kernel, stride %d, pad %d, %d maps, %d "
                 "groups: [%zu] is %.9g, not %.9g",
                 what, f->k->name, lanes, s->c, s->h, s->w, s->kernel_h, s->kernel_w, s->stride_h,
                 s->pad_h, s->maps, s->groups, i, (double)got[i], sum);
            return;
        }
    }
    for (size_t i = n; i < n + GUARD; i++)
        if (got[i] != UNTOUCHED) {
            FAIL(f->tap, "%s writes behind its end", what);
            return;
        }
}

// --- what becomes of results ------------------------------------------------------------

// Sums of maps x lanes floats, by definition, of `value` - from and of its products with `other` -
// from; and with an empty place for each behind them.
static void check_told(struct family *f, const struct conv_sums *got, const float *value,
                       const float *other, const float *from, size_t pixels, int run) {
    for (int i = 0; i < run; i++) {
        double sum = 0, product = 0, most = 0, first = from ? (double)from[i] : 0;
        for (size_t at = (size_t)i; at < pixels * (size_t)run; at += (size_t)run) {
            double away = (double)value[at] - first, with = (double)other[at] - first;
            sum += away, product += away * with;
            most += fabs(away) + fabs(away * with);
        }
        CHECK_NEAR(f->tap, (double)got->sum[i], sum, 1e-5 * most);
        CHECK_NEAR(f->tap, (double)got->product[i], product, 1e-5 * most);
    }
    for (int i = run; i < run + GUARD; i++)
        CHECK(f->tap, got->sum[i] == UNTOUCHED && got->product[i] == UNTOUCHED);
}

static void sums_room(struct family *f, struct conv_sums *sums, int run) {
    *sums = (struct conv_sums){noise(f, (size_t)run), noise(f, (size_t)run), noise(f, (size_t)run),
                               NULL};
}

static void sums_leave(struct conv_sums *sums) {
    free(sums->from), free(sums->sum), free(sums->product);
}

// Outputs are what they are without; their sums begin from the first of each map.
static void check_outputs_told(struct family *f, const struct convolution *v, int blocks, int lanes,
                               const float *plain, const float *x, const float *w,
                               const float *bias, float *scratch) {
    int run = v->maps * lanes;
    size_t pixels = (size_t)(blocks * v->window.out_h * v->window.out_w);
    float *y = noise(f, pixels * (size_t)run);
    struct conv_sums sums;
    sums_room(f, &sums, run);
    f->k->conv_blocks->passes.forward(y, x, w, bias, false, &sums, blocks, lanes, v, scratch);
    CHECK(f->tap, memcmp(y, plain, pixels * (size_t)run * sizeof *y) == 0);
    for (int i = 0; i < run; i++)
        CHECK(f->tap, sums.from[i] == y[i / lanes * lanes]);
    check_told(f, &sums, y, y, sums.from, pixels, run);
    sums_leave(&sums), free(y);
}

static float ended(const struct conv_ends *ends, float value, size_t i) {
    value += ends->more ? ends->more[i] : 0;
    return !ends->relu || (ends->relu[i] > 0 && ends->relu[i] < ends->most) ? value : 0;
}

// Error gradients are those without, ended; at once or later.
static void check_errors_ended(struct family *f, const struct convolution *v, struct conv_ends ends,
                               int blocks, int lanes, const float *plain, const float *dy,
                               const float *w, float *scratch) {
    int run = v->window.c * lanes;
    size_t pixels = (size_t)(blocks * v->window.h * v->window.w), size = pixels * (size_t)run;
    float *dx = noise(f, size);
    f->k->conv_blocks->passes.back_input(dx, dy, w, &ends, blocks, lanes, v, scratch);
    for (int later = 0; later < 2; later++) {
        for (size_t i = 0; i < size; i++)
            CHECK(f->tap, dx[i] == ended(&ends, plain[i], i));
        if (ends.sums)
            check_told(f, ends.sums, dx, ends.sums->other ? ends.sums->other : ends.relu, NULL,
                       pixels, run);
        memcpy(dx, plain, size * sizeof *dx);
        f->k->conv_blocks->finish(dx, &ends, pixels, (size_t)run);
    }
    free(dx);
}

static void check_ends(struct family *f, const struct convolution *v, int blocks, int lanes,
                       const float *plain, const float *dy, const float *w, float *scratch) {
    int run = v->window.c * lanes;
    size_t size = (size_t)(blocks * v->window.h * v->window.w * run);
    float *more = noise(f, size), *relu = noise(f, size), *other = noise(f, size);
    struct conv_sums sums, with_other;
    sums_room(f, &sums, run);
    with_other = sums, with_other.other = other;
    const struct conv_ends ends[] = {
        {.relu = relu, .most = INFINITY, .sums = &sums},
        {.relu = relu, .most = 1, .sums = &sums},
        {.relu = relu, .most = 1},
        {.more = more},
        {.more = more, .relu = relu, .most = INFINITY, .sums = &with_other},
        {.sums = &with_other},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        check_errors_ended(f, v, ends[i], blocks, lanes, plain, dy, w, scratch);
    sums_leave(&sums), free(more), free(relu), free(other);
}

static void check_shape(struct family *f, const struct shape *s, int blocks, int lanes, bool relu) {
    const struct conv_ends none = {.more = NULL};
    struct convolution v = convolution_of(s);
    size_t in = (size_t)(blocks * lanes * s->c * s->h * s->w);
    size_t out = (size_t)(blocks * lanes * s->maps * v.window.out_h * v.window.out_w);
    size_t weight_count = (size_t)(s->maps * (s->c / s->groups) * s->kernel_h * s->kernel_w);
    float *x = noise(f, in), *dy = noise(f, out), *w = noise(f, weight_count);
    float *y = noise(f, out), *dx = noise(f, in), *bias = noise(f, (size_t)s->maps);
    float *scratch = mem_floats(conv_block_scratch(&v));
    struct sums wanted_y = sums_of(out), wanted_dx = sums_of(in);
    convolve_blocks(&v, blocks, lanes, x, w, bias, dy, &wanted_y, &wanted_dx);
    f->k->conv_blocks->passes.forward(y, x, w, bias, relu, NULL, blocks, lanes, &v, scratch);
    check_sums(f, "conv_block", s, lanes, y, &wanted_y, out, relu);
    f->k->conv_blocks->passes.back_input(dx, dy, w, &none, blocks, lanes, &v, scratch);
    check_sums(f, "conv_block_back_input", s, lanes, dx, &wanted_dx, in, false);
    if (!relu)
        check_outputs_told(f, &v, blocks, lanes, y, x, w, bias, scratch);
    check_ends(f, &v, blocks, lanes, dx, dy, w, scratch);
    sums_free(&wanted_y), sums_free(&wanted_dx);
    free(x), free(dy), free(w), free(y), free(dx), free(bias), free(scratch);
}

static void test_shapes(struct family *f) {
    static const struct shape shapes[] = {
        // c, h, w, kernel, kernel, stride, stride, pad, pad, maps, groups
        {1, 28, 28, 5, 5, 1, 1, 2, 2, 10, 1},  // first layer: one channel
        {10, 14, 14, 5, 5, 1, 1, 2, 2, 20, 1}, // maps that fill no vector
        {3, 17, 33, 3, 3, 1, 1, 1, 1, 33, 1},
        {3, 27, 35, 11, 11, 4, 4, 0, 0, 7, 1}, // a last row that no window reaches
        {3, 9, 11, 11, 11, 4, 4, 5, 5, 17, 1}, // kernels larger than the picture
        {6, 7, 9, 7, 7, 2, 2, 3, 3, 12, 2},
        {8, 5, 6, 3, 3, 2, 2, 1, 1, 8, 8}, // a group each
        {20, 6, 6, 1, 1, 1, 1, 0, 0, 3, 1},
        {33, 3, 4, 1, 1, 2, 2, 0, 0, 40, 1}, // pixels that no tap reaches
        {3, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1},
        {10, 1, 1, 3, 3, 1, 1, 1, 1, 20, 1}, // one pixel, all other taps on padding
        {1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 1},   // outputs that see nothing
        {4, 1, 40, 1, 5, 1, 3, 0, 1, 18, 2}, // one row
        {5, 9, 8, 4, 2, 3, 1, 2, 0, 16, 1},  // even kernels
        {48, 8, 8, 5, 5, 1, 1, 2, 2, 64, 1},
        {2, 3, 1100, 1, 3, 1, 1, 0, 1, 2, 1}, // rows longer than a list of pixels
        // Groups that are merged in blocks of few lanes:
        {16, 7, 8, 3, 3, 1, 1, 1, 1, 16, 8},
        {33, 5, 9, 3, 3, 2, 2, 1, 1, 33, 11},
        {24, 6, 5, 5, 5, 1, 1, 2, 2, 12, 12},
        {7, 4, 6, 3, 1, 1, 2, 0, 0, 28, 7},
        // A group each:
        {33, 9, 11, 3, 3, 1, 1, 1, 1, 33, 33},
        {5, 8, 12, 3, 3, 2, 2, 1, 1, 5, 5},
        {20, 17, 13, 5, 5, 2, 2, 2, 2, 20, 20},
        {3, 9, 8, 4, 2, 3, 1, 2, 0, 3, 3},
        {10, 1, 1, 3, 3, 1, 1, 1, 1, 10, 10}, // one pixel, all other taps on padding
        {4, 3, 4, 1, 1, 2, 2, 0, 0, 4, 4},    // pixels that no tap reaches
        {2, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2},    // outputs that see nothing
        {7, 3, 40, 1, 5, 1, 3, 0, 1, 7, 7},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int lanes = 1; lanes <= f->k->lanes; lanes *= 2) {
            check_shape(f, &shapes[i], 1, lanes, true);
            check_shape(f, &shapes[i], 3, lanes, false);
        }
}

// Pictures too large for the caches are done by parts; so are many maps.
static void test_large(struct family *f) {
    static const struct shape shapes[] = {
        {40, 33, 34, 3, 3, 1, 1, 1, 1, 50, 1},
        {130, 9, 9, 3, 3, 1, 1, 1, 1, 100, 2},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_shape(f, &shapes[i], 1, i ? 4 : f->k->lanes, true);
}

// Divergence must show: what is no number does not become one.
static void test_no_number(struct family *f) {
    struct convolution v = convolution_of(&(struct shape){1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1});
    float x[16] = {[0] = NAN, [1] = -1}, y[16], weight = 1, bias = 0;
    float *scratch = mem_floats(conv_block_scratch(&v));
    f->k->conv_blocks->passes.forward(y, x, &weight, &bias, true, NULL, 1, f->k->lanes, &v,
                                      scratch);
    CHECK(f->tap, isnan(y[0]) && y[1] == 0);
    free(scratch);
}

static void test_scratch(struct tap *tap) {
    int most = 1 << 30;
    struct convolution v = {{most, most, most, most, most, most, most, 1, 1, 0, 0, 0, 0}, most, 1};
    CHECK(tap, conv_block_scratch(&v) == SIZE_MAX);
    tap_result(tap, "a scratch that does not fit in size_t is refused");
}

int main(void) {
    struct tap tap = {0};
    for (enum cpu_level level = CPU_REF; level <= CPU_AVX512; level++) {
        struct family f = {&tap, kernels_of(level), random_stream(1, 2, 3)};
        char name[128];
        bool blocks = f.k && f.k->lanes;
        if (blocks) {
            test_shapes(&f);
            test_large(&f);
            test_no_number(&f);
        }
        snprintf(name, sizeof name,
                 "convolutions of blocks agree with their definition to %g: %s%s", TOLERANCE,
                 cpu_level_name(level), blocks ? "" : " # skip: no blocks");
        tap_result(&tap, name);
    }
    test_scratch(&tap);
    return tap_done(&tap);
}
