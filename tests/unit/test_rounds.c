// The slots of a step that all workers share: who gets one, in which order, and until when.
#include "../helper/tap.h"
#include "core/error.h"
#include "deal/rounds.h"

enum { A = 11, B = 7, C = 23 }; // sessions; members in another order than that of their numbers

static void set_members(struct tap *tap, struct rounds *rounds, const uint64_t *sessions,
                        size_t count) {
    struct error err = {0};
    CHECK_INT(tap, rounds_members(rounds, sessions, count, &err), STATUS_OK);
}

static struct rounds of_three(struct tap *tap) {
    static const uint64_t sessions[] = {A, B, C};
    struct rounds rounds = {0};
    set_members(tap, &rounds, sessions, 3);
    return rounds;
}

static void open_round(struct tap *tap, struct rounds *rounds, uint64_t step) {
    struct error err = {0};
    CHECK_INT(tap, rounds_open(rounds, step, &err), STATUS_OK);
    CHECK(tap, rounds_opened(rounds, step));
}

static bool reach(struct rounds *rounds, uint64_t session, uint64_t step) {
    return rounds_reach(rounds, rounds_member(rounds, session), step);
}

static uint64_t asked(const struct rounds *rounds, uint64_t session) {
    return rounds_member(rounds, session)->asked;
}

// The slot that comes first is this one; it gets its places.
static void fill(struct tap *tap, struct rounds *rounds, uint64_t step, uint64_t session) {
    struct round_slot slot = {0};
    if (!rounds_first(rounds, &slot)) {
        FAIL(tap, "no slot is open, not %llu's in step %llu", (unsigned long long)session,
             (unsigned long long)step);
        return;
    }
    if (slot.step != step || slot.session != session)
        FAIL(tap, "the first slot is %llu's in step %llu, not %llu's in step %llu",
             (unsigned long long)slot.session, (unsigned long long)slot.step,
             (unsigned long long)session, (unsigned long long)step);
    CHECK(tap, rounds_is_open(rounds, slot));
    rounds_fill(rounds);
    CHECK(tap, !rounds_is_open(rounds, slot));
}

// The same, and its owner takes them as this lease.
static void give(struct tap *tap, struct rounds *rounds, uint64_t step, uint64_t session,
                 uint64_t lease) {
    fill(tap, rounds, step, session);
    struct round_member *member = rounds_member(rounds, session);
    member->given = step;
    member->lease = lease;
}

static bool none_open(const struct rounds *rounds) {
    struct round_slot slot;
    return !rounds_first(rounds, &slot);
}

static void test_order(struct tap *tap) {
    TEST(tap, "before members are known there are no slots", {
        struct rounds rounds = {0};
        CHECK(tap, !rounds_member(&rounds, A));
        open_round(tap, &rounds, 1);
        CHECK(tap, none_open(&rounds));
        rounds_free(&rounds);
    });
    TEST(tap, "a round is a slot for each member, in the order of the members", {
        struct rounds rounds = of_three(tap);
        CHECK(tap, none_open(&rounds) && !rounds_opened(&rounds, 1));
        CHECK(tap, !rounds_opened_later(&rounds, 0));
        open_round(tap, &rounds, 1);
        fill(tap, &rounds, 1, A);
        fill(tap, &rounds, 1, B);
        fill(tap, &rounds, 1, C);
        CHECK(tap, none_open(&rounds));
        CHECK(tap, rounds_opened(&rounds, 1) && !rounds_opened(&rounds, 2));
        rounds_free(&rounds);
    });
    TEST(tap, "slots of earlier steps come first, whichever round was opened first", {
        struct rounds rounds = of_three(tap);
        open_round(tap, &rounds, 5);
        open_round(tap, &rounds, 3);
        open_round(tap, &rounds, 4);
        CHECK(tap, !rounds_opened(&rounds, 2) && !rounds_opened(&rounds, 6));
        CHECK(tap, rounds_opened_later(&rounds, 2) && rounds_opened_later(&rounds, 4));
        CHECK(tap, !rounds_opened_later(&rounds, 5));
        for (uint64_t step = 3; step <= 5; step++) {
            CHECK(tap, rounds_opened(&rounds, step));
            fill(tap, &rounds, step, A);
            fill(tap, &rounds, step, B);
            fill(tap, &rounds, step, C);
        }
        CHECK(tap, none_open(&rounds));
        rounds_free(&rounds);
    });
}

