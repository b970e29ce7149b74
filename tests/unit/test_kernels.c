// Every kernel of every family that this machine has, over awkward shapes,
// against plain definitions in double precision written here.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/blas/gemm.inc.h"
#include "kernels/conv.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "kernels/pools.h"
#include "kernels/shapes.h"
#include "kernels/tables.h"
#include "kernels/update.h"
#include "model/keys.h"

// Largest relative difference allowed: a few units in the last place of a float
// times the root of the longest sum.
#define TOLERANCE 2e-5

struct family {
    struct tap *tap;
    const struct kernels *k;
    struct random random;
};

static float *noise(struct family *f, size_t n) {
    float *x = mem_floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = random_normal(&f->random);
    return x;
}

static void near_all(struct family *f, const char *what, const float *got, const double *wanted,
                     size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - wanted[i]) <= TOLERANCE * (1 + fabs(wanted[i])))) {
            FAIL(f->tap, "%s of %s: [%zu] is %.9g, not %.9g", what, f->k->name, i, (double)got[i],
                 wanted[i]);
            return;
        }
}

static void check_gemm(struct family *f, bool ta, bool tb, int m, int n, int k, float beta) {
    float *a = noise(f, (size_t)(m * k)), *b = noise(f, (size_t)(k * n));
    float *c = noise(f, (size_t)(m * n));
    double *wanted = mem_zeroed((size_t)(m * n), sizeof *wanted);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum +=
                    (double)a[ta ? l * m + i : i * k + l] * (double)b[tb ? j * k + l : l * n + j];
            wanted[i * n + j] = 0.5 * sum + (double)beta * (double)c[i * n + j];
        }
    f->k->dense->gemm(ta, tb, m, n, k, 0.5f, a, ta ? m : k, b, tb ? k : n, beta, c, n);
    near_all(f, "gemm", c, wanted, (size_t)(m * n));
    free(a), free(b), free(c), free(wanted);
}

static void test_read(struct family *f) {
    float *x = noise(f, 100);
    uint32_t all = 0, bits;
    for (size_t i = 0; i < 100; i++) {
        CHECK_INT(f->tap, f->k->read(x, i), all);
        memcpy(&bits, &x[i], sizeof bits);
        all ^= bits;
    }
    free(x);
}

// Each sum starts at its number and goes to s/2 + 1 in every round.
static void test_multiply_adds(struct family *f) {
    float sum;
    uint64_t lanes = f->k->multiply_adds(&sum, 1) / 12;
    CHECK_NEAR(f->tap, (double)sum, (66 * 0.5 + 12) * (double)lanes, 0);
    CHECK_INT(f->tap, f->k->multiply_adds(&sum, 1000), 1000 * 12 * lanes);
    CHECK_NEAR(f->tap, (double)sum, 24 * (double)lanes, 1e-3);
    CHECK(f->tap, lanes >= 4 && (f->k->lanes == 0 || lanes == (uint64_t)f->k->lanes));
}

static void test_gemm(struct family *f) {
    static const int sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {10, 196, 25}, {20, 33, 250}, {65, 17, 1}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int t = 0; t < 4; t++)
            check_gemm(f, t & 1, t & 2, sizes[s][0], sizes[s][1], sizes[s][2], t ? 1 : 0);
}

static const struct window windows[] = {
    {.c = 1,
     .h = 1,
     .w = 1,
     .out_h = 1,
     .out_w = 1,
     .kernel_h = 1,
     .kernel_w = 1,
     .stride_h = 1,
     .stride_w = 1},
    {.c = 3,
     .h = 7,
     .w = 9,
     .out_h = 7,
     .out_w = 9,
     .kernel_h = 5,
     .kernel_w = 5,
     .stride_h = 1,
     .stride_w = 1,
     .pad_h = 2,
     .pad_w = 2},
    {.c = 2,
     .h = 11,
     .w = 6,
     .out_h = 5,
     .out_w = 3,
     .kernel_h = 3,
     .kernel_w = 2,
     .stride_h = 2,
     .stride_w = 2},
    {.c = 2,
     .h = 32,
     .w = 33,
     .out_h = 16,
     .out_w = 16,
     .kernel_h = 3,
     .kernel_w = 3,
     .stride_h = 2,
     .stride_w = 2}, // the last row of windows is clipped
    {.c = 1,
     .h = 4,
     .w = 5,
     .out_h = 2,
     .out_w = 2,
     .kernel_h = 7,
     .kernel_w = 7,
     .stride_h = 3,
     .stride_w = 3,
     .pad_h = 3,
     .pad_w = 3},
};

