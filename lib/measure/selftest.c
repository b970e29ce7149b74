#include "measure/selftest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/columns.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/kernels.h"
#include "model/layer.h"
#include "model/net.h"
#include "model/prepared.h"

#define PREDICTED "predicted: " // the forward pass alone, with prepared weights

// Shapes that fill no vector: odd maps, odd pictures, strides, groups, windows that
// reach over the border.
static const struct {
    const char *input, *line;
} cases[SELFTEST_LAYERS] = {
    {"1x28x28", "conv maps=10 kernel=5 pad=2 act=relu"},
    {"20x14x14", "conv maps=33 kernel=3 pad=1 act=tanh"},
    {"12x9x11", "conv maps=20 kernel=5x3 pad=2x1 groups=4"},
    {"12x9x11", "conv maps=12 kernel=3 stride=2 groups=12"},
    {"3x27x23", "conv maps=7 kernel=11x7 stride=4x3"},
    {"12x11x9", "conv maps=8 kernel=3 dilation=3x2 pad=2 groups=2"},
    {"33x6x5", "conv maps=17 kernel=1"},
    {"70x3x2", "conv maps=41 kernel=3 pad=1 act=gelu"},
    {"5x9x8", "local maps=6 kernel=3 pad=1 act=sigmoid"},
    {"10x13x11", "maxpool size=3 stride=2 round=up"},
    {"10x13x11", "avgpool size=3 stride=2 pad=1"},
    {"6x12x12", "l2pool size=4 stride=3"},
    {"19x7x5", "lrn size=5"},
    {"8x12x9", "lcn size=5"},
    {"12x7x5", "groupnorm groups=3 act=elu"},
    {"7x5x3", "layernorm"},
    {"12x7x5", "batchnorm act=relu"},
    {"9x4x5", "batchnorm act=silu"},
    {"50x1x1", "batchnorm"},
    {"9x8x7", "conv maps=12 kernel=3 pad=1 act=gelu"},
    {"11x5x5", "dense units=123 act=relu"},
    {"11x5x5", "dense units=30 act=softplus"},
    {"1000x1x1", "dense units=37 act=sigmoid"},
    {"7x6x6", "dropout dropout=0.3"},
    {"1030", PREDICTED "dense units=1025 act=tanh"},
};

static bool case_predicts(int i) {
    return strncmp(cases[i].line, PREDICTED, sizeof PREDICTED - 1) == 0;
}

// With parameters below the layer, so that the error gradients of its inputs count.
static int read_case(struct model **model, int i, struct error *err) {
    char text[256];
    if (case_predicts(i))
        snprintf(text, sizeof text, "input %s\n%s\nsoftmax units=10\n", cases[i].input,
                 cases[i].line + sizeof PREDICTED - 1);
    else
        snprintf(text, sizeof text, "input %s\nconv below maps=%d kernel=1\n%s\nsoftmax units=10\n",
                 cases[i].input, atoi(cases[i].input), cases[i].line);
    return model_parse(model, "self-test", text, NULL, 0, err);
}

enum { BATCHES = 6, BATCH_TRAINED = 33, BATCH_MOST = 129 };
static const int batches[BATCHES] = {1, 2, 5, 8, 16, BATCH_TRAINED};
static const int batches_predicted[BATCHES] = {1, 2, 5, 16, BATCH_TRAINED, BATCH_MOST};

// One model on one family's kernels.
struct subject {
    struct net *net;
    struct arena arena;
    float *scores, *gradient; // of the last pass
};

struct samples {
    struct arena arena;
    float *parameters, *input;
    uint64_t *draw;
    int32_t *labels;
};

static void take_samples(struct samples *s, const struct model *model) {
    size_t in = shape_size(model_input(model)->out);
    s->parameters = arena_take(&s->arena, model->parameter_count, sizeof(float));
    s->input = arena_take(&s->arena, BATCH_MOST * in, sizeof(float));
    s->draw = arena_take(&s->arena, BATCH_MOST, sizeof *s->draw);
    s->labels = arena_take(&s->arena, BATCH_MOST, sizeof *s->labels);
}

