#include "run/checkpoint_tensors.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"

static int add_parameter(struct named_parameter *list, size_t *count, const char *prefix,
                         const struct layer *layer, const char *what,
                         const struct parameter *parameter, struct error *err) {
    struct named_parameter *named = &list[*count];
    if (parameter->count == 0)
        return STATUS_OK;
    named->parameter = parameter;
    if (asprintf(&named->name, "%s%s%s.%s", prefix ? prefix : "", prefix ? "." : "", layer->name,
                 what) < 0) {
        named->name = NULL;
        return error_nomem(err);
    }
    ++*count;
    return STATUS_OK;
}

int named_parameters(struct named_parameter **out, size_t *count, const struct model *model,
                     const char *prefix, struct error *err) {
    struct named_parameter *named = mem_zeroed(2 * (size_t)model->layer_count, sizeof *named);
    int status = named ? STATUS_OK : error_nomem(err);
    *count = 0;
    for (int i = 0; !status && i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        status = add_parameter(named, count, prefix, layer, "weight", &layer->weights, err);
        if (!status)
            status = add_parameter(named, count, prefix, layer, "bias", &layer->biases, err);
    }
    *out = named;
    if (status)
        named_parameters_free(named, *count);
    return status;
}

void named_parameters_free(struct named_parameter *named, size_t count) {
    for (size_t i = 0; named && i < count; i++)
        free(named[i].name);
    free(named);
}
