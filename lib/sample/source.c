#include "sample/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "sample/source_kind.h"
#include "sample/targets.h"

// In the order in which they are asked whether they recognise the data.
static const struct source_kind *const kinds[] = {
    &source_arec, &source_npy,     &source_tar,      &source_image,           &source_pnm,
    &source_idx,  &source_cifar10, &source_cifar100, &source_cifar100_coarse, &source_folder,
    &source_list,
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int find_kind(const struct source_kind **kind, const char *name, struct error *err) {
    const char *names[KINDS];
    for (int i = 0; i < KINDS; i++) {
        names[i] = kinds[i]->name;
        *kind = kinds[i];
        if (!strcmp(names[i], name))
            return STATUS_OK;
    }
    const char *near = text_nearest(name, strlen(name), names, KINDS);
    return error_set(err, STATUS_USAGE, "unknown kind of input '%s'%s", name, text_hint(near).text);
}

static const struct source_kind *file_kind(const char *path, const uint8_t *data, size_t size) {
    for (int i = 0; i < KINDS; i++)
        if (kinds[i]->recognise && kinds[i]->recognise(path, data, size))
            return kinds[i];
    return NULL;
}

const char *source_recognised(const char *path, const uint8_t *data, size_t size) {
    const struct source_kind *kind = file_kind(path, data, size);
    return kind ? kind->name : NULL;
}

static int recognise_kind(struct source *source, struct error *err) {
    const uint8_t *data;
    size_t size;
    int status = stream_peek(source->stream, SOURCE_HEAD, &data, &size, err);
    if (status)
        return status;
    if (size == 0)
        return error_set(err, STATUS_DATA, "%s: is empty", stream_name(source->stream));
    source->kind = file_kind(source->path, data, size);
    if (source->kind)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "%s: neither arec, tar, IDX, CIFAR, npy, PNM, JPEG nor PNG; --from KIND says "
                     "what it is",
                     stream_name(source->stream));
}

static bool is_folder(const char *path) {
    struct stat stat_of;
    return strcmp(path, "-") != 0 && stat(path, &stat_of) == 0 && S_ISDIR(stat_of.st_mode);
}

// Labels that a kind cannot give are a slip of who asks.
static int check_labels(const struct source *source, struct error *err) {
    const struct source_kind *kind = source->kind;
    const struct source_options *options = &source->options;
    const char *name = source->stream ? stream_name(source->stream) : source->path;
    if (options->label_from == LABEL_PARENT && !kind->has_folders)
        return error_set(err, STATUS_USAGE,
                         "%s: --label-from parent: %s has no folders that name classes", name,
                         kind->name);
    if (options->label_from == LABEL_COLUMN && !kind->has_columns)
        return error_set(err, STATUS_USAGE,
                         "%s: --label-from column: %s has no columns, only lists of paths have",
                         name, kind->name);
    if (options->labels && !kind->has_labels)
        return error_set(err, STATUS_USAGE,
                         "%s: --labels: only IDX and .npy have labels in a second file, %s has not",
                         name, kind->name);
    return STATUS_OK;
}

static int open_kind(struct source *source, struct error *err) {
    int status = STATUS_OK;
    bool folder = is_folder(source->path);
    const struct stream_wait wait = {source->options.hooks.stop, source->options.hooks.self};
    if (source->options.from)
        status = find_kind(&source->kind, source->options.from, err);
    else if (folder)
        source->kind = &source_folder;
    if (status)
        return status;
    if (folder && source->kind != &source_folder)
        return error_set(err, STATUS_NOINPUT, "%s: is a folder, not %s", source->path,
                         source->kind->name);
    if (source->kind != &source_folder)
        status = stream_open_stoppable(&source->stream, source->path, &wait, err);
    if (!status && !source->kind)
        status = recognise_kind(source, err);
    if (!status)
        status = check_labels(source, err);
    return status ? status : source->kind->open(source, err);
}

// Labels are not wanted then, nor the names of their classes.
static int open_targets(struct source *source, struct classes *classes, struct error *err) {
    if (!source->options.targets)
        return STATUS_OK;
    source->classes = &source->unused;
    source->options.label_from = LABEL_NO;
    return targets_open(&source->targets, source->options.targets, classes, err);
}

int source_open(struct source **out, const char *path, const struct source_options *options,
                struct classes *classes, struct error *err) {
    struct source *source = mem_zeroed(1, sizeof *source);
    if (!source)
        return error_nomem(err);
    if (options)
        source->options = *options;
    if (source->options.max_bytes == 0)
        source->options.max_bytes = SOURCE_MAX_BYTES;
    source->classes = classes;
    source->path = path;
    int status = open_targets(source, classes, err);
    if (!status)
        status = open_kind(source, err);
    if (status) {
        source_close(source);
        return status;
    }
    source->path = NULL;
    *out = source;
    return STATUS_OK;
}

int source_open_list(struct source **out, const char *path, const struct source_options *options,
                     struct classes *classes, struct error *err) {
    struct source_options list = options ? *options : (struct source_options){.separator = '\n'};
    list.from = source_list.name;
    return source_open(out, path, &list, classes, err);
}

int source_targets(const struct source *source) {
    return source->targets ? targets_width(source->targets) : 0;
}

struct targets *source_take_targets(struct source *source) {
    struct targets *targets = source->targets;
    source->targets = NULL;
    return targets;
}

// Gives a sample its targets; behind the last one there must be none left.
static int join_targets(struct source *source, struct sample *sample, bool more,
                        struct error *err) {
    uint32_t row;
    if (!source->targets)
        return STATUS_OK;
    if (!more)
        return targets_check_count(source->targets, source->number, err);
    if (targets_find(source->targets, sample->key, source->number++, &row, err))
        return source_skipped(err);
    sample->targets = targets_at(source->targets, row);
    return STATUS_OK;
}

