// Weights made ready for many passes: nets with them and without, what several threads
// share, and when the work is done at all.
#include <pthread.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "model/affine.h"
#include "model/layer.h"
#include "model/prepared.h"

enum { MOST = 150, FEW = 100, INPUTS = 1100, CLASSES = 513, THREADS = 3 };

// Largest difference allowed between probabilities: those of 513 classes, through two
// layers whose sums have magnitudes around 1, each to some 5e-7 of it, or 1e-5 in fixed point.
static double tolerance(const struct kernels *k) {
    return k->lanes > 0 && strcmp(k->kept->way, "fixed") == 0 ? 1e-5 : 1e-6;
}

static const char wide[] = "input 1100\ndense units=1060 act=tanh\nsoftmax units=513\n";
static const char narrow[] = "input 1x28x28\nconv maps=10 kernel=5\ndense units=100\n"
                             "softmax units=10\n";

struct fixture {
    struct tap *tap;
    struct model *model;
    const struct kernels *kernels;
    float *parameters, *input, *plain; // plain: scores of MOST samples as they are
    struct prepared *prepared;
};

static struct net *open_net(const struct fixture *f) {
    struct error err = {0};
    struct net *net = NULL;
    if (net_open(&net, f->model, f->kernels, MOST, NET_PREDICT, &err))
        FAIL(f->tap, "%s", err.text);
    return net;
}

static void fixture_open(struct fixture *f) {
    struct error err = {0};
    struct random random = random_stream(4, 0, 0);
    if (model_parse(&f->model, "test.net", wide, NULL, 0, &err))
        FAIL(f->tap, "%s", err.text);
    f->parameters = mem_floats(f->model->parameter_count);
    f->input = mem_floats(MOST * INPUTS);
    f->plain = mem_floats(MOST * CLASSES);
    model_init_lively(f->model, f->parameters, 1);
    random_normals(&random, f->input, MOST * INPUTS);
    struct net *net = open_net(f);
    net_forward(net, f->parameters, f->input, MOST, NULL, 0);
    memcpy(f->plain, net_scores(net), MOST * CLASSES * sizeof *f->plain);
    net_close(net);
    if (prepared_open(&f->prepared, f->model, f->kernels, f->parameters, 1, MOST, &err))
        FAIL(f->tap, "%s", err.text);
}

static void fixture_close(struct fixture *f) {
    prepared_close(f->prepared);
    model_free(f->model);
    free(f->parameters), free(f->input), free(f->plain);
}

static void check_sample(const struct fixture *f, const struct net *net, int i, double tolerance) {
    const float *scores = net_scores(net) + i * CLASSES, *wanted = f->plain + i * CLASSES;
    for (int c = 0; c < CLASSES; c++)
        if (!(fabs((double)scores[c] - (double)wanted[c]) <= tolerance))
            FAIL(f->tap, "%s, sample %d: score %d is %.9g, not %.9g", f->kernels->name, i, c,
                 (double)scores[c], (double)wanted[c]);
}

static void check_scores(const struct fixture *f, const struct net *net, int n, double tolerance) {
    for (int i = 0; i < n; i++)
        check_sample(f, net, i, tolerance);
}

// Families without vectors keep nothing.
static bool keeps(const struct fixture *f) {
    return f->kernels->lanes > 0;
}

// Whether the last pass went by what is kept.
static void check_way(const struct fixture *f, const struct net *net, bool kept) {
    const char *way = net_way(net, &f->model->layers[1], CONV_FORWARD);
    bool by_kept = keeps(f) && strcmp(way, f->kernels->kept->way) == 0;
    if (by_kept != (kept && keeps(f)))
        FAIL(f->tap, "%s went by %s", f->kernels->name, way);
}

// It takes 5/4 of the memory of the weights at most.
static void check_sizes(const struct fixture *f) {
    for (int i = 0; i < f->model->layer_count; i++) {
        const struct layer *layer = &f->model->layers[i];
        CHECK(f->tap, affine_kept_size(layer, f->kernels, MOST) <= layer->weights.count / 4 * 5);
    }
}

static void test_net(struct fixture *f) {
    struct net *net = open_net(f);
    check_sizes(f);
    prepared_now(f->prepared, net);
    net_forward(net, f->parameters, f->input, MOST, NULL, 0);
    check_scores(f, net, MOST, tolerance(f->kernels));
    check_way(f, net, true);
    net_forward(net, f->parameters, f->input, FEW, NULL, 0); // too few for sums of weights
    check_way(f, net, affine_kept_size(&f->model->layers[1], f->kernels, FEW) > 0);
    check_scores(f, net, FEW, tolerance(f->kernels));
    net_close(net);
}

// A sample that is not finite, or far larger than others, leaves these as they are without
// it; a blank one does not matter.
static void test_unlike(struct fixture *f) {
    enum { BAD = 3 };
    const float bad[] = {NAN, INFINITY, 1e6f, 0};
    struct net *net = open_net(f);
    prepared_now(f->prepared, net);
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        for (int k = 0; k < INPUTS; k++)
            f->input[BAD * INPUTS + k] = bad[b];
        net_forward(net, f->parameters, f->input, MOST, NULL, 0);
        for (int i = 0; i < MOST; i++)
            if (i != BAD)
                check_sample(f, net, i, tolerance(f->kernels));
    }
    net_close(net);
}

static void *predict(void *argument) {
    struct fixture *f = argument;
    struct net *net = open_net(f);
    prepared_now(f->prepared, net);
    net_forward(net, f->parameters, f->input, MOST, NULL, 0);
    check_scores(f, net, MOST, tolerance(f->kernels));
    net_close(net);
    return NULL;
}

static void test_threads(struct fixture *f) {
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, predict, f);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
}

// The first mini-batches go as they do without; later ones by what is kept, if anything is.
static void test_time(struct fixture *f) {
    struct net *net = open_net(f);
    prepared_pass(f->prepared, net, 0);
    net_forward(net, f->parameters, f->input, MOST, NULL, 0);
    check_scores(f, net, MOST, 0);
    prepared_pass(f->prepared, net, 1000000);
    net_forward(net, f->parameters, f->input, MOST, NULL, 0);
    check_way(f, net, true);
    net_close(net);
}

static void test_batch(struct tap *tap, const struct fixture *f) {
    struct error err = {0};
    struct model *small = NULL;
    if (model_parse(&small, "small.net", narrow, NULL, 0, &err))
        FAIL(tap, "%s", err.text);
    int few = prepared_batch(small, f->kernels, 32),
        many = prepared_batch(f->model, f->kernels, 32);
    CHECK_INT(tap, few, 32);
    CHECK_INT(tap, many, keeps(f) ? 256 : 32);
    model_free(small);
}

int main(void) {
    struct tap tap = {0};
    for (int level = CPU_REF; level <= CPU_AVX512_VNNI; level++) {
        struct fixture f = {.tap = &tap, .kernels = kernels_of((enum cpu_level)level)};
        if (!f.kernels)
            continue;
        char name[128];
        snprintf(name, sizeof name, "%s: a net predicts the same by prepared weights",
                 f.kernels->name);
        fixture_open(&f);
        TEST(&tap, name, {
            test_time(&f);
            test_net(&f);
            test_unlike(&f);
        });
        fixture_close(&f);
        snprintf(name, sizeof name, "%s: threads share prepared weights", f.kernels->name);
        fixture_open(&f);
        TEST(&tap, name, { test_threads(&f); });
        TEST(&tap, "large dense layers decide the mini-batch", { test_batch(&tap, &f); });
        fixture_close(&f);
    }
    return tap_done(&tap);
}
