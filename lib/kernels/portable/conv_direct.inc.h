// Convolution without columns: neighbouring output pixels in the lanes of a
// vector, FAMILY_ROWS maps x 2 vectors as accumulators, one broadcast weight and
// one unaligned load from a padded copy of the picture for each tap. What a tap
// sees of a row of outputs lies in a row, so nothing is packed or gathered.
//
// A row of more than LANES/2 outputs takes its own vectors; shorter ones share a
// vector two by two. Where rows fill less than half of the lanes, columns are
// better (direct_fits).
//
// The family defines FAMILY_STORE(at, vector, first, count): stores lanes
// [first, first + count) and touches no other memory.
#ifndef ADAM_KERNELS_PORTABLE_CONV_DIRECT_INC_H
#define ADAM_KERNELS_PORTABLE_CONV_DIRECT_INC_H

#include <string.h>

#include "core/hogwild.h"
#include "kernels/conv.h"
#include "kernels/conv_sizes.h"
#include "kernels/portable/carve.inc.h"
#include "kernels/portable/conv_columns.inc.h"
#include "kernels/portable/lanes.inc.h"
#include "kernels/portable/patch.inc.h"

enum { HALF = LANES / 2 };

typedef float half_vector __attribute__((vector_size(2 * FAMILY_LANES), aligned(4), may_alias));

// Where one vector of outputs reads and writes: one run of outputs (wide), or
// two, of HALF lanes each (narrow). Offsets in floats, into the padded picture
// and into the plane of a map.
struct strip {
    int32_t in[2], out[2], count[2];
    int32_t unused[2];
};

// A convolution laid out for the direct way, in the caller's scratch.
struct direct {
    struct direct_sizes sizes;
    int32_t *offset;      // of each tap, from where an output's strip begins
    struct strip *strips; // an even number: the last may be empty
    float *picture;       // DIRECT_CHUNK padded pictures
    float *errors;        // DIRECT_CHUNK x maps x strips x LANES
    float *weights;       // of each tile of maps: taps x rows
};

static void lay_taps(struct direct *d, const struct convolution *conv) {
    const struct window *v = &conv->window;
    int32_t *offset = d->offset;
    for (int c = 0; c < v->c / conv->groups; c++)
        for (int ky = 0; ky < v->kernel_h; ky++)
            for (int kx = 0; kx < v->kernel_w; kx++)
                *offset++ = (int32_t)((size_t)c * d->sizes.plane) + ky * d->sizes.row +
                            kx % v->stride_w * d->sizes.columns + kx / v->stride_w;
}

static void lay_strips(struct direct *d, const struct window *v) {
    struct strip *strip = d->strips;
    int down = v->stride_h * d->sizes.row;
    if (d->sizes.narrow)
        for (int y = 0; y < v->out_h; y += 2) {
            int next = y + 1 < v->out_h ? y + 1 : y;
            *strip++ = (struct strip){.in = {y * down, next * down},
                                      .out = {y * v->out_w, next * v->out_w},
                                      .count = {v->out_w, next > y ? v->out_w : 0}};
        }
    else
        for (int y = 0; y < v->out_h; y++)
            for (int x = 0; x < v->out_w; x += LANES) {
                int count = v->out_w - x < LANES ? v->out_w - x : LANES;
                *strip++ = (struct strip){
                    .in = {y * down + x, 0}, .out = {y * v->out_w + x, 0}, .count = {count, 0}};
            }
    *strip = (struct strip){.in = {strip[-1].in[0], strip[-1].in[1]}}; // an empty one
}

static struct direct direct_lay(const struct convolution *conv, float **scratch) {
    struct direct d = {.sizes = direct_sizes(conv, LANES)};
    size_t strips = (size_t)d.sizes.strips;
    d.picture = carve(scratch, DIRECT_CHUNK * d.sizes.picture);
    d.offset = (int32_t *)(void *)carve(scratch, (size_t)d.sizes.taps);
    d.strips = (struct strip *)(void *)carve(scratch, 8 * (strips + 1));
    d.errors = carve(scratch, DIRECT_CHUNK * (size_t)conv->maps * strips * LANES);
    d.weights = carve(scratch, (size_t)conv->maps * (size_t)d.sizes.taps);
    lay_taps(&d, conv);
    lay_strips(&d, &conv->window);
    return d;
}

