// Pushes that are overtaken: by other pushes, by the end of their session, of their shards, or of
// the server. The server has one thread, which is held where the test wants it.
#include <pthread.h>

#include "../helper/ps_stand.h"
#include "../helper/tap.h"
#include "core/clock.h"
#include "core/error.h"

static const struct protocol hard = {.kind = PROTOCOL_HARDSYNC};
static const struct protocol soft = {.kind = PROTOCOL_SOFTSYNC, .n = 1};

static bool held_open(struct stand *stand, struct tap *tap, struct protocol protocol, int workers) {
    return stand_open_with(stand, tap, protocol, workers, 1);
}

// A delta of one float of each of these shards.
static void push_ones(struct stand *stand, uint64_t sequence, uint32_t first, uint32_t count,
                      struct reply *reply) {
    struct proto_piece pieces[RIG_SHARDS];
    for (uint32_t i = 0; i < count; i++)
        pieces[i] = rig_piece(first + i, 5, 1, 1);
    rig_push_begin(&stand->rig, (struct shove){1, sequence, PROTO_UPDATE_DELTA, 1, 0}, pieces,
                   count, stand->values, reply);
}

static void test_sequences(struct tap *tap) {
    TEST(tap, "one that is applied long after its number is not taken for a later one", {
        struct stand stand;
        struct hold hold;
        struct reply late, early, reply;
        if (held_open(&stand, tap, async, 1)) {
            hold_begin(&hold, &stand.rig);
            push_ones(&stand, 1, 1, 2, &late); // another shard is asked, too
            push_ones(&stand, 70, 1, 1, &early);
            hold_end(&hold);
            reply_wait(&late);
            reply_wait(&early);
            CHECK_INT(tap, late.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, late.versions[0], 3); // behind the other
            CHECK_INT(tap, early.code, PROTO_REFUSAL_NONE);
            for (uint64_t sequence = 7; sequence < 70; sequence++) {
                push_ones(&stand, sequence, 1, 1, &reply);
                reply_wait(&reply);
                CHECK(tap, reply.code == PROTO_REFUSAL_NONE && !reply.repeated);
            }
        }
        stand_close(&stand);
    });
}

static void test_sessions(struct tap *tap) {
    TEST(tap, "who is over when its push is looked at hears so, though it was applied before", {
        struct stand stand;
        struct hold hold;
        struct reply reply;
        const uint64_t left[] = {2};
        if (held_open(&stand, tap, async, 2)) {
            push_ones(&stand, 1, 1, 1, &reply);
            reply_wait(&reply);
            hold_begin(&hold, &stand.rig);
            push_ones(&stand, 1, 1, 1, &reply);
            CHECK_INT(tap, ps_members(stand.rig.ps, left, NULL, 1, NULL), STATUS_OK);
            hold_end(&hold);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_WRONG_SESSION);
        }
        stand_close(&stand);
    });
}

static void test_many_sessions(struct tap *tap) {
    TEST(tap, "who is over is told from who is not known yet, of however many there were", {
        enum { MANY = 3000 };
        struct stand stand;
        struct reply reply;
        uint64_t sessions[MANY];
        for (uint64_t i = 0; i < MANY; i++)
            sessions[i] = 10 + i;
        if (stand_open(&stand, tap, async, 1)) {
            CHECK_INT(tap, ps_members(stand.rig.ps, sessions, NULL, MANY, NULL), STATUS_OK);
            CHECK_INT(tap, ps_members(stand.rig.ps, sessions, NULL, 1, NULL), STATUS_OK);
            CHECK_INT(tap, push_one(&stand, 10, 1, 0, 1, &reply), PROTO_REFUSAL_NONE);
            for (int i = 1; i < MANY; i++)
                CHECK_INT(tap, push_one(&stand, sessions[i], 1, 0, 1, &reply),
                          PROTO_REFUSAL_WRONG_SESSION);
            CHECK_INT(tap, push_one(&stand, 10 + MANY, 1, 0, 1, &reply), PROTO_REFUSAL_BUSY);
            CHECK_INT(tap, push_one(&stand, 9, 1, 0, 1, &reply), PROTO_REFUSAL_BUSY);
        }
        stand_close(&stand);
    });
}

