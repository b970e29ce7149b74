// Convolutions of blocks by Winograd's minimal filtering, for square kernels of 3
// and 5 at stride 1 with a sample in every lane: conv_block and its adjoints with
// 4 respectively 6.25 times fewer products (winograd_transform.h).
//
// A chunk of tiles at a time: transform the data of all channels, multiply, slice
// (pair of points) by slice, with the kernels transformed once, transform back.
// Each lane is a sample: no operation crosses lanes. In the gradient of the
// weights the maps lie in the lanes of the errors instead, and a value of the data
// is broadcast; so its sums need no folding. Padding is zeros in the data.
//
// Rounding errors, of normal numbers and of those after relu, 48 to 384 channels,
// in parts of the sum of |w x|: root mean square 0.5e-7 to 0.7e-7 with kernels of 3
// and 1.1e-7 to 1.4e-7 with 5, at most 5e-7 and 7e-7 within the picture; the direct
// way 0.28e-7, at most 2.5e-7. An output that sees little of the picture has
// the errors of its whole tile: up to 1.5e-5 of its own sum, in a corner of padding 4.
//
// What was learned (Zen 5, AVX-512, one thread of two busy ones; peak 265 GFLOP/s):
// - Forward, errors, gradient in useful GFLOP/s at 64 samples: 48 -> 128 maps of
//   27 x 27, kernel 5: 810, 740, 630 (direct 253, 240, 191); 256 -> 384 of 13 x 13,
//   kernel 3: 470, 430, 380 (249, 247, 168); 32 -> 32 of 16 x 16, kernel 5: 800, 780,
//   720 (259, 261, 185); 10 -> 20 of 14 x 14: 440, 420, 300 (259, 268, 203).
// - The transforms are bound by lines going through the L2 cache, 2 cycles each,
//   which asking for them ahead does not change. Local vectors that were not
//   aligned to cache lines, and loops unrolled until each of n x n vectors had an
//   address to keep, had each doubled their time.
// - Kernels of 5 as 2 x 2 outputs at the 6 points need 2.25 times the products and
//   transformed values, for a third of the error (0.33e-7).
// - The pairs 1 and 2 that most use with 6 points have twice the error (1.1e-7) of
//   2/3 and 3/2; 6 x 6 outputs of a kernel of 3 four times (2e-7).
// - What a chunk is made of, the kernels, and the lines of the picture that go by should fit the
//   L2 cache together: two processes with one L3 cache lose what they write there
//   (kernels/README.md). So products come into the place of data that were multiplied before,
//   and chunks are small. cifar10_full at 16 (32 -> 32 and 64 maps): both apart, 3 tiles,
//   to together, 3: forward 261 -> 247, 154 -> 148 us, back 542 -> 523, 331 -> 324; 2 tiles for
//   3 1% less with one process, 1 to 2% more with two (1.88 -> 1.92 times one). 4 tiles, which
//   are multiplied two by two, nothing; 1 tile forward takes 15 to 28% longer. 128 -> 48 maps,
//   kernel 5: 2 tiles for 6 and, of the gradient, 8: 598 -> 517, 944 -> 798 us.
// - But each chunk goes through all kernels, or reads and writes the sums of the gradient. Where
//   those lie in memory (6 to 21 MB in AlexNet), 6 tiles for 3 make the same with one thread and
//   1% more with two (1.88 -> 1.90 times one), 12 take 4 to 10% longer; 8 for 3 made all passes
//   back of these layers 4% faster in one process and 9% in two, 16 no more.
// - Small pictures whose data of all tiles stay in the L2 cache (8 x 8, 32 -> 64 maps), with 16
//   maps at a time, so that kernels, products, sums and errors of only those lie beside them:
//   forward the same, back 0 to 4% slower.
// - Of 3 channels, products that go straight into outputs, two maps at a time, for products that
//   are kept: 32 maps of 32 x 32 forward 300 -> 195 us.
// - Sums of biases in a pass of their own, map by map, took 2% of a step of cifar10_full.
// - Asking for lines of the outputs, or of the data of the next chunk, while slices are
//   multiplied: nothing in one process nor in two, though storing outputs is what takes longest
//   beside a second process on the same L3 cache (9 to 15% longer).
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_H

#include <string.h>

