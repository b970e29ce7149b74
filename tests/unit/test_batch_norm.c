// Batch normalisation beyond what PyTorch has an answer to: samples by themselves, groups of a
// mini-batch over several passes, means that are large beside the deviation, and how far running
// statistics are moved. (Values, gradients, servers: tests/cli/torch.bats, test_gradients.c.)
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/batch_norm.h"
#include "kernels/conv.h"
#include "kernels/kernels.h"
#include "model/net.h"
#include "model/prepared.h"
#include "rule/optimizer.h"

enum { MOST = 80, INPUTS = 6, CLASSES = 3 };

struct fixture {
    struct model *model;
    struct net *trains, *predicts;
    float *parameters, *gradient, *input;
    int32_t labels[MOST];
    int ready; // layers whose gradients were there
};

static bool fixture_open(struct tap *tap, struct fixture *f, const char *text) {
    struct error err = {0};
    struct random random = random_stream(3, 1, 4);
    *f = (struct fixture){.labels = {0}};
    if (model_parse(&f->model, "test.net", text, NULL, 0, &err) ||
        net_open(&f->trains, f->model, kernels_best(), MOST, NET_TRAIN, &err) ||
        net_open(&f->predicts, f->model, kernels_best(), MOST, NET_PREDICT, &err)) {
        FAIL(tap, "%s", err.text);
        return false;
    }
    size_t in = MOST * net_sample(f->trains);
    f->parameters = mem_floats(f->model->parameter_count);
    f->gradient = mem_floats(f->model->parameter_count);
    f->input = mem_floats(in);
    model_init_lively(f->model, f->parameters, 11);
    for (size_t i = 0; i < in; i++)
        f->input[i] = 2 + random_normal(&random);
    for (int i = 0; i < MOST; i++)
        f->labels[i] = i % CLASSES;
    return true;
}

static void fixture_close(struct fixture *f) {
    net_close(f->trains);
    net_close(f->predicts);
    model_free(f->model);
    free(f->parameters), free(f->gradient), free(f->input);
}

static void check_floats(struct tap *tap, const float *got, const float *wanted, size_t n,
                         double tolerance) {
    for (size_t i = 0; i < n; i++)
        CHECK_NEAR(tap, got[i], (double)wanted[i], tolerance);
}

static const char flat[] = "input 6\nbatchnorm b\nsoftmax units=3\n";
static const char pictures[] = "input 2x5x4\nconv maps=6 kernel=3 pad=1\nbatchnorm act=relu\n"
                               "conv maps=5 kernel=3\nbatchnorm\nsoftmax units=3\n";

static void test_alone(struct tap *tap) {
    struct fixture f;
    if (!fixture_open(tap, &f, flat))
        return;
    const struct parameter *mean = &f.model->layers[1].statistics[0];
    for (size_t i = 0; i < mean->count; i++)
        f.parameters[mean->offset + i] = 1.5f;
    net_forward(f.predicts, f.parameters, f.input, 1, NULL, 0);
    net_forward(f.trains, f.parameters, f.input, 1, NULL, 0);
    check_floats(tap, net_scores(f.trains), net_scores(f.predicts), CLASSES, 1e-6);
    net_backward(f.trains, f.parameters, f.labels, 1, f.gradient, NULL, NULL);
    for (size_t i = 0; i < 2 * mean->count; i++)
        CHECK_NEAR(tap, f.gradient[mean->offset + i], 0, 0);
    tap_result(tap, "one value of a map goes by the running statistics, and moves them nowhere");
    fixture_close(&f);
}

// How far the running statistics are from those of 5 samples: torch.nn.BatchNorm1d moves its mean
// to theirs, and its variance to the unbiased one.
static void test_distances(struct tap *tap) {
    enum { N = 5 };
    struct fixture f;
    if (!fixture_open(tap, &f, flat))
        return;
    const struct parameter *statistics = f.model->layers[1].statistics;
    net_forward(f.trains, f.parameters, f.input, N, NULL, 0);
    net_backward(f.trains, f.parameters, f.labels, 1.0f / N, f.gradient, NULL, NULL);
    for (size_t m = 0; m < INPUTS; m++) {
        double mean = 0, squares = 0;
        for (size_t i = 0; i < N; i++)
            mean += (double)f.input[i * INPUTS + m] / N;
        for (size_t i = 0; i < N; i++)
            squares += pow((double)f.input[i * INPUTS + m] - mean, 2);
        size_t means = statistics[0].offset + m, variances = statistics[1].offset + m;
        CHECK_NEAR(tap, f.gradient[means], (double)f.parameters[means] - mean, 1e-5);
        CHECK_NEAR(tap, f.gradient[variances], (double)f.parameters[variances] - squares / (N - 1),
                   1e-5);
    }
    tap_result(tap, "running statistics move to the mean and the unbiased variance");
    fixture_close(&f);
}

