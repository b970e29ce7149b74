// The owner of an epoch: against a plain model by random histories, and its rules one by one.
#include <stdlib.h>
#include <string.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "core/random.h"
#include "deal/lease.h"

enum { COUNT_MOST = 200, HELD_MOST = 4096 };

// --- a plain model -----------------------------------------------------------------

// What is known of one place in the present epoch.
enum fate { FREE, DRAWN, LEASED, FINISHED };

struct held {
    uint64_t session, number;
    struct drawn_range drawn;
    double deadline;
};

struct model {
    struct tap *tap;
    struct leases *leases;
    struct random random;
    uint32_t count, epoch;
    double now, epoch_end;
    enum fate fate[COUNT_MOST], next_fate[COUNT_MOST];
    struct drawn_range drawn[HELD_MOST];
    size_t drawn_count;
    struct held held[HELD_MOST]; // leases that the model believes to be open
    size_t held_count;
    uint64_t stale[64]; // numbers of leases that are over
    size_t stale_count;
    uint64_t handed, finished; // in all
};

static void mark(struct model *m, struct range places, enum fate from, enum fate to, bool next) {
    enum fate *fate = next ? m->next_fate : m->fate;
    for (uint32_t i = places.first; i < places.first + places.count; i++) {
        if (i >= m->count || fate[i] != from)
            FAIL(m->tap, "place %u of epoch %u was %d, not %d", i, m->epoch, fate[i], from);
        else
            fate[i] = to;
    }
}

static void forget(struct model *m, size_t i) {
    m->stale[m->stale_count++ % 64] = m->held[i].number;
    m->held[i] = m->held[--m->held_count];
}

// The epoch may have ended: by the rule, and only by it.
static void follow(struct model *m) {
    uint32_t now = leases_epoch(m->leases);
    bool handed_out = true, finished = true;
    for (uint32_t i = 0; i < m->count; i++) {
        handed_out &= m->fate[i] == LEASED || m->fate[i] == FINISHED;
        finished &= m->fate[i] == FINISHED;
    }
    if (now == m->epoch) {
        CHECK(m->tap, !finished || leases_done(m->leases));
        return;
    }
    CHECK_INT(m->tap, now, m->epoch + 1);
    CHECK(m->tap, handed_out && (finished || m->epoch_end < 1));
    m->epoch = now;
    memcpy(m->fate, m->next_fate, sizeof m->fate);
    memset(m->next_fate, 0, sizeof m->next_fate);
    while (m->held_count > 0)
        forget(m, 0);
}

static void draw(struct model *m) {
    struct drawn_range drawn;
    if (m->drawn_count == HELD_MOST ||
        !leases_draw(m->leases, 1 + random_below(&m->random, 9), true, &drawn))
        return;
    CHECK(m->tap, drawn.epoch == m->epoch || drawn.epoch == m->epoch + 1);
    mark(m, drawn.places, FREE, DRAWN, drawn.epoch != m->epoch);
    m->drawn[m->drawn_count++] = drawn;
}

// Issues a drawn drawn of this epoch, or its first part.
static void issue(struct model *m) {
    struct error err = {0};
    struct lease lease;
    size_t i = 0;
    while (i < m->drawn_count && !leases_now(m->leases, &m->drawn[i]))
        i++;
    if (i == m->drawn_count || m->held_count == HELD_MOST)
        return;
    struct drawn_range *from = &m->drawn[i], part = *from;
    part.places.count = 1 + random_below(&m->random, part.places.count);
    uint64_t session = 1 + random_below(&m->random, 5);
    CHECK_INT(m->tap, leases_issue(m->leases, session, &part, m->now, &lease, &err), STATUS_OK);
    CHECK(m->tap, lease.deadline >= 5);
    mark(m, part.places, DRAWN, LEASED, false);
    m->handed += part.places.count;
    m->held[m->held_count++] = (struct held){session, lease.number, part, m->now + lease.deadline};
    from->places.first += part.places.count;
    from->places.count -= part.places.count;
    if (from->places.count == 0)
        *from = m->drawn[--m->drawn_count];
}

static void finish(struct model *m) {
    if (m->held_count == 0)
        return;
    size_t i = random_below(&m->random, (uint32_t)m->held_count);
    struct held held = m->held[i];
    struct range places;
    uint32_t epoch;
    CHECK(m->tap,
          !leases_finish(m->leases, held.session + 1, held.number, m->now, &epoch, &places));
    CHECK(m->tap, leases_finish(m->leases, held.session, held.number, m->now, &epoch, &places));
    CHECK_INT(m->tap, epoch, m->epoch);
    CHECK_INT(m->tap, places.first, held.drawn.places.first);
    CHECK_INT(m->tap, places.count, held.drawn.places.count);
    mark(m, places, LEASED, FINISHED, false);
    m->finished += places.count;
    forget(m, i);
    follow(m);
}

