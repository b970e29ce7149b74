// "Model training on a machine is multi-threaded with different images assigned to threads
//  that share the model weights." (Adam 3.2.1)
// Here threads also share reading the weights of large dense layers: each weight is read once for
// the samples of all threads, instead of once a thread.
//
// The members of a mini-batch (core/phaser.h) meet at a large dense layer with n_i samples each, N
// together. Its units are cut into a slice for each thread, and each slice into pieces.
//
//   forward    each thread copies its rows of x into `inputs` (N x inputs)      - all meet -
//              each computes pieces: their outputs for all N samples            - all meet -
//              each copies its samples' outputs from all pieces
//   backward   each thread copies its x and dy to the shared arrays, and shares
//              its gradient of the biases                                       - all meet -
//              each steps the weights and biases of pieces by all N samples,
//              and sums the error gradients of x that come from them            - all meet -
//              each adds up the error gradients of its own samples
//
// A thread takes the pieces of its own slice first, then those that other slices have left, so
// that a slow processor delays a meeting by one piece at most.
//
// Meetings must cost less than reading the weights: see home_joins(). Figures:
// tests/bench/results/threads.txt.
//
// Memory: a thread reads what another has written only after the next meeting, so all stores are
// plain.
//
// Rates may differ between threads: x is multiplied by the thread's rate over the largest one, so
// that dy^T x is the right step at the largest rate; the error gradients do not depend on x.
// Weights decay once for each thread's mini-batch.
//
// Meeting: at the first joined layer of a mini-batch each thread waits for all threads that have
// entered; from then on, at each meeting, for all that began there. A thread leaves when it has no
// samples yet, stops, or finds a loss or gradient that is not finite. If it leaves after the
// beginning, the others learn at the next meeting that its samples are missing, and finish the
// mini-batch alone, as threads without locks. All threads see the same layers in the same order,
// as core/phaser.h requires.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/phaser.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "train/home.h"

enum {
    JOIN_WEIGHTS = 256 * 1024, // of a layer: fewer stay in the L2 cache of each thread
    JOIN_SAMPLES = 512,        // of all threads: two parts of the step in strips (DENSE_STEP_MOST)
    JOIN_BATCH = 32,           // of a thread: with more, reading the weights is a small part
    JOIN_WORK = 64,        // multiply-adds of a mini-batch for each joined weight, at most: more
                           // make threads meet later than reading the weights takes
    JOIN_WORK_FAR = 512,   // the same when the weights come from memory each time
    FAR_WEIGHTS = 8 << 20, // from 32 MB on they do
    PIECE_UNITS = 16,      // at least a cache line of outputs
    PIECES = 4,            // of a slice, at most: more gain little
};

// A thread's state. Others read it between the meetings of a pass, or at the beginning.
struct joined_thread {
    _Alignas(MEM_ALIGN) int samples;
    float rate;
    bool due; // it has not reached the first joined layer of its mini-batch
    // Of the present mini-batch:
    int members, place; // number of threads, and this one's index; below 2 members: it is alone
    int row, rows;      // its first sample among those of all members, and their number
    float factor;       // its rate over the largest rate
    float step, decays; // the largest rate; the sum of all members' factors
    const float *dbiases;
    float *errors; // of all samples' inputs, summed over the pieces that it took
    bool took;     // at least one piece, so `errors` is valid
    float *scratch;
    _Alignas(MEM_ALIGN) _Atomic int taken; // pieces of its slice in this pass, by any thread
};

struct joined {
    struct home home;
    struct home *local; // keeps all layers that are not joined
    struct home_config config;
    struct joined_thread *states;
    struct joined_thread **members; // of the mini-batch, by place; thread.members of them
    struct phaser *phaser;
    float *inputs; // samples x inputs of all threads
    float *pieces; // outputs or their error gradients: piece behind piece, each samples x units
};

// Units [first, first + units) of a layer.
struct unit_range {
    int first, units;
};