// The input place that tap (ky, kx) of output (oy, ox) sees, or -1 for padding.
static int tap_at(const struct window *v, int oy, int ox, int ky, int kx) {
    int y = oy * v->stride_h + ky * (1 + v->skip_h) - v->pad_h;
    int x = ox * v->stride_w + kx * (1 + v->skip_w) - v->pad_w;
    return y < 0 || y >= v->h || x < 0 || x >= v->w ? -1 : y * v->w + x;
}

// What a convolution and its two adjoints are, by definition.
static void convolve(const struct convolution *v, int n, const float *x, const float *weights,
                     const float *dy, double *y, double *dx, double *dw) {
    const struct window *w = &v->window;
    int cg = w->c / v->groups, mg = v->maps / v->groups, taps = w->kernel_h * w->kernel_w;
    int pixels = w->out_h * w->out_w, in = w->h * w->w;
    for (int i = 0; i < n * v->maps * pixels; i++) {
        int sample = i / pixels / v->maps, map = i / pixels % v->maps, o = i % pixels;
        for (int c = 0; c < cg; c++)
            for (int t = 0; t < taps; t++) {
                int at = tap_at(w, o / w->out_w, o % w->out_w, t / w->kernel_w, t % w->kernel_w);
                if (at < 0)
                    continue;
                int from = (sample * w->c + map / mg * cg + c) * in + at;
                int weight = (map * cg + c) * taps + t;
                y[i] += (double)weights[weight] * (double)x[from];
                dx[from] += (double)weights[weight] * (double)dy[i];
                dw[weight] += (double)dy[i] * (double)x[from];
            }
    }
}

static void check_conv(struct family *f, const struct window *window, int maps, int groups, int n) {
    struct convolution v = {*window, maps, groups};
    size_t in = (size_t)(n * v.window.c * v.window.h * v.window.w);
    size_t out = (size_t)(n * maps * v.window.out_h * v.window.out_w);
    size_t weight_count =
        (size_t)(maps * (v.window.c / groups) * v.window.kernel_h * v.window.kernel_w);
    float *x = noise(f, in), *dy = noise(f, out), *w = noise(f, weight_count);
    float *y = noise(f, out), *dx = noise(f, in), *dw = noise(f, weight_count);
    float *scratch = mem_floats(conv_scratch(&v));
    double *wanted_y = mem_zeroed(out, 8), *wanted_dx = mem_zeroed(in, 8);
    double *wanted_dw = mem_zeroed(weight_count, 8);
    for (size_t i = 0; i < weight_count; i++)
        w[i] *= 0.1f; // so that sums of thousands stay near 1
    for (size_t i = 0; i < out; i++)
        dy[i] *= 0.1f;
    convolve(&v, n, x, w, dy, wanted_y, wanted_dx, wanted_dw);
    f->k->conv->forward(y, x, w, n, &v, scratch);
    near_all(f, "conv", y, wanted_y, out);
    f->k->conv->back_input(dx, dy, w, n, &v, scratch);
    near_all(f, "conv_back_input", dx, wanted_dx, in);
    f->k->conv->back_weights(dw, dy, x, n, &v, scratch);
    near_all(f, "conv_back_weights", dw, wanted_dw, weight_count);
    free(x), free(dy), free(w), free(y), free(dx), free(dw), free(scratch);
    free(wanted_y), free(wanted_dx), free(wanted_dw);
}

