// Copies of a server's shards, as a store takes them, and a server that goes on from such copies.
#include <pthread.h>
#include <stdlib.h>

#include "../helper/ps_stand.h"
#include "../helper/tap.h"
#include "core/error.h"

static void snapshot_make(struct ps_snapshot *snapshot, uint32_t shard) {
    *snapshot = (struct ps_snapshot){.shard = shard,
                                     .blocks = PS_BLOCKS,
                                     .weights = mem_floats(PROTO_SHARD_FLOATS),
                                     .states = {mem_floats(PROTO_SHARD_FLOATS)}};
}

static void snapshot_free(struct ps_snapshot *snapshot) {
    free(snapshot->weights);
    free(snapshot->states[0]);
    free(snapshot->pushes);
}

static enum proto_refusal snapshot_take(struct rig *rig, struct ps_snapshot *snapshot) {
    struct reply reply = {0};
    ps_snapshot(rig->ps, snapshot, reply_take, &reply);
    reply_wait(&reply);
    return reply.code;
}

static enum proto_refusal snapshot_put(struct rig *rig, struct ps_snapshot *snapshot) {
    struct reply reply = {0};
    ps_restore(rig->ps, snapshot, reply_take, &reply);
    reply_wait(&reply);
    return reply.code;
}

static enum proto_refusal push_gradient(struct rig *rig, uint64_t session, uint64_t sequence,
                                        uint32_t shard, uint64_t version, const float *values,
                                        struct reply *reply) {
    const struct proto_piece piece = rig_shard(rig, shard, version);
    return rig_push(rig, (struct shove){session, sequence, PROTO_UPDATE_GRADIENT, 1, 0.1}, &piece,
                    1, values, reply);
}

// The stamp of a shard; version 0: it has no weights.
static struct proto_piece stamp_of(const struct rig *rig, uint32_t shard) {
    struct proto_piece piece = {.version = 0};
    ps_stamps(rig->ps, shard, 1, &piece);
    return piece;
}

static const struct push_history *history_of(const struct ps_snapshot *snapshot, uint64_t session) {
    for (uint32_t i = 0; i < snapshot->push_count; i++)
        if (snapshot->pushes[i].session == session)
            return &snapshot->pushes[i];
    return NULL;
}

// --- taking ------------------------------------------------------------------------------

static void test_take(struct tap *tap) {
    TEST(tap, "a copy has a shard's weights, state, stamp, and which pushes were applied", {
        struct stand stand;
        struct ps_snapshot snapshot;
        struct reply reply;
        struct ps_figures figures;
        snapshot_make(&snapshot, 1);
        if (stand_open(&stand, tap, async, 2)) {
            struct rig *rig = &stand.rig;
            float *now = mem_floats(rig->n);
            push_gradient(rig, 1, 1, 1, 1, stand.values, &reply);
            push_gradient(rig, 2, 5, 1, 1, stand.values, &reply);
            push_gradient(rig, 2, 4, 1, 1, stand.values, &reply);
            CHECK_INT(tap, snapshot_take(rig, &snapshot), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, snapshot.version, 4);
            CHECK_INT(tap, snapshot.epoch, RIG_EPOCH);
            CHECK_INT(tap, snapshot.floats, rig_floats(rig, 1));
            rig_read(rig, PROTO_QUANTITY_WEIGHT, now, NULL);
            CHECK(tap, !memcmp(snapshot.weights, now + PROTO_SHARD_FLOATS,
                               snapshot.floats * sizeof(float)));
            rig_read(rig, PROTO_QUANTITY_STATE, now, NULL);
            CHECK(tap, !memcmp(snapshot.states[0], now + PROTO_SHARD_FLOATS,
                               snapshot.floats * sizeof(float)));
            CHECK_INT(tap, snapshot.push_count, 2);
            const struct push_history *first = history_of(&snapshot, 1);
            const struct push_history *second = history_of(&snapshot, 2);
            CHECK(tap, first && first->high == 1 && first->applied == 1);
            CHECK(tap, second && second->high == 5 && second->applied == 3);
            ps_figures(rig->ps, &figures);
            CHECK_INT(tap, figures.pushes, 3);
            free(now);
        }
        snapshot_free(&snapshot);
        stand_close(&stand);
    });
    TEST(tap, "there is none of a shard without weights, or that the model does not have", {
        struct rig rig;
        struct ps_snapshot snapshot;
        snapshot_make(&snapshot, 1);
        if (rig_open_empty(&rig, tap, rules[1], async, 1, 1)) {
            CHECK_INT(tap, snapshot_take(&rig, &snapshot), PROTO_REFUSAL_NOT_READY);
            snapshot.shard = RIG_SHARDS;
            CHECK_INT(tap, snapshot_take(&rig, &snapshot), PROTO_REFUSAL_WRONG_SHAPE);
            CHECK_INT(tap, stamp_of(&rig, 1).version, 0);
        }
        snapshot_free(&snapshot);
        rig_close(&rig);
    });
}

