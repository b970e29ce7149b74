// A controller's register and its memory on the disk: the Paxos register, and a file with what
// its member must never forget. The file is written before anything is acted upon.
//
//   {"v":1,"promised":256,"accepted":256,"version":7,"state":{...},"crc32":"8d3f11c2"}
//
// It has one member, which agrees with itself at once: nothing is sent. Call from one thread.
#ifndef ADAM_CLUSTER_RECORD_H
#define ADAM_CLUSTER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

struct record;

// Opens the register whose file is `path`, without a state when there is no such file.
// STATUS_DATA when the file is damaged: a member that forgot a promise must not go on.
int record_open(struct record **out, const char *path, struct error *err);
void record_close(struct record *record);

// The newest state that was agreed on, JSON text, valid until the next proposal; NULL: none yet.
const char *record_state(const struct record *record, size_t *size);

// Agrees on the next state, a JSON text. When it returns STATUS_OK it is on the disk.
// STATUS_DATA when it is too large. STATUS_IO or STATUS_CANTCREATE when it cannot be written: the
// file stays whole, and every later proposal is refused: a Paxos member that cannot remember
// stops.
int record_propose(struct record *record, const char *state, struct error *err);

#endif
