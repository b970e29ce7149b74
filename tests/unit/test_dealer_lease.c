// What becomes of a dealer's leases and of its epochs: who goes or is late loses its places to
// others, what is finished is remembered, and who asks too early or too late is told so.
#include "../helper/dealer_rig.h"
#include "../helper/heap.h"
#include "core/error.h"

enum { A = 11, B = 7, ALL = 4 };

static struct dealt ask(const struct dealer_rig *rig, uint64_t session) {
    return rig_ask(rig, session, 0, 0);
}

// What the session is told that works on this epoch and wants so many samples.
static enum dealer_answer ask_for(const struct dealer_rig *rig, uint32_t epoch, uint32_t samples,
                                  struct dealt *dealt, uint64_t *detail) {
    const struct dealer_request request = {.session = A, .epoch = epoch, .samples = samples};
    struct leased_batch leased;
    enum dealer_answer answer =
        dealer_issue(rig->dealer, &request, clock_seconds(), &leased, detail);
    if (answer == DEALER_ISSUED) {
        *dealt = (struct dealt){answer, A, leased.lease.number, leased.drawn.places};
        dealer_release(rig->dealer, leased.buffer);
    }
    return answer;
}

static void test_gone(struct tap *tap) {
    TEST(tap, "what a session had that is gone is dealt to others, and nobody waits for it", {
        struct dealer_rig rig;
        rig_open(tap, &rig, ALL, NULL, 0);
        struct dealt lost[2];
        lost[0] = ask(&rig, A);
        struct dealt own = ask(&rig, B);
        lost[1] = ask(&rig, A);
        CHECK_INT(tap, dealer_session(rig.dealer, 0), A);
        CHECK_INT(tap, dealer_session(rig.dealer, 1), B);
        CHECK_INT(tap, dealer_session(rig.dealer, 2), 0);
        dealer_gone(rig.dealer, A);
        CHECK_INT(tap, dealer_session(rig.dealer, 0), B);
        CHECK_INT(tap, dealer_session(rig.dealer, 1), 0);
        rig_made(tap, &rig, (2 * ALL + 2) * RIG_BATCH);
        struct dealt first = ask(&rig, B);
        struct dealt second = ask(&rig, B);
        struct dealt third = ask(&rig, B);
        CHECK(tap, is_batch(first, 0) && is_batch(second, 2) && is_batch(third, 3));
        CHECK(tap, !rig_finish(&rig, lost[0]) && !rig_finish(&rig, lost[1]));
        CHECK(tap, rig_finish(&rig, first) && rig_finish(&rig, second) && rig_finish(&rig, third));
        CHECK(tap, rig_finish(&rig, own));
        CHECK_INT(tap, dealer_figures(rig.dealer).epoch, 1);
        rig_close(&rig);
    });
}

static void test_late(struct tap *tap) {
    TEST(tap, "what is not finished by its deadline is dealt again", {
        struct dealer_rig rig;
        double next;
        rig_open(tap, &rig, 2, NULL, 0);
        struct dealt late = ask(&rig, A);
        double now = clock_seconds();
        CHECK_INT(tap, dealer_expire(rig.dealer, now + 50, &next), 0);
        CHECK(tap, next > 0 && next <= 10); // the first lease of a session has a minute
        CHECK_INT(tap, dealer_expire(rig.dealer, now + 60, &next), RIG_BATCH);
        CHECK(tap, next < 0);
        rig_made(tap, &rig, (2 * 2 + 1) * RIG_BATCH);
        CHECK(tap, is_batch(ask(&rig, B), 0) && is_batch(ask(&rig, B), 1));
        CHECK(tap, !rig_finish(&rig, late));
        rig_close(&rig);
    });
}

