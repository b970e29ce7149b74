// A person's errand to a controller: dialled, asked, hung up. Belongs to one thread, which
// waits.
#ifndef ADAM_REMOTE_ADMIN_H
#define ADAM_REMOTE_ADMIN_H

#include <stdbool.h>

#include "proto/kept.h"

struct error;

struct secrets; // net/secrets.h

struct admin {
    const char *place; // addresses, @FILE with them, or the folder of a run
    const struct secrets *keys;
    bool insecure;
};

// Sends a message and takes the answer, which is of the type `wanted`: kept_drop it. A controller
// that hangs up before it answered, or says when to ask again, is asked again for some seconds, so
// a message may arrive twice; of several controllers each is asked in turn until the one that leads
// answers. A process that trains alone, and was asked to stop, has ended then. STATUS_UNAVAILABLE
// when no controller answers there, or it refuses: the text says which and why. STATUS_USAGE for a
// setting that it refuses. STATUS_NOINPUT when the folder has no controller.
int admin_ask(const struct admin *admin, uint16_t type, const void *message, uint16_t wanted,
              struct kept **answer, struct error *err);

#endif
