// partitions MODEL BATCH PARTITIONS IN_FLIGHT: training steps on random samples in memory, in turns
// (turns.h), of partitions of the model with a thread each (train/loop.h), as adam-worker
// --partitions has them. Says: connections.
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/kernels.h"
#include "train/loop.h"
#include "turns.h"

enum { BATCHES_MOST = 64 };

// The same mini-batches again and again.
struct stock {
    struct supply supply;
    struct batch batches[BATCHES_MOST];
    _Atomic uint64_t next;
    int count;
};

static struct batch *take(struct supply *supply, double patience, double *waited) {
    struct stock *stock = (struct stock *)supply;
    (void)patience, (void)waited;
    return &stock->batches[atomic_fetch_add(&stock->next, 1) % (uint64_t)stock->count];
}

static void give_back(struct supply *supply, struct batch *batch) {
    (void)supply, (void)batch;
}

static void cancel(struct supply *supply) {
    (void)supply;
}

static int status_of(const struct supply *supply, struct error *err) {
    (void)supply, (void)err;
    return STATUS_OK;
}

static const struct supply_ops stock_ops = {take, give_back, give_back, cancel, status_of};

static bool fill_batch(struct batch *batch, const struct model *model, int n) {
    struct random random = random_stream(1, (uint64_t)n, 0);
    size_t samples = (size_t)n, floats = samples * shape_size(model_input(model)->out);
    *batch = (struct batch){.n = n,
                            .input = mem_floats(floats),
                            .label = mem_array(samples, sizeof *batch->label),
                            .draw = mem_array(samples, sizeof *batch->draw)};
    if (!batch->input || !batch->label || !batch->draw)
        return false;
    random_normals(&random, batch->input, floats);
    for (int i = 0; i < n; i++) {
        batch->label[i] = (int32_t)random_below(&random, (uint32_t)model_classes(model));
        batch->draw[i] = (uint64_t)i;
    }
    return true;
}

static int stock_open(struct stock *stock, const struct model *model, int batch, int count,
                      struct error *err) {
    stock->supply.ops = &stock_ops;
    for (; stock->count < count; stock->count++)
        if (!fill_batch(&stock->batches[stock->count], model, batch))
            return error_nomem(err);
    return STATUS_OK;
}

static void stock_close(struct stock *stock) {
    for (int i = 0; i < stock->count; i++)
        free(stock->batches[i].input), free(stock->batches[i].label), free(stock->batches[i].draw);
}

static void nap(double seconds) {
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    nanosleep(&time, NULL);
}

static struct rate all_work(void *self, double seconds) {
    struct loop *loop = self;
    uint64_t before = loop_sums(loop).samples;
    double begin = clock_seconds(), busy = clock_busy();
    loop_start(loop, UINT64_MAX);
    nap(seconds);
    loop_pause(loop);
    while (!loop_wait(loop, -1))
        continue;
    if (loop_diverged(loop, NULL))
        fprintf(stderr, "partitions: the loss or a gradient is not finite\n"), exit(1);
    double done = (double)(loop_sums(loop).samples - before);
    return (struct rate){done / (clock_seconds() - begin), done / (clock_busy() - busy)};
}

static int run(const struct model *model, float *parameters, int batch, int partitions,
               int in_flight, struct error *err) {
    const struct optimizer optimizer = {.rule = RULE_SGD};
    const struct schedule schedule = {.rate = 1e-6};
    struct stock stock = {0};
    struct cut *cut = NULL;
    struct home *home = NULL;
    struct loop *loop = NULL;
    const struct home_config at = {.model = model,
                                   .optimizer = &optimizer,
                                   .kernels = kernels_best(),
                                   .parameters = parameters,
                                   .threads = 1,
                                   .batch = batch};
    int status = stock_open(&stock, model, batch, in_flight, err);
    if (!status)
        status = cut_open(&cut, model, partitions, batch, err);
    if (!status)
        status = home_partitions(&home, &at, cut, err);
    if (!status) {
        const struct loop_config config = {.model = model,
                                           .kernels = kernels_best(),
                                           .optimizer = &optimizer,
                                           .schedule = &schedule,
                                           .home = home,
                                           .supply = &stock.supply,
                                           .patience = SUPPLY_PATIENT,
                                           .pace = {.samples = 1000000, .batch = (uint64_t)batch},
                                           .threads = partitions,
                                           .batch = batch,
                                           .seed = 1,
                                           .cut = cut,
                                           .in_flight = in_flight};
        status = loop_open(&loop, &config, err);
    }
    if (!status) {
        char about[64];
        snprintf(about, sizeof about, "%ju", (uintmax_t)model->connections);
        take_turns(all_work, loop, about);
    }
    loop_close(loop);
    if (home)
        home->ops->close(home);
    cut_close(cut);
    stock_close(&stock);
    return status;
}

int main(int argc, char **argv) {
    struct error err = {0};
    struct model *model = NULL;
    int numbers[3] = {0};
    for (int i = 0; i < 3 && argc == 5; i++)
        numbers[i] = atoi(argv[i + 2]);
    if (numbers[0] < 1 || numbers[1] < 1 || numbers[1] > CUT_PARTITIONS_MAX || numbers[2] < 1 ||
        numbers[2] > BATCHES_MOST)
        return fprintf(stderr, "usage: partitions MODEL BATCH PARTITIONS IN_FLIGHT\n"), 2;
    if (!model_read(&model, argv[1], NULL, 0, &err)) {
        float *parameters = mem_floats(model->parameter_count);
        if (parameters) {
            model_init_lively(model, parameters, 1);
            run(model, parameters, numbers[0], numbers[1], numbers[2], &err);
        }
        free(parameters);
    }
    if (err.status)
        fprintf(stderr, "partitions: %s\n", err.text);
    model_free(model);
    return err.status;
}
