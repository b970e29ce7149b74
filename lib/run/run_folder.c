// The folder of a run: which files it has, and who may remove them.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "run/checkpoint.h"
#include "store/output.h"

#define PREFIX "ckpt-"

// Length of a folder's path without the slashes at its end: paths are shown.
static int bare_length(const char *folder) {
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    return (int)n;
}

static char *join_path(const char *folder, const char *name) {
    char *path = NULL;
    int n = asprintf(&path, "%.*s/%s", bare_length(folder), folder, name);
    return n < 0 ? NULL : path;
}

char *run_folder_checkpoint(const char *run, uint64_t clock) {
    char name[32];
    snprintf(name, sizeof name, PREFIX "%08llu", (unsigned long long)clock);
    return join_path(run, name);
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

int run_folder_set_aside(const char *path, struct error *err) {
    char old[PATH_MAX];
    if (snprintf(old, sizeof old, "%s.old", path) >= (int)sizeof old)
        return error_set(err, STATUS_CANTCREATE, "%s: the path is too long", path);
    run_folder_remove(old);
    if (rename(path, old))
        return error_errno(err, STATUS_CANTCREATE, "cannot rename %s to %s", path, old);
    return STATUS_OK;
}

static int newest_first(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

uint64_t *run_folder_clocks(const char *run, size_t *count) {
    uint64_t *clocks = NULL, clock;
    DIR *folder = opendir(run);
    *count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
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

static void remove_left_overs(const char *run) {
    DIR *folder = opendir(run);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char *path = is_left_over(entry->d_name) ? join_path(run, entry->d_name) : NULL;
        if (path)
            run_folder_remove(path);
        free(path);
    }
    if (folder)
        closedir(folder);
}

// The clock of the checkpoint to which RUN/best points; UINT64_MAX: none.
static uint64_t best_clock(const char *run) {
    char name[64], *path = join_path(run, "best");
    uint64_t clock;
    ssize_t length = path ? readlink(path, name, sizeof name - 1) : -1;
    free(path);
    if (length < 0)
        return UINT64_MAX;
    name[length] = 0;
    return is_checkpoint(name, &clock) ? clock : UINT64_MAX;
}

// Of the checkpoints up to `clock` the newest `keep` stay, and the best.
static void prune_checkpoints(const char *run, size_t keep, uint64_t clock) {
    size_t count;
    uint64_t *clocks = run_folder_clocks(run, &count), best = best_clock(run);
    remove_left_overs(run);
    for (size_t i = 0; i < count; i++) {
        if (clocks[i] > clock || keep > 0 || clocks[i] == best) {
            keep -= clocks[i] <= clock && keep > 0;
            continue;
        }
        char *path = run_folder_checkpoint(run, clocks[i]);
        if (path)
            run_folder_remove(path);
        free(path);
    }
    free(clocks);
}

void run_folder_prune(const char *run, int keep, uint64_t clock) {
    prune_checkpoints(run, keep > 0 ? (size_t)keep : SIZE_MAX, clock);
}

static void remove_run_file(const char *run, const char *name) {
    char *path = join_path(run, name);
    if (path)
        unlink(path);
    free(path);
}

static bool file_exists(const char *run, const char *name) {
    struct stat stat_of;
    char *path = join_path(run, name);
    bool there = path && lstat(path, &stat_of) == 0;
    free(path);
    return there;
}

bool run_folder_saved(const char *run) {
    size_t count;
    free(run_folder_clocks(run, &count));
    return count > 0 || file_exists(run, "latest");
}

// Whether another process writes the run's metrics.
static bool is_busy(const char *run) {
    char *path = join_path(run, "metrics.jsonl");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    free(path);
    return busy;
}

bool run_folder_begun(const char *run) {
    return file_exists(run, "metrics.jsonl") && !run_folder_saved(run);
}

int run_folder_free(const char *run, struct error *err) {
    return is_busy(run)
               ? error_set(err, STATUS_CANTCREATE, "%s: another process is training there", run)
               : STATUS_OK;
}

int run_folder_check(const char *run, bool resumes, struct error *err) {
    int status = run_folder_free(run, err);
    if (status || !run_folder_saved(run))
        return status;
    return error_set(err, STATUS_CANTCREATE, "%s holds a run already; %s%s%s--force replaces it",
                     run, resumes ? "--resume " : "", resumes ? run : "",
                     resumes ? " goes on with it, " : "");
}

// Up to the last slash, which separates a folder from what is in it.
static char *parent_of(const char *path) {
    int length = bare_length(path);
    while (length > 0 && path[length - 1] != '/')
        length--;
    char *parent = length > 0 ? mem_text(path, (size_t)(length > 1 ? length - 1 : 1)) : NULL;
    return length > 0 ? parent : mem_string(".");
}

static bool names_checkpoint(const char *path) {
    uint64_t clock;
    char *bare = mem_text(path, (size_t)bare_length(path));
    const char *slash = bare ? strrchr(bare, '/') : NULL;
    const char *name = slash ? slash + 1 : bare;
    bool named =
        name && (is_checkpoint(name, &clock) || !strcmp(name, "latest") || !strcmp(name, "best"));
    free(bare);
    return named;
}

// Of a checkpoint's folder, also by another name, such as "."; NULL: it is none.
static char *run_around(const char *folder) {
    if (names_checkpoint(folder))
        return parent_of(folder);
    char *real = realpath(folder, NULL);
    char *run = real && names_checkpoint(real) ? parent_of(real) : NULL;
    free(real);
    return run;
}

char *run_folder_of(const char *path) {
    struct stat about;
    bool file = stat(path, &about) == 0 && S_ISREG(about.st_mode);
    char *folder = file ? parent_of(path) : mem_string(path);
    char *run = folder && !run_folder_saved(folder) ? run_around(folder) : NULL;
    if (!run)
        return folder;
    free(folder);
    return run;
}

int run_folder_create(const char *path, struct error *err) {
    int status = output_make_parents(path, err);
    if (!status && mkdir(path, 0777) && errno != EEXIST)
        status = error_errno(err, STATUS_CANTCREATE, "cannot create %s", path);
    return status;
}

// Of the metrics, by controllers that stood by.
static void remove_copies(const char *run) {
    DIR *folder = opendir(run);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (!fnmatch("controller-[0-9]*.metrics", entry->d_name, 0))
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

int run_folder_make(const char *run, struct error *err) {
    int status = run_folder_free(run, err);
    if (!status)
        status = run_folder_create(run, err);
    if (status)
        return status;
    if (access(run, W_OK | X_OK))
        return error_errno(err, STATUS_CANTCREATE, "cannot write in %s", run);
    status = output_sync_name(run, err);
    if (status)
        return status;
    remove_run_file(run, "DONE");
    remove_run_file(run, "latest");
    remove_run_file(run, "best");
    remove_run_file(run, "metrics.jsonl");
    remove_run_file(run, "start.json");
    remove_copies(run);
    prune_checkpoints(run, 0, UINT64_MAX);
    return STATUS_OK;
}

int run_folder_done(const char *run, const char *text, struct error *err) {
    struct output *output = NULL;
    char *path = join_path(run, "DONE");
    if (!path)
        return error_nomem(err);
    int status = output_open(&output, path, true, err);
    free(path);
    if (status)
        return status;
    status = output_write(output, text, strlen(text), err);
    if (!status)
        status = output_write(output, "\n", 1, err);
    if (status)
        output_abort(output);
    else
        status = output_close(output, err);
    return status;
}

bool run_folder_is_done(const char *run) {
    return file_exists(run, "DONE");
}

int run_folder_not_done(const char *run, struct error *err) {
    char *path = join_path(run, "DONE");
    if (!path)
        return error_nomem(err);
    int status = STATUS_OK;
    if (unlink(path) && errno != ENOENT)
        status = error_errno(err, STATUS_CANTCREATE, "cannot remove %s", path);
    free(path);
    return status;
}
