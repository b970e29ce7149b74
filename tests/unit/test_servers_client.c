// The client of parameter servers: everything arrives, once, whatever becomes of links,
// routes and patience.
#include <stdlib.h>

#include "../helper/fake_servers.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "remote/servers_client.h"

enum { FLOATS = 5 * PROTO_SHARD_FLOATS + 1000 }; // six shards, the last one short

struct scene {
    struct fake fake;
    struct servers *servers;
    struct exchange *push, *pull;
    float *mine;
    struct shard_stamp stamps[FAKE_SHARDS];
    _Atomic int stale;
    bool ignorant; // there are no newer routes
};

static void stale(void *self, uint64_t epoch) {
    struct scene *s = self;
    (void)epoch;
    atomic_fetch_add(&s->stale, 1);
    if (s->ignorant)
        return;
    struct kept *routes = fake_routes(&s->fake);
    servers_route(s->servers, routes);
    kept_drop(routes);
}

static void open_scene(struct tap *tap, struct scene *s) {
    *s = (struct scene){.mine = mem_floats(FLOATS)};
    CHECK(tap, fake_open(&s->fake, FLOATS));
    const struct servers_options options = {
        .hello = {.role = PROTO_ROLE_WORKER, .session = 7},
        .parameters = FLOATS,
        .self = s,
        .stale = stale,
    };
    CHECK_INT(tap, servers_open(&s->servers, &options, NULL), STATUS_OK);
    const struct span all = servers_all(s->servers);
    CHECK_INT(tap, exchange_open(&s->push, s->servers, EXCHANGE_PUSH, &all, 1, NULL), STATUS_OK);
    CHECK_INT(tap, exchange_open(&s->pull, s->servers, EXCHANGE_PULL, &all, 1, NULL), STATUS_OK);
    struct kept *routes = fake_routes(&s->fake);
    servers_route(s->servers, routes);
    kept_drop(routes);
}

static void close_scene(struct scene *s) {
    servers_stop(s->servers);
    exchange_close(s->push);
    exchange_close(s->pull);
    servers_close(s->servers);
    fake_close(&s->fake);
    free(s->mine);
}

static int pull_why(struct scene *s, struct error *err) {
    const struct pull pull = {
        .quantity = PROTO_QUANTITY_WEIGHT, .into = s->mine, .stamps = s->stamps};
    exchange_pull(s->pull, &pull);
    return exchange_wait(s->pull, NULL, err);
}

static int pull(struct scene *s) {
    return pull_why(s, NULL);
}

static int push_why(struct scene *s, struct error *err) {
    const struct push push = {
        .kind = PROTO_UPDATE_DELTA, .samples = 1, .values = s->mine, .stamps = s->stamps};
    exchange_push(s->push, &push);
    return exchange_wait(s->push, NULL, err);
}

static int push(struct scene *s) {
    return push_why(s, NULL);
}

static void number(float *values, float factor) {
    for (size_t i = 0; i < FLOATS; i++)
        values[i] = factor * (float)(i % 1000);
}

// How many of them are not as numbered.
static int wrong(const float *values, float factor) {
    int wrong = 0;
    for (size_t i = 0; i < FLOATS; i++)
        wrong += values[i] < factor * (float)(i % 1000) || values[i] > factor * (float)(i % 1000);
    return wrong;
}

static void test_round(struct tap *tap) {
    TEST(tap, "what is pushed arrives in its place, and what is pulled too", {
        struct scene s;
        open_scene(tap, &s);
        number(s.mine, 1);
        CHECK_INT(tap, push(&s), STATUS_OK);
        CHECK_INT(tap, wrong(s.fake.weights, 1), 0);
        CHECK_INT(tap, s.fake.pushes, 6);
        number(s.mine, 3);
        CHECK_INT(tap, pull(&s), STATUS_OK);
        CHECK_INT(tap, wrong(s.mine, 1), 0);
        for (int i = 0; i < 6; i++)
            CHECK_INT(tap, s.stamps[i].version, 2);
        struct servers_figures figures = servers_figures(s.servers);
        CHECK_INT(tap, figures.pushes, 1);
        CHECK_INT(tap, figures.pulls, 1);
        CHECK(tap, figures.sent > FLOATS * sizeof(float) && figures.received > figures.sent / 2);
        close_scene(&s);
    });
}

