#include "core/pipeline.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

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
struct run {
    const struct pipeline *pipeline;
    pthread_mutex_t lock;
    pthread_cond_t filled;  // a job can be taken: for workers
    pthread_cond_t emptied; // a slot is free: for the reader
    pthread_cond_t worked;  // the next job to write is done: for the writer
    uint64_t read, taken, written;
    bool ended;     // nothing more will be read
    bool cancelled; // everyone goes home
    int read_status;
    struct error read_error;
    struct outcome *outcomes;
};

struct worker {
    struct run *run;
    int number;
    pthread_t thread;
};

static void *job_slot(const struct run *run, uint64_t job) {
    const struct pipeline *p = run->pipeline;
    return (char *)p->slots + job % (unsigned)p->slot_count * p->slot_size;
}

static struct outcome *outcome_of(struct run *run, uint64_t job) {
    return &run->outcomes[job % (unsigned)run->pipeline->slot_count];
}

static bool room_to_read(struct run *run) {
    pthread_mutex_lock(&run->lock);
    while (!run->cancelled && run->read - run->written == (unsigned)run->pipeline->slot_count)
        pthread_cond_wait(&run->emptied, &run->lock);
    bool go_on = !run->cancelled;
    pthread_mutex_unlock(&run->lock);
    return go_on;
}

static void *reader_main(void *argument) {
    struct run *run = argument;
    const struct pipeline *p = run->pipeline;
    bool more = true;
    while (more && room_to_read(run)) {
        int status = p->read(p->context, job_slot(run, run->read), &more, &run->read_error);
        pthread_mutex_lock(&run->lock);
        run->read_status = status;
        more = more && !status;
        if (more) {
            outcome_of(run, run->read)->done = false;
            run->read++;
        }
        pthread_cond_signal(&run->filled);
        pthread_mutex_unlock(&run->lock);
    }
    pthread_mutex_lock(&run->lock);
    run->ended = true;
    pthread_cond_broadcast(&run->filled);
    pthread_cond_signal(&run->worked);
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

static bool take_job(struct run *run, uint64_t *job) {
    pthread_mutex_lock(&run->lock);
    while (!run->cancelled && !run->ended && run->taken == run->read)
        pthread_cond_wait(&run->filled, &run->lock);
    bool taken = !run->cancelled && run->taken < run->read;
    if (taken)
        *job = run->taken++;
    pthread_mutex_unlock(&run->lock);
    return taken;
}

static void *worker_main(void *argument) {
    const struct worker *worker = argument;
    struct run *run = worker->run;
    const struct pipeline *p = run->pipeline;
    uint64_t job;
    while (take_job(run, &job)) {
        struct outcome *outcome = outcome_of(run, job);
        int status = p->work(p->context, worker->number, job_slot(run, job), &outcome->error);
        pthread_mutex_lock(&run->lock);
        outcome->status = status;
        outcome->done = true;
        if (job == run->written)
            pthread_cond_signal(&run->worked);
        pthread_mutex_unlock(&run->lock);
    }
    return NULL;
}

static void wait_a_little(struct run *run) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 100 * 1000 * 1000;
    if (until.tv_nsec >= 1000 * 1000 * 1000)
        until.tv_sec++, until.tv_nsec -= 1000 * 1000 * 1000;
    pthread_cond_timedwait(&run->worked, &run->lock, &until);
}

// Waits for the next job in order. *job is false behind the last one.
static int next_result(struct run *run, bool *job, struct error *err) {
    const struct pipeline *p = run->pipeline;
    int status = STATUS_OK;
    pthread_mutex_lock(&run->lock);
    for (;;) {
        *job = run->written < run->read;
        if (p->stopped && p->stopped()) {
            status = error_set(err, STATUS_STOPPED, "stopped on request");
            break;
        }
        const struct outcome *outcome = outcome_of(run, run->written);
        if (*job ? outcome->done : run->ended) {
            const struct error *error = *job ? &outcome->error : &run->read_error;
            status = *job ? outcome->status : run->read_status;
            if (status && err)
                *err = *error;
            break;
        }
        wait_a_little(run);
    }
    pthread_mutex_unlock(&run->lock);
    return status;
}

static void give_slot_back(struct run *run) {
    pthread_mutex_lock(&run->lock);
    run->written++;
    pthread_cond_signal(&run->emptied);
    pthread_mutex_unlock(&run->lock);
}

static int write_results(struct run *run, struct error *err) {
    const struct pipeline *p = run->pipeline;
    for (;;) {
        bool job;
        int status = next_result(run, &job, err);
        if (status || !job)
            return status;
        status = p->write(p->context, job_slot(run, run->written), err);
        if (status)
            return status;
        give_slot_back(run);
    }
}

static void pipeline_cancel(struct run *run) {
    pthread_mutex_lock(&run->lock);
    run->cancelled = true;
    pthread_cond_broadcast(&run->filled);
    pthread_cond_broadcast(&run->emptied);
    pthread_mutex_unlock(&run->lock);
}

// Starts the threads, writes, and ends them, however many could be started.
static int run_threads(struct run *run, struct worker *workers, struct error *err) {
    int wanted = run->pipeline->threads, started = 0;
    pthread_t reader;
    bool reading = pthread_create(&reader, NULL, reader_main, run) == 0;
    while (reading && started < wanted) {
        workers[started] = (struct worker){.run = run, .number = started};
        if (pthread_create(&workers[started].thread, NULL, worker_main, &workers[started]))
            break;
        started++;
    }
    int status = started == wanted ? write_results(run, err)
                                   : error_set(err, STATUS_IO, "cannot start %d threads", wanted);
    pipeline_cancel(run);
    for (int i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    if (reading)
        pthread_join(reader, NULL);
    return status;
}

int pipeline_run(const struct pipeline *pipeline, struct error *err) {
    struct run run = {.pipeline = pipeline};
    run.outcomes = mem_zeroed((size_t)pipeline->slot_count, sizeof *run.outcomes);
    struct worker *workers = mem_zeroed((size_t)pipeline->threads, sizeof *workers);
    int status = STATUS_IO;
    if (run.outcomes && workers) {
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_mutex_init(&run.lock, NULL);
        pthread_cond_init(&run.filled, NULL);
        pthread_cond_init(&run.emptied, NULL);
        pthread_cond_init(&run.worked, &monotonic);
        status = run_threads(&run, workers, err);
        pthread_cond_destroy(&run.worked);
        pthread_cond_destroy(&run.emptied);
        pthread_cond_destroy(&run.filled);
        pthread_mutex_destroy(&run.lock);
        pthread_condattr_destroy(&monotonic);
    } else {
        status = error_nomem(err);
    }
    free(workers);
    free(run.outcomes);
    return status;
}
