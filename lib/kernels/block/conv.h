// Convolutions of blocks and the errors of their inputs.
#ifndef ADAM_KERNELS_BLOCK_CONV_H
#define ADAM_KERNELS_BLOCK_CONV_H

#include <string.h>

#include "kernels/block/conv_pack.h"
#include "kernels/block/conv_plan.h"
#include "kernels/block/conv_tile.h"
#include "kernels/conv_sizes.h"
#include "kernels/portable/conv_direct.h"

// Results from sources: outputs from inputs or, turned, errors of inputs from those
// of outputs.
struct conv_job {
    struct conv_axis y, x;
    int sources, results, groups; // channels of one group
    int blocks, lanes;
    bool relu;
    float *weights, *begin; // packed weights of one group, and what its sums begin with
    int32_t *place;
    struct conv_run *rows, *columns;
    int row_runs, column_runs;
    struct conv_span *spans; // one for each run of columns
    struct conv_pixel *pixels;
};

// Results of one run of rows that are computed together: their sources stay in the
// L2 cache while all maps pass over them.
struct conv_chunk {
    struct conv_run rows;
    int block, blocks;
};

enum { CHUNK_BYTES = 1 << 19 };

static void lay_places(int32_t *place, const struct conv_axis *y, const struct conv_axis *x) {
    for (int ky = 0; ky < y->kernel; ky++)
        for (int kx = 0; kx < x->kernel; kx++) {
            int phase_y, phase_x;
            int row = axis_place(y, ky, &phase_y), column = axis_place(x, kx, &phase_x);
            *place++ = axis_taps_before(y, phase_y) * x->kernel +
                       axis_taps(y, phase_y) * axis_taps_before(x, phase_x) +
                       row * axis_taps(x, phase_x) + column;
        }
}

static int job_vectors(const struct conv_job *p) {
    return conv_vectors(p->lanes, LANES, p->results);
}

static int job_tiles(const struct conv_job *p) {
    return divided_up(job_vectors(p), conv_rows_most(p->lanes, LANES));
}

// Each bias as often as there are lanes, as the results of a pixel lie.
HOGWILD static void spread_biases(float *to, const float *biases, int maps, int lanes) {
    for (int m = 0; m < maps; m++)
        for (int i = 0; i < lanes; i++)
            *to++ = biases ? biases[m] : 0;
}

// A piece of the weights of a tile whose first vector of maps is `first`, from place
// `begin` of `width` on.
static struct conv_packing tile_piece(const struct conv_job *p, int first, int begin, int width,
                                      size_t stride) {
    struct conv_packing piece = {
        .width = (size_t)width,
        .count = width - begin < LANES ? width - begin : LANES,
        .tap = p->place,
        .kernel = p->y.kernel * p->x.kernel,
        .sources = p->sources,
    };
    for (int i = 0; i < LANES; i++) {
        int place = i < piece.count ? begin + i : width - 1;
        int map = first * (LANES / p->lanes) + conv_packed_map(p->lanes, place);
        piece.map[i] = (size_t)(map < p->results ? map : p->results - 1) * stride;
    }
    return piece;
}

// The weights of one tile; gives the end of them.
static float *pack_tile(float *to, const struct conv_job *p, int first, int rows,
                        const float *weights, const float *end) {
    int width = conv_width(p->lanes, LANES, rows), kernel = p->y.kernel * p->x.kernel;
    size_t stride = (size_t)kernel * (size_t)(p->y.turned ? 1 : p->sources);
    for (int begin = 0; begin < width; begin += LANES) {
        struct conv_packing piece = tile_piece(p, first, begin, width, stride);
        piece.to = to + begin;
        piece.end = end;
        if (p->y.turned)
            for (int s = 0; s < p->sources; s++)
                pack_kernels(&piece, weights + (size_t)s * (size_t)(p->results * kernel), s,
                             kernel);
        else
            pack_kernels(&piece, weights, 0, (int)stride);
    }
    return to + (size_t)width * (size_t)kernel * (size_t)p->sources;
}