static void test_routes(struct tap *tap) {
    TEST(tap, "one whose shards go away while others are asked is refused, and never applied", {
        struct stand stand;
        struct hold before;
        struct hold between;
        struct reply reply;
        struct ps_figures figures;
        if (held_open(&stand, tap, async, 1)) {
            hold_begin(&before, &stand.rig);
            push_ones(&stand, 1, 1, 2, &reply);
            hold_ask(&between, &stand.rig, 2); // when both shards have agreed
            hold_end(&before);
            hold_await(&between);
            rig_route(&stand.rig, RIG_EPOCH + 1, RIG_MEMBER + 1);
            hold_end(&between);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NOT_HERE);
            CHECK_INT(tap, reply.detail, 1);
            ps_figures(stand.rig.ps, &figures);
            CHECK_INT(tap, figures.pushes, 0);
            CHECK_INT(tap, figures.queued, 0);
            CHECK_INT(tap, figures.held, 0);
            CHECK_INT(tap, figures.version, 0);
        }
        stand_close(&stand);
    });
    TEST(tap,
         "a shard that goes and comes back, and one that stays, has its weights and knows its "
         "pushes",
         {
             struct stand stand;
             struct reply reply;
             if (held_open(&stand, tap, async, 1)) {
                 struct proto_piece piece = rig_piece(1, 5, 1, 1);
                 const struct shove shove = {1, 1, PROTO_UPDATE_DELTA, 1, 0};
                 piece.epoch = RIG_EPOCH + 1;
                 rig_route(&stand.rig, RIG_EPOCH + 1, RIG_MEMBER);
                 rig_push(&stand.rig, shove, &piece, 1, stand.values, &reply);
                 CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
                 CHECK_INT(tap, reply.versions[0], 2);
                 ps_route(stand.rig.ps, NULL, 0, RIG_MEMBER); // no routes change nothing
                 rig_push(&stand.rig, shove, &piece, 1, stand.values, &reply);
                 CHECK(tap, reply.code == PROTO_REFUSAL_NONE && reply.repeated);
                 piece.epoch = RIG_EPOCH + 3;
                 rig_route(&stand.rig, RIG_EPOCH + 2, RIG_MEMBER + 1);
                 rig_route(&stand.rig, RIG_EPOCH + 3, RIG_MEMBER);
                 rig_push(&stand.rig, shove, &piece, 1, stand.values, &reply);
                 CHECK(tap, reply.code == PROTO_REFUSAL_NONE && reply.repeated);
                 CHECK_INT(tap, reply.versions[0], 2);
             }
             stand_close(&stand);
         });
}

static void test_versions(struct tap *tap) {
    TEST(tap, "shards that come back have the version that they had", {
        struct stand stand;
        struct reply reply;
        struct ps_figures figures;
        if (held_open(&stand, tap, async, 1)) {
            push_ones(&stand, 1, 0, RIG_SHARDS, &reply);
            reply_wait(&reply);
            ps_figures(stand.rig.ps, &figures);
            CHECK_INT(tap, figures.version, 2);
            rig_route(&stand.rig, RIG_EPOCH + 1, RIG_MEMBER + 1);
            rig_route(&stand.rig, RIG_EPOCH + 2, RIG_MEMBER);
            ps_figures(stand.rig.ps, &figures);
            CHECK_INT(tap, figures.version, 2);
            CHECK_INT(tap, figures.held, RIG_SHARDS);
        }
        stand_close(&stand);
    });
}

static void *close_server(void *context) {
    ps_close(context);
    return NULL;
}

