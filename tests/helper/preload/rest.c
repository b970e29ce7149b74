// To be preloaded (LD_PRELOAD): an adam-worker rests for $REST microseconds for each sample that it
// trains on, so that a run which only has to last leaves the processors to others. The loss of a
// sample is the one logarithm that its threads take.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 8 }; // for which it rests at once

static double (*log_of_libm)(double x);
static useconds_t rest;

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("REST");
    *(void **)&log_of_libm = dlsym(RTLD_NEXT, "log");
    if (text && strcmp(program_invocation_short_name, "adam-worker") == 0)
        rest = (useconds_t)atoi(text);
}

double log(double x) {
    static _Thread_local int samples;
    if (rest && ++samples % SAMPLES == 0)
        usleep(SAMPLES * rest);
    return log_of_libm(x);
}
