// How convolutions of blocks are cut: which taps the pixels of a result see, one axis
// at a time, and how tiles share the maps. Plain integers, for kernels and for the
// size of their scratch.
//
// The forward pass and the error gradients of inputs are the same sum over taps: at a stride
// s, error gradients fall into s phases, each a convolution at stride 1 with every s-th tap,
// in reverse.
#ifndef ADAM_KERNELS_BLOCK_CONV_PLAN_INC_H
#define ADAM_KERNELS_BLOCK_CONV_PLAN_INC_H

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
    size_t from;                    // before the first run
    size_t first, skip;             // packed taps before the first row, and after each
    size_t run_skip;                // and after each run
    size_t first_row;               // packed rows of taps before the first one
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

enum {
    CONV_PIXELS = 1024, // of a list, or one row of results if that is longer
    // Packed floats between rows of taps: without them, taps of 5x5 kernels often lie 4 KiB apart,
    // in one set of the L1 cache.
    CONV_SPACE = 16,
};

// ---- Axes.

// Taps of one phase: their number, and how many other phases have before it.
static inline int axis_taps(const struct conv_axis *axis, int phase) {
    return axis->phases == 1 ? axis->kernel
                             : (axis->kernel - phase + axis->phases - 1) / axis->phases;
}

static inline int axis_taps_before(const struct conv_axis *axis, int phase) {
    int taps = 0;
    for (int p = 0; p < phase; p++)
        taps += axis_taps(axis, p);
    return taps;
}

// Which tap of the kernel stands at place t of a phase.
static inline int axis_tap(const struct conv_axis *axis, int phase, int t) {
    return axis->turned ? phase + axis->phases * (axis_taps(axis, phase) - 1 - t) : t;
}

// The first result of a phase.
static inline int axis_first(const struct conv_axis *axis, int phase) {
    int first = (phase - axis->pad) % axis->phases;
    return first < 0 ? first + axis->phases : first;
}

static inline int axis_phase_runs(struct conv_run *runs, const struct conv_axis *axis, int phase) {
    int taps = axis_taps(axis, phase), first = axis_first(axis, phase), count = 0;
    int origin = axis->turned ? (first + axis->pad) / axis->phases - (taps - 1) : -axis->pad;
    for (int to = first; to < axis->results; to += axis->phases, origin += axis->step) {
        int tap = origin < 0 ? -origin : 0;
        int end = axis->sources - origin < taps ? axis->sources - origin : taps;
        struct conv_run run = {to, origin + tap, 1, phase, tap, end - tap};
        if (tap >= end) // nothing but padding
            run = (struct conv_run){.to = to, .count = 1, .phase = phase};
        if (count > 0 && run.tap == runs[count - 1].tap && run.taps == runs[count - 1].taps)
            runs[count - 1].count++;
        else
            runs[count++] = run;
    }
    return count;
}

// All runs of an axis, at most one for each result; gives their number.
static inline int axis_runs(struct conv_run *runs, const struct conv_axis *axis) {
    int count = 0;
    for (int phase = 0; phase < axis->phases; phase++)
        count += axis_phase_runs(runs + count, axis, phase);
    return count;
}

// The runs of an axis anew, tap by tap: those that see tap t of a phase are
// neighbours. At most one for each tap of the kernel.
static inline int axis_tap_runs(struct conv_run *taps, const struct conv_run *runs, int run_count,
                                const struct conv_axis *axis) {
    int count = 0;
    for (int phase = 0; phase < axis->phases; phase++)
        for (int t = 0; t < axis_taps(axis, phase); t++) {
            struct conv_run all = {.count = 0};
            for (const struct conv_run *run = runs; run < runs + run_count; run++) {
                if (run->phase != phase || t < run->tap || t >= run->tap + run->taps)
                    continue;
                if (all.count == 0)
                    all = (struct conv_run){run->to, run->from + t - run->tap, 0, phase, t, 1};
                all.count += run->count;
            }
            if (all.count > 0)
                taps[count++] = all;
        }
    return count;
}

// ---- Tiles, for vectors of `most` floats.

static inline int divided_up(int a, int b) {
    return (a + b - 1) / b;
}

// Size of part i of `parts` of `whole` that are as equal as can be, `done` before it.
static inline int even_part(int whole, int done, int i, int parts) {
    return divided_up(whole - done, parts - i);
}

// Vectors of maps whose packed weights share a vector: see conv_tile.inc.h.
static inline int conv_group(int lanes) {
    return lanes < 4 ? lanes : 4;
}

// FAMILY_REGISTERS of the family whose vectors have `most` floats.
static inline int vector_registers(int most) {
    return most == 8 ? 16 : 32;
}

// Vectors of maps that a tile has at most.
static inline int conv_rows_most(int lanes, int most) {
    return lanes < most ? 4 : vector_registers(most) == 32 ? 14 : 6;
}

// Packed weights of each tap for a tile of so many vectors of maps.
static inline int conv_width(int lanes, int most, int rows) {
    return lanes == most ? rows : divided_up(rows, conv_group(lanes)) * most;
}

static inline int conv_vectors(int lanes, int most, int maps) {
    return (int)(((int64_t)maps * lanes + most - 1) / most);
}

static inline int conv_tiles_of(int lanes, int most, int maps) {
    return divided_up(conv_vectors(lanes, most, maps), conv_rows_most(lanes, most));
}

// One of the tiles: its first vector of maps, how many it has, and the packed weights
// of each tap for the tiles before it.
struct conv_rows {
    int first, count;
    size_t before;
};

// Tile t of those of a group of maps, as equal as can be, larger ones first; the one
// behind the last has all of them before it.
static inline struct conv_rows conv_rows(int lanes, int most, int maps, int t) {
    int vectors = conv_vectors(lanes, most, maps), parts = conv_tiles_of(lanes, most, maps);
    int rows = vectors / parts, extra = vectors % parts, larger = t < extra ? t : extra;
    return (struct conv_rows){
        .first = t * rows + larger,
        .count = rows + (t < extra),
        .before = (size_t)larger * (size_t)conv_width(lanes, most, rows + 1) +
                  (size_t)(t - larger) * (size_t)conv_width(lanes, most, rows),
    };
}

// Packed weights of each tap for all maps of a group.
static inline size_t conv_widths(int lanes, int most, int maps) {
    return conv_rows(lanes, most, maps, conv_tiles_of(lanes, most, maps)).before;
}

#endif
