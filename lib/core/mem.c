#include "core/mem.h"

#include <limits.h>
#include <malloc.h>
#include <numa.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

enum {
    HUGE_PAGE = 2 << 20,
    HUGE_LEAST = 32 << 20, // what no cache holds
    MAPPED_LEAST = 1 << 17,
    HEAP_SHARE = 1 << 29, // bytes of a limited address space for each heap, which reserves 128 MB
};

void mem_begin(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return;
    rlim_t heaps = limit.rlim_cur / HEAP_SHARE;
    mallopt(M_ARENA_MAX, heaps < 1 ? 1 : heaps < INT_MAX ? (int)heaps : INT_MAX);
}

void mem_trim(void) {
    malloc_trim(0);
}

void *mem_array(size_t n, size_t size) {
    return mem_resize(NULL, n, size);
}

void *mem_zeroed(size_t n, size_t size) {
    return calloc(n ? n : 1, size ? size : 1);
}

void *mem_resize(void *p, size_t n, size_t size) {
    return reallocarray(p, n ? n : 1, size ? size : 1);
}

// Past the heap, which would keep what it had for a large piece.
static bool can_map(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED)
        munmap(p, bytes);
    return p != MAP_FAILED;
}

bool mem_has_room(size_t bytes) {
    if (bytes >= MAPPED_LEAST)
        return can_map(bytes);
    void *volatile p = malloc(bytes ? bytes : 1);
    free(p);
    return p != NULL;
}

void *mem_longer(void *p, uint32_t *room, uint32_t wanted, size_t size) {
    if (p && wanted <= *room)
        return p;
    uint32_t longer = *room > UINT32_MAX / 2 || wanted > 2 * *room ? wanted : 2 * *room;
    char *list = mem_resize(p, longer, size);
    if (!list)
        return NULL;
    memset(list + *room * size, 0, (longer - *room) * size);
    *room = longer;
    return list;
}

// Rounds up to a whole number of cache lines; false on overflow.
static bool whole_lines(size_t n, size_t size, size_t *bytes) {
    size_t wanted;
    if (__builtin_mul_overflow(n, size, &wanted) ||
        __builtin_add_overflow(wanted, (size_t)MEM_ALIGN - 1, &wanted))
        return false;
    *bytes = wanted & ~((size_t)MEM_ALIGN - 1);
    return true;
}

// Large arrays get huge pages: a step reads all weights, and with pages of 4 KB their page tables
// pass through the caches too. If the kernel has no huge pages, it gives small ones. Smaller arrays
// stay in small pages, which scatter over an L3 cache that threads share.
static void *allocate_lines(size_t bytes) {
    bool huge = bytes >= HUGE_LEAST;
    void *p;
    if (posix_memalign(&p, huge ? HUGE_PAGE : MEM_ALIGN, bytes))
        return NULL;
    if (huge)
        (void)madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

float *mem_untouched_floats(size_t n) {
    size_t bytes;
    if (!whole_lines(n ? n : 1, sizeof(float), &bytes))
        return NULL;
    return allocate_lines(bytes);
}

float *mem_floats(size_t n) {
    float *p = mem_untouched_floats(n);
    if (p)
        memset(p, 0, n * sizeof *p);
    return p;
}

void mem_abandon(const void *p) {
#if defined(__SANITIZE_ADDRESS__)
    __lsan_ignore_object(p);
#else
    (void)p;
#endif
}

char *mem_string(const char *text) {
    return strdup(text);
}

char *mem_text(const char *bytes, size_t n) {
    char *text = n < SIZE_MAX ? malloc(n + 1) : NULL;
    if (!text)
        return NULL;
    memcpy(text, bytes, n);
    text[n] = 0;
    return text;
}

void *arena_take(struct arena *arena, size_t n, size_t size) {
    size_t bytes, end;
    if (!whole_lines(n, size, &bytes) || __builtin_add_overflow(arena->used, bytes, &end)) {
        arena->overflow = true;
        return NULL;
    }
    char *piece = arena->base && end <= arena->size ? arena->base + arena->used : NULL;
    arena->used = end;
    return piece;
}

static bool several_nodes(void) {
    return numa_available() >= 0 && numa_max_node() > 0;
}

bool arena_open(struct arena *arena) {
    if (arena->overflow)
        return false;
    size_t size = arena->used ? arena->used : MEM_ALIGN;
    // numa_alloc_local is page-aligned and zeroed, and places pages on this node.
    void *base = several_nodes() ? numa_alloc_local(size) : allocate_lines(size);
    if (!base)
        return false;
    memset(base, 0, size); // touches every page now, by the thread that will use it
    *arena = (struct arena){.base = base, .size = size};
    return true;
}

void arena_close(struct arena *arena) {
    if (arena->base && several_nodes())
        numa_free(arena->base, arena->size);
    else
        free(arena->base);
    *arena = (struct arena){0};
}

bool arena_open_shared(struct arena *arena) {
    size_t size = arena->used ? arena->used : MEM_ALIGN;
    if (arena->overflow)
        return false;
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return false;
    *arena = (struct arena){.base = base, .size = size};
    return true;
}

void arena_close_shared(struct arena *arena) {
    if (arena->base)
        munmap(arena->base, arena->size);
    *arena = (struct arena){0};
}
