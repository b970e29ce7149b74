// What is kept of the weights of a dense layer in fixed point (dense_fixed.inc.h): two bytes of
// each, as they are multiplied, and what is known of each unit.
#ifndef ADAM_KERNELS_PORTABLE_DENSE_FIXED_WEIGHTS_INC_H
#define ADAM_KERNELS_PORTABLE_DENSE_FIXED_WEIGHTS_INC_H

#include <math.h>
#include <string.h>

#include "kernels/block/run.inc.h"
#include "kernels/dense_sizes.h"

enum {
    FIXED_UNITS = FAMILY_FIXED_VECTORS * LANES, // units of a tile
    FIXED_PIECE = 16,                           // inputs whose high bytes lie together
    FIXED_WEIGHT_MOST = 127 * 256 + 127,        // the largest whose rounded high byte is signed
    CREST = 16, // largest value over the root mean square: a larger ratio leaves few bits
};

// FIXED_UNITS units. Bytes of 4 inputs for LANES units, the high ones and the low ones; those
// of all vectors; then the next 4 inputs.
struct fixed_units {
    float scale[FIXED_UNITS]; // of a step of the weights
    float sum[FIXED_UNITS];   // of the weights,
    float steps[FIXED_UNITS]; // of them in steps,
    float lows[FIXED_UNITS];  // and of their low bytes
    int8_t bytes[];
};

static int fixed_depth(int inputs) {
    return (inputs + FIXED_PIECE - 1) / FIXED_PIECE * FIXED_PIECE;
}

// Floats that struct fixed_units takes.
static size_t fixed_block(int inputs) {
    return FIXED_UNITS * (4 + (size_t)fixed_depth(inputs) / 2);
}

static size_t fixed_kept_size(int n, int units, int inputs) {
    size_t blocks = ((size_t)units + FIXED_UNITS - 1) / FIXED_UNITS;
    return n > 0 && fixed_pays(units, inputs) ? blocks * fixed_block(inputs) : 0;
}

// A unit's weights.
struct fixed_survey {
    float largest, sum, squares;
    int count; // of those that are not zero
};

static struct fixed_survey fixed_survey(const float *weights, int inputs) {
    vector high = {0}, low = {0}, sums = {0}, lost = {0}, squares = {0};
    vector_int counts = {0};
    struct fixed_survey survey = {0};
    for (int k = 0; k < inputs; k += LANES) {
        vector w = load_part(weights + k, least_int(inputs - k, LANES));
        high = FAMILY_LARGER(w, high);
        low = FAMILY_LARGER(-w, low);
        vector next = w - lost, sum = sums + next; // Kahan summation
        lost = (sum - sums) - next;
        sums = sum;
        squares += w * w;
        counts -= (vector_int)(w != 0);
    }
    for (int i = 0; i < LANES; i++) {
        survey.largest = fmaxf(survey.largest, fmaxf(high[i], low[i]));
        survey.sum += sums[i];
        survey.squares += squares[i];
        survey.count += counts[i];
    }
    return survey;
}

// Whether all weights are finite, and none is too large for the others (CREST).
static bool fixed_fits(const struct fixed_survey *s) {
    return isfinite(s->squares) &&
           s->largest * s->largest * (float)s->count <= CREST * CREST * s->squares;
}

// Sum of some numbers in steps, and sum of their low bytes.
struct fixed_sums {
    int steps, lows;
};

static struct fixed_sums fixed_sums(vector_int steps, vector_int lows) {
    struct fixed_sums sums = {0};
    for (int i = 0; i < LANES; i++)
        sums.steps += steps[i], sums.lows += lows[i];
    return sums;
}

// Writes the bytes of the next FIXED_PIECE weights of a unit, `count` of which exist. Bytes are
// unsigned while weights are split.
static struct fixed_sums fixed_split(uint8_t *high, uint8_t *low, const float *weights, int count,
                                     float inverse) {
    enum { OFFSET = 128 * 256 + 128 };
    vector_int steps = {0}, lows = {0};
    for (int k = 0; k < FIXED_PIECE; k += LANES) {
        vector v = load_part(weights + k, most_int(0, least_int(count - k, LANES))) * inverse;
        vector_int q = __builtin_convertvector(v + (OFFSET + 0.5f), vector_int);
        FAMILY_NARROW(high + k, ((q >> 8) - 128) & 255, LANES);
        FAMILY_NARROW(low + k, ((q & 255) - 128) & 255, LANES);
        steps += q - OFFSET;
        lows += (q & 255) - 128;
    }
    return fixed_sums(steps, lows);
}

// The weights of up to LANES units.
struct fixed_group {
    const float *weights; // rows, `inputs` apart
    int units, inputs;
    float inverse[LANES];          // of a step
    struct fixed_sums sums[LANES]; // so far
};

// Inputs from k on, FIXED_PIECE of them.
static void fixed_turn(int8_t *to, struct fixed_group *g, int k) {
    int32_t bytes[2][LANES][FIXED_PIECE / 4] = {0};
    for (int l = 0; l < g->units; l++) {
        struct fixed_sums sums = fixed_split((uint8_t *)bytes[0][l], (uint8_t *)bytes[1][l],
                                             g->weights + (size_t)l * (size_t)g->inputs + k,
                                             g->inputs - k, g->inverse[l]);
        g->sums[l].steps += sums.steps, g->sums[l].lows += sums.lows;
    }
    for (int i = 0; i < FIXED_PIECE / 4; i++, to += 8 * FIXED_UNITS) {
        vector_int high = {0}, low = {0};
        for (int l = 0; l < LANES; l++)
            high[l] = bytes[0][l][i], low[l] = bytes[1][l][i];
        *(vector_int *)(void *)to = high;
        *(vector_int *)(void *)(to + 4 * LANES) = low;
    }
}

// Writes a group to the units of `to` from `at` on. False: these weights do not suit.
static bool fixed_keep_group(struct fixed_units *to, int at, struct fixed_group *g) {
    int8_t *bytes = to->bytes + at * 8;
    for (int l = 0; l < g->units; l++) {
        struct fixed_survey survey =
            fixed_survey(g->weights + (size_t)l * (size_t)g->inputs, g->inputs);
        if (!fixed_fits(&survey))
            return false;
        g->inverse[l] = FIXED_WEIGHT_MOST / survey.largest;
        if (!isfinite(g->inverse[l])) // all zeros or nearly
            g->inverse[l] = 0;
        to->scale[at + l] = survey.largest / FIXED_WEIGHT_MOST;
        to->sum[at + l] = survey.sum;
    }
    for (int k = 0; k < g->inputs; k += FIXED_PIECE, bytes += 2 * FIXED_PIECE * FIXED_UNITS)
        fixed_turn(bytes, g, k);
    for (int l = 0; l < g->units; l++) {
        to->steps[at + l] = (float)g->sums[l].steps;
        to->lows[at + l] = (float)g->sums[l].lows;
    }
    return true;
}

static bool fixed_keep(float *kept, const float *weights, int units, int inputs) {
    size_t size = fixed_block(inputs);
    for (int u = 0; u < units; u += LANES) {
        struct fixed_units *to = (void *)(kept + (size_t)(u / FIXED_UNITS) * size);
        struct fixed_group group = {.weights = weights + (size_t)u * (size_t)inputs,
                                    .units = least_int(units - u, LANES),
                                    .inputs = inputs};
        if (u % FIXED_UNITS == 0 && units - u < FIXED_UNITS) // some are missing
            memset(to, 0, size * sizeof *kept);
        if (!fixed_keep_group(to, u % FIXED_UNITS, &group))
            return false;
    }
    return true;
}

#endif
