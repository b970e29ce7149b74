// The synchronous variant of Adam's table 1: one update a mini-batch, computed by
// all threads together. Four phases, between which the threads meet:
//
//   take     the last to arrive takes the next mini-batch
//   compute  chunks of it, whoever is free: each chunk has its own gradient
//   add up   pieces of the parameter space, whoever is free: in each the chunks'
//            gradients are added in the order of the chunks
//   apply    pieces, whoever is free, unless some value is not finite
//
// Floating-point sums depend on their order. Here the chunks depend on the size
// of the mini-batch alone, and each sum has one order, so the weights are the
// same, to the last bit, for any number of threads.
//
// A chunk has 16 samples, which fill the vectors (kernels.h, "Blocks") and share
// one reading of the weights; a mini-batch of fewer than four such chunks has
// chunks of 8 or 4 samples, so that several threads have work. There are at most 16
// chunks, each of which needs a gradient: of a mini-batch above 256 they have more
// samples, still a multiple of 16. Where a layer looks at samples together (model_together), chunks
// are multiples of as many.
#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "kernels/kernels.h"
#include "train/loop_threads.h"

enum {
    CHUNK = 16, // samples
    CHUNK_LEAST = 4,
    CHUNKS_LEAST = 4, // where the mini-batch allows
    CHUNKS_MOST = 16,
    PIECE = 16 * 1024, // floats: a piece of several gradients stays in the L2 cache
};

int step_chunk(const struct model *model, int batch) {
    int chunk = CHUNK, together = model_together(model);
    while (chunk > CHUNK_LEAST && batch / chunk < CHUNKS_LEAST)
        chunk /= 2;
    if (batch > CHUNKS_MOST * CHUNK)
        chunk = (batch + CHUNKS_MOST * CHUNK - 1) / (CHUNKS_MOST * CHUNK) * CHUNK;
    if (together > 1)
        chunk = (chunk + together - 1) / together * together;
    return chunk < batch ? chunk : batch;
}

static int chunks_of(int n, int chunk) {
    return (n + chunk - 1) / chunk;
}

static bool home_takes_factors(const struct home *home, const struct layer *layer) {
    return home->products && home->products->takes(home, layer, true);
}

// Cuts every layer's parameters into pieces, but where it is frozen or the home takes factors; only
// counts them where to is NULL.
static size_t cut_into_pieces(const struct model *model, const struct home *home,
                              struct update_piece *to) {
    size_t count = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        bool formed = layer_learns(layer) && !home_takes_factors(home, layer);
        size_t n = formed ? optimizer_all(layer).n : 0;
        for (size_t first = 0; first < n; first += PIECE, count++)
            if (to)
                to[count] = (struct update_piece){
                    .layer = layer,
                    .span = {first, n - first < PIECE ? n - first : PIECE},
                };
    }
    return count;
}

int step_open(struct step *step, const struct loop_config *config, struct error *err) {
    size_t line = MEM_ALIGN / sizeof(float), floats;
    step->chunk = step_chunk(config->model, config->batch);
    size_t chunks = (size_t)chunks_of(config->batch, step->chunk);
    step->stride = (config->model->parameter_count + line - 1) / line * line;
    step->barrier.threads = config->threads;
    step->losses = mem_zeroed(chunks, sizeof *step->losses);
    step->piece_count = cut_into_pieces(config->model, config->home, NULL);
    step->pieces = mem_zeroed(step->piece_count + 1, sizeof *step->pieces);
    if (!__builtin_mul_overflow(chunks, step->stride, &floats))
        step->gradients = mem_floats(floats);
    if (!step->losses || !step->pieces || !step->gradients)
        return error_set(
            err, STATUS_IO,
            "out of memory: a synchronous mini-batch of %d samples needs %zu gradients",
            config->batch, chunks);
    cut_into_pieces(config->model, config->home, step->pieces);
    return STATUS_OK;
}

void step_close(struct step *step) {
    free(step->gradients);
    free(step->pieces);
    free(step->losses);
}

// --- phases -----------------------------------------------------------------------

// The mini-batch before is over.
static void end_step(const struct loop_thread *thread) {
    struct loop *loop = thread->loop;
    struct step *step = &loop->step;
    int samples = step->batch->n;
    supply_give_back(loop->config.supply, step->batch);
    step->batch = NULL;
    if (atomic_load(&step->refused))
        return;
    loop->config.home->ops->add_clock(loop->config.home, thread->index, samples);
    loop_end_step(loop, samples, step->rate);
}

static void take_mini_batch(struct loop_thread *thread) {
    struct loop *loop = thread->loop;
    struct step *step = &loop->step;
    if (step->batch)
        end_step(thread);
    step->batch = loop_thread_take(thread);
    if (!step->batch)
        return;
    step->rate = loop_rate(loop, step->batch->number);
    step->chunks = chunks_of(step->batch->n, step->chunk);
    atomic_store(&step->next_chunk, 0);
    atomic_store(&step->next_sum, 0);
    atomic_store(&step->next_update, 0);
    atomic_store(&step->refused, false);
}

