// The parts that adam-prep is made of: splits, copies, packed samples, the
// shuffle, the list of rejects. What they do together is in tests/cli/prep-*.bats.
#include <stdlib.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/random.h"
#include "prep/copies.h"
#include "prep/reject.h"
#include "prep/shuffle.h"
#include "sample/packed.h"
#include "sample/split.h"

static void test_split(struct tap *tap) {
    TEST(tap, "a split takes the shares it is told, and leaves the rest", {
        struct split split;
        struct error err = {0};
        int counts[SPLIT_PARTS] = {0};
        CHECK_INT(tap, split_parse(&split, "test=0.2,valid=1/10", &err), STATUS_OK);
        CHECK_INT(tap, split.count, 3);
        for (int i = 0; i < 20000; i++) {
            char key[16];
            snprintf(key, sizeof key, "cat/%d", i);
            counts[split_of(&split, key)]++;
        }
        CHECK_NEAR(tap, counts[1] / 20000.0, 0.2, 0.01);
        CHECK_NEAR(tap, counts[2] / 20000.0, 0.1, 0.01);
    });
    TEST(tap, "a key that is held out stays so when the share grows", {
        struct split small;
        struct split large;
        split_parse(&small, "test=0.1", NULL);
        split_parse(&large, "test=0.3", NULL);
        int lost = 0;
        for (int i = 0; i < 5000; i++) {
            char key[16];
            snprintf(key, sizeof key, "%d", i);
            lost += split_of(&small, key) == 1 && split_of(&large, key) != 1;
        }
        CHECK_INT(tap, lost, 0);
    });
    TEST(tap, "what is no split is refused", {
        static const char *const wrong[] = {
            "test",
            "test=",
            "=0.1",
            "test=0",
            "test=1",
            "test=x",
            "a=0.1,a=0.2",
            "train=0.1",
            "a=0.5,b=0.5",
            "a/b=0.1",
            "..=0.1",
            "test=0.1,,b=0.1",
            "a=.1,b=.1,c=.1,d=.1,e=.1,f=.1,g=.1,h=.1",
        };
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            struct split split;
            if (split_parse(&split, wrong[i], NULL) != STATUS_USAGE)
                FAIL(tap, "'%s' is accepted", wrong[i]);
        }
    });
}

static void test_split_paths(struct tap *tap) {
    TEST(tap, "parts are named in front of the extension, or where {split} stands", {
        static const char *const names[][3] = {
            {"data.arec", "data.arec", "data-test.arec"},
            {"a.b/data", "a.b/data", "a.b/data-test"},
            {"a/data.v2.tar.gz", "a/data.v2.tar.gz", "a/data.v2-test.tar.gz"},
            {"x.gz", "x.gz", "x-test.gz"},
            {"pictures/", "pictures/", "pictures-test/"},
            {"a/pictures//", "a/pictures//", "a/pictures-test//"},
            {"/", "/", "/-test"},
            {"t-images-idx3-ubyte.gz", "t-images-idx3-ubyte.gz", "t-images-test-idx3-ubyte.gz"},
            {".hidden", ".hidden", ".hidden-test"},
            {"{split}/x.arec", "train/x.arec", "test/x.arec"},
            {"{split}/{split}{split}.{s}", "train/traintrain.{s}", "test/testtest.{s}"},
        };
        struct split split;
        split_parse(&split, "test=0.5", NULL);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            for (int part = 0; part < 2; part++) {
                char *path = split_path(&split, part, names[i][0]);
                CHECK_TEXT(tap, path, names[i][1 + part]);
                free(path);
            }
    });
}

