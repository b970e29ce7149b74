// The weights of convolutions of blocks, packed in the order in which tiles read
// them: for each tap of a pixel, for each source channel, the maps of the tile side
// by side. A transposition, done in squares of LANES maps x LANES taps.
#ifndef ADAM_KERNELS_BLOCK_CONV_PACK_H
#define ADAM_KERNELS_BLOCK_CONV_PACK_H

#include "core/hogwild.h"
#include "kernels/portable/gemm.h"

struct conv_packing {
    const int32_t *place; // of each tap of the kernel among the packed taps
    int kernel;           // taps of the kernel
    int sources;          // channels that are summed over
    const float *end;     // of all weights
};

// Up to LANES maps, `stride` numbers apart, of the kernels of some source channels.
struct conv_kernels {
    const float *at;
    size_t stride;
    int maps;
    int source; // the first
    int taps;   // of all those channels
};

// One row of each map, from `from` on; the last map again for those that lack.
HOGWILD static void load_kernels(vector *v, const float *from, const struct conv_kernels *k,
                                 int count, const float *end) {
    bool whole = count == LANES || from + (size_t)(k->maps - 1) * k->stride + LANES <= end;
    for (int m = 0; m < LANES; m++) {
        const float *row = from + (size_t)(m < k->maps ? m : k->maps - 1) * k->stride;
        v[m] = whole ? *(const vector *)row : (vector)FAMILY_LOAD(row, 0, count);
    }
}

// Into rows of `width` numbers.
HOGWILD static void pack_kernels(float *to, size_t width, const struct conv_kernels *k,
                                 const struct conv_packing *p) {
    int tap = 0, source = k->source;
    for (int t = 0; t < k->taps; t += LANES) {
        int count = k->taps - t < LANES ? k->taps - t : LANES;
        vector v[LANES];
        load_kernels(v, k->at + t, k, count, p->end);
        transpose_vectors(v);
        for (int i = 0; i < count; i++) {
            float *row = to + ((size_t)p->place[tap] * (size_t)p->sources + (size_t)source) * width;
            if (k->maps == LANES)
                *(vector *)row = v[i];
            else
                FAMILY_STORE(row, v[i], 0, k->maps);
            if (++tap == p->kernel)
                tap = 0, source++;
        }
    }
}

#endif
