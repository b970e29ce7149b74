// Outputs of Winograd's minimal filtering (winograd.inc.h): products at the points become pixels.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_OUTPUTS_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_OUTPUTS_INC_H

#include "kernels/block/winograd_square.inc.h"
#include "kernels/block/winograd_tiles.inc.h"
#include "kernels/conv.h"

// What is done to outputs on their way, each where it is not NULL: biases and others are added, and
// they pass a relu; or, as error gradients, the relu that has given `passed`, where that is above
// 0. `more` and `passed` are laid out as the outputs. And they are added up.
struct winograd_ends {
    const float *biases, *more, *passed;
    bool relu;
    struct conv_sums sums;
};

// Where the outputs of a tile go; the ends are at its first pixel, too.
struct winograd_output {
    float *to; // the first pixel
    size_t row, pixel;
    int rows, columns; // inside the picture
    bool single;       // a bias for each lane
    bool far;
    struct winograd_ends ends;
};

// Of map m, or of the maps in its lanes.
INLINE vector output_bias(struct winograd_output o, int m) {
    vector zero = {0};
    if (!o.ends.biases)
        return zero;
    if (o.single)
        return *(const vector *)(o.ends.biases + (size_t)m * LANES);
    return zero + o.ends.biases[m];
}

// What outputs of a map add up to.
struct output_sums {
    vector from, sum, product;
};

INLINE struct output_sums begin_sums(struct winograd_output o, int m) {
    struct output_sums sums = {0};
    if (o.ends.sums.from) // else they are of error gradients
        sums.from = *(const vector *)(o.ends.sums.from + (size_t)m * LANES);
    return sums;
}

INLINE void end_sums(struct winograd_output o, int m, struct output_sums sums) {
    if (!o.ends.sums.sum)
        return;
    *(vector *)(o.ends.sums.sum + (size_t)m * LANES) += sums.sum;
    *(vector *)(o.ends.sums.product + (size_t)m * LANES) += sums.product;
}

// Stores the pixels y of a row that lie inside the picture, `at` floats behind o.to.
INLINE void store_row(struct winograd_output o, size_t at, const vector *y, vector bias,
                      struct output_sums *sums) {
    float *to = apart_to(o.to + at);
    const float *more = o.ends.more ? apart(o.ends.more + at) : NULL;
    const float *passed = o.ends.passed ? apart(o.ends.passed + at) : NULL;
    const float *other = o.ends.sums.other ? apart(o.ends.sums.other + at) : NULL;
    vector zero = {0};
#pragma GCC unroll 4
    for (int j = 0; j < WINOGRAD_TILE; j++) {
        if (j >= o.columns)
            continue;
        vector value = y[j] + bias;
        if (more)
            value += *(const vector *)(more + (size_t)j * o.pixel);
        if (o.ends.relu)
            value = (vector)((places)value & (value > zero));
        vector outputs = zero;
        if (passed) {
            outputs = *(const vector *)(passed + (size_t)j * o.pixel);
            value = (vector)((places)value & (outputs > zero));
        }
        *(vector *)(to + (size_t)j * o.pixel) = value;
        if (o.ends.sums.sum) {
            vector away = value - sums->from, with = passed ? outputs : away;
            if (other)
                with = *(const vector *)(other + (size_t)j * o.pixel);
            sums->sum += away;
            sums->product += away * with;
        }
    }
}

// Stores the pixels y of map m that lie inside the picture.
INLINE void store_output(struct winograd_output o, const vector *y, int m) {
    int rows = o.rows < WINOGRAD_TILE ? o.rows : WINOGRAD_TILE;
    if (o.far)
        ask_to_write(rows, o.columns < WINOGRAD_TILE ? o.columns : WINOGRAD_TILE,
                     o.to + (size_t)m * LANES + AHEAD, o.row, o.pixel);
    vector bias = output_bias(o, m);
    struct output_sums sums = begin_sums(o, m);
#pragma GCC unroll 1
    for (int i = 0; i < rows; i++)
        store_row(o, (size_t)m * LANES + (size_t)i * o.row, y + i * WINOGRAD_TILE, bias, &sums);
    end_sums(o, m, sums);
}

