// Where a role listens, how it shows itself and knows others, and where a run's controller
// is: what options of the network (cli/network.h) come to.
//
// Threads: plain functions; a place belongs to the thread that starts and ends the program.
#ifndef ADAM_MEMBER_PLACE_H
#define ADAM_MEMBER_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/words.h"
#include "net/ready.h"
#include "net/secrets.h"

struct error;

// Paths of Unix sockets must fit into 108 bytes; this leaves room for nng's own.
#define PLACE_PATH_MAX 100

// The address `what` of a program ("ps", "ps-admin"), to be given to listener_open:
//   as `told`, when it is not NULL;
//   else beside `first`, the program's first address as told: of TCP its host with any
//   port that is free, of a Unix socket its path with "-admin", the end of `what`;
//   else, when that is NULL too, of this machine's user alone: a Unix socket `what`-PID in
//   a folder that only the user can enter, below $XDG_RUNTIME_DIR or else $TMPDIR or /tmp.
//   Sockets of programs that are no more are removed there.
// STATUS_CANTCREATE when there is no such folder or the path becomes too long.
int place_address(char address[PROTO_ADDRESS_MAX], const char *what, const char *told,
                  const char *first, struct error *err);

// Removes the sockets that programs of this user left in that folder when they were killed.
void place_tidy(void);

// What ready_find (net/ready.h) takes, for controllers as a person names them: addresses or
// @FILE with them, as they are; the folder of a run as @FOLDER/controller.port. *text is to be
// freed with free(), NULL after a failure. STATUS_NOINPUT when it is none of these, or the folder
// has no controller.
int place_controller(char **text, const char *place, struct error *err);

// The addresses of all controllers of a run, as `list` has them with commas between, for
// words_free; *id is the one that `own` is, from 0. STATUS_USAGE when they are not 1, 3 or 5
// different addresses that others can dial, this one's among them.
int place_quorum(struct words *addresses, const char *list, const char *own, uint32_t *id,
                 struct error *err);

// Whether the controller that ready_find does not find any more, since its file @FOLDER/... is
// gone, was of a run that is done: FOLDER has DONE.
bool place_is_done(const char *controller);

// Keys as --keys names them: DIR/NAME.pem, with ca.crt beside it. NULL: none, *keys is
// NULL then. STATUS_USAGE: it is no such name; as secrets_open.
int place_keys(struct secrets **keys, const char *file, struct error *err);

#endif
