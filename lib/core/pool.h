// Buffers that are handed on by pointer, counted by reference, and used again.
//
// "we implement lock free memory allocation where buffers are allocated from pools of
//  specified size that vary in powers of 2 from 4KB all the way to 32MB" (Adam 3.3.1)
// "use reference counting to ensure safety in the presence of asynchronous network IO"
// (Adam 3.2.3)
//
// A buffer comes from the pool with one reference. Whoever drops the last one gives it
// back. Memory that was once taken stays with the pool, up to a limit that bounds what
// a process can be made to hold. All functions may be called by any thread at any time.
#ifndef ADAM_CORE_POOL_H
#define ADAM_CORE_POOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_LEAST 4096u
#define POOL_CLASSES 14 // 4 KiB, 8 KiB ... 32 MiB
#define POOL_MOST (POOL_LEAST << (POOL_CLASSES - 1))

struct pool;

struct buffer {
    void *data;  // aligned to MEM_ALIGN
    size_t size; // bytes asked for
    // The pool's own.
    struct pool *pool;
    _Atomic uint32_t references;
    uint32_t order; // of its size: POOL_LEAST << order
    _Atomic(struct buffer *) next;
};

// A stack that many threads push to and pop from: the top's address in the low 48 bits,
// and above them a count of pops, so that a top which left and came back is told apart.
struct pool_stack {
    _Atomic uint64_t top;
    char apart[56]; // from the next one: a cache line
};

struct pool { // {.limit = bytes} is an empty one
    size_t limit;
    _Atomic size_t bytes; // of all buffers, in use or not
    struct pool_stack stacks[POOL_CLASSES];
};

// NULL when size is above POOL_MOST, or the limit is reached, or memory is out.
struct buffer *pool_take(struct pool *pool, size_t size);
// Frees the memory. No buffer may be in use.
void pool_free(struct pool *pool);

void buffer_hold(struct buffer *buffer);
void buffer_drop(struct buffer *buffer); // NULL: nothing

#endif
