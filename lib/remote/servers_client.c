#include "remote/servers_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "remote/servers_internal.h"

int servers_open(struct servers **out, const struct servers_options *options, struct error *err) {
    struct servers *servers = mem_zeroed(1, sizeof *servers);
    if (!servers)
        return error_nomem(err);
    pthread_mutex_init(&servers->lock, NULL);
    TAILQ_INIT(&servers->lost);
    servers->options = *options;
    struct proto_text *name = &servers->options.hello.name;
    snprintf(servers->name, sizeof servers->name, "%.*s", (int)name->length, name->at);
    *name = proto_text(servers->name);
    *out = servers;
    return STATUS_OK;
}

size_t servers_shards(const struct servers *servers) {
    return (servers->options.parameters + PROTO_SHARD_FLOATS - 1) / PROTO_SHARD_FLOATS;
}

struct span servers_all(const struct servers *servers) {
    return (struct span){0, servers->options.parameters};
}

// --- routes ---------------------------------------------------------------------------

static struct peer *find_peer(const struct servers *servers, uint32_t member) {
    struct peer *peer = servers->peers;
    while (peer && peer->member != member)
        peer = peer->next;
    return peer;
}

static struct peer *route_of(const struct servers *servers, uint32_t shard) {
    if (!servers->routes)
        return NULL;
    const struct proto_routes *routes = &servers->routes->message.routes;
    const struct proto_bucket *buckets = routes->buckets.at;
    if (routes->buckets.count == 0)
        return NULL;
    return find_peer(servers, buckets[proto_bucket_of(shard, routes->buckets.count)].primary);
}

void servers_dispatch(struct servers *servers, struct shard_request *request) {
    request->chain = NULL;
    request->peer = route_of(servers, request->shard);
    if (servers->stopping)
        shard_request_fail(request, STATUS_STOPPED, "stopped");
    else if (request->exchange->status && request->exchange->status != STATUS_SKIPPED)
        shard_request_end(request);
    else
        TAILQ_INSERT_TAIL(request->peer ? &request->peer->queue : &servers->lost, request, queued);
}

void servers_redispatch(struct servers *servers, struct shard_request *request) {
    const struct peer *before = request->peer;
    servers_dispatch(servers, request);
    if (request->peer && request->peer != before)
        gate_open(&request->peer->gate);
}

// Makes or changes the peer of one server of the routes.
static int set_peer(struct servers *servers, const struct proto_server *server, uint32_t place,
                    uint32_t places, struct error *err) {
    char address[PROTO_ADDRESS_MAX];
    snprintf(address, sizeof address, "%.*s", (int)server->training.length, server->training.at);
    struct peer *peer = find_peer(servers, server->member);
    if (!peer) {
        int status = peer_open(&peer, servers, server, err);
        if (status)
            return status;
        peer->next = servers->peers;
        servers->peers = peer;
    }
    peer->broken |= peer->link && strcmp(peer->address, address) != 0;
    memcpy(peer->address, address, sizeof address);
    peer->place = place;
    peer->places = places;
    return STATUS_OK;
}

static void set_peers(struct servers *servers) {
    const struct proto_list *list = &servers->routes->message.routes.servers;
    const struct proto_server *server = list->at;
    // A server without memory for a thread is as one that cannot be reached: what is
    // meant for it waits for the next routes.
    for (uint32_t i = 0; i < list->count; i++)
        set_peer(servers, &server[i], i + 1, list->count, NULL);
}

static void redispatch_all(struct servers *servers) {
    struct shard_request_queue all = TAILQ_HEAD_INITIALIZER(all);
    for (struct peer *peer = servers->peers; peer; peer = peer->next)
        TAILQ_CONCAT(&all, &peer->queue, queued);
    TAILQ_CONCAT(&all, &servers->lost, queued);
    for (struct shard_request *request = TAILQ_FIRST(&all), *next; request; request = next) {
        next = TAILQ_NEXT(request, queued);
        request->due = 0;
        servers_dispatch(servers, request);
    }
}

void servers_route(struct servers *servers, struct kept *routes) {
    uint64_t epoch = routes->message.routes.epoch;
    pthread_mutex_lock(&servers->lock);
    struct kept *old = servers->routes;
    bool newer = !old || old->message.routes.epoch < epoch;
    if (newer && !servers->stopping) {
        kept_hold(routes);
        servers->routes = routes;
        set_peers(servers);
        redispatch_all(servers);
    }
    newer &= !servers->stopping;
    pthread_mutex_unlock(&servers->lock);
    if (newer)
        kept_drop(old);
    servers_pump(servers);
}

