// The tiles of Winograd's minimal filtering (winograd.inc.h): where they lie in a picture, and
// their data at the points.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_TILES_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_TILES_INC_H

#include "core/hogwild.h"
#include "kernels/block/conv_plan.inc.h"
#include "kernels/block/run.inc.h"
#include "kernels/block/winograd_products.inc.h"
#include "kernels/block/winograd_transform.inc.h"
#include "kernels/conv_sizes.h"
#include "kernels/winograd_sizes.h"

enum {
    TAPS_MOST = 25,       // of a kernel: 5 x 5
    KERNEL_CHANNELS = 16, // turned at a time, a multiple of LANES: squares of LANES are
    TILE_PIXELS = WINOGRAD_TILE * WINOGRAD_TILE,
};

struct winograd {
    struct winograd_sizes sizes;
    bool single; // samples: vectors of channels and of maps are called channels and maps
    const struct window *window;
    int channels, maps; // of the whole convolution
    float *kernels;     // of one group, or its gradient: bundles x slices x channels x LANES maps
    float *data;        // slices x tiles x channels x LANES
    // Products: slices x tiles x maps x LANES. Those of a slice overwrite the data of the slice
    // before, so slices are multiplied in order, each over all channels. Or error gradients, of a
    // share of the maps (winograd_gradient.inc.h).
    float *values;
};

// `single`: of blocks of one lane.
static struct winograd winograd_lay(const struct convolution *conv, bool single,
                                    enum conv_pass pass, float *scratch) {
    struct winograd w = {.sizes =
                             (single ? winograd_single_sizes : winograd_sizes)(conv, LANES, pass),
                         .single = single,
                         .window = &conv->window,
                         .channels = single ? conv->window.c / LANES : conv->window.c,
                         .maps = single ? conv->maps / LANES : conv->maps,
                         .kernels = scratch};
    w.data = scratch + w.sizes.data;
    w.values = scratch + w.sizes.values;
    return w;
}

static int least(int a, int b) {
    return a < b ? a : b;
}

// Size of the next part when `left` is cut into equal parts of at most `most`.
static int equal_part(int left, int most) {
    return divided_up(left, divided_up(left, most));
}

// A chunk of tiles: [first, first + count) of a part of the picture, counted over all blocks.
struct tiles {
    const struct winograd *winograd;
    const struct winograd_part *part;
    bool whole; // in both sides
    const struct side_functions *down, *across;
    const struct square_functions *square; // of whole tiles of kernels of 3; else NULL
    int high, wide;                        // points
    int first, count;
};

static struct tiles tiles_of(const struct winograd *w, const struct winograd_part *part) {
    int taps = w->sizes.points + 1 - WINOGRAD_TILE;
    bool whole = part->high == WINOGRAD_TILE && part->wide == WINOGRAD_TILE;
    return (struct tiles){.winograd = w,
                          .part = part,
                          .down = &FAMILY(sides)[taps == 5][part->high - 1],
                          .across = &FAMILY(sides)[taps == 5][part->wide - 1],
                          .whole = whole,
                          .square = whole && taps == 3 ? &FAMILY(squares) : NULL,
                          .high = part->high + taps - 1,
                          .wide = part->wide + taps - 1};
}

// equal_part() in multiples of PRODUCT_COLUMNS, which are multiplied together.
static int tiles_part(int left, int most) {
    if (most < PRODUCT_COLUMNS)
        return equal_part(left, most);
    int columns = equal_part(divided_up(left, PRODUCT_COLUMNS), most / PRODUCT_COLUMNS);
    return least(left, columns * PRODUCT_COLUMNS);
}

// Advances to the next chunk of `blocks` blocks. False: there is none.
static bool tiles_next(struct tiles *t, int blocks) {
    int all = blocks * t->part->down * t->part->across;
    t->first += t->count;
    t->count = t->first < all ? tiles_part(all - t->first, t->winograd->sizes.chunk) : 0;
    return t->count > 0;
}

