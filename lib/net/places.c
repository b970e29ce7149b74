#include "net/places.h"

static size_t of_origin(const struct place *places, size_t count, uint64_t origin) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += places[i].origin == origin;
    return n;
}

// The newcomer counts for its own address, which can only give up what it has.
static uint64_t most_frequent(const struct place *places, size_t count, uint64_t origin) {
    uint64_t found = origin;
    size_t own = of_origin(places, count, origin), most = own ? own + 1 : 0;
    for (size_t i = 0; i < count; i++) {
        size_t n = places[i].origin == found ? most : of_origin(places, count, places[i].origin);
        if (n > most) {
            most = n;
            found = places[i].origin;
        }
    }
    return found;
}

size_t places_choose(const struct place *places, size_t count, uint64_t origin, uint64_t now,
                     uint64_t *wait) {
    uint64_t from = most_frequent(places, count, origin);
    size_t oldest = count;
    for (size_t i = 0; i < count; i++)
        if (places[i].origin == from && (oldest == count || places[i].since < places[oldest].since))
            oldest = i;
    *wait = PLACES_STAY;
    if (oldest == count)
        return count;
    uint64_t stayed = now - places[oldest].since;
    if (stayed >= PLACES_STAY)
        return oldest;
    *wait = PLACES_STAY - stayed;
    return count;
}
