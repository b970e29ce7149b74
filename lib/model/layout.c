#include "model/layout.h"

#include "model/keys.h"
#include "model/layer.h"

bool layout_blocked(const struct layer *layer, const bool *blocked) {
    switch (layer->type->layout) {
    case LAYOUT_PLAIN:
        return false;
    case LAYOUT_BLOCKS:
        return true;
    case LAYOUT_FOLLOW:
        for (int i = 0; i < layer->from_count; i++)
            if (!blocked[layer->from[i]])
                return false;
        return layer->from_count > 0;
    }
    return false;
}

// The power of two, at most KERNELS_LANES_MOST, at or above n.
static int lanes_for(int n) {
    int lanes = 1;
    while (lanes < n && lanes < KERNELS_LANES_MOST)
        lanes *= 2;
    return lanes;
}

int layout_places_most(int n) {
    int lanes = lanes_for(n);
    return (n - 1) / lanes * lanes + lanes;
}

static double cost(const struct model *model, const struct kernels *kernels, int n, int lanes) {
    double sum = 0;
    for (int i = 0; i < model->layer_count; i++)
        if (model->layers[i].type->layout == LAYOUT_BLOCKS) {
            struct convolution conv = layer_convolution(&model->layers[i]);
            sum += conv_cost(kernels, &conv, n, lanes);
        }
    return sum;
}

int layout_lanes(const struct model *model, const struct kernels *kernels, int n) {
    int best = 0;
    if (!kernels->lanes)
        return 0;
    double least = cost(model, kernels, n, 0);
    for (int lanes = 1; lanes <= lanes_for(n) && lanes <= kernels->lanes; lanes *= 2) {
        double sum = cost(model, kernels, n, lanes);
        if (sum < least) {
            best = lanes;
            least = sum;
        }
    }
    return best;
}
