// A folder per class, and classes.txt with the names in label order; originals.txt
// when there are copies. Everything is made in a temporary folder beside, which gets
// its name at the end.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/originals.h"
#include "sample/sink_kind.h"

enum { NAME_TRIES = 100, OPEN_FOLDERS = 16 };

struct folder_sink {
    char *place;     // the folder's name, without a slash at its end
    char *temporary; // where it is made; NULL: not made yet, or in place
    bool replace;    // a folder of ours stands in its place
    int made;        // labels below this have their folder
    FILE *originals; // a line for each copy; NULL: none yet
};

static bool has_classes(const char *path) {
    char *name = NULL;
    bool has = asprintf(&name, "%s/classes.txt", path) >= 0 && access(name, F_OK) == 0;
    free(name);
    return has;
}

static bool is_empty(const char *path) {
    DIR *dir = opendir(path);
    struct dirent *entry;
    bool empty = dir != NULL;
    while (empty && (entry = readdir(dir)))
        empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
    if (dir)
        closedir(dir);
    return empty;
}

// Only a folder that was made here is ever replaced, never someone's own.
static int check_place(struct sink *sink, struct error *err) {
    struct folder_sink *state = sink->state;
    struct stat stat_of;
    if (lstat(state->place, &stat_of) != 0 || is_empty(state->place))
        return STATUS_OK;
    if (!sink->options.force)
        return error_set(err, STATUS_CANTCREATE, "%s exists; --force replaces it", sink->path);
    if (!S_ISDIR(stat_of.st_mode) || !has_classes(state->place))
        return error_set(err, STATUS_CANTCREATE,
                         "%s is not replaced: it holds no classes.txt, so it was not made here",
                         sink->path);
    state->replace = true;
    return STATUS_OK;
}

static int make_temporary(struct sink *sink, struct error *err) {
    struct folder_sink *state = sink->state;
    errno = EEXIST;
    for (unsigned n = 0; errno == EEXIST && n < NAME_TRIES; n++) {
        char *name = output_temporary(state->place, n);
        if (!name)
            return error_nomem(err);
        if (mkdir(name, 0777) == 0) {
            state->temporary = name;
            return STATUS_OK;
        }
        int code = errno;
        free(name);
        errno = code;
    }
    return error_errno(err, STATUS_CANTCREATE, "cannot create %s", sink->path);
}

static int open_folder(struct sink *sink, struct error *err) {
    struct folder_sink *state = sink->state = mem_zeroed(1, sizeof *state);
    if (!state || !(state->place = mem_string(sink->path)))
        return error_nomem(err);
    for (size_t n = strlen(state->place); n > 1 && state->place[n - 1] == '/'; n--)
        state->place[n - 1] = 0;
    int status = strcmp(state->place, "-") != 0
                     ? check_place(sink, err)
                     : error_set(err, STATUS_USAGE, "a folder cannot go to standard output");
    if (!status)
        status = output_make_parents(state->place, err);
    return status ? status : make_temporary(sink, err);
}

static int remove_entry(const char *path, const struct stat *stat_of, int type, struct FTW *walk) {
    (void)stat_of;
    (void)type;
    (void)walk;
    return remove(path);
}

static int remove_tree(const char *path, struct error *err) {
    if (nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS))
        return error_errno(err, STATUS_IO, "cannot remove %s", path);
    return STATUS_OK;
}

static void free_folder(struct sink *sink) {
    struct folder_sink *state = sink->state;
    if (!state)
        return;
    if (state->temporary)
        remove_tree(state->temporary, NULL);
    if (state->originals)
        fclose(state->originals);
    free(state->temporary);
    free(state->place);
    free(state);
}

// Each class gets its folder, also one without samples.
static int make_classes(struct sink *sink, struct error *err) {
    struct folder_sink *state = sink->state;
    int status = STATUS_OK;
    for (; !status && sink->classes && state->made < sink->classes->count; state->made++) {
        const char *class = sink->classes->names[state->made];
        char *path = NULL;
        if (strchr(class, '/') || class[0] == '.')
            return error_set(err, STATUS_DATA, "%s: class '%s' cannot be the name of a folder",
                             sink->path, class);
        if (asprintf(&path, "%s/%s", state->temporary, class) < 0)
            return error_nomem(err);
        if (mkdir(path, 0777))
            status = error_errno(err, STATUS_CANTCREATE, "cannot create %s/%s", sink->path, class);
        free(path);
    }
    return status;
}

// A key as a file name: the class in front is the folder already, what would
// lead elsewhere or hide the file becomes '_'. NULL when out of memory.
static char *safe_name(const char *key, const char *class) {
    size_t n = class ? strlen(class) : 0;
    if (class && !strncmp(key, class, n) && key[n] == '/')
        key += n + 1;
    key += strspn(key, "/");
    char *name = mem_string(*key ? key : "_");
    if (!name)
        return NULL;
    if (name[0] == '.')
        name[0] = '_';
    for (char *c = name; *c; c++)
        if (*c == '/')
            *c = '_';
    return name;
}