#include "core/hogwild.h"
#include "kernels/block/conv_pack.h"
#include "kernels/block/conv_plan.h"
#include "kernels/block/run.h"
#include "kernels/block/winograd_transform.h"
#include "kernels/conv_sizes.h"
#include "kernels/winograd_sizes.h"

enum {
    PRODUCT_ROWS = LANES / 2,           // broadcasts
    PRODUCT_COLUMNS = WINOGRAD_COLUMNS, // vectors: 24 or 12 sums
    CHANNELS_AT_ONCE = 128,             // so that a tile's data stay in the L1 cache
    KERNEL_CHANNELS = 16,               // whose taps are whole squares of LANES
    TAPS_MOST = 25,
};

struct winograd {
    struct winograd_sizes sizes;
    const struct window *window;
    int channels, maps; // of the whole convolution
    float *kernels;     // of one group: bundles x slices x channels x LANES
    float *data;        // slices x tiles x channels x LANES
    // slices x tiles x maps x LANES, or of the errors below. Products of a slice lie where the
    // data of the slice before were: slice after slice, each of them over all channels.
    float *values;
};

static struct winograd winograd_lay(const struct convolution *conv, enum conv_pass pass,
                                    float *scratch) {
    struct winograd w = {winograd_sizes(conv, LANES, pass),
                         &conv->window,
                         conv->window.c,
                         conv->maps,
                         scratch,
                         NULL,
                         NULL};
    w.data = scratch + w.sizes.data;
    w.values = scratch + w.sizes.values;
    return w;
}

// ---- Tiles.

// A tile's block and its first output pixel.
struct place {
    size_t block;
    int y, x;
};

static struct place place_of(const struct winograd_sizes *s, int tile) {
    int all = s->across * s->down;
    return (struct place){(size_t)(tile / all), tile % all / s->across * WINOGRAD_TILE,
                          tile % s->across * WINOGRAD_TILE};
}

#define WINOGRAD_DATA(n)                                                                           \
    static void winograd_data_##n(float *to, size_t slice, const float *from, size_t row,          \
                                  size_t column, int channels) {                                   \
        for (int c = 0; c < channels; c++)                                                         \
            transform_data(n, to + c * LANES, slice, from + c * LANES, row, column);               \
    }
WINOGRAD_DATA(6)
WINOGRAD_DATA(8)
#undef WINOGRAD_DATA

typedef void winograd_data_function(float *, size_t, const float *, size_t, size_t, int);

// The data of a tile that reaches over the border: zeros there.
static void winograd_data_edge(winograd_data_function *transform, float *to, const float *picture,
                               int y, int x, const struct winograd *w) {
    const struct window *v = w->window;
    int n = w->sizes.points;
    ALIGNED vector square[POINTS_MOST * POINTS_MOST] = {0};
    int top = y < 0 ? -y : 0, left = x < 0 ? -x : 0;
    int bottom = v->h - y < n ? v->h - y : n, right = v->w - x < n ? v->w - x : n;
    for (int c = 0; c < w->sizes.channels; c++) {
        for (int i = top; i < bottom; i++)
            for (int j = left; j < right; j++)
                square[i * n + j] = *(const vector *)(picture + ((size_t)((y + i) * v->w + x + j) *
                                                                     (size_t)w->channels +
                                                                 (size_t)c) *
                                                                    LANES);
        transform(to + c * LANES, w->sizes.data_slice, (const float *)(const void *)square,
                  (size_t)n * LANES, LANES, 1);
    }
}

// The data of `count` tiles, of the channels from x on.
static void winograd_data(const struct winograd *w, const float *x, int first, int count) {
    const struct window *v = w->window;
    int n = w->sizes.points;
    winograd_data_function *transform = n == 6 ? winograd_data_6 : winograd_data_8;
    size_t pixel = (size_t)w->channels * LANES, row = (size_t)v->w * pixel;
    for (int t = 0; t < count; t++) {
        struct place p = place_of(&w->sizes, first + t);
        float *to = w->data + (size_t)(t * w->sizes.channels) * LANES;
        const float *picture = x + p.block * (size_t)v->h * row;
        int top = p.y - v->pad_h, left = p.x - v->pad_w;
        if (top >= 0 && left >= 0 && top + n <= v->h && left + n <= v->w)
            transform(to, w->sizes.data_slice, picture + (size_t)top * row + (size_t)left * pixel,
                      row, pixel, w->sizes.channels);
        else
            winograd_data_edge(transform, to, picture, top, left, w);
    }
}

