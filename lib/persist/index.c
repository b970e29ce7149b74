// A sorted array: shards come in ascending order mostly, and are looked up by halving.
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "persist/persist_internal.h"

// Where the shard's entry is, or would be.
static size_t place_of(const struct index *index, uint32_t shard) {
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->entries[middle].shard < shard)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct persist_entry *index_find(const struct index *index, uint32_t shard) {
    size_t at = place_of(index, shard);
    return at < index->count && index->entries[at].shard == shard ? &index->entries[at] : NULL;
}

static bool index_grow(struct index *index) {
    if (index->count < index->room)
        return true;
    size_t room = index->room ? 2 * index->room : 64;
    struct persist_entry *entries = mem_resize(index->entries, room, sizeof *entries);
    if (!entries)
        return false;
    index->entries = entries;
    index->room = room;
    return true;
}

bool index_put(struct index *index, const struct persist_entry *entry) {
    struct persist_entry *there = index_find(index, entry->shard);
    if (there) {
        if (entry->log >= there->log)
            *there = *entry;
        return true;
    }
    if (!index_grow(index))
        return false;
    size_t at = place_of(index, entry->shard);
    memmove(&index->entries[at + 1], &index->entries[at],
            (index->count - at) * sizeof *index->entries);
    index->entries[at] = *entry;
    index->count++;
    return true;
}

void index_free(struct index *index) {
    free(index->entries);
    *index = (struct index){0};
}
