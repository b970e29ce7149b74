// One parameter server as its clients see it: a link that is made anew when it breaks, and
// what waits to be sent over it.
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "remote/redial.h"
#include "remote/servers_internal.h"

#define MEMORY_PAUSE 0.1 // seconds until what found no memory is tried again

// --- sending --------------------------------------------------------------------------

// Pulls that wait for newer weights leave room for the pushes that make them.
static bool may_send(const struct peer *peer, const struct shard_request *request, double now) {
    uint32_t most = peer->window > 2 ? peer->window / 2 : 1;
    return request->due <= now && (!shard_request_patient(request) || peer->patient < most);
}

// The next request's requests, chained; NULL: none may be sent.
static struct shard_request *take_due(struct peer *peer, double now) {
    struct shard_request_queue *queue = &peer->queue;
    struct shard_request *leader = NULL, *last = NULL;
    size_t spans = 0;
    for (struct shard_request *at = TAILQ_FIRST(queue), *next; at; at = next) {
        next = TAILQ_NEXT(at, queued);
        if (!may_send(peer, at, now) || (leader && !shard_request_joins(leader, at, spans)))
            continue;
        TAILQ_REMOVE(queue, at, queued);
        at->chain = NULL;
        leader = leader ? leader : at;
        if (last)
            last->chain = at;
        last = at;
        spans += at->count;
        if (!shard_request_joins(leader, at, 0))
            break;
    }
    return leader;
}

// Nothing was sent: it waits again.
static void requeue_requests(struct peer *peer, struct shard_request *leader,
                             const struct error *why) {
    struct servers *servers = peer->servers;
    pthread_mutex_lock(&servers->lock);
    peer->in_flight--;
    peer->patient -= shard_request_patient(leader);
    peer->broken |= why->status == STATUS_UNAVAILABLE;
    for (struct shard_request *request = leader, *next; request; request = next) {
        next = request->chain;
        request->due = why->status == STATUS_IO ? clock_seconds() + MEMORY_PAUSE : 0;
        if (why->status == STATUS_DATA)
            shard_request_fail(request, STATUS_DATA, why->text);
        else
            servers_redispatch(servers, request);
    }
    pthread_mutex_unlock(&servers->lock);
    gate_open(&servers->gate);
    gate_open(&peer->gate);
}

void peer_pump(struct peer *peer) {
    struct servers *servers = peer->servers;
    for (;;) {
        struct error err = {0};
        pthread_mutex_lock(&servers->lock);
        struct link *link = peer->link;
        bool able = link && !peer->broken && peer->in_flight < peer->window;
        struct shard_request *leader = able ? take_due(peer, clock_seconds()) : NULL;
        if (leader) {
            peer->in_flight++;
            peer->patient += shard_request_patient(leader);
            link_hold(link);
        }
        pthread_mutex_unlock(&servers->lock);
        if (!leader)
            return;
        if (shard_request_send(leader, link, &err))
            requeue_requests(peer, leader, &err);
        link_drop(link);
    }
}

// --- dialling -------------------------------------------------------------------------

static void link_closed(void *context, struct link *link, const char *why) {
    struct peer *peer = context;
    pthread_mutex_lock(&peer->servers->lock);
    peer->broken = true;
    snprintf(peer->why, sizeof peer->why, "%s: %s", link_address(link), why);
    pthread_mutex_unlock(&peer->servers->lock);
    gate_open(&peer->gate);
}

// Closes the link if it is broken.
static void drop_broken(struct peer *peer) {
    struct servers *servers = peer->servers;
    uint64_t received, sent;
    pthread_mutex_lock(&servers->lock);
    struct link *link = peer->broken ? peer->link : NULL;
    if (link)
        peer->link = NULL;
    pthread_mutex_unlock(&servers->lock);
    if (!link)
        return;
    link_traffic(link, &received, &sent);
    link_close(link);
    pthread_mutex_lock(&servers->lock);
    peer->received += received;
    peer->sent += sent;
    pthread_mutex_unlock(&servers->lock);
}

