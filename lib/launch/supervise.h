// Starts the processes of a run on this machine, watches them, and sees that none is left.
//
// Each is a process group of its own, and dies with the supervisor, however that ends. The
// first of the plan, the controllers, lead: when a majority of them has ended for good, the run
// has, and their status is that of the run; the others end by its order, or are ended. A process
// that dies is treated by its policy (launch/launch.h).
//
// SIGTERM, SIGINT and SIGHUP, unless they are ignored, stop the run through the controller:
// it saves, and all end. A second one ends all at once. In any case nobody of those groups is
// left when supervise_run returns.
//
// What the processes say goes to FOLDER/log/NAME.log, and only there: what happens to the
// supervisor's own terminal or pipe cannot harm them.
//
// Threads: all of it is of the calling thread, which must live as long as the children
// (Linux sends the signal of a parent's death when the thread that forked ends). It blocks
// the signals above and SIGCHLD, for itself and threads made later.
#ifndef ADAM_LAUNCH_SUPERVISE_H
#define ADAM_LAUNCH_SUPERVISE_H

#include "launch/launch.h"

struct error;

struct supervise_hooks {
    void *self;
    void (*say)(void *self, const char *text); // a line or more for the user
    // More of what the controller says: whole lines, as they come.
    void (*told)(void *self, const char *text);
};

struct supervise_config {
    const struct plan *plan;
    const char *folder; // of the run, as launch_prepare made it
    struct supervise_hooks hooks;
};

// The status of the run: STATUS_OK; STATUS_STOPPED, of which the controller tells;
// STATUS_DIVERGED and so on, with the reason; STATUS_UNAVAILABLE when a process is lost that
// nothing can replace. *signal is the one that ended all at once, or 0.
int supervise_run(const struct supervise_config *config, int *signal, struct error *err);

#endif