// ---- Products: rows x columns vectors of sums over outer x inner places, of
// broadcast numbers a and vectors b.
struct slice_product {
    const float *a, *b;
    size_t a_skip, b_column;
    int outer, inner;
    float *to;
    size_t to_column;
    bool add;
    const float *next; // numbers to ask for meanwhile
};

INLINE void product_tile(int rows, int columns, size_t a_row, size_t a_step, int inner, bool ahead,
                         const struct slice_product *p) {
    vector sum[PRODUCT_ROWS][PRODUCT_COLUMNS];
#pragma GCC unroll 3
    for (int j = 0; j < columns; j++) {
        const float *to = p->to + (size_t)j * p->to_column;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum[r][j] = p->add ? *(const vector *)(to + r * LANES) : (vector){0};
    }
    const float *a = p->a, *b = p->b, *next = p->next;
    size_t a_skip = p->a_skip, b_column = p->b_column;
    for (int o = p->outer; o > 0; o--, a += a_skip)
        for (int l = 0; l < inner; l++, b += LANES) {
            vector right[PRODUCT_COLUMNS];
            if (ahead)
                __builtin_prefetch(next + (size_t)l * a_step);
#pragma GCC unroll 3
            for (int j = 0; j < columns; j++)
                right[j] = *(const vector *)(b + (size_t)j * b_column);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
                for (int j = 0; j < columns; j++)
                    sum[r][j] += a[(size_t)r * a_row + (size_t)l * a_step] * right[j];
        }
#pragma GCC unroll 3
    for (int j = 0; j < columns; j++) {
        float *to = p->to + (size_t)j * p->to_column;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            *(vector *)(to + r * LANES) = sum[r][j];
    }
}

typedef void product_function(const struct slice_product *);

// Maps x tiles: kernels are broadcast, summed over channels. Channels x bundles of
// maps: data are broadcast, summed over tiles and their lanes.
#define PRODUCT(rows, columns)                                                                     \
    static void product_maps_##rows##columns(const struct slice_product *p) {                      \
        product_tile(rows < PRODUCT_ROWS ? rows : PRODUCT_ROWS, columns, 1, LANES, p->inner, true, \
                     p);                                                                           \
    }                                                                                              \
    static void product_channels_##rows##columns(const struct slice_product *p) {                  \
        product_tile(rows < PRODUCT_ROWS ? rows : PRODUCT_ROWS, columns, LANES, 1, LANES, false,   \
                     p);                                                                           \
    }
#define PRODUCTS(columns)                                                                          \
    PRODUCT(1, columns)                                                                            \
    PRODUCT(2, columns)                                                                            \
    PRODUCT(3, columns)                                                                            \
    PRODUCT(4, columns)                                                                            \
    PRODUCT(5, columns)                                                                            \
    PRODUCT(6, columns)                                                                            \
    PRODUCT(7, columns)                                                                            \
    PRODUCT(8, columns)
PRODUCTS(1)
PRODUCTS(2)
PRODUCTS(3)
#undef PRODUCTS
#undef PRODUCT

#define ROW(of, columns)                                                                           \
    {                                                                                              \
        of##_1##columns, of##_2##columns, of##_3##columns, of##_4##columns, of##_5##columns,       \
            of##_6##columns, of##_7##columns, of##_8##columns                                      \
    }
static product_function *const products_maps[PRODUCT_COLUMNS][8] = {
    ROW(product_maps, 1), ROW(product_maps, 2), ROW(product_maps, 3)};
static product_function *const products_channels[PRODUCT_COLUMNS][8] = {
    ROW(product_channels, 1), ROW(product_channels, 2), ROW(product_channels, 3)};
#undef ROW

// The next part of what is left, in parts as equal as can be, of at most `most`.
static int winograd_part(int left, int most) {
    return divided_up(left, divided_up(left, most));
}

// ---- Forward.

