// What all roles that serve share: their life as members of a run, how their owner hears them
// and stops them, and how they say why they leave.
#ifndef ADAM_ROLE_SERVING_H
#define ADAM_ROLE_SERVING_H

#include <stdbool.h>

struct error;

struct member; // member/member.h
struct ready;  // net/ready.h

struct serving_hooks {
    void *self;
    bool (*stop)(void *self);                  // whether to stop; asked ten times a second
    void (*say)(void *self, const char *text); // a line for the user
};

// What one role does, by the thread that runs it. All are given the role's `self`.
struct serving_role {
    // Binds its addresses, and joins the run.
    int (*open)(void *self, struct member **member, struct error *err);
    // Tells the user, and with ready_tell others, where it listens.
    int (*tell)(void *self, struct ready *ready, struct error *err);
    // Whether somebody asked by the network that it stop.
    bool (*stop_wanted)(void *self);
    // What is due: ten times a second, and when the member has news.
    int (*turn)(void *self, struct error *err);
    // Leaves the run and closes what is open, also after a failure: `status` and `err` as
    // serving_leave has them. Returns the status, or another one with why in err: what was to be
    // kept is not.
    int (*end)(void *self, int status, struct error *err);
};

// The role's life, until it is told to stop: STATUS_OK when the controller ordered it,
// STATUS_SKIPPED when it was drained and leaves while the run goes on (nothing is in err then),
// STATUS_STOPPED when the owner or somebody by the network wished it, or the session is
// over; or what went wrong.
int serving_run(const struct serving_role *role, void *self, const struct serving_hooks *hooks,
                const struct ready *ready, struct error *err);

void serving_say(const struct serving_hooks *hooks, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Leaves the run and closes the member, which may be NULL. `status` is how the role ended,
// and `err` why, if that is a failure.
void serving_leave(struct member *member, int status, const struct error *err);

#endif
