// Writes a parameter server's parts of checkpoints, as the controller orders: whole tensors, of
// which this server may hold some shards and others the rest. What it writes it pulls as any client
// does, a few shards at a time, so that nobody holds the model.
//
// Threads: a thread of its own carries out one order after the other. The owner opens, routes and
// closes it; part_saver_hear and part_saver_left are called by threads of the network. None of them
// waits, except part_saver_close.
#ifndef ADAM_ROLE_PARAMSERVER_PART_SAVER_H
#define ADAM_ROLE_PARAMSERVER_PART_SAVER_H

#include <stdbool.h>

#include "member/member.h"
#include "net/link.h"
#include "rule/optimizer.h"

struct error;
struct model;

struct part_saver;

struct part_saver_options { // what it points to outlives it
    const struct model *model;
    struct optimizer optimizer; // of the run
    struct member *member;
    struct member_identity identity;
    const char *name;   // of this server
    const char *folder; // for parts on its own disk; NULL: none
    const struct secrets *keys;
    bool insecure;
    void *self; // of say, a line for the user, which its thread calls
    void (*say)(void *self, const char *text);
};

// Makes the folder for parts where it is missing: at the first save it would be late to hear that
// it cannot be. STATUS_CANTCREATE.
int part_saver_make_folder(const char *folder, struct error *err);

// STATUS_IO: out of memory or threads.
int part_saver_open(struct part_saver **out, const struct part_saver_options *options,
                    struct error *err);
// Ends the order under way; orders that are left are not answered. NULL: nothing.
void part_saver_close(struct part_saver *saver);

// The routes that apply from now on (message.routes), of which it holds a reference.
void part_saver_route(struct part_saver *saver, struct kept *routes);

// An order of the controller (save_part). It is answered when the part is on the disk, or refused:
// storage failed; not finite, when a number of it is not; wrong shape, when the model has no such
// tensors; stopping, when it was ended.
void part_saver_hear(struct part_saver *saver, struct link *link, uint64_t request, uint16_t type,
                     const union proto_message *message);
// Also read_part and drop_parts are heard, and done in turn.
// The link is closed: nobody waits for what it ordered.
void part_saver_left(struct part_saver *saver, const struct link *link);

#endif
