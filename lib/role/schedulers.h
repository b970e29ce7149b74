// A run as text for what starts processes elsewhere: a shell, systemd, Slurm. All of it
// is made of the commands of role/launch.h.
//
// Threads: plain functions, of whoever calls them.
#ifndef ADAM_ROLE_SCHEDULERS_H
#define ADAM_ROLE_SCHEDULERS_H

#include "role/launch.h"

// A script of sh(1): the same as adam-ctl up does, on this machine, to be read and changed.
// Each text is to be freed with free(); NULL when memory ran out.
char *schedulers_sh(const struct launch *launch);

// A batch script of Slurm: sbatch(1). When it is told to stop (SIGTERM: preempted, or
// `warning` seconds before its time is over) the run saves itself and is queued again.
struct slurm {
    const char *name;         // of the job
    const char *const *lines; // more #SBATCH options, as the user has them
    size_t line_count;
    int warning;
};
char *schedulers_sbatch(const struct launch *launch, const struct slurm *slurm);

// Units of systemd(1): a target, and a service for each role.
struct unit {
    char *name; // of the file
    char *text;
};
struct units {
    struct unit *items;
    size_t count;
};
struct systemd {
    const char *name;   // "adam-run": what the units' names begin with
    const char *folder; // absolute: where the commands start
    const char *user;   // whose processes they are; NULL: units of a user's own manager
    const char *path;   // $PATH of the processes
};
int schedulers_systemd(struct units *units, const struct launch *launch,
                       const struct systemd *systemd, struct error *err);
void units_free(struct units *units);

#endif