struct pusher {
    struct stand *stand;
    const float *ones;
    _Atomic bool stop;
};

static void *push_all_the_time(void *context) {
    struct pusher *pusher = context;
    struct rig *rig = &pusher->stand->rig;
    for (uint64_t sequence = 1; !atomic_load(&pusher->stop); sequence++) {
        struct reply reply;
        const struct proto_piece piece = rig_shard(rig, 0, 1);
        rig_push(rig, (struct shove){1, sequence, PROTO_UPDATE_DELTA, 1, 0}, &piece, 1,
                 pusher->ones, &reply);
    }
    return NULL;
}

// Whether all floats are that many above what they were.
static bool all_added(const struct ps_snapshot *snapshot, const float *from, float added) {
    for (uint32_t i = 0; i < snapshot->floats; i++)
        if (fabsf(snapshot->weights[i] - from[i] - added) > 0.01f)
            return false;
    return true;
}

static void test_moment(struct tap *tap) {
    TEST(tap, "weights, version and pushes of a copy are of one moment, while pushes come", {
        enum { COPIES = 60 };
        struct stand stand;
        struct ps_snapshot snapshot;
        pthread_t thread;
        uint64_t before = 0;
        snapshot_make(&snapshot, 0);
        float *ones = mem_floats(PROTO_SHARD_FLOATS);
        for (size_t i = 0; i < PROTO_SHARD_FLOATS; i++)
            ones[i] = 1;
        if (stand_open(&stand, tap, async, 1)) {
            struct pusher pusher = {.stand = &stand, .ones = ones};
            if (pthread_create(&thread, NULL, push_all_the_time, &pusher))
                abort();
            for (int i = 0; i < COPIES || before < 3; i++) {
                CHECK_INT(tap, snapshot_take(&stand.rig, &snapshot), PROTO_REFUSAL_NONE);
                const struct push_history *history = history_of(&snapshot, 1);
                uint64_t pushes = history ? history->high : 0;
                CHECK_INT(tap, snapshot.version, 1 + pushes);
                CHECK(tap, snapshot.version >= before);
                CHECK(tap, all_added(&snapshot, stand.weights, (float)pushes));
                before = snapshot.version;
            }
            atomic_store(&pusher.stop, true);
            pthread_join(thread, NULL);
        }
        free(ones);
        snapshot_free(&snapshot);
        stand_close(&stand);
    });
}

// --- going on ----------------------------------------------------------------------------

// Copies of all shards of a server that was pushed to.
static bool copies_make(struct tap *tap, struct ps_snapshot copies[RIG_SHARDS],
                        float *weights_then) {
    struct stand stand;
    struct reply reply;
    bool made = stand_open(&stand, tap, async, 2);
    for (uint32_t shard = 0; shard < RIG_SHARDS && made; shard++) {
        snapshot_make(&copies[shard], shard);
        push_gradient(&stand.rig, 1, 1, shard, 1, stand.values, &reply);
        push_gradient(&stand.rig, 1, 3, shard, 1, stand.values, &reply);
        CHECK_INT(tap, snapshot_take(&stand.rig, &copies[shard]), PROTO_REFUSAL_NONE);
    }
    if (made)
        rig_read(&stand.rig, PROTO_QUANTITY_WEIGHT, weights_then, NULL);
    stand_close(&stand);
    return made;
}

static void copies_free(struct ps_snapshot copies[RIG_SHARDS]) {
    for (uint32_t shard = 0; shard < RIG_SHARDS; shard++)
        snapshot_free(&copies[shard]);
}

