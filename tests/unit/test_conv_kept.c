// Convolutions by what is kept of weights (kernels/conv.h, conv_kept_kernels), against those of
// plain samples: whole, some rows of a picture, some maps, several samples; and nets that predict
// with them.
#include "../helper/blocks.h"
#include "core/error.h"
#include "kernels/conv.h"
#include "kernels/shapes.h"
#include "model/init.h"
#include "model/net.h"
#include "model/prepared.h"

enum { BLOCKS = 3 };

static const struct look {
    int c, h, w, kernel, pad, maps, stride;
} looks[] = {
    {16, 12, 12, 3, 1, 16, 1},  {32, 9, 14, 3, 1, 48, 1},  {16, 21, 8, 3, 0, 32, 1},
    {48, 13, 13, 5, 2, 16, 1},  {64, 28, 28, 3, 1, 64, 1}, {16, 10, 11, 5, 0, 32, 1},
    {128, 15, 6, 3, 2, 96, 1},  {32, 18, 18, 5, 4, 32, 1}, {3, 15, 17, 5, 2, 20, 2},
    {96, 7, 7, 3, 1, 256, 1},   {40, 14, 9, 1, 0, 24, 1},  {128, 4, 3, 3, 1, 128, 1},
    {17, 11, 12, 3, 1, 129, 2},
};

static struct convolution convolution_of(const struct look *s) {
    return (struct convolution){.window = {.c = s->c,
                                           .h = s->h,
                                           .w = s->w,
                                           .out_h = (s->h + 2 * s->pad - s->kernel) / s->stride + 1,
                                           .out_w = (s->w + 2 * s->pad - s->kernel) / s->stride + 1,
                                           .kernel_h = s->kernel,
                                           .kernel_w = s->kernel,
                                           .stride_h = s->stride,
                                           .stride_w = s->stride,
                                           .pad_h = s->pad,
                                           .pad_w = s->pad},
                                .maps = s->maps,
                                .groups = 1};
}

// What is kept, or NULL: such a convolution would not be faster.
static float *keep(const struct conv_kept_kernels *k, const struct convolution *conv,
                   const float *weights) {
    size_t size = k->size(conv);
    if (size == 0)
        return NULL;
    float *kept = mem_floats(size);
    k->keep(kept, weights, conv);
    return kept;
}

// The rows [first, last) of the outputs, and what they come from.
static struct convolution rows_of(const struct convolution *conv, int first, int last, int *top) {
    struct convolution some = *conv;
    struct window *v = &some.window;
    int begin = first * v->stride_h - v->pad_h;
    int bottom = (last - 1) * v->stride_h - v->pad_h + v->kernel_h;
    *top = begin > 0 ? begin : 0;
    v->pad_h = *top - begin;
    v->h = (bottom < v->h ? bottom : v->h) - *top;
    v->out_h = last - first;
    return some;
}

// The picture's maps in two parts, if they can be, each in two parts of its rows.
static void forward_parts(const struct conv_kept_kernels *k, float *y, const float *x,
                          const float *kept, const float *biases, const struct convolution *conv,
                          float *scratch) {
    int unit = k->unit(conv), half = unit ? conv->maps / unit / 2 * unit : 0;
    int row = conv->window.out_h / 3;
    for (int part = 0; part < 4; part++) {
        int first = part & 1 ? row : 0, last = part & 1 ? conv->window.out_h : row, top;
        int map = part & 2 ? half : 0, end = part & 2 ? conv->maps : half;
        if (first == last || map == end)
            continue;
        struct convolution some = rows_of(conv, first, last, &top);
        k->forward(y + (size_t)(first * conv->window.out_w * conv->maps),
                   x + (size_t)(top * conv->window.w * conv->window.c), kept, biases, true, 1, map,
                   end, &some, scratch);
    }
}

static void check_look(struct family *f, const struct conv_kept_kernels *k, const struct look *s,
                       bool relu) {
    struct convolution conv = convolution_of(s);
    int in = s->h * s->w, out = conv.window.out_h * conv.window.out_w;
    float *x = noise(f, (size_t)(BLOCKS * s->c * in)), *biases = noise(f, (size_t)s->maps);
    float *weights = noise(f, (size_t)(s->maps * s->c * s->kernel * s->kernel));
    float *kept = keep(k, &conv, weights);
    float *scratch = mem_floats(conv_block_scratch(&conv));
    float *plain = mem_floats(conv_scratch(&conv));
    float *wanted = mem_floats((size_t)(BLOCKS * s->maps * out));
    f->ref->conv->forward(wanted, x, weights, BLOCKS, &conv, plain);
    f->ref->bias_add(wanted, biases, BLOCKS, s->maps, out);
    if (relu)
        f->ref->acts[ACT_RELU].forward(wanted, (size_t)(BLOCKS * s->maps * out), 0);
    float *samples = blocks_of(f, x, BLOCKS, s->c, in, 1);
    if (kept) {
        float *y = blocks_of(f, NULL, BLOCKS, s->maps, out, 1);
        k->forward(y, samples, kept, biases, relu, BLOCKS, 0, s->maps, &conv, scratch);
        check_blocks(f, k->way, y, wanted, BLOCKS, s->maps, out, 1, 1e-3f);
    }
    if (kept && relu) {
        float *y = blocks_of(f, NULL, 1, s->maps, out, 1);
        forward_parts(k, y, samples, kept, biases, &conv, scratch);
        check_blocks(f, "parts of a convolution", y, wanted, 1, s->maps, out, 1, 1e-3f);
    }
    free(x), free(biases), free(weights), free(kept), free(scratch), free(plain), free(wanted);
    free(samples);
}

