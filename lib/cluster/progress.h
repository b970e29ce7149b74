// How far each part of the data is and since when its data server is missing: what data servers
// report between two agreed states (cluster/cluster.h). It is nobody's agreed state: each next
// state takes the epochs with it, so that a controller that is started again goes on from them.
// Call from one thread.
#ifndef ADAM_CLUSTER_PROGRESS_H
#define ADAM_CLUSTER_PROGRESS_H

#include "cluster/cluster.h"

struct error;

struct progress_part {
    double epoch;   // epochs of it that are done, as its data server reported last
    double missing; // the caller's clock when its data server went missing; 0: it is there
};

struct part_progress {           // {0} is empty
    struct progress_part *parts; // in the order of the state's parts
    size_t count;
};

// Makes room for the parts of a state that may be agreed on next, none of which is missing.
// progress_free also after a failure, which changes nothing.
int progress_reserve(struct part_progress *progress, const struct cluster *next, struct error *err);
// The state is agreed: its epochs count. progress_reserve had room for it.
void progress_follow(struct part_progress *progress, const struct cluster *state);
// Gives the epochs to a copy of the state.
void progress_apply(const struct part_progress *progress, struct cluster *copy);
// Samples that were trained on, in all parts. `state` is the one that progress_follow was given.
uint64_t progress_samples(const struct part_progress *progress, const struct cluster *state);
void progress_free(struct part_progress *progress);

#endif
