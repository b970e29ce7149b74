#include "sample/tar_group.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"

// How long the name of its group is: up to the first dot of the base name.
static size_t group_length(const char *key) {
    const char *slash = strrchr(key, '/'), *base = slash ? slash + 1 : key;
    return (size_t)(base - key) + strcspn(base, ".");
}

bool tar_group_has(const struct tar_group *group, const char *key) {
    size_t n = group_length(key);
    return group->name && !strncmp(group->name, key, n) && !group->name[n];
}

static int replace(char **text, const char *with, size_t length, struct error *err) {
    char *copy = mem_text(with, length);
    if (!copy)
        return error_nomem(err);
    free(*text);
    *text = copy;
    return STATUS_OK;
}

// A key without further dots names its group.
static bool is_whole(const struct tar_group *group, const char *key) {
    return !strcmp(group->name, key);
}

// Whether a group that begins was met before as what it cannot be together with this key.
static int look_back(struct tar_group *group, bool whole, bool beside, const struct keyset *keys,
                     bool *scattered, struct error *err) {
    bool again;
    if (whole) {
        *scattered = keyset_has(&group->dotted, group->name);
        return STATUS_OK;
    }
    *scattered =
        keyset_has(keys, group->name) || (!beside && keyset_has(&group->others, group->name));
    return keyset_add(&group->dotted, group->name, &again, err);
}

int tar_group_begin(struct tar_group *group, const char *key, const struct keyset *keys,
                    bool *scattered, struct error *err) {
    int status = replace(&group->name, key, group_length(key), err);
    if (status)
        return status;
    bool beside = group->beside && !strcmp(group->beside, group->name);
    group->reading = beside ? GROUP_PARTS : GROUP_OPEN;
    group->pictured = group->part = group->described = false;
    return look_back(group, is_whole(group, key), beside, keys, scattered, err);
}

int tar_group_see(struct tar_group *group, const char *key, const struct keyset *keys,
                  bool *scattered, struct error *err) {
    bool again;
    *scattered = !tar_group_has(group, key) && keyset_has(&group->dotted, key) &&
                 !keyset_has(&group->others, key) && !keyset_has(keys, key);
    int status = keyset_add(&group->others, key, &again, err);
    if (status || tar_group_has(group, key))
        return status;
    return replace(&group->beside, key, strlen(key), err);
}

void tar_group_meet(struct tar_group *group, enum tar_member_kind kind) {
    group->pictured = group->pictured || kind == MEMBER_PICTURE;
    group->described = group->described || kind != MEMBER_PICTURE;
}

static struct tar_sample *place(struct tar_group *group, int i) {
    return &group->waiting[(group->first + i) % TAR_GROUP_WAITING];
}

void tar_group_put(struct tar_group *group, struct tar_sample *sample) {
    struct tar_sample *to = place(group, group->count++), empty = *to;
    *to = *sample;
    *sample = empty;
    free(sample->key);
    sample->key = NULL;
    memset(sample->have, 0, sizeof sample->have);
    if (group->count == TAR_GROUP_WAITING && group->reading == GROUP_OPEN)
        group->reading = GROUP_OWN;
}

struct tar_sample *tar_group_take(struct tar_group *group) {
    if (group->reading == GROUP_OPEN || group->count == 0)
        return NULL;
    struct tar_sample *sample = place(group, 0);
    group->first = (group->first + 1) % TAR_GROUP_WAITING;
    group->count--;
    return sample;
}

bool tar_group_end(struct tar_group *group) {
    if (group->reading == GROUP_OPEN)
        group->reading = GROUP_OWN;
    group->lacks = group->lacks || (!group->pictured && (group->part || group->described));
    group->part = group->described = false;
    return group->count > 0 || group->lacks;
}

bool tar_group_lacks(struct tar_group *group) {
    bool lacks = group->lacks;
    group->lacks = false;
    return lacks;
}

int tar_group_leave_out(struct tar_group *group, const char *path, struct error *err) {
    group->part = true;
    return group->left_out++ ? STATUS_OK : replace(&group->example, path, strlen(path), err);
}

int tar_group_join(struct tar_group *group, struct error *err) {
    int status = STATUS_OK;
    group->reading = GROUP_PARTS;
    group->pictured = false;
    for (const struct tar_sample *s; !status && (s = tar_group_take(group));)
        status = tar_group_leave_out(group, s->sample.path, err);
    return status;
}

void tar_sample_free(struct tar_sample *sample) {
    free(sample->key);
    sample_free(&sample->sample);
}

void tar_group_free(struct tar_group *group) {
    for (int i = 0; i < TAR_GROUP_WAITING; i++)
        tar_sample_free(&group->waiting[i]);
    free(group->name);
    free(group->beside);
    free(group->example);
    keyset_free(&group->dotted);
    keyset_free(&group->others);
}
