// The layer of a model with a name, or NULL.
#ifndef ADAM_TESTS_MODEL_FIND_H
#define ADAM_TESTS_MODEL_FIND_H

#include <string.h>

#include "model/model.h"

static inline const struct layer *model_find(const struct model *model, const char *name) {
    for (int i = 0; i < model->layer_count; i++)
        if (strcmp(model->layers[i].name, name) == 0)
            return &model->layers[i];
    return NULL;
}

#endif
