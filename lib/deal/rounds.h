// Whose mini-batch is whose where all workers share every step (Rudra's hardsync): places
// of the epoch are dealt in rounds. The round of a step is a slot for each member, in the
// order of the epoch, so that the samples of a step are those that one worker with a
// mini-batch of them all would have: "(sigma, mu, lambda) = (0, mu, lambda) is equivalent
// to that of a single learner with mini-batch size mu x lambda" (Rudra eq. 7).
//
// A step is the clock of the weights that its mini-batches are trained on, which all
// members have in common: so it does not matter who asks when, or how far ahead. A round is
// opened by the first who asks for its step, with the members of then, but those who are
// past it. Its slots are open until they get places, which they do one after the other, or
// until it is clear that there are none left for them. Who is told so, or has no slot in
// the round, takes its turn without samples.
//
// A pure bookkeeper of slots: places are its owner's, who calls all functions, one at a time.
#ifndef ADAM_DEAL_ROUNDS_H
#define ADAM_DEAL_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

struct round_slot {
    uint64_t step, session;
};

struct round_member { // a member
    uint64_t session;
    uint64_t asked; // the last step that it asked for, or to which all have come
    uint64_t given; // the last one for which it got places...
    uint64_t lease; // ...as this lease; 0: none yet
};

struct rounds { // {0} has no members
    struct round_member *members;
    size_t member_count;
    struct round_slot *open; // by step, and the order of members
    size_t open_count, open_room;
    uint64_t *steps; // whose rounds were opened, ascending; not those that all are past
    size_t step_count, step_room;
};

void rounds_free(struct rounds *rounds);

// These are the members from now on. Open slots of the others are none any more.
int rounds_members(struct rounds *rounds, const uint64_t *sessions, size_t count,
                   struct error *err);
void rounds_gone(struct rounds *rounds, uint64_t session);
// NULL: it is no member.
struct round_member *rounds_member(const struct rounds *rounds, uint64_t session);

// It asks for this step: slots of earlier ones are not taken any more. True: it may have
// had places in one of them.
bool rounds_reach(struct rounds *rounds, struct round_member *member, uint64_t step);
// All have taken their turns in the steps before this one, also who asked another data server
// for them: slots of these are not taken any more. True: there may have been some with places.
bool rounds_over(struct rounds *rounds, uint64_t step);
bool rounds_opened(const struct rounds *rounds, uint64_t step);
bool rounds_opened_later(const struct rounds *rounds, uint64_t step); // one behind this step
int rounds_open(struct rounds *rounds, uint64_t step, struct error *err);
// What it was given last did not reach it: its slot is open again.
int rounds_again(struct rounds *rounds, struct round_member *member, struct error *err);
// The open slot that comes first, until it is filled; false: none.
bool rounds_first(const struct rounds *rounds, struct round_slot *slot);
void rounds_fill(struct rounds *rounds);
bool rounds_is_open(const struct rounds *rounds, struct round_slot slot);
// There are no places for the open slots.
void rounds_close(struct rounds *rounds);
// All rounds are forgotten, as if none had been opened.
void rounds_clear(struct rounds *rounds);

#endif
