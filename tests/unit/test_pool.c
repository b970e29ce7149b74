// Pools of buffers: sizes, references, limits, and many threads at once.
#include <pthread.h>
#include <stdlib.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "core/mem.h"
#include "core/pool.h"

enum { THREADS = 4, ROUNDS = 20000, HELD = 8 };

static void test_sizes(struct tap *tap) {
    struct pool pool = {.limit = 3 * POOL_MOST};
    TEST(tap, "a buffer has at least the size asked for, aligned, and is used again", {
        const size_t sizes[] = {0, 1, 4096, 4097, 1 << 20, POOL_MOST};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct buffer *buffer = pool_take(&pool, sizes[i]);
            CHECK(tap, buffer && buffer->size == sizes[i]);
            CHECK_INT(tap, (uintptr_t)buffer->data % MEM_ALIGN, 0);
            memset(buffer->data, 1, sizes[i]);
            buffer_drop(buffer);
            CHECK(tap, pool_take(&pool, sizes[i]) == buffer);
            buffer_drop(buffer);
        }
        CHECK(tap, pool_take(&pool, POOL_MOST + 1ul) == NULL);
    });
    TEST(tap, "a buffer comes back with its last reference only", {
        struct buffer *buffer = pool_take(&pool, 100);
        buffer_hold(buffer);
        buffer_drop(buffer);
        struct buffer *other = pool_take(&pool, 100);
        CHECK(tap, other != buffer);
        buffer_drop(other);
        buffer_drop(buffer);
        buffer_drop(NULL);
    });
    pool_free(&pool);
    TEST(tap, "the limit holds, and what came back counts no more than once", {
        struct pool small = {.limit = 3 * POOL_LEAST};
        struct buffer *a = pool_take(&small, 1);
        struct buffer *b = pool_take(&small, 5000);
        CHECK(tap, a && b);
        CHECK(tap, pool_take(&small, 1) == NULL);
        buffer_drop(b);
        CHECK(tap, pool_take(&small, 1) == NULL);
        CHECK(tap, pool_take(&small, 8192) == b);
        buffer_drop(a);
        buffer_drop(b);
        pool_free(&small);
    });
    TEST(tap, "out of memory gives no buffer, and takes nothing from the limit", {
        struct pool dry = {.limit = POOL_MOST};
        for (int n = 0; n < 2 && HEAP_FAILS; n++) {
            heap_fail_after(n);
            CHECK(tap, n == 1 || pool_take(&dry, 1) == NULL);
            heap_fail_after(-1);
        }
        CHECK_INT(tap, dry.bytes, 0);
        pool_free(&dry);
    });
}

// Takes, fills, checks and drops: a buffer that two threads hold shows.
static void *use(void *context) {
    struct pool *pool = context;
    struct buffer *held[HELD] = {NULL};
    size_t wrong = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct buffer **at = &held[i % HELD];
        uintptr_t *mark = *at ? (*at)->data : NULL;
        wrong += mark && *mark != (uintptr_t)at;
        buffer_drop(*at);
        *at = pool_take(pool, 64);
        wrong += !*at;
        if (*at)
            *(uintptr_t *)(*at)->data = (uintptr_t)at;
    }
    for (int i = 0; i < HELD; i++)
        buffer_drop(held[i]);
    return (void *)wrong; // NOLINT(performance-no-int-to-ptr)
}

static void test_threads(struct tap *tap) {
    struct pool pool = {.limit = POOL_MOST};
    TEST(tap, "no two threads ever hold the same buffer", {
        pthread_t thread[THREADS];
        for (int i = 0; i < THREADS; i++)
            CHECK_INT(tap, pthread_create(&thread[i], NULL, use, &pool), 0);
        for (int i = 0; i < THREADS; i++) {
            void *wrong;
            pthread_join(thread[i], &wrong);
            CHECK(tap, wrong == NULL);
        }
        CHECK(tap, pool.bytes <= THREADS * (HELD + 1) * POOL_LEAST);
    });
    pool_free(&pool);
}

int main(void) {
    struct tap tap = {0};
    test_sizes(&tap);
    test_threads(&tap);
    return tap_done(&tap);
}
