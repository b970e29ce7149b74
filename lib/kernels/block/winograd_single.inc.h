// Winograd's minimal filtering (winograd.inc.h) of single samples, in blocks of one lane: maps are
// in the lanes. A vector is LANES channels of a pixel, or LANES maps.
//
//   chunk of tiles: data of all channels --> the points --> products, slice by slice --> outputs
//
// A product broadcasts the data of some tiles, and multiplies them by vectors of kernels.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_SINGLE_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_SINGLE_INC_H

#include "kernels/block/winograd.inc.h"

enum { FAR_KERNELS = 1 << 19 }; // floats that do not stay in the L2 cache

// The bundles behind those of maps from m on: of the next slice, when these are the last.
static const float *next_bundles(const struct tiles *tiles, const float *kernels, int slice,
                                 int m) {
    const struct winograd_sizes *s = &tiles->winograd->sizes;
    size_t bundle = (size_t)(s->points * s->points) * s->kernel_slice;
    bool last = m >= s->maps;
    if (last && slice + 1 >= tiles->high * tiles->wide)
        return kernels;
    return kernels + kernel_slice(tiles, slice + last) + (size_t)(last ? 0 : m) * bundle;
}

// Multiplies one slice of the tiles by its kernels, from `kernels` on. Kernels that are far away
// are asked for while those before them are read for the last time.
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
            bool ahead = s->kernels > FAR_KERNELS && t + rows >= tiles->count;
            product_function *product = FAMILY(products_tiles)[columns - 1][rows - 1];
            if (ahead)
                product = FAMILY(products_ahead)[columns - 1][rows - 1];
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
                .next = next_bundles(tiles, kernels, slice, m + columns),
            });
        }
    }
}

// The maps of w->sizes, by `kernels`, the first of them.
static void single_pass(const struct winograd *w, float *y, const float *x, const float *kernels,
                        struct winograd_ends ends, int blocks) {
    const struct winograd_sizes *s = &w->sizes;
    for (int p = 0; p < s->part_count; p++)
        for (struct tiles t = tiles_of(w, &s->parts[p]); tiles_next(&t, blocks);) {
            winograd_data(&t, x);
            for (int slice = 0; slice < t.high * t.wide; slice++)
                single_slice(&t, kernels, slice);
            winograd_outputs(&t, y, ends);
        }
}

// Transforms the weights as those of blocks, so that they lie as winograd_kernels() has them.
static void single_kernels(float *to, const float *weights, const struct convolution *conv,
                           bool turned) {
    const struct winograd w = {
        .sizes = winograd_sizes(conv, LANES, turned ? CONV_BACK_INPUT : CONV_FORWARD),
        .kernels = to};
    winograd_kernels(&w, weights, turned);
}

#endif