static void finish_stale(struct model *m) {
    struct range places;
    uint32_t epoch;
    size_t known = m->stale_count < 64 ? m->stale_count : 64;
    for (size_t i = 0; i < known; i++)
        for (uint64_t session = 1; session <= 5; session++)
            CHECK(m->tap, !leases_finish(m->leases, session, m->stale[i], m->now, &epoch, &places));
}

// A lease is given back by its session, once; or it is another's, or over.
static void give_back(struct model *m) {
    if (m->held_count == 0)
        return;
    size_t i = random_below(&m->random, (uint32_t)m->held_count);
    struct held held = m->held[i];
    uint32_t epoch = leases_epoch(m->leases);
    CHECK_INT(m->tap, leases_return(m->leases, held.session + 1, held.number), 0);
    CHECK_INT(m->tap, leases_return(m->leases, held.session, held.number), held.drawn.places.count);
    CHECK_INT(m->tap, leases_return(m->leases, held.session, held.number), 0);
    CHECK_INT(m->tap, leases_epoch(m->leases), epoch); // there is something left to hand out
    mark(m, held.drawn.places, LEASED, FREE, false);
    forget(m, i);
}

static void take_back(struct model *m, bool (*over)(const struct held *, double), double value) {
    for (size_t i = m->held_count; i-- > 0;) {
        if (!over(&m->held[i], value))
            continue;
        mark(m, m->held[i].drawn.places, LEASED, FREE, false);
        forget(m, i);
    }
}

static bool is_late(const struct held *held, double now) {
    return held->deadline <= now;
}

static bool is_of(const struct held *held, double session) {
    return held->session == (uint64_t)session;
}

static void pass_time(struct model *m) {
    double next;
    m->now += (double)random_unit(&m->random) * 8;
    leases_expire(m->leases, m->now, &next);
    take_back(m, is_late, m->now);
    follow(m);
}

static void lose_session(struct model *m) {
    uint64_t session = 1 + random_below(&m->random, 5);
    leases_gone(m->leases, session);
    take_back(m, is_of, (double)session);
    follow(m);
}

// A session's link is cut: some leases have not reached it. Those of others, and such as were never
// its own, do not count.
static void cut_link(struct model *m) {
    uint64_t session = 1 + random_below(&m->random, 5), lost = 0;
    for (size_t i = m->held_count; i-- > 0;) {
        struct held held = m->held[i];
        if (held.session != session || random_below(&m->random, 2) == 0) {
            leases_keep(m->leases, session, held.number);
            continue;
        }
        lost += held.drawn.places.count;
        mark(m, held.drawn.places, LEASED, FREE, false);
        forget(m, i);
    }
    CHECK_INT(m->tap, leases_lose_rest(m->leases, session), lost);
    CHECK_INT(m->tap, leases_epoch(m->leases), m->epoch);
}

// What the cursor remembers goes on in another owner; leases and what was drawn are lost.
static void restart(struct model *m, const struct lease_rules *rules) {
    struct error err = {0};
    const struct ranges *cursor = leases_cursor(m->leases);
    struct leases *other;
    uint64_t number = (uint64_t)random_u32(&m->random) << 32;
    CHECK_INT(m->tap, leases_open(&other, m->count, number, rules, &err), STATUS_OK);
    CHECK_INT(m->tap,
              leases_set_cursor(other, leases_epoch(m->leases), cursor->at, cursor->count, &err),
              STATUS_OK);
    leases_close(m->leases);
    m->leases = other;
    m->drawn_count = m->held_count = 0;
    memset(m->next_fate, 0, sizeof m->next_fate);
    for (uint32_t i = 0; i < m->count; i++)
        if (m->fate[i] != FINISHED)
            m->fate[i] = FREE;
}

static void check_cursor(struct model *m) {
    const struct ranges *cursor = leases_cursor(m->leases);
    uint64_t places = 0;
    uint32_t end = 0;
    for (size_t i = 0; i < cursor->count; i++) {
        CHECK(m->tap, i == 0 || cursor->at[i].first > end);
        end = cursor->at[i].first + cursor->at[i].count;
        for (uint32_t p = cursor->at[i].first; p < end && p < m->count; p++)
            CHECK(m->tap, m->fate[p] == FINISHED);
        places += cursor->at[i].count;
    }
    CHECK_INT(m->tap, leases_finished(m->leases), places);
}

