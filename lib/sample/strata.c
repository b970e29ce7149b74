#include "sample/strata.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"

int strata_add(struct strata *strata, const char *origin, int32_t label, struct error *err) {
    if (strata->count == strata->capacity) {
        size_t capacity = strata->capacity ? 2 * strata->capacity : 1024;
        struct stratum *items = mem_resize(strata->items, capacity, sizeof *items);
        if (!items)
            return error_nomem(err);
        strata->items = items;
        strata->capacity = capacity;
    }
    strata->items[strata->count++] = (struct stratum){.key = split_key(origin), .label = label};
    return STATUS_OK;
}

static int by_label_and_key(const void *a, const void *b) {
    const struct stratum *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return x->key == y->key ? 0 : x->key < y->key ? -1 : 1;
}

// One item of each original is left, in order of labels and keys.
static void unite_copies(struct strata *strata) {
    size_t kept = 0;
    if (strata->count > 0)
        qsort(strata->items, strata->count, sizeof *strata->items, by_label_and_key);
    for (size_t i = 0; i < strata->count; i++)
        if (kept == 0 || by_label_and_key(&strata->items[kept - 1], &strata->items[i]) != 0)
            strata->items[kept++] = strata->items[i];
    strata->count = kept;
}

// An item in the draw of a part.
struct drawn {
    uint64_t place;
    struct stratum *item;
};

static int compare_drawn_places(const void *a, const void *b) {
    const struct drawn *x = a, *y = b;
    return x->place == y->place ? 0 : x->place < y->place ? -1 : 1;
}

// Of `count` items of one class that no part has yet, the first ones go to `part`.
static void assign_part(struct drawn *drawn, struct stratum *items, size_t count,
                        const struct split *split, int part) {
    size_t free_items = 0, wanted = (size_t)llround(split->parts[part].share * (double)count);
    for (size_t i = 0; i < count; i++)
        if (items[i].part == 0)
            drawn[free_items++] = (struct drawn){split_place(split, part, items[i].key), &items[i]};
    if (free_items > 0)
        qsort(drawn, free_items, sizeof *drawn, compare_drawn_places);
    for (size_t i = 0; i < wanted && i < free_items; i++)
        drawn[i].item->part = (uint32_t)part;
}

int strata_decide(struct strata *strata, const struct split *split, struct error *err) {
    unite_copies(strata);
    struct drawn *drawn = mem_array(strata->count + 1, sizeof *drawn);
    if (!drawn)
        return error_nomem(err);
    for (size_t first = 0, end; first < strata->count; first = end) {
        for (end = first; end < strata->count; end++)
            if (strata->items[end].label != strata->items[first].label)
                break;
        for (int part = 1; part < split->count; part++)
            assign_part(drawn, strata->items + first, end - first, split, part);
    }
    free(drawn);
    return STATUS_OK;
}

int strata_part(const struct strata *strata, const char *origin, int32_t label) {
    const struct stratum wanted = {.key = split_key(origin), .label = label};
    const struct stratum *found = strata->count ? bsearch(&wanted, strata->items, strata->count,
                                                          sizeof *strata->items, by_label_and_key)
                                                : NULL;
    return found ? (int)found->part : 0;
}

void strata_free(struct strata *strata) {
    free(strata->items);
    *strata = (struct strata){0};
}
