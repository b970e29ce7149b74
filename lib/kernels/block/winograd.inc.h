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
// and 1.1e-7 to 1.4e-7 with 5, at most 6e-7 and 7e-7 within the picture; the direct
// way 0.28e-7, at most 2.5e-7. An output that sees little of the picture has
// the errors of its whole tile: up to 1.5e-5 of its own sum, in a corner of padding 4.
//
// What was learned (Zen 5, AVX-512, one thread; peak 245 to 265 GFLOP/s):
// - Useful GFLOP/s forward and back, of both products, where direct ways have 160 to 270
//   (adam-ctl time): at 64 samples 96 -> 256 maps of 27 x 27, kernel 5, 980 and 870; 256 -> 384
//   of 13 x 13, kernel 3, 570 and 520; at 16 32 -> 32 of 16 x 16, kernel 5, 710 and 680;
//   10 -> 20 of 14 x 14 435 and 350.
// - The transforms are bound by lines going through the L2 cache, 2 cycles each, where all is
//   there: asking for them ahead takes 6% more of a step of cifar10_full. Where kernels and data
//   come from beyond, a line took up to 28 cycles: its channels lie one line in each of 36 or 64
//   slices or pixels, which no processor asks for by itself, and in kernels all of them fell into
//   one set of the L1 cache. With a line between the slices, kernels of AlexNet went to the
//   points in 6.2 ms for 10.3 of a step of 16, and with the channel after the next asked for in
//   3.9; their gradient back in 4.5 for 7.0, data 11.7 for 18.2, errors 5.8 for 7.8, outputs 7.0
//   for 8.8; sums of the gradient, asked for a tile ahead, took 34.8 for 38.7. Values that
//   products are added to: nothing. One process 11% faster, each of two 14%.
// - The last tiles of a row or column at fewer points (winograd_points.h) make 441 products of 576
//   of 13 x 13 outputs: 14% of a step of AlexNet less. Whole columns of 3 tiles, for equal chunks,
//   3% less.
// - Local vectors that were not aligned to cache lines, and loops unrolled until each of n x n
//   vectors had an address to keep, had each doubled the time of transforms.
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
//   1% more with two (1.88 -> 1.90 times one), 9 for 6 2 to 4% less, 12 take 4 to 10% longer; 8
//   for 3 made all passes back of these layers 4% faster in one process and 9% in two, 9 makes
//   one part of 3 x 3 whole tiles, 16 no more.
//   There errors of all maps, beside sums and data, were what the L3 cache did not hold (kernels of
//   5, 96 -> 256 maps, 64 samples: 6 MB of sums, 1.4 MB a tile): with those of 48 maps at a time,
//   in the same place, back 120 -> 114 ms, in each of two processes 129 -> 117; 384 -> 384 maps,
//   kernel 3, 21 MB of sums, 91 -> 88 and 93 -> 89. 32 maps 1 to 3% less, 96 1 to 3%, 16, whose
//   products take one column, 10%; 6 and 12 tiles for 9 0 to 3%, 15 3 to 7%. Products of the
//   other passes, shared alike, beside the data: 1 to 3% slower.
// - Errors asked for a bundle of maps ahead while they are turned: no difference.
// - Small pictures whose data of all tiles stay in the L2 cache (8 x 8, 32 -> 64 maps), with 16
//   maps at a time, so that kernels, products, sums and errors of only those lie beside them:
//   forward the same, back 0 to 4% slower.
// - Of 3 channels, products that go straight into outputs, two maps at a time, for products that
//   are kept: 32 maps of 32 x 32 forward 300 -> 195 us.
// - Sums of biases in a pass of their own, map by map, took 2% of a step of cifar10_full.
// - Asking for lines of the outputs, or of the data of the next chunk, while slices are
//   multiplied: nothing in one process nor in two.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_INC_H

#include <string.h>

#include "core/hogwild.h"
#include "kernels/block/conv_pack.inc.h"
#include "kernels/block/conv_plan.inc.h"
#include "kernels/block/run.inc.h"
#include "kernels/block/winograd_products.inc.h"
#include "kernels/block/winograd_transform.inc.h"
#include "kernels/conv_sizes.h"
#include "kernels/winograd_sizes.h"

enum {
    CHANNELS_AT_ONCE = 128, // so that a tile's data stay in the L1 cache
    KERNEL_CHANNELS = 16,   // whose taps are whole squares of LANES
    TAPS_MOST = 25,
    TILE_PIXELS = WINOGRAD_TILE * WINOGRAD_TILE,
};

