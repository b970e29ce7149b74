// net_step MODEL SEED BATCH RATE DIR [mixed|targets|cut:N]: one training step of a model on random
// numbers, every array written raw (little-endian floats) for another program to
// check: parameters, input, labels (int32), scores, gradient, updated; with `mixed`, whose samples
// have two labels each, also other (int32) and share; with `targets`, which they have in the place
// of labels, also these: 0 or 1, or normal for linear outputs; with `cut:N` by so many partitions
// of the model, in one thread.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/kernels.h"
#include "kernels/update.h"
#include "model/cut.h"
#include "model/layer.h"
#include "model/net.h"
#include "train/post.h"

static void write_raw(const char *dir, const char *name, const void *data, size_t bytes) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f))
        perror(path), exit(1);
}

// The first sample is not mixed.
static void mix_labels(struct net *net, int n, int classes, struct random *random,
                       const char *folder) {
    static int32_t other[1000];
    static float share[1000];
    for (int i = 0; i < n; i++) {
        other[i] = (int32_t)random_below(random, (uint32_t)classes);
        share[i] = i ? random_unit(random) : 1;
    }
    write_raw(folder, "other", other, (size_t)n * sizeof *other);
    write_raw(folder, "share", share, (size_t)n * sizeof *share);
    net_mixed(net, other, share);
}

static void give_targets(struct net *net, const struct model *model, int n, struct random *random,
                         const char *folder) {
    static float targets[1000 * 100];
    size_t count = (size_t)n * (size_t)model_classes(model);
    bool numbers = model_goal(model) == GOAL_NUMBERS;
    for (size_t i = 0; i < count; i++)
        targets[i] = numbers ? 2 * random_normal(random) : (float)random_below(random, 2);
    write_raw(folder, "targets", targets, count * sizeof *targets);
    net_targets(net, targets);
}

// --- by partitions ------------------------------------------------------------------------

struct parts {
    struct cut *cut;
    struct post *post;
    int count;
    struct net *nets[CUT_PARTITIONS_MAX];
    float *parameters[CUT_PARTITIONS_MAX], *gradients[CUT_PARTITIONS_MAX];
};

static int parts_open(struct parts *parts, const struct model *model, const float *parameters,
                      int n, struct error *err) {
    int status = cut_open(&parts->cut, model, parts->count, n, err);
    if (!status)
        status = post_open(&parts->post, parts->count, 1, cut_exchanges(parts->cut) + 1, err);
    for (int p = 0; !status && p < parts->count; p++) {
        const struct model *own = cut_model(parts->cut, p);
        parts->parameters[p] = mem_floats(own->parameter_count + 1);
        parts->gradients[p] = mem_zeroed(own->parameter_count + 1, sizeof(float));
        cut_take(parts->cut, p, parts->parameters[p], parameters);
        status = net_open(&parts->nets[p], own, kernels_best(), n, NET_TRAIN, err);
        if (!status)
            net_wired(parts->nets[p], post_wire(parts->post, p, 0));
    }
    return status;
}

static void parts_close(struct parts *parts) {
    for (int p = 0; p < parts->count; p++) {
        net_close(parts->nets[p]);
        free(parts->parameters[p]), free(parts->gradients[p]);
    }
    post_close(parts->post);
    cut_close(parts->cut);
}

static void parts_go(struct parts *parts) {
    bool done[CUT_PARTITIONS_MAX] = {false};
    for (int left = parts->count; left > 0;)
        for (int p = 0; p < parts->count; p++)
            if (!done[p] && net_go(parts->nets[p]))
                done[p] = true, left--;
}

static void put_scores(const struct parts *parts, int p, float *scores, int n, int classes) {
    const struct layer *output = model_output(cut_model(parts->cut, p));
    const float *own = net_scores(parts->nets[p]);
    for (int i = 0; output->type->output && i < n; i++)
        memcpy(scores + i * classes + output->region.c0, own + i * output->out.c,
               (size_t)output->out.c * sizeof *scores);
}

struct adding {
    float *sum;
    const float *own;
};

static void add_run(void *self, const struct cut_run *run) {
    struct adding *adding = self;
    for (size_t i = 0; i < run->count; i++)
        adding->sum[run->whole + i] += adding->own[run->own + i];
}

