// A process that this one started: a group of its own, that dies with its parent.
//
// Threads: a child belongs to the thread that started it, which must outlive it: Linux
// sends the signal of a parent's death when the thread that forked ends.
#ifndef ADAM_LAUNCH_CHILD_H
#define ADAM_LAUNCH_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/words.h"

struct error;

// The descriptor that the child finds what it writes its newline to when it is ready.
#define CHILD_READY_FD 3

struct child {
    pid_t pid; // 0: none
    int ready; // becomes readable when it is ready, or has ended; below 0: not asked for
    off_t log; // where in its log what it says begins
    // Once the process has ended and others of its group may be left:
    double ended; // when, by clock_seconds; 0: it has not
    int status;   // as waitpid(2) has it
};

// Runs the command, found as execvp(3) does, with what it says appended to `log`, nothing
// on standard input, and no signal blocked. With `tells`, the command is told
// --ready-fd. STATUS_UNAVAILABLE when there is no such program or no such process can be,
// STATUS_CANTCREATE when there is no log.
int child_start(struct child *child, const struct words *command, bool tells, const char *log,
                struct error *err);
// To the whole group; nothing when it has ended.
void child_signal(const struct child *child, int number);
// True, once, when it has ended and the rest of its group, which is killed then, has too:
// *status is its own, as waitpid(2) has it. The caller is a subreaper (prctl(2)).
bool child_ended(struct child *child, int *status);
// Whether it said that it is ready; closes `ready` when nothing more can come.
bool child_is_ready(struct child *child);

// The last lines of what it said, at most so many, to be freed with free(); NULL when there
// are none.
char *child_last_words(const struct child *child, const char *log, int lines);

#endif
