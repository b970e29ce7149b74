// Addresses: what they may be, and which of them may be used without TLS. They are bound
// and told to others exactly as the user wrote them: nothing is guessed from host names
// or interfaces.
//
//   inproc://ps0                     within this process; a name, nothing that others see
//   ipc:///run/user/1000/adam/ps0    a Unix socket, of this user only
//   tcp://127.0.0.1:7001             TCP; port 0 of a listener is any that is free
//   tls+tcp://n07:7001               TLS over TCP, with certificates of both sides
#ifndef ADAM_NET_ADDRESS_H
#define ADAM_NET_ADDRESS_H

#include <stdbool.h>

#include "proto/messages.h"

struct error;

enum address_kind { ADDRESS_INPROC, ADDRESS_IPC, ADDRESS_TCP, ADDRESS_TLS };

// STATUS_USAGE when the text is no address.
int address_kind(const char *address, enum address_kind *kind, struct error *err);

// The host of an address that has one, without the brackets of IPv6; else false.
bool address_host(const char *address, char host[PROTO_ADDRESS_MAX]);

// True of the addresses without a host: inproc:// and ipc://.
bool address_is_socket(enum address_kind kind);

// True when nobody on another machine can reach what listens there: a Unix socket, or a
// host that is 127.0.0.0/8, ::1 or "localhost" in so many letters.
bool address_is_local(const char *address);

// True of a host, with or without brackets, that stands for all addresses of its machine:
// 0.0.0.0, :: or *. One can listen there, but others cannot dial it.
bool address_is_any(const char *host);

// "Networks: a Unix socket (same user) or loopback unless told; beyond loopback, TLS with
//  certificates on both sides, or an explicit --insecure."
// STATUS_USAGE when the address is none, is TLS without keys, or is TCP beyond this
// machine and the user did not say `insecure`.
int address_check(const char *address, bool keys, bool insecure, struct error *err);

#endif
