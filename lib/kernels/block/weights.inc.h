// The gradient of the weights of convolutions of blocks,
//   dW[map][channel][tap] = sum over pixels and samples of dY[pixel][map] X[pixel + tap][channel],
// and that of the biases, the sums of dY.
//
// Tiles of sums (weights_tile.inc.h) pass over the rectangle of pixels at which their tap falls on
// the picture, so that no tap on padding is multiplied. Where channels are few, neighbouring taps
// are the columns of a tile, since tiles of single taps would load as much as they multiply; only
// then are rows padded. Lanes are added up at the end (weights_fold.inc.h), behind many pixels.
//
// Outputs are cut into strips whose error gradients and pixels share the L1 cache, and chunks whose
// packed ones share the L2 cache (gradient_chunks in conv_sizes.c).
#ifndef ADAM_KERNELS_BLOCK_WEIGHTS_INC_H
#define ADAM_KERNELS_BLOCK_WEIGHTS_INC_H

#include "kernels/block/depthwise_gradient.inc.h"
#include "kernels/block/weights_fold.inc.h"
#include "kernels/block/weights_pack.inc.h"
#include "kernels/block/weights_tile.inc.h"
#include "kernels/conv_sizes.h"
#include "kernels/cuts.h"
#include "kernels/gradient_sizes.h"
#include "kernels/portable/carve.inc.h"
#include "kernels/window.h"

// What is summed up before it is folded: tiles of some maps x columns of one group,
// over a region of outputs.
struct gradient_task {
    const struct convolution *conv;
    struct gradient_sizes sizes;
    int lanes;
    struct tiling rows, columns;
    int row, row_end, column, column_end; // the same as vectors of maps, and columns
    const float *dy, *x;                  // of the region's first block, of the group
    float *dweights, *dbiases;            // of the group; NULL: nobody wants the latter
    int blocks, y, y_end;                 // the region
    bool add;                             // it is not the first one
    bool turned;                          // dweights are of columns x maps (gradient_turns)
    float *sums, *biases;                 // rows x columns x taps, rows
    float *errors, *picture;              // packed
    gradient_function *const (*tiles)[GRADIENT_COLUMNS];
    gather_function *gather;
};

// Numbers of a rectangle of pixels, the first of which is at (y, x).
struct gradient_view {
    const float *at;
    int y, x;
    size_t row, pixel; // floats from row to row, pixel to pixel
};

static const float *view_at(const struct gradient_view *view, int y, int x) {
    return view->at + (size_t)(y - view->y) * view->row + (size_t)(x - view->x) * view->pixel;
}

// Outputs of one block that are packed at once, and what they see of it.
struct gradient_chunk {
    struct gradient_view dy, x; // of the block, all maps and channels
    int y, x_begin, height, width;
    int in_y, in_x, in_height, in_width;
    bool first; // of the task
};

// The error gradients of one tile.
static struct gradient_view tile_errors(const struct gradient_task *t,
                                        const struct gradient_chunk *chunk, int first, int rows) {
    if (!t->sizes.packed_errors)
        return (struct gradient_view){chunk->dy.at + first * LANES, 0, 0, chunk->dy.row,
                                      chunk->dy.pixel};
    size_t pixels = (size_t)chunk->height * (size_t)chunk->width, pixel = (size_t)rows * LANES;
    return (struct gradient_view){t->errors + (size_t)(first - t->row) * pixels * LANES, chunk->y,
                                  chunk->x_begin, (size_t)chunk->width * pixel, pixel};
}

