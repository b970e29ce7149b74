// Parameter servers without ambition, for those who test what talks to them: weights in
// one array, deltas added and gradients subtracted, each (shard, sequence) once. They can be
// told to break links, to be busy and to have other routes by now.
#ifndef ADAM_TESTS_FAKE_SERVERS_H
#define ADAM_TESTS_FAKE_SERVERS_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "net/link.h"
#include "proto/kept.h"

enum {
    FAKE_SERVERS = 2,
    FAKE_BUCKETS = 16,
    FAKE_SHARDS = 8,
    FAKE_SEQUENCES = 1024,
    FAKE_SESSIONS = 8,
    FAKE_LATE = 64
};

struct fake_late { // a pull that waits for a version
    struct link *link;
    uint64_t request, least;
    struct proto_piece piece;
};

enum fake_lie { // in answers to pulls
    FAKE_HONEST,
    FAKE_OTHER_SHARD,
    FAKE_OTHER_PLACE,
    FAKE_FEWER,     // than were asked for, and says so
    FAKE_SHORT,     // fewer than it says
    FAKE_LONG,      // more than was asked for
    FAKE_TWO,       // pieces in one answer
    FAKE_UNCHANGED, // though the client has nothing yet
    FAKE_MIXED,     // no lie: of several pieces the first is not newer yet, and the others are
};

struct fake;

struct fake_server {
    struct fake *all;
    uint32_t member;
    struct listener *listener;
};

struct fake {
    struct fake_server servers[FAKE_SERVERS];
    struct pool pool;
    pthread_mutex_t lock; // of all below
    size_t floats;
    float *weights, *state;
    uint64_t version[FAKE_SHARDS];
    bool taken[FAKE_SHARDS][FAKE_SESSIONS][FAKE_SEQUENCES];
    struct fake_late late[FAKE_LATE];
    int late_count;
    uint64_t epoch;   // of all buckets, and of the routes
    uint32_t turned;  // added to who has a bucket
    uint32_t random;  // of faults
    int break_one_in; // requests: the link breaks before or after they are carried out; 0: never
    int busy;         // so many requests are refused as busy
    bool empty;       // not ready
    bool mute;        // pulls are not answered
    bool deaf;        // nor are factors
    uint16_t refuse;  // pushes: by this code; 0: none
    int break_most;   // so many links at most; 0: no bound
    bool replays;     // what comes twice is refused as replayed
    bool claims;      // pushes are answered as applied before, and are not
    int leaves;       // so many pushes are carried out, and then refused as not here
    bool holds;       // the next push waits for fake_refuse_held
    struct link *held;
    uint64_t held_request;
    uint64_t shift; // added to the sequence in answers to pushes
    enum fake_lie lie;
    uint32_t collect; // gradients that make an update; 0 or 1: each
    uint32_t collected[FAKE_SHARDS];
    double gathered[FAKE_SHARDS]; // samples
    float *sum;
    uint64_t factor_samples, delta_samples; // the last: of shard 0
    int pushes, pulls, repeated, unchanged, stale, broken, factors;
};

static inline uint32_t fake_draw(struct fake *fake) {
    fake->random = fake->random * 1664525u + 1013904223u;
    return fake->random >> 8;
}

static inline uint32_t fake_holder(const struct fake *fake, uint32_t bucket) {
    return (bucket + fake->turned) % FAKE_SERVERS + 1;
}

static inline bool fake_mine(const struct fake_server *server, const struct proto_piece *piece) {
    const struct fake *fake = server->all;
    return piece->epoch >= fake->epoch &&
           fake_holder(fake, proto_bucket_of(piece->shard, FAKE_BUCKETS)) == server->member;
}

static inline enum proto_refusal fake_hello(void *context, struct link *link,
                                            const struct proto_hello *hello,
                                            struct proto_welcome *welcome, uint64_t *detail) {
    (void)context, (void)link, (void)hello, (void)detail;
    welcome->window = 3; // so few that queues form
    return PROTO_REFUSAL_NONE;
}

