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
    float *weights, *biases; // packed, of one group
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

static int divided_up(int a, int b) {
    return (a + b - 1) / b;
}

// Size of part i of `parts` as equal ones of `whole`, `done` being before it.
static int even_part(int whole, int done, int i, int parts) {
    return divided_up(whole - done, parts - i);
}

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

// Vectors of maps that a tile has at most.
static int tile_rows_most(int lanes) {
    return lanes == LANES ? FAMILY_LANES == 16 ? 14 : 6 : lanes == 1 ? 2 : 4;
}

static int pass_vectors(const struct conv_job *p) {
    return divided_up(p->results * p->lanes, LANES);
}

HOGWILD static void pack_biases(float *to, const float *biases, int maps, int room) {
    for (int m = 0; m < room; m++)
        to[m] = biases && m < maps ? biases[m] : 0;
}

// The maps [first, first + maps) of one tile, at most LANES of them.
HOGWILD static void pack_maps(float *to, int width, const float *weights, int first, int maps,
                              const struct conv_job *p, const struct conv_packing *packing) {
    size_t kernel = (size_t)packing->kernel;
    if (!p->y.turned) {
        size_t taps = (size_t)p->sources * kernel;
        pack_kernels(
            to, (size_t)width,
            &(struct conv_kernels){weights + (size_t)first * taps, taps, maps, 0, (int)taps},
            packing);
        return;
    }
    for (int s = 0; s < p->sources; s++)
        pack_kernels(to, (size_t)width,
                     &(struct conv_kernels){
                         weights + ((size_t)s * (size_t)p->results + (size_t)first) * kernel,
                         kernel, maps, s, packing->kernel},
                     packing);
}

// All weights of one group, tile by tile.
static void pack_group(const struct conv_job *p, const float *weights, const float *end) {
    struct conv_packing packing = {p->place, p->y.kernel * p->x.kernel, p->sources, end};
    int vectors = pass_vectors(p), parts = divided_up(vectors, tile_rows_most(p->lanes));
    int share = LANES / p->lanes;
    float *to = p->weights;
    for (int t = 0, v = 0; t < parts; t++) {
        int rows = even_part(vectors, v, t, parts), width = rows * share;
        for (int m = 0; m < width; m += LANES) {
            int left = p->results - v * share - m;
            int maps = left < width - m ? left : width - m;
            if (maps > 0)
                pack_maps(to + m, width, weights, v * share + m, maps < LANES ? maps : LANES, p,
                          &packing);
        }
        to += (size_t)width * (size_t)packing.kernel * (size_t)p->sources;
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
    int vectors = pass_vectors(p), parts = divided_up(vectors, tile_rows_most(p->lanes));
    int share = LANES / p->lanes, taps = p->y.kernel * p->x.kernel * p->sources;
    for (int t = 0, v = 0; t < parts; t++) {
        int rows = even_part(vectors, v, t, parts);
        struct conv_maps maps = {p->weights + (size_t)(v * share) * (size_t)taps,
                                 p->biases + v * share, (size_t)v * LANES, LANES, p->relu};
        v += rows;
        if (v == vectors)
            maps.last = p->results * p->lanes - (v - 1) * LANES;
        for (int i = 0; i < p->column_runs; i++)
            span_tiles(p, &p->spans[i], &maps, rows);
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
        pack_biases(p->biases, biases ? biases + g * p->results : NULL, p->results,
                    pass_vectors(p) * LANES / p->lanes);
        for (int i = 0; i < p->row_runs; i++)
            convolve_rows(p, &p->rows[i], to + (size_t)(g * p->results * p->lanes),
                          from + (size_t)(g * p->sources * p->lanes));
    }
}

// Cuts the scratch as add_pass() in conv_sizes.c counts it.
static void pass_carve(struct conv_job *p, float *scratch) {
    size_t kernel = (size_t)p->y.kernel * (size_t)p->x.kernel, width = (size_t)p->x.results;
    size_t maps = (size_t)p->results + CONV_MAPS_SPARE;
    size_t pixels = width > CONV_PIXELS ? width : CONV_PIXELS;
    p->weights = carve(&scratch, maps * kernel * (size_t)p->sources);
    p->biases = carve(&scratch, maps);
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
