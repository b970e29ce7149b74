// Shards that have copies on other servers: what is told of them, when pushes are answered, and
// what is read and installed.
#include <stdlib.h>

#include "../helper/ps_stand.h"
#include "../helper/tap.h"
#include "core/clock.h"
#include "core/error.h"

enum { OTHER = RIG_MEMBER + 1 };

static void route(struct rig *rig, uint64_t epoch, uint32_t primary, uint32_t second) {
    struct proto_place places[RIG_BUCKETS];
    for (uint32_t i = 0; i < RIG_BUCKETS; i++) {
        places[i] = rig_bucket(i, epoch, primary);
        places[i].second = second;
    }
    ps_route(rig->ps, places, RIG_BUCKETS, RIG_MEMBER);
}

// A server with a secondary, all of whose shards are replicated at version 1, and a lease.
static bool copied_open(struct stand *stand, struct tap *tap, struct protocol protocol,
                        int workers) {
    if (!stand_open(stand, tap, protocol, workers))
        return false;
    route(&stand->rig, RIG_EPOCH, RIG_MEMBER, OTHER);
    ps_lease(stand->rig.ps, clock_seconds() + 1000);
    for (uint32_t i = 0; i < RIG_SHARDS; i++)
        ps_replicated(stand->rig.ps, i, 1);
    return true;
}

static void replies(bool replicates, struct rig *rig) {
    ps_settings(rig->ps, &rules[1], &async, replicates, NULL);
}

static void begin_push(struct stand *stand, uint64_t sequence, uint32_t first, uint32_t count,
                       struct reply *reply) {
    struct proto_piece pieces[RIG_SHARDS];
    for (uint32_t i = 0; i < count; i++)
        pieces[i] = rig_shard(&stand->rig, first + i, 1);
    rig_push_begin(&stand->rig, (struct shove){1, sequence, PROTO_UPDATE_DELTA, 1, 0}, pieces,
                   count, stand->values, reply);
}

static void begin_pull(struct rig *rig, uint32_t shard, uint64_t least, struct reply *reply) {
    const struct proto_piece piece = rig_shard(rig, shard, 0);
    const struct proto_pull pull = {
        .session = 1, .quantity = PROTO_QUANTITY_WEIGHT, .least = least, .pieces = {&piece, 1}};
    *reply = (struct reply){0};
    ps_pull(rig->ps, &pull, reply_take, reply);
}

// As somebody who has this version.
static void pull_since(struct rig *rig, uint32_t shard, uint64_t version, struct reply *reply) {
    const struct proto_piece piece = rig_shard(rig, shard, version);
    const struct proto_pull pull = {
        .session = 1, .quantity = PROTO_QUANTITY_WEIGHT, .pieces = {&piece, 1}};
    *reply = (struct reply){0};
    ps_pull(rig->ps, &pull, reply_take, reply);
    reply_wait(reply);
}

// Until the shard has this version.
static void settle(struct rig *rig, uint32_t shard, uint64_t version, struct ps_snapshot *now) {
    struct reply reply;
    do {
        *now = (struct ps_snapshot){
            .shard = shard, .pushes = now->pushes, .push_room = now->push_room};
        reply = (struct reply){0};
        ps_snapshot(rig->ps, now, reply_take, &reply);
        reply_wait(&reply);
    } while (now->version != version);
}

