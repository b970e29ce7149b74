// Tar archives: members "key.jpg" and "key.cls" side by side are one sample,
// "Each group of files with the same basename (up to the first dot)" in the
// words of WebDataset; without a label member the parent folder is the class.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/keyset.h"
#include "sample/source_kind.h"
#include "store/tar.h"

enum { TEXT_MAX = CLASS_NAME_MAX + 2, KEY_MAX = 65535 };

enum member_kind {
    MEMBER_OTHER,
    MEMBER_PICTURE,
    MEMBER_CLASS,
    MEMBER_TEXT,
    MEMBER_ORIGINAL,
    MEMBER_KINDS
};

// The sample whose members are being read.
struct tar_sample {
    char *key;
    struct sample sample;
    char text[TEXT_MAX];
    bool have[MEMBER_KINDS];
    bool text_good;
};

struct tar_source {
    struct tar_reader *tar;
    struct keyset seen;
    struct tar_sample current;
    struct tar_member member;
    bool pending; // `member` is not looked at yet
    bool ended;
    bool cut;   // the archive ends within a member
    bool whole; // the end was looked at
    bool some;  // a sample or a report was given
};

static bool tar_recognise(const char *path, const uint8_t *data, size_t size) {
    (void)path;
    return size >= 512 && !memcmp(data + 257, "ustar", 5);
}

static int open_tar(struct source *source, struct error *err) {
    struct tar_source *state = source->state = mem_zeroed(1, sizeof *state);
    return state ? tar_reader_open(&state->tar, source->stream, err) : error_nomem(err);
}

static void close_tar(struct source *source) {
    struct tar_source *state = source->state;
    if (!state)
        return;
    tar_reader_close(state->tar);
    keyset_free(&state->seen);
    free(state->current.key);
    sample_free(&state->current.sample);
    free(state);
}

static const char *base_of(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

// What a member is to its sample: by what follows the first dot of its base name.
static enum member_kind kind_of(const char *name) {
    const char *base = base_of(name), *dot = strchr(base, '.');
    if (!dot || dot == base)
        return MEMBER_OTHER;
    if (!strcmp(dot, ".cls"))
        return MEMBER_CLASS;
    if (!strcmp(dot, ".txt"))
        return MEMBER_TEXT;
    if (!strcmp(dot, ".original"))
        return MEMBER_ORIGINAL;
    return !strchr(dot + 1, '.') && source_picture_name(base) ? MEMBER_PICTURE : MEMBER_OTHER;
}

// Whether some part of the path is "..".
static bool has_parent_part(const char *name) {
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (!strncmp(part, "..", 2) && (part[2] == '/' || !part[2]))
            return true;
    }
    return false;
}

// The key of a member: its name up to the first dot of the base name.
static int key_of(struct sample *sample, const char *name, struct error *err) {
    int status = source_key_of(sample, name, err);
    if (!status) {
        char *dot = strchr((char *)base_of(sample->key), '.');
        if (dot)
            *dot = 0;
    }
    return status;
}

static int member_path(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    char *path = NULL;
    if (asprintf(&path, "%s: %s", stream_name(source->stream), state->member.name) < 0)
        return error_nomem(err);
    int status = sample_path(sample, path, err);
    free(path);
    return status;
}

// Reports the member that is being looked at as bad, with its path in `sample`.
static int refuse_member(struct source *source, struct sample *sample, const char *why,
                         struct error *err) {
    struct tar_source *state = source->state;
    int status = member_path(source, sample, err);
    if (status)
        return status;
    return error_set(err, STATUS_SKIPPED, "at offset %llu: %s",
                     (unsigned long long)state->member.offset, why);
}

// A failure within a member. Where the archive is cut off, that sample is missing, and what
// came before is good.
static int report_cut(struct source *source, struct sample *sample, int status, struct error *err) {
    struct tar_source *state = source->state;
    if (status != STATUS_DATA || !tar_reader_cut(state->tar))
        return status;
    state->ended = state->whole = true;
    memset(state->current.have, 0, sizeof state->current.have);
    return refuse_member(source, sample, "the archive is cut off within this member", err);
}

