#include "prep/shuffle.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "prep/park.h"
#include "sample/packed.h"

// Stands in front of every packed sample, in memory and in the file.
struct sort_key {
    uint64_t order, number; // sorted by both: number is the order of putting
    int64_t part;
};

struct sort_item {
    struct sort_key key;
    uint8_t *data; // the key, then the packed sample
    size_t size;
};

// A sorted run in the file, and its next item.
struct sorted_run {
    struct park_reader reader;
    uint64_t from, to;
    struct sort_key key;
};

struct shuffle {
    uint64_t memory, used;
    struct sort_item *items;
    size_t count, capacity, taken;
    uint64_t number;
    struct park *park; // when something was spilled
    struct sorted_run *runs;
    size_t run_count, run_capacity;
    size_t *heap; // runs with items left, the first item's run at [0]
    size_t heap_count;
    bool taking;
};

int shuffle_open(struct shuffle **out, uint64_t memory, struct error *err) {
    *out = mem_zeroed(1, sizeof **out);
    if (!*out)
        return error_nomem(err);
    (*out)->memory = memory;
    return STATUS_OK;
}

void shuffle_close(struct shuffle *shuffle) {
    if (!shuffle)
        return;
    for (size_t i = shuffle->taken; i < shuffle->count; i++)
        free(shuffle->items[i].data);
    for (size_t i = 0; i < shuffle->run_count; i++)
        park_reader_free(&shuffle->runs[i].reader);
    park_close(shuffle->park);
    free(shuffle->items);
    free(shuffle->runs);
    free(shuffle->heap);
    free(shuffle);
}

uint64_t shuffle_spilled(const struct shuffle *shuffle) {
    return shuffle->park ? park_end(shuffle->park) : 0;
}

static int compare_keys(const struct sort_key *a, const struct sort_key *b) {
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int compare_items(const void *a, const void *b) {
    return compare_keys(&((const struct sort_item *)a)->key, &((const struct sort_item *)b)->key);
}

static bool grow_array(void **array, size_t *capacity, size_t count, size_t size) {
    if (count < *capacity)
        return true;
    size_t wanted = *capacity ? *capacity * 2 : 64;
    void *grown = mem_resize(*array, wanted, size);
    if (!grown)
        return false;
    *array = grown, *capacity = wanted;
    return true;
}

// Writes what is in memory to the file as one more sorted run.
static int spill_run(struct shuffle *s, struct error *err) {
    int status = s->park ? STATUS_OK : park_open(&s->park, err);
    if (status)
        return status;
    if (!grow_array((void **)&s->runs, &s->run_capacity, s->run_count, sizeof *s->runs))
        return error_nomem(err);
    struct sorted_run run = {.from = park_end(s->park)};
    qsort(s->items, s->count, sizeof *s->items, compare_items);
    for (size_t i = 0; i < s->count && !status; i++)
        status = park_put(s->park, s->items[i].data, s->items[i].size, err);
    if (status)
        return status;
    for (size_t i = 0; i < s->count; i++)
        free(s->items[i].data);
    s->count = 0, s->used = 0;
    run.to = park_end(s->park);
    s->runs[s->run_count++] = run;
    return STATUS_OK;
}

int shuffle_put(struct shuffle *shuffle, uint64_t order, int part, const struct sample *sample,
                struct error *err) {
    struct sort_item item = {.key = {order, shuffle->number++, part}};
    item.size = sizeof item.key + packed_size(sample);
    uint64_t cost = item.size + sizeof item;
    if (shuffle->count && shuffle->used + cost > shuffle->memory) {
        int status = spill_run(shuffle, err);
        if (status)
            return status;
    }
    item.data = mem_array(item.size, 1);
    if (!item.data || !grow_array((void **)&shuffle->items, &shuffle->capacity, shuffle->count,
                                  sizeof *shuffle->items)) {
        free(item.data);
        return error_nomem(err);
    }
    memcpy(item.data, &item.key, sizeof item.key);
    packed_write(item.data + sizeof item.key, sample);
    shuffle->items[shuffle->count++] = item;
    shuffle->used += cost;
    return STATUS_OK;
}

// ---- merging ----

static bool heap_before(const struct shuffle *s, size_t a, size_t b) {
    return compare_keys(&s->runs[s->heap[a]].key, &s->runs[s->heap[b]].key) < 0;
}

static void sift_down(struct shuffle *s, size_t at) {
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < s->heap_count; child++)
            if (heap_before(s, child, least))
                least = child;
        if (least == at)
            return;
        size_t run = s->heap[at];
        s->heap[at] = s->heap[least], s->heap[least] = run;
        at = least;
    }
}

