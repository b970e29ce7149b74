// Our records as a stream: no seek, one chunk in memory at a time. What is damaged
// is reported with its number and offset, and reading goes on behind it. How many
// samples are missing the numbers of the chunks behind the damage tell, or the
// index, or the tail.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/arec_index.h"
#include "sample/source_kind.h"
#include "store/crc.h"
#include "store/map.h"

enum { SEARCH_SIZE = 1 << 16 };

// Damage that is not reported yet, because what it costs is not known yet.
struct damage {
    bool pending;
    uint64_t offset;
    const char *what;
};

struct arec_source {
    bool inside;      // a segment, whose tail has not come yet
    uint64_t start;   // of the segment, in the stream
    uint64_t number;  // of the next sample in the segment
    uint64_t counted; // samples of the segment, as far as its index has told
    struct damage damage;
    uint64_t before; // samples of earlier segments
    uint64_t offset; // of the last sample's chunk
    struct arec_labels labels;
    char *original; // key of the original of sample `copy` of the segment; NULL: none
    uint64_t copy;
    int64_t count; // of samples in the whole file, or -1
};

static bool arec_recognise(const char *path, const uint8_t *data, size_t size) {
    (void)path;
    return arec_is_segment(data, size);
}

static int open_reader(struct source *source, struct error *err) {
    struct arec_source *reader = source->state = mem_zeroed(1, sizeof *reader);
    struct map map;
    if (!reader)
        return error_nomem(err);
    reader->count = -1;
    // A plain file has its count at the end.
    if (stream_size(source->stream) > 0 && map_open(&map, source->path, NULL) == STATUS_OK) {
        reader->count = arec_index_count(map.data, map.size);
        map_close(&map);
    }
    return STATUS_OK;
}

static int64_t arec_count(const struct source *source) {
    const struct arec_source *reader = source->state;
    return reader->count;
}

static void close_reader(struct source *source) {
    struct arec_source *reader = source->state;
    if (!reader)
        return;
    arec_labels_free(&reader->labels);
    free(reader->original);
    free(reader);
}

static void begin_segment(struct arec_source *reader, uint64_t start) {
    arec_labels_free(&reader->labels);
    reader->before += reader->number;
    reader->number = reader->counted = 0;
    reader->start = start;
    reader->inside = true;
}

// Says what was lost at `offset`, in sample->path and err: `count` samples from the
// next one on.
static int report_lost(struct source *source, struct sample *sample, uint64_t offset,
                       const char *what, uint64_t count, struct error *err) {
    struct arec_source *reader = source->state;
    unsigned long long first = reader->before + reader->number;
    char path[4096], which[64] = "", how_many[48] = "";
    if (count == 1)
        snprintf(which, sizeof which, ": record %llu", first);
    if (count > 1) {
        snprintf(which, sizeof which, ": records %llu to %llu", first, first + count - 1);
        snprintf(how_many, sizeof how_many, "; %llu samples are missing",
                 (unsigned long long)count);
    }
    snprintf(path, sizeof path, "%s%s", stream_name(source->stream), which);
    int status = sample_path(sample, path, err);
    if (status)
        return status;
    sample->missing = count;
    reader->number += count;
    return error_set(err, STATUS_SKIPPED, "at offset %llu: %s%s", (unsigned long long)offset, what,
                     how_many);
}

// Remembers what is damaged here until the next number says what that costs.
static void note_damage(struct source *source, const char *what) {
    struct arec_source *reader = source->state;
    if (!reader->damage.pending)
        reader->damage = (struct damage){true, stream_offset(source->stream), what};
}

// Reports the damage that was met on the way to sample `number`, which is the next that is
// there, or the count of all; without damage `what` is wrong here. `least` are missing.
static int report_damage(struct source *source, struct sample *sample, uint64_t number,
                         uint64_t least, const char *what, struct error *err) {
    struct arec_source *reader = source->state;
    const struct damage damage = reader->damage;
    uint64_t count = number > reader->number ? number - reader->number : 0;
    reader->damage.pending = false;
    return report_lost(source, sample,
                       damage.pending ? damage.offset : stream_offset(source->stream),
                       damage.pending ? damage.what : what, count > least ? count : least, err);
}

