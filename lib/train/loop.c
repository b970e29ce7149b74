#include "train/loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/node.h"
#include "kernels/kernels.h"
#include "train/flights.h"
#include "train/loop_threads.h"

// --- for one thread -------------------------------------------------------------

bool loop_claim(struct loop *loop) {
    uint64_t number = atomic_load(&loop->next);
    do {
        if (number >= atomic_load(&loop->until))
            return false;
    } while (!atomic_compare_exchange_weak(&loop->next, &number, number + 1));
    return true;
}

void loop_unclaim(struct loop *loop) {
    atomic_fetch_sub(&loop->next, 1);
}

// Nobody waits for a thread that waits for data.
static struct batch *take_or_leave_group(const struct loop_thread *thread, double patience,
                                         double *waited) {
    const struct loop_config *config = &thread->loop->config;
    if (config->sync || config->cut || !config->home->meetings)
        return supply_take(config->supply, patience, waited);
    struct batch *batch = supply_take(config->supply, 0, waited);
    if (!batch || batch->n > 0)
        return batch;
    supply_give_back(config->supply, batch);
    solo_leave(&thread->solo);
    return supply_take(config->supply, patience, waited);
}

static struct batch *take_batch(struct loop_thread *thread, double patience) {
    const struct loop_config *config = &thread->loop->config;
    double sum = atomic_load_explicit(&thread->waited, memory_order_relaxed), waited = 0;
    struct batch *batch = take_or_leave_group(thread, patience, &waited);
    // Synchronous threads all wait while one takes.
    sum += config->sync ? waited * config->threads : waited;
    atomic_store_explicit(&thread->waited, sum, memory_order_relaxed);
    if (!batch)
        atomic_store(&thread->loop->exhausted, true);
    else if (batch->n > 0)
        atomic_store_explicit(&thread->loop->place, batch->number, memory_order_relaxed);
    return batch;
}

void loop_end_step(struct loop *loop, int samples, float rate) {
    if (loop->config.step)
        loop->config.step(loop->config.step_self, samples, rate);
}

static void mix_samples(const struct loop_thread *thread, struct batch *batch) {
    if (mix_wanted(&thread->loop->config.mix))
        mix_batch(&thread->loop->config.mix, batch, thread->other, thread->share);
}

struct batch *loop_thread_try(struct loop_thread *thread, double patience) {
    struct loop *loop = thread->loop;
    if (!loop_claim(loop))
        return NULL;
    struct batch *batch = take_batch(thread, patience);
    if (batch && batch->n > 0)
        mix_samples(thread, batch);
    else if (batch)
        loop_unclaim(loop);
    return batch;
}

struct batch *loop_thread_take(struct loop_thread *thread) {
    struct loop *loop = thread->loop;
    for (;;) {
        struct batch *batch = loop_thread_try(thread, loop->config.patience);
        if (!batch || batch->n > 0)
            return batch;
        supply_give_back(loop->config.supply, batch);
        loop_end_step(loop, 0, 0);
    }
}

float *loop_thread_input(struct loop_thread *thread, const struct batch *batch, int first, int n) {
    struct home *home = thread->loop->config.home;
    if (!thread->loop->config.frozen)
        return batch->input + (size_t)first * net_sample(thread->net);
    return frozen_outputs(&thread->frozen, home->ops->weights(home, thread->index), batch, first,
                          n);
}

void loop_thread_count(struct loop_thread *thread, int samples, double loss) {
    uint64_t n = atomic_load_explicit(&thread->samples, memory_order_relaxed);
    double sum = atomic_load_explicit(&thread->loss, memory_order_relaxed);
    atomic_store_explicit(&thread->samples, n + (uint64_t)samples, memory_order_relaxed);
    atomic_store_explicit(&thread->loss, sum + loss, memory_order_relaxed);
}

static float largest_input(const struct loop_thread *thread, const struct batch *batch) {
    const struct kernels *kernels = thread->loop->config.kernels;
    if (thread->loop->config.frozen || !batch->input)
        return 0;
    size_t count = (size_t)batch->n * shape_size(model_input(thread->loop->config.model)->out);
    return kernels->finite(batch->input, count) ? kernels->largest(batch->input, count) : NAN;
}

