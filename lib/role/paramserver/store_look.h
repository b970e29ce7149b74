// What a store has, before it is known whether it will be used.
#ifndef ADAM_ROLE_PARAMSERVER_STORE_LOOK_H
#define ADAM_ROLE_PARAMSERVER_STORE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "persist/files.h"
#include "proto/proto.h"

struct error;

// Whether the folder has a store of another run. Who cannot tell leaves that to the opening.
bool store_is_of_another_run(const struct files *files, const struct proto_id *run);

// The shards of this run that the store has, ascending, for free(). None of what is damaged, or
// cannot be read: the opening says why. STATUS_IO: out of memory.
int store_list(const struct files *files, const struct proto_id *run, struct proto_held **shards,
               uint32_t *count, struct error *err);

#endif
