// A controller's register and its memory on the disk: a member of the Paxos register
// (cluster/paxos.h), and a file with what it must never forget. The file is written before a step
// returns.
//
//   {"v":1,"promised":256,"accepted":256,"version":7,"state":{...},"crc32":"8d3f11c2"}
//
// A register of one member agrees with itself at once, and sends nothing. Call from one thread at
// a time.
#ifndef ADAM_CLUSTER_RECORD_H
#define ADAM_CLUSTER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/paxos.h"

struct error;

// Milliseconds. A leader that is gone is replaced within 2 s: the members doubt it after one
// election timeout, and stand after two.
#define RECORD_HEARTBEAT 100
#define RECORD_ELECTION 500

struct record;

struct record_options {
    uint32_t id, members; // of the register
    uint64_t start;       // as in struct paxos_config
    bool rejoin;
    // Takes a message to another member, or loses it; it is valid until the return. NULL: there is
    // none.
    void (*send)(void *self, const struct proto_paxos *message);
    void *self;
};

// Whether there is a file, or may be: one that cannot be reached just now is none that is missing.
bool record_exists(const char *path);

// Opens the member whose file is `path`, without a record when there is no such file.
// STATUS_DATA when the file is damaged: a member that forgot a promise must not go on.
int record_open(struct record **out, const char *path, const struct record_options *options,
                struct error *err);
void record_close(struct record *record);

// What a file has, for who only looks, while nobody writes it.
struct record_glance {
    uint64_t accepted, version; // ballot and version of the state: the highest is the newest
    char *state;                // JSON text, to be freed with free(); NULL: none
};
// STATUS_NOINPUT: there is no such file; STATUS_DATA: it is damaged.
int record_look(const char *path, struct record_glance *glance, struct error *err);

// The newest state that is known to be agreed on, JSON text, valid until the next step; NULL: none.
const char *record_state(const struct record *record, size_t *size);
// The member, for its standing and leader.
const struct paxos *record_paxos(const struct record *record);

// Each step is one of paxos.h, with the time of now: it writes what it must, and sends the messages
// of `output`. STATUS_IO or STATUS_CANTCREATE when the file cannot be written: it stays whole,
// nothing is sent that needs it, and every later step is refused: a Paxos member that cannot
// remember stops.
int record_tick(struct record *record, struct paxos_output *output, struct error *err);
int record_receive(struct record *record, const struct proto_paxos *message,
                   struct paxos_output *output, struct error *err);
// Proposes the next state, a JSON text. With one member it is agreed on, and on the disk, when
// this returns STATUS_OK. STATUS_DATA when it is too large, STATUS_UNAVAILABLE as paxos_propose.
int record_propose(struct record *record, const char *state, struct paxos_output *output,
                   struct error *err);
// Seconds until record_tick is due.
double record_due(const struct record *record);

#endif
