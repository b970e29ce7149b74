// What the control groups of this process grant it, cgroups(7): a systemd unit's MemoryMax= and
// CPUQuota=, a Slurm job's share, a container's limits.
#ifndef ADAM_CORE_CGROUP_H
#define ADAM_CORE_CGROUP_H

#include <stdint.h>

struct cgroup_limits {
    uint64_t memory; // bytes; UINT64_MAX: no limit
    int processors;  // whole ones, a part of one counted as one; INT_MAX: no limit
};

// The least of the limits of the process's own group and of all groups above it, of version 1
// and 2. `root` is the folder in which proc/ and sys/ are: "" on a live system. What is absent, or
// makes no sense, limits nothing.
struct cgroup_limits cgroup_limits(const char *root);

#endif
