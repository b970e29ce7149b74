// Damage in a store: each shard is read back in its newest state or said to be damaged, and none
// silently in an older one, whatever bytes of a file change, blocks vanish or files are missing.
// The one exception is the last group, of which nobody can tell damage from a torn tail.
#include <stdlib.h>

#include "../helper/store_rig.h"

enum { SHARDS = 8, GROUPS = 24 };

static struct sim_disk disk;
static uint64_t newest[SHARDS], before_last[SHARDS]; // versions, without the last group

// Groups of two shards and of three, over several segments.
static void make_store(struct tap *tap) {
    struct error err = {0};
    uint64_t versions[SHARDS] = {0};
    int status;
    sim_begin(&disk);
    struct persist *persist = rig_open_store(tap, &disk);
    for (uint32_t group = 0; group < GROUPS; group++) {
        uint32_t shards[3], n = 2 + group % 2;
        uint64_t wanted[3];
        memcpy(before_last, versions, sizeof versions);
        for (uint32_t i = 0; i < n; i++) {
            // Shard 7 is written by the first groups only.
            shards[i] = group < 4 && i == 0 ? 7 : (2 * group + i) % 7;
            wanted[i] = ++versions[shards[i]];
        }
        CHECK_INT(tap, rig_write(persist, shards, wanted, n, &status, &err), n);
    }
    memcpy(newest, versions, sizeof versions);
    persist_close(persist);
}

struct verdict { // of all shards
    int sound, damaged, older, older_of_last;
};

static struct verdict judge_store(struct tap *tap) {
    struct verdict verdict = {0};
    struct persist *persist = rig_open_store(tap, &disk);
    for (uint32_t shard = 0; shard < SHARDS && persist; shard++) {
        struct error err = {0};
        struct persist_copy copy;
        const struct persist_entry *entry = persist_find(persist, shard);
        bool damaged = entry && entry->damaged;
        if (rig_has(persist, shard, newest[shard]))
            verdict.sound++;
        else if (damaged || persist_read(persist, shard, &copy, &err) == STATUS_DATA)
            verdict.damaged++;
        else if (persist_copy_free(&copy), rig_has(persist, shard, before_last[shard]))
            verdict.older_of_last++;
        else
            verdict.older++;
    }
    persist_close(persist);
    return verdict;
}

// What is in the files, to be restored as often as damage changed it, and freed.
static void keep_store(uint8_t *kept[SIM_FILES]) {
    for (int i = 0; i < disk.file_count; i++) {
        kept[i] = malloc(disk.file[i].size + 1);
        if (!kept[i])
            exit(2);
        if (disk.file[i].size)
            memcpy(kept[i], disk.file[i].now, disk.file[i].size);
    }
}

static void restore_store(uint8_t *const kept[SIM_FILES]) {
    for (int i = 0; i < disk.file_count; i++)
        if (disk.file[i].size)
            memcpy(disk.file[i].now, kept[i], disk.file[i].size);
}

static void drop_store(uint8_t *const kept[SIM_FILES]) {
    for (int i = 0; i < disk.file_count; i++)
        free(kept[i]);
}

static void flip(int file, uint64_t at) {
    disk.file[file].now[at] ^= 0x10;
}

// What the block at this place is: 1 a shard's first, 2 a commit record, 0 a segment's; -1 payload
// or nothing.
static int kind_of(int file, uint64_t at) {
    const uint8_t *block = disk.file[file].now + at;
    return memcmp(block, "adamlog1", 8) ? -1 : block[12];
}

// Where the last group begins, in the last file.
static uint64_t find_last_group(void) {
    int file = disk.file_count - 1;
    uint64_t last = 0, commit = 0;
    for (uint64_t at = PERSIST_BLOCK; at < disk.file[file].size; at += PERSIST_BLOCK)
        if (kind_of(file, at) == 2) {
            last = commit;
            commit = at;
        }
    return last + PERSIST_BLOCK;
}

static void test_flips(struct tap *tap) {
    make_store(tap);
    uint64_t last = find_last_group();
    TEST(tap, "a changed byte costs at most one shard, and that is named", {
        int damaged = 0;
        CHECK(tap, disk.file_count > 3);
        for (int file = 0; file < disk.file_count; file++)
            for (uint64_t at = 5; at < disk.file[file].size; at += 911) {
                bool tail = file == disk.file_count - 1 && at >= last;
                flip(file, at);
                struct verdict verdict = judge_store(tap);
                flip(file, at);
                damaged += verdict.damaged;
                if (verdict.older || verdict.damaged > 1 || (verdict.older_of_last && !tail) ||
                    (verdict.damaged && tail))
                    FAIL(tap, "file %d, byte %d: %d sound, %d damaged, %d older", file, (int)at,
                         verdict.sound, verdict.damaged, verdict.older + verdict.older_of_last);
            }
        CHECK(tap, damaged > 30);
    });
    TEST(tap, "first blocks of segments and commit records can be spared, but the last one", {
        for (int file = 0; file < disk.file_count; file++)
            for (uint64_t at = 0; at < disk.file[file].size; at += PERSIST_BLOCK) {
                int kind = kind_of(file, at);
                if ((kind != 0 && kind != 2) || (file == disk.file_count - 1 && at >= last))
                    continue;
                flip(file, at + 100);
                CHECK_INT(tap, judge_store(tap).sound, SHARDS);
                flip(file, at + 100);
            }
    });
}

