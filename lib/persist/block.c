// All numbers are little-endian. The layouts stand in adam-store(5), which another hand
// (tests/helper/store_file.py) reads and writes.
#include <string.h>

#include "persist/crc32c.h"
#include "persist/persist_internal.h"

enum { // where fields are in a block
    AT_MAGIC = 0,
    AT_CRC = 8,
    AT_KIND = 12,
    AT_RUN = 16,
    AT_SERVER = 32,
    AT_LOG = 96,
    AT_GROUP = 104,
    AT_SHARD = 112,
    AT_BUCKET = 116,
    AT_EPOCH = 120,
    AT_VERSION = 128,
    AT_FLOATS = 136,
    AT_STATE = 140,
    AT_PUSHES = 144,
    AT_PAYLOAD_CRC = 148,
    AT_LISTED_COUNT = 152,
    AT_LISTED = 256,
};

_Static_assert(AT_LISTED + LISTED_MOST * 8 <= PERSIST_BLOCK, "a commit record is one block");

static const char magic[8] = "adamlog1"; // the digit is the version of the format

// --- numbers ----------------------------------------------------------------------------

static void put_u32(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void put_u64(uint8_t *at, uint64_t value) {
    put_u32(at, (uint32_t)value);
    put_u32(at + 4, (uint32_t)(value >> 32));
}

static uint32_t get_u32(const uint8_t *at) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value |= (uint32_t)at[i] << 8 * i;
    return value;
}

static uint64_t get_u64(const uint8_t *at) {
    return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

void push_encode(const struct persist_push *push, uint8_t bytes[PUSH_BYTES]) {
    put_u64(bytes, push->session);
    put_u64(bytes + 8, push->high);
    put_u64(bytes + 16, push->applied);
}

struct persist_push push_decode(const uint8_t bytes[PUSH_BYTES]) {
    return (struct persist_push){get_u64(bytes), get_u64(bytes + 8), get_u64(bytes + 16)};
}

// --- blocks -----------------------------------------------------------------------------

static uint32_t crc_of(const uint8_t bytes[PERSIST_BLOCK]) {
    return crc32c_of(0, bytes + AT_KIND, PERSIST_BLOCK - AT_KIND);
}

void block_encode(const struct block *block, uint8_t bytes[PERSIST_BLOCK]) {
    memset(bytes, 0, PERSIST_BLOCK);
    memcpy(bytes + AT_MAGIC, magic, sizeof magic);
    put_u32(bytes + AT_KIND, block->kind);
    memcpy(bytes + AT_RUN, block->owner.run, sizeof block->owner.run);
    memcpy(bytes + AT_SERVER, block->owner.server, PERSIST_SERVER_MAX);
    put_u64(bytes + AT_LOG, block->log);
    put_u64(bytes + AT_GROUP, block->group);
    put_u32(bytes + AT_SHARD, block->shard);
    put_u32(bytes + AT_BUCKET, block->bucket);
    put_u64(bytes + AT_EPOCH, block->epoch);
    put_u64(bytes + AT_VERSION, block->version);
    put_u32(bytes + AT_FLOATS, block->floats);
    put_u32(bytes + AT_STATE, block->state_floats);
    put_u32(bytes + AT_PUSHES, block->push_count);
    put_u32(bytes + AT_PAYLOAD_CRC, block->payload_crc);
    put_u32(bytes + AT_LISTED_COUNT, block->listed_count);
    for (uint32_t i = 0; i < block->listed_count; i++) {
        put_u32(bytes + AT_LISTED + 8 * i, block->listed[i].shard);
        put_u32(bytes + AT_LISTED + 8 * i + 4, block->listed[i].blocks);
    }
    put_u32(bytes + AT_CRC, crc_of(bytes));
}

// As many floats for each state as there are weights.
static bool has_whole_states(const struct block *block) {
    return block->floats ? block->state_floats % block->floats == 0 &&
                               block->state_floats / block->floats <= PERSIST_STATES
                         : block->state_floats == 0;
}

static bool is_plausible(const struct block *block) {
    bool shard = block->kind == BLOCK_SHARD;
    return block->kind < BLOCK_KINDS && block->floats <= PERSIST_FLOATS_MAX &&
           block->push_count <= PERSIST_PUSHES_MAX && has_whole_states(block) &&
           (block->kind == BLOCK_SEGMENT || block->group <= block->log) &&
           (shard || (!block->floats && !block->push_count)) &&
           block->listed_count <= LISTED_MOST &&
           (block->kind != BLOCK_COMMIT || block->listed_count == block->log - block->group);
}

static void decode_list(struct block *block, const uint8_t bytes[PERSIST_BLOCK]) {
    for (uint32_t i = 0; i < block->listed_count; i++)
        block->listed[i] = (struct listed){get_u32(bytes + AT_LISTED + 8 * i),
                                           get_u32(bytes + AT_LISTED + 8 * i + 4)};
}

bool block_decode(struct block *block, const uint8_t bytes[PERSIST_BLOCK]) {
    if (memcmp(bytes, magic, sizeof magic) != 0 || get_u32(bytes + AT_CRC) != crc_of(bytes))
        return false;
    *block = (struct block){
        .kind = get_u32(bytes + AT_KIND),
        .log = get_u64(bytes + AT_LOG),
        .group = get_u64(bytes + AT_GROUP),
        .shard = get_u32(bytes + AT_SHARD),
        .bucket = get_u32(bytes + AT_BUCKET),
        .epoch = get_u64(bytes + AT_EPOCH),
        .version = get_u64(bytes + AT_VERSION),
        .floats = get_u32(bytes + AT_FLOATS),
        .state_floats = get_u32(bytes + AT_STATE),
        .push_count = get_u32(bytes + AT_PUSHES),
        .payload_crc = get_u32(bytes + AT_PAYLOAD_CRC),
        .listed_count = get_u32(bytes + AT_LISTED_COUNT),
    };
    memcpy(block->owner.run, bytes + AT_RUN, sizeof block->owner.run);
    memcpy(block->owner.server, bytes + AT_SERVER, PERSIST_SERVER_MAX);
    if (!is_plausible(block))
        return false;
    decode_list(block, bytes);
    return true;
}

bool block_is_newer(const uint8_t bytes[PERSIST_BLOCK]) {
    size_t name = sizeof magic - 1;
    return memcmp(bytes, magic, name) == 0 && bytes[name] > (uint8_t)magic[name] &&
           get_u32(bytes + AT_CRC) == crc_of(bytes);
}

uint64_t block_payload(const struct block *block) {
    return ((uint64_t)block->floats + block->state_floats) * sizeof(float) +
           (uint64_t)block->push_count * PUSH_BYTES;
}

uint64_t block_size(const struct block *block) {
    uint64_t payload = block_payload(block);
    return PERSIST_BLOCK + (payload + PERSIST_BLOCK - 1) / PERSIST_BLOCK * PERSIST_BLOCK;
}

bool owner_same(const struct persist_owner *a, const struct persist_owner *b) {
    return memcmp(a->run, b->run, sizeof a->run) == 0 && strcmp(a->server, b->server) == 0;
}
