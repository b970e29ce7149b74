#include "core/ring.h"

#include <sched.h>
#include <stdlib.h>

#include "core/mem.h"

bool ring_open(struct ring *ring, size_t capacity) {
    size_t size = 2;
    while (size < capacity)
        size *= 2;
    *ring = (struct ring){.cells = mem_zeroed(size, sizeof *ring->cells), .mask = size - 1};
    for (size_t i = 0; ring->cells && i < size; i++)
        atomic_init(&ring->cells[i].pass, i);
    return ring->cells != NULL;
}

void ring_close(struct ring *ring) {
    free(ring->cells);
    *ring = (struct ring){0};
}

// The cell at `end`, once it is this thread's: its pass says that it is `ready` steps
// ahead. NULL when it is behind: full, or empty.
static struct ring_cell *claim_cell(struct ring *ring, _Atomic size_t *end, size_t ready,
                                    size_t *at) {
    *at = atomic_load(end);
    for (;;) {
        struct ring_cell *cell = &ring->cells[*at & ring->mask];
        intptr_t ahead = (intptr_t)(atomic_load(&cell->pass) - (*at + ready));
        if (ahead < 0)
            return NULL;
        if (ahead > 0)
            *at = atomic_load(end);
        else if (atomic_compare_exchange_weak(end, at, *at + 1))
            return cell;
    }
}

// Its oldest number is still in the cell at `at`, and nobody has begun to take it.
static bool is_full(struct ring *ring, size_t at) {
    return atomic_load(&ring->taken) + ring->mask + 1 == at;
}

bool ring_put(struct ring *ring, uint32_t value) {
    size_t at;
    struct ring_cell *cell;
    if (!ring->cells)
        return false;
    while (!(cell = claim_cell(ring, &ring->put, 0, &at)))
        if (is_full(ring, at))
            return false;
        else // a thread has taken that number, and was stopped before it gave the cell back
            sched_yield();
    cell->value = value;
    atomic_store(&cell->pass, at + 1);
    return true;
}

bool ring_take(struct ring *ring, uint32_t *value) {
    size_t at;
    struct ring_cell *cell = ring->cells ? claim_cell(ring, &ring->taken, 1, &at) : NULL;
    if (!cell)
        return false;
    *value = cell->value;
    atomic_store(&cell->pass, at + ring->mask + 1);
    return true;
}
