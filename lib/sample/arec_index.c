#include "sample/arec_index.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "store/crc.h"

// One segment of a mapped file.
struct segment {
    const uint8_t *data;
    struct arec_tail tail;
    struct arec_labels labels;
};

struct segments {
    struct segment *items; // the last of the file first
    size_t count;
};

// The body of a whole and sound chunk of this type at `offset`.
static const uint8_t *chunk_at(const struct segment *segment, uint64_t offset, uint32_t type,
                               struct arec_chunk *chunk) {
    uint64_t length = segment->tail.length;
    if (offset > length || !arec_chunk_decode(chunk, segment->data + offset, length - offset) ||
        chunk->type != type || chunk->length > length - offset - AREC_CHUNK)
        return NULL;
    const uint8_t *body = segment->data + offset + AREC_CHUNK;
    return crc32_of(0, body, chunk->length) == chunk->crc ? body : NULL;
}

// The segment that ends at `end`, found by its tail.
static bool find_segment(struct segment *segment, const uint8_t *file, size_t end) {
    enum { WHOLE_TAIL = AREC_CHUNK + AREC_TAIL };
    struct arec_chunk chunk;
    if (end < AREC_HEADER + WHOLE_TAIL)
        return false;
    *segment = (struct segment){.data = file, .tail.length = end};
    const uint8_t *body = chunk_at(segment, end - WHOLE_TAIL, AREC_END, &chunk);
    if (!body || !arec_tail_decode(&segment->tail, body, chunk.length) ||
        segment->tail.length > end || segment->tail.length < AREC_HEADER + WHOLE_TAIL)
        return false;
    segment->data = file + end - segment->tail.length;
    return arec_header_check(segment->data, AREC_HEADER) == AREC_GOOD_HEADER;
}

static int find_segments(struct segments *segments, const uint8_t *file, size_t size, bool *found,
                         struct error *err) {
    *found = size > 0;
    for (size_t end = size; *found && end > 0;) {
        size_t n = segments->count;
        if ((n & (n - 1)) == 0) {
            struct segment *items = mem_resize(segments->items, n ? 2 * n : 1, sizeof *items);
            if (!items)
                return error_nomem(err);
            segments->items = items;
        }
        *found = find_segment(&segments->items[n], file, end);
        end -= *found ? segments->items[n].tail.length : 0;
        segments->count += *found;
    }
    return STATUS_OK;
}

static bool read_classes(struct segment *segment, struct classes *classes) {
    struct arec_chunk chunk;
    const uint8_t *body = chunk_at(segment, segment->tail.classes, AREC_CLASSES, &chunk);
    return body && !arec_classes_decode(&segment->labels, body, chunk.length, classes, NULL);
}

static bool add_entry(struct arec_index *index, const uint8_t *file, const struct segment *segment,
                      const uint8_t *bytes) {
    struct arec_entry entry;
    struct arec_position *position = &index->positions[index->count];
    arec_entry_decode(&entry, bytes);
    if (entry.offset < AREC_HEADER || entry.offset >= segment->tail.classes)
        return false;
    *position = (struct arec_position){.offset = (uint64_t)(segment->data - file) + entry.offset,
                                       .key_crc = entry.key_crc};
    index->count++;
    return !arec_label(&segment->labels, entry.label, &position->label, NULL);
}

static bool read_entries(struct arec_index *index, const uint8_t *file,
                         const struct segment *segment) {
    struct arec_chunk chunk;
    uint64_t samples = 0, at = segment->tail.index;
    while (samples < segment->tail.samples) {
        const uint8_t *body = chunk_at(segment, at, AREC_INDEX, &chunk);
        if (!body)
            return false;
        uint64_t entries = chunk.length / AREC_ENTRY;
        if (chunk.length % AREC_ENTRY || chunk.number != samples || entries == 0 ||
            entries > segment->tail.samples - samples)
            return false;
        for (uint64_t i = 0; i < entries; i++)
            if (!add_entry(index, file, segment, body + i * AREC_ENTRY))
                return false;
        samples += entries;
        at += AREC_CHUNK + chunk.length + arec_padding(chunk.length);
    }
    return true;
}

// Room for what the tails count; each sample has an entry in the file, so the
// file's size bounds it.
static int reserve_positions(struct arec_index *index, const struct segments *segments, size_t size,
                             bool *found, struct error *err) {
    uint64_t total = 0;
    for (size_t i = 0; i < segments->count; i++)
        if (segments->items[i].tail.samples > size / AREC_ENTRY ||
            (total += segments->items[i].tail.samples) > size / AREC_ENTRY || total > UINT32_MAX) {
            *found = false;
            return STATUS_OK;
        }
    index->positions = mem_array(total, sizeof *index->positions);
    return index->positions ? STATUS_OK : error_nomem(err);
}

int arec_index_read(struct arec_index *index, const uint8_t *file, size_t size,
                    struct classes *classes, bool *found, struct error *err) {
    struct segments segments = {0};
    struct classes merged = {0};
    *index = (struct arec_index){0};
    int status = classes_copy(&merged, classes, err);
    if (!status)
        status = find_segments(&segments, file, size, found, err);
    if (!status && *found)
        status = reserve_positions(index, &segments, size, found, err);
    for (size_t i = segments.count; !status && *found && i-- > 0;)
        *found = read_classes(&segments.items[i], &merged) &&
                 read_entries(index, file, &segments.items[i]);
    if (!status && *found) {
        struct classes before = *classes;
        *classes = merged;
        merged = before;
    } else {
        arec_index_free(index);
    }
    classes_free(&merged);
    for (size_t i = 0; i < segments.count; i++)
        arec_labels_free(&segments.items[i].labels);
    free(segments.items);
    return status;
}

int64_t arec_index_count(const uint8_t *file, size_t size) {
    struct segment segment;
    int64_t count = 0;
    for (size_t end = size; end > 0; end -= segment.tail.length) {
        if (!find_segment(&segment, file, end) || segment.tail.samples > size / AREC_ENTRY)
            return -1;
        count += (int64_t)segment.tail.samples;
    }
    return count;
}

void arec_index_free(struct arec_index *index) {
    free(index->positions);
    *index = (struct arec_index){0};
}

int arec_index_record(struct arec_record *record, const uint8_t *file, size_t size, uint64_t offset,
                      bool check, struct error *err) {
    struct arec_chunk chunk;
    if (offset > size || !arec_chunk_decode(&chunk, file + offset, size - offset) ||
        chunk.type != AREC_RECORD || chunk.length > size - offset - AREC_CHUNK)
        return error_set(err, STATUS_DATA, "at offset %llu: damaged: no record is here",
                         (unsigned long long)offset);
    const uint8_t *body = file + offset + AREC_CHUNK;
    if (check && crc32_of(0, body, chunk.length) != chunk.crc)
        return error_set(err, STATUS_DATA, "at offset %llu: damaged: its CRC-32 does not fit",
                         (unsigned long long)offset);
    int status = arec_record_decode(record, body, chunk.length, err);
    return status ? error_context(err, "at offset %llu", (unsigned long long)offset) : STATUS_OK;
}
