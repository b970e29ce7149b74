#include "role/paramserver/peers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"

// What is on its way to another server. Requests end without the lock: a link that breaks may end
// them while one is asked.
struct peers_window {
    _Atomic uint32_t references; // of the other server's entry, and of requests
    _Atomic size_t bytes;
};

struct other {
    uint32_t member;
    struct relink *peer;
    struct peers_window *window;
};

struct peers {
    struct peers_options options;
    pthread_mutex_t lock; // of all that follows
    struct other *others;
    size_t count;
    uint64_t received, sent; // by links that are no more
};

int peers_open(struct peers **out, const struct peers_options *options, struct error *err) {
    struct peers *peers = mem_zeroed(1, sizeof *peers);
    if (!peers)
        return error_nomem(err);
    peers->options = *options;
    pthread_mutex_init(&peers->lock, NULL);
    *out = peers;
    return STATUS_OK;
}

static void window_drop(struct peers_window *window) {
    if (atomic_fetch_sub(&window->references, 1) == 1)
        free(window);
}

static struct other *find_other(struct peers *peers, uint32_t member) {
    for (size_t i = 0; i < peers->count; i++)
        if (peers->others[i].member == member)
            return &peers->others[i];
    return NULL;
}

static bool is_listed(const struct proto_list *servers, uint32_t member) {
    const struct proto_server *at = servers->at;
    for (uint32_t i = 0; i < servers->count; i++)
        if (at[i].member == member)
            return true;
    return false;
}

// The link of the first one that is not listed, out of the table.
static struct relink *take_gone(struct peers *peers, const struct proto_list *servers) {
    struct relink *gone = NULL;
    pthread_mutex_lock(&peers->lock);
    for (size_t i = 0; i < peers->count && !gone; i++) {
        if (is_listed(servers, peers->others[i].member))
            continue;
        uint64_t received, sent;
        gone = peers->others[i].peer;
        relink_traffic(gone, &received, &sent);
        peers->received += received;
        peers->sent += sent;
        window_drop(peers->others[i].window);
        peers->others[i] = peers->others[--peers->count];
    }
    pthread_mutex_unlock(&peers->lock);
    return gone;
}

static bool make_room(struct peers *peers) {
    pthread_mutex_lock(&peers->lock);
    struct other *others = mem_resize(peers->others, peers->count + 1, sizeof *others);
    if (others)
        peers->others = others;
    pthread_mutex_unlock(&peers->lock);
    return others != NULL;
}

static int add_other(struct peers *peers, const struct proto_server *server, struct error *err) {
    const struct peers_options *o = &peers->options;
    char address[PROTO_ADDRESS_MAX + 1];
    struct relink *peer;
    struct peers_window *window = mem_zeroed(1, sizeof *window);
    if (!window || !make_room(peers)) {
        free(window);
        return error_nomem(err);
    }
    atomic_init(&window->references, 1);
    memcpy(address, server->replication.at, server->replication.length);
    address[server->replication.length] = '\0';
    const struct relink_config config = {
        .address = address, .hello = o->hello, .keys = o->keys, .insecure = o->insecure};
    int status = relink_open(&peer, &config, err);
    if (status) {
        free(window);
        return status;
    }
    pthread_mutex_lock(&peers->lock);
    peers->others[peers->count++] = (struct other){server->member, peer, window};
    pthread_mutex_unlock(&peers->lock);
    return STATUS_OK;
}

int peers_set(struct peers *peers, const struct proto_list *servers, struct error *err) {
    const struct proto_server *at = servers->at;
    int status = STATUS_OK;
    for (struct relink *gone; (gone = take_gone(peers, servers));)
        relink_close(gone);
    for (uint32_t i = 0; !status && i < servers->count; i++)
        if (at[i].member != peers->options.member && !find_other(peers, at[i].member))
            status = add_other(peers, &at[i], err);
    return status;
}

void peers_close(struct peers *peers) {
    const struct proto_list nobody = {0};
    if (peers)
        peers_set(peers, &nobody, NULL);
}

void peers_free(struct peers *peers) {
    if (!peers)
        return;
    pthread_mutex_destroy(&peers->lock);
    free(peers->others);
    free(peers);
}

int peers_ask(struct peers *peers, struct peers_request *request, struct error *err) {
    int status = STATUS_UNAVAILABLE;
    pthread_mutex_lock(&peers->lock);
    struct other *other = find_other(peers, request->member);
    if (other && atomic_load(&other->window->bytes) + request->bytes <= PEERS_BYTES) {
        request->window = other->window;
        atomic_fetch_add(&request->window->references, 1);
        atomic_fetch_add(&request->window->bytes, request->bytes);
        status = relink_ask(other->peer, &request->link, err);
        if (status)
            peers_done(request);
    }
    pthread_mutex_unlock(&peers->lock);
    return status;
}

void peers_done(struct peers_request *request) {
    atomic_fetch_sub(&request->window->bytes, request->bytes);
    window_drop(request->window);
}

void peers_traffic(struct peers *peers, uint64_t *received, uint64_t *sent) {
    pthread_mutex_lock(&peers->lock);
    *received = peers->received;
    *sent = peers->sent;
    for (size_t i = 0; i < peers->count; i++) {
        uint64_t in, out;
        relink_traffic(peers->others[i].peer, &in, &out);
        *received += in;
        *sent += out;
    }
    pthread_mutex_unlock(&peers->lock);
}
