// A data server whose workers share every step: nobody waits for good for places of another
// who does not come for them.
#include "../helper/dealer_rig.h"
#include "core/error.h"

enum { A = 11, B = 7, C = 23 }; // sessions, in the order of their slots

static void open_rig(struct tap *tap, struct dealer_rig *rig, uint32_t batches) {
    static const uint64_t sessions[] = {A, B, C};
    rig_open(tap, rig, batches, sessions, 3);
}

static enum dealer_answer ask(const struct dealer_rig *rig, uint64_t session, uint64_t step,
                              uint64_t clock) {
    return rig_ask(rig, session, step, clock).answer;
}

static void test_order(struct tap *tap) {
    TEST(tap, "a round has a batch for each member, as far as there are any", {
        struct dealer_rig rig;
        open_rig(tap, &rig, 2);
        CHECK_INT(tap, ask(&rig, C, 5, 5), DEALER_IDLE);
        CHECK_INT(tap, ask(&rig, B, 5, 5), DEALER_ISSUED);
        CHECK_INT(tap, ask(&rig, A, 5, 5), DEALER_ISSUED);
        rig_close(&rig);
    });
}

static void test_absent(struct tap *tap) {
    TEST(tap, "the last places, kept for one who got others elsewhere, go to the next step", {
        struct dealer_rig rig;
        open_rig(tap, &rig, 1);
        CHECK_INT(tap, ask(&rig, B, 5, 5), DEALER_IDLE);
        CHECK_INT(tap, ask(&rig, C, 5, 5), DEALER_IDLE);
        // Who asks ahead does not know yet whether the other comes.
        CHECK_INT(tap, ask(&rig, B, 6, 5), DEALER_BUSY);
        // By now it has taken its turn, and will not come.
        CHECK_INT(tap, ask(&rig, B, 6, 6), DEALER_IDLE);
        CHECK_INT(tap, ask(&rig, C, 6, 6), DEALER_IDLE);
        CHECK_INT(tap, ask(&rig, C, 7, 7), DEALER_IDLE);
        CHECK_INT(tap, ask(&rig, A, 7, 7), DEALER_ISSUED);
        rig_close(&rig);
    });
    TEST(tap, "a clock beyond the step that is asked for is not believed", {
        struct dealer_rig rig;
        open_rig(tap, &rig, 3);
        CHECK_INT(tap, ask(&rig, B, 5, 900), DEALER_ISSUED);
        CHECK_INT(tap, ask(&rig, A, 5, 5), DEALER_ISSUED);
        CHECK_INT(tap, ask(&rig, C, 5, 5), DEALER_ISSUED);
        rig_close(&rig);
    });
}

static void test_gone(struct tap *tap) {
    TEST(tap, "places that are kept for who goes are the others'", {
        struct dealer_rig rig;
        open_rig(tap, &rig, 3);
        CHECK(tap, is_batch(rig_ask(&rig, C, 5, 5), 2));
        dealer_gone(rig.dealer, A);
        CHECK(tap, is_batch(rig_ask(&rig, B, 5, 5), 1));
        CHECK_INT(tap, ask(&rig, C, 6, 6), DEALER_IDLE); // the only ones left are B's
        CHECK(tap, is_batch(rig_ask(&rig, B, 6, 6), 0));
        rig_close(&rig);
    });
    TEST(tap, "so are those of who is no member any more", {
        static const uint64_t left[] = {C};
        struct dealer_rig rig;
        open_rig(tap, &rig, 3);
        CHECK(tap, is_batch(rig_ask(&rig, C, 5, 5), 2));
        CHECK_INT(tap, dealer_members(rig.dealer, left, 1, NULL), STATUS_OK);
        CHECK_INT(tap, ask(&rig, B, 5, 5), DEALER_BUSY);
        CHECK(tap, is_batch(rig_ask(&rig, C, 6, 6), 0) && is_batch(rig_ask(&rig, C, 7, 7), 1));
        rig_close(&rig);
    });
    TEST(tap, "a stranger is told to come again, and that there was one is told once", {
        struct dealer_rig rig;
        open_rig(tap, &rig, 1);
        CHECK(tap, !dealer_met_stranger(rig.dealer));
        CHECK_INT(tap, ask(&rig, 99, 5, 5), DEALER_BUSY);
        CHECK(tap, dealer_met_stranger(rig.dealer) && !dealer_met_stranger(rig.dealer));
        rig_close(&rig);
    });
}