void loop_diverge(struct loop_thread *thread, const struct batch *batch, double loss) {
    struct loop *loop = thread->loop;
    if (atomic_exchange(&loop->diverged, true))
        return;
    atomic_store(&loop->diverged_loss, loss);
    atomic_store(&loop->diverged_input, largest_input(thread, batch));
    loop_pause(loop);
}

float loop_rate(const struct loop *loop, uint64_t number) {
    return (float)schedule_rate(loop->config.schedule, pace_epoch(&loop->config.pace, number));
}

static int make_second_labels(struct loop_thread *thread, size_t batch) {
    thread->other = mem_array(batch, sizeof *thread->other);
    thread->share = mem_array(batch, sizeof *thread->share);
    return thread->other && thread->share ? STATUS_OK : error_nomem(&thread->err);
}

// The context is the thread's own: allocated, and first touched, by it.
static int open_context(struct loop_thread *thread) {
    const struct loop_config *config = &thread->loop->config;
    if (config->cut)
        return legs_open(&thread->legs, thread, &thread->err);
    int most = config->sync
                   ? step_chunk(config->model, config->batch)
                   : solo_part(config->home, config->model, config->kernels, config->batch);
    int status =
        net_open(&thread->net, config->model, config->kernels, most, NET_TRAIN, &thread->err);
    if (!status && config->frozen)
        status = frozen_thread_open(&thread->frozen, config->frozen,
                                    config->sync ? most : config->batch, &thread->err);
    if (!status && mix_wanted(&config->mix))
        status = make_second_labels(thread, (size_t)config->batch);
    if (status || config->sync)
        return status;
    thread->solo = (struct solo){
        .kernels = config->kernels,
        .optimizer = config->optimizer,
        .home = config->home,
        .thread = thread->index,
        .net = thread->net,
        // Most of it is never written where dense layers step by the product (net_offer).
        .gradient = mem_untouched_floats(config->model->parameter_count),
        .seed = config->seed,
        .stopped = &thread->loop->diverged,
    };
    if (!thread->solo.gradient)
        return error_set(&thread->err, STATUS_IO, "out of memory for the gradient of thread %d",
                         thread->index);
    solo_set_thread(&thread->solo, config->threads);
    return STATUS_OK;
}

static void stop_running(struct loop *loop) {
    if (atomic_fetch_sub(&loop->running, 1) == 1)
        gate_open(&loop->end);
}

// Waits for a round after `round`; false when the loop is closed.
static bool await_round(struct loop *loop, uint32_t *round) {
    uint32_t seen = gate_look(&loop->begin);
    while (atomic_load(&loop->round) == *round && !atomic_load(&loop->closing)) {
        gate_wait(&loop->begin, seen, -1);
        seen = gate_look(&loop->begin);
    }
    *round = atomic_load(&loop->round);
    return !atomic_load(&loop->closing);
}

// Neighbours on one NUMA node, as many on each: with its context and its copy of the weights,
// where it has one, which it is the first to touch.
static void bind_to_node(const struct loop_thread *thread) {
    node_bind(thread->index * node_count() / thread->loop->config.threads);
}

static void *train_thread(void *self) {
    struct loop_thread *thread = self;
    uint32_t round = 0;
    bind_to_node(thread);
    open_context(thread);
    stop_running(thread->loop);
    while (await_round(thread->loop, &round)) {
        if (thread->loop->config.cut)
            loop_partitions(thread);
        else if (thread->loop->config.sync)
            loop_sync(thread);
        else
            loop_async(thread);
        stop_running(thread->loop);
    }
    net_close(thread->net);
    frozen_thread_close(&thread->frozen);
    free(thread->solo.gradient);
    free(thread->other);
    free(thread->share);
    return NULL;
}

// --- for the caller ---------------------------------------------------------------

// By the clock: what was drawn but not trained on (the supply was cancelled) does
// not count.
uint64_t loop_next(const struct loop *loop) {
    const struct loop_config *config = &loop->config;
    return config->first + config->home->ops->clock(config->home) - loop->first_clock;
}

uint64_t loop_place(const struct loop *loop) {
    return atomic_load_explicit(&loop->place, memory_order_relaxed);
}

