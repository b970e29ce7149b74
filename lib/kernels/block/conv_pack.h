// The weights of convolutions of blocks, packed in the order in which tiles read
// them: for each tap of a pixel, for each source channel, the maps of the tile side
// by side. A transposition, done in squares of LANES maps x LANES taps.
#ifndef ADAM_KERNELS_BLOCK_CONV_PACK_H
#define ADAM_KERNELS_BLOCK_CONV_PACK_H

#include "core/hogwild.h"
#include "kernels/portable/gemm.h"

// Up to LANES numbers side by side: a piece of each row of packed weights.
struct conv_packing {
    float *to;          // the piece of the first row
    size_t width;       // floats from row to row
    int count;          // numbers of the piece
    size_t map[LANES];  // floats from the first map to that of each number
    const int32_t *tap; // the place of each tap of the kernel
    int kernel;         // taps of the kernel
    int sources;        // rows of each tap
    const float *end;   // of all weights
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

// `taps` taps from `at` on: those of the kernel of one source channel, and so on.
HOGWILD static void pack_kernels(const struct conv_packing *p, const float *at, int source,
                                 int taps) {
    int tap = 0;
    for (int t = 0; t < taps; t += LANES) {
        int count = taps - t < LANES ? taps - t : LANES;
        vector v[LANES];
        load_kernels(v, p, at + t, count);
        transpose_vectors(v);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) {
            if (i >= count)
                break;
            size_t row = (size_t)p->tap[tap] * (size_t)p->sources + (size_t)source;
            FAMILY_STORE(p->to + row * p->width, v[i], 0, p->count);
            tap = tap + 1 < p->kernel ? tap + 1 : 0;
            source += tap == 0;
        }
    }
}

#endif