struct fake_copy {
    struct link_part part;
    float values[];
};

static inline void fake_free(void *context) {
    free(context);
}

// A copy of the weights goes out: what is tested is not the server.
static inline void fake_answer_pull(struct fake *fake, struct link *link, uint64_t request,
                                    struct proto_piece piece, bool state) {
    size_t first = (size_t)piece.shard * PROTO_SHARD_FLOATS + piece.offset;
    bool news = piece.version != fake->version[piece.shard] || piece.version == 0;
    size_t size = piece.count * sizeof(float);
    struct fake_copy *copy = calloc(1, sizeof *copy + size + sizeof(float));
    memcpy(copy->values, (state ? fake->state : fake->weights) + first, size);
    copy->part = (struct link_part){copy->values, size};
    piece.version = fake->version[piece.shard];
    news &= fake->lie != FAKE_UNCHANGED;
    piece.shard += fake->lie == FAKE_OTHER_SHARD;
    piece.offset += fake->lie == FAKE_OTHER_PLACE;
    piece.count = news ? piece.count - (fake->lie == FAKE_FEWER) : 0;
    copy->part.size -= fake->lie == FAKE_FEWER || fake->lie == FAKE_SHORT ? sizeof(float) : 0;
    copy->part.size += fake->lie == FAKE_LONG ? sizeof(float) : 0;
    fake->unchanged += !news;
    const struct proto_piece pieces[] = {piece, piece};
    const struct proto_weights weights = {.pieces =
                                              proto_list(pieces, fake->lie == FAKE_TWO ? 2 : 1)};
    const struct link_payload payload = {&copy->part, news ? 1 : 0, fake_free, copy};
    link_answer(link, request, PROTO_TYPE_WEIGHTS, &weights, &payload, NULL);
}

// Several pieces of one shard, packed. Where the asker has some version, one of them may be so.
static inline void fake_answer_pieces(struct fake *fake, struct link *link, uint64_t request,
                                      const struct proto_pull *pull) {
    const struct proto_piece *asked = pull->pieces.at;
    uint32_t count = pull->pieces.count;
    struct proto_piece *pieces = malloc(count * sizeof *pieces);
    size_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        n += asked[i].count;
    struct fake_copy *copy = malloc(sizeof *copy + n * sizeof(float));
    n = 0;
    for (uint32_t i = 0; i < count; i++) {
        const size_t first = (size_t)asked[i].shard * PROTO_SHARD_FLOATS + asked[i].offset;
        pieces[i] = asked[i];
        pieces[i].version = fake->version[asked[i].shard];
        if (fake->lie == FAKE_MIXED && asked[i].version > 0 && i == 0) {
            pieces[i].count = 0;
            pieces[i].version = asked[i].version;
        }
        memcpy(copy->values + n, fake->weights + first, pieces[i].count * sizeof(float));
        n += pieces[i].count;
    }
    copy->part = (struct link_part){copy->values, n * sizeof(float)};
    const struct proto_weights weights = {.pieces = proto_list(pieces, count)};
    const struct link_payload payload = {&copy->part, 1, fake_free, copy};
    link_answer(link, request, PROTO_TYPE_WEIGHTS, &weights, &payload, NULL);
    free(pieces);
}

static inline void fake_answer_late(struct fake *fake) {
    int kept = 0;
    for (int i = 0; i < fake->late_count; i++) {
        struct fake_late *late = &fake->late[i];
        if (fake->version[late->piece.shard] < late->least) {
            fake->late[kept++] = *late;
            continue;
        }
        fake_answer_pull(fake, late->link, late->request, late->piece, false);
        link_drop(late->link);
    }
    fake->late_count = kept;
}

static inline void fake_pull(struct fake *fake, struct link *link, uint64_t request,
                             const struct proto_pull *pull) {
    const struct proto_piece *piece = pull->pieces.at;
    fake->pulls++;
    if (fake->mute)
        return;
    if (pull->pieces.count > 1) {
        fake_answer_pieces(fake, link, request, pull);
        return;
    }
    if (pull->least <= fake->version[piece->shard]) {
        fake_answer_pull(fake, link, request, *piece, pull->quantity == PROTO_QUANTITY_STATE);
        return;
    }
    link_hold(link);
    fake->late[fake->late_count++] =
        (struct fake_late){.link = link, .request = request, .least = pull->least, .piece = *piece};
}

