#include "kernels/blocks.h"
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
