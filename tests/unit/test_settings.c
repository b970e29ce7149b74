// Settings as checkpoints keep them.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "core/json.h"
#include "run/settings.h"

static struct settings some_settings(void) {
    struct settings settings;
    settings_default(&settings);
    settings.data = "train.arec";
    settings.ops = "flip 0.5";
    settings.batch = 17;
    settings.rate = 0.25;
    settings.protocol = "hardsync";
    return settings;
}

static void test_write(struct tap *tap) {
    TEST(tap, "settings are written and read back; what is not given and what is usual is not", {
        struct settings settings = some_settings();
        struct settings back;
        json_t *object = settings_write(&settings);
        settings_default(&back);
        settings_read(&back, object);
        CHECK_TEXT(tap, back.data, "train.arec");
        CHECK_TEXT(tap, back.ops, "flip 0.5");
        CHECK_TEXT(tap, back.protocol, "hardsync");
        CHECK_INT(tap, back.batch, 17);
        CHECK_NEAR(tap, back.rate, 0.25, 0);
        CHECK(tap, !json_object_get(object, "test") && !json_object_get(object, "push-every"));
        json_decref(object);
    });
}

static struct settings through_text(const struct settings *settings) {
    struct settings back;
    json_t *object = settings_write(settings);
    char *line = json_line(object);
    json_decref(object);
    settings_default(&back);
    if (line && !json_read(&object, line, strlen(line), NULL)) {
        settings_read(&back, object);
        json_decref(object);
    }
    free(line);
    return back;
}

static void test_digits(struct tap *tap) {
    TEST(tap, "a run goes on with the same numbers, however many digits they were given", {
        struct settings given, own;
        settings_default(&given);
        CHECK_INT(tap, settings_choose(&given, "mixup", "1/3", NULL), STATUS_OK);
        CHECK_NEAR(tap, through_text(&given).mixup, given.mixup, 0);
        settings_default(&own);
        own.rate = 1.0 / 7;
        settings_round(&own);
        CHECK_NEAR(tap, own.rate, 1.0 / 7, 1e-9);
        CHECK_NEAR(tap, through_text(&own).rate, own.rate, 0);
        CHECK(tap, isnan(own.momentum));
    });
}

// What a run of these settings multiplies its rates by.
static void check_reference(struct tap *tap, struct settings settings, bool measures,
                            uint64_t reference) {
    struct protocol protocol;
    enum protocol_push push;
    CHECK_INT(tap, settings_protocol(&settings, &protocol, &push, NULL), STATUS_OK);
    CHECK_INT(tap, push == PUSH_DELTA && protocol_measures(&protocol), measures);
    CHECK_INT(tap, protocol.reference_batch, reference);
}

static void test_reference(struct tap *tap) {
    TEST(tap, "workers measure how long their steps may be under async with deltas only", {
        struct settings settings = some_settings();
        check_reference(tap, settings, false, 17);
        settings.protocol = "async";
        check_reference(tap, settings, true, 0);
        settings.reference_batch = 32;
        check_reference(tap, settings, false, 32);
        settings.reference_batch = 0;
        settings.push = "gradient";
        check_reference(tap, settings, false, 17);
        settings.modulate = "none";
        check_reference(tap, settings, false, 0);
        settings.push = "delta";
        check_reference(tap, settings, false, 0);
        settings.modulate = "each";
        check_reference(tap, settings, false, 17);
    });
}

static bool await_copies(const char *ack, const char *kind) {
    struct settings settings = some_settings();
    struct protocol protocol;
    enum protocol_push push;
    settings.ack = ack;
    settings.protocol = kind;
    return settings_protocol(&settings, &protocol, &push, NULL) == STATUS_OK &&
           settings_await_copies(&settings, &protocol);
}

// By ack=memory copies are made now and then, which a step of several workers cannot wait for.
static void test_copies(struct tap *tap) {
    TEST(tap, "pushes wait for their copies but for ack=memory, and under async alone", {
        CHECK(tap, !await_copies("memory", "async"));
        CHECK(tap, await_copies("replicated", "async"));
        CHECK(tap, await_copies("durable", "async"));
        CHECK(tap, await_copies("memory", "hardsync"));
        CHECK(tap, await_copies("memory", "softsync:2"));
    });
}