static void test_holes(struct tap *tap) {
    uint8_t *sound[SIM_FILES];
    uint64_t seed = 7;
    TEST(tap, "runs of blocks that vanish never bring an older state back", {
        keep_store(sound);
        int damaged = 0;
        for (int i = 0; i < 3000; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            int file = (int)(seed >> 33) % disk.file_count;
            uint64_t blocks = disk.file[file].size / PERSIST_BLOCK;
            if (!blocks) // a segment has some
                abort();
            uint64_t begin = (seed >> 40) % blocks, n = 1 + (seed >> 50) % 9;
            n = begin + n > blocks ? blocks - begin : n;
            memset(disk.file[file].now + begin * PERSIST_BLOCK, i % 2 ? 0xff : 0,
                   n * PERSIST_BLOCK);
            struct verdict verdict = judge_store(tap);
            restore_store(sound);
            damaged += verdict.damaged;
            if (verdict.older || (verdict.older_of_last && file < disk.file_count - 1))
                FAIL(tap, "file %d, %d blocks from %d: %d shards came back older", file, (int)n,
                     (int)begin, verdict.older);
        }
        drop_store(sound);
        CHECK(tap, damaged > 1000);
    });
    TEST(tap, "where a file in the middle is missing, shards that may have been in it are damaged",
         {
             int damaged = 0;
             for (int file = 1; file < disk.file_count - 1; file++) {
                 disk.file[file].there = false;
                 struct verdict verdict = judge_store(tap);
                 disk.file[file].there = true;
                 CHECK_INT(tap, verdict.older + verdict.older_of_last, 0);
                 damaged += verdict.damaged;
             }
             CHECK(tap, damaged > 10);
         });
}

static void test_tail(struct tap *tap) {
    struct persist_figures figures;
    uint64_t last = find_last_group();
    int file = disk.file_count - 1;
    TEST(tap, "an incomplete last group is a torn tail: ignored, counted, and no damage", {
        flip(file, last + 2 * PERSIST_BLOCK + 200);
        struct verdict verdict = judge_store(tap);
        CHECK_INT(tap, verdict.damaged, 0);
        CHECK(tap, verdict.older_of_last > 0);
        struct persist *persist = rig_open_store(tap, &disk);
        persist_figures(persist, &figures);
        CHECK(tap, figures.torn > 0);
        CHECK_INT(tap, figures.damaged, 0);
        persist_close(persist);
        flip(file, last + 2 * PERSIST_BLOCK + 200);
    });
    TEST(tap, "of a store that was sealed the last group, too, is damaged when it changes", {
        struct error err = {0};
        struct persist *persist = rig_open_store(tap, &disk);
        CHECK_INT(tap, rig_write_one(persist, 6, ++newest[6], &err), STATUS_OK);
        uint64_t at = persist_find(persist, 6)->at + 200;
        int made = disk.file_count - 1;
        CHECK_INT(tap, persist_seal(persist, &err), STATUS_OK);
        persist_close(persist);
        CHECK_INT(tap, judge_store(tap).sound, SHARDS);
        flip(made, at);
        CHECK_INT(tap, judge_store(tap).damaged, 1);
        flip(made, at);
        CHECK_INT(tap, judge_store(tap).sound, SHARDS);
    });
    TEST(tap, "the same beyond which a sound record of a later group lies is damage", {
        uint64_t at = PERSIST_BLOCK; // the first group of the last segment
        flip(file, at + 200);
        struct verdict verdict = judge_store(tap);
        CHECK_INT(tap, verdict.older, 0);
        flip(file, at + 200);
        struct persist *persist = rig_open_store(tap, &disk);
        persist_figures(persist, &figures);
        CHECK_INT(tap, figures.torn, 0);
        persist_close(persist);
    });
}

