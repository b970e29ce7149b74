#include "cluster/progress.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"

int progress_reserve(struct part_progress *progress, const struct cluster *next,
                     struct error *err) {
    struct progress_part *more = mem_resize(progress->parts, next->part_count + 1, sizeof *more);
    if (!more)
        return error_nomem(err);
    progress->parts = more;
    return STATUS_OK;
}

void progress_follow(struct part_progress *progress, const struct cluster *state) {
    for (; progress->count < state->part_count; progress->count++)
        progress->parts[progress->count] = (struct progress_part){0};
    progress->count = state->part_count;
    for (size_t i = 0; i < progress->count; i++)
        progress->parts[i].epoch = state->parts[i].epoch;
}

void progress_apply(const struct part_progress *progress, struct cluster *copy) {
    INVARIANT(progress->count == copy->part_count);
    for (size_t i = 0; i < progress->count; i++)
        copy->parts[i].epoch = progress->parts[i].epoch;
}

uint64_t progress_samples(const struct part_progress *progress, const struct cluster *state) {
    double sum = 0;
    INVARIANT(progress->count == state->part_count);
    for (size_t i = 0; i < progress->count; i++)
        sum += progress->parts[i].epoch * (double)state->parts[i].samples;
    return (uint64_t)llround(fmax(sum - (double)state->skipped, 0));
}

void progress_free(struct part_progress *progress) {
    free(progress->parts);
    *progress = (struct part_progress){0};
}
