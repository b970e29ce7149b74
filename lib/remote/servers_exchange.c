// Exchanges: what is asked, and what the answers mean.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
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
static size_t cut(const struct span *spans, size_t count, struct span *to) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        size_t end = spans[i].first + spans[i].n;
        for (size_t first = spans[i].first, next; first < end; first = next, n++) {
            next = shard_end(first) < end ? shard_end(first) : end;
            if (to)
                to[n] = (struct span){first, next - first};
        }
    }
    return n;
}

// What is pulled arrives in one place, so that each span is a parcel of its own. What is
// pushed to a shard goes at once: a shard takes each sequence number once.
static void pack(struct exchange *exchange) {
    bool apart = exchange->way == EXCHANGE_PULL;
    struct parcel *parcel = NULL;
    for (size_t i = 0; i < exchange->span_count; i++) {
        uint32_t shard = (uint32_t)(exchange->spans[i].first / PROTO_SHARD_FLOATS);
        if (apart || !parcel || parcel->shard != shard) {
            parcel = &exchange->parcels[exchange->parcel_count++];
            *parcel =
                (struct parcel){.exchange = exchange, .shard = shard, .first = i, .over = true};
        }
        parcel->count++;
    }
}

int exchange_open(struct exchange **out, struct servers *servers, enum exchange_way way,
                  const struct span *spans, size_t count, struct error *err) {
    struct exchange *exchange = mem_zeroed(1, sizeof *exchange);
    size_t n = cut(spans, count, NULL);
    if (!exchange)
        return error_nomem(err);
    exchange->servers = servers;
    exchange->way = way;
    exchange->span_count = n;
    exchange->spans = mem_array(n, sizeof *exchange->spans);
    exchange->parts = mem_array(n < 2 ? 2 : n, sizeof *exchange->parts);
    exchange->parcels = mem_array(n, sizeof *exchange->parcels);
    if (n > 0 && (!exchange->spans || !exchange->parts || !exchange->parcels)) {
        exchange_close(exchange);
        return error_nomem(err);
    }
    cut(spans, count, exchange->spans);
    pack(exchange);
    *out = exchange;
    return STATUS_OK;
}

void exchange_close(struct exchange *exchange) {
    if (!exchange)
        return;
    exchange_wait(exchange, NULL, NULL);
    free(exchange->spans);
    free(exchange->parts);
    free(exchange->parcels);
    free(exchange);
}

// --- asking ---------------------------------------------------------------------------

bool parcel_joins(const struct parcel *leader, const struct parcel *parcel, size_t spans) {
    return leader->exchange == parcel->exchange && parcel->exchange->cargo == CARGO_FACTORS &&
           spans + parcel->count <= PROTO_PIECES_MAX;
}

bool parcel_patient(const struct parcel *parcel) {
    return parcel->exchange->cargo == CARGO_PULL && parcel->exchange->pull.newer;
}

static size_t put_pieces(const struct parcel *parcel, const struct proto_routes *routes,
                         struct proto_piece *pieces) {
    const struct proto_bucket *buckets = routes->buckets.at;
    uint64_t epoch = buckets[proto_bucket_of(parcel->shard, routes->buckets.count)].epoch;
    for (size_t i = 0; i < parcel->count; i++) {
        struct span span = parcel->exchange->spans[parcel->first + i];
        pieces[i] = (struct proto_piece){
            .shard = parcel->shard,
            .offset = (uint32_t)(span.first % PROTO_SHARD_FLOATS),
            .count = (uint32_t)span.n,
            .epoch = epoch,
            .version = parcel->version,
        };
    }
    return parcel->count;
}

// The pieces of a whole chain; NULL when memory is out.
static struct proto_piece *pieces_of(const struct parcel *leader, size_t *count) {
    struct kept *routes = servers_routes(leader->exchange->servers);
    size_t n = 0;
    for (const struct parcel *parcel = leader; parcel; parcel = parcel->chain)
        n += parcel->count;
    struct proto_piece *pieces = mem_array(n, sizeof *pieces);
    *count = 0;
    for (const struct parcel *parcel = leader; pieces && parcel; parcel = parcel->chain)
        *count += put_pieces(parcel, &routes->message.routes, pieces + *count);
    kept_drop(routes);
    return pieces;
}

