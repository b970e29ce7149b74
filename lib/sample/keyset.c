#include "sample/keyset.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"

enum { FIRST_SLOTS = 1024, MOST_SLOTS = 1 << 25 };

static size_t slot_of(const struct keyset *set, uint64_t hash) {
    size_t mask = set->slot_count - 1, slot = hash & mask;
    while (set->slots[slot] && set->slots[slot] != hash)
        slot = (slot + 1) & mask;
    return slot;
}

static int grow_slots(struct keyset *set, struct error *err) {
    struct keyset grown = {.slot_count = set->slot_count ? 2 * set->slot_count : FIRST_SLOTS,
                           .count = set->count};
    grown.slots = mem_zeroed(grown.slot_count, sizeof *grown.slots);
    if (!grown.slots)
        return error_nomem(err);
    for (size_t i = 0; i < set->slot_count; i++)
        if (set->slots[i])
            grown.slots[slot_of(&grown, set->slots[i])] = set->slots[i];
    free(set->slots);
    *set = grown;
    return STATUS_OK;
}

// Never 0, which is an empty slot.
static uint64_t hash_of(const char *key) {
    uint64_t hash = hash_bytes(key, strlen(key));
    return hash + (hash == 0);
}

bool keyset_has(const struct keyset *set, const char *key) {
    return set->count > 0 && set->slots[slot_of(set, hash_of(key))] != 0;
}

int keyset_add(struct keyset *set, const char *key, bool *again, struct error *err) {
    uint64_t hash = hash_of(key);
    if (set->count >= set->slot_count / 2 && set->slot_count < MOST_SLOTS) {
        int status = grow_slots(set, err);
        if (status)
            return status;
    }
    size_t slot = slot_of(set, hash);
    *again = set->slots[slot] != 0;
    if (!*again && set->count < MOST_SLOTS / 2) {
        set->slots[slot] = hash;
        set->count++;
    }
    return STATUS_OK;
}

void keyset_free(struct keyset *set) {
    free(set->slots);
    *set = (struct keyset){0};
}
