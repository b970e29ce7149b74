// Winograd's minimal filtering: the tables of a family.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_TABLE_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_TABLE_INC_H

#include <string.h>

#include "kernels/block/ends.inc.h"
#include "kernels/block/winograd_kept.inc.h"

static void winograd_any(float *y, const float *x, const float *weights, struct winograd_ends ends,
                         int blocks, int lanes, const struct convolution *conv, bool turned,
                         float *scratch) {
    size_t floats = (size_t)conv->maps * (size_t)lanes;
    if (ends.sums.sum) {
        memset(ends.sums.sum, 0, floats * sizeof(float));
        memset(ends.sums.product, 0, floats * sizeof(float));
    }
    if (lanes == LANES) {
        winograd_pass(y, x, weights, ends, blocks, conv, turned, scratch);
        return;
    }
    struct winograd w = winograd_lay(conv, true, turned ? CONV_BACK_INPUT : CONV_FORWARD, scratch);
    single_kernels(w.kernels, weights, conv, turned);
    single_pass(&w, y, x, w.kernels, ends, blocks);
}

static void winograd_forward(float *y, const float *x, const float *weights, const float *biases,
                             bool relu, const struct conv_sums *sums, int blocks, int lanes,
                             const struct convolution *conv, float *scratch) {
    struct winograd_ends ends = {.biases = biases, .relu = relu};
    if (sums)
        ends.sums = *sums;
    winograd_any(y, x, weights, ends, blocks, lanes, conv, false, scratch);
}

static struct winograd_ends ends_of_gradients(const struct conv_ends *errors) {
    const struct conv_sums *sums = errors->sums;
    struct winograd_ends ends = {.more = errors->more, .passed = errors->relu};
    if (sums)
        ends.sums =
            (struct conv_sums){.sum = sums->sum, .product = sums->product, .other = sums->other};
    return ends;
}

// Its outputs know no upper bound of a relu: where there is one, the ends come later.
static void winograd_back_input(float *dx, const float *dy, const float *weights,
                                const struct conv_ends *errors, int blocks, int lanes,
                                const struct convolution *conv, float *scratch) {
    const struct window *v = &conv->window;
    struct convolution turned = conv_turned(conv);
    bool later = errors->relu && errors->most < INFINITY;
    struct winograd_ends none = {.more = NULL};
    winograd_any(dx, dy, weights, later ? none : ends_of_gradients(errors), blocks, lanes, &turned,
                 true, scratch);
    if (later)
        end_errors(dx, errors, (size_t)blocks * (size_t)(v->h * v->w), (size_t)(v->c * lanes));
}

static void winograd_back_weights(float *dweights, float *dbiases, const float *dy, const float *x,
                                  int blocks, int lanes, const struct convolution *conv,
                                  float *scratch) {
    (lanes == LANES ? FAMILY(winograd_gradient) : FAMILY(winograd_single_gradient))(
        dweights, dbiases, dy, x, blocks, conv, scratch);
}

static bool winograd_here(enum conv_pass pass, const struct convolution *conv, int blocks,
                          int lanes) {
    return winograd_fits(conv, blocks, lanes, LANES, pass);
}

const struct winograd_kernels FAMILY(winograd) = {
    .fits = winograd_here,
    .passes = {winograd_forward, winograd_back_input, winograd_back_weights},
};

#endif