static void test_looks(struct family *f, const struct conv_kept_kernels *k, int least) {
    int taken = 0, cut = 0;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        struct convolution conv = convolution_of(&looks[i]);
        taken += k->size(&conv) > 0;
        cut += k->size(&conv) > 0 && k->unit(&conv) > 0 && conv.maps >= 2 * k->unit(&conv);
        check_look(f, k, &looks[i], false);
        check_look(f, k, &looks[i], true);
    }
    CHECK(f->tap, taken >= least && cut >= 2);
}

// Not of channels or maps that fill no vectors, groups, strides; nor of so many weights for so few
// pixels that these would only wait for the kernels.
static void test_taken(const struct family *f) {
    static const struct look odd = {18, 20, 20, 3, 1, 64, 1}, deep = {512, 7, 7, 3, 1, 512, 1},
                             plain = {64, 28, 28, 3, 1, 64, 1}, large = {16, 40, 40, 3, 1, 16, 1};
    struct convolution conv = convolution_of(&plain);
    CHECK(f->tap, f->k->winograd_kept->size(&conv) >= (size_t)(64 * 64 * 36));
    conv.groups = 2;
    CHECK(f->tap, f->k->winograd_kept->size(&conv) == 0);
    conv = convolution_of(&odd);
    CHECK(f->tap, f->k->winograd_kept->size(&conv) == 0);
    conv = convolution_of(&deep);
    CHECK(f->tap, f->k->winograd_kept->size(&conv) == 0);
    CHECK(f->tap, f->k->packed->size(&conv) >= (size_t)(512 * 512 * 9));
    conv = convolution_of(&large); // to pack its weights takes no time
    CHECK(f->tap, f->k->packed->size(&conv) == 0);
}

// --- nets ---------------------------------------------------------------------------------

static const char text[] = "input 3x20x20\nconv maps=32 kernel=3 pad=1 act=relu\n"
                           "conv a maps=32 kernel=3 pad=1 act=tanh\nmaxpool size=2\n"
                           "conv b maps=64 kernel=3 pad=1 act=relu\nsoftmax units=7\n";
enum { MOST = 24, INPUTS = 3 * 20 * 20, CLASSES = 7 };

static float *scores_of(struct tap *tap, const struct model *model, const struct kernels *k,
                        const float *parameters, struct prepared *prepared, const float *input,
                        int n) {
    struct error err = {0};
    struct net *net = NULL;
    float *scores = mem_floats((size_t)(n * CLASSES));
    if (net_open(&net, model, k, MOST, NET_PREDICT, &err)) {
        FAIL(tap, "%s", err.text);
        return scores;
    }
    net_forward(net, parameters, input, n, NULL, 0);
    if (prepared) {
        prepared_now(prepared, net);
        net_forward(net, parameters, input, n, NULL, 0);
        const struct layer *a = &model->layers[2];
        CHECK(tap, n >= k->lanes || net_lanes(net, a) == 1); // those that fill no vectors
        CHECK(tap, strcmp(net_way(net, a, CONV_FORWARD), "winograd") == 0);
    }
    memcpy(scores, net_scores(net), (size_t)(n * CLASSES) * sizeof *scores);
    net_close(net);
    return scores;
}

static void check_net(struct family *f, const struct model *model, const float *parameters,
                      const float *input, int n) {
    struct error err = {0};
    struct prepared *prepared = NULL;
    if (prepared_open(&prepared, model, f->k, parameters, 1, MOST, &err))
        FAIL(f->tap, "%s", err.text);
    float *got = scores_of(f->tap, model, f->k, parameters, prepared, input, n);
    float *wanted = scores_of(f->tap, model, f->ref, parameters, NULL, input, n);
    for (int i = 0; i < n * CLASSES; i++)
        if (!(fabsf(got[i] - wanted[i]) < 1e-4f))
            FAIL(f->tap, "%s, %d samples: score %d is %g, not %g", f->k->name, n, i, (double)got[i],
                 (double)wanted[i]);
    free(got), free(wanted);
    prepared_close(prepared);
}

static void test_nets(struct family *f) {
    struct error err = {0};
    struct model *model = NULL;
    if (model_parse(&model, "test.net", text, NULL, 0, &err)) {
        FAIL(f->tap, "%s", err.text);
        return;
    }
    float *parameters = mem_floats(model->parameter_count), *input = noise(f, MOST * INPUTS);
    model_init_lively(model, parameters, 1);
    for (int n = 1; n <= 7; n += 2)
        check_net(f, model, parameters, input, n);
    check_net(f, model, parameters, input, f->k->lanes);
    free(parameters), free(input);
    model_free(model);
}

int main(void) {
    struct tap tap = {0};
    for (enum cpu_level level = CPU_REF; level <= CPU_AVX512; level++) {
        struct family f = {.tap = &tap, .k = kernels_of(level), .ref = kernels_of(CPU_REF)};
        if (!f.k || !f.k->lanes) {
            tap_result(&tap, "convolutions by what is kept # skip: no blocks");
            continue;
        }
        f.random = random_stream(1, 2, 3);
        TEST(&tap, "convolutions by what is kept give what those of plain samples do", {
            test_looks(&f, f.k->winograd_kept, 4);
            test_looks(&f, f.k->packed, 12);
            test_taken(&f);
        });
        TEST(&tap, "nets that predict with them give the scores of plain C", { test_nets(&f); });
    }
    return tap_done(&tap);
}
