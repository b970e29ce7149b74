// The weights of convolutions of blocks, packed in the order in which tiles read
// them: for each tap of a pixel, for each source channel, the maps of the tile side
// by side. A transposition, done in squares of LANES maps x LANES taps.
#ifndef ADAM_KERNELS_BLOCK_CONV_PACK_INC_H
#define ADAM_KERNELS_BLOCK_CONV_PACK_INC_H

#include "core/hogwild.h"
#include "kernels/portable/lanes.inc.h"

// Up to LANES numbers side by side: a piece of each row of packed weights.
struct conv_packing {
    float *to;         // the piece of the first row
    size_t width;      // floats from row to row, that is, from channel to channel
    int count;         // numbers of the piece
    size_t map[LANES]; // floats from the first map to that of each number
    // Floats from the first row to that of each tap of the kernel, and, LANES taps
    // further, to those of the next channels.
    const size_t *row;
    int kernel;       // taps of the kernel
    const float *end; // of all weights
};

// LANES taps of every map, or `count` of them where more would not all be weights.
HOGWILD static void load_kernels(vector *v, const struct conv_packing *p, const float *at,
                                 int count) {
    if (count == LANES || at + p->map[LANES - 1] + LANES <= p->end)
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            v[i] = *(const vector *)(at + p->map[i]);
    else
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            v[i] = (vector)FAMILY_LOAD(at + p->map[i], 0, count);
}

// `taps` taps from `at` on: those of the kernel of channel `source`, of the next one...
HOGWILD static void pack_kernels(const struct conv_packing *p, const float *at, int source,
                                 int taps) {
    float *to = p->to + (size_t)source * p->width;
    for (int t = 0, tap = 0; t < taps; t += LANES) {
        int count = taps - t < LANES ? taps - t : LANES;
        vector v[LANES];
        load_kernels(v, p, at + t, count);
        transpose_vectors(v);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) {
            if (i >= count)
                break;
            FAMILY_STORE(to + p->row[tap + i], v[i], 0, p->count);
        }
        for (tap += LANES; tap >= p->kernel; tap -= p->kernel)
            to += p->width;
    }
}

#endif
