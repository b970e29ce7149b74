// Delayed persistence of a server's shards (role/paramserver/flusher.h), on a disk in memory:
// updates fold into one write, what is written is put back, and a disk that fails or is slow makes
// pushes wait rather than risk more.
#include "../helper/ps_stand.h"
#include "../helper/sim_disk.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "role/paramserver/flusher.h"

enum { ROOM = 4 }; // segments of the disk

static const double never = 1e6, always = 1e-3; // seconds

static struct sim_disk disk;

static struct flusher_options options_of(const struct stand *stand, double every) {
    return (struct flusher_options){.ps = stand->rig.ps,
                                    .files = &disk.files,
                                    .owner = {{1, 2, 3}, "ps-a"},
                                    .parameters = stand->rig.n,
                                    .states = 1,
                                    .every = every};
}

static void disk_begin(void) {
    sim_begin(&disk);
    disk.room = (uint64_t)ROOM * PERSIST_SEGMENT;
}

static struct flusher *flusher_begin(struct tap *tap, const struct stand *stand, double every,
                                     struct flusher_restored *restored) {
    struct flusher *flusher = NULL;
    struct error err = {0};
    const struct flusher_options options = options_of(stand, every);
    if (flusher_open(&flusher, &options, restored, &err))
        FAIL(tap, "%s", err.text);
    return flusher;
}

// A server that knows its sessions and holds all shards, but has no weights.
static bool stand_open_empty(struct stand *stand, struct tap *tap) {
    *stand = (struct stand){.values = numbers(700000, 2, 0.1)};
    return rig_open_empty(&stand->rig, tap, rules[1], async, 1, 1);
}

static enum proto_refusal push_shard(struct stand *stand, uint64_t sequence, uint32_t shard,
                                     struct reply *reply) {
    const struct proto_piece piece = rig_shard(&stand->rig, shard, 1);
    return rig_push(&stand->rig, (struct shove){1, sequence, PROTO_UPDATE_GRADIENT, 1, 0.1}, &piece,
                    1, stand->values, reply);
}

static bool same_server(struct stand *a, struct stand *b) {
    float *left = mem_floats(a->rig.n), *right = mem_floats(a->rig.n);
    bool same = true;
    for (int quantity = 1; quantity <= 2; quantity++) {
        uint64_t here[RIG_SHARDS] = {0}, there[RIG_SHARDS] = {0};
        enum proto_quantity which = quantity == 1 ? PROTO_QUANTITY_WEIGHT : PROTO_QUANTITY_STATE;
        same = same && rig_read(&a->rig, which, left, here) == PROTO_REFUSAL_NONE &&
               rig_read(&b->rig, which, right, there) == PROTO_REFUSAL_NONE &&
               !memcmp(here, there, sizeof here) && !memcmp(left, right, a->rig.n * sizeof(float));
    }
    free(left);
    free(right);
    return same;
}

static void test_folding(struct tap *tap) {
    struct stand stand, other;
    struct flusher_restored restored;
    struct flusher_figures figures;
    struct reply reply;
    struct error err = {0};
    disk_begin();
    bool open = stand_open(&stand, tap, async, 1) && stand_open_empty(&other, tap);
    TEST(tap, "many updates fold into one write, which the end makes at the latest", {
        struct flusher *flusher = flusher_begin(tap, &stand, never, &restored);
        CHECK_INT(tap, restored.shards, 0);
        for (uint64_t sequence = 1; sequence <= 20 && open; sequence++)
            CHECK_INT(tap, push_shard(&stand, sequence, (uint32_t)(sequence % 2), &reply),
                      PROTO_REFUSAL_NONE);
        CHECK_INT(tap, flusher_close(flusher, &err), STATUS_OK);
        CHECK_INT(tap, disk.syncs, 2); // the second one seals the store
    });
    TEST(tap, "a server that starts with the store goes on with all of it", {
        struct flusher *flusher = flusher_begin(tap, &other, never, &restored);
        CHECK_INT(tap, restored.shards, RIG_SHARDS);
        CHECK_INT(tap, restored.version, 11);
        CHECK_INT(tap, restored.damaged + restored.strange, 0);
        CHECK(tap, same_server(&stand, &other));
        CHECK_INT(tap, push_shard(&other, 20, 0, &reply), PROTO_REFUSAL_NONE);
        CHECK(tap, reply.repeated);
        CHECK_INT(tap, push_shard(&other, 21, 0, &reply), PROTO_REFUSAL_NONE);
        CHECK(tap, !reply.repeated && reply.versions[0] == 12);
        flusher_figures(flusher, &figures);
        CHECK_INT(tap, figures.flushed, 0);
        CHECK_INT(tap, flusher_close(flusher, &err), STATUS_OK);
    });
    TEST(tap, "and writes only what changed since", {
        CHECK_INT(tap, disk.syncs, 5); // that of the opening, and two again
        struct stand third;
        if (stand_open_empty(&third, tap)) {
            struct flusher *flusher = flusher_begin(tap, &third, never, &restored);
            CHECK(tap, same_server(&third, &other));
            CHECK_INT(tap, flusher_close(flusher, &err), STATUS_OK);
            CHECK_INT(tap, disk.syncs, 6);
        }
        stand_close(&third);
    });
    stand_close(&stand);
    stand_close(&other);
    sim_end(&disk);
}

