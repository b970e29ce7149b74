// The way to another process: a link that is dialled for as long as it takes, and again whenever
// it breaks. For those whose messages may be lost: who finds no link hears so at once.
//
// Threads: one of its own dials. relink_send and relink_ask may be called by any thread, and do not
// wait.
#ifndef ADAM_NET_RELINK_H
#define ADAM_NET_RELINK_H

#include "net/link.h"

struct relink;

struct relink_config {          // what it points to outlives it, but for the address
    const char *address;        //
    struct proto_hello hello;   //
    const struct secrets *keys; //
    bool insecure;              // link_options
};

// STATUS_IO: out of memory or threads.
int relink_open(struct relink **out, const struct relink_config *config, struct error *err);
// Ends what is pending (link_close), and waits for at most the time that dialling takes. NULL:
// nothing.
void relink_close(struct relink *relink);
// Sends what needs no answer.
void relink_send(struct relink *relink, uint16_t type, const void *message);
// As link_ask; STATUS_UNAVAILABLE also when there is no link now.
int relink_ask(struct relink *relink, struct link_request *request, struct error *err);
// Bytes on the wire so far.
void relink_traffic(struct relink *relink, uint64_t *received, uint64_t *sent);

#endif
