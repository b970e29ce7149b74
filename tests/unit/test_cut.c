// A model that is cut gives what it gives whole: scores, loss and gradients, for every type of
// layer, any number of partitions and odd sizes.
#include <stdlib.h>

#include "../helper/lively.h"
#include "../helper/tap.h"
#include "kernels/kernels.h"
#include "model/cut.h"
#include "model/layer.h"
#include "model/net.h"

enum { SAMPLES = 18, PARTITIONS = 5, SEED = 5 }; // a full block and one that is not
#define TOLERANCE 1e-5

// --- partitions in one thread -----------------------------------------------------------

// A piece on its way.
struct letter {
    const float *floats;
    size_t count;
};

struct post {
    int partitions;
    struct letter *letters; // of each exchange, pass, sender and receiver
    size_t sent[2];         // floats, forward and back
};

struct end {
    struct post *post;
    int number;
};

static struct letter *letter_at(const struct post *post, int exchange, enum net_pass pass, int from,
                                int to) {
    size_t way = (size_t)(exchange * 2 + (int)pass);
    size_t pair = (size_t)(from * post->partitions + to);
    return &post->letters[way * (size_t)(post->partitions * post->partitions) + pair];
}

static bool gone(void *self, int exchange, enum net_pass pass, int to) {
    struct end *end = self;
    return !letter_at(end->post, exchange, pass, end->number, to)->floats;
}

static void send(void *self, int exchange, enum net_pass pass, int to, const float *floats,
                 size_t count) {
    struct end *end = self;
    *letter_at(end->post, exchange, pass, end->number, to) = (struct letter){floats, count};
    end->post->sent[pass] += count;
}

static const float *receive(void *self, int exchange, enum net_pass pass, int from, size_t count) {
    struct end *end = self;
    const struct letter *letter = letter_at(end->post, exchange, pass, from, end->number);
    if (letter->floats && letter->count != count)
        abort();
    return letter->floats;
}

static void mark_read(void *self, int exchange, enum net_pass pass, int from) {
    struct end *end = self;
    letter_at(end->post, exchange, pass, from, end->number)->floats = NULL;
}

struct parts {
    const struct cut *cut;
    int count;
    struct post post;
    struct end ends[PARTITIONS];
    struct net *nets[PARTITIONS];
    float *parameters[PARTITIONS], *gradients[PARTITIONS];
};

// Every place of a layer that learns must be written, and no other.
static void spoil_gradients(const struct model *model, float *gradients) {
    memset(gradients, 0, model->parameter_count * sizeof *gradients);
    for (int l = 0; l < model->layer_count; l++) {
        const struct layer *layer = &model->layers[l];
        for (size_t i = 0; layer_learns(layer) && i < layer_parameters(layer); i++)
            gradients[layer->weights.offset + i] = NAN;
    }
}

static int parts_open(struct parts *parts, const struct cut *cut, const struct kernels *kernels,
                      const float *parameters, struct error *err) {
    int count = cut_partitions(cut), status = 0;
    size_t letters = (size_t)(cut_exchanges(cut) * 2 * count * count);
    *parts = (struct parts){.cut = cut, .count = count};
    parts->post = (struct post){.partitions = count,
                                .letters = mem_zeroed(letters + 1, sizeof(struct letter))};
    for (int p = 0; !status && p < count; p++) {
        const struct model *model = cut_model(cut, p);
        parts->ends[p] = (struct end){&parts->post, p};
        parts->parameters[p] = mem_floats(model->parameter_count + 1);
        parts->gradients[p] = mem_floats(model->parameter_count + 1);
        cut_take(cut, p, parts->parameters[p], parameters);
        spoil_gradients(model, parts->gradients[p]);
        status = net_open(&parts->nets[p], model, kernels, SAMPLES, NET_TRAIN, err);
        if (!status)
            net_wired(parts->nets[p],
                      &(struct net_wire){gone, send, receive, mark_read, &parts->ends[p]});
    }
    return status;
}

