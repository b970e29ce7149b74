// What supervise.c and supervise_ends.c share. All is of the thread that supervises.
#ifndef ADAM_LAUNCH_SUPERVISE_INTERNAL_H
#define ADAM_LAUNCH_SUPERVISE_INTERNAL_H

#include "launch/child.h"
#include "launch/supervise.h"
#include "launch/supervise_states.h"
#include "launch/tail.h"

enum { SUPERVISE_CRASHES = LAUNCH_RETRIES };
#define SUPERVISE_GRACE 5.0 // seconds between SIGTERM and SIGKILL

// A process of the plan.
struct slot {
    const struct process *process;
    char *log; // its file
    struct child child;
    enum slot_state state;
    int starts, retries, crashes;
    double started, next; // next: when it starts, while it waits
    double crashed[SUPERVISE_CRASHES];
    bool ended; // of a controller: it ended by itself, and was not started since
    int status; // with which
};

struct supervisor {
    const struct supervise_config *config;
    struct slot *slots; // the controllers are the first
    size_t count, controllers;
    int signals;   // signalfd
    bool stopping; // the user wants it to end...
    bool told;     // ...and the controller knows
    bool waited;   // the user was told that the controller is slow
    int by_signal; // that ended all at once
    enum phase phase;
    double deadline; // of the phase
    int status;      // of the run, once it is ending
    struct tail controller_logs[LAUNCH_CONTROLLERS];
    struct child down; // what tells the run to end, where several controllers are
    struct error *err;
};

// --- supervise.c ------------------------------------------------------------------------

// A line for the user.
void supervise_say(struct supervisor *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// The one door of a process's state, and that to SLOT_WAITING: it starts in so many seconds.
void slot_enter(struct slot *slot, enum slot_state state);
void slot_wait(struct slot *slot, double seconds);
bool slot_is_over(const struct slot *slot);
// Whether it is a controller.
bool supervise_leads(const struct supervisor *s, const struct slot *slot);
// The one door of the run's phase, which lasts for so many seconds. Nothing starts any more.
void supervise_enter(struct supervisor *s, enum phase phase, double seconds);
// Tells the controller that leads, which saves the run and ends it.
void supervise_tell_stop(struct supervisor *s);
// The run has a status: the processes that are left have `grace` seconds to end by themselves.
void supervise_end(struct supervisor *s, int status, double grace);

// --- supervise_ends.c -------------------------------------------------------------------

// Takes those that have ended, and does what is to be done then.
void supervise_look_for_ends(struct supervisor *s);

#endif