// The kernels of up to LANES maps and KERNEL_CHANNELS channels, tap by tap. Of a
// turned convolution, maps are channels of the weights, and kernels are turned
// round.
HOGWILD static void winograd_taps(float *to, const struct winograd *w, const float *weights, int m,
                                  int c, int count, bool turned) {
    const struct winograd_sizes *s = &w->sizes;
    int side = s->points + 1 - WINOGRAD_TILE, taps = side * side;
    size_t row[TAPS_MOST + LANES];
    struct conv_packing p = {.to = to,
                             .width = LANES,
                             .count = s->maps - m < LANES ? s->maps - m : LANES,
                             .row = row,
                             .kernel = taps,
                             .end = weights + (size_t)(s->maps * s->channels * taps)};
    for (int i = 0; i < taps + LANES; i++) {
        int tap = turned ? taps - 1 - i % taps : i % taps;
        row[i] = (size_t)(tap * KERNEL_CHANNELS + i / taps) * LANES;
    }
    for (int i = 0; i < LANES; i++)
        p.map[i] = (size_t)((i < p.count ? i : p.count - 1) * (turned ? 1 : s->channels) * taps);
    if (!turned)
        pack_kernels(&p, weights + (size_t)((m * s->channels + c) * taps), 0, count * taps);
    else
        for (int i = 0; i < count; i++)
            pack_kernels(&p, weights + (size_t)(((c + i) * s->maps + m) * taps), i, taps);
}

// All kernels of a group, from `weights` on, at the points.
static void winograd_kernels(const struct winograd *w, const float *weights, bool turned) {
    const struct winograd_sizes *s = &w->sizes;
    ALIGNED float taps[TAPS_MOST * KERNEL_CHANNELS * LANES] = {0};
    int n = s->points;
    size_t slice = (size_t)s->channels * LANES;
    float *to = w->kernels;
    for (int m = 0; m < s->maps; m += LANES, to += (size_t)(n * n) * slice)
        for (int c = 0; c < s->channels; c++) {
            int i = c % KERNEL_CHANNELS, left = s->channels - c;
            const float *from = taps + i * LANES;
            if (i == 0)
                winograd_taps(taps, w, weights, m, c,
                              left < KERNEL_CHANNELS ? left : KERNEL_CHANNELS, turned);
            if (n == 6)
                transform_values(6, 3, true, to + c * LANES, slice, from, KERNEL_CHANNELS * LANES);
            else
                transform_values(8, 5, true, to + c * LANES, slice, from, KERNEL_CHANNELS * LANES);
        }
}

// One slice of the products of `count` tiles with all maps, over the channels
// [first, end).
static void winograd_slice(const struct winograd *w, int slice, int count, int first, int end) {
    const struct winograd_sizes *s = &w->sizes;
    size_t bundle = (size_t)(s->points * s->points * s->channels) * LANES;
    size_t data_tile = (size_t)s->channels * LANES, value_tile = (size_t)s->maps * LANES;
    const float *kernels = w->kernels + (size_t)(slice * s->channels + first) * LANES;
    const float *data = w->data + (size_t)slice * s->data_slice + (size_t)first * LANES;
    float *values = w->values + (size_t)slice * s->value_slice;
    for (int t = 0, columns; t < count; t += columns) {
        columns = winograd_part(count - t, PRODUCT_COLUMNS);
        for (int m = 0, rows; m < s->maps; m += rows) {
            int stop = (m / LANES + 1) * LANES < s->maps ? (m / LANES + 1) * LANES : s->maps;
            rows = winograd_part(stop - m, PRODUCT_ROWS);
            products_maps[columns - 1][rows - 1](&(struct slice_product){
                .a = kernels + (size_t)(m / LANES) * bundle + m % LANES,
                .b = data + (size_t)t * data_tile,
                .b_column = data_tile,
                .outer = 1,
                .inner = end - first,
                .to = values + (size_t)t * value_tile + (size_t)m * LANES,
                .to_column = value_tile,
                .add = first > 0,
                .next = kernels + (size_t)(stop / LANES) * bundle,
            });
        }
    }
}

// What surrounds the outputs of a tile.
struct output {
    float *to; // the first pixel
    size_t row, pixel;
    int rows, columns;   // that exist
    const float *biases; // NULL: none
    bool relu;
    const float
        *passed; // NULL, or outputs of a relu through which these errors go, at the same places
};

INLINE void store_output(struct output o, const vector *y, int m) {
    int rows = o.rows < WINOGRAD_TILE ? o.rows : WINOGRAD_TILE;
    bool masked = o.relu || o.passed;
    float bias = o.biases ? o.biases[m] : 0;
    vector zero = {0};
#pragma GCC unroll 1
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < WINOGRAD_TILE; j++)
            if (j < o.columns) {
                size_t at = (size_t)m * LANES + (size_t)i * o.row + (size_t)j * o.pixel;
                vector value = y[i * WINOGRAD_TILE + j] + bias;
                vector passed = o.passed ? *(const vector *)(o.passed + at) : value;
                *(vector *)(o.to + at) = masked ? (vector)((places)value & (passed > zero)) : value;
            }
}

