// A member of a tar: what it is to its sample, and its bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/text.h"
#include "sample/source_tar_internal.h"

enum { KEY_MAX = 65535 };

const char *tar_source_base(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

enum tar_member_kind tar_source_kind(const char *name) {
    const char *base = tar_source_base(name), *dot = strrchr(base, '.');
    if (!dot || base[0] == '.')
        return MEMBER_OTHER;
    if (!strcmp(dot, ".cls"))
        return MEMBER_CLASS;
    if (!strcmp(dot, ".original"))
        return MEMBER_ORIGINAL;
    return source_picture_name(base) ? MEMBER_PICTURE : MEMBER_OTHER;
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

int tar_source_path(struct source *source, struct sample *sample, const char *name,
                    struct error *err) {
    char *path = NULL;
    if (asprintf(&path, "%s: %s", stream_name(source->stream), name) < 0)
        return error_nomem(err);
    int status = sample_path(sample, path, err);
    free(path);
    return status;
}

int tar_source_member_path(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    return tar_source_path(source, sample, state->member.name, err);
}

int tar_source_refuse(struct source *source, struct sample *sample, const char *why,
                      struct error *err) {
    struct tar_source *state = source->state;
    int status = tar_source_member_path(source, sample, err);
    state->some = true;
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
    return tar_source_refuse(source, sample, "the archive is cut off within this member", err);
}

int tar_source_picture(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    struct sample *own = &state->current.sample;
    uint64_t size = state->member.size, most = source->options.max_bytes;
    if (size > most || size == 0) {
        char why[96];
        snprintf(why, sizeof why, size ? "%llu bytes, and %llu are allowed" : "is empty",
                 (unsigned long long)size, (unsigned long long)most);
        return tar_source_refuse(source, sample, why, err);
    }
    size_t got;
    int status = sample_reserve(own, size, err);
    if (!status)
        status = tar_reader_read(state->tar, own->encoded, size, &got, err);
    if (!status)
        status = tar_source_member_path(source, own, err);
    if (status)
        return report_cut(source, sample, status, err);
    own->encoded_size = got;
    if (codec_of(own->encoded, got) == CODEC_NONE)
        return tar_source_refuse(source, sample, "neither JPEG, PNG nor PNM", err);
    state->current.have[MEMBER_PICTURE] = true;
    return STATUS_OK;
}

const char *tar_source_fault(const struct tar_member *member, char room[TAR_FAULT_ROOM]) {
    if (!member->other)
        return has_parent_part(member->name) ? "a name with '..' in it" : NULL;
    snprintf(room, TAR_FAULT_ROOM, "is %s", member->other);
    return room;
}

void tar_source_note_fault(struct tar_sample *current, enum tar_member_kind kind,
                           const char *fault) {
    current->have[kind] = true;
    snprintf(current->fault[kind], TAR_FAULT, "its member .%s %s",
             kind == MEMBER_CLASS ? "cls" : "original", fault);
}

// A class name or number, alone on its line; nothing says that there is no class.
int tar_source_class(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    struct tar_sample *current = &state->current;
    size_t got;
    current->have[MEMBER_CLASS] = true;
    int status = tar_reader_read(state->tar, current->class, TAR_CLASS_MAX - 1, &got, err);
    if (status)
        return report_cut(source, sample, status, err);
    size_t mark = text_mark(current->class, got);
    memmove(current->class, current->class + mark, got -= mark);
    while (got > 0 && (current->class[got - 1] == '\n' || current->class[got - 1] == '\r'))
        got--;
    current->class[got] = 0;
    current->class_empty = got == 0;
    current->class_good = got > 0 && got <= CLASS_NAME_MAX && strlen(current->class) == got;
    return STATUS_OK;
}

// The key of the sample that this one is a copy of.
int tar_source_original(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    size_t size = state->member.size, got;
    if (state->member.size > KEY_MAX) {
        tar_source_note_fault(&state->current, MEMBER_ORIGINAL, "is too long for a key");
        return STATUS_OK;
    }
    char *key = mem_zeroed(size + 1, 1);
    int status = key ? tar_reader_read(state->tar, key, size, &got, err) : error_nomem(err);
    if (!status)
        status = sample_original(&state->current.sample, key, err);
    free(key);
    state->current.have[MEMBER_ORIGINAL] = true;
    return status ? report_cut(source, sample, status, err) : STATUS_OK;
}
