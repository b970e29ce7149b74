// Tar archives: members "key.jpg" and "key.cls" side by side are one sample,
// "Each group of files with the same basename (up to the first dot)" in the
// words of WebDataset (but see tar_group.h); without a label member the parent
// folder is the class.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "sample/keyset.h"
#include "sample/source_kind.h"
#include "sample/tar_group.h"
#include "store/tar.h"

enum { KEY_MAX = 65535, FAULT_ROOM = 64 };

struct tar_source {
    struct tar_reader *tar;
    struct keyset seen;
    struct tar_sample current; // whose members are being read
    struct tar_group group;
    // A report that comes behind the samples that wait, and why; of STATUS_OK there is none.
    struct sample report;
    struct error why;
    struct tar_member member;
    bool pending; // `member` is not looked at yet
    bool ended;
    bool cut;   // the archive ends within a member
    bool whole; // the end was looked at
    bool some;  // a sample was met, be it good or bad
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
    tar_sample_free(&state->current);
    tar_group_free(&state->group);
    sample_free(&state->report);
    free(state);
}

static const char *base_of(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

// What a member is to its sample: by what follows the last dot of its base name.
static enum tar_member_kind kind_of(const char *name) {
    const char *base = base_of(name), *dot = strrchr(base, '.');
    if (!dot || base[0] == '.')
        return MEMBER_OTHER;
    if (!strcmp(dot, ".cls"))
        return MEMBER_CLASS;
    if (!strcmp(dot, ".original"))
        return MEMBER_ORIGINAL;
    return source_picture_name(base) ? MEMBER_PICTURE : MEMBER_OTHER;
}

// Whether a key, a name up to its last dot, has dots itself.
static bool has_dots(const char *key) {
    return strchr(base_of(key), '.') != NULL;
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

// Sets the path to that name in the archive.
static int set_path(struct source *source, struct sample *sample, const char *name,
                    struct error *err) {
    char *path = NULL;
    if (asprintf(&path, "%s: %s", stream_name(source->stream), name) < 0)
        return error_nomem(err);
    int status = sample_path(sample, path, err);
    free(path);
    return status;
}

static int member_path(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    return set_path(source, sample, state->member.name, err);
}

// Reports the member that is being looked at as bad, with its path in `sample`.
static int refuse_member(struct source *source, struct sample *sample, const char *why,
                         struct error *err) {
    struct tar_source *state = source->state;
    int status = member_path(source, sample, err);
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

// What is wrong with a member before it is read, or NULL; `room` is for the sentence.
static const char *fault_of(const struct tar_member *member, char room[FAULT_ROOM]) {
    if (!member->other)
        return has_parent_part(member->name) ? "a name with '..' in it" : NULL;
    snprintf(room, FAULT_ROOM, "is %s", member->other);
    return room;
}

// A member that is no picture cannot be read: the sample is spoilt by it.
static void note_fault(struct tar_sample *current, enum tar_member_kind kind, const char *fault) {
    current->have[kind] = true;
    snprintf(current->fault[kind], TAR_FAULT, "its member .%s %s",
             kind == MEMBER_CLASS ? "cls" : "original", fault);
}

// A class name or number, alone on its line; nothing says that there is no class.
static int read_class(struct source *source, struct sample *sample, struct error *err) {
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
static int read_original(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    size_t size = state->member.size, got;
    if (state->member.size > KEY_MAX) {
        note_fault(&state->current, MEMBER_ORIGINAL, "is too long for a key");
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
    memset(current->fault, 0, sizeof current->fault);
    current->sample.label = LABEL_NONE;
    current->sample.encoded_size = 0;
    return sample_original(&current->sample, "", err);
}

// Another picture for a key that has one. Of several the first is named.
static int refuse_second(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    if (state->why.status == STATUS_OK)
        return refuse_member(source, sample, "a second picture for its key", err);
    state->report.missing++;
    return STATUS_OK;
}

static int add_member(struct source *source, struct sample *sample, enum tar_member_kind kind,
                      struct error *err) {
    struct tar_source *state = source->state;
    char room[FAULT_ROOM];
    const char *fault = fault_of(&state->member, room);
    tar_group_meet(&state->group, kind);
    if (state->current.have[kind])
        return kind == MEMBER_PICTURE ? refuse_second(source, sample, err)
                                      : refuse_scattered_key(source, err);
    if (kind == MEMBER_PICTURE)
        return fault ? refuse_member(source, sample, fault, err)
                     : read_picture(source, sample, err);
    if (fault)
        note_fault(&state->current, kind, fault);
    else
        return kind == MEMBER_ORIGINAL ? read_original(source, sample, err)
                                       : read_class(source, sample, err);
    return STATUS_OK;
}

static int label_of(struct source *source, struct sample *sample, const struct tar_sample *of,
                    struct error *err) {
    enum label_from from = source->options.label_from;
    if (from == LABEL_NO)
        return STATUS_OK;
    const char *name = sample->path + strlen(stream_name(source->stream)) + 2;
    if (from != LABEL_DEFAULT || !of->have[MEMBER_CLASS])
        return source_label_parent(source, sample, name, err);
    if (of->fault[MEMBER_CLASS][0])
        return error_set(err, STATUS_DATA, "%s", of->fault[MEMBER_CLASS]);
    if (of->class_empty)
        return STATUS_OK;
    if (!of->class_good)
        return error_set(err, STATUS_DATA, "its label is no class name on one line");
    return source_label_text(source, sample, of->class, err);
}

// Hands out a sample that is complete.
static int give_sample(struct source *source, struct sample *sample, struct tar_sample *complete,
                       struct error *err) {
    struct tar_source *state = source->state;
    state->some = true;
    sample_swap(sample, &complete->sample);
    sample->missing = 1;
    int status = sample_key(sample, complete->key, err);
    if (!status && complete->fault[MEMBER_ORIGINAL][0])
        status = error_set(err, STATUS_DATA, "%s", complete->fault[MEMBER_ORIGINAL]);
    if (!status)
        status = label_of(source, sample, complete, err);
    return status == STATUS_DATA ? source_skipped(err) : status;
}

// Whether a report is on a sample behind others that are not given yet.
static bool must_wait(const struct tar_source *state, const struct sample *report) {
    return report->missing > 0 && (state->group.count > 0 || state->current.have[MEMBER_PICTURE]);
}

// The samples that wait come before a report on what is behind them.
static void keep_report(struct tar_source *state, struct sample *sample, const struct error *why) {
    tar_group_end(&state->group);
    sample_swap(&state->report, sample);
    state->why = *why;
}

// Reports a sample of which the archive has a class or parts, and no picture.
static int refuse_lacking(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    int status = set_path(source, sample, state->group.name, err);
    return status
               ? status
               : error_set(err, STATUS_SKIPPED, "has no picture of its own, only parts or a class");
}

// What waits and need not any longer: a sample, or a report. *done when there is one. A report on
// what belongs to the current sample comes behind that.
static int give_waiting(struct source *source, struct sample *sample, bool *done,
                        struct error *err) {
    struct tar_source *state = source->state;
    struct tar_sample *complete = tar_group_take(&state->group);
    *done = true;
    if (complete)
        return give_sample(source, sample, complete, err);
    if (tar_group_lacks(&state->group))
        return refuse_lacking(source, sample, err);
    *done = state->why.status != STATUS_OK && !state->current.have[MEMBER_PICTURE];
    if (!*done)
        return STATUS_OK;
    sample_swap(sample, &state->report);
    *err = state->why;
    state->why.status = STATUS_OK;
    return STATUS_SKIPPED;
}

// The current sample waits, if it has a picture; another one can begin.
static void finish_current(struct tar_source *state) {
    if (state->current.have[MEMBER_PICTURE])
        tar_group_put(&state->group, &state->current);
}

// A member with a single dot makes those with further dots its parts.
static int join_group(struct tar_source *state, struct error *err) {
    finish_current(state);
    return tar_group_join(&state->group, err);
}

// Makes the group that a key is in the one that is read. *ready when samples that are complete
// by that must be given first.
static int enter_group(struct source *source, const char *key, bool *ready, struct error *err) {
    struct tar_source *state = source->state;
    bool scattered = false;
    int status = STATUS_OK;
    if (!tar_group_has(&state->group, key)) {
        finish_current(state);
        *ready = tar_group_end(&state->group);
        if (!*ready)
            status = tar_group_begin(&state->group, key, &state->seen, &scattered, err);
    }
    if (!status && scattered)
        return refuse_scattered_key(source, err);
    if (status || *ready || has_dots(key) || state->group.reading != GROUP_OPEN)
        return status;
    return join_group(state, err);
}

// A member with further dots in the group of a sample that it is a part of.
static int leave_out(struct source *source, struct sample *sample, enum tar_member_kind kind,
                     struct error *err) {
    struct tar_source *state = source->state;
    if (kind != MEMBER_PICTURE)
        return STATUS_OK;
    int status = member_path(source, sample, err);
    return status ? status : tar_group_leave_out(&state->group, sample->path, err);
}

// Adds the member that is being looked at to the sample with its key, sample->key, unless samples
// before it are to be given first: then it is looked at again.
static int take_part(struct source *source, struct sample *sample, enum tar_member_kind kind,
                     struct error *err) {
    struct tar_source *state = source->state;
    struct tar_sample *current = &state->current;
    bool ready = false;
    int status = enter_group(source, sample->key, &ready, err);
    if (status)
        return status;
    if (!ready && has_dots(sample->key) && state->group.reading == GROUP_PARTS)
        return leave_out(source, sample, kind, err);
    bool same = current->key && !strcmp(current->key, sample->key);
    if (!ready && !same) {
        finish_current(state);
        ready = state->group.reading != GROUP_OPEN && state->group.count > 0;
    }
    state->pending = ready;
    if (ready)
        return STATUS_OK;
    if (!same)
        status = begin_current(source, sample->key, err);
    return status ? status : add_member(source, sample, kind, err);
}

// A member that is none of a sample's. What cannot be read of it costs no sample.
static int take_other(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    char room[FAULT_ROOM];
    bool scattered;
    if (state->member.other) {
        sample->missing = 0;
        sample->no_loss = true;
        return refuse_member(source, sample, fault_of(&state->member, room), err);
    }
    const char *base = base_of(state->member.name);
    if (base[0] == '.' || !strchr(base, '.'))
        return STATUS_OK;
    int status = source_key_of(sample, state->member.name, err);
    if (status || has_dots(sample->key))
        return status;
    status = tar_group_see(&state->group, sample->key, &state->seen, &scattered, err);
    if (!status && scattered)
        status = refuse_scattered_key(source, err);
    bool joins = tar_group_has(&state->group, sample->key) && state->group.reading == GROUP_OPEN;
    return status || !joins ? status : join_group(state, err);
}

// Looks at the pending member.
static int take_member(struct source *source, struct sample *sample, struct error *err) {
    struct tar_source *state = source->state;
    enum tar_member_kind kind = kind_of(state->member.name);
    state->pending = false;
    if (state->member.folder)
        return STATUS_OK;
    if (kind == MEMBER_OTHER)
        return take_other(source, sample, err);
    int status = source_key_of(sample, state->member.name, err);
    return status ? status : take_part(source, sample, kind, err);
}

// The first picture that was left out, as the archive names it.
static const char *left_out_example(const struct source *source) {
    const struct tar_source *state = source->state;
    return state->group.example + strlen(stream_name(source->stream)) + 2;
}

// Tells the user, once, of pictures that are no samples.
static void tell_left_out(struct source *source) {
    struct tar_source *state = source->state;
    const struct source_hooks *hooks = &source->options.hooks;
    uint64_t count = state->group.left_out;
    char text[ERROR_TEXT];
    state->group.left_out = 0;
    if (count == 0 || !hooks->say)
        return;
    snprintf(text, sizeof text,
             "skipped %.900s: %llu picture%s such as %.900s, further parts of other samples",
             stream_name(source->stream), (unsigned long long)count, count == 1 ? "" : "s",
             left_out_example(source));
    hooks->say(hooks->self, text);
}

static int refuse_empty(const struct source *source, struct error *err) {
    const struct tar_source *state = source->state;
    const char *archive = stream_name(source->stream);
    if (state->group.left_out == 0)
        return error_set(err, STATUS_DATA, "%s: no pictures in this archive", archive);
    return error_set(err, STATUS_DATA,
                     "%s: no pictures in this archive but parts of samples, such as %s", archive,
                     left_out_example(source));
}

// The last samples; and whether the archive is whole.
static int end_archive(struct source *source, struct sample *sample, bool *more,
                       struct error *err) {
    struct tar_source *state = source->state;
    bool given = false;
    finish_current(state);
    tar_group_end(&state->group);
    int status = give_waiting(source, sample, &given, err);
    if (given)
        return status;
    if (!state->some)
        return refuse_empty(source, err);
    tell_left_out(source);
    *more = !state->whole && (state->cut || !tar_reader_whole(state->tar));
    state->whole = true;
    if (!*more)
        return STATUS_OK;
    sample->missing = 0;
    status = sample_path(sample, stream_name(source->stream), err);
    return status
               ? status
               : error_set(err, STATUS_SKIPPED,
                           "at offset %llu: the archive ends without its end mark, as if cut off",
                           (unsigned long long)stream_offset(source->stream));
}

// The next member, or the end, also where the archive is cut off.
static int next_member(struct tar_source *state, struct error *err) {
    int status = tar_reader_next(state->tar, &state->member, &state->pending, err);
    state->cut = status == STATUS_DATA && tar_reader_cut(state->tar);
    if (status && !state->cut)
        return status;
    state->ended = state->cut || !state->pending;
    state->pending = !state->ended;
    return STATUS_OK;
}

static int tar_next(struct source *source, struct sample *sample, bool *more, struct error *err) {
    struct tar_source *state = source->state;
    for (;;) {
        bool done;
        int status = give_waiting(source, sample, &done, err);
        if (!status && !done && !state->pending && !state->ended)
            status = next_member(state, err);
        if (!status && !done && state->ended)
            return end_archive(source, sample, more, err);
        if (!status && !done)
            status = take_member(source, sample, err);
        if (status == STATUS_SKIPPED && !done && must_wait(state, sample))
            keep_report(state, sample, err);
        else if (done || status)
            return status;
    }
}

const struct source_kind source_tar = {
    .name = "tar",
    .has_folders = true,
    .recognise = tar_recognise,
    .open = open_tar,
    .next = tar_next,
    .close = close_tar,
};