static void test_reach(struct tap *tap) {
    TEST(tap, "who is past a step has no slot in its round, who is at it has", {
        struct rounds rounds = of_three(tap);
        CHECK(tap, reach(&rounds, A, 3));
        CHECK(tap, reach(&rounds, B, 2));
        open_round(tap, &rounds, 2);
        CHECK(tap, !rounds_is_open(&rounds, (struct round_slot){2, A}));
        fill(tap, &rounds, 2, B);
        fill(tap, &rounds, 2, C);
        CHECK(tap, none_open(&rounds));
        rounds_free(&rounds);
    });
    TEST(tap, "who goes on leaves its open slots of earlier steps, and no others", {
        struct rounds rounds = of_three(tap);
        open_round(tap, &rounds, 1);
        open_round(tap, &rounds, 2);
        open_round(tap, &rounds, 3);
        CHECK(tap, reach(&rounds, B, 3));
        fill(tap, &rounds, 1, A);
        fill(tap, &rounds, 1, C);
        fill(tap, &rounds, 2, A);
        fill(tap, &rounds, 2, C);
        fill(tap, &rounds, 3, A);
        fill(tap, &rounds, 3, B);
        fill(tap, &rounds, 3, C);
        CHECK(tap, none_open(&rounds));
        rounds_free(&rounds);
    });
    TEST(tap, "the step that was asked for never goes back", {
        struct rounds rounds = of_three(tap);
        CHECK(tap, reach(&rounds, A, 4));
        CHECK(tap, !reach(&rounds, A, 4));
        CHECK(tap, !reach(&rounds, A, 3));
        CHECK_INT(tap, asked(&rounds, A), 4);
        CHECK_INT(tap, asked(&rounds, B), 0);
        open_round(tap, &rounds, 3);
        CHECK(tap, !rounds_is_open(&rounds, (struct round_slot){3, A}));
        rounds_free(&rounds);
    });
    TEST(tap, "only who skips a step, or took nothing in the last, may leave places behind", {
        struct rounds rounds = of_three(tap);
        reach(&rounds, A, 1);
        reach(&rounds, B, 1);
        open_round(tap, &rounds, 1);
        give(tap, &rounds, 1, A, 100);
        fill(tap, &rounds, 1, B); // and does not take them
        CHECK(tap, !reach(&rounds, A, 2));
        CHECK_INT(tap, asked(&rounds, A), 2);
        CHECK(tap, reach(&rounds, B, 2));
        CHECK(tap, reach(&rounds, A, 3));
        rounds_free(&rounds);
    });
    TEST(tap, "rounds are known until all members are past them", {
        struct rounds rounds = of_three(tap);
        open_round(tap, &rounds, 1);
        open_round(tap, &rounds, 2);
        reach(&rounds, A, 3);
        reach(&rounds, C, 2);
        CHECK(tap, rounds_opened(&rounds, 1) && rounds_opened(&rounds, 2));
        reach(&rounds, B, 2);
        CHECK(tap, !rounds_opened(&rounds, 1) && rounds_opened(&rounds, 2));
        rounds_free(&rounds);
    });
}

static void test_behind(struct tap *tap) {
    TEST(tap, "whoever is behind, its round is known", {
        static const uint64_t sessions[] = {A, B, C};
        for (int behind = 0; behind < 3; behind++) {
            struct rounds rounds = of_three(tap);
            open_round(tap, &rounds, 1);
            reach(&rounds, sessions[behind], 1);
            for (int i = 0; i < 3; i++)
                if (i != behind)
                    reach(&rounds, sessions[i], 2);
            CHECK(tap, rounds_opened(&rounds, 1));
            rounds_free(&rounds);
        }
    });
    TEST(tap, "freed rounds have no members, and may have others", {
        struct rounds rounds = of_three(tap);
        rounds_free(&rounds);
        CHECK(tap, !rounds_member(&rounds, A) && !rounds.members);
        rounds_free(&rounds);
    });
}