// Widths and heights around the lanes of a vector, kernels of 1 to 11, strides,
// groups, more pictures than are summed at once.
static void test_conv(struct family *f) {
    static const int shapes[][7] = {
        // c, h, w, kernel, stride, pad, maps
        {1, 28, 28, 5, 1, 2, 10}, {10, 14, 14, 5, 1, 2, 20}, {3, 17, 33, 3, 1, 1, 33},
        {4, 8, 8, 5, 1, 2, 16},   {3, 35, 27, 11, 4, 0, 7},  {6, 7, 7, 3, 1, 1, 4},
        {5, 9, 5, 3, 2, 1, 15},   {20, 6, 6, 1, 1, 0, 3},    {2, 3, 3, 3, 1, 0, 29},
        {8, 16, 16, 7, 2, 3, 2},  {2, 5, 64, 3, 1, 0, 5},    {3, 1, 1, 1, 1, 0, 3},
    };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const int *p = shapes[s];
        struct window w = {p[0], p[1], p[2], 0, 0, p[3], p[3], p[4], p[4], p[5], p[5], 0, 0};
        w.out_h = (w.h + 2 * p[5] - p[3]) / p[4] + 1;
        w.out_w = (w.w + 2 * p[5] - p[3]) / p[4] + 1;
        check_conv(f, &w, p[6], 1, 2);
        if (p[0] % 2 == 0 && p[6] % 2 == 0)
            check_conv(f, &w, p[6], 2, 19);
    }
}

// Gaps between taps, of one side or both, wider than the padding, the stride and the picture.
static void test_dilated(struct family *f) {
    static const int skips[][2] = {{1, 1}, {0, 2}, {3, 0}, {2, 5}};
    for (size_t s = 0; s < sizeof skips / sizeof *skips; s++)
        for (int stride = 1; stride <= 2; stride++) {
            struct window w = {4,      17,     19, 0, 0,           3,          3,
                               stride, stride, 2,  1, skips[s][0], skips[s][1]};
            w.out_h = (w.h + 4 - (3 + 2 * w.skip_h)) / stride + 1;
            w.out_w = (w.w + 2 - (3 + 2 * w.skip_w)) / stride + 1;
            for (int groups = 1; groups <= 4; groups *= 2)
                check_conv(f, &w, 8, groups, 3);
            check_conv(f, &w, 4, 4, 2); // depthwise
        }
}

// Each tap of a patch is a pixel of the picture, or padding.
static void check_patches(struct family *f, const struct window *v) {
    size_t in = 2 * (size_t)(v->c * v->h * v->w);
    int taps = v->kernel_h * v->kernel_w, rows = 2 * v->c * taps;
    int y = v->out_h - 1, x = v->out_w - 1;
    float *pictures = noise(f, in), *patches = noise(f, (size_t)rows), *added = mem_floats(in);
    double *wanted = mem_zeroed((size_t)rows, 8), *spread = mem_zeroed(in, 8);
    for (int i = 0; i < rows; i++) {
        int at = tap_at(v, y, x, i % taps / v->kernel_w, i % taps % v->kernel_w);
        if (at < 0)
            continue;
        size_t from = (size_t)(i / taps * v->h * v->w + at);
        wanted[i] = (double)pictures[from];
        spread[from] += (double)pictures[from];
    }
    f->k->conv->patch(patches, pictures, 2, v, y, x);
    near_all(f, "patch", patches, wanted, (size_t)rows);
    f->k->conv->patch_add(added, patches, 2, v, y, x);
    near_all(f, "patch_add", added, spread, in);
    free(pictures), free(patches), free(added), free(wanted), free(spread);
}

struct pooled {
    double max, sum, squares;
    int count, winner;
};

static struct pooled pool_window(const float *x, const struct window *v, int oy, int ox) {
    struct pooled r = {.max = -INFINITY};
    for (int ky = 0; ky < v->kernel_h; ky++)
        for (int kx = 0; kx < v->kernel_w; kx++) {
            int p = tap_at(v, oy, ox, ky, kx);
            if (p < 0)
                continue;
            double value = (double)x[p];
            if (value > r.max)
                r.max = value, r.winner = p;
            r.sum += value, r.squares += value * value, r.count++;
        }
    return r;
}

