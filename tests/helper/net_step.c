// net_step MODEL SEED BATCH RATE DIR [mixed|targets]: one training step of a model on random
// numbers, every array written raw (little-endian floats) for another program to
// check: parameters, input, labels (int32), scores, gradient, updated; with `mixed`, whose samples
// have two labels each, also other (int32) and share; with `targets`, which they have in the place
// of labels, also these: 0 or 1, or normal for linear outputs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/kernels.h"
#include "kernels/update.h"
#include "model/layer.h"
#include "model/net.h"

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

int main(int argc, char **argv) {
    if (argc < 6 || atoi(argv[3]) > 1000)
        return fprintf(stderr, "usage: net_step MODEL SEED BATCH RATE DIR [mixed|targets]\n"), 2;
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
    else if (argc > 6)
        mix_labels(net, n, model_classes(model), &random, argv[5]);
    write_raw(argv[5], "parameters", parameters, count * sizeof(float));
    write_raw(argv[5], "input", input, in * sizeof(float));
    write_raw(argv[5], "labels", labels, (size_t)n * sizeof *labels);
    net_forward(net, parameters, input, n, NULL, 0);
    write_raw(argv[5], "scores", net_scores(net), out * sizeof(float));
    double loss = net_loss(net, labels) / n;
    net_backward(net, parameters, labels, 1.0f / (float)n, gradient, NULL, NULL);
    write_raw(argv[5], "gradient", gradient, count * sizeof(float));
    const struct update update = {.rule = RULE_SGD, .rate = (float)atof(argv[4])};
    kernels->update(parameters, NULL, gradient, count, &update);
    write_raw(argv[5], "updated", parameters, count * sizeof(float));
    printf("%.9g\n", loss);
    net_close(net);
    model_free(model);
    free(parameters), free(gradient), free(input), free(labels);
    return 0;
}
