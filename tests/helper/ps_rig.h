// A parameter server's core for tests: a model of three shards, and requests that wait for
// their answers.
#ifndef ADAM_TESTS_PS_RIG_H
#define ADAM_TESTS_PS_RIG_H

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/gate.h"
#include "core/hogwild.h"
#include "core/mem.h"
#include "kernels/kernels.h"
#include "ps/ps.h"
#include "tap.h"

// Shard 0 is within the first layer's weights, shard 1 has the rest of it and a part of the
// second one's, shard 2 all the others.
static const char rig_text[] = "input 400x1x1\n"
                               "dense units=700 rate=0.5\n"
                               "dense units=500 decay=0.01\n"
                               "softmax units=10\n";

enum { RIG_SHARDS = 3, RIG_BUCKETS = 16, RIG_EPOCH = 7, RIG_MEMBER = 2, RIG_PIECES = 8 };

struct rig {
    struct model *model;
    struct ps *ps;
    struct pool pool;
    size_t n;                             // parameters
    _Atomic uint32_t applied[RIG_SHARDS]; // how often the copies were to be renewed
};

static struct gate rig_answered; // outlives every reply

struct reply {
    _Atomic bool done; // the last that is written: it may be used again then
    enum proto_refusal code;
    uint64_t detail;
    bool repeated;
    uint32_t pieces, parts;
    uint64_t versions[RIG_PIECES];
    uint32_t counts[RIG_PIECES];
    struct ps_extent part[RIG_PIECES];
};

static inline void reply_take(void *context, const struct ps_answer *answer) {
    struct reply *reply = context;
    reply->code = answer->code;
    reply->detail = answer->detail;
    reply->repeated = answer->repeated;
    reply->pieces = answer->piece_count;
    reply->parts = answer->extent_count;
    for (uint32_t i = 0; i < answer->piece_count && i < RIG_PIECES; i++) {
        reply->versions[i] = answer->pieces[i].version;
        reply->counts[i] = answer->pieces[i].count;
    }
    for (uint32_t i = 0; i < answer->extent_count && i < RIG_PIECES; i++)
        reply->part[i] = answer->extents[i];
    atomic_store(&reply->done, true);
    gate_open(&rig_answered);
}

static inline void reply_wait(struct reply *reply) {
    for (uint32_t seen = gate_look(&rig_answered); !atomic_load(&reply->done);
         seen = gate_look(&rig_answered))
        gate_wait(&rig_answered, seen, -1);
}

static inline struct proto_piece rig_piece(uint32_t shard, uint32_t offset, uint32_t count,
                                           uint64_t version) {
    return (struct proto_piece){shard, offset, count, RIG_EPOCH, version};
}

static inline size_t rig_floats(const struct rig *rig, uint32_t shard) {
    size_t rest = rig->n - (size_t)shard * PROTO_SHARD_FLOATS;
    return rest < PROTO_SHARD_FLOATS ? rest : PROTO_SHARD_FLOATS;
}

static inline struct proto_piece rig_shard(const struct rig *rig, uint32_t shard,
                                           uint64_t version) {
    return rig_piece(shard, 0, (uint32_t)rig_floats(rig, shard), version);
}

static inline size_t rig_place(const struct proto_piece *piece) {
    return (size_t)piece->shard * PROTO_SHARD_FLOATS + piece->offset;
}

// The floats of the pieces, taken from an array over the whole space. NULL: none.
static inline struct buffer *rig_payload(struct rig *rig, const struct proto_piece *pieces,
                                         uint32_t count, const float *from) {
    size_t floats = 0;
    for (uint32_t i = 0; i < count; i++)
        floats += pieces[i].count;
    struct buffer *buffer = from ? pool_take(&rig->pool, floats * sizeof(float)) : NULL;
    float *to = buffer ? buffer->data : NULL;
    for (uint32_t i = 0; i < count && to; to += pieces[i++].count)
        memcpy(to, from + rig_place(&pieces[i]), pieces[i].count * sizeof(float));
    return buffer;
}

struct shove { // a push, with what tests seldom say left 0
    uint64_t session, sequence;
    enum proto_update kind;
    uint32_t samples;
    double rate;
};

// `from` is an array over the whole space; NULL: no payload.
static inline void rig_push_begin(struct rig *rig, struct shove s, const struct proto_piece *pieces,
                                  uint32_t count, const float *from, struct reply *reply) {
    struct proto_push push = {s.session, s.sequence, (uint16_t)s.kind,
                              s.samples, s.rate,     {pieces, count}};
    struct buffer *payload = rig_payload(rig, pieces, count, from);
    *reply = (struct reply){0};
    ps_push(rig->ps, &push, payload, reply_take, reply);
    buffer_drop(payload);
}

// Waits until so many parts of pushes are agreed on and wait in their shards.
static inline void rig_wait_queued(struct rig *rig, uint64_t count) {
    struct ps_figures figures = {0};
    while (figures.queued != count) {
        sched_yield();
        ps_figures(rig->ps, &figures);
    }
}

static inline enum proto_refusal rig_push(struct rig *rig, struct shove s,
                                          const struct proto_piece *pieces, uint32_t count,
                                          const float *from, struct reply *reply) {
    rig_push_begin(rig, s, pieces, count, from, reply);
    reply_wait(reply);
    return reply->code;
}

