// Learning-rate schedules against their closed forms, and mini-batches as epochs.
#include "../helper/tap.h"
#include "core/error.h"
#include "run/schedule.h"
#include "train/loop.h"

static struct schedule parsed(struct tap *tap, const char *text) {
    struct schedule schedule = {.rate = 0.8, .total = 10};
    struct error err = {0};
    if (schedule_parse(&schedule, text, &err))
        FAIL(tap, "%s: %s", text, err.text);
    return schedule;
}

static void test_curves(struct tap *tap) {
    TEST(tap, "constant stays", {
        struct schedule s = parsed(tap, "constant");
        CHECK_NEAR(tap, schedule_rate(&s, 0), 0.8, 1e-12);
        CHECK_NEAR(tap, schedule_rate(&s, 99.5), 0.8, 1e-12);
    });
    TEST(tap, "steps come at the epochs named, not before", {
        struct schedule s = parsed(tap, "step:0.1@3,5.5");
        CHECK_NEAR(tap, schedule_rate(&s, 2.999), 0.8, 1e-12);
        CHECK_NEAR(tap, schedule_rate(&s, 3), 0.08, 1e-12);
        CHECK_NEAR(tap, schedule_rate(&s, 5.499), 0.08, 1e-12);
        CHECK_NEAR(tap, schedule_rate(&s, 5.5), 0.008, 1e-12);
    });
    TEST(tap, "steps come every so many epochs, by a fraction too", {
        struct schedule s = parsed(tap, "step:0.5/2");
        CHECK_NEAR(tap, schedule_rate(&s, 1.99), 0.8, 1e-12);
        CHECK_NEAR(tap, schedule_rate(&s, 4), 0.2, 1e-12);
        s = parsed(tap, "step:1/4/2");
        CHECK_NEAR(tap, schedule_rate(&s, 4), 0.05, 1e-12);
    });
    TEST(tap, "exponential decay is smooth", {
        struct schedule s = parsed(tap, "exp:0.9");
        CHECK_NEAR(tap, schedule_rate(&s, 2.5), 0.8 * pow(0.9, 2.5), 1e-12);
    });
    TEST(tap, "a cosine goes from the rate to its end, and stays there", {
        struct schedule s = parsed(tap, "cosine:0.1");
        CHECK_NEAR(tap, schedule_rate(&s, 0), 0.8, 1e-12);
        CHECK_NEAR(tap, schedule_rate(&s, 5), 0.45, 1e-12);
        CHECK_NEAR(tap, schedule_rate(&s, 10), 0.1, 1e-12);
        CHECK_NEAR(tap, schedule_rate(&s, 12), 0.1, 1e-12);
    });
    TEST(tap, "a warm-up grows linearly over whatever the schedule says", {
        struct schedule s = parsed(tap, "step:0.5/1");
        s.warmup = 4;
        CHECK_NEAR(tap, schedule_rate(&s, 0), 0, 1e-12);
        CHECK_NEAR(tap, schedule_rate(&s, 0.5), 0.8 * 0.5 / 4, 1e-12);
        CHECK_NEAR(tap, schedule_rate(&s, 2), 0.8 * 0.25 * 2 / 4, 1e-12);
        CHECK_NEAR(tap, schedule_rate(&s, 4), 0.05, 1e-12);
    });
}

static void test_refusals(struct tap *tap) {
    TEST(tap, "what is no schedule is refused with what could be meant", {
        static const char *const bad[] = {
            "",
            "constantly",
            "step",
            "step:",
            "step:0.1",
            "step:0.1@",
            "step:x@3",
            "step:0.1@5,3",
            "step:0.1@3,",
            "step:0.1/0",
            "exp",
            "exp:",
            "exp:-1",
            "cosine:",
            "cosine:-1",
            "cosinus",
            "step:0/3",
            "exp:0.9 ",
            "step:0.1@1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
        };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            struct schedule s = {0};
            struct error err = {0};
            if (schedule_parse(&s, bad[i], &err) != STATUS_USAGE || !strstr(err.text, "cosine"))
                FAIL(tap, "'%s' was taken, or refused without advice", bad[i]);
        }
    });
}

static void test_pace(struct tap *tap) {
    TEST(tap, "mini-batches and epochs agree, ragged ends included", {
        const struct pace pace = {.samples = 10, .batch = 4};
        CHECK_INT(tap, pace_per_epoch(&pace), 3);
        CHECK_NEAR(tap, pace_epoch(&pace, 2), 0.8, 1e-12);
        CHECK_NEAR(tap, pace_epoch(&pace, 3), 1, 0);
        CHECK_NEAR(tap, pace_epoch(&pace, 7), 2.4, 1e-12);
        CHECK_INT(tap, pace_number(&pace, 1.5), 5);
        for (uint64_t batch = 1; batch <= 10; batch++) {
            const struct pace any = {.samples = 60000, .batch = batch * 7};
            for (uint64_t number = 0; number < 30000; number += 17)
                CHECK_INT(tap, pace_number(&any, pace_epoch(&any, number)), number);
        }
    });
    TEST(tap, "without a known number of samples there is no progress", {
        const struct pace pace = {.batch = 4};
        CHECK_NEAR(tap, pace_epoch(&pace, 1000), 0, 0);
    });
}

int main(void) {
    struct tap tap = {0};
    test_curves(&tap);
    test_refusals(&tap);
    test_pace(&tap);
    return tap_done(&tap);
}