// The maximum with relu is one after the other, and so is its adjoint: exactly. Values
// lie about a `shift`, so that in many windows, in some or in none all are below 0.
static void check_shifted(struct family *f, const float *noise, const float *dy, float shift,
                          const struct window *v, size_t in, size_t out) {
    float *x = mem_floats(in), *y = mem_floats(out), *dx = mem_floats(in);
    float *two = mem_floats(out), *errors = mem_floats(out), *wanted = mem_floats(in);
    int32_t *winner = mem_array(out, sizeof *winner);
    for (size_t i = 0; i < in; i++)
        x[i] = i % 31 == 30 ? NAN : roundf(2 * noise[i]) / 2 + shift;
    f->k->pools->maxpool(two, winner, x, 1, v, false);
    f->k->acts[ACT_RELU].forward(two, out, 0);
    memcpy(errors, dy, out * sizeof *dy);
    f->k->acts[ACT_RELU].back(errors, two, out, 0);
    f->k->pools->maxpool_back(wanted, errors, winner, 1, v);
    f->k->pools->maxpool(y, winner, x, 1, v, true);
    f->k->pools->maxpool_back(dx, dy, winner, 1, v);
    CHECK(f->tap, !memcmp(y, two, out * sizeof *y) && !memcmp(dx, wanted, in * sizeof *dx));
    free(x), free(y), free(dx), free(two), free(errors), free(wanted), free(winner);
}

static void check_maxpool_relu(struct family *f, const float *x, const float *dy,
                               const struct window *v, size_t in, size_t out) {
    check_shifted(f, x, dy, 0, v, in, out);
    check_shifted(f, x, dy, -1, v, in, out);
    check_shifted(f, x, dy, 3, v, in, out);
}

static void check_pools(struct family *f, const struct window *v) {
    size_t in = (size_t)(v->c * v->h * v->w), plane = (size_t)(v->out_h * v->out_w);
    size_t out = (size_t)v->c * plane;
    float *x = noise(f, in), *y = mem_floats(out), *dy = noise(f, out), *dx = noise(f, in);
    int32_t *winner = mem_array(out, sizeof *winner);
    double *wanted[3], *errors[3];
    for (int kind = 0; kind < 3; kind++)
        wanted[kind] = mem_zeroed(out, 8), errors[kind] = mem_zeroed(in, 8);
    for (size_t o = 0; o < out; o++) {
        size_t base = o / plane * (size_t)(v->h * v->w);
        int oy = (int)(o % plane) / v->out_w, ox = (int)(o % plane) % v->out_w;
        struct pooled r = pool_window(x + base, v, oy, ox);
        double d = (double)dy[o];
        wanted[0][o] = r.max, wanted[1][o] = r.sum / r.count, wanted[2][o] = sqrt(r.squares);
        errors[0][base + (size_t)r.winner] += d;
        for (int t = 0; t < v->kernel_h * v->kernel_w; t++) {
            int p = tap_at(v, oy, ox, t / v->kernel_w, t % v->kernel_w);
            if (p < 0)
                continue;
            errors[1][base + (size_t)p] += d / r.count;
            errors[2][base + (size_t)p] += d * (double)x[base + (size_t)p] / sqrt(r.squares);
        }
    }
    f->k->pools->maxpool(y, winner, x, 1, v, false);
    near_all(f, "maxpool", y, wanted[0], out);
    f->k->pools->maxpool_back(dx, dy, winner, 1, v);
    near_all(f, "maxpool_back", dx, errors[0], in);
    check_maxpool_relu(f, x, dy, v, in, out);
    f->k->pools->avgpool(y, x, 1, v);
    near_all(f, "avgpool", y, wanted[1], out);
    f->k->pools->avgpool_back(dx, dy, 1, v);
    near_all(f, "avgpool_back", dx, errors[1], in);
    f->k->pools->l2pool(y, x, 1, v);
    near_all(f, "l2pool", y, wanted[2], out);
    f->k->pools->l2pool_back(dx, dy, y, x, 1, v);
    near_all(f, "l2pool_back", dx, errors[2], in);
    for (int kind = 0; kind < 3; kind++)
        free(wanted[kind]), free(errors[kind]);
    free(x), free(y), free(dy), free(dx), free(winner);
}

static double normal_share_of(double x) {
    return 0.5 * erfc(-x / sqrt(2));
}

static double sigmoid_value(double x) {
    return 1 / (1 + exp(-x));
}

enum { SLOPE = 8 }; // of leaky, one by it