static void pad_row(float *to, const float *from, const struct window *v, int columns) {
    if (v->stride_w == 1)
        memcpy(to + v->pad_w, from, (size_t)v->w * sizeof *to);
    else
        for (int x = 0; x < v->w; x++) {
            int at = x + v->pad_w;
            to[at % v->stride_w * columns + at / v->stride_w] = from[x];
        }
}

static void pad_picture(float *to, const float *x, const struct direct *d, const struct window *v) {
    memset(to, 0, d->sizes.picture * sizeof *to);
    for (int c = 0; c < v->c; c++)
        for (int y = 0; y < v->h; y++, x += v->w)
            pad_row(to + (size_t)c * d->sizes.plane + (size_t)((y + v->pad_h) * d->sizes.row), x, v,
                    d->sizes.columns);
}

__attribute__((always_inline)) static inline vector load_strip(bool narrow, const float *first,
                                                               const float *second) {
    if (!narrow)
        return *(const vector *)first;
    half_vector low = *(const half_vector *)first, high = *(const half_vector *)second;
    return FAMILY_JOIN(low, high);
}

__attribute__((always_inline)) static inline void store_strip(float *y, const struct strip *strip,
                                                              vector value) {
    if (strip->count[0] == LANES)
        *(vector *)(y + strip->out[0]) = value;
    else
        FAMILY_STORE(y + strip->out[0], value, 0, strip->count[0]);
    if (strip->count[1])
        FAMILY_STORE(y + strip->out[1] - HALF, value, HALF, strip->count[1]);
}

// Two strips of `rows` maps.
__attribute__((always_inline)) static inline void
direct_tile(int rows, bool narrow, const struct direct *d, const float *picture,
            const struct strip *strip, const float *weights, float *y, size_t y_row) {
    const float *a0 = picture + strip[0].in[0], *a1 = picture + strip[0].in[1];
    const float *b0 = picture + strip[1].in[0], *b1 = picture + strip[1].in[1];
    const int32_t *offset = d->offset, *end = offset + d->sizes.taps;
    vector sum[ROWS][2] = {0};
    for (; offset < end; offset++, weights += rows) {
        ptrdiff_t o = *offset;
        vector left = load_strip(narrow, a0 + o, a1 + o);
        vector right = load_strip(narrow, b0 + o, b1 + o);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            sum[r][0] += weights[r] * left;
            sum[r][1] += weights[r] * right;
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        store_strip(y + (size_t)r * y_row, strip, sum[r][0]);
        store_strip(y + (size_t)r * y_row, strip + 1, sum[r][1]);
    }
}

typedef void direct_function(const struct direct *, const float *, const struct strip *,
                             const float *, float *, size_t);

#define DIRECT_TILE(n)                                                                             \
    static void wide_##n(const struct direct *d, const float *picture, const struct strip *strip,  \
                         const float *weights, float *y, size_t y_row) {                           \
        direct_tile(n < ROWS ? n : ROWS, false, d, picture, strip, weights, y, y_row);             \
    }                                                                                              \
    static void narrow_##n(const struct direct *d, const float *picture,                           \
                           const struct strip *strip, const float *weights, float *y,              \
                           size_t y_row) {                                                         \
        direct_tile(n < ROWS ? n : ROWS, true, d, picture, strip, weights, y, y_row);              \
    }
DIRECT_TILE(1)
DIRECT_TILE(2)
DIRECT_TILE(3)
DIRECT_TILE(4)
DIRECT_TILE(5)
DIRECT_TILE(6)
DIRECT_TILE(7)
DIRECT_TILE(8)
DIRECT_TILE(9)
DIRECT_TILE(10)
DIRECT_TILE(11)
DIRECT_TILE(12)
DIRECT_TILE(13)
DIRECT_TILE(14)
#undef DIRECT_TILE

