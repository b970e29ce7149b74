// Delayed persistence of a parameter server: a thread of its own that keeps the store (persist/)
// up to date with the shards (ps/), and puts them back at a start.
//
// "We decouple durability from the update processing path to allow for high throughput serving to
//  training nodes. Parameter storage is modelled as a write back cache, with dirty chunks flushed
//  asynchronously in the background. The window of potential data loss is a function of the IO
//  throughput supported by the storage layer. [...] many updates can be folded into a single
//  parameter update [...] between rounds of flushes." (Adam 3.3.2)
//
// A shard is dirty when its stamp (ps_stamps) is not the one in the store. Dirty shards are copied
// and written some at a time, one sync for all of them, when the oldest change among them is
// `every` seconds old. So what a power cut can take is what changed in the last `every` seconds and
// in the time that writing it took: the window. When the disk cannot keep up the window grows; at
// FLUSHER_LIMIT times `every` pushes are told to come later, until it is smaller again.
//
// When the disk fails or is full all is kept dirty and tried again, `every` seconds later.
//
// With ack = durable what is to be on the disk before it is answered does not wait for that: the
// replicator wishes it (flusher_keep). While one sync is under way wishes gather for the next, and
// all shards that are wished go into it, some at a time. Then a record may hold what is prepared
// for a shard and not installed. Only a wish writes a record with an older stamp behind it; and
// the last record is what a start puts back. If its round was committed, all that was acknowledged
// is in it; if not, it has pushes that were not acknowledged as well, and its history says so.
//
// Threads: all functions are called by the thread that opens it, but flusher_keep; the store is
// used by the flusher's own thread alone. It ends before `ps` does.
#ifndef ADAM_ROLE_PARAMSERVER_FLUSHER_H
#define ADAM_ROLE_PARAMSERVER_FLUSHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "persist/persist.h"
#include "replica/replica.h"

struct error;
struct ps;
struct replica_load;

#define FLUSHER_LIMIT 10
#define FLUSHER_NEWS 2300 // bytes of a line of news

struct flusher;

struct flusher_options {
    struct ps *ps;
    const struct files *files;
    struct persist_owner owner;
    size_t parameters; // of the model
    int states;        // that its rule keeps
    double every;      // seconds
    bool durable;      // ack = durable: what is older is not written over what was wished
};

struct flusher_restored { // at a start
    uint32_t shards;      // that were put back
    uint64_t version;     // the newest of them
    uint32_t damaged;     // that the store could not give back
    uint32_t first;       // the first of these
    uint32_t strange;     // that do not fit this model or rule
};

struct flusher_figures {
    uint64_t dirty_bytes; // of shards that changed since they were written
    double at_risk;       // seconds: how old the oldest of these changes may be
    uint64_t flushed;     // bytes of shards written since the start
    uint64_t written;     // all bytes written for them, with those of cleaning
    uint64_t failures;    // groups that could not be made durable
};

// Opens the store, gives the shards in it to `ps`, which must not have weights yet, and begins.
// STATUS_DATA: the store is another's; STATUS_IO.
int flusher_open(struct flusher **out, const struct flusher_options *options,
                 struct flusher_restored *restored, struct error *err);

// Writes what is dirty, and ends. STATUS_IO: not all could be written. NULL: nothing.
int flusher_close(struct flusher *flusher, struct error *err);

// What is to be on the disk: what the shard has by now, or, with a load, what becomes of the values
// of `base` by it. Memory of who wishes, until `done`.
struct flusher_wish {
    uint32_t shard;
    struct replica_stamp stamp, base;
    const struct replica_load *load; // NULL: none
    // Called once, by the flusher's thread: it is on the disk; or by flusher_close. Must not wait.
    void (*done)(struct flusher_wish *wish);
    struct flusher_wish *next; // the flusher's
};
// Any thread. Wishes of one shard are granted in their order.
void flusher_keep(struct flusher *flusher, struct flusher_wish *wish);

// Into how many buckets shards go, as the routes say.
void flusher_route(struct flusher *flusher, uint32_t buckets);

// Looks whether pushes must wait, or need not any more: to be called some times a second.
void flusher_watch(struct flusher *flusher);
// One line for people when the disk begins to fail or to be too slow, and when that is over.
// False: nothing new.
bool flusher_news(struct flusher *flusher, char text[FLUSHER_NEWS]);

void flusher_figures(struct flusher *flusher, struct flusher_figures *figures);

// Bytes of memory that copies of so many parameters' shards take while they are written.
uint64_t flusher_memory(size_t parameters, int states);

#endif