static void test_prediction(struct tap *tap) {
    struct fixture f;
    float alone[CLASSES];
    if (!fixture_open(tap, &f, pictures))
        return;
    net_forward(f.predicts, f.parameters, f.input, 1, NULL, 0);
    memcpy(alone, net_scores(f.predicts), sizeof alone);
    net_forward(f.predicts, f.parameters, f.input, 40, NULL, 0);
    check_floats(tap, net_scores(f.predicts), alone, CLASSES, 1e-6);
    tap_result(tap, "no prediction depends on the samples beside it");
    fixture_close(&f);
}

// A mini-batch of 70 in passes of at most `most`.
static void train_in_passes(struct fixture *f, float *gradient, int most) {
    size_t sample = net_sample(f->trains);
    for (int at = 0, n; at < 70; at += n) {
        n = 70 - at < most ? 70 - at : most;
        net_forward(f->trains, f->parameters, f->input + (size_t)at * sample, n, NULL, 0);
        net_adds(f->trains, at > 0);
        net_backward(f->trains, f->parameters, f->labels + at, 1.0f / 70, gradient, NULL, NULL);
    }
}

static void test_passes(struct tap *tap) {
    struct fixture f;
    if (!fixture_open(tap, &f, pictures))
        return;
    size_t n = f.model->parameter_count;
    float *whole = mem_floats(n);
    train_in_passes(&f, whole, 70);
    train_in_passes(&f, f.gradient, model_together(f.model));
    check_floats(tap, f.gradient, whole, n, 1e-5);
    train_in_passes(&f, f.gradient, 64);
    check_floats(tap, f.gradient, whole, n, 1e-5);
    CHECK_INT(tap,
              net_part(f.model, kernels_best(), 70) % model_together(f.model) == 0 ||
                  net_part(f.model, kernels_best(), 70) == 70,
              true);
    tap_result(tap, "the groups of a mini-batch are the same in one pass and in several");
    free(whole);
    fixture_close(&f);
}

enum { SAMPLES = 5, MAPS = 3, PIXELS = 100 };

// Where a value lies, in blocks or plain.
static size_t place(int lanes, int sample, int map, int pixel) {
    int plain = (sample * MAPS + map) * PIXELS + pixel;
    int block = lanes ? sample / lanes * MAPS * PIXELS * lanes : 0;
    return (size_t)(lanes ? block + (pixel * MAPS + map) * lanes + sample % lanes : plain);
}

// The variance of one map's values.
static double variance_of(const float *x, int lanes, int map) {
    double sum = 0, squares = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < SAMPLES * PIXELS; i++) {
            double value = (double)x[place(lanes, i / PIXELS, map, i % PIXELS)];
            double from = value - sum / (SAMPLES * PIXELS);
            sum += pass ? 0 : value;
            squares += pass ? from * from : 0;
        }
    return squares / (SAMPLES * PIXELS);
}

// Deviations of 1 around means of 1000.
static void check_measure(struct tap *tap, const struct batch_norm_kernels *kernels, int lanes) {
    struct batch_norm norm = {.n = SAMPLES, .c = MAPS, .pixels = PIXELS, .lanes = lanes};
    struct random random = random_stream(5, 1, 1);
    size_t values = (SAMPLES + 16) * MAPS * PIXELS;
    float mean[MAPS], variance[MAPS], *x = mem_floats(values);
    float *scratch = mem_floats(batch_norm_scratch(MAPS, lanes + 1));
    for (size_t i = 0; i < values; i++)
        x[i] = 1000 + random_normal(&random);
    kernels->measure(mean, variance, x, &norm, scratch);
    for (int m = 0; m < MAPS; m++) {
        CHECK_NEAR(tap, mean[m], 1000, 0.2);
        CHECK_NEAR(tap, variance[m], variance_of(x, lanes, m), 1e-4);
    }
    free(x), free(scratch);
}

