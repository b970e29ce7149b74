#include "core/pipeline.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "core/error.h"
#include "core/mem.h"

// What became of one slot.
struct outcome {
    bool done;
    int status;
    struct error error;
};

// Jobs are numbered in the order of reading; job n is in slot n % slot_count.
// written <= taken <= read, and read - written <= slot_count. All fields are
// guarded by the lock; a slot belongs to whoever holds its job.
struct pipeline_state {
    const struct pipeline *pipeline;
    pthread_mutex_t lock;
    pthread_cond_t filled;  // a job can be taken: for those that work
    pthread_cond_t emptied; // a slot is free: for the reader
    pthread_cond_t worked;  // the next job to write is done: for the writer
    uint64_t read, taken, written;
    bool ended;     // nothing more will be read
    bool cancelled; // everyone goes home
    int read_status;
    struct error read_error;
    struct outcome *outcomes;
};

struct pipeline_thread {
    struct pipeline_state *state;
    int number;
    pthread_t thread;
};

static void *job_slot(const struct pipeline_state *state, uint64_t job) {
    const struct pipeline *p = state->pipeline;
    return (char *)p->slots + job % (unsigned)p->slot_count * p->slot_size;
}

static struct outcome *outcome_of(struct pipeline_state *state, uint64_t job) {
    return &state->outcomes[job % (unsigned)state->pipeline->slot_count];
}

static bool room_to_read(struct pipeline_state *state) {
    pthread_mutex_lock(&state->lock);
    while (!state->cancelled &&
           state->read - state->written == (unsigned)state->pipeline->slot_count)
        pthread_cond_wait(&state->emptied, &state->lock);
    bool go_on = !state->cancelled;
    pthread_mutex_unlock(&state->lock);
    return go_on;
}

static void *reader_main(void *argument) {
    struct pipeline_state *state = argument;
    const struct pipeline *p = state->pipeline;
    bool more = true;
    while (more && room_to_read(state)) {
        int status = p->read(p->context, job_slot(state, state->read), &more, &state->read_error);
        pthread_mutex_lock(&state->lock);
        state->read_status = status;
        more = more && !status;
        if (more) {
            outcome_of(state, state->read)->done = false;
            state->read++;
        }
        pthread_cond_signal(&state->filled);
        pthread_mutex_unlock(&state->lock);
    }
    pthread_mutex_lock(&state->lock);
    state->ended = true;
    pthread_cond_broadcast(&state->filled);
    pthread_cond_signal(&state->worked);
    pthread_mutex_unlock(&state->lock);
    return NULL;
}

static bool take_job(struct pipeline_state *state, uint64_t *job) {
    pthread_mutex_lock(&state->lock);
    while (!state->cancelled && !state->ended && state->taken == state->read)
        pthread_cond_wait(&state->filled, &state->lock);
    bool taken = !state->cancelled && state->taken < state->read;
    if (taken)
        *job = state->taken++;
    pthread_mutex_unlock(&state->lock);
    return taken;
}

static void *work_main(void *argument) {
    const struct pipeline_thread *thread = argument;
    struct pipeline_state *state = thread->state;
    const struct pipeline *p = state->pipeline;
    uint64_t job;
    while (take_job(state, &job)) {
        struct outcome *outcome = outcome_of(state, job);
        int status = p->work(p->context, thread->number, job_slot(state, job), &outcome->error);
        pthread_mutex_lock(&state->lock);
        outcome->status = status;
        outcome->done = true;
        if (job == state->written)
            pthread_cond_signal(&state->worked);
        pthread_mutex_unlock(&state->lock);
    }
    return NULL;
}

static void wait_a_little(struct pipeline_state *state) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 100 * 1000 * 1000;
    if (until.tv_nsec >= 1000 * 1000 * 1000)
        until.tv_sec++, until.tv_nsec -= 1000 * 1000 * 1000;
    pthread_cond_timedwait(&state->worked, &state->lock, &until);
}

// Waits for the next job in order. *job is false behind the last one.
static int next_result(struct pipeline_state *state, bool *job, struct error *err) {
    const struct pipeline *p = state->pipeline;
    int status = STATUS_OK;
    pthread_mutex_lock(&state->lock);
    for (;;) {
        *job = state->written < state->read;
        if (p->stopped && p->stopped()) {
            status = error_set(err, STATUS_STOPPED, "stopped on request");
            break;
        }
        const struct outcome *outcome = outcome_of(state, state->written);
        if (*job ? outcome->done : state->ended) {
            const struct error *error = *job ? &outcome->error : &state->read_error;
            status = *job ? outcome->status : state->read_status;
            if (status && err)
                *err = *error;
            break;
        }
        wait_a_little(state);
    }
    pthread_mutex_unlock(&state->lock);
    return status;
}

static void give_slot_back(struct pipeline_state *state) {
    pthread_mutex_lock(&state->lock);
    state->written++;
    pthread_cond_signal(&state->emptied);
    pthread_mutex_unlock(&state->lock);
}

static int write_results(struct pipeline_state *state, struct error *err) {
    const struct pipeline *p = state->pipeline;
    for (;;) {
        bool job;
        int status = next_result(state, &job, err);
        if (status || !job)
            return status;
        status = p->write(p->context, job_slot(state, state->written), err);
        if (status)
            return status;
        give_slot_back(state);
    }
}

static void pipeline_cancel(struct pipeline_state *state) {
    pthread_mutex_lock(&state->lock);
    state->cancelled = true;
    pthread_cond_broadcast(&state->filled);
    pthread_cond_broadcast(&state->emptied);
    pthread_mutex_unlock(&state->lock);
}

// Starts the threads, writes, and ends them, however many could be started.
static int run_threads(struct pipeline_state *state, struct pipeline_thread *threads,
                       struct error *err) {
    int wanted = state->pipeline->threads, started = 0;
    pthread_t reader;
    bool reading = pthread_create(&reader, NULL, reader_main, state) == 0;
    while (reading && started < wanted) {
        threads[started] = (struct pipeline_thread){.state = state, .number = started};
        if (pthread_create(&threads[started].thread, NULL, work_main, &threads[started]))
            break;
        started++;
    }
    int status = started == wanted ? write_results(state, err)
                                   : error_set(err, STATUS_IO, "cannot start %d threads", wanted);
    pipeline_cancel(state);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i].thread, NULL);
    if (reading)
        pthread_join(reader, NULL);
    return status;
}

int pipeline_run(const struct pipeline *pipeline, struct error *err) {
    struct pipeline_state state = {.pipeline = pipeline};
    state.outcomes = mem_zeroed((size_t)pipeline->slot_count, sizeof *state.outcomes);
    struct pipeline_thread *threads = mem_zeroed((size_t)pipeline->threads, sizeof *threads);
    int status = STATUS_IO;
    if (state.outcomes && threads) {
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_mutex_init(&state.lock, NULL);
        pthread_cond_init(&state.filled, NULL);
        pthread_cond_init(&state.emptied, NULL);
        pthread_cond_init(&state.worked, &monotonic);
        status = run_threads(&state, threads, err);
        pthread_cond_destroy(&state.worked);
        pthread_cond_destroy(&state.emptied);
        pthread_cond_destroy(&state.filled);
        pthread_mutex_destroy(&state.lock);
        pthread_condattr_destroy(&monotonic);
    } else {
        status = error_nomem(err);
    }
    free(threads);
    free(state.outcomes);
    return status;
}
