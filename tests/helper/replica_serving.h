// Whether a server of the simulation serves a shard, as lib/ps/shard.c decides for the real one
// from what the replicator tells it: in the present epoch, by the primary, under its lease.
#ifndef ADAM_TESTS_REPLICA_SERVING_H
#define ADAM_TESTS_REPLICA_SERVING_H

#include "replica/replica.h"

// To somebody who has routes of this epoch; `leased`: its lease is not over. Refused as
//   NOT_HERE     it is not the primary
//   STALE_ROUTE  the asker's epoch is lower
//   BUSY         the server's is, or its lease is over: look up the routes, ask again
//   NOT_READY    a pull only: after a takeover no version may be told yet
static inline enum proto_refusal replica_serving(const struct replica *r, uint32_t shard,
                                                 uint32_t bucket, uint64_t epoch, bool pull,
                                                 bool leased) {
    const struct replica_bucket known = replica_bucket(r, bucket);
    if (epoch < known.place.epoch)
        return PROTO_REFUSAL_STALE_ROUTE;
    if (epoch > known.place.epoch)
        return PROTO_REFUSAL_BUSY;
    if (known.role != REPLICA_PRIMARY)
        return PROTO_REFUSAL_NOT_HERE;
    if (!leased)
        return PROTO_REFUSAL_BUSY;
    bool told = replica_has_replicated(r, shard, 0);
    return pull && !told ? PROTO_REFUSAL_NOT_READY : PROTO_REFUSAL_NONE;
}

#endif
