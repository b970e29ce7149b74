#include "measure/trial.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/random.h"
#include "model/layer.h"

static void take_buffers(struct trial *trial, const struct model *model, size_t n) {
    trial->batch.input =
        arena_take(&trial->arena, n * shape_size(model_input(model)->out), sizeof(float));
    trial->batch.draw = arena_take(&trial->arena, n, sizeof *trial->batch.draw);
    trial->batch.label = arena_take(&trial->arena, n, sizeof *trial->batch.label);
}

static void fill_batch(struct trial *trial, const struct model *model) {
    struct random random = random_stream(1, (uint64_t)trial->solo.thread, 0);
    size_t n = (size_t)trial->batch.n;
    for (size_t i = 0; i < n * shape_size(model_input(model)->out); i++)
        trial->batch.input[i] = random_normal(&random);
    for (size_t i = 0; i < n; i++) {
        trial->batch.draw[i] = i;
        trial->batch.label[i] = (int32_t)random_below(&random, (uint32_t)model_classes(model));
    }
}

// As evaluation does it after some time.
static int prepare_weights(struct trial *trial, const struct model *model, struct error *err) {
    struct home *home = trial->solo.home;
    int status = prepared_open(&trial->prepared, model, trial->solo.kernels,
                               home->ops->weights(home, trial->solo.thread), trial->batch.n,
                               trial->batch.n, err);
    if (status == STATUS_OK)
        prepared_now(trial->prepared, trial->solo.net);
    return status;
}

int trial_open(struct trial *trial, const struct model *model, int batch, int threads,
               struct error *err) {
    trial->batch = (struct batch){.n = batch};
    trial->arena = (struct arena){0};
    trial->prepared = NULL;
    trial->shared = NULL;
    const struct kernels *kernels = trial->solo.kernels;
    bool train = trial->mode == NET_TRAIN;
    int most = train ? solo_part(trial->solo.home, model, kernels, batch) : batch;
    enum net_mode mode = train ? NET_TRAIN : NET_FOLDED;
    int status = net_open(&trial->solo.net, model, kernels, most, mode, err);
    if (status)
        return status;
    take_buffers(trial, model, (size_t)batch);
    if (train)
        trial->solo.gradient = mem_untouched_floats(model->parameter_count);
    if (!arena_open(&trial->arena) || (train && !trial->solo.gradient))
        return error_nomem(err);
    take_buffers(trial, model, (size_t)batch);
    fill_batch(trial, model);
    if (trial->mode == NET_PREDICT) {
        status = prepare_weights(trial, model, err);
        if (!status && trial->team > 1)
            status = net_team_open(&trial->shared, trial->solo.net, trial->team, err);
        if (status)
            return status;
    }
    solo_set_thread(&trial->solo, threads);
    return STATUS_OK;
}

bool trial_pass(struct trial *trial) {
    struct batch *batch = &trial->batch;
    double loss;
    if (trial->shared) {
        net_team_forward(trial->shared, prepared_parameters(trial->prepared), batch->input,
                         batch->n);
        return true;
    }
    if (trial->mode == NET_PREDICT) {
        net_forward(trial->solo.net, prepared_parameters(trial->prepared), batch->input, batch->n,
                    NULL, 0);
        return true;
    }
    for (int i = 0; i < batch->n; i++)
        batch->draw[i] += (uint64_t)batch->n;
    return solo_train(&trial->solo, batch, 0, &loss);
}

void trial_ready(struct trial *trial) {
    struct home *home = trial->solo.home;
    if (home->meetings)
        home->meetings->enter(home, trial->solo.thread, trial->batch.n, 0);
}

void trial_rest(struct trial *trial) {
    solo_leave(&trial->solo);
}

void trial_close(struct trial *trial) {
    net_team_close(trial->shared);
    net_close(trial->solo.net);
    prepared_close(trial->prepared);
    free(trial->solo.gradient);
    arena_close(&trial->arena);
}

double trial_flops(const struct trial *trial, const struct layer *layer, enum net_pass pass) {
    return pass == NET_BACKWARD && trial->mode == NET_PREDICT
               ? 0
               : 2.0 * (double)net_multiplies(trial->solo.net, layer, pass);
}