static int skip_bytes(struct source *source, uint64_t n, struct error *err) {
    uint64_t skipped;
    return stream_skip(source->stream, n, &skipped, err);
}

// The zeros behind a body, and nothing else: where a writer was killed among
// them, another segment may begin.
static int skip_padding(struct source *source, uint64_t length, struct error *err) {
    const uint8_t *data;
    size_t got, zeros = 0;
    int status = stream_peek(source->stream, arec_padding(length), &data, &got, err);
    if (status)
        return status;
    while (zeros < got && data[zeros] == 0)
        zeros++;
    return skip_bytes(source, zeros, err);
}

// Whether a segment or a chunk begins here. The type is looked at first,
// because it is cheaper than a CRC-32.
static bool is_header(const uint8_t *data, size_t size) {
    static const uint32_t types[] = {AREC_CLASSES, AREC_ORIGINAL, AREC_RECORD, AREC_INDEX,
                                     AREC_END};
    struct arec_chunk chunk;
    if (arec_header_check(data, size) != AREC_NO_HEADER)
        return true;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (size >= 4 && data[0] == (types[i] & 255) && data[1] == (types[i] >> 8 & 255))
            return arec_chunk_decode(&chunk, data, size) && chunk.type == types[i];
    return false;
}

// Skips to the next segment or chunk that is whole, or to the end.
static int skip_to_header(struct source *source, struct error *err) {
    const uint8_t *data;
    size_t got = 1;
    while (got > 0) {
        int status = stream_peek(source->stream, SEARCH_SIZE, &data, &got, err);
        if (status)
            return status;
        bool last = got < SEARCH_SIZE;
        size_t end = last ? got : got - AREC_CHUNK + 1, at = 0;
        while (at < end && !is_header(data + at, got - at))
            at++;
        if ((status = skip_bytes(source, at, err)))
            return status;
        if (at < end)
            break;
    }
    return STATUS_OK;
}

// Something at this place is damaged: goes on behind it.
static int skip_damage(struct source *source, uint64_t known, const char *what, struct error *err) {
    note_damage(source, what);
    int status = skip_bytes(source, known, err);
    return status ? status : skip_to_header(source, err);
}

// The end of the stream, or of a segment that another one has cut short. *done: reported.
static int end_early(struct source *source, struct sample *sample, bool *done, struct error *err) {
    struct arec_source *reader = source->state;
    *done = reader->inside || reader->damage.pending;
    if (!*done)
        return STATUS_OK;
    reader->inside = false;
    return report_damage(source, sample, reader->counted, 0,
                         "ends too early: its writer did not finish", err);
}

static int keep_original(struct arec_source *reader, const struct arec_chunk *chunk,
                         const uint8_t *body, struct error *err) {
    free(reader->original);
    reader->original = NULL;
    if (chunk->length == 0 || chunk->length > AREC_KEY_MAX || memchr(body, 0, chunk->length))
        return error_set(err, STATUS_DATA, "damaged key of an original");
    reader->original = mem_text((const char *)body, chunk->length);
    reader->copy = chunk->number;
    return reader->original ? STATUS_OK : error_nomem(err);
}

static int take_original(struct arec_source *reader, struct sample *sample, struct error *err) {
    int status = STATUS_OK;
    if (reader->original && reader->copy == reader->number)
        status = sample_original(sample, reader->original, err);
    free(reader->original);
    reader->original = NULL;
    return status;
}

static int take_pixels(struct source *source, struct sample *sample,
                       const struct arec_record *record, struct error *err) {
    int status = format_check_size((uint64_t)record->width, (uint64_t)record->height,
                                   &source->options.decode, err);
    return status ? status : arec_record_image(&sample->image, record, err);
}

static int take_sample(struct source *source, struct sample *sample, const struct arec_chunk *chunk,
                       const uint8_t *body, struct error *err) {
    struct arec_source *reader = source->state;
    struct arec_record record;
    int status = arec_record_decode(&record, body, chunk->length, err);
    if (!status)
        status = arec_label(&reader->labels, record.label, &sample->label, err);
    if (status)
        return status;
    if (source->options.label_from == LABEL_NO)
        sample->label = LABEL_NONE;
    char path[4096];
    snprintf(path, sizeof path, "%s: record %llu", stream_name(source->stream),
             (unsigned long long)(reader->before + reader->number));
    if ((status = sample_path(sample, path, err)) ||
        (status = sample_key(sample, record.key, err)) ||
        (status = take_original(reader, sample, err)))
        return status;
    if (!arec_is_encoded(record.encoding))
        return take_pixels(source, sample, &record, err);
    if ((status = sample_reserve(sample, record.size, err)))
        return status;
    memcpy(sample->encoded, record.data, record.size);
    sample->encoded_size = record.size;
    return STATUS_OK;
}

