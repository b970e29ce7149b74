#include "kernels/blocks.h"
#include "kernels/kernels.h"
#include "model/layout.h"
#include "model/net_inside.h"

// Each part reads the parameters forward and back, and writes and adds their gradient: four passes
// over them, for one over the activations that it keeps in the cache.
enum { PARAMETERS_PRICE = 4 };

bool net_in_parts(const struct model *model) {
    size_t sample = 0;
    for (int i = 1; i < model->layer_count; i++)
        sample += shape_size(model->layers[i].out);
    return model->parameter_count <= sample * KERNELS_LANES_MOST / PARAMETERS_PRICE;
}

int net_part(const struct model *model, const struct kernels *kernels, int n) {
    int together = model_together(model);
    int part = together > KERNELS_LANES_MOST ? together : KERNELS_LANES_MOST;
    return n > part && net_in_parts(model) && layout_lanes(model, kernels, part) > 0 ? part : n;
}

// Whether convolutions have so few weights that to prepare them once more is cheap beside the
// outputs of a vector of samples.
static bool weights_are_few(const struct model *model, int lanes) {
    size_t weights = 0, outputs = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        weights += layout_gains(layer) ? layer->weights.count : 0;
        outputs += layout_gains(layer) ? shape_size(layer->out) : 0;
    }
    return weights <= outputs * (size_t)lanes / PARAMETERS_PRICE;
}

int net_first(const struct model *model, const struct kernels *kernels, int n) {
    int rest = kernels->lanes > 0 ? n % kernels->lanes : 0, full = n - rest;
    if (rest == 0 || full == 0 || !weights_are_few(model, kernels->lanes))
        return n;
    double apart = layout_price(model, kernels, full) + layout_price(model, kernels, rest);
    return apart < layout_price(model, kernels, n) ? full : n;
}