static void test_stage(struct tap *tap) {
    TEST(tap, "a push is applied at once, told, and answered when all copies have it", {
        struct stand stand;
        struct ps_snapshot now = {0};
        struct reply reply;
        if (copied_open(&stand, tap, async, 1)) {
            replies(true, &stand.rig);
            begin_push(&stand, 1, 0, 2, &reply);
            settle(&stand.rig, 0, 2, &now);
            CHECK_INT(tap, now.version, 2);
            CHECK_INT(tap, atomic_load(&stand.rig.applied[0]), 1);
            CHECK_INT(tap, atomic_load(&stand.rig.applied[2]), 0);
            ps_replicated(stand.rig.ps, 0, 2);
            settle(&stand.rig, 0, 2, &now);
            settle(&stand.rig, 1, 2, &now);
            CHECK(tap, !atomic_load(&reply.done)); // shard 1 is not on all
            ps_replicated(stand.rig.ps, 1, 2);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
            CHECK(tap, !reply.repeated);
            CHECK_INT(tap, reply.versions[0], 2);
        }
        free(now.pushes);
        stand_close(&stand);
    });
    TEST(tap, "a push that is repeated is answered when the first one would be", {
        struct stand stand;
        struct ps_snapshot now = {0};
        struct reply first, second;
        if (copied_open(&stand, tap, async, 1)) {
            replies(true, &stand.rig);
            begin_push(&stand, 1, 0, 1, &first);
            settle(&stand.rig, 0, 2, &now); // one that comes before is told to ask again
            begin_push(&stand, 1, 0, 1, &second);
            settle(&stand.rig, 0, 2, &now);
            CHECK(tap, !atomic_load(&second.done));
            ps_replicated(stand.rig.ps, 0, 2);
            reply_wait(&first);
            reply_wait(&second);
            CHECK(tap, !first.repeated && second.repeated);
            CHECK_INT(tap, second.code, PROTO_REFUSAL_NONE);
        }
        free(now.pushes);
        stand_close(&stand);
    });
    TEST(tap, "ack=memory answers at once, with the version that the push made", {
        struct stand stand;
        struct reply reply;
        if (copied_open(&stand, tap, async, 1)) {
            replies(false, &stand.rig);
            begin_push(&stand, 1, 0, 1, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, reply.versions[0], 2);
            CHECK_INT(tap, atomic_load(&stand.rig.applied[0]), 1);
        }
        stand_close(&stand);
    });
    TEST(tap, "who loses a shard refuses what waits there, and its successor has to be asked", {
        struct stand stand;
        struct ps_snapshot now = {0};
        struct reply reply;
        if (copied_open(&stand, tap, async, 1)) {
            replies(true, &stand.rig);
            begin_push(&stand, 1, 0, 1, &reply);
            settle(&stand.rig, 0, 2, &now);
            route(&stand.rig, RIG_EPOCH + 1, OTHER, RIG_MEMBER);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NOT_HERE);
            settle(&stand.rig, 0, 2, &now);
            CHECK_INT(tap, now.version, 2); // it keeps what it has
            route(&stand.rig, RIG_EPOCH, OTHER, RIG_MEMBER);
            begin_pull(&stand.rig, 0, 0, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NOT_HERE);
        }
        free(now.pushes);
        stand_close(&stand);
    });
    TEST(tap, "who is the only one that is left answers what waited", {
        struct stand stand;
        struct ps_snapshot now = {0};
        struct reply reply;
        if (copied_open(&stand, tap, async, 1)) {
            replies(true, &stand.rig);
            begin_push(&stand, 1, 0, 1, &reply);
            settle(&stand.rig, 0, 2, &now);
            CHECK(tap, !atomic_load(&reply.done));
            route(&stand.rig, RIG_EPOCH + 1, RIG_MEMBER, PROTO_NOBODY);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, reply.versions[0], 2);
        }
        free(now.pushes);
        stand_close(&stand);
    });
}

