// Pieces of scripts for sh(1) that start the processes of a run: what adam-ctl sh and
// adam-ctl sbatch have in common, and adam-ctl -n up in part. They append to `out`.
//
// Threads: nothing is shared; what is passed belongs to one thread at a time.
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

// "lost=FILE", where keep writes who has ended for good.
void shell_lost(struct grow *out, const struct launch *launch);
// That, and the function watch: when a server has ended for good, or the last worker, it does
// `stop`, commands that tell the controllers.
void shell_watch(struct grow *out, const struct launch *launch, const char *stop);

// A command line whose holes (launch/launch.h) become $n and $host.
void shell_line(struct grow *out, const struct words *command);
// "keep TIMES COMMAND...", with what keep wants to know, by the policy of its role.
void shell_keep(struct grow *out, enum proto_role role, const struct words *command);

// Starts watch, and waits for $controllers, of several for most of them, whose status becomes
// $result, and ten seconds more at the most for the rest and $others; $left are those that are
// still there then. $asked is the process that asks, or empty; it ends with the run.
void shell_await(struct grow *out, const struct launch *launch);

#endif
