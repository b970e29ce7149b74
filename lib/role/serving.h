// What all roles that serve share: how their owner hears them and stops them, and how they
// say why they leave a run.
#ifndef ADAM_ROLE_SERVING_H
#define ADAM_ROLE_SERVING_H

#include <stdbool.h>

#include "core/error.h"

struct member; // member/member.h

struct serving_hooks {
    void *self;
    bool (*stop)(void *self);                  // whether to stop; asked ten times a second
    void (*say)(void *self, const char *text); // a line for the user
};

// Leaves the run and closes the member, which may be NULL. `status` is how the role ended,
// and `err` why, if that is a failure.
void serving_leave(struct member *member, int status, const struct error *err);

#endif