// A server that holds nothing and knows nobody.
static bool open_idle(struct rig *rig, struct tap *tap) {
    bool open = rig_open_empty(rig, tap, rules[1], async, 0, 1);
    ps_close(rig->ps);
    const struct ps_options options = {.model = rig->model,
                                       .kernels = kernels_best(),
                                       .optimizer = rules[1],
                                       .protocol = async,
                                       .threads = 1};
    return ps_open(&rig->ps, &options, NULL) == STATUS_OK && open;
}

static bool same_weights(struct rig *rig, const float *wanted, uint64_t version) {
    float *now = mem_floats(rig->n);
    uint64_t versions[RIG_SHARDS] = {0};
    enum proto_refusal code = rig_read(rig, PROTO_QUANTITY_WEIGHT, now, versions);
    bool same = code == PROTO_REFUSAL_NONE && !memcmp(now, wanted, rig->n * sizeof(float)) &&
                versions[0] == version && versions[RIG_SHARDS - 1] == version;
    free(now);
    return same;
}

static void test_go_on(struct tap *tap) {
    static const uint64_t sessions[] = {2, 1};
    struct ps_snapshot copies[RIG_SHARDS];
    struct reply reply;
    float *then = mem_floats(700000), *values = numbers(700000, 2, 0.1);
    if (!copies_make(tap, copies, then))
        return;
    TEST(tap, "restored before the routes come, shards keep weights, version and pushes", {
        struct rig rig;
        struct ps_snapshot again;
        struct proto_piece piece = rig_piece(0, 0, 10, 0);
        if (open_idle(&rig, tap)) {
            for (uint32_t i = 0; i < RIG_SHARDS; i++)
                CHECK_INT(tap, snapshot_put(&rig, &copies[i]), PROTO_REFUSAL_NONE);
            piece.epoch = 0;
            rig_pull_begin(&rig, 0, PROTO_QUANTITY_WEIGHT, 0, &piece, 1, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NOT_HERE);
            CHECK_INT(tap, stamp_of(&rig, 1).version, 3);
            CHECK_INT(tap, stamp_of(&rig, 1).epoch, RIG_EPOCH);
            rig_route(&rig, RIG_EPOCH + 4, RIG_MEMBER);
            CHECK_INT(tap, ps_members(rig.ps, sessions, NULL, 2, NULL), STATUS_OK);
            snapshot_make(&again, 0);
            CHECK_INT(tap, snapshot_take(&rig, &again), PROTO_REFUSAL_NONE); // has seen the routes
            snapshot_free(&again);
            piece = rig_shard(&rig, 0, 0);
            piece.epoch = RIG_EPOCH + 4;
            rig_pull_begin(&rig, 0, PROTO_QUANTITY_WEIGHT, 3, &piece, 1, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, reply.versions[0], 3);
            CHECK(tap, !memcmp(reply.part[0].at, then, reply.part[0].size));
            CHECK_INT(tap, stamp_of(&rig, 0).epoch, RIG_EPOCH);
            piece.version = 3;
            for (uint64_t sequence = 1; sequence <= 4; sequence++) {
                rig_push(&rig, (struct shove){1, sequence, PROTO_UPDATE_GRADIENT, 1, 0.1}, &piece,
                         1, values, &reply);
                CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
                CHECK_INT(tap, reply.repeated, sequence == 1 || sequence == 3);
            }
            CHECK_INT(tap, stamp_of(&rig, 0).version, 5);
            CHECK_INT(tap, stamp_of(&rig, 0).epoch, RIG_EPOCH + 4);
        }
        rig_close(&rig);
    });
    TEST(tap, "restored when the routes have come, they are the same", {
        struct rig rig;
        if (open_idle(&rig, tap)) {
            rig_route(&rig, RIG_EPOCH, RIG_MEMBER);
            for (uint32_t i = 0; i < RIG_SHARDS; i++)
                CHECK_INT(tap, snapshot_put(&rig, &copies[i]), PROTO_REFUSAL_NONE);
            CHECK(tap, same_weights(&rig, then, 3));
        }
        rig_close(&rig);
    });
    TEST(tap, "what a restored server copies has the pushes of sessions that did not come back", {
        struct rig rig;
        struct ps_snapshot again;
        snapshot_make(&again, 2);
        if (open_idle(&rig, tap)) {
            CHECK_INT(tap, snapshot_put(&rig, &copies[2]), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, snapshot_take(&rig, &again), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, again.version, 3);
            CHECK_INT(tap, again.epoch, RIG_EPOCH);
            CHECK_INT(tap, again.push_count, copies[2].push_count);
            const struct push_history *history = history_of(&again, 1);
            CHECK(tap, history && history->high == 3 && history->applied == 5);
        }
        snapshot_free(&again);
        rig_close(&rig);
    });
    TEST(tap, "weights that are stored afterwards replace what was restored", {
        struct rig rig;
        if (open_idle(&rig, tap)) {
            for (uint32_t i = 0; i < RIG_SHARDS; i++)
                snapshot_put(&rig, &copies[i]);
            rig_route(&rig, RIG_EPOCH, RIG_MEMBER);
            CHECK_INT(tap, rig_store(&rig, PROTO_QUANTITY_WEIGHT, 9, values), PROTO_REFUSAL_NONE);
            CHECK(tap, same_weights(&rig, values, 9));
        }
        rig_close(&rig);
    });
    TEST(tap, "a copy of another shape, or for a shard with weights, is refused", {
        struct rig rig;
        if (open_idle(&rig, tap)) {
            struct ps_snapshot other = copies[0];
            other.floats--;
            CHECK_INT(tap, snapshot_put(&rig, &other), PROTO_REFUSAL_WRONG_SHAPE);
            other = copies[0];
            other.version = 0;
            CHECK_INT(tap, snapshot_put(&rig, &other), PROTO_REFUSAL_WRONG_SHAPE);
            other = copies[0];
            other.shard = RIG_SHARDS;
            CHECK_INT(tap, snapshot_put(&rig, &other), PROTO_REFUSAL_WRONG_SHAPE);
            CHECK_INT(tap, snapshot_put(&rig, &copies[0]), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, snapshot_put(&rig, &copies[0]), PROTO_REFUSAL_BUSY);
            rig_route(&rig, RIG_EPOCH, RIG_MEMBER);
            CHECK_INT(tap, snapshot_put(&rig, &copies[0]), PROTO_REFUSAL_BUSY);
        }
        rig_close(&rig);
    });
    copies_free(copies);
    free(then);
    free(values);
}

