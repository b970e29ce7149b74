// The vector registers of a family, with FAMILY_LANES floats each: transpositions and
// sums across them. Written with the compiler's vector types: one source for all
// families, and nothing that a HOGWILD function could not inline.
#ifndef ADAM_KERNELS_PORTABLE_LANES_INC_H
#define ADAM_KERNELS_PORTABLE_LANES_INC_H

#include <stddef.h>
#include <stdint.h>

enum {
    LANES = FAMILY_LANES,
    ROWS = FAMILY_ROWS, // x 2 vectors are as many sums as the registers hold
    LINE = 16,          // floats of a cache line
};

typedef float vector __attribute__((vector_size(4 * FAMILY_LANES), aligned(4), may_alias));
typedef int32_t places __attribute__((vector_size(4 * FAMILY_LANES)));

static inline int least_int(int a, int b) {
    return a < b ? a : b;
}

static inline int most_int(int a, int b) {
    return a > b ? a : b;
}

// The numbers of a and b, one behind the other, at these places.
__attribute__((always_inline)) static inline vector shuffle(vector a, vector b, places at) {
#ifdef __clang__ // has no shuffle by places that are not literals
    vector c;
    for (int i = 0; i < LANES; i++)
        c[i] = at[i] < LANES ? a[at[i]] : b[at[i] - LANES];
    return c;
#else
    return __builtin_shuffle(a, b, at);
#endif
}

// Places of the shuffles that exchange, in each square of 2s x 2s numbers, the
// upper right quarter with the lower left one: what becomes of the upper rows,
// and of the lower ones. With s a constant they are constants.
__attribute__((always_inline)) static inline places exchange_low(int s) {
    places p = {0};
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        p[i] = i & s ? i - s + LANES : i;
    return p;
}

__attribute__((always_inline)) static inline places exchange_high(int s) {
    places p = {0};
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        p[i] = i & s ? i + LANES : i + s;
    return p;
}

// One round of a transposition.
__attribute__((always_inline)) static inline void exchange(vector *v, int s) {
    places low = exchange_low(s), high = exchange_high(s);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        if (!(i & s)) {
            vector a = v[i], b = v[i + s];
            v[i] = shuffle(a, b, low);
            v[i + s] = shuffle(a, b, high);
        }
}

// LANES x LANES numbers: rows become columns.
__attribute__((always_inline)) static inline void transpose_vectors(vector *v) {
    exchange(v, 1);
    exchange(v, 2);
    if (LANES > 4)
        exchange(v, 4);
    if (LANES > 8)
        exchange(v, 8);
}

// Halves the vectors: after folding by 1, 2, 4... lane i of v[0] is the sum of the
// lanes of what v[i] was.
__attribute__((always_inline)) static inline void fold(vector *v, int s) {
    places low = exchange_low(s), high = exchange_high(s);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i += 2 * s)
        v[i] = shuffle(v[i], v[i + s], low) + shuffle(v[i], v[i + s], high);
}

__attribute__((always_inline)) static inline vector lane_sums(vector *v) {
    fold(v, 1);
    fold(v, 2);
    if (LANES > 4)
        fold(v, 4);
    if (LANES > 8)
        fold(v, 8);
    return v[0];
}

#endif
