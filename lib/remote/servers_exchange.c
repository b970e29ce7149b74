// Exchanges: what is asked, and what the answers mean.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"
#include "kernels/dense.h"
#include "remote/servers_internal.h"

#define ROUTE_PAUSE 0.1 // seconds until a refused route is tried again without a new one
#define BUSY_LEAST 0.01 // bounds of the pause that a busy server asks for
#define BUSY_MOST 5.0   //
#define TICK 1.0        // between two looks at what a wait is for
#define SILENCE 10.0    // "A wait says whom it waits for: after 10 s"

// --- layout ---------------------------------------------------------------------------

static size_t shard_end(size_t first) {
    return (first / PROTO_SHARD_FLOATS + 1) * PROTO_SHARD_FLOATS;
}

// Cuts spans at the borders of shards; only counts where `to` is NULL.
static size_t cut_at_shards(const struct placed_span *spans, size_t count, struct placed_span *to) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct span span = spans[i].span;
        size_t end = span.first + span.n;
        for (size_t first = span.first, next; first < end; first = next, n++) {
            next = shard_end(first) < end ? shard_end(first) : end;
            if (to)
                to[n] =
                    (struct placed_span){{first, next - first}, spans[i].at + (first - span.first)};
        }
    }
    return n;
}

// What is pushed to a shard goes at once: a shard takes each sequence number once. What is pulled
// by one request arrives in one place, one span behind the other.
static bool joins_request(const struct exchange *exchange, const struct shard_request *request,
                          size_t i) {
    const struct placed_span *span = &exchange->spans[i], *before = span - 1;
    if (!request || request->shard != (uint32_t)(span->span.first / PROTO_SHARD_FLOATS))
        return false;
    return exchange->way != EXCHANGE_PULL ||
           (span->at == before->at + before->span.n && request->count < PROTO_PIECES_MAX);
}

static void make_requests(struct exchange *exchange) {
    struct shard_request *request = NULL;
    for (size_t i = 0; i < exchange->span_count; i++) {
        const struct span span = exchange->spans[i].span;
        if (!joins_request(exchange, request, i)) {
            request = &exchange->requests[exchange->request_count++];
            *request = (struct shard_request){
                .exchange = exchange,
                .shard = (uint32_t)(span.first / PROTO_SHARD_FLOATS),
                .first = i,
                .over = true,
            };
        }
        request->count++;
        request->floats += span.n;
    }
}

static int check_requests(const struct exchange *exchange, struct error *err) {
    for (size_t i = 0; i < exchange->request_count; i++)
        if (exchange->requests[i].count > PROTO_PIECES_MAX)
            return error_set(err, STATUS_DATA,
                             "a shard would be pushed in %zu pieces, of which a message has at "
                             "most %d",
                             exchange->requests[i].count, PROTO_PIECES_MAX);
    return STATUS_OK;
}

int exchange_open_placed(struct exchange **out, struct servers *servers, enum exchange_way way,
                         const struct placed_span *spans, size_t count, struct error *err) {
    struct exchange *exchange = mem_zeroed(1, sizeof *exchange);
    size_t n = cut_at_shards(spans, count, NULL);
    if (!exchange)
        return error_nomem(err);
    exchange->servers = servers;
    exchange->way = way;
    exchange->span_count = n;
    exchange->spans = mem_array(n, sizeof *exchange->spans);
    exchange->parts = mem_array(n < 2 ? 2 : n, sizeof *exchange->parts);
    exchange->requests = mem_array(n, sizeof *exchange->requests);
    if (n > 0 && (!exchange->spans || !exchange->parts || !exchange->requests)) {
        exchange_close(exchange);
        return error_nomem(err);
    }
    cut_at_shards(spans, count, exchange->spans);
    make_requests(exchange);
    int status = check_requests(exchange, err);
    if (status)
        exchange_close(exchange);
    else
        *out = exchange;
    return status;
}

int exchange_open(struct exchange **out, struct servers *servers, enum exchange_way way,
                  const struct span *spans, size_t count, struct error *err) {
    struct placed_span *placed = mem_array(count + 1, sizeof *placed);
    if (!placed)
        return error_nomem(err);
    for (size_t i = 0; i < count; i++)
        placed[i] = (struct placed_span){spans[i], spans[i].first};
    int status = exchange_open_placed(out, servers, way, placed, count, err);
    free(placed);
    return status;
}

void exchange_close(struct exchange *exchange) {
    if (!exchange)
        return;
    exchange_wait(exchange, NULL, NULL);
    free(exchange->spans);
    free(exchange->parts);
    free(exchange->requests);
    free(exchange);
}

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
        send_again(request, TICK);
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

