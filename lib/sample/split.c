#include "sample/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/grow.h"
#include "core/mem.h"
#include "core/random.h"
#include "core/text.h"
#include "store/output.h"

static int parse_part(struct split *split, const char *text, size_t length, struct error *err) {
    const char *equals = memchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : length;
    double share = 0;
    if (!equals || !text_real(equals + 1, length - name - 1, &share) || share <= 0 || share >= 1)
        return error_set(err, STATUS_USAGE,
                         "--split: '%.*s' is not NAME=SHARE with a share "
                         "between 0 and 1",
                         (int)length, text);
    if (!name || name >= SPLIT_NAME || memchr(text, '/', name) || text[0] == '.')
        return error_set(err, STATUS_USAGE, "--split: '%.*s' cannot be the name of a part",
                         (int)name, text);
    if (split->count == SPLIT_PARTS)
        return error_set(err, STATUS_USAGE, "--split: more than %d parts", SPLIT_PARTS - 1);
    struct split_part *part = &split->parts[split->count];
    snprintf(part->name, sizeof part->name, "%.*s", (int)name, text);
    part->share = share;
    for (int i = 0; i < split->count; i++)
        if (!strcmp(split->parts[i].name, part->name))
            return error_set(err, STATUS_USAGE, "--split: part '%s' is there already", part->name);
    split->parts[0].share -= share;
    split->count++;
    return STATUS_OK;
}

int split_parse(struct split *split, const char *text, struct error *err) {
    *split = (struct split){.count = 1, .parts = {{.name = "train", .share = 1}}};
    while (text && *text) {
        size_t length = strcspn(text, ",");
        int status = parse_part(split, text, length, err);
        if (status)
            return status;
        text += length + (text[length] != 0);
    }
    if (split->parts[0].share <= 0)
        return error_set(err, STATUS_USAGE, "--split: the shares leave nothing for training");
    return STATUS_OK;
}

uint64_t split_key(const char *key) {
    return hash_bytes(key, strlen(key));
}

uint64_t split_place(const struct split *split, int part, uint64_t key) {
    const char *name = split->parts[part].name;
    return hash_mix(hash_bytes(name, strlen(name)), key);
}

// Its share of what the parts before it leave, 0..1.
static double share_of_rest(const struct split *split, int part) {
    double left = 1;
    for (int i = 1; i < part; i++)
        left -= split->parts[i].share;
    return split->parts[part].share / left;
}

int split_of(const struct split *split, const char *key) {
    uint64_t hash = split->count > 1 ? split_key(key) : 0;
    for (int part = 1; part < split->count; part++)
        if ((double)(split_place(split, part, hash) >> 11) * 0x1p-53 < share_of_rest(split, part))
            return part;
    return 0;
}

// Where "-NAME" goes in: before the extension of the last name in the path, and
// before that of what is compressed.
static size_t name_insertion(const char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (path[length] == '/')
        return length;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *idx = strstr(base, "-idx");
    if (idx && idx > base)
        return (size_t)(idx - path);
    return output_stem_length(path);
}

static const char placeholder[] = "{split}";

static char *fill_in(const char *path, const char *name) {
    struct grow result = {0};
    for (const char *at; (at = strstr(path, placeholder)); path = at + sizeof placeholder - 1) {
        grow_put(&result, path, (size_t)(at - path));
        grow_put(&result, name, strlen(name));
    }
    grow_put(&result, path, strlen(path));
    return grow_take(&result);
}

char *split_path(const struct split *split, int part, const char *path) {
    const char *name = split->parts[part].name;
    if (strstr(path, placeholder))
        return fill_in(path, name);
    if (part == 0)
        return mem_string(path);
    size_t at = name_insertion(path);
    char *result = NULL;
    if (asprintf(&result, "%.*s-%s%s", (int)at, path, name, path + at) < 0)
        return NULL;
    return result;
}
