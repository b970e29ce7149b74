// "Model training on a machine is multi-threaded with different images assigned to threads
//  that share the model weights." (Adam 3.2.1)
// Here they share the reading of them, too. Those who train at the same time (core/party.h)
// meet at a large dense layer with n_i samples each, N together; its units are cut into a
// slice for each thread.
//
//   forward    each copies its rows of x into `inputs` (N x inputs)          - all meet -
//              each computes its slice of all N samples' outputs             - all meet -
//              each takes its samples' outputs from all slices
//   backward   each puts its x and dy there, and its gradient of the biases  - all meet -
//              each steps its slice of weights and biases by all N samples,
//              and has the part of the errors of x that comes from it        - all meet -
//              each adds up the parts of its samples
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
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/party.h"
#include "train/home.h"

enum {
    JOIN_WEIGHTS = 256 * 1024, // of a layer that does not stay in a thread's own cache
    JOIN_SAMPLES = 512,        // of all threads: what the step in strips is made for
    JOIN_WORK = 32,            // multiply-adds of a mini-batch for each weight that is joined
    SLICE_UNITS = 16,          // a cache line of outputs
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
    float *errors; // of all samples' inputs, from its slice
    float *scratch;
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
    float *slices; // outputs or their errors: of each slice samples x units, one behind the other
};

// Units [first, first + units) of a layer.
struct slice {
    int first, units;
};

static struct slice slice_of(const struct layer *layer, int members, int place) {
    int64_t units = layer->units, all = members;
    int first = (int)(units * place / all) / SLICE_UNITS * SLICE_UNITS;
    int end = place + 1 == members ? layer->units
                                   : (int)(units * (place + 1) / all) / SLICE_UNITS * SLICE_UNITS;
    return (struct slice){first, end - first};
}

static bool is_joined(const struct layer *layer, int threads) {
    return layer->weights.rank == 2 && layer->weights.count >= JOIN_WEIGHTS &&
           layer->units >= SLICE_UNITS * threads;
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

// Outputs, or their errors, of the thread's samples to all slices or back.
static void copy_slices(struct joined *joined, const struct seat *seat, const struct layer *layer,
                        float *to, const float *from) {
    for (int m = 0; m < seat->members; m++) {
        struct slice slice = slice_of(layer, seat->members, m);
        size_t units = (size_t)slice.units;
        float *in =
            joined->slices + (size_t)slice.first * (size_t)seat->rows + (size_t)seat->row * units;
        for (int i = 0; i < seat->samples; i++, in += units) {
            size_t at = (size_t)i * (size_t)layer->units + (size_t)slice.first;
            if (to)
                memcpy(to + at, in, units * sizeof *in);
            else if (from)
                memcpy(in, from + at, units * sizeof *in);
        }
    }
}

static float *slice_values(const struct joined *joined, const struct seat *seat,
                           struct slice slice) {
    return joined->slices + (size_t)slice.first * (size_t)seat->rows;
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

static bool joined_forward(struct home *home, int thread, const struct layer *layer, float *y,
                           const float *x, int n) {
    struct joined *joined = (struct joined *)home;
    struct seat *seat = &joined->seats[thread];
    (void)n;
    if (!is_joined(layer, joined->threads) || !begin(joined, thread))
        return false;
    put_inputs(joined, seat, layer, x, 1);
    if (!meet(joined, seat))
        return false;
    struct slice slice = slice_of(layer, seat->members, seat->place);
    joined->kernels->dense(slice_values(joined, seat, slice), joined->inputs,
                           joined->parameters + layer->weights.offset +
                               (size_t)slice.first * inputs_of(layer),
                           joined->parameters + layer->biases.offset + slice.first, seat->rows,
                           slice.units, (int)inputs_of(layer), 0, seat->scratch);
    party_meet(joined->party);
    copy_slices(joined, seat, layer, y, NULL);
    return true;
}

static void step_weights(struct joined *joined, const struct seat *seat, const struct layer *layer,
                         struct slice slice, float *dx) {
    struct update update = optimizer_weights_update(joined->optimizer, layer, seat->step);
    const struct dense_errors errors = {
        .dy = slice_values(joined, seat, slice),
        .x = joined->inputs,
        .dx = dx,
        .n = seat->rows,
        .units = slice.units,
        .inputs = layer->weights.dims[1],
    };
    update.decay *= seat->decays;
    joined->kernels->dense_step(joined->parameters + layer->weights.offset +
                                    (size_t)slice.first * inputs_of(layer),
                                NULL, &errors, &update);
}

static void step_biases(struct joined *joined, const struct seat *seat, const struct layer *layer,
                        struct slice slice) {
    for (int m = 0; m < seat->members; m++) {
        const struct seat *other = joined->members[m];
        struct update update = optimizer_biases_update(joined->optimizer, layer, other->rate);
        joined->kernels->update(joined->parameters + layer->biases.offset + slice.first, NULL,
                                other->dbiases + slice.first, (size_t)slice.units, &update);
    }
}

// The sum of what all slices say of this thread's samples.
static void take_errors(const struct joined *joined, const struct seat *seat,
                        const struct layer *layer, float *dx) {
    size_t at = (size_t)seat->row * inputs_of(layer);
    size_t n = (size_t)seat->samples * inputs_of(layer);
    memcpy(dx, joined->members[0]->errors + at, n * sizeof *dx);
    for (int m = 1; m < seat->members; m++)
        joined->kernels->axpy(dx, joined->members[m]->errors + at, n, 1);
}

static void joined_add_product(struct home *home, int thread, const struct layer *layer,
                               const struct dense_errors *errors, const float *dbiases,
                               float rate) {
    struct joined *joined = (struct joined *)home;
    struct seat *seat = &joined->seats[thread];
    bool together = seat->members > 1 && is_joined(layer, joined->threads);
    if (together) {
        put_inputs(joined, seat, layer, errors->x, seat->factor);
        copy_slices(joined, seat, layer, NULL, errors->dy);
        seat->dbiases = dbiases;
        together = meet(joined, seat);
    }
    if (!together) {
        joined->local->ops->add_product(joined->local, thread, layer, errors, dbiases, rate);
        return;
    }
    struct slice slice = slice_of(layer, seat->members, seat->place);
    step_weights(joined, seat, layer, slice, errors->dx ? seat->errors : NULL);
    step_biases(joined, seat, layer, slice);
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
    free(joined->inputs), free(joined->slices);
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
    return threads > 1 && optimizer->rule == RULE_SGD && optimizer->clip <= 0 &&
           (int64_t)threads * batch <= JOIN_SAMPLES &&
           model->connections * (uint64_t)batch <= weights * JOIN_WORK;
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
    joined->slices = mem_untouched_floats(samples * units);
    bool whole =
        joined->inputs && joined->slices && joined->seats && joined->members && joined->party;
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