static direct_function *const wide_tiles[] = {wide_1,  wide_2,  wide_3,  wide_4, wide_5,
                                              wide_6,  wide_7,  wide_8,  wide_9, wide_10,
                                              wide_11, wide_12, wide_13, wide_14};
static direct_function *const narrow_tiles[] = {
    narrow_1, narrow_2, narrow_3,  narrow_4,  narrow_5,  narrow_6,  narrow_7,
    narrow_8, narrow_9, narrow_10, narrow_11, narrow_12, narrow_13, narrow_14};

// Height of tile t of `count` that cover `maps` maps, the first m of them covered.
static int tile_rows(int maps, int m, int t, int count) {
    return (maps - m + count - t - 1) / (count - t);
}

static int tile_count(int maps) {
    return (maps + ROWS - 1) / ROWS;
}

// The weights of each tile of maps side by side, tap by tap: one stream to read,
// and one pointer to keep (a pointer a map would not fit the registers). The
// only place where shared weights are read.
HOGWILD static void pack_weights(const struct direct *d, const float *weights,
                                 const struct convolution *conv) {
    int maps = conv->maps / conv->groups, count = tile_count(maps);
    size_t taps = (size_t)d->sizes.taps;
    float *to = d->weights;
    for (int g = 0; g < conv->groups; g++, weights += (size_t)maps * taps)
        for (int t = 0, m = 0; t < count; t++) {
            int rows = tile_rows(maps, m, t, count);
            for (size_t tap = 0; tap < taps; tap++)
                for (int r = 0; r < rows; r++)
                    *to++ = weights[(size_t)(m + r) * taps + tap];
            m += rows;
        }
}

// One group of one padded picture: all maps over each pair of strips, so that the
// pixels stay in the L1 cache while the weights pass over them.
static void direct_group(const struct direct *d, const float *picture, int maps,
                         const float *weights, float *y, size_t y_row) {
    int count = tile_count(maps);
    direct_function *const *row_tiles = d->sizes.narrow ? narrow_tiles : wide_tiles;
    for (int s = 0; s < d->sizes.strips; s += 2)
        for (int t = 0, m = 0; t < count; t++) {
            int rows = tile_rows(maps, m, t, count);
            row_tiles[rows - 1](d, picture, d->strips + s,
                                weights + (size_t)m * (size_t)d->sizes.taps, y + (size_t)m * y_row,
                                y_row);
            m += rows;
        }
}

static void conv_direct_forward(float *y, const float *x, const float *weights, int n,
                                const struct convolution *conv, float *scratch) {
    const struct window *v = &conv->window;
    struct direct d = direct_lay(conv, &scratch);
    size_t pixels = window_out_pixels(v);
    int maps = conv->maps / conv->groups, channels = v->c / conv->groups;
    pack_weights(&d, weights, conv);
    for (int i = 0; i < n; i++, x += window_in(v)) {
        pad_picture(d.picture, x, &d, v);
        for (int g = 0; g < conv->groups; g++, y += (size_t)maps * pixels)
            direct_group(&d, d.picture + (size_t)(g * channels) * d.sizes.plane, maps,
                         d.weights + (size_t)(g * maps) * (size_t)d.sizes.taps, y, pixels);
    }
}

static void conv_direct(float *y, const float *x, const float *weights, int n,
                        const struct convolution *conv, float *scratch) {
    if (direct_fits(conv, LANES))
        conv_direct_forward(y, x, weights, n, conv, scratch);
    else
        conv_columns(y, x, weights, n, conv, scratch);
}