// The activation of x as it is defined, in double precision; its derivative.
static double activated(enum act act, double x) {
    switch (act) {
    case ACT_RELU:
        return fmax(x, 0);
    case ACT_TANH:
        return tanh(x);
    case ACT_SIGMOID:
        return sigmoid_value(x);
    case ACT_LEAKY:
        return x > 0 ? x : x / SLOPE;
    case ACT_ELU:
        return x > 0 ? x : expm1(x);
    case ACT_SOFTPLUS:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    case ACT_RELU6:
        return fmin(fmax(x, 0), 6);
    case ACT_GELU:
        return x * normal_share_of(x);
    case ACT_SILU:
        return x * sigmoid_value(x);
    case ACT_HARDSWISH:
        return x * fmin(fmax(x + 3, 0), 6) / 6;
    default:
        return x;
    }
}

static double derivative(enum act act, double x) {
    double s = sigmoid_value(x);
    switch (act) {
    case ACT_RELU:
        return x > 0;
    case ACT_TANH:
        return 1 - tanh(x) * tanh(x);
    case ACT_SIGMOID:
        return s * (1 - s);
    case ACT_LEAKY:
        return x > 0 ? 1 : 1.0 / SLOPE;
    case ACT_ELU:
        return x > 0 ? 1 : exp(x);
    case ACT_SOFTPLUS:
        return s;
    case ACT_RELU6:
        return x > 0 && x < 6;
    case ACT_GELU:
        return normal_share_of(x) + x * exp(-x * x / 2) / sqrt(2 * M_PI);
    case ACT_SILU:
        return s * (1 + x * (1 - s));
    case ACT_HARDSWISH:
        return x < -3 ? 0 : x > 3 ? 1 : x / 3 + 0.5;
    default:
        return 1;
    }
}

static void test_activations(struct family *f) {
    enum { N = 2001 };
    float x[N], y[N], dy[N];
    double wanted[N], errors[N];
    for (int i = 0; i < N; i++) // fine around 0, and far out where e^x ends
        x[i] = (float)(i - N / 2) * (i % 2 ? 0.001f : 0.15f);
    for (int act = ACT_LINEAR + 1; act < ACT_COUNT; act++) {
        for (int i = 0; i < N; i++) {
            y[i] = x[i], dy[i] = 3;
            wanted[i] = activated(act, (double)x[i]);
            errors[i] = 3 * derivative(act, (double)x[i]);
        }
        f->k->acts[act].forward(y, N, 1.0f / SLOPE);
        near_all(f, act_names[act], y, wanted, N);
        f->k->acts[act].back(dy, act_reads_inputs(act) ? x : y, N, 1.0f / SLOPE);
        near_all(f, act_names[act], dy, errors, N);
    }
    CHECK(f->tap, !f->k->acts[ACT_LINEAR].forward && !f->k->acts[ACT_LINEAR].back);
}

// What is near 0 keeps its digits.
static void test_small_inputs(struct family *f) {
    for (int act = ACT_LINEAR + 1; act < ACT_COUNT; act++)
        for (int i = 0; i < 50; i++) {
            float x = -0.2f * powf(0.7f, (float)i), y = x, dy = 1;
            f->k->acts[act].forward(&y, 1, 1.0f / SLOPE);
            f->k->acts[act].back(&dy, act_reads_inputs(act) ? &x : &y, 1, 1.0f / SLOPE);
            double wanted = activated(act, (double)x), slope = derivative(act, (double)x);
            CHECK(f->tap, fabs((double)y - wanted) <= 3e-6 * fabs(wanted));
            CHECK(f->tap, fabs((double)dy - slope) <= 3e-6 * fabs(slope));
        }
}

// Divergence must show: what is no number does not become one.
static void test_no_number(struct family *f) {
    for (int act = ACT_LINEAR + 1; act < ACT_COUNT; act++) {
        float x[20] = {[3] = NAN, [19] = NAN};
        f->k->acts[act].forward(x, 20, 0.5f);
        CHECK(f->tap, isnan(x[3]) && isnan(x[19]) && isfinite(x[4]));
    }
    float x[3] = {1, NAN, 2};
    f->k->softmax(x, 1, 3);
    CHECK(f->tap, isnan(x[0]) && isnan(x[1]) && isnan(x[2]));
}

