// A phaser: a barrier whose members come and go (Java's Phaser, the clocks of X10). Threads that
// work together round by round wait for each other, but not for those who are busy elsewhere.
//
// A member enters, begins a round, meets the others any number of times, begins the next
// round, and so on, or leaves. All members that have entered begin a round together; one that
// enters during a round is in the next. The others wait for a member that has entered until it
// begins, meets or leaves; they do not wait for one that is out.
//
// Nobody waits for ever, provided that
//   - all who are in a round meet equally often, or leave,
//   - a member that has entered and does not wait here begins, meets or leaves in the end.
// All members of a round come to the same beginnings and meetings: they began it together, and
// one that would not meet as often has left. A meeting is complete when the last of them has
// come or left. A beginning is complete when those who entered meanwhile have come or left, too:
// they wait for nothing else.
#ifndef ADAM_CORE_PHASER_H
#define ADAM_CORE_PHASER_H

#include <stdbool.h>

struct phaser; // any thread may use it; of each member only one at a time

// For `members` threads, all of them out. `begun`, if not NULL, is called by one thread when a
// round begins, before any member goes on.
typedef void phaser_begun(void *self);
struct phaser *phaser_open(int members, phaser_begun *begun, void *self); // NULL: no memory
void phaser_close(struct phaser *phaser);

// Whether the member is in the round. Call from `begun`.
bool phaser_has(const struct phaser *phaser, int member);

// Does not wait. Does nothing when the member has entered.
void phaser_enter(struct phaser *phaser, int member);
// The member must have entered.
void phaser_begin(struct phaser *phaser, int member);
// True: all members that began this round have come. False: one has left. All get the same.
bool phaser_meet(struct phaser *phaser);
// Does nothing when the member is out.
void phaser_leave(struct phaser *phaser, int member);

#endif
