// Blocks of a shard: PROTO_BLOCK_FLOATS floats each, and a bit each in a mask. What replication
// sends of a shard are the blocks that changed, packed: in ascending order, without those between.
#ifndef ADAM_PS_BLOCKS_H
#define ADAM_PS_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

// Those that floats [offset, offset + count) of the shard lie in; count > 0.
uint64_t blocks_touched(uint32_t offset, uint32_t count);
// Those that a shard of so many floats has.
uint64_t blocks_of(size_t floats);
// Floats in these blocks of a shard of so many floats.
size_t blocks_floats(uint64_t blocks, size_t floats);

// Neighbouring blocks: floats [begin, end) of the shard.
struct blocks_run {
    size_t begin, end;
};
// Takes the first run out of *blocks, which are of a shard of so many floats and not 0.
struct blocks_run blocks_next(uint64_t *blocks, size_t floats);

#endif
