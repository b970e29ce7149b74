// A piece lies in one place for each slot, exchange, direction, sender and receiver: the pointer to
// it. The sender sets it, when it is NULL, and the receiver clears it.
#include "train/post.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/cpu.h"
#include "core/error.h"
#include "core/mem.h"

struct letter {
    _Atomic(const float *) floats;
};

struct post_end { // of one partition, for one slot
    struct post *post;
    struct net_wire wire;
    int partition, slot;
};

struct post_gate {
    _Alignas(MEM_ALIGN) struct gate gate;
};

struct post {
    int partitions, slots, exchanges;
    struct letter *letters;
    struct post_end *ends;
    struct post_gate *gates;
};

// Pieces come within some ten microseconds of each other, where each partition has a processor.
enum { LOOKS = 1000000 };

static struct letter *letter_at(const struct post *post, int slot, int exchange, enum net_pass pass,
                                int from, int to) {
    size_t way = ((size_t)slot * (size_t)post->exchanges + (size_t)exchange) * 2 + (size_t)pass;
    size_t pair = (size_t)(from * post->partitions + to);
    return &post->letters[way * (size_t)(post->partitions * post->partitions) + pair];
}

static bool gone(void *self, int exchange, enum net_pass pass, int to) {
    const struct post_end *end = self;
    const struct letter *letter =
        letter_at(end->post, end->slot, exchange, pass, end->partition, to);
    return !atomic_load_explicit(&letter->floats, memory_order_acquire);
}

static void send_piece(void *self, int exchange, enum net_pass pass, int to, const float *floats,
                       size_t count) {
    const struct post_end *end = self;
    struct letter *letter = letter_at(end->post, end->slot, exchange, pass, end->partition, to);
    (void)count;
    atomic_store_explicit(&letter->floats, floats, memory_order_release);
    gate_open(post_gate(end->post, to));
}

static const float *receive_piece(void *self, int exchange, enum net_pass pass, int from,
                                  size_t count) {
    const struct post_end *end = self;
    const struct letter *letter =
        letter_at(end->post, end->slot, exchange, pass, from, end->partition);
    (void)count;
    return atomic_load_explicit(&letter->floats, memory_order_acquire);
}

static void mark_read(void *self, int exchange, enum net_pass pass, int from) {
    const struct post_end *end = self;
    struct letter *letter = letter_at(end->post, end->slot, exchange, pass, from, end->partition);
    atomic_store_explicit(&letter->floats, NULL, memory_order_release);
    gate_open(post_gate(end->post, from));
}

const struct net_wire *post_wire(struct post *post, int partition, int slot) {
    struct post_end *end = &post->ends[partition * post->slots + slot];
    return &end->wire;
}

struct gate *post_gate(struct post *post, int partition) {
    return &post->gates[partition].gate;
}

static bool take_room(struct post *post) {
    size_t partitions = (size_t)post->partitions, slots = (size_t)post->slots;
    size_t letters = slots * (size_t)post->exchanges * 2 * partitions * partitions;
    post->letters = mem_zeroed(letters + 1, sizeof *post->letters);
    post->ends = mem_zeroed(partitions * slots, sizeof *post->ends);
    post->gates = aligned_alloc(MEM_ALIGN, partitions * sizeof *post->gates);
    return post->letters && post->ends && post->gates;
}

static void connect_ends(struct post *post) {
    for (int p = 0; p < post->partitions; p++)
        for (int s = 0; s < post->slots; s++) {
            struct post_end *end = &post->ends[p * post->slots + s];
            *end = (struct post_end){.post = post,
                                     .wire = {gone, send_piece, receive_piece, mark_read, end},
                                     .partition = p,
                                     .slot = s};
        }
    for (int p = 0; p < post->partitions; p++)
        post->gates[p] = (struct post_gate){
            .gate.looks = post->partitions <= cpu_count() ? LOOKS : 0,
        };
}

int post_open(struct post **out, int partitions, int slots, int exchanges, struct error *err) {
    struct post *post = mem_zeroed(1, sizeof *post);
    if (!post)
        return error_nomem(err);
    *post = (struct post){.partitions = partitions, .slots = slots, .exchanges = exchanges};
    if (!take_room(post)) {
        post_close(post);
        return error_nomem(err);
    }
    connect_ends(post);
    *out = post;
    return STATUS_OK;
}

void post_close(struct post *post) {
    if (!post)
        return;
    free(post->letters), free(post->ends), free(post->gates);
    free(post);
}
