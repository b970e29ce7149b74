// Parameter servers that did not reach each other lately, as primaries tell that drop another:
// hints for the next placement (placement.h), which a leading controller has of its own. Times are
// the caller's, in any unit. Nothing is allocated. Call from one thread.
#ifndef ADAM_CLUSTER_PARTINGS_H
#define ADAM_CLUSTER_PARTINGS_H

#include "cluster/placement.h"

struct partings { // {0} is empty
    struct placement_parting items[PLACEMENT_PARTINGS];
    uint32_t count;
};

// The two count as parted until then. Of too many those are forgotten that end first.
void partings_add(struct partings *partings, uint32_t one, uint32_t other, double until);
// Forgets those that ended before.
void partings_expire(struct partings *partings, double now);

#endif