int source_next(struct source *source, struct sample *sample, bool *more, struct error *err) {
    struct error unwanted = {0};
    err = err ? err : &unwanted;
    sample->label = LABEL_NONE;
    sample->targets = NULL;
    sample->encoded_size = 0;
    sample->missing = 1;
    sample->no_loss = false;
    if (sample->original)
        sample->original[0] = 0;
    *more = true;
    // Kinds may build one report on another, so they always have a place for it.
    int status = source->kind->next(source, sample, more, err);
    if (status == STATUS_SKIPPED)
        source->number += sample->missing;
    return status ? status : join_targets(source, sample, *more, err);
}

bool source_passes_over(const struct source *source, const struct sample *sample,
                        const struct error *why) {
    const struct source_hooks *hooks = &source->options.hooks;
    char text[ERROR_TEXT];
    if (!sample->no_loss)
        return false;
    snprintf(text, sizeof text, "skipped %.1000s: %.1000s", sample->path, why->text);
    if (hooks->say)
        hooks->say(hooks->self, text);
    return true;
}

int64_t source_count(const struct source *source) {
    return source->kind->count ? source->kind->count(source) : -1;
}

const char *source_kind(const struct source *source) {
    return source->kind->name;
}

uint64_t source_without_files(struct source *source) {
    source->paths_only = source->kind == &source_folder || source->kind == &source_list;
    return source->paths_only ? source->options.max_bytes : 0;
}

bool source_has_offsets(const struct source *source) {
    return source->kind == &source_arec && stream_size(source->stream) >= 0 &&
           (source->options.label_from != LABEL_NO || source->options.targets);
}

void source_close(struct source *source) {
    if (!source)
        return;
    if (source->kind && source->kind->close)
        source->kind->close(source);
    stream_close(source->stream);
    targets_close(source->targets);
    classes_free(&source->unused);
    free(source);
}

int source_skipped(struct error *err) {
    if (err)
        err->status = STATUS_SKIPPED;
    return STATUS_SKIPPED;
}

static int read_whole(struct sample *sample, struct stream *stream, uint64_t max_bytes,
                      struct error *err) {
    const uint8_t *data;
    size_t size;
    int status = stream_peek(stream, max_bytes + 1, &data, &size, err);
    if (status)
        return status;
    if (size > max_bytes)
        return error_set(err, STATUS_DATA, "more than %llu bytes", (unsigned long long)max_bytes);
    if (size == 0)
        return error_set(err, STATUS_DATA, "is empty");
    if ((status = sample_reserve(sample, size, err)))
        return status;
    memcpy(sample->encoded, data, size);
    sample->encoded_size = size;
    return STATUS_OK;
}

int source_bytes(struct sample *sample, struct stream *stream, uint64_t max_bytes,
                 struct error *err) {
    int status = read_whole(sample, stream, max_bytes, err);
    if (status)
        return status == STATUS_STOPPED ? status : source_skipped(err);
    if (codec_of(sample->encoded, sample->encoded_size) == CODEC_NONE)
        return error_set(err, STATUS_SKIPPED, "neither JPEG, PNG nor PNM");
    return STATUS_OK;
}

int source_file(struct sample *sample, const struct source_options *options, struct error *err) {
    const struct stream_wait wait = {options->hooks.stop, options->hooks.self};
    struct stream *stream;
    int status = options->each_named ? stream_open_stoppable(&stream, sample->path, &wait, err)
                                     : stream_open_regular(&stream, sample->path, err);
    if (status)
        return status == STATUS_STOPPED ? status : source_skipped(err);
    status = source_bytes(sample, stream, options->max_bytes, err);
    stream_close(stream);
    return status;
}

bool source_picture_name(const char *name) {
    static const char *const others[] = {"gif",  "bmp",  "tif", "tiff", "webp",
                                         "heic", "avif", "jpe", "jfif", "pam"};
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name || strchr(dot, '/'))
        return false;
    if (codec_of_extension(dot + 1) != CODEC_NONE)
        return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcasecmp(dot + 1, others[i]))
            return true;
    return false;
}

int source_key_of(struct sample *sample, const char *path, struct error *err) {
    for (;;) {
        if (path[0] == '/')
            path++;
        else if (path[0] == '.' && path[1] == '/')
            path += 2;
        else
            break;
    }
    int status = sample_key(sample, path, err);
    if (status)
        return status;
    char *slash = strrchr(sample->key, '/');
    char *base = slash ? slash + 1 : sample->key, *dot = strrchr(base, '.');
    if (dot && dot > base)
        *dot = 0;
    return STATUS_OK;
}

int source_number(struct source *source, struct sample *sample, uint64_t number,
                  struct error *err) {
    int status = sample_path_number(sample, stream_name(source->stream), number, err);
    return status ? status : sample_key_number(sample, number, err);
}

int source_label_parent(struct source *source, struct sample *sample, const char *path,
                        struct error *err) {
    const char *end = strrchr(path, '/');
    if (!end || end == path)
        return STATUS_OK;
    const char *begin = end;
    while (begin > path && begin[-1] != '/')
        begin--;
    char name[CLASS_NAME_MAX + 2];
    snprintf(name, sizeof name, "%.*s", (int)(end - begin), begin);
    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return STATUS_OK;
    return classes_label(source->classes, name, &sample->label, err);
}

int source_label_text(struct source *source, struct sample *sample, const char *text,
                      struct error *err) {
    int64_t number;
    if (text_plain_integer(text, &number))
        return classes_number(source->classes, number, &sample->label, err);
    return classes_label(source->classes, text, &sample->label, err);
}
