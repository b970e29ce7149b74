// Which of several tests is the best, and how checkpoints remember it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "run/best.h"

static bool take(struct best *best, double top1, double loss, uint64_t clock, double epoch) {
    return best_take(best,
                     &(struct best){.value = top1, .loss = loss, .clock = clock, .epoch = epoch});
}

static void test_order(struct tap *tap) {
    TEST(tap, "higher accuracy is better, then lower loss; the first of equals stays", {
        struct best best = {0};
        CHECK(tap, take(&best, 0.5, 1, 10, 1));
        CHECK(tap, !take(&best, 0.5, 1, 20, 2));
        CHECK(tap, !take(&best, 0.4, 0.1, 30, 3));
        CHECK_INT(tap, best.clock, 10);
        CHECK_INT(tap, best.worse, 2);
        CHECK(tap, take(&best, 0.5, 0.9, 40, 4));
        CHECK_INT(tap, best.worse, 0);
        CHECK(tap, take(&best, 0.6, 2, 50, 5));
        CHECK_INT(tap, best.clock, 50);
        CHECK_NEAR(tap, best.epoch, 5, 0);
    });
    TEST(tap, "no loss is worse than one that is no number", {
        struct best best = {0};
        CHECK(tap, take(&best, 0.5, NAN, 10, 1));
        CHECK(tap, !take(&best, 0.5, NAN, 20, 2));
        CHECK(tap, take(&best, 0.5, 1e30, 30, 3));
        CHECK(tap, !take(&best, 0.5, NAN, 40, 4));
    });
}

static void test_memory(struct tap *tap) {
    TEST(tap, "what a checkpoint remembers comes back", {
        struct best best = {0};
        take(&best, 0.25, NAN, 7, 1.5);
        take(&best, 0.1, 1, 8, 2);
        json_t *object = best_json(&best);
        struct best again = best_read(object);
        CHECK(tap, again.known && isnan(again.loss));
        CHECK_NEAR(tap, again.value, 0.25, 0);
        CHECK_NEAR(tap, again.epoch, 1.5, 0);
        CHECK_INT(tap, again.clock, 7);
        CHECK_INT(tap, again.worse, 1);
        json_decref(object);
    });
    TEST(tap, "what comes back is as good as what was remembered", {
        struct best best = {0};
        const double top1 = 78.0 / 608, loss = 2.4264681127286;
        take(&best, top1, loss, 7, 1);
        json_t *object = best_json(&best);
        char *line = json_line(object);
        json_decref(object);
        CHECK_INT(tap, json_read(&object, line, strlen(line), NULL), STATUS_OK);
        struct best again = best_read(object);
        CHECK(tap, take(&again, top1, 2.42, 8, 2)); // as in a run that was not stopped
        again = best_read(object);
        CHECK(tap, !take(&again, top1, loss, 8, 2));
        free(line);
        json_decref(object);
    });
    TEST(tap, "each figure is remembered by its name, and compared with its own alone", {
        struct best best = {0};
        take(&best, 0.9, 1, 7, 1);
        const struct best r2 = {.figure = FIGURE_R2, .value = -3, .loss = 2, .clock = 8};
        CHECK(tap, best_take(&best, &r2));
        CHECK(tap, !best_take(&best, &r2));
        json_t *object = best_json(&best);
        struct best again = best_read(object);
        CHECK(tap, again.known && again.figure == FIGURE_R2);
        CHECK_NEAR(tap, again.value, -3, 0);
        CHECK(tap, !json_object_get(object, "top1"));
        json_decref(object);
    });
    TEST(tap, "of what is no such object nothing is believed", {
        json_t *text = json_string("best"),
               *negative = json_pack("{s:f, s:i}", "top1", 0.5, "clock", -3);
        CHECK(tap, !best_read(NULL).known);
        CHECK(tap, !best_read(text).known);
        CHECK_INT(tap, best_read(negative).clock, 0);
        json_decref(text);
        json_decref(negative);
    });
}

int main(void) {
    struct tap tap = {0};
    test_order(&tap);
    test_memory(&tap);
    return tap_done(&tap);
}
