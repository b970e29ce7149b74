// Which taps the pixels of a result see, one axis at a time. The forward pass and
// the errors of inputs are the same sum over taps: at a stride s, errors fall into
// s phases, each a convolution at stride 1 with every s-th tap, in reverse.
#ifndef ADAM_KERNELS_BLOCK_CONV_PLAN_H
#define ADAM_KERNELS_BLOCK_CONV_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

static inline int divided_up(int a, int b) {
    return (a + b - 1) / b;
}

// Size of part i of `parts` of `whole` that are as equal as can be, the larger ones
// first, with `done` before it.
static inline int even_part(int whole, int done, int i, int parts) {
    return divided_up(whole - done, parts - i);
}

// How tiles cut the maps of a group, for vectors of `most` floats.
//
// Vectors of maps whose packed weights share a vector: see conv_tile.h.
static inline int conv_group(int lanes) {
    return lanes < 4 ? lanes : 4;
}

// Vectors of maps that a tile has at most.
static inline int conv_rows_most(int lanes, int most) {
    return lanes < most ? 4 : most == 16 ? 14 : 6;
}

// Packed weights of each tap for a tile of so many vectors of maps.
static inline int conv_width(int lanes, int most, int rows) {
    return lanes == most ? rows : divided_up(rows, conv_group(lanes)) * most;
}

static inline int conv_vectors(int lanes, int most, int maps) {
    return (int)(((int64_t)maps * lanes + most - 1) / most);
}

// Packed weights of each tap for all maps of a group.
static inline size_t conv_widths(int lanes, int most, int maps) {
    int vectors = conv_vectors(lanes, most, maps);
    int parts = divided_up(vectors, conv_rows_most(lanes, most));
    int rows = vectors / parts, larger = vectors % parts;
    return (size_t)larger * (size_t)conv_width(lanes, most, rows + 1) +
           (size_t)(parts - larger) * (size_t)conv_width(lanes, most, rows);
}

enum { CONV_PIXELS = 1024 }; // of a list, or one row of results if that is longer

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