static void test_softmax(struct family *f) {
    for (int m = 1; m < 40; m += 6) {
        float *x = noise(f, 3 * (size_t)m);
        double *wanted = mem_zeroed(3 * (size_t)m, 8);
        x[0] = 1000; // must not overflow
        for (int i = 0; i < 3; i++) {
            double sum = 0, most = -INFINITY;
            for (int j = 0; j < m; j++)
                most = fmax(most, (double)x[i * m + j]);
            for (int j = 0; j < m; j++)
                sum += exp((double)x[i * m + j] - most);
            for (int j = 0; j < m; j++)
                wanted[i * m + j] = exp((double)x[i * m + j] - most) / sum;
        }
        f->k->softmax(x, 3, m);
        near_all(f, "softmax", x, wanted, 3 * (size_t)m);
        free(x), free(wanted);
    }
}

static void check_lrn(struct family *f, int c, int pixels, int size, float beta) {
    size_t n = 2 * (size_t)(c * pixels);
    float *x = noise(f, n), *y = mem_floats(n), *scale = mem_floats(n), *dy = noise(f, n);
    float *dx = mem_floats(n);
    double *s = mem_zeroed(n, 8), *wanted = mem_zeroed(n, 8), *errors = mem_zeroed(n, 8);
    double alpha = 0.3, k = 1.5;
    for (int q = 0; q < (int)n; q++) {
        int m = q / pixels % c, base = q - m * pixels;
        for (int j = m - size / 2; j <= m + size / 2; j++)
            if (j >= 0 && j < c)
                s[q] += (double)x[base + j * pixels] * (double)x[base + j * pixels];
        s[q] = k + alpha / size * s[q];
        wanted[q] = (double)x[q] * pow(s[q], -(double)beta);
    }
    for (int q = 0; q < (int)n; q++) {
        int m = q / pixels % c, base = q - m * pixels;
        errors[q] = (double)dy[q] * pow(s[q], -(double)beta);
        for (int j = m - size / 2; j <= m + size / 2; j++)
            if (j >= 0 && j < c) {
                int o = base + j * pixels;
                errors[q] -= 2 * alpha * (double)beta / size * (double)x[q] * (double)dy[o] *
                             wanted[o] / s[o];
            }
    }
    f->k->lrn(y, scale, x, 2, c, pixels, size, (float)alpha, beta, (float)k);
    near_all(f, "lrn", y, wanted, n);
    f->k->lrn_back(dx, dy, y, scale, x, false, 2, c, pixels, size, (float)alpha, beta);
    near_all(f, "lrn_back", dx, errors, n);
    memcpy(dx, x, n * sizeof *dx);
    f->k->lrn_back(dx, dy, y, scale, dx, false, 2, c, pixels, size, (float)alpha, beta);
    near_all(f, "lrn_back in place", dx, errors, n);
    for (int q = 0; q < (int)n; q++)
        errors[q] = x[q] > 0 ? errors[q] : 0;
    f->k->lrn_back(x, dy, y, scale, x, true, 2, c, pixels, size, (float)alpha, beta);
    near_all(f, "lrn_back through a relu, in place", x, errors, n);
    free(x), free(y), free(scale), free(dy), free(dx), free(s), free(wanted), free(errors);
}

static void test_updates(struct family *f) {
    enum { N = 37 };
    float *w = noise(f, N), *g = noise(f, N), *v = noise(f, N), *s = mem_floats(N),
          *u = noise(f, N);
    double wanted[N], state[N];
    for (int i = 0; i < N; i++)
        wanted[i] = (double)w[i] - 0.1 * ((double)g[i] + 0.01 * (double)w[i]);
    struct update update = {
        .rule = RULE_SGD, .rate = 0.1f, .decay = 0.01f, .momentum = 0.9f, .epsilon = 1e-3f};
    f->k->update(w, NULL, g, N, &update);
    near_all(f, "sgd", w, wanted, N);
    for (int i = 0; i < N; i++) {
        state[i] = 0.9 * (double)v[i] + (double)g[i] + 0.01 * (double)w[i];
        wanted[i] = (double)w[i] - 0.1 * state[i];
    }
    update.rule = RULE_MOMENTUM;
    f->k->update(w, v, g, N, &update);
    near_all(f, "momentum", w, wanted, N);
    near_all(f, "momentum's state", v, state, N);
    for (int i = 0; i < N; i++) {
        double gradient = (double)g[i] + 0.01 * (double)u[i];
        s[i] = 0.25f;
        state[i] = 0.25 + gradient * gradient;
        wanted[i] = (double)u[i] - 0.1 * gradient / (sqrt(state[i]) + 1e-3);
    }
    update.rule = RULE_ADAGRAD;
    f->k->update(u, s, g, N, &update);
    near_all(f, "adagrad", u, wanted, N);
    near_all(f, "adagrad's state", s, state, N);
    free(w), free(g), free(v), free(s), free(u);
}