struct winograd {
    struct winograd_sizes sizes;
    const struct window *window;
    int channels, maps; // of the whole convolution
    float *kernels;     // of one group: bundles x slices x channels x LANES
    float *data;        // slices x tiles x channels x LANES
    // slices x tiles x maps x LANES, or of the errors below, of a share of the maps. Products of a
    // slice lie where the data of the slice before were: slice after slice, each of them over all
    // channels.
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

static int least(int a, int b) {
    return a < b ? a : b;
}

// The next part of what is left, in parts as equal as can be, of at most `most`.
static int equal_part(int left, int most) {
    return divided_up(left, divided_up(left, most));
}

// ---- Tiles of a part of the picture.

struct tiles {
    const struct winograd *winograd;
    const struct winograd_part *part;
    const struct side_functions *down, *across;
    int high, wide; // points
    int first, count;
};

static struct tiles tiles_of(const struct winograd *w, const struct winograd_part *part) {
    int taps = w->sizes.points + 1 - WINOGRAD_TILE;
    return (struct tiles){.winograd = w,
                          .part = part,
                          .down = &sides_of[taps == 5][part->high - 1],
                          .across = &sides_of[taps == 5][part->wide - 1],
                          .high = part->high + taps - 1,
                          .wide = part->wide + taps - 1};
}

// As equal_part(), in whole columns of products, where there are so many.
static int tiles_part(int left, int most) {
    if (most < PRODUCT_COLUMNS)
        return equal_part(left, most);
    int columns = equal_part(divided_up(left, PRODUCT_COLUMNS), most / PRODUCT_COLUMNS);
    return least(left, columns * PRODUCT_COLUMNS);
}

// The next tiles of `blocks` blocks, or false.
static bool tiles_next(struct tiles *t, int blocks) {
    int all = blocks * t->part->down * t->part->across;
    t->first += t->count;
    t->count = t->first < all ? tiles_part(all - t->first, t->winograd->sizes.chunk) : 0;
    return t->count > 0;
}

// A tile's block and its first output pixel.
struct place {
    size_t block;
    int y, x;
};

static struct place place_of(const struct tiles *t, int tile) {
    const struct winograd_part *p = t->part;
    int all = p->down * p->across, i = t->first + tile;
    return (struct place){(size_t)(i / all), p->y + i % all / p->across * WINOGRAD_TILE,
                          p->x + i % p->across * WINOGRAD_TILE};
}

// Which of all points i of n is: the last of an even number is infinity.
static int point_of(int i, int n, int all) {
    return i == n - 1 && n % 2 == 0 ? all - 1 : i;
}

// Where the kernels of a slice of these tiles lie.
static size_t kernel_slice(const struct tiles *t, int slice) {
    const struct winograd_sizes *s = &t->winograd->sizes;
    int y = point_of(slice / t->wide, t->high, s->points);
    int x = point_of(slice % t->wide, t->wide, s->points);
    return (size_t)(y * s->points + x) * s->kernel_slice;
}

// A channel of a tile: `row` and `column` floats from pixel to pixel.
static void data_vector(const struct tiles *t, float *to, const float *from, size_t row,
                        size_t column) {
    struct square line;
    size_t slice = t->winograd->sizes.data_slice;
    if (t->winograd->sizes.far)
        ask_to_write(t->high, t->wide, to + AHEAD, (size_t)t->wide * slice, slice);
    t->down->data_columns(&line, from, row, column, t->wide);
    t->across->data_rows(to, slice, &line, t->high);
}

// The data of a tile that reaches over the border: zeros there.
static void data_edge(const struct tiles *t, float *to, const float *picture, int y, int x) {
    const struct winograd *w = t->winograd;
    const struct window *v = w->window;
    ALIGNED vector square[POINTS_MOST * POINTS_MOST] = {0};
    int top = y < 0 ? -y : 0, left = x < 0 ? -x : 0;
    int rows = (v->h - y < t->high ? v->h - y : t->high) - top;
    int columns = (v->w - x < t->wide ? v->w - x : t->wide) - left;
    size_t pixel = (size_t)w->channels * LANES, row = (size_t)v->w * pixel;
    const float *from = picture + (size_t)(y + top) * row + (size_t)(x + left) * pixel;
    for (int c = 0; c < w->sizes.channels; c++, to += LANES, from += LANES) {
        if (w->sizes.far)
            ask_to_read(rows, columns, from + AHEAD, row, pixel);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++)
                square[(top + i) * POINTS_MOST + left + j] =
                    *(const vector *)(from + (size_t)i * row + (size_t)j * pixel);
        data_vector(t, to, (const float *)(const void *)square, (size_t)POINTS_MOST * LANES, LANES);
    }
}