static void parcel_answered(struct link_request *ask);

static int ask_pull(struct parcel *parcel, struct link *link, struct proto_list pieces,
                    struct error *err) {
    const struct exchange *exchange = parcel->exchange;
    const struct span span = exchange->spans[parcel->first];
    const struct proto_pull message = {
        .session = exchange->servers->options.hello.session,
        .part = (uint16_t)exchange->pull.part,
        .least = exchange->pull.newer ? parcel->version + 1 : 0,
        .pieces = pieces,
    };
    parcel->ask = (struct link_request){
        .type = PROTO_TYPE_PULL,
        .message = &message,
        .into = exchange->pull.into + span.first,
        .room = span.n * sizeof(float),
        .done = parcel_answered,
        .context = parcel,
    };
    return link_ask(link, &parcel->ask, err);
}

static int ask_with_payload(struct parcel *parcel, struct link *link, uint16_t type,
                            const void *message, const struct link_part *parts, size_t part_count,
                            struct error *err) {
    parcel->ask = (struct link_request){
        .type = type,
        .message = message,
        .parts = parts,
        .part_count = (uint32_t)part_count,
        .done = parcel_answered,
        .context = parcel,
    };
    return link_ask(link, &parcel->ask, err);
}

static int ask_push(struct parcel *parcel, struct link *link, struct proto_list pieces,
                    struct error *err) {
    const struct exchange *exchange = parcel->exchange;
    const struct proto_push message = {
        .session = exchange->servers->options.hello.session,
        .sequence = exchange->sequence,
        .kind = (uint16_t)exchange->push.kind,
        .samples = exchange->push.samples,
        .rate = exchange->push.rate,
        .pieces = pieces,
    };
    return ask_with_payload(parcel, link, PROTO_TYPE_PUSH, &message,
                            exchange->parts + parcel->first,
                            exchange->push.samples > 0 ? parcel->count : 0, err);
}

static int ask_factors(struct parcel *parcel, struct link *link, struct proto_list pieces,
                       struct error *err) {
    const struct exchange *exchange = parcel->exchange;
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
    return ask_with_payload(parcel, link, PROTO_TYPE_PUSH_FACTORS, &message, exchange->parts, 2,
                            err);
}

static int ask_store(struct parcel *parcel, struct link *link, struct proto_list pieces,
                     struct error *err) {
    const struct exchange *exchange = parcel->exchange;
    const struct proto_store message = {.part = (uint16_t)exchange->store.part, .pieces = pieces};
    return ask_with_payload(parcel, link, PROTO_TYPE_STORE, &message,
                            exchange->parts + parcel->first, parcel->count, err);
}

int parcel_send(struct parcel *parcel, struct link *link, struct error *err) {
    static int (*const ask[])(struct parcel *, struct link *, struct proto_list, struct error *) = {
        [CARGO_PULL] = ask_pull,
        [CARGO_PUSH] = ask_push,
        [CARGO_FACTORS] = ask_factors,
        [CARGO_STORE] = ask_store,
    };
    size_t count;
    struct proto_piece *pieces = pieces_of(parcel, &count);
    if (!pieces)
        return error_nomem(err);
    int status =
        ask[parcel->exchange->cargo](parcel, link, proto_list(pieces, (uint32_t)count), err);
    free(pieces);
    return status;
}

// --- answers --------------------------------------------------------------------------

void parcel_end(struct parcel *parcel) {
    parcel->over = true;
    atomic_fetch_sub(&parcel->exchange->left, 1);
}

void parcel_fail(struct parcel *parcel, int status, const char *text) {
    struct exchange *exchange = parcel->exchange;
    if (exchange->status == STATUS_OK || exchange->status == STATUS_SKIPPED) {
        exchange->status = error_set(&exchange->err, status, "%s", text);
        if (status != STATUS_SKIPPED)
            servers_sweep(exchange->servers, exchange);
    }
    parcel_end(parcel);
}

// A refusal for good, in words.
static void fail(struct parcel *parcel, int status, const struct proto_refused *refused) {
    char text[ERROR_TEXT];
    const char *name = proto_refusal_name(refused->code);
    snprintf(text, sizeof text, "%s refused shard %u: %s%s%.*s", parcel->peer->address,
             (unsigned)parcel->shard, name, refused->text.length > 0 ? ": " : "",
             (int)refused->text.length, refused->text.at);
    parcel->exchange->refused = true;
    parcel_fail(parcel, status, text);
}

