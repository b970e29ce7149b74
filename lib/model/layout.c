#include "model/layout.h"

#include "kernels/blocks.h"
#include "kernels/kernels.h"
#include "kernels/shapes.h"
#include "model/exchange.h"
#include "model/keys.h"
#include "model/layer.h"

bool layout_gains(const struct layer *layer) {
    struct window window = layer_window(layer);
    return layer->type->layout == LAYOUT_BLOCKS && !window.skip_h && !window.skip_w;
}

bool layout_blocked(const struct layer *layer, const bool *blocked) {
    if (layer->exchange)
        return layer->exchange->blocked;
    switch (layer->type->layout) {
    case LAYOUT_PLAIN:
        return false;
    case LAYOUT_BLOCKS:
        return layout_gains(layer);
    case LAYOUT_FOLLOW:
        for (int i = 0; i < layer->from_count; i++)
            if (!blocked[layer->from[i]])
                return false;
        return layer->from_count > 0;
    }
    return false;
}

// The most lanes worth a thought: the power of two at or above n. From a third of
// a vector on it may be the whole one, since what needs a sample in every lane can
// be several times as fast.
static int lanes_for(int n) {
    int lanes = 1;
    while (lanes < n && lanes < KERNELS_LANES_MOST)
        lanes *= 2;
    return 3 * n > KERNELS_LANES_MOST ? KERNELS_LANES_MOST : lanes;
}

int layout_places_most(int n) {
    int lanes = lanes_for(n);
    return (n - 1) / lanes * lanes + lanes;
}

static double layout_cost(const struct model *model, const struct kernels *kernels, int n,
                          int lanes) {
    double sum = 0;
    for (int i = 0; i < model->layer_count; i++)
        if (layout_gains(&model->layers[i])) {
            struct convolution conv = layer_convolution(&model->layers[i]);
            sum += conv_cost(kernels, &conv, n, lanes);
        }
    return sum;
}

int layout_lanes_most(const struct kernels *kernels, int n) {
    int lanes = lanes_for(n);
    return lanes < kernels->lanes ? lanes : kernels->lanes;
}

int layout_lanes(const struct model *part, const struct kernels *kernels, int n) {
    const struct model *model = part->uncut ? part->uncut : part;
    int best = 0;
    double least = layout_cost(model, kernels, n, 0);
    for (int lanes = 1; lanes <= layout_lanes_most(kernels, n); lanes *= 2) {
        double sum = layout_cost(model, kernels, n, lanes);
        if (sum < least) {
            best = lanes;
            least = sum;
        }
    }
    return best;
}

double layout_price(const struct model *part, const struct kernels *kernels, int n) {
    const struct model *model = part->uncut ? part->uncut : part;
    return layout_cost(model, kernels, n, layout_lanes(part, kernels, n));
}
