// Pieces of scripts for sh(1) that start the processes of a run: what adam-ctl sh, adam-ctl
// sbatch and the hosts of adam-ctl up have in common. They append to `out`.
//
// Threads: plain functions, of whoever calls them.
#ifndef ADAM_LAUNCH_SHELL_H
#define ADAM_LAUNCH_SHELL_H

#include "launch/launch.h"

// What must be there before the processes start, and what must not.
void shell_prepare(struct grow *out, const struct launch *launch);
// What an earlier run left, that is to be replaced.
void shell_forget(struct grow *out, const struct launch *launch);

// The functions that the rest uses: await PROCESS, and keep TIMES COMMAND...
void shell_functions(struct grow *out);

// A command line whose holes (launch/launch.h) become $n and $host.
void shell_line(struct grow *out, const struct words *command);
// "keep TIMES COMMAND...", by the policy of its role.
void shell_keep(struct grow *out, enum launch_policy policy, const struct words *command);

// Waits for $controller, whose status becomes $result, and ten seconds more at the most for
// $others; $left are those that are still there then.
void shell_await(struct grow *out);

// A script that runs processes on one host until all have ended, and has the worst of their
// statuses: its beginning, each process, its end.
void shell_host_begin(struct grow *out, const struct launch *launch, const char *folder);
void shell_host_process(struct grow *out, enum launch_policy policy, const struct words *command);
void shell_host_end(struct grow *out);

#endif
