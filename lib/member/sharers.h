// Who shares the steps of a run (lambda of the papers): its workers, but those that are
// gone, and those whom the controller keeps waiting (warm-start).
//
// Threads: plain functions.
#ifndef ADAM_MEMBER_SHARERS_H
#define ADAM_MEMBER_SHARERS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/proto.h"

struct error;

// How many they are, with those who are kept waiting: they begin before all have heard that they
// do, and not as if each were alone.
size_t sharers_count(const struct proto_status *status);
// Their sessions, for free(); never NULL on success. STATUS_IO: out of memory.
int sharers_of(uint64_t **sessions, size_t *count, const struct proto_status *status,
               struct error *err);

#endif