static int read_picture(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    struct sample *own = &state->current.sample;
    uint64_t size = state->member.size, most = source->options.max_bytes;
    if (size > most || size == 0) {
        char why[96];
        snprintf(why, sizeof why, size ? "%llu bytes, and %llu are allowed" : "is empty",
                 (unsigned long long)size, (unsigned long long)most);
        return refuse_member(source, sample, why, err);
    }
    size_t got;
    int status = sample_reserve(own, size, err);
    if (!status)
        status = tar_reader_read(state->tar, own->encoded, size, &got, err);
    if (!status)
        status = member_path(source, own, err);
    if (status)
        return report_cut(source, sample, status, err);
    own->encoded_size = got;
    if (codec_of(own->encoded, got) == CODEC_NONE)
        return refuse_member(source, sample, "neither JPEG, PNG nor PNM", err);
    state->current.have[MEMBER_PICTURE] = true;
    return STATUS_OK;
}

// A class name or number, alone on its line.
static int read_text(struct source *source, struct sample *sample, enum member_kind kind,
                     struct error *err) {
    struct tar_source *state = source->state;
    struct tar_sample *current = &state->current;
    size_t got;
    current->have[kind] = true;
    if (kind == MEMBER_TEXT && current->have[MEMBER_CLASS])
        return STATUS_OK;
    int status = tar_reader_read(state->tar, current->text, TEXT_MAX - 1, &got, err);
    if (status)
        return report_cut(source, sample, status, err);
    while (got > 0 && isspace((unsigned char)current->text[got - 1]))
        got--;
    current->text[got] = 0;
    current->text_good = got > 0 && got <= CLASS_NAME_MAX && strlen(current->text) == got;
    return STATUS_OK;
}

// The key of the sample that this one is a copy of.
static int read_original(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    size_t size = state->member.size, got;
    if (state->member.size > KEY_MAX)
        return refuse_member(source, sample, "a key that is too long", err);
    char *key = mem_zeroed(size + 1, 1);
    int status = key ? tar_reader_read(state->tar, key, size, &got, err) : error_nomem(err);
    if (!status)
        status = sample_original(&state->current.sample, key, err);
    free(key);
    state->current.have[MEMBER_ORIGINAL] = true;
    return status ? report_cut(source, sample, status, err) : STATUS_OK;
}

static int refuse_scattered_key(struct source *source, struct error *err) {
    struct tar_source *state = source->state;
    return error_set(err, STATUS_DATA,
                     "%s: member %s at offset %llu: its key comes back after another key; the "
                     "members of a sample must be side by side (tar --sort=name)",
                     stream_name(source->stream), state->member.name,
                     (unsigned long long)state->member.offset);
}

static int begin_current(struct source *source, const char *key, struct error *err) {
    struct tar_source *state = source->state;
    struct tar_sample *current = &state->current;
    bool again;
    int status = keyset_add(&state->seen, key, &again, err);
    if (status)
        return status;
    if (again)
        return refuse_scattered_key(source, err);
    free(current->key);
    current->key = mem_string(key);
    if (!current->key)
        return error_nomem(err);
    memset(current->have, 0, sizeof current->have);
    current->sample.label = LABEL_NONE;
    current->sample.encoded_size = 0;
    return sample_original(&current->sample, "", err);
}

static int add_member(struct source *source, struct sample *sample, enum member_kind kind,
                      struct error *err) {
    struct tar_source *state = source->state;
    if (state->current.have[kind])
        return kind == MEMBER_PICTURE
                   ? refuse_member(source, sample, "a second picture for its key", err)
                   : refuse_scattered_key(source, err);
    if (kind == MEMBER_PICTURE)
        return read_picture(source, sample, err);
    return kind == MEMBER_ORIGINAL ? read_original(source, sample, err)
                                   : read_text(source, sample, kind, err);
}

