// A checkpoint's folder. "Files appear complete or not at all": all of it is written and synced
// under a temporary name, then the folder gets its own.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "run/best.h"
#include "run/checkpoint_internal.h"
#include "store/crc.h"
#include "store/output.h"

// --- files in it ------------------------------------------------------------------

int checkpoint_create(const char *folder, const char *name, int *fd, struct error *err) {
    int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *fd = at < 0 ? -1 : openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int status =
        *fd < 0 ? error_errno(err, STATUS_CANTCREATE, "cannot create %s/%s", folder, name) : 0;
    if (at >= 0)
        close(at);
    return status;
}

int checkpoint_sync(int fd, int status, struct error *err) {
    if (!status && fsync(fd))
        status = error_errno(err, STATUS_IO, "sync");
    if (close(fd) && !status)
        status = error_errno(err, STATUS_IO, "close");
    return status;
}

int checkpoint_write_text(const char *folder, const char *name, const char *text,
                          struct file_sum *sum, struct error *err) {
    int fd;
    int status = checkpoint_create(folder, name, &fd, err);
    if (status)
        return status;
    *sum = (struct file_sum){strlen(text), crc32_of(0, text, strlen(text))};
    if (dprintf(fd, "%s", text) < 0)
        status = error_errno(err, STATUS_IO, "write");
    return checkpoint_sync(fd, status, err);
}

// --- from its beginning to its end ------------------------------------------------

int checkpoint_begin_folder(char **folder, const char *run, uint64_t clock, struct error *err) {
    char *path = run_folder_checkpoint(run, clock);
    *folder = path ? output_temporary(path, 0) : NULL;
    free(path);
    if (!*folder)
        return error_nomem(err);
    run_folder_remove(*folder);
    return mkdir(*folder, 0777) ? error_errno(err, STATUS_CANTCREATE, "cannot create %s", *folder)
                                : STATUS_OK;
}

static int sync_folder(const char *folder, struct error *err) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? error_errno(err, STATUS_IO, "cannot sync folder %s", folder)
                  : checkpoint_sync(fd, STATUS_OK, err);
}

// Gives the complete folder its name. One of the same name (a run that was
// resumed and stopped at the same clock) changes places with it first.
static int publish_folder(const char *temporary, const char *path, struct error *err) {
    if (access(path, F_OK))
        return output_rename(temporary, path, false, err);
    int status = output_exchange(temporary, path, err);
    if (!status)
        run_folder_remove(temporary);
    return status;
}

// RUN/NAME -> ckpt-00012000, replaced in one step.
static int point_at(const char *run, const char *name, const char *path, struct error *err) {
    char *link = NULL, *temporary = NULL;
    if (asprintf(&link, "%s/%s", run, name) < 0)
        return error_nomem(err);
    temporary = output_temporary(link, 0);
    int status = temporary ? STATUS_OK : error_nomem(err);
    if (!status)
        unlink(temporary);
    if (!status && symlink(strrchr(path, '/') + 1, temporary))
        status = error_errno(err, STATUS_CANTCREATE, "cannot create %s", temporary);
    if (!status)
        status = output_rename(temporary, link, true, err);
    free(temporary);
    free(link);
    return status;
}

// Before others are removed: the best checkpoint stays. One that is not there cannot be the best.
static int point_best(const char *run, const struct best *best, struct error *err) {
    char *path = best->known ? run_folder_checkpoint(run, best->clock) : NULL;
    if (best->known && !path)
        return error_nomem(err);
    int status = path && access(path, F_OK) == 0 ? point_at(run, "best", path, err) : STATUS_OK;
    free(path);
    return status;
}

int checkpoint_publish(const char *folder, const char *run, const struct checkpoint *checkpoint,
                       int keep, struct error *err) {
    uint64_t clock = checkpoint->clock;
    const struct best best = best_read(json_object_get(checkpoint->run, "best"));
    char *path = run_folder_checkpoint(run, clock);
    int status = path ? sync_folder(folder, err) : error_nomem(err);
    if (!status)
        status = publish_folder(folder, path, err);
    if (!status)
        status = point_at(run, "latest", path, err);
    if (!status)
        status = point_best(run, &best, err);
    if (!status)
        run_folder_prune(run, keep, clock);
    free(path);
    return status;
}

int checkpoint_end_folder(char *folder, const char *run, uint64_t clock, int status,
                          struct error *err) {
    char *path = status ? run_folder_checkpoint(run, clock) : NULL;
    if (status && folder)
        run_folder_remove(folder);
    if (path)
        error_context(err, "cannot save %s", path);
    free(path);
    free(folder);
    return status;
}
