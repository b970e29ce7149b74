#include "core/node.h"

#include <numa.h>

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

void node_bind(int node) {
    if (node_count() > 1) {
        numa_run_on_node(system_node(node));
        numa_set_localalloc();
    }
}

void node_place(void *memory, size_t size, int node) {
    if (node_count() > 1)
        numa_tonode_memory(memory, size, system_node(node));
}
