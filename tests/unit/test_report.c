// Round ticks, text that is safe in markup, runs read back from their metrics.
#include <stdlib.h>

#include "../helper/tap.h"
#include "../helper/tempfile.h"
#include "core/error.h"
#include "core/utf8.h"
#include "report/curves.h"
#include "report/heat.h"
#include "report/history.h"
#include "report/markup.h"
#include "report/scale.h"

static void test_scale(struct tap *tap) {
    struct scale s;
    char text[SCALE_LABEL];
    TEST(tap, "a linear scale has ticks at 1, 2 or 5 times a power of ten", {
        scale_fit(&s, SCALE_LINEAR, 0, 9.7, 5, 0);
        CHECK_INT(tap, s.ticks, 5);
        for (int i = 0; i < s.ticks; i++)
            CHECK_NEAR(tap, s.tick[i], 2 * i, 1e-12);
        CHECK_NEAR(tap, s.high, 9.7, 0);
        scale_fit(&s, SCALE_LINEAR, 95.67, 98.77, 4, 1);
        CHECK_NEAR(tap, s.low, 95, 1e-9);
        CHECK_NEAR(tap, s.high, 99, 1e-9);
    });
    TEST(tap, "labels have the decimals that the step needs, and zero has no sign", {
        scale_fit(&s, SCALE_LINEAR, 0, 0.05, 4, 1);
        scale_label(&s, s.tick[0], text);
        CHECK_TEXT(tap, text, "0.00");
        scale_label(&s, s.tick[1], text);
        CHECK_TEXT(tap, text, "0.02");
        scale_fit(&s, SCALE_LINEAR, 0, 9, 5, 0);
        scale_label(&s, s.tick[0], text);
        CHECK_TEXT(tap, text, "0");
    });
    TEST(tap, "a log scale ends at ticks outside of the values", {
        scale_fit(&s, SCALE_LOG, 0.013, 2.31, 5, 1);
        CHECK_NEAR(tap, s.low, 0.01, 1e-12);
        CHECK_NEAR(tap, s.high, 5, 1e-9);
        s.from = 100, s.to = 0;
        CHECK_NEAR(tap, scale_at(&s, 0.01), 100, 1e-9);
        CHECK_NEAR(tap, scale_at(&s, 5), 0, 1e-9);
        scale_fit(&s, SCALE_LOG, 1e-7, 1, 5, 1);
        CHECK_INT(tap, s.ticks, 8);
        scale_fit(&s, SCALE_LOG, 1e-300, 1e300, 5, 1);
        CHECK(tap, s.ticks > 1 && s.high >= 1e300 && s.low <= 1e-300);
    });
    TEST(tap, "time is counted in seconds, minutes or hours", {
        scale_fit(&s, SCALE_TIME, 0, 33, 4, 0);
        CHECK_TEXT(tap, scale_unit(&s), "seconds");
        CHECK_NEAR(tap, s.step, 10, 0);
        scale_fit(&s, SCALE_TIME, 0, 1500, 5, 0);
        CHECK_TEXT(tap, scale_unit(&s), "minutes");
        scale_label(&s, s.tick[1], text);
        CHECK_TEXT(tap, text, "5");
        scale_fit(&s, SCALE_TIME, 0, 20 * 3600, 5, 0);
        CHECK_TEXT(tap, scale_unit(&s), "hours");
    });
    TEST(tap, "an empty interval still makes an axis", {
        scale_fit(&s, SCALE_LINEAR, 0.05, 0.05, 4, 1);
        CHECK(tap, s.low < 0.05 && s.high > 0.05 && s.ticks >= 2);
        scale_fit(&s, SCALE_LINEAR, 0, 0, 4, 1);
        CHECK(tap, s.high > s.low && s.ticks >= 2);
    });
}

// What a writer printed, to be freed.
static char *printed(void (*print)(FILE *, const char *), const char *text) {
    char *result = NULL;
    size_t size;
    FILE *out = open_memstream(&result, &size);
    print(out, text);
    fclose(out);
    return result;
}