// turned[c][m][ky][kx] = weights[m][c][-ky][-kx], within each group.
HOGWILD static void turn_weights(float *turned, const float *weights,
                                 const struct convolution *conv) {
    int taps = conv->window.kernel_h * conv->window.kernel_w;
    int maps = conv->maps / conv->groups, channels = conv->window.c / conv->groups;
    for (int g = 0; g < conv->groups; g++, weights += maps * channels * taps)
        for (int c = 0; c < channels; c++)
            for (int m = 0; m < maps; m++)
                for (int t = 0; t < taps; t++)
                    *turned++ = weights[(m * channels + c) * taps + taps - 1 - t];
}

static bool direct_fits_back(const struct convolution *conv) {
    struct convolution turned = conv_turned(conv);
    return conv->window.stride_h == 1 && conv->window.stride_w == 1 && direct_fits(&turned, LANES);
}

static void conv_direct_back_input(float *dx, const float *dy, const float *weights, int n,
                                   const struct convolution *conv, float *scratch) {
    const struct window *v = &conv->window;
    struct convolution turned = conv_turned(conv);
    if (!direct_fits_back(conv)) {
        conv_columns_back_input(dx, dy, weights, n, conv, scratch);
        return;
    }
    size_t taps = (size_t)(v->c / conv->groups * v->kernel_h * v->kernel_w);
    float *kernels = carve(&scratch, (size_t)conv->maps * taps);
    turn_weights(kernels, weights, conv);
    conv_direct_forward(dx, dy, kernels, n, &turned, scratch);
}

// ---- The gradient of the weights: pixels in the lanes, summed over pictures and
// places before the lanes are added up. TILE_MAPS x TILE_TAPS = LANES sums, so
// that one transposition gives all of them.
enum { TILE_TAPS = 4, TILE_MAPS = LANES / TILE_TAPS };

// The error gradients of one picture in the order of the strips, zeros in the empty lanes.
static void lay_errors(float *to, const float *dy, const struct direct *d, int maps,
                       size_t pixels) {
    memset(to, 0, (size_t)maps * (size_t)d->sizes.strips * LANES * sizeof *to);
    for (int m = 0; m < maps; m++, dy += pixels)
        for (int s = 0; s < d->sizes.strips; s++, to += LANES) {
            const struct strip *strip = &d->strips[s];
            for (int i = 0; i < strip->count[0]; i++)
                to[i] = dy[strip->out[0] + i];
            for (int i = 0; i < strip->count[1]; i++)
                to[HALF + i] = dy[strip->out[1] + i];
        }
}

// Sums for TILE_MAPS maps (error[]) x TILE_TAPS taps (offset[]) over n pictures.
__attribute__((always_inline)) static inline vector
weights_tile(bool narrow, const struct direct *d, int n, const float *picture,
             const float *const error[TILE_MAPS], size_t error_step,
             const ptrdiff_t offset[TILE_TAPS]) {
    vector sum[LANES] = {0};
    for (int i = 0; i < n; i++, picture += d->sizes.picture)
        for (int s = 0; s < d->sizes.strips; s++) {
            const float *first = picture + d->strips[s].in[0];
            const float *second = picture + d->strips[s].in[1];
            size_t at = (size_t)i * error_step + (size_t)s * LANES;
            vector x[TILE_TAPS];
#pragma GCC unroll 4
            for (int t = 0; t < TILE_TAPS; t++)
                x[t] = load_strip(narrow, first + offset[t], second + offset[t]);
#pragma GCC unroll 4
            for (int m = 0; m < TILE_MAPS; m++) {
                vector e = *(const vector *)(error[m] + at);
#pragma GCC unroll 4
                for (int t = 0; t < TILE_TAPS; t++)
                    sum[m * TILE_TAPS + t] += e * x[t];
            }
        }
    return lane_sums(sum);
}

static vector weights_wide(const struct direct *d, int n, const float *picture,
                           const float *const error[TILE_MAPS], size_t step,
                           const ptrdiff_t offset[TILE_TAPS]) {
    return weights_tile(false, d, n, picture, error, step, offset);
}

static vector weights_narrow(const struct direct *d, int n, const float *picture,
                             const float *const error[TILE_MAPS], size_t step,
                             const ptrdiff_t offset[TILE_TAPS]) {
    return weights_tile(true, d, n, picture, error, step, offset);
}

