// The forward pass of a dense layer in fixed point, for weights that stay as they are over many
// passes, on processors that multiply bytes (VNNI: "vector neural network instructions"). After
// Vanhoucke, Senior and Mao (Improving the speed of neural networks on CPUs, 2011), who use single
// bytes; here numbers have 16 bits, in two bytes, and of the four products of bytes three are
// computed:
//   x = least + step q,   q = 256 high + low    a step for each sample
//   w = scale v,          v = 256 high + low    a scale for each unit; low bytes are signed
//   q v = 65536 high high + 256 (high low + low high) + (low low)
// One instruction adds four products to an exact sum of 32 bits; one of floats adds one. So 3
// instructions do the work of 4: a third more than the peak of floats, with half of the bytes for
// a weight, which is the limit for few samples. The sum of the products of low bytes is estimated:
// the mean of the sample's times the sum of the weights'.
//
// Error of an output, rms, as a share of the norm of its sample times that of its unit's weights:
// 1e-4 / sqrt(inputs) for normal numbers. It grows with the ratio of the largest value to the root
// mean square, of a sample and of a unit's weights; beyond CREST they are computed in floats, which
// bounds it by 7e-4 / sqrt(inputs).
//
// Tiles ask for weights ahead: those FIXED_DISTANCE on for a single tile, else those of the next
// units. Figures: tests/bench/results/dense.txt.
#ifndef ADAM_KERNELS_PORTABLE_DENSE_FIXED_INC_H
#define ADAM_KERNELS_PORTABLE_DENSE_FIXED_INC_H

#include "kernels/cuts.h"
#include "kernels/dense.h"
#include "kernels/portable/dense_fixed_weights.inc.h"

enum {
    FIXED_SUMS = 2 * FAMILY_FIXED_SAMPLES * FAMILY_FIXED_VECTORS, // in registers
    FIXED_SAMPLE_MOST = 255 * 256, // the largest value: its low byte is 0
    FIXED_DISTANCE = 2048,         // floats ahead: 8 KiB cover the latency of memory
};

// A sample: its step, and the means of its values, of its q, and of its low bytes. Its bytes are
// FIXED_PIECE high ones, then as many low ones.
struct fixed_sample {
    float step, mean, steps, low;
};

struct fixed_layer {
    float *y;
    const float *biases; // NULL: none
    const struct fixed_sample *samples;
    const uint8_t *bytes; // of the samples: `depth` twice
    int units, inputs, depth;
};

// --- samples --------------------------------------------------------------------------

// Finds the least value and the range. False: a value is not finite, or too large for the others
// (CREST).
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

// The bytes of a sample.
static struct fixed_sums fixed_bytes(uint8_t *to, const float *x, int inputs, float least,
                                     float inverse) {
    vector offset = (vector){0} + least;
    vector_int steps = {0}, lows = {0};
    for (int k = 0; k < fixed_depth(inputs); k += LANES) {
        int count = most_int(0, least_int(inputs - k, LANES));
        vector value = load_part(x + k, count) - load_part((const float *)&offset, count);
        vector_int q = __builtin_convertvector(value * inverse + 0.5f, vector_int);
        uint8_t *piece = to + k / FIXED_PIECE * 2 * FIXED_PIECE + k % FIXED_PIECE;
        FAMILY_NARROW(piece, q >> 8, LANES);
        FAMILY_NARROW(piece + FIXED_PIECE, q & 255, LANES);
        steps += q;
        lows += q & 255;
    }
    return fixed_sums(steps, lows);
}

static bool fixed_sample(struct fixed_sample *sample, uint8_t *bytes, const float *x, int inputs) {
    float least, range;
    if (!fixed_range(x, inputs, &least, &range))
        return false;
    float inverse = FIXED_SAMPLE_MOST / range;
    if (!isfinite(inverse)) // all values are equal
        inverse = range = 0;
    struct fixed_sums sums = fixed_bytes(bytes, x, inputs, least, inverse);
    sample->step = range / FIXED_SAMPLE_MOST;
    sample->steps = (float)sums.steps / (float)inputs;
    sample->mean = least + sample->step * sample->steps;
    sample->low = (float)sums.lows / (float)inputs;
    return true;
}

// --- products -------------------------------------------------------------------------

// Repeats 4 bytes in all lanes.
__attribute__((always_inline)) static inline vector_int fixed_repeat(const uint8_t *at) {
    int32_t four;
    memcpy(&four, at, sizeof four);
    return (vector_int){0} + four;
}

// The outputs of some units, from the sums of high x high and of high x low products. Rounding of
// the weights affects only the sample's deviation from its mean: the mean is multiplied by the
// exact sum of the weights.
__attribute__((always_inline)) static inline vector
fixed_output(const struct fixed_units *w, int at, const struct fixed_sample *sample,
             vector_int high, vector_int middle) {
    vector sum = __builtin_convertvector(high, vector) * 65536.0f +
                 __builtin_convertvector(middle, vector) * 256.0f -
                 *(const vector *)(w->steps + at) * sample->steps +
                 *(const vector *)(w->lows + at) * sample->low;
    return *(const vector *)(w->scale + at) * sample->step * sum +
           *(const vector *)(w->sum + at) * sample->mean;
}