static void test_end(struct tap *tap) {
    TEST(tap, "what nobody has looked at when the server ends is refused, and told so", {
        struct stand stand;
        struct hold hold;
        struct reply push, wait, now;
        pthread_t closer;
        struct proto_piece piece = rig_piece(1, 0, 1, 0);
        if (held_open(&stand, tap, async, 1)) {
            hold_begin(&hold, &stand.rig);
            push_ones(&stand, 1, 1, 2, &push);
            rig_pull_begin(&stand.rig, 1, PROTO_QUANTITY_WEIGHT, 5, &piece, 1, &wait);
            pthread_create(&closer, NULL, close_server, stand.rig.ps);
            do // until it has begun to end
                rig_pull_begin(&stand.rig, 1, PROTO_QUANTITY_WEIGHT, 0, &piece, 1, &now);
            while (now.code != PROTO_REFUSAL_STOPPING);
            hold_end(&hold);
            pthread_join(closer, NULL);
            stand.rig.ps = NULL;
            CHECK(tap, atomic_load(&push.done) && atomic_load(&wait.done));
            CHECK_INT(tap, push.code, PROTO_REFUSAL_STOPPING);
            CHECK_INT(tap, wait.code, PROTO_REFUSAL_STOPPING);
        }
        stand_close(&stand);
    });
}

// --- turns --------------------------------------------------------------------------------

// Parts of a turn of shard 2.
static void push_part(struct stand *stand, uint64_t session, uint64_t sequence,
                      const struct proto_piece *pieces, uint32_t count, struct reply *reply) {
    rig_push_begin(&stand->rig, (struct shove){session, sequence, 0, 8, 0.1}, pieces, count,
                   stand->values, reply);
}

