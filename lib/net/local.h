// Sockets that stay on this machine, and who is at their other end.
//
// nng 1.5.2 has no streams within a process. inproc://NAME is therefore a Unix socket
// without a file, whose name holds the process's number (unix(7), "abstract"); whoever is
// at its other end is asked for that number.
#ifndef ADAM_NET_LOCAL_H
#define ADAM_NET_LOCAL_H

#include <nng/nng.h>
#include <stdbool.h>

#include "net/address.h"
#include "proto/messages.h"

enum { LOCAL_URL = PROTO_ADDRESS_MAX + 32 };

// The address as nng takes it.
void local_url(char url[LOCAL_URL], const char *address, enum address_kind kind);
// False when a process that may not is at the other end: of another user, or of
// inproc:// any but this one. True of TCP, which cannot tell.
bool local_is_allowed(nng_stream *stream, enum address_kind kind);

#endif
