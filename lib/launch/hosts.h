// The machines of a run, as a file has them; one a line, '#' begins a comment:
//
//   HOST [slots=N] [roles=ROLE,...] [address=NAME] [threads=N]
//
// HOST is what ssh(1) is given. `slots` is how many workers it takes (1), `roles` which of
// controller, serve, ps and worker run there (all), `address` what the servers on it bind, and tell
// others (HOST without "USER@"), `threads` what each worker there has.
#ifndef ADAM_LAUNCH_HOSTS_H
#define ADAM_LAUNCH_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/proto.h"

struct error;

struct host {
    char *name;    // for ssh
    char *address; // for its servers
    char *socket;  // of the connection that its processes share; NULL: each has its own
    int slots;
    int threads;                     // 0: not told
    bool takes[PROTO_ROLE_LAST + 1]; // role by role
    int placed[PROTO_ROLE_LAST + 1]; // how many processes of each role it was given
};

struct hosts {
    struct host *items;
    size_t count;
};

// STATUS_NOINPUT, or STATUS_DATA with the place of what is wrong: "FILE:LINE: ...".
int hosts_read(struct hosts *hosts, const char *path, struct error *err);
void hosts_free(struct hosts *hosts);

// The one that takes controllers and is reached by this name; NULL: none.
struct host *hosts_controller(const struct hosts *hosts, const char *address);

// Slots of all hosts that take workers.
int hosts_slots(const struct hosts *hosts);
// Deals `count` processes of a role out, in the order of the file: servers one by one,
// workers as many at once as a host has slots. STATUS_USAGE when no host takes the role, or
// there are more workers than slots.
int hosts_place(struct hosts *hosts, enum proto_role role, int count, struct error *err);

#endif