static void test_unchanged(struct tap *tap) {
    TEST(tap, "shards that did not change are not sent", {
        struct scene s;
        open_scene(tap, &s);
        CHECK_INT(tap, pull(&s), STATUS_OK);
        uint64_t before = servers_figures(s.servers).received;
        CHECK_INT(tap, pull(&s), STATUS_OK);
        CHECK_INT(tap, s.fake.unchanged, 6);
        CHECK(tap, servers_figures(s.servers).received - before < 4096);
        s.fake.weights[PROTO_SHARD_FLOATS] = 8;
        s.fake.version[1] = 9;
        CHECK_INT(tap, pull(&s), STATUS_OK);
        CHECK_INT(tap, s.fake.unchanged, 11);
        CHECK_NEAR(tap, (double)s.mine[PROTO_SHARD_FLOATS], 8, 0);
        CHECK_INT(tap, s.stamps[1].version, 9);
        close_scene(&s);
    });
}

// Another server has all shards, as of these versions.
static void fail_over(struct scene *s, uint64_t version, float factor) {
    fake_turn(&s->fake);
    pthread_mutex_lock(&s->fake.lock);
    for (int i = 0; i < FAKE_SHARDS; i++)
        s->fake.version[i] = version;
    number(s->fake.weights, factor);
    pthread_mutex_unlock(&s->fake.lock);
    stale(s, 0);
}

static void test_fail_over(struct tap *tap) {
    TEST(tap, "a version that was lost and made anew is pulled, as it has other weights", {
        struct scene s;
        open_scene(tap, &s);
        number(s.fake.weights, 1);
        for (int i = 0; i < FAKE_SHARDS; i++)
            s.fake.version[i] = 7;
        CHECK_INT(tap, pull(&s), STATUS_OK);
        fail_over(&s, 7, 3);
        CHECK_INT(tap, pull(&s), STATUS_OK);
        CHECK_INT(tap, wrong(s.mine, 3), 0);
        CHECK_INT(tap, s.fake.unchanged, 0);
        CHECK_INT(tap, pull(&s), STATUS_OK);
        CHECK_INT(tap, s.fake.unchanged, 6);
        fail_over(&s, 5, 2); // and back
        CHECK_INT(tap, pull(&s), STATUS_OK);
        CHECK_INT(tap, wrong(s.mine, 2), 0);
        CHECK_INT(tap, s.stamps[0].version, 5);
        close_scene(&s);
    });
    TEST(tap, "versions of another server tell nothing of how those of the one before grew", {
        struct scene s;
        struct shard_stamp newest[FAKE_SHARDS] = {{0}};
        uint32_t pushes[FAKE_SHARDS] = {0};
        struct growth growth = {newest, pushes};
        open_scene(tap, &s);
        CHECK_INT(tap, pull(&s), STATUS_OK);
        fail_over(&s, 1, 1);
        exchange_push(s.push, &(struct push){PROTO_UPDATE_DELTA, 1, 0, s.mine, s.stamps, &growth});
        CHECK_INT(tap, exchange_wait(s.push, NULL, NULL), STATUS_OK);
        CHECK_INT(tap, newest[0].version, 2);
        CHECK(tap, newest[0].epoch > s.stamps[0].epoch);
        close_scene(&s);
    });
    TEST(tap, "who waits for newer versions waits for them also where another server has the shard",
         {
             struct scene s;
             float *other = mem_floats(FLOATS);
             open_scene(tap, &s);
             CHECK_INT(tap, pull(&s), STATUS_OK);
             fail_over(&s, 1, 1);
             exchange_pull(s.pull, &(struct pull){PROTO_QUANTITY_WEIGHT, other, s.stamps, true, 0});
             CHECK_INT(tap, push(&s), STATUS_OK); // version 2
             CHECK_INT(tap, exchange_wait(s.pull, NULL, NULL), STATUS_OK);
             CHECK_INT(tap, s.stamps[0].version, 2);
             close_scene(&s);
             free(other);
         });
}

