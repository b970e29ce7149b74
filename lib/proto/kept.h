// A decoded message that outlives the frame it came in: a copy of it all, with its texts
// and lists, counted by reference and never changed. So one thread can fetch what many
// read, and readers keep what they hold while a newer one takes its place.
#ifndef ADAM_PROTO_KEPT_H
#define ADAM_PROTO_KEPT_H

#include <stdatomic.h>

#include "proto/proto.h"

struct error;

struct kept {
    uint16_t type;
    union proto_message message; // texts and lists point into memory of the kept one
    // Its own.
    _Atomic uint32_t references;
    struct proto_room room;
    uint8_t body[];
};

// Copies `message`, the struct of `type`; one reference is the caller's. STATUS_DATA when
// a field is beyond its limit, STATUS_IO when memory is out.
int kept_make(struct kept **kept, uint16_t type, const void *message, struct error *err);
void kept_hold(struct kept *kept); // both: by any thread; NULL: nothing
void kept_drop(struct kept *kept);
// Puts `newest`, a reference that it takes over, in the place of *mine, which it drops.
// True when they are not the same.
bool kept_renew(struct kept **mine, struct kept *newest);

#endif
