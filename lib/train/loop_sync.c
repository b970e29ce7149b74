// The synchronous variant of Adam's table 1: one update a mini-batch, computed by
// all threads together. Four phases, between which the threads meet:
//
//   take     the last to arrive takes the next mini-batch
//   compute  chunks of it, whoever is free: each chunk has its own gradient
//   add up   slices of the parameter space, whoever is free: in each the chunks'
//            gradients are added in the order of the chunks
//   apply    layers, whoever is free, unless some value is not finite
//
// Floating-point sums depend on their order. Here the chunks depend on the size
// of the mini-batch alone, and each sum has one order, so the weights are the
// same, to the last bit, for any number of threads.
#include <math.h>
#include <stdlib.h>

#include "train/loop_threads.h"

enum {
    CHUNKS_MOST = 16,  // so many threads have work
    CHUNK_LEAST = 4,   // samples: fewer leave the vector units idle
    SLICE = 16 * 1024, // floats: a slice of several gradients stays in the L2 cache
};

int step_chunk(int batch) {
    int chunk = (batch + CHUNKS_MOST - 1) / CHUNKS_MOST;
    int least = batch < CHUNK_LEAST ? batch : CHUNK_LEAST;
    return chunk > least ? chunk : least;
}

static int chunks_of(int n, int chunk) {
    return (n + chunk - 1) / chunk;
}

int step_open(struct step *step, const struct loop_config *config, struct error *err) {
    size_t line = MEM_ALIGN / sizeof(float), floats;
    step->chunk = step_chunk(config->batch);
    size_t chunks = (size_t)chunks_of(config->batch, step->chunk);
    step->stride = (config->model->parameter_count + line - 1) / line * line;
    step->meeting.threads = config->threads;
    step->losses = mem_zeroed(chunks, sizeof *step->losses);
    if (!__builtin_mul_overflow(chunks, step->stride, &floats))
        step->gradients = mem_floats(floats);
    if (!step->losses || !step->gradients)
        return error_set(
            err, STATUS_IO,
            "out of memory: a synchronous mini-batch of %d samples needs %zu gradients",
            config->batch, chunks);
    return STATUS_OK;
}

void step_close(struct step *step) {
    free(step->gradients);
    free(step->losses);
}

// --- phases -----------------------------------------------------------------------

static void take(struct seat *seat) {
    struct loop *loop = seat->loop;
    struct step *step = &loop->step;
    if (step->batch)
        loader_give_back(loop->config.loader, step->batch);
    step->batch = loop_claim(loop) ? seat_take(seat) : NULL;
    if (!step->batch)
        return;
    step->rate = loop_rate(loop, step->batch->number);
    step->chunks = chunks_of(step->batch->n, step->chunk);
    atomic_store(&step->next_chunk, 0);
    atomic_store(&step->next_slice, 0);
    atomic_store(&step->next_layer, 0);
    atomic_store(&step->refused, false);
}

static void compute_chunk(struct seat *seat, int c) {
    const struct loop_config *config = &seat->loop->config;
    struct step *step = &seat->loop->step;
    const struct batch *batch = step->batch;
    const struct layer *input = model_input(config->model);
    size_t values = (size_t)input->out.c * (size_t)input->out.h * (size_t)input->out.w;
    int first = c * step->chunk;
    int n = batch->n - first < step->chunk ? batch->n - first : step->chunk;
    const float *weights = config->home->ops->weights(config->home, seat->index);
    net_forward(seat->net, weights, batch->input + (size_t)first * values, n, batch->draw + first,
                config->seed);
    step->losses[c] = net_loss(seat->net, batch->label + first);
    net_backward(seat->net, weights, batch->label + first, 1.0f / (float)batch->n,
                 step->gradients + (size_t)c * step->stride, NULL, NULL);
}

static void compute(struct seat *seat) {
    struct step *step = &seat->loop->step;
    for (int c; (c = atomic_fetch_add(&step->next_chunk, 1)) < step->chunks;)
        compute_chunk(seat, c);
}

static void add_slice(const struct kernels *kernels, struct step *step, size_t first, size_t n) {
    float *sum = step->gradients + first;
    for (int c = 1; c < step->chunks; c++)
        kernels->axpy(sum, sum + (size_t)c * step->stride, n, 1);
    if (!kernels->finite(sum, n))
        atomic_store(&step->refused, true);
}

static void add_up(struct loop *loop) {
    struct step *step = &loop->step;
    size_t count = loop->config.model->parameter_count;
    for (size_t first; (first = atomic_fetch_add(&step->next_slice, SLICE)) < count;)
        add_slice(loop->config.kernels, step, first, count - first < SLICE ? count - first : SLICE);
}

static double step_loss(const struct step *step) {
    double loss = 0;
    for (int c = 0; c < step->chunks; c++)
        loss += step->losses[c];
    return loss;
}

// Done once, when all sums are there: is the update good?
static void judge(struct seat *seat) {
    struct step *step = &seat->loop->step;
    double loss = step_loss(step);
    if (!isfinite(loss))
        atomic_store(&step->refused, true);
    if (atomic_load(&step->refused)) {
        loop_diverge(seat->loop, loss / step->batch->n);
        return;
    }
    seat_count(seat, step->batch->n, loss);
    seat->loop->config.home->ops->add_clock(seat->loop->config.home);
}

static void apply(struct seat *seat) {
    const struct loop_config *config = &seat->loop->config;
    struct step *step = &seat->loop->step;
    for (int i; (i = atomic_fetch_add(&step->next_layer, 1)) < config->model->layer_count;) {
        const struct layer *layer = &config->model->layers[i];
        float *gradient = step->gradients + layer->weights.offset;
        if (layer->weights.count + layer->biases.count == 0)
            continue;
        optimizer_clip(config->optimizer, config->kernels, layer, gradient);
        config->home->ops->add(config->home, seat->index, layer, gradient, step->rate);
    }
}

void loop_sync(struct seat *seat) {
    struct step *step = &seat->loop->step;
    for (;;) {
        if (meeting_arrive(&step->meeting)) {
            take(seat);
            meeting_end(&step->meeting);
        }
        if (!step->batch)
            return;
        compute(seat);
        if (meeting_arrive(&step->meeting))
            meeting_end(&step->meeting);
        add_up(seat->loop);
        if (meeting_arrive(&step->meeting)) {
            judge(seat);
            meeting_end(&step->meeting);
        }
        if (!atomic_load(&step->refused))
            apply(seat);
    }
}
