// "Model training on a machine is multi-threaded with different images assigned to threads
//  that share the model weights." (Adam 3.2.1)
// Here they share the reading of them, too. Those who train at the same time (core/party.h)
// meet at a large dense layer with n_i samples each, N together; its units are cut into a
// slice for each thread, and each slice into pieces.
//
//   forward    each copies its rows of x into `inputs` (N x inputs)          - all meet -
//              each computes pieces of all N samples' outputs                - all meet -
//              each takes its samples' outputs from all pieces
//   backward   each puts its x and dy there, and its gradient of the biases  - all meet -
//              each steps the weights and biases of pieces by all N samples,
//              and adds up the errors of x that come from them               - all meet -
//              each adds up what all have of its samples
//
// A thread takes the pieces of its own slice, one by one, then what others have left of
// theirs: they wait for the last of them at each meeting, and somebody's processor is always
// slower. Learned with the speech net at 16 samples, two threads of one: slices in one piece
// 1.98, in 2, 4, 8 2.12, 2.13, 2.16; where another program has one of two processors for a
// fifth of the time 1.80, and 1.88, 2.02, 1.98. Slices as large as each thread was fast in
// the mini-batches before: 2.01 and 1.86.
//
// It pays where meeting costs less than reading the weights: the more a mini-batch computes for
// each of them, the later its threads meet. alexnet.net, 40 million weights, two threads of one
// while both use one L3 cache, which share the way to memory: at 4 1.91 -> 1.96 to 2.00; at 16
// 1.89 -> 1.90 to 1.94 in two runs, and 1.89 where two processes had 1.90, by processor time
// 1.95: the rest is waiting. With convolutions that take a fifth less 1.884 -> 1.929 (+-0.016),
// and the images of two threads 1.015 (+-0.009) times as many. But weights that stay in the L3
// cache save less: MNIST's at 16 1.96 -> 1.82, at 32 1.96 -> 1.77.
//
// What a thread writes others read behind the next meeting only: all stores are plain.
// Rates may differ from one mini-batch to the next: x is multiplied by the thread's rate
// over the largest one, which makes the gradient dy^T x what it should be, and the errors do
// not depend on x; weights decay for each mini-batch.
//
// Who waits for whom: they begin together at the first joined layer of a mini-batch, where
// each waits for all who have entered one, and then, at each meeting, for all who began. A
// thread that has no samples yet,
// that stops, or whose loss or gradient is not finite, leaves; if others are behind a
// beginning then, they find at the next meeting that its samples are missing, and are alone
// with the rest of the mini-batch, as threads without locks. As all of them see the same
// layers in the same order, all that core/party.h asks for holds.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/party.h"
#include "train/home.h"

enum {
    JOIN_WEIGHTS = 256 * 1024, // of a layer that does not stay in a thread's own cache
    JOIN_SAMPLES = 512,        // of all threads: what the step in strips is made for
    JOIN_BATCH = 32,           // of one: more make reading the weights the least of it
    JOIN_WORK = 64,            // multiply-adds of a mini-batch for each weight that is joined,
    JOIN_WORK_FAR = 512,       // where these many weights come from memory each time:
    FAR_WEIGHTS = 8 << 20,
    PIECE_UNITS = 16, // a cache line of outputs, at least
    PIECES = 4,       // of a slice, at most
};

// A thread. Others read it between the meetings of a pass, or when they begin together.
struct seat {
    _Alignas(MEM_ALIGN) int samples;
    float rate;
    bool due; // it has not come to the first joined layer of its mini-batch
    // Of the mini-batch that it is in:
    int members, place; // threads, and which of them it is; less than 2: it is alone
    int row, rows;      // its first sample among those of all of them, and how many they are
    float factor;       // its rate, in units of ...
    float step, decays; // ... the largest; the sum of all their factors
    const float *dbiases;
    float *errors; // of all samples' inputs, from the pieces that it took
    bool took;     // any, and so has them
    float *scratch;
    _Alignas(MEM_ALIGN) _Atomic int taken; // pieces of its slice, in this pass; all count
};

struct joined {
    struct home home;
    struct home *local; // what is not joined
    const struct model *model;
    const struct optimizer *optimizer;
    const struct kernels *kernels;
    float *parameters;
    int threads;
    struct seat *seats;
    struct seat **members; // of the mini-batch, as many as each of them says, by place
    struct party *party;
    float *inputs; // samples x inputs of all threads
    float *pieces; // outputs or their errors: of each piece samples x units, one behind the other
};

// Units [first, first + units) of a layer.
struct piece {
    int first, units;
};

// Pieces of each slice.
static int pieces_of(const struct layer *layer, int members) {
    int most = layer->units / (PIECE_UNITS * members);
    return most < PIECES ? most : PIECES;
}