// The gradient of a dense layer is not formed where the home takes its factors.
static bool chunk_offered(void *self, const struct layer *layer, const struct dense_errors *errors,
                          const float *dbiases) {
    struct loop_thread *thread = self;
    const struct loop_config *config = &thread->loop->config;
    struct home *home = config->home;
    struct step *step = &thread->loop->step;
    if (!home_takes_factors(home, layer))
        return false;
    if (!optimizer_accepts_product(config->kernels, errors))
        atomic_store(&step->refused, true);
    home->products->add(home, thread->index, layer, errors, dbiases, thread->first, step->rate);
    return true;
}

static void compute_chunk(struct loop_thread *thread, int c) {
    const struct loop_config *config = &thread->loop->config;
    struct step *step = &thread->loop->step;
    const struct batch *batch = step->batch;
    int first = c * step->chunk;
    int n = batch->n - first < step->chunk ? batch->n - first : step->chunk;
    const float *weights = config->home->ops->weights(config->home, thread->index);
    net_forward(thread->net, weights, loop_thread_input(thread, batch, first, n), n,
                batch->draw + first, config->seed);
    net_mixed(thread->net, batch->other ? batch->other + first : NULL,
              batch->share ? batch->share + first : NULL);
    net_targets(thread->net, batch_target(batch, first, model_classes(config->model)));
    step->losses[c] = net_loss(thread->net, batch->label + first);
    thread->first = first;
    net_offered(thread->net, chunk_offered, thread);
    net_backward(thread->net, weights, batch->label + first, 1.0f / (float)batch->n,
                 step->gradients + (size_t)c * step->stride, NULL, NULL);
}

static void compute_chunks(struct loop_thread *thread) {
    struct step *step = &thread->loop->step;
    for (int c; (c = atomic_fetch_add(&step->next_chunk, 1)) < step->chunks;)
        compute_chunk(thread, c);
}

static void sum_piece(const struct loop_config *config, struct step *step,
                      struct update_piece *piece) {
    const struct kernels *kernels = config->kernels;
    float *gradient = step->gradients + piece->layer->weights.offset;
    float *sum = gradient + piece->span.first;
    for (int c = 1; c < step->chunks; c++)
        kernels->axpy(sum, sum + (size_t)c * step->stride, piece->span.n, 1);
    if (!kernels->finite(sum, piece->span.n))
        atomic_store(&step->refused, true);
    if (config->optimizer->clip > 0)
        piece->squares = optimizer_length_squares(kernels, piece->layer, piece->span, gradient);
}

static void sum_pieces(struct loop *loop) {
    struct step *step = &loop->step;
    for (size_t i; (i = atomic_fetch_add(&step->next_sum, 1)) < step->piece_count;)
        sum_piece(&loop->config, step, &step->pieces[i]);
}

// The factor of each layer's pieces, by the sum of their squares in order.
static void clip_gradients(const struct optimizer *optimizer, struct step *step) {
    struct update_piece *end = step->pieces + step->piece_count;
    for (struct update_piece *begin = step->pieces, *next; begin < end; begin = next) {
        double squares = 0;
        for (next = begin; next < end && next->layer == begin->layer; next++)
            squares += next->squares;
        for (struct update_piece *piece = begin; piece < next; piece++)
            piece->factor = optimizer_clip_factor(optimizer, squares);
    }
}

static double step_loss(const struct step *step) {
    double loss = 0;
    for (int c = 0; c < step->chunks; c++)
        loss += step->losses[c];
    return loss;
}

// Done once, when all sums are there: is the update good?
static void judge_update(struct loop_thread *thread) {
    struct step *step = &thread->loop->step;
    double loss = step_loss(step);
    if (!isfinite(loss))
        atomic_store(&step->refused, true);
    if (atomic_load(&step->refused)) {
        loop_diverge(thread, step->batch, loss / step->batch->n);
        return;
    }
    if (thread->loop->config.optimizer->clip > 0)
        clip_gradients(thread->loop->config.optimizer, step);
    loop_thread_count(thread, step->batch->n, loss);
}

static void apply_piece(struct loop_thread *thread, const struct update_piece *piece) {
    const struct loop_config *config = &thread->loop->config;
    struct step *step = &thread->loop->step;
    float *gradient = step->gradients + piece->layer->weights.offset;
    if (config->optimizer->clip > 0)
        optimizer_shorten(piece->layer, piece->span, gradient, piece->factor);
    config->home->ops->add(config->home, thread->index, piece->layer, piece->span, gradient,
                           step->rate);
}

static void apply_pieces(struct loop_thread *thread) {
    struct step *step = &thread->loop->step;
    for (size_t i; (i = atomic_fetch_add(&step->next_update, 1)) < step->piece_count;)
        apply_piece(thread, &step->pieces[i]);
}

void loop_sync(struct loop_thread *thread) {
    struct step *step = &thread->loop->step;
    for (;;) {
        if (barrier_arrive(&step->barrier)) {
            take_mini_batch(thread);
            barrier_end(&step->barrier);
        }
        if (!step->batch)
            return;
        compute_chunks(thread);
        if (barrier_arrive(&step->barrier))
            barrier_end(&step->barrier);
        sum_pieces(thread->loop);
        if (barrier_arrive(&step->barrier)) {
            judge_update(thread);
            barrier_end(&step->barrier);
        }
        if (!atomic_load(&step->refused))
            apply_pieces(thread);
    }
}