static void parts_close(struct parts *parts) {
    for (int p = 0; p < parts->count; p++) {
        net_close(parts->nets[p]);
        free(parts->parameters[p]), free(parts->gradients[p]);
    }
    free(parts->post.letters);
}

// The last first, so that partitions wait for those before them. False: all wait for ever.
static bool parts_go(struct parts *parts) {
    bool done[PARTITIONS] = {false};
    int left = parts->count, rounds = 0;
    for (; left > 0 && rounds < 1000; rounds++)
        for (int p = parts->count - 1; p >= 0; p--)
            if (!done[p] && net_go(parts->nets[p]))
                done[p] = true, left--;
    return left == 0;
}

// --- whole and cut ----------------------------------------------------------------------

struct whole {
    struct lively of;
    const struct kernels *kernels;
    struct net *net;
    float *gradient;
    double loss;
};

static int whole_open(struct whole *w, const char *text, const struct kernels *kernels,
                      struct error *err) {
    *w = (struct whole){.kernels = kernels};
    // No value at the kink of a relu.
    int status = lively_open(&w->of, text, SAMPLES, 31, 0.01f, err);
    if (!status)
        status = net_open(&w->net, w->of.model, kernels, SAMPLES, NET_TRAIN, err);
    if (status)
        return status;
    w->gradient = mem_zeroed(w->of.model->parameter_count, sizeof *w->gradient);
    net_forward(w->net, w->of.parameters, w->of.input, SAMPLES, w->of.draw, SEED);
    w->loss = net_loss(w->net, w->of.labels);
    net_backward(w->net, w->of.parameters, w->of.labels, 1.0f / SAMPLES, w->gradient, NULL, NULL);
    return 0;
}

static void whole_close(struct whole *w) {
    net_close(w->net);
    lively_close(&w->of);
    free(w->gradient);
}

static bool is_output(const struct model *model) {
    return model_output(model)->type->output;
}

static bool near(double a, double b) {
    return fabs(a - b) <= TOLERANCE * (1 + fabs(b));
}

// The classes of each partition are some of the whole's.
static void compare_scores(struct tap *tap, const struct parts *parts, const struct whole *w) {
    int classes = model_classes(w->of.model), seen = 0;
    const float *all = net_scores(w->net);
    double loss = 0;
    for (int p = 0; p < parts->count; p++) {
        const struct layer *output = model_output(cut_model(parts->cut, p));
        if (!is_output(cut_model(parts->cut, p)))
            continue;
        const float *scores = net_scores(parts->nets[p]);
        for (int i = 0; i < SAMPLES; i++)
            for (int c = 0; c < output->out.c; c++) {
                double own = (double)scores[i * output->out.c + c];
                double score = (double)all[i * classes + output->region.c0 + c];
                if (!near(own, score)) {
                    FAIL(tap, "score %d of sample %d is %g, not %g", output->region.c0 + c, i, own,
                         score);
                    return;
                }
            }
        seen += output->out.c;
        loss += net_loss(parts->nets[p], w->of.labels);
    }
    CHECK_INT(tap, seen, classes);
    if (!near(loss, w->loss))
        FAIL(tap, "the loss is %g, not %g", loss, w->loss);
}

struct adding {
    const float *own;
    float *sum;
};

static void add_run(void *self, const struct cut_run *run) {
    struct adding *adding = self;
    for (size_t i = 0; i < run->count; i++)
        adding->sum[run->whole + i] += adding->own[run->own + i];
}

// The gradients of weights that several partitions have are to be added up.
static void compare_gradients(struct tap *tap, const struct parts *parts, const struct whole *w) {
    size_t count = w->of.model->parameter_count;
    float *sum = mem_zeroed(count, sizeof *sum);
    for (int p = 0; p < parts->count; p++)
        cut_runs(parts->cut, p, add_run, &(struct adding){parts->gradients[p], sum});
    for (size_t i = 0; i < count; i++)
        if (!near((double)sum[i], (double)w->gradient[i])) {
            FAIL(tap, "gradient %zu is %g, not %g", i, (double)sum[i], (double)w->gradient[i]);
            break;
        }
    free(sum);
}

