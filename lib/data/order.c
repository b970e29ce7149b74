#include "data/order.h"

#include "core/random.h"

enum { ROUNDS = 6 };

struct order order_of(uint64_t seed, uint64_t epoch, uint32_t count) {
    unsigned bits = 1;
    while ((uint64_t)1 << (2 * bits) < count)
        bits++;
    return (struct order){hash_mix(hash_mix(seed, epoch), count), count, bits};
}

// A Feistel network of ROUNDS rounds over 2 * bits bits: a keyed one-to-one
// mapping whatever its round function is (Luby and Rackoff 1988).
static uint32_t permute_place(const struct order *order, uint32_t place) {
    uint32_t mask = ((uint32_t)1 << order->bits) - 1;
    uint32_t left = place >> order->bits, right = place & mask;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t next = left ^ ((uint32_t)hash_mix(order->key + round, right) & mask);
        left = right;
        right = next;
    }
    return left << order->bits | right;
}

// The network's domain is up to four times too large: a value outside is mapped
// again until it falls inside, which keeps the mapping one to one ("cycle
// walking", Black and Rogaway 2002).
uint32_t order_at(const struct order *order, uint32_t place) {
    do
        place = permute_place(order, place);
    while (place >= order->count);
    return place;
}
