// Requests about shards: what is asked, and what the answers mean.
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "kernels/dense.h"
#include "remote/servers_internal.h"

#define ROUTE_PAUSE 0.1 // seconds until a refused route is tried again without a new one
#define BUSY_LEAST 0.01 // bounds of the pause that a busy server asks for
#define BUSY_MOST 5.0   //

// --- asking ---------------------------------------------------------------------------

bool shard_request_joins(const struct shard_request *leader, const struct shard_request *request,
                         size_t spans) {
    return leader->exchange == request->exchange && request->exchange->op == EXCHANGE_OP_FACTORS &&
           spans + request->count <= PROTO_PIECES_MAX;
}

bool shard_request_patient(const struct shard_request *request) {
    return request->exchange->op == EXCHANGE_OP_PULL && request->exchange->pull.newer;
}

// Of a pull: that what is here is what a server of the present epoch told of.
static bool is_known(const struct shard_request *request) {
    return request->stamp.version > 0 && request->stamp.epoch == request->epoch;
}

static size_t put_pieces(struct shard_request *request, const struct proto_routes *routes,
                         struct proto_piece *pieces) {
    const struct proto_bucket *buckets = routes->buckets.at;
    request->epoch = buckets[proto_bucket_of(request->shard, routes->buckets.count)].epoch;
    bool told = request->exchange->op != EXCHANGE_OP_PULL || is_known(request);
    for (size_t i = 0; i < request->count; i++) {
        struct span span = request->exchange->spans[request->first + i].span;
        pieces[i] = (struct proto_piece){
            .shard = request->shard,
            .offset = (uint32_t)(span.first % PROTO_SHARD_FLOATS),
            .count = (uint32_t)span.n,
            .epoch = request->epoch,
            .version = told ? request->stamp.version : 0,
        };
    }
    return request->count;
}

// The pieces of a whole chain; NULL when memory is out.
static struct proto_piece *pieces_of(struct shard_request *leader, size_t *count) {
    struct kept *routes = servers_routes(leader->exchange->servers);
    size_t n = 0;
    for (const struct shard_request *request = leader; request; request = request->chain)
        n += request->count;
    struct proto_piece *pieces = mem_array(n, sizeof *pieces);
    *count = 0;
    for (struct shard_request *request = leader; pieces && request; request = request->chain)
        *count += put_pieces(request, &routes->message.routes, pieces + *count);
    kept_drop(routes);
    return pieces;
}

static void request_answered(struct link_request *ask);

static int ask_pull(struct shard_request *request, struct link *link, struct proto_list pieces,
                    struct error *err) {
    const struct exchange *exchange = request->exchange;
    const struct proto_pull message = {
        .session = exchange->servers->options.hello.session,
        .quantity = (uint16_t)exchange->pull.quantity,
        .least = exchange->pull.newer ? request->stamp.version + 1 : 0,
        .pieces = pieces,
    };
    request->ask = (struct link_request){
        .type = PROTO_TYPE_PULL,
        .message = &message,
        .into = exchange->pull.into + (exchange->spans[request->first].at - exchange->pull.first),
        .room = request->floats * sizeof(float),
        .done = request_answered,
        .context = request,
    };
    return link_ask(link, &request->ask, err);
}

static int ask_with_payload(struct shard_request *request, struct link *link, uint16_t type,
                            const void *message, const struct link_part *parts, size_t part_count,
                            struct error *err) {
    request->ask = (struct link_request){
        .type = type,
        .message = message,
        .parts = parts,
        .part_count = (uint32_t)part_count,
        .done = request_answered,
        .context = request,
    };
    return link_ask(link, &request->ask, err);
}

static int ask_push(struct shard_request *request, struct link *link, struct proto_list pieces,
                    struct error *err) {
    const struct exchange *exchange = request->exchange;
    const struct proto_push message = {
        .session = exchange->servers->options.hello.session,
        .sequence = exchange->sequence,
        .kind = (uint16_t)exchange->push.kind,
        .samples = exchange->push.samples,
        .rate = exchange->push.rate,
        .pieces = pieces,
    };
    return ask_with_payload(request, link, PROTO_TYPE_PUSH, &message,
                            exchange->parts + request->first,
                            exchange->push.samples > 0 ? request->part_count : 0, err);
}

static int ask_factors(struct shard_request *request, struct link *link, struct proto_list pieces,
                       struct error *err) {
    const struct exchange *exchange = request->exchange;
    const struct layer *layer = exchange->factors.layer;
    const struct dense_errors *errors = exchange->factors.errors;
    const struct proto_push_factors message = {
        .session = exchange->servers->options.hello.session,
        .sequence = exchange->sequence,
        .samples = (uint32_t)errors->n,
        .rate = exchange->factors.rate,
        .rows = (uint32_t)errors->units,
        .columns = (uint32_t)errors->inputs,
        .weights = layer->weights.offset,
        .biases = layer->biases.count > 0 ? layer->biases.offset : PROTO_NOWHERE,
        .pieces = pieces,
    };
    return ask_with_payload(request, link, PROTO_TYPE_PUSH_FACTORS, &message, exchange->parts, 2,
                            err);
}

