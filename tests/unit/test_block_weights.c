// The gradient of the weights and biases of convolutions of blocks, against its
// definition in double precision, for every number of lanes of every family.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/conv.h"
#include "kernels/kernels.h"
#include "kernels/shapes.h"

// Largest relative difference allowed: a few units in the last place of a float
// times the root of the longest sum.
#define TOLERANCE 2e-5

enum { GUARD = 32 }; // floats behind a result that must stay as they are

static const float UNTOUCHED = -7;

// A mini-batch and what its convolution's gradient is.
struct problem {
    struct convolution conv;
    int n;
    size_t in, out, weights; // of one sample, of all maps
    float *x, *dy;           // plain samples
    double *dweights, *dbiases;
};

static float *noise(size_t n, float scale, struct random *random) {
    float *x = mem_floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = scale * random_normal(random);
    return x;
}

// One tap: the product of its errors and what they see.
static double tap_gradient(const struct problem *p, int map, int channel, int ky, int kx) {
    const struct window *w = &p->conv.window;
    double sum = 0;
    for (int i = 0; i < p->n; i++)
        for (int oy = 0; oy < w->out_h; oy++)
            for (int ox = 0; ox < w->out_w; ox++) {
                int y = oy * w->stride_h + ky - w->pad_h, x = ox * w->stride_w + kx - w->pad_w;
                if (y < 0 || y >= w->h || x < 0 || x >= w->w)
                    continue;
                const float *error =
                    p->dy + (size_t)i * p->out + (size_t)((map * w->out_h + oy) * w->out_w + ox);
                const float *value =
                    p->x + (size_t)i * p->in + (size_t)((channel * w->h + y) * w->w + x);
                sum += (double)*error * (double)*value;
            }
    return sum;
}

static void define(struct problem *p) {
    const struct window *w = &p->conv.window;
    int channels = w->c / p->conv.groups, maps = p->conv.maps / p->conv.groups;
    size_t pixels = (size_t)(w->out_h * w->out_w);
    double *to = p->dweights;
    for (int m = 0; m < p->conv.maps; m++) {
        for (int c = 0; c < channels; c++)
            for (int ky = 0; ky < w->kernel_h; ky++)
                for (int kx = 0; kx < w->kernel_w; kx++)
                    *to++ = tap_gradient(p, m, m / maps * channels + c, ky, kx);
        for (size_t i = 0; i < (size_t)p->n * pixels; i++)
            p->dbiases[m] += (double)p->dy[i / pixels * p->out + (size_t)m * pixels + i % pixels];
    }
}

static struct problem problem_open(const struct convolution *conv, int n, struct random *random) {
    const struct window *w = &conv->window;
    struct problem p = {
        .conv = *conv,
        .n = n,
        .in = (size_t)(w->c * w->h * w->w),
        .out = (size_t)(conv->maps * w->out_h * w->out_w),
        .weights = (size_t)(conv->maps * (w->c / conv->groups) * w->kernel_h * w->kernel_w),
    };
    p.x = noise((size_t)n * p.in, 1, random);
    p.dy = noise((size_t)n * p.out, 0.1f, random); // so that sums of thousands stay near 1
    p.dweights = mem_zeroed(p.weights, sizeof *p.dweights);
    p.dbiases = mem_zeroed((size_t)conv->maps, sizeof *p.dbiases);
    define(&p);
    return p;
}

static void problem_close(struct problem *p) {
    free(p->x), free(p->dy), free(p->dweights), free(p->dbiases);
}

// Interleaved as kernels.h says. Exactly as long as it must be, so that a sanitizer
// sees what reads behind it; samples that the last block lacks are `absent`.
static float *to_blocks(const float *samples, int n, int c, int pixels, int lanes, float absent) {
    int blocks = (n + lanes - 1) / lanes;
    float *to = mem_array((size_t)(blocks * lanes * c * pixels), sizeof *to), *at = to;
    for (int b = 0; b < blocks; b++)
        for (int p = 0; p < pixels; p++)
            for (int m = 0; m < c; m++)
                for (int l = 0; l < lanes; l++) {
                    int sample = b * lanes + l;
                    *at++ = sample < n ? samples[(sample * c + m) * pixels + p] : absent;
                }
    return to;
}

static void near_all(struct tap *tap, const struct problem *p, const char *what, int lanes,
                     const float *got, const double *wanted, size_t n) {
    const struct window *w = &p->conv.window;
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - wanted[i]) <= TOLERANCE * (1 + fabs(wanted[i])))) {
            FAIL(tap, "%d->%d (%d groups), %dx%d, kernel %d, %d lanes: %s[%zu] is %.9g, not %.9g",
                 w->c, p->conv.maps, p->conv.groups, w->h, w->w, w->kernel_h, lanes, what, i,
                 (double)got[i], wanted[i]);
            return;
        }
    for (int i = 0; i < GUARD; i++)
        if (got[n + (size_t)i] != UNTOUCHED) {
            FAIL(tap, "%d lanes: %s[%zu] is written", lanes, what, n + (size_t)i);
            return;
        }
}

static float *untouched(size_t n) {
    float *x = mem_floats(n + GUARD);
    for (size_t i = 0; i < n + GUARD; i++)
        x[i] = UNTOUCHED;
    return x;
}

