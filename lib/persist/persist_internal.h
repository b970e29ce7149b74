// What the parts of the store share. Inside lib/persist only.
//
//   block.c    the first blocks of segments and records: bytes, and what they say
//   index.c    the newest record of each shard
//   scan.c     what is in a segment
//   recover.c  the index from all segments; what is torn, what is damaged
//   append.c   groups, segments that begin and that are given up
//   clean.c    the oldest segment's records to the end of the log
//   read.c     records back into memory
//   persist.c  the whole
#ifndef ADAM_PERSIST_PERSIST_INTERNAL_H
#define ADAM_PERSIST_PERSIST_INTERNAL_H

#include "persist/persist.h"

// --- blocks -----------------------------------------------------------------------------

enum block_kind {
    BLOCK_SEGMENT, // first of a segment
    BLOCK_SHARD,   // first of a shard's record
    BLOCK_COMMIT,  // ends a group
    BLOCK_LOST,    // stands for a shard's record that was found damaged
    BLOCK_KINDS
};

#define LISTED_MOST 256 // records of a group, as many as a commit record lists

struct listed { // by a commit record, of each record of its group
    uint32_t shard, blocks;
};

struct block {
    enum block_kind kind;
    struct persist_owner owner;
    uint64_t log;   // number of the record; of a segment: of the first record in it
    uint64_t group; // number of the first record of its group; of a segment: the segment's own
    // Of a shard's record, and of what stands for one:
    uint32_t shard, bucket;
    uint64_t epoch, version;
    uint32_t floats, state_floats, push_count;
    uint32_t payload_crc;
    // Of a commit record: of the records group..log-1.
    uint32_t listed_count;
    struct listed listed[LISTED_MOST];
};

#define PUSH_BYTES 24u // of a session in a record

void block_encode(const struct block *block, uint8_t bytes[PERSIST_BLOCK]);
// False: these bytes are no such block, or damaged.
bool block_decode(struct block *block, const uint8_t bytes[PERSIST_BLOCK]);
// Whether the block is one of a later version of the format than this code knows.
bool block_is_newer(const uint8_t bytes[PERSIST_BLOCK]);

// Bytes of a record's payload, without what fills its last block; of the whole record.
uint64_t block_payload(const struct block *block);
uint64_t block_size(const struct block *block);

void push_encode(const struct persist_push *push, uint8_t bytes[PUSH_BYTES]);
struct persist_push push_decode(const uint8_t bytes[PUSH_BYTES]);

bool owner_same(const struct persist_owner *a, const struct persist_owner *b);

// --- index ------------------------------------------------------------------------------

struct index {                     // {0} is empty
    struct persist_entry *entries; // ascending by shard
    size_t count, room;
};

struct persist_entry *index_find(const struct index *index, uint32_t shard);
// Puts it where the index has nothing newer of the shard. False: out of memory.
bool index_put(struct index *index, const struct persist_entry *entry);
void index_free(struct index *index);

// --- segments ---------------------------------------------------------------------------

struct segment {
    uint64_t number, size; // of the file
    uint64_t records;      // bytes of shards' records that were durable in it
};

#define SEGMENT_NAME_MAX 32
void segment_name(uint64_t number, char name[SEGMENT_NAME_MAX]);
// False: a file of another kind.
bool segment_parse(const char *name, uint64_t *number);

struct persist {
    const struct files *files;
    struct persist_owner owner;
    uint64_t segment_size;
    bool looks; // only
    struct index index;
    struct segment *segments; // ascending by number
    size_t segment_count, segment_room;
    // The segment that is written to: the last one. -1: the next group begins a new one.
    int head;
    uint64_t head_end;    // where its next group begins
    uint64_t next_log;    // number of the next record
    uint64_t next_number; // of the next segment
    uint64_t unknown;     // the last log number that is lost, of who knows which shard; 0: none
    struct persist_figures figures; // of which only counts are kept up
};

bool segments_add(struct persist *persist, struct segment segment);

// append.c: the first block of a segment that begins with this log number. An errno, or 0.
int write_head(const struct persist *persist, int file, uint64_t first, uint64_t number);

// append.c: writes one group of as many records as fit into what is left of the head, or else into
// a new segment: *taken of them, 1 or more. A record without weights (`lost`) stands for one that
// is damaged.
struct item {
    struct persist_record record;
    bool lost;
};
int append_group(struct persist *persist, const struct item *items, size_t count, size_t *taken,
                 struct error *err);

// --- reading ----------------------------------------------------------------------------

struct found { // a sound block of a record
    struct persist_entry entry;
    enum block_kind kind;
    uint64_t group;
};

struct scan {       // of a segment
    bool headed;    // its first block is sound
    uint64_t first; // log number with which it begins, if it is
    struct found *found;
    size_t count, room;
    struct block *commits; // sound ones, in order
    size_t commit_count, commit_room;
};

// Reads all blocks that are records' first ones, and hops over the rest. Records of another owner
// are none of ours; a store that is only looked at becomes that of the owner of the first one.
// STATUS_IO, STATUS_DATA (of another owner's store, or a later version).
int scan_segment(struct scan *scan, struct persist *persist, const struct segment *segment,
                 struct error *err);
void scan_free(struct scan *scan);

int recover(struct persist *persist, struct error *err);

// --- cleaning ---------------------------------------------------------------------------

uint64_t live_bytes(const struct persist *persist);
uint64_t segment_bytes(const struct persist *persist);

// The bytes of a record of this kind in *memory, to be freed, and what its first block says.
// STATUS_DATA: it is not as it was written, and *memory is NULL, as after any failure.
int read_record(struct persist *persist, const struct persist_entry *entry, enum block_kind kind,
                struct block *block, uint8_t **memory, struct error *err);

// Sets err to what a file operation met.
int files_error(int why, const char *what, const char *name, struct error *err);

#endif
