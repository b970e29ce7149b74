// A store on a simulated disk, and shards whose states are functions of their versions.
#ifndef ADAM_TESTS_STORE_RIG_H
#define ADAM_TESTS_STORE_RIG_H

#include "core/error.h"
#include "persist/persist.h"
#include "sim_disk.h"
#include "tap.h"

enum {
    RIG_SEGMENT = 16 * PERSIST_BLOCK,
    RIG_FLOATS = 349, // weights, states and pushes of a record: two blocks
    RIG_PUSHES = 3,
    RIG_SHARDS = 64,
};

static const struct persist_owner rig_owner = {
    {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, "ps-0"};

struct rig_state { // of a shard
    float weights[RIG_FLOATS], state[PERSIST_STATES][RIG_FLOATS];
    struct persist_push pushes[RIG_PUSHES];
};

static inline void rig_fill(struct rig_state *state, uint32_t shard, uint64_t version) {
    for (uint32_t i = 0; i < RIG_FLOATS; i++) {
        state->weights[i] = (float)(version * 1000 + shard) + (float)i / 1024;
        state->state[0][i] = -state->weights[i];
        state->state[1][i] = state->weights[i] / 2;
        state->state[2][i] = state->weights[i] + 1;
    }
    for (uint64_t i = 0; i < RIG_PUSHES; i++)
        state->pushes[i] = (struct persist_push){i + 1, version + i, version ^ i};
}

static inline struct persist_record rig_record(struct rig_state *state, uint32_t shard,
                                               uint64_t version) {
    rig_fill(state, shard, version);
    return (struct persist_record){.shard = shard,
                                   .bucket = shard + 7,
                                   .epoch = 3 + version / 8,
                                   .version = version,
                                   .floats = RIG_FLOATS,
                                   .states = PERSIST_STATES,
                                   .weights = state->weights,
                                   .state = {state->state[0], state->state[1], state->state[2]},
                                   .pushes = state->pushes,
                                   .push_count = RIG_PUSHES};
}

// Writes these shards at these versions as one request; how many became durable.
static inline size_t rig_write(struct persist *persist, const uint32_t *shards,
                               const uint64_t *versions, size_t count, int *status,
                               struct error *err) {
    static struct rig_state states[RIG_SHARDS];
    struct persist_record records[RIG_SHARDS];
    size_t durable = 0;
    for (size_t i = 0; i < count; i++)
        records[i] = rig_record(&states[i], shards[i], versions[i]);
    *status = persist_write(persist, records, count, &durable, err);
    return durable;
}

static inline int rig_write_one(struct persist *persist, uint32_t shard, uint64_t version,
                                struct error *err) {
    int status;
    rig_write(persist, &shard, &version, 1, &status, err);
    return status;
}

// Whether the store has this whole state of the shard.
static inline bool rig_has(struct persist *persist, uint32_t shard, uint64_t version) {
    struct rig_state state;
    struct persist_copy copy;
    struct error err = {0};
    const struct persist_record wanted = rig_record(&state, shard, version);
    if (persist_read(persist, shard, &copy, &err))
        return false;
    const struct persist_record *got = &copy.record;
    bool same = got->shard == shard && got->version == version && got->epoch == wanted.epoch &&
                got->bucket == wanted.bucket && got->floats == RIG_FLOATS &&
                got->states == PERSIST_STATES && got->push_count == RIG_PUSHES &&
                !memcmp(got->weights, state.weights, sizeof state.weights) &&
                !memcmp(got->state[0], state.state[0], sizeof state.state[0]) &&
                !memcmp(got->state[1], state.state[1], sizeof state.state[1]) &&
                !memcmp(got->state[2], state.state[2], sizeof state.state[2]) &&
                !memcmp(got->pushes, state.pushes, sizeof state.pushes);
    persist_copy_free(&copy);
    return same;
}

// NULL, and said why, when it cannot be opened.
static inline struct persist *rig_open_store(struct tap *tap, struct sim_disk *disk) {
    struct persist *persist;
    struct error err = {0};
    if (persist_open(&persist, &disk->files, &rig_owner, RIG_SEGMENT, &err))
        FAIL(tap, "%s", err.text);
    return persist;
}

static inline struct persist *rig_reopen(struct tap *tap, struct sim_disk *disk,
                                         struct persist *persist) {
    persist_close(persist);
    return rig_open_store(tap, disk);
}

#endif