static void test_copies(struct tap *tap) {
    TEST(tap, "without counts every sample has as many copies", {
        struct class_copies copies = {.per_sample = 3};
        CHECK_INT(tap, copies_next(&copies, 5), 3);
        CHECK_INT(tap, copies_next(&copies, -1), 3);
    });
    TEST(tap, "balanced classes get the same number, as evenly as can be", {
        static const int sizes[] = {1, 7, 0, 64, 63};
        struct class_copies copies = {.per_sample = 2};
        for (int c = 0; c < 5; c++)
            for (int i = 0; i < sizes[c]; i++)
                copies_count(&copies, c, NULL);
        copies_count(&copies, -1, NULL);
        for (int c = 0; c < 5; c++) {
            int64_t sum = 0;
            int64_t least = 1 << 20;
            int64_t most = 0;
            for (int i = 0; i < sizes[c]; i++) {
                int64_t n = copies_next(&copies, c);
                sum += n;
                least = n < least ? n : least;
                most = n > most ? n : most;
            }
            CHECK_INT(tap, sum, sizes[c] ? 128 : 0);
            CHECK(tap, !sizes[c] || most - least <= 1);
        }
        CHECK_INT(tap, copies_next(&copies, -1), 2);
        copies_free(&copies);
    });
    TEST(tap, "names follow the pattern", {
        char *a = copies_name(NULL, "cat/1", 0, 7, "cat");
        char *b = copies_name(NULL, "cat/1", 1, 8, "cat");
        char *c = copies_name("{class}-{number}-{copy}_{key}.", "k", 4, 12, "dog");
        CHECK_TEXT(tap, a, "cat/1");
        CHECK_TEXT(tap, b, "cat/1-2");
        CHECK_TEXT(tap, c, "dog-000012-5_k.");
        free(a);
        free(b);
        free(c);
    });
    TEST(tap, "patterns that would not tell samples apart are refused", {
        CHECK_INT(tap, copies_check_name("{key}", false, NULL), STATUS_OK);
        CHECK_INT(tap, copies_check_name("{number}", true, NULL), STATUS_OK);
        CHECK_INT(tap, copies_check_name("{key}", true, NULL), STATUS_USAGE);
        CHECK_INT(tap, copies_check_name("{copy}", true, NULL), STATUS_USAGE);
        CHECK_INT(tap, copies_check_name("{key}{", false, NULL), STATUS_USAGE);
        CHECK_INT(tap, copies_check_name("{key}{}", false, NULL), STATUS_USAGE);
        CHECK_INT(tap, copies_check_name("{keys}", false, NULL), STATUS_USAGE);
        CHECK_INT(tap, copies_check_name("", false, NULL), STATUS_USAGE);
    });
}

// A sample of random shape; encoded now and then.
static void make_sample(struct sample *sample, int number) {
    struct random r = random_stream(1, 2, (uint64_t)number);
    char key[32];
    snprintf(key, sizeof key, "key%d", number);
    sample_key(sample, key, NULL);
    sample_path(sample, "somewhere", NULL);
    sample->label = number % 7 - 1;
    sample->encoded_size = 0;
    if (number % 3 == 0) {
        sample_reserve(sample, 100, NULL);
        sample->encoded_size = 1 + random_below(&r, 99);
        for (size_t i = 0; i < sample->encoded_size; i++)
            sample->encoded[i] = (uint8_t)random_u32(&r);
        return;
    }
    enum pixel type = number % 3 == 1 ? PIXEL_U8 : PIXEL_F32;
    image_shape(&sample->image, 1 + (int)random_below(&r, 9), 1 + (int)random_below(&r, 9), 3, type,
                NULL);
    for (size_t i = 0; i < image_bytes(&sample->image); i++)
        sample->image.u8[i] = (uint8_t)random_u32(&r);
}

static bool same_samples(const struct sample *a, const struct sample *b) {
    if (strcmp(a->key, b->key) != 0 || strcmp(a->path, b->path) != 0 || a->label != b->label ||
        a->encoded_size != b->encoded_size)
        return false;
    if (a->encoded_size)
        return !memcmp(a->encoded, b->encoded, a->encoded_size);
    return a->image.width == b->image.width && a->image.height == b->image.height &&
           a->image.type == b->image.type && image_bytes(&a->image) == image_bytes(&b->image) &&
           !memcmp(a->image.data, b->image.data, image_bytes(&a->image));
}

