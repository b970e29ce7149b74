// Sockets that listen for plain HTTP: bound here, or passed by whoever started the process. An
// error names the command line's `option`.
#ifndef ADAM_NET_HTTP_LISTEN_H
#define ADAM_NET_HTTP_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/messages.h"

struct error;
struct sockaddr;

// Listens at HOST:PORT, or [HOST]:PORT, without blocking; the host of all interfaces may be * or
// empty. STATUS_USAGE when that is no such thing, or is beyond this machine and the user did not
// say `insecure`; STATUS_UNAVAILABLE when it cannot be had. *fd is the caller's; it is -1 after a
// failure.
int http_listen(int *fd, const char *option, const char *address, bool insecure, struct error *err);
// The one socket that was passed as sd_listen_fds(3) says (LISTEN_PID, LISTEN_FDS). STATUS_USAGE:
// there is none, or more, or it is no TCP socket that listens, or not `insecure` as above.
int http_inherit(int *fd, const char *option, bool insecure, struct error *err);
// HOST:PORT in numbers, of a socket that listens. STATUS_UNAVAILABLE.
int http_place(int fd, char place[PROTO_ADDRESS_MAX], struct error *err);

// The address that a caller has, without its port, as a hash (struct place, net/places.h).
uint64_t http_origin(const struct sockaddr *from);

#endif
