// A parameter server of a run: lib/ps behind three addresses.
//
// "Each parameter server machine has three (it uses separate) network paths": one for
// training traffic, one for other parameter servers, one for administration. Each can be
// bound to an interface of its own.
//
//   training        workers, evaluators and the controller push, pull and store; other parameter
//                   servers pull what they write into checkpoints
//   replication     other parameter servers; they are welcomed, and nothing is asked yet
//   administration  the controller and people: status, stop; parts of checkpoints
//
// Threads: parameter_server_run belongs to its caller, who is told and asked by that
// thread (hooks) until it returns. Requests are handled by threads of the network, which
// never wait: what takes time is queued in lib/ps and answered by its threads.
#ifndef ADAM_ROLE_PARAMSERVER_PARAMETER_SERVER_H
#define ADAM_ROLE_PARAMSERVER_PARAMETER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "net/ready.h"
#include "role/serving.h"

struct error;

struct secrets;

struct parameter_server_options {                        // texts belong to the caller
    const char *controller;                              // its address, or @FILE
    const char *name;                                    // for people
    const char *training, *replication, *administration; // where to listen (place_address)
    struct ready ready;
    const struct secrets *keys;
    bool insecure;
    uint32_t threads;
    uint64_t memory;   // bytes of weights, state and buffers that it may use; 0: any
    const char *store; // folder of its store (adam-store(5)); NULL: it keeps nothing on a disk
    bool aside;        // what another run left in that folder is set aside, as FOLDER.old
    const char *owner; // whose store that is: the same at each start of this server
    const char *checkpoints; // folder for its parts of checkpoints on its own disk; NULL: none
    double flush;            // seconds until a change is on its way to the store
    struct serving_hooks hooks;
};

// Until it is told to stop. STATUS_OK when the controller ordered it, STATUS_STOPPED when
// hooks.stop wished it or the session is over, STATUS_UNAVAILABLE when an address cannot be
// had or the controller will not have it, STATUS_IO when memory does not suffice,
// STATUS_DATA when model or settings cannot be read here, or the store is of another server or run
// that is not to be set aside,
// STATUS_CANTCREATE when it cannot be made, or another process has it.
int parameter_server_run(const struct parameter_server_options *options, struct error *err);

#endif
