// The random order of a data set in each epoch.
//
// "We ensure that the same set of images are not skipped each epoch by
//  randomizing the image processing order for each epoch." (Adam 3.2.5)
//
// The order is a function of (seed, epoch, place): no table is shuffled, kept or
// handed from thread to thread, and a resumed run starts anywhere in it.
#ifndef ADAM_DATA_ORDER_H
#define ADAM_DATA_ORDER_H

#include <stdint.h>

struct order {
    uint64_t key;
    uint32_t count;
    unsigned bits; // of each half of a place
};

struct order order_of(uint64_t seed, uint64_t epoch, uint32_t count);

// Which sample stands at `place` (0..count-1): each exactly once.
uint32_t order_at(const struct order *order, uint32_t place);

#endif
