// A small model of what convolutions cost, fitted to measurements of the kernels:
// it only has to rank layouts. Multiply-adds are counted as each way issues them,
// and divided by the share of the peak that the way has been seen to reach.
#include "kernels/conv_sizes.h"
#include "kernels/kernels.h"

// Shares of the peak, at the convolutions of the example nets.
static const double block_share = 0.88, mixed_share = 0.8, direct_share = 0.75,
                    columns_share = 0.55;

static double rounded_up(int n, int unit) {
    return (double)((n + unit - 1) / unit * unit);
}

// Lanes that a sample's maps fill when each block has room for `lanes` samples.
static double cost_block(const struct convolution *conv, int n, int lanes, int vector) {
    int maps = conv->maps / conv->groups;
    double issued = rounded_up(n, lanes) * rounded_up(maps, vector / lanes) * conv->groups *
                    (conv->window.c / conv->groups) * (double)window_taps(&conv->window);
    return issued / (lanes == vector ? block_share : mixed_share);
}

static double cost_plain(const struct convolution *conv, int n, int vector) {
    struct direct_sizes s = direct_sizes(conv, vector);
    double each = (double)n * conv->maps * s.taps,
           pixels = (double)window_out_pixels(&conv->window);
    if (!direct_fits(conv, vector))
        return each * pixels / columns_share;
    return each * s.strips * vector / direct_share;
}

double conv_cost(const struct kernels *kernels, const struct convolution *conv, int n, int lanes) {
    int vector = kernels->lanes ? kernels->lanes : 1;
    return (lanes ? cost_block(conv, n, lanes, vector) : cost_plain(conv, n, vector)) / vector;
}