// A tile's block and its first output pixel.
struct tile_position {
    size_t block;
    int y, x;
};

static struct tile_position tile_position(const struct tiles *t, int tile) {
    const struct winograd_part *p = t->part;
    int all = p->down * p->across, i = t->first + tile;
    return (struct tile_position){(size_t)(i / all), p->y + i % all / p->across * WINOGRAD_TILE,
                                  p->x + i % p->across * WINOGRAD_TILE};
}

// Maps point i of the n that a short side uses to its number among all points: the last of an
// even number is infinity (winograd_points.inc.h).
static int point_of(int i, int n, int all) {
    return i == n - 1 && n % 2 == 0 ? all - 1 : i;
}

// Offset of a slice of these tiles within a bundle of kernels.
static size_t kernel_slice(const struct tiles *t, int slice) {
    const struct winograd_sizes *s = &t->winograd->sizes;
    int y = point_of(slice / t->wide, t->high, s->points);
    int x = point_of(slice % t->wide, t->wide, s->points);
    return (size_t)(y * s->points + x) * s->kernel_slice;
}

// Transforms one channel of a tile, with `row` and `column` floats from pixel to pixel.
static void data_vector(const struct tiles *t, float *to, const float *from, size_t row,
                        size_t column) {
    struct square line;
    size_t slice = t->winograd->sizes.data_slice;
    if (t->winograd->sizes.far)
        ask_to_write(t->high, t->wide, to + AHEAD, (size_t)t->wide * slice, slice);
    if (t->square) {
        t->square->data(to, slice, from, row, column);
        return;
    }
    t->down->data_columns(&line, from, row, column, t->wide);
    t->across->data_rows(to, slice, &line, t->high);
}

// Transforms all channels of a tile that reaches over the border, with zeros there.
static void data_edge(const struct tiles *t, float *to, const float *picture, int y, int x) {
    const struct winograd *w = t->winograd;
    const struct window *v = w->window;
    const struct inside in = {.top = y < 0 ? -y : 0,
                              .bottom = least(v->h - y, t->high),
                              .left = x < 0 ? -x : 0,
                              .right = least(v->w - x, t->wide)};
    size_t pixel = (size_t)w->channels * LANES, row = (size_t)v->w * pixel;
    size_t slice = w->sizes.data_slice;
    const float *from = picture + (size_t)(y + in.top) * row + (size_t)(x + in.left) * pixel;
    for (int c = 0; c < w->sizes.channels; c++, to += LANES, from += LANES) {
        struct square line;
        if (w->sizes.far) {
            ask_to_read(in.bottom - in.top, in.right - in.left, from + AHEAD, row, pixel);
            ask_to_write(t->high, t->wide, to + AHEAD, (size_t)t->wide * slice, slice);
        }
        if (t->square) {
            t->square->edge(to, slice, from, row, pixel, &in);
            continue;
        }
        t->down->edge_columns(&line, from, row, pixel, t->wide, &in);
        t->across->data_rows(to, slice, &line, t->high);
    }
}

// Transforms the data of the tiles, of a group's channels from x on, into w->data.
static void winograd_data(const struct tiles *t, const float *x) {
    const struct winograd *w = t->winograd;
    const struct window *v = w->window;
    size_t pixel = (size_t)w->channels * LANES, row = (size_t)v->w * pixel;
    for (int i = 0; i < t->count; i++) {
        struct tile_position p = tile_position(t, i);
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

// As winograd_kernels.back_weights, of blocks of LANES lanes and of one (winograd_gradient.inc.h
// and winograd_single_gradient.inc.h, which a family compiles apart).
void FAMILY(winograd_gradient)(float *dweights, float *dbiases, const float *dy, const float *x,
                               int blocks, const struct convolution *conv, float *scratch);
void FAMILY(winograd_single_gradient)(float *dweights, float *dbiases, const float *dy,
                                      const float *x, int blocks, const struct convolution *conv,
                                      float *scratch);

#endif
