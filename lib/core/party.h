// A meeting whose members come and go: threads that do some things together, round by
// round, and wait for nobody who is busy elsewhere.
//
// A member enters, begins a round, meets the others any number of times, begins the next
// round, and so on, or leaves. All who have entered begin a round together; who enters
// while one is under way is in the next. Whoever has entered is waited for, until it has
// begun, met or left; whoever is out is not.
//
// Nobody waits for ever, provided that
//   - all who are in a round meet equally often, or leave,
//   - whoever has entered and does not wait here comes to begin, meet or leave in the end.
// For whatever is due, a beginning or a meeting, all who are in the round come to the same:
// they began it together, and whoever would not meet as often has left. So when the last
// of them has come or left, a meeting is complete; a beginning, when those who entered
// meanwhile have come or left as well, who wait for nothing else; and then all go on.
#ifndef ADAM_CORE_PARTY_H
#define ADAM_CORE_PARTY_H

#include <stdbool.h>

struct party; // any thread may use it; of each member only one at a time

// Of so many threads, all of them out. `begun`, if not NULL, is told when a round has been
// begun, before anybody in it goes on; by one thread, alone.
typedef void party_begun(void *self);
struct party *party_open(int members, party_begun *begun, void *self); // NULL: no memory
void party_close(struct party *party);

// Whether the member is in the round; for `begun`.
bool party_has(const struct party *party, int member);

// Waits for nobody. Nothing when it has entered.
void party_enter(struct party *party, int member);
// Only who has entered.
void party_begin(struct party *party, int member);
// True: all who began this round have come. False: not all, for somebody has left. The
// same for each of them.
bool party_meet(struct party *party);
// Nothing when it is out.
void party_leave(struct party *party, int member);

#endif