// One update when enough was collected, of the mean weighted by samples.
static inline void fake_update(struct fake *fake, uint32_t shard, double rate) {
    size_t first = (size_t)shard * PROTO_SHARD_FLOATS;
    size_t n =
        fake->floats - first < PROTO_SHARD_FLOATS ? fake->floats - first : PROTO_SHARD_FLOATS;
    for (size_t i = first; i < first + n; i++) {
        if (fake->gathered[shard] > 0)
            fake->weights[i] -= (float)rate * fake->sum[i] / (float)fake->gathered[shard];
        fake->sum[i] = 0;
    }
    fake->gathered[shard] = fake->collected[shard] = 0;
    fake->version[shard]++;
}

static inline void fake_take(struct fake *fake, const struct proto_push *push,
                             const struct proto_piece *piece, const float *values) {
    size_t first = (size_t)piece->shard * PROTO_SHARD_FLOATS + piece->offset;
    bool delta = push->kind == PROTO_UPDATE_DELTA;
    for (size_t i = 0; values && i < piece->count; i++) {
        if (delta)
            fake->weights[first + i] += values[i];
        else
            fake->sum[first + i] += values[i] * (float)push->samples;
    }
    if (delta) {
        fake->version[piece->shard]++;
        fake->delta_samples += piece->shard == 0 ? push->samples : 0;
        return;
    }
    fake->gathered[piece->shard] += push->samples;
    if (++fake->collected[piece->shard] >= fake->collect)
        fake_update(fake, piece->shard, push->rate);
}

static inline void fake_push(struct fake *fake, struct link *link, uint64_t request,
                             const struct proto_push *push, const struct buffer *payload) {
    const struct proto_piece *pieces = push->pieces.at;
    const float *values = payload ? payload->data : NULL;
    uint32_t shard = pieces->shard;
    bool *taken = &fake->taken[shard][push->session][push->sequence], repeated = *taken;
    if (fake->holds && !fake->held) {
        link_hold(link);
        fake->held = link;
        fake->held_request = request;
        return;
    }
    *taken = true;
    if (repeated && fake->replays) {
        link_refuse(link, request, PROTO_REFUSAL_REPLAYED, push->sequence + 64, "");
        return;
    }
    repeated |= fake->claims;
    fake->pushes++;
    fake->repeated += repeated;
    for (uint32_t i = 0; !repeated && i < push->pieces.count; i++) {
        fake_take(fake, push, &pieces[i], values);
        values += values ? pieces[i].count : 0;
    }
    if (fake->leaves > 0) {
        fake->leaves--;
        link_refuse(link, request, PROTO_REFUSAL_NOT_HERE, shard, "");
        return;
    }
    struct proto_piece applied = *pieces;
    applied.version = fake->version[shard];
    const struct proto_pushed pushed = {.sequence = push->sequence + fake->shift,
                                        .repeated = repeated,
                                        .pieces = proto_list(&applied, 1)};
    link_answer(link, request, PROTO_TYPE_PUSHED, &pushed, NULL, NULL);
    fake_answer_late(fake);
}

// Of pieces that are parts of the layer, as ps_push_factors.
static inline void fake_take_factors(struct fake *fake, const struct proto_push_factors *push,
                                     const struct proto_piece *piece, const float *errors) {
    const float *inputs = errors + (size_t)push->samples * push->rows;
    size_t first = (size_t)piece->shard * PROTO_SHARD_FLOATS + piece->offset;
    for (size_t at = first; at < first + piece->count; at++) {
        bool bias = at >= push->biases;
        size_t row = bias ? at - push->biases : (at - push->weights) / push->columns;
        size_t column = (at - push->weights) % push->columns;
        float sum = 0;
        for (size_t k = 0; k < push->samples; k++)
            sum += errors[k * push->rows + row] * (bias ? 1 : inputs[k * push->columns + column]);
        fake->weights[at] -= (float)push->rate * sum;
    }
}

