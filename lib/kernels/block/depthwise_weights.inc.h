// Weights of depthwise convolutions, channels x taps, as the kernels read them, taps x runs, in
// which each stands once for every lane of its channel; and their gradients from such runs.
#ifndef ADAM_KERNELS_BLOCK_DEPTHWISE_WEIGHTS_INC_H
#define ADAM_KERNELS_BLOCK_DEPTHWISE_WEIGHTS_INC_H

#include "core/hogwild.h"
#include "kernels/block/run.inc.h"
#include "kernels/cuts.h"

// `count` channels to their part of a run.
__attribute__((always_inline)) static inline void spread_channels(float *to, vector of, int count,
                                                                  int lanes) {
    if (lanes == 1) {
        store_part(to, of, count);
        return;
    }
    for (int c = 0; c < count; c++)
        for (int l = 0; l < lanes; l++)
            *to++ = of[c];
}

// The sums of `count` channels' lanes.
__attribute__((always_inline)) static inline vector sum_channels(const float *from, int count,
                                                                 int lanes) {
    vector of[LANES] = {{0}};
    if (lanes == 1)
        return load_part(from, count);
    if (lanes == LANES) {
        for (int c = 0; c < count; c++)
            of[c] = *(const vector *)(from + c * LANES);
        return lane_sums(of);
    }
    for (int c = 0; c < count; c++)
        for (int l = 0; l < lanes; l++)
            of[0][c] += *from++;
    return of[0];
}

// Some taps of some channels, at most LANES of each.
struct depthwise_square {
    size_t run;
    int all, taps, lanes; // of the layer
    int first, channels; // of all channels so many from `first` on; 0: it is behind the last square
    int t, some;         // and of their taps
};

static void size_square(struct depthwise_square *s) {
    s->channels = least_int(s->all - s->first, LANES);
    s->some = least_int(s->taps - s->t, LANES);
}

static struct depthwise_square first_square(int taps, int channels, int lanes) {
    struct depthwise_square s = {
        .run = (size_t)channels * (size_t)lanes, .all = channels, .taps = taps, .lanes = lanes};
    size_square(&s);
    return s;
}

static void next_square(struct depthwise_square *s) {
    s->t += LANES;
    if (s->t >= s->taps)
        s->t = 0, s->first += LANES;
    size_square(s);
}

// Its first tap among the weights, and in the runs.
static size_t square_in_weights(const struct depthwise_square *s) {
    return (size_t)s->first * (size_t)s->taps + (size_t)s->t;
}

static size_t square_in_runs(const struct depthwise_square *s) {
    return (size_t)s->t * s->run + (size_t)(s->first * s->lanes);
}

HOGWILD static void spread_square(float *to, const float *weights,
                                  const struct depthwise_square *s) {
    int some = s->some, taps = s->taps;
    vector v[LANES];
    weights += square_in_weights(s), to += square_in_runs(s);
#pragma GCC unroll 16
    for (int c = 0; c < LANES; c++)
        v[c] = c < s->channels ? load_part(weights + c * taps, some) : (vector){0};
    transpose_vectors(v);
    for (int i = 0; i < some; i++)
        spread_channels(to + (size_t)i * s->run, v[i], s->channels, s->lanes);
}

__attribute__((always_inline)) static inline void fold_square(float *dweights, const float *from,
                                                              const struct depthwise_square *s,
                                                              int channels, int lanes) {
    int some = s->some, taps = s->taps;
    vector v[LANES];
    dweights += square_in_weights(s), from += square_in_runs(s);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        v[i] = i < some ? sum_channels(from + (size_t)i * s->run, channels, lanes) : (vector){0};
    transpose_vectors(v);
#pragma GCC unroll 16
    for (int c = 0; c < LANES; c++)
        if (c < channels)
            store_part(dweights + c * taps, v[c], some);
}

// Squares of one lane that are full are compiled apart.
static void fold_any(float *dweights, const float *from, const struct depthwise_square *s) {
    if (s->lanes == 1 && s->channels == LANES)
        fold_square(dweights, from, s, LANES, 1);
    else
        fold_square(dweights, from, s, s->channels, s->lanes);
}

static void depthwise_spread_weights(float *to, const float *weights, int taps, int channels,
                                     int lanes) {
    struct depthwise_square s = first_square(taps, channels, lanes);
    for (; s.channels > 0; next_square(&s))
        spread_square(to, weights, &s);
}

// Adds up over the lanes.
static void depthwise_fold_weights(float *dweights, const float *from, int taps, int channels,
                                   int lanes) {
    struct depthwise_square s = first_square(taps, channels, lanes);
    for (; s.channels > 0; next_square(&s))
        fold_any(dweights, from, &s);
}

#endif
