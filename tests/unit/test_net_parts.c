// What a net does with many samples, and with layers that work for their neighbours, is
// what it does with one sample and with layers that keep to themselves.
#include <stdlib.h>

#include "../helper/lively.h"
#include "../helper/tap.h"
#include "kernels/kernels.h"
#include "model/layer.h"
#include "model/net.h"

enum {
    MANY = 43, // three blocks of 16, the last not full
    PART = 16,
};
#define SEED 5
// Sums of MANY gradients in two orders, of magnitudes of about 1.
#define TOLERANCE 2e-5

struct run {
    struct lively of;
    const struct kernels *kernels;
    float *scores, *gradient;
};

static bool run_open(struct tap *tap, struct run *run, const char *text,
                     const struct kernels *kernels) {
    struct error err = {0};
    *run = (struct run){.kernels = kernels};
    if (lively_open(&run->of, text, MANY, 3, 0, &err)) {
        FAIL(tap, "%s", err.text);
        return false;
    }
    run->gradient = mem_floats(run->of.model->parameter_count);
    run->scores = mem_floats(MANY * (size_t)model_classes(run->of.model));
    return true;
}

static void run_close(struct run *run) {
    lively_close(&run->of);
    free(run->gradient), free(run->scores);
}

// Every place of a layer that learns must be written; others' gradients are 0.
static void expect_gradient(const struct model *model, float *gradient) {
    memset(gradient, 0, model->parameter_count * sizeof *gradient);
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        for (size_t j = 0; layer_learns(layer) && j < layer_parameters(layer); j++)
            gradient[layer->weights.offset + j] = NAN;
    }
}

// Scores, and the sum of the gradients, `some` samples at a time.
static void run_by(struct tap *tap, struct run *run, int some) {
    struct net *net;
    struct error err = {0};
    size_t count = run->of.model->parameter_count, classes = (size_t)model_classes(run->of.model);
    size_t in = shape_size(model_input(run->of.model)->out);
    float *gradient = mem_floats(count);
    if (net_open(&net, run->of.model, run->kernels, some, NET_TRAIN, &err)) {
        FAIL(tap, "%s", err.text);
        free(gradient);
        return;
    }
    memset(run->gradient, 0, count * sizeof *run->gradient);
    for (int at = 0, n; at < MANY; at += n) {
        n = MANY - at < some ? MANY - at : some;
        net_forward(net, run->of.parameters, run->of.input + (size_t)at * in, n, run->of.draw + at,
                    SEED);
        memcpy(run->scores + (size_t)at * classes, net_scores(net),
               (size_t)n * classes * sizeof *run->scores);
        expect_gradient(run->of.model, gradient);
        net_backward(net, run->of.parameters, run->of.labels + at, 1.0f / MANY, gradient, NULL,
                     NULL);
        for (size_t i = 0; i < count; i++)
            run->gradient[i] += gradient[i];
    }
    net_close(net);
    free(gradient);
}

static void compare(struct tap *tap, const struct run *a, const struct run *b, double tolerance) {
    size_t scores = MANY * (size_t)model_classes(a->of.model);
    for (size_t i = 0; i < scores; i++)
        if (!(fabs((double)(a->scores[i] - b->scores[i])) <= tolerance)) {
            FAIL(tap, "score %zu is %g, not %g", i, a->scores[i], b->scores[i]);
            return;
        }
    for (size_t i = 0; i < a->of.model->parameter_count; i++)
        if (!(fabs((double)(a->gradient[i] - b->gradient[i])) <= tolerance)) {
            FAIL(tap, "gradient %zu is %g, not %g", i, a->gradient[i], b->gradient[i]);
            return;
        }
}

// The same as whoever trains by parts does it: the gradient adds up in its place.
static void run_in_parts(struct tap *tap, struct run *run) {
    struct net *net;
    struct error err = {0};
    int part = net_part(run->of.model, run->kernels, MANY);
    size_t classes = (size_t)model_classes(run->of.model);
    CHECK_INT(tap, part, run->kernels->lanes > 0 ? PART : MANY);
    if (net_open(&net, run->of.model, run->kernels, part, NET_TRAIN, &err)) {
        FAIL(tap, "%s", err.text);
        return;
    }
    expect_gradient(run->of.model, run->gradient); // of the first part
    for (int at = 0, n; at < MANY; at += n) {
        n = MANY - at < net_most(net) ? MANY - at : net_most(net);
        net_forward(net, run->of.parameters, run->of.input + (size_t)at * net_sample(net), n,
                    run->of.draw + at, SEED);
        memcpy(run->scores + (size_t)at * classes, net_scores(net),
               (size_t)n * classes * sizeof *run->scores);
        net_adds(net, at > 0);
        net_backward(net, run->of.parameters, run->of.labels + at, 1.0f / MANY, run->gradient, NULL,
                     NULL);
    }
    net_close(net);
}