static int end_segment(struct source *source, struct sample *sample, const struct arec_chunk *chunk,
                       const uint8_t *body, struct error *err) {
    struct arec_source *reader = source->state;
    struct arec_tail tail;
    uint64_t offset = stream_offset(source->stream);
    reader->inside = false;
    if (!arec_tail_decode(&tail, body, chunk->length) || tail.samples > UINT32_MAX)
        return report_damage(source, sample, reader->counted, 0, "damaged tail", err);
    if (tail.samples < reader->number) {
        char what[96];
        snprintf(what, sizeof what, "the tail counts %llu samples, but there were %llu",
                 (unsigned long long)tail.samples, (unsigned long long)reader->number);
        return report_lost(source, sample, offset, what, 0, err);
    }
    if (reader->damage.pending || tail.samples > reader->number)
        return report_damage(source, sample, tail.samples, 0,
                             "samples that the tail counts do not come", err);
    return STATUS_OK;
}

// The entries of an index count the samples, also for those who cannot seek.
static void count_entries(struct arec_source *reader, const struct arec_chunk *chunk) {
    uint64_t counted = chunk->number + chunk->length / AREC_ENTRY;
    if (counted > reader->counted && counted <= UINT32_MAX)
        reader->counted = counted;
}

// A whole chunk, whose body is good. *done when it gave a sample or a report.
static int take_chunk(struct source *source, struct sample *sample, const struct arec_chunk *chunk,
                      const uint8_t *body, bool *done, struct error *err) {
    struct arec_source *reader = source->state;
    uint64_t offset = stream_offset(source->stream);
    int status;
    switch (chunk->type) {
    case AREC_CLASSES:
        status = arec_classes_decode(&reader->labels, body, chunk->length, source->classes, err);
        if (status)
            arec_labels_free(&reader->labels);
        break;
    case AREC_ORIGINAL:
        status = keep_original(reader, chunk, body, err);
        break;
    case AREC_RECORD:
        *done = true;
        status = take_sample(source, sample, chunk, body, err);
        reader->offset = offset;
        break;
    case AREC_INDEX:
        count_entries(reader, chunk);
        return STATUS_OK;
    case AREC_END:
        return end_segment(source, sample, chunk, body, err);
    default:
        return STATUS_OK;
    }
    if (status == STATUS_DATA) {
        struct error why = *err;
        return report_lost(source, sample, offset, why.text, chunk->type == AREC_RECORD, err);
    }
    if (chunk->type == AREC_RECORD)
        reader->number++;
    return status;
}

// A sample out of turn: some are missing, or another segment has begun, whose header
// and names are lost; the names that we have are not its own.
static int check_number(struct source *source, struct sample *sample,
                        const struct arec_chunk *chunk, struct error *err) {
    struct arec_source *reader = source->state;
    bool pending = reader->damage.pending;
    if (chunk->type != AREC_RECORD || (chunk->number == reader->number && !pending))
        return STATUS_OK;
    char what[96];
    snprintf(what, sizeof what, "out of order: record %u of its segment comes in its place",
             chunk->number);
    if (chunk->number >= reader->number)
        return report_damage(source, sample, chunk->number, 0, what, err);
    int status = report_damage(source, sample, reader->counted, 0, what, err);
    begin_segment(reader, stream_offset(source->stream));
    // What is missing before its first sample that is there comes next.
    if (chunk->number > 0)
        note_damage(source, "the segment's beginning is damaged");
    return status;
}

