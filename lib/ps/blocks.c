#include "ps/blocks.h"

#include "proto/proto.h"

static uint64_t first_bits(uint32_t count) {
    return count < PROTO_SHARD_BLOCKS ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

uint64_t blocks_touched(uint32_t offset, uint32_t count) {
    uint32_t first = offset / PROTO_BLOCK_FLOATS, last = (offset + count - 1) / PROTO_BLOCK_FLOATS;
    return first_bits(last + 1) & ~first_bits(first);
}

uint64_t blocks_of(size_t floats) {
    return first_bits((uint32_t)((floats + PROTO_BLOCK_FLOATS - 1) / PROTO_BLOCK_FLOATS));
}

struct blocks_run blocks_next(uint64_t *blocks, size_t floats) {
    uint32_t first = (uint32_t)__builtin_ctzll(*blocks), last = first;
    while (last < PROTO_SHARD_BLOCKS && *blocks >> last & 1)
        last++;
    *blocks &= ~first_bits(last);
    size_t end = (size_t)last * PROTO_BLOCK_FLOATS;
    return (struct blocks_run){(size_t)first * PROTO_BLOCK_FLOATS, end < floats ? end : floats};
}

size_t blocks_floats(uint64_t blocks, size_t floats) {
    size_t sum = 0;
    blocks &= blocks_of(floats);
    while (blocks) {
        struct blocks_run run = blocks_next(&blocks, floats);
        sum += run.end - run.begin;
    }
    return sum;
}