static inline void rig_store_begin(struct rig *rig, enum proto_quantity quantity, uint64_t version,
                                   const float *from, struct reply *reply) {
    struct proto_piece pieces[RIG_SHARDS];
    *reply = (struct reply){0};
    for (uint32_t i = 0; i < RIG_SHARDS; i++)
        pieces[i] = rig_shard(rig, i, version);
    struct proto_store store = {(uint16_t)quantity, {pieces, RIG_SHARDS}};
    struct buffer *payload = rig_payload(rig, pieces, RIG_SHARDS, from);
    ps_store(rig->ps, &store, payload, reply_take, reply);
    buffer_drop(payload);
}

static inline enum proto_refusal rig_store(struct rig *rig, enum proto_quantity quantity,
                                           uint64_t version, const float *from) {
    struct reply reply;
    rig_store_begin(rig, quantity, version, from, &reply);
    reply_wait(&reply);
    return reply.code;
}

static inline void rig_pull_begin(struct rig *rig, uint64_t session, enum proto_quantity quantity,
                                  uint64_t least, const struct proto_piece *pieces, uint32_t count,
                                  struct reply *reply) {
    struct proto_pull pull = {session, (uint16_t)quantity, least, {pieces, count}};
    *reply = (struct reply){0};
    ps_pull(rig->ps, &pull, reply_take, reply);
}

HOGWILD static void rig_copy(float *to, const float *from, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

// All weights, or all state, as they are now; and the versions.
static inline enum proto_refusal rig_read(struct rig *rig, enum proto_quantity quantity,
                                          float *into, uint64_t versions[RIG_SHARDS]) {
    struct proto_piece pieces[RIG_SHARDS];
    struct reply reply;
    for (uint32_t i = 0; i < RIG_SHARDS; i++)
        pieces[i] = rig_shard(rig, i, 0);
    rig_pull_begin(rig, 0, quantity, 0, pieces, RIG_SHARDS, &reply);
    reply_wait(&reply);
    for (uint32_t i = 0; i < reply.parts; i++) {
        rig_copy(into, reply.part[i].at, reply.part[i].size / sizeof(float));
        into += reply.part[i].size / sizeof(float);
        if (versions)
            versions[i] = reply.versions[i];
    }
    return reply.code;
}

// A bucket of which one server has the only copy.
static inline struct proto_place rig_bucket(uint32_t bucket, uint64_t epoch, uint32_t member) {
    return (struct proto_place){.bucket = bucket,
                                .epoch = epoch,
                                .primary = member,
                                .second = PROTO_NOBODY,
                                .third = PROTO_NOBODY,
                                .joiner = PROTO_NOBODY};
}

static inline void rig_route(struct rig *rig, uint64_t epoch, uint32_t member) {
    struct proto_place places[RIG_BUCKETS];
    for (uint32_t i = 0; i < RIG_BUCKETS; i++)
        places[i] = rig_bucket(i, epoch, member);
    ps_route(rig->ps, places, RIG_BUCKETS, RIG_MEMBER);
}

static inline void rig_count_applied(void *self, uint32_t shard) {
    struct rig *rig = self;
    atomic_fetch_add(&rig->applied[shard], 1);
}

// Holds all shards, with sessions 1..workers; no weights yet. The model, the kernels and the copies
// are the rig's own.
static inline bool rig_open_options(struct rig *rig, struct tap *tap, struct ps_options options,
                                    int workers) {
    struct error err = {0};
    uint64_t sessions[64];
    memset(rig, 0, sizeof *rig);
    rig->pool.limit = 1u << 30;
    if (model_parse(&rig->model, "rig.net", rig_text, NULL, 0, &err) != STATUS_OK) {
        FAIL(tap, "%s", err.text);
        return false;
    }
    rig->n = rig->model->parameter_count;
    options.model = rig->model;
    options.kernels = kernels_best();
    options.copies = (struct ps_copies){rig, rig_count_applied};
    if (ps_open(&rig->ps, &options, &err) != STATUS_OK) {
        FAIL(tap, "%s", err.text);
        return false;
    }
    for (int i = 0; i < workers; i++)
        sessions[i] = (uint64_t)i + 1;
    rig_route(rig, RIG_EPOCH, RIG_MEMBER);
    return ps_members(rig->ps, sessions, NULL, (size_t)workers, &err) == STATUS_OK;
}

static inline bool rig_open_empty(struct rig *rig, struct tap *tap, struct optimizer optimizer,
                                  struct protocol protocol, int workers, int threads) {
    const struct ps_options options = {
        .optimizer = optimizer, .since = 1, .protocol = protocol, .threads = threads};
    return rig_open_options(rig, tap, options, workers);
}

static inline bool rig_open(struct rig *rig, struct tap *tap, struct optimizer optimizer,
                            struct protocol protocol, int workers, int threads,
                            const float *weights) {
    bool open = rig_open_empty(rig, tap, optimizer, protocol, workers, threads);
    if (open)
        CHECK_INT(tap, rig_store(rig, PROTO_QUANTITY_WEIGHT, 1, weights), PROTO_REFUSAL_NONE);
    return open;
}

static inline void rig_close(struct rig *rig) {
    ps_close(rig->ps);
    model_free(rig->model);
    pool_free(&rig->pool);
}

#endif
