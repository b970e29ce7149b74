// The gradient of the weights by Winograd's minimal filtering (winograd.inc.h): the adjoint
// conv_block_kernels, with as many products fewer. At the points it is error gradients times
// data, summed over tiles and samples; the sums go back to the taps once a group.
//
// Error gradients lie with maps in the lanes, slices x bundles x tiles x samples x LANES maps, and
// a value of the data is broadcast. So no sum is folded across lanes.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_GRADIENT_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_GRADIENT_INC_H

#include <string.h>

#include "kernels/block/winograd_tiles.inc.h"

// Transposes the error gradients of up to LANES maps at one pixel: writes a vector of maps for each
// sample, `step` floats from one to the next. Returns their sum over the samples.
static vector winograd_turn(float *to, int step, const float *from, int maps) {
    vector v[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        v[i] = i < maps ? *(const vector *)(from + i * LANES) : (vector){0};
    transpose_vectors(v);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        *(vector *)(to + i * step) = v[i];
#pragma GCC unroll 4
    for (int half = LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < half; i++)
            v[i] += v[i + half];
    return v[0];
}

// Writes the error gradients of up to LANES maps of a tile, samples x pixels x maps, with zeros
// outside the picture. Returns their sum over pixels and samples: the tile's part of the biases'
// gradient.
static vector errors_squares(const struct tiles *t, float *squares, const float *from,
                             struct tile_position p, int maps) {
    const struct winograd *w = t->winograd;
    const struct window *v = w->window;
    vector sum = {0};
    for (int i = 0; i < TILE_PIXELS; i++) {
        int down = i / WINOGRAD_TILE, right = i % WINOGRAD_TILE, y = p.y + down, x = p.x + right;
        if (down >= t->part->high || right >= t->part->wide)
            continue;
        if (y < v->out_h && x < v->out_w)
            sum +=
                winograd_turn(squares + i * LANES, TILE_PIXELS * LANES,
                              from + (p.block * window_out_pixels(v) + (size_t)(y * v->out_w + x)) *
                                         (size_t)w->maps * LANES,
                              maps);
        else
            for (int l = 0; l < LANES; l++)
                *(vector *)(squares + (l * TILE_PIXELS + i) * LANES) = (vector){0};
    }
    return sum;
}

// Transforms the squares of all samples to the points.
static void errors_tile(const struct tiles *t, float *to, const float *squares) {
    size_t slice = t->winograd->sizes.value_slice;
    struct square line;
    for (int l = 0; l < LANES; l++, to += LANES, squares += TILE_PIXELS * LANES) {
        if (t->winograd->sizes.far)
            ask_to_write(t->high, t->wide, to + AHEAD, (size_t)t->wide * slice, slice);
        if (t->square) {
            t->square->errors(to, slice, squares);
            continue;
        }
        t->down->error_columns(&line, squares, WINOGRAD_TILE * LANES, LANES, t->part->wide);
        t->across->error_rows(to, slice, &line, t->high);
    }
}

// Transforms the error gradients of the tiles of the maps [first, end) into w->values, and adds
// their sums to dbiases, unless nobody wants them.
static void winograd_errors(const struct tiles *t, const float *dy, float *dbiases, int first,
                            int end) {
    int chunk = t->winograd->sizes.chunk;
    ALIGNED float squares[LANES * TILE_PIXELS * LANES];
    for (int i = 0; i < t->count; i++)
        for (int m = first; m < end; m += LANES) {
            int maps = least(end - m, LANES);
            float *to = t->winograd->values + (size_t)((m - first) * chunk + i * LANES) * LANES;
            vector sum =
                errors_squares(t, squares, dy + (size_t)m * LANES, tile_position(t, i), maps);
            errors_tile(t, to, squares);
            if (dbiases)
                store_part(dbiases + m, load_part(dbiases + m, maps) + sum, maps);
        }
}

// Sums one slice of the gradient of the maps [first, end) over the tiles into w->kernels; `add`:
// on top of the sums there.
static void winograd_gradient_slice(const struct tiles *t, int slice, bool add, int first,
                                    int end) {
    const struct winograd *w = t->winograd;
    const struct winograd_sizes *s = &w->sizes;
    size_t bundle = (size_t)(s->points * s->points) * s->kernel_slice;
    size_t errors = (size_t)s->chunk * LANES * LANES;
    float *sums = w->kernels + (size_t)(first / LANES) * bundle + kernel_slice(t, slice);
    int bundles = divided_up(end - first, LANES);
    for (int b = 0, columns; b < bundles; b += columns) {
        columns = equal_part(bundles - b, PRODUCT_COLUMNS);
        for (int c = 0, rows; c < s->channels; c += rows) {
            rows = equal_part(s->channels - c, PRODUCT_ROWS);
            product_function *product = FAMILY(products_channels)[columns - 1][rows - 1];
            product(&(struct slice_product){
                .a = w->data + (size_t)slice * s->data_slice + (size_t)c * LANES,
                .a_skip = (size_t)s->channels * LANES,
                .b = w->values + (size_t)slice * s->value_slice + (size_t)b * errors,
                .b_column = errors,
                .outer = t->count,
                .inner = LANES,
                .to = sums + (size_t)b * bundle + (size_t)c * LANES,
                .to_column = bundle,
                .add = add,
            });
        }
    }
}

// Transforms one gradient from the points to k x k taps.
INLINE void taps_back(int k, vector *taps, const float *from, size_t slice) {
    struct side side = side_of(k, WINOGRAD_TILE);
    struct square line;
    int n = side_points(side);
    back_columns(side, k, true, &line, from, (size_t)n * slice, slice, n);
    back_rows(side, k, true, taps, k, &line, k);
}

// Turns `count` taps of up to LANES maps, a vector of maps each, into taps of each map, `map`
// floats from one to the next.
static void store_taps(float *to, size_t map, const float *taps, int count, int maps) {
    for (int t = 0; t < count; t += LANES) {
        int these = least(count - t, LANES);
        vector v[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            v[i] = i < these ? *(const vector *)(taps + (t + i) * LANES) : (vector){0};
        transpose_vectors(v);
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++)
            if (l < maps)
                store_part(to + (size_t)l * map + t, v[l], these);
    }
}

// Transforms the sums of a group, from `sums` on, into dweights. The sizes are those of blocks.
static void gradient_back(const struct winograd_sizes *s, float *dweights, const float *sums) {
    ALIGNED float kernels[TAPS_MOST * KERNEL_CHANNELS * LANES];
    int n = s->points, taps = (n + 1 - WINOGRAD_TILE) * (n + 1 - WINOGRAD_TILE);
    size_t slice = s->kernel_slice, map = (size_t)(s->channels * taps);
    for (int m = 0; m < s->maps; m += LANES, sums += (size_t)(n * n) * slice)
        for (int c = 0, count; c < s->channels; c += count) {
            count = least(s->channels - c, KERNEL_CHANNELS);
            for (int i = 0; i < count; i++) {
                const float *from = sums + (c + i) * LANES;
                vector *kernel = (vector *)(void *)(kernels + i * taps * LANES);
                if (s->far)
                    ask_to_read(n, n, from + AHEAD, (size_t)n * slice, slice);
                if (n == 6)
                    taps_back(3, kernel, from, slice);
                else
                    taps_back(5, kernel, from, slice);
            }
            store_taps(dweights + (size_t)m * map + (size_t)(c * taps), map, kernels, count * taps,
                       least(s->maps - m, LANES));
        }
}

// Adds a chunk of tiles, whose data are at the points, to all sums: a share of the maps at a time,
// so that its error gradients stay in the cache.
static void winograd_chunk_sums(const struct tiles *t, float *dbiases, const float *dy, bool add) {
    const struct winograd_sizes *s = &t->winograd->sizes;
    for (int m = 0, end; m < s->maps; m = end) {
        int bundles = equal_part(divided_up(s->maps - m, LANES), s->share / LANES);
        end = least(s->maps, m + bundles * LANES);
        winograd_errors(t, dy, dbiases, m, end);
        for (int slice = 0; slice < t->high * t->wide; slice++)
            winograd_gradient_slice(t, slice, add, m, end);
    }
}

// The first chunk writes the sums; if it lacks points, they are cleared before, and it adds to
// them.
static bool clear_if_points_lack(const struct winograd *w) {
    const struct winograd_part *first = w->sizes.parts;
    bool lack = first->high < WINOGRAD_TILE || first->wide < WINOGRAD_TILE;
    if (lack)
        memset(w->kernels, 0, w->sizes.kernels * sizeof *w->kernels);
    return lack;
}

// Sums a group over all tiles.
static void winograd_sums(const struct winograd *w, float *dbiases, const float *dy, const float *x,
                          int blocks) {
    const struct winograd_sizes *s = &w->sizes;
    bool add = clear_if_points_lack(w);
    for (int p = 0; p < s->part_count; p++)
        for (struct tiles t = tiles_of(w, &s->parts[p]); tiles_next(&t, blocks); add = true) {
            winograd_data(&t, x);
            winograd_chunk_sums(&t, dbiases, dy, add);
        }
}

void FAMILY(winograd_gradient)(float *dweights, float *dbiases, const float *dy, const float *x,
                               int blocks, const struct convolution *conv, float *scratch) {
    struct winograd w = winograd_lay(conv, false, CONV_BACK_WEIGHTS, scratch);
    const struct winograd_sizes *s = &w.sizes;
    int k = conv->window.kernel_h;
    if (dbiases)
        memset(dbiases, 0, (size_t)conv->maps * sizeof *dbiases);
    for (int g = 0; g < conv->groups; g++) {
        winograd_sums(&w, dbiases ? dbiases + g * s->maps : NULL,
                      dy + (size_t)(g * s->maps) * LANES, x + (size_t)(g * s->channels) * LANES,
                      blocks);
        gradient_back(s, dweights + (size_t)(g * s->maps) * (size_t)(s->channels * k * k),
                      w.kernels);
    }
}

#endif
