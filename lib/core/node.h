// NUMA nodes: which part of the machine's memory is near to which processors. On a machine
// with one node all of this does nothing.
#ifndef ADAM_CORE_NODE_H
#define ADAM_CORE_NODE_H

#include <stddef.h>

// Nodes that this process may run on, at least 1. They are numbered from 0 here.
int node_count(void);

// From now on the calling thread runs on the processors of this node only, and what it
// touches first lies there: "threads bound to the processors for the NUMA node by setting
// the appropriate processor masks" (Adam 3.3.1). Does nothing where the user has chosen
// processors for the process, as taskset(1) does, or where the thread is bound already.
void node_bind(int node);

// Pages of [memory, memory + size) that were not touched yet will lie on this node. Both
// are multiples of the page size.
void node_place(void *memory, size_t size, int node);

#endif
