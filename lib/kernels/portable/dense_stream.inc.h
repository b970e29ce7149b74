// Dense layers of few samples, where reading the weights is the limit: each is read once, as it
// lies, by groups of rows: forward from the first to the last, backward from the last to the first,
// to meet what the caches still hold. Weights that come from memory are asked for a group ahead;
// others are not, since they would come into the L1 cache twice.
//
// Forward: sums of products along the inputs, for some rows of weights and all
// samples at once, whose lanes are added up at the end. Backward: one load of each
// weight serves the error gradients of the inputs, dx += dy[u] W[u], and its own step,
// W[u] -= rate (dy[u] x + decay W[u]), so that the gradient is nowhere stored.
#ifndef ADAM_KERNELS_PORTABLE_DENSE_STREAM_INC_H
#define ADAM_KERNELS_PORTABLE_DENSE_STREAM_INC_H

#include <stddef.h>
#include <string.h>

#include "core/hogwild.h"
#include "kernels/block/run.inc.h"
#include "kernels/dense.h"
#include "kernels/dense_sizes.h"
#include "kernels/portable/stream.inc.h"
#include "kernels/portable/update.inc.h"

enum {
    STREAM_GROUP = 64 * 1024, // far weights that are asked for ahead: a quarter of the L2
    STREAM_NEAR = 16 * 1024,  // of others, a group: less loses the prefetcher
    STREAM_SHARE = 2 * 1024,  // floats of x and dx that stay in the L1 cache
    STREAM_ROW = 2 * 1024,    // of one row at most: the same
    STREAM_SUMS = FAMILY_REGISTERS,
};

// A piece of a layer: some rows of weights over some of the inputs.
struct stream_piece {
    const float *w;      // rows, `inputs` apart
    float *to;           // what is written for each weight: rows, `inputs` apart
    const float *x, *dy; // of the first sample; the others are `inputs` and `units` behind
    float *dx;           // likewise
    size_t inputs, units;
    size_t count;       // inputs of this piece
    bool first;         // y holds nothing yet
    float rate, decay;  // both negative: factors of a gradient and a weight
    const float *ahead; // weights to ask for meanwhile, as many; NULL: none
};

// --- forward ----------------------------------------------------------------------

// Rows at a time: as many as the registers hold sums for; each load of x serves all of them. With
// few rows each sum has several vectors in turn, to hide the latency of additions.
#define DOT_ROWS(n)                                                                                \
    ((n) == 1 ? 4 : (FAMILY_REGISTERS - 1 - (n)) / (n) < 8 ? (FAMILY_REGISTERS - 1 - (n)) / (n) : 8)
#define DOT_TURNS(rows, n) ((rows) * (n) >= 8 ? 1 : 8 / ((rows) * (n)))

__attribute__((always_inline)) static inline void dot_step(int rows, int n, bool far,
                                                           const struct stream_piece *p, size_t k,
                                                           int count, vector *sum) {
    vector x[STREAM_MOST];
#pragma GCC unroll 16
    for (int i = 0; i < n; i++)
        x[i] = load_part(p->x + (size_t)i * p->inputs + k, count);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        if (far)
            __builtin_prefetch(p->ahead + k * (size_t)rows + (size_t)(r * LANES));
        vector w = load_part(p->w + (size_t)r * p->inputs + k, count);
#pragma GCC unroll 16
        for (int i = 0; i < n; i++)
            sum[r * n + i] += w * x[i];
    }
}

// The sum of the lanes of each of `count` vectors, at most LANES.
__attribute__((always_inline)) static inline void dot_fold(int count, const vector *sum,
                                                           float *to) {
    vector some[LANES] = {0};
#pragma GCC unroll 16
    for (int i = 0; i < count; i++)
        some[i] = sum[i];
    store_part(to, lane_sums(some), count);
}

// Sums from input k on as long as there are whole vectors for all sums. Returns the next input.
__attribute__((always_inline)) static inline size_t
dot_along(int rows, int n, bool far, const struct stream_piece *p, size_t k, vector *sum) {
    const int turns = DOT_TURNS(rows, n), sums = rows * n;
    for (; k + (size_t)(turns * LANES) <= p->count; k += (size_t)(turns * LANES))
#pragma GCC unroll 8
        for (int t = 0; t < turns; t++)
            dot_step(rows, n, far, p, k + (size_t)(t * LANES), LANES, sum + t * sums);
    return k;
}

