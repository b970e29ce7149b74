// ack = durable (role/paramserver/flusher.h): what is wished is on the disk when it is granted,
// also what is prepared for a shard and not installed, and stays there whatever happens next.
#include "../helper/ps_stand.h"
#include "../helper/sim_disk.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "ps/blocks.h"
#include "role/paramserver/flusher.h"
#include "role/paramserver/load.h"

enum { ROOM = 8 }; // segments of the disk

static const double never = 1e6, soon = 1e-3; // seconds, also until what failed is tried again

static struct sim_disk disk;

struct wish {
    struct flusher_wish wish; // the first
    _Atomic bool done;
};

static void grant(struct flusher_wish *wish) {
    atomic_store(&((struct wish *)wish)->done, true);
}

static void await(const struct wish *wish) {
    while (!atomic_load(&wish->done))
        sched_yield();
}

static void disk_begin(void) {
    sim_begin(&disk);
    disk.room = (uint64_t)ROOM * PERSIST_SEGMENT;
}

static struct flusher *flusher_begin(struct tap *tap, const struct stand *stand, double every) {
    struct flusher *flusher = NULL;
    struct flusher_restored restored;
    struct error err = {0};
    const struct flusher_options options = {.ps = stand->rig.ps,
                                            .files = &disk.files,
                                            .owner = {{1, 2, 3}, "ps-a"},
                                            .parameters = stand->rig.n,
                                            .states = 1,
                                            .every = every,
                                            .durable = true};
    if (flusher_open(&flusher, &options, &restored, &err))
        FAIL(tap, "%s", err.text);
    return flusher;
}

static void keep(struct flusher *flusher, struct wish *wish, uint32_t shard, uint64_t epoch,
                 uint64_t version) {
    *wish = (struct wish){.wish = {.shard = shard, .stamp = {epoch, version}, .done = grant}};
    flusher_keep(flusher, &wish->wish);
}

// A load of these blocks, all of whose weights and state are `value`.
struct prepared {
    struct replica_load load;
    float *floats;
    struct push_history push;
};

static void prepare(struct prepared *prepared, const struct rig *rig, uint32_t shard,
                    uint64_t blocks, float value) {
    uint32_t floats = (uint32_t)rig_floats(rig, shard);
    size_t n = blocks_floats(blocks, floats);
    prepared->floats = mem_floats(2 * n);
    for (size_t i = 0; i < 2 * n; i++)
        prepared->floats[i] = value;
    prepared->push = (struct push_history){1, 9, 1};
    prepared->load = (struct replica_load){.references = 1,
                                           .floats = floats,
                                           .blocks = blocks,
                                           .weights = prepared->floats,
                                           .states = {prepared->floats + n},
                                           .state_count = 1,
                                           .pushes = &prepared->push,
                                           .push_count = 1};
}

static void keep_prepared(struct flusher *flusher, struct wish *wish, uint32_t shard,
                          struct replica_stamp base, struct replica_stamp stamp,
                          const struct prepared *prepared) {
    *wish = (struct wish){
        .wish = {
            .shard = shard, .stamp = stamp, .base = base, .load = &prepared->load, .done = grant}};
    flusher_keep(flusher, &wish->wish);
}

// What the disk has of a shard when the power is cut.
static struct persist_copy read_back(struct tap *tap, uint32_t shard) {
    const struct persist_owner owner = {{1, 2, 3}, "ps-a"};
    struct persist *persist = NULL;
    struct persist_copy copy = {0};
    struct error err = {0};
    sim_power(&disk, SIM_LOSES_ALL);
    if (persist_open(&persist, &disk.files, &owner, PERSIST_SEGMENT, &err) ||
        persist_read(persist, shard, &copy, &err))
        FAIL(tap, "%s", err.text);
    persist_close(persist);
    return copy;
}

// How many of the floats [begin, end) are another number than `value`.
static int others(const float *floats, size_t begin, size_t end, float value) {
    int count = 0;
    for (size_t i = begin; i < end; i++)
        count += floats[i] != value;
    return count;
}

