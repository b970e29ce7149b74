// Reads what is appended to a text file, as tail(1) -f does: whole lines, from where the file
// ends when it is opened. A file that is not there yet is waited for, at no cost.
//
// Threads: a tail belongs to one thread.
#ifndef ADAM_LAUNCH_TAIL_H
#define ADAM_LAUNCH_TAIL_H

#include <sys/types.h>

typedef void tail_lines(void *self, const char *lines); // without the last newline

struct tail {
    const char *path; // the caller's
    tail_lines *told;
    void *self;
    int fd; // below 0: not there yet
    off_t at;
};

void tail_open(struct tail *tail, const char *path, tail_lines *told, void *self);
// Tells what has come since.
void tail_more(struct tail *tail);
void tail_close(struct tail *tail);

#endif
