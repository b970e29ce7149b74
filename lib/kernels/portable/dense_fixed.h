// The forward pass of a dense layer in fixed point, for weights that stay as they are over
// many passes, on processors that multiply bytes (VNNI: "vector neural network
// instructions"). Numbers have 16 bits, in two bytes, and of the four products of bytes
// three are taken:
//   x = least + step q,   q = 256 high + low    a sample has a step of its own
//   w = scale v,          v = 256 high + low    so has a unit; low bytes have a sign
//   q v = 65536 high high + 256 (high low + low high) + (low low)
// One instruction adds four products to a sum of 32 bits, in which nothing is lost; one of
// floats adds one. So 3 instructions do what 4 do: a third more than the peak of floats,
// at half of the bytes for a weight, which is what few samples wait for. The sum of the
// products of low bytes is taken for their mean times the sum of the weights' low bytes.
//
// What an output loses, rms, of the norm of its sample times that of its unit's weights: of
// 2560 inputs between 0 and 1 and weights of a normal distribution 5.3e-7, at most 2.7e-6;
// panels of floats 1.3e-8. It grows with the largest value of a sample, and of a unit's
// weights, to what others have: those where it is more than CREST_* times their root mean
// square go by floats, so that rms 1.3e-3 divided by the root of the number of inputs is
// never exceeded.
//
// Vanhoucke, Senior and Mao (Improving the speed of neural networks on CPUs, 2011) predict
// speech by single bytes.
//
// What was tried, in times the peak of floats, of 1.33 at most (512 samples of 2560 inputs,
// 8192 units; 256 of 2560 x 2560; one thread of a Zen 5, AVX-512): tiles of 4 samples x 3
// vectors 1.29, 1.26 (this); 6 x 2 1.25, 1.27; 5 x 2 1.28, 1.25; 12 x 1 1.16, 1.16. Samples
// in blocks of 240 or 120 1.21, 1.20; weights asked for ahead no more. With the compiler's
// own function for the instruction sums go to memory and back: 0.85.
#ifndef ADAM_KERNELS_PORTABLE_DENSE_FIXED_H
#define ADAM_KERNELS_PORTABLE_DENSE_FIXED_H

#include <math.h>
#include <string.h>

#include "kernels/block/run.h"
#include "kernels/dense_sizes.h"
#include "kernels/kernels.h"

enum {
    FIXED_UNITS = FAMILY_FIXED_VECTORS * LANES, // whose weights lie together
    FIXED_PIECE = 16,                           // inputs whose high bytes lie together
    FIXED_WEIGHT_MOST = 127 * 256 + 127,        // so that its high byte is at most 127
    FIXED_SAMPLE_MOST = 255 * 256,              // so that the largest has no low byte
    CREST = 16,
};

// FIXED_UNITS units. Bytes of 4 inputs for LANES units, the high ones and the low ones; those
// of all vectors; then the next 4 inputs.
struct fixed_units {
    float scale[FIXED_UNITS]; // of a step of the weights
    float sum[FIXED_UNITS];   // of the weights
    float low[FIXED_UNITS];   // the sum of their low bytes
    int8_t bytes[];
};

// A sample: what it is in, and the mean of its low bytes. Its bytes are FIXED_PIECE high ones,
// then as many low ones.
struct fixed_sample {
    float least, step, low;
};

struct fixed_layer {
    float *y;
    const float *biases; // NULL: none
    const struct fixed_sample *samples;
    const uint8_t *bytes; // of the samples: `depth` twice
    int units, inputs, depth;
};

static int fixed_depth(int inputs) {
    return (inputs + FIXED_PIECE - 1) / FIXED_PIECE * FIXED_PIECE;
}

// Floats that struct fixed_units takes.
static size_t fixed_block(int inputs) {
    return FIXED_UNITS * (3 + (size_t)fixed_depth(inputs) / 2);
}

static size_t fixed_kept_size(int n, int units, int inputs) {
    size_t blocks = ((size_t)units + FIXED_UNITS - 1) / FIXED_UNITS;
    return n > 0 && fixed_pays(units, inputs) ? blocks * fixed_block(inputs) : 0;
}

// --- weights --------------------------------------------------------------------------

// A unit's weights.
struct fixed_survey {
    float largest, sum, squares;
    int count; // of those that are not zero
};

