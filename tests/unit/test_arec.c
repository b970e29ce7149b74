// The record format: its bytes, streams, joined files, and every kind of damage.
#include <fcntl.h>
#include <sys/wait.h>

#include "../helper/samples.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "data/dataset.h"

static char folder[SCRATCH_PATH];

// A segment with one class "a" and one gray sample of 1x2 pixels, 7 and 9, as
// adam-records(5) describes it. CRC-32s were computed with Python's zlib.
// clang-format off
static const uint8_t golden[] = {
    0x61, 0x64, 0x61, 0x6d, 0x72, 0x65, 0x63, 0x0a, 0x01, 0x00, 0x00, 0x00,
    0x90, 0xfd, 0xb1, 0xf0, 0x63, 0x6c, 0x61, 0x73, 0x00, 0x00, 0x00, 0x00,
    0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x35, 0xe1, 0x30, 0x54,
    0x3c, 0xbe, 0x28, 0x0d, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
    0x61, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x73, 0x61, 0x6d, 0x70,
    0x00, 0x00, 0x00, 0x00, 0x1a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x4d, 0xb7, 0x45, 0x75, 0xc8, 0x0d, 0x25, 0x41, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00,
    0x6b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x09, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x63, 0x6c, 0x61, 0x73, 0x00, 0x00, 0x00, 0x00,
    0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x35, 0xe1, 0x30, 0x54,
    0x3c, 0xbe, 0x28, 0x0d, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
    0x61, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x69, 0x6e, 0x64, 0x78,
    0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0xa4, 0xff, 0x34, 0x67, 0x3a, 0xc4, 0x2e, 0x51, 0x38, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5d, 0x57, 0x62, 0x08,
    0x74, 0x61, 0x69, 0x6c, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0xb5, 0x75, 0xbd, 0x29, 0x18, 0x59, 0xdf, 0xb8,
    0x70, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x98, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
// clang-format on

static void test_golden(struct tap *tap) {
    TEST(tap, "one sample gives exactly the bytes that adam-records(5) describes", {
        struct sample sample = {.label = 0};
        struct classes classes = {0};
        struct error err = {0};
        struct sink *sink;
        int label;
        CHECK_INT(tap, classes_label(&classes, "a", &label, &err), STATUS_OK);
        CHECK_INT(tap, sample_key(&sample, "k", &err), STATUS_OK);
        CHECK_INT(tap, image_shape(&sample.image, 2, 1, 1, PIXEL_U8, &err), STATUS_OK);
        sample.image.u8[0] = 7;
        sample.image.u8[1] = 9;
        CHECK_INT(tap, sink_open(&sink, in(folder, "golden.arec"), NULL, &classes, &err),
                  STATUS_OK);
        CHECK_INT(tap, sink_put(sink, &sample, &err), STATUS_OK);
        CHECK_INT(tap, sink_close(sink, &err), STATUS_OK);
        size_t size = 0;
        uint8_t *data = file_read(in(folder, "golden.arec"), &size);
        CHECK_INT(tap, size, sizeof golden);
        for (size_t i = 0; data && i < size && i < sizeof golden; i++)
            if (data[i] != golden[i]) {
                FAIL(tap, "byte %zu is %02x, not %02x", i, data[i], golden[i]);
                break;
            }
        free(data);
        sample_free(&sample);
        classes_free(&classes);
    });
}

static const struct made small = {.count = 5, .channels = 3, .height = 2, .width = 3, .classes = 3};

// What the source says about these bytes, with the file name taken out.
static struct account account_bytes(const void *data, size_t size) {
    file_write(in(folder, "bytes"), data, size);
    return account_of(in(folder, "bytes"), &(struct source_options){.from = "arec"});
}

// Every line of a sample in `text` must be a line of `of`.
static bool all_true(const char *text, const char *of) {
    char *copy = test_need(strdup(text));
    bool good = true;
    for (char *rest = copy, *line; (line = strsep(&rest, "\n"));) {
        if (!*line || !strncmp(line, "skipped ", 8) || !strncmp(line, "failed ", 7))
            continue;
        const char *found = strstr(of, line);
        good = good && found && (found == of || found[-1] == '\n');
    }
    free(copy);
    return good;
}

// The same for a data set that opens: every sample it gives is true, or an error.
static bool dataset_true(const char *path, const struct account *wanted, bool *opened,
                         bool *whole) {
    struct dataset *dataset;
    struct error err = {0};
    *opened = dataset_open(&dataset, path, NULL, false, NULL, &err) == STATUS_OK;
    *whole = *opened;
    if (!*opened)
        return err.text[0] != 0;
    struct account account = {0};
    account_line(&account, "%s", "");
    struct sample sample = {0};
    for (uint32_t i = 0; i < dataset_count(dataset); i++) {
        if (dataset_image(dataset, i, NULL, &sample.image, &err) ||
            sample_key(&sample, dataset_key(dataset, i), &err)) {
            *whole = false;
            continue;
        }
        sample.label = dataset_label(dataset, i);
        account_sample(&account, dataset_classes(dataset), &sample);
    }
    bool good = all_true(account.text, wanted->text);
    sample_free(&sample);
    account_free(&account);
    dataset_close(dataset);
    return good;
}

static void test_damage(struct tap *tap) {
    struct account wanted = {0};
    struct error err = {0};
    size_t size = 0;
    const char *path = in(folder, "small.arec");
    if (made_write(path, NULL, &small, &wanted, &err))
        FAIL(tap, "%s", err.text);
    uint8_t *data = test_need(file_read(in(folder, "small.arec"), &size));
    TEST(tap, "what was written is read again", {
        struct account account = account_bytes(data, size);
        CHECK_TEXT(tap, account.text, wanted.text);
        account_free(&account);
    });
    TEST(tap, "cut off anywhere, it says so, and gives the samples before", {
        for (size_t n = 1; n < size; n++) {
            struct account account = account_bytes(data, n);
            bool opened, whole;
            if (account.skipped + (account.status != STATUS_OK) == 0)
                FAIL(tap, "cut at %zu: no complaint", n);
            if (!all_true(account.text, wanted.text))
                FAIL(tap, "cut at %zu: wrong samples: %s", n, account.text);
            if (account.samples + account.missing > 5 || account.missing > 1)
                FAIL(tap, "cut at %zu: a sample that never was: %s", n, account.text);
            account_free(&account);
            if (!dataset_true(in(folder, "bytes"), &wanted, &opened, &whole) || opened)
                FAIL(tap, "cut at %zu: a data set opens", n);
        }
    });
    TEST(tap, "with any byte changed, it is right or says so, and loses at most one sample", {
        for (size_t i = 0; i < size; i++) {
            data[i] ^= 0x55;
            struct account account = account_bytes(data, size);
            bool opened, whole;
            if (!all_true(account.text, wanted.text))
                FAIL(tap, "byte %zu: wrong samples: %s", i, account.text);
            // Names of classes stand before their first sample: three such
            // chunks here, each of which names one class of one or two samples.
            if (account.status == STATUS_OK && account.samples + 2 < 5)
                FAIL(tap, "byte %zu: only %zu samples: %s", i, account.samples, account.text);
            if (account.samples < 5 && !account.skipped && !account.status)
                FAIL(tap, "byte %zu: silent loss", i);
            if (account.status == STATUS_OK && account.samples + account.missing != 5)
                FAIL(tap, "byte %zu: %zu samples and %llu missing: %s", i, account.samples,
                     (unsigned long long)account.missing, account.text);
            account_free(&account);
            if (!dataset_true(in(folder, "bytes"), &wanted, &opened, &whole))
                FAIL(tap, "byte %zu: the data set is wrong", i);
            data[i] ^= 0x55;
        }
    });
    TEST(tap, "a damaged record is named with its number and offset", {
        // The last byte of the first record's pixels.
        size_t at = 16;
        while (memcmp(data + at, "samp", 4) != 0)
            at++;
        size_t pixel = at + 24 + 16 + 8;
        data[pixel] ^= 1;
        struct account account = account_bytes(data, size);
        char line[2 * SCRATCH_PATH];
        snprintf(line, sizeof line,
                 "skipped %s: record 0: at offset %zu: damaged: its CRC-32 does not fit\n",
                 in(folder, "bytes"), at);
        CHECK(tap, !strncmp(account.text, line, strlen(line)));
        CHECK_INT(tap, account.samples, 4);
        account_free(&account);
        data[pixel] ^= 1;
    });
    free(data);
    account_free(&wanted);
}

static void test_joined(struct tap *tap) {
    struct error err = {0};
    struct made a = {.count = 4, .channels = 1, .height = 4, .width = 4, .classes = 2};
    // The second file knows its classes in another order.
    TEST(tap, "cat of two files is valid; labels of the second are mapped by name", {
        struct account one = {0};
        CHECK_INT(tap, made_write(in(folder, "a.arec"), NULL, &a, &one, &err), STATUS_OK);
        struct sample sample = {0};
        struct classes classes = {0};
        int label;
        struct sink *sink;
        CHECK_INT(tap, classes_label(&classes, "new", &label, &err), STATUS_OK);
        CHECK_INT(tap, classes_label(&classes, "c1", &label, &err), STATUS_OK);
        CHECK_INT(tap, sink_open(&sink, in(folder, "b.arec"), NULL, &classes, &err), STATUS_OK);
        for (int i = 0; i < 2; i++) {
            made_sample(&sample, &(struct made){.channels = 1, .height = 4, .width = 4}, NULL,
                        10 + i);
            sample.label = i;
            CHECK_INT(tap, sink_put(sink, &sample, &err), STATUS_OK);
            account_sample(&one, &classes, &sample);
        }
        CHECK_INT(tap, sink_close(sink, &err), STATUS_OK);
        CHECK_INT(tap, shell(folder, "cat a.arec b.arec >ab.arec"), 0);
        struct account both = account_of(in(folder, "ab.arec"), NULL);
        CHECK_TEXT(tap, both.text, one.text);
        struct source *source;
        struct classes names = {0};
        CHECK_INT(tap, source_open(&source, in(folder, "ab.arec"), NULL, &names, &err), 0);
        CHECK_INT(tap, source_count(source), 6);
        source_close(source);
        classes_free(&names);
        struct dataset *dataset = NULL;
        CHECK_INT(tap, dataset_open(&dataset, in(folder, "ab.arec"), NULL, true, NULL, &err), 0);
        CHECK_INT(tap, dataset_count(dataset), 6);
        CHECK_INT(tap, dataset_classes(dataset)->count, 3);
        CHECK_INT(tap, dataset_label(dataset, 4), classes_find(dataset_classes(dataset), "new"));
        CHECK_INT(tap, dataset_label(dataset, 5), classes_find(dataset_classes(dataset), "c1"));
        dataset_close(dataset);
        account_free(&both);
        account_free(&one);
        sample_free(&sample);
        classes_free(&classes);
    });
    TEST(tap, "a file cut off anywhere and joined with another never gives a wrong label", {
        struct account wanted = account_of(in(folder, "ab.arec"), NULL);
        size_t size_a = 0, size_b = 0;
        uint8_t *data_a = test_need(file_read(in(folder, "a.arec"), &size_a));
        uint8_t *data_b = test_need(file_read(in(folder, "b.arec"), &size_b));
        uint8_t *joined = test_need(malloc(size_a + size_b));
        for (size_t n = 0; n < size_a; n++) {
            memcpy(joined, data_a, n);
            memcpy(joined + n, data_b, size_b);
            struct account account = account_bytes(joined, n + size_b);
            if (!all_true(account.text, wanted.text))
                FAIL(tap, "cut at %zu: %s", n, account.text);
            if (n > 0 && account.skipped == 0)
                FAIL(tap, "cut at %zu: no complaint", n);
            if (!strstr(account.text, "0000010 new") || !strstr(account.text, "0000011 c1"))
                FAIL(tap, "cut at %zu: the second file is not read: %s", n, account.text);
            account_free(&account);
        }
        free(data_a);
        free(data_b);
        free(joined);
        account_free(&wanted);
    });
}

static void test_index(struct tap *tap) {
    struct error err = {0};
    struct made many = {.count = 9000, .channels = 1, .height = 1, .width = 5, .classes = 7};
    struct account wanted = {0};
    TEST(tap, "an index of several chunks finds every sample", {
        bool opened, whole;
        CHECK_INT(tap, made_write(in(folder, "many.arec"), NULL, &many, &wanted, &err), STATUS_OK);
        CHECK(tap, dataset_true(in(folder, "many.arec"), &wanted, &opened, &whole));
        CHECK(tap, opened && whole);
    });
    TEST(tap, "a damaged index is rebuilt by reading the file", {
        size_t size = 0;
        uint8_t *data = test_need(file_read(in(folder, "many.arec"), &size));
        size_t at = size;
        while (memcmp(data + at - 4, "indx", 4) != 0)
            at--;
        data[at + 40] ^= 4;
        file_write(in(folder, "noindex.arec"), data, size);
        struct dataset *a = NULL, *b = NULL;
        CHECK_INT(tap, dataset_open(&a, in(folder, "many.arec"), NULL, true, NULL, &err), 0);
        CHECK_INT(tap, dataset_open(&b, in(folder, "noindex.arec"), NULL, true, NULL, &err), 0);
        CHECK_INT(tap, dataset_count(b), 9000);
        CHECK_INT(tap, dataset_digest(a), dataset_digest(b));
        CHECK_TEXT(tap, dataset_key(b, 8999), "0008999");
        dataset_close(a);
        dataset_close(b);
        free(data);
    });
    account_free(&wanted);
}

// Overwrites bytes between two chunks with others, and counts.
static void overwrite(struct tap *tap, const uint8_t *data, size_t size, size_t from, size_t to,
                      uint64_t samples, uint64_t missing) {
    uint8_t *copy = test_need(malloc(size));
    memcpy(copy, data, size);
    for (size_t i = from; i < to; i++)
        copy[i] = (uint8_t)(i * 37 + 11);
    struct account account = account_bytes(copy, size);
    if (account.samples != samples || account.missing != missing || account.skipped > 2)
        FAIL(tap, "bytes %zu to %zu: %zu samples, %llu missing: %s", from, to, account.samples,
             (unsigned long long)account.missing, account.status ? account.err.text : "");
    account_free(&account);
    free(copy);
}

static void test_missing(struct tap *tap) {
    struct error err = {0};
    struct made many = {.count = 300, .channels = 1, .height = 9, .width = 9};
    struct account wanted = {0};
    size_t size = 0;
    CHECK_INT(tap, made_write(in(folder, "300.arec"), NULL, &many, &wanted, &err), STATUS_OK);
    uint8_t *data = test_need(file_read(in(folder, "300.arec"), &size));
    size_t chunk[302], n = 0;
    for (size_t i = 0; i + 4 <= size && n < 301; i += 8)
        if (!memcmp(data + i, "samp", 4))
            chunk[n++] = i;
    CHECK_INT(tap, n, 300);
    TEST(tap, "what was overwritten is counted in samples: by numbers, index or tail", {
        size_t length = chunk[201] - chunk[200];
        overwrite(tap, data, size, chunk[100] + 30, chunk[106] + 50, 293, 7);
        overwrite(tap, data, size, chunk[100], chunk[107], 293, 7);
        overwrite(tap, data, size, chunk[290] + 3, chunk[299] + 90, 290, 10);
        overwrite(tap, data, size, chunk[299], size - 60, 299, 1);     // the tail counts
        overwrite(tap, data, size, chunk[290] + 9, size - 30, 290, 0); // nothing tells
        overwrite(tap, data, size, size - 40, size, 300, 0);
        // Index and tail: the index is there, and tells.
        uint8_t *copy = test_need(malloc(size));
        memcpy(copy, data, size);
        memset(copy + chunk[298], 1, 2 * length);
        memset(copy + size - 56, 1, 56);
        overwrite(tap, copy, size, 0, 0, 298, 2);
        // Two files joined, the seam overwritten.
        free(copy);
        copy = test_need(malloc(2 * size));
        memcpy(copy, data, size);
        memcpy(copy + size, data, size);
        overwrite(tap, copy, 2 * size, size - 300, size + chunk[4] + 8, 595, 5);
        free(copy);
    });
    free(data);
    account_free(&wanted);
}

static void test_values(struct tap *tap) {
    static const struct made kinds[] = {
        {.count = 3, .channels = 1, .height = 28, .width = 28, .classes = 2},
        {.count = 3, .channels = 3, .height = 5, .width = 7, .type = PIXEL_F32},
        {.count = 1, .channels = 16, .height = 1, .width = 1},
        {.count = 0, .channels = 1, .height = 1, .width = 1},
    };
    TEST(tap, "bytes and floats, any channels, labels or none, and no samples at all", {
        for (int i = 0; i < 4; i++) {
            struct account wanted = {0};
            struct error err = {0};
            account_line(&wanted, "%s", "");
            CHECK_INT(tap,
                      made_write(in(folder, "k.arec"), &(struct sink_options){.force = true},
                                 &kinds[i], &wanted, &err),
                      STATUS_OK);
            struct account got = account_of(in(folder, "k.arec"), NULL);
            CHECK_TEXT(tap, got.text, wanted.text);
            account_free(&got);
            account_free(&wanted);
        }
    });
    TEST(tap, "records go through a pipe both ways", {
        struct account wanted = {0};
        struct error err = {0};
        CHECK_INT(tap, made_write(in(folder, "p.arec"), NULL, &kinds[0], &wanted, &err), STATUS_OK);
        CHECK_INT(tap, shell(folder, "mkfifo fifo; cat fifo >out.arec & echo $! >pid"), 0);
        CHECK_INT(tap,
                  made_write(in(folder, "fifo"), &(struct sink_options){.to = "arec"}, &kinds[0],
                             NULL, &err),
                  STATUS_OK);
        CHECK_INT(tap,
                  shell(folder, "while kill -0 $(cat pid) 2>/dev/null; do sleep 0.02; done;"
                                "cmp p.arec out.arec; cat p.arec >fifo &"),
                  0);
        struct account got = account_of(in(folder, "fifo"), NULL);
        CHECK_TEXT(tap, got.text, wanted.text);
        account_free(&got);
        account_free(&wanted);
    });
}

static void test_hostile(struct tap *tap) {
    TEST(tap, "a label without a class name is refused by the writer", {
        struct classes classes = {0};
        struct sample sample = {0};
        struct sink *sink;
        struct error err = {0};
        CHECK_INT(tap, sink_open(&sink, in(folder, "h.arec"), NULL, &classes, &err), STATUS_OK);
        made_sample(&sample, &small, &classes, 0);
        sample.label = 4;
        CHECK_INT(tap, sink_put(sink, &sample, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "label 4") != NULL);
        sink_abort(sink);
        CHECK(tap, access(in(folder, "h.arec"), F_OK) != 0);
        sample_free(&sample);
        classes_free(&classes);
    });
    TEST(tap, "records of a later version are refused by name", {
        static const uint8_t header[] = {'a', 'd', 'a', 'm', 'r',  'e',  'c',  '\n',
                                         2,   0,   0,   0,   0x7e, 0x52, 0x04, 0xe2};
        struct account account = account_bytes(header, sizeof header);
        CHECK_INT(tap, account.status, STATUS_DATA);
        CHECK(tap, strstr(account.text, "version") != NULL);
        account_free(&account);
    });
    TEST(tap, "a sample larger than allowed is passed over without reading it", {
        struct made two = {.count = 2, .channels = 1, .height = 300, .width = 300};
        struct error err = {0};
        CHECK_INT(tap, made_write(in(folder, "big.arec"), NULL, &two, NULL, &err), STATUS_OK);
        struct account account =
            account_of(in(folder, "big.arec"), &(struct source_options){.max_bytes = 10000});
        CHECK_INT(tap, account.samples, 0);
        CHECK_INT(tap, account.skipped, 2);
        account_free(&account);
    });
}

int main(void) {
    struct tap tap = {0};
    scratch_make(folder);
    test_golden(&tap);
    test_damage(&tap);
    test_joined(&tap);
    test_index(&tap);
    test_missing(&tap);
    test_values(&tap);
    test_hostile(&tap);
    scratch_remove(folder);
    return tap_done(&tap);
}
