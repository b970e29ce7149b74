// What a run can go on from whose processes all died at once, as in a power cut: from the stores of
// its parameter servers (persist/), in the same run, or from its newest checkpoint, in a new one.
//
// "We decouple durability from the update processing path [...] The window of potential data loss
//  is a function of the IO throughput supported by the storage layer." (Adam 3.3.2)
//
// A store lags behind its server by that window, a checkpoint by the time since it was written. So
// the stores are gone on from where all of this holds:
//
//  - the controllers' record can be read, of several on a majority of them, and its run had begun
//    to train and was not over: one that was ended has its last weights in a checkpoint;
//  - each push counts for itself (async): workers that share steps would wait for one that is lost;
//  - each server that has shards has a name and a store here, of this run;
//  - each shard of the model is whole in the store of a server that has its bucket;
//  - no shard is of an older version there than in the newest checkpoint.
//
// Of stores on other machines the last three are taken for granted: a server that comes back
// without what it should have says so itself, and the run ends.
//
// Nothing is changed by looking. Call from one thread at a time.
#ifndef ADAM_REVIVE_REVIVE_H
#define ADAM_REVIVE_REVIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/json.h"
#include "core/words.h"
#include "proto/proto.h"

struct error;

#define REVIVE_WHY 512 // bytes of a reason

struct revive_request {         // all the caller's
    const char *folder;         // of the run
    struct words records;       // files of its controllers, there or not
    struct words names, stores; // of its parameter servers, and their folders, one for each
    bool elsewhere;             // these are on other machines, and not looked at
};

// What the store of a server has.
struct revive_server {
    char name[PROTO_NAME_MAX + 1];
    size_t shards;           // that are whole
    uint64_t oldest, newest; // versions of these; 0: none
};

struct revival {                   // {0} is none
    bool known;                    // the controllers' record tells of a run...
    struct proto_id run;           // ...this one
    bool stores;                   // it goes on from its stores, and is still that run
    char why[REVIVE_WHY];          // not stores: the reason, for people
    uint64_t checkpoint;           // version of the newest one; 0: there is none
    struct revive_server *servers; // of the request, in its order
    size_t server_count;
    uint64_t *versions; // of each shard of the model, as it is in the stores; 0: not at all
    size_t shard_count; // 0: unknown
};

// STATUS_OK also when the stores cannot be used: then `why` says so. STATUS_UNAVAILABLE: a process
// uses one of the stores. revival_free also after a failure.
int revive_look(struct revival *revival, const struct revive_request *request, struct error *err);
void revival_free(struct revival *revival);

// The fields of a line of metrics, "revived" (adam-metrics(5)); NULL when out of memory.
json_t *revival_json(const struct revival *revival);

// The run that the controllers' records tell of; *stored: it was not over, and its parameter
// servers had stores. False: they tell of none.
bool revive_run(const struct words *records, struct proto_id *run, bool *stored);

// Moves the store in a folder out of the way of a new run, to FOLDER.old, of which an earlier one
// is removed. Does nothing where there is none. Where `run` is not NULL a store of any other run
// is left, with STATUS_CANTCREATE. STATUS_UNAVAILABLE: a process uses it.
int revive_set_aside(const char *store, const struct proto_id *run, struct error *err);

#endif
