#include "kernels/conv_sizes.h"
#include "core/least.h"

#include <limits.h>

#include "kernels/block/conv_plan.inc.h"
#include "kernels/blocks.h"
#include "kernels/conv.h"
#include "kernels/cuts.h"
#include "kernels/gradient_sizes.h"
#include "kernels/taps.h"
#include "kernels/winograd_sizes.h"

static uint64_t side_taps(int size, int out, int kernel, int stride, int pad, int skip) {
    uint64_t taps = 0;
    for (int tap = 0; tap < kernel; tap++) {
        int first, last;
        tap_range(tap * (skip + 1) - pad, stride, size, out, &first, &last);
        taps += (uint64_t)(last - first);
    }
    return taps;
}

uint64_t window_taps(const struct window *window) {
    const struct window *v = window;
    return side_taps(v->h, v->out_h, v->kernel_h, v->stride_h, v->pad_h, v->skip_h) *
           side_taps(v->w, v->out_w, v->kernel_w, v->stride_w, v->pad_w, v->skip_w);
}

size_t maxpool_winner_size(const struct window *window) {
    return window->kernel_h * window->kernel_w > UINT8_MAX ? sizeof(int32_t) : 1;
}

struct direct_sizes direct_sizes(const struct convolution *conv, int lanes) {
    const struct window *v = &conv->window;
    int reach_h = (v->out_h - 1) * v->stride_h + v->kernel_h;
    int reach_w = (v->out_w - 1) * v->stride_w + v->kernel_w;
    int width = most_int(v->w + 2 * v->pad_w, reach_w);
    struct direct_sizes s = {
        .columns = (width + v->stride_w - 1) / v->stride_w,
        .rows = most_int(v->h + 2 * v->pad_h, reach_h),
        .taps = v->c / conv->groups * v->kernel_h * v->kernel_w,
        .narrow = v->out_w <= lanes / 2,
    };
    s.row = s.columns * v->stride_w;
    s.plane = (size_t)s.rows * (size_t)s.row;
    s.picture = (size_t)v->c * s.plane + 2 * (size_t)lanes;
    s.strips = s.narrow ? (v->out_h + 1) / 2 : v->out_h * ((v->out_w + lanes - 1) / lanes);
    return s;
}

bool direct_fits(const struct convolution *conv, int lanes) {
    struct direct_sizes s = direct_sizes(conv, lanes);
    return !window_pointwise(&conv->window) && !window_dilated(&conv->window) &&
           s.picture < INT32_MAX / 2 &&
           2 * window_out_pixels(&conv->window) >= (size_t)s.strips * (size_t)lanes;
}

struct convolution conv_turned(const struct convolution *conv) {
    const struct window *v = &conv->window;
    return (struct convolution){
        .window = {.c = conv->maps,
                   .h = v->out_h,
                   .w = v->out_w,
                   .out_h = v->h,
                   .out_w = v->w,
                   .kernel_h = v->kernel_h,
                   .kernel_w = v->kernel_w,
                   .stride_h = 1,
                   .stride_w = 1,
                   .pad_h = v->kernel_h - 1 - v->pad_h,
                   .pad_w = v->kernel_w - 1 - v->pad_w,
                   .skip_h = v->skip_h,
                   .skip_w = v->skip_w},
        .maps = v->c,
        .groups = conv->groups,
    };
}

// Adds a * b * c floats, rounded up to a cache line; false when it overflows.
static bool add(size_t *floats, size_t a, size_t b, size_t c) {
    size_t product;
    return !__builtin_mul_overflow(a, b, &product) &&
           !__builtin_mul_overflow(product, c, &product) &&
           !__builtin_add_overflow(product, 15, &product) &&
           !__builtin_add_overflow(*floats, product & ~(size_t)15, floats);
}

