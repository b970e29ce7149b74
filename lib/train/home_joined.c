// "Model training on a machine is multi-threaded with different images assigned to threads
//  that share the model weights." (Adam 3.2.1)
// Here threads also share reading the weights of large dense layers: each weight is read once for
// the samples of all threads, instead of once a thread.
//
// The members of a mini-batch (core/party.h) meet at a large dense layer with n_i samples each, N
// together. Its units are cut into a slice for each thread, and each slice into pieces.
//
//   forward    each thread copies its rows of x into `inputs` (N x inputs)      - all meet -
//              each computes pieces: their outputs for all N samples            - all meet -
//              each copies its samples' outputs from all pieces
//   backward   each thread copies its x and dy to the shared arrays, and shares
//              its gradient of the biases                                       - all meet -
//              each steps the weights and biases of pieces by all N samples,
//              and sums the errors of x that come from them                     - all meet -
//              each adds up the errors of its own samples
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
// that dy^T x is the right step at the largest rate; the errors do not depend on x. Weights decay
// once for each thread's mini-batch.
//
// Meeting: at the first joined layer of a mini-batch each thread waits for all threads that have
// entered; from then on, at each meeting, for all that began there. A thread leaves when it has no
// samples yet, stops, or finds a loss or gradient that is not finite. If it leaves after the
// beginning, the others learn at the next meeting that its samples are missing, and finish the
// mini-batch alone, as threads without locks. All threads see the same layers in the same order,
// as core/party.h requires.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/party.h"
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
struct seat {
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
    const struct model *model;
    const struct optimizer *optimizer;
    const struct kernels *kernels;
    float *parameters;
    int threads;
    struct seat *seats;
    struct seat **members; // of the mini-batch, by place; seat.members of them
    struct party *party;
    float *inputs; // samples x inputs of all threads
    float *pieces; // outputs or their errors: piece behind piece, each samples x units
};

// Units [first, first + units) of a layer.
struct piece {
    int first, units;
};

// Number of pieces in each slice.
static int piece_count(const struct layer *layer, int members) {
    int most = layer->units / (PIECE_UNITS * members);
    return most < PIECES ? most : PIECES;
}

// Piece number `index` of `count`, over all slices; begins at a multiple of PIECE_UNITS.
static struct piece make_piece(const struct layer *layer, int count, int index) {
    int64_t units = layer->units;
    int first = (int)(units * index / count) / PIECE_UNITS * PIECE_UNITS;
    int end = (int)(units * (index + 1) / count) / PIECE_UNITS * PIECE_UNITS;
    return (struct piece){first, (index + 1 == count ? layer->units : end) - first};
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
        struct seat *seat = joined->members[m];
        seat->step = most;
        seat->factor = most > 0 ? seat->rate / most : 1;
        sum += seat->factor;
    }
    for (int m = 0; m < members; m++)
        joined->members[m]->decays = sum;
}

// Called by the party when a mini-batch begins: numbers its members.
static void seat_all(void *self) {
    struct joined *joined = self;
    int members = 0, rows = 0;
    for (int i = 0; i < joined->threads; i++) {
        struct seat *seat = &joined->seats[i];
        if (!party_has(joined->party, i))
            continue;
        seat->place = members;
        seat->row = rows;
        rows += seat->samples;
        joined->members[members++] = seat;
    }
    for (int m = 0; m < members; m++) {
        joined->members[m]->members = members;
        joined->members[m]->rows = rows;
    }
    share_rates(joined, members);
}

static void joined_enter(struct home *home, int thread, int samples, float rate) {
    struct joined *joined = (struct joined *)home;
    struct seat *seat = &joined->seats[thread];
    seat->samples = samples;
    seat->rate = rate;
    seat->members = 0;
    seat->due = true;
    party_enter(joined->party, thread);
}

// Waits for the others at the first joined layer of a mini-batch: layers below it are not
// synchronised. Returns whether the thread has company.
static bool begin_joined_pass(struct joined *joined, int thread) {
    struct seat *seat = &joined->seats[thread];
    if (seat->due)
        party_begin(joined->party, thread);
    seat->due = false;
    return seat->members > 1;
}

static void joined_leave(struct home *home, int thread) {
    struct joined *joined = (struct joined *)home;
    party_leave(joined->party, thread);
    joined->seats[thread].members = 0;
}

// Waits for all members. False: one has left, so its samples are missing; all finish alone.
static bool meet_members(struct joined *joined, struct seat *seat) {
    if (!party_meet(joined->party))
        seat->members = 0;
    return seat->members > 1;
}

// --- passes ---------------------------------------------------------------------------

