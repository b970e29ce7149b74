// A small model of what convolutions cost: it only has to rank layouts. Multiply-adds are counted
// as each way issues them, and divided by the share of the peak that the way reaches.
#include <assert.h>
#include <limits.h>

#include "kernels/blocks.h"
#include "kernels/conv_rows.h"
#include "kernels/conv_sizes.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "kernels/winograd_sizes.h"

// Fitted: shares of the peak that the ways reach on the convolutions of the example nets.
static const double block_share = 0.9, depthwise_share = 0.25, depthwise_direct_share = 0.12,
                    direct_share = 0.75, columns_share = 0.55;

// In vector multiply-adds, for three passes: of a weight, which blocks, and columns of a picture,
// arrange anew, or which rows read as it lies; of a value of a row or of its outputs; and of a
// value of a row that has to be gathered.
static const double prepare_price = 20, weight_price = 5, value_price = 1.7, gather_price = 10;

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

static double prepare_cost(const struct convolution *conv) {
    return conv_depthwise(conv) ? 0 : prepare_price * (double)conv_weights(conv);
}

// All passes of one plain sample.
static double cost_plain(const struct convolution *conv, int vector) {
    struct direct_sizes s = direct_sizes(conv, vector);
    double each = (double)PASSES * conv->maps * s.taps, prepare = prepare_cost(conv);
    if (direct_fits(conv, vector))
        return each * s.strips / (conv_depthwise(conv) ? depthwise_direct_share : direct_share) +
               prepare;
    return each * (double)window_out_pixels(&conv->window) / vector / columns_share + prepare;
}

// All passes of one row (conv_rows.h), but for reading the weights.
static double cost_row(const struct convolution *conv, int vector) {
    double inputs = (double)conv_rows_inputs(conv), maps = rounded_up(conv->maps, vector);
    return PASSES * inputs * maps / vector / block_share + value_price * (inputs + maps) +
           (conv_rows_lie(conv) ? 0 : gather_price * inputs);
}

// Both costs grow with the rows, that of rows faster.
size_t conv_rows_most(const struct convolution *conv, int vector) {
    if (vector == 0 || conv->groups > 1 || conv_rows_inputs(conv) > INT_MAX)
        return 0;
    double pixels = (double)window_out_pixels(&conv->window);
    double more = cost_row(conv, vector) - cost_block(conv, 1, vector) / pixels;
    assert(more > 0);
    return (size_t)((prepare_cost(conv) - weight_price * (double)conv_weights(conv)) / more);
}

size_t conv_rows_scratch(const struct convolution *conv, int blocks) {
    size_t most = 0, rows = conv_rows_count(conv, blocks), inputs = conv_rows_inputs(conv);
    for (int vector = 1; vector <= KERNELS_LANES_MOST; vector *= 2) {
        size_t some = conv_rows_most(conv, vector);
        most = some > most ? some : most;
    }
    rows = rows < most ? rows : most;
    if (rows == 0)
        return 0;
    size_t forward = dense_scratch((int)rows, (int)inputs);
    size_t step = dense_step_scratch((int)rows, conv->maps, (int)inputs);
    return (conv_rows_lie(conv) ? 0 : 2 * conv_rows_floats(conv, rows)) +
           (forward > step ? forward : step);
}

double conv_cost(const struct kernels *kernels, const struct convolution *conv, int n, int lanes) {
    int vector = kernels->lanes ? kernels->lanes : 1;
    if (lanes == 0)
        return n * cost_plain(conv, vector);
    size_t rows = lanes == 1 && kernels->lanes ? conv_rows_count(conv, n) : 0;
    if (rows > 0 && rows <= conv_rows_most(conv, vector))
        return (double)rows * cost_row(conv, vector) + weight_price * (double)conv_weights(conv);
    return rounded_up(n, lanes) / lanes * cost_block(conv, lanes, vector) + prepare_cost(conv);
}
