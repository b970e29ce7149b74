// What the tests of a parameter server's core ask it: pushes of gradients, deltas and factors
// to a server with some weights (ps_rig.h), and a thread that is kept busy meanwhile.
#ifndef ADAM_TESTS_PS_STAND_H
#define ADAM_TESTS_PS_STAND_H

#include "ps_rig.h"

static inline uint64_t next(uint64_t *seed) { // of a small linear generator
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static inline double unit(uint64_t *seed) { // -1..1
    return (double)next(seed) / (double)(UINT64_C(1) << 30) - 1;
}

static inline float *numbers(size_t n, uint64_t seed, double scale) {
    float *at = mem_floats(n);
    for (size_t i = 0; i < n; i++)
        at[i] = (float)(scale * unit(&seed));
    return at;
}

static const struct optimizer rules[] = {
    {.rule = RULE_SGD, .decay = 0.001f},
    {.rule = RULE_MOMENTUM, .momentum = 0.9, .decay = 0.001f},
    {.rule = RULE_ADAGRAD, .epsilon = 0.01f},
    {.rule = RULE_NESTEROV, .momentum = 0.8, .decay = 0.001f},
    {.rule = RULE_RMSPROP, .beta2 = 0.9, .epsilon = 0.01f},
    {.rule = RULE_ADAM, .momentum = 0.9, .beta2 = 0.99, .epsilon = 0.01f, .decay = 0.001f},
    {.rule = RULE_ADAMW, .momentum = 0.9, .beta2 = 0.99, .epsilon = 0.01f, .decay = 0.1f},
    {.rule = RULE_SGD, .ema = 0.3f},
    {.rule = RULE_MOMENTUM, .momentum = 0.9, .ema = 0.3f},
};
enum { RULES = sizeof rules / sizeof *rules };

static const struct protocol async = {.kind = PROTOCOL_ASYNC};

// The pieces of a layer, one a shard.
static inline uint32_t layer_pieces(const struct layer *layer, struct proto_piece *pieces,
                                    uint64_t version) {
    uint32_t count = 0;
    size_t begin = layer->weights.offset, end = layer->biases.offset + layer->biases.count;
    for (size_t n; begin < end; begin += n) {
        size_t offset = begin % PROTO_SHARD_FLOATS, room = PROTO_SHARD_FLOATS - offset;
        n = end - begin < room ? end - begin : room;
        pieces[count++] = rig_piece((uint32_t)(begin / PROTO_SHARD_FLOATS), (uint32_t)offset,
                                    (uint32_t)n, version);
    }
    return count;
}

static inline struct proto_push_factors factors_of(const struct layer *layer, struct shove s,
                                                   const struct proto_piece *pieces,
                                                   uint32_t count) {
    return (struct proto_push_factors){
        s.session,
        s.sequence,
        s.samples,
        s.rate,
        (uint32_t)layer->weights.dims[0],
        (uint32_t)layer->weights.dims[1],
        layer->weights.offset,
        layer->biases.offset,
        {pieces, count},
    };
}

static inline struct buffer *factors_payload(struct rig *rig, const struct layer *layer, int k,
                                             const float *errors, const float *inputs) {
    size_t e = (size_t)k * (size_t)layer->weights.dims[0] * sizeof(float);
    size_t x = (size_t)k * (size_t)layer->weights.dims[1] * sizeof(float);
    struct buffer *buffer = pool_take(&rig->pool, e + x);
    memcpy(buffer->data, errors, e);
    memcpy((char *)buffer->data + e, inputs, x);
    return buffer;
}

static inline void push_factors(struct rig *rig, const struct layer *layer, struct shove s,
                                const struct proto_piece *pieces, uint32_t count,
                                const float *errors, const float *inputs, struct reply *reply) {
    struct proto_push_factors push = factors_of(layer, s, pieces, count);
    struct buffer *payload = factors_payload(rig, layer, (int)s.samples, errors, inputs);
    *reply = (struct reply){0};
    ps_push_factors(rig->ps, &push, payload, reply_take, reply);
    buffer_drop(payload);
}

static inline void push_all(struct rig *rig, struct shove s, uint64_t version,
                            const float *gradient, struct reply *reply) {
    struct proto_piece pieces[RIG_SHARDS];
    for (uint32_t i = 0; i < RIG_SHARDS; i++)
        pieces[i] = rig_shard(rig, i, version);
    rig_push_begin(rig, s, pieces, RIG_SHARDS, gradient, reply);
}

// What a rig with some weights is asked, and how it ends.
struct stand {
    struct rig rig;
    float *weights, *values;
};

static inline bool stand_open_with(struct stand *stand, struct tap *tap, struct protocol protocol,
                                   int workers, int threads) {
    stand->weights = numbers(700000, 1, 0.5);
    stand->values = numbers(700000, 2, 0.1);
    return rig_open(&stand->rig, tap, rules[1], protocol, workers, threads, stand->weights);
}

static inline bool stand_open(struct stand *stand, struct tap *tap, struct protocol protocol,
                              int workers) {
    return stand_open_with(stand, tap, protocol, workers, 2);
}

static inline void stand_close(struct stand *stand) {
    rig_close(&stand->rig);
    free(stand->weights);
    free(stand->values);
}

// Whether weights and versions are as they were stored.
static inline bool stand_untouched(struct stand *stand) {
    float *now = mem_floats(stand->rig.n);
    uint64_t versions[RIG_SHARDS] = {0};
    rig_read(&stand->rig, PROTO_QUANTITY_WEIGHT, now, versions);
    bool same = memcmp(now, stand->weights, stand->rig.n * sizeof(float)) == 0;
    free(now);
    return same && versions[0] == 1 && versions[1] == 1 && versions[2] == 1;
}

static inline enum proto_refusal push_one(struct stand *stand, uint64_t session, uint64_t sequence,
                                          uint32_t shard, uint64_t version, struct reply *reply) {
    struct proto_piece piece = rig_piece(shard, 5, 1000, version);
    return rig_push(&stand->rig, (struct shove){session, sequence, PROTO_UPDATE_DELTA, 1, 0},
                    &piece, 1, stand->values, reply);
}

// An answer that keeps the thread which gives it until it may go.
struct hold {
    struct gate gate;
    _Atomic bool held, released;
};

static inline void hold_thread(void *context, const struct ps_answer *answer) {
    struct hold *hold = context;
    (void)answer;
    atomic_store(&hold->held, true);
    gate_open(&hold->gate);
    for (uint32_t seen = gate_look(&hold->gate); !atomic_load(&hold->released);
         seen = gate_look(&hold->gate))
        gate_wait(&hold->gate, seen, -1);
}

// Keeps the server's one thread busy with an answer of this shard, as soon as it comes to it.
static inline void hold_ask(struct hold *hold, struct rig *rig, uint32_t shard) {
    struct proto_piece piece = rig_piece(shard, 0, 1, 0);
    const struct proto_pull pull = {0, PROTO_QUANTITY_WEIGHT, 1, {&piece, 1}};
    *hold = (struct hold){.held = false};
    ps_pull(rig->ps, &pull, hold_thread, hold);
}

static inline void hold_await(struct hold *hold) {
    for (uint32_t seen = gate_look(&hold->gate); !atomic_load(&hold->held);
         seen = gate_look(&hold->gate))
        gate_wait(&hold->gate, seen, -1);
}

static inline void hold_begin(struct hold *hold, struct rig *rig) {
    hold_ask(hold, rig, 0);
    hold_await(hold);
}

static inline void hold_end(struct hold *hold) {
    atomic_store(&hold->released, true);
    gate_open(&hold->gate);
}

#endif
