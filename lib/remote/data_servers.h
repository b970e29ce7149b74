// The data servers of a run, as its controller sees them: what they serve, and how far
// they are, for checkpoints and back from them. Each call dials, asks and hangs up.
// Belongs to one thread, which waits.
#ifndef ADAM_REMOTE_DATA_SERVERS_H
#define ADAM_REMOTE_DATA_SERVERS_H

#include <stdbool.h>

#include "core/json.h"
#include "proto/proto.h"

struct error;

struct secrets; // net/secrets.h

struct data_servers_part { // of the data, whose server cannot be asked
    uint32_t member;
    uint64_t first, samples;
    uint32_t epoch; // with which it goes on
    double done;    // epochs of it
    bool out;       // the run goes on without it
};

struct data_servers { // who they are, and how they are reached
    struct proto_hello hello;
    const struct secrets *keys;
    bool insecure;
    const struct proto_routes *routes;
    const struct data_servers_part *absent; // in the routes or not
    size_t absent_count;
    uint32_t digest; // of the data, and the seed of their order: for cursors of those absent
    uint64_t seed;
};

// Samples of the whole data set that none of them serves: the first of these, and those right
// behind it. No samples: all are served.
struct data_servers_gap {
    uint64_t first, samples;
    uint64_t whole;
};

// What they serve together; {0} before.
struct data_servers_data {
    char name[PROTO_ADDRESS_MAX + 1]; // of the data set
    uint64_t samples;                 // in all ranges
    uint32_t digest;
    struct data_servers_gap gap;
};

// Asks all that are not absent. STATUS_DATA when their data sets differ, or have more classes than
// the model has outputs; STATUS_UNAVAILABLE when one does not answer, or all are absent.
int data_servers_describe(const struct data_servers *servers, int outputs,
                          struct data_servers_data *data, struct error *err);
// {"path", "samples", "digest"}, as feed_describe (train/feed.h).
json_t *data_servers_json(const struct data_servers_data *data);

// How far they are: a list for a checkpoint, the samples that are finished since the
// beginning of the run, and the progress in epochs, of the parts with which the run goes on.
int data_servers_cursors(const struct data_servers *servers, json_t **cursors, uint64_t *finished,
                         double *epoch, struct error *err);
// Samples before the places in such a list; 0 for NULL.
uint64_t data_servers_before(const json_t *cursors);
// Lets those go on from a checkpoint's list that are behind it. Others are left alone.
int data_servers_resume(const struct data_servers *servers, const json_t *cursors,
                        struct error *err);

#endif