struct kept *servers_routes(struct servers *servers) {
    pthread_mutex_lock(&servers->lock);
    struct kept *routes = servers->routes;
    kept_hold(routes);
    pthread_mutex_unlock(&servers->lock);
    return routes;
}

void servers_stale(struct servers *servers) {
    const struct servers_options *options = &servers->options;
    struct kept *routes = servers_routes(servers);
    if (options->stale)
        options->stale(options->self, routes ? routes->message.routes.epoch : 0);
    kept_drop(routes);
}

// --- all peers ------------------------------------------------------------------------

// Peers are added at the front and never taken out, so the list from one on stays as it is.
static struct peer *first_peer(struct servers *servers) {
    pthread_mutex_lock(&servers->lock);
    struct peer *first = servers->peers;
    pthread_mutex_unlock(&servers->lock);
    return first;
}

static bool needs_thread(struct peer *peer) {
    pthread_mutex_lock(&peer->servers->lock);
    bool needs = !TAILQ_EMPTY(&peer->queue) || peer->broken;
    pthread_mutex_unlock(&peer->servers->lock);
    return needs;
}

void servers_pump(struct servers *servers) {
    for (struct peer *peer = first_peer(servers); peer; peer = peer->next) {
        peer_pump(peer);
        if (needs_thread(peer))
            gate_open(&peer->gate);
    }
}

static void end_requests(struct shard_request_queue *queue, const struct exchange *exchange) {
    for (struct shard_request *at = TAILQ_FIRST(queue), *next; at; at = next) {
        next = TAILQ_NEXT(at, queued);
        if (at->exchange != exchange)
            continue;
        TAILQ_REMOVE(queue, at, queued);
        shard_request_end(at);
    }
}

void servers_sweep(struct servers *servers, const struct exchange *exchange) {
    end_requests(&servers->lost, exchange);
    for (struct peer *peer = servers->peers; peer; peer = peer->next)
        end_requests(&peer->queue, exchange);
}

// What is under way on its link ends when that breaks.
static void stop_peer(struct peer *peer) {
    pthread_mutex_lock(&peer->servers->lock);
    struct link *link = peer->link;
    if (link)
        link_hold(link);
    pthread_mutex_unlock(&peer->servers->lock);
    if (link) {
        link_break(link, "stopped");
        link_drop(link);
    }
    gate_open(&peer->gate);
}

void servers_stop(struct servers *servers) {
    pthread_mutex_lock(&servers->lock);
    servers->stopping = true;
    redispatch_all(servers); // which ends all that wait
    pthread_mutex_unlock(&servers->lock);
    for (struct peer *peer = first_peer(servers); peer; peer = peer->next)
        stop_peer(peer);
    gate_open(&servers->gate);
}

void servers_close(struct servers *servers) {
    if (!servers)
        return;
    servers_stop(servers);
    for (struct peer *peer = servers->peers, *next; peer; peer = next) {
        next = peer->next;
        peer_close(peer);
    }
    kept_drop(servers->routes);
    pthread_mutex_destroy(&servers->lock);
    free(servers);
}

// --- figures --------------------------------------------------------------------------

static void add_traffic(const struct peer *peer, struct servers_figures *figures) {
    uint64_t received = 0, sent = 0;
    if (peer->link)
        link_traffic(peer->link, &received, &sent);
    figures->received += peer->received + received;
    figures->sent += peer->sent + sent;
}

struct servers_figures servers_figures(struct servers *servers) {
    pthread_mutex_lock(&servers->lock);
    struct servers_figures figures = servers->figures;
    for (const struct peer *peer = servers->peers; peer; peer = peer->next)
        add_traffic(peer, &figures);
    pthread_mutex_unlock(&servers->lock);
    return figures;
}

void servers_waits_for(struct servers *servers, char text[PROTO_ADDRESS_MAX]) {
    pthread_mutex_lock(&servers->lock);
    memcpy(text, servers->waits_for, PROTO_ADDRESS_MAX);
    pthread_mutex_unlock(&servers->lock);
}
