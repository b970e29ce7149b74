#include "role/paramserver/load.h"

#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "ps/blocks.h"

uint32_t load_shards(const struct load_place *place) {
    return (uint32_t)((place->parameters + PROTO_SHARD_FLOATS - 1) / PROTO_SHARD_FLOATS);
}

static uint32_t floats_of(const struct load_place *place, uint32_t shard) {
    size_t rest = place->parameters - (size_t)shard * PROTO_SHARD_FLOATS;
    return (uint32_t)(rest < PROTO_SHARD_FLOATS ? rest : PROTO_SHARD_FLOATS);
}

// Weights and as much of each state.
static size_t bytes_of(const struct load_place *place, size_t floats) {
    return floats * sizeof(float) * (size_t)(1 + place->states);
}

void load_hold(struct replica_load *load) {
    load->references++;
}

void load_release(struct replica_load *load) {
    if (--load->references > 0)
        return;
    buffer_drop(load->buffer);
    free(load->pushes);
    free(load);
}

static struct replica_load *load_make(const struct load_place *place, uint32_t shard) {
    struct replica_load *load = mem_zeroed(1, sizeof *load);
    if (!load)
        return NULL;
    load->references = 1;
    load->floats = floats_of(place, shard);
    return load;
}

// The floats lie in the load's buffer: weights of `floats`, then each state of as many.
static void find_floats(const struct load_place *place, struct replica_load *load, size_t floats) {
    load->weights = load->buffer->data;
    load->state_count = place->states;
    for (int i = 0; i < place->states; i++)
        load->states[i] = load->weights + (size_t)(i + 1) * floats;
}

static void lend_floats(const struct replica_load *load, struct ps_snapshot *snapshot) {
    snapshot->weights = (float *)load->weights;
    for (int i = 0; i < load->state_count; i++)
        snapshot->states[i] = (float *)load->states[i];
}

// --- by the thread that has the shard ---------------------------------------------------

static void end_asking(void *context, const struct ps_answer *answer) {
    struct load_place *place = context;
    place->code = answer->code;
    atomic_store(&place->answered, true);
    gate_open(&place->asked);
}

typedef void ask_shard(struct ps *ps, struct ps_snapshot *snapshot, ps_done *done, void *context);

static enum proto_refusal ask_and_wait(struct load_place *place, ask_shard *ask,
                                       struct ps_snapshot *snapshot) {
    atomic_store(&place->answered, false);
    ask(place->ps, snapshot, end_asking, place);
    for (uint32_t seen = gate_look(&place->asked); !atomic_load(&place->answered);
         seen = gate_look(&place->asked))
        gate_wait(&place->asked, seen, -1);
    return place->code;
}

// Of blocks that change meanwhile: so there is room for all of them.
static bool read_shard(struct load_place *place, struct ps_snapshot *snapshot,
                       struct replica_load *load) {
    load->buffer = pool_take(&place->pool, bytes_of(place, load->floats));
    if (!load->buffer)
        return false;
    find_floats(place, load, load->floats);
    lend_floats(load, snapshot);
    enum proto_refusal code = ask_and_wait(place, ps_snapshot, snapshot);
    load->pushes = snapshot->pushes;
    load->push_count = snapshot->push_count;
    if (code == PROTO_REFUSAL_NONE)
        load->blocks = snapshot->blocks;
    return code == PROTO_REFUSAL_NONE || code == PROTO_REFUSAL_NOT_READY;
}

struct replica_load *load_read(struct load_place *place, uint32_t shard, uint64_t blocks,
                               struct replica_read *read) {
    struct ps_snapshot snapshot = {.shard = shard, .blocks = blocks, .changes = true};
    struct replica_load *load = load_make(place, shard);
    if (load && !read_shard(place, &snapshot, load)) {
        load_release(load);
        return NULL;
    }
    *read = (struct replica_read){.version = snapshot.version, .changed = snapshot.changed};
    return load;
}