INLINE void winograd_output(int n, struct output o, const float *from, size_t slice, int maps) {
    ALIGNED vector y[WINOGRAD_TILE * WINOGRAD_TILE];
    for (int m = 0; m < maps; m++, from += LANES) {
        transform_back(n, WINOGRAD_TILE, false, y, from, slice);
        store_output(o, y, m);
    }
}

HOGWILD static void winograd_output_6(struct output o, const float *from, size_t slice, int maps) {
    winograd_output(6, o, from, slice, maps);
}

HOGWILD static void winograd_output_8(struct output o, const float *from, size_t slice, int maps) {
    winograd_output(8, o, from, slice, maps);
}

// ---- Of few channels: a product takes less than to write and to read it. So products of a tile
// go straight into its outputs.
struct few {
    const float *data, *kernels; // of the tile; of a bundle of maps
    size_t data_slice;
};

// Maps m and, of two, m + 1.
INLINE void few_maps(int n, int channels, int count, struct output o, struct few f, int m) {
    ALIGNED vector y[WINOGRAD_TILE * WINOGRAD_TILE];
    struct square line[2];
#pragma GCC unroll 1
    for (int j = 0; j < n; j++) {
        vector column[2][POINTS_MOST] = {0};
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) {
            const float *data = f.data + (size_t)(i * n + j) * f.data_slice;
            const float *kernels = f.kernels + (size_t)((i * n + j) * channels) * LANES + m % LANES;
#pragma GCC unroll 4
            for (int c = 0; c < channels; c++)
#pragma GCC unroll 2
                for (int k = 0; k < count; k++)
                    column[k][i] += kernels[c * LANES + k] * *(const vector *)(data + c * LANES);
        }
#pragma GCC unroll 2
        for (int k = 0; k < count; k++)
            column_back(n, WINOGRAD_TILE, false, &line[k], column[k], j);
    }
#pragma GCC unroll 2
    for (int k = 0; k < count; k++) {
        rows_back(n, WINOGRAD_TILE, false, y, &line[k]);
        store_output(o, y, m + k);
    }
}

INLINE void few_outputs(int n, int channels, struct output o, struct few f, int maps) {
    size_t bundle = (size_t)(n * n * channels) * LANES;
    int m = 0;
    for (; m + 1 < maps; m += 2) {
        few_maps(n, channels, 2, o, f, m);
        if ((m + 2) % LANES == 0)
            f.kernels += bundle;
    }
    if (m < maps)
        few_maps(n, channels, 1, o, f, m);
}

typedef void few_function(struct output, struct few, int maps);

#define FEW(channels)                                                                              \
    HOGWILD static void few_6_##channels(struct output o, struct few f, int maps) {                \
        few_outputs(6, channels, o, f, maps);                                                      \
    }                                                                                              \
    HOGWILD static void few_8_##channels(struct output o, struct few f, int maps) {                \
        few_outputs(8, channels, o, f, maps);                                                      \
    }
FEW(1)
FEW(2)
FEW(3)
FEW(4)
#undef FEW

static few_function *const few_functions[2][WINOGRAD_FEW] = {{few_6_1, few_6_2, few_6_3, few_6_4},
                                                             {few_8_1, few_8_2, few_8_3, few_8_4}};

// ---- Outputs of some tiles.

static void winograd_outputs(const struct winograd *w, float *y, const float *biases, bool relu,
                             const float *passed, int first, int count) {
    const struct window *v = w->window;
    size_t pixel = (size_t)w->maps * LANES, row = (size_t)v->out_w * pixel;
    for (int t = 0; t < count; t++) {
        struct place p = place_of(&w->sizes, first + t);
        size_t at = (p.block * (size_t)v->out_h + (size_t)p.y) * row + (size_t)p.x * pixel;
        struct output o = {.to = y + at,
                           .row = row,
                           .pixel = pixel,
                           .rows = v->out_h - p.y,
                           .columns = v->out_w - p.x,
                           .biases = biases,
                           .relu = relu,
                           .passed = passed ? passed + at : NULL};
        if (w->sizes.few)
            few_functions[w->sizes.points == 8][w->sizes.channels - 1](
                o,
                (struct few){w->data + (size_t)(t * w->sizes.channels) * LANES, w->kernels,
                             w->sizes.data_slice},
                w->sizes.maps);
        else
            (w->sizes.points == 6 ? winograd_output_6 : winograd_output_8)(
                o, w->values + (size_t)(t * w->sizes.maps) * LANES, w->sizes.value_slice,
                w->sizes.maps);
    }
}

