// What the parts of the flusher share.
//
//   flusher.c       the whole: what is dirty, its thread, putting back
//   flusher_keep.c  ack = durable: what is wished to be on the disk
#ifndef ADAM_ROLE_PARAMSERVER_FLUSHER_INTERNAL_H
#define ADAM_ROLE_PARAMSERVER_FLUSHER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/error.h"
#include "core/gate.h"
#include "ps/ps.h"
#include "role/paramserver/flusher.h"

// Shards that are written with one sync, at least 16 MiB of them if there are.
enum { COPIES = 16 };

// A shard as the store has it.
struct watched {
    uint64_t epoch, version; // 0, 0: not at all
    double clean;            // when it was last known to be as in the store
    bool dirty;
};

struct copy { // of a shard, on its way to the store
    struct flusher *flusher;
    struct ps_snapshot snapshot;
    struct persist_push *pushes; // of the record; as many as the snapshot has room for
    uint32_t push_room;
    double time; // before it was taken
    enum proto_refusal code;
};

struct flusher {
    struct flusher_options options;
    pthread_t thread;
    _Atomic uint32_t buckets;
    _Atomic bool stopping;
    struct gate wake; // of the thread: to end, or to keep something

    // Of the thread; before it starts, of who opens.
    struct persist *persist;
    uint32_t shard_count;
    struct watched *shards;
    struct copy copies[COPIES];
    struct gate copied;
    _Atomic uint32_t uncopied;

    // Of who opened it: what was said last.
    bool told_failing, told_paused, paused;

    pthread_mutex_t lock;                     // of all that follows
    struct flusher_wish *wishes, **last_wish; // to be granted, the oldest first
    uint64_t dirty_bytes;
    double oldest; // when the shard that is dirty for the longest time was clean
    bool failing;
    struct error why;
    struct persist_figures written;
};

uint32_t flusher_room(const struct flusher *flusher); // copies that it has memory for

// Takes the first `count` copies, of the shards that they name.
void flusher_copy(struct flusher *flusher, uint32_t count);
// Writes them with one sync, and cleans as much; without those that have nothing to be written
// (code).
int flusher_write(struct flusher *flusher, uint32_t count, struct error *err);

// flusher_keep.c
//
// Grants some wishes, with one sync. When it fails they are as they were.
int flusher_grant(struct flusher *flusher, struct error *err);
bool flusher_has_wishes(struct flusher *flusher);
// Gives back those that are left.
void flusher_give_up(struct flusher *flusher);

#endif
