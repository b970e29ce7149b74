// Brings the parts of a checkpoint together that parameter servers keep on their own disks.
#ifndef ADAM_REMOTE_PART_GATHER_H
#define ADAM_REMOTE_PART_GATHER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/json.h"
#include "proto/proto.h"

struct error;
struct secrets; // net/secrets.h

struct part_holder { // a parameter server
    char name[PROTO_NAME_MAX + 1];
    char address[PROTO_ADDRESS_MAX + 1]; // where it is administered
};

struct part_gather { // what it points to is the caller's
    const struct part_holder *holders;
    size_t count;
    const struct proto_hello *hello;
    const struct secrets *keys;
    bool insecure;
    bool *refused; // set where it fails since a server that is there has no such part; or NULL
};

// Fetches all files that the manifest says servers have, and that are not there, into the folder:
// each is complete, with the size and the CRC-32 of the manifest, or not there. STATUS_UNAVAILABLE,
// with its name: a server is not there, or does not give its part; STATUS_DATA: a part is damaged;
// STATUS_CANTCREATE, STATUS_IO.
int part_gather(const struct part_gather *gather, const json_t *manifest, const char *folder,
                struct error *err);
// A server removes its parts of these checkpoints. STATUS_UNAVAILABLE, with its address: it does
// not answer, or refuses; statuses of link_dial.
int part_drop(const struct part_gather *gather, const struct proto_server *server,
              const struct proto_drop_parts *message, struct error *err);
// The name and the address of a server, asked from itself. STATUS_UNAVAILABLE.
int part_holder_ask(struct part_holder *holder, const struct proto_server *server,
                    const struct part_gather *gather, struct error *err);

#endif
