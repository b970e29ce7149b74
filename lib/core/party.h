// A meeting whose members come and go: threads that do some things together, round by
// round, and wait for nobody who is busy elsewhere.
//
// A member begins a round, meets the others any number of times, and begins the next
// one, or leaves. Whoever is in is waited for, by all others who are in, until it has
// begun, met or left; whoever is out is not. Who comes in is taken in where a round
// begins, and waits until then.
//
// Nobody waits for ever, provided that
//   - all who are in meet equally often in a round, or leave,
//   - whoever is in and does not wait here comes to begin, meet or leave in the end.
// For whatever is due, a beginning or a meeting, all who are in come to the same: they
// began this round together, and whoever would not meet as often has left. So when the
// last of them has come or left, it is complete, and all of them go on. Those who wait
// to be taken in wait for a beginning: the members' next one, which comes behind a finite
// number of meetings, or, when the last has left, one of their own at once.
#ifndef ADAM_CORE_PARTY_H
#define ADAM_CORE_PARTY_H

#include <stdbool.h>

struct party; // any thread may use it; of each member only one

// Of so many threads, all of them in: the first round begins when each of them has come or
// left. `begun`, if not NULL, is told when a round has
// been begun by all who are in, before any of them goes on; by one thread, alone.
typedef void party_begun(void *self);
struct party *party_open(int members, party_begun *begun, void *self); // NULL: no memory
void party_close(struct party *party);

// Whether the member is in; for `begun`.
bool party_has(const struct party *party, int member);

void party_begin(struct party *party, int member);
// True: all who began this round have come. False: not all, for somebody has left. The
// same for each of them.
bool party_meet(struct party *party);
// Nothing when it is out.
void party_leave(struct party *party, int member);

#endif