// With a run of all samples at once.
static void compare_single(struct tap *tap, const struct run *whole, const char *text) {
    struct run single;
    if (run_open(tap, &single, text, kernels_of(CPU_REF))) {
        run_by(tap, &single, 1);
        compare(tap, whole, &single, TOLERANCE);
    }
    run_close(&single);
}

static void check_many(struct tap *tap, const char *name, const char *text) {
    struct run whole;
    if (run_open(tap, &whole, text, kernels_best())) {
        run_by(tap, &whole, MANY);
        compare_single(tap, &whole, text);
    }
    run_close(&whole);
    tap_result(tap, name);
}

// Two ways to write the same net, whose parameters are in the same order: not a bit differs.
static void check_same(struct tap *tap, const char *name, const char *text, const char *other) {
    static const int batches[] = {1, 7, MANY};
    struct run a, b;
    if (run_open(tap, &a, text, kernels_best())) {
        if (run_open(tap, &b, other, kernels_best())) {
            memcpy(b.of.parameters, a.of.parameters,
                   a.of.model->parameter_count * sizeof *a.of.parameters);
            for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
                run_by(tap, &a, batches[i]);
                run_by(tap, &b, batches[i]);
                compare(tap, &a, &b, 0);
            }
        }
        run_close(&b);
    }
    run_close(&a);
    tap_result(tap, name);
}

static void check_parts(struct tap *tap, const char *name, const char *text) {
    struct run whole;
    if (run_open(tap, &whole, text, kernels_best())) {
        run_in_parts(tap, &whole);
        compare_single(tap, &whole, text);
    }
    run_close(&whole);
    tap_result(tap, name);
}

static void check_whole(struct tap *tap, const char *name, const char *text) {
    struct run run;
    if (run_open(tap, &run, text, kernels_best()))
        CHECK_INT(tap, net_part(run.of.model, run.kernels, MANY), MANY);
    run_close(&run);
    tap_result(tap, name);
}

// How many of so many samples pass first: of vectors and a rest the vectors.
static void check_first(struct tap *tap, const char *name, const char *text, bool apart) {
    struct run run;
    if (run_open(tap, &run, text, kernels_best())) {
        int lanes = run.kernels->lanes > 0 ? run.kernels->lanes : 16;
        apart = apart && run.kernels->lanes > 0;
        CHECK_INT(tap, net_first(run.of.model, run.kernels, 1), 1);
        CHECK_INT(tap, net_first(run.of.model, run.kernels, lanes), lanes);
        CHECK_INT(tap, net_first(run.of.model, run.kernels, 3 * lanes), 3 * lanes);
        CHECK_INT(tap, net_first(run.of.model, run.kernels, lanes + 1), apart ? lanes : lanes + 1);
        CHECK_INT(tap, net_first(run.of.model, run.kernels, 2 * lanes + 1),
                  apart ? 2 * lanes : 2 * lanes + 1);
        CHECK_INT(tap, net_first(run.of.model, run.kernels, 2 * lanes - 1), 2 * lanes - 1);
        CHECK_INT(tap, net_first(run.of.model, kernels_of(CPU_REF), lanes + 1), lanes + 1);
    }
    run_close(&run);
    tap_result(tap, name);
}

// Scores of a net that only predicts: the same work, without what a backward pass needs.
static void predict(struct tap *tap, const struct run *run, float *scores) {
    struct net *net;
    struct error err = {0};
    if (net_open(&net, run->of.model, run->kernels, MANY, NET_PREDICT, &err)) {
        FAIL(tap, "%s", err.text);
        return;
    }
    net_forward(net, run->of.parameters, run->of.input, MANY, NULL, 0);
    memcpy(scores, net_scores(net), MANY * (size_t)model_classes(run->of.model) * sizeof *scores);
    net_close(net);
}

// In training and in prediction, where deeper convolutions and the pools behind them go band by
// band, too, and where parts of a mini-batch may share the place of outputs.
static void check_both(struct tap *tap, const char *name, const char *text) {
    struct run whole;
    if (run_open(tap, &whole, text, kernels_best())) {
        size_t count = MANY * (size_t)model_classes(whole.of.model);
        float *scores = mem_floats(count);
        run_by(tap, &whole, MANY);
        predict(tap, &whole, scores);
        CHECK(tap, memcmp(scores, whole.scores, count * sizeof *scores) == 0);
        compare_single(tap, &whole, text);
        free(scores);
    }
    run_close(&whole);
    tap_result(tap, name);
}