// All weights of one group, tile by tile.
static void pack_group(const struct conv_job *p, const float *weights, const float *end) {
    int vectors = job_vectors(p), parts = job_tiles(p);
    float *to = p->weights;
    for (int t = 0, v = 0; t < parts; t++) {
        int rows = even_part(vectors, v, t, parts);
        to = pack_tile(to, p, v, rows, weights, end);
        v += rows;
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
    bool joined = p->groups == 1; // neighbouring pixels hold nothing else
    return (struct conv_taps){
        .rows = column->taps ? row->taps : 0,
        .runs = joined ? 1 : column->taps,
        .run = (size_t)(p->sources * p->lanes) * (size_t)(joined ? column->taps : 1),
        .run_step = pixel,
        .row_step = pixel * (size_t)p->x.sources,
        .first = (size_t)before * (size_t)p->sources,
        .skip = (size_t)(phase_columns - column->taps) * (size_t)p->sources,
    };
}

// The pixels of a chunk in the columns of one run.
static int list_pixels(struct conv_pixel *list, const struct conv_job *p,
                       const struct conv_chunk *chunk, const struct conv_run *column, float *to,
                       const float *from) {
    size_t pixel_from = (size_t)(p->sources * p->groups) * (size_t)p->lanes;
    size_t pixel_to = (size_t)(p->results * p->groups) * (size_t)p->lanes;
    int count = 0;
    for (int b = chunk->block; b < chunk->block + chunk->blocks; b++)
        for (int i = 0; i < chunk->rows.count; i++) {
            int row_to = b * p->y.results + chunk->rows.to + i * p->y.phases;
            int row_from = b * p->y.sources + chunk->rows.from + i * p->y.step;
            size_t at_to = (size_t)row_to * (size_t)p->x.results + (size_t)column->to;
            size_t at_from = (size_t)row_from * (size_t)p->x.sources + (size_t)column->from;
            for (int j = 0; j < column->count; j++, count++)
                list[count] =
                    (struct conv_pixel){from + (at_from + (size_t)(j * p->x.step)) * pixel_from,
                                        to + (at_to + (size_t)(j * p->x.phases)) * pixel_to};
        }
    return count;
}

static void lay_spans(const struct conv_job *p, const struct conv_chunk *chunk, float *to,
                      const float *from) {
    int first = 0;
    for (int i = 0; i < p->column_runs; i++) {
        struct conv_run *column = &p->columns[i];
        int count = list_pixels(p->pixels + first, p, chunk, column, to, from);
        p->spans[i] = (struct conv_span){span_taps(p, &chunk->rows, column), first, count};
        first += count;
    }
}

static int lanes_log(int lanes) {
    return __builtin_ctz((unsigned)lanes);
}

// One tile of maps over one span, in as equal tiles of pixels as can be.
static void span_tiles(const struct conv_job *p, const struct conv_span *span,
                       const struct conv_maps *maps, int rows) {
    conv_tile_function *const *shapes = conv_tiles[lanes_log(p->lanes)][rows - 1];
    int parts = divided_up(span->count, most_pixels[rows - 1]);
    for (int t = 0, done = 0; t < parts; t++) {
        int pixels = even_part(span->count, done, t, parts);
        shapes[pixels - 1](&span->taps, p->pixels + span->first + done, maps);
        done += pixels;
    }
}

// All maps of a group over the pixels of a chunk.
static void chunk_maps(const struct conv_job *p) {
    int vectors = job_vectors(p), parts = job_tiles(p);
    const float *weights = p->weights;
    for (int t = 0, v = 0; t < parts; t++) {
        int rows = even_part(vectors, v, t, parts), left = p->results * p->lanes - v * LANES;
        size_t to = (size_t)v * LANES;
        struct conv_maps maps = {weights, p->begin + to, to, LANES, p->relu};
        if (left < rows * LANES)
            maps.last = left - (rows - 1) * LANES;
        for (int i = 0; i < p->column_runs; i++)
            span_tiles(p, &p->spans[i], &maps, rows);
        weights += (size_t)conv_width(p->lanes, LANES, rows) * (size_t)(p->y.kernel * p->x.kernel) *
                   (size_t)p->sources;
        v += rows;
    }
}

// Rows of results whose sources fit, and whose pixels the list has room for.
static int chunk_rows(const struct conv_job *p, const struct conv_run *rows) {
    size_t row = (size_t)p->x.sources * (size_t)(p->sources * p->lanes) * sizeof(float);
    size_t fit = CHUNK_BYTES / row, room = CONV_PIXELS / (size_t)p->x.results;
    size_t count =
        fit > (size_t)rows->taps ? (fit - (size_t)rows->taps) / (size_t)p->y.step + 1 : 1;
    count = count < room ? count : room;
    return count < 1 ? 1 : count < (size_t)rows->count ? (int)count : rows->count;
}

static void convolve_rows(const struct conv_job *p, const struct conv_run *rows, float *to,
                          const float *from) {
    int most = chunk_rows(p, rows);
    for (int b = 0; b < p->blocks; b++)
        for (int i = 0; i < rows->count; i += most) {
            struct conv_chunk chunk = {*rows, b, 1};
            chunk.rows.to += i * p->y.phases;
            chunk.rows.from += i * p->y.step;
            chunk.rows.count = rows->count - i < most ? rows->count - i : most;
            lay_spans(p, &chunk, to, from);
            chunk_maps(p);
        }
}

static void convolve(struct conv_job *p, float *to, const float *from, const float *weights,
                     const float *biases) {
    size_t count = (size_t)(p->sources * p->y.kernel * p->x.kernel) * (size_t)p->results;
    const float *end = weights + count * (size_t)p->groups;
    lay_places(p->place, &p->y, &p->x);
    p->row_runs = axis_runs(p->rows, &p->y);
    p->column_runs = axis_runs(p->columns, &p->x);
    for (int g = 0; g < p->groups; g++, weights += count) {
        pack_group(p, weights, end);
        spread_biases(p->begin, biases ? biases + g * p->results : NULL, p->results, p->lanes);
        for (int i = 0; i < p->row_runs; i++)
            convolve_rows(p, &p->rows[i], to + (size_t)(g * p->results * p->lanes),
                          from + (size_t)(g * p->sources * p->lanes));
    }
}

// Cuts the scratch as add_pass() in conv_sizes.c counts it.
static void pass_carve(struct conv_job *p, float *scratch) {
    size_t kernel = (size_t)p->y.kernel * (size_t)p->x.kernel, width = (size_t)p->x.results;
    size_t widths = conv_widths(p->lanes, LANES, p->results);
    size_t pixels = width > CONV_PIXELS ? width : CONV_PIXELS;
    p->weights = carve(&scratch, widths * kernel * (size_t)p->sources);
    p->begin = carve(&scratch, (size_t)p->results * (size_t)p->lanes);
    p->place = (void *)carve(&scratch, kernel);
    p->rows = (void *)carve(&scratch, CONV_FLOATS(struct conv_run) * (size_t)p->y.results);
    p->columns = (void *)carve(&scratch, CONV_FLOATS(struct conv_run) * width);
    p->spans = (void *)carve(&scratch, CONV_FLOATS(struct conv_span) * width);
    p->pixels = (void *)carve(&scratch, CONV_FLOATS(struct conv_pixel) * pixels);
}

static void conv_block(float *y, const float *x, const float *weights, const float *biases,
                       bool relu, int blocks, int lanes, const struct convolution *conv,
                       float *scratch) {
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
    pass_carve(&p, scratch);
    convolve(&p, y, x, weights, biases);
}

static void conv_block_back_input(float *dx, const float *dy, const float *weights, int blocks,
                                  int lanes, const struct convolution *conv, float *scratch) {
    const struct window *v = &conv->window;
    struct conv_job p = {
        .y = {v->h, v->out_h, v->kernel_h, v->pad_h, 1, v->stride_h, true},
        .x = {v->w, v->out_w, v->kernel_w, v->pad_w, 1, v->stride_w, true},
        .sources = conv->maps / conv->groups,
        .results = v->c / conv->groups,
        .groups = conv->groups,
        .blocks = blocks,
        .lanes = lanes,
    };
    pass_carve(&p, scratch);
    convolve(&p, dx, dy, weights, NULL);
}

#endif