static uint32_t window_of(const struct proto_welcome *welcome) {
    return welcome->window > 0 && welcome->window < LINK_WINDOW ? welcome->window : LINK_WINDOW;
}

static void mark_dialled(struct peer *peer, struct link *link,
                         const struct proto_welcome *welcome) {
    peer->servers->figures.redials += peer->dialled;
    peer->dialled = true;
    peer->link = link;
    peer->window = window_of(welcome);
    peer->pause = 0;
    peer->why[0] = '\0';
}

static void mark_unreachable(struct peer *peer, const struct error *err) {
    peer->pause = redial_pause(peer->pause);
    peer->next_dial = clock_seconds() + peer->pause;
    snprintf(peer->why, sizeof peer->why, "%.*s", (int)sizeof peer->why - 1, err->text);
}

static void dial_peer(struct peer *peer) {
    struct servers *servers = peer->servers;
    const struct servers_options *options = &servers->options;
    const struct link_options link_options = {
        .handlers = {.context = peer, .closed = link_closed},
        .keys = options->keys,
        .insecure = options->insecure,
    };
    struct error err = {0};
    struct proto_welcome welcome;
    struct link *link;
    char address[PROTO_ADDRESS_MAX];
    pthread_mutex_lock(&servers->lock);
    peer->broken = false;
    snprintf(address, sizeof address, "%s", peer->address);
    pthread_mutex_unlock(&servers->lock);
    int status =
        link_dial(&link, address, &link_options, &options->hello, REDIAL_MS, &welcome, &err);
    pthread_mutex_lock(&servers->lock);
    if (status)
        mark_unreachable(peer, &err);
    else
        mark_dialled(peer, link, &welcome);
    pthread_mutex_unlock(&servers->lock);
}

// Seconds until something in the queue is due; below 0: all waits for something else.
static double next_due(const struct peer *peer, double now) {
    double least = -1;
    for (const struct shard_request *at = TAILQ_FIRST(&peer->queue); at;
         at = TAILQ_NEXT(at, queued))
        if (at->due > now && (least < 0 || at->due - now < least))
            least = at->due - now;
    return least;
}

// Does what can be done now; seconds until there may be more, or below 0.
static double serve_peer_once(struct peer *peer) {
    struct servers *servers = peer->servers;
    drop_broken(peer);
    pthread_mutex_lock(&servers->lock);
    bool wanted = !TAILQ_EMPTY(&peer->queue), linked = peer->link != NULL;
    double now = clock_seconds(), next = linked ? next_due(peer, now) : peer->next_dial - now;
    pthread_mutex_unlock(&servers->lock);
    if (!wanted)
        return -1;
    if (!linked && next > 0)
        return next;
    if (!linked)
        dial_peer(peer);
    peer_pump(peer);
    return linked ? next : 0;
}

static bool is_stopping(const struct peer *peer) {
    pthread_mutex_lock(&peer->servers->lock);
    bool stopping = peer->servers->stopping;
    pthread_mutex_unlock(&peer->servers->lock);
    return stopping;
}

static void *peer_thread(void *self) {
    struct peer *peer = self;
    for (uint32_t seen = gate_look(&peer->gate); !is_stopping(peer); seen = gate_look(&peer->gate))
        gate_wait(&peer->gate, seen, serve_peer_once(peer));
    return NULL;
}

int peer_open(struct peer **out, struct servers *servers, const struct proto_server *server,
              struct error *err) {
    struct peer *peer = mem_zeroed(1, sizeof *peer);
    if (!peer)
        return error_nomem(err);
    peer->servers = servers;
    peer->member = server->member;
    TAILQ_INIT(&peer->queue);
    if (pthread_create(&peer->thread, NULL, peer_thread, peer)) {
        free(peer);
        return error_set(err, STATUS_IO, "cannot start a thread for a parameter server");
    }
    *out = peer;
    return STATUS_OK;
}

void peer_close(struct peer *peer) {
    gate_open(&peer->gate);
    pthread_join(peer->thread, NULL);
    link_close(peer->link);
    free(peer);
}