static inline void fake_push_factors(struct fake *fake, struct link *link, uint64_t request,
                                     const struct proto_push_factors *push,
                                     const struct buffer *payload) {
    const struct proto_piece *pieces = push->pieces.at;
    uint32_t shard = pieces->shard;
    bool *taken = &fake->taken[shard][push->session][push->sequence], repeated = *taken;
    if (fake->deaf)
        return;
    *taken = true;
    fake->factors++;
    fake->factor_samples += repeated ? 0 : push->samples;
    fake->repeated += repeated;
    for (uint32_t i = 0; !repeated && i < push->pieces.count; i++)
        fake_take_factors(fake, push, &pieces[i], payload->data);
    fake->version[shard] += !repeated;
    struct proto_piece applied = *pieces;
    applied.version = fake->version[shard];
    const struct proto_pushed pushed = {
        .sequence = push->sequence, .repeated = repeated, .pieces = proto_list(&applied, 1)};
    link_answer(link, request, PROTO_TYPE_PUSHED, &pushed, NULL, NULL);
}

static inline void fake_store(struct fake *fake, struct link *link, uint64_t request,
                              const struct proto_store *store, const struct buffer *payload) {
    const struct proto_piece *pieces = store->pieces.at;
    const float *values = payload->data;
    for (uint32_t i = 0; i < store->pieces.count; values += pieces[i++].count) {
        size_t first = (size_t)pieces[i].shard * PROTO_SHARD_FLOATS + pieces[i].offset;
        memcpy((store->quantity == PROTO_QUANTITY_STATE ? fake->state : fake->weights) + first,
               values, pieces[i].count * sizeof(float));
        fake->version[pieces[i].shard] = pieces[i].version;
    }
    link_answer(link, request, PROTO_TYPE_DONE, NULL, NULL, NULL);
}

static inline const struct proto_piece *fake_piece(uint16_t type,
                                                   const union proto_message *message) {
    return type == PROTO_TYPE_PULL           ? message->pull.pieces.at
           : type == PROTO_TYPE_PUSH         ? message->push.pieces.at
           : type == PROTO_TYPE_PUSH_FACTORS ? message->push_factors.pieces.at
                                             : message->store.pieces.at;
}

static inline void fake_serve(struct fake *fake, struct link *link, uint64_t request, uint16_t type,
                              const union proto_message *message, struct buffer *payload) {
    if (type == PROTO_TYPE_PULL)
        fake_pull(fake, link, request, &message->pull);
    else if (type == PROTO_TYPE_PUSH)
        fake_push(fake, link, request, &message->push, payload);
    else if (type == PROTO_TYPE_PUSH_FACTORS)
        fake_push_factors(fake, link, request, &message->push_factors, payload);
    else
        fake_store(fake, link, request, &message->store, payload);
}

static inline void fake_request(void *context, struct link *link, uint64_t request, uint16_t type,
                                const union proto_message *message, struct buffer *payload) {
    struct fake_server *server = context;
    struct fake *fake = server->all;
    pthread_mutex_lock(&fake->lock);
    bool breaks = fake->break_one_in > 0 &&
                  (fake->break_most == 0 || fake->broken < fake->break_most) &&
                  fake_draw(fake) % (uint32_t)fake->break_one_in == 0;
    bool before = breaks && fake_draw(fake) % 2;
    fake->broken += breaks;
    if (!fake_mine(server, fake_piece(type, message))) {
        fake->stale++;
        link_refuse(link, request, PROTO_REFUSAL_STALE_ROUTE, fake->epoch, "");
    } else if (fake->empty) {
        link_refuse(link, request, PROTO_REFUSAL_NOT_READY, 5, "");
    } else if (fake->busy > 0) {
        fake->busy--;
        link_refuse(link, request, PROTO_REFUSAL_BUSY, 5, "");
    } else if (fake->refuse && type == PROTO_TYPE_PUSH) {
        link_refuse(link, request, fake->refuse, 0, "");
    } else if (!before) {
        fake_serve(fake, link, breaks ? 0 : request, type, message, payload);
    }
    pthread_mutex_unlock(&fake->lock);
    if (breaks)
        link_break(link, "as the test wants it");
}

