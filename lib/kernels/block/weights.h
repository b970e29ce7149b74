// The gradient of the weights of convolutions of blocks,
//   dW[map][channel][tap] = sum over pixels and samples of dY[pixel][map] X[pixel + tap][channel],
// and that of the biases, the sums of dY.
//
// A tile of vectors of maps x channels stays in registers at one tap, over the
// rectangle of pixels at which that tap falls on the picture: no tap on padding is
// multiplied. A vector of errors holds LANES / lanes maps of `lanes` samples, a
// channel's values of a pixel are repeated over it. Only at the end are the samples
// of each map added up, in the same rounds of shuffles that turn LANES vectors of
// sums into rows of dW; with one lane there is nothing to add, and it is a
// transposition.
//
// Errors are packed tile by tile: rows of whole maps lie 2 KiB and more apart, and
// would fight for the same few lines of the L1 cache. Chunks of pixels stay there
// while all taps pass over them; sums of a task stay in the L2 cache meanwhile.
#ifndef ADAM_KERNELS_BLOCK_WEIGHTS_H
#define ADAM_KERNELS_BLOCK_WEIGHTS_H

#include <string.h>

#include "kernels/block/repeat.h"
#include "kernels/conv_sizes.h"
#include "kernels/portable/conv_direct.h"

// A tile at one tap of one chunk.
struct gradient_visit {
    const float *errors, *x; // of the first pixel
    size_t error_row, x_row, x_pixel;
    int height, width;
    float *sums;
    size_t sums_row, sums_column;
};