// A chunk whose body is cut off or damaged. When its writer was killed and
// another file joined on, the next segment may begin inside of it.
static int read_damaged_body(struct source *source, struct sample *sample,
                             const struct arec_chunk *chunk, bool *done, struct error *err) {
    struct arec_source *reader = source->state;
    size_t whole = AREC_CHUNK + chunk->length, at = AREC_CHUNK, got;
    const uint8_t *data;
    // As far as the header of a segment that has cut this one short.
    int status = stream_peek(source->stream, whole + AREC_HEADER, &data, &got, err);
    if (status)
        return status;
    bool cut = got < whole;
    while (at < got && arec_header_check(data + at, got - at) == AREC_NO_HEADER)
        at++;
    bool header = at < got, record = chunk->type == AREC_RECORD;
    size_t used = header ? at : cut ? got : whole;
    // A damaged index costs nothing here, and its length has told how many samples there are.
    *done = header || cut || chunk->type != AREC_INDEX;
    if (chunk->type == AREC_INDEX)
        count_entries(reader, chunk);
    if (header || cut || chunk->type == AREC_END)
        reader->inside = false;
    if (*done)
        status = report_damage(source, sample, record ? 0 : reader->counted, record,
                               header || cut ? "ends too early: its writer did not finish"
                               : chunk->type == AREC_CLASSES  ? "damaged class names"
                               : chunk->type == AREC_ORIGINAL ? "damaged key of an original"
                                                              : "damaged: its CRC-32 does not fit",
                               err);
    int failed = skip_bytes(source, used, err);
    if (!failed && !header && !cut)
        failed = skip_padding(source, chunk->length, err);
    return failed ? failed : status;
}

static int next_chunk(struct source *source, struct sample *sample, struct arec_chunk *chunk,
                      bool *done, struct error *err) {
    struct arec_source *reader = source->state;
    if (!reader->inside) {
        begin_segment(reader, stream_offset(source->stream));
        if (chunk->type == AREC_RECORD && chunk->number > 0)
            note_damage(source, "the segment's beginning is damaged");
    }
    int status = check_number(source, sample, chunk, err);
    if (status) {
        *done = true;
        return status;
    }
    uint64_t most = source->options.max_bytes + AREC_SAMPLE + AREC_KEY_MAX + 8;
    if (chunk->length > most)
        return skip_damage(source, AREC_CHUNK, "larger than samples may be", err);
    size_t whole = AREC_CHUNK + chunk->length, got;
    const uint8_t *data;
    if ((status = stream_peek(source->stream, whole, &data, &got, err)))
        return status;
    if (got < whole || crc32_of(0, data + AREC_CHUNK, chunk->length) != chunk->crc)
        return read_damaged_body(source, sample, chunk, done, err);
    status = take_chunk(source, sample, chunk, data + AREC_CHUNK, done, err);
    *done = *done || status;
    int failed = skip_bytes(source, whole, err);
    if (!failed)
        failed = skip_padding(source, chunk->length, err);
    return failed ? failed : status;
}

static int other_version(const struct source *source, struct error *err) {
    return error_set(err, STATUS_DATA, "%s: at offset %llu: records of another version than %d",
                     stream_name(source->stream), (unsigned long long)stream_offset(source->stream),
                     AREC_VERSION);
}

static int arec_next(struct source *source, struct sample *sample, bool *more, struct error *err) {
    struct arec_source *reader = source->state;
    bool done = false;
    int status = STATUS_OK;
    while (!done && !status) {
        const uint8_t *data;
        size_t got;
        struct arec_chunk chunk;
        if ((status = stream_peek(source->stream, AREC_CHUNK, &data, &got, err)))
            return status;
        enum arec_header header = arec_header_check(data, got);
        if (header == AREC_OTHER_VERSION)
            return other_version(source, err);
        if (got == 0 || header == AREC_GOOD_HEADER) {
            status = end_early(source, sample, &done, err);
            if (got == 0 || done) {
                *more = done;
                return status;
            }
            begin_segment(reader, stream_offset(source->stream));
            status = skip_bytes(source, AREC_HEADER, err);
        } else if (arec_chunk_decode(&chunk, data, got)) {
            status = next_chunk(source, sample, &chunk, &done, err);
        } else {
            status = skip_damage(source, 1, "damaged", err);
        }
    }
    return status;
}

uint64_t source_offset(const struct source *source) {
    const struct arec_source *reader = source->state;
    return reader->offset;
}

const struct source_kind source_arec = {
    .name = "arec",
    .recognise = arec_recognise,
    .open = open_reader,
    .next = arec_next,
    .count = arec_count,
    .close = close_reader,
};
