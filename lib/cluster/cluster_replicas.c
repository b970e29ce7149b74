// Replicas: which worker has which partition of the model.
#include "cluster/cluster_internal.h"

static bool is_of(const struct cluster_member *member, uint32_t replica) {
    return member->role == PROTO_ROLE_WORKER && !member->gone && member->replica == replica;
}

struct cluster_member *cluster_worker_of(const struct cluster *cluster, uint32_t replica) {
    for (size_t i = 0; i < cluster->member_count; i++)
        if (is_of(&cluster->members[i], replica))
            return &cluster->members[i];
    return NULL;
}

static uint32_t count_workers(const struct cluster *cluster, uint32_t replica) {
    uint32_t count = 0;
    for (size_t i = 0; i < cluster->member_count; i++)
        count += is_of(&cluster->members[i], replica);
    return count;
}

static bool is_taken(const struct cluster *cluster, uint32_t replica, uint32_t partition) {
    for (size_t i = 0; i < cluster->member_count; i++)
        if (is_of(&cluster->members[i], replica) && cluster->members[i].partition == partition)
            return true;
    return false;
}

bool cluster_replica_whole(const struct cluster *cluster, uint32_t replica) {
    return count_workers(cluster, replica) >= cluster->partitions;
}

// The replica that has some workers and not all. There is one at most: others are begun when it is
// whole.
static bool find_begun(const struct cluster *cluster, uint32_t *replica) {
    for (size_t i = 0; i < cluster->member_count; i++) {
        const struct cluster_member *member = &cluster->members[i];
        if (member->replica != PROTO_NOBODY && is_of(member, member->replica) &&
            !cluster_replica_whole(cluster, member->replica)) {
            *replica = member->replica;
            return true;
        }
    }
    return false;
}

void cluster_take_place(const struct cluster *cluster, struct cluster_member *member) {
    uint32_t replica = 0, partition = 0;
    if (cluster->partitions == 1 || member->role != PROTO_ROLE_WORKER) {
        member->replica = member->number;
        return;
    }
    member->replica = PROTO_NOBODY; // it has none yet
    if (!find_begun(cluster, &replica))
        while (cluster_worker_of(cluster, replica))
            replica++;
    while (is_taken(cluster, replica, partition))
        partition++;
    member->replica = replica;
    member->partition = partition;
}

bool cluster_breaks_replica(const struct cluster *cluster, const struct cluster_member *member) {
    return member->role == PROTO_ROLE_WORKER && cluster->partitions > 1 &&
           cluster->stage <= CLUSTER_TRAINING && cluster_replica_whole(cluster, member->replica);
}
