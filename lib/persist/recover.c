#include <stdlib.h>

#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"
#include "persist/persist_internal.h"

// --- one segment ------------------------------------------------------------------------

// A segment that was read, and is judged when it is known where the next one begins.
struct judged {
    struct persist *persist;
    struct segment *segment;
    struct scan scan;
    uint64_t begin, end; // log numbers that were durable in it
};

// The sound commit record that lists the record; NULL: none.
static const struct block *find_commit(const struct judged *judged, uint64_t log) {
    for (size_t i = 0; i < judged->scan.commit_count; i++) {
        const struct block *commit = &judged->scan.commits[i];
        if (commit->group <= log && log < commit->log && commit->log < judged->end)
            return commit;
    }
    return NULL;
}

// Whether a group ends with this number: the next one begins behind it.
static bool is_commit(const struct judged *judged, uint64_t log) {
    bool is = log + 1 == judged->end;
    for (size_t i = 0; i < judged->scan.count && !is; i++)
        is = judged->scan.found[i].group == log + 1;
    return is;
}

// A durable record that is not there any more, but in the list of its commit record.
static bool note_lost(const struct judged *judged, const struct block *commit, uint64_t log) {
    const struct listed *listed = &commit->listed[log - commit->group];
    const struct persist_entry entry = {.shard = listed->shard,
                                        .log = log,
                                        .segment = judged->segment->number,
                                        .size = PERSIST_BLOCK,
                                        .damaged = true};
    return index_put(&judged->persist->index, &entry);
}

// The last of these numbers of whose record nothing is left that would tell the shard.
static void note_unknown(const struct judged *judged, uint64_t from, uint64_t to) {
    struct persist *persist = judged->persist;
    for (uint64_t log = to; log-- > from;)
        if (!find_commit(judged, log) && !is_commit(judged, log)) {
            persist->unknown = log > persist->unknown ? log : persist->unknown;
            return;
        }
}

// No sound record has the numbers from..to-1.
static bool note_gap(const struct judged *judged, uint64_t from, uint64_t to) {
    bool done = true;
    for (size_t i = 0; from < to && i < judged->scan.commit_count && done; i++) {
        const struct block *commit = &judged->scan.commits[i];
        uint64_t log = commit->group > from ? commit->group : from;
        for (; log < to && log < commit->log && commit->log < judged->end && done; log++)
            done = note_lost(judged, commit, log);
    }
    note_unknown(judged, from, to);
    return done;
}

static int judge(const struct judged *judged, struct error *err) {
    uint64_t log = judged->begin;
    bool done = true;
    for (size_t i = 0; i < judged->scan.count && done; i++) {
        const struct found *found = &judged->scan.found[i];
        if (found->entry.log >= judged->end)
            break;
        done = note_gap(judged, log, found->entry.log) &&
               (found->kind == BLOCK_COMMIT || index_put(&judged->persist->index, &found->entry));
        judged->segment->records += found->kind == BLOCK_COMMIT ? 0 : found->entry.size;
        log = found->entry.log + 1;
    }
    done = done && note_gap(judged, log, judged->end);
    return done ? STATUS_OK : error_nomem(err);
}

// --- the last segment -------------------------------------------------------------------

// The record's bytes, to be freed; NULL: they are not as they were written.
static int read_found(struct persist *persist, const struct found *found, uint8_t **bytes,
                      struct error *err) {
    struct block block;
    struct error why = {0};
    int status = read_record(persist, &found->entry, found->kind, &block, bytes, &why);
    if (status && status != STATUS_DATA)
        return error_set(err, status, "%s", why.text);
    return STATUS_OK;
}

static int is_sound(struct persist *persist, const struct found *found, bool *sound,
                    struct error *err) {
    uint8_t *bytes;
    int status = read_found(persist, found, &bytes, err);
    *sound = bytes != NULL;
    free(bytes);
    return status;
}

// Whether the last group of the segment is there as a whole.
static int is_complete(struct persist *persist, const struct scan *scan, bool *complete,
                       struct error *err) {
    const struct found *last = &scan->found[scan->count - 1];
    uint64_t group = last->group, records = last->entry.log - group + 1;
    int status = STATUS_OK;
    *complete = last->kind == BLOCK_COMMIT && records <= scan->count;
    for (size_t i = 0; i < records && *complete && !status; i++) {
        const struct found *found = last - i;
        *complete = found->group == group;
        if (*complete)
            status = is_sound(persist, found, complete, err);
    }
    return status;
}

