// A folder per class: the class is the name of the first folder below the root,
// samples may lie deeper. Pictures right in the root have no class.
//
// Symbolic links are followed, but not back: a link to a folder that was entered
// already for this class, or in which the root itself is, would give the same
// pictures again and again. Folders are known by device and inode. Links are
// followed behind all real folders of their class, so that which pictures are
// found, and under which keys, does not depend on the names of links. So is a link to
// a picture that is read for the same class by its own name.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/files_met.h"
#include "sample/keyset.h"
#include "sample/originals.h"
#include "sample/source_kind.h"

enum { DEEPEST = 64 };

struct names {
    char **items;
    size_t count;
};

// A folder that was entered, while the pictures of one class are looked for.
struct entered {
    dev_t device;
    ino_t inode;
    bool open; // its entries are being walked
};

// The pictures of one class, or those of none, while they are looked for.
struct pictures {
    struct files_met met;
    struct names links; // to pictures, paths below the root
};

struct folder {
    char *root;
    struct names files; // paths below the root, sorted
    size_t next;
    struct names omitted;      // paths of what is passed over,
    struct names reasons;      // and why
    size_t told;               // of them
    struct names links;        // to folders of the class that is walked, paths below the root
    bool following;            // these
    struct pictures own, bare; // of the class that is walked, and of none
    struct entered *entered;
    struct originals originals;
    size_t entered_count, above; // `above` of them: the root, and the folders it is in
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

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// In the order of a walk: what is in a folder comes where the folder's name does.
static int compare_paths(const void *a, const void *b) {
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    for (; *left && *left == *right; left++)
        right++;
    return (*left == '/' ? 0 : (unsigned char)*left) - (*right == '/' ? 0 : (unsigned char)*right);
}

static char *join_path(const char *folder, const char *name) {
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
        qsort(names->items, names->count, sizeof *names->items, compare_names);
    return status;
}

static const struct entered *entered_find(const struct folder *folder, const struct stat *of) {
    for (size_t i = 0; i < folder->entered_count; i++)
        if (folder->entered[i].device == of->st_dev && folder->entered[i].inode == of->st_ino)
            return &folder->entered[i];
    return NULL;
}

static int note_entered(struct folder *folder, const struct stat *stat_of, struct error *err) {
    size_t n = folder->entered_count;
    if ((n & (n - 1)) == 0) {
        struct entered *grown = mem_resize(folder->entered, n ? 2 * n : 1, sizeof *grown);
        if (!grown)
            return error_nomem(err);
        folder->entered = grown;
    }
    folder->entered[folder->entered_count++] =
        (struct entered){stat_of->st_dev, stat_of->st_ino, true};
    return STATUS_OK;
}

// The root, and the folders it is in, as far up as they can be looked at.
static int enter_root(struct folder *folder, struct error *err) {
    struct stat stat_of;
    char *path = mem_string(folder->root);
    int status = path ? STATUS_OK : error_nomem(err);
    while (!status && stat(path, &stat_of) == 0 && !entered_find(folder, &stat_of)) {
        char *up = join_path(path, "..");
        free(path);
        path = up;
        status = path ? note_entered(folder, &stat_of, err) : error_nomem(err);
    }
    free(path);
    folder->above = folder->entered_count;
    return status;
}

// Remembers that `path` is passed over. Takes nothing over.
static int note_omitted(struct folder *folder, const char *path, const char *why,
                        struct error *err) {
    int status = names_add(&folder->omitted, mem_string(path), err);
    return status ? status : names_add(&folder->reasons, mem_string(why), err);
}

static int walk_below(struct source *source, const char *below, int depth, struct error *err);

// Enters a folder, unless it leads back. What lies where a link leads may be read already.
static int enter(struct source *source, const char *below, const char *full, int depth,
                 const struct stat *stat_of, struct error *err) {
    struct folder *folder = source->state;
    const struct entered *before = entered_find(folder, stat_of);
    if (before && (before->open || folder->following))
        return note_omitted(folder, full, "leads back to a folder that is read already", err);
    size_t place = folder->entered_count;
    int status = note_entered(folder, stat_of, err);
    if (!status)
        status = walk_below(source, below, depth + 1, err);
    if (!status)
        folder->entered[place].open = false;
    return status;
}

static int follow_link(struct source *source, const char *below, struct error *err) {
    struct folder *folder = source->state;
    struct stat stat_of;
    int depth = 0, status = STATUS_OK;
    for (const char *slash = below; (slash = strchr(slash, '/')); slash++)
        depth++;
    char *full = join_path(folder->root, below);
    if (!full)
        return error_nomem(err);
    if (stat(full, &stat_of) == 0)
        status = enter(source, below, full, depth, &stat_of, err);
    free(full);
    return status;
}

// Follows the links of a class, and those that are found by that; its files, from `first` on, are
// then in the order in which they would have been met without waiting.
static int follow_links(struct source *source, size_t first, struct error *err) {
    struct folder *folder = source->state;
    struct names *files = &folder->files;
    int status = STATUS_OK;
    folder->following = true;
    for (size_t i = 0; !status && i < folder->links.count; i++)
        status = follow_link(source, folder->links.items[i], err);
    folder->following = false;
    if (folder->links.count > 0 && files->count > first)
        qsort(files->items + first, files->count - first, sizeof *files->items, compare_paths);
    names_free(&folder->links);
    return status;
}

// A link to a picture, unless that is read already.
static int take_link(struct folder *folder, const char *below, bool again, struct error *err) {
    if (!again)
        return names_add(&folder->files, mem_string(below), err);
    char *full = join_path(folder->root, below);
    if (!full)
        return error_nomem(err);
    int status = note_omitted(folder, full, "leads to a picture that is read already", err);
    free(full);
    return status;
}

// Adds those of the links that lead to pictures of their own to the files, which are, from `first`
// on, in the order of a walk again.
static int take_links(struct folder *folder, struct pictures *pictures, size_t first,
                      struct error *err) {
    struct names *links = &pictures->links, *files = &folder->files;
    bool *again = links->count > 0 ? mem_zeroed(links->count, sizeof *again) : NULL;
    int status = links->count > 0 && !again ? error_nomem(err) : STATUS_OK;
    if (again)
        files_met_again(&pictures->met, again);
    for (size_t i = 0; !status && i < links->count; i++)
        status = take_link(folder, links->items[i], again[i], err);
    if (links->count > 0 && files->count > first)
        qsort(files->items + first, files->count - first, sizeof *files->items, compare_paths);
    free(again);
    names_free(links);
    files_met_forget(&pictures->met);
    return status;
}

// The first folder below the root, or a link to one: a class.
static int walk_class(struct source *source, const char *below, const char *full, const char *name,
                      const struct stat *stat_of, struct error *err) {
    struct folder *folder = source->state;
    size_t first = folder->files.count;
    int label, status = STATUS_OK;
    folder->entered_count = folder->above; // what other classes entered does not count
    if (source->options.label_from == LABEL_DEFAULT && !entered_find(folder, stat_of))
        status = classes_label(source->classes, name, &label, err);
    if (status)
        return error_context(err, "%s", full);
    status = enter(source, below, full, 0, stat_of, err);
    if (!status)
        status = follow_links(source, first, err);
    return status ? status : take_links(folder, &folder->own, first, err);
}

// A path that is looked at: what is there, if something is, behind a link if it is one.
struct place {
    const char *below, *full, *name; // `full` is `below` with the root in front
    int depth;
    bool there, link;
    struct stat of;
};

// What cannot be looked at is met again when it is read, and reported then.
static void look_at(struct place *place) {
    place->there = lstat(place->full, &place->of) == 0;
    place->link = place->there && S_ISLNK(place->of.st_mode);
    if (place->link)
        place->there = stat(place->full, &place->of) == 0;
}

// Walks a folder, or keeps a link to one for later.
static int walk_folder(struct source *source, const struct place *place, struct error *err) {
    struct folder *folder = source->state;
    if (place->depth == 0)
        return walk_class(source, place->below, place->full, place->name, &place->of, err);
    return place->link ? names_add(&folder->links, mem_string(place->below), err)
                       : enter(source, place->below, place->full, place->depth, &place->of, err);
}

// A file with the name of a picture, or keeps a link to one for later. Where each folder is a
// class, links from one to another give both a sample.
static int walk_picture(struct source *source, const struct place *place, struct error *err) {
    struct folder *folder = source->state;
    struct pictures *pictures = place->depth == 0 ? &folder->bare : &folder->own;
    bool knows = place->there && source->options.label_from != LABEL_PARENT;
    bool waits = knows && place->link;
    int status = STATUS_OK;
    if (place->there && !S_ISREG(place->of.st_mode))
        return note_omitted(folder, place->full, "is no regular file", err);
    if (knows)
        status =
            files_met_add(&pictures->met, &place->of, waits ? pictures->links.count + 1 : 0, err);
    if (status)
        return status;
    return names_add(waits ? &pictures->links : &folder->files, mem_string(place->below), err);
}

static int walk_path(struct source *source, struct place *place, struct error *err) {
    look_at(place);
    if (place->there && S_ISDIR(place->of.st_mode))
        return walk_folder(source, place, err);
    return source_picture_name(place->name) ? walk_picture(source, place, err) : STATUS_OK;
}

static int walk_entry(struct source *source, const char *below, const char *name, int depth,
                      struct error *err) {
    struct folder *folder = source->state;
    char *path = join_path(below, name), *full = path ? join_path(folder->root, path) : NULL;
    struct place place = {.below = path, .full = full, .name = name, .depth = depth};
    int status = full ? walk_path(source, &place, err) : error_nomem(err);
    free(full);
    free(path);
    return status;
}

static int walk_below(struct source *source, const char *below, int depth, struct error *err) {
    struct folder *folder = source->state;
    struct names names = {0};
    char *path = join_path(folder->root, below);
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
    char *path = join_path(folder->root, "classes.txt");
    int status = path ? STATUS_OK : error_nomem(err);
    struct stat stat_of;
    if (!status && source->options.label_from == LABEL_DEFAULT && stat(path, &stat_of) == 0)
        status = classes_read(source->classes, path, err);
    free(path);
    return status;
}

// And the copies that it wrote are known as such.
static int read_originals(struct folder *folder, struct error *err) {
    char *path = join_path(folder->root, ORIGINALS_FILE);
    int status = path ? STATUS_OK : error_nomem(err);
    if (!status && access(path, F_OK) == 0)
        status = originals_read(&folder->originals, path, err);
    free(path);
    return status;
}

static int open_folder(struct source *source, struct error *err) {
    struct folder *folder = source->state = mem_zeroed(1, sizeof *folder);
    if (!folder || !(folder->root = mem_string(source->path)))
        return error_nomem(err);
    int status = read_classes(source, err);
    if (!status)
        status = read_originals(folder, err);
    if (!status)
        status = enter_root(folder, err);
    if (!status)
        status = walk_below(source, "", 0, err);
    if (!status)
        status = take_links(folder, &folder->bare, 0, err);
    files_met_free(&folder->own.met);
    files_met_free(&folder->bare.met);
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
// second one keeps its extension, so that keys stay unique: x.png.jpg behind them
// keeps its own.
static int set_key(struct folder *folder, struct sample *sample, const char *below,
                   struct error *err) {
    bool again;
    int status = source_key_of(sample, below, err);
    if (!status)
        status = keyset_add(&folder->keys, sample->key, &again, err);
    if (!status && again)
        status = sample_key(sample, below, err);
    if (!status && again)
        status = keyset_add(&folder->keys, sample->key, &again, err);
    const char *original = status ? NULL : originals_find(&folder->originals, sample->key);
    return original ? sample_original(sample, original, err) : status;
}

// Reports the next path that is passed over: no sample is missing by that.
static int tell_omitted(struct folder *folder, struct sample *sample, struct error *err) {
    size_t i = folder->told++;
    int status = sample_path(sample, folder->omitted.items[i], err);
    sample->missing = 0;
    sample->no_loss = true;
    return status ? status : error_set(err, STATUS_SKIPPED, "%s", folder->reasons.items[i]);
}

static int folder_next(struct source *source, struct sample *sample, bool *more,
                       struct error *err) {
    struct folder *folder = source->state;
    if (folder->told < folder->omitted.count)
        return tell_omitted(folder, sample, err);
    *more = folder->next < folder->files.count;
    if (!*more)
        return STATUS_OK;
    const char *below = folder->files.items[folder->next++];
    char *path = join_path(folder->root, below);
    int status = path ? sample_path(sample, path, err) : error_nomem(err);
    free(path);
    if (!status)
        status = set_key(folder, sample, below, err);
    if (!status)
        status = label_of(source, sample, below, err);
    if (!status && !source->paths_only)
        status = source_file(sample, &source->options, err);
    return status;
}

static int64_t folder_count(const struct source *source) {
    const struct folder *folder = source->state;
    return (int64_t)folder->files.count;
}

static void close_folder(struct source *source) {
    struct folder *folder = source->state;
    if (!folder)
        return;
    names_free(&folder->files);
    names_free(&folder->omitted);
    names_free(&folder->reasons);
    names_free(&folder->links);
    names_free(&folder->own.links);
    names_free(&folder->bare.links);
    originals_free(&folder->originals);
    free(folder->entered);
    keyset_free(&folder->keys);
    free(folder->root);
    free(folder);
}

const struct source_kind source_folder = {
    .name = "folder",
    .has_folders = true,
    .open = open_folder,
    .next = folder_next,
    .count = folder_count,
    .close = close_folder,
};
