// A run as text for what starts processes elsewhere: a shell, systemd, Slurm. All of it
// is made of the commands of launch/launch.h. Texts are to be freed with free(); NULL when
// memory ran out.
//
// Threads: nothing is shared; what is passed belongs to one thread at a time.
#ifndef ADAM_LAUNCH_SCHEDULERS_H
#define ADAM_LAUNCH_SCHEDULERS_H

#include "launch/launch.h"

struct error;

// A script of sh(1): the same as adam-ctl up does, on this machine, to be read and changed.
// It works in `folder`.
char *schedulers_sh(const struct launch *launch, const char *folder);

struct slurm {
    const char *name;   // of the job
    const char *folder; // where it works
    const char *host;   // how a node calls itself: text for a shell, such as $(hostname)
    int warning;        // seconds before the end of its time at which it is told to stop
};
// A batch script of Slurm (sbatch(1)): the controllers in the batch step, whose loss ends the job
// in any case; a step for each other role. Several controllers get addresses that the job makes,
// and the launch has no `quorum` and no `listen` then. Told to stop (SIGTERM), the run saves itself
// and is queued again, and goes on from what its folder holds. The launch's `member` and `listen`
// may have LAUNCH_HOST.
char *schedulers_sbatch(const struct launch *launch, const struct slurm *slurm);

struct systemd {
    const char *name;   // what the names of the units begin with
    const char *folder; // where they work
    const char *user;   // whose processes they are; NULL: units of a user's own manager
    const char *path;   // folder of the programs
};
// The units of systemd(1), one by one: a target first, then a service for each role, of
// which the data servers, parameter servers and workers are templates, and of several controllers
// these, too; then one that ends the run before they are stopped. *name is the file's.
size_t schedulers_units(const struct launch *launch);
char *schedulers_unit(const struct launch *launch, const struct systemd *systemd, size_t which,
                      char **name);
// STATUS_USAGE: the run's folder has too long a name for one of them.
int schedulers_check_units(const struct launch *launch, const struct systemd *systemd,
                           struct error *err);

#endif
