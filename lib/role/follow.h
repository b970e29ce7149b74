// An evaluator: it joins a run, and from time to time takes a copy of the weights as they
// are then, for its owner to test. Nobody waits for it while the run goes on; in the end
// the controller lets it take the last weights before the parameter servers stop.
//
// "Statistics Server [...] receives the model from the parameter server at the end of each
//  epoch and tests the model." (Rudra 3.1) The controller does that; this is for whoever
// looks with other data, or more often.
//
// Threads: all belongs to the owner's thread. Hooks of the member are called by others.
#ifndef ADAM_ROLE_FOLLOW_H
#define ADAM_ROLE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "member/member.h"
#include "model/model.h"
#include "sample/sample.h"

struct error;

struct follow;

struct follow_options {
    struct member_options member; // of role evaluator; texts outlive the follow; the
                                  // controller may be the folder of a run, too
    double every;                 // seconds from one copy to the next
    bool (*stop)(void);           // asked some ten times a second: true ends all waits
};

// What there is to test. Weights stay as they are until the next follow_next.
struct follow_copy {
    const struct model *model;
    const float *parameters;
    const struct classes *names; // of the classes; none: no data server was there to ask
    uint32_t rank;               // number of this member
    uint64_t step;               // updates applied: the newest version among the shards
    uint64_t samples;            // handed out by the data servers until then
    double epoch;                // that they are in, with the part of it that is done
    bool last;                   // the run is over: these are its final weights
};

// Returns at once; joining goes on by itself. STATUS_NOINPUT for a folder without a
// controller.
int follow_open(struct follow **out, const struct follow_options *options, struct error *err);
// Waits until the next copy is due, or the run is over, and takes it; only shards that have
// changed are sent. STATUS_STOPPED when stop() said so, or the session is over;
// STATUS_UNAVAILABLE when the run cannot be followed any more; STATUS_DATA when its model
// makes no sense here.
int follow_next(struct follow *follow, struct follow_copy *copy, struct error *err);
void follow_close(struct follow *follow);

#endif
