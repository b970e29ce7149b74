// To be preloaded (LD_PRELOAD): the clock of the wall is off by the seconds that stand in the file
// $CLOCK_JUMP now, so that it jumps when the file changes. All other clocks are as they are.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long seconds_off(void) {
    const char *path = getenv("CLOCK_JUMP");
    long seconds = 0;
    FILE *file = path ? fopen(path, "re") : NULL;
    if (file) {
        if (fscanf(file, "%ld", &seconds) != 1)
            seconds = 0;
        fclose(file);
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = (int)syscall(SYS_clock_gettime, clock, now);
    if (!status && clock == CLOCK_REALTIME)
        now->tv_sec += seconds_off();
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec wall;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &wall))
        return -1;
    *now = (struct timeval){.tv_sec = wall.tv_sec, .tv_usec = wall.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *into) {
    struct timespec wall;
    if (clock_gettime(CLOCK_REALTIME, &wall))
        return -1;
    if (into)
        *into = wall.tv_sec;
    return wall.tv_sec;
}
