#include "core/pool.h"

#include <stdbool.h>
#include <stdlib.h>

#include "core/mem.h"

// User addresses of Linux have 47 bits (x86-64) or 48 (AArch64).
enum { ADDRESS_BITS = 48 };
static const uint64_t address_mask = (UINT64_C(1) << ADDRESS_BITS) - 1;

static struct buffer *top_buffer(uint64_t top) {
    return (struct buffer *)(uintptr_t)(top & address_mask); // NOLINT(performance-no-int-to-ptr)
}

static uint64_t top_of(const struct buffer *buffer, uint64_t pops) {
    return (uint64_t)(uintptr_t)buffer | pops << ADDRESS_BITS;
}

static void stack_push(struct pool_stack *stack, struct buffer *buffer) {
    uint64_t top = atomic_load(&stack->top);
    do
        atomic_store(&buffer->next, top_buffer(top));
    while (!atomic_compare_exchange_weak(&stack->top, &top, top_of(buffer, top >> ADDRESS_BITS)));
}

// A buffer that another thread pops meanwhile stays readable: none is freed before the pool.
static struct buffer *stack_pop(struct pool_stack *stack) {
    uint64_t top = atomic_load(&stack->top);
    struct buffer *buffer;
    do
        if (!(buffer = top_buffer(top)))
            return NULL;
    while (!atomic_compare_exchange_weak(
        &stack->top, &top, top_of(atomic_load(&buffer->next), (top >> ADDRESS_BITS) + 1)));
    return buffer;
}

static uint32_t order_of(size_t size) {
    uint32_t order = 0;
    while ((size_t)POOL_LEAST << order < size)
        order++;
    return order;
}

static bool reserve_bytes(struct pool *pool, size_t bytes) {
    size_t used = atomic_load(&pool->bytes);
    do
        if (bytes > pool->limit || used > pool->limit - bytes)
            return false;
    while (!atomic_compare_exchange_weak(&pool->bytes, &used, used + bytes));
    return true;
}

static struct buffer *buffer_make(struct pool *pool, uint32_t order) {
    size_t bytes = (size_t)POOL_LEAST << order;
    if (!reserve_bytes(pool, bytes))
        return NULL;
    struct buffer *buffer = mem_zeroed(1, sizeof *buffer);
    void *data = aligned_alloc(MEM_ALIGN, bytes);
    if (!buffer || !data) {
        free(buffer);
        free(data);
        atomic_fetch_sub(&pool->bytes, bytes);
        return NULL;
    }
    buffer->data = data;
    buffer->pool = pool;
    buffer->order = order;
    return buffer;
}

struct buffer *pool_take(struct pool *pool, size_t size) {
    if (size > POOL_MOST)
        return NULL;
    uint32_t order = order_of(size);
    struct buffer *buffer = stack_pop(&pool->stacks[order]);
    if (!buffer)
        buffer = buffer_make(pool, order);
    if (buffer) {
        buffer->size = size;
        atomic_store(&buffer->references, 1);
    }
    return buffer;
}

void pool_free(struct pool *pool) {
    for (int i = 0; i < POOL_CLASSES; i++)
        for (struct buffer *buffer; (buffer = stack_pop(&pool->stacks[i]));) {
            free(buffer->data);
            free(buffer);
        }
    atomic_store(&pool->bytes, 0);
}

void buffer_hold(struct buffer *buffer) {
    atomic_fetch_add(&buffer->references, 1);
}

void buffer_drop(struct buffer *buffer) {
    if (buffer && atomic_fetch_sub(&buffer->references, 1) == 1)
        stack_push(&buffer->pool->stacks[buffer->order], buffer);
}