// The data of the tiles, of the channels from x on.
static void winograd_data(const struct tiles *t, const float *x) {
    const struct winograd *w = t->winograd;
    const struct window *v = w->window;
    size_t pixel = (size_t)w->channels * LANES, row = (size_t)v->w * pixel;
    for (int i = 0; i < t->count; i++) {
        struct place p = place_of(t, i);
        float *to = w->data + (size_t)(i * w->sizes.channels) * LANES;
        const float *picture = x + p.block * (size_t)v->h * row;
        int top = p.y - v->pad_h, left = p.x - v->pad_w;
        if (top < 0 || left < 0 || top + t->high > v->h || left + t->wide > v->w) {
            data_edge(t, to, picture, top, left);
            continue;
        }
        const float *from = picture + (size_t)top * row + (size_t)left * pixel;
        for (int c = 0; c < w->sizes.channels; c++, to += LANES, from += LANES) {
            if (w->sizes.far)
                ask_to_read(t->high, t->wide, from + AHEAD, row, pixel);
            data_vector(t, to, from, row, pixel);
        }
    }
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

INLINE void kernel_values(int k, float *to, size_t slice, const float *from, size_t tap) {
    struct side side = side_of(k, WINOGRAD_TILE);
    struct square line;
    value_columns(side, k, true, &line, from, (size_t)k * tap, tap, k);
    value_rows(side, k, true, to, slice, &line, side_points(side));
}

// All kernels of a group, from `weights` on, at the points.
static void winograd_kernels(const struct winograd *w, const float *weights, bool turned) {
    const struct winograd_sizes *s = &w->sizes;
    ALIGNED float taps[TAPS_MOST * KERNEL_CHANNELS * LANES] = {0};
    int n = s->points;
    size_t slice = s->kernel_slice;
    float *to = w->kernels;
    for (int m = 0; m < s->maps; m += LANES, to += (size_t)(n * n) * slice)
        for (int c = 0; c < s->channels; c++) {
            int i = c % KERNEL_CHANNELS, left = s->channels - c;
            const float *from = taps + i * LANES;
            if (s->far)
                ask_to_write(n, n, to + c * LANES + AHEAD, (size_t)n * slice, slice);
            if (i == 0)
                winograd_taps(taps, w, weights, m, c,
                              left < KERNEL_CHANNELS ? left : KERNEL_CHANNELS, turned);
            if (n == 6)
                kernel_values(3, to + c * LANES, slice, from, KERNEL_CHANNELS * LANES);
            else
                kernel_values(5, to + c * LANES, slice, from, KERNEL_CHANNELS * LANES);
        }
}

// One slice of the products of the tiles with all maps, over the channels [first, end).
static void winograd_slice(const struct tiles *tiles, int slice, int first, int end) {
    const struct winograd *w = tiles->winograd;
    const struct winograd_sizes *s = &w->sizes;
    size_t bundle = (size_t)(s->points * s->points) * s->kernel_slice;
    size_t data_tile = (size_t)s->channels * LANES, value_tile = (size_t)s->maps * LANES;
    const float *kernels = w->kernels + kernel_slice(tiles, slice) + (size_t)first * LANES;
    const float *data = w->data + (size_t)slice * s->data_slice + (size_t)first * LANES;
    float *values = w->values + (size_t)slice * s->value_slice;
    for (int t = 0, columns; t < tiles->count; t += columns) {
        columns = equal_part(tiles->count - t, PRODUCT_COLUMNS);
        for (int m = 0, rows; m < s->maps; m += rows) {
            int stop = (m / LANES + 1) * LANES < s->maps ? (m / LANES + 1) * LANES : s->maps;
            rows = equal_part(stop - m, PRODUCT_ROWS);
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
    bool relu, far;
    const float
        *passed; // NULL, or outputs of a relu through which these errors go, at the same places
};

INLINE void store_output(struct output o, const vector *y, int m) {
    int rows = o.rows < WINOGRAD_TILE ? o.rows : WINOGRAD_TILE;
    bool masked = o.relu || o.passed;
    if (o.far)
        ask_to_write(rows, o.columns < WINOGRAD_TILE ? o.columns : WINOGRAD_TILE,
                     o.to + (size_t)m * LANES + AHEAD, o.row, o.pixel);
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

HOGWILD static void output_tile(const struct tiles *t, struct output o, const float *from) {
    ALIGNED vector y[TILE_PIXELS];
    struct square line;
    size_t slice = t->winograd->sizes.value_slice, row = (size_t)t->wide * slice;
    for (int m = 0; m < t->winograd->sizes.maps; m++, from += LANES) {
        if (o.far)
            ask_to_read(t->high, t->wide, from + AHEAD, row, slice);
        t->down->output_columns(&line, from, row, slice, t->wide);
        t->across->output_rows(y, &line, t->part->high);
        store_output(o, y, m);
    }
}

// ---- Of few channels: a product takes less than to write and to read it. So products of a tile
// go straight into its outputs.
struct few {
    const float *data, *kernels; // of the tile; of a bundle of maps
    size_t data_slice;
};

// Maps m and, of two, m + 1.
INLINE void few_maps(int k, int channels, int count, struct output o, struct few f, int m) {
    ALIGNED vector y[TILE_PIXELS];
    struct side side = side_of(k, WINOGRAD_TILE);
    struct square line[2];
    int n = side_points(side);
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
                for (int of = 0; of < count; of++)
                    column[of][i] += kernels[c * LANES + of] * *(const vector *)(data + c * LANES);
        }
#pragma GCC unroll 2
        for (int of = 0; of < count; of++)
            column_back(side, WINOGRAD_TILE, false, &line[of], column[of], j);
    }
#pragma GCC unroll 2
    for (int of = 0; of < count; of++) {
        back_rows(side, WINOGRAD_TILE, false, y, WINOGRAD_TILE, &line[of], WINOGRAD_TILE);
        store_output(o, y, m + of);
    }
}

INLINE void few_outputs(int k, int channels, struct output o, struct few f, int maps) {
    int n = k + WINOGRAD_TILE - 1, m = 0;
    for (; m + 1 < maps; m += 2) {
        few_maps(k, channels, 2, o, f, m);
        if ((m + 2) % LANES == 0)
            f.kernels += (size_t)(n * n * channels) * LANES;
    }
    if (m < maps)
        few_maps(k, channels, 1, o, f, m);
}

typedef void few_function(struct output, struct few, int maps);

#define FEW(channels)                                                                              \
    HOGWILD static void few_3_##channels(struct output o, struct few f, int maps) {                \
        few_outputs(3, channels, o, f, maps);                                                      \
    }                                                                                              \
    HOGWILD static void few_5_##channels(struct output o, struct few f, int maps) {                \
        few_outputs(5, channels, o, f, maps);                                                      \
    }