// The push was applied before, says the server. Otherwise than after a lost answer it was
// not this client's.
static void settle_repeated(struct parcel *parcel) {
    const struct exchange *exchange = parcel->exchange;
    char text[ERROR_TEXT];
    if (parcel->unsure) {
        exchange->servers->figures.repeated++;
        parcel_end(parcel);
        return;
    }
    snprintf(text, sizeof text,
             "%s did not apply push %llu to shard %u: it has had one of that number, which was "
             "not sent by this worker; somebody else pushes in its session %llu",
             parcel->peer->address, (unsigned long long)exchange->sequence, (unsigned)parcel->shard,
             (unsigned long long)exchange->servers->options.hello.session);
    parcel->exchange->refused = true;
    parcel_fail(parcel, STATUS_STOPPED, text);
}

static void again(struct parcel *parcel, double seconds) {
    parcel->due = clock_seconds() + seconds;
    servers_dispatch(parcel->exchange->servers, parcel);
}

static void again_when_told(struct parcel *parcel, const struct proto_refused *refused) {
    double seconds = (double)refused->detail / 1000;
    again(parcel, seconds < BUSY_LEAST ? BUSY_LEAST : seconds > BUSY_MOST ? BUSY_MOST : seconds);
}

// Under the lock. True when newer routes are wanted.
static bool settle_refusal(struct parcel *parcel, const struct proto_refused *refused) {
    struct servers_figures *figures = &parcel->exchange->servers->figures;
    figures->refused++;
    parcel->refusal = refused->code;
    switch (refused->code) {
    case PROTO_REFUSAL_STALE_ROUTE:
    case PROTO_REFUSAL_NOT_HERE:
        again(parcel, ROUTE_PAUSE);
        return true;
    case PROTO_REFUSAL_BUSY:
    case PROTO_REFUSAL_NOT_READY:
        again_when_told(parcel, refused);
        break;
    case PROTO_REFUSAL_STOPPING:
        again(parcel, TICK);
        break;
    case PROTO_REFUSAL_TOO_STALE:
        fail(parcel, STATUS_SKIPPED, refused);
        break;
    case PROTO_REFUSAL_REPLAYED:
        settle_repeated(parcel);
        break;
    case PROTO_REFUSAL_NOT_FINITE:
        fail(parcel, STATUS_DIVERGED, refused);
        break;
    case PROTO_REFUSAL_WRONG_SESSION:
        fail(parcel, STATUS_STOPPED, refused);
        break;
    case PROTO_REFUSAL_PEER_LOST:
    case PROTO_REFUSAL_WRONG_RUN:
    case PROTO_REFUSAL_WRONG_MODEL:
    case PROTO_REFUSAL_WRONG_ROLE:
        fail(parcel, STATUS_UNAVAILABLE, refused);
        break;
    default:
        fail(parcel, STATUS_DATA, refused);
    }
    return false;
}

static void fail_answer(struct parcel *parcel, const char *asked) {
    char text[LINK_WHY];
    snprintf(text, sizeof text, "%s answered a %s of shard %u by what was not asked for",
             parcel->peer->address, asked, (unsigned)parcel->shard);
    parcel_fail(parcel, STATUS_DATA, text);
}

// "Every byte from outside is checked": the answer must be about what was asked.
static void settle_weights(struct parcel *parcel, const struct link_request *ask) {
    const struct proto_weights *weights = &ask->answer->weights;
    const struct proto_piece *piece = weights->pieces.at;
    struct span span = parcel->exchange->spans[parcel->first];
    bool meant = weights->pieces.count == 1 && piece->shard == parcel->shard &&
                 piece->offset == span.first % PROTO_SHARD_FLOATS;
    bool whole = meant && piece->count == span.n && ask->received == ask->room;
    bool unchanged = meant && piece->count == 0 && ask->received == 0 && parcel->version > 0;
    if (!whole && !unchanged) {
        fail_answer(parcel, "pull");
        return;
    }
    parcel->exchange->servers->figures.unchanged += unchanged;
    parcel->version = unchanged ? parcel->version : piece->version;
    parcel_end(parcel);
}

