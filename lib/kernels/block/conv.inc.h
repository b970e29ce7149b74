// Convolutions of blocks and the error gradients of their inputs: the same sums over taps
// (conv_plan.inc.h) in the same tiles (conv_tile.inc.h).
//
// Pixels are grouped by the taps that they see, a product of runs of rows and runs of columns.
// Any pixels of a group share a tile, since each has a pointer of its own: no tap on padding is
// multiplied, and no tile is cut off at the end of a row. Without groups, a row of taps, all
// columns x channels, is one run of floats. Maps and pixels are cut as evenly as can be; the only
// waste is the lanes that a group's last maps leave empty.
//
// With a sample in every lane, many maps x few pixels is best: a pixel's vector is LANES times as
// many bytes as its weight. With fewer lanes, 4 vectors of maps x 6 pixels. Weights are packed
// tile by tile, so that they are still in the L2 cache when used, which counts most at one sample
// a block. Figures: tests/bench/results/convolutions.txt.
#ifndef ADAM_KERNELS_BLOCK_CONV_INC_H
#define ADAM_KERNELS_BLOCK_CONV_INC_H

#include <string.h>

#include "kernels/block/conv_ahead.inc.h"
#include "kernels/block/conv_pack.inc.h"
#include "kernels/block/conv_plan.inc.h"
#include "kernels/block/conv_tile.inc.h"
#include "kernels/block/depthwise.inc.h"
#include "kernels/block/ends.inc.h"
#include "kernels/block/groups.inc.h"
#include "kernels/block/spread.inc.h"
#include "kernels/conv_sizes.h"
#include "kernels/portable/carve.inc.h"
#include "kernels/portable/relu.inc.h"

// Results from sources: outputs from inputs or, turned, error gradients of inputs from those
// of outputs.
struct conv_job {
    struct conv_axis y, x;
    int sources, results, groups; // channels of one group
    int blocks, lanes;
    bool relu;
    bool by_rows;        // of taps: each over all pixels, before the next
    int first, end;      // tiles of maps whose results are wanted
    const float *kept;   // the packed weights of all tiles; NULL: nobody has kept them
    float *weights;      // packed
    float *begin;        // what the sums of a pixel begin with
    size_t *packed_taps; // floats before each tap of the kernel, for one tile
    struct conv_run *rows, *tap_rows, *columns;
    int row_runs, column_runs;
    struct conv_span *spans; // one for each run of columns
    struct conv_pixel *pixels;
    struct ends ends;
};

// One group: its first channels, and the weights; NULL where packed ones are kept.
struct conv_part {
    float *to;
    const float *from, *weights, *end;
};

static int job_taps(const struct conv_job *p) {
    return p->y.kernel * p->x.kernel * p->sources;
}

static int job_tiles(const struct conv_job *p) {
    return conv_tiles_of(p->lanes, LANES, p->results);
}

static struct conv_rows job_tile(const struct conv_job *p, int t) {
    return conv_rows(p->lanes, LANES, p->results, t);
}

// A piece of the weights of a tile whose first vector of maps is `first`, from place
// `begin` of `width` on.
static struct conv_packing tile_piece(const struct conv_job *p, int first, int begin, int width,
                                      size_t stride) {
    struct conv_packing piece = {
        .width = (size_t)width,
        .count = width - begin < LANES ? width - begin : LANES,
        .row = p->packed_taps,
        .kernel = p->y.kernel * p->x.kernel,
    };
    for (int i = 0; i < LANES; i++) {
        int place = i < piece.count ? begin + i : width - 1;
        int map = first * (LANES / p->lanes) + conv_packed_map(p->lanes, place);
        piece.map[i] = (size_t)(map < p->results ? map : p->results - 1) * stride;
    }
    return piece;
}