static struct fixed_survey fixed_survey(const float *weights, int inputs) {
    vector high = {0}, low = {0}, sums = {0}, squares = {0};
    vector_int counts = {0};
    struct fixed_survey survey = {0};
    for (int k = 0; k < inputs; k += LANES) {
        vector w = load_part(weights + k, least_int(inputs - k, LANES));
        high = FAMILY_LARGER(w, high);
        low = FAMILY_LARGER(-w, low);
        sums += w;
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

// Whether all are numbers, and none is far larger than the others that are not zero.
static bool fixed_fits(const struct fixed_survey *s) {
    return isfinite(s->squares) &&
           s->largest * s->largest * (float)s->count <= CREST * CREST * s->squares;
}

// The two bytes of 4 weights, or as many as there are; returns the sum of the low ones.
static int fixed_put(int8_t *high, int8_t *low, const float *weights, int count, float inverse) {
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        float v = i < count ? weights[i] * inverse : 0;
        int whole = (int)(v + (v < 0 ? -0.5f : 0.5f)), upper = (whole + 128) >> 8;
        high[i] = (int8_t)upper;
        low[i] = (int8_t)(whole - 256 * upper);
        sum += low[i];
    }
    return sum;
}

static void fixed_unit(struct fixed_units *to, int at, const float *weights, int inputs,
                       const struct fixed_survey *survey) {
    float inverse = FIXED_WEIGHT_MOST / survey->largest;
    int8_t *bytes = to->bytes + at / LANES * 8 * LANES + at % LANES * 4;
    int lows = 0;
    if (!isfinite(inverse)) // all zeros, or next to it
        inverse = 0;
    for (int k = 0; k < fixed_depth(inputs); k += 4, bytes += 8 * FIXED_UNITS)
        lows += fixed_put(bytes, bytes + 4 * LANES, weights + k, inputs - k, inverse);
    to->scale[at] = survey->largest / FIXED_WEIGHT_MOST;
    to->sum[at] = survey->sum;
    to->low[at] = (float)lows;
}

static bool fixed_keep(float *kept, const float *weights, int units, int inputs) {
    size_t size = fixed_block(inputs);
    for (int u = 0; u < units; u++, weights += inputs) {
        struct fixed_units *to = (void *)(kept + (size_t)(u / FIXED_UNITS) * size);
        struct fixed_survey survey = fixed_survey(weights, inputs);
        if (!fixed_fits(&survey))
            return false;
        if (u % FIXED_UNITS == 0 && units - u < FIXED_UNITS) // some are missing
            memset(to, 0, size * sizeof *kept);
        fixed_unit(to, u % FIXED_UNITS, weights, inputs, &survey);
    }
    return true;
}

// --- samples --------------------------------------------------------------------------

// The least value and how far the largest is from it: whether both are numbers, and near
// enough to the others.
static bool fixed_range(const float *x, int inputs, float *least, float *range) {
    vector high = *(const vector *)x, low = high, squares = {0};
    for (int k = 0; k < inputs; k += LANES) {
        int count = least_int(inputs - k, LANES);
        vector whole = *(const vector *)(x + k + count - LANES), part = load_part(x + k, count);
        high = FAMILY_LARGER(whole, high);
        low = -FAMILY_LARGER(-whole, -low);
        squares += part * part;
    }
    float sum = 0, least_lane = low[0], largest = high[0];
    for (int i = 0; i < LANES; i++) {
        sum += squares[i];
        least_lane = fminf(least_lane, low[i]);
        largest = fmaxf(largest, high[i]);
    }
    *least = least_lane;
    *range = largest - least_lane;
    return *range * *range * (float)inputs <= CREST * CREST * sum && isfinite(sum);
}

// The bytes of a sample; returns the sum of the low ones.
static int fixed_bytes(uint8_t *to, const float *x, int inputs, float least, float inverse) {
    vector offset = (vector){0} + least;
    vector_int lows = {0};
    for (int k = 0; k < fixed_depth(inputs); k += LANES) {
        int count = k < inputs ? least_int(inputs - k, LANES) : 0;
        vector value = load_part(x + k, count) - load_part((const float *)&offset, count);
        vector_int q = __builtin_convertvector(value * inverse + 0.5f, vector_int);
        uint8_t *piece = to + k / FIXED_PIECE * 2 * FIXED_PIECE + k % FIXED_PIECE;
        FAMILY_NARROW(piece, q >> 8, LANES);
        FAMILY_NARROW(piece + FIXED_PIECE, q & 255, LANES);
        lows += q & 255;
    }
    int sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += lows[i];
    return sum;
}

static bool fixed_sample(struct fixed_sample *sample, uint8_t *bytes, const float *x, int inputs) {
    float least, range;
    if (!fixed_range(x, inputs, &least, &range))
        return false;
    float inverse = FIXED_SAMPLE_MOST / range;
    if (!isfinite(inverse)) // all alike
        inverse = range = 0;
    int lows = fixed_bytes(bytes, x, inputs, least, inverse);
    *sample = (struct fixed_sample){least, range / FIXED_SAMPLE_MOST, (float)lows / (float)inputs};
    return true;
}

// --- products -------------------------------------------------------------------------

// 4 bytes, in all lanes.
__attribute__((always_inline)) static inline vector_int fixed_repeat(const uint8_t *at) {
    int32_t four;
    memcpy(&four, at, sizeof four);
    return (vector_int){0} + four;
}

// The output of some units from the sums of the products of high bytes and of high with
// low ones.
__attribute__((always_inline)) static inline vector
fixed_output(const struct fixed_units *w, int at, const struct fixed_sample *sample,
             vector_int high, vector_int middle) {
    vector sum = __builtin_convertvector(high, vector) * 65536.0f +
                 __builtin_convertvector(middle, vector) * 256.0f +
                 *(const vector *)(w->low + at) * sample->low;
    return *(const vector *)(w->scale + at) * sample->step * sum +
           *(const vector *)(w->sum + at) * sample->least;
}

// FIXED_UNITS units from u on, of some samples from `at` on.
__attribute__((always_inline)) static inline void
fixed_tile(int samples, const struct fixed_layer *l, const struct fixed_units *w, int at, int u) {
    vector_int high[FAMILY_FIXED_SAMPLES][FAMILY_FIXED_VECTORS] = {0};
    vector_int middle[FAMILY_FIXED_SAMPLES][FAMILY_FIXED_VECTORS] = {0};
    size_t row = 2 * (size_t)l->depth;
    const uint8_t *x = l->bytes + (size_t)at * row;
    const int8_t *weights = w->bytes;
    for (int k = 0; k < l->depth; k += FIXED_PIECE, x += FIXED_PIECE)
        for (int end = k + FIXED_PIECE, i = k; i < end; i += 4, x += 4) {
            vector_int upper[FAMILY_FIXED_VECTORS], lower[FAMILY_FIXED_VECTORS];
#pragma GCC unroll 4
            for (int v = 0; v < FAMILY_FIXED_VECTORS; v++, weights += 8 * LANES) {
                upper[v] = *(const vector_int *)(const void *)weights;
                lower[v] = *(const vector_int *)(const void *)(weights + 4 * LANES);
            }
#pragma GCC unroll 4
            for (int s = 0; s < samples; s++) {
                vector_int bytes = fixed_repeat(x + (size_t)s * row);
#pragma GCC unroll 4
                for (int v = 0; v < FAMILY_FIXED_VECTORS; v++) {
                    high[s][v] = FAMILY_DOT(high[s][v], bytes, upper[v]);
                    middle[s][v] = FAMILY_DOT(middle[s][v], bytes, lower[v]);
                }
                bytes = fixed_repeat(x + (size_t)s * row + FIXED_PIECE);
#pragma GCC unroll 4
                for (int v = 0; v < FAMILY_FIXED_VECTORS; v++)
                    middle[s][v] = FAMILY_DOT(middle[s][v], bytes, upper[v]);
            }
        }
#pragma GCC unroll 4
    for (int s = 0; s < samples; s++)
#pragma GCC unroll 4
        for (int v = 0; v < FAMILY_FIXED_VECTORS; v++) {
            int from = u + v * LANES, count = least_int(l->units - from, LANES);
            vector y = fixed_output(w, v * LANES, l->samples + at + s, high[s][v], middle[s][v]);
            if (count > 0 && l->biases)
                y += load_part(l->biases + from, count);
            if (count > 0)
                store_part(l->y + (size_t)(at + s) * (size_t)l->units + from, y, count);
        }
}

typedef void fixed_function(const struct fixed_layer *, const struct fixed_units *, int, int);

#define FIXED(samples)                                                                             \
    static void fixed_##samples(const struct fixed_layer *l, const struct fixed_units *w, int at,  \
                                int u) {                                                           \
        fixed_tile(samples, l, w, at, u);                                                          \
    }
