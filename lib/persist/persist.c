#include "persist/persist.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"
#include "persist/persist_internal.h"

// --- open, close ------------------------------------------------------------------------

struct listing {
    struct persist *persist;
    bool failed;
};

static void list_segment(void *context, const char *name) {
    struct listing *listing = context;
    struct segment segment = {0};
    if (segment_parse(name, &segment.number) && !segments_add(listing->persist, segment))
        listing->failed = true;
}

static int compare_segments(const void *a, const void *b) {
    const struct segment *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

static int measure_segment(const struct persist *persist, struct segment *segment,
                           struct error *err) {
    const struct files *files = persist->files;
    char name[SEGMENT_NAME_MAX];
    int file;
    segment_name(segment->number, name);
    int why = files->open(files->self, name, &file, &segment->size);
    if (why)
        return files_error(why, "open", name, err);
    files->close(files->self, file);
    return STATUS_OK;
}

static int list_segments(struct persist *persist, struct error *err) {
    struct listing listing = {persist, false};
    int why = persist->files->list(persist->files->self, list_segment, &listing);
    if (why)
        return files_error(why, "list", "the store", err);
    if (listing.failed)
        return error_nomem(err);
    if (persist->segment_count)
        qsort(persist->segments, persist->segment_count, sizeof *persist->segments,
              compare_segments);
    int status = STATUS_OK;
    for (size_t i = 0; i < persist->segment_count && !status; i++)
        status = measure_segment(persist, &persist->segments[i], err);
    persist->next_number =
        persist->segment_count ? persist->segments[persist->segment_count - 1].number + 1 : 1;
    return status;
}

static int open_store(struct persist **out, const struct persist *like, struct error *err) {
    struct persist *persist = mem_array(1, sizeof *persist);
    if (!persist)
        return error_nomem(err);
    *persist = *like;
    int status = list_segments(persist, err);
    if (!status)
        status = recover(persist, err);
    if (status)
        persist_close(persist);
    else
        *out = persist;
    return status;
}

int persist_open(struct persist **out, const struct files *files, const struct persist_owner *owner,
                 uint64_t segment, struct error *err) {
    const struct persist like = {
        .files = files, .owner = *owner, .segment_size = segment, .head = -1};
    INVARIANT(segment % PERSIST_BLOCK == 0 && owner->server[0]);
    *out = NULL;
    return open_store(out, &like, err);
}

int persist_look(struct persist **out, const struct files *files, struct error *err) {
    const struct persist like = {
        .files = files, .segment_size = PERSIST_SEGMENT, .looks = true, .head = -1};
    *out = NULL;
    int status = open_store(out, &like, err);
    if (!status && !(*out)->owner.server[0]) {
        persist_close(*out);
        *out = NULL;
        status = error_set(err, STATUS_NOINPUT, "no store is here");
    }
    return status;
}

void persist_close(struct persist *persist) {
    if (!persist)
        return;
    if (persist->head >= 0)
        persist->files->close(persist->files->self, persist->head);
    index_free(&persist->index);
    free(persist->segments);
    free(persist);
}

// --- the whole --------------------------------------------------------------------------

const struct persist_owner *persist_owner(const struct persist *persist) {
    return &persist->owner;
}

const struct persist_entry *persist_entries(const struct persist *persist, size_t *count) {
    *count = persist->index.count;
    return persist->index.entries;
}

const struct persist_entry *persist_find(const struct persist *persist, uint32_t shard) {
    return index_find(&persist->index, shard);
}

static void count_record(struct persist *persist, const struct persist_record *record) {
    const struct block block = {.floats = record->floats,
                                .state_floats = record->states * record->floats,
                                .push_count = record->push_count};
    persist->figures.asked += block_payload(&block);
    persist->figures.records += block_size(&block);
}

int persist_write(struct persist *persist, const struct persist_record *records, size_t count,
                  size_t *durable, struct error *err) {
    int status = STATUS_OK;
    INVARIANT(!persist->looks);
    for (*durable = 0; *durable < count && !status;) {
        struct item items[LISTED_MOST];
        size_t n = count - *durable < LISTED_MOST ? count - *durable : LISTED_MOST, taken = 0;
        for (size_t i = 0; i < n; i++)
            items[i] = (struct item){.record = records[*durable + i]};
        status = append_group(persist, items, n, &taken, err);
        for (size_t i = 0; i < taken && !status; i++)
            count_record(persist, &items[i].record);
        *durable += status ? 0 : taken;
    }
    return status;
}

void persist_figures(const struct persist *persist, struct persist_figures *figures) {
    *figures = persist->figures;
    figures->segments = persist->segment_count;
    figures->segment_bytes = segment_bytes(persist);
    figures->live_bytes = live_bytes(persist);
    figures->shards = persist->index.count;
    for (size_t i = 0; i < persist->index.count; i++)
        figures->damaged += persist->index.entries[i].damaged;
}