// The power goes while the flusher lives: it finds out by errors, and its end can change nothing.
static void cut_power(struct flusher *flusher) {
    disk.cut_at = disk.operations + 1;
    flusher_close(flusher, NULL);
}

static void test_wishes(struct tap *tap) {
    struct stand stand;
    struct wish wishes[RIG_SHARDS];
    TEST(tap, "a wish that is granted has what the shard had, after a power cut, too", {
        disk_begin();
        if (stand_open(&stand, tap, async, 1)) {
            struct flusher *flusher = flusher_begin(tap, &stand, never);
            struct reply reply;
            CHECK_INT(tap, push_one(&stand, 1, 5, 1, 1, &reply), PROTO_REFUSAL_NONE);
            keep(flusher, &wishes[0], 1, RIG_EPOCH, 2);
            await(&wishes[0]);
            cut_power(flusher);
            struct persist_copy copy = read_back(tap, 1);
            CHECK_INT(tap, copy.record.version, 2);
            CHECK_INT(tap, copy.record.epoch, RIG_EPOCH);
            CHECK_INT(tap, copy.record.push_count, 1);
            CHECK_INT(tap, copy.record.pushes[0].high, 5);
            persist_copy_free(&copy);
        }
        stand_close(&stand);
        sim_end(&disk);
    });
    TEST(tap, "it does not wait for the time when others are flushed", {
        disk_begin();
        if (stand_open(&stand, tap, async, 1)) {
            struct flusher *flusher = flusher_begin(tap, &stand, never);
            keep(flusher, &wishes[0], 1, RIG_EPOCH, 1);
            await(&wishes[0]);
            keep(flusher, &wishes[0], 1, RIG_EPOCH, 1); // it has that
            await(&wishes[0]);
            CHECK_INT(tap, disk.syncs, 1);
            CHECK_INT(tap, flusher_close(flusher, NULL), STATUS_OK);
            CHECK_INT(tap, disk.syncs, 3); // the others, and the seal
        }
        stand_close(&stand);
        sim_end(&disk);
    });
    TEST(tap, "what nobody wishes is flushed as ever", {
        disk_begin();
        if (stand_open(&stand, tap, async, 1)) {
            struct flusher *flusher = flusher_begin(tap, &stand, soon);
            struct flusher_figures figures;
            do {
                sched_yield();
                flusher_figures(flusher, &figures);
            } while (!figures.flushed || figures.dirty_bytes);
            CHECK_INT(tap, flusher_close(flusher, NULL), STATUS_OK);
        }
        stand_close(&stand);
        sim_end(&disk);
    });
    TEST(tap, "wishes wait for a full disk, which is told, and one sync grants all of them", {
        disk_begin();
        disk.failure = ENOSPC;
        disk.broken = true;
        if (stand_open(&stand, tap, async, 1)) {
            struct flusher *flusher = flusher_begin(tap, &stand, soon);
            struct reply reply;
            char text[FLUSHER_NEWS] = "";
            for (uint32_t i = 0; i < RIG_SHARDS; i++)
                keep(flusher, &wishes[i], i, RIG_EPOCH, 1);
            while (!flusher_news(flusher, text))
                sched_yield();
            CHECK(tap, strstr(text, "No space left"));
            while (push_one(&stand, 1, 1, 0, 1, &reply) != PROTO_REFUSAL_BUSY)
                flusher_watch(flusher);
            for (uint32_t i = 0; i < RIG_SHARDS; i++)
                CHECK(tap, !atomic_load(&wishes[i].done));
            atomic_store(&disk.broken, false);
            for (uint32_t i = 0; i < RIG_SHARDS; i++)
                await(&wishes[i]);
            CHECK_INT(tap, disk.syncs, 1);
            CHECK_INT(tap, flusher_close(flusher, NULL), STATUS_OK);
        }
        stand_close(&stand);
        sim_end(&disk);
    });
    TEST(tap, "after a failed sync nothing of it is believed: it is written again", {
        disk_begin();
        disk.failure = EIO;
        if (stand_open(&stand, tap, async, 1)) {
            struct flusher *flusher = flusher_begin(tap, &stand, never);
            keep(flusher, &wishes[0], 0, RIG_EPOCH, 1);
            await(&wishes[0]);
            disk.fail_at = disk.operations + 3; // behind a record and its commit record
            disk.fail_until = disk.fail_at;
            keep(flusher, &wishes[1], 1, RIG_EPOCH, 1);
            await(&wishes[1]);
            CHECK_INT(tap, disk.syncs, 2);
            cut_power(flusher);
            struct persist_copy copy = read_back(tap, 1);
            CHECK_INT(tap, copy.record.version, 1);
            persist_copy_free(&copy);
        }
        stand_close(&stand);
        sim_end(&disk);
    });
}

