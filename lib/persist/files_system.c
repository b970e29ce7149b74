#include "persist/files_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/error.h"
#include "core/io.h"
#include "store/output.h"

enum { PARTS_MOST = 8 };

static int folder_of(const void *self) {
    const struct files_system *system = self;
    return system->folder;
}

static int system_list(void *self, files_each *each, void *context) {
    int fd = openat(folder_of(self), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        return why;
    }
    const struct dirent *entry;
    for (errno = 0; (entry = readdir(folder)); errno = 0)
        each(context, entry->d_name);
    int why = errno;
    closedir(folder);
    return why;
}

static int system_create(void *self, const char *name, int *file) {
    *file = openat(folder_of(self), name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return *file < 0 ? errno : 0;
}

static int system_open(void *self, const char *name, int *file, uint64_t *size) {
    struct stat stat_of;
    *file = openat(folder_of(self), name, O_RDONLY | O_CLOEXEC);
    if (*file < 0)
        return errno;
    int why = fstat(*file, &stat_of) ? errno : S_ISREG(stat_of.st_mode) ? 0 : EINVAL;
    if (why)
        close(*file);
    else
        *size = (uint64_t)stat_of.st_size;
    return why;
}

static int system_open_to_write(void *self, const char *name, int *file) {
    *file = openat(folder_of(self), name, O_RDWR | O_CLOEXEC);
    return *file < 0 ? errno : 0;
}

static void system_close(void *self, int file) {
    (void)self;
    close(file);
}

static int system_allocate(void *self, int file, uint64_t size) {
    int why;
    (void)self;
    do
        why = posix_fallocate(file, 0, (off_t)size);
    while (why == EINTR);
    return why;
}

// What is left of the parts when the first `done` bytes are written. Returns how many there are.
static int parts_left(struct iovec left[PARTS_MOST], const struct files_part *parts, int count,
                      size_t done) {
    int n = 0;
    for (int i = 0; i < count; i++) {
        size_t gone = done < parts[i].size ? done : parts[i].size;
        done -= gone;
        if (gone < parts[i].size)
            left[n++] = (struct iovec){(char *)parts[i].at + gone, parts[i].size - gone};
    }
    return n;
}

static int system_write(void *self, int file, uint64_t at, const struct files_part *parts,
                        int count) {
    struct iovec left[PARTS_MOST];
    size_t done = 0;
    (void)self;
    if (count > PARTS_MOST)
        return EINVAL;
    for (int n; (n = parts_left(left, parts, count, done)) > 0;) {
        ssize_t written = pwritev(file, left, n, (off_t)(at + done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        done += (size_t)written;
    }
    // A hint: the disk begins while the next record is made, and the sync has less to wait for.
    (void)sync_file_range(file, (off_t)at, (off_t)done, SYNC_FILE_RANGE_WRITE);
    return 0;
}

static int system_read(void *self, int file, uint64_t at, void *to, size_t size, size_t *got) {
    (void)self;
    ssize_t n = io_read_at(file, to, size, (off_t)at);
    *got = n < 0 ? 0 : (size_t)n;
    return n < 0 ? errno : 0;
}

static int system_sync(void *self, int file) {
    (void)self;
    return fdatasync(file) ? errno : 0;
}

static int system_sync_names(void *self) {
    return fsync(folder_of(self)) ? errno : 0;
}

static int system_remove(void *self, const char *name) {
    return unlinkat(folder_of(self), name, 0) ? errno : 0;
}

static struct files system_files(struct files_system *system) {
    return (struct files){
        .self = system,
        .list = system_list,
        .create = system_create,
        .open = system_open,
        .open_to_write = system_open_to_write,
        .close = system_close,
        .allocate = system_allocate,
        .write = system_write,
        .read = system_read,
        .sync = system_sync,
        .sync_names = system_sync_names,
        .remove = system_remove,
    };
}

// The statuses of a folder that is not there, and of one that another process has.
static int open_folder(struct files_system *system, const char *folder, int lock, int missing,
                       int taken, struct error *err) {
    *system = (struct files_system){.files = system_files(system)};
    system->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (system->folder < 0)
        return error_errno(err, missing, "cannot open the store %s", folder);
    if (!flock(system->folder, lock | LOCK_NB))
        return STATUS_OK;
    int status = errno == EWOULDBLOCK
                     ? error_set(err, taken, "%s: another process uses this store", folder)
                     : error_errno(err, taken, "cannot lock the store %s", folder);
    files_system_close(system);
    return status;
}

int files_system_open(struct files_system *system, const char *folder, struct error *err) {
    int status = output_make_parents(folder, err);
    if (status)
        return status;
    bool made = mkdir(folder, 0777) == 0;
    if (!made && errno != EEXIST)
        return error_errno(err, STATUS_CANTCREATE, "cannot create the store %s", folder);
    status = made ? output_sync_name(folder, err) : STATUS_OK;
    return status ? status
                  : open_folder(system, folder, LOCK_EX, STATUS_CANTCREATE, STATUS_CANTCREATE, err);
}

int files_system_look(struct files_system *system, const char *folder, struct error *err) {
    return open_folder(system, folder, LOCK_SH, STATUS_NOINPUT, STATUS_UNAVAILABLE, err);
}

void files_system_close(struct files_system *system) {
    if (system->folder >= 0)
        close(system->folder);
    system->folder = -1;
}
