// Outputs that are made again, and error gradients that lie in one place by turns, change nothing:
// a context for many samples, which keeps little, has the gradients of one for few,
// which keeps all; and it takes less memory.
#include <stdlib.h>

#include "../helper/lively.h"
#include "../helper/tap.h"
#include "kernels/kernels.h"
#include "model/net.h"

enum {
    SAMPLES = 35, // three blocks of 16, the last not full
    LARGE = 400,  // of so many samples outputs are made again
};

// Two steps of n samples in a context for `most`; the gradient of the second. NULL: it failed.
static float *gradient_of(struct tap *tap, const struct lively *l, const struct kernels *kernels,
                          int most, int n) {
    struct net *net;
    struct error err = {0};
    size_t count = l->model->parameter_count;
    if (net_open(&net, l->model, kernels, most, NET_TRAIN, &err)) {
        FAIL(tap, "%s", err.text);
        return NULL;
    }
    float *gradient = mem_floats(count);
    for (int step = 0; step < 2; step++) {
        for (size_t i = 0; i < count; i++)
            gradient[i] = NAN;
        net_forward(net, l->parameters, l->input, n, NULL, 0);
        net_backward(net, l->parameters, l->labels, 1, gradient, NULL, NULL);
    }
    net_close(net);
    return gradient;
}

static void check_same(struct tap *tap, const struct lively *l, const struct kernels *kernels,
                       int n) {
    float *few = gradient_of(tap, l, kernels, n, n);
    float *many = gradient_of(tap, l, kernels, LARGE, n);
    for (size_t i = 0; few && many && i < l->model->parameter_count; i++)
        if (!(few[i] == many[i])) {
            FAIL(tap, "gradient %zu of %d samples is %g, not %g", i, n, (double)many[i],
                 (double)few[i]);
            break;
        }
    free(few), free(many);
}

static void check_places(struct tap *tap, const char *name, const char *text) {
    static const int counts[] = {1, 5, 16, SAMPLES};
    const struct kernels *const kernels[] = {kernels_best(), kernels_of(CPU_REF)};
    struct lively l;
    struct error err = {0};
    if (lively_open(&l, text, SAMPLES, 3, 0, &err))
        FAIL(tap, "%s", err.text);
    else
        for (int k = 0; k < 2; k++)
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
                check_same(tap, &l, kernels[k], counts[i]);
    lively_close(&l);
    tap_result(tap, name);
}

// Of fifty alike layers few have error gradients at once, and no norm keeps its outputs.
static void check_memory(struct tap *tap) {
    char text[8000];
    size_t end = (size_t)snprintf(text, sizeof text, "input 16x8x8\n");
    for (int i = 0; i < 50; i++)
        end += (size_t)snprintf(text + end, sizeof text - end,
                                "conv maps=16 kernel=3 pad=1\nbatchnorm act=relu\n");
    snprintf(text + end, sizeof text - end, "softmax units=2\n");
    struct lively l;
    struct error err = {0};
    if (lively_open(&l, text, SAMPLES, 3, 0, &err))
        FAIL(tap, "%s", err.text);
    else {
        size_t output = 16 * 8 * 8 * LARGE * sizeof(float);
        size_t context = net_bytes(l.model, LARGE, NET_TRAIN);
        CHECK(tap, context > 50 * output && context < 60 * output);
    }
    lively_close(&l);
    tap_result(tap, "a context keeps one output of two, and few error gradients");
}

int main(void) {
    struct tap tap = {0};
    check_places(&tap, "a chain of norms and convolutions",
                 "input 3x16x16\n"
                 "conv maps=16 kernel=3 pad=1\n"
                 "batchnorm act=relu\n"
                 "conv maps=24 kernel=3 pad=1\n"
                 "batchnorm act=relu6\n"
                 "conv maps=16 kernel=3 stride=2\n"
                 "batchnorm act=tanh\n"
                 "softmax units=5\n");
    check_places(&tap, "norms that layers of many weights read",
                 "input 8x4x4\n"
                 "conv maps=96 kernel=1\n"
                 "batchnorm act=relu6\n"
                 "conv maps=96 kernel=3 groups=96 pad=1\n"
                 "batchnorm act=relu6\n"
                 "conv maps=384 kernel=1\n"
                 "batchnorm act=relu\n"
                 "conv maps=16 kernel=1\n"
                 "batchnorm\n"
                 "softmax units=5\n");
    check_places(&tap, "sums, one behind the other",
                 "input 4x8x8\n"
                 "conv maps=16 kernel=3 pad=1\n"
                 "batchnorm a act=relu\n"
                 "conv maps=16 kernel=3 pad=1 from=a\n"
                 "batchnorm act=relu\n"
                 "conv maps=16 kernel=3 pad=1\n"
                 "batchnorm b\n"
                 "add c from=b,a act=relu\n"
                 "conv maps=16 kernel=3 pad=1 from=c\n"
                 "batchnorm d\n"
                 "add e from=d,c\n"
                 "conv maps=16 kernel=1 from=e\n"
                 "batchnorm f\n"
                 "add g from=f,e,a\n"
                 "maxpool size=2 stride=2\n"
                 "softmax units=5\n");
    check_places(&tap, "norms with several readers, near and far",
                 "input 4x8x8\n"
                 "conv maps=16 kernel=3 pad=1\n"
                 "batchnorm a act=relu\n"
                 "batchnorm b from=a act=relu\n"
                 "conv c maps=192 kernel=3 pad=1 from=b\n"
                 "conv d maps=16 kernel=1 from=a\n"
                 "batchnorm c2 from=c act=relu\n"
                 "conv c3 maps=16 kernel=3 pad=1 from=c2\n"
                 "batchnorm c4 from=c3 act=relu\n"
                 "concat e from=c4,d,b,a\n"
                 "batchnorm f from=e\n"
                 "relu g from=f\n"
                 "dense h units=300 from=g act=relu\n"
                 "batchnorm i from=h\n"
                 "dense units=20 from=i\n"
                 "softmax units=5\n");
    check_memory(&tap);
    return tap_done(&tap);
}