static void test_growth(struct tap *tap) {
    TEST(tap, "who pushes hears whether others have changed the shards", {
        struct scene s;
        struct shard_stamp newest[FAKE_SHARDS] = {{0}};
        uint32_t pushes[FAKE_SHARDS] = {0};
        struct growth growth = {newest, pushes};
        open_scene(tap, &s);
        CHECK_INT(tap, pull(&s), STATUS_OK);
        const struct push push = {.kind = PROTO_UPDATE_DELTA,
                                  .samples = 1,
                                  .values = s.mine,
                                  .stamps = s.stamps,
                                  .growth = &growth};
        s.fake.version[1] = 5; // another's pushes
        for (int i = 1; i <= 2; i++) {
            exchange_push(s.push, &push);
            CHECK_INT(tap, exchange_wait(s.push, NULL, NULL), STATUS_OK);
            CHECK_INT(tap, newest[0].version, s.stamps[0].version + pushes[0]);
            CHECK_INT(tap, newest[1].version, 5 + pushes[1]);
            CHECK_INT(tap, pushes[1], i);
        }
        close_scene(&s);
    });
}

static void test_parts(struct tap *tap) {
    TEST(tap, "spans are pulled and stored alone, though a shard holds several", {
        struct scene s;
        open_scene(tap, &s);
        const struct span spans[] = {{10, 5}, {100, 7}, {PROTO_SHARD_FLOATS - 2, 4}};
        struct exchange *some, *store;
        CHECK_INT(tap, exchange_open(&some, s.servers, EXCHANGE_PULL, spans, 3, NULL), STATUS_OK);
        CHECK_INT(tap, exchange_open(&store, s.servers, EXCHANGE_STORE, spans, 3, NULL), STATUS_OK);
        number(s.mine, 1);
        s.stamps[0].version = s.stamps[1].version = 5;
        exchange_store(store, &(struct store){PROTO_QUANTITY_STATE, s.mine + 10, s.stamps, 10});
        CHECK_INT(tap, exchange_wait(store, NULL, NULL), STATUS_OK);
        memset(s.mine, 0, FLOATS * sizeof *s.mine);
        s.stamps[0].version = s.stamps[1].version = 0;
        exchange_pull(some, &(struct pull){PROTO_QUANTITY_STATE, s.mine, s.stamps, false, 0});
        CHECK_INT(tap, exchange_wait(some, NULL, NULL), STATUS_OK);
        for (size_t i = 0; i < 200; i++) {
            bool meant = (i >= 10 && i < 15) || (i >= 100 && i < 107);
            CHECK_NEAR(tap, (double)s.mine[i], meant ? (double)i : 0, 0);
        }
        for (size_t i = PROTO_SHARD_FLOATS - 2; i < PROTO_SHARD_FLOATS + 2; i++)
            CHECK_NEAR(tap, (double)s.mine[i], (double)(i % 1000), 0);
        CHECK_INT(tap, s.stamps[0].version, 5);
        exchange_close(some);
        exchange_close(store);
        close_scene(&s);
    });
}

