// steps train|predict MODEL BATCH THREADS: training steps (forward, backward,
// update) or forward passes on random samples in memory, in turns (turns.h). Each
// thread works as those of adam-worker do (train/loop_async.c), on weights that
// all of them share as there (train/home.h). Says: useful operations of a sample, connections.
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/mem.h"
#include "core/random.h"
#include "model/layer.h"
#include "model/net.h"
#include "train/home.h"
#include "turns.h"

enum { THREADS_MOST = 256 };

struct worker {
    struct bench *bench;
    struct net *net;
    float *input, *gradient;
    int32_t *labels;
    uint64_t *draw;
    pthread_t thread;
    struct rate rate;
};

struct bench {
    const struct kernels *kernels;
    struct model *model;
    struct optimizer optimizer;
    struct home *home;
    enum net_mode mode;
    int batch, threads;
    double seconds;
    pthread_barrier_t start;
    struct worker workers[THREADS_MOST];
};

static int seat(const struct worker *worker) {
    return (int)(worker - worker->bench->workers);
}

static void update(void *self, const struct layer *layer, const float *ready) {
    struct worker *worker = self;
    const struct bench *bench = worker->bench;
    if (optimizer_accepts(bench->kernels, layer, ready))
        bench->home->ops->add(bench->home, seat(worker), layer, optimizer_all(layer), ready, 1e-4f);
}

static bool update_product(void *self, const struct layer *layer, const struct dense_errors *errors,
                           const float *dbiases) {
    struct worker *worker = self;
    const struct bench *bench = worker->bench;
    if (!optimizer_accepts_product(bench->kernels, errors))
        return false;
    bench->home->ops->add_product(bench->home, seat(worker), layer, errors, dbiases, 1e-4f);
    return true;
}

static void step(void *self) {
    struct worker *worker = self;
    const struct bench *bench = worker->bench;
    const float *weights = bench->home->ops->weights(bench->home, seat(worker));
    if (bench->mode == NET_PREDICT) {
        net_forward(worker->net, weights, worker->input, bench->batch, NULL, 0);
        return;
    }
    for (int i = 0; i < bench->batch; i++)
        worker->draw[i] += (uint64_t)bench->batch;
    net_forward(worker->net, weights, worker->input, bench->batch, worker->draw, 1);
    if (isfinite(net_loss(worker->net, worker->labels)))
        net_backward(worker->net, weights, worker->labels, 1.0f / (float)bench->batch,
                     worker->gradient, update, worker);
    bench->home->ops->add_clock(bench->home, seat(worker));
}

static void *work(void *self) {
    struct worker *worker = self;
    pthread_barrier_wait(&worker->bench->start);
    worker->rate = rate_of(step, worker, worker->bench->batch, 2, worker->bench->seconds);
    return NULL;
}

static struct rate all_work(void *self, double seconds) {
    struct bench *bench = self;
    struct rate sum = {0};
    bench->seconds = seconds;
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

static int open_worker(struct worker *worker, struct bench *bench, int index, struct error *err) {
    struct random random = random_stream(1, (uint64_t)index, 0);
    size_t n = (size_t)bench->batch, in = n * shape_size(model_input(bench->model)->out);
    worker->bench = bench;
    worker->input = mem_floats(in);
    worker->labels = mem_zeroed(n, sizeof *worker->labels);
    worker->draw = mem_zeroed(n, sizeof *worker->draw);
    if (bench->mode == NET_TRAIN)
        worker->gradient = mem_floats(bench->model->parameter_count);
    if (!worker->input || !worker->labels || !worker->draw ||
        (bench->mode == NET_TRAIN && !worker->gradient))
        return error_nomem(err);
    for (size_t i = 0; i < in; i++)
        worker->input[i] = random_normal(&random);
    for (size_t i = 0; i < n; i++) {
        worker->labels[i] = (int32_t)random_below(&random, (uint32_t)model_classes(bench->model));
        worker->draw[i] = i;
    }
    int status =
        net_open(&worker->net, bench->model, bench->kernels, bench->batch, bench->mode, err);
    if (!status) {
        net_seated(worker->net, index, bench->threads);
        net_offered(worker->net, update_product, worker);
    }
    return status;
}

static void close_worker(struct worker *worker) {
    free(worker->input), free(worker->gradient), free(worker->labels), free(worker->draw);
    net_close(worker->net);
}

// Of one sample, two for each multiply-add that has to be computed.
static double useful_operations(const struct bench *bench) {
    double sum = 0;
    for (int i = 1; i < bench->model->layer_count; i++) {
        const struct layer *layer = &bench->model->layers[i];
        sum += 2.0 * (double)net_multiplies(bench->workers[0].net, layer, NET_FORWARD);
        if (bench->mode == NET_TRAIN)
            sum += 2.0 * (double)net_multiplies(bench->workers[0].net, layer, NET_BACKWARD);
    }
    return sum;
}

static int run(struct bench *bench, float *parameters, struct error *err) {
    int status = home_for_threads(&bench->home, bench->model, &bench->optimizer, bench->kernels,
                                  parameters, NULL, 0, bench->threads, bench->batch, err);
    for (int i = 0; !status && i < bench->threads; i++)
        status = open_worker(&bench->workers[i], bench, i, err);
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
    model_init(bench->model, parameters, 1);
    status = run(bench, parameters, err);
    for (int i = 0; i < bench->threads; i++)
        close_worker(&bench->workers[i]);
    free(parameters);
    return status;
}

int main(int argc, char **argv) {
    static struct bench bench;
    struct error err = {0};
    bench.kernels = kernels_best();
    bench.mode = argc > 1 && strcmp(argv[1], "predict") == 0 ? NET_PREDICT : NET_TRAIN;
    bench.batch = argc > 3 ? atoi(argv[3]) : 0;
    bench.threads = argc > 4 ? atoi(argv[4]) : 0;
    if (argc != 5 || bench.batch < 1 || bench.threads < 1 || bench.threads > THREADS_MOST)
        return fprintf(stderr, "usage: steps train|predict MODEL BATCH THREADS\n"), 2;
    if (bench_open(&bench, argv[2], &err))
        fprintf(stderr, "steps: %s\n", err.text);
    model_free(bench.model);
    return err.status;
}
