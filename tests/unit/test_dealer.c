// What a worker gives back is dealt again: at once, once, and to whoever asks.
#include "../helper/dealer_rig.h"

enum { A = 11, B = 7, ALL = 4 };

static struct dealt ask(const struct dealer_rig *rig, uint64_t session) {
    return rig_ask(rig, session, 0, 0);
}

static void test_again(struct tap *tap) {
    TEST(tap, "a lease that is given back is dealt again at once, and once", {
        struct dealer_rig rig;
        struct dealt dealt[ALL];
        rig_open(tap, &rig, ALL, NULL, 0);
        for (uint32_t i = 0; i < ALL; i++) {
            dealt[i] = ask(&rig, A);
            CHECK(tap, is_batch(dealt[i], i));
        }
        CHECK_INT(tap, ask(&rig, B).answer, DEAL_ENDING);
        CHECK_INT(tap, dealer_return(rig.dealer, A, dealt[1].lease), RIG_BATCH);
        rig_made(tap, &rig, (2 * ALL + 1) * RIG_BATCH); // by one who then sleeps
        CHECK_INT(tap, dealer_return(rig.dealer, A, dealt[3].lease), RIG_BATCH);
        rig_made(tap, &rig, (2 * ALL + 2) * RIG_BATCH);
        struct dealt first = ask(&rig, B), second = ask(&rig, B);
        CHECK(tap, is_batch(first, 1) && is_batch(second, 3));
        CHECK_INT(tap, ask(&rig, B).answer, DEAL_ENDING);
        CHECK(tap, !rig_finish(&rig, dealt[1]) && !rig_finish(&rig, dealt[3]));
        CHECK(tap, rig_finish(&rig, dealt[0]) && rig_finish(&rig, dealt[2]));
        CHECK(tap, rig_finish(&rig, first));
        CHECK_INT(tap, dealer_figures(rig.dealer).epoch, 0);
        CHECK(tap, rig_finish(&rig, second));
        CHECK_INT(tap, dealer_figures(rig.dealer).epoch, 1);
        rig_close(&rig);
    });
}

static void test_others(struct tap *tap) {
    TEST(tap, "another's lease, one that is over, or never was, is not given back", {
        struct dealer_rig rig;
        rig_open(tap, &rig, 2, NULL, 0);
        struct dealt first = ask(&rig, A), second = ask(&rig, A);
        CHECK_INT(tap, dealer_return(rig.dealer, B, first.lease), 0);
        CHECK_INT(tap, dealer_return(rig.dealer, A, second.lease + 1), 0);
        CHECK(tap, rig_finish(&rig, first));
        CHECK_INT(tap, dealer_return(rig.dealer, A, first.lease), 0);
        CHECK_INT(tap, dealer_return(rig.dealer, A, second.lease), RIG_BATCH);
        CHECK_INT(tap, dealer_return(rig.dealer, A, second.lease), 0);
        CHECK_INT(tap, dealer_figures(rig.dealer).finished, RIG_BATCH);
        rig_close(&rig);
    });
}

int main(void) {
    struct tap tap = {0};
    test_again(&tap);
    test_others(&tap);
    return tap_done(&tap);
}