// What conv_direct.inc.h takes from its scratch, with vectors of so many lanes.
static bool add_direct(size_t *floats, const struct convolution *conv, int lanes) {
    struct direct_sizes s = direct_sizes(conv, lanes);
    size_t maps = (size_t)conv->maps, strips = (size_t)s.strips, taps = (size_t)s.taps;
    return add(floats, DIRECT_CHUNK, s.picture, 1) && add(floats, taps, 1, 1) &&
           add(floats, 8, strips + 1, 1) &&
           add(floats, DIRECT_CHUNK * maps, strips, (size_t)lanes) && add(floats, maps, taps, 1);
}

size_t conv_scratch(const struct convolution *conv) {
    const struct window *v = &conv->window;
    struct convolution turned = conv_turned(conv);
    size_t taps = conv_taps(conv), columns = 0;
    size_t channels = (size_t)v->c, maps = (size_t)conv->maps;
    if (!window_pointwise(v) && !add(&columns, channels, taps, window_out_pixels(v)))
        return SIZE_MAX;
    for (int lanes = KERNELS_LANES_LEAST; lanes <= KERNELS_LANES_MOST && !window_dilated(v);
         lanes *= 2) {
        size_t there = 0, back = 0;
        if (!add_direct(&there, conv, lanes) || !add_direct(&back, &turned, lanes) ||
            !add(&back, maps, channels, taps))
            return SIZE_MAX;
        columns = most_size(columns, most_size(there, back));
    }
    return columns;
}

// For any lanes: packed weights of each tap for a group of so many maps, and tiles.
static size_t widths_most(int maps) {
    size_t width = 0;
    for (int most = KERNELS_LANES_LEAST; most <= KERNELS_LANES_MOST; most *= 2)
        for (int lanes = 1; lanes <= most; lanes *= 2)
            width = most_size(width, conv_widths(lanes, most, maps));
    return width;
}

static size_t tiles_most(int maps) {
    size_t tiles = 0;
    for (int most = KERNELS_LANES_LEAST; most <= KERNELS_LANES_MOST; most *= 2)
        for (int lanes = 1; lanes <= most; lanes *= 2)
            tiles = most_size(tiles, (size_t)conv_tiles_of(lanes, most, maps));
    return tiles;
}

// What block/conv.inc.h takes for one pass from `sources` to `results` channels of a
// group, whose results are h x w, with `phases` of columns.
static bool add_pass(size_t *floats, const struct window *v, int sources, int results, int h, int w,
                     int phases) {
    size_t kernel = (size_t)v->kernel_h * (size_t)v->kernel_w, width = (size_t)w;
    size_t rows = (size_t)v->kernel_h * (size_t)phases, run = CONV_FLOATS(struct conv_run);
    return add(floats, widths_most(results), kernel, (size_t)sources) &&
           add(floats, tiles_most(results), rows, CONV_SPACE) &&
           add(floats, (size_t)results, KERNELS_LANES_MOST, 1) &&
           add(floats, CONV_FLOATS(size_t), kernel + KERNELS_LANES_MOST, 1) &&
           add(floats, run, (size_t)h, 1) && add(floats, run, (size_t)v->kernel_h, 1) &&
           add(floats, run, width, 1) && add(floats, CONV_FLOATS(struct conv_span), width, 1) &&
           add(floats, CONV_FLOATS(struct conv_pixel), most_size(width, CONV_PIXELS), 1);
}

// Columns that fit 16 registers beside so many vectors of maps, and 32 (weights_tiles.inc.h).
static const int columns_beside[2][GRADIENT_ROWS] = {{9, 6, 4, 3, 2}, {9, 9, 6, 6, 5}};

// The tile that loads least for its multiplies.
static void gradient_tiles(struct gradient_sizes *s, int vector) {
    long long fewest = LLONG_MAX;
    for (int rows = 1; rows <= GRADIENT_ROWS; rows++) {
        int row_tiles = cuts(s->rows, rows);
        int column_tiles =
            cuts(s->columns, columns_beside[vector_registers(vector) == 32][rows - 1]);
        long long loads = (long long)column_tiles * s->rows + (long long)row_tiles * s->columns;
        if (loads < fewest) {
            fewest = loads;
            s->row_tiles = row_tiles;
            s->column_tiles = column_tiles;
        }
    }
}

