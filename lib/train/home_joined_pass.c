// The passes of the members of a mini-batch through a joined layer, piece by piece.
#include <stdatomic.h>
#include <string.h>

#include "core/phaser.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "train/home_joined_internal.h"

enum { PIECES = 4 }; // of a slice, at most: more gain little

// Units [first, first + units) of a layer.
struct unit_range {
    int first, units;
};

// Number of pieces in each slice.
static int piece_count(const struct layer *layer, int members) {
    int most = layer->units / (JOINED_UNITS * members);
    return most < PIECES ? most : PIECES;
}

// Piece number `index` of `count`, over all slices; begins at a multiple of JOINED_UNITS.
static struct unit_range make_piece(const struct layer *layer, int count, int index) {
    int64_t units = layer->units;
    int first = (int)(units * index / count) / JOINED_UNITS * JOINED_UNITS;
    int end = (int)(units * (index + 1) / count) / JOINED_UNITS * JOINED_UNITS;
    return (struct unit_range){first, (index + 1 == count ? layer->units : end) - first};
}

// Makes the pieces of the thread's slice available. Call before the meeting that opens the pass:
// nobody takes pieces between the last meeting and this one.
static void lay_out_pieces(struct joined_thread *member) {
    atomic_store_explicit(&member->taken, 0, memory_order_relaxed);
}

// Takes a free piece of the slice of member place + *on, or of the slices after it. False: none is
// left.
static bool take_piece(struct joined *joined, const struct joined_thread *member,
                       const struct layer *layer, int *on, struct unit_range *piece) {
    int pieces = piece_count(layer, member->members);
    for (; *on < member->members; ++*on) {
        int m = (member->place + *on) % member->members;
        int i = atomic_fetch_add_explicit(&joined->members[m]->taken, 1, memory_order_relaxed);
        if (i >= pieces)
            continue;
        *piece = make_piece(layer, member->members * pieces, m * pieces + i);
        return true;
    }
    return false;
}

static float *piece_values(const struct joined *joined, const struct joined_thread *member,
                           struct unit_range piece) {
    return joined->pieces + (size_t)piece.first * (size_t)member->rows;
}

// Copies the thread's samples, outputs or their error gradients, from all pieces to `to`, or from
// `from` to all pieces.
static void copy_pieces(struct joined *joined, const struct joined_thread *member,
                        const struct layer *layer, float *to, const float *from) {
    int count = member->members * piece_count(layer, member->members);
    for (int p = 0; p < count; p++) {
        struct unit_range piece = make_piece(layer, count, p);
        size_t units = (size_t)piece.units;
        float *in = piece_values(joined, member, piece) + (size_t)member->row * units;
        for (int i = 0; i < member->samples; i++, in += units) {
            size_t at = (size_t)i * (size_t)layer->units + (size_t)piece.first;
            if (to)
                memcpy(to + at, in, units * sizeof *in);
            else if (from)
                memcpy(in, from + at, units * sizeof *in);
        }
    }
}

static void put_inputs(struct joined *joined, const struct joined_thread *member,
                       const struct layer *layer, const float *x, float factor) {
    size_t inputs = joined_inputs(layer), n = (size_t)member->samples * inputs;
    float *to = joined->inputs + (size_t)member->row * inputs;
    if (factor == 1)
        memcpy(to, x, n * sizeof *to);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = factor * x[i];
}

static void forward_piece(struct joined *joined, const struct joined_thread *member,
                          const struct layer *layer, struct unit_range piece) {
    size_t inputs = joined_inputs(layer), first = (size_t)piece.first;
    const float *weights = joined->config.parameters + layer->weights.offset + first * inputs;
    const float *biases = joined->config.parameters + layer->biases.offset + first;
    joined->config.kernels->dense->forward(piece_values(joined, member, piece), joined->inputs,
                                           weights, biases, member->rows, piece.units, (int)inputs,
                                           0, member->scratch);
}