static uint64_t version_in(struct proto_list pieces, uint32_t shard) {
    const struct proto_piece *piece = pieces.at;
    uint32_t i = 0;
    while (i < pieces.count && piece[i].shard != shard)
        i++;
    return i < pieces.count ? piece[i].version : 0;
}

static void settle_pushed(struct parcel *parcel, const struct proto_pushed *pushed) {
    if (pushed->sequence != parcel->exchange->sequence) {
        fail_answer(parcel, "push");
        return;
    }
    if (pushed->repeated) {
        settle_repeated(parcel);
        return;
    }
    parcel->reached = version_in(pushed->pieces, parcel->shard);
    parcel_end(parcel);
}

// Under the lock. True when newer routes are wanted.
static bool settle(struct parcel *parcel, const struct link_request *ask) {
    if (ask->status) {
        parcel->due = 0;
        parcel->unsure = true;
        servers_dispatch(parcel->exchange->servers, parcel);
        return false;
    }
    if (ask->answer_type == PROTO_TYPE_REFUSED)
        return settle_refusal(parcel, &ask->answer->refused);
    if (ask->answer_type == PROTO_TYPE_WEIGHTS) {
        settle_weights(parcel, ask);
        return false;
    }
    if (ask->answer_type == PROTO_TYPE_PUSHED)
        settle_pushed(parcel, &ask->answer->pushed);
    else
        parcel_end(parcel);
    return false;
}

static void parcel_answered(struct link_request *ask) {
    struct parcel *leader = ask->context;
    struct peer *peer = leader->peer;
    struct servers *servers = peer->servers;
    const struct link_request own = *ask; // a parcel that is over may be used again
    bool stale = false;
    pthread_mutex_lock(&servers->lock);
    peer->flying--;
    peer->patient -= parcel_patient(leader);
    for (struct parcel *parcel = leader, *next; parcel; parcel = next) {
        next = parcel->chain;
        stale |= settle(parcel, &own);
    }
    pthread_mutex_unlock(&servers->lock);
    if (stale)
        servers_stale(servers);
    gate_open(&servers->gate);
    peer_pump(peer);
    gate_open(&peer->gate);
}

// --- an exchange from its beginning to its end ----------------------------------------

static void begin(struct exchange *exchange, enum cargo cargo, const uint64_t *versions) {
    struct servers *servers = exchange->servers;
    pthread_mutex_lock(&servers->lock);
    exchange->cargo = cargo;
    exchange->started = true;
    exchange->status = STATUS_OK;
    exchange->refused = false;
    exchange->sequence = exchange->way == EXCHANGE_PUSH ? ++servers->sequence : 0;
    atomic_store(&exchange->left, exchange->parcel_count);
    for (size_t i = 0; i < exchange->parcel_count; i++) {
        struct parcel *parcel = &exchange->parcels[i];
        parcel->over = false;
        parcel->unsure = false;
        parcel->version = versions[parcel->shard];
        parcel->reached = 0;
        parcel->due = 0;
        parcel->refusal = PROTO_REFUSAL_NONE;
        servers_dispatch(servers, parcel);
    }
    pthread_mutex_unlock(&servers->lock);
    servers_pump(servers);
}

static void set_parts(struct exchange *exchange, const float *values) {
    for (size_t i = 0; i < exchange->span_count; i++)
        exchange->parts[i] = (struct link_part){
            values ? values + exchange->spans[i].first : NULL,
            exchange->spans[i].n * sizeof *values,
        };
}

void exchange_pull(struct exchange *exchange, const struct pull *pull) {
    exchange->pull = *pull;
    begin(exchange, CARGO_PULL, pull->versions);
}

void exchange_push(struct exchange *exchange, const struct push *push) {
    exchange->push = *push;
    set_parts(exchange, push->values);
    begin(exchange, CARGO_PUSH, push->versions);
}

void exchange_push_factors(struct exchange *exchange, const struct push_factors *push) {
    const struct dense_errors *errors = push->errors;
    size_t n = (size_t)errors->n;
    exchange->factors = *push;
    exchange->parts[0] = (struct link_part){errors->dy, n * (size_t)errors->units * sizeof(float)};
    exchange->parts[1] = (struct link_part){errors->x, n * (size_t)errors->inputs * sizeof(float)};
    begin(exchange, CARGO_FACTORS, push->versions);
}

