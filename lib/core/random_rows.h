// The inner loops of core/random.h, compiled once for each family of processors.
// Inside lib/core only.
#ifndef ADAM_CORE_RANDOM_ROWS_H
#define ADAM_CORE_RANDOM_ROWS_H

#include <stddef.h>
#include <stdint.h>

enum {
    RANDOM_GROUP = 128,   // words made at once: 32 blocks of Philox, side by side
    RANDOM_NORMALS = 256, // normal numbers made at once, from as many words
};

struct random_rows {
    // The words of `groups` groups of blocks, from this counter on, whose lowest word
    // does not wrap on the way.
    void (*words)(uint32_t *words, size_t groups, const uint32_t key[2], const uint32_t counter[4]);
    // RANDOM_NORMALS normal numbers (Box and Muller).
    void (*normals)(float *normals, const uint32_t *words);
};

extern const struct random_rows random_rows_ref, random_rows_avx2;

#endif
