// The keys that were there before, as 64-bit hashes.
#ifndef ADAM_SAMPLE_KEYSET_H
#define ADAM_SAMPLE_KEYSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

// {0} is empty. Takes 16 to 32 bytes a key and at most 256 MiB: behind some 16
// million keys it no longer remembers new ones, so that memory stays bounded.
struct keyset {
    uint64_t *slots; // 0: empty
    size_t slot_count, count;
};

// Adds a key; *again tells whether it was there.
int keyset_add(struct keyset *set, const char *key, bool *again, struct error *err);
bool keyset_has(const struct keyset *set, const char *key);
void keyset_free(struct keyset *set);

#endif
