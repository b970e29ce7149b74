#include "store/output.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"

enum { BUFFER_SIZE = 1 << 18, NAME_TRIES = 100 };

struct output {
    char *path;      // where it shall appear
    char *temporary; // NULL: written straight on
    bool force;
    bool complete; // nothing is missing but the name
    int fd;
    uint8_t *buffer;
    size_t held;
    struct archive *pack; // compression; NULL: none
    struct error error;   // what writing for libarchive met
};

static const struct {
    const char *extension;
    int (*add)(struct archive *);
} filters[] = {
    {".gz", archive_write_add_filter_gzip},
    {".zst", archive_write_add_filter_zstd},
    {".xz", archive_write_add_filter_xz},
};
enum { FILTERS = sizeof filters / sizeof *filters };

// The compression that the name asks for, or -1.
static int filter_of(const char *path) {
    size_t length = strlen(path);
    for (int i = 0; i < FILTERS; i++) {
        size_t n = strlen(filters[i].extension);
        if (length > n && !strcmp(path + length - n, filters[i].extension))
            return i;
    }
    return -1;
}

size_t output_plain_length(const char *path) {
    int filter = filter_of(path);
    return strlen(path) - (filter < 0 ? 0 : strlen(filters[filter].extension));
}

int output_whole(const char *path, bool force, const void *data, size_t size, struct error *err) {
    struct output *output;
    int status = output_open(&output, path, force, err);
    if (status)
        return status;
    status = output_write(output, data, size, err);
    if (!status)
        return output_close(output, err);
    output_abort(output);
    return status;
}

const char *output_name(const struct output *output) {
    return output->path;
}

// Length of the folder's part of a path, with the slash.
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

size_t output_stem_length(const char *path) {
    size_t folder = folder_length(path), plain = output_plain_length(path);
    if (plain <= folder) // a name that is nothing but ".gz"
        return strlen(path);
    const char *base = path + folder, *dot = memrchr(base, '.', plain - folder);
    return dot && dot > base ? (size_t)(dot - path) : plain;
}

bool output_is_stream(const char *path) {
    struct stat stat_of;
    return !strcmp(path, "-") ||
           (stat(path, &stat_of) == 0 && !S_ISREG(stat_of.st_mode) && !S_ISDIR(stat_of.st_mode));
}

// A path in two: its folder, and the name in it without slashes behind.
struct path_place {
    struct stat folder;
    bool there; // the folder
    const char *name;
    size_t length;
};

static struct path_place path_place(const char *path) {
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';)
        begin--;
    struct path_place of = {.name = path + begin, .length = end - begin};
    char *folder = begin ? mem_text(path, begin) : mem_string(".");
    of.there = folder && stat(folder, &of.folder) == 0;
    free(folder);
    return of;
}

bool output_same(const char *a, const char *b) {
    struct path_place left = path_place(a), right = path_place(b);
    if (!strcmp(a, b))
        return true;
    return left.length == right.length && !memcmp(left.name, right.name, left.length) &&
           left.there && right.there && left.folder.st_dev == right.folder.st_dev &&
           left.folder.st_ino == right.folder.st_ino;
}

char *output_place(const char *path) {
    struct path_place of = path_place(path);
    char *text = NULL;
    if (!of.there)
        return mem_string(path);
    if (asprintf(&text, "%llx %llx %.*s", (unsigned long long)of.folder.st_dev,
                 (unsigned long long)of.folder.st_ino, (int)of.length, of.name) < 0)
        return NULL;
    return text;
}

char *output_temporary(const char *path, unsigned n) {
    enum { MOST = 200 }; // of the name, so that ours is no longer than names may be
    char *name = NULL;
    size_t folder = folder_length(path);
    if (asprintf(&name, "%.*s.%.*s.%ld-%u.tmp", (int)folder, path, MOST, path + folder,
                 (long)getpid(), n) < 0)
        return NULL;
    return name;
}

int output_make_parents(const char *path, struct error *err) {
    char *parent = mem_string(path);
    int status = parent ? STATUS_OK : error_nomem(err);
    // Slashes in front are the root, and those at the end belong to the folder itself.
    for (char *slash = parent ? parent + strspn(parent, "/") : NULL; !status; slash++) {
        slash += strcspn(slash, "/");
        if (!slash[strspn(slash, "/")])
            break;
        *slash = 0;
        if (mkdir(parent, 0777) == 0)
            status = output_sync_name(parent, err);
        else if (errno != EEXIST)
            status = error_errno(err, STATUS_CANTCREATE, "cannot create %s", parent);
        *slash = '/';
    }
    free(parent);
    return status;
}