static void test_lost(struct tap *tap) {
    TEST(tap, "who asks for its step again, as the answer was lost, has its places again", {
        struct dealer_rig rig;
        open_rig(tap, &rig, 3);
        struct dealt lost = rig_ask(&rig, A, 5, 5);
        CHECK(tap, is_batch(lost, 0));
        CHECK_INT(tap, ask(&rig, A, 5, 5), DEALER_BUSY); // they are made again
        CHECK(tap, !rig_finish(&rig, lost));
        rig_made(tap, &rig, 7 * RIG_BATCH);
        CHECK(tap, is_batch(rig_ask(&rig, A, 5, 5), 0));
        CHECK(tap, is_batch(rig_ask(&rig, B, 5, 5), 1) && is_batch(rig_ask(&rig, C, 5, 5), 2));
        rig_close(&rig);
    });
}

static void test_later(struct tap *tap) {
    TEST(tap, "nobody waits for the last places that went to the next step", {
        struct dealer_rig rig;
        open_rig(tap, &rig, 1);
        // It had places of step 5 elsewhere.
        CHECK_INT(tap, ask(&rig, A, 6, 5), DEALER_ISSUED);
        CHECK_INT(tap, ask(&rig, B, 5, 5), DEALER_IDLE);
        CHECK_INT(tap, ask(&rig, C, 5, 5), DEALER_IDLE);
        rig_close(&rig);
    });
}

// The places of a push that was refused as too stale.
static void test_return(struct tap *tap) {
    TEST(tap, "places that are given back go to the next round, and not to their own again", {
        struct dealer_rig rig;
        open_rig(tap, &rig, 4);
        struct dealt a = rig_ask(&rig, A, 5, 5), b = rig_ask(&rig, B, 5, 5);
        struct dealt c = rig_ask(&rig, C, 5, 5), late = rig_ask(&rig, A, 6, 6);
        CHECK(tap, is_batch(a, 0) && is_batch(b, 1) && is_batch(c, 2) && is_batch(late, 3));
        CHECK_INT(tap, ask(&rig, B, 6, 6), DEALER_IDLE);
        CHECK(tap, rig_finish(&rig, a) && rig_finish(&rig, b) && rig_finish(&rig, c));
        CHECK_INT(tap, ask(&rig, B, 7, 7), DEALER_BUSY);
        CHECK_INT(tap, dealer_return(rig.dealer, A, late.lease), RIG_BATCH);
        rig_made(tap, &rig, 9 * RIG_BATCH);
        CHECK_INT(tap, ask(&rig, C, 6, 6), DEALER_IDLE);
        struct dealt again = rig_ask(&rig, A, 7, 7);
        CHECK(tap, is_batch(again, 3));
        CHECK_INT(tap, ask(&rig, B, 7, 7), DEALER_IDLE);
        CHECK(tap, !rig_finish(&rig, late));
        CHECK(tap, rig_finish(&rig, again));
        CHECK_INT(tap, dealer_figures(rig.dealer).epoch, 1);
        rig_close(&rig);
    });
    TEST(tap, "also when the next round has its places already", {
        struct dealer_rig rig;
        open_rig(tap, &rig, 4);
        struct dealt late = rig_ask(&rig, A, 5, 5), b = rig_ask(&rig, B, 5, 5);
        struct dealt c = rig_ask(&rig, C, 5, 5);
        CHECK_INT(tap, ask(&rig, B, 6, 6), DEALER_IDLE);
        CHECK_INT(tap, dealer_return(rig.dealer, A, late.lease), RIG_BATCH);
        rig_made(tap, &rig, 9 * RIG_BATCH);
        CHECK_INT(tap, ask(&rig, C, 6, 6), DEALER_IDLE);
        struct dealt a = rig_ask(&rig, A, 6, 6), again = rig_ask(&rig, A, 7, 7);
        CHECK(tap, is_batch(a, 3) && is_batch(again, 0));
        CHECK_INT(tap, ask(&rig, B, 7, 7), DEALER_IDLE);
        CHECK_INT(tap, ask(&rig, C, 7, 7), DEALER_IDLE);
        CHECK(tap, rig_finish(&rig, b) && rig_finish(&rig, c) && rig_finish(&rig, a));
        CHECK_INT(tap, dealer_figures(rig.dealer).epoch, 0);
        CHECK(tap, rig_finish(&rig, again));
        CHECK_INT(tap, dealer_figures(rig.dealer).epoch, 1);
        rig_close(&rig);
    });
}

int main(void) {
    struct tap tap = {0};
    test_order(&tap);
    test_absent(&tap);
    test_gone(&tap);
    test_lost(&tap);
    test_later(&tap);
    test_return(&tap);
    return tap_done(&tap);
}