// The one of so many, of all slices.
static struct piece piece_of(const struct layer *layer, int count, int index) {
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

// --- who trains together --------------------------------------------------------------

// The largest rate is the unit of all of them.
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

// Told by the party.
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

// Whether the thread has not come here alone. They begin at the first joined layer: what
// lies below it on the way back and forth each does in its own time.
static bool begin(struct joined *joined, int thread) {
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

// False: somebody has left, whose samples are missing. All go on alone.
static bool meet(struct joined *joined, struct seat *seat) {
    if (!party_meet(joined->party))
        seat->members = 0;
    return seat->members > 1;
}

// --- passes ---------------------------------------------------------------------------

// Before the meeting at which they begin to take: at the one before, all had ended.
static void lay_out_pieces(struct seat *seat) {
    atomic_store_explicit(&seat->taken, 0, memory_order_relaxed);
}

// Another piece that nobody has taken, of the slice of member place + *on, or of those after
// it. False: there is none.
static bool take_piece(struct joined *joined, const struct seat *seat, const struct layer *layer,
                       int *on, struct piece *piece) {
    int pieces = pieces_of(layer, seat->members);
    for (; *on < seat->members; ++*on) {
        int m = (seat->place + *on) % seat->members;
        int i = atomic_fetch_add_explicit(&joined->members[m]->taken, 1, memory_order_relaxed);
        if (i >= pieces)
            continue;
        *piece = piece_of(layer, seat->members * pieces, m * pieces + i);
        return true;
    }
    return false;
}

static float *piece_values(const struct joined *joined, const struct seat *seat,
                           struct piece piece) {
    return joined->pieces + (size_t)piece.first * (size_t)seat->rows;
}

// Outputs, or their errors, of the thread's samples to all pieces or back.
static void copy_pieces(struct joined *joined, const struct seat *seat, const struct layer *layer,
                        float *to, const float *from) {
    int count = seat->members * pieces_of(layer, seat->members);
    for (int p = 0; p < count; p++) {
        struct piece piece = piece_of(layer, count, p);
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
    if (!is_joined(layer, joined->threads) || !begin(joined, thread))
        return false;
    put_inputs(joined, seat, layer, x, 1);
    lay_out_pieces(seat);
    if (!meet(joined, seat))
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

// The sum of what all pieces say of this thread's samples.
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
                               const struct dense_errors *errors, const float *dbiases,
                               float rate) {
    struct joined *joined = (struct joined *)home;
    struct seat *seat = &joined->seats[thread];
    bool together = seat->members > 1 && is_joined(layer, joined->threads);
    if (together) {
        put_inputs(joined, seat, layer, errors->x, seat->factor);
        copy_pieces(joined, seat, layer, NULL, errors->dy);
        seat->dbiases = dbiases;
        lay_out_pieces(seat);
        together = meet(joined, seat);
    }
    if (!together) {
        joined->local->ops->add_product(joined->local, thread, layer, errors, dbiases, rate);
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

static struct home *local_of(const struct home *home) {
    return ((const struct joined *)home)->local;
}

static const float *joined_weights(struct home *home, int thread) {
    struct home *local = local_of(home);
    return local->ops->weights(local, thread);
}

static void joined_add(struct home *home, int thread, const struct layer *layer, struct span span,
                       const float *gradient, float rate) {
    struct home *local = local_of(home);
    local->ops->add(local, thread, layer, span, gradient, rate);
}

static uint64_t joined_clock(const struct home *home) {
    struct home *local = local_of(home);
    return local->ops->clock(local);
}

static void joined_add_clock(struct home *home, int thread) {
    struct home *local = local_of(home);
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
    .add_product = joined_add_product,
    .enter = joined_enter,
    .forward = joined_forward,
    .leave = joined_leave,
    .clock = joined_clock,
    .add_clock = joined_add_clock,
    .close = joined_close,
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

// Zeroed seats on lines of their own.
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

int home_joined(struct home **out, const struct model *model, const struct optimizer *optimizer,
                const struct kernels *kernels, float *parameters, uint64_t clock, int threads,
                int batch, struct error *err) {
    struct joined *joined = mem_zeroed(1, sizeof *joined);
    if (!joined)
        return error_nomem(err);
    *joined = (struct joined){
        .home = {&joined_ops},
        .model = model,
        .optimizer = optimizer,
        .kernels = kernels,
        .parameters = parameters,
        .threads = threads,
        .seats = open_seats(threads),
        .members = mem_zeroed((size_t)threads, sizeof(struct seat *)),
        .party = party_open(threads, seat_all, joined),
    };
    int status =
        home_local(&joined->local, model, optimizer, kernels, parameters, NULL, clock, err);
    if (!status && !open_buffers(joined, batch))
        status = error_nomem(err);
    if (status)
        joined_close(&joined->home);
    else
        *out = &joined->home;
    return status;
}
