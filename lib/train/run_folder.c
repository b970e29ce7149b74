// The folder of a run: which files it has, and who may remove them.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mem.h"
#include "store/output.h"
#include "train/checkpoint.h"

#define PREFIX "ckpt-"

// Length of a folder's path without the slashes at its end: paths are shown.
static int bare_length(const char *folder) {
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    return (int)n;
}

static char *join(const char *folder, const char *name) {
    char *path = NULL;
    int n = asprintf(&path, "%.*s/%s", bare_length(folder), folder, name);
    return n < 0 ? NULL : path;
}

char *run_folder_checkpoint(const char *run, uint64_t clock) {
    char name[32];
    snprintf(name, sizeof name, PREFIX "%08llu", (unsigned long long)clock);
    return join(run, name);
}

// Whether `name` is a checkpoint's; its clock.
static bool is_checkpoint(const char *name, uint64_t *clock) {
    char *end;
    size_t digits = strlen(PREFIX);
    if (strncmp(name, PREFIX, digits) != 0 || strspn(name + digits, "0123456789") < 8)
        return false;
    *clock = strtoull(name + digits, &end, 10);
    return !*end;
}

static bool is_left_over(const char *name) {
    size_t n = strlen(name);
    return !strncmp(name, "." PREFIX, strlen("." PREFIX)) && n > 4 && !strcmp(name + n - 4, ".tmp");
}

void run_folder_remove(const char *path) {
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

static int newest_first(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

// The clocks of all checkpoints, newest first; removes left-overs on the way.
static uint64_t *list(const char *run, size_t *count) {
    uint64_t *clocks = NULL, clock;
    DIR *folder = opendir(run);
    *count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char *path = is_left_over(entry->d_name) ? join(run, entry->d_name) : NULL;
        if (path)
            run_folder_remove(path);
        free(path);
        if (!is_checkpoint(entry->d_name, &clock))
            continue;
        uint64_t *more = mem_resize(clocks, *count + 1, sizeof *clocks);
        if (!more)
            break;
        clocks = more;
        clocks[(*count)++] = clock;
    }
    if (folder)
        closedir(folder);
    if (clocks)
        qsort(clocks, *count, sizeof *clocks, newest_first);
    return clocks;
}

static void prune_from(const char *run, size_t first) {
    size_t count;
    uint64_t *clocks = list(run, &count);
    for (size_t i = first; i < count; i++) {
        char *path = run_folder_checkpoint(run, clocks[i]);
        if (path)
            run_folder_remove(path);
        free(path);
    }
    free(clocks);
}

void run_folder_prune(const char *run, int keep) {
    prune_from(run, keep > 0 ? (size_t)keep : SIZE_MAX);
}

static void remove_file(const char *run, const char *name) {
    char *path = join(run, name);
    if (path)
        unlink(path);
    free(path);
}

static bool exists(const char *run, const char *name) {
    struct stat stat_of;
    char *path = join(run, name);
    bool there = path && lstat(path, &stat_of) == 0;
    free(path);
    return there;
}

int run_folder_check(const char *run, struct error *err) {
    if (!exists(run, "latest") && !exists(run, "metrics.jsonl"))
        return STATUS_OK;
    return error_set(err, STATUS_CANTCREATE,
                     "%s holds a run already; --resume %s goes on with it, --force replaces it",
                     run, run);
}

int run_folder_make(const char *run, struct error *err) {
    if (mkdir(run, 0777) && errno != EEXIST)
        return error_errno(err, STATUS_CANTCREATE, "cannot create %s", run);
    if (access(run, W_OK | X_OK))
        return error_errno(err, STATUS_CANTCREATE, "cannot write in %s", run);
    int status = output_sync_name(run, err);
    if (status)
        return status;
    remove_file(run, "DONE");
    remove_file(run, "latest");
    remove_file(run, "metrics.jsonl");
    prune_from(run, 0);
    return STATUS_OK;
}

int run_folder_done(const char *run, const char *text, struct error *err) {
    struct output *output = NULL;
    char *path = join(run, "DONE");
    if (!path)
        return error_nomem(err);
    int status = output_open(&output, path, true, err);
    free(path);
    if (status)
        return status;
    status = output_write(output, text, strlen(text), err);
    if (status)
        output_abort(output);
    else
        status = output_close(output, err);
    return status;
}

int run_folder_not_done(const char *run, struct error *err) {
    char *path = join(run, "DONE");
    if (!path)
        return error_nomem(err);
    int status = STATUS_OK;
    if (unlink(path) && errno != ENOENT)
        status = error_errno(err, STATUS_CANTCREATE, "cannot remove %s", path);
    free(path);
    return status;
}