static void test_turns(struct tap *tap) {
    TEST(tap, "hardsync: a turn's messages may interleave, and must not overlap", {
        struct stand stand;
        struct reply first, second, other, reply;
        struct ps_figures figures;
        if (stand_open(&stand, tap, hard, 2)) {
            uint32_t end = (uint32_t)rig_floats(&stand.rig, 2);
            const struct proto_piece one[] = {rig_piece(2, 0, 10, 1), rig_piece(2, 20, 10, 1)};
            const struct proto_piece two[] = {rig_piece(2, 10, 10, 1),
                                              rig_piece(2, 30, end - 30, 1)};
            const struct proto_piece over[] = {rig_piece(2, 9, 1, 1), rig_piece(2, 20, 1, 1),
                                               rig_piece(2, 29, 1, 1), rig_piece(2, 30, 1, 1),
                                               rig_piece(2, end - 1, 1, 1)};
            const struct proto_piece all = rig_piece(2, 0, end, 1);
            push_part(&stand, 1, 1, one, 2, &first);
            push_part(&stand, 1, 2, two, 2, &second);
            rig_wait_queued(&stand.rig, 2);
            for (uint32_t i = 0; i < sizeof over / sizeof *over; i++) {
                push_part(&stand, 1, 3 + i, &over[i], 1, &reply);
                reply_wait(&reply);
                CHECK_INT(tap, reply.code, PROTO_REFUSAL_TOO_STALE);
            }
            push_part(&stand, 2, 1, &all, 1, &other);
            reply_wait(&first);
            reply_wait(&second);
            reply_wait(&other);
            CHECK_INT(tap, first.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, second.versions[1], 2);
            CHECK_INT(tap, other.versions[0], 2);
            ps_figures(stand.rig.ps, &figures);
            CHECK_INT(tap, figures.updates, 1);
            CHECK_INT(tap, figures.floats, 2 * end);
        }
        stand_close(&stand);
    });
    TEST(tap, "softsync: who has no samples is a turn where gradients wait, else just answered", {
        struct stand stand;
        struct reply alone, with, none;
        struct ps_figures figures;
        if (stand_open(&stand, tap, soft, 2)) {
            push_all(&stand.rig, (struct shove){1, 1, 0, 0, 0.1}, 1, NULL, &alone);
            reply_wait(&alone);
            CHECK_INT(tap, alone.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, alone.versions[0], 1);
            push_all(&stand.rig, (struct shove){1, 2, 0, 8, 0.1}, 1, stand.values, &with);
            rig_wait_queued(&stand.rig, RIG_SHARDS);
            push_all(&stand.rig, (struct shove){2, 1, 0, 0, 0.1}, 1, NULL, &none);
            reply_wait(&with);
            reply_wait(&none);
            CHECK_INT(tap, with.versions[0], 2);
            CHECK_INT(tap, none.versions[2], 2);
            float *now = mem_floats(stand.rig.n);
            rig_read(&stand.rig, PROTO_QUANTITY_WEIGHT, now, NULL);
            float step = stand.values[0] + 0.001f * stand.weights[0];
            CHECK_NEAR(tap, now[0], stand.weights[0] - 0.05f * step, 1e-6);
            free(now);
            ps_figures(stand.rig.ps, &figures);
            CHECK_INT(tap, figures.staleness_count, RIG_SHARDS);
            CHECK_INT(tap, figures.updates, RIG_SHARDS);
        }
        stand_close(&stand);
    });
    TEST(tap, "when softsync becomes hardsync, turns of older versions are too stale", {
        struct stand stand;
        struct reply a, b, stale, present;
        struct ps_figures figures;
        if (stand_open(&stand, tap, soft, 2)) {
            push_all(&stand.rig, (struct shove){1, 1, 0, 8, 0.1}, 1, stand.values, &a);
            push_all(&stand.rig, (struct shove){2, 1, 0, 8, 0.1}, 1, stand.values, &b);
            reply_wait(&a);
            reply_wait(&b);
            push_all(&stand.rig, (struct shove){1, 2, 0, 8, 0.1}, 1, stand.values, &stale);
            rig_wait_queued(&stand.rig, RIG_SHARDS);
            CHECK_INT(tap, ps_settings(stand.rig.ps, &rules[1], &hard, true, NULL), STATUS_OK);
            reply_wait(&stale);
            CHECK_INT(tap, stale.code, PROTO_REFUSAL_TOO_STALE);
            push_all(&stand.rig, (struct shove){1, 3, 0, 8, 0.1}, 2, stand.values, &present);
            push_all(&stand.rig, (struct shove){2, 2, 0, 8, 0.1}, 2, stand.values, &b);
            reply_wait(&present);
            reply_wait(&b);
            CHECK_INT(tap, present.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, present.versions[1], 3);
            ps_figures(stand.rig.ps, &figures);
            CHECK_INT(tap, figures.dropped, RIG_SHARDS);
            CHECK_INT(tap, figures.queued, 0);
        }
        stand_close(&stand);
    });
    TEST(tap, "a session that is named twice is one", {
        struct stand stand;
        struct reply a, b;
        const uint64_t named[] = {1, 2, 1, 3, 3};
        const uint64_t again[] = {2, 2, 1};
        if (stand_open(&stand, tap, hard, 1)) {
            CHECK_INT(tap, ps_members(stand.rig.ps, named, NULL, 5, NULL), STATUS_OK);
            CHECK_INT(tap, ps_members(stand.rig.ps, again, NULL, 3, NULL), STATUS_OK);
            push_all(&stand.rig, (struct shove){1, 1, 0, 8, 0.1}, 1, stand.values, &a);
            rig_wait_queued(&stand.rig, RIG_SHARDS);
            push_all(&stand.rig, (struct shove){2, 1, 0, 8, 0.1}, 1, stand.values, &b);
            reply_wait(&a);
            reply_wait(&b);
            CHECK_INT(tap, a.versions[0], 2);
        }
        stand_close(&stand);
    });
}

int main(void) {
    struct tap tap = {0};
    test_sequences(&tap);
    test_sessions(&tap);
    test_many_sessions(&tap);
    test_routes(&tap);
    test_versions(&tap);
    test_end(&tap);
    test_turns(&tap);
    return tap_done(&tap);
}