static void test_memory(struct tap *tap) {
    TEST(tap, "without memory, once or for good, no setting is left out: there is no object", {
        const struct settings settings = some_settings();
        json_t *whole = settings_write(&settings);
        int missing = 0;
        for (long n = 0; HEAP_FAILS && n < 500; n++) {
            heap_fail_once(n);
            json_t *once = settings_write(&settings);
            heap_fail_after(n);
            json_t *after = settings_write(&settings);
            heap_fail_after(-1);
            missing += !once + !after;
            CHECK(tap, !once || json_equal(once, whole));
            CHECK(tap, !after || json_equal(after, whole));
            json_decref(once);
            json_decref(after);
        }
        CHECK(tap, whole && (missing > 0 || !HEAP_FAILS));
        json_decref(whole);
    });
    TEST(tap, "nor out of the text that members of a run are sent", {
        const struct settings settings = some_settings();
        char *whole = settings_text(&settings);
        int missing = 0;
        for (long n = 0; HEAP_FAILS && n < 500; n++) {
            heap_fail_once(n);
            char *once = settings_text(&settings);
            heap_fail_after(-1);
            missing += !once;
            CHECK(tap, !once || !strcmp(once, whole));
            free(once);
        }
        CHECK(tap, whole && (missing > 0 || !HEAP_FAILS));
        free(whole);
    });
}

static void test_texts(struct tap *tap) {
    TEST(tap, "a text that is not UTF-8 is refused by its name", {
        struct settings settings = some_settings();
        struct error err = {0};
        CHECK_INT(tap, settings_check(&settings, &err), STATUS_OK);
        settings.ops = "caf\xe9";
        CHECK_INT(tap, settings_check(&settings, &err), STATUS_USAGE);
        CHECK(tap, !strncmp(err.text, "ops 'caf", 8));
    });
}

static void test_mixing(struct tap *tap) {
    TEST(tap, "mini-batches of one sample are not mixed", {
        struct settings settings = some_settings();
        struct error err = {0};
        settings.mixup = settings.cutmix = 0;
        settings.batch = 1;
        CHECK_INT(tap, settings_check(&settings, &err), STATUS_OK);
        settings.cutmix = 1;
        CHECK_INT(tap, settings_check(&settings, &err), STATUS_USAGE);
        CHECK_TEXT(tap, err.text,
                   "cutmix mixes the samples of a mini-batch, and with a batch of 1 there is "
                   "nothing to mix");
        settings.batch = 2;
        CHECK_INT(tap, settings_check(&settings, &err), STATUS_OK);
    });
}

// As the files of runs have them.
static bool is_refused(const char *lines) {
    char text[256];
    struct settings settings;
    settings_default(&settings);
    snprintf(text, sizeof text, "%s", lines);
    return !settings_parse(&settings, text, NULL) && settings_check(&settings, NULL) != STATUS_OK;
}

static void test_without_meaning(struct tap *tap) {
    TEST(tap, "what has no meaning beside the rest is refused", {
        CHECK(tap, is_refused("epsilon=0.1"));
        CHECK(tap, is_refused("optimizer=momentum\nepsilon=0.1"));
        CHECK(tap, !is_refused("optimizer=adam\nepsilon=0.1"));
        CHECK(tap, !is_refused("epsilon=1e-8"));
        CHECK(tap, is_refused("in-flight=2"));
        CHECK(tap, !is_refused("in-flight=2\npartitions=2"));
        CHECK(tap, is_refused("test-labels=l"));
        CHECK(tap, !is_refused("test=t\ntest-labels=l"));
        CHECK(tap, is_refused("targets=t\ntest=auto=0.1\ntest-targets=u"));
        CHECK(tap, is_refused("test=t\npatience=2\neval-every=0"));
        CHECK(tap, !is_refused("test=t\npatience=2\neval-every=0.5"));
    });
}

int main(void) {
    struct tap tap = {0};
    test_write(&tap);
    test_digits(&tap);
    test_reference(&tap);
    test_copies(&tap);
    test_memory(&tap);
    test_texts(&tap);
    test_mixing(&tap);
    test_without_meaning(&tap);
    return tap_done(&tap);
}
