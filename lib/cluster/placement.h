// Which parameter server has which bucket, in which role: the transitions of the controllers'
// state for it. Pure, and nothing is allocated. Call from one thread.
//
// A bucket has a primary and up to two secondaries, its members, who have each replicated push
// (replica/replica.h), and perhaps a joiner, who copies it. Only a member becomes the primary, and
// a joiner becomes a secondary when the primary proposes it in the bucket's present epoch. So each
// transition leaves a member of the epoch before, or of it as it was completed, as the primary.
// A bucket has one joiner at a time, beside as many members as are wanted at most.
//
// Each transition is given an epoch, higher than any before, and gives it to the buckets that it
// changes.
#ifndef ADAM_CLUSTER_PLACEMENT_H
#define ADAM_CLUSTER_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/proto.h"

// "There are three copies of each parameter shard in the system" (Adam 3.3.3)
#define PLACEMENT_COPIES_MAX 3

// Two servers that did not reach each other lately, though others may reach both.
#define PLACEMENT_PARTINGS 64 // at most
struct placement_parting {
    uint32_t one, other;
    double until; // for the caller
};

struct placement {
    uint32_t copies;            // wanted of each bucket, 1 to PLACEMENT_COPIES_MAX
    uint32_t count;             // buckets
    struct proto_place *places; // of all buckets, in order
    // Servers that do not reach each other, `parted_count` pairs, the caller's; 0: all do.
    const struct placement_parting *parted;
    uint32_t parted_count;
};

// A server that lives. The caller fills in member and draining; arrays are in ascending order of
// members. The transitions write the rest.
struct placement_server {
    uint32_t member;
    bool heard;         // lately
    bool draining;      // its buckets move away
    uint32_t copies;    // places that it has, or is to have after all moves that are under way
    uint32_t primaries; // of them as the primary
};

// A new run: "buckets [...] are distributed equally among the parameter server machines" (Adam
// 3.3.1). Each server is the primary of a run of buckets; the secondaries of each run are spread
// over all others. Nobody has values yet, so all are members at once. servers > 0.
void placement_assign(struct placement *placement, const struct placement_server *servers,
                      uint32_t count, uint64_t epoch);

// "assigning new leases for buckets where the failed machine was the primary" (Adam 3.3.3): this
// server is gone. A secondary of each of its buckets is the primary now. A bucket of which it was
// the only member stays as it is: nobody else has the values. Returns whether anything changed.
bool placement_lose(struct placement *placement, uint32_t member, uint64_t epoch);

// The server `member` came back as `number`, with what it had: it has its places, but for those in
// buckets of which another member was heard lately. What that has is newer, and has each push that
// was answered as replicated. And but for those in buckets of which it `lacks` values (a flag for
// each bucket; NULL: of none) and that have another member, who may come back with them: a primary
// brings its copies to what it has. Returns whether anything changed.
bool placement_succeed(struct placement *placement, uint32_t member, uint32_t number,
                       const bool *lacks, struct placement_server *servers, uint32_t count,
                       uint64_t epoch);

// "The controller will elect one of the secondary machines to be the new primary" (Adam 3.3.3):
// carries out what a server proposes, if the epoch is the bucket's and the roles are as it says.
// TAKE_OVER is by a secondary, who becomes the primary; the primary is dropped. Whether its lease
// is over is for the caller to look at. COMPLETE is by the primary, about the joiner, who becomes a
// secondary; one member too many is dropped: a draining one, or the last secondary. DROP is
// by the primary, about another. Returns whether anything changed.
bool placement_propose(struct placement *placement, const struct proto_proposal *proposal,
                       struct placement_server *servers, uint32_t count, uint64_t epoch);

// "relocates buckets from failed machines evenly to other active machines" (Adam 3.3.3): gives
// joiners to buckets that have too few members or a draining one, and then moves copies and primary
// roles until no two servers differ by more than one, where that can be. Moves nothing else,
// nothing to a server that was not heard lately, and nothing of a bucket whose primary was not:
// that would only put off that a secondary takes over. Who is parted from the primary of a bucket
// joins it only where it has too few members and nobody else is there. Returns whether anything
// changed.
bool placement_fill(struct placement *placement, struct placement_server *servers, uint32_t count,
                    uint64_t epoch);

// Whether each bucket of this member has another member that was heard lately. While all of them
// are silent, whichever is heard first has the values: to give up another would leave the bucket to
// one that is perhaps dead.
bool placement_may_lose(const struct placement *placement, uint32_t member,
                        struct placement_server *servers, uint32_t count);

// Whether the member has a place in any bucket, in whatever role.
bool placement_has(const struct placement *placement, uint32_t member);

uint32_t placement_members(const struct proto_place *place); // primary and secondaries
bool placement_parts(const struct placement_parting *parting, uint32_t one, uint32_t other);

#endif
