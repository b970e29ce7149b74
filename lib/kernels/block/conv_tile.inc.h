// The innermost sums of convolutions of blocks, of both passes and any number of
// lanes: `rows` vectors of maps x `pixels` in registers, over all taps.
//
// A vector holds LANES / lanes maps of `lanes` samples. So a weight is repeated
// over the samples, and a pixel's values over the maps. Neither needs a shuffle
// across 128 bits, which is slow (repeat.inc.h): weights are packed so that one within
// 128 bits gives each of up to four vectors from one load (conv_spread).
#ifndef ADAM_KERNELS_BLOCK_CONV_TILE_INC_H
#define ADAM_KERNELS_BLOCK_CONV_TILE_INC_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/block/conv_plan.inc.h"
#include "kernels/block/repeat.inc.h"

struct conv_maps {        // the maps of a tile
    const float *weights; // packed
    const float *begin;   // what sums begin with, or NULL: where they go
    size_t to;            // floats from a pixel's first map
    int last;             // lanes of the last vector that exist
    bool relu;
};

enum { SUMS = 32, MOST_ROWS = 14, MOST_PIXELS = 12 };

// The weights of the maps in vector r of a tile, each `lanes` times. A vector of
// packed weights holds those of `group` vectors of maps: vector e takes, from each
// four, the 4 / group from there on.
__attribute__((always_inline)) static inline vector conv_spread(int lanes, const float *weights,
                                                                int r) {
    if (lanes == LANES)
        return weights[r] - (vector){0};
    int group = conv_group(lanes), e = r % group;
    vector v = *(const vector *)(weights + r / group * LANES);
    if (lanes == 1)
        return v;
    places p;
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        p[i] = (i & ~3) + e * (4 / group) + i % 4 / group;
    return shuffle(v, v, p);
}

// The map whose weight lies at place i of the packed weights of a tap.
static inline int conv_packed_map(int lanes, int i) {
    if (lanes == LANES)
        return i;
    int group = conv_group(lanes), each = 4 / group, of_four = i % 4;
    int row = i / LANES * group + of_four / each;
    return (row * LANES + (i % LANES & ~3) + of_four % each * lanes) / lanes;
}

// One tap: the operand with fewer vectors waits in registers, the other streams.
__attribute__((always_inline)) static inline void conv_tap(int lanes, int rows, int pixels,
                                                           vector *sum, const float *const *from,
                                                           size_t at, const float *weights) {
    vector held[MOST_ROWS];
    if (rows <= pixels) {
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
            held[r] = conv_spread(lanes, weights, r);
#pragma GCC unroll 16
        for (int p = 0; p < pixels; p++) {
            vector x = repeat(lanes, from[p] + at);
#pragma GCC unroll 16
            for (int r = 0; r < rows; r++)
                sum[r * pixels + p] += held[r] * x;
        }
    } else {
#pragma GCC unroll 16
        for (int p = 0; p < pixels; p++)
            held[p] = repeat(lanes, from[p] + at);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            vector w = conv_spread(lanes, weights, r);
#pragma GCC unroll 16
            for (int p = 0; p < pixels; p++)
                sum[r * pixels + p] += w * held[p];
        }
    }
}

// Few sums would wait for one another: then several taps have sums of their own.
__attribute__((always_inline)) static inline int tile_depth(int sums) {
    return sums >= 8 ? 1 : sums >= 4 ? 2 : 4;
}

// What the sums begin with. Only the last vector may be one in part.
__attribute__((always_inline)) static inline void load_sums(int rows, int pixels, vector *sum,
                                                            const struct conv_pixel *pixel,
                                                            const struct conv_maps *maps) {
#pragma GCC unroll 16
    for (int p = 0; p < pixels; p++) {
        const float *at = maps->begin ? maps->begin : pixel[p].to + maps->to;
#pragma GCC unroll 16
        for (int r = 0; r < rows - 1; r++, at += LANES)
            sum[r * pixels + p] = *(const vector *)at;
        sum[(rows - 1) * pixels + p] = (vector)FAMILY_LOAD(at, 0, maps->last);
    }
}