// Number of pieces in each slice.
static int piece_count(const struct layer *layer, int members) {
    int most = layer->units / (PIECE_UNITS * members);
    return most < PIECES ? most : PIECES;
}

// Piece number `index` of `count`, over all slices; begins at a multiple of PIECE_UNITS.
static struct unit_range make_piece(const struct layer *layer, int count, int index) {
    int64_t units = layer->units;
    int first = (int)(units * index / count) / PIECE_UNITS * PIECE_UNITS;
    int end = (int)(units * (index + 1) / count) / PIECE_UNITS * PIECE_UNITS;
    return (struct unit_range){first, (index + 1 == count ? layer->units : end) - first};
}

static bool is_joined(const struct layer *layer, int threads) {
    return layer->weights.rank == 2 && layer->weights.count >= JOIN_WEIGHTS &&
           layer->units >= PIECE_UNITS * threads;
}

static size_t inputs_of(const struct layer *layer) {
    return (size_t)layer->weights.dims[1];
}

// --- members of a mini-batch -----------------------------------------------------------

// Expresses all rates as factors of the largest.
static void share_rates(struct joined *joined, int members) {
    float most = 0, sum = 0;
    for (int m = 0; m < members; m++)
        most = joined->members[m]->rate > most ? joined->members[m]->rate : most;
    for (int m = 0; m < members; m++) {
        struct joined_thread *member = joined->members[m];
        member->step = most;
        member->factor = most > 0 ? member->rate / most : 1;
        sum += member->factor;
    }
    for (int m = 0; m < members; m++)
        joined->members[m]->decays = sum;
}

// Called by the phaser when a mini-batch begins: numbers its members.
static void number_members(void *self) {
    struct joined *joined = self;
    int members = 0, rows = 0;
    for (int i = 0; i < joined->config.threads; i++) {
        struct joined_thread *member = &joined->states[i];
        if (!phaser_has(joined->phaser, i))
            continue;
        member->place = members;
        member->row = rows;
        rows += member->samples;
        joined->members[members++] = member;
    }
    for (int m = 0; m < members; m++) {
        joined->members[m]->members = members;
        joined->members[m]->rows = rows;
    }
    share_rates(joined, members);
}

static void joined_enter(struct home *home, int thread, int samples, float rate) {
    struct joined *joined = (struct joined *)home;
    struct joined_thread *member = &joined->states[thread];
    member->samples = samples;
    member->rate = rate;
    member->members = 0;
    member->due = true;
    phaser_enter(joined->phaser, thread);
}

// Waits for the others at the first joined layer of a mini-batch: layers below it are not
// synchronised. Returns whether the thread has company.
static bool begin_joined_pass(struct joined *joined, int thread) {
    struct joined_thread *member = &joined->states[thread];
    if (member->due)
        phaser_begin(joined->phaser, thread);
    member->due = false;
    return member->members > 1;
}

static void joined_leave(struct home *home, int thread) {
    struct joined *joined = (struct joined *)home;
    phaser_leave(joined->phaser, thread);
    joined->states[thread].members = 0;
}

// Waits for all members. False: one has left, so its samples are missing; all finish alone.
static bool meet_members(struct joined *joined, struct joined_thread *member) {
    if (!phaser_meet(joined->phaser))
        member->members = 0;
    return member->members > 1;
}

// --- passes ---------------------------------------------------------------------------

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
    size_t inputs = inputs_of(layer), n = (size_t)member->samples * inputs;
    float *to = joined->inputs + (size_t)member->row * inputs;
    if (factor == 1)
        memcpy(to, x, n * sizeof *to);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = factor * x[i];
}

