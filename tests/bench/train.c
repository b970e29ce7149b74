// train SECONDS BATCH MODEL...: training steps (forward, backward, update) of one
// thread on random samples in memory; prints samples a second of wall time and of
// processor time, a line for each model.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/mem.h"
#include "core/random.h"
#include "model/layer.h"
#include "model/net.h"
#include "train/optimizer.h"

struct step {
    const struct kernels *kernels;
    struct net *net;
    float *parameters, *gradient, *input;
    int32_t *labels;
    int n;
};

static const struct optimizer sgd = {.rule = RULE_SGD};

static void apply(void *self, const struct layer *layer, const float *gradient) {
    struct step *step = self;
    optimizer_apply(&sgd, step->kernels, layer, optimizer_all(layer), step->parameters, NULL,
                    gradient, 1e-4f);
}

static bool apply_product(void *self, const struct layer *layer, const struct dense_errors *errors,
                          const float *dbiases) {
    struct step *step = self;
    optimizer_apply_product(&sgd, step->kernels, layer, step->parameters, NULL, errors, dbiases,
                            1e-4f);
    return true;
}

static void run(struct step *step) {
    net_forward(step->net, step->parameters, step->input, step->n, NULL, 0);
    net_backward(step->net, step->parameters, step->labels, 1.0f / (float)step->n, step->gradient,
                 apply, step);
}

static double busy_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void measure(struct step *step, double seconds) {
    for (double begin = clock_seconds(); clock_seconds() - begin < 0.3 * seconds;)
        run(step);
    double begin = clock_seconds(), busy = busy_seconds(), count = 0;
    while (clock_seconds() - begin < seconds)
        run(step), count += step->n;
    printf("%.1f %.1f\n", count / (clock_seconds() - begin), count / (busy_seconds() - busy));
}

static int bench(const char *path, int n, double seconds) {
    struct error err = {0};
    struct model *model = NULL;
    struct step step = {.kernels = kernels_best(), .n = n};
    if (model_read(&model, path, NULL, 0, &err) ||
        net_open(&step.net, model, step.kernels, n, NET_TRAIN, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return err.status;
    }
    size_t in = (size_t)n * shape_size(model_input(model)->out);
    struct random random = random_stream(1, 0, 0);
    step.parameters = mem_floats(model->parameter_count);
    step.gradient = mem_floats(model->parameter_count);
    step.input = mem_floats(in);
    step.labels = mem_zeroed((size_t)n, sizeof *step.labels);
    model_init(model, step.parameters, 1);
    net_offered(step.net, apply_product, &step);
    for (size_t i = 0; i < in; i++)
        step.input[i] = random_normal(&random);
    for (int i = 0; i < n; i++)
        step.labels[i] = (int32_t)random_below(&random, (uint32_t)model_classes(model));
    measure(&step, seconds);
    free(step.parameters), free(step.gradient), free(step.input), free(step.labels);
    net_close(step.net);
    model_free(model);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return fprintf(stderr, "usage: train SECONDS BATCH MODEL...\n"), 2;
    for (int i = 3; i < argc; i++) {
        int status = bench(argv[i], atoi(argv[2]), atof(argv[1]));
        if (status)
            return status;
    }
    return 0;
}