static void winograd_pass(float *y, const float *x, const float *weights, const float *biases,
                          bool relu, const float *passed, int blocks,
                          const struct convolution *conv, bool turned, float *scratch) {
    struct winograd w = winograd_lay(conv, turned ? CONV_BACK_INPUT : CONV_FORWARD, scratch);
    const struct winograd_sizes *s = &w.sizes;
    int k = conv->window.kernel_h, all = blocks * s->down * s->across;
    for (int g = 0; g < conv->groups; g++) {
        winograd_kernels(&w, weights + (size_t)(g * s->maps) * (size_t)(s->channels * k * k),
                         turned);
        for (int t = 0, count; t < all; t += count) {
            count = winograd_part(all - t, s->chunk);
            winograd_data(&w, x + (size_t)(g * s->channels) * LANES, t, count);
            for (int slice = 0; !s->few && slice < s->points * s->points; slice++)
                for (int c = 0, step; c < s->channels; c += step) {
                    step = winograd_part(s->channels - c, CHANNELS_AT_ONCE);
                    winograd_slice(&w, slice, count, c, c + step);
                }
            winograd_outputs(&w, y + (size_t)(g * s->maps) * LANES,
                             biases ? biases + g * s->maps : NULL, relu,
                             passed ? passed + (size_t)(g * s->maps) * LANES : NULL, t, count);
        }
    }
}

static void winograd_forward(float *y, const float *x, const float *weights, const float *biases,
                             bool relu, int blocks, int lanes, const struct convolution *conv,
                             float *scratch) {
    (void)lanes;
    winograd_pass(y, x, weights, biases, relu, NULL, blocks, conv, false, scratch);
}

static void winograd_back_input(float *dx, const float *dy, const float *weights, const float *relu,
                                int blocks, int lanes, const struct convolution *conv,
                                float *scratch) {
    (void)lanes;
    struct convolution turned = conv_turned(conv);
    winograd_pass(dx, dy, weights, NULL, false, relu, blocks, &turned, true, scratch);
}

// ---- The gradient of the weights. Errors lie as slices x bundles x tiles x
// samples x LANES maps.