static void test_text(struct tap *tap) {
    TEST(tap, "nothing from outside is markup", {
        char *text = printed(markup_text, "<a href=\"x\">'&amp;");
        CHECK_TEXT(tap, text, "&lt;a href=&quot;x&quot;&gt;&#39;&amp;amp;");
        free(text);
    });
    TEST(tap, "bytes that are no UTF-8 and controls are replaced, the rest stays", {
        // good: e acute, euro, grinning face; bad: a lone byte, overlong, surrogate, 0x01
        char *text = printed(markup_text, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
        CHECK_TEXT(tap, text, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
        free(text);
        static const char *const bad[] = {
            "\xff",         "\xc3",         "\xc0\xaf", "\xe0\x80\x80",
            "\xed\xa0\x80", "\xef\xbf\xbf", "\x01",     "\xf4\x90\x80\x80"};
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            CHECK_INT(tap, utf8_length(bad[i]), 0);
        char *clean = utf8_clean("a\xff\tz");
        CHECK_TEXT(tap, clean, "a" UTF8_REPLACEMENT "\tz");
        free(clean);
    });
    TEST(tap, "base64 is that of RFC 4648", {
        static const char *const wanted[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE="};
        for (size_t n = 0; n < 6; n++) {
            char *text = NULL;
            size_t size;
            FILE *out = open_memstream(&text, &size);
            markup_base64(out, "fooba", n);
            fclose(out);
            CHECK_TEXT(tap, text, wanted[n]);
            free(text);
        }
    });
    TEST(tap, "numbers are written for people", {
        char text[MARKUP_NUMBER];
        markup_count(text, 1234567);
        CHECK_TEXT(tap, text, "1,234,567");
        markup_count(text, 999);
        CHECK_TEXT(tap, text, "999");
        markup_large(text, 2.5e9);
        CHECK_TEXT(tap, text, "2.5 G");
        markup_seconds(text, 119.7);
        CHECK_TEXT(tap, text, "2m00s");
        markup_seconds(text, 3725);
        CHECK_TEXT(tap, text, "1h02m");
    });
}

static void write_text(char path[TEMPFILE_PATH], const char *text) {
    tempfile_write(path, text, strlen(text));
}

#define START "{\"v\":1,\"t\":%s,\"event\":\"start\",\"command\":\"c\"}\n"
#define TRAIN                                                                                      \
    "{\"v\":1,\"t\":%s,\"event\":\"train\",\"step\":%d,\"epoch\":%g,\"loss\":%s,\"rate\":0.1}\n"

#define LEADER "{\"v\":1,\"t\":0,\"role\":\"controller\",\"event\":\"start\",\"command\":\"c\"}\n"
#define LEARNER                                                                                    \
    "{\"v\":1,\"t\":%d,\"role\":\"worker\",\"rank\":%d,\"event\":\"train\",\"step\":1,\"epoch\":%" \
    "d,"                                                                                           \
    "\"loss\":%g,\"rate\":0.1}\n"

static size_t count_of(const char *text, const char *what) {
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

static void test_learners(struct tap *tap) {
    TEST(tap, "each learner is a haze around the mean of all, and the legend says so", {
        char path[TEMPFILE_PATH];
        char *svg = NULL;
        size_t size;
        char lines[2048];
        struct history h;
        struct error err = {0};
        size_t n = (size_t)snprintf(lines, sizeof lines, LEADER);
        for (int epoch = 1; epoch <= 3; epoch++)
            for (int rank = 4; rank <= 6; rank++)
                n += (size_t)snprintf(lines + n, sizeof lines - n, LEARNER, epoch, rank, epoch,
                                      1e-5 * (rank + 0.4321));
        write_text(path, lines);
        CHECK_INT(tap, history_read(&h, path, &err), STATUS_OK);
        CHECK_INT(tap, h.learner_count, 3);
        FILE *out = open_memstream(&svg, &size);
        CHECK_INT(tap, curves_write(out, &h, 1, &(struct curves_options){.x = CURVES_EPOCH}, &err),
                  STATUS_OK);
        fclose(out);
        // A line for each and one of the legend; the mean, its legend and the rate are whole.
        CHECK_INT(tap, count_of(svg, "stroke-opacity=\"0.25\""), 4);
        CHECK_INT(tap, count_of(svg, "<polyline"), 7);
        CHECK_INT(tap, count_of(svg, "each worker"), 1);
        // 5.43e-05 would run into what stands beside it.
        CHECK(tap, strstr(svg, ">5.4e-05<"));
        free(svg);
        history_free(&h);
        unlink(path);
    });
}

static uint32_t big_endian(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void test_heat(struct tap *tap) {
    TEST(tap, "a confusion of very many classes is a picture of blocks that fits a page", {
        enum { CLASSES = 1300 };
        static const float scores[CLASSES] = {[7] = 1};
        struct error err = {0};
        struct tally tally;
        void *png = NULL;
        size_t size = 0;
        CHECK_INT(tap, tally_init(&tally, CLASSES, &err), STATUS_OK);
        CHECK_INT(tap, tally_confusion(&tally, &err), STATUS_OK);
        tally_add(&tally, scores, 7);
        tally_add(&tally, scores, CLASSES - 1);
        CHECK_INT(tap, heat_map(&png, &size, &tally, &err), STATUS_OK);
        CHECK(tap, size > 24 && !memcmp((uint8_t *)png + 12, "IHDR", 4));
        CHECK_INT(tap, big_endian((uint8_t *)png + 16), 434); // 1300 / 3, and what is left
        CHECK_INT(tap, big_endian((uint8_t *)png + 20), 434);
        free(png);
        tally_free(&tally);
    });
    TEST(tap, "few mistakes show in a heat map, none does not", {
        unsigned char none[3], few[3], right[3];
        heat_colour(none, 0, false);
        heat_colour(few, 0.01, false);
        heat_colour(right, 1, true);
        CHECK(tap, none[0] == 255 && none[1] == 255 && none[2] == 255);
        CHECK(tap, few[2] < 240 && few[0] > few[2]);
        CHECK(tap, right[2] > right[0]);
    });
}

static void test_history(struct tap *tap) {
    struct history h;
    struct error err = {0};
    TEST(tap, "a resumed run replaces what it does again, and its pause is no training", {
        char path[TEMPFILE_PATH];
        char lines[2048];
        snprintf(lines, sizeof lines, START TRAIN TRAIN TRAIN START TRAIN TRAIN, "100", "110", 10,
                 1.0, "0.9", "120", 20, 2.0, "0.8", "130", 30, 3.0, "0.7", "1000", "1010", 20, 2.0,
                 "0.5", "1020", 30, 3.0, "null");
        write_text(path, lines);
        CHECK_INT(tap, history_read(&h, path, &err), STATUS_OK);
        const struct curve *loss = &h.curves[CURVE_LOSS];
        CHECK_INT(tap, loss->n, 3); // 10, 20 of before, 20 of now; the null is none
        CHECK_NEAR(tap, loss->value[2], 0.5, 0);
        CHECK_NEAR(tap, loss->time[2], 40, 1e-9);
        CHECK_NEAR(tap, h.seconds, 50, 1e-9);
        CHECK_INT(tap, json_array_size(h.starts), 2);
        CHECK_INT(tap, h.end, HISTORY_RUNNING);
        history_free(&h);
        unlink(path);
    });
    TEST(tap, "what lies behind a start is of a branch that was left", {
        char path[TEMPFILE_PATH];
        char lines[2048];
        snprintf(lines, sizeof lines,
                 START TRAIN TRAIN TRAIN
                 "{\"v\":1,\"t\":200,\"event\":\"start\",\"step\":10,\"epoch\":1.0}\n" TRAIN,
                 "100", "110", 10, 1.0, "0.9", "120", 20, 2.0, "0.1", "130", 30, 3.0, "0.2", "220",
                 20, 2.0, "0.7");
        write_text(path, lines);
        CHECK_INT(tap, history_read(&h, path, &err), STATUS_OK);
        const struct curve *loss = &h.curves[CURVE_LOSS];
        CHECK_INT(tap, loss->n, 2); // 10 of before, 20 of now
        CHECK_NEAR(tap, curve_least(loss, NULL), 0.7, 0);
        CHECK_NEAR(tap, h.epoch, 2, 0);
        CHECK_NEAR(tap, h.step, 20, 0);
        history_free(&h);
        unlink(path);
    });
    TEST(tap, "mini-batches of workers that were started again count", {
        static const int told[][3] = {{3, 0, 0},   {4, 0, 0},   {3, 226, 1}, {4, 172, 1}, {4, 0, 0},
                                      {4, 237, 2}, {3, 300, 2}, {3, 0, 0},   {3, 20, 3}};
        char path[TEMPFILE_PATH];
        char lines[2048] = LEADER;
        for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
            size_t used = strlen(lines);
            snprintf(
                lines + used, sizeof lines - used,
                "{\"v\":1,\"t\":%zu,\"role\":\"worker\",\"rank\":%d,\"event\":\"%s\",\"step\":%d,"
                "\"epoch\":%d}\n",
                i, told[i][0], told[i][1] ? "train" : "start", told[i][1], told[i][2]);
        }
        write_text(path, lines);
        CHECK_INT(tap, history_read(&h, path, &err), STATUS_OK);
        CHECK_NEAR(tap, h.batches, 172 + 237 + 300 + 20, 0);
        CHECK_INT(tap, json_array_size(h.starts), 1);
        history_free(&h);
        unlink(path);
    });
    TEST(tap, "a line in the making is left out, a damaged one is named", {
        char path[TEMPFILE_PATH];
        write_text(path, "{\"v\":1,\"t\":1,\"event\":\"start\"}\n{\"v\":1,\"t\":2,\"ev");
        CHECK_INT(tap, history_read(&h, path, &err), STATUS_OK);
        history_free(&h);
        unlink(path);
        char other[TEMPFILE_PATH];
        write_text(other, "{\"v\":1,\"t\":1,\"event\":\"start\"}\n{\"v\":1,\"t\":2,\"ev\n{}\n");
        CHECK_INT(tap, history_read(&h, other, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, ":2: JSON line") != NULL);
        unlink(other);
    });
    TEST(tap, "metrics of another version, and an empty file, are refused", {
        char path[TEMPFILE_PATH];
        write_text(path, "{\"v\":2,\"t\":1,\"event\":\"start\"}\n");
        CHECK_INT(tap, history_read(&h, path, &err), STATUS_DATA);
        unlink(path);
        char other[TEMPFILE_PATH];
        write_text(other, "");
        CHECK_INT(tap, history_read(&h, other, &err), STATUS_DATA);
        unlink(other);
        CHECK_INT(tap, history_read(&h, "/nowhere/at/all", &err), STATUS_NOINPUT);
    });
    TEST(tap, "curves without any point, and a single one, can be drawn", {
        char path[TEMPFILE_PATH];
        char *svg = NULL;
        size_t size;
        char lines[512];
        snprintf(lines, sizeof lines, START TRAIN, "1", "2", 1, 0.0, "0");
        write_text(path, lines);
        CHECK_INT(tap, history_read(&h, path, &err), STATUS_OK);
        FILE *out = open_memstream(&svg, &size);
        CHECK_INT(tap, curves_write(out, &h, 1, &(struct curves_options){.x = CURVES_BOTH}, &err),
                  STATUS_OK);
        fclose(out);
        CHECK(tap, strstr(svg, "nothing recorded") && strstr(svg, "<polyline"));
        CHECK(tap, !strstr(svg, "nan") && !strstr(svg, "inf"));
        free(svg);
        history_free(&h);
        unlink(path);
    });
}

int main(void) {
    struct tap tap = {0};
    test_scale(&tap);
    test_text(&tap);
    test_learners(&tap);
    test_heat(&tap);
    test_history(&tap);
    return tap_done(&tap);
}
