// A stream of PNM pictures, one behind the other; and a single JPEG or PNG file.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/source_kind.h"

enum { FIRST_LOOK = 1 << 16 };

struct picture_source {
    uint64_t number;
};

static bool recognise_pnm(const char *path, const uint8_t *data, size_t size) {
    (void)path;
    return codec_of(data, size) == CODEC_PNM;
}

static bool recognise_image(const char *path, const uint8_t *data, size_t size) {
    (void)path;
    enum codec codec = codec_of(data, size);
    return codec == CODEC_JPEG || codec == CODEC_PNG;
}

static int open_state(struct source *source, struct error *err) {
    source->state = mem_zeroed(1, sizeof(struct picture_source));
    return source->state ? STATUS_OK : error_nomem(err);
}

static void close_state(struct source *source) {
    free(source->state);
}

// Between two pictures there may be white space (a plain PNM file ends in a
// newline).
static int skip_space(struct source *source, bool *more, struct error *err) {
    for (;;) {
        const uint8_t *data;
        size_t got;
        uint64_t skipped;
        int status = stream_peek(source->stream, 1, &data, &got, err);
        *more = got > 0;
        if (status || !*more || !strchr(" \t\r\n", data[0]) || !data[0])
            return status;
        if ((status = stream_skip(source->stream, 1, &skipped, err)))
            return status;
    }
}

// Looks ahead further and further, until the picture is whole.
static int decode_head(struct source *source, struct image *image, size_t *used,
                       struct error *err) {
    const uint8_t *data;
    size_t got = 0, before;
    *used = 0;
    for (size_t n = FIRST_LOOK;; n *= 2) {
        before = got;
        int status = stream_peek(source->stream, n, &data, &got, err);
        if (!status)
            status = pnm_decode(image, data, got, used, &source->options.decode, err);
        if (status || *used > 0)
            return status;
        if (got < n || got == before)
            return error_set(err, STATUS_DATA, "ends within a picture");
        if (got > source->options.max_bytes)
            return error_set(err, STATUS_DATA, "a picture of more than %llu bytes",
                             (unsigned long long)source->options.max_bytes);
    }
}

static int next_pnm(struct source *source, struct sample *sample, bool *more, struct error *err) {
    struct picture_source *state = source->state;
    size_t used;
    uint64_t skipped;
    int status = skip_space(source, more, err);
    if (status || !*more)
        return status;
    if ((status = source_number(source, sample, state->number, err)))
        return status;
    uint64_t offset = stream_offset(source->stream);
    if (decode_head(source, &sample->image, &used, err))
        return error_context(err, "%s: picture %llu, at offset %llu", stream_name(source->stream),
                             (unsigned long long)state->number, (unsigned long long)offset);
    state->number++;
    return stream_skip(source->stream, used, &skipped, err);
}

// The key of a single file is its own name.
static int next_image(struct source *source, struct sample *sample, bool *more, struct error *err) {
    struct picture_source *state = source->state;
    *more = state->number++ == 0;
    if (!*more)
        return STATUS_OK;
    const char *name = stream_name(source->stream), *slash = strrchr(name, '/');
    int status = sample_path(sample, name, err);
    if (!status)
        status = source_key_of(sample, slash ? slash + 1 : name, err);
    if (!status && source->options.label_from == LABEL_PARENT)
        status = source_label_parent(source, sample, name, err);
    return status ? status : source_bytes(sample, source->stream, source->options.max_bytes, err);
}

static int64_t count_image(const struct source *source) {
    (void)source;
    return 1;
}

const struct source_kind source_pnm = {
    .name = "pnm",
    .recognise = recognise_pnm,
    .open = open_state,
    .next = next_pnm,
    .close = close_state,
};

const struct source_kind source_image = {
    .name = "image",
    .has_folders = true,
    .recognise = recognise_image,
    .open = open_state,
    .next = next_image,
    .count = count_image,
    .close = close_state,
};