int output_sync_name(const char *path, struct error *err) {
    size_t n = folder_length(path);
    char *folder = n ? mem_text(path, n) : mem_string(".");
    if (!folder)
        return error_nomem(err);
    int status = STATUS_OK;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // EINVAL: a file system that cannot; there is nothing better to do.
    if (fd < 0 || (fsync(fd) && errno != EINVAL))
        status = error_errno(err, STATUS_IO, "cannot sync folder %s", folder);
    if (fd >= 0)
        close(fd);
    free(folder);
    return status;
}

int output_rename(const char *from, const char *to, bool force, struct error *err) {
    int result =
        force ? rename(from, to) : renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    // A file system without that flag: look first, as well as one can.
    if (result && !force && errno == EINVAL) {
        errno = EEXIST;
        result = access(to, F_OK) == 0 ? -1 : rename(from, to);
    }
    if (result)
        return error_errno(err, STATUS_CANTCREATE, "cannot create %s", to);
    return output_sync_name(to, err);
}

int output_remove(const char *path, struct error *err) {
    if (access(path, F_OK) != 0)
        return STATUS_OK;
    if (unlink(path))
        return error_errno(err, STATUS_CANTCREATE, "cannot remove %s", path);
    return output_sync_name(path, err);
}

int output_exchange(const char *from, const char *to, struct error *err) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE))
        return error_errno(err, STATUS_CANTCREATE, "cannot replace %s", to);
    return output_sync_name(to, err);
}

