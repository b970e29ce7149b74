// Labels in a second file: a one-dimensional IDX or .npy array of integers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/array.h"
#include "sample/source_kind.h"
#include "store/output.h"

// Replaces the last `from` in `name`, when it is there.
static void replace_last(char **name, const char *from, const char *to) {
    char *at = NULL, *longer = NULL;
    for (char *p = *name; p && (p = strstr(p, from)); p++)
        at = p;
    if (!at || asprintf(&longer, "%.*s%s%s", (int)(at - *name), *name, to, at + strlen(from)) < 0)
        return;
    free(*name);
    *name = longer;
}

char *source_labels_name(const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char *name = mem_string(base), *whole = NULL;
    if (!name)
        return NULL;
    if (strstr(name, "images") && strstr(name, "-idx")) {
        char idx[] = "-idx?-";
        for (idx[4] = '2'; idx[4] <= '9'; idx[4]++)
            replace_last(&name, idx, "-idx1-");
        replace_last(&name, "images", "labels");
    } else {
        size_t stem = output_stem_length(name);
        char *longer = NULL;
        if (asprintf(&longer, "%.*s-labels%s", (int)stem, name, name + stem) >= 0) {
            free(name);
            name = longer;
        }
    }
    if (asprintf(&whole, "%.*s%s", (int)(base - path), path, name) < 0)
        whole = NULL;
    free(name);
    return whole;
}

static int read_values(struct source_labels *labels, const struct source *source,
                       const struct array *array, struct stream *stream, struct error *err) {
    uint8_t value[8];
    size_t got, size = (size_t)array->element.size;
    int64_t highest = -1, number = 0;
    for (uint64_t i = 0; i < labels->count; i++) {
        int status = stream_read(stream, value, size, &got, err);
        if (status)
            return status;
        if (got < size || !element_integer(&number, value, array->element) || number < 0 ||
            number >= CLASSES_MAX)
            return error_set(err, STATUS_DATA, "%s: label %llu is %s", stream_name(stream),
                             (unsigned long long)i,
                             got < size ? "missing" : "no integer from 0 to 999999");
        labels->labels[i] = (int32_t)number;
        highest = number > highest ? number : highest;
    }
    // From the highest on down, so that the table is numbered without gaps.
    int status = STATUS_OK, label;
    if (highest >= 0)
        status = classes_number(source->classes, highest, &label, err);
    for (uint64_t i = 0; !status && i < labels->count; i++) {
        status = classes_number(source->classes, labels->labels[i], &label, err);
        labels->labels[i] = label;
    }
    return status;
}

static int read_labels(struct source_labels *labels, const struct source *source, uint64_t samples,
                       struct stream *stream, struct error *err) {
    const uint8_t *data;
    size_t got;
    struct array array;
    int status = stream_peek(stream, 10, &data, &got, err);
    if (!status)
        status = array_is_npy(data, got) ? array_read_npy(&array, stream, err)
                                         : array_read_idx(&array, stream, err);
    if (status)
        return status;
    if (array.item_values != 1 || array.element.kind == 'f')
        return error_set(err, STATUS_DATA, "%s: no list of integers, so it holds no labels",
                         stream_name(stream));
    if (array.size[0] != samples)
        return error_set(err, STATUS_DATA, "%s: %llu labels for %llu samples", stream_name(stream),
                         (unsigned long long)array.size[0], (unsigned long long)samples);
    labels->labels = mem_array(samples, sizeof *labels->labels);
    if (!labels->labels)
        return error_nomem(err);
    labels->count = samples;
    return read_values(labels, source, &array, stream, err);
}

static int open_labels(struct source_labels *labels, const struct source *source, uint64_t samples,
                       const char *path, struct error *err) {
    struct stream *stream;
    const struct stream_wait wait = {source->options.hooks.stop, source->options.hooks.self};
    int status = stream_open_stoppable(&stream, path, &wait, err);
    if (status)
        return status;
    status = read_labels(labels, source, samples, stream, err);
    stream_close(stream);
    return status;
}

int source_labels_open(struct source_labels *labels, const struct source *source, uint64_t samples,
                       struct error *err) {
    if (source->options.label_from == LABEL_NO)
        return STATUS_OK;
    if (source->options.labels)
        return open_labels(labels, source, samples, source->options.labels, err);
    if (!strcmp(source->path, "-"))
        return STATUS_OK;
    char *beside = source_labels_name(source->path);
    if (!beside)
        return error_nomem(err);
    int status = STATUS_OK;
    if (strcmp(beside, source->path) != 0 && access(beside, F_OK) == 0)
        status = open_labels(labels, source, samples, beside, err);
    free(beside);
    return status;
}

void source_labels_free(struct source_labels *labels) {
    free(labels->labels);
    *labels = (struct source_labels){0};
}
