// Shared by the files of revive/.
#ifndef ADAM_REVIVE_REVIVE_INTERNAL_H
#define ADAM_REVIVE_REVIVE_INTERNAL_H

#include "revive/revive.h"

struct cluster;

// The reason why the stores are not used. Returns false.
bool revive_not(struct revival *revival, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Reads the stores of all servers that have shards. *can: each shard is in one of them.
int revive_look_at_stores(struct revival *revival, const struct revive_request *request,
                          const struct cluster *cluster, bool *can, struct error *err);

#endif
