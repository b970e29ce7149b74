// Random streams, hashes, strict numbers, near misses, arenas, JSON, errors, crews, subnormals.
#include <float.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/columns.h"
#include "core/cpu.h"
#include "core/crew.h"
#include "core/error.h"
#include "core/grow.h"
#include "core/io.h"
#include "core/json.h"
#include "core/mem.h"
#include "core/printable.h"
#include "core/random.h"
#include "core/random_rows.h"
#include "core/text.h"
#include "core/utf8.h"

static void test_random(struct tap *tap) {
    TEST(tap, "Philox4x32-10 gives the published words for the zero key and counter", {
        struct random r = {.used = 4};
        uint32_t wanted[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
        for (int i = 0; i < 4; i++)
            CHECK_INT(tap, random_u32(&r), wanted[i]);
    });
    TEST(tap, "words taken at once are those taken one by one", {
        uint32_t words[600];
        for (uint32_t start = 0; start < 2; start++)
            for (size_t n = 0; n < 600; n += 7) {
                struct random a = random_stream(1, 2, n), b;
                a.counter[0] = start ? UINT32_MAX - 45 : 0; // wraps on the way
                random_u32(&a);
                b = a;
                random_words(&a, words, n);
                int wrong = 0;
                for (size_t i = 0; i < n; i++)
                    wrong += words[i] != random_u32(&b);
                CHECK_INT(tap, wrong, 0);
                CHECK_INT(tap, random_u32(&a), random_u32(&b));
            }
    });
    TEST(tap, "normal numbers have mean 0 and deviation 1", {
        struct random r = random_stream(1, 0, 0);
        double sum = 0;
        double squares = 0;
        for (int i = 0; i < 100000; i++) {
            double x = (double)random_normal(&r);
            sum += x, squares += x * x;
        }
        CHECK_NEAR(tap, sum / 1e5, 0, 0.02);
        CHECK_NEAR(tap, squares / 1e5, 1, 0.03);
    });
}

static void test_normals(struct tap *tap) {
    enum { MANY = 1 << 20 };
    float *x = mem_floats(MANY);
    TEST(tap, "normal numbers made at once have the moments of the normal distribution", {
        struct random r = random_stream(5, 0, 0);
        double sum[5] = {0};
        random_normals(&r, x, MANY);
        for (int i = 0; i < MANY; i++)
            for (int power = 1; power <= 4; power++)
                sum[power] += pow((double)x[i], power) / MANY;
        CHECK_NEAR(tap, sum[1], 0, 0.005);
        CHECK_NEAR(tap, sum[2], 1, 0.007);
        CHECK_NEAR(tap, sum[3], 0, 0.02);
        CHECK_NEAR(tap, sum[4], 3, 0.05);
        double next = 0; // neighbours, and the two of a pair, have nothing in common
        double pair = 0;
        for (int i = 0; i < MANY - 128; i++)
            next += (double)x[i] * (double)x[i + 1] / MANY,
                pair += (double)x[i] * (double)x[i + 128] / MANY;
        CHECK_NEAR(tap, next, 0, 0.005);
        CHECK_NEAR(tap, pair, 0, 0.005);
    });
    TEST(tap, "fewer of them are the first of more", {
        float few[700];
        for (size_t n = 0; n < 700; n += 53) {
            struct random r = random_stream(5, 0, 0);
            random_normals(&r, few, n);
            CHECK(tap, memcmp(few, x, n * sizeof *x) == 0);
        }
    });
    TEST(tap, "they are the same, to the last bit, in every family of processors", {
        struct random r = random_stream(5, 0, 0);
        uint32_t words[RANDOM_NORMALS];
        float normals[RANDOM_NORMALS];
        random_rows_ref.words(words, RANDOM_NORMALS / RANDOM_GROUP, r.key, r.counter);
        random_rows_ref.normals(normals, words);
        for (int i = 0; i < RANDOM_NORMALS; i++)
            CHECK(tap, normals[i] == x[i]);
    });
    free(x);
}

static void test_text(struct tap *tap) {
    TEST(tap, "numbers are read whole or not at all", {
        int64_t i;
        double d;
        CHECK(tap, text_integer("42", 2, &i) && i == 42);
        CHECK(tap, !text_integer("1hello", 6, &i));
        CHECK(tap, !text_integer("", 0, &i));
        CHECK(tap, !text_integer("99999999999999999999", 20, &i));
        CHECK(tap, text_plain_integer("0", &i) && i == 0);
        CHECK(tap, text_plain_integer("100", &i) && i == 100);
        CHECK(tap, text_plain_integer("-70", &i) && i == -70);
        static const char *const names[] = {"007", "+7", "-0", "00", "-07", "", "-", "7-", "7.0"};
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            CHECK(tap, !text_plain_integer(names[n], &i));
        CHECK(tap, text_real("1/255", 5, &d) && fabs(d - 1 / 255.0) < 1e-12);
        CHECK(tap, text_real("-1.5e-3", 7, &d) && d == -1.5e-3);
        CHECK(tap, !text_real("nan", 3, &d));
        CHECK(tap, !text_real("1/0", 3, &d));
        CHECK(tap, !text_real("0x10", 4, &d));
    });
    TEST(tap, "UTF-8 is told from what only looks like it", {
        static const char *const good[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
        for (size_t i = 0; i < 4; i++)
            CHECK_INT(tap, utf8_length(good[i]), strlen(good[i]));
        static const char *const bad[] = {
            "ab\xE9",             // Latin-1
            "ab\xC0\xAF",         // overlong
            "ab\xE0\x80\xAF",     // overlong
            "ab\xED\xA0\x80",     // a surrogate
            "ab\xF4\x90\x80\x80", // above U+10FFFF
            "ab\xE2\x82",         // cut off
            "ab\x80",             // starts in the middle
        };
        for (size_t i = 0; i < 7; i++)
            CHECK(tap, utf8_length(bad[i] + 2) == 0 && !utf8_is_valid(bad[i]));
        static const char *const odd[] = {"\x01", "\xEF\xBF\xBF"}; // not in XML
        for (size_t i = 0; i < 2; i++)
            CHECK(tap, utf8_length(odd[i]) == 0 && utf8_is_valid(odd[i]));
        CHECK(tap, utf8_is_valid("") && utf8_is_valid("caf\xC3\xA9 \xF0\x9F\x98\x80"));
    });
    TEST(tap, "the nearest word is found, a far one is not", {
        static const char *const words[] = {"kernel", "stride", "pad"};
        CHECK_TEXT(tap, text_nearest("kernal", 6, words, 3), "kernel");
        CHECK_TEXT(tap, text_nearest("stirde", 6, words, 3), "stride");
        CHECK_TEXT(tap, text_nearest("apd", 3, words, 3), "pad");
        CHECK(tap, text_nearest("", 0, words, 3) == NULL);
        CHECK(tap, text_nearest("momentum", 8, words, 3) == NULL);
    });
}

static void test_printable(struct tap *tap) {
    char text[64], small[8];
    TEST(tap, "what people read holds no control characters, and keeps all that is plain", {
        static const struct {
            const char *raw, *plain;
        } cases[] = {
            {"caf\xc3\xa9 \xf0\x9f\x98\x80 c:\\x", "caf\xc3\xa9 \xf0\x9f\x98\x80 c:\\x"},
            {"a\tb\nc\r", "a\\tb\\nc\\r"},
            {"\x1b[2J\x7f", "\\x1b[2J\\x7f"},
            {"\xc2\x9b"
             "31m",
             "\\xc2\\x9b31m"}, // CSI as one character
            {"\xe2\x80\xae"
             "txt",
             "\\xe2\\x80\\xaetxt"},                       // right to left
            {"\xe9\xff\xe2\x82", "\\xe9\\xff\\xe2\\x82"}, // damaged, and cut at the end
            {"", ""},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            printable_copy(text, sizeof text, cases[i].raw, strlen(cases[i].raw));
            CHECK_TEXT(tap, text, cases[i].plain);
        }
        printable_copy(text, sizeof text, "a\0b", 3);
        CHECK_TEXT(tap, text, "a\\x00b");
        printable_lines(text, sizeof text, "a\tb\nc\r\x1b", 7);
        CHECK_TEXT(tap, text, "a\tb\nc\\r\\x1b");
    });
    TEST(tap, "a text that does not fit is cut between characters", {
        printable_copy(small, sizeof small, "abcdef\xc3\xa9", 8);
        CHECK_TEXT(tap, small, "abcdef");
        printable_copy(small, sizeof small, "abcd\x1b", 5);
        CHECK_TEXT(tap, small, "abcd");
    });
    TEST(tap, "a value of a table can be had back", {
        char *value = NULL;
        size_t size;
        FILE *out = open_memstream(&value, &size);
        printable_value(out, "a\tb\nc\\d\r\x1b[0m\x7f \xc3\xa4\xe4");
        fclose(out);
        CHECK_TEXT(tap, value, "a\\tb\\nc\\\\d\\r\\x1b[0m\\x7f \xc3\xa4\\xe4");
        free(value);
    });
}

static void test_mem(struct tap *tap) {
    TEST(tap, "an arena measures, then hands out aligned zeroed pieces", {
        struct arena arena = {0};
        CHECK(tap, arena_take(&arena, 3, 4) == NULL);
        CHECK(tap, arena_take(&arena, 100, 4) == NULL);
        CHECK(tap, arena_open(&arena));
        char *a = arena_take(&arena, 3, 4);
        float *b = arena_take(&arena, 100, 4);
        CHECK(tap, a && b && (char *)b == a + MEM_ALIGN);
        CHECK(tap, (size_t)b % MEM_ALIGN == 0 && b[99] == 0);
        CHECK(tap, arena_take(&arena, 1, 1) == NULL);
        arena_close(&arena);
    });
    TEST(tap, "a list that grows keeps what it had, and has zeros behind it", {
        uint32_t room = 0, before;
        uint64_t *list = mem_longer(NULL, &room, 3, sizeof *list);
        CHECK(tap, list && room >= 3 && !list[0] && !list[2]);
        for (uint32_t i = 0; i < room; i++)
            list[i] = 7;
        CHECK(tap, mem_longer(list, &room, room, sizeof *list) == list);
        before = room;
        list = mem_longer(list, &room, room + 1, sizeof *list);
        CHECK(tap, list && room == 2 * before && list[before - 1] == 7);
        for (uint32_t i = before; i < room; i++)
            CHECK(tap, list[i] == 0);
        CHECK(tap, !mem_longer(list, &room, UINT32_MAX, (size_t)1 << 40) && list[0] == 7);
        CHECK_INT(tap, (int)room, 2 * (int)before);
        free(list);
    });
    TEST(tap, "sizes that overflow are refused", {
        struct arena arena = {0};
        arena_take(&arena, (size_t)-1, 8);
        CHECK(tap, !arena_open(&arena));
        CHECK(tap, mem_array((size_t)-1, 8) == NULL);
        CHECK(tap, mem_floats((size_t)-1 / 2) == NULL);
    });
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static long address_space(void) { // bytes
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &pages) != 1)
        exit(2);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void *allocate(void *self) {
    void *volatile piece = malloc(1000);
    *(long *)self = piece ? address_space() : -1;
    free(piece);
    return NULL;
}

// In a process of its own, which has so many megabytes of address space: whether a thread that
// allocates takes less than 32 of them, its stack with them.
static bool thread_is_modest(rlim_t megabytes) {
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {megabytes << 20, megabytes << 20};
        long after = -1;
        if (setrlimit(RLIMIT_AS, &limit))
            _exit(2);
        mem_begin();
        long before = address_space();
        _exit(crew_work(1, allocate, &after, NULL) || after < 0 || after - before >= 32 << 20);
    }
    int ended = 0;
    return child > 0 && waitpid(child, &ended, 0) == child && ended == 0;
}

static void test_address_space(struct tap *tap) {
    TEST(tap, "where address space is limited, the heap of a thread does not reserve it", {
        CHECK(tap, thread_is_modest(200));
        CHECK(tap, thread_is_modest(1000));
    });
}

// In a process of its own, which has so many more bytes of address space: whether a document of
// one long text is read as it is, or memory was out.
static bool long_text_is_sound(const char *document, size_t size, rlim_t more) {
    pid_t child = fork();
    if (child == 0) {
        const rlim_t most = (rlim_t)address_space() + more;
        const struct rlimit limit = {most, most};
        struct error err = {0};
        json_t *read = NULL;
        if (setrlimit(RLIMIT_AS, &limit))
            _exit(2);
        int status = json_read(&read, document, size, &err);
        _exit(status == STATUS_OK ? json_string_length(json_array_get(read, 0)) != size - 4
                                  : status != STATUS_IO);
    }
    int ended = 0;
    return child > 0 && waitpid(child, &ended, 0) == child && ended == 0;
}

static void test_marks(struct tap *tap) {
    TEST(tap, "a byte-order mark in front is none of a text", {
        CHECK_INT(tap, text_mark("\xef\xbb\xbfx", 4), 3);
        CHECK_INT(tap, text_mark("\xef\xbb\xbf", 3), 3);
        CHECK_INT(tap, text_mark("\xef\xbb\xbf", 2), 0);
        CHECK_INT(tap, text_mark("x\xef\xbb\xbf", 4), 0);
        CHECK_INT(tap, text_mark("", 0), 0);
        json_t *read = NULL;
        CHECK_INT(tap, json_read(&read, "\xef\xbb\xbf[7]", 6, NULL), STATUS_OK);
        CHECK_INT(tap, json_integer_value(json_array_get(read, 0)), 7);
        json_decref(read);
        struct error err;
        CHECK_INT(tap, json_read(&read, "\xef\xbb\xbf\xef\xbb\xbf[7]", 9, &err), STATUS_DATA);
        CHECK_INT(tap, json_read(&read, "\xef\xbb\xbf", 3, &err), STATUS_DATA);
    });
    TEST(tap, "nor of the first line of a file, and it is of another", {
        FILE *file = tmpfile();
        char *line = NULL;
        size_t room = 0;
        ssize_t length;
        fputs("\xef\xbb\xbf"
              "one\n\xef\xbb\xbf"
              "two\n",
              file);
        rewind(file);
        CHECK_INT(tap, io_line(file, "it", &line, &room, &length, NULL), STATUS_OK);
        CHECK_INT(tap, length, 4);
        CHECK_TEXT(tap, line, "one\n");
        CHECK_INT(tap, io_line(file, "it", &line, &room, &length, NULL), STATUS_OK);
        CHECK_INT(tap, length, 7);
        CHECK_INT(tap, io_line(file, "it", &line, &room, &length, NULL), STATUS_OK);
        CHECK_INT(tap, length, -1);
        free(line);
        fclose(file);
    });
}

static void test_json_memory(struct tap *tap) {
    TEST(tap, "a document for which there is no memory is not called wrong", {
        const size_t size = 8 << 20;
        char *document = malloc(size);
        memset(document, 'a', size);
        memcpy(document, "[\"", 2);
        memcpy(document + size - 2, "\"]", 2);
        int unsound = 0;
        for (rlim_t more = 0; more < (rlim_t)6 * size; more += size / 8)
            unsound += !long_text_is_sound(document, size, more);
        CHECK_INT(tap, unsound, 0);
        free(document);
    });
}
#endif

static void test_grow(struct tap *tap) {
    TEST(tap, "a text grows piece by piece, and is empty at first and after", {
        struct grow grow = {0};
        for (int i = 0; i < 1000; i++) {
            grow_put(&grow, "ab", 1);
            grow_format(&grow, "%d,", i % 10);
        }
        CHECK_INT(tap, grow.length, 3000);
        char *text = grow_take(&grow);
        CHECK(tap, strlen(text) == 3000 && strncmp(text, "a0,a1,a2,", 9) == 0);
        free(text);
        text = grow_take(&grow);
        CHECK_TEXT(tap, text, "");
        free(text);
        grow_put(&grow, "", (size_t)-1);
        grow_put(&grow, "a", 1);
        CHECK(tap, grow_take(&grow) == NULL);
    });
}

static void test_columns(struct tap *tap) {
    static const struct column titles[] = {{"name", false}, {"n", true}, {"last", false}};
    TEST(tap, "columns are as wide as their widest cell, numbers set to the right", {
        struct columns table = {.column = titles, .count = 3};
        struct grow to = {0};
        grow_format(&to, "# ");
        columns_put(&table, &to); // without rows
        for (int i = 9; i <= 10; i++) {
            columns_cell(&table, i > 9 ? "%s" : "%s of two", "words");
            columns_cell(&table, "%d", i);
            columns_cell(&table, "%s", "");
        }
        columns_put(&table, &to);
        char *text = grow_take(&to);
        CHECK_TEXT(tap, text,
                   "# name  n  last\n"
                   "name           n  last\n"
                   "words of two   9\n"
                   "words         10\n");
        free(text);
    });
}

static void test_error(struct tap *tap) {
    TEST(tap, "context goes in front of an error", {
        struct error err = {0};
        CHECK_INT(tap, error_set(&err, STATUS_DATA, "row %d is short", 3), STATUS_DATA);
        CHECK_INT(tap, error_context(&err, "reading %s", "x.arec"), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "reading x.arec: row 3 is short");
    });
}

// Waits for the others: all are at work at once.
static void *meet_others(void *self) {
    atomic_int *left = self;
    atomic_fetch_sub(left, 1);
    while (atomic_load(left) > 0)
        sched_yield();
    return NULL;
}

static void test_crew(struct tap *tap) {
    TEST(tap, "a crew works at once, and is done when all are", {
        atomic_int left = 3;
        struct error err = {0};
        CHECK_INT(tap, crew_work(3, meet_others, &left, &err), STATUS_OK);
        CHECK_INT(tap, left, 0);
        CHECK_INT(tap, crew_work(0, meet_others, &left, &err), STATUS_IO);
        CHECK_TEXT(tap, err.text, "cannot start a thread");
    });
}

// Half of the least normal float, which no compiler may compute.
static void *halve(void *self) {
    volatile float least = FLT_MIN;
    *(float *)self = least / 2;
    return NULL;
}

static void test_subnormals(struct tap *tap) {
    TEST(tap, "subnormal numbers are zero, also of threads that begin later", {
        float half = -1;
        struct error err = {0};
        halve(&half);
        CHECK(tap, half > 0);
        volatile float kept = half;
        cpu_flush_subnormals();
        halve(&half);
        CHECK(tap, half == 0 && kept * 4 == 0); // as a result and as an operand
        half = -1;
        CHECK_INT(tap, crew_work(1, halve, &half, &err), STATUS_OK);
        CHECK(tap, half == 0);
    });
}

int main(void) {
    struct tap tap = {0};
    test_random(&tap);
    test_normals(&tap);
    test_text(&tap);
    test_printable(&tap);
    test_mem(&tap);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    test_address_space(&tap);
    test_marks(&tap);
    test_json_memory(&tap);
#endif
    test_grow(&tap);
    test_columns(&tap);
    test_error(&tap);
    test_crew(&tap);
    test_subnormals(&tap); // the last: it changes this thread
    return tap_done(&tap);
}