FIXED(1)
FIXED(2)
#if FAMILY_FIXED_SAMPLES > 2
FIXED(3)
FIXED(4)
#endif

// By the number of samples, less one.
static fixed_function *const fixed_functions[] = {
    fixed_1,
    fixed_2,
#if FAMILY_FIXED_SAMPLES > 2
    fixed_3,
    fixed_4,
#endif
};

static bool fixed_by_kept(float *y, const float *x, const float *weights, const float *kept,
                          const float *biases, int n, int units, int inputs, float *scratch) {
    struct fixed_sample *samples = (void *)scratch;
    uint8_t *bytes = (void *)(scratch + (size_t)n * sizeof *samples / sizeof *scratch);
    struct fixed_layer layer = {y, biases, samples, bytes, units, inputs, fixed_depth(inputs)};
    (void)weights;
    for (int i = 0; i < n; i++)
        if (!fixed_sample(&samples[i], bytes + 2 * (size_t)i * (size_t)layer.depth,
                          x + (size_t)i * (size_t)inputs, inputs))
            return false;
    for (int u = 0; u < units; u += FIXED_UNITS) {
        const struct fixed_units *w =
            (const void *)(kept + (size_t)(u / FIXED_UNITS) * fixed_block(inputs));
        for (int i = 0, some; i < n; i += some) {
            some = least_int(n - i, FAMILY_FIXED_SAMPLES);
            fixed_functions[some - 1](&layer, w, i, u);
        }
    }
    return true;
}

#endif
