// Who has which buckets, for people and programs: made from a controller's answers `places`, and
// `status` for the names. Free the texts with free(); NULL when out of memory.
#ifndef ADAM_CLUSTER_BUCKETS_H
#define ADAM_CLUSTER_BUCKETS_H

#include "core/json.h"
#include "proto/proto.h"

struct buckets_share { // buckets that a server has, by role
    uint32_t primary, secondary, joiner;
};

struct buckets_share buckets_share(const struct proto_places *places, uint32_t member);

// A table with a row for each parameter server that has a bucket, or could. Empty where each bucket
// is on one server and none moves: then there is nothing to know.
char *buckets_shares(const struct proto_places *places, const struct proto_status *status);
// A table with a row for each run of buckets that have been on the same servers since the same
// epoch.
char *buckets_table(const struct proto_places *places, const struct proto_status *status);
// [{"first", "count", "epoch", "primary", "secondaries": [...], "joiner"}], a run of buckets each;
// servers by their numbers. NULL when out of memory.
json_t *buckets_json(const struct proto_places *places);

#endif
