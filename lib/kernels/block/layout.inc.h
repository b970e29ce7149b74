// Plain samples to blocks and back: the (map, sample) rows of a block, each
// `pixels` long, against its pixels, each c * lanes long. So every block is one
// transposition, done in squares of LANES x LANES; a last square that would stand
// out stands back over its neighbour instead, and what is smaller than a square
// is loaded and stored in part.
#ifndef ADAM_KERNELS_BLOCK_LAYOUT_INC_H
#define ADAM_KERNELS_BLOCK_LAYOUT_INC_H

#include <string.h>

#include <stdbool.h>

#include "kernels/block/run.inc.h"

// LANES rows of one block, from `first` on, with how many pixels of each can be
// read or written at once: none of a sample that does not exist.
struct strip_rows {
    size_t at[LANES]; // in floats, from the block's first sample
    int width[LANES];
    bool full; // all are LANES wide
};

static struct strip_rows strip_rows(int first, int rows, int present, int c, int pixels,
                                    int lanes) {
    struct strip_rows strip = {.full = rows >= LANES && pixels >= LANES};
    for (int j = 0; j < LANES && j < rows; j++) {
        int map = (first + j) / lanes, sample = (first + j) % lanes;
        if (sample >= present) {
            strip.full = false;
            continue;
        }
        strip.at[j] = ((size_t)sample * (size_t)c + (size_t)map) * (size_t)pixels;
        strip.width[j] = pixels < LANES ? pixels : LANES;
    }
    return strip;
}

// Where the square that covers `place` begins.
static int square_first(int place, int length) {
    return place + LANES <= length || length < LANES ? place : length - LANES;
}

// One square of a strip: up to LANES pixels, of `count` floats each in the block.
static void block_square(float *to, size_t pixel, int count, const float *from,
                         const struct strip_rows *strip, int width) {
    vector v[LANES];
    if (strip->full)
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++)
            v[j] = *(const vector *)(from + strip->at[j]);
    else
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++)
            v[j] = FAMILY_LOAD(from + strip->at[j], 0, strip->width[j]);
    transpose_vectors(v);
    if (count == LANES && width == LANES)
#pragma GCC unroll 16
        for (int p = 0; p < LANES; p++, to += pixel)
            *(vector *)to = v[p];
    else
        for (int p = 0; p < width; p++, to += pixel)
            FAMILY_STORE(to, v[p], 0, count);
}

static void unblock_square(float *to, const struct strip_rows *strip, const float *from,
                           size_t pixel, int count, int width) {
    vector v[LANES] = {0};
    if (count == LANES && width == LANES)
#pragma GCC unroll 16
        for (int p = 0; p < LANES; p++, from += pixel)
            v[p] = *(const vector *)from;
    else
        for (int p = 0; p < width; p++, from += pixel)
            v[p] = FAMILY_LOAD(from, 0, count);
    transpose_vectors(v);
    if (strip->full)
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++)
            *(vector *)(to + strip->at[j]) = v[j];
    else
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++)
            FAMILY_STORE(to + strip->at[j], v[j], 0, strip->width[j]);
}

enum { COLOURS = 3 };

// The places, in vector k of LANES pixels of three maps, of what the first two have, and then of
// what the third has.
__attribute__((always_inline)) static inline places colour_places(int k, bool third) {
    places p = {0};
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) {
        int pixel = (k * LANES + i) / COLOURS, map = (k * LANES + i) % COLOURS;
        p[i] = third ? (map == 2 ? LANES + pixel : i) : map % 2 * LANES + pixel;
    }
    return p;
}

// A sample of three maps, as pictures in colour are, of LANES pixels or more.
static void block_colours(float *to, const float *from, int pixels) {
    for (int p = 0; p < pixels; p += LANES) {
        int at = square_first(p, pixels);
        const float *map = from + at;
        vector a = *(const vector *)map, b = *(const vector *)(map + pixels),
               c = *(const vector *)(map + 2 * (size_t)pixels);
#pragma GCC unroll 3
        for (int k = 0; k < COLOURS; k++)
            *(vector *)(to + (size_t)at * COLOURS + k * LANES) =
                shuffle(shuffle(a, b, colour_places(k, false)), c, colour_places(k, true));
    }
}

static void block(float *blocks, const float *samples, int n, int c, int pixels, int lanes) {
    if (pixels == 1) // one map of c pixels lies the same way, and fills the squares
        pixels = c, c = 1;
    int rows = c * lanes;
    if (rows == 1) {
        memcpy(blocks, samples, (size_t)n * (size_t)pixels * sizeof *samples);
        return;
    }
    bool colours = c == COLOURS && lanes == 1 && pixels >= LANES;
    for (; n > 0; n -= lanes) {
        if (colours)
            block_colours(blocks, samples, pixels);
        for (int r = 0; r < rows && !colours; r += LANES) {
            int first = square_first(r, rows), count = rows < LANES ? rows : LANES;
            struct strip_rows strip = strip_rows(first, rows, n, c, pixels, lanes);
            for (int p = 0; p < pixels; p += LANES) {
                int at = square_first(p, pixels);
                block_square(blocks + (size_t)at * (size_t)rows + first, (size_t)rows, count,
                             samples + at, &strip, pixels < LANES ? pixels : LANES);
            }
        }
        blocks += (size_t)rows * (size_t)pixels;
        samples += (size_t)rows * (size_t)pixels;
    }
}

static void unblock(float *samples, const float *blocks, int n, int c, int pixels, int lanes) {
    if (pixels == 1) // one map of c pixels lies the same way, and fills the squares
        pixels = c, c = 1;
    int rows = c * lanes;
    if (rows == 1) {
        memcpy(samples, blocks, (size_t)n * (size_t)pixels * sizeof *samples);
        return;
    }
    for (; n > 0; n -= lanes) {
        for (int r = 0; r < rows; r += LANES) {
            int first = square_first(r, rows), count = rows < LANES ? rows : LANES;
            struct strip_rows strip = strip_rows(first, rows, n, c, pixels, lanes);
            for (int p = 0; p < pixels; p += LANES) {
                int at = square_first(p, pixels);
                unblock_square(samples + at, &strip, blocks + (size_t)at * (size_t)rows + first,
                               (size_t)rows, count, pixels < LANES ? pixels : LANES);
            }
        }
        blocks += (size_t)rows * (size_t)pixels;
        samples += (size_t)rows * (size_t)pixels;
    }
}

#endif
