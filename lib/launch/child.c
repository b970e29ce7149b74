#include "launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"

enum {
    LAST_WORDS = 8192,
    LINGERS = 5, // seconds that a killed process may need to leave a system call
};

// Between fork and exec: only what is safe there. Never returns; a child that cannot
// become what it should goes as it would with its parent.
static void exec_child(char *const *argv, pid_t parent, const int fds[4], int failed) {
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have gone before the line above: then nobody would be told.
    if (getppid() != parent)
        raise(SIGKILL);
    // All are above 3: none is overwritten before it is used.
    for (int fd = 0; fd < 4; fd++)
        if (fds[fd] >= 0)
            dup2(fds[fd], fd);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(argv[0], argv);
    int reason = errno;
    while (write(failed, &reason, sizeof reason) < 0 && errno == EINTR)
        ;
    raise(SIGKILL);
}

// A descriptor above those of a child's own, closed by exec. Closes `fd`.
static int duplicate_above_standard(int fd) {
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, CHILD_READY_FD + 1);
    if (fd >= 0)
        close(fd);
    return high;
}

static bool open_pipe(int ends[2]) {
    int low[2];
    ends[0] = ends[1] = -1;
    if (pipe2(low, O_CLOEXEC))
        return false;
    ends[0] = duplicate_above_standard(low[0]);
    ends[1] = duplicate_above_standard(low[1]);
    return ends[0] >= 0 && ends[1] >= 0;
}

static void close_pipes(const int *fds, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

// Starts it with the four descriptors; waits until it runs, or gives the reason why not.
static int fork_child(struct child *child, char *const *argv, const int fds[4]) {
    int failed[2], reason = 0;
    if (!open_pipe(failed)) {
        reason = errno;
        close_pipes(failed, 2);
        return reason;
    }
    pid_t parent = getpid();
    child->pid = fork();
    if (child->pid == 0)
        exec_child(argv, parent, fds, failed[1]);
    if (child->pid < 0)
        reason = errno;
    close(failed[1]);
    ssize_t got = 0;
    while (child->pid > 0 && (got = read(failed[0], &reason, sizeof reason)) < 0 && errno == EINTR)
        ;
    close(failed[0]);
    if (child->pid > 0 && got > 0)
        waitpid(child->pid, NULL, 0);
    if (reason)
        child->pid = 0;
    return reason;
}

static int open_log(struct child *child, const char *log, struct error *err) {
    struct stat stat_of;
    int fd = duplicate_above_standard(open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
    if (fd < 0) {
        error_errno(err, STATUS_CANTCREATE, "cannot write %s", log);
        return -1;
    }
    child->log = fstat(fd, &stat_of) ? 0 : stat_of.st_size;
    return fd;
}

int child_start(struct child *child, const struct words *command, bool tells, const char *log,
                struct error *err) {
    struct words words = {0};
    int ready[2] = {-1, -1}, status = STATUS_OK;
    *child = (struct child){.ready = -1};
    int out = open_log(child, log, err);
    if (out < 0)
        return err ? err->status : STATUS_CANTCREATE;
    for (size_t i = 0; i < command->count; i++)
        words_add(&words, command->items[i]);
    if (tells) {
        words_add(&words, "--ready-fd");
        words_format(&words, "%d", CHILD_READY_FD);
    }
    int in = duplicate_above_standard(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (words.failed)
        status = error_nomem(err);
    else if (in < 0 || (tells && !open_pipe(ready)))
        status = error_errno(err, STATUS_UNAVAILABLE, "cannot start %s", command->items[0]);
    int reason = status ? 0 : fork_child(child, words.items, (const int[]){in, out, out, ready[1]});
    if (reason)
        status = error_set(err, STATUS_UNAVAILABLE, "cannot start %s: %s", command->items[0],
                           strerror(reason));
    close_pipes((const int[]){in, out, ready[1]}, 3);
    if (status)
        close_pipes(ready, 1);
    else
        child->ready = ready[0];
    words_free(&words);
    return status;
}

void child_signal(const struct child *child, int number) {
    if (child->pid > 0)
        kill(-child->pid, number);
}

// Whether the process itself has ended: then the rest of its group is killed.
static bool leader_ended(struct child *child) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == 0)
        return false;
    // Not waited for, it keeps its number: the group can be no other.
    kill(-child->pid, SIGKILL);
    while (waitpid(child->pid, &child->status, 0) < 0 && errno == EINTR)
        ;
    child->ended = clock_seconds();
    return true;
}

// Whether nobody of a killed group is left, or who is cannot die. What a group's process had
// started becomes a child of this process (PR_SET_CHILD_SUBREAPER), which waits for it.
static bool group_ended(const struct child *child) {
    while (waitpid(-child->pid, NULL, WNOHANG) > 0)
        ;
    return kill(-child->pid, 0) != 0 || clock_seconds() > child->ended + LINGERS;
}

bool child_ended(struct child *child, int *status) {
    if (child->pid <= 0 || (child->ended == 0 && !leader_ended(child)) || !group_ended(child))
        return false;
    *status = child->status;
    close_pipes(&child->ready, 1);
    *child = (struct child){.ready = -1, .log = child->log};
    return true;
}

bool child_is_ready(struct child *child) {
    char newline;
    ssize_t got;
    while ((got = read(child->ready, &newline, 1)) < 0 && errno == EINTR)
        ;
    close(child->ready);
    child->ready = -1;
    return got == 1;
}

char *child_last_words(const struct child *child, const char *log, int lines) {
    char *text = malloc(LAST_WORDS + 1);
    struct stat stat_of;
    int fd = text ? open(log, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t length = 0;
    if (fd >= 0 && fstat(fd, &stat_of) == 0) {
        off_t from = stat_of.st_size - LAST_WORDS;
        length = pread(fd, text, LAST_WORDS, from > child->log ? from : child->log);
    }
    close_pipes(&fd, 1);
    while (length > 0 && text[length - 1] == '\n')
        length--;
    if (length <= 0) {
        free(text);
        return NULL;
    }
    text[length] = 0;
    char *from = text + length;
    while (from > text && (from[-1] != '\n' || --lines > 0))
        from--;
    memmove(text, from, (size_t)(text + length - from) + 1);
    return text;
}