// Weights that are the bytes of a record, as who pushes may choose them.
static void test_forged(struct tap *tap) {
    struct error err = {0};
    TEST(tap, "an old record within the payload of a damaged one is no record", {
        static float forged[2 * PERSIST_BLOCK / sizeof(float)];
        size_t durable;
        sim_begin(&disk);
        struct persist *persist = rig_open_store(tap, &disk);
        rig_write_one(persist, 9, 1, &err);
        memcpy(forged, disk.file[0].now + PERSIST_BLOCK, sizeof forged);
        persist_close(persist);
        sim_end(&disk);
        sim_begin(&disk);
        persist = rig_open_store(tap, &disk);
        const struct persist_record record = {
            .shard = 1, .version = 1, .floats = sizeof forged / sizeof *forged, .weights = forged};
        CHECK_INT(tap, rig_write_one(persist, 2, 1, &err), STATUS_OK);
        CHECK_INT(tap, persist_write(persist, &record, 1, &durable, &err), STATUS_OK);
        CHECK_INT(tap, rig_write_one(persist, 3, 1, &err), STATUS_OK);
        flip(0, persist_find(persist, 1)->at + 100);
        persist = rig_reopen(tap, &disk, persist);
        CHECK(tap, rig_has(persist, 2, 1) && rig_has(persist, 3, 1));
        CHECK(tap, persist_find(persist, 1) && persist_find(persist, 1)->damaged);
        CHECK(tap, !persist_find(persist, 9));
        persist_close(persist);
        sim_end(&disk);
    });
}

static void test_forged_newer(struct tap *tap) {
    struct error err = {0};
    TEST(tap, "a newer record within the payload of a sound one is no record", {
        static float forged[2 * PERSIST_BLOCK / sizeof(float)];
        size_t durable;
        sim_begin(&disk);
        struct persist *persist = rig_open_store(tap, &disk);
        rig_write_one(persist, 9, 1, &err);
        rig_write_one(persist, 9, 2, &err);
        rig_write_one(persist, 9, 3, &err);
        memcpy(forged, disk.file[0].now + persist_find(persist, 9)->at, sizeof forged);
        persist_close(persist);
        sim_end(&disk);
        sim_begin(&disk);
        persist = rig_open_store(tap, &disk);
        const struct persist_record record = {
            .shard = 1, .version = 1, .floats = sizeof forged / sizeof *forged, .weights = forged};
        CHECK_INT(tap, persist_write(persist, &record, 1, &durable, &err), STATUS_OK);
        CHECK_INT(tap, rig_write_one(persist, 3, 1, &err), STATUS_OK);
        persist = rig_reopen(tap, &disk, persist);
        CHECK(tap, rig_has(persist, 3, 1));
        CHECK(tap, persist_find(persist, 1) && !persist_find(persist, 1)->damaged);
        CHECK(tap, !persist_find(persist, 9));
        persist_close(persist);
        sim_end(&disk);
    });
}

static void test_repair(struct tap *tap) {
    struct error err = {0};
    struct persist_figures figures;
    struct persist *persist;
    TEST(tap, "a damaged shard stays known as such when its segment is gone, until it is written", {
        int file = 0;
        uint64_t at = 0;
        persist = rig_open_store(tap, &disk);
        const struct persist_entry *entry = persist_find(persist, 7);
        at = entry->at + PERSIST_BLOCK + 50; // in the payload
        while (atoi(disk.file[file].name) != (int)entry->segment)
            file++;
        flip(file, at);
        uint64_t segment = entry->segment;
        for (uint64_t i = 0; i < 200; i++) {
            CHECK_INT(tap, rig_write_one(persist, (uint32_t)(i % 7), 100 + i, &err), STATUS_OK);
            while (persist_wants_cleaning(persist) && !persist_clean(persist, &err))
                ;
        }
        for (int again = 0; again < 2; again++) {
            entry = persist_find(persist, 7);
            CHECK(tap, entry && entry->damaged && entry->segment > segment);
            CHECK_INT(tap, entry ? entry->version : 0, newest[7]);
            persist_figures(persist, &figures);
            CHECK_INT(tap, figures.damaged, 1);
            persist = rig_reopen(tap, &disk, persist);
        }
        CHECK_INT(tap, rig_write_one(persist, 7, newest[7] + 1, &err), STATUS_OK);
        persist = rig_reopen(tap, &disk, persist);
        CHECK(tap, rig_has(persist, 7, newest[7] + 1));
        persist_figures(persist, &figures);
        CHECK_INT(tap, figures.damaged, 0);
        persist_close(persist);
    });
    sim_end(&disk);
}

int main(void) {
    struct tap tap = {0};
    test_flips(&tap);
    test_holes(&tap);
    test_tail(&tap);
    test_repair(&tap);
    test_forged(&tap);
    test_forged_newer(&tap);
    return tap_done(&tap);
}