// Where the taps of the kernel lie in a tile of that width: phase by phase, row by
// row; and, LANES taps further, those of the next channels.
static void lay_taps_packed(const struct conv_job *p, size_t width) {
    const struct conv_axis *y = &p->y, *x = &p->x;
    size_t *taps = p->packed_taps, at = 0;
    for (int phase_y = 0; phase_y < y->phases; phase_y++)
        for (int phase_x = 0; phase_x < x->phases; phase_x++)
            for (int row = 0; row < axis_taps(y, phase_y); row++, at += CONV_SPACE)
                for (int t = 0; t < axis_taps(x, phase_x); t++, at += (size_t)p->sources * width)
                    taps[axis_tap(y, phase_y, row) * x->kernel + axis_tap(x, phase_x, t)] = at;
    for (int i = y->kernel * x->kernel, end = i + LANES, back = i; i < end; i++)
        taps[i] = taps[i - back] + width;
}

// Packed weights of the tiles before one, and the spaces between their rows.
static size_t packed_before(const struct conv_job *p, int first, int t) {
    size_t taps = job_tile(p, t).before - job_tile(p, first).before;
    return taps * (size_t)job_taps(p) +
           (size_t)(t - first) * (size_t)(p->y.kernel * p->x.phases) * CONV_SPACE;
}

// Those of tile t, where the tiles from `first` on were packed last.
static const float *packed_tile(const struct conv_job *p, int first, int t) {
    return p->kept ? p->kept + packed_before(p, 0, t) : p->weights + packed_before(p, first, t);
}

// The weights of one tile.
static void pack_tile(float *to, const struct conv_job *p, const struct conv_rows *tile,
                      const struct conv_part *part) {
    int width = conv_width(p->lanes, LANES, tile->count), kernel = p->y.kernel * p->x.kernel;
    size_t stride = (size_t)kernel * (size_t)(p->y.turned ? 1 : p->sources);
    lay_taps_packed(p, (size_t)width);
    for (int begin = 0; begin < width; begin += LANES) {
        struct conv_packing piece = tile_piece(p, tile->first, begin, width, stride);
        piece.to = to + begin;
        piece.end = part->end;
        if (p->y.turned)
            for (int s = 0; s < p->sources; s++)
                pack_kernels(&piece, part->weights + (size_t)s * (size_t)(p->results * kernel), s,
                             kernel);
        else
            pack_kernels(&piece, part->weights, 0, (int)stride);
    }
}

// What pixels of these rows and columns see.
static struct conv_taps span_taps(const struct conv_job *p, const struct conv_run *row,
                                  const struct conv_run *column) {
    int phase_columns = axis_taps(&p->x, column->phase);
    size_t pixel = (size_t)(p->sources * p->groups) * (size_t)p->lanes;
    int before = axis_taps_before(&p->y, row->phase) * p->x.kernel +
                 axis_taps(&p->y, row->phase) * axis_taps_before(&p->x, column->phase) +
                 row->tap * phase_columns + column->tap;
    int rows_before = axis_taps_before(&p->y, row->phase) * p->x.phases +
                      axis_taps(&p->y, row->phase) * column->phase + row->tap;
    bool joined = p->groups == 1; // neighbouring pixels hold nothing else
    return (struct conv_taps){
        .rows = column->taps ? row->taps : 0,
        .runs = joined ? 1 : column->taps,
        .run = (size_t)(p->sources * p->lanes) * (size_t)(joined ? column->taps : 1),
        .run_step = pixel,
        .row_step = pixel * (size_t)p->x.sources,
        .first = (size_t)before * (size_t)p->sources,
        .first_row = (size_t)rows_before,
        .skip = (size_t)(phase_columns - column->taps) * (size_t)p->sources,
    };
}

// `rows` rows of results of one block that see the same taps.
struct conv_chunk {
    struct conv_run rows;
    int block;
};

// The pixels of a chunk in the columns of one run.
static int list_pixels(struct conv_pixel *list, const struct conv_job *p,
                       const struct conv_chunk *chunk, const struct conv_run *column,
                       const struct conv_part *part) {
    size_t pixel_from = (size_t)(p->sources * p->groups) * (size_t)p->lanes;
    size_t pixel_to = (size_t)(p->results * p->groups) * (size_t)p->lanes;
    int count = 0;
    for (int i = 0; i < chunk->rows.count; i++) {
        int row_to = chunk->block * p->y.results + chunk->rows.to + i * p->y.phases;
        int row_from = chunk->block * p->y.sources + chunk->rows.from + i * p->y.step;
        size_t at_to = (size_t)row_to * (size_t)p->x.results + (size_t)column->to;
        size_t at_from = (size_t)row_from * (size_t)p->x.sources + (size_t)column->from;
        for (int j = 0; j < column->count; j++)
            list[count++] =
                (struct conv_pixel){part->from + (at_from + (size_t)(j * p->x.step)) * pixel_from,
                                    part->to + (at_to + (size_t)(j * p->x.phases)) * pixel_to};
    }
    return count;
}

