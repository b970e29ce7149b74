// Forward passes of single samples, in blocks of one lane, by Winograd's minimal filtering
// (winograd.inc.h), with kernels that are at the points already: what prediction keeps of weights
// that do not change. Maps are in the lanes: a vector is LANES channels of a pixel, or LANES maps.
//
//   chunk of tiles: data of all channels --> the points --> products, slice by slice --> outputs
//
// A product broadcasts the data of some tiles, and multiplies them by vectors of kernels.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_KEPT_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_KEPT_INC_H

#include "kernels/block/winograd.inc.h"

static size_t winograd_kept_size(const struct convolution *conv) {
    return winograd_single_fits(conv, LANES) ? winograd_single_sizes(conv, LANES).kernels : 0;
}

static void winograd_keep(float *kept, const float *weights, const struct convolution *conv) {
    const struct winograd w = {.sizes = winograd_sizes(conv, LANES, CONV_FORWARD), .kernels = kept};
    winograd_kernels(&w, weights, false);
}

// Multiplies one slice of the tiles by its kernels, from `kernels` on.
static void single_slice(const struct tiles *tiles, const float *kernels, int slice) {
    const struct winograd *w = tiles->winograd;
    const struct winograd_sizes *s = &w->sizes;
    size_t bundle = (size_t)(s->points * s->points) * s->kernel_slice;
    size_t data_tile = (size_t)s->channels * LANES, value_tile = (size_t)s->maps * LANES;
    const float *data = w->data + (size_t)slice * s->data_slice;
    float *values = w->values + (size_t)slice * s->value_slice;
    for (int m = 0, columns; m < s->maps; m += columns) {
        columns = equal_part(s->maps - m, PRODUCT_COLUMNS);
        for (int t = 0, rows; t < tiles->count; t += rows) {
            rows = equal_part(tiles->count - t, PRODUCT_ROWS);
            product_function *product = FAMILY(products_tiles)[columns - 1][rows - 1];
            product(&(struct slice_product){
                .a = data + (size_t)t * data_tile,
                .a_row = data_tile,
                .b = kernels + kernel_slice(tiles, slice) + (size_t)m * bundle,
                .b_column = bundle,
                .outer = 1,
                .inner = s->channels * LANES,
                .to = values + (size_t)t * value_tile + (size_t)m * LANES,
                .to_row = value_tile,
                .to_column = LANES,
            });
        }
    }
}

static void winograd_kept_forward(float *y, const float *x, const float *kept, const float *biases,
                                  bool relu, int blocks, int first, int end,
                                  const struct convolution *conv, float *scratch) {
    struct winograd w = {.sizes = winograd_single_sizes(conv, LANES),
                         .single = true,
                         .window = &conv->window,
                         .channels = conv->window.c / LANES,
                         .maps = conv->maps / LANES};
    struct winograd_sizes *s = &w.sizes;
    size_t bundle = (size_t)(s->points * s->points) * s->kernel_slice;
    s->maps = (end - first) / LANES;
    w.data = scratch + s->data;
    w.values = scratch;
    for (int p = 0; p < s->part_count; p++)
        for (struct tiles t = tiles_of(&w, &s->parts[p]); tiles_next(&t, blocks);) {
            winograd_data(&t, x);
            for (int slice = 0; slice < t.high * t.wide; slice++)
                single_slice(&t, kept + (size_t)(first / LANES) * bundle, slice);
            winograd_outputs(&t, y + first, biases + first, relu, NULL);
        }
}

static int winograd_unit(const struct convolution *conv) {
    (void)conv;
    return LANES;
}

const struct conv_kept_kernels FAMILY(winograd_kept) = {
    .way = "winograd",
    .size = winograd_kept_size,
    .keep = winograd_keep,
    .unit = winograd_unit,
    .forward = winograd_kept_forward,
};

#endif
