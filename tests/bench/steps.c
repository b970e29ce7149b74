// steps train|predict|team MODEL BATCH THREADS: training steps (forward, backward,
// update) or forward passes on random samples in memory (measure/trial.h), in turns
// (turns.h), of threads whose weights are those of adam-worker's (train/home.h), several each
// on a processor of its own (seats.h); a team shares each forward pass (model/net_team.h). Says:
// useful operations of a sample, connections.
#include <pthread.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "kernels/kernels.h"
#include "measure/trial.h"
#include "seats.h"
#include "turns.h"

enum { THREADS_MOST = 256 };

struct worker {
    struct bench *bench;
    struct trial trial;
    pthread_t thread;
    struct rate rate;
};

struct bench {
    const struct kernels *kernels;
    struct model *model;
    struct optimizer optimizer;
    struct home *home;
    enum net_mode mode;
    int batch, threads, team;
    double seconds;
    int seats[THREADS_MOST], seat_count;
    pthread_barrier_t start;
    struct worker workers[THREADS_MOST];
};

static void step(void *self) {
    struct worker *worker = self;
    if (!trial_pass(&worker->trial))
        fprintf(stderr, "steps: the loss or a gradient is not finite\n"), exit(1);
}

static void *work(void *self) {
    struct worker *worker = self;
    struct bench *bench = worker->bench;
    if ((bench->threads > 1 || bench->team) && bench->seat_count)
        seats_take(bench->seats[worker->trial.solo.thread % bench->seat_count]);
    pthread_barrier_wait(&bench->start);
    worker->rate = rate_of(step, worker, bench->batch, 2, bench->seconds);
    trial_rest(&worker->trial);
    return NULL;
}

static struct rate all_work(void *self, double seconds) {
    struct bench *bench = self;
    struct rate sum = {0};
    bench->seconds = seconds;
    for (int i = 0; i < bench->threads; i++)
        trial_ready(&bench->workers[i].trial);
    for (int i = 0; i < bench->threads; i++)
        if (pthread_create(&bench->workers[i].thread, NULL, work, &bench->workers[i]))
            perror("steps: thread"), exit(1);
    for (int i = 0; i < bench->threads; i++) {
        pthread_join(bench->workers[i].thread, NULL);
        sum.wall += bench->workers[i].rate.wall;
        sum.busy += bench->workers[i].rate.busy;
    }
    return sum;
}

static int open_worker(struct bench *bench, int index, struct error *err) {
    struct worker *worker = &bench->workers[index];
    worker->bench = bench;
    worker->trial = (struct trial){.solo = {.kernels = bench->kernels,
                                            .optimizer = &bench->optimizer,
                                            .home = bench->home,
                                            .thread = index},
                                   .mode = bench->mode,
                                   .team = bench->team};
    int status = trial_open(&worker->trial, bench->model, bench->batch, bench->threads, err);
    if (!status && bench->team && bench->seat_count)
        seats_give_others(bench->seats, bench->seat_count);
    return status;
}

static double useful_operations(const struct bench *bench) {
    double sum = 0;
    for (int i = 1; i < bench->model->layer_count; i++)
        for (int pass = NET_FORWARD; pass <= NET_BACKWARD; pass++)
            sum += trial_flops(&bench->workers[0].trial, &bench->model->layers[i],
                               (enum net_pass)pass);
    return sum;
}

static int run(struct bench *bench, float *parameters, struct error *err) {
    const struct home_config config = {
        .model = bench->model,
        .optimizer = &bench->optimizer,
        .kernels = bench->kernels,
        .parameters = parameters,
        .threads = bench->threads,
        .batch = bench->batch,
    };
    int status = home_for_threads(&bench->home, &config, err);
    for (int i = 0; !status && i < bench->threads; i++)
        status = open_worker(bench, i, err);
    if (status)
        return status;
    char about[64];
    snprintf(about, sizeof about, "%.9g %ju", useful_operations(bench),
             (uintmax_t)bench->model->connections);
    pthread_barrier_init(&bench->start, NULL, (unsigned)bench->threads);
    take_turns(all_work, bench, about);
    pthread_barrier_destroy(&bench->start);
    bench->home->ops->close(bench->home);
    return STATUS_OK;
}

static int bench_open(struct bench *bench, const char *path, struct error *err) {
    int status = model_read(&bench->model, path, NULL, 0, err);
    if (status)
        return status;
    float *parameters = mem_floats(bench->model->parameter_count);
    if (!parameters)
        return error_nomem(err);
    model_init_lively(bench->model, parameters, 1);
    status = run(bench, parameters, err);
    for (int i = 0; i < bench->threads; i++)
        trial_close(&bench->workers[i].trial);
    free(parameters);
    return status;
}

int main(int argc, char **argv) {
    static struct bench bench;
    struct error err = {0};
    bench.kernels = kernels_best();
    bench.mode = argc > 1 && strcmp(argv[1], "train") == 0 ? NET_TRAIN : NET_PREDICT;
    bench.batch = argc > 3 ? atoi(argv[3]) : 0;
    bench.threads = argc > 4 ? atoi(argv[4]) : 0;
    bench.seat_count = seats_allowed(bench.seats, THREADS_MOST);
    if (argc != 5 || bench.batch < 1 || bench.threads < 1 || bench.threads > THREADS_MOST)
        return fprintf(stderr, "usage: steps train|predict|team MODEL BATCH THREADS\n"), 2;
    if (strcmp(argv[1], "team") == 0)
        bench.team = bench.threads, bench.threads = 1;
    if (bench_open(&bench, argv[2], &err))
        fprintf(stderr, "steps: %s\n", err.text);
    model_free(bench.model);
    return err.status;
}