static void test_placed(struct tap *tap) {
    TEST(tap, "spans that lie elsewhere here are pushed from there, and pulled to there", {
        struct scene s;
        open_scene(tap, &s);
        // Two rows of a part, one behind the other here; and one before them across a border.
        const struct placed_span spans[] = {
            {{10, 5}, 100}, {{30, 5}, 105}, {{PROTO_SHARD_FLOATS - 2, 4}, 3}};
        struct exchange *push, *pull;
        float here[120] = {0};
        for (int i = 0; i < 120; i++)
            here[i] = (float)(1 + i);
        CHECK_INT(tap, exchange_open_placed(&push, s.servers, EXCHANGE_PUSH, spans, 3, NULL), 0);
        CHECK_INT(tap, exchange_open_placed(&pull, s.servers, EXCHANGE_PULL, spans, 3, NULL), 0);
        exchange_push(push, &(struct push){.kind = PROTO_UPDATE_DELTA,
                                           .samples = 1,
                                           .values = here,
                                           .stamps = s.stamps});
        CHECK_INT(tap, exchange_wait(push, NULL, NULL), STATUS_OK);
        for (size_t i = 0; i < 40; i++) {
            double meant = i >= 10 && i < 15   ? (double)(91 + i)
                           : i >= 30 && i < 35 ? (double)(76 + i)
                                               : 0;
            CHECK_NEAR(tap, (double)s.fake.weights[i], meant, 0);
        }
        for (size_t i = 0; i < 4; i++)
            CHECK_NEAR(tap, (double)s.fake.weights[PROTO_SHARD_FLOATS - 2 + i], (double)(4 + i), 0);
        memset(here, 0, sizeof here);
        exchange_pull(pull, &(struct pull){PROTO_QUANTITY_WEIGHT, here, s.stamps, false, 0});
        CHECK_INT(tap, exchange_wait(pull, NULL, NULL), STATUS_OK);
        for (int i = 0; i < 120; i++) {
            bool meant = (i >= 3 && i < 7) || (i >= 100 && i < 110);
            CHECK_NEAR(tap, (double)here[i], meant ? 1 + i : 0, 0);
        }
        // A shard that changed while the server answered is asked for again.
        memset(here, 0, sizeof here);
        s.fake.lie = FAKE_MIXED;
        exchange_pull(pull, &(struct pull){PROTO_QUANTITY_WEIGHT, here, s.stamps, false, 0});
        CHECK_INT(tap, exchange_wait(pull, NULL, NULL), STATUS_OK);
        for (int i = 100; i < 110; i++)
            CHECK_NEAR(tap, (double)here[i], 1 + i, 0);
        exchange_close(push);
        exchange_close(pull);
        close_scene(&s);
    });
}

static void test_broken(struct tap *tap) {
    TEST(tap, "pushes are applied exactly once although links break at random moments", {
        enum { ROUNDS = 60 };
        struct scene s;
        open_scene(tap, &s);
        s.fake.break_one_in = 8;
        number(s.mine, 1);
        for (int i = 0; i < ROUNDS; i++)
            CHECK_INT(tap, push(&s), STATUS_OK);
        CHECK_INT(tap, wrong(s.fake.weights, ROUNDS), 0);
        CHECK_INT(tap, pull(&s), STATUS_OK);
        CHECK_INT(tap, wrong(s.mine, ROUNDS), 0);
        CHECK(tap, s.fake.broken > 10);
        CHECK(tap, s.fake.repeated > 0);
        CHECK(tap, servers_figures(s.servers).repeated <= (uint64_t)s.fake.repeated);
        close_scene(&s);
    });
}

static void test_routes(struct tap *tap) {
    TEST(tap, "refused routes are looked up again, and everything goes where it belongs", {
        struct scene s;
        open_scene(tap, &s);
        number(s.mine, 1);
        for (int i = 0; i < 5; i++) {
            CHECK_INT(tap, push(&s), STATUS_OK);
            fake_turn(&s.fake);
        }
        CHECK_INT(tap, wrong(s.fake.weights, 5), 0);
        CHECK_INT(tap, pull(&s), STATUS_OK);
        CHECK(tap, s.fake.stale >= 5);
        CHECK(tap, atomic_load(&s.stale) > 0);
        close_scene(&s);
    });
}

static void test_patience(struct tap *tap) {
    TEST(tap, "servers that are busy, or have no weights yet, are asked again", {
        struct scene s;
        open_scene(tap, &s);
        s.fake.busy = 20;
        number(s.mine, 1);
        CHECK_INT(tap, push(&s), STATUS_OK);
        CHECK_INT(tap, s.fake.busy, 0);
        CHECK_INT(tap, wrong(s.fake.weights, 1), 0);
        CHECK_INT(tap, servers_figures(s.servers).refused, 20);
        close_scene(&s);
    });
}

// It loses a shard after it applied a push and before all copies had it, or they have it.
static void test_left(struct tap *tap) {
    TEST(tap, "a push that a server applied before it lost the shard counts once", {
        struct scene s;
        open_scene(tap, &s);
        s.fake.leaves = 3;
        number(s.mine, 1);
        CHECK_INT(tap, push(&s), STATUS_OK);
        CHECK_INT(tap, s.fake.leaves, 0);
        CHECK_INT(tap, wrong(s.fake.weights, 1), 0);
        CHECK_INT(tap, servers_figures(s.servers).repeated, 3);
        close_scene(&s);
    });
}

