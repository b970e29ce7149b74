// The state of each member as its heartbeats report it: its figures, and when it was heard of
// last. Times are the caller's, in seconds of any clock that does not jump. Call from one thread.
#ifndef ADAM_CLUSTER_VITALS_H
#define ADAM_CLUSTER_VITALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/proto.h"

struct vital {
    uint32_t number; // of the member
    double heard;
    bool missed;                    // vitals_miss, since it was heard of last
    const void *link;               // by which it was heard of last; never looked into
    double closed;                  // when the other side closed that; 0: it did not
    double leased;                  // until when it has a lease; 0: it never had one
    bool drained;                   // it was said that it has nothing any more
    bool told;                      // whether it has sent figures yet
    uint64_t told_members;          // epoch of the membership in the last beat to it...
    uint64_t knows_members;         // ...and in the one before, which it has acted upon
    uint64_t refused;               // of its requests, as servers reported
    struct proto_heartbeat figures; // its text is `waits_for`
    char waits_for[PROTO_ADDRESS_MAX + 1];
};

struct vitals { // {0} is empty
    struct vital *items;
    size_t count;
};

// The member was heard of. False when out of memory.
bool vitals_heard(struct vitals *vitals, uint32_t number, double now);
// The same, with its figures.
bool vitals_tell(struct vitals *vitals, uint32_t number, const struct proto_heartbeat *figures,
                 double now);
// A beat tells it of this epoch of the membership. It asks who the members are before its
// next heartbeat, so that with the beat after that it is known to know.
void vitals_beat(struct vitals *vitals, uint32_t number, uint64_t members);
// It has a lease until then.
void vitals_lease(struct vitals *vitals, uint32_t number, double until);
// It was said that all moved away from it.
void vitals_drained(struct vitals *vitals, uint32_t number);
// Its figures came by this link.
void vitals_link(struct vitals *vitals, uint32_t number, const void *link);
// A server refused `count` more of its requests.
void vitals_refused(struct vitals *vitals, uint32_t number, uint64_t count);
// A link is closed. A member that was heard of a moment before closed it itself: after a cut cable
// there is silence first.
void vitals_closed(struct vitals *vitals, const void *link, double now);
// NULL when it was never heard of.
const struct vital *vitals_of(const struct vitals *vitals, uint32_t number);
// Whether a data server, by what it reported last, has samples to give: it is there, and an epoch
// is under way, or `epochs` of them are behind it and it has not heard yet that those are all.
bool vitals_gives(const struct vital *vital, double epochs);
void vitals_forget(struct vitals *vitals, uint32_t number);
// The controller has noticed its silence.
void vitals_miss(struct vitals *vitals, uint32_t number);
// A member that was not heard of for so many seconds, and is not missed yet; NULL: none.
const struct vital *vitals_silent(const struct vitals *vitals, double seconds, double now);
void vitals_free(struct vitals *vitals);

#endif
