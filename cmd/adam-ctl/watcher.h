// How far a run is, as a line at the foot of the terminal, and the talk above it. It asks the
// controller once a second, as adam-ctl status does; where stderr is no terminal it draws
// nothing, and asks nobody.
//
// Threads: one of its own asks and draws, and takes no signals; watcher_say and watcher_told
// are for the caller's.
#ifndef ADAM_CTL_WATCHER_H
#define ADAM_CTL_WATCHER_H

#include <pthread.h>

#include "cli/progress.h"
#include "core/gate.h"
#include "remote/admin.h"

struct error;

struct watcher {
    struct progress progress;
    pthread_mutex_t lock; // of the terminal
    pthread_t thread;
    struct admin admin;
    struct secrets *keys;
    double epochs;
    bool asks; // there is a thread
    struct gate gate;
    _Atomic bool over;
};

// `folder` of the run; `keys` NULL: no TLS; `epochs` it is to have, 0: not known.
int watcher_open(struct watcher *watcher, const char *folder, const char *keys, bool insecure,
                 double epochs, bool quiet, struct error *err);
// Told by others; `self` is the watcher.
void watcher_say(void *self, const char *text);
// What the controller says: whole lines. Its own lines of progress are for those who have
// no terminal.
void watcher_told(void *self, const char *lines);
void watcher_close(struct watcher *watcher);

#endif
