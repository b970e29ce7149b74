// To be preloaded (LD_PRELOAD): a process that is forked stands still from its first moment, as by
// kill -STOP.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

pid_t fork(void) {
    pid_t (*fork_of_libc)(void);
    *(void **)&fork_of_libc = dlsym(RTLD_NEXT, "fork");
    pid_t process = fork_of_libc();
    if (process == 0)
        raise(SIGSTOP);
    return process;
}
