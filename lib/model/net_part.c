#include "model/layout.h"
#include "model/net_inside.h"

// What is kept of a block of samples outweighs the parameters, which each further part reads
// forward and back, and whose gradient it writes and adds. By turns, cifar10_full at 64 in parts
// of 16 and at once: see kernels/README.md.
enum { PARAMETERS_PRICE = 4 };

bool net_in_parts(const struct model *model) {
    size_t sample = 0;
    for (int i = 1; i < model->layer_count; i++)
        sample += shape_size(model->layers[i].out);
    return model->parameter_count <= sample * KERNELS_LANES_MOST / PARAMETERS_PRICE;
}

int net_part(const struct model *model, const struct kernels *kernels, int n) {
    int part = KERNELS_LANES_MOST;
    return n > part && net_in_parts(model) && layout_lanes(model, kernels, part) > 0 ? part : n;
}