// Tasks as square as can be, so that what is packed is used often, of sums that
// stay in the L2 cache. Columns of neighbouring taps stay together.
static void gradient_tasks(struct gradient_sizes *s) {
    enum { SUMS = 4096 };
    int rows = cuts(s->rows, s->row_tiles), columns = cuts(s->columns, s->column_tiles), side = 1;
    while ((side + 1) * (side + 1) * s->taps <= SUMS)
        side++;
    s->task_column_tiles = least_int(most_int(side / columns, 1), s->column_tiles);
    if (s->across > 1)
        s->task_column_tiles = s->column_tiles;
    s->task_columns = s->task_column_tiles * columns;
    s->task_row_tiles =
        least_int(most_int(SUMS / s->taps / s->task_columns / rows, 1), s->row_tiles);
    s->task_rows = s->task_row_tiles * rows;
}

// Strips of outputs whose error gradients and pixels of one tile share the L1 cache (40 of its 48
// KiB), chunks whose packed ones share the L2 cache, regions long enough to outweigh a fold.
static void gradient_chunks(struct gradient_sizes *s, const struct window *v, int lanes,
                            int vector) {
    enum { L1_FLOATS = 10240, L2_FLOATS = 65536, FOLD_PIXELS = 512 };
    int rows = cuts(s->rows, s->row_tiles), columns = cuts(s->columns, s->column_tiles);
    int apart = s->across > 1 ? 1 : least_int(v->stride_w, v->kernel_w);
    int pixels = most_int(L1_FLOATS / (rows * vector + columns * lanes * apart), 1);
    s->chunk_width = cuts(v->out_w, cuts(v->out_w, pixels));
    s->strip = least_int(most_int(pixels / s->chunk_width, 1), v->out_h);
    pixels = L2_FLOATS / (s->task_rows * vector + s->task_columns * lanes);
    s->chunk_height = least_int(most_int(pixels / s->chunk_width, s->strip), v->out_h);
    s->region_height = least_int(most_int(cuts(FOLD_PIXELS, v->out_w), s->chunk_height), v->out_h);
    s->region_blocks = s->region_height < v->out_h ? 1 : cuts(FOLD_PIXELS, v->out_w * v->out_h);
}

struct gradient_sizes gradient_sizes(const struct convolution *conv, int lanes, int vector) {
    enum { FEW = 4 };
    const struct window *v = &conv->window;
    struct gradient_sizes s = {.channels = v->c / conv->groups};
    s.across = s.channels < FEW ? v->kernel_w : 1;
    s.rows = cuts(conv->maps / conv->groups, vector / lanes);
    s.columns = s.channels * s.across;
    s.taps = v->kernel_h * v->kernel_w / s.across;
    gradient_tiles(&s, vector);
    gradient_tasks(&s);
    gradient_chunks(&s, v, lanes, vector);
    if (s.across > 1)
        s.packed = conv->groups > 1 || v->pad_w > 0 ||
                   window_reach(v->out_w, v->stride_w, v->kernel_w) > v->w;
    else
        s.packed = lanes == vector && s.column_tiles > 1;
    // Where few sums stand behind each error gradient, it is read where it lies.
    s.packed_errors = conv->maps / conv->groups * lanes % vector || s.columns * s.taps > 64;
    return s;
}

bool gradient_turns(const struct convolution *conv, int lanes, int vector) {
    int maps = conv->maps, channels = conv->window.c;
    return lanes == 1 && conv->groups == 1 && window_pointwise(&conv->window) &&
           (long long)cuts(channels, vector) * maps < (long long)cuts(maps, vector) * channels;
}

