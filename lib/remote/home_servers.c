#include "remote/home_servers.h"

#include "core/error.h"
#include "remote/home_servers_internal.h"

// Deltas by cost; a gradient is pushed as soon as it is there.
static uint64_t least_every(const struct home_servers *home, size_t sharers) {
    const struct home_servers_config *config = &home->config;
    return home->sync ? 1 : home_delta_every(config->model, config->batch, sharers);
}

static void set_pace(struct home_servers *home, uint64_t push_every, uint64_t pull_every,
                     size_t sharers) {
    bool exact = push_every > 0 && home->config.protocol->kind != PROTOCOL_HARDSYNC;
    uint64_t push = exact ? push_every : least_every(home, sharers);
    home->config.push_every = push_every;
    home->config.pull_every = pull_every;
    home->sharers = sharers;
    atomic_store(&home->push_every, push);
    atomic_store(&home->pull_every, pull_every > 0 ? pull_every : push);
    atomic_store(&home->exact, exact);
}

static void set_factor(struct home_servers *home) {
    const struct home_servers_config *config = &home->config;
    double factor = protocol_push_factor(config->protocol, (uint64_t)config->batch,
                                         atomic_load(&home->sharers));
    atomic_store(&home->factor, (float)factor);
}

int home_servers_exchange(struct exchange **out, const struct home_servers_config *config,
                          enum exchange_way way, struct error *err) {
    const struct portion *portion = config->portion;
    const struct span all = servers_all(config->servers);
    if (!portion)
        return exchange_open(out, config->servers, way, &all, 1, err);
    bool pulls = way == EXCHANGE_PULL;
    return exchange_open_placed(out, config->servers, way, pulls ? portion->used : portion->given,
                                pulls ? portion->used_count : portion->given_count, err);
}

float home_servers_rate(const struct home_servers *home, float rate) {
    return rate * atomic_load(&home->factor);
}

void home_servers_init(struct home_servers *home, const struct home_servers_config *config) {
    home->config = *config;
    pthread_mutex_init(&home->lock, NULL);
    set_pace(home, config->push_every, config->pull_every, 1);
    set_factor(home);
}

void home_servers_free(struct home_servers *home) {
    pthread_mutex_destroy(&home->lock);
}

void home_servers_fail(struct home_servers *home, const struct error *why) {
    pthread_mutex_lock(&home->lock);
    if (!home->err.status)
        home->err = *why;
    pthread_mutex_unlock(&home->lock);
    atomic_store(&home->status, why->status);
}

bool home_servers_await(struct home_servers *home, struct exchange *exchange, bool *stale,
                        double *waited) {
    struct error err = {0};
    int status = exchange_wait(exchange, waited, &err);
    if (stale)
        *stale = status == STATUS_SKIPPED;
    if (status == STATUS_SKIPPED)
        atomic_fetch_add(&home->too_stale, 1);
    else if (status)
        home_servers_fail(home, &err);
    return status == STATUS_OK || status == STATUS_SKIPPED;
}

void home_servers_waited(struct home_servers *home, double seconds) {
    double before = atomic_load(&home->waited);
    while (!atomic_compare_exchange_weak(&home->waited, &before, before + seconds))
        continue;
}

uint64_t home_servers_mark(const struct home_servers *home) {
    return home->config.mark ? home->config.mark(home->config.self) : 0;
}

void home_servers_left(struct home_servers *home, uint64_t mark) {
    const struct home_servers_config *config = &home->config;
    if (config->applied)
        config->applied(config->self, mark);
    home->marked = mark;
}

void home_servers_pushed(struct home_servers *home, uint64_t mark, bool stale) {
    const struct home_servers_config *config = &home->config;
    if (!stale) {
        atomic_fetch_add(&home->pushes, 1);
        home_servers_left(home, mark);
        return;
    }
    if (config->lost)
        config->lost(config->self, home->marked, mark);
    home->marked = mark;
}

struct home *home_servers_home(struct home_servers *home) {
    return &home->home;
}

bool home_servers_sync(const struct home_servers *home) {
    return home->sync;
}

int home_servers_begin(struct home_servers *home, struct error *err) {
    return home->begin(home, err);
}

void home_servers_step(struct home_servers *home, int samples, float rate) {
    if (home->step)
        home->step(home, samples, rate);
}

int home_servers_flush(struct home_servers *home, struct error *err) {
    return home->flush(home, err);
}

void home_servers_hurry(struct home_servers *home) {
    if (home->hurry)
        home->hurry(home);
}

void home_servers_pace(struct home_servers *home, uint64_t push_every, uint64_t pull_every) {
    pthread_mutex_lock(&home->lock);
    set_pace(home, push_every, pull_every, home->sharers);
    pthread_mutex_unlock(&home->lock);
}

void home_servers_change(struct home_servers *home) {
    set_factor(home);
    if (home->change)
        home->change(home);
}

void home_servers_sharers(struct home_servers *home, size_t sharers) {
    const struct home_servers_config *config = &home->config;
    pthread_mutex_lock(&home->lock);
    bool more = sharers > home->sharers;
    set_pace(home, config->push_every, config->pull_every, sharers);
    set_factor(home);
    pthread_mutex_unlock(&home->lock);
    if (more)
        home_servers_hurry(home);
}

int home_servers_status(struct home_servers *home, struct error *err) {
    int status = atomic_load(&home->status);
    if (status && err) {
        pthread_mutex_lock(&home->lock);
        *err = home->err;
        pthread_mutex_unlock(&home->lock);
    }
    return status;
}

struct home_servers_figures home_servers_figures(struct home_servers *home) {
    return (struct home_servers_figures){
        .waited = atomic_load(&home->waited),
        .pushes = atomic_load(&home->pushes),
        .too_stale = atomic_load(&home->too_stale),
        .push_every = home->every(home),
    };
}

void home_servers_close(struct home_servers *home) {
    if (home)
        home->home.ops->close(&home->home);
}
