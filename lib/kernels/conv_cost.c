// A small model of what convolutions cost: it only has to rank layouts. Multiply-adds are counted
// as each way issues them, and divided by the share of the peak that the way reaches.
#include <limits.h>
#include <math.h>

#include "kernels/blocks.h"
#include "kernels/conv_rows.h"
#include "kernels/conv_sizes.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "kernels/winograd_sizes.h"

// Fitted: shares of the peak that the ways reach on the convolutions of the example nets.
static const double depthwise_share = 0.25, depthwise_direct_share = 0.12, rows_share = 1,
                    direct_share = 0.75, columns_share = 0.55;

// Fitted, in vector multiply-adds, for three passes: of a weight that rows read as it lies; of a
// value of a row or of its outputs; of a value that has to be gathered, or turned.
static const double weight_price = 1, value_price = 1.7, gather_price = 10, turn_price = 5;

enum { PASSES = 3 };

// Fitted, of each pass of blocks by the direct way: the share of the peak, and what it takes to
// arrange a weight, or to add up a gradient's lanes; and the share of that where kernels of several
// taps stay in the L2 cache, and in the L3 cache.
static const struct {
    double share, whole, lane;
} direct[PASSES] = {
    [CONV_FORWARD] = {0.95, 5, 0.3},
    [CONV_BACK_INPUT] = {0.95, 7, 0.7},
    [CONV_BACK_WEIGHTS] = {0.75, 2.5, 4.3},
};
static const double arrange_l2 = 0.2, arrange_l3 = 0.4;
static const size_t weights_l2 = 1 << 18, weights_l3 = 1 << 20;

static double rounded_up(int n, int unit) {
    return (double)((n + unit - 1) / unit * unit);
}

static double arrange_share(const struct convolution *conv) {
    size_t weights = conv_weights(conv);
    if (conv_taps(conv) == 1 || weights > weights_l3)
        return 1;
    return weights > weights_l2 ? arrange_l3 : arrange_l2;
}

// Blocks of `lanes` samples, whose maps share the vectors with them.
static double cost_direct(const struct convolution *conv, enum conv_pass pass, int blocks,
                          int lanes, int vector) {
    int maps = conv->maps / conv->groups, channels = conv->window.c / conv->groups;
    double taps = (double)window_taps(&conv->window);
    if (conv_depthwise(conv))
        return blocks * rounded_up(conv->maps * lanes, vector) / vector * taps / depthwise_share;
    double each = rounded_up(maps, vector / lanes) * lanes / vector * channels * conv->groups;
    double arranged = direct[pass].whole + direct[pass].lane * lanes;
    return blocks * each * taps / direct[pass].share +
           arrange_share(conv) * arranged * (double)conv_weights(conv);
}

bool winograd_fits(const struct convolution *conv, int blocks, int lanes, int vector,
                   enum conv_pass pass) {
    return winograd_cost(conv, blocks, lanes, vector, pass) <
           cost_direct(conv, pass, blocks, lanes, vector);
}

// All passes, directly; or each the faster way.
static double cost_direct_blocks(const struct convolution *conv, int blocks, int lanes,
                                 int vector) {
    double sum = 0;
    for (int pass = 0; pass < PASSES; pass++)
        sum += cost_direct(conv, (enum conv_pass)pass, blocks, lanes, vector);
    return sum;
}

static double cost_blocks(const struct convolution *conv, int blocks, int lanes, int vector) {
    double sum = 0;
    for (int i = 0; i < PASSES; i++) {
        enum conv_pass pass = (enum conv_pass)i;
        sum += fmin(cost_direct(conv, pass, blocks, lanes, vector),
                    winograd_cost(conv, blocks, lanes, vector, pass));
    }
    return sum;
}

// All passes of one plain sample.
static double cost_plain(const struct convolution *conv, int vector) {
    struct direct_sizes s = direct_sizes(conv, vector);
    double each = (double)PASSES * conv->maps * s.taps,
           arranged = cost_direct_blocks(conv, 0, 1, vector);
    if (direct_fits(conv, vector))
        return each * s.strips / (conv_depthwise(conv) ? depthwise_direct_share : direct_share) +
               arranged;
    return each * (double)window_out_pixels(&conv->window) / vector / columns_share + arranged;
}