// rows x n sums.
__attribute__((always_inline)) static inline void dot(int rows, int n, const struct stream_piece *p,
                                                      float *to) {
    const int turns = DOT_TURNS(rows, n), sums = rows * n;
    vector sum[STREAM_SUMS] = {0};
    size_t k = 0;
    if (n > 2 && p->ahead) // with fewer samples the prefetcher follows the rows by itself
        k = dot_along(rows, n, true, p, k, sum);
    k = dot_along(rows, n, false, p, k, sum);
    for (; k + LANES <= p->count; k += LANES)
        dot_step(rows, n, false, p, k, LANES, sum);
    if (k < p->count)
        dot_step(rows, n, false, p, k, (int)(p->count - k), sum);
#pragma GCC unroll 8
    for (int t = 1; t < turns; t++)
#pragma GCC unroll 8
        for (int s = 0; s < sums; s++)
            sum[s] += sum[t * sums + s];
#pragma GCC unroll 8
    for (int s = 0; s < sums; s += LANES)
        dot_fold(sums - s < LANES ? sums - s : LANES, sum + s, to + s);
}

// --- backward ---------------------------------------------------------------------

#define BACK_ROWS(n)                                                                               \
    ((FAMILY_REGISTERS - 3 - 2 * (n)) / (n) < 1   ? 1                                              \
     : (FAMILY_REGISTERS - 3 - 2 * (n)) / (n) < 8 ? (FAMILY_REGISTERS - 3 - 2 * (n)) / (n)         \
                                                  : 8)

__attribute__((always_inline)) static inline void back_step(enum work work, int rows, int n,
                                                            bool far, const struct stream_piece *p,
                                                            size_t k, int count, const vector *dy) {
    vector x[STREAM_MOST], dx[STREAM_MOST];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        if (work != WORK_ERRORS)
            x[i] = p->rate * load_part(p->x + (size_t)i * p->inputs + k, count);
        if (work != WORK_GRADIENT)
            dx[i] = load_part(p->dx + (size_t)i * p->inputs + k, count);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        vector w = {0}, change = {0};
        if (far)
            __builtin_prefetch(p->ahead + k * (size_t)rows + (size_t)(r * LANES));
        if (work != WORK_GRADIENT)
            w = load_part(p->w + (size_t)r * p->inputs + k, count);
        if (work == WORK_STEP)
            change = p->decay * w;
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) {
            if (work != WORK_GRADIENT)
                dx[i] += dy[r * n + i] * w;
            if (work != WORK_ERRORS)
                change += dy[r * n + i] * x[i];
        }
        if (work != WORK_ERRORS)
            store_part(p->to + (size_t)r * p->inputs + k, w + change, count);
    }
#pragma GCC unroll 8
    for (int i = 0; i < n && work != WORK_GRADIENT; i++)
        store_part(p->dx + (size_t)i * p->inputs + k, dx[i], count);
}

__attribute__((always_inline)) static inline void back(enum work work, int rows, int n,
                                                       const struct stream_piece *p) {
    vector dy[STREAM_SUMS];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            dy[r * n + i] = p->dy[(size_t)i * p->units + (size_t)r] - (vector){0};
    size_t k = 0;
    if (p->ahead)
        for (; k + LANES <= p->count; k += LANES)
            back_step(work, rows, n, true, p, k, LANES, dy);
    for (; k + LANES <= p->count; k += LANES)
        back_step(work, rows, n, false, p, k, LANES, dy);
    if (k < p->count)
        back_step(work, rows, n, false, p, k, (int)(p->count - k), dy);
}

// --- functions for each number of samples ------------------------------------------

typedef void dot_function(const struct stream_piece *, float *);
typedef void back_function(const struct stream_piece *);

struct stream_kernels {
    int dot_rows, back_rows;
    dot_function *dot, *dot_row; // so many rows, or one
    back_function *back[WORK_STEP + 1], *back_row[WORK_STEP + 1];
};

#define BACK(name, work, rows, n)                                                                  \
    HOGWILD static void name(const struct stream_piece *p) {                                       \
        back(work, rows, n, p);                                                                    \
    }