static void test_window(struct tap *tap) {
    struct stand stand;
    struct flusher_restored restored;
    struct flusher_figures figures;
    struct reply reply;
    TEST(tap, "what changes is dirty until it is written, and then at no risk", {
        disk_begin();
        if (stand_open(&stand, tap, async, 1)) {
            struct flusher *flusher = flusher_begin(tap, &stand, always, &restored);
            push_shard(&stand, 1, 2, &reply);
            do {
                sched_yield();
                flusher_figures(flusher, &figures);
            } while (!figures.flushed || figures.dirty_bytes);
            CHECK_NEAR(tap, figures.at_risk, 0, 0);
            CHECK(tap, figures.written >= figures.flushed);
            CHECK(tap, figures.flushed >= 2 * sizeof(float) * stand.rig.n);
            flusher_close(flusher, NULL);
        }
        stand_close(&stand);
        sim_end(&disk);
    });
}

// Waits until both have been said, in either order.
static void await_news(struct flusher *flusher, const char *first, const char *second) {
    for (bool had_first = false, had_second = false; !had_first || !had_second;) {
        char text[FLUSHER_NEWS] = "";
        sched_yield();
        flusher_watch(flusher);
        flusher_news(flusher, text);
        had_first = had_first || strstr(text, first);
        had_second = had_second || strstr(text, second);
    }
}

static void test_failing_disk(struct tap *tap) {
    struct stand stand;
    struct flusher_restored restored;
    struct flusher_figures figures;
    struct reply reply;
    struct error err = {0};
    TEST(tap, "a full disk is told of; pushes wait when too much is at risk, until it heals", {
        disk_begin();
        disk.failure = ENOSPC;
        disk.broken = true;
        if (stand_open(&stand, tap, async, 1)) {
            struct flusher *flusher = flusher_begin(tap, &stand, always, &restored);
            await_news(flusher, "No space left", "pushes are told to come later");
            CHECK_INT(tap, push_shard(&stand, 1, 0, &reply), PROTO_REFUSAL_BUSY);
            flusher_figures(flusher, &figures);
            CHECK(tap, figures.at_risk > FLUSHER_LIMIT * always);
            CHECK_INT(tap, figures.dirty_bytes, 2 * sizeof(float) * stand.rig.n);
            CHECK_INT(tap, figures.flushed, 0);
            atomic_store(&disk.broken, false);
            await_news(flusher, "the store is written again", "pushes are taken again");
            // A slow machine may be late once more.
            while (push_shard(&stand, 1, 0, &reply) == PROTO_REFUSAL_BUSY)
                flusher_watch(flusher);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, flusher_close(flusher, &err), STATUS_OK);
        }
        stand_close(&stand);
        sim_end(&disk);
    });
    TEST(tap, "what could not be written until the end is told", {
        disk_begin();
        disk.fail_at = 1;
        disk.fail_until = UINT64_MAX;
        if (stand_open(&stand, tap, async, 1)) {
            struct flusher *flusher = flusher_begin(tap, &stand, never, &restored);
            CHECK_INT(tap, flusher_close(flusher, &err), STATUS_IO);
            CHECK(tap, strstr(err.text, "not in the store"));
        }
        stand_close(&stand);
        sim_end(&disk);
    });
}

static void test_strangers(struct tap *tap) {
    struct stand stand;
    struct flusher_restored restored;
    struct flusher *flusher;
    struct error err = {0};
    disk_begin();
    if (stand_open(&stand, tap, async, 1))
        flusher_close(flusher_begin(tap, &stand, never, &restored), NULL);
    stand_close(&stand);
    TEST(tap, "the store of another server is refused", {
        if (stand_open_empty(&stand, tap)) {
            struct flusher_options options = options_of(&stand, never);
            options.owner.server[3] = 'b';
            CHECK_INT(tap, flusher_open(&flusher, &options, &restored, &err), STATUS_DATA);
        }
        stand_close(&stand);
    });
    TEST(tap, "shards that do not fit the model or its rule are left out, and counted", {
        if (stand_open_empty(&stand, tap)) {
            struct flusher_options options = options_of(&stand, never);
            options.states = 0;
            CHECK_INT(tap, flusher_open(&flusher, &options, &restored, &err), STATUS_OK);
            CHECK_INT(tap, restored.strange, RIG_SHARDS);
            CHECK_INT(tap, restored.shards, 0);
            flusher_close(flusher, NULL);
        }
        stand_close(&stand);
    });
    TEST(tap, "a damaged shard is named, the others are put back, and it heals when written", {
        disk.file[0].now[PERSIST_BLOCK + 100]++;
        if (stand_open_empty(&stand, tap)) {
            struct proto_piece stamps[RIG_SHARDS];
            flusher = flusher_begin(tap, &stand, never, &restored);
            CHECK_INT(tap, restored.damaged, 1);
            CHECK_INT(tap, restored.first, 0);
            CHECK_INT(tap, restored.shards, RIG_SHARDS - 1);
            CHECK_INT(tap, ps_stamps(stand.rig.ps, 0, RIG_SHARDS, stamps), RIG_SHARDS - 1);
            rig_store(&stand.rig, PROTO_QUANTITY_WEIGHT, 5, stand.values);
            CHECK_INT(tap, flusher_close(flusher, &err), STATUS_OK);
        }
        stand_close(&stand);
        if (stand_open_empty(&stand, tap)) {
            flusher_close(flusher_begin(tap, &stand, never, &restored), NULL);
            CHECK_INT(tap, restored.damaged, 0);
            CHECK_INT(tap, restored.shards, RIG_SHARDS);
            CHECK_INT(tap, restored.version, 5);
        }
        stand_close(&stand);
    });
    sim_end(&disk);
}

int main(void) {
    struct tap tap = {0};
    test_folding(&tap);
    test_window(&tap);
    test_failing_disk(&tap);
    test_strangers(&tap);
    return tap_done(&tap);
}
