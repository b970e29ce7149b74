// Each lane, exchange, sender and receiver has a place for a piece. The sender fills it, when it is
// free, and the receiver frees it.
#include "train/shared_post.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"

struct shared_gate {
    _Alignas(MEM_ALIGN) struct gate gate;
};

struct shared_end { // of one partition, for one lane
    struct shared_post *post;
    struct net_wire wire;
    int partition, lane;
};

struct shared_post {
    const struct cut *cut;
    int partitions, lanes, most;
    size_t lane_floats; // of all pieces of a lane
    size_t *at;         // of each piece of a lane: where it begins
    struct shared_end *ends;
    struct arena memory; // shared: what follows
    struct shared_gate *gates;
    _Atomic uint32_t *full; // of each piece of each lane
    float *floats;
};

// Pieces come within some ten microseconds of each other, where each partition has a processor.
enum { LOOKS = 1000000 };

static size_t pieces_of(const struct shared_post *post) {
    size_t partitions = (size_t)post->partitions;
    return (size_t)cut_exchanges(post->cut) * partitions * partitions;
}

static size_t piece_of(const struct shared_post *post, int exchange, int from, int to) {
    size_t partitions = (size_t)post->partitions;
    return ((size_t)exchange * partitions + (size_t)from) * partitions + (size_t)to;
}

static _Atomic uint32_t *full_at(const struct shared_end *end, int exchange, int from, int to) {
    const struct shared_post *post = end->post;
    return &post->full[(size_t)end->lane * pieces_of(post) + piece_of(post, exchange, from, to)];
}

static float *floats_at(const struct shared_end *end, int exchange, int from, int to) {
    const struct shared_post *post = end->post;
    return post->floats + (size_t)end->lane * post->lane_floats +
           post->at[piece_of(post, exchange, from, to)];
}

static bool gone(void *self, int exchange, enum net_pass pass, int to) {
    const struct shared_end *end = self;
    (void)pass;
    return !atomic_load(full_at(end, exchange, end->partition, to));
}

static void send_piece(void *self, int exchange, enum net_pass pass, int to, const float *floats,
                       size_t count) {
    const struct shared_end *end = self;
    const struct shared_post *post = end->post;
    INVARIANT(pass == NET_FORWARD &&
              count <=
                  (size_t)post->most * cut_piece(post->cut, exchange, false, end->partition, to));
    memcpy(floats_at(end, exchange, end->partition, to), floats, count * sizeof *floats);
    atomic_store(full_at(end, exchange, end->partition, to), 1);
    gate_open(shared_post_gate(post, to, end->lane));
}

static const float *receive_piece(void *self, int exchange, enum net_pass pass, int from,
                                  size_t count) {
    const struct shared_end *end = self;
    (void)pass, (void)count;
    return atomic_load(full_at(end, exchange, from, end->partition))
               ? floats_at(end, exchange, from, end->partition)
               : NULL;
}

static void mark_read(void *self, int exchange, enum net_pass pass, int from) {
    const struct shared_end *end = self;
    (void)pass;
    atomic_store(full_at(end, exchange, from, end->partition), 0);
    gate_open(shared_post_gate(end->post, from, end->lane));
}

const struct net_wire *shared_post_wire(struct shared_post *post, int partition, int lane) {
    return &post->ends[partition * post->lanes + lane].wire;
}

struct gate *shared_post_gate(const struct shared_post *post, int partition, int lane) {
    return &post->gates[partition * post->lanes + lane].gate;
}

// Where pieces lie, each from a cache line on; those that nobody sends take no room.
static void place_pieces(struct shared_post *post) {
    struct arena measure = {0};
    for (int e = 0; e < cut_exchanges(post->cut); e++)
        for (int from = 0; from < post->partitions; from++)
            for (int to = 0; to < post->partitions; to++) {
                size_t piece = cut_piece(post->cut, e, false, from, to);
                post->at[piece_of(post, e, from, to)] = measure.used / sizeof(float);
                arena_take(&measure, (size_t)post->most * piece, sizeof(float));
            }
    post->lane_floats = measure.used / sizeof(float);
    post->memory.overflow |= measure.overflow;
}

static void take_shared(struct shared_post *post) {
    size_t lanes = (size_t)post->lanes;
    struct arena *memory = &post->memory;
    post->gates = arena_take(memory, lanes * (size_t)post->partitions, sizeof *post->gates);
    post->full = arena_take(memory, lanes * pieces_of(post), sizeof *post->full);
    post->floats = arena_take(memory, lanes * post->lane_floats, sizeof *post->floats);
}

static void connect_ends(struct shared_post *post) {
    for (int p = 0; p < post->partitions; p++)
        for (int l = 0; l < post->lanes; l++) {
            struct shared_end *end = &post->ends[p * post->lanes + l];
            *end = (struct shared_end){.post = post,
                                       .wire = {gone, send_piece, receive_piece, mark_read, end},
                                       .partition = p,
                                       .lane = l};
            *shared_post_gate(post, p, l) = (struct gate){
                .looks = post->partitions * post->lanes <= cpu_count() ? LOOKS : 0,
                .shared = true,
            };
        }
}

static bool take_memory(struct shared_post *post) {
    size_t ends = (size_t)post->partitions * (size_t)post->lanes;
    post->at = mem_array(pieces_of(post) + 1, sizeof *post->at);
    post->ends = mem_zeroed(ends, sizeof *post->ends);
    if (!post->at || !post->ends)
        return false;
    place_pieces(post);
    take_shared(post);
    if (!arena_open_shared(&post->memory))
        return false;
    take_shared(post);
    return true;
}

int shared_post_open(struct shared_post **out, const struct cut *cut, int lanes, int most,
                     struct error *err) {
    struct shared_post *post = mem_zeroed(1, sizeof *post);
    if (!post)
        return error_nomem(err);
    *post = (struct shared_post){
        .cut = cut, .partitions = cut_partitions(cut), .lanes = lanes, .most = most};
    if (!take_memory(post)) {
        shared_post_close(post);
        return error_nomem(err);
    }
    connect_ends(post);
    *out = post;
    return STATUS_OK;
}

void shared_post_close(struct shared_post *post) {
    if (!post)
        return;
    arena_close_shared(&post->memory);
    free(post->at), free(post->ends);
    free(post);
}
