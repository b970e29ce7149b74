#include "core/node.h"

#include <numa.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

// The system's number of the process's node `node`; -1: there is nothing to choose.
static int system_node(int node) {
    if (numa_available() < 0)
        return -1;
    for (int i = 0; i <= numa_max_node(); i++)
        if (numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned)i) && node-- == 0)
            return i;
    return -1;
}

int node_count(void) {
    int count = 0;
    while (system_node(count) >= 0)
        count++;
    return count ? count : 1;
}

static bool is_restricted(void) {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) == 0 &&
           CPU_COUNT(&allowed) < sysconf(_SC_NPROCESSORS_ONLN);
}

void node_bind(int node) {
    if (node_count() > 1 && !is_restricted()) {
        numa_run_on_node(system_node(node));
        numa_set_localalloc();
    }
}

void node_place(void *memory, size_t size, int node) {
    if (node_count() > 1)
        numa_tonode_memory(memory, size, system_node(node));
}