static void test_large_means(struct tap *tap) {
    const struct kernels *best = kernels_best();
    check_measure(tap, best->batch_norm, 0);
    for (int lanes = 1; best->batch_norm_blocks && lanes <= 8; lanes *= 2)
        check_measure(tap, best->batch_norm_blocks, lanes);
    tap_result(tap, "a mean that is large beside the deviation costs no digits of it");
}

// Below norms: convolutions, one for each map, dense layers; with and without an activation, and
// with what keeps a norm a pass of its own: a second reader, an activation that keeps its inputs.
static const char foldable[] = "input 2x9x8\nconv maps=6 kernel=3 pad=1\nbatchnorm\nrelu\n"
                               "conv maps=6 kernel=3 pad=1 groups=6\nbatchnorm act=relu6\n"
                               "conv a maps=5 kernel=3\nbatchnorm b\nadd from=a,b\n"
                               "conv maps=7 kernel=1\nbatchnorm act=gelu\nmaxpool size=2\n"
                               "conv maps=7 kernel=1 act=tanh\nbatchnorm\n"
                               "dense units=20\nbatchnorm act=tanh\nsoftmax units=3\n";
// A convolution of so many weights that it passes all samples at once, before layers that go part
// by part.
static const char large_foldable[] = "input 64x5x5\nconv maps=512 kernel=3\nbatchnorm act=relu\n"
                                     "lrn size=3\nconv maps=4 kernel=1\nsoftmax units=3\n";

// `noise` is added to all parameters, so that no bias and no mean is 0.
static void test_folded(struct tap *tap, const char *text, float noise, const char *name) {
    struct fixture f;
    struct net *net = NULL;
    struct prepared *prepared = NULL;
    struct error err = {0};
    struct random random = random_stream(8, 1, 4);
    if (!fixture_open(tap, &f, text))
        return;
    for (size_t i = 0; i < f.model->parameter_count; i++)
        f.parameters[i] += noise * fabsf(random_normal(&random));
    CHECK_INT(tap, net_open(&net, f.model, kernels_best(), MOST, NET_FOLDED, &err), 0);
    CHECK_INT(tap, prepared_open(&prepared, f.model, kernels_best(), f.parameters, 1, MOST, &err),
              0);
    CHECK(tap, prepared_parameters(prepared) != f.parameters);
    for (int n = 1; n <= 40; n += 13) {
        net_forward(f.predicts, f.parameters, f.input, n, NULL, 0);
        net_forward(net, prepared_parameters(prepared), f.input, n, NULL, 0);
        check_floats(tap, net_scores(net), net_scores(f.predicts), (size_t)n * CLASSES, 1e-5);
    }
    tap_result(tap, name);
    prepared_close(prepared);
    net_close(net);
    fixture_close(&f);
}

static void test_share(struct tap *tap) {
    struct fixture f;
    if (!fixture_open(tap, &f, flat))
        return;
    struct layer *layer = &f.model->layers[1];
    struct optimizer rule = {.rule = RULE_ADAM};
    CHECK_NEAR(tap, optimizer_statistics_update(&rule, layer).rate, 0.1, 1e-7);
    rule.sharers = 4;
    CHECK_NEAR(tap, optimizer_statistics_update(&rule, layer).rate, 0.025, 1e-7);
    CHECK_INT(tap, optimizer_statistics_update(&rule, layer).rule, RULE_SGD);
    layer->rate = 0;
    CHECK_NEAR(tap, optimizer_statistics_update(&rule, layer).rate, 0, 0);
    tap_result(tap, "who move running statistics side by side move them by their share each");
    fixture_close(&f);
}

// Takes a layer's gradient, and leaves parameters that nobody may read any more.
static void take_and_spoil(void *self, const struct layer *layer, const float *gradient) {
    struct fixture *f = self;
    (void)gradient;
    f->ready++;
    for (size_t i = 0; i < layer_parameters(layer); i++)
        f->parameters[layer->weights.offset + i] = NAN;
}

static double largest_of(const float *values, size_t n) {
    float largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmaxf(largest, fabsf(values[i]));
    return (double)largest;
}

