// A data client's beginning and end, and what it is told from outside: routes and steps.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "remote/data_client_internal.h"

enum { FETCHES_MORE = 2 }; // that come together, beyond those of one batch each

void client_wake(struct data_client *client) {
    pthread_cond_signal(&client->to_fetch);
    pthread_cond_signal(&client->to_dial);
    pthread_cond_broadcast(&client->changed);
}

void client_fail(struct data_client *client, const struct error *why) {
    if (client->err.status == STATUS_OK)
        client->err = *why;
    client_wake(client);
}

void client_wait_changed(struct data_client *client, double until) {
    if (isinf(until)) {
        pthread_cond_wait(&client->changed, &client->lock);
        return;
    }
    struct timespec at = {(time_t)until, (long)((until - floor(until)) * 1e9)};
    pthread_cond_timedwait(&client->changed, &client->lock, &at);
}

// --- routes --------------------------------------------------------------------------

static struct data_peer *find_server(struct data_client *client, uint32_t member) {
    struct data_peer *server = client->servers;
    while (server && server->member != member)
        server = server->next;
    if (server)
        return server;
    server = mem_zeroed(1, sizeof *server);
    if (!server)
        return NULL;
    server->client = client;
    server->member = member;
    server->next = client->servers;
    return client->servers = server;
}

static void list_server(struct data_peer *server, const struct proto_text *address) {
    char text[PROTO_ADDRESS_MAX + 1];
    snprintf(text, sizeof text, "%.*s", (int)address->length, address->at);
    server->listed = true;
    if (!strcmp(text, server->address))
        return;
    memcpy(server->address, text, sizeof text);
    server->next_dial = 0;
    server->broken = server->link != NULL;
}

// A data server that has left the routes does not come back as the same member: what it
// was not told of, others hand out again.
static void forget_finished(struct data_client *client) {
    for (struct data_peer *server = client->servers; server; server = server->next)
        if (!server->listed)
            client->figures.over += client_cut_reports(server);
}

void data_client_route(struct data_client *client, struct kept *routes) {
    const struct proto_routes *message = &routes->message.routes;
    const struct proto_server *servers = message->data_servers.at;
    struct error err = {0};
    pthread_mutex_lock(&client->lock);
    bool newer = !client->routes || client->routes->message.routes.epoch < message->epoch;
    if (newer) {
        kept_hold(routes);
        kept_drop(client->routes);
        client->routes = routes;
        for (struct data_peer *server = client->servers; server; server = server->next)
            server->listed = false;
        for (uint32_t i = 0; i < message->data_servers.count; i++) {
            struct data_peer *server = find_server(client, servers[i].member);
            if (server)
                list_server(server, &servers[i].training);
            else
                client_fail(client, (error_nomem(&err), &err));
        }
        forget_finished(client);
        client_wake(client);
    }
    pthread_mutex_unlock(&client->lock);
}

void data_client_step(struct data_client *client, uint64_t clock) {
    pthread_mutex_lock(&client->lock);
    client->clock = clock;
    if (clock > client->step) {
        client->step = clock;
        client_wake(client);
    }
    pthread_mutex_unlock(&client->lock);
}

// --- figures --------------------------------------------------------------------------

struct data_client_figures data_client_figures(struct data_client *client) {
    pthread_mutex_lock(&client->lock);
    struct data_client_figures figures = client->figures;
    figures.ready = client->ready_count;
    for (const struct data_peer *server = client->servers; server; server = server->next) {
        uint64_t received = 0, sent = 0;
        if (server->link)
            link_traffic(server->link, &received, &sent);
        figures.received += server->received + received;
        figures.sent += server->sent + sent;
    }
    pthread_mutex_unlock(&client->lock);
    return figures;
}

// --- beginning and end ----------------------------------------------------------------