static int samples_open(struct samples *s, const struct model *model, struct error *err) {
    struct random random = random_stream(1, 0, 0);
    *s = (struct samples){0};
    take_samples(s, model);
    if (!arena_open(&s->arena))
        return error_nomem(err);
    take_samples(s, model);
    model_init_lively(model, s->parameters, 1);
    random_normals(&random, s->input, BATCH_MOST * shape_size(model_input(model)->out));
    for (int i = 0; i < BATCH_MOST; i++) {
        s->draw[i] = (uint64_t)i;
        s->labels[i] = i % model_classes(model);
    }
    return STATUS_OK;
}

static void take_results(struct subject *s, const struct model *model) {
    s->scores = arena_take(&s->arena, BATCH_MOST * (size_t)model_classes(model), sizeof *s->scores);
    s->gradient = arena_take(&s->arena, model->parameter_count, sizeof *s->gradient);
}

static int subject_open(struct subject *s, const struct model *model, const struct kernels *kernels,
                        enum net_mode mode, struct error *err) {
    *s = (struct subject){0};
    int status = net_open(&s->net, model, kernels, BATCH_MOST, mode, err);
    if (status != STATUS_OK)
        return status;
    take_results(s, model);
    if (!arena_open(&s->arena))
        return error_nomem(err);
    take_results(s, model);
    return STATUS_OK;
}

static void subject_close(struct subject *s) {
    net_close(s->net);
    arena_close(&s->arena);
}

static void run_forward(struct subject *s, const struct model *model, const struct samples *in,
                        int n) {
    net_forward(s->net, in->parameters, in->input, n, in->draw, 1);
    memcpy(s->scores, net_scores(s->net),
           (size_t)n * (size_t)model_classes(model) * sizeof *s->scores);
}

static void run_batch(struct subject *s, const struct model *model, const struct samples *in,
                      int n) {
    run_forward(s, model, in, n);
    net_backward(s->net, in->parameters, in->labels, 1.0f / (float)n, s->gradient, NULL, NULL);
}

// The largest difference, relative to the largest number; infinite for what is no
// number.
static double relative_difference(const float *got, const float *wanted, size_t n) {
    double most = 0, largest = 1e-30;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - (double)wanted[i]);
        most = d <= most ? most : isnan(d) ? INFINITY : d;
        largest = fmax(largest, fabs((double)wanted[i]));
    }
    return most / largest;
}

// The largest of all mini-batches, scores and layers' gradients.
static double compare_families(struct subject *subject, struct subject *reference,
                               const struct model *model, const struct samples *in) {
    double most = 0;
    for (int b = 0; b < BATCHES; b++) {
        int n = batches[b];
        run_batch(subject, model, in, n);
        run_batch(reference, model, in, n);
        most = fmax(most, relative_difference(subject->scores, reference->scores,
                                              (size_t)n * (size_t)model_classes(model)));
        for (int i = 0; i < model->layer_count; i++) {
            const struct layer *layer = &model->layers[i];
            size_t at = layer->weights.offset, count = layer_parameters(layer);
            most = fmax(
                most, relative_difference(subject->gradient + at, reference->gradient + at, count));
        }
    }
    return most;
}

// Of scores by prepared weights.
static double compare_predicted(struct subject *subject, struct subject *reference,
                                const struct model *model, const struct samples *in) {
    double most = 0;
    for (int b = 0; b < BATCHES; b++) {
        size_t count = (size_t)batches_predicted[b] * (size_t)model_classes(model);
        run_forward(subject, model, in, batches_predicted[b]);
        run_forward(reference, model, in, batches_predicted[b]);
        most = fmax(most, relative_difference(subject->scores, reference->scores, count));
    }
    return most;
}

static int test_trained(double *most, const struct model *model, const struct samples *in,
                        const struct kernels *kernels, struct error *err) {
    struct subject subject = {0}, reference = {0};
    int status = subject_open(&subject, model, kernels, NET_TRAIN, err);
    if (status == STATUS_OK)
        status = subject_open(&reference, model, kernels_of(CPU_REF), NET_TRAIN, err);
    if (status == STATUS_OK)
        *most = compare_families(&subject, &reference, model, in);
    subject_close(&subject);
    subject_close(&reference);
    return status;
}