static void step(struct model *m, const struct lease_rules *rules) {
    uint32_t choice = random_below(&m->random, 1000);
    if (choice < 300)
        draw(m);
    else if (choice < 600)
        issue(m);
    else if (choice < 940)
        finish(m);
    else if (choice < 950)
        give_back(m);
    else if (choice < 970)
        pass_time(m);
    else if (choice < 980)
        lose_session(m);
    else if (choice < 985)
        cut_link(m);
    else if (choice < 990)
        finish_stale(m);
    else if (choice < 998)
        check_cursor(m);
    else
        restart(m, rules);
}

static void run_history(struct tap *tap, uint64_t seed, double epoch_end) {
    static struct model model; // large
    struct error err = {0};
    struct model *m = &model;
    *m = (struct model){.tap = tap, .random = random_stream(seed, 0, 0), .epoch_end = epoch_end};
    m->count = 1 + random_below(&m->random, COUNT_MOST);
    const struct lease_rules rules = {.epochs = 3, .epoch_end = epoch_end, .least = 5};
    CHECK_INT(tap, leases_open(&m->leases, m->count, seed << 20, &rules, &err), STATUS_OK);
    for (int i = 0; i < 100000 && !leases_done(m->leases); i++)
        step(m, &rules);
    CHECK(tap, leases_done(m->leases));
    if (epoch_end >= 1)
        CHECK_INT(tap, m->finished, 3 * m->count);
    leases_close(m->leases);
}

static void test_histories(struct tap *tap) {
    TEST(tap, "random histories: nothing is lost, doubled or out of turn", {
        for (uint64_t seed = 1; seed <= 300; seed++)
            run_history(tap, seed, 1);
    });
    TEST(tap, "the same where an epoch ends before the slowest", {
        for (uint64_t seed = 1; seed <= 300; seed++)
            run_history(tap, seed, 0.75);
    });
}

// --- rules -------------------------------------------------------------------------

static struct leases *open_leases(struct tap *tap, uint32_t count, double epoch_end) {
    const struct lease_rules rules = {.epochs = 2, .epoch_end = epoch_end, .least = 5};
    struct leases *leases = NULL;
    struct error err = {0};
    CHECK_INT(tap, leases_open(&leases, count, 100, &rules, &err), STATUS_OK);
    return leases;
}

static struct lease lend(struct tap *tap, struct leases *leases, uint64_t session, uint32_t most,
                         double now) {
    struct drawn_range drawn;
    struct lease lease = {0};
    struct error err = {0};
    CHECK(tap, leases_draw(leases, most, true, &drawn));
    CHECK_INT(tap, leases_issue(leases, session, &drawn, now, &lease, &err), STATUS_OK);
    return lease;
}

static bool done_with(struct leases *leases, uint64_t session, struct lease lease, double now) {
    uint32_t epoch;
    struct range places;
    return leases_finish(leases, session, lease.number, now, &epoch, &places);
}

static void test_epoch_end(struct tap *tap) {
    TEST(tap, "an epoch ends when three of four replicas have finished all of theirs", {
        struct leases *leases = open_leases(tap, 8, 0.75);
        struct lease lease[8];
        for (uint64_t i = 0; i < 8; i++)
            lease[i] = lend(tap, leases, 1 + i % 4, 1, 0);
        for (uint64_t i = 0; i < 7; i++) {
            CHECK_INT(tap, leases_epoch(leases), 0);
            if (i != 3)
                CHECK(tap, done_with(leases, 1 + i % 4, lease[i], 1));
        }
        CHECK_INT(tap, leases_epoch(leases), 1);
        CHECK(tap, !done_with(leases, 4, lease[3], 1));
        leases_close(leases);
    });
    TEST(tap, "never while there is something left to hand out", {
        struct leases *leases = open_leases(tap, 8, 0.25);
        for (uint64_t i = 0; i < 7; i++)
            CHECK(tap, done_with(leases, 1 + i % 4, lend(tap, leases, 1 + i % 4, 1, 0), 1));
        CHECK_INT(tap, leases_epoch(leases), 0);
        leases_close(leases);
    });
    TEST(tap, "a replica that has gone is not waited for, its part is handed out again", {
        struct leases *leases = open_leases(tap, 4, 1);
        lend(tap, leases, 1, 3, 0);
        struct lease other = lend(tap, leases, 2, 1, 0);
        leases_gone(leases, 1);
        CHECK(tap, done_with(leases, 2, other, 1));
        CHECK_INT(tap, leases_epoch(leases), 0);
        CHECK(tap, done_with(leases, 2, lend(tap, leases, 2, 3, 1), 2));
        CHECK_INT(tap, leases_epoch(leases), 1);
        leases_close(leases);
    });
    TEST(tap, "behind the last epoch nothing is drawn", {
        struct leases *leases = open_leases(tap, 4, 1);
        struct drawn_range drawn;
        for (int epoch = 0; epoch < 2; epoch++)
            CHECK(tap, done_with(leases, 1, lend(tap, leases, 1, 4, 0), 0));
        CHECK(tap, leases_done(leases));
        CHECK(tap, !leases_draw(leases, 1, true, &drawn));
        CHECK_NEAR(tap, leases_progress(leases), 2, 0);
        leases_close(leases);
    });
}

