// The states of a supervised run and of its processes, and which may follow which. Pure.
#ifndef ADAM_LAUNCH_SUPERVISE_STATES_H
#define ADAM_LAUNCH_SUPERVISE_STATES_H

#include <stdbool.h>

// Of the run. It may go from each to any later one, except from running, which it leaves only for
// ending.
enum phase {
    PHASE_RUNNING,     // processes that end may start again
    PHASE_ENDING,      // the run has a status; processes end by themselves
    PHASE_TERMINATING, // those that are left were sent SIGTERM
    PHASE_KILLING,     // and SIGKILL
    PHASE_COUNT
};

// Of a process.
enum slot_state {
    SLOT_WAITING, // is started when its time has come
    SLOT_STARTED,
    SLOT_READY, // has said that it is ready: only the controller is asked to
    SLOT_LEFT,  // ended as the controller told it to; a controller that starts again may need it
    SLOT_OVER,  // is not started again
    SLOT_STATE_COUNT
};

bool phase_may_follow(enum phase from, enum phase to);
bool slot_state_may_follow(enum slot_state from, enum slot_state to);

#endif