static void check_sent(struct tap *tap, const struct parts *parts) {
    size_t floats[2] = {0, 0};
    for (int back = 0; back < 2; back++)
        for (int from = 0; from < parts->count; from++)
            for (int to = 0; to < parts->count; to++)
                floats[back] += SAMPLES * cut_sent(parts->cut, back, from, to);
    CHECK_INT(tap, (int)parts->post.sent[NET_FORWARD], (int)floats[0]);
    CHECK_INT(tap, (int)parts->post.sent[NET_BACKWARD], (int)floats[1]);
}

static void compare_cut(struct tap *tap, const struct whole *w, int partitions) {
    struct cut *cut;
    struct parts parts = {0};
    struct error err = {0};
    int failed = tap->failed_here;
    if (cut_open(&cut, w->of.model, partitions, SAMPLES, &err) ||
        parts_open(&parts, cut, w->kernels, w->of.parameters, &err)) {
        FAIL(tap, "%s", err.text);
        return;
    }
    for (int p = 0; p < partitions; p++)
        net_begin_forward(parts.nets[p], parts.parameters[p], p == 0 ? w->of.input : NULL, SAMPLES,
                          w->of.draw, SEED);
    CHECK(tap, parts_go(&parts));
    compare_scores(tap, &parts, w);
    for (int p = 0; p < partitions; p++)
        net_begin_backward(parts.nets[p], parts.parameters[p], w->of.labels, 1.0f / SAMPLES,
                           parts.gradients[p], NULL, NULL);
    CHECK(tap, parts_go(&parts));
    compare_gradients(tap, &parts, w);
    check_sent(tap, &parts);
    if (tap->failed_here > failed)
        printf("# above: %d partitions\n", partitions);
    parts_close(&parts);
    cut_close(cut);
}

static void check_text(struct tap *tap, const char *name, const char *text) {
    const struct kernels *families[] = {kernels_of(CPU_REF), kernels_best()};
    for (int f = 0; f < 2; f++) {
        struct whole w;
        struct error err = {0};
        if (whole_open(&w, text, families[f], &err))
            FAIL(tap, "%s", err.text);
        else
            for (int partitions = 1; partitions <= PARTITIONS; partitions++)
                compare_cut(tap, &w, partitions);
        whole_close(&w);
    }
    tap_result(tap, name);
}

