// Random access to every kind of input, from several threads, and what a data
// set refuses.
#include <pthread.h>

#include "../helper/samples.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "data/dataset.h"

static char folder[SCRATCH_PATH];

// Notes a data set as account_of does a source.
static struct account account_of_dataset(const struct dataset *dataset) {
    struct account account = {0};
    struct sample sample = {0};
    struct error err = {0};
    account_line(&account, "%s", "");
    for (uint32_t i = 0; i < dataset_count(dataset); i++) {
        if (dataset_image(dataset, i, NULL, &sample.image, &err) ||
            sample_key(&sample, dataset_key(dataset, i), &err)) {
            account_line(&account, "failed: %s\n", err.text);
            continue;
        }
        sample.label = dataset_label(dataset, i);
        account_sample(&account, dataset_classes(dataset), &sample);
    }
    sample_free(&sample);
    return account;
}

static void test_kinds(struct tap *tap) {
    static const struct made gray = {40, 1, 6, 5, PIXEL_U8, 4, true, false};
    static const struct made named = {3, 3, 6, 5, PIXEL_U8, 3, false, true};
    static const struct made floats = {40, 2, 3, 3, PIXEL_F32, 4, true, false};
    static const struct {
        const char *name;
        const struct made *made;
    } kinds[] = {{"g.arec", &gray},     {"f.arec", &floats}, {"g.arec.gz", &gray},
                 {"n.tar", &named},     {"n/", &named},      {"g-images-idx3-ubyte", &gray},
                 {"g.npy.gz", &floats}, {"n.arec", &named}};
    TEST(tap, "a data set of any kind gives what the source gave", {
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            struct account wanted = {0};
            struct error err = {0};
            struct dataset *dataset;
            const char *path = in(folder, kinds[i].name);
            CHECK_INT(tap, made_write(path, NULL, kinds[i].made, &wanted, &err), STATUS_OK);
            if (dataset_open(&dataset, path, NULL, true, NULL, &err)) {
                FAIL(tap, "%s", err.text);
                continue;
            }
            struct account got = account_of_dataset(dataset);
            CHECK_TEXT(tap, got.text, wanted.text);
            CHECK(tap, dataset_key_hash(dataset, 1) ==
                           hash_bytes(dataset_key(dataset, 1), strlen(dataset_key(dataset, 1))));
            account_free(&got);
            account_free(&wanted);
            dataset_close(dataset);
        }
    });
    TEST(tap, "the digest tells keys and labels, whatever the kind", {
        struct dataset *sets[4] = {0};
        struct error err = {0};
        struct made less = gray;
        less.classes = 3;
        CHECK_INT(tap, made_write(in(folder, "l.arec"), NULL, &less, NULL, &err), STATUS_OK);
        static const char *const names[] = {"g.arec", "g.arec.gz", "g-images-idx3-ubyte", "l.arec"};
        for (int i = 0; i < 4; i++)
            CHECK_INT(tap, dataset_open(&sets[i], in(folder, names[i]), NULL, true, NULL, &err), 0);
        CHECK(tap, dataset_digest(sets[0]) == dataset_digest(sets[1]));
        CHECK(tap, dataset_digest(sets[0]) == dataset_digest(sets[2]));
        CHECK(tap, dataset_digest(sets[0]) != dataset_digest(sets[3]));
        for (int i = 0; i < 4; i++)
            dataset_close(sets[i]);
    });
}

static void test_names(struct tap *tap) {
    struct error err = {0};
    struct made made = {6, 1, 2, 2, PIXEL_U8, 2, false, false};
    struct classes model = {0};
    int label;
    CHECK_INT(tap, made_write(in(folder, "two.arec"), NULL, &made, NULL, &err), STATUS_OK);
    CHECK_INT(tap, classes_label(&model, "c1", &label, &err), STATUS_OK);
    TEST(tap, "a class that the model lacks is refused, or no label where none is needed", {
        struct dataset *dataset;
        CHECK_INT(tap, dataset_open(&dataset, in(folder, "two.arec"), NULL, true, &model, &err),
                  STATUS_DATA);
        CHECK(tap, strstr(err.text, "class 'c0' is not one of the model's 1") != NULL);
        CHECK_INT(tap, dataset_open(&dataset, in(folder, "two.arec"), NULL, false, &model, &err),
                  0);
        CHECK_INT(tap, dataset_label(dataset, 0), LABEL_NONE);
        CHECK_INT(tap, dataset_label(dataset, 1), 0);
        dataset_close(dataset);
    });
    TEST(tap, "labels are mapped to the model's by name", {
        struct dataset *dataset;
        CHECK_INT(tap, classes_label(&model, "other", &label, &err), STATUS_OK);
        CHECK_INT(tap, classes_label(&model, "c0", &label, &err), STATUS_OK);
        CHECK_INT(tap, dataset_open(&dataset, in(folder, "two.arec"), NULL, true, &model, &err), 0);
        CHECK_INT(tap, dataset_label(dataset, 0), 2);
        CHECK_INT(tap, dataset_label(dataset, 1), 0);
        CHECK_INT(tap, dataset_classes(dataset)->count, 3);
        dataset_close(dataset);
    });
    TEST(tap, "samples without a label are refused where labels are needed", {
        struct dataset *dataset;
        made.classes = 0;
        CHECK_INT(tap, made_write(in(folder, "none.arec"), NULL, &made, NULL, &err), STATUS_OK);
        CHECK_INT(tap, dataset_open(&dataset, in(folder, "none.arec"), NULL, true, NULL, &err),
                  STATUS_DATA);
        CHECK(tap, strstr(err.text, "sample '0000000' has no label") != NULL);
        CHECK_INT(tap, dataset_open(&dataset, in(folder, "none.arec"), NULL, false, NULL, &err), 0);
        dataset_close(dataset);
    });
    classes_free(&model);
}