static void test_prepared(struct tap *tap) {
    enum { SHARD = 1, BLOCK = 3 };
    const size_t begin = BLOCK * PROTO_BLOCK_FLOATS, end = begin + PROTO_BLOCK_FLOATS;
    const struct replica_stamp base = {RIG_EPOCH, 1}, next = {RIG_EPOCH, 2};
    struct stand stand;
    struct prepared prepared;
    struct wish wish;
    TEST(tap, "what is prepared is on the disk before it is installed: its blocks over the base", {
        disk_begin();
        if (stand_open(&stand, tap, async, 1)) {
            struct flusher *flusher = flusher_begin(tap, &stand, never);
            prepare(&prepared, &stand.rig, SHARD, UINT64_C(1) << BLOCK, 42);
            keep_prepared(flusher, &wish, SHARD, base, next, &prepared);
            await(&wish);
            CHECK(tap, stand_untouched(&stand));
            cut_power(flusher);
            struct persist_copy copy = read_back(tap, SHARD);
            const float *were = stand.weights + SHARD * PROTO_SHARD_FLOATS;
            CHECK_INT(tap, copy.record.version, 2);
            CHECK(tap, !memcmp(copy.record.weights, were, begin * sizeof(float)));
            CHECK_INT(tap, others(copy.record.weights, begin, end, 42), 0);
            CHECK_INT(tap, others(copy.record.state[0], begin, end, 42), 0);
            CHECK_INT(tap, others(copy.record.state[0], 0, begin, 0), 0);
            CHECK(tap, !memcmp(copy.record.weights + end, were + end,
                               (copy.record.floats - end) * sizeof(float)));
            CHECK_INT(tap, copy.record.push_count, 1);
            CHECK_INT(tap, copy.record.pushes[0].high, 9);
            persist_copy_free(&copy);
            free(prepared.floats);
        }
        stand_close(&stand);
        sim_end(&disk);
    });
    TEST(tap, "and what the shard has is not written over it, not at the end either", {
        disk_begin();
        if (stand_open(&stand, tap, async, 1)) {
            struct flusher *flusher = flusher_begin(tap, &stand, never);
            prepare(&prepared, &stand.rig, SHARD, UINT64_C(1) << BLOCK, 42);
            keep_prepared(flusher, &wish, SHARD, base, next, &prepared);
            await(&wish);
            CHECK_INT(tap, flusher_close(flusher, NULL), STATUS_OK);
            struct persist_copy copy = read_back(tap, SHARD);
            CHECK_INT(tap, copy.record.version, 2);
            persist_copy_free(&copy);
            copy = read_back(tap, 0);
            CHECK_INT(tap, copy.record.version, 1); // of which nothing is prepared
            persist_copy_free(&copy);
            free(prepared.floats);
        }
        stand_close(&stand);
        sim_end(&disk);
    });
    TEST(tap, "what was prepared and given up is replaced by what a new primary has, though older",
         {
             disk_begin();
             if (stand_open(&stand, tap, async, 1)) {
                 struct flusher *flusher = flusher_begin(tap, &stand, never);
                 struct prepared older;
                 prepare(&prepared, &stand.rig, SHARD, UINT64_C(1) << BLOCK, 42);
                 keep_prepared(flusher, &wish, SHARD, base, next, &prepared);
                 await(&wish);
                 prepare(&older, &stand.rig, SHARD, PS_BLOCKS, 7);
                 keep_prepared(flusher, &wish, SHARD, base,
                               (struct replica_stamp){RIG_EPOCH - 1, 1}, &older);
                 await(&wish);
                 cut_power(flusher);
                 struct persist_copy copy = read_back(tap, SHARD);
                 CHECK_INT(tap, copy.record.epoch, RIG_EPOCH - 1);
                 CHECK_INT(tap, others(copy.record.weights, 0, copy.record.floats, 7), 0);
                 persist_copy_free(&copy);
                 free(prepared.floats), free(older.floats);
             }
             stand_close(&stand);
             sim_end(&disk);
         });
    TEST(tap, "a load whose base the shard has left is written as it was installed, with the rest",
         {
             disk_begin();
             if (stand_open(&stand, tap, async, 1)) {
                 struct flusher *flusher = flusher_begin(tap, &stand, never);
                 struct reply reply;
                 prepare(&prepared, &stand.rig, SHARD, UINT64_C(1) << BLOCK, 42);
                 CHECK_INT(tap, push_one(&stand, 1, 5, SHARD, 1, &reply), PROTO_REFUSAL_NONE);
                 CHECK_INT(tap, push_one(&stand, 1, 6, SHARD, 1, &reply), PROTO_REFUSAL_NONE);
                 keep_prepared(flusher, &wish, SHARD, base, next, &prepared);
                 await(&wish);
                 cut_power(flusher);
                 struct persist_copy copy = read_back(tap, SHARD);
                 CHECK_INT(tap, copy.record.version, 3);
                 CHECK_INT(tap, copy.record.pushes[0].high, 6);
                 CHECK(tap, others(copy.record.weights, begin, end, 42) > 0);
                 persist_copy_free(&copy);
                 free(prepared.floats);
             }
             stand_close(&stand);
             sim_end(&disk);
         });
}