// The gradient of so many samples, by some kernels.
static float *gradient_by(struct tap *tap, struct fixture *f, const struct kernels *kernels,
                          int samples, net_ready *ready) {
    struct error err = {0};
    struct net *net = NULL;
    float *gradient = mem_floats(f->model->parameter_count);
    if (net_open(&net, f->model, kernels, MOST, NET_TRAIN, &err)) {
        FAIL(tap, "%s", err.text);
        return gradient;
    }
    uint64_t draw[MOST];
    for (int i = 0; i < MOST; i++)
        draw[i] = (uint64_t)i;
    net_forward(net, f->parameters, f->input, samples, draw, 1);
    net_backward(net, f->parameters, f->labels, 1.0f / (float)samples, gradient, ready, f);
    net_close(net);
    return gradient;
}

// Of pictures so large that blocks go in parts, in two groups: norms below one and several
// readers, with and without an activation that the kernels know.
static void test_parts(struct tap *tap) {
    enum { SAMPLES_ALL = 37 };
    static const char text[] =
        "input 3x24x24\nbatchnorm\nconv maps=16 kernel=3 pad=1\nbatchnorm a act=relu\n"
        "conv maps=16 kernel=3 pad=1\nbatchnorm\nbatchnorm b rate=0\nadd from=a,b act=relu\n"
        "batchnorm\nconv maps=8 kernel=3 stride=2 pad=1\n"
        "batchnorm act=gelu\navgpool size=all\nsoftmax units=3\n";
    struct fixture f;
    if (!fixture_open(tap, &f, text))
        return;
    size_t n = f.model->parameter_count;
    float *wanted = gradient_by(tap, &f, kernels_of(CPU_REF), SAMPLES_ALL, NULL);
    float *got = gradient_by(tap, &f, kernels_best(), SAMPLES_ALL, NULL);
    float *spoiled = gradient_by(tap, &f, kernels_best(), SAMPLES_ALL, take_and_spoil);
    double largest = largest_of(wanted, n);
    check_floats(tap, got, wanted, n, 1e-5 * largest);
    CHECK_INT(tap, f.ready, 9);
    CHECK(tap, largest > 0 && memcmp(got, spoiled, n * sizeof *got) == 0);
    tap_result(tap,
               "the gradients of parts are those of the whole, when their parameters may change");
    free(wanted), free(got), free(spoiled);
    fixture_close(&f);
}

// The largest gradient of a bias of layer 1 in such a net, of so many samples.
static double bias_gradient(struct tap *tap, const struct kernels *kernels, const char *text,
                            int samples) {
    struct fixture f;
    if (!fixture_open(tap, &f, text))
        return NAN;
    float *gradient = gradient_by(tap, &f, kernels, samples, NULL);
    const struct parameter *biases = &f.model->layers[1].biases;
    double largest = largest_of(gradient + biases->offset, biases->count);
    free(gradient);
    fixture_close(&f);
    return largest;
}

static void check_biases(struct tap *tap, const struct kernels *k) {
#define WITH_BIASES(conv, behind)                                                                  \
    "input 16x8x8\nconv c maps=16 kernel=3 pad=1" conv "\n" behind                                 \
    "\navgpool size=all\nsoftmax units=3\n"
    for (int samples = 1; samples < MOST; samples += 35) {
        CHECK(tap, bias_gradient(tap, k, WITH_BIASES("", "batchnorm act=relu"), samples) == 0);
        CHECK(tap,
              bias_gradient(tap, k, WITH_BIASES(" groups=16", "batchnorm act=relu"), samples) == 0);
        CHECK(tap, bias_gradient(tap, k, WITH_BIASES(" act=relu", "batchnorm act=relu"), samples) >
                       1e-4);
        CHECK(tap, bias_gradient(tap, k, WITH_BIASES(" dropout=0.5", "batchnorm act=relu"),
                                 samples) > 1e-4);
        CHECK(tap,
              bias_gradient(tap, k, WITH_BIASES("", "batchnorm rate=0 act=relu"), samples) > 1e-4);
        CHECK(tap, bias_gradient(tap, k, WITH_BIASES("", "groupnorm groups=4 act=relu"), samples) >
                       1e-4);
        CHECK(tap,
              bias_gradient(tap, k, WITH_BIASES("", "batchnorm b act=relu\nadd from=b,c act=relu"),
                            samples) > 1e-4);
    }
    CHECK(tap, bias_gradient(tap, k,
                             "input 16x3x3\nconv maps=16 kernel=3\nbatchnorm act=relu\n"
                             "softmax units=3\n",
                             1) > 1e-4);
#undef WITH_BIASES
}

