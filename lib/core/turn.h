// Work done by many threads, results handed on by one at a time in order: each
// piece of work has a number (0, 1, 2...), and waits until all before it are done.
#ifndef ADAM_CORE_TURN_H
#define ADAM_CORE_TURN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct turn {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t next; // whose turn it is
    bool broken;   // somebody failed: nobody gets a turn any more
};

void turn_init(struct turn *turn);
void turn_free(struct turn *turn);

// Waits for the turn of piece `number`. True: the caller is alone until turn_end.
// False: the order was broken, do nothing. Every number is asked for once.
bool turn_begin(struct turn *turn, uint64_t number);
void turn_end(struct turn *turn);

// Wakes all who wait, with false. Any thread may call, with or without its turn.
void turn_break(struct turn *turn);

#endif
