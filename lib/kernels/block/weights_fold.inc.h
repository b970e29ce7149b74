// Vectors of sums to numbers: adds up the samples of each map and turns the maps out
// of the lanes. Both take the same rounds of shuffles, those of a transposition:
// rounds that bring samples of one map together add, the others exchange.
#ifndef ADAM_KERNELS_BLOCK_WEIGHTS_FOLD_INC_H
#define ADAM_KERNELS_BLOCK_WEIGHTS_FOLD_INC_H

#include "kernels/portable/lanes.inc.h"

__attribute__((always_inline)) static inline void gather_round(int lanes, vector *v, int s) {
    if (s < lanes)
        fold(v, s);
    else
        exchange(v, s);
}

// LANES vectors to the LANES sums of each map, in v[0], v[lanes], v[2 * lanes]...
__attribute__((always_inline)) static inline void gather_rounds(int lanes, vector *v) {
    gather_round(lanes, v, 1);
    gather_round(lanes, v, 2);
    if (LANES > 4)
        gather_round(lanes, v, 4);
    if (LANES > 8)
        gather_round(lanes, v, 8);
}

// Where the sums of one vector of maps go: `count` numbers of each map, maps
// `map_size` apart, written or added to what is there.
struct gathered {
    float *to;
    size_t map_size;
    int maps, count;
    bool add;
};

__attribute__((always_inline)) static inline void gather_store(float *to, vector sums, int count,
                                                               bool add) {
    if (add)
        sums += FAMILY_LOAD(to, 0, count);
    FAMILY_STORE(to, sums, 0, count);
}

// From vectors `step` floats apart.
__attribute__((always_inline)) static inline void gather(int lanes, struct gathered g,
                                                         const float *sums, size_t step) {
    for (; g.count > 0; g.count -= LANES, g.to += LANES, sums += LANES * step) {
        int count = g.count < LANES ? g.count : LANES;
        vector v[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            v[i] = i < count ? *(const vector *)(sums + (size_t)i * step) : (vector){0};
        gather_rounds(lanes, v);
#pragma GCC unroll 16
        for (int m = 0; m < LANES / lanes; m++)
            if (m < g.maps)
                gather_store(g.to + (size_t)m * g.map_size, v[m * lanes], count, g.add);
    }
}

typedef void gather_function(const struct gathered *, const float *, size_t);

#define GATHER(lanes)                                                                              \
    static void gather_##lanes(const struct gathered *g, const float *sums, size_t step) {         \
        gather(lanes, *g, sums, step);                                                             \
    }
GATHER(1)
GATHER(2)
GATHER(4)
#if FAMILY_LANES > 4
GATHER(8)
#endif
#if FAMILY_LANES > 8
GATHER(16)
#endif
#undef GATHER

// By the logarithm of lanes.
static gather_function *const gathers[] = {
    gather_1,  gather_2, gather_4,
#if FAMILY_LANES > 4
    gather_8,
#endif
#if FAMILY_LANES > 8
    gather_16,
#endif
};

#endif
