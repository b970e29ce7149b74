// To be preloaded (LD_PRELOAD): a process that syncs a file while the file $STOP_IF exists removes
// that, and stands still, as by kill -STOP, before it goes on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int fsync(int fd) {
    int (*fsync_of_libc)(int);
    *(void **)&fsync_of_libc = dlsym(RTLD_NEXT, "fsync");
    const char *wish = getenv("STOP_IF");
    int result = fsync_of_libc(fd);
    if (wish && unlink(wish) == 0)
        raise(SIGSTOP);
    return result;
}
