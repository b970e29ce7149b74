// The table of class names: label to name by index, name to label by hash.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/grow.h"
#include "core/mem.h"
#include "core/random.h"
#include "core/text.h"
#include "sample/sample.h"
#include "store/stream.h"

enum { FILE_MAX = 64 << 20, LISTED = 12 };

// The slot that holds `name`, or the empty one where it belongs.
static uint32_t slot_of(const struct classes *classes, const char *name) {
    uint32_t mask = classes->slot_count - 1;
    uint32_t slot = (uint32_t)hash_bytes(name, strlen(name)) & mask;
    while (classes->slots[slot] && strcmp(classes->names[classes->slots[slot] - 1], name) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

int classes_find(const struct classes *classes, const char *name) {
    if (classes->slot_count > 0)
        return (int)classes->slots[slot_of(classes, name)] - 1;
    for (int i = 0; i < classes->count; i++)
        if (!strcmp(classes->names[i], name))
            return i;
    return -1;
}

int classes_unknown(const struct classes *classes, int count, const char *where, const char *name,
                    struct error *err) {
    struct grow list = {0};
    for (int i = 0; i < count && i < LISTED; i++)
        grow_format(&list, "%s%.40s", i > 0 ? ", " : "", classes->names[i]);
    if (count > LISTED)
        grow_format(&list, ", ...");
    char *names = grow_take(&list);
    int status = error_set(err, STATUS_DATA, "%s: class '%s' is not one of the model's %d: %s",
                           where, name, count, names ? names : "");
    free(names);
    return status;
}

// Keeps at least half of the slots empty for one more name.
static int grow_slots(struct classes *classes, struct error *err) {
    if (classes->slot_count / 2 > (uint32_t)classes->count)
        return STATUS_OK;
    uint32_t count = 64;
    while (count / 4 <= (uint32_t)classes->count)
        count *= 2;
    uint32_t *slots = mem_zeroed(count, sizeof *slots);
    if (!slots)
        return error_nomem(err);
    free(classes->slots);
    classes->slots = slots;
    classes->slot_count = count;
    for (int i = 0; i < classes->count; i++)
        slots[slot_of(classes, classes->names[i])] = (uint32_t)i + 1;
    return STATUS_OK;
}

static int check_name(const char *name, struct error *err) {
    size_t length = strlen(name);
    if (length == 0)
        return error_set(err, STATUS_DATA, "a class without a name");
    if (length > CLASS_NAME_MAX)
        return error_set(err, STATUS_DATA, "a class name of %zu bytes; %d are possible", length,
                         CLASS_NAME_MAX);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return error_set(err, STATUS_DATA, "a class name with control character %d",
                             (unsigned char)*c);
    return STATUS_OK;
}

static int append_name(struct classes *classes, const char *name, struct error *err) {
    if (classes->count >= CLASSES_MAX)
        return error_set(err, STATUS_DATA, "more than %d classes", CLASSES_MAX);
    int status = check_name(name, err);
    if (!status)
        status = grow_slots(classes, err);
    if (status)
        return status;
    size_t count = (size_t)classes->count;
    // The array grows when its length is a power of two.
    if ((count & (count - 1)) == 0) {
        char **names = mem_resize(classes->names, count ? 2 * count : 1, sizeof *names);
        if (!names)
            return error_nomem(err);
        classes->names = names;
    }
    char *copy = mem_string(name);
    if (!copy)
        return error_nomem(err);
    uint32_t slot = slot_of(classes, name);
    classes->names[classes->count++] = copy;
    classes->slots[slot] = (uint32_t)classes->count;
    return STATUS_OK;
}

int classes_label(struct classes *classes, const char *name, int *label, struct error *err) {
    *label = classes_find(classes, name);
    if (*label >= 0)
        return STATUS_OK;
    *label = classes->count;
    return append_name(classes, name, err);
}

static bool all_numbers(const struct classes *classes) {
    char last[16];
    if (classes->count == 0)
        return true;
    // Names are unique, so the first and the last tell all but made-up tables.
    snprintf(last, sizeof last, "%d", classes->count - 1);
    return !strcmp(classes->names[0], "0") && !strcmp(classes->names[classes->count - 1], last);
}

int classes_number(struct classes *classes, int64_t number, int *label, struct error *err) {
    if (number < 0 || number >= CLASSES_MAX)
        return error_set(err, STATUS_DATA, "label %lld is not between 0 and %d", (long long)number,
                         CLASSES_MAX - 1);
    char name[24];
    snprintf(name, sizeof name, "%lld", (long long)number);
    *label = classes_find(classes, name);
    if (*label >= 0)
        return STATUS_OK;
    int status = STATUS_OK;
    while (!status && classes->count < number && all_numbers(classes)) {
        char between[24];
        snprintf(between, sizeof between, "%d", classes->count);
        status = append_name(classes, between, err);
    }
    return status ? status : classes_label(classes, name, label, err);
}

// Cuts `text` into lines and adds each to the empty table.
static int add_lines(struct classes *classes, char *text, const char *path, struct error *err) {
    int line = 0, label, status = STATUS_OK;
    for (char *rest = text, *name; !status && (name = strsep(&rest, "\n"));) {
        line++;
        size_t length = strlen(name);
        if (length > 0 && name[length - 1] == '\r')
            name[--length] = 0;
        if (length == 0 && !rest)
            break;
        if (classes_find(classes, name) >= 0)
            return error_set(err, STATUS_DATA, "%s:%d: class '%s' comes twice", path, line, name);
        if ((status = classes_label(classes, name, &label, err)))
            error_context(err, "%s:%d", path, line);
    }
    return status;
}

static int read_file(struct classes *classes, const char *path, struct error *err) {
    struct stream *stream;
    int status = stream_open(&stream, path, err);
    if (status)
        return status;
    const uint8_t *data;
    size_t size;
    status = stream_peek(stream, FILE_MAX, &data, &size, err);
    if (!status && size == FILE_MAX)
        status = error_set(err, STATUS_DATA, "%s: too large for a list of class names", path);
    if (!status && memchr(data, 0, size))
        status = error_set(err, STATUS_DATA, "%s: no text: it holds a zero byte", path);
    if (!status) {
        size_t mark = text_mark((const char *)data, size);
        char *text = mem_text((const char *)data + mark, size - mark);
        status = text ? add_lines(classes, text, path, err) : error_nomem(err);
        free(text);
    }
    stream_close(stream);
    return status;
}

int classes_read(struct classes *classes, const char *path, struct error *err) {
    struct classes own = {0};
    int label, status = read_file(&own, path, err);
    for (int i = 0; !status && i < own.count; i++)
        status = classes_label(classes, own.names[i], &label, err);
    classes_free(&own);
    return status;
}

int classes_copy(struct classes *to, const struct classes *from, struct error *err) {
    struct classes copy = {0};
    int label, status = STATUS_OK;
    for (int i = 0; !status && i < from->count; i++)
        status = classes_label(&copy, from->names[i], &label, err);
    if (status) {
        classes_free(&copy);
        return status;
    }
    *to = copy;
    return STATUS_OK;
}

void classes_free(struct classes *classes) {
    for (int i = 0; i < classes->count; i++)
        free(classes->names[i]);
    free(classes->names);
    free(classes->slots);
    *classes = (struct classes){0};
}
