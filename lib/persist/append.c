#include <errno.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"
#include "persist/crc32c.h"
#include "persist/persist_internal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats are written as they lie");

// --- segments ---------------------------------------------------------------------------

bool segments_add(struct persist *persist, struct segment segment) {
    if (persist->segment_count == persist->segment_room) {
        size_t room = persist->segment_room ? 2 * persist->segment_room : 16;
        struct segment *segments = mem_resize(persist->segments, room, sizeof *segments);
        if (!segments)
            return false;
        persist->segments = segments;
        persist->segment_room = room;
    }
    persist->segments[persist->segment_count++] = segment;
    return true;
}

int write_head(const struct persist *persist, int file, uint64_t first, uint64_t number) {
    uint8_t bytes[PERSIST_BLOCK];
    const struct block block = {
        .kind = BLOCK_SEGMENT, .owner = persist->owner, .log = first, .group = number};
    block_encode(&block, bytes);
    const struct files_part part = {bytes, sizeof bytes};
    return persist->files->write(persist->files->self, file, 0, &part, 1);
}

// A new segment with its first block, and its name made durable; what it holds becomes so with its
// first group.
static int make_segment(struct persist *persist, const char *name, uint64_t number,
                        struct error *err) {
    const struct files *files = persist->files;
    int file;
    int why = files->create(files->self, name, &file);
    if (why)
        return files_error(why, "create", name, err);
    why = files->allocate(files->self, file, persist->segment_size);
    if (!why)
        why = write_head(persist, file, persist->next_log, number);
    if (!why)
        why = files->sync_names(files->self);
    if (!why) {
        persist->head = file;
        persist->head_end = PERSIST_BLOCK;
        persist->figures.written += PERSIST_BLOCK;
        return STATUS_OK;
    }
    files->close(files->self, file);
    files->remove(files->self, name);
    return files_error(why, "make the segment", name, err);
}

static int begin_segment(struct persist *persist, struct error *err) {
    const struct segment segment = {.number = persist->next_number, .size = persist->segment_size};
    char name[SEGMENT_NAME_MAX];
    if (persist->head >= 0)
        persist->files->close(persist->files->self, persist->head);
    persist->head = -1;
    if (!segments_add(persist, segment))
        return error_nomem(err);
    segment_name(segment.number, name);
    int status = make_segment(persist, name, segment.number, err);
    persist->segment_count -= status != STATUS_OK;
    persist->next_number++;
    return status;
}

// After a failure the segment gets no more groups. The commit record is taken back: the system may
// go on to show what never came to the disk. One that holds no group yet is of no use.
static void give_up_head(struct persist *persist, uint64_t commit) {
    static const uint8_t nothing[PERSIST_BLOCK];
    const struct files *files = persist->files;
    const struct files_part part = {nothing, sizeof nothing};
    char name[SEGMENT_NAME_MAX];
    files->write(files->self, persist->head, commit, &part, 1);
    files->close(files->self, persist->head);
    persist->head = -1;
    if (persist->head_end > PERSIST_BLOCK)
        return;
    segment_name(persist->segments[persist->segment_count - 1].number, name);
    if (!files->remove(files->self, name))
        persist->segment_count--;
}

// --- groups -----------------------------------------------------------------------------

struct group {
    const struct item *items;
    size_t count;
    uint64_t commit; // where its commit record goes, from the group's begin
    uint8_t *tails;  // of each record: its pushes, and what fills its last block
};

static struct block block_of(const struct persist *persist, const struct item *item, uint64_t log) {
    const struct persist_record *record = &item->record;
    return (struct block){
        .kind = item->lost ? BLOCK_LOST : BLOCK_SHARD,
        .owner = persist->owner,
        .log = log,
        .group = persist->next_log,
        .shard = record->shard,
        .bucket = record->bucket,
        .epoch = record->epoch,
        .version = record->version,
        .floats = item->lost ? 0 : record->floats,
        .state_floats = item->lost ? 0 : record->states * record->floats,
        .push_count = item->lost ? 0 : record->push_count,
    };
}

static uint64_t item_size(const struct persist *persist, const struct item *item) {
    const struct block block = block_of(persist, item, 0);
    return block_size(&block);
}

// As many records as fit into `room` bytes with their commit record, and one for persist_seal.
static struct group fit_group(const struct persist *persist, const struct item *items, size_t count,
                              uint64_t room) {
    struct group group = {.items = items};
    for (; group.count < count && group.count < LISTED_MOST; group.count++) {
        uint64_t size = item_size(persist, &items[group.count]);
        if (group.commit + size + 2 * PERSIST_BLOCK > room)
            break;
        group.commit += size;
    }
    return group;
}

// The group for what is left of the head, or for a new segment.
static int place_group(struct persist *persist, struct group *group, const struct item *items,
                       size_t count, struct error *err) {
    *group = (struct group){0};
    if (persist->head >= 0)
        *group = fit_group(persist, items, count, persist->segment_size - persist->head_end);
    if (group->count)
        return STATUS_OK;
    *group = fit_group(persist, items, count, persist->segment_size - PERSIST_BLOCK);
    if (!group->count)
        return error_set(err, STATUS_DATA, "shard %u does not fit into a segment of the store",
                         items->record.shard);
    return begin_segment(persist, err);
}

static uint64_t tail_size(const struct block *block) {
    uint64_t floats = ((uint64_t)block->floats + block->state_floats) * sizeof(float);
    return block_size(block) - PERSIST_BLOCK - floats;
}