static void test_fewer_epochs(struct tap *tap) {
    const struct lease_rules many = {.epochs = 9, .epoch_end = 1, .least = 5};
    const struct lease_rules fewer = {.epochs = 1, .epoch_end = 1, .least = 5};
    TEST(tap, "of fewer epochs than there have been the one under way is the last", {
        struct leases *leases = open_leases(tap, 4, 1);
        struct lease all;
        leases_rules(leases, &many);
        for (int epoch = 0; epoch < 2; epoch++)
            CHECK(tap, done_with(leases, 1, lend(tap, leases, 1, 4, 0), 0));
        all = lend(tap, leases, 1, 3, 0);
        leases_rules(leases, &fewer);
        CHECK(tap, !leases_done(leases));
        leases_rules(leases, &fewer);
        CHECK(tap, done_with(leases, 1, all, 0));
        CHECK(tap, done_with(leases, 1, lend(tap, leases, 1, 1, 0), 0));
        CHECK(tap, leases_done(leases));
        CHECK_NEAR(tap, leases_progress(leases), 3, 0);
        leases_close(leases);
    });
    TEST(tap, "one that nothing was given of does not begin", {
        struct leases *leases = open_leases(tap, 4, 1);
        leases_rules(leases, &many);
        for (int epoch = 0; epoch < 2; epoch++)
            CHECK(tap, done_with(leases, 1, lend(tap, leases, 1, 4, 0), 0));
        leases_rules(leases, &fewer);
        CHECK(tap, leases_done(leases));
        leases_close(leases);
    });
}

static void test_last_epoch(struct tap *tap) {
    TEST(tap, "in the last epoch nothing is drawn ahead", {
        struct leases *leases = open_leases(tap, 4, 1);
        struct drawn_range drawn;
        CHECK(tap, done_with(leases, 1, lend(tap, leases, 1, 4, 0), 0));
        CHECK_INT(tap, leases_epoch(leases), 1);
        CHECK(tap, leases_draw(leases, 4, true, &drawn));
        CHECK(tap, !leases_draw(leases, 4, true, &drawn));
        leases_close(leases);
    });
}

static void test_sessions(struct tap *tap) {
    TEST(tap, "however many sessions there are, each is known", {
        enum { MANY = 1000 };
        struct leases *leases = open_leases(tap, MANY, 1);
        for (uint64_t i = 0; i < MANY; i++)
            lend(tap, leases, 5 + i, 1, 0);
        for (uint64_t i = 0; i < MANY; i++)
            CHECK_INT(tap, leases_session(leases, i), 5 + i);
        CHECK_INT(tap, leases_session(leases, MANY), 0);
        leases_close(leases);
    });
    TEST(tap, "a lease that there is no memory for is none", {
        struct leases *leases = open_leases(tap, 4, 1);
        struct drawn_range drawn;
        struct lease lease;
        struct error err = {0};
        CHECK(tap, leases_draw(leases, 4, true, &drawn));
        heap_fail_after(0);
        int status = leases_issue(leases, 1, &drawn, 0, &lease, &err);
        heap_fail_after(-1);
        CHECK_INT(tap, status, HEAP_FAILS ? STATUS_IO : STATUS_OK);
        leases_close(leases);
    });
}

