// Tar archives: members "key.jpg" and "key.cls" side by side are one sample,
// "Each group of files with the same basename (up to the first dot)" in the
// words of WebDataset (but see tar_group.h); without a label member the parent
// folder is the class.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "sample/source_tar_internal.h"

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

// Whether a key, a name up to its last dot, has dots itself.
static bool has_dots(const char *key) {
    return strchr(tar_source_base(key), '.') != NULL;
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
        return tar_source_refuse(source, sample, "a second picture for its key", err);
    state->report.missing++;
    return STATUS_OK;
}

static int add_member(struct source *source, struct sample *sample, enum tar_member_kind kind,
                      struct error *err) {
    struct tar_source *state = source->state;
    char room[TAR_FAULT_ROOM];
    const char *fault = tar_source_fault(&state->member, room);
    tar_group_meet(&state->group, kind);
    if (state->current.have[kind])
        return kind == MEMBER_PICTURE ? refuse_second(source, sample, err)
                                      : refuse_scattered_key(source, err);
    if (kind == MEMBER_PICTURE)
        return fault ? tar_source_refuse(source, sample, fault, err)
                     : tar_source_picture(source, sample, err);
    if (fault)
        tar_source_note_fault(&state->current, kind, fault);
    else
        return kind == MEMBER_ORIGINAL ? tar_source_original(source, sample, err)
                                       : tar_source_class(source, sample, err);
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
    int status = tar_source_path(source, sample, state->group.name, err);
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
    int status = tar_source_member_path(source, sample, err);
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
    char room[TAR_FAULT_ROOM];
    bool scattered;
    if (state->member.other) {
        sample->missing = 0;
        sample->no_loss = true;
        return tar_source_refuse(source, sample, tar_source_fault(&state->member, room), err);
    }
    const char *base = tar_source_base(state->member.name);
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
    enum tar_member_kind kind = tar_source_kind(state->member.name);
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
