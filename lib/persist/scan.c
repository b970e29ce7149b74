#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "persist/persist_internal.h"

int files_error(int why, const char *what, const char *name, struct error *err) {
    errno = why;
    return error_errno(err, STATUS_IO, "cannot %s %s", what, name);
}

// --- names ------------------------------------------------------------------------------

void segment_name(uint64_t number, char name[SEGMENT_NAME_MAX]) {
    snprintf(name, SEGMENT_NAME_MAX, "%08" PRIu64 ".log", number);
}

// The one way to write a number, so that no two names are of the same one.
bool segment_parse(const char *name, uint64_t *number) {
    char again[SEGMENT_NAME_MAX];
    char *end;
    *number = strtoull(name, &end, 10);
    segment_name(*number, again);
    return strcmp(name, again) == 0;
}

// --- what was found ---------------------------------------------------------------------

static bool add_found(struct scan *scan, const struct found *found) {
    if (scan->count == scan->room) {
        size_t room = scan->room ? 2 * scan->room : 64;
        struct found *more = mem_resize(scan->found, room, sizeof *more);
        if (!more)
            return false;
        scan->found = more;
        scan->room = room;
    }
    scan->found[scan->count++] = *found;
    return true;
}

static bool add_commit(struct scan *scan, const struct block *block) {
    if (block->kind != BLOCK_COMMIT)
        return true;
    if (scan->commit_count == scan->commit_room) {
        size_t room = scan->commit_room ? 2 * scan->commit_room : 16;
        struct block *more = mem_resize(scan->commits, room, sizeof *more);
        if (!more)
            return false;
        scan->commits = more;
        scan->commit_room = room;
    }
    scan->commits[scan->commit_count++] = *block;
    return true;
}

void scan_free(struct scan *scan) {
    free(scan->found);
    free(scan->commits);
    *scan = (struct scan){0};
}

// --- reading ----------------------------------------------------------------------------

enum { AHEAD = 64 * PERSIST_BLOCK }; // read at once where every block is looked at

struct reading { // of a segment
    struct persist *persist;
    const struct segment *segment;
    const char *name;
    int file;
    uint8_t *bytes;    // AHEAD of them
    uint64_t at, size; // those of the file that they are
};

static int read_bytes(struct reading *reading, uint64_t at, size_t size, struct error *err) {
    const struct files *files = reading->persist->files;
    size_t got;
    int why = files->read(files->self, reading->file, at, reading->bytes, size, &got);
    if (why)
        return files_error(why, "read", reading->name, err);
    memset(reading->bytes + got, 0, size - got);
    reading->at = at;
    reading->size = size;
    return STATUS_OK;
}

// One block, as most are payload that is hopped over; more where the one before was none.
static int read_block(struct reading *reading, uint64_t at, const uint8_t **bytes,
                      struct error *err) {
    int status = STATUS_OK;
    uint64_t end = reading->at + reading->size;
    if (at < reading->at || at >= end)
        status = read_bytes(reading, at, at == end ? AHEAD : PERSIST_BLOCK, err);
    *bytes = reading->bytes + (at - reading->at);
    return status;
}

// A store that is only looked at is whose its first sound block says.
static bool is_ours(struct persist *persist, const struct block *block) {
    if (persist->looks && !persist->owner.server[0])
        persist->owner = block->owner;
    return owner_same(&persist->owner, &block->owner);
}

static int read_head(struct reading *reading, struct scan *scan, struct error *err) {
    const uint8_t *bytes;
    struct block block;
    int status = read_block(reading, 0, &bytes, err);
    if (status)
        return status;
    if (block_is_newer(bytes))
        return error_set(err, STATUS_DATA, "%s: written by a later version of adam", reading->name);
    if (!block_decode(&block, bytes) || block.kind != BLOCK_SEGMENT)
        return STATUS_OK;
    if (!is_ours(reading->persist, &block))
        return error_set(err, STATUS_DATA,
                         "%s is of %s server, '%s': give each server of each run a store of "
                         "its own",
                         reading->name,
                         strcmp(block.owner.server, reading->persist->owner.server)
                             ? "another"
                             : "another run's",
                         block.owner.server);
    scan->headed = block.group == reading->segment->number;
    scan->first = block.log;
    return STATUS_OK;
}

static struct found found_of(const struct block *block, const struct segment *segment,
                             uint64_t at) {
    return (struct found){
        .entry = {.shard = block->shard,
                  .bucket = block->bucket,
                  .epoch = block->epoch,
                  .version = block->version,
                  .log = block->log,
                  .segment = segment->number,
                  .at = at,
                  .size = block_size(block),
                  .damaged = block->kind == BLOCK_LOST},
        .kind = block->kind,
        .group = block->group,
    };
}

// Log numbers grow within a segment: what looks like a record and has another one is a piece of a
// damaged record's payload.
static bool is_record(const struct reading *reading, const struct scan *scan,
                      const struct block *block, uint64_t at) {
    uint64_t least = scan->count    ? scan->found[scan->count - 1].entry.log + 1
                     : scan->headed ? scan->first
                                    : 1;
    return block->kind != BLOCK_SEGMENT && block->group > 0 && block->log >= least &&
           block->log < UINT64_MAX && at + block_size(block) <= reading->segment->size &&
           is_ours(reading->persist, block);
}

static int read_records(struct reading *reading, struct scan *scan, struct error *err) {
    const uint8_t *bytes;
    struct block block;
    for (uint64_t at = PERSIST_BLOCK; at + PERSIST_BLOCK <= reading->segment->size;) {
        int status = read_block(reading, at, &bytes, err);
        if (status)
            return status;
        if (!block_decode(&block, bytes) || !is_record(reading, scan, &block, at)) {
            at += PERSIST_BLOCK;
            continue;
        }
        const struct found found = found_of(&block, reading->segment, at);
        if (!add_found(scan, &found) || !add_commit(scan, &block))
            return error_nomem(err);
        at += found.entry.size;
    }
    return STATUS_OK;
}

static int read_segment(struct reading *reading, struct scan *scan, struct error *err) {
    const struct files *files = reading->persist->files;
    uint64_t size;
    int why = files->open(files->self, reading->name, &reading->file, &size);
    if (why)
        return files_error(why, "open", reading->name, err);
    int status = read_head(reading, scan, err);
    if (!status)
        status = read_records(reading, scan, err);
    files->close(files->self, reading->file);
    return status;
}

int scan_segment(struct scan *scan, struct persist *persist, const struct segment *segment,
                 struct error *err) {
    char name[SEGMENT_NAME_MAX];
    struct reading reading = {
        .persist = persist, .segment = segment, .name = name, .bytes = mem_array(AHEAD, 1)};
    *scan = (struct scan){0};
    segment_name(segment->number, name);
    int status = reading.bytes ? read_segment(&reading, scan, err) : error_nomem(err);
    free(reading.bytes);
    return status;
}
