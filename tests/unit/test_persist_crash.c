// A store on a disk that loses its power, or fails, at each of its operations: what was reported
// durable is read back, and nothing else but whole states, older or newer; none counts as damaged.
#include <stdlib.h>

#include "../helper/store_rig.h"

enum { SHARDS = 6, ROUNDS = 14, TRIES = 4 };

static struct sim_disk disk;

struct known { // of each shard
    uint64_t durable[SHARDS], tried[SHARDS];
};

// A round writes some shards at their next versions, and cleans.
static void write_round(struct persist *persist, int round, struct known *known) {
    uint32_t shards[SHARDS];
    uint64_t versions[SHARDS];
    size_t count = 0;
    int status;
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        if ((shard + (uint32_t)round) % 3 || round < 2) {
            shards[count] = shard;
            versions[count++] = ++known->tried[shard];
        }
    size_t durable = rig_write(persist, shards, versions, count, &status, NULL);
    for (size_t i = 0; i < durable; i++)
        known->durable[shards[i]] = versions[i];
    for (int i = 0; i < 3 && persist_wants_cleaning(persist); i++)
        persist_clean(persist, NULL);
}

static struct persist *open_quietly(void) {
    struct persist *persist;
    return persist_open(&persist, &disk.files, &rig_owner, RIG_SEGMENT, NULL) ? NULL : persist;
}

// A process at work, and the one that goes on after it; each may meet the end of its power.
static void work(int rounds, int from, struct known *known) {
    struct persist *persist = open_quietly();
    for (int i = 0; persist && i < rounds; i++)
        write_round(persist, from + i, known);
    persist_close(persist);
}

static bool has_some_state(struct persist *persist, uint32_t shard, const struct known *known) {
    for (uint64_t version = known->durable[shard]; version <= known->tried[shard]; version++)
        if (version ? rig_has(persist, shard, version) : !persist_find(persist, shard))
            return true;
    return false;
}

static int check_states(struct tap *tap, const struct known *known, const char *when, uint64_t at) {
    struct persist *persist = rig_open_store(tap, &disk);
    struct persist_figures figures;
    if (!persist)
        return 1;
    persist_figures(persist, &figures);
    int wrong = figures.damaged != 0;
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        wrong += !has_some_state(persist, shard, known);
    if (wrong)
        FAIL(tap, "%s %llu: %d shards are wrong, %d damaged", when, (unsigned long long)at, wrong,
             (int)figures.damaged);
    persist_close(persist);
    return wrong;
}

static uint64_t count_operations(void) {
    struct known known = {{0}, {0}};
    sim_begin(&disk);
    work(ROUNDS, 0, &known);
    uint64_t operations = disk.operations;
    sim_end(&disk);
    return operations;
}

// A power cut at one operation; another one a little later, in the next process.
static int cut_at(struct tap *tap, uint64_t at, enum sim_loss loss, uint64_t seed) {
    struct known known = {{0}, {0}};
    sim_begin(&disk);
    disk.seed = seed;
    disk.cut_at = at;
    work(ROUNDS, 0, &known);
    sim_power(&disk, loss);
    int wrong = check_states(tap, &known, "cut at", at);
    disk.cut_at = disk.operations + 1 + seed % 40;
    work(4, ROUNDS, &known);
    sim_power(&disk, loss);
    wrong += check_states(tap, &known, "after a second cut, at", at);
    work(ROUNDS, 0, &known);
    wrong += check_states(tap, &known, "gone on after cuts, at", at);
    sim_end(&disk);
    return wrong;
}

// What the store says that it has after the end of a process is durable from then on.
static void adopt_states(struct known *known) {
    struct persist *persist = open_quietly();
    for (uint32_t shard = 0; shard < SHARDS && persist; shard++) {
        const struct persist_entry *entry = persist_find(persist, shard);
        known->durable[shard] = entry ? entry->version : 0;
    }
    persist_close(persist);
}