static void test_loss(struct tap *tap) {
    TEST(tap, "who loses a shard keeps what it has, and has it when it comes back", {
        struct stand stand;
        struct reply reply;
        struct ps_snapshot snapshot;
        snapshot_make(&snapshot, 1);
        if (stand_open(&stand, tap, async, 1)) {
            struct rig *rig = &stand.rig;
            push_gradient(rig, 1, 1, 1, 1, stand.values, &reply);
            rig_route(rig, RIG_EPOCH + 1, RIG_MEMBER + 1);
            CHECK_INT(tap, snapshot_take(rig, &snapshot), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, snapshot.version, 2);
            CHECK_INT(tap, snapshot.epoch, RIG_EPOCH);
            CHECK_INT(tap, stamp_of(rig, 1).version, 2);
            CHECK_INT(tap, stamp_of(rig, 1).epoch, RIG_EPOCH);
            rig_route(rig, RIG_EPOCH + 2, RIG_MEMBER);
            CHECK_INT(tap, snapshot_take(rig, &snapshot), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, snapshot.version, 2);
            CHECK_INT(tap, stamp_of(rig, 1).epoch, RIG_EPOCH);
        }
        snapshot_free(&snapshot);
        stand_close(&stand);
    });
}

static void test_pause(struct tap *tap) {
    TEST(tap, "while it is paused pushes are told to come later, and pulls are answered", {
        struct stand stand;
        struct reply reply;
        if (stand_open(&stand, tap, async, 1)) {
            ps_pause(stand.rig.ps, true);
            CHECK_INT(tap, push_one(&stand, 1, 1, 0, 1, &reply), PROTO_REFUSAL_BUSY);
            CHECK(tap, reply.detail > 0);
            CHECK(tap, stand_untouched(&stand));
            ps_pause(stand.rig.ps, false);
            CHECK_INT(tap, push_one(&stand, 1, 1, 0, 1, &reply), PROTO_REFUSAL_NONE);
            CHECK(tap, !reply.repeated);
        }
        stand_close(&stand);
    });
}

int main(void) {
    struct tap tap = {0};
    test_take(&tap);
    test_moment(&tap);
    test_go_on(&tap);
    test_loss(&tap);
    test_pause(&tap);
    return tap_done(&tap);
}
