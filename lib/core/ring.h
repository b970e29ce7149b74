// A queue of numbers without locks, of fixed capacity: many threads put, many take, in
// turn. Each cell carries the number of the pass for which it is empty or full, so that
// a cell is handed from who fills it to who empties it by that number alone (Dmitry
// Vyukov's bounded queue).
#ifndef ADAM_CORE_RING_H
#define ADAM_CORE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_cell {
    _Atomic size_t pass;
    uint32_t value;
};

struct ring { // {0} holds nothing and has no room
    struct ring_cell *cells;
    size_t mask;
    char apart[48]; // the ends are on cache lines of their own
    _Atomic size_t put;
    char between[56];
    _Atomic size_t taken;
};

// Room for at least so many numbers; false when memory is out.
bool ring_open(struct ring *ring, size_t capacity);
void ring_close(struct ring *ring);

// Any thread. False: as many numbers as there is room for are in it. It waits for a thread that
// is just emptying the cell that comes next.
bool ring_put(struct ring *ring, uint32_t value);
// Any thread. False: empty, or what comes next is only just being put.
bool ring_take(struct ring *ring, uint32_t *value);

#endif