enum { STEPS_MOST = 2 * UPDATES_MOST + 1, SECOND = 150, STATES_MOST = 2 * SECOND };

// The first `count` of some updates at once, and one after the other: the same bits.
static void check_steps(struct family *f, const struct update *u, int count, size_t n) {
    float *w = noise(f, n + 1), *one_w = mem_floats(n + 1);
    float *state = mem_floats(STATES_MOST), *one_state = mem_floats(STATES_MOST);
    float *g[STEPS_MOST];
    for (size_t i = 0; i < STATES_MOST; i++)
        state[i] = 0.5f + 0.01f * (float)i;
    memcpy(one_w, w, (n + 1) * sizeof *w);
    memcpy(one_state, state, STATES_MOST * sizeof *state);
    for (int k = 0; k < count; k++) {
        g[k] = noise(f, n);
        f->k->update(one_w, one_state, g[k], n, &u[k]);
    }
    f->k->updates(w, state, (const float *const *)g, u, count, n);
    if (memcmp(w, one_w, (n + 1) * sizeof *w) ||
        memcmp(state, one_state, STATES_MOST * sizeof *state))
        FAIL(f->tap, "%d updates of %s from rule %d on, n = %zu: not as one after the other", count,
             f->k->name, (int)u->rule, n);
    for (int k = 0; k < count; k++)
        free(g[k]);
    free(w), free(one_w), free(state), free(one_state);
}

// As many of one rule as may be, and rules that change at every place.
static void test_steps(struct family *f) {
    static const size_t sizes[] = {1, 7, 16, 37, 131};
    struct update u[STEPS_MOST];
    for (int change = 1; change <= STEPS_MOST; change++)
        for (int first = RULE_SGD; first <= RULE_ADAMW; first++) {
            for (int k = 0; k < STEPS_MOST; k++)
                u[k] = (struct update){.rule = (enum rule)((first + k / change) % (RULE_ADAMW + 1)),
                                       .rate = k % 2 ? 0.1f / (float)k : -1,
                                       .decay = 0.01f * (float)k,
                                       .momentum = 0.9f - 0.1f * (float)k,
                                       .epsilon = 1e-3f,
                                       .beta2 = 0.8f,
                                       .fresh = 0.1f,
                                       .fresh2 = 0.2f,
                                       .step = 0.1f,
                                       .root = 1 + (float)k,
                                       .second = SECOND};
            for (int count = 0; count <= STEPS_MOST; count++)
                for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                    check_steps(f, u, count, sizes[s]);
        }
    u[0] = u[1] = (struct update){.rule = RULE_SGD, .rate = 0.1f, .decay = 0.01f};
    float w[3] = {1, 2, 3}, one[3] = {1, 2, 3}; // sgd has no state
    const float g[] = {4, 5, 6}, *const both[] = {g, g};
    f->k->updates(w, NULL, both, u, 2, 3);
    f->k->update(one, NULL, g, 3, u);
    f->k->update(one, NULL, g, 3, u);
    CHECK(f->tap, !memcmp(w, one, sizeof w));
}

