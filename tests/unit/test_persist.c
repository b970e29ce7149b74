// The store of a parameter server (persist/persist.h): what was written is read back, by another
// process, too; cleaning, and what it costs; damage, which is named and never skipped.
#include <stdlib.h>

#include "../helper/store_rig.h"
#include "persist/crc32c.h"

static struct sim_disk disk;

// --- CRC-32C -----------------------------------------------------------------------------

static void check_crc(struct tap *tap) {
    uint8_t bytes[32] = {0};
    CHECK_INT(tap, crc32c_of(0, "123456789", 9), 0xe3069283);
    CHECK_INT(tap, crc32c_of(0, bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    CHECK_INT(tap, crc32c_of(0, bytes, sizeof bytes), 0x62a8ab43);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    CHECK_INT(tap, crc32c_of(0, bytes, sizeof bytes), 0x46dd794e);
    CHECK_INT(tap, crc32c_of(crc32c_of(0, bytes, 5), bytes + 5, 27), 0x46dd794e);
    CHECK_INT(tap, crc32c_of(0, NULL, 0), 0);
}

static void test_crc(struct tap *tap) {
    TEST(tap, "CRC-32C is that of RFC 3720, B.4, and of the catalogue's check", {
        check_crc(tap);
        setenv("ADAM_CPU", "ref", 1);
        check_crc(tap);
        unsetenv("ADAM_CPU");
    });
}

// --- writing and reading -----------------------------------------------------------------

static void test_write(struct tap *tap) {
    struct error err = {0};
    size_t count;
    TEST(tap, "the newest state of each shard is read back, by another process, too", {
        sim_begin(&disk);
        struct persist *persist = rig_open_store(tap, &disk);
        for (uint64_t version = 1; version <= 3; version++)
            for (uint32_t shard = 10; shard-- > 5;)
                CHECK_INT(tap, rig_write_one(persist, shard, version, &err), STATUS_OK);
        for (int again = 0; again < 2; again++) {
            for (uint32_t shard = 5; shard < 10; shard++)
                CHECK(tap, rig_has(persist, shard, 3));
            const struct persist_entry *entries = persist_entries(persist, &count);
            CHECK_INT(tap, count, 5);
            for (size_t i = 0; i < count; i++) {
                CHECK_INT(tap, entries[i].shard, 5 + i);
                CHECK_INT(tap, entries[i].version, 3);
                CHECK(tap, !entries[i].damaged);
            }
            CHECK(tap, !persist_find(persist, 4) && !persist_find(persist, 10));
            persist = rig_reopen(tap, &disk, persist);
        }
        CHECK_INT(tap, rig_write_one(persist, 7, 4, &err), STATUS_OK);
        persist = rig_reopen(tap, &disk, persist);
        CHECK(tap, rig_has(persist, 7, 4) && rig_has(persist, 8, 3));
        persist_close(persist);
        sim_end(&disk);
    });
    TEST(tap, "a group is durable by one sync, however many records it has", {
        uint32_t shards[] = {1, 2, 3, 4};
        uint64_t versions[] = {1, 1, 1, 1};
        int status;
        sim_begin(&disk);
        struct persist *persist = rig_open_store(tap, &disk);
        CHECK_INT(tap, rig_write(persist, shards, versions, 4, &status, &err), 4);
        CHECK_INT(tap, status, STATUS_OK);
        CHECK_INT(tap, disk.syncs, 1);
        persist_close(persist);
        sim_end(&disk);
    });
    TEST(tap, "more than a segment holds is written in several groups", {
        uint32_t shards[RIG_SHARDS];
        uint64_t versions[RIG_SHARDS];
        int status;
        for (uint32_t i = 0; i < RIG_SHARDS; i++)
            shards[i] = versions[i] = i + 1;
        sim_begin(&disk);
        struct persist *persist = rig_open_store(tap, &disk);
        CHECK_INT(tap, rig_write(persist, shards, versions, RIG_SHARDS, &status, &err), RIG_SHARDS);
        persist = rig_reopen(tap, &disk, persist);
        for (uint32_t i = 0; i < RIG_SHARDS; i++)
            CHECK(tap, rig_has(persist, i + 1, i + 1));
        persist_close(persist);
        sim_end(&disk);
    });
}

static void test_small_and_large(struct tap *tap) {
    struct error err = {0};
    struct persist_copy copy;
    size_t durable;
    TEST(tap, "a shard without state, pushes or even weights has a record", {
        const struct persist_record none = {.shard = 1, .version = 5};
        sim_begin(&disk);
        struct persist *persist = rig_open_store(tap, &disk);
        CHECK_INT(tap, persist_write(persist, &none, 1, &durable, &err), STATUS_OK);
        CHECK_INT(tap, persist_read(persist, 1, &copy, &err), STATUS_OK);
        CHECK_INT(tap, copy.record.version, 5);
        CHECK(tap, !copy.record.states && !copy.record.floats && !copy.record.push_count);
        persist_copy_free(&copy);
        CHECK_INT(tap, persist_read(persist, 2, &copy, &err), STATUS_NOINPUT);
        persist_close(persist);
        sim_end(&disk);
    });
    TEST(tap, "a record that no segment can hold is refused, and others are not", {
        float *floats = calloc(RIG_SEGMENT, 1);
        const struct persist_record large = {
            .shard = 9, .version = 1, .floats = RIG_SEGMENT / 4 - 1024, .weights = floats};
        sim_begin(&disk);
        struct persist *persist = rig_open_store(tap, &disk);
        CHECK_INT(tap, persist_write(persist, &large, 1, &durable, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "shard 9"));
        CHECK_INT(tap, rig_write_one(persist, 1, 1, &err), STATUS_OK);
        CHECK(tap, rig_has(persist, 1, 1) && !persist_find(persist, 9));
        persist_close(persist);
        sim_end(&disk);
        free(floats);
    });
}

// Records of hundreds of blocks, as those of real shards: most blocks are hopped over.
static void test_large(struct tap *tap) {
    enum { FLOATS = 90000, LARGE = 1024 * PERSIST_BLOCK };
    struct error err = {0};
    struct persist_copy copy;
    struct persist *persist;
    size_t durable;
    float *floats = calloc(FLOATS, sizeof *floats);
    TEST(tap, "large records are found in a large segment, and what is behind them", {
        sim_begin(&disk);
        for (uint64_t version = 1; version <= 2; version++) {
            CHECK_INT(tap, persist_open(&persist, &disk.files, &rig_owner, LARGE, &err), STATUS_OK);
            for (uint32_t shard = 0; shard < 5; shard++) {
                floats[FLOATS - 1] = (float)(10 * version + shard);
                const struct persist_record record = {
                    .shard = shard, .version = version, .floats = FLOATS, .weights = floats};
                CHECK_INT(tap, persist_write(persist, &record, 1, &durable, &err), STATUS_OK);
            }
            persist_close(persist);
        }
        CHECK_INT(tap, persist_open(&persist, &disk.files, &rig_owner, LARGE, &err), STATUS_OK);
        for (uint32_t shard = 0; shard < 5; shard++) {
            CHECK_INT(tap, persist_read(persist, shard, &copy, &err), STATUS_OK);
            CHECK_INT(tap, copy.record.version, 2);
            CHECK_NEAR(tap, copy.record.weights[FLOATS - 1], 20 + shard, 0);
            persist_copy_free(&copy);
        }
        persist_close(persist);
        sim_end(&disk);
    });
    free(floats);
}

static void test_owner(struct tap *tap) {
    struct error err = {0};
    struct persist *other;
    TEST(tap, "the store of another run or another server is refused, and left alone", {
        sim_begin(&disk);
        struct persist *persist = rig_open_store(tap, &disk);
        rig_write_one(persist, 1, 1, &err);
        persist_close(persist);
        uint64_t before = disk.operations;
        struct persist_owner run = rig_owner;
        run.run[15]++;
        CHECK_INT(tap, persist_open(&other, &disk.files, &run, RIG_SEGMENT, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "another run") && !other);
        struct persist_owner server = rig_owner;
        server.server[3] = '1';
        CHECK_INT(tap, persist_open(&other, &disk.files, &server, RIG_SEGMENT, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "another server") && strstr(err.text, "ps-0"));
        CHECK_INT(tap, disk.operations, before);
        sim_end(&disk);
    });
    TEST(tap, "who only looks learns whose it is, and writes nothing", {
        sim_begin(&disk);
        CHECK_INT(tap, persist_look(&other, &disk.files, &err), STATUS_NOINPUT);
        struct persist *persist = rig_open_store(tap, &disk);
        rig_write_one(persist, 1, 1, &err);
        persist_close(persist);
        uint64_t before = disk.operations;
        CHECK_INT(tap, persist_look(&other, &disk.files, &err), STATUS_OK);
        CHECK_TEXT(tap, persist_owner(other)->server, "ps-0");
        CHECK(tap, !memcmp(persist_owner(other)->run, rig_owner.run, 16));
        CHECK(tap, rig_has(other, 1, 1));
        persist_close(other);
        CHECK_INT(tap, disk.operations, before);
        sim_end(&disk);
    });
    TEST(tap, "a store of a later version of the format is refused as such", {
        sim_begin(&disk);
        struct persist *persist = rig_open_store(tap, &disk);
        rig_write_one(persist, 1, 1, &err);
        persist_close(persist);
        disk.file[0].now[7] = '2'; // the CRC does not cover it
        CHECK_INT(tap, persist_open(&other, &disk.files, &rig_owner, RIG_SEGMENT, &err),
                  STATUS_DATA);
        CHECK(tap, strstr(err.text, "later version"));
        sim_end(&disk);
    });
}

// --- cleaning ----------------------------------------------------------------------------

static void clean_all(struct tap *tap, struct persist *persist) {
    struct error err = {0};
    for (int steps = 0; persist_wants_cleaning(persist); steps++)
        if (persist_clean(persist, &err) || steps > 1000) {
            FAIL(tap, "step %d: %s", steps, err.text);
            return;
        }
}

typedef uint32_t shard_pick(uint64_t n, uint64_t *seed);

static uint32_t pick_in_turn(uint64_t n, uint64_t *seed) {
    (void)seed;
    return (uint32_t)(n % RIG_SHARDS);
}

static uint32_t pick_random(uint64_t n, uint64_t *seed) {
    (void)n;
    *seed = *seed * UINT64_C(6364136223846793005) + 1;
    return (uint32_t)(*seed >> 40) % RIG_SHARDS;
}

// All but a few are never written again: the most that cleaning can be made to copy.
static uint32_t pick_few(uint64_t n, uint64_t *seed) {
    (void)seed;
    return (uint32_t)(n < RIG_SHARDS ? n : n % 4);
}

// Writes many times what the store holds, in groups of one: bytes of records for each new one.
static double write_long(struct tap *tap, shard_pick *pick, uint64_t *most_segments) {
    uint64_t versions[RIG_SHARDS] = {0}, seed = 1;
    struct persist_figures figures;
    struct error err = {0};
    sim_begin(&disk);
    struct persist *persist = rig_open_store(tap, &disk);
    *most_segments = 0;
    for (uint64_t n = 0; n < 2000; n++) {
        uint32_t shard = pick(n, &seed);
        CHECK_INT(tap, rig_write_one(persist, shard, ++versions[shard], &err), STATUS_OK);
        clean_all(tap, persist);
        persist_figures(persist, &figures);
        *most_segments = figures.segments > *most_segments ? figures.segments : *most_segments;
    }
    persist = rig_reopen(tap, &disk, persist);
    for (uint32_t shard = 0; shard < RIG_SHARDS; shard++)
        CHECK(tap, !versions[shard] || rig_has(persist, shard, versions[shard]));
    persist_close(persist);
    sim_end(&disk);
    return (double)(figures.records + figures.copied) / (double)figures.records;
}

static void test_cleaning(struct tap *tap) {
    uint64_t most;
    TEST(tap, "a log whose shards change in turn is cleaned without copying", {
        double amplification = write_long(tap, pick_in_turn, &most);
        CHECK_NEAR(tap, amplification, 1.0, 0.0);
    });
    TEST(tap, "whatever is written, it copies less than is new, and takes no more than told", {
        static shard_pick *const picks[] = {pick_in_turn, pick_random, pick_few};
        uint64_t live = RIG_SHARDS * 3 * PERSIST_BLOCK;
        for (int i = 0; i < 3; i++) {
            double amplification = write_long(tap, picks[i], &most);
            CHECK(tap, amplification < 2);
            // Of the 16 blocks of a segment 9 are of records here, 3 each.
            CHECK(tap, most <= (2 * live + RIG_SEGMENT) / (9 * PERSIST_BLOCK) + 3);
            printf("# picks %d: %.2f times what is new, at most %llu segments\n", i, amplification,
                   (unsigned long long)most);
        }
    });
    TEST(tap, "cleaning that is not due does nothing", {
        struct error err = {0};
        sim_begin(&disk);
        struct persist *persist = rig_open_store(tap, &disk);
        rig_write_one(persist, 1, 1, &err);
        uint64_t before = disk.operations;
        CHECK(tap, !persist_wants_cleaning(persist));
        CHECK_INT(tap, persist_clean(persist, &err), STATUS_OK);
        CHECK_INT(tap, disk.operations, before);
        persist_close(persist);
        sim_end(&disk);
    });
}

// --- failures ----------------------------------------------------------------------------

static int count_files(void) {
    int count = 0;
    for (int i = 0; i < disk.file_count; i++)
        count += disk.file[i].there;
    return count;
}

static void test_failures(struct tap *tap) {
    struct error err = {0};
    struct persist_figures figures;
    TEST(tap, "after a failed sync the group is written again, to another segment", {
        sim_begin(&disk);
        struct persist *persist = rig_open_store(tap, &disk);
        CHECK_INT(tap, rig_write_one(persist, 1, 1, &err), STATUS_OK);
        disk.fail_at = disk.fail_until = disk.operations + 3; // record, commit record, sync
        CHECK_INT(tap, rig_write_one(persist, 1, 2, &err), STATUS_OK);
        persist_figures(persist, &figures);
        CHECK_INT(tap, figures.failures, 1);
        CHECK_INT(tap, figures.segments, 2);
        sim_power(&disk, SIM_LOSES_ALL);
        persist = rig_reopen(tap, &disk, persist);
        CHECK(tap, rig_has(persist, 1, 2));
        persist_figures(persist, &figures);
        CHECK_INT(tap, figures.damaged, 0);
        persist_close(persist);
        sim_end(&disk);
    });
    TEST(tap, "a group of which no sync succeeded is not there for the next process, either", {
        sim_begin(&disk);
        disk.room = RIG_SEGMENT; // none for a second segment
        struct persist *persist = rig_open_store(tap, &disk);
        CHECK_INT(tap, rig_write_one(persist, 1, 1, &err), STATUS_OK);
        disk.fail_at = disk.fail_until = disk.operations + 3; // record, commit record, sync
        CHECK_INT(tap, rig_write_one(persist, 1, 2, &err), STATUS_IO);
        CHECK(tap, rig_has(persist, 1, 1));
        persist = rig_reopen(tap, &disk, persist); // the system shows what was written
        CHECK(tap, rig_has(persist, 1, 1));
        persist_close(persist);
        sim_end(&disk);
    });
    TEST(tap, "a segment whose first group failed is removed", {
        sim_begin(&disk);
        struct persist *persist = rig_open_store(tap, &disk);
        disk.fail_at = disk.fail_until = 7; // the sync, after 4 for the segment
        CHECK_INT(tap, rig_write_one(persist, 1, 1, &err), STATUS_OK);
        persist_figures(persist, &figures);
        CHECK_INT(tap, figures.failures, 1);
        CHECK_INT(tap, figures.segments, 1);
        CHECK_INT(tap, count_files(), 1);
        persist_close(persist);
        sim_end(&disk);
    });
    TEST(tap, "files of processes that ended early do not pile up", {
        sim_begin(&disk);
        for (uint32_t shard = 1; shard <= 60; shard++) {
            struct persist *persist = rig_open_store(tap, &disk);
            CHECK_INT(tap, rig_write_one(persist, shard, 1, &err), STATUS_OK);
            clean_all(tap, persist);
            persist_close(persist);
        }
        CHECK(tap, count_files() <= 4 * 60 * 3 / 16 + 8 + 1);
        sim_end(&disk);
    });
    TEST(tap, "a full disk is said to be full, leaves no half segment, and heals", {
        sim_begin(&disk);
        disk.room = RIG_SEGMENT + 100;
        struct persist *persist = rig_open_store(tap, &disk);
        uint64_t version = 1;
        while (!rig_write_one(persist, 1, version, &err))
            version++;
        CHECK(tap, strstr(err.text, "No space left"));
        CHECK_INT(tap, rig_write_one(persist, 2, 1, &err), STATUS_IO);
        CHECK_INT(tap, disk.room, 100);
        CHECK_INT(tap, count_files(), 1);
        CHECK(tap, rig_has(persist, 1, version - 1));
        disk.room = UINT64_MAX / 2;
        CHECK_INT(tap, rig_write_one(persist, 1, version, &err), STATUS_OK);
        persist = rig_reopen(tap, &disk, persist);
        CHECK(tap, rig_has(persist, 1, version) && !persist_find(persist, 2));
        persist_close(persist);
        sim_end(&disk);
    });
}

int main(void) {
    struct tap tap = {0};
    test_crc(&tap);
    test_write(&tap);
    test_small_and_large(&tap);
    test_large(&tap);
    test_owner(&tap);
    test_cleaning(&tap);
    test_failures(&tap);
    return tap_done(&tap);
}
