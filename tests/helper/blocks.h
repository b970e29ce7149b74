// What the tests of kernels on blocks share: each kernel is held against that of
// plain samples in the reference family (which test_kernels.c holds against the
// definitions), with every number of lanes and a last block that is not full.
#ifndef ADAM_TESTS_BLOCKS_H
#define ADAM_TESTS_BLOCKS_H

#include <stdlib.h>

#include "core/mem.h"
#include "core/random.h"
#include "kernels/blocks.h"
#include "kernels/kernels.h"
#include "tap.h"

struct family {
    struct tap *tap;
    const struct kernels *k, *ref;
    struct random random;
};

static inline float *noise(struct family *f, size_t n) {
    float *x = mem_floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = random_normal(&f->random);
    return x;
}

static inline int block_count(int n, int lanes) {
    return (n + lanes - 1) / lanes;
}

static inline size_t block_size(int n, int c, int pixels, int lanes) {
    return (size_t)block_count(n, lanes) * (size_t)(lanes * c * pixels);
}

// New blocks of samples, or of none: the rest of what they hold is no number, so
// that what is not written shows.
static inline float *blocks_of(struct family *f, const float *samples, int n, int c, int pixels,
                               int lanes) {
    size_t size = block_size(n, c, pixels, lanes);
    float *blocks = mem_floats(size);
    for (size_t i = 0; i < size; i++)
        blocks[i] = NAN;
    if (samples)
        f->k->blocks->block(blocks, samples, n, c, pixels, lanes);
    return blocks;
}

// Whether blocks hold these samples, within a tolerance, and only finite values
// where there is no sample. Takes the blocks.
static inline void check_blocks(struct family *f, const char *what, float *blocks,
                                const float *wanted, int n, int c, int pixels, int lanes,
                                float tolerance) {
    size_t size = (size_t)(n * c * pixels);
    float *got = mem_floats(size);
    f->k->blocks->unblock(got, blocks, n, c, pixels, lanes);
    for (size_t i = 0; i < size; i++)
        if (!(fabsf(got[i] - wanted[i]) <= tolerance * (1 + fabsf(wanted[i])))) {
            FAIL(f->tap, "%s of %s, %d lanes, %d maps: [%zu] is %.9g, not %.9g", what, f->k->name,
                 lanes, c, i, (double)got[i], (double)wanted[i]);
            break;
        }
    if (!f->k->finite(blocks, block_size(n, c, pixels, lanes)))
        FAIL(f->tap, "%s of %s, %d lanes, %d maps: not finite everywhere", what, f->k->name, lanes,
             c);
    free(got), free(blocks);
}

// Runs a test with each number of lanes in each family that has blocks.
static inline int test_families(const char *name, void (*test)(struct family *f, int lanes)) {
    struct tap tap = {0};
    for (enum cpu_level level = CPU_REF; level <= CPU_AVX512; level++) {
        struct family f = {.tap = &tap, .k = kernels_of(level), .ref = kernels_of(CPU_REF)};
        char line[128];
        int most = f.k ? f.k->lanes : 0;
        f.random = random_stream(1, 2, 3);
        for (int lanes = 1; lanes <= most; lanes *= 2)
            test(&f, lanes);
        snprintf(line, sizeof line, "%s: %s%s", name, cpu_level_name(level),
                 most ? "" : " # skip: no blocks");
        tap_result(&tap, line);
    }
    return tap_done(&tap);
}

#endif
