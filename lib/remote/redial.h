// How those that answer no more are dialled again: soon at first, then ever more seldom.
#ifndef ADAM_REMOTE_REDIAL_H
#define ADAM_REMOTE_REDIAL_H

#define REDIAL_MS 2000       // for a connection and its hello
#define REDIAL_PAUSE_MOST 2. // seconds

// Seconds until the next attempt after one that failed; `last` is the pause before that, 0 if there
// was none.
static inline double redial_pause(double last) {
    const double first = 0.05;
    double pause = last > 0 ? 2 * last : first;
    return pause < REDIAL_PAUSE_MOST ? pause : REDIAL_PAUSE_MOST;
}

#endif