static void check(struct tap *tap, const struct kernels *k, const struct problem *p, int lanes) {
    const struct window *w = &p->conv.window;
    size_t maps = (size_t)p->conv.maps;
    float *x = to_blocks(p->x, p->n, w->c, w->h * w->w, lanes, 3);
    float *dy = to_blocks(p->dy, p->n, p->conv.maps, w->out_h * w->out_w, lanes, 0);
    float *dweights = untouched(p->weights), *dbiases = untouched(maps);
    float *scratch = mem_floats(conv_block_scratch(&p->conv));
    k->conv_blocks->passes.back_weights(dweights, dbiases, dy, x, (p->n + lanes - 1) / lanes, lanes,
                                        &p->conv, scratch);
    near_all(tap, p, "dweights", lanes, dweights, p->dweights, p->weights);
    near_all(tap, p, "dbiases", lanes, dbiases, p->dbiases, maps);
    float *alone = untouched(p->weights);
    k->conv_blocks->passes.back_weights(alone, NULL, dy, x, (p->n + lanes - 1) / lanes, lanes,
                                        &p->conv, scratch);
    CHECK(tap, !memcmp(alone, dweights, (p->weights + GUARD) * sizeof *alone));
    free(x), free(dy), free(dweights), free(dbiases), free(scratch), free(alone);
}

static void check_shape(struct tap *tap, const struct convolution *conv, int n,
                        struct random *random) {
    struct problem p = problem_open(conv, n, random);
    for (enum cpu_level level = CPU_REF; level <= CPU_AVX512; level++) {
        const struct kernels *k = kernels_of(level);
        for (int lanes = 1; k && lanes <= k->lanes; lanes *= 2)
            check(tap, k, &p, lanes);
    }
    problem_close(&p);
}

// c, h, w, kernel, stride, pad, maps, groups, samples
static const int square[][9] = {
    {1, 28, 28, 5, 1, 2, 10, 1, 3},   {10, 14, 14, 5, 1, 2, 20, 1, 5},
    {3, 17, 33, 3, 1, 1, 33, 1, 2},   {4, 8, 8, 5, 1, 2, 16, 2, 37},
    {3, 35, 27, 11, 4, 0, 7, 1, 2},   {6, 7, 7, 3, 1, 1, 4, 2, 17},
    {5, 9, 5, 3, 2, 1, 15, 1, 4},     {20, 6, 6, 1, 1, 0, 3, 1, 18},
    {2, 3, 3, 3, 1, 0, 29, 1, 33},    {8, 16, 16, 7, 2, 3, 2, 1, 2},
    {2, 5, 64, 3, 1, 0, 5, 1, 2},     {3, 1, 1, 1, 1, 0, 3, 1, 40},
    {10, 1, 1, 3, 1, 1, 20, 1, 16},   {33, 5, 6, 3, 1, 1, 33, 1, 16},
    {12, 6, 5, 3, 1, 1, 12, 12, 9},   {6, 4, 150, 3, 1, 1, 10, 1, 2},
    {2, 4, 5, 7, 3, 3, 3, 1, 3},      {40, 3, 4, 2, 3, 0, 50, 1, 3},
    {130, 3, 3, 1, 1, 0, 140, 1, 6},  {1, 2, 2, 3, 1, 3, 1, 1, 1},
    {33, 9, 11, 3, 1, 1, 33, 33, 17}, {5, 8, 12, 3, 2, 1, 5, 5, 3},
    {20, 17, 13, 5, 2, 2, 20, 20, 2}, {7, 1, 1, 3, 1, 1, 7, 7, 5},
    {4, 3, 4, 1, 2, 0, 4, 4, 9},      {2, 1, 1, 1, 1, 2, 2, 2, 2},
    {16, 7, 8, 3, 1, 1, 16, 8, 5},    {33, 5, 9, 3, 2, 1, 33, 11, 3},
    {24, 6, 5, 5, 1, 2, 12, 12, 2},   {7, 4, 6, 3, 1, 0, 28, 7, 9},
    {144, 9, 20, 1, 1, 0, 24, 1, 5},  {600, 2, 3, 1, 1, 0, 200, 1, 3},
    {32, 4, 4, 1, 1, 0, 8, 2, 3},
};

static void test_square(struct tap *tap, const int *p, struct random *random) {
    struct window w = {p[0], p[1], p[2], 0, 0, p[3], p[3], p[4], p[4], p[5], p[5], 0, 0};
    w.out_h = (w.h + 2 * p[5] - p[3]) / p[4] + 1;
    w.out_w = (w.w + 2 * p[5] - p[3]) / p[4] + 1;
    check_shape(tap, &(struct convolution){w, p[6], p[7]}, p[8], random);
}

int main(void) {
    struct tap tap = {0};
    struct random random = random_stream(1, 2, 3);
    for (size_t s = 0; s < sizeof square / sizeof *square; s++) {
        char name[128];
        const int *p = square[s];
        snprintf(name, sizeof name, "%d to %d maps of %dx%d, kernel %d, stride %d, pad %d", p[0],
                 p[6], p[1], p[2], p[3], p[4], p[5]);
        TEST(&tap, name, { test_square(&tap, p, &random); });
    }
    TEST(&tap, "kernels, strides and padding that differ down and across", {
        struct window w = {6, 9, 13, 5, 12, 3, 4, 2, 1, 1, 2, 0, 0};
        w.out_w = (w.w + 2 * w.pad_w - w.kernel_w) / w.stride_w + 1;
        check_shape(&tap, &(struct convolution){w, 10, 2}, 5, &random);
    });
    TEST(&tap, "the same, with a group for each map", {
        struct window w = {10, 9, 13, 5, 12, 3, 4, 2, 1, 1, 2, 0, 0};
        w.out_w = (w.w + 2 * w.pad_w - w.kernel_w) / w.stride_w + 1;
        check_shape(&tap, &(struct convolution){w, 10, 10}, 5, &random);
    });
    TEST(&tap, "a last window that is clipped", {
        struct window w = {2, 32, 33, 16, 16, 3, 3, 2, 2, 0, 0, 0, 0};
        check_shape(&tap, &(struct convolution){w, 4, 1}, 3, &random);
    });
    return tap_done(&tap);
}