static int test_predicted(double *most, const struct model *model, const struct samples *in,
                          const struct kernels *kernels, struct error *err) {
    struct subject subject = {0}, reference = {0};
    struct prepared *prepared = NULL;
    int status = subject_open(&subject, model, kernels, NET_PREDICT, err);
    if (status == STATUS_OK)
        status = subject_open(&reference, model, kernels_of(CPU_REF), NET_PREDICT, err);
    if (status == STATUS_OK)
        status = prepared_open(&prepared, model, kernels, in->parameters, 1, BATCH_MOST, err);
    if (status == STATUS_OK) {
        prepared_now(prepared, subject.net);
        *most = compare_predicted(&subject, &reference, model, in);
    }
    subject_close(&subject);
    subject_close(&reference);
    prepared_close(prepared);
    return status;
}

static int test_case(struct selftest *test, int i, struct error *err) {
    struct model *model;
    struct samples samples;
    int status = read_case(&model, i, err);
    if (status != STATUS_OK)
        return status;
    test->layers[i].line = cases[i].line;
    status = samples_open(&samples, model, err);
    for (int f = 0; f < test->family_count && status == STATUS_OK; f++) {
        double *most = &test->layers[i].differences[f];
        status = (case_predicts(i) ? test_predicted : test_trained)(most, model, &samples,
                                                                    test->families[f], err);
        test->good &= *most <= SELFTEST_TOLERANCE;
    }
    arena_close(&samples.arena);
    model_free(model);
    return status;
}

int selftest_families(const struct kernels *families[SELFTEST_FAMILIES]) {
    int count = 0;
    for (enum cpu_level level = CPU_REF + 1; level < cpu_level(); level++)
        if (kernels_of(level))
            families[count++] = kernels_of(level);
    families[count++] = kernels_best();
    return count;
}

int selftest_run(struct selftest *test, const struct kernels *const *families, int family_count,
                 struct error *err) {
    int status = STATUS_OK;
    *test = (struct selftest){.family_count = family_count, .good = true};
    memcpy(test->families, families, (size_t)family_count * sizeof *families);
    for (int i = 0; i < SELFTEST_LAYERS && status == STATUS_OK; i++)
        status = test_case(test, i, err);
    return status;
}

// --- for people and programs ----------------------------------------------------------

char *selftest_text(const struct selftest *test) {
    struct column columns[SELFTEST_FAMILIES + 1] = {{"self-test", false}};
    struct columns table = {.column = columns, .count = test->family_count + 1};
    struct grow to = {0};
    for (int f = 0; f < test->family_count; f++)
        columns[f + 1] = (struct column){test->families[f]->name, true};
    for (int i = 0; i < SELFTEST_LAYERS; i++) {
        columns_cell(&table, "%s", test->layers[i].line);
        for (int f = 0; f < test->family_count; f++)
            columns_cell(&table, "%.1e", test->layers[i].differences[f]);
    }
    columns_put(&table, &to);
    grow_format(&to, "difference from plain C, relative to the largest value: %s %.0e\n",
                test->good ? "nowhere above" : "NOT everywhere within", SELFTEST_TOLERANCE);
    return grow_take(&to);
}

static json_t *selftest_layer_json(const struct selftest *test, int i) {
    json_t *differences = json_object();
    for (int f = 0; f < test->family_count; f++)
        json_put(&differences, test->families[f]->name,
                 json_number(test->layers[i].differences[f]));
    return json_pack("{s:s, s:o}", "layer", test->layers[i].line, "differences", differences);
}

json_t *selftest_json(const struct selftest *test) {
    json_t *layers = json_array();
    for (int i = 0; i < SELFTEST_LAYERS; i++)
        json_append(&layers, selftest_layer_json(test, i));
    return json_pack("{s:b, s:f, s:o}", "good", test->good, "tolerance", SELFTEST_TOLERANCE,
                     "layers", layers);
}