void loop_start(struct loop *loop, uint64_t until) {
    atomic_store(&loop->exhausted, false);
    atomic_store(&loop->next, loop_next(loop));
    atomic_store(&loop->until, until);
    atomic_store(&loop->running, loop->config.threads);
    atomic_fetch_add(&loop->round, 1);
    gate_open(&loop->begin);
}

void loop_turn(struct loop *loop) {
    if (!loop->config.neighbours) {
        loop_end_step(loop, 0, 0);
        return;
    }
    atomic_store(&loop->turn, TURN_WANTED);
    loop_start(loop, UINT64_MAX);
    while (!loop_wait(loop, -1))
        continue;
    atomic_store(&loop->turn, TURN_NONE);
}

bool loop_wait(struct loop *loop, double seconds) {
    uint32_t seen = gate_look(&loop->end);
    if (atomic_load(&loop->running) > 0)
        gate_wait(&loop->end, seen, seconds);
    return atomic_load(&loop->running) == 0;
}

void loop_pause(struct loop *loop) {
    atomic_store(&loop->until, 0);
}

struct loop_sums loop_sums(const struct loop *loop) {
    struct loop_sums sums = {0};
    for (int i = 0; i < loop->started; i++) {
        const struct loop_thread *thread = &loop->threads[i];
        sums.samples += atomic_load_explicit(&thread->samples, memory_order_relaxed);
        sums.loss += atomic_load_explicit(&thread->loss, memory_order_relaxed);
        sums.waited += atomic_load_explicit(&thread->waited, memory_order_relaxed);
    }
    return sums;
}

bool loop_exhausted(const struct loop *loop) {
    return atomic_load(&loop->exhausted);
}

bool loop_diverged(const struct loop *loop, double *loss) {
    if (loss)
        *loss = atomic_load(&loop->diverged_loss);
    return atomic_load(&loop->diverged);
}

float loop_diverged_input(const struct loop *loop) {
    return atomic_load(&loop->diverged_input);
}

static int start_threads(struct loop *loop, struct error *err) {
    size_t bytes = (size_t)loop->config.threads * sizeof *loop->threads;
    loop->threads = aligned_alloc(MEM_ALIGN, bytes);
    if (!loop->threads)
        return error_nomem(err);
    memset(loop->threads, 0, bytes);
    atomic_store(&loop->running, loop->config.threads);
    for (int i = 0; i < loop->config.threads; i++) {
        struct loop_thread *thread = &loop->threads[i];
        *thread = (struct loop_thread){.loop = loop, .index = i};
        if (pthread_create(&thread->id, NULL, train_thread, thread))
            return error_set(err, STATUS_IO, "cannot start training thread %d", i);
        loop->started++;
    }
    while (!loop_wait(loop, -1))
        continue;
    for (int i = 0; i < loop->started; i++) {
        if (loop->threads[i].err.status) {
            *err = loop->threads[i].err;
            return err->status;
        }
    }
    return STATUS_OK;
}

int loop_open(struct loop **out, const struct loop_config *config, struct error *err) {
    struct loop *loop = aligned_alloc(MEM_ALIGN, sizeof *loop);
    if (!loop)
        return error_nomem(err);
    memset(loop, 0, sizeof *loop);
    loop->config = *config;
    loop->first_clock = config->home->ops->clock(config->home);
    int status = config->cut    ? flights_open(&loop->flights, config, err)
                 : config->sync ? step_open(&loop->step, config, err)
                                : STATUS_OK;
    if (!status)
        status = start_threads(loop, err);
    if (status)
        loop_close(loop);
    else
        *out = loop;
    return status;
}

void loop_close(struct loop *loop) {
    if (!loop)
        return;
    loop_pause(loop);
    atomic_store(&loop->closing, true);
    gate_open(&loop->begin);
    for (int i = 0; i < loop->started; i++)
        pthread_join(loop->threads[i].id, NULL);
    for (int i = 0; i < loop->started; i++) // others read what lies in them
        legs_close(loop->threads[i].legs, loop->flights);
    step_close(&loop->step);
    flights_close(loop->flights);
    free(loop->threads);
    free(loop);
}