static inline bool fake_open(struct fake *fake, size_t floats) {
    *fake = (struct fake){.floats = floats, .epoch = 1, .random = 1, .pool = {.limit = 256 << 20}};
    pthread_mutex_init(&fake->lock, NULL);
    fake->weights = mem_floats(floats);
    fake->state = mem_floats(floats);
    fake->sum = mem_floats(floats);
    for (int i = 0; i < FAKE_SHARDS; i++)
        fake->version[i] = 1;
    bool listening = true;
    for (uint32_t i = 0; i < FAKE_SERVERS; i++) {
        struct fake_server *server = &fake->servers[i];
        char address[64];
        *server = (struct fake_server){.all = fake, .member = i + 1};
        snprintf(address, sizeof address, "inproc://fake-%p-%u", (void *)fake, (unsigned)i);
        const struct link_options options = {
            .handlers = {.context = server, .hello = fake_hello, .request = fake_request},
            .pool = &fake->pool,
        };
        listening &= !listener_open(&server->listener, address, &options,
                                    &(struct listener_limits){0}, NULL);
    }
    return listening;
}

// The routes as they are, for kept_drop.
static inline struct kept *fake_routes(struct fake *fake) {
    struct proto_server servers[FAKE_SERVERS] = {{0}};
    struct proto_bucket buckets[FAKE_BUCKETS];
    struct kept *kept = NULL;
    pthread_mutex_lock(&fake->lock);
    for (uint32_t i = 0; i < FAKE_SERVERS; i++) {
        servers[i].member = i + 1;
        servers[i].training = proto_text(listener_address(fake->servers[i].listener));
    }
    for (uint32_t i = 0; i < FAKE_BUCKETS; i++)
        buckets[i] =
            (struct proto_bucket){fake->epoch, fake_holder(fake, i), PROTO_NOBODY, PROTO_NOBODY};
    const struct proto_routes routes = {
        .epoch = fake->epoch,
        .parameters = fake->floats,
        .servers = proto_list(servers, FAKE_SERVERS),
        .buckets = proto_list(buckets, FAKE_BUCKETS),
    };
    pthread_mutex_unlock(&fake->lock);
    kept_make(&kept, PROTO_TYPE_ROUTES, &routes, NULL);
    return kept;
}

// From now on each bucket is the other server's.
static inline void fake_turn(struct fake *fake) {
    pthread_mutex_lock(&fake->lock);
    fake->turned++;
    fake->epoch++;
    pthread_mutex_unlock(&fake->lock);
}

// Whether a push is held.
static inline bool fake_holds(struct fake *fake) {
    pthread_mutex_lock(&fake->lock);
    bool holds = fake->held != NULL;
    pthread_mutex_unlock(&fake->lock);
    return holds;
}

// The push that is held was not carried out: its shard is somewhere else by now.
static inline void fake_refuse_held(struct fake *fake) {
    pthread_mutex_lock(&fake->lock);
    fake->holds = false;
    link_refuse(fake->held, fake->held_request, PROTO_REFUSAL_NOT_HERE, 0, "");
    link_drop(fake->held);
    fake->held = NULL;
    pthread_mutex_unlock(&fake->lock);
}

static inline void fake_close(struct fake *fake) {
    for (int i = 0; i < FAKE_SERVERS; i++)
        listener_close(fake->servers[i].listener);
    for (int i = 0; i < fake->late_count; i++)
        link_drop(fake->late[i].link);
    pool_free(&fake->pool);
    free(fake->weights), free(fake->state), free(fake->sum);
    pthread_mutex_destroy(&fake->lock);
}

#endif
