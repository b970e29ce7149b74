#include "model/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hogwild.h"
#include "core/mem.h"
#include "model/fuse.h"

// One row of weights, and one bias, make each map.
static bool has_rows(const struct layer *layer) {
    return layer->type->trains && !layer->type->scales && !layer->type->output &&
           layer->weights.dims[0] == layer->out.c && layer->biases.count == (size_t)layer->out.c;
}

bool fold_takes(const struct model *model, const int *readers, const struct layer *layer) {
    if (layer->statistics[0].count == 0)
        return false;
    const struct layer *below = &model->layers[layer->from[0]];
    bool applies = !act_reads_inputs(layer->act) && (below->type->acts >> layer->act & 1);
    return has_rows(below) && readers[below->index] == 1 && below->act == ACT_LINEAR &&
           below->dropout == 0 && applies;
}

static void scale(float *values, size_t n, double factor) {
    for (size_t i = 0; i < n; i++)
        values[i] = (float)(factor * (double)values[i]);
}

// y = factor x + term of each map, for x = w . input + bias.
HOGWILD static void fold_norm(float *to, const float *from, const struct layer *below,
                              const struct layer *norm) {
    size_t maps = norm->statistics[0].count, row = below->weights.count / maps;
    for (size_t m = 0; m < maps; m++) {
        double mean = (double)from[norm->statistics[0].offset + m];
        double variance = (double)from[norm->statistics[1].offset + m];
        double factor = (double)from[norm->weights.offset + m] /
                        sqrt((variance > 0 ? variance : 0) + (double)norm->alpha);
        float *bias = &to[below->biases.offset + m];
        scale(to + below->weights.offset + m * row, row, factor);
        *bias = (float)(((double)*bias - mean) * factor + (double)from[norm->biases.offset + m]);
    }
}

static bool copy_parameters(float **out, const struct model *model, const float *parameters) {
    if (*out)
        return true;
    *out = mem_floats(model->parameter_count);
    if (*out)
        memcpy(*out, parameters, model->parameter_count * sizeof **out);
    return *out != NULL;
}

int fold_parameters(float **out, const struct model *model, const float *parameters,
                    struct error *err) {
    int *readers = fuse_readers(model);
    bool whole = readers != NULL;
    *out = NULL;
    for (int i = 0; whole && i < model->layer_count; i++) {
        const struct layer *norm = &model->layers[i];
        if (!fold_takes(model, readers, norm))
            continue;
        whole = copy_parameters(out, model, parameters);
        if (whole)
            fold_norm(*out, parameters, &model->layers[norm->from[0]], norm);
    }
    free(readers);
    if (whole)
        return STATUS_OK;
    free(*out);
    *out = NULL;
    return error_set(err, STATUS_IO, "out of memory for %zu folded parameters",
                     model->parameter_count);
}