FEW(1)
FEW(2)
FEW(3)
FEW(4)
#undef FEW

static few_function *const few_functions[2][WINOGRAD_FEW] = {{few_3_1, few_3_2, few_3_3, few_3_4},
                                                             {few_5_1, few_5_2, few_5_3, few_5_4}};

// ---- Outputs of some tiles.

static void winograd_outputs(const struct tiles *t, float *y, const float *biases, bool relu,
                             const float *passed) {
    const struct winograd *w = t->winograd;
    const struct winograd_sizes *s = &w->sizes;
    const struct window *v = w->window;
    size_t pixel = (size_t)w->maps * LANES, row = (size_t)v->out_w * pixel;
    for (int i = 0; i < t->count; i++) {
        struct place p = place_of(t, i);
        size_t at = (p.block * (size_t)v->out_h + (size_t)p.y) * row + (size_t)p.x * pixel;
        struct output o = {.to = y + at,
                           .row = row,
                           .pixel = pixel,
                           .rows = least(v->out_h - p.y, t->part->high),
                           .columns = least(v->out_w - p.x, t->part->wide),
                           .biases = biases,
                           .relu = relu,
                           .far = s->far,
                           .passed = passed ? passed + at : NULL};
        if (s->few)
            few_functions[s->points == 8][s->channels - 1](
                o,
                (struct few){w->data + (size_t)(i * s->channels) * LANES, w->kernels,
                             s->data_slice},
                s->maps);
        else
            output_tile(t, o, w->values + (size_t)(i * s->maps) * LANES);
    }
}

static void winograd_products(const struct tiles *t) {
    int channels = t->winograd->sizes.channels;
    for (int slice = 0; slice < t->high * t->wide; slice++)
        for (int c = 0, step; c < channels; c += step) {
            step = equal_part(channels - c, CHANNELS_AT_ONCE);
            winograd_slice(t, slice, c, c + step);
        }
}