// What adds the same to all values of a map is taken away with their mean.
static void test_biases(struct tap *tap) {
    for (enum cpu_level level = CPU_REF; level <= CPU_AVX512; level++)
        if (kernels_of(level))
            check_biases(tap, kernels_of(level));
    tap_result(tap, "biases whose sum only a norm reads, by its own mean, have no gradient");
}

// A norm, the layer of that number, whose maps have this scale and another by turns.
static void check_sums(struct tap *tap, const char *text, int number, float scale) {
    static const int counts[] = {1, 6, 16, 47, 80}; // none with a value at the kink of a relu
    struct fixture f;
    if (!fixture_open(tap, &f, text))
        return;
    const struct layer *norm = &f.model->layers[number];
    for (size_t i = 0; i < norm->weights.count; i++) {
        f.parameters[norm->weights.offset + i] = i % 2 ? 1 : scale;
        f.parameters[norm->biases.offset + i] = 0.5f;
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        size_t n = f.model->parameter_count;
        float *wanted = gradient_by(tap, &f, kernels_of(CPU_REF), counts[i], NULL);
        float *got = gradient_by(tap, &f, kernels_best(), counts[i], NULL);
        CHECK(tap, largest_of(wanted, n) > 0);
        check_floats(tap, got, wanted, n, 5e-4 * largest_of(wanted, n));
        for (int p = 0; p < 2; p++) { // of the norm itself
            size_t at = (p ? norm->biases : norm->weights).offset, c = norm->biases.count;
            check_floats(tap, got + at, wanted + at, c, 1e-2 * largest_of(wanted + at, c));
        }
        free(wanted), free(got);
    }
    fixture_close(&f);
}

#define CONV "conv maps=16 kernel=3 pad=1"
#define BETWEEN(picture, act)                                                                      \
    "input 3x" picture "\n" CONV "\n" CONV act "\nbatchnorm act=relu\n" CONV "\nbatchnorm\n"       \
    "softmax units=3\n"

#define SUM(picture, act)                                                                          \
    "input 3x" picture "\n" CONV "\nbatchnorm a act=relu\n" CONV                                   \
    "\nbatchnorm b\nadd c from=b,a" act "\n" CONV                                                  \
    " from=c\nbatchnorm d\nadd from=d,c act=relu\n" CONV                                           \
    "\nbatchnorm act=relu\navgpool size=all\nsoftmax units=3\n"

// Sums that three layers read, that one of many weights reads, which passes all samples at once,
// and that one reads behind such.
#define TWO(picture, maps)                                                                         \
    "input " picture "\nconv maps=" maps " kernel=1\nbatchnorm a act=relu\nconv maps=" maps        \
    " kernel=1\nbatchnorm b\nadd c from=b,a act=relu\n"
#define END "avgpool size=all\nsoftmax units=3\n"
#define THREE                                                                                      \
    TWO("3x12x12", "16")                                                                           \
    "conv d from=c maps=16 kernel=3 pad=1\nconv e from=c maps=16 kernel=1\n"                       \
    "add from=c,d,e act=relu\n" END
#define MANY TWO("16x8x8", "128") CONV " from=c\nbatchnorm act=relu\n" END
#define BEHIND                                                                                     \
    TWO("16x8x8", "128")                                                                           \
    "conv d from=a maps=16 kernel=3 pad=1\n"                                                       \
    "conv e from=c maps=128 groups=2 kernel=3 pad=1\nbatchnorm f act=relu\nconcat from=d,f\n" END

// Between convolutions that are not by Winograd's filtering: of single pixels and of single maps,
// with an upper bound, which many outputs reach, and a stride.
#define MOBILE(picture, maps, act)                                                                 \
    "input 3x" picture "\nconv maps=" maps " kernel=1\nbatchnorm act=" act "\nconv maps=" maps     \
    " groups=" maps " kernel=3 pad=1 stride=2\nbatchnorm act=" act                                 \
    "\nconv maps=24 kernel=1\nbatchnorm act=" act "\nconv maps=16 groups=2 kernel=3\n"             \
    "batchnorm act=" act "\nconv maps=16 kernel=1 stride=2\nbatchnorm\nsoftmax units=3\n"

