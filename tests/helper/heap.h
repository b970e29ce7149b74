// A heap that fails when asked to: include it in one test program, and every
// allocation of that program goes through here. heap_fail_after(n) lets n
// allocations succeed and no more, heap_fail_once(n) lets all succeed but the one
// behind n; heap_live() counts what was not freed.
//
//   for (int n = 0; failed; n++) {
//       heap_fail_after(n);
//       failed = thing_open(&thing, &err) != STATUS_OK;
//       heap_fail_after(-1);
//       ...
//   }
//
// Sanitizers have heaps of their own: HEAP_FAILS is 0 there.
#ifndef ADAM_TESTS_HEAP_H
#define ADAM_TESTS_HEAP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEAP_FAILS 0
static inline void heap_fail_after(long n) {
    (void)n;
}
static inline void heap_fail_once(long n) {
    (void)n;
}
static inline long heap_live(void) {
    return 0;
}
#else
#define HEAP_FAILS 1

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *p);

static long heap_left = -1;
static bool heap_recovers;
static _Atomic long heap_pieces;

static inline void heap_fail_after(long n) {
    heap_left = n;
    heap_recovers = false;
}

static inline void heap_fail_once(long n) {
    heap_left = n;
    heap_recovers = true;
}

static inline long heap_live(void) {
    return heap_pieces;
}

static bool heap_allows(void) {
    if (heap_left == 0) {
        heap_left = heap_recovers ? -1 : 0;
        errno = ENOMEM;
        return false;
    }
    heap_left -= heap_left > 0;
    return true;
}

void *malloc(size_t size) {
    void *p = heap_allows() ? __libc_malloc(size) : NULL;
    heap_pieces += p != NULL;
    return p;
}

void *calloc(size_t n, size_t size) {
    void *p = heap_allows() ? __libc_calloc(n, size) : NULL;
    heap_pieces += p != NULL;
    return p;
}

void *realloc(void *old, size_t size) {
    void *p = heap_allows() ? __libc_realloc(old, size) : NULL;
    heap_pieces += p != NULL && old == NULL;
    return p;
}

void *reallocarray(void *old, size_t n, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : realloc(old, bytes);
}

int posix_memalign(void **p, size_t alignment, size_t size) {
    *p = heap_allows() ? __libc_memalign(alignment, size) : NULL;
    heap_pieces += *p != NULL;
    return *p ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size) {
    void *p;
    return posix_memalign(&p, alignment, size) ? NULL : p;
}

void free(void *p) {
    heap_pieces -= p != NULL;
    __libc_free(p);
}

#endif
#endif
