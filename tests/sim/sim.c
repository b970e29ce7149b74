// sim: runs schedules of a simulated cluster, each a function of its seed.
//
//   sim --seeds A..B       those; prints what did not hold, and ends with 1 at the first
//   sim --seed N [--trace] one of them, event by event
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int usage(void) {
    fputs("usage: sim --seeds A..B | --seed N [--trace]\n", stderr);
    return 2;
}

int main(int argc, char **argv) {
    uint64_t first = 0, last = 0, count = 0, events = 0, time = 0, pushes = 0;
    bool traced = argc == 4 && !strcmp(argv[3], "--trace");
    if (argc < 3 || argc > 4)
        return usage();
    if (!strcmp(argv[1], "--seed") && sscanf(argv[2], "%" SCNu64, &first) == 1)
        last = first;
    else if (strcmp(argv[1], "--seeds") != 0 ||
             sscanf(argv[2], "%" SCNu64 "..%" SCNu64, &first, &last) != 2)
        return usage();
    struct world *world = calloc(1, sizeof *world);
    if (!world)
        return 74;
    double begin = seconds();
    bool good = true;
    for (uint64_t seed = first; good && seed <= last; seed++) {
        good = world_run(world, seed, traced);
        count++;
        events += world->events;
        time += world->now;
        pushes += world->acknowledged;
        if (!good)
            printf("%s\n", world->fault);
    }
    double took = seconds() - begin;
    printf("%" PRIu64 " schedules, %" PRIu64 " events, %" PRIu64 " pushes acknowledged, "
           "%.0f s of virtual time in %.1f s\n",
           count, events, pushes, (double)time / 1e3, took);
    free(world);
    return !good;
}
