// What a worker has of the parameters of a model: a partition of it (model/cut.h), and where its
// floats lie among those of the whole model, by which servers know them. "each machine [...] only
// needs to communicate with just the subset of parameter server shards that hold the model
// parameters relevant to its partition" (DistBelief 4.1).
#ifndef ADAM_REMOTE_PORTION_H
#define ADAM_REMOTE_PORTION_H

#include "remote/servers_client.h"

struct cut;
struct error;

struct portion {
    struct placed_span *used, *given; // all floats; those that no earlier partition has, too
    size_t used_count, given_count;   // each in the order of the whole model
};

// STATUS_IO: out of memory. Call portion_free also after a failure.
int portion_open(struct portion *portion, const struct cut *cut, int partition, struct error *err);
void portion_free(struct portion *portion);

#endif
