// Pieces of scripts for sh(1) that start the processes of a run: what adam-ctl sh and
// adam-ctl sbatch have in common, and adam-ctl -n up in part. They append to `out`.
//
// Threads: plain functions, of whoever calls them.
#ifndef ADAM_LAUNCH_SHELL_H
#define ADAM_LAUNCH_SHELL_H

#include "launch/launch.h"

// What must be there before the processes start, and what must not.
void shell_prepare(struct grow *out, const struct launch *launch);
// What an earlier run left, that is to be replaced.
void shell_forget(struct grow *out, const struct launch *launch);

// The functions that the rest uses: await PROCESS, keep TIMES COMMAND..., and of several
// controllers await_most PROCESS...
void shell_functions(struct grow *out, const struct launch *launch);
// The function ask: tells whoever leads the run to end it, again and again, until it is killed.
void shell_ask(struct grow *out, const struct launch *launch);

// A command line whose holes (launch/launch.h) become $n and $host.
void shell_line(struct grow *out, const struct words *command);
// "keep TIMES COMMAND...", by the policy of its role.
void shell_keep(struct grow *out, enum launch_policy policy, const struct words *command);

// Waits for $controllers, of several for most of them, whose status becomes $result, and ten
// seconds more at the most for the rest and $others; $left are those that are still there then.
// $asked is the process that asks, or empty; it ends with the run.
void shell_await(struct grow *out, const struct launch *launch);

#endif