// --- an exchange from its beginning to its end ----------------------------------------

static void begin_exchange(struct exchange *exchange, enum exchange_op op,
                           const struct shard_stamp *stamps) {
    struct servers *servers = exchange->servers;
    pthread_mutex_lock(&servers->lock);
    INVARIANT(exchange_over(exchange)); // what is under way belongs to the links
    exchange->op = op;
    exchange->started = true;
    exchange->status = STATUS_OK;
    exchange->refused = false;
    exchange->sequence = exchange->way == EXCHANGE_PUSH ? ++servers->sequence : 0;
    atomic_store(&exchange->left, exchange->request_count);
    for (size_t i = 0; i < exchange->request_count; i++) {
        struct shard_request *request = &exchange->requests[i];
        request->over = false;
        request->unsure = false;
        request->stamp = stamps[request->shard];
        request->reached = 0;
        request->due = 0;
        request->refusal = PROTO_REFUSAL_NONE;
        servers_dispatch(servers, request);
    }
    pthread_mutex_unlock(&servers->lock);
    servers_pump(servers);
}

// `values` begin with float `first`. Spans that lie one behind the other there go as one part.
static void set_parts(struct exchange *exchange, const float *values, size_t first) {
    for (size_t r = 0; values && r < exchange->request_count; r++) {
        struct shard_request *request = &exchange->requests[r];
        struct link_part *parts = exchange->parts + request->first;
        const struct placed_span *spans = exchange->spans + request->first;
        request->part_count = 0;
        for (size_t i = 0; i < request->count; i++) {
            if (i == 0 || spans[i].at != spans[i - 1].at + spans[i - 1].span.n)
                parts[request->part_count++] =
                    (struct link_part){values + (spans[i].at - first), 0};
            parts[request->part_count - 1].size += spans[i].span.n * sizeof *values;
        }
    }
}

void exchange_pull(struct exchange *exchange, const struct pull *pull) {
    exchange->pull = *pull;
    begin_exchange(exchange, EXCHANGE_OP_PULL, pull->stamps);
}

void exchange_push(struct exchange *exchange, const struct push *push) {
    exchange->push = *push;
    set_parts(exchange, push->values, 0);
    begin_exchange(exchange, EXCHANGE_OP_PUSH, push->stamps);
}

void exchange_push_factors(struct exchange *exchange, const struct push_factors *push) {
    const struct dense_errors *errors = push->errors;
    size_t n = (size_t)errors->n;
    exchange->factors = *push;
    exchange->parts[0] = (struct link_part){errors->dy, n * (size_t)errors->units * sizeof(float)};
    exchange->parts[1] = (struct link_part){errors->x, n * (size_t)errors->inputs * sizeof(float)};
    begin_exchange(exchange, EXCHANGE_OP_FACTORS, push->stamps);
}

void exchange_store(struct exchange *exchange, const struct store *store) {
    exchange->store = *store;
    set_parts(exchange, store->values, store->first);
    begin_exchange(exchange, EXCHANGE_OP_STORE, store->stamps);
}

void exchange_pieces(const struct exchange *exchange, exchange_piece *piece, void *self) {
    for (size_t i = 0; i < exchange->request_count; i++) {
        const struct shard_request *request = &exchange->requests[i];
        piece(self, exchange->spans[request->first].at, request->floats, request->came);
    }
}

bool exchange_over(const struct exchange *exchange) {
    return atomic_load(&exchange->left) == 0;
}

// Under the lock: whom a request waits for, and why.
static void describe_wait(const struct shard_request *request, char text[PROTO_ADDRESS_MAX]) {
    const struct peer *peer = request->peer;
    if (!peer) {
        snprintf(text, PROTO_ADDRESS_MAX, "a parameter server that has shard %u, of the controller",
                 (unsigned)request->shard);
        return;
    }
    int n = snprintf(text, PROTO_ADDRESS_MAX, "parameter server %u of %u: ", (unsigned)peer->place,
                     (unsigned)peer->places);
    char *rest = text + n;
    size_t room = PROTO_ADDRESS_MAX - (size_t)n;
    if (peer->why[0])
        snprintf(rest, room, "%.200s", peer->why);
    else if (request->refusal)
        snprintf(rest, room, "%.150s: %s", peer->address, proto_refusal_name(request->refusal));
    else if (shard_request_patient(request))
        snprintf(rest, room, "%.150s: no newer weights than version %llu", peer->address,
                 (unsigned long long)request->stamp.version);
    else
        snprintf(rest, room, "%.150s: no answer", peer->address);
}

