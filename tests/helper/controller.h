// A controller of one run as tests want it: it welcomes and joins everybody, answers what
// members fetch from fields that the test sets, and counts what it hears.
#ifndef ADAM_TESTS_CONTROLLER_H
#define ADAM_TESTS_CONTROLLER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/gate.h"
#include "core/random.h"
#include "net/link.h"
#include "proto/kept.h"
#include "tap.h"

enum { CONTROLLER_SERVERS = 4, CONTROLLER_MEMBERS = 8, CONTROLLER_BUCKETS = 16 };

struct controller {
    struct listener *listener;
    struct gate gate; // opened when anything was heard
    // How often it heard what.
    _Atomic uint64_t hellos, joins, heartbeats, reports, leaves, proposals;

    pthread_mutex_t lock; // of all that follows
    struct proto_id run;
    const char *model, *settings;
    uint64_t settings_version, routes_epoch, members_epoch, session;
    uint64_t parameters;
    uint32_t next_member;           // that joins; 0: all are member 3
    uint32_t lease;                 // milliseconds
    struct proto_proposal proposal; // the last
    struct proto_server servers[CONTROLLER_SERVERS], data_servers[CONTROLLER_SERVERS];
    uint32_t server_count, source_count;
    struct proto_bucket buckets[CONTROLLER_BUCKETS];
    uint32_t bucket_count;
    struct proto_member members[CONTROLLER_MEMBERS];
    uint32_t member_count;
    uint16_t order;
    uint64_t order_number;
    bool begun;
    uint16_t refuse_type; // requests of this type are refused
    enum proto_refusal refuse_code;
    uint32_t joiner;                   // of all buckets; 0: none
    bool proposed[CONTROLLER_BUCKETS]; // something about these
    uint32_t heartbeat;                // milliseconds
    struct kept *joined;               // the last join
    struct kept *figures;              // the last heartbeat
    char line[256], left[256];         // of the last report, of the last leave
};

static inline void controller_keep(struct kept **place, uint16_t type, const void *message) {
    kept_drop(*place);
    if (kept_make(place, type, message, NULL))
        abort();
}

static inline void controller_text(char *to, size_t room, struct proto_text text) {
    snprintf(to, room, "%.*s", (int)text.length, text.at);
}

static inline enum proto_refusal controller_hello(void *context, struct link *link,
                                                  const struct proto_hello *hello,
                                                  struct proto_welcome *welcome, uint64_t *detail) {
    struct controller *c = context;
    (void)link, (void)detail;
    pthread_mutex_lock(&c->lock);
    welcome->role = PROTO_ROLE_CONTROLLER;
    welcome->run = c->run;
    welcome->model = hash_bytes(c->model, strlen(c->model));
    welcome->session = hello->session;
    pthread_mutex_unlock(&c->lock);
    atomic_fetch_add(&c->hellos, 1);
    gate_open(&c->gate);
    return PROTO_REFUSAL_NONE;
}

static inline void controller_join(struct controller *c, struct link *link, uint64_t request,
                                   const struct proto_join *join) {
    const struct proto_joined joined = {.member = c->next_member ? c->next_member++ : 3,
                                        .session = ++c->session,
                                        .heartbeat = c->heartbeat,
                                        .silence = 10 * c->heartbeat};
    controller_keep(&c->joined, PROTO_TYPE_JOIN, join);
    atomic_fetch_add(&c->joins, 1);
    link_answer(link, request, PROTO_TYPE_JOINED, &joined, NULL, NULL);
}

static inline void controller_beat(struct controller *c, struct link *link, uint64_t request,
                                   const struct proto_heartbeat *heartbeat) {
    const struct proto_beat beat = {.members = c->members_epoch,
                                    .routes = c->routes_epoch,
                                    .settings = c->settings_version,
                                    .order = c->order,
                                    .number = c->order_number,
                                    .begun = c->begun};
    controller_keep(&c->figures, PROTO_TYPE_HEARTBEAT, heartbeat);
    atomic_fetch_add(&c->heartbeats, 1);
    link_answer(link, request, PROTO_TYPE_BEAT, &beat, NULL, NULL);
}

// The places of the buckets, of which each has one copy more for each server that is named.
static inline void controller_tell_places(struct controller *c, struct link *link,
                                          uint64_t request) {
    struct proto_place places[CONTROLLER_BUCKETS];
    for (uint32_t i = 0; i < c->bucket_count; i++)
        places[i] = (struct proto_place){.bucket = i,
                                         .epoch = c->buckets[i].epoch,
                                         .primary = c->buckets[i].primary,
                                         .second = c->buckets[i].second,
                                         .third = c->buckets[i].third,
                                         .joiner = c->joiner ? c->joiner : PROTO_NOBODY};
    const struct proto_places message = {
        .epoch = c->routes_epoch, .lease = c->lease, .places = {places, c->bucket_count}};
    link_answer(link, request, PROTO_TYPE_PLACES, &message, NULL, NULL);
}