static void test_damage(struct tap *tap) {
    struct error err = {0};
    TEST(tap, "a damaged record is an error each time it is asked for, and names itself", {
        struct made made = {3, 1, 8, 8, PIXEL_U8, 2, false, false};
        struct dataset *dataset = NULL;
        struct image image = {0};
        size_t size = 0;
        CHECK_INT(tap, made_write(in(folder, "bad.arec"), NULL, &made, NULL, &err), STATUS_OK);
        uint8_t *data = test_need(file_read(in(folder, "bad.arec"), &size));
        size_t at = 0;
        for (int samples = 0; samples < 2; at++)
            samples += !memcmp(data + at, "samp", 4);
        data[at + 60] ^= 1;
        file_write(in(folder, "bad.arec"), data, size);
        CHECK_INT(tap, dataset_open(&dataset, in(folder, "bad.arec"), NULL, true, NULL, &err), 0);
        CHECK_INT(tap, dataset_image(dataset, 0, NULL, &image, &err), STATUS_OK);
        for (int i = 0; i < 2; i++)
            CHECK_INT(tap, dataset_image(dataset, 1, NULL, &image, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "bad.arec: record 1: at offset ") != NULL);
        CHECK_INT(tap, dataset_image(dataset, 2, NULL, &image, &err), STATUS_OK);
        image_free(&image);
        dataset_close(dataset);
        free(data);
    });
    TEST(tap, "what a source would skip is refused, with its path", {
        struct dataset *dataset;
        CHECK_INT(tap, shell(folder, "mkdir -p d/a; echo no >d/a/x.png; tar cf d.tar d"), 0);
        CHECK_INT(tap, dataset_open(&dataset, in(folder, "d.tar"), NULL, true, NULL, &err),
                  STATUS_DATA);
        CHECK(tap, strstr(err.text, "d/a/x.png: ") != NULL);
        // A file of its own is read when it is asked for.
        struct image image = {0};
        CHECK_INT(tap, dataset_open(&dataset, in(folder, "d"), NULL, true, NULL, &err), STATUS_OK);
        CHECK_INT(tap, dataset_image(dataset, 0, NULL, &image, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "d/a/x.png: neither JPEG") != NULL);
        image_free(&image);
        dataset_close(dataset);
    });
}

struct reader {
    pthread_t thread;
    const struct dataset *dataset;
    uint64_t sum;
    int failed;
};

static void *read_all(void *context) {
    struct reader *reader = context;
    struct image image = {0};
    for (uint32_t i = 0; i < dataset_count(reader->dataset); i++) {
        reader->failed += dataset_image(reader->dataset, i, NULL, &image, NULL) != STATUS_OK;
        reader->sum += hash_bytes(image.data, image_bytes(&image));
        reader->sum += dataset_key_hash(reader->dataset, i);
    }
    image_free(&image);
    return NULL;
}

static void test_threads(struct tap *tap) {
    TEST(tap, "threads read at once and see the same", {
        struct made made = {500, 1, 16, 16, PIXEL_U8, 2, false, false};
        struct dataset *dataset = NULL;
        struct error err = {0};
        struct reader readers[4] = {0};
        CHECK_INT(tap, made_write(in(folder, "t.arec"), NULL, &made, NULL, &err), STATUS_OK);
        CHECK_INT(tap, dataset_open(&dataset, in(folder, "t.arec"), NULL, true, NULL, &err), 0);
        for (int i = 0; i < 4; i++) {
            readers[i].dataset = dataset;
            CHECK_INT(tap, pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(readers[i].thread, NULL);
            CHECK_INT(tap, readers[i].failed, 0);
            CHECK(tap, readers[i].sum == readers[0].sum);
        }
        dataset_close(dataset);
    });
}

int main(void) {
    struct tap tap = {0};
    scratch_make(folder);
    test_kinds(&tap);
    test_names(&tap);
    test_damage(&tap);
    test_threads(&tap);
    scratch_remove(folder);
    return tap_done(&tap);
}
