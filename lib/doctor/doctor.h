// Looks, before a run begins, for what would end it or hinder it: on this machine, and on those
// of --hosts by ssh. It changes nothing.
//
// Threads: of one thread, which starts processes (launch/child.h).
#ifndef ADAM_DOCTOR_DOCTOR_H
#define ADAM_DOCTOR_DOCTOR_H

#include "doctor/findings.h"
#include "launch/launch.h"
#include "run/run_file.h"

struct error;

// A certificate that expires sooner is a warning.
#define DOCTOR_DAYS 30
// Clocks that differ by more seconds are one.
#define DOCTOR_SKEW 2.0

struct doctor { // the run as adam-ctl up would start it; what it points to outlives the call
    const struct launch *launch;
    const struct run_file *file;
    struct hosts *hosts; // NULL: all of it runs here
};

// All checks, each at least one finding. STATUS_USAGE when the hosts have no place for all
// processes, as plan_make; STATUS_IO.
int doctor_examine(const struct doctor *doctor, struct findings *findings, struct error *err);

#endif