static void test_over(struct tap *tap) {
    TEST(tap, "nobody has a slot any more in a step that is over, who never asked neither", {
        struct rounds rounds = of_three(tap);
        CHECK(tap, reach(&rounds, B, 1));
        open_round(tap, &rounds, 1);
        open_round(tap, &rounds, 2);
        fill(tap, &rounds, 1, A);
        CHECK(tap, rounds_over(&rounds, 2));
        CHECK_INT(tap, asked(&rounds, A), 2);
        CHECK_INT(tap, asked(&rounds, C), 2);
        fill(tap, &rounds, 2, A);
        fill(tap, &rounds, 2, B);
        fill(tap, &rounds, 2, C);
        CHECK(tap, none_open(&rounds));
        CHECK(tap, !reach(&rounds, C, 2));
        CHECK(tap, reach(&rounds, A, 3));
        rounds_free(&rounds);
    });
    TEST(tap, "of a member that took its places there is nothing more before the next step", {
        struct rounds rounds = of_three(tap);
        open_round(tap, &rounds, 1);
        give(tap, &rounds, 1, A, 900);
        give(tap, &rounds, 1, B, 901);
        give(tap, &rounds, 1, C, 902);
        CHECK(tap, !rounds_over(&rounds, 2));
        CHECK(tap, !rounds_over(&rounds, 1));
        CHECK_INT(tap, asked(&rounds, A), 2);
        CHECK(tap, rounds_over(&rounds, 3));
        rounds_free(&rounds);
    });
}

static void test_members(struct tap *tap) {
    TEST(tap, "slots of who has gone are none, and the others go on", {
        struct rounds rounds = of_three(tap);
        open_round(tap, &rounds, 1);
        open_round(tap, &rounds, 2);
        rounds_gone(&rounds, A);
        CHECK(tap, !rounds_member(&rounds, A));
        CHECK(tap, !rounds_is_open(&rounds, (struct round_slot){1, A}));
        CHECK(tap, !rounds_is_open(&rounds, (struct round_slot){2, A}));
        fill(tap, &rounds, 1, B);
        fill(tap, &rounds, 1, C);
        fill(tap, &rounds, 2, B);
        fill(tap, &rounds, 2, C);
        CHECK(tap, none_open(&rounds));
        reach(&rounds, B, 3);
        reach(&rounds, C, 3);
        CHECK(tap, !rounds_opened(&rounds, 2)); // for which who has gone is not waited
        open_round(tap, &rounds, 3);
        fill(tap, &rounds, 3, B);
        fill(tap, &rounds, 3, C);
        CHECK(tap, none_open(&rounds));
        rounds_free(&rounds);
    });
    TEST(tap, "a stranger that goes takes no slot with it", {
        struct rounds rounds = of_three(tap);
        open_round(tap, &rounds, 1);
        rounds_gone(&rounds, 99);
        fill(tap, &rounds, 1, A);
        fill(tap, &rounds, 1, B);
        fill(tap, &rounds, 1, C);
        rounds_free(&rounds);
    });
    TEST(tap, "who joins later has a slot from the next round on", {
        static const uint64_t before[] = {A, B};
        static const uint64_t after[] = {A, B, C};
        struct rounds rounds = {0};
        set_members(tap, &rounds, before, 2);
        reach(&rounds, A, 2);
        open_round(tap, &rounds, 2);
        set_members(tap, &rounds, after, 3);
        CHECK_INT(tap, asked(&rounds, A), 2); // members keep what is known of them
        CHECK_INT(tap, asked(&rounds, C), 0);
        CHECK(tap, !rounds_is_open(&rounds, (struct round_slot){2, C}));
        open_round(tap, &rounds, 3);
        fill(tap, &rounds, 2, A);
        fill(tap, &rounds, 2, B);
        fill(tap, &rounds, 3, A);
        fill(tap, &rounds, 3, B);
        fill(tap, &rounds, 3, C);
        CHECK(tap, none_open(&rounds));
        rounds_free(&rounds);
    });
    TEST(tap, "who is no member any more has no slot, the new order is that of the next round", {
        static const uint64_t after[] = {C, A};
        struct rounds rounds = of_three(tap);
        open_round(tap, &rounds, 1);
        set_members(tap, &rounds, after, 2);
        open_round(tap, &rounds, 2);
        fill(tap, &rounds, 1, A);
        fill(tap, &rounds, 1, C);
        fill(tap, &rounds, 2, C);
        fill(tap, &rounds, 2, A);
        CHECK(tap, none_open(&rounds));
        rounds_free(&rounds);
    });
}