static int write_file(struct sink *sink, const char *path, const char *key, const void *data,
                      size_t size, struct error *err) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return sink_refuse_twice(sink, strrchr(path, '/') + 1, err);
    if (fd < 0 && errno == ENAMETOOLONG)
        return error_set(err, STATUS_DATA, "%s: key '%s' is too long for the name of a file",
                         sink->path, key);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    bool written = file && fwrite(data, 1, size, file) == size;
    if (file && fclose(file))
        written = false;
    if (!file && fd >= 0)
        close(fd);
    return written ? STATUS_OK : error_errno(err, STATUS_IO, "cannot write %s", path);
}

static int open_originals(struct sink *sink, struct error *err) {
    struct folder_sink *state = sink->state;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", state->temporary, ORIGINALS_FILE) < 0)
        return error_nomem(err);
    state->originals = fopen(path, "wbe");
    int status =
        state->originals ? STATUS_OK : error_errno(err, STATUS_IO, "cannot create %s", path);
    free(path);
    return status;
}

static int write_original(struct sink *sink, const char *class, const char *name,
                          const char *original, struct error *err) {
    struct folder_sink *state = sink->state;
    const char *in = class ? class : "", *slash = class ? "/" : "";
    if (strpbrk(original, "\t\n") || strpbrk(name, "\t\n"))
        return error_set(err, STATUS_DATA, "%s: a key with a tab or a newline has a copy",
                         sink->path);
    int status = state->originals ? STATUS_OK : open_originals(sink, err);
    if (!status &&
        fprintf(state->originals, "%s%s%s\t%s%s%s\n", in, slash, name, in, slash, original) < 0)
        status = error_errno(err, STATUS_IO, "cannot write %s", sink->path);
    return status;
}

// Of a copy: the key that its file will have when it is read, and that of its original's.
static int put_original(struct sink *sink, const struct sample *sample, const char *class,
                        const char *name, struct error *err) {
    char *original = safe_name(sample_origin(sample), class);
    if (!original)
        return error_nomem(err);
    int status =
        strcmp(original, name) != 0 ? write_original(sink, class, name, original, err) : STATUS_OK;
    free(original);
    return status;
}

static int close_originals(struct sink *sink, struct error *err) {
    struct folder_sink *state = sink->state;
    FILE *file = state->originals;
    state->originals = NULL;
    return file && fclose(file) ? error_errno(err, STATUS_IO, "cannot write %s", sink->path)
                                : STATUS_OK;
}

static int folder_put(struct sink *sink, const struct sample *sample, struct error *err) {
    struct folder_sink *state = sink->state;
    const char *class = sink_class(sink, sample);
    const void *data;
    size_t size;
    enum codec codec;
    int status = make_classes(sink, err);
    if (!status)
        status = sink_encode(sink, sample, &data, &size, &codec, err);
    if (status)
        return status;
    char *name = safe_name(sample->key, class), *path = NULL;
    if (!name || asprintf(&path, "%s/%s%s%s.%s", state->temporary, class ? class : "",
                          class ? "/" : "", name, codec_extension(codec)) < 0)
        status = error_nomem(err);
    else
        status = write_file(sink, path, sample->key, data, size, err);
    if (!status)
        status = put_original(sink, sample, class, name, err);
    free(name);
    free(path);
    return status;
}

static int write_names(struct sink *sink, struct error *err) {
    struct folder_sink *state = sink->state;
    char *path = NULL;
    struct output *output;
    if (asprintf(&path, "%s/classes.txt", state->temporary) < 0)
        return error_nomem(err);
    int status = output_open(&output, path, false, err);
    free(path);
    if (status)
        return status;
    for (int i = 0; !status && sink->classes && i < sink->classes->count; i++) {
        const char *class = sink->classes->names[i];
        status = output_write(output, class, strlen(class), err);
        if (!status)
            status = output_write(output, "\n", 1, err);
    }
    if (!status)
        return output_close(output, err);
    output_abort(output);
    return status;
}

// The pictures are written through the page cache; one syncfs makes them durable.
static int sync_all(struct folder_sink *state, struct error *err) {
    int fd = open(state->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? -1 : syncfs(fd);
    if (fd >= 0)
        close(fd);
    return result ? error_errno(err, STATUS_IO, "cannot sync %s", state->place) : STATUS_OK;
}

static int folder_finish(struct sink *sink, struct error *err) {
    struct folder_sink *state = sink->state;
    int status = make_classes(sink, err);
    if (!status)
        status = write_names(sink, err);
    if (!status)
        status = close_originals(sink, err);
    if (!status)
        status = sync_all(state, err);
    if (status)
        return status;
    // Then the old folder has the temporary name, and free_folder removes it.
    if (state->replace)
        return output_exchange(state->temporary, state->place, err);
    // Forced, because an empty folder may stand there; one that is not is kept.
    status = output_rename(state->temporary, state->place, true, err);
    if (!status) {
        free(state->temporary);
        state->temporary = NULL;
    }
    return status;
}

const struct sink_kind sink_folder = {
    .name = "folder",
    .files = true,
    .encoded = true,
    .codec = CODEC_PNG,
    .open = open_folder,
    .put = folder_put,
    .finish = folder_finish,
    .free = free_folder,
};