static void test_packed(struct tap *tap) {
    TEST(tap, "a packed sample comes out as it went in, into one used before", {
        struct sample in = {0};
        struct sample out = {0};
        struct sample copy = {0};
        for (int i = 0; i < 60; i++) {
            make_sample(&in, i);
            size_t size = packed_size(&in);
            uint8_t *bytes = malloc(size);
            packed_write(bytes, &in);
            CHECK_INT(tap, packed_read(&out, bytes, size, NULL), STATUS_OK);
            CHECK_INT(tap, packed_copy(&copy, &in, NULL), STATUS_OK);
            CHECK(tap, same_samples(&in, &out) && same_samples(&in, &copy));
            free(bytes);
        }
        sample_free(&in);
        sample_free(&out);
        sample_free(&copy);
    });
    TEST(tap, "cut or changed bytes are refused, not believed", {
        struct sample in = {0};
        struct sample out = {0};
        make_sample(&in, 4);
        size_t size = packed_size(&in);
        uint8_t *bytes = malloc(size);
        packed_write(bytes, &in);
        for (size_t cut = 0; cut < size; cut++) {
            uint8_t *part = malloc(cut + 1); // exact, for the address sanitizer
            memcpy(part, bytes, cut);
            CHECK_INT(tap, packed_read(&out, part, cut, NULL), STATUS_DATA);
            free(part);
        }
        memset(bytes, 0xff, 16);
        CHECK_INT(tap, packed_read(&out, bytes, size, NULL), STATUS_DATA);
        free(bytes);
        sample_free(&in);
        sample_free(&out);
    });
}

// Shuffles `count` samples with so much memory, and checks them as they come.
static void shuffle_through(struct tap *tap, int count, uint64_t memory, bool spills) {
    struct shuffle *shuffle = NULL;
    struct error err = {0};
    struct sample sample = {0};
    struct sample wanted = {0};
    CHECK_INT(tap, shuffle_open(&shuffle, memory, &err), STATUS_OK);
    for (int i = 0; i < count; i++) {
        make_sample(&sample, i);
        uint64_t order = (uint64_t)(i * 7919 % 101); // many are equal
        CHECK_INT(tap, shuffle_put(shuffle, order, i % 5, &sample, &err), STATUS_OK);
    }
    CHECK(tap, (shuffle_spilled(shuffle) > 0) == spills);
    int taken = 0;
    int part = 0;
    int last_order = -1;
    int last_number = -1;
    bool more = true;
    while (shuffle_take(shuffle, &part, &sample, &more, &err) == STATUS_OK && more) {
        int number = atoi(sample.key + 3);
        int order = number * 7919 % 101;
        make_sample(&wanted, number);
        CHECK(tap, same_samples(&sample, &wanted) && part == number % 5);
        CHECK(tap, order > last_order || (order == last_order && number > last_number));
        last_order = order, last_number = number, taken++;
    }
    CHECK_INT(tap, taken, count);
    shuffle_close(shuffle);
    sample_free(&sample);
    sample_free(&wanted);
}

static void test_shuffle(struct tap *tap) {
    TEST(tap, "samples come sorted, equal ones as they were put, in memory", {
        shuffle_through(tap, 1000, 1 << 30, false);
        shuffle_through(tap, 1, 1, false);
        shuffle_through(tap, 0, 1, false);
    });
    TEST(tap, "and the same through many runs in a file", {
        shuffle_through(tap, 1000, 4000, true);
        shuffle_through(tap, 1000, 1, true);
        shuffle_through(tap, 2, 1, true);
    });
    TEST(tap, "a shuffle may be closed before all is taken", {
        struct sample sample = {0};
        for (uint64_t memory = 1; memory < 1 << 20; memory *= 1000) {
            struct shuffle *shuffle = NULL;
            bool more;
            int part;
            CHECK_INT(tap, shuffle_open(&shuffle, memory, NULL), STATUS_OK);
            for (int i = 0; i < 20; i++) {
                make_sample(&sample, i);
                CHECK_INT(tap, shuffle_put(shuffle, (uint64_t)i, 0, &sample, NULL), STATUS_OK);
            }
            CHECK_INT(tap, shuffle_take(shuffle, &part, &sample, &more, NULL), STATUS_OK);
            shuffle_close(shuffle);
        }
        shuffle_close(NULL);
        sample_free(&sample);
    });
}

static void test_reject(struct tap *tap) {
    TEST(tap, "a list that cannot be made is named", {
        struct reject *reject = NULL;
        struct error err = {0};
        CHECK_INT(tap, reject_open(&reject, "/nowhere/at/all", &err), STATUS_CANTCREATE);
        CHECK(tap, strstr(err.text, "/nowhere/at/all") != NULL);
        CHECK_INT(tap, reject_close(NULL, NULL), STATUS_OK);
    });
}

int main(void) {
    struct tap tap = {0};
    test_split(&tap);
    test_split_paths(&tap);
    test_copies(&tap);
    test_packed(&tap);
    test_shuffle(&tap);
    test_reject(&tap);
    return tap_done(&tap);
}