void exchange_store(struct exchange *exchange, const struct store *store) {
    exchange->store = *store;
    set_parts(exchange, store->values);
    begin(exchange, CARGO_STORE, store->versions);
}

bool exchange_over(const struct exchange *exchange) {
    return atomic_load(&exchange->left) == 0;
}

// Under the lock: whom a parcel waits for, and why.
static void name_wait(const struct parcel *parcel, char text[PROTO_ADDRESS_MAX]) {
    const struct peer *peer = parcel->peer;
    if (!peer) {
        snprintf(text, PROTO_ADDRESS_MAX, "a parameter server that has shard %u, of the controller",
                 (unsigned)parcel->shard);
        return;
    }
    int n = snprintf(text, PROTO_ADDRESS_MAX, "parameter server %u of %u: ", (unsigned)peer->place,
                     (unsigned)peer->places);
    char *rest = text + n;
    size_t room = PROTO_ADDRESS_MAX - (size_t)n;
    if (peer->why[0])
        snprintf(rest, room, "%.200s", peer->why);
    else if (parcel->refusal)
        snprintf(rest, room, "%.150s: %s", peer->address, proto_refusal_name(parcel->refusal));
    else if (parcel_patient(parcel))
        snprintf(rest, room, "%.150s: no newer weights than version %llu", peer->address,
                 (unsigned long long)parcel->version);
    else
        snprintf(rest, room, "%.150s: no answer", peer->address);
}

// Looks at what the wait is for; true when that was somebody who is not known.
static bool look(struct exchange *exchange) {
    struct servers *servers = exchange->servers;
    bool lost = false;
    pthread_mutex_lock(&servers->lock);
    servers->waits_for[0] = '\0';
    for (size_t i = 0; i < exchange->parcel_count && !servers->waits_for[0]; i++) {
        if (exchange->parcels[i].over)
            continue;
        name_wait(&exchange->parcels[i], servers->waits_for);
        lost = !exchange->parcels[i].peer;
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

static void await(struct exchange *exchange, double begun) {
    struct servers *servers = exchange->servers;
    bool looked = false, said = false;
    for (uint32_t seen = gate_look(&servers->gate); !exchange_over(exchange);
         seen = gate_look(&servers->gate)) {
        gate_wait(&servers->gate, seen, TICK);
        double now = clock_seconds();
        if (now - begun < TICK || exchange_over(exchange))
            continue;
        if (look(exchange))
            servers_stale(servers);
        looked = true;
        if (!said && now - begun >= SILENCE) {
            say_wait(servers);
            said = true;
        }
    }
    if (looked)
        look(exchange); // nobody any more
}

// A shard is as new as the oldest of its parts.
static void collect_versions(const struct exchange *exchange) {
    const struct parcel *before = NULL;
    for (size_t i = 0; i < exchange->parcel_count; i++) {
        const struct parcel *parcel = &exchange->parcels[i];
        uint64_t *version = &exchange->pull.versions[parcel->shard];
        if (!before || before->shard != parcel->shard || parcel->version < *version)
            *version = parcel->version;
        before = parcel;
    }
}

// A shard counts each push that it applies.
static void collect_growth(const struct exchange *exchange, struct growth *growth) {
    for (size_t i = 0; growth && i < exchange->parcel_count; i++) {
        const struct parcel *parcel = &exchange->parcels[i];
        uint64_t *newest = &growth->newest[parcel->shard];
        *newest = parcel->reached > *newest ? parcel->reached : *newest;
        growth->pushes[parcel->shard]++;
    }
}

static void count(struct exchange *exchange) {
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
        await(exchange, begun);
        if (waited)
            *waited += clock_seconds() - begun;
    }
    exchange->started = false;
    if (exchange->cargo == CARGO_PULL)
        collect_versions(exchange);
    else if (exchange->cargo == CARGO_PUSH)
        collect_growth(exchange, exchange->push.growth);
    else if (exchange->cargo == CARGO_FACTORS)
        collect_growth(exchange, exchange->factors.growth);
    count(exchange);
    if (exchange->status && err)
        *err = exchange->err;
    return exchange->status;
}
