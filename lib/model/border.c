#include "model/border.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "model/layer.h"

// A convolution of fewer outputs may pass as a dense layer (kernels/conv_rows.h) of so few rows
// that the order in which one is added up depends on their number.
enum { OUTPUTS_LEAST = 16 };

// Whether a sample's outputs may depend on the others of the pass.
static bool passes_together(const struct layer *layer) {
    if (layer->type->layout == LAYOUT_BLOCKS)
        return layer->out.h * layer->out.w < OUTPUTS_LEAST;
    return layer->type->trains && layer->type->layout == LAYOUT_PLAIN;
}

static bool stays(const struct layer *layer) {
    bool together = passes_together(layer);
    return !layer_learns(layer) && layer->dropout == 0 && !together && !layer->type->output;
}

// Whether all layers above this one read only it and each other.
static bool parts(const struct model *model, int at) {
    for (int i = at + 1; i < model->layer_count; i++)
        for (int j = 0; j < model->layers[i].from_count; j++)
            if (model->layers[i].from[j] < at)
                return false;
    return true;
}

// The layer below the highest border; 0: there is none.
static int find_layer(const struct model *model) {
    int best = 0;
    bool weights = false;
    for (int i = 1; i < model->layer_count && stays(&model->layers[i]); i++) {
        weights = weights || model->layers[i].weights.count > 0;
        if (weights && parts(model, i))
            best = i;
    }
    return best;
}

static struct layer input_of(const struct model *model, const struct layer *layer) {
    struct layer input = *model_input(model);
    input.in = input.out = input.whole = layer->out;
    input.region = region_all(&layer->out);
    return input;
}

int border_find(struct border *border, bool *found, const struct model *model, struct error *err) {
    int at = find_layer(model), count = model->layer_count - at;
    *border = (struct border){.layer = NULL};
    *found = at > 0;
    if (!*found)
        return STATUS_OK;
    struct layer *layers = mem_array((size_t)count, sizeof *layers);
    if (!layers)
        return error_nomem(err);
    layers[0] = input_of(model, &model->layers[at]);
    for (int i = 1; i < count; i++) {
        layers[i] = model->layers[at + i];
        layers[i].index = i;
        for (int j = 0; j < layers[i].from_count; j++)
            layers[i].from[j] -= at;
    }
    *border = (struct border){&model->layers[at], *model, *model};
    border->below.layer_count = at + 1;
    border->above.layers = layers;
    border->above.layer_count = count;
    return STATUS_OK;
}

void border_free(struct border *border) {
    free(border->above.layers);
    *border = (struct border){.layer = NULL};
}