static void test_deadlines(struct tap *tap) {
    TEST(tap, "deadlines follow what a session's leases take, and have a floor", {
        struct leases *leases = open_leases(tap, 100, 1);
        struct lease lease = lend(tap, leases, 1, 1, 0);
        CHECK_NEAR(tap, lease.deadline, 60, 0);
        done_with(leases, 1, lease, 2);
        lease = lend(tap, leases, 1, 1, 2);
        CHECK_NEAR(tap, lease.deadline, 20, 1e-9);
        done_with(leases, 1, lease, 12);
        CHECK_NEAR(tap, lend(tap, leases, 1, 1, 12).deadline, 100, 1e-9);
        lease = lend(tap, leases, 2, 1, 12);
        done_with(leases, 2, lease, 12.01);
        CHECK_NEAR(tap, lend(tap, leases, 2, 1, 13).deadline, 5, 0);
        leases_close(leases);
    });
    TEST(tap, "that the owner itself stood still is nobody's slowness", {
        struct leases *leases = open_leases(tap, 100, 1);
        struct lease quick = lend(tap, leases, 1, 1, 0), kept = lend(tap, leases, 1, 1, 0);
        double next;
        leases_paused(leases, 1000);
        CHECK(tap, done_with(leases, 1, quick, 1000.5));
        CHECK_NEAR(tap, lend(tap, leases, 1, 1, 1000.5).deadline, 5, 1e-9);
        CHECK_INT(tap, leases_expire(leases, 1059, &next), 1); // that one
        CHECK_NEAR(tap, next, 1, 1e-9);
        CHECK(tap, done_with(leases, 1, kept, 1059.5));
        leases_close(leases);
    });
    TEST(tap, "who is slower than the first deadline has longer ones, until it is in time", {
        struct leases *leases = open_leases(tap, 100, 1);
        double now = 0, next;
        struct lease lease = lend(tap, leases, 1, 1, now);
        for (int i = 0; i < 2; i++, lease = lend(tap, leases, 1, 1, now))
            CHECK_INT(tap, leases_expire(leases, now += lease.deadline, &next), 1);
        CHECK_NEAR(tap, lease.deadline, 240, 1e-9);
        done_with(leases, 1, lease, now + 200);
        CHECK_NEAR(tap, lend(tap, leases, 1, 1, now + 200).deadline, 2000, 1e-9);
        CHECK_NEAR(tap, lend(tap, leases, 2, 1, now).deadline, 60, 0);
        leases_close(leases);
    });
    TEST(tap, "the next deadline is known", {
        struct leases *leases = open_leases(tap, 100, 1);
        double next;
        CHECK_INT(tap, leases_expire(leases, 0, &next), 0);
        CHECK(tap, next < 0);
        lend(tap, leases, 1, 7, 10);
        CHECK_INT(tap, leases_expire(leases, 20, &next), 0);
        CHECK_NEAR(tap, next, 50, 1e-9);
        CHECK_INT(tap, leases_expire(leases, 70, &next), 7);
        leases_close(leases);
    });
}

static void test_cursor(struct tap *tap) {
    struct error err = {0};
    TEST(tap, "a cursor that is not of this data is refused, and changes nothing", {
        struct leases *leases = open_leases(tap, 10, 1);
        done_with(leases, 1, lend(tap, leases, 1, 2, 0), 0);
        const struct range beyond[] = {{0, 2}, {8, 3}};
        const struct range twice[] = {{0, 2}, {1, 3}};
        CHECK_INT(tap, leases_set_cursor(leases, 1, beyond, 2, &err), STATUS_DATA);
        CHECK_INT(tap, leases_set_cursor(leases, 1, twice, 2, &err), STATUS_DATA);
        CHECK_INT(tap, leases_epoch(leases), 0);
        CHECK_INT(tap, leases_finished(leases), 2);
        leases_close(leases);
    });
    TEST(tap, "what was drawn before the cursor was set is void", {
        struct leases *leases = open_leases(tap, 10, 1);
        struct drawn_range drawn;
        struct range finished = {2, 3};
        leases_draw(leases, 4, true, &drawn);
        CHECK(tap, leases_wants(leases, &drawn) && leases_now(leases, &drawn));
        CHECK_INT(tap, leases_set_cursor(leases, 0, &finished, 1, &err), STATUS_OK);
        CHECK(tap, !leases_wants(leases, &drawn) && !leases_now(leases, &drawn));
        leases_draw(leases, 4, true, &drawn);
        CHECK(tap, drawn.places.first == 0 && drawn.places.count == 2);
        leases_draw(leases, 9, true, &drawn);
        CHECK(tap, drawn.places.first == 5 && drawn.places.count == 5);
        leases_close(leases);
    });
}

int main(void) {
    struct tap tap = {0};
    test_histories(&tap);
    test_epoch_end(&tap);
    test_fewer_epochs(&tap);
    test_last_epoch(&tap);
    test_sessions(&tap);
    test_deadlines(&tap);
    test_cursor(&tap);
    return tap_done(&tap);
}