static void test_empty(struct tap *tap) {
    struct stand stand = {.values = NULL};
    struct prepared prepared;
    struct wish wish;
    TEST(tap, "a shard that has no weights yet gets them from a load that has all", {
        disk_begin();
        if (rig_open_empty(&stand.rig, tap, rules[1], async, 1, 1)) {
            struct flusher *flusher = flusher_begin(tap, &stand, never);
            prepare(&prepared, &stand.rig, 2, PS_BLOCKS, 3);
            keep_prepared(flusher, &wish, 2, (struct replica_stamp){0, 0},
                          (struct replica_stamp){4, 1}, &prepared);
            await(&wish);
            keep_prepared(flusher, &wish, 1, (struct replica_stamp){0, 0},
                          (struct replica_stamp){4, 0}, &prepared); // none: nothing to write
            await(&wish);
            cut_power(flusher);
            struct persist_copy copy = read_back(tap, 2);
            CHECK_INT(tap, copy.record.version, 1);
            CHECK_INT(tap, copy.record.epoch, 4);
            CHECK_INT(tap, others(copy.record.weights, 0, copy.record.floats, 3), 0);
            persist_copy_free(&copy);
            free(prepared.floats);
        }
        rig_close(&stand.rig);
        sim_end(&disk);
    });
    TEST(tap, "who ends gives back the wishes that it could not grant", {
        disk_begin();
        disk.failure = ENOSPC;
        disk.broken = true;
        if (stand_open(&stand, tap, async, 1)) {
            struct flusher *flusher = flusher_begin(tap, &stand, never);
            keep(flusher, &wish, 0, RIG_EPOCH, 1);
            CHECK_INT(tap, flusher_close(flusher, NULL), STATUS_IO);
            CHECK(tap, atomic_load(&wish.done));
        }
        stand_close(&stand);
        sim_end(&disk);
    });
}

int main(void) {
    struct tap tap = {0};
    test_wishes(&tap);
    test_prepared(&tap);
    test_empty(&tap);
    return tap_done(&tap);
}