// Makes the pieces of the thread's slice available. Call before the meeting that opens the pass:
// nobody takes pieces between the last meeting and this one.
static void lay_out_pieces(struct seat *seat) {
    atomic_store_explicit(&seat->taken, 0, memory_order_relaxed);
}

// Takes a free piece of the slice of member place + *on, or of the slices after it. False: none is
// left.
static bool take_piece(struct joined *joined, const struct seat *seat, const struct layer *layer,
                       int *on, struct piece *piece) {
    int pieces = piece_count(layer, seat->members);
    for (; *on < seat->members; ++*on) {
        int m = (seat->place + *on) % seat->members;
        int i = atomic_fetch_add_explicit(&joined->members[m]->taken, 1, memory_order_relaxed);
        if (i >= pieces)
            continue;
        *piece = make_piece(layer, seat->members * pieces, m * pieces + i);
        return true;
    }
    return false;
}

static float *piece_values(const struct joined *joined, const struct seat *seat,
                           struct piece piece) {
    return joined->pieces + (size_t)piece.first * (size_t)seat->rows;
}

// Copies the thread's samples, outputs or their errors, from all pieces to `to`, or from `from` to
// all pieces.
static void copy_pieces(struct joined *joined, const struct seat *seat, const struct layer *layer,
                        float *to, const float *from) {
    int count = seat->members * piece_count(layer, seat->members);
    for (int p = 0; p < count; p++) {
        struct piece piece = make_piece(layer, count, p);
        size_t units = (size_t)piece.units;
        float *in = piece_values(joined, seat, piece) + (size_t)seat->row * units;
        for (int i = 0; i < seat->samples; i++, in += units) {
            size_t at = (size_t)i * (size_t)layer->units + (size_t)piece.first;
            if (to)
                memcpy(to + at, in, units * sizeof *in);
            else if (from)
                memcpy(in, from + at, units * sizeof *in);
        }
    }
}

static void put_inputs(struct joined *joined, const struct seat *seat, const struct layer *layer,
                       const float *x, float factor) {
    size_t inputs = inputs_of(layer), n = (size_t)seat->samples * inputs;
    float *to = joined->inputs + (size_t)seat->row * inputs;
    if (factor == 1)
        memcpy(to, x, n * sizeof *to);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = factor * x[i];
}

static void forward_piece(struct joined *joined, const struct seat *seat, const struct layer *layer,
                          struct piece piece) {
    size_t inputs = inputs_of(layer), first = (size_t)piece.first;
    const float *weights = joined->parameters + layer->weights.offset + first * inputs;
    const float *biases = joined->parameters + layer->biases.offset + first;
    joined->kernels->dense(piece_values(joined, seat, piece), joined->inputs, weights, biases,
                           seat->rows, piece.units, (int)inputs, 0, seat->scratch);
}

static bool joined_forward(struct home *home, int thread, const struct layer *layer, float *y,
                           const float *x, int n) {
    struct joined *joined = (struct joined *)home;
    struct seat *seat = &joined->seats[thread];
    struct piece piece;
    (void)n;
    if (!is_joined(layer, joined->threads) || !begin_joined_pass(joined, thread))
        return false;
    put_inputs(joined, seat, layer, x, 1);
    lay_out_pieces(seat);
    if (!meet_members(joined, seat))
        return false;
    for (int on = 0; take_piece(joined, seat, layer, &on, &piece);)
        forward_piece(joined, seat, layer, piece);
    party_meet(joined->party);
    copy_pieces(joined, seat, layer, y, NULL);
    return true;
}

static void step_weights(struct joined *joined, const struct seat *seat, const struct layer *layer,
                         struct piece piece, float *dx) {
    struct update update = optimizer_weights_update(joined->optimizer, layer, seat->step);
    const struct dense_errors errors = {
        .dy = piece_values(joined, seat, piece),
        .x = joined->inputs,
        .dx = dx,
        .add = seat->took,
        .n = seat->rows,
        .units = piece.units,
        .inputs = layer->weights.dims[1],
        .of = layer->units,
    };
    update.decay *= seat->decays;
    joined->kernels->dense_step(joined->parameters + layer->weights.offset +
                                    (size_t)piece.first * inputs_of(layer),
                                NULL, &errors, &update);
}

static void step_biases(struct joined *joined, const struct seat *seat, const struct layer *layer,
                        struct piece piece) {
    for (int m = 0; m < seat->members; m++) {
        const struct seat *other = joined->members[m];
        struct update update = optimizer_biases_update(joined->optimizer, layer, other->rate);
        joined->kernels->update(joined->parameters + layer->biases.offset + piece.first, NULL,
                                other->dbiases + piece.first, (size_t)piece.units, &update);
    }
}

