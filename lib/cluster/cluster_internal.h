// What the parts of the state share. Inside lib/cluster/cluster*.c only.
#ifndef ADAM_CLUSTER_CLUSTER_INTERNAL_H
#define ADAM_CLUSTER_CLUSTER_INTERNAL_H

#include "cluster/cluster.h"

// cluster_parts.c: what a data server that asks to join says of its data set; of others: nothing.
struct cluster_data cluster_data_of(const struct proto_join *join);

// cluster_replicas.c: the new member has the first place that no worker has.
void cluster_take_place(const struct cluster *cluster, struct cluster_member *member);
// Some worker of the replica that is not gone; NULL: there is none.
struct cluster_member *cluster_worker_of(const struct cluster *cluster, uint32_t replica);

#endif
