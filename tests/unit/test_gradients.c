// The gradient of every type of layer against finite differences: along a random
// direction d of the parameters, (loss(w + e d) - loss(w - e d)) / 2e is g . d.
// Below the layer under test stands a layer with parameters, so that the errors
// it passes down are checked too.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/kernels.h"
#include "model/layer.h"
#include "model/net.h"

// Float arithmetic leaves about 1e-7 / step of noise in a difference of losses; a
// long step crosses the kinks of relu and maxpool.
#define STEP 5e-4f
#define TOLERANCE 3e-3

struct fixture {
    struct model *model;
    struct net *net;
    float *parameters, *gradient, *input, *direction, *moved;
    int32_t labels[4], other[4];
    float share[4];
    float targets[9]; // of three outputs
    uint64_t draw[4];
    int n;
};

static bool fixture_open(struct fixture *f, const char *text, struct error *err) {
    *f = (struct fixture){.n = 3,
                          .labels = {1, 0, 2},
                          .other = {2, 0, 1},
                          .share = {0.3f, 0.9f, 1},
                          .targets = {1, 0, 1, 0, 0, 0.25f, 1, 1, 0},
                          .draw = {5, 6, 7}};
    if (model_parse(&f->model, "test.net", text, NULL, 0, err) ||
        net_open(&f->net, f->model, kernels_best(), 4, NET_TRAIN, err))
        return false;
    size_t count = f->model->parameter_count;
    size_t in = (size_t)f->n * shape_size(model_input(f->model)->out);
    struct random random = random_stream(3, 1, 4);
    f->parameters = mem_floats(count), f->gradient = mem_floats(count);
    f->direction = mem_floats(count), f->moved = mem_floats(count), f->input = mem_floats(in);
    model_init_lively(f->model, f->parameters, 11);
    for (size_t i = 0; i < count; i++) {
        f->parameters[i] += 0.05f * random_normal(&random);
        f->direction[i] = random_normal(&random);
        f->gradient[i] = NAN; // every place must be written
    }
    for (size_t i = 0; i < in; i++)
        f->input[i] = random_normal(&random);
    return true;
}

static void fixture_close(struct fixture *f) {
    net_close(f->net);
    model_free(f->model);
    free(f->parameters), free(f->gradient), free(f->input), free(f->direction), free(f->moved);
}

static double loss_at(struct fixture *f, float step) {
    for (size_t i = 0; i < f->model->parameter_count; i++)
        f->moved[i] = f->parameters[i] + step * f->direction[i];
    net_forward(f->net, f->moved, f->input, f->n, f->draw, 9);
    return net_loss(f->net, f->labels);
}

// Only the parameters of layer `index` move.
static void check_layer(struct tap *tap, struct fixture *f, const struct layer *layer) {
    size_t begin = layer->weights.offset, end = begin + layer->weights.count + layer->biases.count;
    struct random random = random_stream(17, 0, (uint64_t)layer->index);
    double slope = 0, norm = 0;
    for (size_t i = 0; i < f->model->parameter_count; i++) {
        f->direction[i] = i >= begin && i < end ? random_normal(&random) : 0;
        if (i >= begin && i < end)
            slope += (double)f->gradient[i] * (double)f->direction[i];
        norm += (double)f->direction[i] * (double)f->direction[i];
    }
    for (size_t i = begin; i < end; i++)
        f->direction[i] /= (float)sqrt(norm);
    slope /= sqrt(norm);
    double difference = (loss_at(f, STEP) - loss_at(f, -STEP)) / (2 * (double)STEP);
    if (!(fabs(difference - slope) <= TOLERANCE * (1 + fabs(slope))))
        FAIL(tap, "%s: differences give %.6g, the gradient %.6g", layer->name, difference, slope);
}

// What samples are to give: their labels, two of them each, or a number for each output.
enum given { LABELS, MIXED, TARGETS };

static void check_given(struct tap *tap, const char *name, const char *text, enum given given) {
    struct fixture f;
    struct error err = {0};
    if (!fixture_open(&f, text, &err))
        FAIL(tap, "%s", err.text);
    else {
        if (given == MIXED)
            net_mixed(f.net, f.other, f.share);
        if (given == TARGETS)
            net_targets(f.net, f.targets);
        loss_at(&f, 0);
        net_backward(f.net, f.parameters, f.labels, 1, f.gradient, NULL, NULL);
        for (int i = 0; i < f.model->layer_count; i++)
            if (layer_learns(&f.model->layers[i]))
                check_layer(tap, &f, &f.model->layers[i]);
    }
    fixture_close(&f);
    tap_result(tap, name);
}

