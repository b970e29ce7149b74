// Convolutions of blocks by Winograd's minimal filtering (Winograd, Arithmetic complexity of
// computations, 1980; Lavin and Gray, Fast algorithms for convolutional neural networks, 2016):
// conv_block and its adjoint for inputs, for square kernels of 3 and 5 at stride 1 with a sample
// in every lane, with 4 respectively 6.25 times fewer products. Gradient of the weights:
// winograd_gradient.inc.h.
//
//   kernels of a group --> the points, once ------------.
//                                                        v
//   chunk of tiles: data of all channels --> the points --> products, slice by slice --> outputs
//
// A slice is a pair of points, 36 for kernels of 3 and 64 for kernels of 5. Each lane is a
// sample, so no operation crosses lanes. Padding is zeros in the data.
//
// Rounding error of an output inside the picture, as a share of the sum of |w x|: at most 7e-7,
// rms 1.4e-7 (direct convolution: 2.5e-7, 0.28e-7). All outputs of a tile share its error: an
// output in a padded corner, whose own sum is small, may lose 1.5e-5 of it. Figures:
// tests/bench/results/convolutions.txt.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_INC_H

#include "kernels/block/conv_pack.inc.h"
#include "kernels/block/winograd_outputs.inc.h"
#include "kernels/conv.h"

enum {
    CHANNELS_AT_ONCE = 128, // the data of PRODUCT_COLUMNS tiles stay in the L1 cache
};

// Packs the kernels of up to LANES maps from m on and `count` channels from c on, at most
// KERNEL_CHANNELS: taps x channels x maps. `turned`: the weights are channels x maps, and taps
// are read in reverse.
HOGWILD static void winograd_taps(float *to, const struct winograd *w, const float *weights, int m,
                                  int c, int count, bool turned) {
    const struct winograd_sizes *s = &w->sizes;
    int side = s->points + 1 - WINOGRAD_TILE, taps = side * side;
    size_t row[TAPS_MOST + LANES];
    struct conv_packing p = {.to = to,
                             .width = LANES,
                             .count = s->maps - m < LANES ? s->maps - m : LANES,
                             .row = row,
                             .kernel = taps,
                             .end = weights + (size_t)(s->maps * s->channels * taps)};
    for (int i = 0; i < taps + LANES; i++) {
        int tap = turned ? taps - 1 - i % taps : i % taps;
        row[i] = (size_t)(tap * KERNEL_CHANNELS + i / taps) * LANES;
    }
    for (int i = 0; i < LANES; i++)
        p.map[i] = (size_t)((i < p.count ? i : p.count - 1) * (turned ? 1 : s->channels) * taps);
    if (!turned)
        pack_kernels(&p, weights + (size_t)((m * s->channels + c) * taps), 0, count * taps);
    else
        for (int i = 0; i < count; i++)
            pack_kernels(&p, weights + (size_t)(((c + i) * s->maps + m) * taps), i, taps);
}

INLINE void kernel_values(int k, float *to, size_t slice, const float *from, size_t tap) {
    struct side side = side_of(k, WINOGRAD_TILE);
    struct square line;
    value_columns(side, k, true, &line, from, (size_t)k * tap, tap, k);
    value_rows(side, k, true, to, slice, &line, side_points(side));
}

// Transforms all kernels of a group, from `weights` on, into w->kernels.
static void winograd_kernels(const struct winograd *w, const float *weights, bool turned) {
    const struct winograd_sizes *s = &w->sizes;
    ALIGNED float taps[TAPS_MOST * KERNEL_CHANNELS * LANES] = {0};
    int n = s->points;
    size_t slice = s->kernel_slice;
    float *to = w->kernels;
    for (int m = 0; m < s->maps; m += LANES, to += (size_t)(n * n) * slice)
        for (int c = 0; c < s->channels; c++) {
            int i = c % KERNEL_CHANNELS, left = s->channels - c;
            const float *from = taps + i * LANES;
            if (s->far)
                ask_to_write(n, n, to + c * LANES + AHEAD, (size_t)n * slice, slice);
            if (i == 0)
                winograd_taps(taps, w, weights, m, c,
                              left < KERNEL_CHANNELS ? left : KERNEL_CHANNELS, turned);
            if (n == 6)
                kernel_values(3, to + c * LANES, slice, from, KERNEL_CHANNELS * LANES);
            else
                kernel_values(5, to + c * LANES, slice, from, KERNEL_CHANNELS * LANES);
        }
}

// Multiplies one slice of the tiles by the kernels of all maps, over the channels [first, end).
static void winograd_slice(const struct tiles *tiles, int slice, int first, int end) {
    const struct winograd *w = tiles->winograd;
    const struct winograd_sizes *s = &w->sizes;
    size_t bundle = (size_t)(s->points * s->points) * s->kernel_slice;
    size_t data_tile = (size_t)s->channels * LANES, value_tile = (size_t)s->maps * LANES;
    const float *kernels = w->kernels + kernel_slice(tiles, slice) + (size_t)first * LANES;
    const float *data = w->data + (size_t)slice * s->data_slice + (size_t)first * LANES;
    float *values = w->values + (size_t)slice * s->value_slice;
    for (int t = 0, columns; t < tiles->count; t += columns) {
        columns = equal_part(tiles->count - t, PRODUCT_COLUMNS);
        for (int m = 0, rows; m < s->maps; m += rows) {
            int stop = (m / LANES + 1) * LANES < s->maps ? (m / LANES + 1) * LANES : s->maps;
            rows = equal_part(stop - m, PRODUCT_ROWS);
            product_function *product = FAMILY(products_maps)[columns - 1][rows - 1];
            product(&(struct slice_product){
                .a = kernels + (size_t)(m / LANES) * bundle + m % LANES,
                .b = data + (size_t)t * data_tile,
                .b_column = data_tile,
                .outer = 1,
                .inner = end - first,
                .to = values + (size_t)t * value_tile + (size_t)m * LANES,
                .to_column = value_tile,
                .add = first > 0,
                .next = kernels + (size_t)(stop / LANES) * bundle,
            });
        }
    }
}

static void winograd_products(const struct tiles *t) {
    int channels = t->winograd->sizes.channels;
    for (int slice = 0; slice < t->high * t->wide; slice++)
        for (int c = 0, step; c < channels; c += step) {
            step = equal_part(channels - c, CHANNELS_AT_ONCE);
            winograd_slice(t, slice, c, c + step);
        }
}

static void winograd_pass(float *y, const float *x, const float *weights, struct winograd_ends ends,
                          int blocks, const struct convolution *conv, bool turned, float *scratch) {
    struct winograd w = winograd_lay(conv, false, turned ? CONV_BACK_INPUT : CONV_FORWARD, scratch);
    const struct winograd_sizes *s = &w.sizes;
    int k = conv->window.kernel_h;
    for (int g = 0; g < conv->groups; g++) {
        winograd_kernels(&w, weights + (size_t)(g * s->maps) * (size_t)(s->channels * k * k),
                         turned);
        for (int p = 0; p < s->part_count; p++)
            for (struct tiles t = tiles_of(&w, &s->parts[p]); tiles_next(&t, blocks);) {
                winograd_data(&t, x + (size_t)(g * s->channels) * LANES);
                if (!s->few)
                    winograd_products(&t);
                size_t at = (size_t)(g * s->maps) * LANES;
                winograd_outputs(&t, y + at, ends_of(ends, (size_t)(g * s->maps)));
            }
    }
}

#endif
