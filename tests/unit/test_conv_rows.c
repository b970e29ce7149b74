// The rows of convolutions (kernels/conv_rows.h): what each output pixel sees, against its
// definition; the adjoint, against the scalar products of both; when rows are taken.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/blocks.h"
#include "kernels/conv_rows.h"
#include "kernels/kernels.h"
#include "kernels/shapes.h"
#include "model/init.h"
#include "model/model.h"
#include "model/net.h"

static const struct look {
    int c, h, w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
} looks[] = {
    {3, 4, 5, 3, 3, 1, 1, 1, 1},  {17, 2, 2, 3, 3, 1, 1, 1, 1}, {5, 7, 6, 1, 1, 2, 2, 0, 0},
    {2, 9, 8, 5, 3, 2, 1, 2, 0},  {1, 6, 6, 5, 5, 1, 1, 2, 2},  {4, 3, 7, 3, 7, 1, 2, 1, 3},
    {33, 1, 1, 3, 3, 1, 1, 1, 1}, {6, 5, 5, 5, 5, 1, 1, 0, 0},
};

enum { BLOCKS = 3 };

static struct convolution convolution_of(const struct look *s, int maps) {
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
    return (struct convolution){w, maps, 1};
}

// What input number `input` of row `row` is to be: of blocks x, pixels outermost, samples
// innermost.
static float value_seen(const struct convolution *conv, const float *x, int lanes, size_t row,
                        size_t input) {
    const struct window *w = &conv->window;
    size_t sample = row % (size_t)lanes;
    row /= (size_t)lanes;
    size_t pixels = (size_t)(w->out_h * w->out_w), taps = (size_t)(w->kernel_h * w->kernel_w);
    int pixel = (int)(row % pixels), tap = (int)(input % taps), c = (int)(input / taps);
    int iy = pixel / w->out_w * w->stride_h - w->pad_h + tap / w->kernel_w;
    int ix = pixel % w->out_w * w->stride_w - w->pad_w + tap % w->kernel_w;
    if (iy < 0 || iy >= w->h || ix < 0 || ix >= w->w)
        return 0;
    size_t place = (row / pixels * (size_t)w->h + (size_t)iy) * (size_t)w->w + (size_t)ix;
    return x[(place * (size_t)w->c + (size_t)c) * (size_t)lanes + sample];
}