static int write_all(int fd, const void *data, size_t size) {
    const uint8_t *bytes = data;
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

static int flush_buffer(struct output *output, struct error *err) {
    size_t size = output->held;
    output->held = 0;
    if (write_all(output->fd, output->buffer, size))
        return error_errno(err, STATUS_IO, "cannot write %s", output->path);
    return STATUS_OK;
}

static int output_put(struct output *output, const void *data, size_t size, struct error *err) {
    if (size > BUFFER_SIZE - output->held) {
        int status = flush_buffer(output, err);
        if (status)
            return status;
    }
    if (size >= BUFFER_SIZE) {
        if (write_all(output->fd, data, size))
            return error_errno(err, STATUS_IO, "cannot write %s", output->path);
        return STATUS_OK;
    }
    if (size > 0)
        memcpy(output->buffer + output->held, data, size);
    output->held += size;
    return STATUS_OK;
}

// libarchive frees all it has only after an orderly end, so it is never told of
// a failure: what comes behind one is dropped, and output->error tells it.
static la_ssize_t pack_output(struct archive *archive, void *context, const void *data, size_t n) {
    struct output *output = context;
    (void)archive;
    if (!output->error.status)
        output_put(output, data, n, &output->error);
    return (la_ssize_t)n;
}

static int pack_failed(struct output *output, struct error *err) {
    if (output->error.status)
        return error_set(err, output->error.status, "%s", output->error.text);
    const char *why = archive_error_string(output->pack);
    return error_set(err, STATUS_IO, "cannot write %s: %s", output->path,
                     why ? why : "compression failed");
}

// libarchive's "raw" format is a compressed stream of one file without a name.
static int open_pack(struct output *output, int filter, struct error *err) {
    struct archive *a = output->pack = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    if (!a || !entry) {
        archive_entry_free(entry);
        return error_nomem(err);
    }
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_write_set_format_raw(a);
    filters[filter].add(a);
    // Only gzip has a time stamp; it would make two equal outputs differ.
    archive_write_set_filter_option(a, "gzip", "timestamp", NULL);
    archive_write_set_bytes_in_last_block(a, 1);
    bool opened = archive_write_open(a, output, NULL, pack_output, NULL) == ARCHIVE_OK &&
                  archive_write_header(a, entry) == ARCHIVE_OK;
    archive_entry_free(entry);
    return opened ? STATUS_OK : pack_failed(output, err);
}

// A link is followed, so that the file it names is replaced and not the link.
static int open_temporary(struct output *output, const char *path, struct error *err) {
    output->path = realpath(path, NULL);
    if (!output->path)
        output->path = mem_string(path);
    if (!output->path)
        return error_nomem(err);
    errno = EEXIST;
    for (unsigned n = 0; output->fd < 0 && errno == EEXIST && n < NAME_TRIES; n++) {
        free(output->temporary);
        output->temporary = output_temporary(output->path, n);
        if (!output->temporary)
            return error_nomem(err);
        output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (output->fd >= 0)
        return STATUS_OK;
    int status = error_errno(err, STATUS_CANTCREATE, "cannot create %s", path);
    free(output->temporary);
    output->temporary = NULL;
    return status;
}

static int open_straight(struct output *output, const char *path, bool standard,
                         struct error *err) {
    output->path = mem_string(standard ? "standard output" : path);
    if (!output->path)
        return error_nomem(err);
    output->fd = standard ? STDOUT_FILENO : open(path, O_WRONLY | O_CLOEXEC);
    if (output->fd < 0)
        return error_errno(err, STATUS_CANTCREATE, "cannot write to %s", path);
    return STATUS_OK;
}

static int open_file(struct output *output, const char *path, struct error *err) {
    struct stat stat_of;
    bool standard = !strcmp(path, "-");
    bool exists = !standard && stat(path, &stat_of) == 0;
    if (exists && S_ISDIR(stat_of.st_mode))
        return error_set(err, STATUS_CANTCREATE, "cannot create %s: it is a folder", path);
    // To rename over a pipe or a device would take it away from the system.
    if (standard || (exists && !S_ISREG(stat_of.st_mode)))
        return open_straight(output, path, standard, err);
    if (exists && !output->force)
        return error_set(err, STATUS_CANTCREATE, "%s exists; --force replaces it", path);
    return open_temporary(output, path, err);
}

int output_open(struct output **out, const char *path, bool force, struct error *err) {
    struct output *output = mem_zeroed(1, sizeof *output);
    if (!output)
        return error_nomem(err);
    output->fd = -1;
    output->force = force;
    output->buffer = mem_array(BUFFER_SIZE, 1);
    int filter = filter_of(path);
    int status = output->buffer ? open_file(output, path, err) : error_nomem(err);
    if (!status && filter >= 0)
        status = open_pack(output, filter, err);
    if (status) {
        output_abort(output);
        return status;
    }
    *out = output;
    return STATUS_OK;
}

int output_write(struct output *output, const void *data, size_t size, struct error *err) {
    if (!output->pack)
        return output_put(output, data, size, err);
    const uint8_t *bytes = data;
    while (size > 0) {
        la_ssize_t n = archive_write_data(output->pack, bytes, size);
        if (n <= 0 || output->error.status)
            return pack_failed(output, err);
        bytes += n;
        size -= (size_t)n;
    }
    return STATUS_OK;
}

static void output_free(struct output *output) {
    // What libarchive still holds goes nowhere.
    output->error.status = STATUS_STOPPED;
    archive_write_free(output->pack);
    if (output->fd > STDERR_FILENO)
        close(output->fd);
    free(output->buffer);
    free(output->temporary);
    free(output->path);
    free(output);
}

static int write_rest(struct output *output, struct error *err) {
    if (output->pack && (archive_write_close(output->pack) != ARCHIVE_OK || output->error.status))
        return pack_failed(output, err);
    return flush_buffer(output, err);
}

static int sync_file(struct output *output, struct error *err) {
    if (fsync(output->fd))
        return error_errno(err, STATUS_IO, "cannot write %s", output->path);
    return STATUS_OK;
}

int output_complete(struct output *output, struct error *err) {
    int status = output->complete ? STATUS_OK : write_rest(output, err);
    if (!status && !output->complete && output->temporary)
        status = sync_file(output, err);
    output->complete = !status;
    return status;
}

int output_clear(struct output *output, struct error *err) {
    return output->temporary && output->force ? output_remove(output->path, err) : STATUS_OK;
}

static int output_finish(struct output *output, struct error *err) {
    int status = output_complete(output, err);
    if (status || !output->temporary)
        return status;
    return output_rename(output->temporary, output->path, output->force, err);
}

int output_close(struct output *output, struct error *err) {
    int status = output_finish(output, err);
    if (status && output->temporary)
        unlink(output->temporary);
    output_free(output);
    return status;
}

void output_abort(struct output *output) {
    if (!output)
        return;
    if (output->temporary)
        unlink(output->temporary);
    output_free(output);
}
