// A set of places as its ranges: ascending, disjoint, and never touching each other.
#ifndef ADAM_DEAL_RANGES_H
#define ADAM_DEAL_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
    uint32_t first, count;
};

struct ranges { // {0} is the empty set
    struct range *at;
    size_t count, room;
};

// Room for so many ranges, so that adding cannot fail; false when out of memory.
bool ranges_reserve(struct ranges *ranges, size_t room);
// Adds what is not in it yet, for which there must be room (one range more).
void ranges_add(struct ranges *ranges, struct range range);
// Takes up to `most` places from the beginning of the first range; false: there is none.
bool ranges_take(struct ranges *ranges, uint32_t most, struct range *taken);
void ranges_clear(struct ranges *ranges); // keeps its memory
void ranges_free(struct ranges *ranges);

uint64_t ranges_places(const struct ranges *ranges);

#endif