static void lay_spans(const struct conv_job *p, const struct conv_chunk *chunk,
                      const struct conv_part *part) {
    int first = 0;
    for (int i = 0; i < p->column_runs; i++) {
        struct conv_run *column = &p->columns[i];
        int count = list_pixels(p->pixels + first, p, chunk, column, part);
        p->spans[i] = (struct conv_span){span_taps(p, &chunk->rows, column), first, count};
        first += count;
    }
}

// The tiles of so many lanes, by rows and pixels.
static const conv_tile_shapes *conv_tiles(int lanes) {
    static const conv_tile_shapes *const tiles[] = {
        &FAMILY(conv_tiles_1),
        &FAMILY(conv_tiles_2),
        &FAMILY(conv_tiles_4),
#if FAMILY_LANES > 4
        &FAMILY(conv_tiles_8),
#endif
#if FAMILY_LANES > 8
        &FAMILY(conv_tiles_16),
#endif
    };
    return tiles[__builtin_ctz((unsigned)lanes)];
}

// One tile of maps over one span, in as equal tiles of pixels as can be.
static void span_tiles(const struct conv_job *p, const struct conv_span *span,
                       const struct conv_taps *taps, const struct conv_maps *maps, int rows,
                       struct conv_ahead *ahead) {
    conv_tile_function *const *shapes = (*conv_tiles(p->lanes))[rows - 1];
    int parts = divided_up(span->count, most_pixels[rows - 1]);
    for (int t = 0, done = 0; t < parts; t++) {
        int pixels = even_part(span->count, done, t, parts);
        ask_ahead(ahead);
        shapes[pixels - 1](taps, p->pixels + span->first + done, maps);
        done += pixels;
    }
}

enum { CHUNK_BYTES = 1 << 19 }; // of sources: half of an L2 cache

// Rows of results for whose pixels the list has room, and whose sources stay in the
// L2 cache while several tiles pass over them.
static int chunk_rows(const struct conv_job *p, const struct conv_run *rows) {
    size_t row = (size_t)p->x.sources * (size_t)(p->sources * p->lanes) * sizeof(float);
    size_t fit = CHUNK_BYTES / row, room = CONV_PIXELS / (size_t)p->x.results;
    size_t count =
        fit > (size_t)rows->taps ? (fit - (size_t)rows->taps) / (size_t)p->y.step + 1 : 1;
    count = count < room ? count : room;
    return count < 1 ? 1 : count < (size_t)rows->count ? (int)count : rows->count;
}

// Maps in all lanes and few pixels that see the same taps: weights would pass through
// the caches for too few products each. Row of taps by row of taps, pixels of all
// rows of results share a tile, and some channels at a time a tile's weights stay in the L1 cache;
// but sums are loaded and stored again for each, which wants many taps in a row.
static bool job_by_rows(const struct conv_job *p) {
    int pixels = p->y.results * p->x.results * p->blocks;
    return p->lanes == 1 && p->y.kernel > 1 && p->x.kernel * p->sources >= 64 &&
           pixels < 16 * p->row_runs * p->column_runs;
}

// Half of an L1 cache, for so many tiles of sums or more.
enum { PIECE_WEIGHTS = 6 << 10, PIECE_TILES = 6 };

// Tiles of sums of a chunk, for so many vectors of maps.
static int span_tile_count(const struct conv_job *p, int rows) {
    int tiles = 0;
    for (int i = 0; i < p->column_runs; i++)
        tiles += divided_up(p->spans[i].count, most_pixels[rows - 1]);
    return tiles;
}

