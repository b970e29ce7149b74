// Places for callers who are not known yet, since nothing that they asked was granted (a hello
// and pings do not count): there are few, so that strangers cannot take what
// the process needs, and nobody can keep others out of them. Where all are taken a newcomer
// takes the place of who has been there longest, of the address that has the most. So an
// address fills what nobody else wants, and makes room before others do. Whoever is there has
// a moment (PLACES_STAY) before it can be displaced: an honest caller has asked by then what it
// wants, and a flood costs no more than as many calls as there are places in a moment.
#ifndef ADAM_NET_PLACES_H
#define ADAM_NET_PLACES_H

#include <stddef.h>
#include <stdint.h>

#define PLACES_STAY 250 // milliseconds

struct place {
    uint64_t origin; // the address that called, as a hash
    uint64_t since;  // milliseconds of any clock
};

// Which of `count` places, all of them taken, is the newcomer's of this origin at `now`: its
// index; or `count`, and *wait the milliseconds until there is one.
size_t places_choose(const struct place *places, size_t count, uint64_t origin, uint64_t now,
                     uint64_t *wait);

#endif