static double scalar_product(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void check_shape(struct tap *tap, const struct look *s, int lanes) {
    struct convolution conv = convolution_of(s, 4);
    size_t in = (size_t)(BLOCKS * lanes * s->c * s->h * s->w);
    size_t rows = conv_rows_count(&conv, BLOCKS, lanes);
    size_t inputs = conv_rows_inputs(&conv), different = 0, n = rows * inputs;
    struct random random = random_stream(1, 0, 0);
    float *x = mem_floats(in), *dx = mem_floats(in), *got = mem_floats(n), *errors = mem_floats(n);
    random_normals(&random, x, in);
    random_normals(&random, errors, n);
    conv_rows_gather(got, x, 0, rows / 3, lanes, &conv);
    conv_rows_gather(got, x, rows / 3, rows, lanes, &conv);
    for (size_t i = 0; i < n; i++)
        different += got[i] != value_seen(&conv, x, lanes, i / inputs, i % inputs);
    for (size_t i = 0; i < in; i++)
        dx[i] = 7; // the adjoint writes over it
    conv_rows_scatter(dx, errors, BLOCKS, lanes, &conv);
    double one = scalar_product(got, errors, n), other = scalar_product(x, dx, in);
    if (different > 0 || !(fabs(one - other) < 1e-4))
        FAIL(tap,
             "%d lanes of %dx%dx%d, kernel %dx%d, stride %d, pad %d: %zu values differ, %g is to "
             "be %g",
             lanes, s->c, s->h, s->w, s->kernel_h, s->kernel_w, s->stride_h, s->pad_h, different,
             other, one);
    free(x), free(dx), free(got), free(errors);
}

static void test_rows(struct tap *tap) {
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        for (int lanes = 1; lanes <= 8; lanes *= 2)
            check_shape(tap, &looks[i], lanes);
}

// Of large weights and few outputs, or a kernel of one pixel; not of large pictures, whose weights
// are arranged in no time, nor of groups.
static void test_taken(struct tap *tap) {
    const struct look deep = {512, 2, 2, 3, 3, 1, 1, 1, 1}, wide = {16, 64, 64, 3, 3, 1, 1, 1, 1};
    struct convolution few = convolution_of(&deep, 512), many = convolution_of(&wide, 16);
    struct convolution groups = few;
    groups.groups = 2;
    for (int vector = 8; vector <= 16; vector *= 2) {
        CHECK(tap, conv_rows_fit(&few, 4, 1, vector)); // 16 rows
        CHECK(tap, !conv_rows_fit(&few, 128, 1, vector));
        CHECK(tap, !conv_rows_fit(&many, 1, 1, vector));
        CHECK(tap, !conv_rows_fit(&groups, 4, 1, vector));
        CHECK(tap, conv_rows_fit(&few, 2, vector, vector)); // as a gradient's lanes are added up
    }
    CHECK(tap, !conv_rows_fit(&few, 4, 1, 0));
    CHECK(tap, conv_rows_scratch(&few, 4) >= 2 * 16 * conv_rows_inputs(&few));
}

enum { SAMPLES = KERNELS_LANES_MOST + 3, VALUES = 16 * 16 * 16 };

// A block of the best kernels, and a few: many blocks are not for rows.
static int sample_count(void) {
    int lanes = kernels_best()->lanes;
    return lanes > 0 ? lanes + 3 : SAMPLES;
}

// The gradient of all parameters, by some kernels. With `deep` its way, in blocks of several.
static float *gradient_by(struct tap *tap, const struct model *model, const struct kernels *k,
                          const float *parameters, const float *input, bool deep) {
    struct error err = {0};
    struct net *net = NULL;
    int32_t labels[SAMPLES];
    int n = sample_count();
    float *gradient = mem_floats(model->parameter_count);
    for (int i = 0; i < n; i++)
        labels[i] = i % 10;
    if (net_open(&net, model, k, n, NET_TRAIN, &err)) {
        FAIL(tap, "%s", err.text);
        return gradient;
    }
    net_forward(net, parameters, input, n, NULL, 0);
    net_backward(net, parameters, labels, 1.0f / (float)n, gradient, NULL, NULL);
    const struct layer *layer = &model->layers[model->layer_count - 2];
    if (deep) {
        CHECK(tap, net_lanes(net, layer) > 1);
        CHECK(tap, strcmp(net_way(net, layer, CONV_BACK_WEIGHTS), "rows") == 0);
    }
    net_close(net);
    return gradient;
}

// Where layers of large pictures want blocks of several samples, the last one full or not: their
// maps fill no vectors.
static void test_blocks(struct tap *tap) {
    static const char text[] = "input 16x16x16\nconv maps=46 kernel=3 pad=1 act=relu\nconv "
                               "maps=46 kernel=3 pad=1 act=relu\nmaxpool size=8 stride=8\n"
                               "conv maps=640 kernel=3 pad=1 act=tanh\nsoftmax units=10\n";
    const struct kernels *best = kernels_best();
    struct error err = {0};
    struct model *model = NULL;
    if (model_parse(&model, "test.net", text, NULL, 0, &err)) {
        FAIL(tap, "%s", err.text);
        return;
    }
    struct random random = random_stream(2, 0, 0);
    float *parameters = mem_floats(model->parameter_count), *input = mem_floats(SAMPLES * VALUES);
    random_normals(&random, input, SAMPLES * VALUES);
    model_init_lively(model, parameters, 1);
    float *got = gradient_by(tap, model, best, parameters, input, best->lanes > 0);
    float *wanted = gradient_by(tap, model, kernels_of(CPU_REF), parameters, input, false);
    double largest = 0, worst = 0;
    for (size_t i = 0; i < model->parameter_count; i++) {
        largest = fmax(largest, fabs((double)wanted[i]));
        worst = fmax(worst, fabs((double)got[i] - (double)wanted[i]));
    }
    CHECK(tap, largest > 0 && worst < 1e-4 * largest);
    free(got), free(wanted), free(parameters), free(input);
    model_free(model);
}

int main(void) {
    struct tap tap = {0};
    TEST(&tap, "a row is what an output pixel sees; the adjoint gives it back",
         { test_rows(&tap); });
    TEST(&tap, "in blocks of several samples they give what plain C does", { test_blocks(&tap); });
    TEST(&tap, "rows are taken where weights are many and outputs few", { test_taken(&tap); });
    return tap_done(&tap);
}