static void winograd_pass(float *y, const float *x, const float *weights, const float *biases,
                          bool relu, const float *passed, int blocks,
                          const struct convolution *conv, bool turned, float *scratch) {
    struct winograd w = winograd_lay(conv, turned ? CONV_BACK_INPUT : CONV_FORWARD, scratch);
    const struct winograd_sizes *s = &w.sizes;
    int k = conv->window.kernel_h;
    for (int g = 0; g < conv->groups; g++) {
        winograd_kernels(&w, weights + (size_t)(g * s->maps) * (size_t)(s->channels * k * k),
                         turned);
        for (int p = 0; p < s->part_count; p++)
            for (struct tiles t = tiles_of(&w, &s->parts[p]); tiles_next(&t, blocks);) {
                winograd_data(&t, x + (size_t)(g * s->channels) * LANES);
                if (!s->few)
                    winograd_products(&t);
                winograd_outputs(&t, y + (size_t)(g * s->maps) * LANES,
                                 biases ? biases + g * s->maps : NULL, relu,
                                 passed ? passed + (size_t)(g * s->maps) * LANES : NULL);
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

// The errors of up to LANES maps of a tile, sample by sample as pixels of a square. Gives their
// sum over pixels and samples: what the tile adds to the gradient of the biases.
static vector errors_squares(const struct tiles *t, float *squares, const float *from,
                             struct place p, int maps) {
    const struct winograd *w = t->winograd;
    const struct window *v = w->window;
    vector sum = {0};
    for (int i = 0; i < TILE_PIXELS; i++) {
        int down = i / WINOGRAD_TILE, right = i % WINOGRAD_TILE, y = p.y + down, x = p.x + right;
        if (down >= t->part->high || right >= t->part->wide)
            continue;
        if (y < v->out_h && x < v->out_w)
            sum +=
                winograd_turn(squares + i * LANES, TILE_PIXELS * LANES,
                              from + (p.block * window_out_pixels(v) + (size_t)(y * v->out_w + x)) *
                                         (size_t)w->maps * LANES,
                              maps);
        else
            for (int l = 0; l < LANES; l++)
                *(vector *)(squares + (l * TILE_PIXELS + i) * LANES) = (vector){0};
    }
    return sum;
}

static void errors_tile(const struct tiles *t, float *to, const float *squares) {
    size_t slice = t->winograd->sizes.value_slice;
    struct square line;
    for (int l = 0; l < LANES; l++, to += LANES, squares += TILE_PIXELS * LANES) {
        if (t->winograd->sizes.far)
            ask_to_write(t->high, t->wide, to + AHEAD, (size_t)t->wide * slice, slice);
        t->down->error_columns(&line, squares, WINOGRAD_TILE * LANES, LANES, t->part->wide);
        t->across->error_rows(to, slice, &line, t->high);
    }
}

// Of the maps [first, end).
static void winograd_errors(const struct tiles *t, const float *dy, float *dbiases, int first,
                            int end) {
    int chunk = t->winograd->sizes.chunk;
    ALIGNED float squares[LANES * TILE_PIXELS * LANES];
    for (int i = 0; i < t->count; i++)
        for (int m = first; m < end; m += LANES) {
            int maps = least(end - m, LANES);
            float *to = t->winograd->values + (size_t)((m - first) * chunk + i * LANES) * LANES;
            vector sum = errors_squares(t, squares, dy + (size_t)m * LANES, place_of(t, i), maps);
            errors_tile(t, to, squares);
            store_part(dbiases + m, load_part(dbiases + m, maps) + sum, maps);
        }
}

// One slice of the gradient of the kernels of the maps [first, end) over the tiles.
static void winograd_gradient_slice(const struct tiles *t, int slice, bool add, int first,
                                    int end) {
    const struct winograd *w = t->winograd;
    const struct winograd_sizes *s = &w->sizes;
    size_t bundle = (size_t)(s->points * s->points) * s->kernel_slice;
    size_t errors = (size_t)s->chunk * LANES * LANES;
    float *sums = w->kernels + (size_t)(first / LANES) * bundle + kernel_slice(t, slice);
    int bundles = divided_up(end - first, LANES);
    for (int b = 0, columns; b < bundles; b += columns) {
        columns = equal_part(bundles - b, PRODUCT_COLUMNS);
        for (int c = 0, rows; c < s->channels; c += rows) {
            rows = equal_part(s->channels - c, PRODUCT_ROWS);
            products_channels[columns - 1][rows - 1](&(struct slice_product){
                .a = w->data + (size_t)slice * s->data_slice + (size_t)c * LANES,
                .a_skip = (size_t)s->channels * LANES,
                .b = w->values + (size_t)slice * s->value_slice + (size_t)b * errors,
                .b_column = errors,
                .outer = t->count,
                .inner = LANES,
                .to = sums + (size_t)b * bundle + (size_t)c * LANES,
                .to_column = bundle,
                .add = add,
            });
        }
    }
}

// From the points to the taps.
INLINE void taps_back(int k, vector *taps, const float *from, size_t slice) {
    struct side side = side_of(k, WINOGRAD_TILE);
    struct square line;
    int n = side_points(side);
    back_columns(side, k, true, &line, from, (size_t)n * slice, slice, n);
    back_rows(side, k, true, taps, k, &line, k);
}

static void winograd_gradient(const struct winograd *w, float *dweights) {
    const struct winograd_sizes *s = &w->sizes;
    int n = s->points, taps = (n + 1 - WINOGRAD_TILE) * (n + 1 - WINOGRAD_TILE);
    size_t slice = s->kernel_slice;
    const float *from = w->kernels;
    for (int m = 0; m < s->maps; m += LANES, from += (size_t)(n * n) * slice)
        for (int c = 0; c < s->channels; c++) {
            ALIGNED vector kernel[TAPS_MOST];
            if (s->far)
                ask_to_read(n, n, from + c * LANES + AHEAD, (size_t)n * slice, slice);
            if (n == 6)
                taps_back(3, kernel, from + c * LANES, slice);
            else
                taps_back(5, kernel, from + c * LANES, slice);
            for (int l = 0; l < LANES && m + l < s->maps; l++)
                for (int t = 0; t < taps; t++)
                    dweights[(size_t)((m + l) * s->channels + c) * (size_t)taps + (size_t)t] =
                        kernel[t][l];
        }
}

// What a chunk of tiles adds to all sums, whose data are at the points.
static void winograd_chunk_sums(const struct tiles *t, float *dbiases, const float *dy, bool add) {
    const struct winograd_sizes *s = &t->winograd->sizes;
    for (int m = 0, end; m < s->maps; m = end) {
        int bundles = equal_part(divided_up(s->maps - m, LANES), s->share / LANES);
        end = least(s->maps, m + bundles * LANES);
        winograd_errors(t, dy, dbiases, m, end);
        for (int slice = 0; slice < t->high * t->wide; slice++)
            winograd_gradient_slice(t, slice, add, m, end);
    }
}

// Over the tiles of a group. The first tiles give all sums, unless they have not all points.
static void winograd_sums(const struct winograd *w, float *dbiases, const float *dy, const float *x,
                          int blocks) {
    const struct winograd_sizes *s = &w->sizes;
    bool add = s->parts[0].high < WINOGRAD_TILE || s->parts[0].wide < WINOGRAD_TILE;
    if (add)
        memset(w->kernels, 0, s->kernels * sizeof *w->kernels);
    for (int p = 0; p < s->part_count; p++)
        for (struct tiles t = tiles_of(w, &s->parts[p]); tiles_next(&t, blocks); add = true) {
            winograd_data(&t, x);
            winograd_chunk_sums(&t, dbiases, dy, add);
        }
}

static void winograd_back_weights(float *dweights, float *dbiases, const float *dy, const float *x,
                                  int blocks, int lanes, const struct convolution *conv,
                                  float *scratch) {
    (void)lanes;
    struct winograd w = winograd_lay(conv, CONV_BACK_WEIGHTS, scratch);
    const struct winograd_sizes *s = &w.sizes;
    int k = conv->window.kernel_h;
    memset(dbiases, 0, (size_t)conv->maps * sizeof *dbiases);
    for (int g = 0; g < conv->groups; g++) {
        winograd_sums(&w, dbiases + g * s->maps, dy + (size_t)(g * s->maps) * LANES,
                      x + (size_t)(g * s->channels) * LANES, blocks);
        winograd_gradient(&w, dweights + (size_t)(g * s->maps) * (size_t)(s->channels * k * k));
    }
}

static bool winograd_block_fits(enum conv_pass pass, const struct convolution *conv, int lanes) {
    return lanes == LANES && winograd_fits(conv, lanes, pass);
}

#endif