static void test_cursor(struct tap *tap) {
    TEST(tap, "the cursor is what is finished, and another dealer goes on from there", {
        struct dealer_rig rig;
        struct dealer_rig other;
        struct dealt dealt[ALL];
        uint64_t seed;
        uint32_t epoch;
        size_t count;
        rig_open(tap, &rig, ALL, NULL, 0);
        for (int i = 0; i < ALL; i++)
            dealt[i] = ask(&rig, A);
        CHECK(tap, rig_finish(&rig, dealt[0]) && rig_finish(&rig, dealt[2]));
        struct range *finished = dealer_cursor(rig.dealer, &seed, &epoch, &count);
        CHECK_INT(tap, seed, 0);
        CHECK_INT(tap, epoch, 0);
        CHECK_INT(tap, count, 2);
        CHECK_INT(tap, finished[0].first, 0);
        CHECK_INT(tap, finished[0].count, RIG_BATCH);
        CHECK_INT(tap, finished[1].first, 2 * RIG_BATCH);
        rig_open(tap, &other, ALL, NULL, 0);
        CHECK_INT(tap, dealer_set_cursor(other.dealer, 99, 0, finished, count, NULL), STATUS_OK);
        rig_made(tap, &other, (2 * ALL + 2 + ALL) * RIG_BATCH); // anew, but what is finished
        CHECK_INT(tap, dealer_figures(other.dealer).finished, 2 * RIG_BATCH);
        CHECK_INT(tap, dealer_figures(other.dealer).ready, (2 + ALL) * RIG_BATCH);
        struct dealt first = ask(&other, B), second = ask(&other, B);
        CHECK(tap, is_batch(first, 1) && is_batch(second, 3));
        CHECK_INT(tap, ask(&other, B).answer, DEALER_ENDING);
        CHECK(tap, rig_finish(&other, first));
        free(finished);
        finished = dealer_cursor(other.dealer, &seed, &epoch, &count);
        CHECK_INT(tap, seed, 99);
        CHECK_INT(tap, count, 1);
        CHECK_INT(tap, finished[0].count, 3 * RIG_BATCH);
        CHECK(tap, rig_finish(&other, second));
        CHECK_INT(tap, dealer_figures(other.dealer).epoch, 1);
        free(finished);
        rig_close(&other);
        rig_close(&rig);
    });
    TEST(tap, "there may be no memory for a copy of the cursor", {
        struct dealer_rig rig;
        uint64_t seed;
        uint32_t epoch;
        size_t count;
        rig_open(tap, &rig, 2, NULL, 0);
        CHECK(tap, rig_finish(&rig, ask(&rig, A)));
        heap_fail_after(0);
        struct range *finished = dealer_cursor(rig.dealer, &seed, &epoch, &count);
        heap_fail_after(-1);
        CHECK(tap, !HEAP_FAILS || !finished);
        free(finished);
        rig_close(&rig);
    });
    TEST(tap, "a cursor of other data changes nothing", {
        struct dealer_rig rig;
        struct error err = {0};
        uint64_t seed;
        uint32_t epoch;
        size_t count;
        const struct range beyond = {0, 2 * RIG_BATCH + 1};
        rig_open(tap, &rig, 2, NULL, 0);
        struct dealt dealt = ask(&rig, A);
        CHECK_INT(tap, dealer_set_cursor(rig.dealer, 99, 1, &beyond, 1, &err), STATUS_DATA);
        CHECK(tap, rig_finish(&rig, dealt));
        struct range *finished = dealer_cursor(rig.dealer, &seed, &epoch, &count);
        CHECK_INT(tap, seed, 0);
        CHECK_INT(tap, epoch, 0);
        free(finished);
        rig_close(&rig);
    });
}

static void test_epochs(struct tap *tap) {
    TEST(tap, "who asks for an epoch that is over hears which is served, and when all are", {
        struct dealer_rig rig;
        struct dealt dealt;
        uint64_t detail = 77;
        rig_open(tap, &rig, 1, NULL, 0);
        CHECK_INT(tap, ask_for(&rig, 0, RIG_BATCH, &dealt, &detail), DEALER_ISSUED);
        CHECK_INT(tap, ask_for(&rig, 0, RIG_BATCH, &dealt, &detail), DEALER_ENDING);
        CHECK(tap, rig_finish(&rig, dealt));
        CHECK_INT(tap, ask_for(&rig, 0, RIG_BATCH, &dealt, &detail), DEALER_EPOCH_OVER);
        CHECK_INT(tap, detail, 1);
        CHECK(tap, !dealer_figures(rig.dealer).done);
        CHECK_INT(tap, ask_for(&rig, 1, RIG_BATCH, &dealt, &detail), DEALER_ISSUED);
        CHECK(tap, is_batch(dealt, 0));
        CHECK(tap, rig_finish(&rig, dealt));
        CHECK_INT(tap, ask_for(&rig, 2, RIG_BATCH, &dealt, &detail), DEALER_ALL_OVER);
        CHECK(tap, dealer_figures(rig.dealer).done);
        CHECK_NEAR(tap, dealer_figures(rig.dealer).progress, 2, 0);
        rig_close(&rig);
    });
    TEST(tap, "fewer epochs end it as soon as they are over", {
        struct dealer_rig rig;
        rig_open(tap, &rig, 1, NULL, 0);
        CHECK(tap, rig_finish(&rig, ask(&rig, A)));
        dealer_rules(rig.dealer, &(struct lease_rules){.epochs = 1, .epoch_end = 1, .least = 5});
        CHECK(tap, dealer_figures(rig.dealer).done);
        CHECK_INT(tap, ask(&rig, A).answer, DEALER_ALL_OVER);
        rig_close(&rig);
    });
    TEST(tap, "an epoch that may end before its last sample does so when that is told", {
        struct dealer_rig rig;
        uint64_t detail;
        rig_open(tap, &rig, 2, NULL, 0);
        struct dealt a = ask(&rig, A), b = ask(&rig, B);
        CHECK(tap, rig_finish(&rig, a));
        CHECK_INT(tap, dealer_figures(rig.dealer).epoch, 0);
        dealer_rules(rig.dealer, &(struct lease_rules){.epochs = 2, .epoch_end = 0.5, .least = 5});
        CHECK_INT(tap, dealer_figures(rig.dealer).epoch, 1);
        CHECK(tap, !rig_finish(&rig, b));
        CHECK_INT(tap, ask_for(&rig, 1, RIG_BATCH, &a, &detail), DEALER_ISSUED);
        CHECK(tap, is_batch(a, 0));
        rig_close(&rig);
    });
}