// Reads the next item of a run.
static int run_advance(struct sorted_run *run, bool *more, struct error *err) {
    int status = park_next(&run->reader, more, err);
    if (status || !*more)
        return status;
    if (run->reader.size < sizeof run->key)
        return error_set(err, STATUS_IO, "a temporary file is damaged");
    memcpy(&run->key, run->reader.piece, sizeof run->key);
    return STATUS_OK;
}

// Opens all runs; together their buffers take no more than the memory allowed,
// as far as a page each lets them.
static int start_merge(struct shuffle *s, struct error *err) {
    int status = s->count ? spill_run(s, err) : STATUS_OK;
    if (status)
        return status;
    s->heap = mem_array(s->run_count, sizeof *s->heap);
    if (!s->heap)
        return error_nomem(err);
    uint64_t share = s->memory / s->run_count;
    size_t buffer = share < 4096 ? 4096 : share > 1 << 20 ? 1 << 20 : (size_t)share;
    for (size_t i = 0; i < s->run_count; i++) {
        struct sorted_run *run = &s->runs[i];
        bool more = false;
        status = park_read(&run->reader, s->park, run->from, run->to, buffer, err);
        if (!status)
            status = run_advance(run, &more, err);
        if (status)
            return status;
        if (more)
            s->heap[s->heap_count++] = i;
    }
    for (size_t i = s->heap_count; i-- > 0;)
        sift_down(s, i);
    return STATUS_OK;
}

static int take_merged(struct shuffle *s, int *part, struct sample *sample, bool *more,
                       struct error *err) {
    *more = s->heap_count > 0;
    if (!*more)
        return STATUS_OK;
    struct sorted_run *run = &s->runs[s->heap[0]];
    *part = (int)run->key.part;
    int status = packed_read(sample, run->reader.piece + sizeof run->key,
                             run->reader.size - sizeof run->key, err);
    bool again;
    if (!status)
        status = run_advance(run, &again, err);
    if (status)
        return status;
    if (!again) {
        park_reader_free(&run->reader);
        s->heap[0] = s->heap[--s->heap_count];
    }
    sift_down(s, 0);
    return STATUS_OK;
}

static int take_from_memory(struct shuffle *s, int *part, struct sample *sample, bool *more,
                            struct error *err) {
    *more = s->taken < s->count;
    if (!*more)
        return STATUS_OK;
    struct sort_item *item = &s->items[s->taken++];
    *part = (int)item->key.part;
    int status =
        packed_read(sample, item->data + sizeof item->key, item->size - sizeof item->key, err);
    free(item->data);
    return status;
}

int shuffle_take(struct shuffle *shuffle, int *part, struct sample *sample, bool *more,
                 struct error *err) {
    if (!shuffle->taking) {
        shuffle->taking = true;
        int status = STATUS_OK;
        if (shuffle->park)
            status = start_merge(shuffle, err);
        else if (shuffle->count)
            qsort(shuffle->items, shuffle->count, sizeof *shuffle->items, compare_items);
        if (status)
            return status;
    }
    return shuffle->park ? take_merged(shuffle, part, sample, more, err)
                         : take_from_memory(shuffle, part, sample, more, err);
}
