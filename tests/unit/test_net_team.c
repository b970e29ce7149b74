// Teams of threads that share a pass (model/net_team.h): their scores are those of one thread, for
// every type of layer, rows and maps that do not divide, and any number of samples.
#include <stdio.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/kernels.h"
#include "model/init.h"
#include "model/model.h"
#include "model/net_team.h"
#include "model/prepared.h"

enum { MOST = 5, PASSES = 3 };

static const struct look {
    const char *name, *text;
} looks[] = {
    {"windows, norms and joins",
     "input 3x17x13\nconv a maps=12 kernel=5 pad=2 act=tanh\nlrn n size=3\nmaxpool p size=3 "
     "stride=2 pad=1\nconv b maps=12 kernel=3 pad=1 act=relu\nadd s from=b,p act=silu\nconcat c "
     "from=s,b\navgpool d size=3 stride=2\nl2pool e size=2\ngroupnorm g groups=4 "
     "act=elu\nbatchnorm h act=relu\ndense i units=33 act=sigmoid\nsoftmax j units=5\n"},
    {"kept kernels, of few weights and of many",
     "input 16x20x18\nconv a maps=32 kernel=3 pad=1 act=relu\nconv b maps=160 kernel=3 pad=1 "
     "act=gelu\nbatchnorm c\nrelu r\nmaxpool p size=2\nconv d maps=208 kernel=3 pad=1 "
     "act=relu\nconv e maps=16 kernel=5 pad=2\nlogistic f units=9\n"},
    {"rows of weights, one of them at a time, and outputs of one row",
     "input 3x6x6\nconv a maps=64 kernel=3 stride=2 act=relu6\nconv b maps=512 kernel=2 "
     "act=relu\nconv c maps=80 kernel=1 act=hardswish\navgpool size=all\nlinear units=3\n"},
    {"layers that nobody shares, and samples in another layout",
     "input 4x12x12\nconv a maps=16 kernel=3 pad=1\nlayernorm act=relu\nlcn size=5\nconv b maps=16 "
     "kernel=3 pad=2 dilation=2 act=relu\nlocal c maps=3 kernel=4 stride=2 act=relu\ndense d "
     "units=70 act=relu\ndropout\ndense units=16\nsoftmax units=4\n"},
    {"groups, and maps that each have their own kernel",
     "input 8x19x15\nconv a maps=24 kernel=3 pad=1 groups=4 act=relu\nconv b maps=24 kernel=3 "
     "stride=2 pad=1 groups=24 act=relu6\nconv c maps=40 kernel=1 groups=2\nconv d maps=40 "
     "kernel=5 pad=2 groups=40 act=silu\nmaxpool size=all\nsoftmax units=6\n"},
    {"flat samples", "input 40\ndense units=200 act=relu\ndense units=31 act=leaky\nsoftmax "
                     "units=3\n"},
};

struct subject {
    struct tap *tap;
    struct model *model;
    const struct kernels *kernels;
    float *parameters, *input;
    struct prepared *prepared;
};

static void subject_open(struct subject *s, const char *text) {
    struct error err = {0};
    struct random random = random_stream(5, 0, 0);
    if (model_parse(&s->model, "test.net", text, NULL, 0, &err)) {
        printf("# %s\n", err.text);
        abort();
    }
    size_t inputs = MOST * shape_size(model_input(s->model)->out);
    s->parameters = mem_floats(s->model->parameter_count);
    s->input = mem_floats(inputs);
    model_init_lively(s->model, s->parameters, 1);
    random_normals(&random, s->input, inputs);
    if (prepared_open(&s->prepared, s->model, s->kernels, s->parameters, 1, MOST, &err))
        FAIL(s->tap, "%s", err.text);
}

static void subject_close(struct subject *s) {
    prepared_close(s->prepared);
    model_free(s->model);
    free(s->parameters), free(s->input);
}

static struct net *open_net(const struct subject *s, bool kept) {
    struct error err = {0};
    struct net *net = NULL;
    if (net_open(&net, s->model, s->kernels, MOST, kept ? NET_FOLDED : NET_PREDICT, &err))
        FAIL(s->tap, "%s", err.text);
    if (kept)
        prepared_now(s->prepared, net);
    return net;
}

static void check_scores(const struct subject *s, const char *name, const struct net *got,
                         const struct net *wanted, int n, int threads) {
    const float *a = net_scores(got), *b = net_scores(wanted);
    for (int i = 0; i < n * model_classes(s->model); i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f * (1 + fabsf(b[i])))) {
            FAIL(s->tap, "%s, %s, %d samples, %d threads: score %d is %.9g, not %.9g", name,
                 s->kernels->name, n, threads, i, (double)a[i], (double)b[i]);
            return;
        }
}

// Samples in other numbers from pass to pass, so that the net is laid out anew.
static void check_team(const struct subject *s, const char *name, bool kept, int threads) {
    static const int counts[PASSES] = {1, 3, 1};
    struct error err = {0};
    struct net *net = open_net(s, kept), *alone = open_net(s, kept);
    struct net_team *team = NULL;
    size_t sample = shape_size(model_input(s->model)->out);
    const float *parameters = kept ? prepared_parameters(s->prepared) : s->parameters;
    if (net_team_open(&team, net, threads, &err)) {
        FAIL(s->tap, "%s", err.text);
        return;
    }
    for (int i = 0; i < PASSES; i++) {
        const float *input = s->input + (size_t)i * sample;
        net_forward(alone, parameters, input, counts[i], NULL, 0);
        net_team_forward(team, parameters, input, counts[i]);
        check_scores(s, name, net, alone, counts[i], threads);
    }
    net_team_close(team);
    net_close(net), net_close(alone);
}

int main(void) {
    struct tap tap = {0};
    for (enum cpu_level level = CPU_REF; level <= CPU_AVX512; level++) {
        struct subject s = {.tap = &tap, .kernels = kernels_of(level)};
        for (size_t i = 0; i < sizeof looks / sizeof *looks && s.kernels; i++) {
            subject_open(&s, looks[i].text);
            TEST(&tap, looks[i].name, {
                for (int threads = 2; threads <= 5; threads++) {
                    check_team(&s, looks[i].name, false, threads);
                    check_team(&s, looks[i].name, true, threads);
                }
            });
            subject_close(&s);
        }
    }
    return tap_done(&tap);
}