static void forward_piece(struct joined *joined, const struct joined_thread *member,
                          const struct layer *layer, struct unit_range piece) {
    size_t inputs = inputs_of(layer), first = (size_t)piece.first;
    const float *weights = joined->config.parameters + layer->weights.offset + first * inputs;
    const float *biases = joined->config.parameters + layer->biases.offset + first;
    joined->config.kernels->dense->forward(piece_values(joined, member, piece), joined->inputs,
                                           weights, biases, member->rows, piece.units, (int)inputs,
                                           0, member->scratch);
}

static bool joined_forward(struct home *home, int thread, const struct layer *layer, float *y,
                           const float *x, int n) {
    struct joined *joined = (struct joined *)home;
    struct joined_thread *member = &joined->states[thread];
    struct unit_range piece;
    (void)n;
    if (!is_joined(layer, joined->config.threads) || !begin_joined_pass(joined, thread))
        return false;
    put_inputs(joined, member, layer, x, 1);
    lay_out_pieces(member);
    if (!meet_members(joined, member))
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
                                            (size_t)piece.first * inputs_of(layer),
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
    size_t first = (size_t)piece.first, units = (size_t)piece.units, inputs = inputs_of(layer);
    home_average(&joined->config, clock, updates, layer->weights.offset + first * inputs,
                 units * inputs);
    home_average(&joined->config, clock, updates, layer->biases.offset + first, units);
}

