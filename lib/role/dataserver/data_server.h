// A data server of a run: pictures of a data set, or of a part of it, for the workers.
//
// "We configure a small set of machines as data serving machines to offload the
//  computational requirements of these transformations from the model training machines
//  and ensure high throughput data delivery." (Adam 3.1)
//
// It learns from the controller how many epochs there are, from which seed, and what an
// epoch's end is; it hands out batches from then on (role/dataserver/data_service.h).
//
// Threads: data_server_run belongs to its caller, who is told and asked by that thread
// (hooks) until it returns; `say` is called by others, too.
#ifndef ADAM_ROLE_DATASERVER_DATA_SERVER_H
#define ADAM_ROLE_DATASERVER_DATA_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/ready.h"
#include "role/serving.h"
#include "sample/source.h"

struct error;

struct secrets;

struct data_server_options {  // texts belong to the caller
    const char *const *paths; // of data sets, which are served as one
    size_t path_count;
    struct source_options source;
    const char *ops;        // of each picture; NULL: those of the run
    uint32_t part, parts;   // of the samples those of part 1..parts; 0: all
    uint64_t cache;         // bytes of pictures that are kept
    uint64_t ahead;         // bytes of batches that are made ahead of demand
    int threads;            // that make them
    const char *cursor;     // file in which it is remembered what is finished; NULL: none
    const char *controller; // its address, or @FILE
    const char *name;       // for people
    const char *listen;     // where (place_address)
    struct ready ready;
    const struct secrets *keys;
    bool insecure;
    struct serving_hooks hooks;
};

// Until it is told to stop. STATUS_OK when the controller ordered it, STATUS_STOPPED when
// hooks.stop wished it or the session is over, STATUS_UNAVAILABLE when the address cannot
// be had or the controller will not have it, STATUS_DATA or STATUS_NOINPUT when the data
// cannot be read, STATUS_USAGE for operations that are none.
int data_server_run(const struct data_server_options *options, struct error *err);

#endif
