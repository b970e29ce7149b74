// How a program says that it is there, and where: to scripts by files, to whoever started
// it by a descriptor. And how others find it by such a file.
#ifndef ADAM_NET_READY_H
#define ADAM_NET_READY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "proto/proto.h"

struct error;

struct ready {
    const char *port_file; // --port-file: the addresses, one a line; NULL: none
    const char *pid_file;  // --pid-file: the process's number
    int fd;                // --ready-fd: gets a newline, and is closed; below 0: none
    struct stat port, pid; // the files as they were written, of ready_tell; {0}: none was
};

// Everything is bound. Each file appears complete, the port file after the pid file, and
// the descriptor hears of it after both. STATUS_CANTCREATE, STATUS_IO.
int ready_tell(struct ready *ready, const char *const *addresses, size_t count, struct error *err);
// Removes the files, at the end: those of a successor, which has written its own meanwhile, stay.
void ready_forget(const struct ready *ready);

// Addresses as a user writes them: one, or several with commas between them, or @FILE for the
// lines of a port file. The one whose turn it is, counted from 0 and past the last from the first
// again, and how many there are. STATUS_NOINPUT when there is no such file (yet), STATUS_USAGE
// when it is no address.
int ready_find(const char *text, uint32_t turn, char address[PROTO_ADDRESS_MAX], uint32_t *count,
               struct error *err);

#endif