// Transforms the products of all maps of a tile.
HOGWILD static void output_tile(const struct tiles *t, struct winograd_output o,
                                const float *from) {
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

// All of a tile.
INLINE struct winograd_output whole_output(struct winograd_output o) {
    o.rows = o.columns = WINOGRAD_TILE;
    return o;
}

// The same with its biases alone, added up or not.
INLINE struct winograd_output plain_output(struct winograd_output o, bool sums) {
    o.ends.more = o.ends.passed = o.ends.sums.other = NULL;
    o.ends.relu = false;
    if (!sums)
        o.ends.sums = (struct conv_sums){0};
    else if (!o.ends.sums.sum || !o.ends.sums.from)
        __builtin_unreachable();
    return whole_output(o);
}

// The same that passes a relu backwards, and is added up; with or without `more` and `other`.
INLINE struct winograd_output passed_output(struct winograd_output o, bool joined) {
    o.ends.biases = NULL;
    o.ends.relu = false;
    o.ends.sums.from = NULL;
    if (!joined)
        o.ends.more = o.ends.sums.other = NULL;
    else if (!o.ends.more || !o.ends.sums.other)
        __builtin_unreachable();
    if (!o.ends.passed || !o.ends.sums.sum)
        __builtin_unreachable();
    return whole_output(o);
}

// The same of a whole tile, in registers.
INLINE void output_square(int k, const struct tiles *t, struct winograd_output o,
                          const float *from) {
    struct side s = side_of(k, WINOGRAD_TILE);
    size_t slice = t->winograd->sizes.value_slice;
    for (int m = 0; m < t->winograd->sizes.maps; m++, from += LANES) {
        vector line[WINOGRAD_TILE][POINTS_MOST], y[WINOGRAD_TILE], bias = output_bias(o, m);
        struct output_sums sums = begin_sums(o, m);
        float *to = o.to + (size_t)m * LANES;
        if (o.far) {
            ask_to_read(t->high, t->wide, from + AHEAD, (size_t)t->wide * slice, slice);
            ask_to_write(o.rows, o.columns, to + AHEAD, o.row, o.pixel);
        }
        product_square(s, line, from, slice);
#pragma GCC unroll 4
        for (int i = 0; i < WINOGRAD_TILE; i++) {
            if (i >= o.rows)
                break;
            weigh(s, WINOGRAD_TILE, line[i], y);
            store_row(o, (size_t)m * LANES + (size_t)i * o.row, y, bias, &sums);
        }
        end_sums(o, m, sums);
    }
}

// Most lie inside the picture, and what is often done to them is compiled apart.
INLINE void output_any_square(int k, const struct tiles *t, struct winograd_output o,
                              const float *from) {
    bool whole = o.rows == WINOGRAD_TILE && o.columns == WINOGRAD_TILE;
    bool plain = whole && !o.ends.more && !o.ends.passed && !o.ends.relu;
    bool passed = whole && o.ends.passed && o.ends.sums.sum;
    bool more = o.ends.more, other = o.ends.sums.other;
    if (plain && !o.ends.sums.sum)
        output_square(k, t, plain_output(o, false), from);
    else if (plain)
        output_square(k, t, plain_output(o, true), from);
    else if (passed && !more && !other)
        output_square(k, t, passed_output(o, false), from);
    else if (passed && more && other)
        output_square(k, t, passed_output(o, true), from);
    else
        output_square(k, t, o, from);
}

#define OUTPUT_SQUARE(k)                                                                           \
    HOGWILD static void output_square_##k(const struct tiles *t, struct winograd_output o,         \
                                          const float *from) {                                     \
        output_any_square(k, t, o, from);                                                          \
    }
OUTPUT_SQUARE(3)
OUTPUT_SQUARE(5)
#undef OUTPUT_SQUARE

typedef void output_function(const struct tiles *, struct winograd_output, const float *from);

static output_function *output_of(const struct tiles *t) {
    if (!t->whole)
        return output_tile;
    return t->winograd->sizes.points == 8 ? output_square_5 : output_square_3;
}

// ---- Few channels: a product costs less than storing and loading it. So the products of a tile
// stay in registers and go straight into its outputs.
struct few {
    const float *data, *kernels; // of the tile; of a bundle of maps
    size_t data_slice;
};

