// Memory that can fail, sizes that cannot overflow, and one arena per context.
#ifndef ADAM_CORE_MEM_H
#define ADAM_CORE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A cache line, and the width of an AVX-512 register.
#define MEM_ALIGN 64

// First in every main, before there are threads. Where the address space is limited (RLIMIT_AS,
// `ulimit -v`), threads share fewer heaps: each heap reserves up to 128 MB of it.
void mem_begin(void);
// What was freed in many small pieces goes back to the system; takes some milliseconds.
void mem_trim(void);

// NULL when out of memory or when n * size overflows. Freed with free().
void *mem_array(size_t n, size_t size);
void *mem_zeroed(size_t n, size_t size);

// Like realloc(p, n * size); `p` stays valid when NULL comes back.
void *mem_resize(void *p, size_t n, size_t size);

// Whether so many bytes could be allocated now, of which none is kept.
bool mem_has_room(size_t bytes);

// The list `p`, with room for at least `wanted` elements: it grows to twice as many, or to these,
// and the new ones are zeros; *room is how many there are. NULL when out of memory: then both are
// as they were.
void *mem_longer(void *p, uint32_t *room, uint32_t wanted, size_t size);

// n zeroed floats aligned to MEM_ALIGN. Freed with free().
float *mem_floats(size_t n);
// The same, of any values: pages that nobody writes to take no memory.
float *mem_untouched_floats(size_t n);

// What a thread that nobody waits for may still use stays until the process ends: the address
// sanitizer is told that it, and what it points to, is not lost.
void mem_abandon(const void *p);

// A copy of a string; NULL when out of memory.
char *mem_string(const char *text);
// Of n bytes, which need not end with a NUL.
char *mem_text(const char *bytes, size_t n);

// An arena hands out MEM_ALIGN-aligned pieces of one block and frees them all
// at once. It runs twice over the same calls: first measuring (base is NULL,
// every piece comes back NULL, `used` grows), then, after arena_open, for real.
// Thus a context is allocated once, in one piece, and its size is known before
// (Adam 3.2.1: "The context is pre-allocated to avoid heap locks while training").
struct arena {
    char *base;
    size_t size;   // bytes behind base
    size_t used;   // bytes handed out or, while measuring, wanted
    bool overflow; // some size did not fit in size_t
};

// Zeroed bytes for n elements, or NULL while measuring.
void *arena_take(struct arena *arena, size_t n, size_t size);

// Allocates what was measured and starts over. On a machine with several NUMA
// nodes the pages are placed on the node of the thread that calls ("Both the
// context and per-thread scratch buffer for intermediate results use NUMA-aware
// allocations", Adam 3.2.1). False when out of memory.
bool arena_open(struct arena *arena);
void arena_close(struct arena *arena);
// The same of memory that this process shares with those that it forks later; to be closed with
// arena_close_shared, in each of them.
bool arena_open_shared(struct arena *arena);
void arena_close_shared(struct arena *arena);

#endif