static void check_mobile(struct tap *tap) {
    for (int number = 2; number <= 10; number += 2) {
        check_sums(tap, MOBILE("12x12", "32", "relu6"), number, 4);
        check_sums(tap, MOBILE("20x13", "24", "relu6"), number, 4);
        check_sums(tap, MOBILE("11x12", "32", "relu"), number, 0.5f);
    }
}

// Sums with x tell as long as means are not far from 0.
static void check_far(struct tap *tap, const struct kernels *kernels, float mean_of_one) {
    float sum[] = {1, 2}, product[] = {3, 4}, mean[] = {1, mean_of_one}, variance[] = {1, 4};
    float plain[] = {0, 0}, along[] = {0, 0};
    struct conv_sums sums = {.sum = sum, .product = product};
    struct batch_sums by = {.sums = &sums, .mean = mean, .variance = variance};
    struct batch_norm norm = {.n = 1, .c = 2, .pixels = 9, .lanes = 1};
    bool tells = kernels->batch_norm_blocks->errors_summed(plain, along, &by, &norm);
    CHECK_INT(tap, tells, fabsf(mean_of_one) < 32);
    CHECK_NEAR(tap, along[1], tells ? 4 - 2 * (double)mean_of_one : 0, 1e-6);
    CHECK_NEAR(tap, plain[1], tells ? 2 : 0, 1e-6);
}

// Between convolutions by Winograd's filtering, which add up what the norm is to look at: of parts
// in one group and in several, with empty lanes, and behind an activation, and before a
// sum. Where scales are small beside shifts, or means large, too little is told of what was
// normalised.
static void test_sums(struct tap *tap) {
    check_sums(tap, BETWEEN("12x12", ""), 3, 0.5f);
    check_sums(tap, BETWEEN("8x8", ""), 3, -0.1f);
    check_sums(tap, BETWEEN("24x24", ""), 3, -0.1f);
    check_sums(tap, BETWEEN("12x12", " act=tanh"), 3, 0.5f);
    check_sums(tap, BETWEEN("12x12", " act=relu"), 3, 0.5f);
    check_sums(tap, BETWEEN("12x12", " dropout=0.5"), 3, 0.5f);
    check_sums(tap, BETWEEN("12x12", ""), 3, 1e-6f);
    check_sums(tap, BETWEEN("12x12", ""), 3, 0);
    check_sums(tap, SUM("12x12", ""), 4, 0.5f);
    check_sums(tap, SUM("8x8", " act=relu"), 4, 0.5f);
    check_sums(tap, SUM("24x24", " act=relu"), 4, 0.5f);
    check_sums(tap, SUM("12x12", " act=tanh"), 4, 0.5f);
    check_sums(tap, SUM("12x12", " dropout=0.5"), 4, 0.5f);
    check_sums(tap, SUM("12x12", " act=relu dropout=0.5"), 4, 0.5f);
    check_sums(tap, THREE, 4, 0.5f);
    check_sums(tap, MANY, 4, 0.5f);
    check_sums(tap, BEHIND, 4, 0.5f);
    check_mobile(tap);
    for (int mean = -100; kernels_best()->batch_norm_blocks && mean <= 100; mean += 25)
        check_far(tap, kernels_best(), (float)mean);
    check_sums(tap,
               "input 16x24x24\nbatchnorm act=relu\n" CONV "\navgpool size=all\nsoftmax units=3\n",
               1, 0.5f);
    tap_result(tap, "sums that convolutions take are those that norms would, or are not used");
}

int main(void) {
    struct tap tap = {0};
    test_alone(&tap);
    test_distances(&tap);
    test_prediction(&tap);
    test_passes(&tap);
    test_large_means(&tap);
    test_folded(&tap, foldable, 0.1f,
                "norms that are folded into the layers below them give the same scores");
    test_folded(&tap, large_foldable, 0.001f,
                "and so do those of a layer that passes all samples at once");
    test_share(&tap);
    test_parts(&tap);
    test_biases(&tap);
    test_sums(&tap);
    return tap_done(&tap);
}