static int ask_store(struct shard_request *request, struct link *link, struct proto_list pieces,
                     struct error *err) {
    const struct exchange *exchange = request->exchange;
    const struct proto_store message = {.quantity = (uint16_t)exchange->store.quantity,
                                        .pieces = pieces};
    return ask_with_payload(request, link, PROTO_TYPE_STORE, &message,
                            exchange->parts + request->first, request->part_count, err);
}

int shard_request_send(struct shard_request *request, struct link *link, struct error *err) {
    static int (*const ask[])(struct shard_request *, struct link *, struct proto_list,
                              struct error *) = {
        [EXCHANGE_OP_PULL] = ask_pull,
        [EXCHANGE_OP_PUSH] = ask_push,
        [EXCHANGE_OP_FACTORS] = ask_factors,
        [EXCHANGE_OP_STORE] = ask_store,
    };
    size_t count;
    struct proto_piece *pieces = pieces_of(request, &count);
    if (!pieces)
        return error_nomem(err);
    int status =
        ask[request->exchange->op](request, link, proto_list(pieces, (uint32_t)count), err);
    free(pieces);
    return status;
}

// --- answers --------------------------------------------------------------------------

void shard_request_end(struct shard_request *request) {
    request->over = true;
    atomic_fetch_sub(&request->exchange->left, 1);
}

void shard_request_fail(struct shard_request *request, int status, const char *text) {
    struct exchange *exchange = request->exchange;
    if (exchange->status == STATUS_OK || exchange->status == STATUS_SKIPPED) {
        exchange->status = error_set(&exchange->err, status, "%s", text);
        if (status != STATUS_SKIPPED)
            servers_sweep(exchange->servers, exchange);
    }
    shard_request_end(request);
}

// A refusal for good, in words.
static void fail_refused(struct shard_request *request, int status,
                         const struct proto_refused *refused) {
    char text[ERROR_TEXT];
    const char *name = proto_refusal_name(refused->code);
    snprintf(text, sizeof text, "%s refused shard %u: %s%s%.*s", request->peer->address,
             (unsigned)request->shard, name, refused->text.length > 0 ? ": " : "",
             (int)refused->text.length, refused->text.at);
    request->exchange->refused = true;
    shard_request_fail(request, status, text);
}

// The push was applied before, says the server. Otherwise than after a lost answer it was
// not this client's.
static void settle_repeated(struct shard_request *request) {
    const struct exchange *exchange = request->exchange;
    char text[ERROR_TEXT];
    if (request->unsure) {
        exchange->servers->figures.repeated++;
        shard_request_end(request);
        return;
    }
    snprintf(text, sizeof text,
             "%s did not apply push %llu to shard %u: it has had one of that number, which was "
             "not sent by this worker; somebody else pushes in its session %llu",
             request->peer->address, (unsigned long long)exchange->sequence,
             (unsigned)request->shard,
             (unsigned long long)exchange->servers->options.hello.session);
    request->exchange->refused = true;
    shard_request_fail(request, STATUS_STOPPED, text);
}

static void send_again(struct shard_request *request, double seconds) {
    request->due = clock_seconds() + seconds;
    servers_redispatch(request->exchange->servers, request);
}

static void send_again_when_told(struct shard_request *request,
                                 const struct proto_refused *refused) {
    double seconds = (double)refused->detail / 1000;
    send_again(request, seconds < BUSY_LEAST  ? BUSY_LEAST
                        : seconds > BUSY_MOST ? BUSY_MOST
                                              : seconds);
}

// Under the lock. True when newer routes are wanted.
static bool settle_refusal(struct shard_request *request, const struct proto_refused *refused) {
    struct servers_figures *figures = &request->exchange->servers->figures;
    figures->refused++;
    request->refusal = refused->code;
    switch (refused->code) {
    case PROTO_REFUSAL_STALE_ROUTE:
        send_again(request, ROUTE_PAUSE);
        return true;
    case PROTO_REFUSAL_NOT_HERE:
        request->unsure = true; // it may have been applied before the shard was lost
        send_again(request, ROUTE_PAUSE);
        return true;
    case PROTO_REFUSAL_BUSY:
    case PROTO_REFUSAL_NOT_READY:
        send_again_when_told(request, refused);
        break;
    case PROTO_REFUSAL_STOPPING:
        request->unsure = true; // the same
        send_again(request, SERVERS_TICK);
        break;
    case PROTO_REFUSAL_TOO_STALE:
        fail_refused(request, STATUS_SKIPPED, refused);
        break;
    case PROTO_REFUSAL_REPLAYED:
        settle_repeated(request);
        break;
    case PROTO_REFUSAL_NOT_FINITE:
        fail_refused(request, STATUS_DIVERGED, refused);
        break;
    case PROTO_REFUSAL_WRONG_SESSION:
        fail_refused(request, STATUS_STOPPED, refused);
        break;
    case PROTO_REFUSAL_PEER_LOST:
    case PROTO_REFUSAL_WRONG_RUN:
    case PROTO_REFUSAL_WRONG_MODEL:
    case PROTO_REFUSAL_WRONG_ROLE:
        fail_refused(request, STATUS_UNAVAILABLE, refused);
        break;
    default:
        fail_refused(request, STATUS_DATA, refused);
    }
    return false;
}