static void check(struct tap *tap, const char *name, const char *text) {
    check_given(tap, name, text, LABELS);
}

#define UNDER "input 2x9x8\nconv base maps=4 kernel=3 pad=1 act=tanh\n"
#define OVER "\nsoftmax units=3\n"

int main(void) {
    struct tap tap = {0};
    check(&tap, "dense with each activation",
          "input 7\ndense units=6 act=tanh\ndense units=5 act=sigmoid\ndense units=6 "
          "act=linear" OVER);
    check(
        &tap, "dense with dropout",
        "input 7\ndense units=20 act=tanh dropout=0.5\ndense units=9 act=sigmoid dropout=0.2" OVER);
    check(&tap, "softmax alone", "input 5\nsoftmax units=3\n");
    check(&tap, "smoothed softmax", "input 5\nsoftmax units=3 smoothing=0.3\n");
    check(&tap, "smoothed logistic", "input 5\nlogistic units=3 smoothing=0.3\n");
    check(&tap, "weighted softmax",
          "input 5\nsoftmax units=3 smoothing=0.3 class-weights=0.5,0,3\n");
    check(&tap, "weighted logistic",
          "input 5\nlogistic units=3 smoothing=0.3 class-weights=0.5,0,3\n");
    check_given(&tap, "softmax of two labels", "input 5\nsoftmax units=3 smoothing=0.3\n", MIXED);
    check_given(&tap, "logistic of two labels", "input 5\nlogistic units=3\n", MIXED);
    check_given(&tap, "logistic of several classes at once",
                "input 5\nlogistic units=3 smoothing=0.3 class-weights=0.5,2,3\n", TARGETS);
    check_given(&tap, "linear, squared", "input 5\ndense units=6 act=tanh\nlinear units=3\n",
                TARGETS);
    check_given(&tap, "linear, Huber's loss on both sides of its delta",
                "input 5\ndense units=6 act=tanh\nlinear units=3 loss=huber delta=0.7\n", TARGETS);
    check(&tap, "linear, of labels", "input 5\nlinear units=3\n");
    check(&tap, "logistic", "input 5\ndense units=6 act=tanh\nlogistic units=3\n");
    check(&tap, "conv: stride, padding, kernel not square",
          UNDER "conv maps=5 kernel=5x3 stride=2x1 pad=2x1 act=sigmoid" OVER);
    check(&tap, "conv: groups", UNDER "conv maps=6 kernel=3 groups=2 act=tanh" OVER);
    check(&tap, "conv: a group for each map",
          UNDER "conv maps=4 kernel=3 stride=2 pad=1 groups=4 act=tanh\n"
                "conv maps=4 kernel=2 groups=4" OVER);
    check(&tap, "conv: dilated, beside one that is not",
          UNDER "conv maps=4 kernel=3x2 dilation=2x3 stride=1x2 pad=2x1 act=relu\n"
                "conv maps=4 kernel=2 act=tanh" OVER);
    check(&tap, "conv: dilated, in groups",
          UNDER "conv maps=4 kernel=2 dilation=3 groups=2 act=tanh\n"
                "conv maps=4 kernel=2 dilation=2 pad=2 groups=4 act=tanh\nmaxpool size=2" OVER);
    check(&tap, "conv: 1x1", UNDER "conv maps=3 kernel=1 act=tanh" OVER);
    check(&tap, "conv: rounded up", UNDER "conv maps=3 kernel=3 stride=2 round=up act=tanh" OVER);
    check(&tap, "conv: dropout", UNDER "conv maps=3 kernel=3 act=tanh dropout=0.3" OVER);
    check(&tap, "local", UNDER "local maps=3 kernel=3x4 stride=2 pad=1 act=tanh" OVER);
    check(&tap, "local: 1x1", UNDER "local maps=3 kernel=1 act=sigmoid" OVER);
    check(&tap, "maxpool", UNDER "maxpool size=3 stride=2 round=up" OVER);
    check(&tap, "maxpool: padded", UNDER "maxpool size=3 stride=2 pad=1" OVER);
    check(&tap, "relu below a norm, a mean and convolutions",
          UNDER "conv maps=5 kernel=3 pad=1 act=relu\nlrn size=3 alpha=0.8 k=1.2\n"
                "conv maps=6 kernel=3 act=relu\nconv maps=4 kernel=3\nrelu\navgpool size=2" OVER);
    check(&tap, "avgpool", UNDER "avgpool size=3 stride=2 round=up pad=1" OVER);
    check(&tap, "l2pool", UNDER "l2pool size=2" OVER);
    check(&tap, "lrn", UNDER "lrn size=3 alpha=0.8 beta=0.75 k=1.2" OVER);
    check(&tap, "lrn: another power", UNDER "lrn size=5 alpha=0.8 beta=0.4 k=2" OVER);
    check(&tap, "lcn", UNDER "lcn size=5" OVER);
    check(&tap, "lcn: larger than the picture", UNDER "lcn size=13 alpha=0.5" OVER);
    check(&tap, "relu, tanh, sigmoid, linear, dropout as layers",
          UNDER "tanh\nlinear\nsigmoid\ndropout dropout=0.25\nrelu" OVER);
    check(&tap, "leaky, elu, softplus, relu6, gelu, silu, hardswish as layers",
          UNDER "leaky slope=0.3\ngelu\nsoftplus\nhardswish" OVER);
    check(&tap, "and others", UNDER "elu\nsilu\nrelu6\nleaky" OVER);
    check(&tap, "activations whose inputs are kept",
          UNDER "conv maps=5 kernel=3 act=gelu\nlocal maps=3 kernel=3 act=silu\n"
                "dense units=9 act=hardswish" OVER);
    check(&tap, "and a mask beside them",
          UNDER
          "conv maps=5 kernel=3 act=silu dropout=0.3\ndense units=9 act=gelu dropout=0.4" OVER);
    check(&tap, "an activation with a slope",
          UNDER "dense units=9 act=leaky slope=0.4\ndense units=9 act=elu" OVER);
    check(&tap, "branches and concat",
          UNDER "conv a maps=3 kernel=3 pad=1 act=tanh from=base\n"
                "conv b maps=2 kernel=5 pad=2 act=sigmoid from=base\n"
                "concat both from=a,b,base\nconv maps=4 kernel=3 act=tanh" OVER);
    check(&tap, "a relu that two layers read, and one that three do",
          UNDER "conv a maps=4 kernel=3 pad=1 act=relu from=base\n"
                "conv b maps=4 kernel=3 pad=1 act=relu from=a\nconv c maps=4 kernel=1 from=b\n"
                "add d from=a,b\nadd from=b,c,d\n" OVER);
    check(&tap, "a relu that a pool and a convolution read",
          UNDER "conv a maps=4 kernel=3 pad=1 act=relu from=base\n"
                "avgpool b from=a size=3 stride=1 pad=1\nconv c from=a maps=3 kernel=1\n"
                "concat from=b,c\n" OVER);
    check(&tap, "a sum of branches, activated",
          UNDER "conv a maps=4 kernel=3 pad=1 act=tanh from=base\n"
                "conv b maps=4 kernel=5 pad=2 from=base\n"
                "add sum from=a,b,base act=gelu\ndense units=6 act=tanh" OVER);
    check(&tap, "a sum below a relu of its own, and above it",
          UNDER "conv a maps=4 kernel=3 pad=1 from=base\nadd from=a,base\nrelu r\n"
                "add from=r,a\navgpool size=all\n" OVER);
    check(&tap, "batchnorm",
          UNDER "batchnorm\nconv maps=6 kernel=3\nbatchnorm act=tanh epsilon=0.01" OVER);
    check(&tap, "batchnorm of vectors, and below activations",
          UNDER "batchnorm act=gelu\nconv maps=3 kernel=3\nbatchnorm\nsilu\ndense units=9\n"
                "batchnorm act=sigmoid epsilon=0.1" OVER);
    check(&tap, "batchnorms that are only added to others, below a relu and without",
          UNDER "conv maps=4 kernel=3 pad=1 from=base\nbatchnorm n\nadd a from=n,base act=relu\n"
                "conv maps=4 kernel=3 pad=1\nbatchnorm m\nadd from=a,m\nconv maps=4 kernel=3\n"
                "tanh" OVER);
    check(&tap, "a frozen batchnorm",
          UNDER "batchnorm rate=0 act=tanh\ndense units=9 act=tanh" OVER);
    check(&tap, "groupnorm",
          UNDER "groupnorm groups=2\nconv maps=6 kernel=3\ngroupnorm groups=3 act=tanh" OVER);
    check(&tap, "groupnorm of maps by themselves, and of all",
          UNDER "groupnorm groups=4 epsilon=0.1\ngelu\nconv maps=3 kernel=3\n"
                "groupnorm groups=1 act=silu" OVER);
    check(&tap, "layernorm",
          UNDER "layernorm epsilon=0.01\nconv maps=3 kernel=3\nlayernorm act=gelu\n"
                "dense units=9\nlayernorm act=tanh" OVER);
    check(&tap, "pools of the whole picture", UNDER "l2pool size=all\n" OVER);
    return tap_done(&tap);
}