enum proto_refusal load_install(struct load_place *place, uint32_t shard,
                                struct replica_stamp stamp, uint64_t blocks,
                                struct replica_load *load) {
    struct ps_snapshot snapshot = {
        .shard = shard,
        .blocks = stamp.version ? blocks : 0,
        .epoch = stamp.epoch,
        .version = stamp.version,
        .floats = load->floats,
        .pushes = load->pushes,
        .push_count = load->push_count,
    };
    lend_floats(load, &snapshot);
    return ask_and_wait(place, ps_install, &snapshot);
}

uint64_t load_version(struct load_place *place, uint32_t shard) {
    struct ps_snapshot snapshot = {.shard = shard};
    ask_and_wait(place, ps_snapshot, &snapshot);
    free(snapshot.pushes);
    return snapshot.version;
}

// --- messages ---------------------------------------------------------------------------

static bool take_pushes(struct replica_load *load, const struct proto_list *applied) {
    const struct proto_applied *from = applied->at;
    load->pushes = mem_array(applied->count + 1, sizeof *load->pushes);
    if (!load->pushes)
        return false;
    load->push_count = applied->count;
    for (uint32_t i = 0; i < applied->count; i++)
        load->pushes[i] = (struct push_history){from[i].session, from[i].high, from[i].bits};
    return true;
}

// Whether the payload has the blocks: none of a shard without weights.
static bool is_as_said(const struct load_place *place, const struct proto_prepare *message,
                       uint32_t shard_floats, const struct buffer *payload) {
    size_t floats = message->stamp_version ? blocks_floats(message->blocks, shard_floats) : 0;
    return (payload ? payload->size : 0) == bytes_of(place, floats) &&
           (!message->whole || message->blocks == REPLICA_ALL);
}

struct replica_load *load_take(struct load_place *place, const struct proto_prepare *message,
                               struct buffer *payload) {
    if (message->shard >= load_shards(place))
        return NULL;
    struct replica_load *load = load_make(place, message->shard);
    if (!load)
        return NULL;
    if (!is_as_said(place, message, load->floats, payload) ||
        !take_pushes(load, &message->applied)) {
        load_release(load);
        return NULL;
    }
    if (payload && payload->size) {
        buffer_hold(payload);
        load->buffer = payload;
        load->blocks = message->blocks;
        find_floats(place, load, blocks_floats(load->blocks, load->floats));
    }
    return load;
}

void load_unpack(const struct replica_load *load, float *weights, float *const states[]) {
    uint64_t blocks = load->blocks & blocks_of(load->floats);
    size_t packed = 0;
    while (blocks) {
        struct blocks_run run = blocks_next(&blocks, load->floats);
        size_t n = run.end - run.begin;
        memcpy(weights + run.begin, load->weights + packed, n * sizeof(float));
        for (int i = 0; i < load->state_count; i++)
            memcpy(states[i] + run.begin, load->states[i] + packed, n * sizeof(float));
        packed += n;
    }
}

// Where these blocks lie among packed ones: a part for each run of them.
static uint32_t add_parts(const struct replica_load *load, const float *packed, uint64_t blocks,
                          struct link_part *parts) {
    uint64_t here = load->blocks & blocks_of(load->floats);
    uint32_t n = 0;
    blocks &= here;
    while (blocks) {
        struct blocks_run run = blocks_next(&blocks, load->floats);
        uint64_t before = here & ((UINT64_C(1) << run.begin / PROTO_BLOCK_FLOATS) - 1);
        parts[n++] = (struct link_part){packed + blocks_floats(before, load->floats),
                                        (run.end - run.begin) * sizeof(float)};
    }
    return n;
}

uint32_t load_parts(const struct replica_load *load, uint64_t blocks, struct link_part *parts) {
    uint32_t n = add_parts(load, load->weights, blocks, parts);
    for (int i = 0; i < load->state_count; i++)
        n += add_parts(load, load->states[i], blocks, parts + n);
    return n;
}

struct proto_applied *load_pushes(const struct replica_load *load) {
    struct proto_applied *applied = mem_array(load->push_count + (size_t)1, sizeof *applied);
    for (uint32_t i = 0; applied && i < load->push_count; i++)
        applied[i] = (struct proto_applied){load->pushes[i].session, load->pushes[i].high,
                                            load->pushes[i].applied};
    return applied;
}
