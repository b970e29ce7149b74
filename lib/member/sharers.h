// Who shares the steps of a run (lambda of the papers): its workers, but those that are
// gone, and those whom the controller keeps waiting (warm-start).
//
// Threads: plain functions.
#ifndef ADAM_MEMBER_SHARERS_H
#define ADAM_MEMBER_SHARERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/proto.h"

struct error;

// How many replicas of the model they are, with those that are kept waiting: they begin before all
// have heard that they do, and not as if each were alone.
size_t sharers_count(const struct proto_status *status);

struct sharers {
    uint64_t *sessions; // of all workers
    uint32_t *replicas; // of which each is one: those of one replica take turns together
    size_t count;
};

// For sharers_free. `first`: only the workers that take the samples of their replica. STATUS_IO:
// out of memory.
int sharers_of(struct sharers *sharers, const struct proto_status *status, bool first,
               struct error *err);
void sharers_free(struct sharers *sharers);

#endif