// Weights that tiles ask for: so many lines every FIXED_PIECE inputs.
struct fixed_ahead {
    const float *at, *end;
    int lines;
};

// Chooses them between w and `end`: tiles that share weights ask for the weights of the next units,
// a single tile for its own, FIXED_DISTANCE further on.
static struct fixed_ahead fixed_ahead(const float *w, const float *end, int tiles, int inputs) {
    size_t block = fixed_block(inputs), left = (size_t)(end - w);
    size_t first = tiles > 1 ? block : FIXED_DISTANCE;
    first = first < left ? first : left;
    size_t last = first + block < left ? first + block : left;
    return (struct fixed_ahead){
        w + first, w + last,
        cuts((int)(block / LINE), tiles * (fixed_depth(inputs) / FIXED_PIECE))};
}

// FIXED_UNITS units from u on, of some samples from `at` on.
__attribute__((always_inline)) static inline void fixed_tile(int samples,
                                                             const struct fixed_layer *l,
                                                             const struct fixed_units *w, int at,
                                                             int u, struct fixed_ahead *ahead) {
    vector_int high[FAMILY_FIXED_SAMPLES][FAMILY_FIXED_VECTORS] = {0};
    vector_int middle[FAMILY_FIXED_SAMPLES][FAMILY_FIXED_VECTORS] = {0};
    vector_int more[FAMILY_FIXED_SAMPLES][FAMILY_FIXED_VECTORS] = {0};
    // Few sums are too few to hide the latency of additions: each is split in two.
    const bool apart = 3 * samples * FAMILY_FIXED_VECTORS <= FIXED_SUMS;
    size_t row = 2 * (size_t)l->depth;
    const uint8_t *x = l->bytes + (size_t)at * row;
    const int8_t *weights = w->bytes;
    for (int k = 0; k < l->depth; k += FIXED_PIECE, x += FIXED_PIECE) {
        for (int i = 0; i < ahead->lines && ahead->at < ahead->end; i++, ahead->at += LINE)
            __builtin_prefetch(ahead->at, 0, 2);
        for (int end = k + FIXED_PIECE, i = k; i < end; i += 4, x += 4) {
            vector_int upper[FAMILY_FIXED_VECTORS], lower[FAMILY_FIXED_VECTORS];
#pragma GCC unroll 4
            for (int v = 0; v < FAMILY_FIXED_VECTORS; v++, weights += 8 * LANES) {
                upper[v] = *(const vector_int *)(const void *)weights;
                lower[v] = *(const vector_int *)(const void *)(weights + 4 * LANES);
            }
#pragma GCC unroll 6
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
                    if (apart)
                        more[s][v] = FAMILY_DOT(more[s][v], bytes, upper[v]);
                    else
                        middle[s][v] = FAMILY_DOT(middle[s][v], bytes, upper[v]);
            }
        }
    }
#pragma GCC unroll 6
    for (int s = 0; s < samples; s++)
#pragma GCC unroll 4
        for (int v = 0; v < FAMILY_FIXED_VECTORS; v++) {
            int from = u + v * LANES, count = least_int(l->units - from, LANES);
            vector y = fixed_output(w, v * LANES, l->samples + at + s, high[s][v],
                                    middle[s][v] + more[s][v]);
            if (count > 0 && l->biases)
                y += load_part(l->biases + from, count);
            if (count > 0)
                store_part(l->y + (size_t)(at + s) * (size_t)l->units + from, y, count);
        }
}

typedef void fixed_function(const struct fixed_layer *, const struct fixed_units *, int, int,
                            struct fixed_ahead *);

#define FIXED(samples)                                                                             \
    static void fixed_##samples(const struct fixed_layer *l, const struct fixed_units *w, int at,  \
                                int u, struct fixed_ahead *ahead) {                                \
        fixed_tile(samples, l, w, at, u, ahead);                                                   \
    }
FIXED(1)
FIXED(2)
FIXED(3)
FIXED(4)
#if FAMILY_FIXED_SAMPLES > 4
FIXED(5)
FIXED(6)
#endif

// Indexed by the number of samples, less one.
static fixed_function *const fixed_functions[] = {
    fixed_1, fixed_2, fixed_3, fixed_4,
#if FAMILY_FIXED_SAMPLES > 4
    fixed_5, fixed_6,
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
    const float *end = kept + fixed_kept_size(n, units, inputs);
    for (int u = 0; u < units; u += FIXED_UNITS, kept += fixed_block(inputs)) {
        struct fixed_ahead ahead = fixed_ahead(kept, end, cuts(n, FAMILY_FIXED_SAMPLES), inputs);
        for (int i = 0, some; i < n; i += some) {
            some = least_int(n - i, FAMILY_FIXED_SAMPLES);
            fixed_functions[some - 1](&layer, (const void *)kept, i, u, &ahead);
        }
    }
    return true;
}

const struct dense_kept_kernels FAMILY(fixed) = {
    .size = fixed_kept_size,
    .keep = fixed_keep,
    .forward = fixed_by_kept,
    .way = "fixed",
};

#endif
