#include "deal/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

bool ranges_reserve(struct ranges *ranges, size_t room) {
    if (room <= ranges->room)
        return true;
    room = room < 2 * ranges->room ? 2 * ranges->room : room;
    struct range *at = mem_resize(ranges->at, room, sizeof *at);
    if (!at)
        return false;
    ranges->at = at;
    ranges->room = room;
    return true;
}

static uint64_t range_end(struct range range) {
    return (uint64_t)range.first + range.count;
}

// The first range that ends at or behind `place`.
static size_t find_range(const struct ranges *ranges, uint32_t place) {
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (range_end(ranges->at[middle]) < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Puts `with` in the place of ranges from..to-1.
static void replace_ranges(struct ranges *ranges, size_t from, size_t to, struct range with) {
    memmove(ranges->at + from + 1, ranges->at + to, (ranges->count - to) * sizeof *ranges->at);
    ranges->at[from] = with;
    ranges->count = ranges->count - (to - from) + 1;
}

void ranges_add(struct ranges *ranges, struct range range) {
    if (range.count == 0)
        return;
    size_t from = find_range(ranges, range.first), to = from;
    uint64_t first = range.first, end = range_end(range);
    // All that it touches becomes one.
    for (; to < ranges->count && ranges->at[to].first <= end; to++) {
        first = ranges->at[to].first < first ? ranges->at[to].first : first;
        end = range_end(ranges->at[to]) > end ? range_end(ranges->at[to]) : end;
    }
    replace_ranges(ranges, from, to, (struct range){(uint32_t)first, (uint32_t)(end - first)});
}

bool ranges_take(struct ranges *ranges, uint32_t most, struct range *taken) {
    if (ranges->count == 0 || most == 0)
        return false;
    struct range *front = &ranges->at[0];
    *taken = (struct range){front->first, front->count < most ? front->count : most};
    front->first += taken->count;
    front->count -= taken->count;
    if (front->count == 0)
        memmove(front, front + 1, --ranges->count * sizeof *front);
    return true;
}

void ranges_clear(struct ranges *ranges) {
    ranges->count = 0;
}

void ranges_free(struct ranges *ranges) {
    free(ranges->at);
    *ranges = (struct ranges){0};
}

uint64_t ranges_places(const struct ranges *ranges) {
    uint64_t places = 0;
    for (size_t i = 0; i < ranges->count; i++)
        places += ranges->at[i].count;
    return places;
}
