// A small model of what convolutions cost: it only has to rank layouts. Multiply-adds are counted
// as each way issues them, and divided by the share of the peak that the way reaches.
#include "kernels/conv_sizes.h"
#include "kernels/kernels.h"
#include "kernels/winograd_sizes.h"

// Fitted: shares of the peak that the ways reach on the convolutions of the example nets.
static const double block_share = 0.9, depthwise_share = 0.25, depthwise_direct_share = 0.12,
                    direct_share = 0.75, columns_share = 0.55;

enum { PASSES = 3 };

static double rounded_up(int n, int unit) {
    return (double)((n + unit - 1) / unit * unit);
}

// One pass of one block of `lanes` samples, whose maps share the vectors with them.
static double cost_direct(const struct convolution *conv, int lanes, int vector) {
    int maps = conv->maps / conv->groups, channels = conv->window.c / conv->groups;
    if (conv_depthwise(conv))
        return rounded_up(conv->maps * lanes, vector) / vector *
               (double)window_taps(&conv->window) / depthwise_share;
    double each = rounded_up(maps, vector / lanes) * lanes / vector * channels * conv->groups;
    return each * (double)window_taps(&conv->window) / block_share;
}

static double cost_block(const struct convolution *conv, int lanes, int vector) {
    double sum = 0, direct = cost_direct(conv, lanes, vector);
    for (int pass = 0; pass < PASSES; pass++) {
        double fast = lanes == vector ? winograd_cost(conv, lanes, (enum conv_pass)pass) : direct;
        sum += fast < direct ? fast : direct;
    }
    return sum;
}

// All passes of one plain sample.
static double cost_plain(const struct convolution *conv, int vector) {
    struct direct_sizes s = direct_sizes(conv, vector);
    double each = (double)PASSES * conv->maps * s.taps;
    if (direct_fits(conv, vector))
        return each * s.strips / (conv_depthwise(conv) ? depthwise_direct_share : direct_share);
    return each * (double)window_out_pixels(&conv->window) / vector / columns_share;
}

double conv_cost(const struct kernels *kernels, const struct convolution *conv, int n, int lanes) {
    int vector = kernels->lanes ? kernels->lanes : 1;
    if (lanes == 0)
        return n * cost_plain(conv, vector);
    return rounded_up(n, lanes) / lanes * cost_block(conv, lanes, vector);
}