// Nothing else is asked of the other server, so only this request can wake its thread.
static void test_moved(struct tap *tap) {
    TEST(tap, "a push that is refused when newer routes are here already goes to the other server",
         {
             struct scene s;
             struct exchange *one;
             const struct span first = {0, 10};
             open_scene(tap, &s);
             number(s.mine, 1);
             CHECK_INT(tap, exchange_open(&one, s.servers, EXCHANGE_PUSH, &first, 1, NULL),
                       STATUS_OK);
             s.fake.holds = s.ignorant = true;
             const struct push push = {
                 .kind = PROTO_UPDATE_DELTA, .samples = 1, .values = s.mine, .stamps = s.stamps};
             exchange_push(one, &push);
             while (!fake_holds(&s.fake))
                 sched_yield();
             fake_turn(&s.fake);
             struct kept *routes = fake_routes(&s.fake);
             servers_route(s.servers, routes);
             kept_drop(routes);
             fake_refuse_held(&s.fake);
             CHECK_INT(tap, exchange_wait(one, NULL, NULL), STATUS_OK);
             exchange_close(one);
             close_scene(&s);
         });
}

// A push that the servers refuse by this code ends so, is in no weights, and counts as refused.
static void check_refused(struct tap *tap, enum proto_refusal code, int status) {
    struct scene s;
    struct error err = {0};
    open_scene(tap, &s);
    s.fake.refuse = (uint16_t)code;
    CHECK_INT(tap, push_why(&s, &err), status);
    struct servers_figures figures = servers_figures(s.servers);
    CHECK_INT(tap, figures.pushes, 0);
    CHECK_INT(tap, figures.pushes_refused, 1);
    CHECK_INT(tap, figures.repeated, 0);
    CHECK(tap, strstr(err.text, "inproc://fake"));
    s.fake.refuse = 0;
    CHECK_INT(tap, push(&s), STATUS_OK);
    figures = servers_figures(s.servers);
    CHECK_INT(tap, figures.pushes, 1);
    CHECK_INT(tap, figures.pushes_refused, 1);
    close_scene(&s);
}

static void test_refused(struct tap *tap) {
    TEST(tap, "a push that is refused as too stale is skipped, and not counted as applied",
         { check_refused(tap, PROTO_REFUSAL_TOO_STALE, STATUS_SKIPPED); });
    TEST(tap, "one that is not finite ends the training",
         { check_refused(tap, PROTO_REFUSAL_NOT_FINITE, STATUS_DIVERGED); });
    TEST(tap, "one of a session that is over stops it",
         { check_refused(tap, PROTO_REFUSAL_WRONG_SESSION, STATUS_STOPPED); });
    TEST(tap, "one that is replayed though it was sent once was another's: it was not applied",
         { check_refused(tap, PROTO_REFUSAL_REPLAYED, STATUS_STOPPED); });
    TEST(tap, "so was one that is answered as repeated", {
        struct scene s;
        struct error err = {0};
        open_scene(tap, &s);
        s.fake.claims = true;
        CHECK_INT(tap, push_why(&s, &err), STATUS_STOPPED);
        CHECK(tap, strstr(err.text, "somebody else pushes in its session 7"));
        CHECK_INT(tap, servers_figures(s.servers).pushes, 0);
        CHECK_INT(tap, servers_figures(s.servers).pushes_refused, 1);
        close_scene(&s);
    });
    TEST(tap, "an answer about another push is none", {
        struct scene s;
        struct error err = {0};
        open_scene(tap, &s);
        s.fake.shift = 1;
        CHECK_INT(tap, push_why(&s, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "by what was not asked for"));
        CHECK(tap, strstr(err.text, "inproc://fake"));
        CHECK_INT(tap, servers_figures(s.servers).pushes, 0);
        close_scene(&s);
    });
}

// A pull that is answered so ends the wait, and names the server.
static void check_lie(struct tap *tap, enum fake_lie lie) {
    struct scene s;
    struct error err = {0};
    open_scene(tap, &s);
    s.fake.lie = lie;
    CHECK_INT(tap, pull_why(&s, &err), STATUS_DATA);
    CHECK(tap, strstr(err.text, "inproc://fake"));
    CHECK(tap, strstr(err.text, "answered a pull of shard"));
    CHECK_INT(tap, servers_figures(s.servers).pulls, 0);
    close_scene(&s);
}

