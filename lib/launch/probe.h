// What a machine says of itself before a run begins: a script for sh(1), run here or by ssh.
// It changes nothing there.
//
// Threads: as launch/child.h.
#ifndef ADAM_LAUNCH_PROBE_H
#define ADAM_LAUNCH_PROBE_H

#include <stdint.h>

#include "launch/child.h"
#include "launch/launch.h"

struct error;

// Seconds until a machine that does not answer is given up: ssh itself takes 10.
#define PROBE_PATIENCE 20

enum probe_reach { PROBE_UNKNOWN, PROBE_REACHES, PROBE_FAILS };

struct probe {
    const struct host *host; // NULL: this machine
    struct child child;      // that runs the script
    int output;              // what it says
    double began, ended;     // seconds since 1970, by the clock here; ended 0: not yet
    int wait_status;         // of the script, or of ssh
    char *said;              // what others than the script said: ssh's reason

    bool folder;                      // the working folder is there
    bool data, labels, targets, keys; // these files can be read
    bool exposed;                     // others may read the keys
    char versions[3][64];             // of adam-serve, adam-ps, adam-worker; "": there is none
    double clock[2];                  // seconds since 1970 there, first and last; 0: not told
    int64_t space;                    // bytes free in the working folder; -1: not told
    char *certificate, *authority;    // PEM of the keys; NULL: none
    enum probe_reach reach;           // whether it can connect to launch->dial
};
extern const char *const probe_programs[3];

// Starts it. STATUS_UNAVAILABLE, STATUS_IO.
int probe_start(struct probe *probe, const struct launch *launch, const struct host *host,
                struct error *err);
// Whether it has ended, and its answers are there.
bool probe_ended(struct probe *probe);
// Ends the script if it is still there.
void probe_close(struct probe *probe);

#endif
