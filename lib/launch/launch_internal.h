// What launch.c, launch_plan.c and remote_controllers.c share. Inside lib/launch only.
#ifndef ADAM_LAUNCH_LAUNCH_INTERNAL_H
#define ADAM_LAUNCH_LAUNCH_INTERNAL_H

#include "launch/launch.h"

struct error;

// "controller", or "ps-2", or with number 0 "ps-" with a hole.
void launch_put_name(const struct launch *launch, struct grow *out, enum proto_role role,
                     int number);

// What a command on a host begins with: the working folder, and the run's.
void launch_put_folders(struct grow *out, const struct launch *launch);

// The address of one of several controllers, as a word.
void launch_own_address(const struct launch *launch, int number, struct words *out);
// The host that it runs on; NULL: this machine.
struct host *launch_controller_host(const struct launch *launch, const struct hosts *hosts,
                                    int number);
// What launch_tell does, as a line of sh(1).
void launch_put_port_file(struct grow *out, const struct launch *launch);
// The clear of a controller's host.
int plan_add_clear(struct plan *plan, const struct launch *launch, int number,
                   const struct host *host, struct error *err);

#endif