// Results that nobody has read come from memory while they are summed up, not when they are stored.
__attribute__((always_inline)) static inline void ask_for_results(int rows, int pixels,
                                                                  const struct conv_pixel *pixel,
                                                                  const struct conv_maps *maps) {
#pragma GCC unroll 16
    for (int p = 0; p < pixels; p++)
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
            __builtin_prefetch(pixel[p].to + maps->to + r * LANES, 1);
}

__attribute__((always_inline)) static inline void store_sums(int rows, int pixels,
                                                             const vector *sum,
                                                             const struct conv_pixel *pixel,
                                                             const struct conv_maps *maps) {
    places cut = (places){0} - (int32_t)maps->relu;
#pragma GCC unroll 16
    for (int p = 0; p < pixels; p++) {
        float *to = pixel[p].to + maps->to;
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++, to += LANES) {
            vector y = sum[r * pixels + p];
            y = (vector)((places)y & ~((y < 0) & cut)); // what is no number stays none
            if (r < rows - 1 || maps->last == LANES)
                *(vector *)to = y;
            else
                FAMILY_STORE(to, y, 0, maps->last);
        }
    }
}

// The taps that follow each other in `run` floats of the sources.
__attribute__((always_inline)) static inline const float *
conv_run_taps(int lanes, int rows, int pixels, vector *sum, const float *const *from, size_t at,
              size_t run, const float *weights) {
    const int width = conv_width(lanes, LANES, rows), sums = rows * pixels,
              depth = tile_depth(sums);
    const size_t step = (size_t)(depth * lanes), end = at + run;
    for (; at + step <= end; at += step)
#pragma GCC unroll 16
        for (int d = 0; d < depth; d++, weights += width)
            conv_tap(lanes, rows, pixels, sum + d * sums, from, at + (size_t)(d * lanes), weights);
    for (; depth > 1 && at < end; at += (size_t)lanes, weights += width)
        conv_tap(lanes, rows, pixels, sum, from, at, weights);
    return weights;
}

__attribute__((always_inline)) static inline void conv_tile(int lanes, int rows, int pixels,
                                                            const struct conv_taps *taps,
                                                            const struct conv_pixel *pixel,
                                                            const struct conv_maps *maps) {
    const int sums = rows * pixels, depth = tile_depth(sums);
    const size_t width = (size_t)conv_width(lanes, LANES, rows);
    const float *from[MOST_PIXELS];
    vector sum[SUMS] = {0};
#pragma GCC unroll 16
    for (int p = 0; p < pixels; p++)
        from[p] = pixel[p].from;
    if (maps->begin)
        ask_for_results(rows, pixels, pixel, maps);
    load_sums(rows, pixels, sum, pixel, maps);
    const float *weights = maps->weights + taps->first * width + taps->first_row * CONV_SPACE;
    for (int row = 0; row < taps->rows; row++, weights += taps->skip * width + CONV_SPACE)
        for (int run = 0; run < taps->runs; run++, weights += taps->run_skip * width)
            weights = conv_run_taps(lanes, rows, pixels, sum, from,
                                    taps->from + (size_t)row * taps->row_step +
                                        (size_t)run * taps->run_step,
                                    taps->run, weights);
#pragma GCC unroll 16
    for (int d = 1; d < depth; d++)
#pragma GCC unroll 16
        for (int s = 0; s < sums; s++)
            sum[s] += sum[d * sums + s];
    store_sums(rows, pixels, sum, pixel, maps);
}

typedef void conv_tile_function(const struct conv_taps *, const struct conv_pixel *,
                                const struct conv_maps *);
typedef conv_tile_function *const conv_tile_shapes[MOST_ROWS][MOST_PIXELS];

// How many pixels fit the registers beside so many rows.
#if FAMILY_REGISTERS == 32
static const int most_pixels[] = {12, 12, 9, 6, 5, 4, 3, 3, 3, 2, 2, 2, 2, 2};
#else
static const int most_pixels[] = {12, 6, 3, 3, 2, 2}; // of 3 x 4, GCC spills some
#endif

// The tiles of so many lanes, by rows and pixels (conv_tiles.inc.h).
extern conv_tile_shapes FAMILY(conv_tiles_1), FAMILY(conv_tiles_2), FAMILY(conv_tiles_4);
#if FAMILY_LANES > 4
extern conv_tile_shapes FAMILY(conv_tiles_8);
#endif
#if FAMILY_LANES > 8
extern conv_tile_shapes FAMILY(conv_tiles_16);
#endif

#endif