static int label_current(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    struct tar_sample *current = &state->current;
    enum label_from from = source->options.label_from;
    if (from == LABEL_NO)
        return STATUS_OK;
    const char *name = sample->path + strlen(stream_name(source->stream)) + 2;
    bool labelled =
        from == LABEL_DEFAULT && (current->have[MEMBER_CLASS] || current->have[MEMBER_TEXT]);
    if (!labelled)
        return source_label_parent(source, sample, name, err);
    if (!current->text_good)
        return error_set(err, STATUS_DATA, "its label is no class name on one line");
    return source_label_text(source, sample, current->text, err);
}

// Hands out the current sample, which is empty afterwards.
static int give_sample(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    sample_swap(sample, &state->current.sample);
    sample->missing = 1;
    int status = sample_key(sample, state->current.key, err);
    if (!status)
        status = label_current(source, sample, err);
    memset(state->current.have, 0, sizeof state->current.have);
    return status == STATUS_DATA ? source_skipped(err) : status;
}

// Looks at the pending member. *done when a sample or a report is ready.
static int take_member(struct source *source, struct sample *sample, bool *done,
                       struct error *err) {
    struct tar_source *state = source->state;
    struct tar_sample *current = &state->current;
    enum member_kind kind = kind_of(state->member.name);
    state->pending = false;
    if (state->member.folder)
        return STATUS_OK;
    *done = true;
    if (state->member.other) {
        char why[64];
        snprintf(why, sizeof why, "is %s", state->member.other);
        return refuse_member(source, sample, why, err);
    }
    *done = kind != MEMBER_OTHER;
    if (!*done)
        return STATUS_OK;
    if (has_parent_part(state->member.name))
        return refuse_member(source, sample, "a name with '..' in it", err);
    int status = key_of(sample, state->member.name, err);
    if (status)
        return status;
    bool same = current->key && !strcmp(current->key, sample->key);
    if (!same && current->have[MEMBER_PICTURE]) {
        state->pending = true;
        return give_sample(source, sample, err);
    }
    *done = false;
    if (!same)
        status = begin_current(source, sample->key, err);
    return status ? status : add_member(source, sample, kind, err);
}

// The last sample; and whether the archive is whole.
static int end_archive(struct source *source, struct sample *sample, bool *more,
                       struct error *err) {
    struct tar_source *state = source->state;
    if (state->current.have[MEMBER_PICTURE]) {
        state->some = true;
        return give_sample(source, sample, err);
    }
    if (!state->some)
        return error_set(err, STATUS_DATA, "%s: no pictures in this archive",
                         stream_name(source->stream));
    *more = !state->whole && (state->cut || !tar_reader_whole(state->tar));
    state->whole = true;
    if (!*more)
        return STATUS_OK;
    sample->missing = 0;
    int status = sample_path(sample, stream_name(source->stream), err);
    return status
               ? status
               : error_set(err, STATUS_SKIPPED,
                           "at offset %llu: the archive ends without its end mark, as if cut off",
                           (unsigned long long)stream_offset(source->stream));
}

static int tar_next(struct source *source, struct sample *sample, bool *more, struct error *err) {
    struct tar_source *state = source->state;
    bool done = false;
    int status = STATUS_OK;
    while (!done && !status) {
        if (!state->pending && !state->ended) {
            status = tar_reader_next(state->tar, &state->member, &state->pending, err);
            state->cut = status == STATUS_DATA && tar_reader_cut(state->tar);
            if (status && !state->cut)
                return status;
            status = STATUS_OK;
            state->ended = state->cut || !state->pending;
            state->pending = !state->ended;
        }
        if (state->ended)
            return end_archive(source, sample, more, err);
        status = take_member(source, sample, &done, err);
        state->some = state->some || done || status;
    }
    return status;
}

const struct source_kind source_tar = {
    .name = "tar",
    .recognise = tar_recognise,
    .open = open_tar,
    .next = tar_next,
    .close = close_tar,
};
