// Exchanges: how their floats are cut into requests, and what goes on from their beginning to their
// end.
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"
#include "kernels/dense.h"
#include "remote/servers_internal.h"

#define SILENCE 10.0 // "A wait says whom it waits for: after 10 s"

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

// --- beginning ------------------------------------------------------------------------

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

// --- waiting, and the end ---------------------------------------------------------------

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
        gate_wait(&servers->gate, seen, SERVERS_TICK);
        double now = clock_seconds();
        if (now - begun < SERVERS_TICK || exchange_over(exchange))
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