// The process is killed at one operation, the system goes on; after the next start the power goes.
static int kill_at(struct tap *tap, uint64_t at, uint64_t seed) {
    struct known known = {{0}, {0}};
    sim_begin(&disk);
    disk.seed = seed;
    disk.cut_at = at;
    work(ROUNDS, 0, &known);
    disk.dead = false;
    disk.cut_at = 0;
    int wrong = check_states(tap, &known, "killed at", at);
    adopt_states(&known);
    sim_power(&disk, SIM_LOSES_ALL);
    wrong += check_states(tap, &known, "power cut after the kill, at", at);
    sim_end(&disk);
    return wrong;
}

static void test_kills(struct tap *tap) {
    uint64_t operations = count_operations();
    TEST(tap, "killed at each operation, and what the next process finds survives the power", {
        for (uint64_t at = 1, wrong = 0; at <= operations && wrong < 3; at++)
            wrong += (uint64_t)kill_at(tap, at, at);
    });
}

// As before, but of the next start an operation fails: what was not synced then counts as clean.
static int fail_after_kill(struct tap *tap, uint64_t at, uint64_t seed) {
    struct known known = {{0}, {0}};
    sim_begin(&disk);
    disk.seed = seed;
    disk.cut_at = at;
    work(ROUNDS, 0, &known);
    disk.dead = false;
    disk.cut_at = 0;
    disk.fail_at = disk.fail_until = disk.operations + 1 + seed % 3;
    persist_close(open_quietly());
    disk.fail_at = 0;
    adopt_states(&known);
    sim_power(&disk, SIM_LOSES_ALL);
    int wrong = check_states(tap, &known, "power cut after a start that failed, at", at);
    sim_end(&disk);
    return wrong;
}

static void test_failing_starts(struct tap *tap) {
    uint64_t operations = count_operations();
    TEST(tap, "killed at each operation, and what a start finds after one that failed survives", {
        for (uint64_t at = 1, wrong = 0; at <= operations && wrong < 3; at++)
            wrong += (uint64_t)fail_after_kill(tap, at, at);
    });
}

// One read of a start comes back with a wrong bit. 1: more than that is wrong afterwards; -1: the
// start reads less often.
static int misread_at(struct tap *tap, uint64_t at, uint64_t seed) {
    struct known known = {{0}, {0}};
    sim_begin(&disk);
    work(ROUNDS, 0, &known);
    disk.seed = seed;
    disk.misread_at = disk.reads + at;
    persist_close(open_quietly());
    bool met = disk.reads >= disk.misread_at;
    disk.misread_at = 0;
    sim_power(&disk, SIM_LOSES_ALL);
    int wrong = check_states(tap, &known, "misread at", at);
    sim_end(&disk);
    return wrong ? 1 : met ? 0 : -1;
}

static void test_misreads(struct tap *tap) {
    TEST(tap, "what one start misreads is as it was for the next one", {
        int wrong = 0;
        uint64_t at = 0;
        for (at = 1; wrong == 0; at++)
            for (uint64_t seed = 1; seed <= TRIES && wrong == 0; seed++)
                wrong = misread_at(tap, at, seed);
        CHECK_INT(tap, wrong, -1);
        CHECK(tap, at > 10);
    });
}

static void test_removals(struct tap *tap) {
    TEST(tap, "a segment is removed durably before the next one is", {
        struct known known = {{0}, {0}};
        int undone = 0;
        sim_begin(&disk);
        work(ROUNDS, 0, &known);
        for (int i = 0; i < disk.file_count; i++)
            undone += disk.file[i].durably_there && !disk.file[i].there;
        CHECK_INT(tap, undone, 0);
        sim_end(&disk);
    });
}

static void test_cuts(struct tap *tap) {
    uint64_t operations = count_operations();
    TEST(tap, "the power goes at each operation, and what was not synced is lost", {
        CHECK(tap, operations > 150);
        for (uint64_t at = 1, wrong = 0; at <= operations && wrong < 3; at++)
            wrong += (uint64_t)cut_at(tap, at, SIM_LOSES_ALL, at);
    });
    TEST(tap, "the power goes at each operation, and all that was written stays", {
        for (uint64_t at = 1, wrong = 0; at <= operations && wrong < 3; at++)
            wrong += (uint64_t)cut_at(tap, at, SIM_LOSES_NOTHING, at);
    });
    TEST(tap, "the power goes at each operation, and any sectors are lost, torn writes among them",
         {
             for (uint64_t at = 1, wrong = 0; at <= operations && wrong < 3; at++)
                 for (uint64_t seed = 1; seed <= TRIES; seed++)
                     wrong += (uint64_t)cut_at(tap, at, SIM_LOSES_SOME, seed * 1000 + at);
         });
}

