// Programs that are compared take turns: each says "ready" and something about
// itself, then answers every line SECONDS on its stdin, when it has worked for so
// long, with two numbers: things done a second, and things done a second of
// processor time, both of all its threads together. So peers of any language run
// one after the other, seconds apart, on the same machine in the same state.
#ifndef ADAM_TESTS_BENCH_TURNS_H
#define ADAM_TESTS_BENCH_TURNS_H

#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"

struct rate {
    double wall, busy; // things a second
};

// Repeats `work`, which does `count` things, for so many seconds and `least` times
// at least, in the thread that calls.
static inline struct rate rate_of(void (*work)(void *self), void *self, double count, int least,
                                  double seconds) {
    double begin = clock_seconds(), busy = clock_busy(), done = 0;
    for (int i = 0; i < least || clock_seconds() - begin < seconds; i++, done += count)
        work(self);
    return (struct rate){done / (clock_seconds() - begin), done / (clock_busy() - busy)};
}

typedef struct rate turn_work(void *self, double seconds);

// Takes turns until stdin ends. The first, unmeasured, warms up.
static inline void take_turns(turn_work *work, void *self, const char *about) {
    char line[64];
    work(self, 0.1);
    printf("ready %s\n", about);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        struct rate rate = work(self, atof(line));
        printf("%.9g %.9g\n", rate.wall, rate.busy);
        fflush(stdout);
    }
}

#endif