static int make_slots(struct data_client *client, struct error *err) {
    const struct data_client_options *options = &client->options;
    size_t n = (size_t)options->batch, values = input_values(&options->input);
    size_t targets = (size_t)options->input.targets;
    client->slot_count = (options->rounds ? 1 : options->ahead) + options->takers;
    client->slots = mem_zeroed((size_t)client->slot_count, sizeof *client->slots);
    if (!client->slots)
        return error_nomem(err);
    for (int i = 0; i < client->slot_count; i++) {
        struct batch_slot *slot = &client->slots[i];
        struct batch *batch = &slot->batch;
        size_t floats;
        if (__builtin_mul_overflow(n, values, &floats))
            return error_nomem(err);
        batch->input = mem_floats(floats);
        batch->label = mem_array(n, sizeof *batch->label);
        batch->index = mem_array(n, sizeof *batch->index);
        batch->draw = mem_array(n, sizeof *batch->draw);
        slot->targets = mem_array(n, targets * sizeof *slot->targets + 1);
        if (!batch->input || !batch->label || !batch->index || !batch->draw || !slot->targets)
            return error_nomem(err);
    }
    client->fetch_count =
        (options->rounds ? 1 : options->ahead) + (options->together ? FETCHES_MORE : 0);
    client->fetches = mem_zeroed((size_t)client->fetch_count, sizeof *client->fetches);
    return client->fetches ? STATUS_OK : error_nomem(err);
}

static int start_threads(struct data_client *client, struct error *err) {
    client->fetching = !pthread_create(&client->fetcher, NULL, client_fetch, client);
    client->dialling = !pthread_create(&client->dialler, NULL, client_dial, client);
    if (!client->fetching || !client->dialling)
        return error_set(err, STATUS_IO, "cannot start a thread");
    return STATUS_OK;
}

static void init_waits(struct data_client *client) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->to_fetch, &monotonic);
    pthread_cond_init(&client->to_dial, &monotonic);
    pthread_cond_init(&client->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int data_client_open(struct data_client **out, const struct data_client_options *options,
                     struct error *err) {
    struct data_client *client = mem_zeroed(1, sizeof *client);
    if (!client)
        return error_nomem(err);
    client->supply.ops = &client_supply_ops;
    STAILQ_INIT(&client->arrived);
    STAILQ_INIT(&client->ready);
    LIST_INIT(&client->leases);
    client->options = *options;
    init_waits(client);
    int status = input_open(&client->input, &client->options.input, err);
    if (!status)
        status = make_slots(client, err);
    if (!status)
        status = start_threads(client, err);
    if (status)
        data_client_close(client);
    else
        *out = client;
    return status;
}

static void free_slots(struct data_client *client) {
    for (int i = 0; client->slots && i < client->slot_count; i++) {
        struct batch_slot *slot = &client->slots[i];
        free(slot->batch.input);
        free(slot->batch.label);
        free(slot->batch.index);
        free(slot->batch.draw);
        free(slot->targets);
    }
    free(client->slots);
    for (int i = 0; client->fetches && i < client->fetch_count; i++)
        free(client->fetches[i].raw);
    free(client->fetches);
}

static void stop_threads(struct data_client *client) {
    pthread_mutex_lock(&client->lock);
    client->closing = true;
    client_wake(client);
    pthread_mutex_unlock(&client->lock);
    if (client->fetching)
        pthread_join(client->fetcher, NULL);
    if (client->dialling)
        pthread_join(client->dialler, NULL); // which has closed the links
}

void data_client_close(struct data_client *client) {
    if (!client)
        return;
    stop_threads(client);
    for (struct data_peer *server = client->servers, *next; server; server = next) {
        next = server->next;
        free(server->finished.leases);
        free(server->returned.leases);
        free(server);
    }
    free_slots(client);
    client_free_leases(client);
    kept_drop(client->routes);
    input_close(&client->input);
    pthread_cond_destroy(&client->to_fetch);
    pthread_cond_destroy(&client->to_dial);
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->lock);
    free(client);
}