// What one tile sees.
static struct gradient_view tile_picture(const struct gradient_task *t,
                                         const struct gradient_chunk *chunk, int first,
                                         int columns) {
    size_t lanes = (size_t)t->lanes;
    if (!t->sizes.packed)
        return (struct gradient_view){chunk->x.at + (size_t)first * lanes, 0, 0, chunk->x.row,
                                      chunk->x.pixel};
    size_t pixel = (size_t)columns * lanes, before = (size_t)(first - t->column) * lanes;
    if (t->sizes.across > 1)
        pixel = (size_t)t->sizes.channels * lanes;
    else
        before *= (size_t)chunk->in_height * (size_t)chunk->in_width;
    return (struct gradient_view){t->picture + before, chunk->in_y, chunk->in_x,
                                  (size_t)chunk->in_width * pixel, pixel};
}

static void chunk_pack(const struct gradient_task *t, const struct gradient_chunk *chunk) {
    if (t->sizes.packed_errors) {
        int missing = t->row_end * LANES - t->conv->maps / t->conv->groups * t->lanes;
        pack_tiles(t->errors, view_at(&chunk->dy, chunk->y, chunk->x_begin) + t->row * LANES,
                   chunk->dy.row, chunk->dy.pixel, chunk->height, chunk->width, t->rows,
                   missing > 0 ? LANES - missing : LANES);
    }
    if (t->sizes.packed && t->sizes.across > 1)
        pack_padded(t->picture, chunk->x.at, chunk->x.pixel, t->conv->window.w, chunk->in_y,
                    chunk->in_x, chunk->in_height, chunk->in_width,
                    (size_t)(t->sizes.channels * t->lanes));
    else if (t->sizes.packed)
        pack_tiles(t->picture, view_at(&chunk->x, chunk->in_y, chunk->in_x) + t->column * LANES,
                   chunk->x.row, chunk->x.pixel, chunk->in_height, chunk->in_width, t->columns,
                   LANES);
}