// Channels at a time for a tile of so many vectors of maps: all, unless taps go by rows.
static int piece_channels(const struct conv_job *p, int rows) {
    int width = conv_width(p->lanes, LANES, rows), most = PIECE_WEIGHTS / (width * p->x.kernel);
    return p->by_rows && most > 0 && most < p->sources && span_tile_count(p, rows) >= PIECE_TILES
               ? even_part(p->sources, 0, 0, divided_up(p->sources, most))
               : p->sources;
}

// Of the taps of span i, `count` channels from `first` on.
static struct conv_taps some_channels(const struct conv_job *p, int i, int first, int count) {
    struct conv_taps taps = p->spans[i].taps;
    if (count == p->sources)
        return taps;
    taps.runs = p->columns[i].taps;
    taps.run = (size_t)(count * p->lanes);
    taps.run_step = (size_t)(p->sources * p->groups * p->lanes);
    taps.run_skip = (size_t)(p->sources - count);
    taps.from = (size_t)(first * p->lanes);
    taps.first += (size_t)first;
    return taps;
}

// The channels from `first` on, `most` of them, of row `row` of the taps in these weights, which
// come from memory if they are kept. NULL: there are none.
static struct conv_ahead ahead_of(const struct conv_job *p, const float *weights, int row, int rows,
                                  int first, int most) {
    size_t width = (size_t)conv_width(p->lanes, LANES, rows);
    size_t tap = (size_t)p->sources * width, taps = (size_t)p->x.kernel;
    size_t run = (size_t)least_int(most, p->sources - first) * width;
    if (!p->kept || !weights || most == p->sources)
        return (struct conv_ahead){.taps = 0};
    return (struct conv_ahead){
        .at = weights + (size_t)row * (taps * tap + CONV_SPACE) + (size_t)first * width,
        .run = run,
        .left = run,
        .skip = tap - run,
        .taps = p->x.kernel,
        .lines = divided_up((int)(taps * run / AHEAD_LINE), span_tile_count(p, rows)),
    };
}

// `count` channels from `first` on of one tile of maps over the pixels of a chunk.
static void chunk_piece(const struct conv_job *p, const struct conv_maps *maps, int rows, int first,
                        int count, struct conv_ahead ahead) {
    for (int i = 0; i < p->column_runs; i++) {
        struct conv_taps taps = some_channels(p, i, first, count);
        if (!p->by_rows || taps.rows > 0)
            span_tiles(p, &p->spans[i], &taps, maps, rows, &ahead);
    }
}

// One tile of maps over the pixels of a chunk; by rows of the taps of `row`. `next`: the weights of
// the next tile, or NULL.
static void chunk_tile(const struct conv_job *p, const struct conv_rows *tile, int row,
                       const float *weights, const float *next) {
    int left = p->results * p->lanes - tile->first * LANES, whole = tile->count * LANES;
    size_t to = (size_t)tile->first * LANES;
    struct conv_maps maps = {weights, p->by_rows ? NULL : p->begin + to, to,
                             LANES - (left < whole ? whole - left : 0), p->relu && !p->by_rows};
    for (int c = 0, end, most = piece_channels(p, tile->count); c < p->sources; c = end) {
        end = least_int(c + most, p->sources);
        chunk_piece(p, &maps, tile->count, c, end - c,
                    end < p->sources ? ahead_of(p, weights, row, tile->count, end, most)
                                     : ahead_of(p, next, row, tile->count, 0, most));
    }
}

// Tiles in so many steps, each of which packs its weights and passes over all pixels:
// what is smaller, the sources or the weights, is read again and again.
static int job_steps(const struct conv_job *p) {
    size_t pixels = (size_t)p->y.sources * (size_t)p->x.sources * (size_t)p->blocks;
    size_t sources = pixels * (size_t)p->lanes;
    size_t weights = (size_t)(p->y.kernel * p->x.kernel) * conv_widths(p->lanes, LANES, p->results);
    return sources < weights ? p->end - p->first : 1;
}

// Whether a chunk's results are complete once all tiles have passed over it.
static bool job_ends_chunks(const struct conv_job *p) {
    return ends_any(&p->ends) && p->groups == 1 && !p->by_rows && job_steps(p) == 1;
}

