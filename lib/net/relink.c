#include "net/relink.h"

#include <math.h>
#include <nng/nng.h>
#include <nng/supplemental/util/platform.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/gate.h"
#include "core/mem.h"

enum { DIAL = 1000 }; // milliseconds that the other has to welcome
static const double first_pause = 0.05, longest_pause = 0.5;

struct relink {
    struct relink_config config;
    char address[PROTO_ADDRESS_MAX + 1];
    pthread_t thread;
    struct gate gate; // it closes, or the link has broken
    _Atomic bool closing, broken;
    pthread_mutex_t lock;
    struct link *link;       // NULL: none
    uint64_t received, sent; // by links that are no more
};

static void link_closed(void *context, struct link *link, const char *why) {
    struct relink *relink = context;
    (void)link;
    (void)why;
    atomic_store(&relink->broken, true);
    gate_open(&relink->gate);
}

static int dial(struct relink *relink) {
    const struct link_options options = {
        .handlers = {.context = relink, .closed = link_closed},
        .keys = relink->config.keys,
        .insecure = relink->config.insecure,
    };
    struct link *link;
    atomic_store(&relink->broken, false);
    int status =
        link_dial(&link, relink->address, &options, &relink->config.hello, DIAL, NULL, NULL);
    if (status)
        return status;
    pthread_mutex_lock(&relink->lock);
    relink->link = link;
    pthread_mutex_unlock(&relink->lock);
    return STATUS_OK;
}

static void drop_link(struct relink *relink) {
    pthread_mutex_lock(&relink->lock);
    struct link *link = relink->link;
    uint64_t received = 0, sent = 0;
    if (link)
        link_traffic(link, &received, &sent);
    relink->received += received;
    relink->sent += sent;
    relink->link = NULL;
    pthread_mutex_unlock(&relink->lock);
    link_close(link);
}

// Until the link breaks or this closes; without a link for so many seconds.
static void wait_for_end(struct relink *relink, bool linked, double seconds) {
    double until = clock_seconds() + seconds;
    for (uint32_t seen = gate_look(&relink->gate); !atomic_load(&relink->closing);
         seen = gate_look(&relink->gate)) {
        double left = linked ? -1 : until - clock_seconds();
        if (linked ? atomic_load(&relink->broken) : left <= 0)
            break;
        gate_wait(&relink->gate, seen, left);
    }
}

static void *relink_thread(void *context) {
    struct relink *relink = context;
    double pause = first_pause;
    while (!atomic_load(&relink->closing)) {
        bool linked = !dial(relink);
        wait_for_end(relink, linked, pause);
        drop_link(relink);
        pause = linked ? first_pause : fmin(2 * pause, longest_pause);
    }
    return NULL;
}

void relink_send(struct relink *relink, uint16_t type, const void *message) {
    pthread_mutex_lock(&relink->lock);
    if (relink->link)
        link_answer(relink->link, 0, type, message, NULL, NULL);
    pthread_mutex_unlock(&relink->lock);
}

int relink_ask(struct relink *relink, struct link_request *request, struct error *err) {
    pthread_mutex_lock(&relink->lock);
    int status = relink->link
                     ? link_ask(relink->link, request, err)
                     : error_set(err, STATUS_UNAVAILABLE, "%s: no link now", relink->address);
    pthread_mutex_unlock(&relink->lock);
    return status;
}

void relink_traffic(struct relink *relink, uint64_t *received, uint64_t *sent) {
    pthread_mutex_lock(&relink->lock);
    *received = *sent = 0;
    if (relink->link)
        link_traffic(relink->link, received, sent);
    *received += relink->received;
    *sent += relink->sent;
    pthread_mutex_unlock(&relink->lock);
}

int relink_open(struct relink **out, const struct relink_config *config, struct error *err) {
    struct relink *relink = mem_zeroed(1, sizeof *relink);
    if (!relink)
        return error_nomem(err);
    relink->config = *config;
    snprintf(relink->address, sizeof relink->address, "%s", config->address);
    pthread_mutex_init(&relink->lock, NULL);
    nng_clock(); // nng starts with the first call, which only one thread may make
    if (pthread_create(&relink->thread, NULL, relink_thread, relink)) {
        pthread_mutex_destroy(&relink->lock);
        free(relink);
        return error_set(err, STATUS_IO, "cannot start a thread");
    }
    *out = relink;
    return STATUS_OK;
}

void relink_close(struct relink *relink) {
    if (!relink)
        return;
    atomic_store(&relink->closing, true);
    gate_open(&relink->gate);
    pthread_join(relink->thread, NULL);
    pthread_mutex_destroy(&relink->lock);
    free(relink);
}