#define STREAM(n)                                                                                  \
    HOGWILD static void dot_##n(const struct stream_piece *p, float *to) {                         \
        dot(DOT_ROWS(n), n, p, to);                                                                \
    }                                                                                              \
    HOGWILD static void dot_row_##n(const struct stream_piece *p, float *to) {                     \
        dot(1, n, p, to);                                                                          \
    }                                                                                              \
    BACK(errors_##n, WORK_ERRORS, BACK_ROWS(n), n)                                                 \
    BACK(errors_row_##n, WORK_ERRORS, 1, n)                                                        \
    BACK(gradient_##n, WORK_GRADIENT, BACK_ROWS(n), n)                                             \
    BACK(gradient_row_##n, WORK_GRADIENT, 1, n)                                                    \
    BACK(step_##n, WORK_STEP, BACK_ROWS(n), n)                                                     \
    BACK(step_row_##n, WORK_STEP, 1, n)
#define STREAM_ENTRY(n)                                                                            \
    {                                                                                              \
        DOT_ROWS(n), BACK_ROWS(n), dot_##n, dot_row_##n, {errors_##n, gradient_##n, step_##n},     \
            {errors_row_##n, gradient_row_##n, step_row_##n},                                      \
    }
STREAM(1)
STREAM(2)
STREAM(3)
#if FAMILY_REGISTERS == 32
STREAM(4)
STREAM(5)
STREAM(6)
#endif

static const struct stream_kernels stream_kernels[STREAM_MOST] = {
    STREAM_ENTRY(1), STREAM_ENTRY(2), STREAM_ENTRY(3),
#if FAMILY_REGISTERS == 32
    STREAM_ENTRY(4), STREAM_ENTRY(5), STREAM_ENTRY(6),
#endif
};

// --- layers -----------------------------------------------------------------------

static size_t less(size_t a, size_t b) {
    return a < b ? a : b;
}

// Inputs at a time.
static size_t stream_share(int n) {
    return less(STREAM_ROW, STREAM_SHARE / (size_t)n > 512 ? STREAM_SHARE / (size_t)n : 512) /
           LANES * LANES;
}

// Rows of a group, in whole tiles; of far weights, the next group is asked for meanwhile.
static size_t group_rows(bool far, size_t inputs, int tile) {
    size_t rows = (far ? STREAM_GROUP : STREAM_NEAR) / inputs / (size_t)tile * (size_t)tile;
    return rows ? rows : (size_t)tile;
}

// Weights to ask for, `weights` further on; NULL: none.
static const float *further(const float *ahead, size_t weights) {
    return ahead ? ahead + weights : NULL;
}

// Adds the sums of rows [0, rows) of a tile to y, after those of earlier inputs.
HOGWILD static void dot_put(float *y, const float *sums, const float *biases, int n, size_t units,
                            int rows, bool first) {
    for (int i = 0; i < n; i++, y += units)
        for (int r = 0; r < rows; r++)
            y[r] = sums[r * n + i] + (!first ? y[r] : biases ? biases[r] : 0);
}

// Rows [u, end) of a group of weights from `weights` on, for n samples.
static void dot_rows(struct stream_piece p, float *y, const float *weights, const float *biases,
                     int n, size_t u, size_t end) {
    const struct stream_kernels *kernels = &stream_kernels[n - 1];
    float sums[STREAM_SUMS];
    while (u < end) {
        bool tile = u + (size_t)kernels->dot_rows <= end;
        int rows = tile ? kernels->dot_rows : 1;
        p.w = weights + u * p.inputs;
        (tile ? kernels->dot : kernels->dot_row)(&p, sums);
        dot_put(y + u, sums, biases ? biases + u : NULL, n, p.units, rows, p.first);
        p.ahead = further(p.ahead, p.count * (size_t)rows);
        u += (size_t)rows;
    }
}

struct stream_forward {
    float *y;
    const float *x, *weights, *biases;
    int n;
    struct stream_piece piece;
};

// Units [first, last).
static void stream_forward(const struct stream_forward *f, size_t first, size_t last) {
    struct stream_piece p = f->piece;
    int most = (f->n + STREAM_MOST - 1) / STREAM_MOST; // rounds, in each of which so many
    most = (f->n + most - 1) / most;
    bool far = weights_far(p.units, p.inputs);
    size_t group = group_rows(far, p.inputs, stream_kernels[most - 1].dot_rows), end;
    size_t share = stream_share(f->n);
    for (size_t g = first; g < last; g = end) {
        end = less(g + group, last);
        p.ahead = far ? f->weights + end * p.inputs : NULL;
        for (size_t k = 0; k < p.inputs; k += p.count) {
            p.first = k == 0;
            p.count = less(share, p.inputs - k);
            for (int i = 0; i < f->n; i += most) {
                p.x = f->x + (size_t)i * p.inputs + k;
                dot_rows(p, f->y + (size_t)i * p.units, f->weights + k, f->biases,
                         f->n - i < most ? f->n - i : most, g, end);
            }
            p.ahead = further(p.ahead, p.count * (end - g));
        }
    }
}

void FAMILY(dense_stream)(float *y, const float *x, const float *weights, const float *biases,
                          int n, int units, int inputs, int first) {
    const struct stream_forward f = {y,      x, weights,
                                     biases, n, {.inputs = (size_t)inputs, .units = (size_t)units}};
    stream_forward(&f, (size_t)first, f.piece.units);
    stream_forward(&f, 0, (size_t)first);
}

static void back_update(const struct stream_back *b, const struct stream_kernels *kernels,
                        struct stream_piece p, bool tile, size_t at) {
    float gradient[STREAM_ROW];
    if (b->e->dx)
        (tile ? kernels->back : kernels->back_row)[WORK_ERRORS](&p);
    if (b->state && p.ahead)
        p.ahead = b->state + (p.ahead - b->weights);
    p.to = gradient;
    for (int r = 0; r < (tile ? kernels->back_rows : 1); r++) {
        kernels->back_row[WORK_GRADIENT](&p);
        update(b->to + at, b->state ? b->state + at : NULL, gradient, p.count, b->update);
        p.dy++, p.ahead = further(p.ahead, p.count), at += p.inputs;
    }
}

// Rows [u, end) of a group, inputs from k on.
static void back_rows(const struct stream_back *b, const struct stream_kernels *kernels,
                      struct stream_piece *p, size_t k, size_t u, size_t end) {
    while (u < end) {
        bool tile = u + (size_t)kernels->back_rows <= end;
        size_t at = u * p->inputs + k, rows = tile ? (size_t)kernels->back_rows : 1;
        p->w = b->weights ? b->weights + at : NULL;
        p->to = b->to ? b->to + at : NULL;
        p->dy = b->e->dy + u;
        if (b->update && b->work != WORK_STEP)
            back_update(b, kernels, *p, tile, at);
        else
            (tile ? kernels->back : kernels->back_row)[b->work](p);
        p->ahead = further(p->ahead, p->count * rows);
        u += rows;
    }
}

// Units [first, last), from the last to the first: the forward pass left the last ones in the
// caches, and this pass leaves the first ones for the next step.
static void back_units(const struct stream_back *b, size_t first, size_t last) {
    const struct dense_errors *e = b->e;
    const struct stream_kernels *kernels = &stream_kernels[e->n - 1];
    size_t inputs = (size_t)e->inputs;
    bool far = weights_far((size_t)e->units, inputs);
    size_t group = group_rows(far, inputs, kernels->back_rows), share = stream_share(2 * e->n);
    struct stream_piece p = {.inputs = inputs, .units = (size_t)e->units, .rate = 1};
    if (b->work == WORK_STEP)
        p.rate = -b->update->rate, p.decay = -b->update->rate * b->update->decay;
    for (size_t end = last, g; end > first; end = g) {
        g = end - less(group, end - first);
        p.ahead = far ? (b->weights ? b->weights : b->to) + (g - less(g, group)) * inputs : NULL;
        for (size_t k = 0; k < inputs; k += p.count) {
            p.count = less(share, inputs - k);
            p.x = e->x + k;
            p.dx = e->dx ? e->dx + k : NULL;
            back_rows(b, kernels, &p, k, g, end);
        }
    }
}

void FAMILY(stream_back)(const struct stream_back *b) {
    const struct dense_errors *e = b->e;
    if (e->dx && !e->add)
        memset(e->dx, 0, (size_t)e->n * (size_t)e->inputs * sizeof *e->dx);
    back_units(b, 0, (size_t)e->first);
    back_units(b, (size_t)e->first, (size_t)e->units);
}

#endif