bool joined_forward(struct home *home, int thread, const struct layer *layer, float *y,
                    const float *x, int n) {
    struct joined *joined = (struct joined *)home;
    struct joined_thread *member = &joined->states[thread];
    struct unit_range piece;
    (void)n;
    if (!joined_takes(layer, joined->config.threads) || !joined_begin_pass(joined, thread))
        return false;
    put_inputs(joined, member, layer, x, 1);
    lay_out_pieces(member);
    if (!joined_meet(joined, member))
        return false;
    for (int on = 0; take_piece(joined, member, layer, &on, &piece);)
        forward_piece(joined, member, layer, piece);
    phaser_meet(joined->phaser);
    copy_pieces(joined, member, layer, y, NULL);
    return true;
}

static void step_weights(struct joined *joined, const struct joined_thread *member,
                         const struct layer *layer, struct unit_range piece, float *dx) {
    struct update update = optimizer_weights_update(joined->config.optimizer, layer, member->step);
    const struct dense_errors errors = {
        .dy = piece_values(joined, member, piece),
        .x = joined->inputs,
        .dx = dx,
        .add = member->took,
        .n = member->rows,
        .units = piece.units,
        .inputs = layer->weights.dims[1],
        .of = layer->units,
    };
    update.decay *= member->decays;
    joined->config.kernels->dense->step(joined->config.parameters + layer->weights.offset +
                                            (size_t)piece.first * joined_inputs(layer),
                                        NULL, &errors, &update);
}

static void step_biases(struct joined *joined, const struct joined_thread *member,
                        const struct layer *layer, struct unit_range piece) {
    for (int m = 0; m < member->members; m++) {
        const struct joined_thread *other = joined->members[m];
        struct update update =
            optimizer_biases_update(joined->config.optimizer, layer, other->rate);
        joined->config.kernels->update(
            joined->config.parameters + layer->biases.offset + piece.first, NULL,
            other->dbiases + piece.first, (size_t)piece.units, &update);
    }
}

// Of a piece that all members have stepped.
static void move_average(const struct joined *joined, const struct joined_thread *member,
                         const struct layer *layer, struct unit_range piece) {
    const struct home *local = joined->local;
    unsigned updates = (unsigned)member->members;
    uint64_t clock = local->ops->clock(local) + updates;
    size_t first = (size_t)piece.first, units = (size_t)piece.units, inputs = joined_inputs(layer);
    home_average(&joined->config, clock, updates, layer->weights.offset + first * inputs,
                 units * inputs);
    home_average(&joined->config, clock, updates, layer->biases.offset + first, units);
}

// Sums the error gradients of this thread's inputs over the members.
static void take_errors(const struct joined *joined, const struct joined_thread *member,
                        const struct layer *layer, float *dx) {
    size_t at = (size_t)member->row * joined_inputs(layer);
    size_t n = (size_t)member->samples * joined_inputs(layer);
    bool some = false;
    for (int m = 0; m < member->members; m++) {
        const struct joined_thread *other = joined->members[m];
        if (other->took && some)
            joined->config.kernels->axpy(dx, other->errors + at, n, 1);
        else if (other->took)
            memcpy(dx, other->errors + at, n * sizeof *dx);
        some = some || other->took;
    }
}

void joined_add_product(struct home *home, int thread, const struct layer *layer,
                        const struct dense_errors *errors, const float *dbiases, int first,
                        float rate) {
    struct joined *joined = (struct joined *)home;
    struct joined_thread *member = &joined->states[thread];
    bool together = member->members > 1 && joined_takes(layer, joined->config.threads);
    if (together) {
        put_inputs(joined, member, layer, errors->x, member->factor);
        copy_pieces(joined, member, layer, NULL, errors->dy);
        member->dbiases = dbiases;
        lay_out_pieces(member);
        together = joined_meet(joined, member);
    }
    if (!together) {
        joined->local->products->add(joined->local, thread, layer, errors, dbiases, first, rate);
        return;
    }
    struct unit_range piece;
    member->took = false;
    for (int on = 0; take_piece(joined, member, layer, &on, &piece); member->took = true) {
        step_weights(joined, member, layer, piece, errors->dx ? member->errors : NULL);
        step_biases(joined, member, layer, piece);
        move_average(joined, member, layer, piece);
    }
    phaser_meet(joined->phaser);
    if (errors->dx)
        take_errors(joined, member, layer, errors->dx);
}
