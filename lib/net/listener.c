// Who waits for links: accepts them, counts them, and forgets them when they end.
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "net/address.h"
#include "net/link_internal.h"
#include "net/local.h"
#include "net/places.h"
#include "net/secrets_internal.h"

enum { LINKS = 1024, STRANGERS = 256, HELLO = 5000 };
enum { REST = 100 }; // milliseconds, when the process has no descriptors left

struct listener {
    struct link_options options;
    struct listener_limits limits;
    enum address_kind kind;
    char address[PROTO_ADDRESS_MAX];
    nng_stream_listener *stream;
    nng_aio *accept;
    bool resting;         // of the accepting thread
    nng_stream *waiting;  // the accepting thread's: accepted, and waits for a place
    struct place *places; // the accepting thread's: room for all strangers
    pthread_mutex_t lock; // of all that follows
    struct link *links;
    uint32_t link_count, strangers;
};

// Under the lock: it takes no place among strangers any more.
static void leave_place(struct listener *listener, struct link *link) {
    listener->strangers -= link->stranger;
    link->stranger = false;
}

void listener_known(struct listener *listener, struct link *link) {
    pthread_mutex_lock(&listener->lock);
    leave_place(listener, link);
    pthread_mutex_unlock(&listener->lock);
}

void listener_forget(struct listener *listener, struct link *link) {
    pthread_mutex_lock(&listener->lock);
    struct link **at = &listener->links;
    while (*at != link)
        at = &(*at)->sibling;
    *at = link->sibling;
    listener->link_count--;
    leave_place(listener, link);
    pthread_mutex_unlock(&listener->lock);
}

static void peer_address(const struct listener *listener, nng_stream *stream, char *text,
                         size_t room) {
    nng_sockaddr from;
    char host[INET6_ADDRSTRLEN];
    if (nng_stream_get_addr(stream, NNG_OPT_REMADDR, &from))
        from.s_family = NNG_AF_UNSPEC;
    const char *scheme = listener->kind == ADDRESS_TLS ? "tls+tcp" : "tcp";
    if (from.s_family == NNG_AF_INET && inet_ntop(AF_INET, &from.s_in.sa_addr, host, sizeof host))
        snprintf(text, room, "%s://%s:%u", scheme, host, ntohs(from.s_in.sa_port));
    else if (from.s_family == NNG_AF_INET6 &&
             inet_ntop(AF_INET6, from.s_in6.sa_addr, host, sizeof host))
        snprintf(text, room, "%s://[%s]:%u", scheme, host, ntohs(from.s_in6.sa_port));
    else
        snprintf(text, room, "%s", listener->address);
}

static uint64_t origin_of(nng_stream *stream) {
    nng_sockaddr from;
    if (nng_stream_get_addr(stream, NNG_OPT_REMADDR, &from))
        return 0;
    if (from.s_family == NNG_AF_INET)
        return hash_bytes(&from.s_in.sa_addr, sizeof from.s_in.sa_addr);
    if (from.s_family == NNG_AF_INET6)
        return hash_bytes(from.s_in6.sa_addr, sizeof from.s_in6.sa_addr);
    return 0; // a Unix socket, whose callers are all this user's
}

// Under the lock: whose place a newcomer of this origin takes; NULL, and *wait milliseconds:
// nobody's yet.
static struct link *choose_stranger(struct listener *listener, uint64_t origin, uint64_t *wait) {
    size_t n = 0, index;
    for (const struct link *link = listener->links; link; link = link->sibling)
        if (link->stranger)
            listener->places[n++] = (struct place){link->origin, link->opened};
    index = places_choose(listener->places, n, origin, nng_clock(), wait);
    for (struct link *link = index < n ? listener->links : NULL; link; link = link->sibling)
        if (link->stranger && index-- == 0)
            return link;
    return NULL;
}

// Makes room for one more stranger, which is counted then. False: there is none for *wait
// milliseconds; 0: it is turned away.
static bool make_place(struct listener *listener, uint64_t origin, uint64_t *wait) {
    struct link *displaced = NULL;
    *wait = 0;
    pthread_mutex_lock(&listener->lock);
    bool room = listener->link_count < listener->limits.links;
    if (listener->strangers >= listener->limits.strangers) {
        displaced = choose_stranger(listener, origin, wait);
        room = displaced != NULL; // whose link is gone in a moment
        if (displaced) {
            leave_place(listener, displaced);
            link_hold(displaced);
        }
    }
    listener->link_count += room;
    listener->strangers += room;
    pthread_mutex_unlock(&listener->lock);
    if (displaced) {
        link_break(displaced, "it asked nothing that was granted, and others wait to");
        link_drop(displaced);
    }
    return room;
}

static void lose_place(struct listener *listener) {
    pthread_mutex_lock(&listener->lock);
    listener->link_count--;
    listener->strangers--;
    pthread_mutex_unlock(&listener->lock);
}

static void open_link(struct listener *listener, nng_stream *stream, uint64_t origin) {
    char from[PROTO_ADDRESS_MAX];
    struct link *link;
    peer_address(listener, stream, from, sizeof from);
    if (link_open(&link, stream, from, &listener->options, listener, listener->limits.hello,
                  NULL)) {
        lose_place(listener);
        return;
    }
    link->origin = origin;
    link->stranger = true;
    pthread_mutex_lock(&listener->lock);
    link->sibling = listener->links;
    listener->links = link;
    pthread_mutex_unlock(&listener->lock);
    link_start(link);
    link_drop(link);
}

