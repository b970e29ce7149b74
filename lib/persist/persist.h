// The store of one parameter server: the newest durable state of each of its shards, in a
// log-structured folder of segments. adam-store(5) has the format byte by byte.
//
// "Within a parameter server node, the on disk storage for a bucket is modelled as a log
//  structured block store to optimize disk bandwidth for the write heavy work load." (Adam 3.3.3)
//
// Writing. Records are appended in groups. A group lies in one segment: the records of some
// shards, then a commit record that lists them; then one sync makes all of it durable. A group
// that is not complete on the disk was never reported durable, and counts for nothing.
//
// Log numbers. Every record has one; durable records have all numbers from the first of the oldest
// segment on, without a gap, and a group begins only when the one before is durable. Therefore:
//
//  - in the last segment, what follows a hole is a torn tail as long as it is of the group that
//    has the hole: normal after a crash. A sound record of a later group beyond the hole means
//    that the hole was durable once: damage.
//  - every other segment is durable up to the number with which the next one begins. What is
//    missing before is damage; what is there beyond was given up after a failed sync.
//
// Damage is never skipped: the shard whose newest record is damaged has an entry that says so. If
// a record is lost of which not even the shard is known, all shards that were not written after
// it count as damaged, since any may have had a newer state.
//
// A failed sync. "Pages are marked clean after a failed fsync": syncing them again proves nothing.
// So nothing of the group is believed, the segment gets no more records, and the group is written
// again from memory into a new segment, under the same log numbers. When that fails, too, the
// caller hears of it and keeps its data; the next write tries with yet another segment. A full
// disk is met when a segment is made, and heals in the same way.
//
// Cleaning. The log is a queue of segments: what still counts of the oldest one is copied to the
// end, in steps, and the segment removed. It is due when the records in the log take more than
// twice what counts, plus a segment. While the log goes round once each shard is copied at most
// once, and at least as much is new: so for each byte of new records less than one is copied. It
// is also due when the files take more than four times what counts, plus eight segments, as they
// may where segments were given up or processes ended before their segments were full.
//
// Threads: all functions of one store are called by one thread: that which flushes.
#ifndef ADAM_PERSIST_PERSIST_H
#define ADAM_PERSIST_PERSIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "persist/files.h"

struct error;

#define PERSIST_SERVER_MAX 64         // bytes of a server's name
#define PERSIST_SEGMENT (64u << 20)   // bytes of a segment
#define PERSIST_BLOCK 4096u           // to which records are aligned
#define PERSIST_FLOATS_MAX (1u << 20) // of a shard's weights
#define PERSIST_STATES 3              // of the rule, each as long as the weights
#define PERSIST_PUSHES_MAX (1u << 20) // sessions in a shard's history

struct persist;

// Whose store it is. Two that differ in any of these never mix.
struct persist_owner {
    uint8_t run[16];
    char server[PERSIST_SERVER_MAX + 1]; // its name, zeros behind it
};

// Which pushes of a session a shard has applied (ps/history.h).
struct persist_push {
    uint64_t session, high, applied;
};

// The state of a shard at some time, all parts of it of the same moment.
struct persist_record {
    uint32_t shard, bucket;
    uint64_t epoch, version;
    uint32_t floats, states; // of the weights, and of each of so many states
    const float *weights, *state[PERSIST_STATES];
    const struct persist_push *pushes;
    uint32_t push_count;
};

// What the store has of a shard. With `damaged` it had this, or something newer; epoch and version
// are 0 where nothing is left that would tell them.
struct persist_entry {
    uint32_t shard, bucket;
    uint64_t epoch, version;
    uint64_t log;     // number of its record
    uint64_t segment; // where that is
    uint64_t at;      // byte in the segment
    uint64_t size;    // bytes there, whole blocks
    bool damaged;
};

struct persist_figures {
    uint64_t segments;      // files
    uint64_t segment_bytes; // of all of them
    uint64_t live_bytes;    // of the records that count
    uint64_t shards;        // entries
    uint64_t damaged;       // of these
    uint64_t torn;          // records of an incomplete group that the opening met and ignored
    // Since the opening:
    uint64_t asked;           // bytes of the records that were written, as they were handed in
    uint64_t records;         // bytes of the same in whole blocks, and with their first ones
    uint64_t copied;          // such bytes of records that cleaning copied
    uint64_t written;         // all bytes that were written: records, commit records, first blocks
    uint64_t syncs, failures; // groups that were durable; that were not, at the first try
};

// Reads the index from the segments. `files` must last. `segment` is the size of new segments in
// bytes, a multiple of PERSIST_BLOCK: PERSIST_SEGMENT but in tests.
// STATUS_DATA: the folder is of another run or server, or another version of the format;
// STATUS_IO.
int persist_open(struct persist **out, const struct files *files, const struct persist_owner *owner,
                 uint64_t segment, struct error *err);

// The same of whoever's store it is, only to look: nothing is written.
// STATUS_NOINPUT: nothing was stored there; STATUS_DATA: a later version of the format; STATUS_IO.
int persist_look(struct persist **out, const struct files *files, struct error *err);

void persist_close(struct persist *persist); // NULL: nothing

const struct persist_owner *persist_owner(const struct persist *persist);

// Writes these, and returns when they are durable. *durable says how many are, from the first on:
// also when it fails, as they may take more than one group. No two may be of the same shard.
// STATUS_IO: the disk failed or is full, err says which; STATUS_DATA: a record does not fit into a
// segment.
int persist_write(struct persist *persist, const struct persist_record *records, size_t count,
                  size_t *durable, struct error *err);

// At an orderly end: writes that all groups are durable, so that damage in the last one, too, is
// told from a torn tail. Does nothing when nothing was written since the opening. STATUS_IO.
int persist_seal(struct persist *persist, struct error *err);

// The entries, ascending by shard; valid until the next call of another function.
const struct persist_entry *persist_entries(const struct persist *persist, size_t *count);
// NULL: the store has nothing of this shard.
const struct persist_entry *persist_find(const struct persist *persist, uint32_t shard);

// A record in memory of its own.
struct persist_copy { // {0} is none
    struct persist_record record;
    void *memory;
    struct persist_push *pushes;
};

// STATUS_NOINPUT: the store has nothing of this shard; STATUS_DATA: it is damaged, and its entry
// says so from now on; STATUS_IO.
int persist_read(struct persist *persist, uint32_t shard, struct persist_copy *copy,
                 struct error *err);
void persist_copy_free(struct persist_copy *copy);
// Reads every record that counts: entries say afterwards which are damaged. STATUS_IO.
int persist_check(struct persist *persist, struct error *err);

// Whether cleaning is due.
bool persist_wants_cleaning(const struct persist *persist);
// One step of it, of PERSIST_STEP bytes or one record: or nothing where it is not due. Damage that
// it meets is written down, so that it stays known when the segment is gone. STATUS_IO: the disk
// failed; nothing is lost.
#define PERSIST_STEP (8u << 20)
int persist_clean(struct persist *persist, struct error *err);

void persist_figures(const struct persist *persist, struct persist_figures *figures);

#endif