static void test_again(struct tap *tap) {
    TEST(tap, "a request that is repeated opens the same slot again, before later steps", {
        struct rounds rounds = of_three(tap);
        struct error err = {0};
        reach(&rounds, B, 1);
        open_round(tap, &rounds, 1);
        give(tap, &rounds, 1, A, 100);
        give(tap, &rounds, 1, B, 101);
        give(tap, &rounds, 1, C, 102);
        open_round(tap, &rounds, 2);
        CHECK_INT(tap, rounds_again(&rounds, rounds_member(&rounds, B), &err), STATUS_OK);
        CHECK_INT(tap, rounds_member(&rounds, B)->lease, 0);
        CHECK_INT(tap, rounds_member(&rounds, C)->lease, 102);
        fill(tap, &rounds, 1, B);
        fill(tap, &rounds, 2, A);
        fill(tap, &rounds, 2, B);
        fill(tap, &rounds, 2, C);
        CHECK(tap, none_open(&rounds));
        rounds_free(&rounds);
    });
    TEST(tap, "a slot that was opened again is left by who goes on", {
        struct rounds rounds = of_three(tap);
        struct error err = {0};
        reach(&rounds, A, 1);
        open_round(tap, &rounds, 1);
        give(tap, &rounds, 1, A, 100);
        rounds_close(&rounds);
        CHECK_INT(tap, rounds_again(&rounds, rounds_member(&rounds, A), &err), STATUS_OK);
        CHECK(tap, rounds_is_open(&rounds, (struct round_slot){1, A}));
        CHECK(tap, reach(&rounds, A, 2));
        CHECK(tap, none_open(&rounds));
        rounds_free(&rounds);
    });
}

static void test_ends(struct tap *tap) {
    TEST(tap, "closed slots are gone, and their rounds are still known", {
        struct rounds rounds = of_three(tap);
        open_round(tap, &rounds, 1);
        fill(tap, &rounds, 1, A);
        rounds_close(&rounds);
        CHECK(tap, none_open(&rounds));
        CHECK(tap, !rounds_is_open(&rounds, (struct round_slot){1, B}));
        CHECK(tap, rounds_opened(&rounds, 1));
        open_round(tap, &rounds, 2);
        fill(tap, &rounds, 2, A);
        rounds_free(&rounds);
    });
    TEST(tap, "cleared rounds can be opened anew, by the same members", {
        struct rounds rounds = of_three(tap);
        reach(&rounds, A, 2);
        open_round(tap, &rounds, 1);
        open_round(tap, &rounds, 2);
        rounds_clear(&rounds);
        CHECK(tap, none_open(&rounds));
        CHECK(tap, !rounds_opened(&rounds, 1) && !rounds_opened(&rounds, 2));
        open_round(tap, &rounds, 2);
        fill(tap, &rounds, 2, A);
        fill(tap, &rounds, 2, B);
        fill(tap, &rounds, 2, C);
        CHECK(tap, none_open(&rounds));
        rounds_free(&rounds);
    });
}

static void test_growth(struct tap *tap) {
    TEST(tap, "many members and many rounds opened last to first keep their order", {
        enum { MEMBERS = 50, STEPS = 40 };
        uint64_t sessions[MEMBERS];
        struct rounds rounds = {0};
        for (size_t i = 0; i < MEMBERS; i++)
            sessions[i] = 1000 - i;
        for (size_t n = 1; n <= MEMBERS; n++)
            set_members(tap, &rounds, sessions, n);
        for (uint64_t step = STEPS; step > 0; step--)
            open_round(tap, &rounds, step);
        for (uint64_t step = 1; step <= STEPS; step++)
            for (size_t i = 0; i < MEMBERS; i++)
                fill(tap, &rounds, step, sessions[i]);
        CHECK(tap, none_open(&rounds));
        for (uint64_t step = 1; step <= STEPS; step++)
            CHECK(tap, rounds_opened(&rounds, step));
        rounds_free(&rounds);
        CHECK(tap, rounds.member_count == 0 && none_open(&rounds));
    });
}

int main(void) {
    struct tap tap = {0};
    test_order(&tap);
    test_reach(&tap);
    test_behind(&tap);
    test_over(&tap);
    test_members(&tap);
    test_again(&tap);
    test_ends(&tap);
    test_growth(&tap);
    return tap_done(&tap);
}