// What was accepted becomes a link or is turned away. Otherwise it waits: so many milliseconds.
static uint64_t take_waiting(struct listener *listener) {
    nng_stream *stream = listener->waiting;
    uint64_t wait = 0;
    if (!stream)
        return 0;
    uint64_t origin = origin_of(stream);
    bool room = local_is_allowed(stream, listener->kind) && make_place(listener, origin, &wait);
    if (!room && wait > 0)
        return wait;
    listener->waiting = NULL;
    if (room)
        open_link(listener, stream, origin);
    else
        nng_stream_free(stream);
    return 0;
}

static void pause_accepting(struct listener *listener, uint64_t milliseconds) {
    listener->resting = true;
    nng_sleep_aio((nng_duration)milliseconds, listener->accept);
}

// Accepting fails for good when the listener is closed; otherwise descriptors or memory
// are short, and are so for a while.
static void on_accept(void *context) {
    struct listener *listener = context;
    int result = nng_aio_result(listener->accept);
    if (result == NNG_ECLOSED || result == NNG_ECANCELED)
        return;
    if (result && !listener->resting) {
        pause_accepting(listener, REST);
        return;
    }
    if (!result && !listener->resting)
        listener->waiting = nng_aio_get_output(listener->accept, 0);
    listener->resting = false;
    uint64_t wait = take_waiting(listener);
    if (wait > 0)
        pause_accepting(listener, wait);
    else
        nng_stream_listener_accept(listener->stream, listener->accept);
}

static void set_limits(struct listener *listener, const struct listener_limits *limits) {
    static const struct listener_limits standard = {LINKS, STRANGERS, HELLO};
    listener->limits = limits ? *limits : standard;
    if (listener->limits.links == 0)
        listener->limits.links = LINKS;
    if (listener->limits.strangers == 0)
        listener->limits.strangers = STRANGERS;
    if (listener->limits.hello == 0)
        listener->limits.hello = HELLO;
}

// Port 0 was any: what it became stands in the address.
static void note_port(struct listener *listener) {
    int port;
    char *colon = strrchr(listener->address, ':');
    if (address_is_socket(listener->kind) || !colon || strcmp(colon, ":0") != 0)
        return;
    if (nng_stream_listener_get_int(listener->stream, NNG_OPT_TCP_BOUND_PORT, &port) == 0)
        snprintf(colon + 1, sizeof listener->address - (size_t)(colon + 1 - listener->address),
                 "%d", port);
}

static int listen_failed(const char *address, int code, struct error *err) {
    char host[PROTO_ADDRESS_MAX];
    if (code == NNG_EADDRINVAL && address_host(address, host))
        return error_set(err, STATUS_UNAVAILABLE,
                         "cannot listen on %s: '%s' is no address of this machine", address, host);
    return error_set(err, STATUS_UNAVAILABLE, "cannot listen on %s: %s", address,
                     nng_strerror(code));
}

static int begin_listening(struct listener *listener, struct error *err) {
    char url[LOCAL_URL];
    local_url(url, listener->address, listener->kind);
    int code = nng_stream_listener_alloc(&listener->stream, url);
    if (!code && listener->kind == ADDRESS_TLS)
        code = nng_stream_listener_set_ptr(listener->stream, NNG_OPT_TLS_CONFIG,
                                           listener->options.keys->server);
    if (!code && listener->kind == ADDRESS_IPC)
        code = nng_stream_listener_set_int(listener->stream, NNG_OPT_IPC_PERMISSIONS, 0600);
    if (!code && !(listener->places = mem_array(listener->limits.strangers, sizeof(struct place))))
        code = NNG_ENOMEM;
    if (!code)
        code = nng_aio_alloc(&listener->accept, on_accept, listener);
    if (!code)
        code = nng_stream_listener_listen(listener->stream);
    if (code)
        return listen_failed(listener->address, code, err);
    note_port(listener);
    nng_stream_listener_accept(listener->stream, listener->accept);
    return STATUS_OK;
}

int listener_open(struct listener **listener, const char *address,
                  const struct link_options *options, const struct listener_limits *limits,
                  struct error *err) {
    *listener = NULL;
    if (address_check(address, options->keys != NULL, options->insecure, err))
        return err ? err->status : STATUS_USAGE;
    struct listener *l = mem_zeroed(1, sizeof *l);
    if (!l)
        return error_nomem(err);
    pthread_mutex_init(&l->lock, NULL);
    l->options = *options;
    set_limits(l, limits);
    address_kind(address, &l->kind, err);
    snprintf(l->address, sizeof l->address, "%s", address);
    int status = begin_listening(l, err);
    if (status)
        listener_close(l);
    else
        *listener = l;
    return status;
}

const char *listener_address(const struct listener *listener) {
    return listener->address;
}

static struct link *any_link(struct listener *listener) {
    pthread_mutex_lock(&listener->lock);
    struct link *link = listener->links;
    if (link)
        link_hold(link);
    pthread_mutex_unlock(&listener->lock);
    return link;
}

void listener_close(struct listener *listener) {
    if (!listener)
        return;
    if (listener->stream)
        nng_stream_listener_close(listener->stream);
    if (listener->accept)
        nng_aio_free(listener->accept); // waits for its callback
    if (listener->waiting)
        nng_stream_free(listener->waiting);
    for (struct link *link; (link = any_link(listener));) {
        link_break(link, "the listener was closed");
        link_wait(link);
        link_drop(link);
    }
    if (listener->stream)
        nng_stream_listener_free(listener->stream);
    pthread_mutex_destroy(&listener->lock);
    free(listener->places);
    free(listener);
}