static void fail_answer(struct shard_request *request, const char *asked) {
    char text[LINK_WHY];
    snprintf(text, sizeof text, "%s answered a %s of shard %u by what was not asked for",
             request->peer->address, asked, (unsigned)request->shard);
    shard_request_fail(request, STATUS_DATA, text);
}

// What the pieces of an answer say: which of them came, and the oldest of their versions.
struct piece_account {
    bool meant; // they are those that were asked for
    size_t whole, unchanged;
    uint64_t version;
};

static struct piece_account account_of(const struct shard_request *request,
                                       const struct proto_list *pieces) {
    struct piece_account account = {.meant = pieces->count == request->count,
                                    .version = PROTO_NOWHERE};
    const struct proto_piece *piece = pieces->at;
    for (size_t i = 0; account.meant && i < request->count; i++, piece++) {
        const struct span span = request->exchange->spans[request->first + i].span;
        account.meant =
            piece->shard == request->shard && piece->offset == span.first % PROTO_SHARD_FLOATS;
        account.whole += piece->count == span.n;
        account.unchanged += piece->count == 0;
        account.version = piece->version < account.version ? piece->version : account.version;
    }
    return account;
}

// "Every byte from outside is checked": the answer must be about what was asked. A shard that
// changed while the server looked at one piece after the other is asked for again, all of it.
static void settle_weights(struct shard_request *request, const struct link_request *ask) {
    const struct piece_account account = account_of(request, &ask->answer->weights.pieces);
    bool whole = account.meant && account.whole == request->count && ask->received == ask->room;
    bool unchanged = account.meant && account.unchanged == request->count && ask->received == 0 &&
                     is_known(request);
    bool mixed = account.meant && account.whole > 0 && is_known(request) &&
                 account.whole + account.unchanged == request->count;
    if (!whole && !unchanged && mixed) {
        request->stamp = (struct shard_stamp){0};
        send_again(request, 0);
        return;
    }
    if (!whole && !unchanged) {
        fail_answer(request, "pull");
        return;
    }
    request->exchange->servers->figures.unchanged += unchanged;
    request->came = whole;
    if (whole)
        request->stamp = (struct shard_stamp){request->epoch, account.version};
    shard_request_end(request);
}

static uint64_t version_in(struct proto_list pieces, uint32_t shard) {
    const struct proto_piece *piece = pieces.at;
    uint32_t i = 0;
    while (i < pieces.count && piece[i].shard != shard)
        i++;
    return i < pieces.count ? piece[i].version : 0;
}

static void settle_pushed(struct shard_request *request, const struct proto_pushed *pushed) {
    if (pushed->sequence != request->exchange->sequence) {
        fail_answer(request, "push");
        return;
    }
    if (pushed->repeated) {
        settle_repeated(request);
        return;
    }
    request->reached = version_in(pushed->pieces, request->shard);
    shard_request_end(request);
}

// Under the lock. True when newer routes are wanted.
static bool settle_answer(struct shard_request *request, const struct link_request *ask) {
    if (ask->status == STATUS_DATA) { // larger than it may be: the next one would be so again
        fail_answer(request, request->exchange->op == EXCHANGE_OP_PULL ? "pull" : "push");
        return false;
    }
    if (ask->status) {
        request->due = 0;
        request->unsure = true;
        servers_redispatch(request->exchange->servers, request);
        return false;
    }
    if (ask->answer_type == PROTO_TYPE_REFUSED)
        return settle_refusal(request, &ask->answer->refused);
    if (ask->answer_type == PROTO_TYPE_WEIGHTS) {
        settle_weights(request, ask);
        return false;
    }
    if (ask->answer_type == PROTO_TYPE_PUSHED)
        settle_pushed(request, &ask->answer->pushed);
    else
        shard_request_end(request);
    return false;
}

static void request_answered(struct link_request *ask) {
    struct shard_request *leader = ask->context;
    struct peer *peer = leader->peer;
    struct servers *servers = peer->servers;
    const struct link_request own = *ask; // a request that is over may be used again
    bool stale = false;
    pthread_mutex_lock(&servers->lock);
    peer->in_flight--;
    peer->patient -= shard_request_patient(leader);
    for (struct shard_request *request = leader, *next; request; request = next) {
        next = request->chain;
        stale |= settle_answer(request, &own);
    }
    pthread_mutex_unlock(&servers->lock);
    if (stale)
        servers_stale(servers);
    gate_open(&servers->gate);
    peer_pump(peer);
    gate_open(&peer->gate);
}