#define IN "input 3x12x12\n"
#define LARGE "input 3x42x40\n"
// All samples pass the convolution at once; what reads its outputs goes block by block.
#define HEAVY "input 64x5x5\nconv maps=512 kernel=3\n"
#define OUT "softmax units=4\n"

int main(void) {
    struct tap tap = {0};
    check_many(&tap, "a stack of convolutions, pools and norms, in many blocks",
               IN "conv maps=8 kernel=5 pad=2\nmaxpool size=3 stride=2\nrelu\nlrn size=3\n"
                  "conv maps=6 kernel=3 pad=1 act=relu\navgpool size=2\nlcn size=3\n"
                  "conv maps=5 kernel=3 pad=1 act=tanh\nl2pool size=2\n" OUT);
    check_many(&tap, "branches that several layers read",
               IN "conv a maps=4 kernel=3 pad=1 act=relu\nconv b from=a maps=3 kernel=1 act=relu\n"
                  "maxpool c from=a size=3 stride=1 pad=1\nconcat d from=a,b,c\n"
                  "relu e from=d\nconv f from=e maps=6 kernel=3\nlrn g from=e size=5\n"
                  "conv h from=g maps=2 kernel=3\nconcat i from=f,h\n" OUT);
    check_many(&tap, "dropout in blocks and behind them",
               IN "conv maps=4 kernel=3 act=relu dropout=0.4\nmaxpool size=2\n"
                  "conv maps=4 kernel=3 dropout=0.3\nmaxpool size=2\nrelu\ndropout dropout=0.2\n"
                  "dense units=9 act=tanh dropout=0.5\n" OUT);
    check_many(&tap, "a layer whose weights are too many to be used block by block",
               IN "conv maps=6 kernel=3\nmaxpool size=3\nconv maps=300 kernel=3\nrelu\n" OUT);
    check_many(&tap, "a sum in a stack, of what it reads from above and from within",
               IN "conv maps=6 kernel=3\nmaxpool size=3\nconv b maps=300 kernel=3 act=relu\n"
                  "conv c maps=300 kernel=1 groups=300\nadd from=c,b act=relu\nlrn size=3\n" OUT);
    check_many(&tap, "errors that go on through a relu where they are written",
               IN "conv maps=20 kernel=3 pad=1 act=relu\nlrn size=3\n"
                  "conv maps=20 kernel=3 pad=1 act=relu\nconv maps=18 kernel=5 pad=2\nrelu\n"
                  "avgpool size=3 stride=2\nlrn size=5\nconv maps=7 kernel=3 stride=2 act=relu\n"
                  "conv maps=9 kernel=1 act=relu\navgpool size=2\n" OUT);
    check_many(&tap, "two readers, in two stacks, of a layer whose error gradients nobody wants",
               LARGE "conv a maps=4 kernel=3 pad=1 act=relu rate=0\n"
                     "conv b from=a maps=4 kernel=3 pad=1\nlocal c maps=4 kernel=3 pad=1\n"
                     "add from=a,c act=relu\nconv maps=4 kernel=3 stride=4\n" OUT);
    check_both(&tap, "a relu that a layer of many weights does for those who go in parts",
               HEAVY "relu\nlrn size=3\nconv maps=4 kernel=1\n" OUT);
    check_both(&tap, "a tanh that two such read, one of them a sum",
               HEAVY "tanh a\nlrn b size=3\nadd from=a,b\nconv maps=4 kernel=1\n" OUT);
    check_parts(&tap, "many samples in parts whose gradients add up",
                IN "conv maps=20 kernel=5 pad=2\nmaxpool size=3 stride=2\nrelu\nlrn size=3\n"
                   "conv maps=16 kernel=3 pad=1 act=relu\navgpool size=2\n"
                   "dense units=9 act=tanh dropout=0.5\n" OUT);
    check_parts(&tap, "parts of large pictures, in bands, and of branches",
                LARGE "conv a maps=9 kernel=5 pad=2\nmaxpool b from=a size=3 stride=2\nrelu\n"
                      "local c maps=1 kernel=3 stride=4\nconv d from=b maps=3 kernel=3 stride=4\n"
                      "concat from=c,d\n" OUT);
    check_whole(&tap, "a net of many weights passes all samples at once",
                IN "conv maps=8 kernel=3 act=relu\ndense units=400 act=relu\n" OUT);
    check_first(&tap, "a sample too many for a vector is predicted by itself",
                "input 1x28x28\nconv maps=10 kernel=5 pad=2\nmaxpool size=2\n"
                "conv maps=20 kernel=5 pad=2\nmaxpool size=2\ndense units=400\n" OUT,
                true);
    check_first(&tap, "but not where its weights cost as much as the samples",
                "input 64x4x4\nconv maps=512 kernel=3\nconv maps=512 kernel=1\n" OUT, false);
    check_first(&tap, "nor where there are no convolutions", IN "dense units=400\n" OUT, false);
    check_same(&tap, "relu as a line of its own is act=relu",
               IN "conv maps=5 kernel=3\nrelu\navgpool size=2\n" OUT,
               IN "conv maps=5 kernel=3 act=relu\navgpool size=2\n" OUT);
    check_same(&tap, "tanh of a dense layer as a line of its own",
               "input 20\ndense units=7\ntanh\n" OUT, "input 20\ndense units=7 act=tanh\n" OUT);
    check_same(&tap, "leaky with its slope as a line of its own",
               IN "conv maps=5 kernel=3\nleaky slope=0.3\navgpool size=2\n" OUT,
               IN "conv maps=5 kernel=3 act=leaky slope=0.3\navgpool size=2\n" OUT);
    check_same(&tap, "gelu of a convolution as a line of its own",
               IN "conv maps=5 kernel=3\ngelu\navgpool size=2\n" OUT,
               IN "conv maps=5 kernel=3 act=gelu\navgpool size=2\n" OUT);
    check_same(&tap, "relu before and behind a maximum",
               IN "conv maps=5 kernel=3 act=relu\nmaxpool size=3 stride=2\n" OUT,
               IN "conv maps=5 kernel=3\nmaxpool size=3 stride=2\nrelu\n" OUT);
    check_same(&tap, "relu that a second layer reads stays where it is",
               IN "conv a maps=5 kernel=3 act=relu\nmaxpool b from=a size=3 stride=1 pad=1\n"
                  "concat from=a,b\n" OUT,
               IN "conv a maps=5 kernel=3\nrelu r from=a\nmaxpool b from=r size=3 stride=1 pad=1\n"
                  "concat from=r,b\n" OUT);
    check_both(&tap, "bands: windows that overlap, the last clipped",
               LARGE "conv maps=9 kernel=5 pad=2\nmaxpool size=3 stride=2 round=up\nrelu\n"
                     "conv maps=16 kernel=3 pad=1 act=relu\nmaxpool size=3 stride=2\n" OUT);
    check_both(&tap, "bands: large kernels with a stride, windows that leave a row over",
               "input 3x86x80\nconv maps=9 kernel=7 stride=2 pad=3 act=relu\nmaxpool size=2\n" OUT);
    check_both(&tap, "bands: a group for each map",
               LARGE "conv maps=3 kernel=5 pad=2 groups=3\nmaxpool size=3 stride=2\n" OUT);
    check_both(&tap, "bands: padded windows that overlap much",
               LARGE "conv maps=9 kernel=3 pad=2\nrelu\nmaxpool size=5 stride=1 pad=2\n"
                     "maxpool size=4 stride=4\n" OUT);
    check_both(&tap, "bands: windows larger than a band, whose winners take four bytes",
               LARGE "conv maps=33 kernel=1\nmaxpool size=17 stride=5 round=up pad=3\n" OUT);
    check_both(&tap, "bands: norms before a pool, whose windows leave a row over",
               "input 3x43x40\nconv maps=33 kernel=3 act=relu\nlrn size=5\nlrn size=3\n"
               "maxpool size=2\nconv maps=34 kernel=6 pad=4\nrelu\nlrn size=3 beta=0.5\n"
               "maxpool size=2 stride=2\n" OUT);
    check_both(&tap, "bands: a norm of what several layers read, and a pool that two read",
               LARGE
               "conv a maps=17 kernel=3 pad=1\nlrn b from=a size=3\n"
               "maxpool c from=b size=3 stride=2\nmaxpool d from=a size=3 stride=2\n"
               "conv e from=c maps=4 kernel=3 pad=1\nconcat from=c,d,e\nmaxpool size=4\n" OUT);
    check_both(&tap, "bands: windows apart from each other",
               LARGE "conv maps=33 kernel=3\nmaxpool size=2 stride=3\n" OUT);
    check_both(
        &tap, "bands: two of them read the input, two layers each pool",
        LARGE "conv a maps=9 kernel=3 pad=1 act=relu\nmaxpool b from=a size=3 stride=2\n"
              "conv c from=input maps=9 kernel=5 pad=2 groups=3\nmaxpool d from=c size=3 stride=2\n"
              "conv e from=b maps=2 kernel=3 pad=1\nconv f from=d maps=2 kernel=3 pad=1\n"
              "concat from=b,d,e,f\nmaxpool size=4\n" OUT);
    return tap_done(&tap);
}