// Writes scores and gradient; returns the loss of all samples.
static double step_cut(const struct model *model, int partitions, const float *parameters,
                       const float *input, const int32_t *labels, int n, float *scores,
                       float *gradient) {
    struct parts parts = {.count = partitions};
    struct error err = {0};
    double loss = 0;
    if (parts_open(&parts, model, parameters, n, &err))
        fprintf(stderr, "%s\n", err.text), exit(err.status);
    for (int p = 0; p < partitions; p++)
        net_begin_forward(parts.nets[p], parts.parameters[p], p == 0 ? input : NULL, n, NULL, 0);
    parts_go(&parts);
    for (int p = 0; p < partitions; p++) {
        put_scores(&parts, p, scores, n, model_classes(model));
        loss += net_loss(parts.nets[p], labels);
        net_begin_backward(parts.nets[p], parts.parameters[p], labels, 1.0f / (float)n,
                           parts.gradients[p], NULL, NULL);
    }
    parts_go(&parts);
    memset(gradient, 0, model->parameter_count * sizeof *gradient);
    for (int p = 0; p < partitions; p++)
        cut_runs(parts.cut, p, add_run, &(struct adding){gradient, parts.gradients[p]});
    parts_close(&parts);
    return loss;
}

// --- one step -------------------------------------------------------------------------------

static int partitions_of(int argc, char **argv) {
    return argc > 6 && !strncmp(argv[6], "cut:", 4) ? atoi(argv[6] + 4) : 0;
}

int main(int argc, char **argv) {
    if (argc < 6 || atoi(argv[3]) > 1000)
        return fprintf(stderr, "usage: net_step MODEL SEED BATCH RATE DIR [mixed|targets|cut:N]\n"),
               2;
    struct error err = {0};
    struct model *model = NULL;
    struct net *net = NULL;
    const struct kernels *kernels = kernels_best();
    int n = atoi(argv[3]);
    if (model_read(&model, argv[1], NULL, 0, &err) ||
        net_open(&net, model, kernels, n, NET_TRAIN, &err))
        return fprintf(stderr, "%s\n", err.text), err.status;

    size_t count = model->parameter_count;
    size_t in = (size_t)n * shape_size(model_input(model)->out);
    size_t out = (size_t)n * (size_t)model_classes(model);
    float *parameters = mem_floats(count), *gradient = mem_floats(count), *input = mem_floats(in);
    float *scores = mem_floats(out);
    int partitions = partitions_of(argc, argv);
    int32_t *labels = mem_array((size_t)n, sizeof *labels);
    struct random random = random_stream((uint64_t)atoi(argv[2]), 0, 0);
    model_init_lively(model, parameters, (uint64_t)atoi(argv[2]));
    for (size_t i = 0; i < count; i++)
        parameters[i] += 0.02f * random_normal(&random); // biases too
    for (size_t i = 0; i < in; i++)
        input[i] = random_normal(&random);
    for (int i = 0; i < n; i++)
        labels[i] = (int32_t)random_below(&random, (uint32_t)model_classes(model));

    if (argc > 6 && !strcmp(argv[6], "targets"))
        give_targets(net, model, n, &random, argv[5]);
    else if (argc > 6 && !partitions)
        mix_labels(net, n, model_classes(model), &random, argv[5]);
    write_raw(argv[5], "parameters", parameters, count * sizeof(float));
    write_raw(argv[5], "input", input, in * sizeof(float));
    write_raw(argv[5], "labels", labels, (size_t)n * sizeof *labels);
    double loss;
    if (partitions > 0) {
        loss = step_cut(model, partitions, parameters, input, labels, n, scores, gradient) / n;
    } else {
        net_forward(net, parameters, input, n, NULL, 0);
        memcpy(scores, net_scores(net), out * sizeof *scores);
        loss = net_loss(net, labels) / n;
        net_backward(net, parameters, labels, 1.0f / (float)n, gradient, NULL, NULL);
    }
    write_raw(argv[5], "scores", scores, out * sizeof(float));
    write_raw(argv[5], "gradient", gradient, count * sizeof(float));
    const struct update update = {.rule = RULE_SGD, .rate = (float)atof(argv[4])};
    kernels->update(parameters, NULL, gradient, count, &update);
    write_raw(argv[5], "updated", parameters, count * sizeof(float));
    printf("%.9g\n", loss);
    net_close(net);
    model_free(model);
    free(parameters), free(gradient), free(scores), free(input), free(labels);
    return 0;
}