static void test_lies(struct tap *tap) {
    TEST(tap, "weights of another shard are not taken", { check_lie(tap, FAKE_OTHER_SHARD); });
    TEST(tap, "nor of another place in the shard", { check_lie(tap, FAKE_OTHER_PLACE); });
    TEST(tap, "nor fewer than were asked for", {
        check_lie(tap, FAKE_FEWER);
        check_lie(tap, FAKE_SHORT);
    });
    TEST(tap, "nor more, for which there is no room", { check_lie(tap, FAKE_LONG); });
    TEST(tap, "nor of two places at once", { check_lie(tap, FAKE_TWO); });
    TEST(tap, "nor are weights unchanged that the client never had",
         { check_lie(tap, FAKE_UNCHANGED); });
}

static void test_lost_answer(struct tap *tap) {
    TEST(tap, "after a lost answer a push that is replayed was applied", {
        struct scene s;
        open_scene(tap, &s);
        s.fake.break_one_in = 1; // each request: before it or after it
        s.fake.break_most = 2;
        s.fake.replays = true;
        number(s.mine, 1);
        CHECK_INT(tap, push(&s), STATUS_OK);
        CHECK(tap, s.fake.broken == 2);
        CHECK_INT(tap, servers_figures(s.servers).pushes, 1);
        s.fake.replays = false;
        s.fake.claims = true; // of the next push, which is sent once
        CHECK_INT(tap, push(&s), STATUS_STOPPED);
        close_scene(&s);
    });
}

static void *stop_later(void *self) {
    struct scene *s = self;
    for (bool there = false; !there;) { // the pull has reached a server
        pthread_mutex_lock(&s->fake.lock);
        there = s->fake.late_count > 0;
        pthread_mutex_unlock(&s->fake.lock);
    }
    servers_stop(s->servers);
    return NULL;
}

static void test_newer(struct tap *tap) {
    TEST(tap, "a pull of newer weights waits for them", {
        struct scene s;
        open_scene(tap, &s);
        CHECK_INT(tap, pull(&s), STATUS_OK);
        number(s.mine, 2);
        float *other = mem_floats(FLOATS);
        s.fake.busy = 6; // the pull comes before the push
        exchange_push(s.push, &(struct push){PROTO_UPDATE_DELTA, 1, 0, s.mine, s.stamps, NULL});
        exchange_pull(s.pull, &(struct pull){PROTO_QUANTITY_WEIGHT, other, s.stamps, true, 0});
        CHECK_INT(tap, exchange_wait(s.push, NULL, NULL), STATUS_OK);
        CHECK_INT(tap, exchange_wait(s.pull, NULL, NULL), STATUS_OK);
        CHECK_INT(tap, wrong(other, 2), 0);
        CHECK_INT(tap, s.stamps[5].version, 2);
        free(other);
        close_scene(&s);
    });
    TEST(tap, "a wait ends when the client is stopped", {
        struct scene s;
        pthread_t thread;
        open_scene(tap, &s);
        CHECK_INT(tap, pull(&s), STATUS_OK);
        exchange_pull(s.pull, &(struct pull){PROTO_QUANTITY_WEIGHT, s.mine, s.stamps, true, 0});
        pthread_create(&thread, NULL, stop_later, &s);
        CHECK_INT(tap, exchange_wait(s.pull, NULL, NULL), STATUS_STOPPED);
        pthread_join(thread, NULL);
        CHECK_INT(tap, push(&s), STATUS_STOPPED);
        close_scene(&s);
    });
}

int main(void) {
    struct tap tap = {0};
    test_round(&tap);
    test_unchanged(&tap);
    test_fail_over(&tap);
    test_growth(&tap);
    test_parts(&tap);
    test_placed(&tap);
    test_broken(&tap);
    test_routes(&tap);
    test_patience(&tap);
    test_left(&tap);
    test_moved(&tap);
    test_refused(&tap);
    test_lies(&tap);
    test_lost_answer(&tap);
    test_newer(&tap);
    return tap_done(&tap);
}