__attribute__((always_inline)) static inline void gradient_sum(int lanes, int rows, int columns,
                                                               const struct gradient_visit *v) {
    vector sum[GRADIENT_ROWS][8];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 16
        for (int c = 0; c < columns; c++)
            sum[r][c] =
                *(const vector *)(v->sums + (size_t)r * v->sums_row + (size_t)c * v->sums_column);
    const float *error_row = v->errors, *x_row = v->x;
    for (int y = v->height; y; y--, error_row += v->error_row, x_row += v->x_row) {
        const float *e = error_row, *x = x_row;
        for (int i = v->width; i; i--, e += rows * LANES, x += v->x_pixel) {
            vector error[GRADIENT_ROWS];
#pragma GCC unroll 16
            for (int r = 0; r < rows; r++)
                error[r] = *(const vector *)(e + r * LANES);
#pragma GCC unroll 16
            for (int c = 0; c < columns; c++) {
                vector value = repeat(lanes, x + c * lanes);
#pragma GCC unroll 16
                for (int r = 0; r < rows; r++)
                    sum[r][c] += error[r] * value;
            }
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 16
        for (int c = 0; c < columns; c++)
            *(vector *)(v->sums + (size_t)r * v->sums_row + (size_t)c * v->sums_column) = sum[r][c];
}

typedef void gradient_function(const struct gradient_visit *);

#define GRADIENT_TILE(lanes, rows, columns)                                                        \
    static void gradient_##lanes##_##rows##_##columns(const struct gradient_visit *v) {            \
        gradient_sum(lanes, rows, columns, v);                                                     \
    }
#define GRADIENT_NAME(lanes, rows, columns) gradient_##lanes##_##rows##_##columns,

// Which tiles there are: those that fit the registers.
#define GRADIENT_TO_2(X, l, r) X(l, r, 1) X(l, r, 2)
#define GRADIENT_TO_3(X, l, r) GRADIENT_TO_2(X, l, r) X(l, r, 3)
#define GRADIENT_TO_4(X, l, r) GRADIENT_TO_3(X, l, r) X(l, r, 4)
#define GRADIENT_TO_5(X, l, r) GRADIENT_TO_4(X, l, r) X(l, r, 5)
#define GRADIENT_TO_6(X, l, r) GRADIENT_TO_5(X, l, r) X(l, r, 6)
#define GRADIENT_TO_8(X, l, r) GRADIENT_TO_6(X, l, r) X(l, r, 7) X(l, r, 8)
#if FAMILY_LANES == 16
#define GRADIENT_1(X, l) GRADIENT_TO_8(X, l, 1)
#define GRADIENT_2(X, l) GRADIENT_TO_8(X, l, 2)
#define GRADIENT_3(X, l) GRADIENT_TO_8(X, l, 3)
#define GRADIENT_4(X, l) GRADIENT_TO_6(X, l, 4)
#define GRADIENT_5(X, l) GRADIENT_TO_5(X, l, 5)
#define GRADIENT_6(X, l) GRADIENT_TO_4(X, l, 6)
#else
#define GRADIENT_1(X, l) GRADIENT_TO_8(X, l, 1)
#define GRADIENT_2(X, l) GRADIENT_TO_6(X, l, 2)
#define GRADIENT_3(X, l) GRADIENT_TO_4(X, l, 3)
#define GRADIENT_4(X, l) GRADIENT_TO_3(X, l, 4)
#define GRADIENT_5(X, l) GRADIENT_TO_2(X, l, 5)
#define GRADIENT_6(X, l) GRADIENT_TO_2(X, l, 6)
#endif
#define GRADIENT_TILES(l)                                                                          \
    GRADIENT_1(GRADIENT_TILE, l)                                                                   \
    GRADIENT_2(GRADIENT_TILE, l)                                                                   \
    GRADIENT_3(GRADIENT_TILE, l)                                                                   \
    GRADIENT_4(GRADIENT_TILE, l)                                                                   \
    GRADIENT_5(GRADIENT_TILE, l)                                                                   \
    GRADIENT_6(GRADIENT_TILE, l)
#define GRADIENT_NAMES(l)                                                                          \
    {                                                                                              \
        {GRADIENT_1(GRADIENT_NAME, l)}, {GRADIENT_2(GRADIENT_NAME, l)},                            \
            {GRADIENT_3(GRADIENT_NAME, l)}, {GRADIENT_4(GRADIENT_NAME, l)},                        \
            {GRADIENT_5(GRADIENT_NAME, l)}, {                                                      \
            GRADIENT_6(GRADIENT_NAME, l)                                                           \
        }                                                                                          \
    }

GRADIENT_TILES(1)
GRADIENT_TILES(2)
GRADIENT_TILES(4)
GRADIENT_TILES(8)
#if FAMILY_LANES == 16
GRADIENT_TILES(16)
#endif

// By the logarithm of `lanes`, rows and columns.
static gradient_function *const gradient_tiles[][GRADIENT_ROWS][8] = {
    GRADIENT_NAMES(1),  GRADIENT_NAMES(2), GRADIENT_NAMES(4), GRADIENT_NAMES(8),
#if FAMILY_LANES == 16
    GRADIENT_NAMES(16),
#endif
};

// The part [*first, *end) of `count` outputs from `begin` on at which a tap falls on
// the picture.
static void tap_part(int shift, int stride, int size, int begin, int count, int *first, int *end) {
    tap_range(shift, stride, size, begin + count, first, end);
    *first = *first > begin ? *first : begin;
}

// What is summed up before it is folded: some of one group's maps and channels.
struct gradient_task {
    const struct convolution *conv;
    struct gradient_sizes sizes;
    int lanes;
    int row, rows;             // vectors of maps
    int channel, channels;     // within the group
    const float *dy, *x;       // of the group's first map and channel
    float *dweights, *dbiases; // of the group
    float *sums, *biases;      // rows x channels x taps, rows
    float *errors, *picture;   // packed
    gradient_function *const (*tiles)[8];
};

// A rectangle of outputs, and what it sees of the picture.
struct gradient_chunk {
    int y, x, height, width;
    int in_y, in_x, in_height, in_width;
    const float *dy, *picture; // of the block
};

static void see(int *from, int *size, int out, int count, int stride, int pad, int kernel,
                int inputs) {
    int begin = out * stride - pad, end = begin + (count - 1) * stride + kernel;
    *from = begin < 0 ? 0 : begin < inputs ? begin : inputs;
    *size = (end < inputs ? end : inputs) - *from;
    if (*size < 0)
        *size = 0;
}

// The errors of one vector of maps, `step` floats from pixel to pixel; gives their sum.
static vector pack_error(float *to, size_t step, const struct gradient_task *t,
                         const struct gradient_chunk *chunk, int row) {
    const struct convolution *conv = t->conv;
    size_t pixel = (size_t)conv->maps * (size_t)t->lanes;
    int left = conv->maps / conv->groups * t->lanes - row * LANES;
    int count = left < LANES ? left : LANES;
    vector sum = {0};
    for (int y = 0; y < chunk->height; y++) {
        const float *from =
            chunk->dy + row * LANES +
            ((size_t)(chunk->y + y) * (size_t)conv->window.out_w + (size_t)chunk->x) * pixel;
        for (int x = 0; x < chunk->width; x++, from += pixel, to += step) {
            vector e = FAMILY_LOAD(from, 0, count);
            *(vector *)to = e;
            sum += e;
        }
    }
    return sum;
}

static void pack_errors(const struct gradient_task *t, const struct gradient_chunk *chunk) {
    int pixels = chunk->height * chunk->width, count = cuts(t->rows, t->sizes.tile_rows);
    for (int i = 0; i < count; i++) {
        int first = cut(t->rows, count, i), rows = cut(t->rows, count, i + 1) - first;
        for (int r = 0; r < rows; r++) {
            float *to = t->errors + ((size_t)first * (size_t)pixels + (size_t)r) * LANES;
            vector *sum = (vector *)(t->biases + (first + r) * LANES);
            *sum += pack_error(to, (size_t)rows * LANES, t, chunk, t->row + first + r);
        }
    }
}

// The channels of each tile of what the chunk sees, where a pixel's are one vector each.
static void pack_picture(const struct gradient_task *t, const struct gradient_chunk *chunk) {
    const struct window *v = &t->conv->window;
    int count = cuts(t->channels, t->sizes.tile_columns);
    float *to = t->picture;
    for (int i = 0; i < count; i++) {
        int first = cut(t->channels, count, i), columns = cut(t->channels, count, i + 1) - first;
        for (int y = 0; y < chunk->in_height; y++) {
            const float *from = chunk->picture + (size_t)(t->channel + first) * LANES +
                                ((size_t)(chunk->in_y + y) * (size_t)v->w + (size_t)chunk->in_x) *
                                    (size_t)v->c * LANES;
            for (int x = 0; x < chunk->in_width; x++, from += v->c * LANES)
                for (int c = 0; c < columns; c++, to += LANES)
                    *(vector *)to = *(const vector *)(from + c * LANES);
        }
    }
}

// Where a tile reads what it sees.
struct gradient_view {
    const float *x; // of input (0, 0)
    size_t row, pixel;
};

static struct gradient_view gradient_view(const struct gradient_task *t,
                                          const struct gradient_chunk *chunk, int first,
                                          int columns) {
    const struct window *v = &t->conv->window;
    if (!t->sizes.packed) {
        size_t pixel = (size_t)v->c * (size_t)t->lanes;
        return (struct gradient_view){chunk->picture +
                                          (size_t)(t->channel + first) * (size_t)t->lanes,
                                      (size_t)v->w * pixel, pixel};
    }
    size_t pixel = (size_t)columns * LANES, row = (size_t)chunk->in_width * pixel;
    const float *packed =
        t->picture + (size_t)first * (size_t)chunk->in_height * (size_t)chunk->in_width * LANES;
    return (struct gradient_view){
        packed - (ptrdiff_t)((size_t)chunk->in_y * row + (size_t)chunk->in_x * pixel), row, pixel};
}

// All taps of one tile: vectors [row, row + rows) of the task's maps, and `columns`
// channels from `channel` on.
static void gradient_taps(const struct gradient_task *t, const struct gradient_chunk *chunk,
                          int row, int rows, int channel, int columns) {
    const struct window *w = &t->conv->window;
    struct gradient_view view = gradient_view(t, chunk, channel, columns);
    size_t taps = (size_t)t->sizes.taps;
    const float *errors =
        t->errors + (size_t)row * (size_t)chunk->height * (size_t)chunk->width * LANES;
    struct gradient_visit visit = {
        .error_row = (size_t)chunk->width * (size_t)rows * LANES,
        .x_row = (size_t)w->stride_h * view.row,
        .x_pixel = (size_t)w->stride_w * view.pixel,
        .sums = t->sums + ((size_t)row * (size_t)t->channels + (size_t)channel) * taps * LANES,
        .sums_row = (size_t)t->channels * taps * LANES,
        .sums_column = taps * LANES,
    };
    gradient_function *sum = t->tiles[rows - 1][columns - 1];
    for (int ky = 0; ky < w->kernel_h; ky++) {
        int y, y_end;
        tap_part(ky - w->pad_h, w->stride_h, w->h, chunk->y, chunk->height, &y, &y_end);
        visit.height = y_end - y;
        for (int kx = 0; kx < w->kernel_w; kx++, visit.sums += LANES) {
            int x, x_end;
            tap_part(kx - w->pad_w, w->stride_w, w->w, chunk->x, chunk->width, &x, &x_end);
            visit.width = x_end - x;
            if (visit.height <= 0 || visit.width <= 0)
                continue;
            int pixel = (y - chunk->y) * chunk->width + x - chunk->x;
            visit.errors = errors + (size_t)pixel * (size_t)rows * LANES;
            visit.x = view.x + (ptrdiff_t)(y * w->stride_h + ky - w->pad_h) * (ptrdiff_t)view.row +
                      (ptrdiff_t)(x * w->stride_w + kx - w->pad_w) * (ptrdiff_t)view.pixel;
            sum(&visit);
        }
    }
}

static void gradient_chunk(const struct gradient_task *t, const struct gradient_chunk *chunk) {
    int tiles_down = cuts(t->rows, t->sizes.tile_rows);
    int tiles_across = cuts(t->channels, t->sizes.tile_columns);
    pack_errors(t, chunk);
    if (t->sizes.packed)
        pack_picture(t, chunk);
    for (int j = 0; j < tiles_across; j++) {
        int channel = cut(t->channels, tiles_across, j);
        for (int i = 0; i < tiles_down; i++) {
            int row = cut(t->rows, tiles_down, i);
            gradient_taps(t, chunk, row, cut(t->rows, tiles_down, i + 1) - row, channel,
                          cut(t->channels, tiles_across, j + 1) - channel);
        }
    }
}

static void gradient_block(const struct gradient_task *t, const float *dy, const float *x) {
    const struct window *v = &t->conv->window;
    int down = cuts(v->out_h, t->sizes.chunk_height), across = cuts(v->out_w, t->sizes.chunk_width);
    struct gradient_chunk chunk = {.dy = dy, .picture = x};
    for (int i = 0; i < down; i++) {
        chunk.y = cut(v->out_h, down, i);
        chunk.height = cut(v->out_h, down, i + 1) - chunk.y;
        see(&chunk.in_y, &chunk.in_height, chunk.y, chunk.height, v->stride_h, v->pad_h,
            v->kernel_h, v->h);
        for (int j = 0; j < across; j++) {
            chunk.x = cut(v->out_w, across, j);
            chunk.width = cut(v->out_w, across, j + 1) - chunk.x;
            see(&chunk.in_x, &chunk.in_width, chunk.x, chunk.width, v->stride_w, v->pad_w,
                v->kernel_w, v->w);
            gradient_chunk(t, &chunk);
        }
    }
}

// One round: samples are added up, then maps are turned out of the lanes.
__attribute__((always_inline)) static inline void gradient_round(int lanes, vector *v, int s) {
    if (s < lanes)
        fold(v, s);
    else
        exchange(v, s);
}

// LANES vectors of sums of one vector of maps to LANES sums of each map, in v[0],
// v[lanes], v[2 * lanes]...
__attribute__((always_inline)) static inline void gradient_gather(int lanes, vector *v) {
    gradient_round(lanes, v, 1);
    gradient_round(lanes, v, 2);
    gradient_round(lanes, v, 4);
    if (LANES > 8)
        gradient_round(lanes, v, 8);
}

static void gradient_gather_any(int lanes, vector *v) {
    switch (lanes) {
    case 1:
        gradient_gather(1, v);
        break;
    case 2:
        gradient_gather(2, v);
        break;
    case 4:
        gradient_gather(4, v);
        break;
    case 8:
        gradient_gather(8, v);
        break;
    default:
        gradient_gather(LANES, v);
    }
}

// A task's sums to where they belong.
static void gradient_store(const struct gradient_task *t) {
    int maps = t->conv->maps / t->conv->groups, share = LANES / t->lanes;
    int count = t->channels * t->sizes.taps;
    size_t map_size = (size_t)t->sizes.channels * (size_t)t->sizes.taps;
    for (int r = 0; r < t->rows; r++)
        for (int i = 0; i < count; i += LANES) {
            const float *from = t->sums + ((size_t)r * (size_t)count + (size_t)i) * LANES;
            int here = count - i < LANES ? count - i : LANES;
            vector v[LANES] = {0};
            memcpy(v, from, (size_t)here * sizeof *v);
            gradient_gather_any(t->lanes, v);
            for (int s = 0; s < share; s++) {
                int map = (t->row + r) * share + s;
                if (map < maps)
                    FAMILY_STORE(t->dweights + (size_t)map * map_size +
                                     (size_t)t->channel * (size_t)t->sizes.taps + (size_t)i,
                                 v[s * t->lanes], 0, here);
            }
        }
    if (t->channel == 0)
        for (int i = 0; i < t->rows * share && t->row * share + i < maps; i++) {
            float sum = 0;
            for (int l = 0; l < t->lanes; l++)
                sum += t->biases[i * t->lanes + l];
            t->dbiases[t->row * share + i] = sum;
        }
}

static void gradient_task(const struct gradient_task *t, int blocks) {
    const struct window *v = &t->conv->window;
    size_t outputs = window_out_pixels(v) * (size_t)t->conv->maps * (size_t)t->lanes;
    size_t inputs = window_in(v) * (size_t)t->lanes;
    size_t sums = (size_t)t->rows * (size_t)t->channels * (size_t)t->sizes.taps * LANES;
    memset(t->sums, 0, sums * sizeof *t->sums);
    memset(t->biases, 0, (size_t)t->rows * LANES * sizeof *t->biases);
    for (int b = 0; b < blocks; b++)
        gradient_block(t, t->dy + (size_t)b * outputs, t->x + (size_t)b * inputs);
    gradient_store(t);
}

static void gradient_group(struct gradient_task *t, int blocks) {
    int down = cuts(t->sizes.rows, t->sizes.task_rows);
    int across = cuts(t->sizes.channels, t->sizes.task_columns);
    for (int i = 0; i < down; i++) {
        t->row = cut(t->sizes.rows, down, i);
        t->rows = cut(t->sizes.rows, down, i + 1) - t->row;
        for (int j = 0; j < across; j++) {
            t->channel = cut(t->sizes.channels, across, j);
            t->channels = cut(t->sizes.channels, across, j + 1) - t->channel;
            gradient_task(t, blocks);
        }
    }
}

static void conv_block_back_weights(float *dweights, float *dbiases, const float *dy,
                                    const float *x, int blocks, int lanes,
                                    const struct convolution *conv, float *scratch) {
    struct gradient_task t = {.conv = conv,
                              .sizes = gradient_sizes(conv, lanes, LANES),
                              .lanes = lanes,
                              .tiles = gradient_tiles[__builtin_ctz((unsigned)lanes)]};
    size_t rows = (size_t)t.sizes.task_rows * LANES;
    size_t maps = (size_t)(conv->maps / conv->groups), channels = (size_t)t.sizes.channels;
    t.sums = carve(&scratch, rows * (size_t)t.sizes.task_columns * (size_t)t.sizes.taps);
    t.biases = carve(&scratch, rows);
    t.errors = carve(&scratch, rows * (size_t)t.sizes.chunk_height * (size_t)t.sizes.chunk_width);
    t.picture = scratch;
    for (size_t g = 0; g < (size_t)conv->groups; g++) {
        t.dweights = dweights + g * maps * channels * (size_t)t.sizes.taps;
        t.dbiases = dbiases + g * maps;
        t.dy = dy + g * maps * (size_t)lanes;
        t.x = x + g * channels * (size_t)lanes;
        gradient_group(&t, blocks);
    }
}

#endif
