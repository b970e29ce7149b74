// pingpong: round trips of one cache line between two cores, a second, in turns
// (turns.h). Virtual machines may have their processors near to each other or far
// apart, and be moved in between; two threads that share weights feel it.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "seats.h"
#include "turns.h"

enum { TRIPS = 200 };

struct table {
    _Alignas(128) atomic_int turn; // whose it is
    _Alignas(128) atomic_bool over;
    int processor[2];
};

static void *answer(void *self) {
    struct table *table = self;
    seats_take(table->processor[1]);
    while (!atomic_load_explicit(&table->over, memory_order_relaxed))
        if (atomic_load_explicit(&table->turn, memory_order_acquire) == 1)
            atomic_store_explicit(&table->turn, 0, memory_order_release);
    return NULL;
}

static void play(void *self) {
    struct table *table = self;
    for (int i = 0; i < TRIPS; i++) {
        atomic_store_explicit(&table->turn, 1, memory_order_release);
        while (atomic_load_explicit(&table->turn, memory_order_acquire) != 0)
            continue;
    }
}

// The fastest of many short games: other programs cannot have been in it.
static struct rate match(void *self, double seconds) {
    struct table *table = self;
    double begin = clock_seconds(), best = 0;
    pthread_t other;
    atomic_store(&table->over, false);
    if (pthread_create(&other, NULL, answer, table))
        perror("pingpong: thread"), exit(1);
    while (clock_seconds() - begin < seconds) {
        struct rate rate = rate_of(play, table, TRIPS, 1, 0);
        best = rate.wall > best ? rate.wall : best;
    }
    atomic_store(&table->over, true);
    pthread_join(other, NULL);
    return (struct rate){best, best};
}

int main(void) {
    struct table table = {0};
    if (seats_allowed(table.processor, 2) < 2)
        return fprintf(stderr, "pingpong: needs two processors\n"), 69;
    seats_take(table.processor[0]);
    take_turns(match, &table, "round trips");
    return 0;
}
