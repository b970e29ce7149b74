// The options that programs of a run share: whom they dial, where they listen, how they
// are found. One place, so that they are the same words everywhere.
//
//     HEADING("Network"),
//     NETWORK_ROWS(&o->network),
//     LISTEN_ROW(&o->network, "address for workers"),
//     ADMIN_ROW(&o->network),
//     LISTEN_ROWS(&o->network),
#ifndef ADAM_CLI_NETWORK_H
#define ADAM_CLI_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/option.h"

struct error;

struct network {
    const char *controller; // its address, or @FILE
    const char *name;       // of this process, for people
    const char *keys;       // DIR/NAME.pem
    bool insecure;
    // Of those who listen.
    const char *listen, *replication, *admin;
    const char *port_file, *pid_file;
    int64_t ready_fd; // NETWORK_NO_FD: none
};

#define NETWORK_NO_FD (-1)
#define NETWORK_LOCAL "a Unix socket"

// clang-format off
// Of all who dial a controller.
#define NETWORK_ROWS(n) \
    TEXT('c', "controller", "ADDR", &(n)->controller, NULL, "the controller's address, or @FILE with it"), \
    TEXT(0, "name", "NAME", &(n)->name, "host-PID", "name of this process, for people"), \
    SECRET_ROWS(n)
// Of all who use the network.
#define SECRET_ROWS(n) \
    TEXT(0, "keys", "FILE", &(n)->keys, NULL, "TLS: a NAME.pem of adam-ctl keys, ca.crt beside it"), \
    FLAG(0, "insecure", &(n)->insecure, "allow connections beyond this machine without TLS")
// Of all who listen.
#define ADMIN_ROW(n) \
    TEXT(0, "admin", "ADDR", &(n)->admin, "beside --listen", "address for controllers and people")
#define LISTEN_ROW(n, help) TEXT('l', "listen", "ADDR", &(n)->listen, NETWORK_LOCAL, help)
#define LISTEN_ROWS(n) \
    TEXT(0, "port-file", "FILE", &(n)->port_file, NULL, "write the addresses there when bound"), \
    TEXT(0, "pid-file", "FILE", &(n)->pid_file, NULL, "write the process's number there"), \
    INT(0, "ready-fd", "FD", &(n)->ready_fd, 0, 1023, NULL, "write a newline to this descriptor when ready")
// clang-format on

// {0} with what is not zero.
void network_default(struct network *network);

// Parses the command line of a program that is nothing without a controller: whether to go
// on. Else *status is how to end.
bool network_parse(const struct network *network, const struct command *command, int argc,
                   char **argv, int *operands, int *status, struct error *err);

// The name, or "HOST-PID" in `room` when none was given.
#define NETWORK_NAME_MAX 64
const char *network_name(const struct network *network, char room[NETWORK_NAME_MAX]);

#endif
