// A disk that loses what was not synced: LD_PRELOAD for a process that writes a store, whose
// segments are the files NUMBER.log. Killing a process loses nothing that it wrote; this keeps, in
// FOLDER.undo, what is needed to take back what a power cut would: what stood where an unsynced
// write went, the names that were made, and the files whose names were removed. A sync that
// succeeds forgets it. tests/bench/powercut/lossy_disk.py cuts the power.
//
//   FOLDER.undo/00000001.log        writes since the last sync: offset, length, bytes before
//   FOLDER.undo/00000001.log.new    its name was made since the last sync of names
//   FOLDER.undo/00000001.log.gone   the file itself, whose name was removed since then
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILES = 4096 };

// By the descriptor of a segment that is written: that of its undo file, plus one. Only the thread
// that flushes calls; this is no part of adam.
static int undo_of[FILES];

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_segment(const char *name) {
    size_t digits = strspn(name, "0123456789");
    return digits >= 8 && !strcmp(name + digits, ".log");
}

// "FOLDER.undo" of an open folder, and something behind it. 0: it is none.
static int undo_path(char path[PATH_MAX], int folder, const char *behind) {
    char link[64], target[PATH_MAX - 300];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length <= 0)
        return 0;
    target[length] = 0;
    snprintf(path, PATH_MAX, "%s.undo%s", target, behind);
    return 1;
}

static void make_undo(int folder, int file, const char *name, int created) {
    char path[PATH_MAX], behind[280];
    if (!undo_path(path, folder, ""))
        return;
    mkdir(path, 0777);
    snprintf(behind, sizeof behind, "/%s", name);
    undo_path(path, folder, behind);
    if (file < FILES)
        undo_of[file] = 1 + REAL(openat)(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    strcat(path, ".new");
    if (created)
        close(REAL(openat)(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
}

int openat(int folder, const char *name, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    int file = REAL(openat)(folder, name, flags, mode);
    if (file >= 0 && is_segment(name) && flags & O_RDWR)
        make_undo(folder, file, name, flags & O_CREAT);
    return file;
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
    if (file >= 0 && file < FILES && undo_of[file]) {
        uint64_t head[2] = {(uint64_t)at, 0};
        for (int i = 0; i < count; i++)
            head[1] += parts[i].iov_len;
        char *before = calloc(1, head[1] + 1);
        if (!before || pread(file, before, head[1], at) < 0)
            abort();
        struct iovec entry[] = {{head, sizeof head}, {before, head[1]}};
        int undo = undo_of[file] - 1;
        lseek(undo, 0, SEEK_END);
        if (writev(undo, entry, 2) != (ssize_t)(sizeof head + head[1]))
            abort();
        free(before);
    }
    return REAL(pwritev)(file, parts, count, at);
}

int fdatasync(int file) {
    int failed = REAL(fdatasync)(file);
    if (!failed && file >= 0 && file < FILES && undo_of[file] && ftruncate(undo_of[file] - 1, 0))
        abort();
    return failed;
}

// Of the folder: names are durable.
int fsync(int file) {
    char path[PATH_MAX];
    int failed = REAL(fsync)(file);
    DIR *folder = !failed && undo_path(path, file, "") ? opendir(path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        const char *end = strrchr(entry->d_name, '.');
        if (end && (!strcmp(end, ".new") || !strcmp(end, ".gone")))
            REAL(unlinkat)(dirfd(folder), entry->d_name, 0);
    }
    if (folder)
        closedir(folder);
    return failed;
}

int unlinkat(int folder, const char *name, int flags) {
    char path[PATH_MAX], behind[280];
    snprintf(behind, sizeof behind, "/%s.gone", name);
    if (is_segment(name) && undo_path(path, folder, behind))
        (void)!linkat(folder, name, AT_FDCWD, path, 0);
    return REAL(unlinkat)(folder, name, flags);
}

int close(int file) {
    if (file >= 0 && file < FILES && undo_of[file]) {
        REAL(close)(undo_of[file] - 1);
        undo_of[file] = 0;
    }
    return REAL(close)(file);
}