// What the weight gradient of blocks takes from its scratch.
static bool add_gradient(size_t *floats, const struct convolution *conv, int lanes, int vector) {
    const struct window *v = &conv->window;
    struct gradient_sizes s = gradient_sizes(conv, lanes, vector);
    size_t rows = (size_t)s.task_rows * (size_t)vector, columns = (size_t)s.task_columns;
    size_t height = (size_t)window_reach(s.chunk_height, v->stride_h, v->kernel_h);
    size_t width = (size_t)window_reach(s.chunk_width, v->stride_w, v->kernel_w);
    return add(floats, rows, columns, (size_t)s.taps) && add(floats, rows, 1, 1) &&
           add(floats, rows, (size_t)s.chunk_height, (size_t)s.chunk_width) &&
           (!s.packed || add(floats, height * columns, width, (size_t)lanes));
}

static size_t gradient_scratch(const struct convolution *conv) {
    const struct convolution turned = conv_turned(conv);
    size_t floats = 0;
    for (int vector = KERNELS_LANES_LEAST; vector <= KERNELS_LANES_MOST; vector *= 2)
        for (int lanes = 1; lanes <= vector; lanes *= 2) {
            size_t these = 0;
            bool turns = gradient_turns(conv, lanes, vector);
            if (!add_gradient(&these, turns ? &turned : conv, lanes, vector))
                return SIZE_MAX;
            floats = most_size(floats, these);
        }
    return floats;
}

// What block/depthwise.inc.h and block/depthwise_gradient.inc.h take: a run for each tap, one more,
// and runs of rows and columns.
static bool add_depthwise(size_t *floats, const struct convolution *conv) {
    const struct window *v = &conv->window;
    size_t run = CONV_FLOATS(struct conv_run);
    return add(floats, conv_taps(conv), (size_t)v->c, KERNELS_LANES_MOST) &&
           add(floats, (size_t)v->c, KERNELS_LANES_MOST, 1) &&
           add(floats, run, (size_t)most_int(v->h, v->out_h), 1) &&
           add(floats, run, (size_t)most_int(v->w, v->out_w), 1);
}

int conv_merge(const struct convolution *conv, int lanes, int vector) {
    int maps = conv->maps / conv->groups, channels = conv->window.c / conv->groups;
    int merge = conv_depthwise(conv) ? 1 : most_int(vector / lanes / most_int(maps, channels), 1);
    while (conv->groups % merge != 0)
        merge--;
    return merge;
}

struct convolution conv_merged(const struct convolution *conv, int merge) {
    return (struct convolution){conv->window, conv->maps, conv->groups / merge};
}

static size_t block_scratch(const struct convolution *conv) {
    const struct window *v = &conv->window;
    int channels = v->c / conv->groups, maps = conv->maps / conv->groups;
    size_t there = 0, back = 0, depthwise = 0;
    if (conv_depthwise(conv))
        return add_depthwise(&depthwise, conv) ? depthwise : SIZE_MAX;
    if (!add_pass(&there, v, channels, maps, v->out_h, v->out_w, 1) ||
        !add_pass(&back, v, maps, channels, v->h, v->w, v->stride_w))
        return SIZE_MAX;
    for (int lanes = KERNELS_LANES_LEAST; lanes <= KERNELS_LANES_MOST; lanes *= 2)
        there = most_size(there, winograd_scratch(conv, lanes));
    return most_size(most_size(there, back), gradient_scratch(conv));
}

size_t conv_block_scratch(const struct convolution *conv) {
    if (window_dilated(&conv->window))
        return 0;
    size_t floats = block_scratch(conv);
    for (int vector = KERNELS_LANES_LEAST; vector <= KERNELS_LANES_MOST; vector *= 2)
        for (int lanes = 1; lanes < vector; lanes *= 2) {
            int merge = conv_merge(conv, lanes, vector);
            struct convolution merged = conv_merged(conv, merge);
            size_t these = merge > 1 ? block_scratch(&merged) : 0;
            size_t channels = (size_t)(merged.window.c / merged.groups);
            if (merge > 1 && !add(&these, (size_t)conv->maps, channels, conv_taps(conv)))
                return SIZE_MAX;
            floats = most_size(floats, these);
        }
    return floats;
}