static void test_vectors(struct family *f) {
    enum { N = 53 };
    float *x = noise(f, N), *y = noise(f, N), *bias = mem_floats(N);
    double wanted[N], sum = 0;
    for (int i = 0; i < N; i++)
        wanted[i] = (double)y[i] + 2 * (double)x[i], sum += (double)x[i] * (double)x[i];
    f->k->axpy(y, x, N, 2);
    near_all(f, "axpy", y, wanted, N);
    float *sum_of = noise(f, N), *mask = noise(f, N);
    mask[3] = 0;
    for (int i = 0; i < N; i++)
        wanted[i] = mask[i] > 0 ? (double)x[i] + (double)y[i] : 0;
    f->k->add_above(sum_of, x, y, mask, N);
    near_all(f, "add_above", sum_of, wanted, N);
    for (int i = 0; i < N; i++)
        wanted[i] = fmax((double)x[i] + (double)y[i], 0);
    f->k->add_relu(sum_of, x, y, N);
    near_all(f, "add_relu", sum_of, wanted, N);
    mask[5] = NAN;
    f->k->add_relu(sum_of, mask, y, N);
    CHECK(f->tap, isnan(sum_of[5]));
    CHECK_NEAR(f->tap, f->k->sum_squares(x, N), sum, 1e-9);
    for (int i = 0; i < N; i++)
        wanted[i] = (double)y[i] * (double)x[i];
    f->k->multiply(y, x, N);
    near_all(f, "multiply", y, wanted, N);
    CHECK(f->tap, f->k->finite(x, N));
    x[52] = INFINITY;
    CHECK(f->tap, !f->k->finite(x, N));
    x[52] = 0, x[3] = NAN;
    CHECK(f->tap, !f->k->finite(x, N));
    free(x), free(y), free(bias), free(sum_of), free(mask);
}

// Wherever the largest number is, and the one that is none.
static void test_largest(struct family *f) {
    enum { MOST = 131 };
    float x[MOST] = {0};
    for (size_t n = 1; n <= MOST; n++)
        for (size_t at = 0; at < n; at++) {
            x[at] = -3;
            x[(at + 1) % n] += 2;
            CHECK_NEAR(f->tap, (double)f->k->largest(x, n), n > 1 ? 3 : 1, 0);
            x[at] = NAN;
            CHECK(f->tap, !f->k->finite(x, n) && isnan(f->k->largest(x, n)));
            x[at] = x[(at + 1) % n] = 0;
        }
}

static void check_bias(struct family *f, int n, int m, int pixels) {
    size_t size = (size_t)(n * m * pixels);
    float *y = noise(f, size), *bias = noise(f, (size_t)m), *gradient = noise(f, (size_t)m);
    double *wanted = mem_zeroed(size, 8), *sums = mem_zeroed((size_t)m, 8);
    for (size_t i = 0; i < size; i++) {
        size_t j = i / (size_t)pixels % (size_t)m;
        wanted[i] = (double)y[i] + (double)bias[j];
        sums[j] += (double)y[i];
    }
    f->k->bias_sum(gradient, y, n, m, pixels);
    near_all(f, "bias_sum", gradient, sums, (size_t)m);
    f->k->bias_add(y, bias, n, m, pixels);
    near_all(f, "bias_add", y, wanted, size);
    free(y), free(bias), free(gradient), free(wanted), free(sums);
}

static void test_family(struct tap *tap, const char *missing, const struct kernels *kernels) {
    struct family f = {.tap = tap, .k = kernels, .random = random_stream(1, 2, 3)};
    char name[128];
    if (!f.k) {
        snprintf(name, sizeof name, "%s # skip: this machine lacks it", missing);
        tap_result(tap, name);
        return;
    }
    test_multiply_adds(&f);
    test_read(&f);
    test_gemm(&f);
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        check_conv(&f, &windows[i], 3, 1, 2);
        check_patches(&f, &windows[i]);
        check_pools(&f, &windows[i]);
    }
    test_conv(&f);
    test_dilated(&f);
    test_activations(&f);
    test_small_inputs(&f);
    test_softmax(&f);
    test_no_number(&f);
    check_lrn(&f, 1, 1, 3, 0.75f);
    check_lrn(&f, 33, 19, 5, 0.75f);
    check_lrn(&f, 4, 16, 9, 0.5f);
    test_updates(&f);
    test_steps(&f);
    test_vectors(&f);
    test_largest(&f);
    check_bias(&f, 3, 10, 1);
    check_bias(&f, 2, 20, 49);
    check_bias(&f, 1, 3, 16);
    snprintf(name, sizeof name, "kernels '%s' agree with their definitions to %g", f.k->name,
             TOLERANCE);
    tap_result(tap, name);
}

int main(void) {
    struct tap tap = {0};
    for (enum cpu_level level = CPU_REF; level <= CPU_AVX512; level++)
        test_family(&tap, cpu_level_name(level), kernels_of(level));
    test_family(&tap, "OpenBLAS", blas_load() ? &kernels_blas : NULL);
    return tap_done(&tap);
}