static void test_all_epochs(struct tap *tap) {
    TEST(tap, "however little it may make ahead, all samples of all epochs are dealt", {
        enum { EPOCHS = 3 };
        struct dealer_rig rig;
        rig_open(tap, &rig, ALL, NULL, 0);
        const struct dealer_options options = {
            .pictures = rig.pictures,
            .rules = {.epochs = EPOCHS, .epoch_end = 1, .least = 5},
            .batch = 1,
            .threads = 1};
        struct dealer_request request = {.session = A, .samples = 1};
        struct dealer *dealer;
        struct leased_batch leased;
        uint64_t detail;
        CHECK_INT(tap, dealer_open(&dealer, &options, NULL), STATUS_OK);
        enum dealer_answer answer = DEALER_BUSY;
        double until = clock_seconds() + 30;
        while (answer != DEALER_ALL_OVER && clock_seconds() < until) {
            struct range places;
            request.epoch = dealer_figures(dealer).epoch;
            answer = dealer_issue(dealer, &request, clock_seconds(), &leased, &detail);
            if (answer != DEALER_ISSUED)
                continue;
            dealer_release(dealer, leased.buffer);
            CHECK(tap, dealer_finish(dealer, A, leased.lease.number, clock_seconds(),
                                     &request.epoch, &places));
        }
        CHECK_INT(tap, answer, DEALER_ALL_OVER);
        CHECK_INT(tap, dealer_figures(dealer).leased, EPOCHS * ALL * RIG_BATCH);
        dealer_close(dealer);
        rig_close(&rig);
    });
}

static void test_pieces(struct tap *tap) {
    TEST(tap, "who wants fewer samples than a batch has gets it in pieces, each a lease", {
        struct dealer_rig rig;
        struct dealt dealt = {0};
        uint64_t detail = 0;
        const uint32_t counts[] = {3, 3, 2, 3};
        const uint32_t firsts[] = {0, 3, 6, 8};
        rig_open(tap, &rig, 2, NULL, 0);
        CHECK_INT(tap, ask_for(&rig, 0, 0, &dealt, &detail), DEALER_BUSY);
        CHECK(tap, detail > 0 && detail <= 500);
        for (int i = 0; i < 4; i++) {
            CHECK_INT(tap, ask_for(&rig, 0, 3, &dealt, &detail), DEALER_ISSUED);
            CHECK_INT(tap, dealt.places.first, firsts[i]);
            CHECK_INT(tap, dealt.places.count, counts[i]);
        }
        CHECK_INT(tap, dealer_figures(rig.dealer).leased, 11);
        CHECK_INT(tap, dealer_figures(rig.dealer).ready, 4 * RIG_BATCH - 11);
        dealer_gone(rig.dealer, B); // nobody: all is counted anew
        CHECK_INT(tap, dealer_figures(rig.dealer).ready, 4 * RIG_BATCH - 11);
        rig_close(&rig);
    });
}

int main(void) {
    struct tap tap = {0};
    test_gone(&tap);
    test_late(&tap);
    test_cursor(&tap);
    test_epochs(&tap);
    test_all_epochs(&tap);
    test_pieces(&tap);
    return tap_done(&tap);
}