// One operation fails, or all from it on until the disk is well again; then the power goes.
static int fail_at(struct tap *tap, uint64_t at, uint64_t count, int failure, uint64_t seed) {
    struct known known = {{0}, {0}};
    sim_begin(&disk);
    disk.seed = seed;
    disk.fail_at = at;
    disk.fail_until = at + count - 1;
    disk.failure = failure;
    work(ROUNDS, 0, &known);
    disk.fail_at = 0;
    sim_power(&disk, seed % 3);
    int wrong = check_states(tap, &known, "failed at", at);
    sim_end(&disk);
    return wrong;
}

static void test_failing_disk(struct tap *tap) {
    uint64_t operations = count_operations();
    TEST(tap, "each operation fails once", {
        for (uint64_t at = 1, wrong = 0; at <= operations && wrong < 3; at++)
            for (uint64_t seed = 1; seed <= TRIES; seed++)
                wrong += (uint64_t)fail_at(tap, at, 1, EIO, seed);
    });
    TEST(tap, "from each operation on several fail, by a full disk, too", {
        for (uint64_t at = 1, wrong = 0; at <= operations && wrong < 3; at++)
            for (uint64_t count = 2; count < 40; count += 5)
                wrong += (uint64_t)fail_at(tap, at, count, count % 2 ? EIO : ENOSPC, at + count);
    });
    TEST(tap, "one failure never keeps a group from being durable", {
        for (uint64_t at = 1; at <= operations; at++) {
            struct known known = {{0}, {0}};
            sim_begin(&disk);
            struct persist *persist = open_quietly();
            write_round(persist, 0, &known);
            disk.fail_at = disk.fail_until = disk.operations + at;
            write_round(persist, 1, &known);
            // A segment that cannot be made is tried for again by the next write only.
            write_round(persist, 2, &known);
            write_round(persist, 3, &known);
            for (uint32_t shard = 0; shard < SHARDS; shard++)
                CHECK(tap, known.durable[shard] + 1 >= known.tried[shard]);
            persist_close(persist);
            sim_end(&disk);
        }
    });
}

// Many segments that do not count any more, which then go one after the other.
static int cut_cleaning_at(struct tap *tap, uint64_t at, uint64_t seed) {
    struct known known = {{0}, {0}};
    sim_begin(&disk);
    disk.seed = seed;
    struct persist *persist = open_quietly();
    for (uint64_t version = 1; version <= 30; version++) {
        rig_write_one(persist, version < 4 ? (uint32_t)version : 0, version, NULL);
        known.durable[version < 4 ? version : 0] = version;
    }
    disk.cut_at = disk.operations + at;
    memcpy(known.tried, known.durable, sizeof known.tried);
    while (persist_wants_cleaning(persist) && !persist_clean(persist, NULL))
        ;
    persist_close(persist);
    bool went = disk.dead;
    sim_power(&disk, SIM_LOSES_SOME);
    int wrong = check_states(tap, &known, "cleaning cut at", at);
    sim_end(&disk);
    return wrong ? 2 : went;
}

static void test_cleaning(struct tap *tap) {
    TEST(tap, "the power goes while segments are removed", {
        int last = 1;
        for (uint64_t at = 1; last == 1; at++)
            for (uint64_t seed = 1; seed <= TRIES && last < 2; seed++)
                last = cut_cleaning_at(tap, at, seed);
        CHECK_INT(tap, last, 0);
    });
}

int main(void) {
    struct tap tap = {0};
    test_kills(&tap);
    test_failing_starts(&tap);
    test_misreads(&tap);
    test_removals(&tap);
    test_cuts(&tap);
    test_failing_disk(&tap);
    test_cleaning(&tap);
    return tap_done(&tap);
}