// The sum of one vector of maps.
static vector error_sum(const struct gradient_view *errors, const struct gradient_chunk *chunk) {
    vector sum[4] = {0};
    for (int y = chunk->y; y < chunk->y + chunk->height; y++) {
        const float *at = view_at(errors, y, chunk->x_begin);
        int x = 0;
        for (; x + 4 <= chunk->width; x += 4)
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++, at += errors->pixel)
                sum[i] += *(const vector *)at;
        for (; x < chunk->width; x++, at += errors->pixel)
            sum[0] += *(const vector *)at;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void chunk_biases(const struct gradient_task *t, const struct gradient_chunk *chunk) {
    for (int i = t->rows.begin; i < t->rows.end; i++) {
        struct interval maps = tiling_piece(&t->rows, i);
        struct gradient_view errors = tile_errors(t, chunk, maps.begin, maps.end - maps.begin);
        for (int r = maps.begin; r < maps.end; r++, errors.at += LANES)
            ((vector *)t->biases)[r - t->row] += error_sum(&errors, chunk);
    }
}

// The part of outputs `all` at which taps shift + [0, taps) fall on the picture.
static struct interval seen(struct interval all, int shift, int taps, int stride, int size) {
    struct interval part, early, late;
    tap_range(shift, stride, size, all.end, &early.begin, &early.end);
    tap_range(shift + taps - 1, stride, size, all.end, &late.begin, &late.end);
    part.begin = late.begin > all.begin ? late.begin : all.begin;
    part.end = early.end;
    return part;
}

// One tile at tap (ky, kx) and, where taps across are columns, at those from kx + left on.
struct gradient_tile {
    struct interval maps, columns;
    struct gradient_view errors, x;
    int left, taps;
};

static struct gradient_tile gradient_tile_of(const struct gradient_task *t,
                                             const struct gradient_chunk *chunk, int i, int j) {
    struct gradient_tile tile = {
        .maps = tiling_piece(&t->rows, i), .columns = tiling_piece(&t->columns, j), .taps = 1};
    int first = tile.columns.begin, end = tile.columns.end;
    tile.errors = tile_errors(t, chunk, tile.maps.begin, tile.maps.end - tile.maps.begin);
    tile.x = tile_picture(t, chunk, first, end - first);
    if (t->sizes.across > 1) {
        tile.left = first / t->sizes.channels;
        tile.taps = (end - 1) / t->sizes.channels + 1 - tile.left;
    }
    return tile;
}

// The rectangle of outputs that a visit is to sum over.
static void visit_outputs(struct gradient_visit *visit, const struct gradient_tile *tile,
                          const struct window *w, struct interval down, struct interval along,
                          int ky, int kx) {
    visit->height = down.end - down.begin;
    visit->width = along.end - along.begin;
    if (visit->height <= 0 || visit->width <= 0) {
        visit->height = 0;
        return;
    }
    visit->errors = view_at(&tile->errors, down.begin, along.begin);
    visit->x = view_at(&tile->x, down.begin * w->stride_h + ky - w->pad_h,
                       along.begin * w->stride_w + kx - w->pad_w);
}

// All taps of one tile over some rows of a chunk.
static void tile_taps(const struct gradient_task *t, const struct gradient_chunk *chunk,
                      struct interval rows, const struct gradient_tile *tile) {
    const struct window *w = &t->conv->window;
    const struct gradient_sizes *s = &t->sizes;
    size_t across = (size_t)(t->column_end - t->column), taps = (size_t)s->taps;
    struct gradient_visit visit = {
        .error_row = tile->errors.row,
        .error_pixel = tile->errors.pixel,
        .x_row = (size_t)w->stride_h * tile->x.row,
        .x_pixel = (size_t)w->stride_w * tile->x.pixel,
        .sums_row = across * taps * LANES,
        .sums_column = (s->across > 1 ? 1 : taps) * LANES,
        .first = chunk->first && rows.begin == chunk->y,
    };
    visit.sums = t->sums + (size_t)(tile->maps.begin - t->row) * visit.sums_row +
                 (size_t)(tile->columns.begin - t->column) * visit.sums_column;
    gradient_function *sum = t->tiles[tile->maps.end - tile->maps.begin - 1]
                                     [tile->columns.end - tile->columns.begin - 1];
    struct interval whole = {chunk->x_begin, chunk->x_begin + chunk->width};
    for (int ky = 0; ky < w->kernel_h; ky++) {
        struct interval down = seen(rows, ky - w->pad_h, 1, w->stride_h, w->h);
        for (int kx = 0; kx < w->kernel_w; kx += s->across) {
            struct interval along =
                seen(whole, kx + tile->left - w->pad_w, tile->taps, w->stride_w, w->w);
            visit_outputs(&visit, tile, w, down, along, ky, kx);
            if (visit.height || visit.first)
                sum(&visit);
            visit.sums += (s->across > 1 ? across : 1) * LANES;
        }
    }
}

// Strip by strip, so that what a tile reads stays in the L1 cache for all its taps.
static void chunk_sums(const struct gradient_task *t, const struct gradient_chunk *chunk) {
    int strips = cuts(chunk->height, t->sizes.strip);
    for (int s = 0; s < strips; s++) {
        struct interval rows = {chunk->y + cut(chunk->height, strips, s),
                                chunk->y + cut(chunk->height, strips, s + 1)};
        for (int j = t->columns.begin; j < t->columns.end; j++)
            for (int i = t->rows.begin; i < t->rows.end; i++) {
                struct gradient_tile tile = gradient_tile_of(t, chunk, i, j);
                tile_taps(t, chunk, rows, &tile);
            }
    }
}

// What outputs [out, out + count) see of an axis of `size`: all of it that is there
// or, when padded, whatever they reach.
static void see(int *from, int *count, int out, int outs, int stride, int pad, int kernel, int size,
                bool padded) {
    int begin = out * stride - pad, end = begin + window_reach(outs, stride, kernel);
    if (!padded) {
        begin = begin < 0 ? 0 : begin < size ? begin : size;
        end = end < begin ? begin : end < size ? end : size;
    }
    *from = begin;
    *count = end - begin;
}

static void chunk_step(const struct gradient_task *t, struct gradient_chunk *chunk) {
    const struct window *v = &t->conv->window;
    see(&chunk->in_y, &chunk->in_height, chunk->y, chunk->height, v->stride_h, v->pad_h,
        v->kernel_h, v->h, false);
    see(&chunk->in_x, &chunk->in_width, chunk->x_begin, chunk->width, v->stride_w, v->pad_w,
        v->kernel_w, v->w, t->sizes.across > 1);
    chunk_pack(t, chunk);
    if (t->column == 0 && t->dbiases)
        chunk_biases(t, chunk);
    chunk_sums(t, chunk);
    chunk->first = false;
}

static struct gradient_view block_view(const float *at, int width, int maps, int lanes) {
    size_t pixel = (size_t)maps * (size_t)lanes;
    return (struct gradient_view){at, 0, 0, (size_t)width * pixel, pixel};
}

// All chunks of a region.
static void task_sums(const struct gradient_task *t) {
    const struct window *v = &t->conv->window;
    size_t outputs = window_out_pixels(v) * (size_t)t->conv->maps * (size_t)t->lanes;
    size_t inputs = window_in(v) * (size_t)t->lanes;
    int height = t->y_end - t->y, down = cuts(height, t->sizes.chunk_height);
    int along = cuts(v->out_w, t->sizes.chunk_width);
    struct gradient_chunk chunk = {.first = true};
    for (int b = 0; b < t->blocks; b++) {
        chunk.dy = block_view(t->dy + (size_t)b * outputs, v->out_w, t->conv->maps, t->lanes);
        chunk.x = block_view(t->x + (size_t)b * inputs, v->w, v->c, t->lanes);
        for (int i = 0; i < down; i++)
            for (int j = 0; j < along; j++) {
                chunk.y = t->y + cut(height, down, i);
                chunk.height = t->y + cut(height, down, i + 1) - chunk.y;
                chunk.x_begin = cut(v->out_w, along, j);
                chunk.width = cut(v->out_w, along, j + 1) - chunk.x_begin;
                chunk_step(t, &chunk);
            }
    }
}

// The sums of a task to where they belong. Where taps across are columns, channels
// take turns among them.
static void task_gather(const struct gradient_task *t) {
    const struct gradient_sizes *s = &t->sizes;
    int share = LANES / t->lanes, columns = t->column_end - t->column;
    size_t taps = (size_t)s->taps * (size_t)s->across;
    size_t step = s->across > 1 ? (size_t)s->channels : 1;
    int parts = (int)step, count = columns * s->taps / parts;
    for (int r = t->row; r < t->row_end; r++) {
        const float *sums = t->sums + (size_t)((r - t->row) * columns * s->taps) * LANES;
        struct gathered g = {.map_size = (size_t)s->channels * taps,
                             .maps = t->conv->maps / t->conv->groups - r * share,
                             .count = count,
                             .add = t->add};
        float *to = t->dweights + (size_t)(r * share) * g.map_size +
                    (s->across > 1 ? 0 : (size_t)t->column * taps);
        for (int p = 0; p < parts; p++) {
            g.to = to + (size_t)p * taps;
            t->gather(&g, sums + p * LANES, step * LANES);
        }
    }
}

static void task_put_turned(const struct gradient_task *t) {
    int maps = t->conv->maps, columns = t->column_end - t->column;
    const float *sums = t->sums;
    for (int r = t->row; r < t->row_end; r++)
        for (int c = t->column; c < t->column + columns; c++, sums += LANES)
            gather_store(t->dweights + (size_t)c * (size_t)maps + (size_t)(r * LANES),
                         *(const vector *)sums, least_int(maps - r * LANES, LANES), t->add);
}

static void task_biases(const struct gradient_task *t) {
    int share = LANES / t->lanes, maps = t->conv->maps / t->conv->groups;
    for (int m = t->row * share; m < t->row_end * share && m < maps; m++) {
        const float *sums = t->biases + (m - t->row * share) * t->lanes;
        float sum = t->add ? t->dbiases[m] : 0;
        for (int l = 0; l < t->lanes; l++)
            sum += sums[l];
        t->dbiases[m] = sum;
    }
}

static void gradient_task(const struct gradient_task *t) {
    memset(t->biases, 0, (size_t)(t->row_end - t->row) * LANES * sizeof *t->biases);
    task_sums(t);
    if (t->turned) {
        task_put_turned(t);
        return;
    }
    task_gather(t);
    if (t->column == 0 && t->dbiases)
        task_biases(t);
}

// Task i of `count` along one side of all tiles: its tiles, and what they cover.
static void task_part(struct tiling *tiling, int *begin, int *end, int whole, int pieces, int count,
                      int i) {
    *tiling = (struct tiling){whole, pieces, cut(pieces, count, i), cut(pieces, count, i + 1)};
    *begin = cut(whole, pieces, tiling->begin);
    *end = cut(whole, pieces, tiling->end);
}

// All maps and channels of one group over a region.
static void gradient_group(struct gradient_task *t) {
    const struct gradient_sizes *s = &t->sizes;
    int down = cuts(s->row_tiles, s->task_row_tiles);
    int across = cuts(s->column_tiles, s->task_column_tiles);
    for (int i = 0; i < down; i++) {
        task_part(&t->rows, &t->row, &t->row_end, s->rows, s->row_tiles, down, i);
        for (int j = 0; j < across; j++) {
            task_part(&t->columns, &t->column, &t->column_end, s->columns, s->column_tiles, across,
                      j);
            gradient_task(t);
        }
    }
}

// The tiles, by the logarithm of the lanes.
static const gradient_shapes *const shapes_of_lanes[] = {
    &FAMILY(gradient_tiles_1),  &FAMILY(gradient_tiles_2), &FAMILY(gradient_tiles_4),
#if FAMILY_LANES > 4
    &FAMILY(gradient_tiles_8),
#endif
#if FAMILY_LANES > 8
    &FAMILY(gradient_tiles_16),
#endif
};

static struct gradient_task gradient_lay(const struct convolution *conv, int lanes,
                                         float *scratch) {
    int kind = __builtin_ctz((unsigned)lanes);
    struct gradient_task t = {.conv = conv,
                              .sizes = gradient_sizes(conv, lanes, LANES),
                              .lanes = lanes,
                              .tiles = *shapes_of_lanes[kind],
                              .gather = gathers[kind]};
    const struct gradient_sizes *s = &t.sizes;
    size_t rows = (size_t)s->task_rows * LANES;
    t.sums = carve(&scratch, rows * (size_t)s->task_columns * (size_t)s->taps);
    t.biases = carve(&scratch, rows);
    t.errors = carve(&scratch, rows * (size_t)s->chunk_height * (size_t)s->chunk_width);
    t.picture = scratch;
    return t;
}

// All groups over the region that the task names.
static void gradient_region(struct gradient_task t, float *dweights, float *dbiases) {
    const struct convolution *conv = t.conv;
    size_t maps = (size_t)(conv->maps / conv->groups), channels = (size_t)t.sizes.channels;
    size_t map_size = channels * (size_t)(t.sizes.taps * t.sizes.across);
    size_t lanes = (size_t)t.lanes;
    for (int g = 0; g < conv->groups; g++) {
        t.dweights = dweights + (size_t)g * maps * map_size;
        t.dbiases = dbiases ? dbiases + (size_t)g * maps : NULL;
        gradient_group(&t);
        t.dy += maps * lanes;
        t.x += channels * lanes;
    }
}

static void gradient_blocks(struct gradient_task t, float *dweights, float *dbiases,
                            const float *dy, const float *x, int blocks) {
    const struct window *v = &t.conv->window;
    size_t lanes = (size_t)t.lanes;
    int regions = cuts(v->out_h, t.sizes.region_height);
    for (int b = 0; b < blocks; b += t.blocks) {
        t.blocks = t.sizes.region_blocks < blocks - b ? t.sizes.region_blocks : blocks - b;
        t.dy = dy + (size_t)b * window_out_pixels(v) * (size_t)t.conv->maps * lanes;
        t.x = x + (size_t)b * window_in(v) * lanes;
        for (int i = 0; i < regions; i++) {
            t.y = cut(v->out_h, regions, i);
            t.y_end = cut(v->out_h, regions, i + 1);
            gradient_region(t, dweights, dbiases);
            t.add = true;
        }
    }
}

static void gradient_groups(float *dweights, float *dbiases, const float *dy, const float *x,
                            int blocks, int lanes, const struct convolution *conv, float *scratch) {
    gradient_blocks(gradient_lay(conv, lanes, scratch), dweights, dbiases, dy, x, blocks);
}

// The sums of `maps` floats of so many pixels, some of which have sums of their own.
static void sum_pixels(float *sums, const float *dy, size_t pixels, int maps) {
    enum { SOME = 256 };
    memset(sums, 0, (size_t)maps * sizeof *sums);
    for (size_t p = 0; p < pixels; p += SOME)
        for (int m = 0; m < maps; m += LANES) {
            int count = least_int(maps - m, LANES);
            const float *at = dy + p * (size_t)maps + m;
            vector sum = {0};
            for (size_t i = p; i < pixels && i < p + SOME; i++, at += maps)
                sum += load_part(at, count);
            store_part(sums + m, load_part(sums + m, count) + sum, count);
        }
}

static void gradient_turned(float *dweights, float *dbiases, const float *dy, const float *x,
                            int blocks, const struct convolution *conv, float *scratch) {
    const struct convolution turned = conv_turned(conv);
    struct gradient_task t = gradient_lay(&turned, 1, scratch);
    t.turned = true;
    gradient_blocks(t, dweights, NULL, x, dy, blocks);
    if (dbiases)
        sum_pixels(dbiases, dy, (size_t)blocks * window_out_pixels(&conv->window), conv->maps);
}

// The gradient of the weights there are, of that of all.
static void pick_merged(float *dweights, const float *all, const struct convolution *conv,
                        int merge) {
    size_t own = (size_t)(conv->window.c / conv->groups) * conv_taps(conv);
    for (int m = 0; m < conv->maps; m++)
        for (size_t i = 0; i < own; i++)
            dweights[(size_t)m * own + i] = all[conv_merged_place(conv, merge, m) + i];
}

static void gradient_merged(float *dweights, float *dbiases, const float *dy, const float *x,
                            int blocks, int lanes, const struct convolution *conv, int merge,
                            float *scratch) {
    struct convolution merged = conv_merged(conv, merge);
    float *gradient = carve(&scratch, conv_weights(&merged));
    gradient_groups(gradient, dbiases, dy, x, blocks, lanes, &merged, scratch);
    pick_merged(dweights, gradient, conv, merge);
}

static void conv_block_back_weights(float *dweights, float *dbiases, const float *dy,
                                    const float *x, int blocks, int lanes,
                                    const struct convolution *conv, float *scratch) {
    int merge = conv_merge(conv, lanes, LANES);
    if (conv_depthwise(conv))
        depthwise_back_weights(dweights, dbiases, dy, x, blocks, lanes, conv, scratch);
    else if (merge > 1)
        gradient_merged(dweights, dbiases, dy, x, blocks, lanes, conv, merge, scratch);
    else if (gradient_turns(conv, lanes, LANES))
        gradient_turned(dweights, dbiases, dy, x, blocks, conv, scratch);
    else
        gradient_groups(dweights, dbiases, dy, x, blocks, lanes, conv, scratch);
}

#endif