static void end_chunk(const struct conv_job *p, const struct conv_chunk *chunk) {
    int rows = chunk->rows.count, each = p->y.phases == 1 ? rows : 1; // that lie behind each other
    size_t row = (size_t)p->x.results;
    for (int i = 0; i < rows; i += each) {
        int number = chunk->block * p->y.results + chunk->rows.to + i * p->y.phases;
        end_pixels(&p->ends, (size_t)number * row * p->ends.run, (size_t)each * row);
    }
}

// The tiles [first, end), packed in that order, over the pixels of a run of rows.
static void run_tiles(const struct conv_job *p, const struct conv_run *rows,
                      const struct conv_part *part, int first, int end) {
    int most = chunk_rows(p, rows);
    for (int b = 0; b < p->blocks; b++)
        for (int i = 0; i < rows->count; i += most) {
            struct conv_chunk chunk = {*rows, b};
            chunk.rows.to += i * p->y.phases;
            chunk.rows.from += i * p->y.step;
            chunk.rows.count = rows->count - i < most ? rows->count - i : most;
            lay_spans(p, &chunk, part);
            for (int t = first; t < end; t++) {
                struct conv_rows tile = job_tile(p, t);
                chunk_tile(p, &tile, rows->tap, packed_tile(p, first, t),
                           t + 1 < p->end ? packed_tile(p, first, t + 1) : NULL);
            }
            if (job_ends_chunks(p))
                end_chunk(p, &chunk);
        }
}

static void convolve_part(const struct conv_job *p, const struct conv_part *part) {
    int count = p->end - p->first, steps = job_steps(p);
    for (int s = 0, first = p->first; s < steps; s++) {
        int end = first + even_part(count, first - p->first, s, steps);
        for (int t = first; t < end && !p->kept; t++) {
            struct conv_rows tile = job_tile(p, t);
            pack_tile(p->weights + packed_before(p, first, t), p, &tile, part);
        }
        for (int i = 0; i < p->row_runs; i++)
            run_tiles(p, &p->rows[i], part, first, end);
        first = end;
    }
}

// Of the results of a pixel those that are wanted.
static size_t wanted_from(const struct conv_job *p) {
    return (size_t)job_tile(p, p->first).first * LANES;
}

static size_t wanted_to(const struct conv_job *p) {
    size_t end = (size_t)job_tile(p, p->end).first * LANES;
    size_t all = (size_t)(p->results * p->lanes);
    return end < all ? end : all;
}

static size_t job_pixels(const struct conv_job *p) {
    return (size_t)p->y.results * (size_t)p->x.results * (size_t)p->blocks;
}

// The results of a group as their sums begin.
static void begin_part(const struct conv_job *p, const struct conv_part *part) {
    size_t row = (size_t)(p->results * p->lanes), first = wanted_from(p);
    size_t count = wanted_to(p) - first;
    float *to = part->to + first;
    for (size_t i = 0; i < job_pixels(p); i++, to += row * (size_t)p->groups)
        memcpy(to, p->begin + first, count * sizeof *to);
}

// Of one group, where some of its results are wanted; else of all.
static void relu_results(const struct conv_job *p, float *to) {
    size_t row = (size_t)(p->results * p->groups * p->lanes), first = wanted_from(p);
    size_t count = wanted_to(p) - first;
    if (count == (size_t)(p->results * p->lanes))
        relu(to, job_pixels(p) * row);
    else
        for (size_t i = 0; i < job_pixels(p); i++)
            relu(to + i * row + first, count);
}

static const float *weights_from(const float *weights, size_t place) {
    return weights ? weights + place : NULL;
}

// `weights` is NULL where packed ones are kept.
static void convolve(struct conv_job *p, float *to, const float *from, const float *weights,
                     const float *biases) {
    size_t count = (size_t)job_taps(p) * (size_t)p->results;
    const float *end = weights_from(weights, count * (size_t)p->groups);
    p->row_runs = axis_runs(p->rows, &p->y);
    p->column_runs = axis_runs(p->columns, &p->x);
    p->by_rows = job_by_rows(p);
    if (p->by_rows) {
        p->row_runs = axis_tap_runs(p->tap_rows, p->rows, p->row_runs, &p->y);
        p->rows = p->tap_rows;
    }
    for (int g = 0; g < p->groups; g++) {
        struct conv_part part = {to + (size_t)(g * p->results * p->lanes),
                                 from + (size_t)(g * p->sources * p->lanes),
                                 weights_from(weights, (size_t)g * count), end};
        spread(p->begin, biases ? biases + g * p->results : NULL, p->results, p->lanes);
        if (p->by_rows)
            begin_part(p, &part);
        convolve_part(p, &part);
    }
    if (p->by_rows && p->relu)
        relu_results(p, to);
    if (!job_ends_chunks(p))
        end_pixels(&p->ends, 0, job_pixels(p));
}