// Looks at what the wait is for; true when that was somebody who is not known.
static bool note_wait(struct exchange *exchange) {
    struct servers *servers = exchange->servers;
    bool lost = false;
    pthread_mutex_lock(&servers->lock);
    servers->waits_for[0] = '\0';
    for (size_t i = 0; i < exchange->request_count && !servers->waits_for[0]; i++) {
        if (exchange->requests[i].over)
            continue;
        describe_wait(&exchange->requests[i], servers->waits_for);
        lost = !exchange->requests[i].peer;
    }
    pthread_mutex_unlock(&servers->lock);
    return lost;
}

static void say_wait(struct servers *servers) {
    char text[PROTO_ADDRESS_MAX], line[PROTO_ADDRESS_MAX + 16];
    servers_waits_for(servers, text);
    snprintf(line, sizeof line, "waiting for %s", text);
    if (text[0] && servers->options.say)
        servers->options.say(servers->options.self, line);
}

static void wait_for_answers(struct exchange *exchange, double begun) {
    struct servers *servers = exchange->servers;
    bool looked = false, said = false;
    for (uint32_t seen = gate_look(&servers->gate); !exchange_over(exchange);
         seen = gate_look(&servers->gate)) {
        gate_wait(&servers->gate, seen, TICK);
        double now = clock_seconds();
        if (now - begun < TICK || exchange_over(exchange))
            continue;
        if (note_wait(exchange))
            servers_stale(servers);
        looked = true;
        if (!said && now - begun >= SILENCE) {
            say_wait(servers);
            said = true;
        }
    }
    if (looked)
        note_wait(exchange); // nobody any more
}

// A shard is as new as the oldest of its parts; of several epochs it is in none.
static struct shard_stamp join_stamps(struct shard_stamp a, struct shard_stamp b) {
    return (struct shard_stamp){.epoch = a.epoch == b.epoch ? a.epoch : 0,
                                .version = a.version < b.version ? a.version : b.version};
}

static void collect_stamps(const struct exchange *exchange) {
    const struct shard_request *before = NULL;
    for (size_t i = 0; i < exchange->request_count; i++) {
        const struct shard_request *request = &exchange->requests[i];
        struct shard_stamp *stamp = &exchange->pull.stamps[request->shard];
        bool first = !before || before->shard != request->shard;
        *stamp = first ? request->stamp : join_stamps(*stamp, request->stamp);
        before = request;
    }
}

static bool is_later(struct shard_stamp a, struct shard_stamp b) {
    return a.epoch != b.epoch ? a.epoch > b.epoch : a.version > b.version;
}

// A shard counts each push that it applies.
static void collect_growth(const struct exchange *exchange, struct growth *growth) {
    for (size_t i = 0; growth && i < exchange->request_count; i++) {
        const struct shard_request *request = &exchange->requests[i];
        const struct shard_stamp reached = {request->epoch, request->reached};
        struct shard_stamp *newest = &growth->newest[request->shard];
        if (reached.version && is_later(reached, *newest))
            *newest = reached;
        growth->pushes[request->shard]++;
    }
}

static void count_exchange(struct exchange *exchange) {
    struct servers *servers = exchange->servers;
    pthread_mutex_lock(&servers->lock);
    servers->figures.pushes += exchange->way == EXCHANGE_PUSH && !exchange->status;
    servers->figures.pushes_refused += exchange->way == EXCHANGE_PUSH && exchange->refused;
    servers->figures.pulls += exchange->way == EXCHANGE_PULL && !exchange->status;
    pthread_mutex_unlock(&servers->lock);
}

int exchange_wait(struct exchange *exchange, double *waited, struct error *err) {
    if (!exchange->started)
        return STATUS_OK;
    if (!exchange_over(exchange)) {
        double begun = clock_seconds();
        wait_for_answers(exchange, begun);
        if (waited)
            *waited += clock_seconds() - begun;
    }
    exchange->started = false;
    if (exchange->op == EXCHANGE_OP_PULL)
        collect_stamps(exchange);
    else if (exchange->op == EXCHANGE_OP_PUSH)
        collect_growth(exchange, exchange->push.growth);
    else if (exchange->op == EXCHANGE_OP_FACTORS)
        collect_growth(exchange, exchange->factors.growth);
    count_exchange(exchange);
    if (exchange->status && err)
        *err = exchange->err;
    return exchange->status;
}