// Sums the errors of this thread's inputs over the members.
static void take_errors(const struct joined *joined, const struct seat *seat,
                        const struct layer *layer, float *dx) {
    size_t at = (size_t)seat->row * inputs_of(layer);
    size_t n = (size_t)seat->samples * inputs_of(layer);
    bool some = false;
    for (int m = 0; m < seat->members; m++) {
        const struct seat *other = joined->members[m];
        if (other->took && some)
            joined->kernels->axpy(dx, other->errors + at, n, 1);
        else if (other->took)
            memcpy(dx, other->errors + at, n * sizeof *dx);
        some = some || other->took;
    }
}

static void joined_add_product(struct home *home, int thread, const struct layer *layer,
                               const struct dense_errors *errors, const float *dbiases, int first,
                               float rate) {
    struct joined *joined = (struct joined *)home;
    struct seat *seat = &joined->seats[thread];
    bool together = seat->members > 1 && is_joined(layer, joined->threads);
    if (together) {
        put_inputs(joined, seat, layer, errors->x, seat->factor);
        copy_pieces(joined, seat, layer, NULL, errors->dy);
        seat->dbiases = dbiases;
        lay_out_pieces(seat);
        together = meet_members(joined, seat);
    }
    if (!together) {
        joined->local->products->add(joined->local, thread, layer, errors, dbiases, first, rate);
        return;
    }
    struct piece piece;
    seat->took = false;
    for (int on = 0; take_piece(joined, seat, layer, &on, &piece); seat->took = true) {
        step_weights(joined, seat, layer, piece, errors->dx ? seat->errors : NULL);
        step_biases(joined, seat, layer, piece);
    }
    party_meet(joined->party);
    if (errors->dx)
        take_errors(joined, seat, layer, errors->dx);
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

static void joined_add_clock(struct home *home, int thread) {
    struct home *local = local_home(home);
    local->ops->add_clock(local, thread);
}

static void joined_close(struct home *home) {
    struct joined *joined = (struct joined *)home;
    for (int i = 0; joined->seats && i < joined->threads; i++)
        free(joined->seats[i].errors), free(joined->seats[i].scratch);
    free(joined->seats);
    free(joined->members);
    party_close(joined->party);
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

// Zeroed seats, each on cache lines of its own.
static struct seat *open_seats(int threads) {
    struct seat *seats = aligned_alloc(MEM_ALIGN, (size_t)threads * sizeof *seats);
    if (seats)
        memset(seats, 0, (size_t)threads * sizeof *seats);
    return seats;
}

static bool open_buffers(struct joined *joined, int batch) {
    size_t samples = (size_t)joined->threads * (size_t)batch, inputs = 0, units = 0;
    for (int i = 0; i < joined->model->layer_count; i++) {
        const struct layer *layer = &joined->model->layers[i];
        if (!is_joined(layer, joined->threads))
            continue;
        inputs = inputs_of(layer) > inputs ? inputs_of(layer) : inputs;
        units = (size_t)layer->units > units ? (size_t)layer->units : units;
    }
    joined->inputs = mem_untouched_floats(samples * inputs);
    joined->pieces = mem_untouched_floats(samples * units);
    bool whole =
        joined->inputs && joined->pieces && joined->seats && joined->members && joined->party;
    for (int i = 0; whole && i < joined->threads; i++) {
        struct seat *seat = &joined->seats[i];
        seat->errors = mem_untouched_floats(samples * inputs);
        seat->scratch = mem_untouched_floats(dense_scratch((int)samples, (int)inputs) + 1);
        whole = seat->errors && seat->scratch;
    }
    return whole;
}

int home_joined(struct home **out, const struct home_config *config, struct error *err) {
    const int threads = config->threads;
    struct home_config shared = *config;
    shared.state = NULL;
    struct joined *joined = mem_zeroed(1, sizeof *joined);
    if (!joined)
        return error_nomem(err);
    *joined = (struct joined){
        .home = {.ops = &joined_ops, .products = &joined_products, .meetings = &joined_meetings},
        .model = config->model,
        .optimizer = config->optimizer,
        .kernels = config->kernels,
        .parameters = config->parameters,
        .threads = threads,
        .seats = open_seats(threads),
        .members = mem_zeroed((size_t)threads, sizeof(struct seat *)),
        .party = party_open(threads, seat_all, joined),
    };
    int status = home_local(&joined->local, &shared, err);
    if (!status && !open_buffers(joined, config->batch))
        status = error_nomem(err);
    if (status)
        joined_close(&joined->home);
    else
        *out = &joined->home;
    return status;
}