static int find_end(struct judged *judged, struct error *err) {
    const struct scan *scan = &judged->scan;
    struct persist *persist = judged->persist;
    bool complete;
    judged->end = judged->begin;
    if (!scan->count)
        return STATUS_OK;
    int status = is_complete(persist, scan, &complete, err);
    const struct found *last = &scan->found[scan->count - 1];
    judged->end = complete ? last->entry.log + 1 : last->group;
    for (size_t i = 0; i < scan->count; i++)
        persist->figures.torn += scan->found[i].entry.log >= judged->end;
    return status;
}

// --- all of them ------------------------------------------------------------------------

static bool has_begin(const struct scan *scan) {
    return scan->headed || scan->count;
}

// A segment is judged when the next one that says where it begins was read.
static int read_segments(struct persist *persist, struct judged *last, struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; i < persist->segment_count && !status; i++) {
        struct judged next = {.persist = persist, .segment = &persist->segments[i]};
        status = scan_segment(&next.scan, persist, next.segment, err);
        if (status || !has_begin(&next.scan)) {
            scan_free(&next.scan);
            continue;
        }
        next.begin = next.scan.headed ? next.scan.first : next.scan.found[0].group;
        last->end = next.begin;
        if (last->segment)
            status = judge(last, err);
        scan_free(&last->scan);
        *last = next;
    }
    return status;
}

// --- what a process left behind -----------------------------------------------------------

struct again { // a segment whose sound records are written once more
    struct persist *persist;
    const char *name;
    int file;
};

// Bytes that were misread stay as they are on the disk.
static int write_record_again(const struct again *again, const struct found *found,
                              struct error *err) {
    const struct files *files = again->persist->files;
    uint8_t *bytes;
    int status = read_found(again->persist, found, &bytes, err);
    if (status || !bytes)
        return status;
    const struct files_part part = {bytes, found->entry.size};
    int why = files->write(files->self, again->file, found->entry.at, &part, 1);
    free(bytes);
    return why ? files_error(why, "write", again->name, err) : STATUS_OK;
}

static int write_again(const struct again *again, const struct judged *last, struct error *err) {
    const struct files *files = again->persist->files;
    const struct scan *scan = &last->scan;
    int why = scan->headed
                  ? write_head(again->persist, again->file, scan->first, last->segment->number)
                  : 0;
    int status = why ? files_error(why, "write", again->name, err) : STATUS_OK;
    for (size_t i = 0; i < scan->count && !status; i++)
        status = write_record_again(again, &scan->found[i], err);
    why = status ? 0 : files->sync(files->self, again->file);
    return why ? files_error(why, "sync", again->name, err) : status;
}

// What a process wrote before it was killed may still be on its way to the disk. A sync alone does
// not bring it there: after one that failed, pages that are not on the disk count as clean.
static int keep_last(struct persist *persist, const struct judged *last, struct error *err) {
    const struct files *files = persist->files;
    char name[SEGMENT_NAME_MAX];
    struct again again = {persist, name, -1};
    segment_name(last->segment->number, name);
    int why = files->open_to_write(files->self, name, &again.file);
    if (why)
        return files_error(why, "open", name, err);
    int status = write_again(&again, last, err);
    files->close(files->self, again.file);
    why = status ? 0 : files->sync_names(files->self);
    return why ? files_error(why, "sync", name, err) : status;
}

int recover(struct persist *persist, struct error *err) {
    struct judged last = {.persist = persist};
    int status = read_segments(persist, &last, err);
    if (!status && last.segment && !persist->looks)
        status = keep_last(persist, &last, err);
    if (!status && last.segment)
        status = find_end(&last, err);
    if (!status && last.segment)
        status = judge(&last, err);
    scan_free(&last.scan);
    persist->next_log = last.segment ? last.end : 1;
    for (size_t i = 0; i < persist->index.count && !status; i++) {
        struct persist_entry *entry = &persist->index.entries[i];
        INVARIANT(entry->log < persist->next_log);
        entry->damaged = entry->damaged || entry->log < persist->unknown;
    }
    return status;
}