// Sums the error gradients of this thread's inputs over the members.
static void take_errors(const struct joined *joined, const struct joined_thread *member,
                        const struct layer *layer, float *dx) {
    size_t at = (size_t)member->row * inputs_of(layer);
    size_t n = (size_t)member->samples * inputs_of(layer);
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

static void joined_add_product(struct home *home, int thread, const struct layer *layer,
                               const struct dense_errors *errors, const float *dbiases, int first,
                               float rate) {
    struct joined *joined = (struct joined *)home;
    struct joined_thread *member = &joined->states[thread];
    bool together = member->members > 1 && is_joined(layer, joined->config.threads);
    if (together) {
        put_inputs(joined, member, layer, errors->x, member->factor);
        copy_pieces(joined, member, layer, NULL, errors->dy);
        member->dbiases = dbiases;
        lay_out_pieces(member);
        together = meet_members(joined, member);
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

// --- the rest -------------------------------------------------------------------------

static struct home *local_home(const struct home *home) {
    return ((const struct joined *)home)->local;
}

static const float *joined_weights(struct home *home, int thread) {
    struct home *local = local_home(home);
    return local->ops->weights(local, thread);
}

static void joined_add(struct home *home, int thread, const struct layer *layer, struct span span,
                       const float *gradient, float rate) {
    struct home *local = local_home(home);
    local->ops->add(local, thread, layer, span, gradient, rate);
}

static void joined_settle(struct home *home, int thread) {
    struct home *local = local_home(home);
    local->ops->settle(local, thread);
}

static uint64_t joined_clock(const struct home *home) {
    struct home *local = local_home(home);
    return local->ops->clock(local);
}

static void joined_add_clock(struct home *home, int thread, int samples) {
    struct home *local = local_home(home);
    local->ops->add_clock(local, thread, samples);
}

static void joined_close(struct home *home) {
    struct joined *joined = (struct joined *)home;
    for (int i = 0; joined->states && i < joined->config.threads; i++)
        free(joined->states[i].errors), free(joined->states[i].scratch);
    free(joined->states);
    free(joined->members);
    phaser_close(joined->phaser);
    if (joined->local)
        joined->local->ops->close(joined->local);
    free(joined->inputs), free(joined->pieces);
    free(joined);
}

static const struct home_ops joined_ops = {
    .weights = joined_weights,
    .add = joined_add,
    .settle = joined_settle,
    .clock = joined_clock,
    .add_clock = joined_add_clock,
    .close = joined_close,
};

static const struct home_products joined_products = {
    .takes = home_applies_product,
    .add = joined_add_product,
};

static const struct home_meetings joined_meetings = {
    .enter = joined_enter,
    .forward = joined_forward,
    .leave = joined_leave,
};

bool home_joins(const struct model *model, const struct optimizer *optimizer, int threads,
                int batch) {
    uint64_t weights = 0;
    for (int i = 0; i < model->layer_count; i++)
        if (is_joined(&model->layers[i], threads))
            weights += model->layers[i].weights.count;
    uint64_t work = weights < FAR_WEIGHTS ? JOIN_WORK : JOIN_WORK_FAR;
    return threads > 1 && optimizer->rule == RULE_SGD && optimizer->clip <= 0 &&
           batch <= JOIN_BATCH && (int64_t)threads * batch <= JOIN_SAMPLES &&
           model->connections * (uint64_t)batch <= weights * work;
}

int home_joined_check(const struct model *model, const struct optimizer *optimizer, int threads,
                      int batch, struct error *err) {
    bool some = false;
    for (int i = 0; i < model->layer_count; i++)
        some = some || is_joined(&model->layers[i], threads);
    if (optimizer->rule != RULE_SGD || optimizer->clip > 0)
        return error_set(err, STATUS_USAGE,
                         "--home joined is for --optimizer sgd without --clip: steps of joined "
                         "layers never form a gradient");
    if ((int64_t)threads * batch > JOIN_SAMPLES)
        return error_set(err, STATUS_USAGE,
                         "--home joined is for at most %d samples of all threads together, not "
                         "%d x %d",
                         JOIN_SAMPLES, threads, batch);
    if (!some)
        return error_set(err, STATUS_USAGE,
                         "--home joined: no dense layer of %s is large enough for %d threads (%d "
                         "weights, and %d units a thread)",
                         model->name, threads, JOIN_WEIGHTS, PIECE_UNITS);
    return STATUS_OK;
}

// Zeroed states, each on cache lines of its own.
static struct joined_thread *open_states(int threads) {
    struct joined_thread *states = aligned_alloc(MEM_ALIGN, (size_t)threads * sizeof *states);
    if (states)
        memset(states, 0, (size_t)threads * sizeof *states);
    return states;
}

static bool open_buffers(struct joined *joined, int batch) {
    size_t samples = (size_t)joined->config.threads * (size_t)batch, inputs = 0, units = 0;
    for (int i = 0; i < joined->config.model->layer_count; i++) {
        const struct layer *layer = &joined->config.model->layers[i];
        if (!is_joined(layer, joined->config.threads))
            continue;
        inputs = inputs_of(layer) > inputs ? inputs_of(layer) : inputs;
        units = (size_t)layer->units > units ? (size_t)layer->units : units;
    }
    joined->inputs = mem_untouched_floats(samples * inputs);
    joined->pieces = mem_untouched_floats(samples * units);
    bool whole =
        joined->inputs && joined->pieces && joined->states && joined->members && joined->phaser;
    for (int i = 0; whole && i < joined->config.threads; i++) {
        struct joined_thread *member = &joined->states[i];
        member->errors = mem_untouched_floats(samples * inputs);
        member->scratch = mem_untouched_floats(dense_scratch((int)samples, (int)inputs) + 1);
        whole = member->errors && member->scratch;
    }
    return whole;
}

int home_joined(struct home **out, const struct home_config *config, struct error *err) {
    const int threads = config->threads;
    struct joined *joined = mem_zeroed(1, sizeof *joined);
    if (!joined)
        return error_nomem(err);
    *joined = (struct joined){
        .home = {.ops = &joined_ops, .products = &joined_products, .meetings = &joined_meetings},
        .config = *config,
        .states = open_states(threads),
        .members = mem_zeroed((size_t)threads, sizeof(struct joined_thread *)),
        .phaser = phaser_open(threads, number_members, joined),
    };
    int status = home_local(&joined->local, config, err);
    if (!status && !open_buffers(joined, config->batch))
        status = error_nomem(err);
    if (status)
        joined_close(&joined->home);
    else
        *out = &joined->home;
    return status;
}