static void test_reading(struct tap *tap) {
    TEST(tap, "pulls hear the version that all copies have, and wait for it", {
        struct stand stand;
        struct ps_snapshot now = {0};
        struct reply push, pull, waiting;
        if (copied_open(&stand, tap, async, 1)) {
            replies(true, &stand.rig);
            begin_push(&stand, 1, 0, 1, &push);
            settle(&stand.rig, 0, 2, &now);
            begin_pull(&stand.rig, 0, 0, &pull);
            reply_wait(&pull);
            CHECK_INT(tap, pull.versions[0], 1);
            begin_pull(&stand.rig, 0, 2, &waiting);
            settle(&stand.rig, 0, 2, &now);
            CHECK(tap, !atomic_load(&waiting.done));
            ps_replicated(stand.rig.ps, 0, 2);
            reply_wait(&waiting);
            CHECK_INT(tap, waiting.versions[0], 2);
            reply_wait(&push);
        }
        free(now.pushes);
        stand_close(&stand);
    });
    TEST(tap, "under ack=memory pulls are answered by the newest weights, and wait for no copy", {
        struct stand stand;
        struct reply push, pull, waiting;
        struct ps_figures figures;
        if (copied_open(&stand, tap, async, 1)) {
            replies(false, &stand.rig);
            begin_pull(&stand.rig, 0, 2, &waiting);
            begin_push(&stand, 1, 0, 1, &push);
            reply_wait(&push);
            reply_wait(&waiting);
            CHECK_INT(tap, waiting.versions[0], 2);
            pull_since(&stand.rig, 0, 1, &pull); // that all copies have
            CHECK_INT(tap, pull.versions[0], 2);
            CHECK_INT(tap, pull.parts, 1);
            pull_since(&stand.rig, 0, 2, &pull);
            CHECK_INT(tap, pull.parts, 0);
            ps_figures(stand.rig.ps, &figures);
            CHECK_INT(tap, figures.behind, 1);
        }
        stand_close(&stand);
    });
    TEST(tap, "before the copies are of one version pulls are put off, and pushes wait", {
        struct stand stand;
        struct ps_snapshot now = {0};
        struct reply pull, push;
        struct proto_piece versions[RIG_SHARDS];
        if (copied_open(&stand, tap, async, 1)) {
            replies(false, &stand.rig); // though they need not
            route(&stand.rig, RIG_EPOCH + 1, OTHER, RIG_MEMBER);
            route(&stand.rig, RIG_EPOCH, RIG_MEMBER, OTHER); // it takes over
            begin_pull(&stand.rig, 0, 0, &pull);
            reply_wait(&pull);
            CHECK_INT(tap, pull.code, PROTO_REFUSAL_NOT_READY);
            CHECK_INT(tap, ps_versions(stand.rig.ps, 0, RIG_SHARDS, versions), 0);
            begin_push(&stand, 1, 0, 1, &push);
            settle(&stand.rig, 0, 2, &now);
            CHECK(tap, !atomic_load(&push.done));
            ps_replicated(stand.rig.ps, 0, 2);
            reply_wait(&push);
            CHECK_INT(tap, push.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, ps_versions(stand.rig.ps, 0, RIG_SHARDS, versions), 1);
            CHECK_INT(tap, versions[0].version, 2);
        }
        free(now.pushes);
        stand_close(&stand);
    });
    TEST(tap, "without a lease shards with copies are not served, and those without are", {
        struct stand stand;
        struct reply reply;
        if (copied_open(&stand, tap, async, 1)) {
            ps_lease(stand.rig.ps, clock_seconds());
            begin_pull(&stand.rig, 0, 0, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_BUSY);
            begin_push(&stand, 1, 0, 1, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_BUSY);
            route(&stand.rig, RIG_EPOCH, RIG_MEMBER, PROTO_NOBODY);
            begin_push(&stand, 1, 0, 1, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
        }
        stand_close(&stand);
    });
    TEST(tap, "versions of a shard with copies never go back, whoever stores", {
        struct stand stand;
        struct ps_snapshot now = {0};
        struct reply push;
        if (copied_open(&stand, tap, async, 1)) {
            replies(false, &stand.rig);
            begin_push(&stand, 1, 0, 1, &push);
            reply_wait(&push);
            CHECK_INT(tap, rig_store(&stand.rig, PROTO_QUANTITY_WEIGHT, 1, stand.values),
                      PROTO_REFUSAL_WRONG_SHAPE);
        }
        free(now.pushes);
        stand_close(&stand);
    });
}

// A server of ack=durable without copies elsewhere, whose weights of version 1 are on its disk.
static bool durable_open(struct stand *stand, struct tap *tap) {
    const struct ps_options options = {.optimizer = rules[1],
                                       .protocol = async,
                                       .threads = 2,
                                       .replicates = true,
                                       .durable = true};
    struct ps_snapshot now = {0};
    struct reply reply;
    *stand = (struct stand){.values = numbers(700000, 2, 0.1)};
    if (!rig_open_options(&stand->rig, tap, options, 1))
        return false;
    rig_store_begin(&stand->rig, PROTO_QUANTITY_WEIGHT, 1, stand->values, &reply);
    for (uint32_t i = 0; i < RIG_SHARDS; i++)
        settle(&stand->rig, i, 1, &now);
    CHECK(tap, !atomic_load(&reply.done));
    for (uint32_t i = 0; i < RIG_SHARDS; i++)
        ps_replicated(stand->rig.ps, i, 1);
    reply_wait(&reply);
    CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
    free(now.pushes);
    return true;
}

static void test_durable(struct tap *tap) {
    TEST(tap, "with ack=durable a push waits for the disk where there are no copies, too", {
        struct stand stand;
        struct ps_snapshot now = {0};
        struct reply push, pull;
        if (durable_open(&stand, tap)) {
            uint32_t told = atomic_load(&stand.rig.applied[0]);
            begin_push(&stand, 1, 0, 1, &push); // nobody has given it a lease
            settle(&stand.rig, 0, 2, &now);
            CHECK_INT(tap, atomic_load(&stand.rig.applied[0]), told + 1);
            begin_pull(&stand.rig, 0, 0, &pull);
            reply_wait(&pull);
            CHECK_INT(tap, pull.versions[0], 1); // what a power cut cannot take back
            CHECK(tap, !atomic_load(&push.done));
            ps_replicated(stand.rig.ps, 0, 2);
            reply_wait(&push);
            CHECK_INT(tap, push.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, push.versions[0], 2);
        }
        free(now.pushes);
        stand_close(&stand);
    });
    TEST(tap, "and what is on the disk stays known when a copy comes, and when it goes", {
        struct stand stand;
        struct ps_snapshot now = {0};
        struct reply push, pull;
        if (durable_open(&stand, tap)) {
            route(&stand.rig, RIG_EPOCH, RIG_MEMBER, OTHER);
            begin_pull(&stand.rig, 0, 0, &pull);
            reply_wait(&pull);
            CHECK_INT(tap, pull.code, PROTO_REFUSAL_BUSY); // a lease is needed with copies
            ps_lease(stand.rig.ps, clock_seconds() + 1000);
            begin_push(&stand, 1, 0, 1, &push);
            settle(&stand.rig, 0, 2, &now);
            route(&stand.rig, RIG_EPOCH, RIG_MEMBER, PROTO_NOBODY);
            settle(&stand.rig, 0, 2, &now);
            CHECK(tap, !atomic_load(&push.done));
            ps_lease(stand.rig.ps, clock_seconds());
            begin_pull(&stand.rig, 0, 0, &pull);
            reply_wait(&pull);
            CHECK_INT(tap, pull.versions[0], 1);
            ps_replicated(stand.rig.ps, 0, 2);
            reply_wait(&push);
            CHECK_INT(tap, push.code, PROTO_REFUSAL_NONE);
        }
        free(now.pushes);
        stand_close(&stand);
    });
}

static enum proto_refusal install(struct rig *rig, struct ps_snapshot *snapshot) {
    struct reply reply = {0};
    ps_install(rig->ps, snapshot, reply_take, &reply);
    reply_wait(&reply);
    return reply.code;
}

// One float of a block changes.
static void push_block(struct stand *stand, uint64_t sequence, uint32_t shard, uint32_t block) {
    struct reply reply;
    const struct proto_piece piece = rig_piece(shard, block * PROTO_BLOCK_FLOATS + 7, 1, 1);
    rig_push(&stand->rig, (struct shove){1, sequence, PROTO_UPDATE_DELTA, 1, 0}, &piece, 1,
             stand->values, &reply);
}

static void test_blocks(struct tap *tap) {
    enum { SHARD = 1, A = 3, B = 4, C = 40 };
    TEST(tap, "what is read of a shard are the blocks that changed, and what was asked for", {
        struct stand stand;
        struct reply reply = {0};
        struct ps_snapshot now = {.shard = SHARD, .changes = true};
        now.weights = mem_floats(PROTO_SHARD_FLOATS);
        now.states[0] = mem_floats(PROTO_SHARD_FLOATS);
        float *all = NULL;
        if (copied_open(&stand, tap, async, 1)) {
            replies(false, &stand.rig);
            all = mem_floats(stand.rig.n);
            ps_snapshot(stand.rig.ps, &now, reply_take, &reply); // what was stored
            reply_wait(&reply);
            CHECK(tap, now.changed == UINT64_MAX);
            push_block(&stand, 1, SHARD, A);
            push_block(&stand, 2, SHARD, C);
            now.blocks = UINT64_C(1) << B;
            reply = (struct reply){0};
            ps_snapshot(stand.rig.ps, &now, reply_take, &reply);
            reply_wait(&reply);
            CHECK(tap, now.changed == (UINT64_C(1) << A | UINT64_C(1) << C));
            CHECK(tap, now.blocks == (now.changed | UINT64_C(1) << B));
            CHECK_INT(tap, now.version, 3);
            rig_read(&stand.rig, PROTO_QUANTITY_WEIGHT, all, NULL);
            const uint32_t blocks[] = {A, B, C};
            for (int i = 0; i < 3; i++)
                CHECK(tap, !memcmp(now.weights + i * PROTO_BLOCK_FLOATS,
                                   all + PROTO_SHARD_FLOATS + blocks[i] * PROTO_BLOCK_FLOATS,
                                   PROTO_BLOCK_FLOATS * sizeof(float)));
            now.blocks = 0;
            reply = (struct reply){0};
            ps_snapshot(stand.rig.ps, &now, reply_take, &reply);
            reply_wait(&reply);
            CHECK(tap, now.changed == 0 && now.blocks == 0);
        }
        free(all), free(now.weights), free(now.states[0]), free(now.pushes);
        stand_close(&stand);
    });
    TEST(tap, "blocks that are installed change a copy, with its stamp and its history", {
        struct stand stand, copy;
        struct reply reply = {0};
        struct ps_snapshot now = {.shard = SHARD, .blocks = PS_BLOCKS, .changes = true};
        now.weights = mem_floats(PROTO_SHARD_FLOATS);
        now.states[0] = mem_floats(PROTO_SHARD_FLOATS);
        if (copied_open(&stand, tap, async, 1) &&
            rig_open_empty(&copy.rig, tap, rules[1], async, 1, 1)) {
            float *a = mem_floats(stand.rig.n), *b = mem_floats(stand.rig.n);
            replies(false, &stand.rig);
            ps_snapshot(stand.rig.ps, &now, reply_take, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, install(&copy.rig, &now), PROTO_REFUSAL_WRONG_ROLE);
            route(&copy.rig, RIG_EPOCH + 1, OTHER, RIG_MEMBER);
            now.blocks = 1;
            CHECK_INT(tap, install(&copy.rig, &now), PROTO_REFUSAL_WRONG_SHAPE); // of nothing
            now.blocks = PS_BLOCKS;
            CHECK_INT(tap, install(&copy.rig, &now), PROTO_REFUSAL_NONE);
            push_block(&stand, 5, SHARD, A);
            now.blocks = 0;
            reply = (struct reply){0};
            ps_snapshot(stand.rig.ps, &now, reply_take, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, install(&copy.rig, &now), PROTO_REFUSAL_NONE);
            struct proto_piece stamp = {0};
            CHECK_INT(tap, ps_stamps(copy.rig.ps, SHARD, 1, &stamp), 1);
            CHECK(tap, stamp.version == 2 && stamp.epoch == RIG_EPOCH);
            for (uint32_t i = 0; i < RIG_SHARDS; i += 2) { // the others, to read all
                now.shard = i, now.blocks = PS_BLOCKS;
                reply = (struct reply){0};
                ps_snapshot(stand.rig.ps, &now, reply_take, &reply);
                reply_wait(&reply);
                CHECK_INT(tap, install(&copy.rig, &now), PROTO_REFUSAL_NONE);
            }
            route(&copy.rig, RIG_EPOCH, RIG_MEMBER, PROTO_NOBODY); // takes over, and is alone
            rig_read(&stand.rig, PROTO_QUANTITY_WEIGHT, a, NULL);
            rig_read(&copy.rig, PROTO_QUANTITY_WEIGHT, b, NULL);
            CHECK(tap, !memcmp(a, b, stand.rig.n * sizeof *a));
            const struct proto_piece piece = rig_shard(&copy.rig, SHARD, 2);
            rig_push(&copy.rig, (struct shove){1, 5, PROTO_UPDATE_DELTA, 1, 0}, &piece, 1,
                     stand.values, &reply);
            CHECK(tap, reply.code == PROTO_REFUSAL_NONE && reply.repeated);
            free(a), free(b);
        }
        free(now.weights), free(now.states[0]), free(now.pushes);
        rig_close(&copy.rig);
        stand_close(&stand);
    });
}

int main(void) {
    struct tap tap = {0};
    test_stage(&tap);
    test_reading(&tap);
    test_durable(&tap);
    test_blocks(&tap);
    return tap_done(&tap);
}