static inline void controller_tell(struct controller *c, struct link *link, uint64_t request,
                                   uint16_t type) {
    const struct proto_run run = {.version = c->settings_version,
                                  .model = proto_text(c->model),
                                  .settings = proto_text(c->settings)};
    const struct proto_routes routes = {.epoch = c->routes_epoch,
                                        .parameters = c->parameters,
                                        .servers = {c->servers, c->server_count},
                                        .data_servers = {c->data_servers, c->source_count},
                                        .buckets = {c->buckets, c->bucket_count}};
    const struct proto_status status = {
        .run = c->run, .epoch = c->members_epoch, .members = {c->members, c->member_count}};
    if (type == PROTO_TYPE_GET_RUN)
        link_answer(link, request, PROTO_TYPE_RUN, &run, NULL, NULL);
    else if (type == PROTO_TYPE_GET_ROUTES)
        link_answer(link, request, PROTO_TYPE_ROUTES, &routes, NULL, NULL);
    else if (type == PROTO_TYPE_GET_STATUS)
        link_answer(link, request, PROTO_TYPE_STATUS, &status, NULL, NULL);
    else if (type == PROTO_TYPE_GET_PLACES)
        controller_tell_places(c, link, request);
    else
        link_refuse(link, request, PROTO_REFUSAL_WRONG_ROLE, type, "not asked here");
}

static inline void controller_request(void *context, struct link *link, uint64_t request,
                                      uint16_t type, const union proto_message *message,
                                      struct buffer *payload) {
    struct controller *c = context;
    (void)payload;
    pthread_mutex_lock(&c->lock);
    if (type == c->refuse_type) {
        link_refuse(link, request, c->refuse_code, 20, "says the test");
    } else if (type == PROTO_TYPE_JOIN) {
        controller_join(c, link, request, &message->join);
    } else if (type == PROTO_TYPE_HEARTBEAT) {
        controller_beat(c, link, request, &message->heartbeat);
    } else if (type == PROTO_TYPE_PROPOSE) {
        const struct proto_list *list = &message->propose.proposals;
        for (uint32_t i = 0; i < list->count; i++) {
            c->proposal = ((const struct proto_proposal *)list->at)[i];
            c->proposed[c->proposal.bucket % CONTROLLER_BUCKETS] = true;
        }
        atomic_fetch_add(&c->proposals, 1);
        link_answer(link, request, PROTO_TYPE_DONE, NULL, NULL, NULL);
    } else if (type == PROTO_TYPE_REPORT) {
        controller_text(c->line, sizeof c->line, message->report.line);
        atomic_fetch_add(&c->reports, 1);
        link_answer(link, request, PROTO_TYPE_DONE, NULL, NULL, NULL);
    } else if (type == PROTO_TYPE_LEAVE) {
        controller_text(c->left, sizeof c->left, message->leave.reason);
        atomic_fetch_add(&c->leaves, 1);
        link_answer(link, request, PROTO_TYPE_DONE, NULL, NULL, NULL);
    } else {
        controller_tell(c, link, request, type);
    }
    pthread_mutex_unlock(&c->lock);
    gate_open(&c->gate);
}

static inline void controller_init(struct controller *c) {
    *c = (struct controller){.run = {{1}},
                             .model = "input {}",
                             .settings = "rate=0.1\n",
                             .settings_version = 1,
                             .heartbeat = 50,
                             .lease = 1000};
    pthread_mutex_init(&c->lock, NULL);
}

static inline void controller_listen(struct controller *c, struct tap *tap, const char *address) {
    const struct link_options options = {
        .handlers = {c, controller_hello, controller_request, NULL}};
    struct error err = {0};
    if (listener_open(&c->listener, address, &options, NULL, &err))
        FAIL(tap, "%s", err.text);
}

static inline void controller_deafen(struct controller *c) {
    listener_close(c->listener);
    c->listener = NULL;
}

static inline void controller_free(struct controller *c) {
    controller_deafen(c);
    kept_drop(c->joined);
    kept_drop(c->figures);
    pthread_mutex_destroy(&c->lock);
}

// Waits until it has heard one of these so often. (The test runner ends what never comes.)
static inline void controller_await(struct controller *c, const _Atomic uint64_t *count,
                                    uint64_t wanted) {
    for (uint32_t seen = gate_look(&c->gate); atomic_load(count) < wanted;
         seen = gate_look(&c->gate))
        gate_wait(&c->gate, seen, -1);
}

#endif
