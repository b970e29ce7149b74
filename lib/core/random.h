// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random
// Numbers: As Easy as 1, 2, 3", SC 2011). A stream is a pure function of what
// it is for, never of which thread asks first, so the same seed gives the same
// bytes whatever the number of threads.
#ifndef ADAM_CORE_RANDOM_H
#define ADAM_CORE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

// Small and copyable; belongs to one thread at a time.
struct random {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t block[4];
    unsigned used; // words of `block` already given out, 0..4
};

// A 64-bit hash of bytes, the same on every machine.
uint64_t hash_bytes(const void *data, size_t size);
// Mixes one more number into a hash.
uint64_t hash_mix(uint64_t hash, uint64_t value);

// The stream for (seed, a, b): for a sample, a = epoch or copy, b = hash of the
// sample's key mixed with the operation's place in the chain.
struct random random_stream(uint64_t seed, uint64_t a, uint64_t b);

uint32_t random_u32(struct random *r);
// The next n of them, several times as fast.
void random_words(struct random *r, uint32_t *words, size_t n);
// As if the next n had been taken.
void random_skip(struct random *r, uint64_t n);
// Uniform in [0, n) without bias; n > 0.
uint32_t random_below(struct random *r, uint32_t n);
// Uniform in [0, 1), 24 bits.
float random_unit(struct random *r);
// Uniform in [low, high).
float random_range(struct random *r, float low, float high);
// Normal, mean 0, deviation 1 (Box and Muller).
float random_normal(struct random *r);
// n normal numbers at once, many times as fast: those of each 256 come from 256
// words, the last ones too. The same on every processor.
void random_normals(struct random *r, float *normals, size_t n);

#endif
