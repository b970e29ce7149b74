#include "train/evaluate.h"

#include <pthread.h>

#include "core/crew.h"
#include "core/error.h"
#include "core/turn.h"
#include "model/prepared.h"

struct evaluator {
    const struct evaluate_config *config;
    struct tally *tally;
    struct loader *loader;
    int batch;
    struct prepared *prepared; // NULL: weights are as they are
    struct turn turn;          // the order of the batches; its holder owns tally and err
    pthread_mutex_t failing;
    struct error *err;
    int status;
};

// The first failure counts; everybody else comes home.
static void evaluator_fail(struct evaluator *e, int status, const struct error *why) {
    pthread_mutex_lock(&e->failing);
    if (e->status == STATUS_OK) {
        e->status = status;
        if (e->err)
            *e->err = *why;
    }
    pthread_mutex_unlock(&e->failing);
    turn_break(&e->turn);
    loader_cancel(e->loader);
}

// Adds one batch to the sums: in its turn, so that they are made in one order.
static int add_batch_in_turn(struct evaluator *e, struct net *net, const struct batch *batch,
                             struct error *err) {
    const float *scores = net_scores(net);
    int status = STATUS_OK;
    net_targets(net, batch->target);
    e->tally->loss += net_loss(net, batch->label);
    for (int i = 0; i < batch->n && status == STATUS_OK; i++) {
        const float *row = scores + (size_t)i * (size_t)e->tally->classes;
        if (batch->target)
            status =
                tally_add_targets(e->tally, row, batch_target(batch, i, e->tally->classes), err);
        else
            tally_add(e->tally, row, batch->label[i]);
        if (e->config->each && status == STATUS_OK)
            status = e->config->each(e->config->self, batch, i, row, err);
    }
    return status;
}

static int run_batches(struct evaluator *e, struct net *net, struct error *err) {
    struct batch *batch;
    int status = STATUS_OK;
    while (status == STATUS_OK && (batch = loader_take(e->loader, NULL))) {
        if (e->prepared)
            prepared_pass(e->prepared, net, batch->number);
        net_forward(net, e->config->parameters, batch->input, batch->n, NULL, 0);
        bool mine = turn_begin(&e->turn, batch->number);
        if (mine)
            status = add_batch_in_turn(e, net, batch, err);
        loader_give_back(e->loader, batch);
        if (mine && status == STATUS_OK)
            turn_end(&e->turn);
    }
    return status;
}

static void *evaluate_thread(void *argument) {
    struct evaluator *e = argument;
    struct error err = {0};
    struct net *net = NULL;
    int status = net_open(&net, e->config->model, e->config->kernels, e->batch, NET_PREDICT, &err);
    if (status == STATUS_OK)
        status = run_batches(e, net, &err);
    if (status != STATUS_OK)
        evaluator_fail(e, status, &err);
    net_close(net);
    return NULL;
}

int evaluate(struct tally *tally, const struct evaluate_config *config, struct loader *loader,
             int batch, struct error *err) {
    struct evaluator e = {
        .config = config, .tally = tally, .loader = loader, .batch = batch, .err = err};
    int status = config->exact ? STATUS_OK
                               : prepared_open(&e.prepared, config->model, config->kernels,
                                               config->parameters, batch, batch, err);
    if (status)
        return status;
    turn_init(&e.turn);
    pthread_mutex_init(&e.failing, NULL);
    status = crew_work(config->threads, evaluate_thread, &e, err);
    pthread_mutex_destroy(&e.failing);
    turn_free(&e.turn);
    prepared_close(e.prepared);
    status = status ? status : e.status;
    return status ? status : tally_settle(tally, err);
}
