// Which taps the pixels of a result see, one axis at a time. The forward pass and
// the errors of inputs are the same sum over taps: at a stride s, errors fall into
// s phases, each a convolution at stride 1 with every s-th tap, in reverse.
#ifndef ADAM_KERNELS_BLOCK_CONV_PLAN_H
#define ADAM_KERNELS_BLOCK_CONV_PLAN_H

#include <stdbool.h>
#include <stddef.h>

struct conv_axis {
    int results, sources; // coordinates there are
    int kernel, pad;
    int step;    // of sources, from one result of a phase to the next
    int phases;  // result i is of phase (i + pad) % phases
    bool turned; // taps in reverse
};

// Coordinates that see the same taps: results to, to + phases, ..., whose first tap
// sees from, from + step, ...
struct conv_run {
    int to, from, count;
    int phase, tap, taps; // taps [tap, tap + taps) of those of its phase
};

// The taps that some pixels see: rows of runs that are contiguous in the source.
struct conv_taps {
    int rows, runs;
    size_t run, run_step, row_step; // floats of the source
    size_t first, skip;             // packed taps before the first row, and after each
};

struct conv_pixel { // what its first tap sees, and where its sums go
    const float *from;
    float *to;
};

struct conv_span { // pixels that see the same taps
    struct conv_taps taps;
    int first, count; // of a list of pixels
};

#define CONV_FLOATS(type) ((sizeof(type) + sizeof(float) - 1) / sizeof(float))

enum { CONV_MAPS_SPARE = 16 }; // packed maps beyond those of a group
enum { CONV_PIXELS = 1024 };   // of a list, or one row of results if that is longer

// Taps of one phase: their number, and how many other phases have before it.
static inline int axis_taps(const struct conv_axis *axis, int phase) {
    return (axis->kernel - phase + axis->phases - 1) / axis->phases;
}

static inline int axis_taps_before(const struct conv_axis *axis, int phase) {
    int taps = 0;
    for (int p = 0; p < phase; p++)
        taps += axis_taps(axis, p);
    return taps;
}

// A run of one coordinate: the taps of its phase that fall on sources.
static inline struct conv_run axis_run(const struct conv_axis *axis, int to) {
    int phase = (to + axis->pad) % axis->phases, taps = axis_taps(axis, phase);
    int origin =
        axis->turned ? (to + axis->pad) / axis->phases - (taps - 1) : to * axis->step - axis->pad;
    int first = origin < 0 ? -origin : 0;
    int end = axis->sources - origin < taps ? axis->sources - origin : taps;
    if (first >= end)
        return (struct conv_run){.to = to, .count = 1, .phase = phase};
    return (struct conv_run){to, origin + first, 1, phase, first, end - first};
}

// All runs of an axis, at most one for each result; gives their number.
static inline int axis_runs(struct conv_run *runs, const struct conv_axis *axis) {
    int count = 0;
    for (int start = 0; start < axis->phases; start++)
        for (int to = start; to < axis->results; to += axis->phases) {
            struct conv_run run = axis_run(axis, to);
            struct conv_run *last = runs + count - 1;
            if (to > start && run.tap == last->tap && run.taps == last->taps)
                last->count++;
            else
                runs[count++] = run;
        }
    return count;
}

// Where tap k of the kernel stands: its phase and its place among the taps there.
static inline int axis_place(const struct conv_axis *axis, int k, int *phase) {
    *phase = k % axis->phases;
    return axis->turned ? axis_taps(axis, *phase) - 1 - k / axis->phases : k;
}

#endif
