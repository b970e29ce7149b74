// What the parts of the doctor share: doctor.c (the order of the checks), doctor_run.c (the run
// itself: model, data, folder, addresses), doctor_machine.c (a machine, by what its probe says).
#ifndef ADAM_DOCTOR_DOCTOR_INTERNAL_H
#define ADAM_DOCTOR_DOCTOR_INTERNAL_H

#include "doctor/doctor.h"
#include "launch/probe.h"

#define DOCTOR_HERE "here"

// The run, as far as this machine sees it. *listener is a socket that listens where the
// controller will, or below 0: hosts can try to reach it.
void doctor_run(const struct doctor *doctor, struct findings *findings, int *listener);

// A machine whose probe has ended, or has not in time; `here` is that of this machine.
void doctor_machine(const struct doctor *doctor, struct probe *probe, const struct probe *here,
                    struct findings *findings);

// "1.5 GB"
enum { DOCTOR_BYTES = 32 };
void doctor_bytes(char text[DOCTOR_BYTES], double bytes);

#endif