static void check_layers(struct tap *tap) {
    check_text(tap, "dense layers by units",
               "input 37\ndense units=29 act=relu cut=units\ndense units=23 act=tanh cut=units\n"
               "softmax units=11 cut=units\n");
    check_text(tap, "dense layers by inputs",
               "input 37\ndense units=29 act=relu cut=units\n"
               "dense units=23 act=gelu cut=inputs dropout=0.3\nsoftmax units=11 cut=inputs\n");
    check_text(tap, "convolutions and pools by rows",
               "input 3x19x17\nconv c1 maps=9 kernel=5 stride=2 pad=2 act=relu cut=rows\n"
               "maxpool size=3 stride=2 cut=rows\nconv c2 maps=7 kernel=3 pad=1 act=tanh cut=rows\n"
               "avgpool size=2 stride=1 cut=rows\nsoftmax units=5\n");
    check_text(tap, "convolutions and pools by maps",
               "input 3x13x11\nconv c1 maps=10 kernel=3 pad=1 act=relu cut=maps\n"
               "l2pool size=2 cut=maps\nconv c2 maps=8 kernel=3 groups=2 cut=maps\n"
               "maxpool size=2 stride=1 cut=maps\nlogistic units=5 cut=inputs\n");
    check_text(tap, "rows, then maps, then rows",
               "input 2x12x9\nconv maps=6 kernel=3 pad=1 cut=rows act=relu\n"
               "conv maps=5 kernel=3 pad=1 cut=maps act=relu\nconv maps=4 kernel=3 pad=1 cut=rows\n"
               "dense units=12 act=sigmoid cut=inputs\nlinear units=3 loss=huber\n");
    check_text(tap, "contrast and response norms by rows",
               "input 3x17x10\nconv maps=6 kernel=3 pad=1 act=relu cut=rows\n"
               "lrn size=3 alpha=0.5 cut=rows\nlcn size=3 cut=rows\n"
               "conv maps=4 kernel=5 pad=2 cut=rows\nlcn size=5 cut=rows\n"
               "maxpool size=2 cut=rows\nsoftmax units=4 cut=inputs\n");
    check_text(tap, "local layers by rows",
               "input 2x11x9\nlocal maps=4 kernel=3 stride=2 pad=1 act=tanh cut=rows\n"
               "local maps=3 kernel=2 cut=rows dropout=0.4\nsoftmax units=4\n");
    check_text(tap, "norms by maps and by groups",
               "input 3x9x8\nconv maps=12 kernel=3 pad=1 cut=maps\nbatchnorm act=relu cut=maps\n"
               "conv maps=8 kernel=3 pad=1 cut=maps\ngroupnorm groups=4 act=relu cut=maps\n"
               "dense units=9 cut=inputs\nlayernorm cut=none\nsoftmax units=6 cut=units\n");
    check_text(tap, "branches that join, and dropout",
               "input 3x11x9\nconv a maps=6 kernel=3 pad=1 act=relu cut=rows\n"
               "conv b maps=6 kernel=5 pad=2 from=a cut=rows dropout=0.5\nadd s from=a,b cut=rows "
               "act=relu\n"
               "conv c maps=5 kernel=1 from=s cut=maps\nconcat j from=s,c cut=maps\n"
               "dropout dropout=0.3 cut=maps\nleaky cut=rows\navgpool size=all\nsoftmax units=4\n");
    check_text(
        tap, "layers that are not cut",
        "input 3x9x9\nconv maps=6 kernel=3 cut=none act=relu\nconv maps=6 kernel=3 cut=rows\n"
        "dense units=10 cut=none\ndense units=10 cut=inputs\nsoftmax units=4 cut=none\n");
    check_text(tap, "frozen layers below, and batch norms that are",
               "input 3x12x9\nconv maps=6 kernel=3 pad=1 rate=0 cut=rows\nbatchnorm rate=0 "
               "cut=rows act=relu\n"
               "conv maps=6 kernel=3 cut=rows\nlogistic units=4 smoothing=0.1\n");
    check_text(tap, "smoothed and weighted classes",
               "input 20\ndense units=12 act=silu\n"
               "softmax units=5 smoothing=0.2 class-weights=1,2,0.5,1,3 cut=units\n");
    check_text(tap, "more partitions than units",
               "input 20\ndense units=3 act=relu cut=units\nsoftmax units=2 cut=units\n");
}

// --- what is chosen ---------------------------------------------------------------------

static void check_choice(struct tap *tap) {
    // Smooth ones: among so many values some are near the kink of a relu or alike in a pool, and
    // how products are added up depends on their sizes.
    check_text(tap, "ways that are chosen",
               "input 3x33x31\nconv maps=16 kernel=5 pad=2 act=tanh\navgpool size=3 stride=2\nlrn\n"
               "conv maps=24 kernel=3 pad=1 act=tanh\nconv maps=24 kernel=3 pad=1 act=tanh\n"
               "avgpool size=2\ndense units=64 act=tanh dropout=0.5\ndense units=32\n"
               "softmax units=10\n");
}

int main(void) {
    struct tap tap = {0};
    check_layers(&tap);
    check_choice(&tap);
    return tap_done(&tap);
}
