// Error gradients and pictures packed tile by tile. Where they lie, pixels are whole pages
// apart: the lines of one tile fight for few places of the L1 cache, and no
// prefetcher follows them. So a chunk of pixels is copied, all of a task's tiles of a
// pixel at once.
#ifndef ADAM_KERNELS_BLOCK_WEIGHTS_PACK_INC_H
#define ADAM_KERNELS_BLOCK_WEIGHTS_PACK_INC_H

#include <string.h>

#include "kernels/conv_sizes.h"
#include "kernels/cuts.h"
#include "kernels/portable/lanes.inc.h"

// Tiles [begin, end) of the `pieces` that `whole` vectors are cut into.
struct tiling {
    int whole, pieces, begin, end;
};

struct interval {
    int begin, end;
};

static struct interval tiling_piece(const struct tiling *tiling, int i) {
    return (struct interval){cut(tiling->whole, tiling->pieces, i),
                             cut(tiling->whole, tiling->pieces, i + 1)};
}

enum { PACK_AHEAD = 1 << 11 }; // floats: what is packed soon is asked for

// One pixel, the one at `place` of `pixels` that the tiles hold; the last of its
// vectors has `last` lanes.
__attribute__((always_inline)) static inline void pack_pixel(float *to, const float *from,
                                                             const struct tiling *tiling, int size,
                                                             int more, size_t pixels, size_t place,
                                                             int last) {
    for (int i = tiling->begin; i < tiling->end; i++) {
        int count = size + (i < more), whole = count - (i + 1 == tiling->end);
        float *at = to + (size_t)count * place * LANES;
        for (int r = 0; r < whole; r++) {
            __builtin_prefetch(from + r * LANES + PACK_AHEAD);
            *(vector *)(at + r * LANES) = *(const vector *)(from + r * LANES);
        }
        if (whole < count)
            *(vector *)(at + whole * LANES) = FAMILY_LOAD(from + whole * LANES, 0, last);
        to += (size_t)count * pixels * LANES;
        from += count * LANES;
    }
}

// A rectangle of pixels.
static void pack_tiles(float *to, const float *from, size_t row, size_t pixel, int height,
                       int width, struct tiling tiling, int last) {
    int size = tiling.whole / tiling.pieces, more = tiling.whole % tiling.pieces;
    size_t pixels = (size_t)height * (size_t)width, place = 0;
    for (; height; height--, from += row)
        for (int x = 0; x < width; x++, place++)
            pack_pixel(to, from + (size_t)x * pixel, &tiling, size, more, pixels, place, last);
}

// `floats` of each pixel of a rectangle, zeros where it stands out of a picture of
// `columns` pixels a row; its first pixel is at (y, x).
static void pack_padded(float *to, const float *picture, size_t pixel, int columns, int y, int x,
                        int height, int width, size_t floats) {
    for (int end = y + height; y < end; y++)
        for (int at = x; at < x + width; at++, to += floats)
            if (at < 0 || at >= columns)
                memset(to, 0, floats * sizeof *to);
            else
                memcpy(to, picture + ((size_t)y * (size_t)columns + (size_t)at) * pixel,
                       floats * sizeof *to);
}

#endif