// Cuts the scratch as add_pass() in conv_sizes.c counts it.
static void pass_carve(struct conv_job *p, float *scratch) {
    size_t kernel = (size_t)p->y.kernel * (size_t)p->x.kernel, width = (size_t)p->x.results;
    size_t pixels = width > CONV_PIXELS ? width : CONV_PIXELS;
    p->weights = carve(&scratch, packed_before(p, 0, job_tiles(p)));
    p->begin = carve(&scratch, (size_t)p->results * (size_t)p->lanes);
    p->packed_taps = (void *)carve(&scratch, CONV_FLOATS(size_t) * (kernel + LANES));
    p->rows = (void *)carve(&scratch, CONV_FLOATS(struct conv_run) * (size_t)p->y.results);
    p->tap_rows = (void *)carve(&scratch, CONV_FLOATS(struct conv_run) * (size_t)p->y.kernel);
    p->columns = (void *)carve(&scratch, CONV_FLOATS(struct conv_run) * width);
    p->spans = (void *)carve(&scratch, CONV_FLOATS(struct conv_span) * width);
    p->pixels = (void *)carve(&scratch, CONV_FLOATS(struct conv_pixel) * pixels);
}

static struct conv_job forward_job(const struct convolution *conv, int blocks, int lanes,
                                   bool relu) {
    const struct window *v = &conv->window;
    struct conv_job p = {
        .y = {v->out_h, v->h, v->kernel_h, v->pad_h, v->stride_h, 1, false},
        .x = {v->out_w, v->w, v->kernel_w, v->pad_w, v->stride_w, 1, false},
        .sources = v->c / conv->groups,
        .results = conv->maps / conv->groups,
        .groups = conv->groups,
        .blocks = blocks,
        .lanes = lanes,
        .relu = relu,
    };
    p.end = job_tiles(&p);
    return p;
}

static void conv_block(float *y, const float *x, const float *weights, const float *biases,
                       bool relu, const struct conv_sums *sums, int blocks, int lanes,
                       const struct convolution *conv, float *scratch) {
    if (conv_depthwise(conv)) {
        depthwise(y, x, weights, biases, relu, sums, blocks, lanes, conv, scratch);
        return;
    }
    struct merged all = merge_groups(conv, lanes, weights, &scratch);
    struct conv_job p = forward_job(&all.conv, blocks, lanes, relu);
    p.ends = ends_of_outputs(sums, y, (size_t)(conv->maps * lanes), lanes);
    pass_carve(&p, scratch);
    convolve(&p, y, x, all.weights, biases);
}

static void conv_block_back_input(float *dx, const float *dy, const float *weights,
                                  const struct conv_ends *ends, int blocks, int lanes,
                                  const struct convolution *conv, float *scratch) {
    const struct window *v = &conv->window;
    if (conv_depthwise(conv)) {
        depthwise_back_input(dx, dy, weights, ends, blocks, lanes, conv, scratch);
        return;
    }
    struct merged all = merge_groups(conv, lanes, weights, &scratch);
    struct conv_job p = {
        .y = {v->h, v->out_h, v->kernel_h, v->pad_h, 1, v->stride_h, true},
        .x = {v->w, v->out_w, v->kernel_w, v->pad_w, 1, v->stride_w, true},
        .sources = conv->maps / all.conv.groups,
        .results = v->c / all.conv.groups,
        .groups = all.conv.groups,
        .blocks = blocks,
        .lanes = lanes,
        .ends = ends_of_errors(ends, dx, (size_t)(v->c * lanes)),
    };
    p.end = job_tiles(&p);
    pass_carve(&p, scratch);
    convolve(&p, dx, dy, all.weights, NULL);
}

#endif