static bool make_tails(const struct persist *persist, struct group *group) {
    uint64_t size = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct block block = block_of(persist, &group->items[i], 0);
        size += tail_size(&block);
    }
    group->tails = mem_zeroed(size ? size : 1, 1);
    return group->tails != NULL;
}

static uint32_t payload_crc(const struct block *block, const struct persist_record *record,
                            const uint8_t *tail) {
    uint32_t crc = crc32c_of(0, record->weights, block->floats * sizeof(float));
    for (uint32_t i = 0; i < record->states && block->state_floats; i++)
        crc = crc32c_of(crc, record->state[i], block->floats * sizeof(float));
    return crc32c_of(crc, tail, (size_t)block->push_count * PUSH_BYTES);
}

// The record's parts at this place of the head.
static int write_item(struct persist *persist, const struct item *item, struct block *block,
                      uint8_t *tail, uint8_t *bytes, uint64_t at) {
    const struct persist_record *record = &item->record;
    for (uint32_t i = 0; i < block->push_count; i++)
        push_encode(&record->pushes[i], tail + (size_t)i * PUSH_BYTES);
    block->payload_crc = payload_crc(block, record, tail);
    block_encode(block, bytes);
    struct files_part parts[3 + PERSIST_STATES] = {
        {bytes, PERSIST_BLOCK},
        {record->weights, block->floats * sizeof(float)},
    };
    uint32_t count = 2;
    for (uint32_t i = 0; i < record->states && block->state_floats; i++)
        parts[count++] = (struct files_part){record->state[i], block->floats * sizeof(float)};
    parts[count++] = (struct files_part){tail, tail_size(block)};
    persist->figures.written += block_size(block);
    return persist->files->write(persist->files->self, persist->head, at, parts, count);
}

static int write_commit(struct persist *persist, const struct block *commit, uint64_t at) {
    uint8_t bytes[PERSIST_BLOCK];
    block_encode(commit, bytes);
    const struct files_part part = {bytes, sizeof bytes};
    persist->figures.written += PERSIST_BLOCK;
    return persist->files->write(persist->files->self, persist->head, at, &part, 1);
}

// All records of the group and its commit record, then one sync. Returns an errno.
static int write_group(struct persist *persist, const struct group *group) {
    struct block commit = {.kind = BLOCK_COMMIT,
                           .owner = persist->owner,
                           .log = persist->next_log + group->count,
                           .group = persist->next_log,
                           .listed_count = (uint32_t)group->count};
    uint8_t bytes[PERSIST_BLOCK], *tail = group->tails;
    uint64_t at = persist->head_end;
    int why = 0;
    for (size_t i = 0; i < group->count && !why; i++) {
        struct block block = block_of(persist, &group->items[i], persist->next_log + i);
        why = write_item(persist, &group->items[i], &block, tail, bytes, at);
        commit.listed[i] =
            (struct listed){block.shard, (uint32_t)(block_size(&block) / PERSIST_BLOCK)};
        tail += tail_size(&block);
        at += block_size(&block);
    }
    INVARIANT(why || at == persist->head_end + group->commit);
    if (!why)
        why = write_commit(persist, &commit, at);
    return why ? why : persist->files->sync(persist->files->self, persist->head);
}

// The group is durable: its records are the newest of their shards.
static int accept_group(struct persist *persist, const struct group *group, struct error *err) {
    uint64_t at = persist->head_end;
    bool done = true;
    for (size_t i = 0; i < group->count; i++) {
        const struct item *item = &group->items[i];
        const struct persist_entry entry = {
            .shard = item->record.shard,
            .bucket = item->record.bucket,
            .epoch = item->record.epoch,
            .version = item->record.version,
            .log = persist->next_log + i,
            .segment = persist->segments[persist->segment_count - 1].number,
            .at = at,
            .size = item_size(persist, item),
            .damaged = item->lost,
        };
        done = index_put(&persist->index, &entry) && done;
        at += entry.size;
    }
    persist->head_end = at + PERSIST_BLOCK;
    persist->segments[persist->segment_count - 1].records += group->commit;
    persist->next_log += group->count + 1;
    persist->figures.syncs++;
    return done ? STATUS_OK : error_nomem(err);
}

int append_group(struct persist *persist, const struct item *items, size_t count, size_t *taken,
                 struct error *err) {
    enum { TRIES = 2 };
    int why = EAGAIN;
    for (int i = 0; i < TRIES && why; i++) {
        struct group group;
        int status = place_group(persist, &group, items, count, err);
        if (!status && !make_tails(persist, &group))
            status = error_nomem(err);
        if (status)
            return status;
        *taken = group.count;
        why = write_group(persist, &group);
        free(group.tails);
        if (!why)
            return accept_group(persist, &group, err);
        persist->figures.failures++;
        give_up_head(persist, persist->head_end + group.commit);
    }
    return files_error(why, "write", "the store", err);
}

// A commit record of no records: it would not be there if a group before it were not durable.
int persist_seal(struct persist *persist, struct error *err) {
    const struct group nothing = {.count = 0};
    if (persist->head < 0)
        return STATUS_OK;
    INVARIANT(persist->head_end + PERSIST_BLOCK <= persist->segment_size);
    int why = write_group(persist, &nothing);
    if (!why)
        return accept_group(persist, &nothing, err);
    give_up_head(persist, persist->head_end);
    return files_error(why, "write", "the store", err);
}