// The errors of up to LANES maps at one pixel: for each sample (`step` floats
// from one to the next) a vector of maps. Gives their sum over the samples.
static vector winograd_turn(float *to, int step, const float *from, int maps) {
    vector v[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        v[i] = i < maps ? *(const vector *)(from + i * LANES) : (vector){0};
    transpose_vectors(v);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        *(vector *)(to + i * step) = v[i];
#pragma GCC unroll 4
    for (int half = LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < half; i++)
            v[i] += v[i + half];
    return v[0];
}

// Gives their sum over pixels and samples: what the tile adds to the gradient of the biases.
static vector winograd_errors_tile(const struct winograd *w, float *to, const float *from,
                                   struct place p, int maps) {
    enum { PIXELS = WINOGRAD_TILE * WINOGRAD_TILE };
    const struct window *v = w->window;
    ALIGNED float square[LANES * PIXELS * LANES];
    vector sum = {0};
    for (int i = 0; i < PIXELS; i++) {
        int y = p.y + i / WINOGRAD_TILE, x = p.x + i % WINOGRAD_TILE;
        if (y < v->out_h && x < v->out_w)
            sum +=
                winograd_turn(square + i * LANES, PIXELS * LANES,
                              from + (p.block * window_out_pixels(v) + (size_t)(y * v->out_w + x)) *
                                         (size_t)w->maps * LANES,
                              maps);
        else
            for (int l = 0; l < LANES; l++)
                *(vector *)(square + (l * PIXELS + i) * LANES) = (vector){0};
    }
    for (int l = 0; l < LANES; l++)
        if (w->sizes.points == 6)
            transform_values(6, WINOGRAD_TILE, false, to + l * LANES, w->sizes.value_slice,
                             square + l * PIXELS * LANES, LANES);
        else
            transform_values(8, WINOGRAD_TILE, false, to + l * LANES, w->sizes.value_slice,
                             square + l * PIXELS * LANES, LANES);
    return sum;
}

static void winograd_errors(const struct winograd *w, const float *dy, float *dbiases, int first,
                            int count) {
    const struct winograd_sizes *s = &w->sizes;
    for (int t = 0; t < count; t++)
        for (int m = 0; m < s->maps; m += LANES) {
            int maps = s->maps - m < LANES ? s->maps - m : LANES;
            vector sum =
                winograd_errors_tile(w, w->values + (size_t)(m * s->chunk + t * LANES) * LANES,
                                     dy + (size_t)m * LANES, place_of(s, first + t), maps);
            store_part(dbiases + m, load_part(dbiases + m, maps) + sum, maps);
        }
}

// One slice of the gradient of all kernels over `count` tiles.
static void winograd_gradient_slice(const struct winograd *w, int slice, int count, bool add) {
    const struct winograd_sizes *s = &w->sizes;
    size_t bundle = (size_t)(s->points * s->points * s->channels) * LANES;
    size_t errors = (size_t)s->chunk * LANES * LANES;
    int bundles = (s->maps + LANES - 1) / LANES;
    for (int b = 0, columns; b < bundles; b += columns) {
        columns = winograd_part(bundles - b, PRODUCT_COLUMNS);
        for (int c = 0, rows; c < s->channels; c += rows) {
            rows = winograd_part(s->channels - c, PRODUCT_ROWS);
            products_channels[columns - 1][rows - 1](&(struct slice_product){
                .a = w->data + (size_t)slice * s->data_slice + (size_t)c * LANES,
                .a_skip = (size_t)s->channels * LANES,
                .b = w->values + (size_t)slice * s->value_slice + (size_t)b * errors,
                .b_column = errors,
                .outer = count,
                .inner = LANES,
                .to = w->kernels + (size_t)b * bundle + (size_t)(slice * s->channels + c) * LANES,
                .to_column = bundle,
                .add = add,
            });
        }
    }
}

// From the points to the taps.
static void winograd_gradient(const struct winograd *w, float *dweights) {
    const struct winograd_sizes *s = &w->sizes;
    int n = s->points, taps = (n + 1 - WINOGRAD_TILE) * (n + 1 - WINOGRAD_TILE);
    size_t slice = (size_t)s->channels * LANES;
    const float *from = w->kernels;
    for (int m = 0; m < s->maps; m += LANES, from += (size_t)(n * n) * slice)
        for (int c = 0; c < s->channels; c++) {
            ALIGNED vector kernel[TAPS_MOST];
            if (n == 6)
                transform_back(6, 3, true, kernel, from + c * LANES, slice);
            else
                transform_back(8, 5, true, kernel, from + c * LANES, slice);
            for (int l = 0; l < LANES && m + l < s->maps; l++)
                for (int t = 0; t < taps; t++)
                    dweights[(size_t)((m + l) * s->channels + c) * (size_t)taps + (size_t)t] =
                        kernel[t][l];
        }
}

static void winograd_back_weights(float *dweights, float *dbiases, const float *dy, const float *x,
                                  int blocks, int lanes, const struct convolution *conv,
                                  float *scratch) {
    (void)lanes;
    struct winograd w = winograd_lay(conv, CONV_BACK_WEIGHTS, scratch);
    const struct winograd_sizes *s = &w.sizes;
    int k = conv->window.kernel_h, all = blocks * s->down * s->across;
    memset(dbiases, 0, (size_t)conv->maps * sizeof *dbiases);
    for (int g = 0; g < conv->groups; g++) {
        for (int t = 0, count; t < all; t += count) {
            count = winograd_part(all - t, s->chunk);
            winograd_data(&w, x + (size_t)(g * s->channels) * LANES, t, count);
            winograd_errors(&w, dy + (size_t)(g * s->maps) * LANES, dbiases + g * s->maps, t,
                            count);
            for (int slice = 0; slice < s->points * s->points; slice++)
                winograd_gradient_slice(&w, slice, count, t > 0);
        }
        winograd_gradient(&w, dweights + (size_t)(g * s->maps) * (size_t)(s->channels * k * k));
    }
}

static bool winograd_block_fits(enum conv_pass pass, const struct convolution *conv, int lanes) {
    return lanes == LANES && winograd_fits(conv, lanes, pass);
}

#endif
