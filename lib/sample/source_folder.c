// A folder per class: the class is the name of the first folder below the root,
// samples may lie deeper. Pictures right in the root have no class.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/mem.h"
#include "sample/keyset.h"
#include "sample/source_kind.h"

enum { DEEPEST = 64 };

struct names {
    char **items;
    size_t count;
};

struct folder {
    char *root;
    struct names files; // paths below the root, sorted
    size_t next;
    struct keyset keys;
};

static void names_free(struct names *names) {
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct names){0};
}

// Takes `name` over, also when it fails.
static int names_add(struct names *names, char *name, struct error *err) {
    size_t n = names->count;
    if (name && (n & (n - 1)) == 0) {
        char **items = mem_resize(names->items, n ? 2 * n : 1, sizeof *items);
        if (!items) {
            free(name);
            return error_nomem(err);
        }
        names->items = items;
    }
    if (!name)
        return error_nomem(err);
    names->items[names->count++] = name;
    return STATUS_OK;
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *join(const char *folder, const char *name) {
    char *path = NULL;
    const char *slash = *folder && folder[strlen(folder) - 1] != '/' ? "/" : "";
    return asprintf(&path, "%s%s%s", folder, slash, name) < 0 ? NULL : path;
}

// The names in a folder, sorted, without hidden ones.
static int list_folder(struct names *names, const char *path, struct error *err) {
    DIR *dir = opendir(path);
    if (!dir)
        return error_errno(err, STATUS_NOINPUT, "cannot read folder %s", path);
    int status = STATUS_OK;
    struct dirent *entry;
    while (!status && (errno = 0, entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            status = names_add(names, mem_string(entry->d_name), err);
    if (!status && errno)
        status = error_errno(err, STATUS_IO, "cannot read folder %s", path);
    closedir(dir);
    if (!status && names->count)
        qsort(names->items, names->count, sizeof *names->items, compare);
    return status;
}

static int walk(struct source *source, const char *below, int depth, struct error *err);

static int walk_entry(struct source *source, const char *below, const char *name, int depth,
                      struct error *err) {
    struct folder *folder = source->state;
    char *path = join(below, name), *full = path ? join(folder->root, path) : NULL;
    int status = full ? STATUS_OK : error_nomem(err);
    struct stat stat_of;
    // What cannot be looked at is met again when it is read, and reported then.
    bool is_folder = full && stat(full, &stat_of) == 0 && S_ISDIR(stat_of.st_mode);
    free(full);
    if (!status && is_folder) {
        int label;
        if (depth == 0 && source->options.label_from == LABEL_DEFAULT)
            status = classes_label(source->classes, name, &label, err);
        if (status)
            error_context(err, "%s/%s", folder->root, name);
        else
            status = walk(source, path, depth + 1, err);
    } else if (!status && source_picture_name(name)) {
        return names_add(&folder->files, path, err);
    }
    free(path);
    return status;
}

static int walk(struct source *source, const char *below, int depth, struct error *err) {
    struct folder *folder = source->state;
    struct names names = {0};
    char *path = join(folder->root, below);
    int status = path ? STATUS_OK : error_nomem(err);
    if (!status && depth > DEEPEST)
        status = error_set(err, STATUS_DATA, "%s: more than %d folders deep; a link in a circle?",
                           path, DEEPEST);
    if (!status)
        status = list_folder(&names, path, err);
    for (size_t i = 0; !status && i < names.count; i++)
        status = walk_entry(source, below, names.items[i], depth, err);
    names_free(&names);
    free(path);
    return status;
}

// What adam-prep wrote keeps the order of its classes in classes.txt.
static int read_classes(struct source *source, struct error *err) {
    struct folder *folder = source->state;
    char *path = join(folder->root, "classes.txt");
    int status = path ? STATUS_OK : error_nomem(err);
    struct stat stat_of;
    if (!status && source->options.label_from == LABEL_DEFAULT && stat(path, &stat_of) == 0)
        status = classes_read(source->classes, path, err);
    free(path);
    return status;
}

static int open_folder(struct source *source, struct error *err) {
    struct folder *folder = source->state = mem_zeroed(1, sizeof *folder);
    if (!folder || !(folder->root = mem_string(source->path)))
        return error_nomem(err);
    int status = read_classes(source, err);
    if (!status)
        status = walk(source, "", 0, err);
    if (!status && folder->files.count == 0)
        status = error_set(err, STATUS_DATA, "%s: no pictures in this folder", source->path);
    return status;
}

static int label_of(struct source *source, struct sample *sample, const char *path,
                    struct error *err) {
    const char *slash = strchr(path, '/');
    if (source->options.label_from == LABEL_PARENT)
        return source_label_parent(source, sample, path, err);
    if (source->options.label_from == LABEL_NO || !slash)
        return STATUS_OK;
    char name[CLASS_NAME_MAX + 2];
    snprintf(name, sizeof name, "%.*s", (int)(slash - path), path);
    return classes_label(source->classes, name, &sample->label, err);
}

// The path without extension; where x.jpg and x.png stand side by side, the
// second one keeps its extension, so that keys stay unique.
static int set_key(struct folder *folder, struct sample *sample, const char *below,
                   struct error *err) {
    bool again;
    int status = source_key_of(sample, below, err);
    if (!status)
        status = keyset_add(&folder->keys, sample->key, &again, err);
    return !status && again ? sample_key(sample, below, err) : status;
}

static int next(struct source *source, struct sample *sample, bool *more, struct error *err) {
    struct folder *folder = source->state;
    *more = folder->next < folder->files.count;
    if (!*more)
        return STATUS_OK;
    const char *below = folder->files.items[folder->next++];
    char *path = join(folder->root, below);
    int status = path ? sample_path(sample, path, err) : error_nomem(err);
    free(path);
    if (!status)
        status = set_key(folder, sample, below, err);
    if (!status)
        status = label_of(source, sample, below, err);
    if (!status && !source->paths_only)
        status = source_file(sample, source->options.max_bytes, err);
    return status;
}

static int64_t count(const struct source *source) {
    const struct folder *folder = source->state;
    return (int64_t)folder->files.count;
}

static void close_folder(struct source *source) {
    struct folder *folder = source->state;
    if (!folder)
        return;
    names_free(&folder->files);
    keyset_free(&folder->keys);
    free(folder->root);
    free(folder);
}

const struct source_kind source_folder = {
    .name = "folder",
    .open = open_folder,
    .next = next,
    .count = count,
    .close = close_folder,
};