// Outputs of `count` maps, 1 or 2, from m on.
INLINE void few_maps(int k, int channels, int count, struct winograd_output o, struct few f,
                     int m) {
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

INLINE void few_outputs(int k, int channels, struct winograd_output o, struct few f, int maps) {
    int n = k + WINOGRAD_TILE - 1, m = 0;
    for (; m + 1 < maps; m += 2) {
        few_maps(k, channels, 2, o, f, m);
        if ((m + 2) % LANES == 0)
            f.kernels += (size_t)(n * n * channels) * LANES;
    }
    if (m < maps)
        few_maps(k, channels, 1, o, f, m);
}

typedef void few_function(struct winograd_output, struct few, int maps);

#define FEW(channels)                                                                              \
    HOGWILD static void few_3_##channels(struct winograd_output o, struct few f, int maps) {       \
        few_outputs(3, channels, o, f, maps);                                                      \
    }                                                                                              \
    HOGWILD static void few_5_##channels(struct winograd_output o, struct few f, int maps) {       \
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

static const float *behind(const float *p, size_t at) {
    return p ? p + at : NULL;
}

static float *sums_behind(float *p, size_t at) {
    return p ? p + at : NULL;
}

// What belongs to outputs that lie `at` floats on.
static struct winograd_ends ends_at(struct winograd_ends ends, size_t at) {
    ends.more = behind(ends.more, at);
    ends.passed = behind(ends.passed, at);
    ends.sums.other = behind(ends.sums.other, at);
    return ends;
}

// The same of maps from `map` on, in blocks of full lanes.
static struct winograd_ends ends_of(struct winograd_ends ends, size_t map) {
    size_t at = map * LANES;
    ends.biases = behind(ends.biases, map);
    ends.sums.from = sums_behind(ends.sums.from, at);
    ends.sums.sum = sums_behind(ends.sums.sum, at);
    ends.sums.product = sums_behind(ends.sums.product, at);
    return ends_at(ends, at);
}

static void tile_outputs(const struct tiles *t, int i, struct winograd_output o) {
    const struct winograd *w = t->winograd;
    const struct winograd_sizes *s = &w->sizes;
    if (s->few)
        few_functions[s->points == 8][s->channels - 1](
            o, (struct few){w->data + (size_t)(i * s->channels) * LANES, w->kernels, s->data_slice},
            s->maps);
    else
        output_of(t)(t, o, w->values + (size_t)(i * s->maps) * LANES);
}

// The first outputs of all, of each map or of the maps in its lanes, are what sums begin from.
static void find_from(const struct tiles *t, int i, struct winograd_output o) {
    vector zero = {0};
    float *from = o.ends.sums.from;
    o.ends.sums = (struct conv_sums){0};
    tile_outputs(t, i, o);
    for (int m = 0; m < t->winograd->sizes.maps; m++) {
        const float *first = o.to + (size_t)m * LANES;
        vector *to = (vector *)(from + (size_t)m * LANES);
        if (o.single)
            *to = *(const vector *)first;
        else
            *to = zero + *first;
    }
}

static void winograd_outputs(const struct tiles *t, float *y, struct winograd_ends ends) {
    const struct winograd *w = t->winograd;
    const struct winograd_sizes *s = &w->sizes;
    const struct window *v = w->window;
    size_t pixel = (size_t)w->maps * LANES, row = (size_t)v->out_w * pixel;
    for (int i = 0; i < t->count; i++) {
        struct tile_position p = tile_position(t, i);
        size_t at = (p.block * (size_t)v->out_h + (size_t)p.y) * row + (size_t)p.x * pixel;
        struct winograd_output o = {.to = y + at,
                                    .row = row,
                                    .pixel = pixel,
                                    .rows = least(v->out_h - p.y, t->part->high),
                                    .columns = least(v->out_w - p.x, t->part->wide),
                                    .single = w->single,
                                    .far = s->far,
                                    .ends = ends_at(ends, at)};
        if (at == 0 && ends.sums.from)
            find_from(t, i, o);
        tile_outputs(t, i, o);
    }
}

#endif