// All passes of so many rows (conv_rows.h).
static double cost_rows(const struct convolution *conv, double rows, int lanes, int vector) {
    double inputs = (double)conv_rows_inputs(conv), maps = rounded_up(conv->maps, vector);
    double each = PASSES * inputs * maps / vector / rows_share + value_price * (inputs + maps);
    if (!conv_rows_lie(conv, lanes))
        each += gather_price * inputs + (lanes > 1 ? turn_price * maps : 0);
    return rows * each + weight_price * (double)conv_weights(conv);
}

static bool rows_possible(const struct convolution *conv, int vector) {
    return vector > 0 && conv->groups == 1 && !window_dilated(&conv->window) &&
           conv_rows_inputs(conv) <= INT_MAX;
}

// No more can cost less than the direct way. Both costs grow with the rows, that of rows faster:
// for each its products are no fewer.
static size_t rows_most(const struct convolution *conv, int lanes, int vector) {
    double arranged = cost_direct_blocks(conv, 0, lanes, vector),
           still = cost_rows(conv, 0, lanes, vector);
    double block = cost_direct_blocks(conv, 1, lanes, vector) - arranged;
    double row = cost_rows(conv, 1, lanes, vector) - still;
    double most = (arranged - still) / (row - block / (double)conv_rows_count(conv, 1, lanes));
    return most < 0 ? 0 : most < INT_MAX ? (size_t)most : INT_MAX;
}

// Too many to think about: their values alone cost more than all that blocks can cost for a weight.
static bool too_many(const struct convolution *conv, size_t rows, int lanes) {
    double values = (double)(conv_rows_inputs(conv) + (size_t)conv->maps);
    double arranged = 0;
    for (int pass = 0; pass < PASSES; pass++)
        arranged += direct[pass].whole + direct[pass].lane * lanes;
    return (double)rows * value_price * values > arranged * (double)conv_weights(conv);
}

bool conv_rows_fit(const struct convolution *conv, int blocks, int lanes, int vector) {
    size_t rows = conv_rows_count(conv, blocks, lanes);
    return rows_possible(conv, vector) && !too_many(conv, rows, lanes) &&
           cost_rows(conv, (double)rows, lanes, vector) < cost_blocks(conv, blocks, lanes, vector);
}

static size_t most_of_any(const struct convolution *conv) {
    size_t most = 0;
    for (int vector = 1; vector <= KERNELS_LANES_MOST; vector *= 2)
        for (int lanes = 1; lanes <= vector; lanes *= 2) {
            size_t some = rows_most(conv, lanes, vector);
            most = some > most ? some : most;
        }
    return most;
}

size_t conv_rows_scratch(const struct convolution *conv, int places) {
    if (!rows_possible(conv, KERNELS_LANES_MOST))
        return 0;
    size_t rows = conv_rows_count(conv, places, 1), most = most_of_any(conv);
    rows = rows < most ? rows : most;
    int inputs = (int)conv_rows_inputs(conv);
    size_t forward = dense_scratch((int)rows, inputs);
    size_t step = dense_step_scratch((int)rows, conv->maps, inputs);
    return 2 * conv_rows_floats(rows, (size_t)inputs) + conv_rows_floats(rows, (size_t)conv->maps) +
           (forward > step ? forward : step);
}

double conv_cost(const struct kernels *kernels, const struct convolution *conv, int n, int lanes) {
    int vector = kernels->lanes ? kernels->lanes : 1;
    if (lanes == 0)
        return n * cost_plain(conv, vector);
    int blocks = (n + lanes - 1) / lanes;
    if (conv_rows_fit(conv, blocks, lanes, kernels->lanes))
        return cost_rows(conv, (double)conv_rows_count(conv, blocks, lanes), lanes, vector);
    return cost_blocks(conv, blocks, lanes, vector);
}
