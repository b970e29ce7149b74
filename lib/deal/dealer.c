// A dealer's beginning and end, and how it is doing.
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "deal/dealer_internal.h"

int dealer_open(struct dealer **out, const struct dealer_options *options, struct error *err) {
    struct dealer *dealer = mem_zeroed(1, sizeof *dealer);
    if (!dealer)
        return error_nomem(err);
    dealer->options = *options;
    dealer->seed = options->seed;
    dealer->targets = (uint32_t)picture_cache_target_count(options->pictures);
    TAILQ_INIT(&dealer->queue.batches);
    pthread_mutex_init(&dealer->lock, NULL);
    pthread_cond_init(&dealer->room, NULL);
    int status = leases_open(&dealer->leases, picture_cache_count(options->pictures),
                             options->number, &options->rules, err);
    if (!status)
        status = makers_look(dealer, err);
    if (!status)
        status = queue_open(dealer, err);
    if (!status)
        status = makers_start(dealer, err);
    if (status)
        dealer_close(dealer);
    else
        *out = dealer;
    return status;
}

void dealer_close(struct dealer *dealer) {
    if (!dealer)
        return;
    makers_stop(dealer);
    queue_free(dealer);
    leases_close(dealer->leases);
    rounds_free(&dealer->rounds);
    pthread_cond_destroy(&dealer->room);
    pthread_mutex_destroy(&dealer->lock);
    free(dealer);
}

// --- figures ---------------------------------------------------------------------

struct dealer_shape dealer_shape(const struct dealer *dealer) {
    return dealer->shape;
}

int dealer_status(struct dealer *dealer, struct error *err) {
    pthread_mutex_lock(&dealer->lock);
    int status = dealer->err.status;
    if (status && err)
        *err = dealer->err;
    pthread_mutex_unlock(&dealer->lock);
    return status;
}

struct dealer_figures dealer_figures(struct dealer *dealer) {
    pthread_mutex_lock(&dealer->lock);
    struct dealer_figures figures = {
        .epoch = leases_epoch(dealer->leases),
        .done = leases_done(dealer->leases),
        .progress = leases_progress(dealer->leases),
        .finished = leases_finished(dealer->leases),
        .leased = dealer->leased,
        .made = dealer->made,
        .ready = dealer->queue.ready,
    };
    pthread_mutex_unlock(&dealer->lock);
    return figures;
}