// One tile of the gradient, from map m and tap t on; what lies beyond the last
// map or tap is computed with the last one and thrown away.
static void weights_step(float *dweights, const struct direct *d, int n, const float *picture,
                         const float *errors, size_t error_step, int maps, int m, int t,
                         bool first) {
    const float *error[TILE_MAPS];
    ptrdiff_t offset[TILE_TAPS];
    int taps = d->sizes.taps;
    for (int i = 0; i < TILE_MAPS; i++)
        error[i] =
            errors + (size_t)(m + i < maps ? m + i : maps - 1) * (size_t)d->sizes.strips * LANES;
    for (int i = 0; i < TILE_TAPS; i++)
        offset[i] = d->offset[t + i < taps ? t + i : taps - 1];
    vector sums =
        (d->sizes.narrow ? weights_narrow : weights_wide)(d, n, picture, error, error_step, offset);
    for (int i = 0; i < LANES; i++) {
        int map = m + i / TILE_TAPS, tap = t + i % TILE_TAPS;
        if (map < maps && tap < taps) {
            float *at = dweights + (size_t)map * (size_t)taps + (size_t)tap;
            *at = (first ? 0 : *at) + sums[i];
        }
    }
}

// Pictures to sum over at once: as many as keep the error gradients of a tile of maps and
// what its taps see in the L1 cache.
static int weights_chunk(const struct direct *d) {
    int chunk = 64 / d->sizes.strips;
    return chunk < 1 ? 1 : chunk > DIRECT_CHUNK ? DIRECT_CHUNK : chunk;
}

static void conv_direct_back_weights(float *dweights, const float *dy, const float *x, int n,
                                     const struct convolution *conv, float *scratch) {
    const struct window *v = &conv->window;
    if (!direct_fits(conv, LANES)) {
        conv_columns_back_weights(dweights, dy, x, n, conv, scratch);
        return;
    }
    struct direct d = direct_lay(conv, &scratch);
    size_t pixels = window_out_pixels(v);
    size_t error_step = (size_t)conv->maps * (size_t)d.sizes.strips * LANES;
    int maps = conv->maps / conv->groups, channels = v->c / conv->groups;
    int chunk = weights_chunk(&d);
    for (int begin = 0; begin < n; begin += chunk) {
        int count = n - begin < chunk ? n - begin : chunk;
        for (int i = 0; i < count; i++) {
            pad_picture(d.picture + (size_t)i * d.sizes.picture,
                        x + (size_t)(begin + i) * window_in(v), &d, v);
            lay_errors(d.errors + (size_t)i * error_step,
                       dy + (size_t)(begin + i) * (size_t)conv->maps * pixels, &d, conv->maps,
                       pixels);
        }
        for (int g = 0; g < conv->groups; g++)
            for (int m = 0; m < maps; m += TILE_MAPS)
                for (int t = 0; t < d.sizes.taps; t += TILE_TAPS)
                    weights_step(dweights + (size_t)(g * maps) * (size_t)d.sizes.taps, &d, count,
                                 d.picture + (size_t)(g * channels) * d.sizes.plane,
                                 d.errors + (size_t)(g * maps) * (size_t)d.sizes.strips * LANES,
                                 error_step, maps, m, t, begin == 0);
    }
}

static const char *conv_direct_way(enum conv_pass pass, const struct convolution *conv, int lanes) {
    bool direct = pass == CONV_BACK_INPUT ? direct_fits_back(conv) : direct_fits(conv, LANES);
    if (lanes)
        return conv_depthwise(conv) ? "depthwise" : "blocks";
    return direct ? "direct" : conv_columns_way(pass, conv, lanes);
}

const struct conv_kernels FAMILY(conv) = {
    .forward = conv_direct,
    .back_input = conv_direct_back_input,
    .back_weights = conv_direct_back_weights,
    .patch = patch,
    .patch_add = patch_add,
    .way = conv_direct_way,
};

#endif
