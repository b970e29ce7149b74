// A model whose weights have the sizes that they have in training, and random samples for it.
#ifndef ADAM_TESTS_LIVELY_H
#define ADAM_TESTS_LIVELY_H

#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "model/model.h"

struct lively {
    struct model *model;
    float *parameters, *input;
    int32_t *labels;
    uint64_t *draw; // of dropout
};

// `noise` is the deviation of what is added to all parameters, so that biases are none of 0.
// lively_close also after a failure.
static inline int lively_open(struct lively *l, const char *text, int samples, uint64_t seed,
                              float noise, struct error *err) {
    *l = (struct lively){0};
    int status = model_parse(&l->model, "test.net", text, NULL, 0, err);
    if (status)
        return status;
    size_t in = (size_t)samples * shape_size(model_input(l->model)->out);
    struct random random = random_stream(4, 2, 0);
    l->parameters = mem_floats(l->model->parameter_count);
    l->input = mem_floats(in);
    l->labels = mem_zeroed((size_t)samples, sizeof *l->labels);
    l->draw = mem_zeroed((size_t)samples, sizeof *l->draw);
    model_init_lively(l->model, l->parameters, seed);
    for (size_t i = 0; noise > 0 && i < l->model->parameter_count; i++)
        l->parameters[i] += noise * random_normal(&random);
    for (size_t i = 0; i < in; i++)
        l->input[i] = random_normal(&random);
    for (int i = 0; i < samples; i++) {
        l->labels[i] = (int32_t)random_below(&random, (uint32_t)model_classes(l->model));
        l->draw[i] = 100 + (uint64_t)i;
    }
    return STATUS_OK;
}

static inline void lively_close(struct lively *l) {
    model_free(l->model);
    free(l->parameters), free(l->input), free(l->labels), free(l->draw);
}

#endif
