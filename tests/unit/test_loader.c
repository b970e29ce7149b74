// The loader: order, sameness for any number of threads, resuming, errors.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/random.h"
#include "data/loader.h"
#include "data/order.h"

enum { SAMPLES = 103, SIDE = 4, CLASSES = 5 };

// A data set as an IDX file: pixel p of sample i is (i + p) % 256.
struct fixture {
    char folder[64], images[96], labels[96];
    struct dataset *dataset;
};

static void write_file(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        abort();
}

static void make(struct fixture *fixture) {
    unsigned char images[16 + SAMPLES * SIDE * SIDE] = {0, 0, 8, 3,    0, 0, 0, SAMPLES,
                                                        0, 0, 0, SIDE, 0, 0, 0, SIDE};
    unsigned char labels[8 + SAMPLES] = {0, 0, 8, 1, 0, 0, 0, SAMPLES};
    struct error err = {0};
    for (int i = 0; i < SAMPLES; i++) {
        labels[8 + i] = (unsigned char)(i % CLASSES);
        for (int p = 0; p < SIDE * SIDE; p++)
            images[16 + i * SIDE * SIDE + p] = (unsigned char)(i + p);
    }
    snprintf(fixture->folder, sizeof fixture->folder, "%s/loader.XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(fixture->folder))
        abort();
    snprintf(fixture->images, sizeof fixture->images, "%s/images", fixture->folder);
    snprintf(fixture->labels, sizeof fixture->labels, "%s/labels", fixture->folder);
    write_file(fixture->images, images, sizeof images);
    write_file(fixture->labels, labels, sizeof labels);
    struct source_options options = {.labels = fixture->labels};
    if (dataset_open(&fixture->dataset, fixture->images, &options, true, NULL, &err)) {
        printf("# %s\n", err.text);
        abort();
    }
}

static void unmake(struct fixture *fixture) {
    dataset_close(fixture->dataset);
    unlink(fixture->images);
    unlink(fixture->labels);
    rmdir(fixture->folder);
}

static struct loader_config config_of(const struct fixture *fixture) {
    return (struct loader_config){
        .dataset = fixture->dataset,
        .input = {.channels = 1, .height = SIDE, .width = SIDE, .classes = CLASSES, .seed = 11},
        .batch = 8,
        .epochs = 3,
        .shuffle = true,
        .threads = 1,
        .ahead = 4,
    };
}

static uint64_t hash_batch(uint64_t hash, const struct batch *batch) {
    size_t n = (size_t)batch->n;
    hash = hash_mix(hash, hash_bytes(batch->input, n * SIDE * SIDE * sizeof *batch->input));
    hash = hash_mix(hash, hash_bytes(batch->label, n * sizeof *batch->label));
    hash = hash_mix(hash, hash_bytes(batch->draw, n * sizeof *batch->draw));
    return hash_mix(hash, batch->number * 1000 + batch->epoch * 100 + n);
}

// All batches from `first` on as one hash, taken by one thread.
static uint64_t run(struct loader_config config, uint64_t first, uint64_t *count) {
    struct loader *loader;
    struct error err = {0};
    uint64_t hash = 0;
    *count = 0;
    config.first_number = first;
    if (loader_start(&loader, &config, &err))
        abort();
    for (struct batch *batch; (batch = loader_take(loader, NULL)); ++*count) {
        hash = hash_batch(hash, batch);
        loader_give_back(loader, batch);
    }
    if (loader_stop(loader, &err))
        printf("# %s\n", err.text);
    return hash;
}

static void test_order(struct tap *tap, const struct fixture *fixture) {
    TEST(tap, "an epoch has every sample once, in another order each time", {
        struct loader_config config = config_of(fixture);
        struct loader *loader;
        struct error err = {0};
        int seen[3][SAMPLES] = {0}, same = 0, place = 0;
        uint32_t first[SAMPLES];
        CHECK_INT(tap, loader_start(&loader, &config, &err), STATUS_OK);
        uint64_t number = 0;
        for (struct batch *batch; (batch = loader_take(loader, NULL));) {
            CHECK_INT(tap, batch->number, number++);
            for (int i = 0; i < batch->n; i++) {
                uint32_t index = batch->index[i];
                seen[batch->epoch][index]++;
                CHECK_INT(tap, batch->label[i], index % CLASSES);
                CHECK_NEAR(tap, (double)batch->input[i * SIDE * SIDE + 3], index + 3, 0);
                if (batch->epoch == 0)
                    first[place] = index;
                else
                    same += first[place] == index;
                place = (place + 1) % SAMPLES;
            }
            loader_give_back(loader, batch);
        }
        CHECK_INT(tap, number, 3 * 13);
        for (int e = 0; e < 3; e++)
            for (int i = 0; i < SAMPLES; i++)
                CHECK_INT(tap, seen[e][i], 1);
        CHECK(tap, same < 12);
        CHECK_INT(tap, loader_stop(loader, &err), STATUS_OK);
    });
    TEST(tap, "without shuffling the order is that of the data", {
        struct loader_config config = config_of(fixture);
        struct loader *loader;
        struct error err = {0};
        uint32_t next = 0;
        config.shuffle = false;
        config.epochs = 1;
        CHECK_INT(tap, loader_start(&loader, &config, &err), STATUS_OK);
        for (struct batch *batch; (batch = loader_take(loader, NULL));) {
            for (int i = 0; i < batch->n; i++)
                CHECK_INT(tap, batch->index[i], next++);
            loader_give_back(loader, batch);
        }
        CHECK_INT(tap, next, SAMPLES);
        loader_stop(loader, NULL);
    });
}

static void test_permutation(struct tap *tap) {
    TEST(tap, "the order is a permutation for any count, and uniform", {
        for (uint32_t count = 1; count < 300; count++) {
            struct order order = order_of(3, 0, count);
            bool seen[300] = {0};
            for (uint32_t i = 0; i < count; i++) {
                uint32_t at = order_at(&order, i);
                CHECK(tap, at < count && !seen[at]);
                seen[at] = true;
            }
        }
        // Each sample at each place with the same probability: chi-squared over
        // 10 x 10 cells has mean 81 (9 x 9 degrees of freedom), deviation 12.7.
        enum { COUNT = 10, ROUNDS = 20000 };
        int cells[COUNT][COUNT] = {0};
        double chi = 0;
        for (uint64_t epoch = 0; epoch < ROUNDS; epoch++) {
            struct order order = order_of(7, epoch, COUNT);
            for (uint32_t i = 0; i < COUNT; i++)
                cells[i][order_at(&order, i)]++;
        }
        for (int i = 0; i < COUNT * COUNT; i++) {
            double off = cells[i / COUNT][i % COUNT] - ROUNDS / COUNT;
            chi += off * off / (ROUNDS / COUNT);
        }
        CHECK_NEAR(tap, chi, 81, 5 * 12.7);
    });
}

static void test_same(struct tap *tap, const struct fixture *fixture) {
    struct error err = {0};
    struct ops *augment = NULL;
    size_t offset, length;
    if (ops_parse(&augment, "noise 5; hflip p=0.5", 0, &offset, &length, &err))
        printf("# %s\n", err.text);
    struct loader_config config = config_of(fixture);
    config.input.before = augment;
    uint64_t count, wanted = run(config, 0, &count);
    CHECK(tap, augment != NULL);
    TEST(tap, "batches are the same for any number of threads and any ring", {
        for (int threads = 1; threads <= 4; threads++)
            for (int ahead = 2; ahead <= 9; ahead += 7) {
                config.threads = threads, config.ahead = ahead;
                CHECK(tap, run(config, 0, &count) == wanted);
                CHECK_INT(tap, count, 39);
            }
    });
    TEST(tap, "another seed gives others", {
        config.input.seed++;
        CHECK(tap, run(config, 0, &count) != wanted);
        config.input.seed--;
    });
    TEST(tap, "a resumed loader goes on with what would have come", {
        struct loader *loader;
        CHECK_INT(tap, loader_start(&loader, &config, &err), STATUS_OK);
        uint64_t hash = 0, tail = run(config, 17, &count);
        CHECK_INT(tap, count, 39 - 17);
        for (struct batch *batch; (batch = loader_take(loader, NULL));) {
            if (batch->number >= 17)
                hash = hash_batch(hash, batch);
            loader_give_back(loader, batch);
        }
        loader_stop(loader, NULL);
        CHECK(tap, hash == tail);
    });
    ops_free(augment);
}

// --- many takers ------------------------------------------------------------------------

struct takers {
    struct loader *loader;
    _Atomic int seen[39];
    _Atomic uint64_t samples;
};

static void *take_all(void *self) {
    struct takers *takers = self;
    double waited = 0;
    for (struct batch *batch; (batch = loader_take(takers->loader, &waited));) {
        atomic_fetch_add(&takers->seen[batch->number], 1);
        atomic_fetch_add(&takers->samples, (uint64_t)batch->n);
        loader_give_back(takers->loader, batch);
    }
    return NULL;
}

static void test_takers(struct tap *tap, const struct fixture *fixture) {
    TEST(tap, "many takers share the batches: each is taken once", {
        for (int round = 0; round < 20; round++) {
            struct loader_config config = config_of(fixture);
            struct takers takers = {0};
            struct error err = {0};
            pthread_t threads[4];
            config.threads = 1 + round % 3;
            config.ahead = 2 + round % 5;
            CHECK_INT(tap, loader_start(&takers.loader, &config, &err), STATUS_OK);
            for (int i = 0; i < 4; i++)
                pthread_create(&threads[i], NULL, take_all, &takers);
            for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
            for (int i = 0; i < 39; i++)
                CHECK_INT(tap, takers.seen[i], 1);
            CHECK_INT(tap, takers.samples, 3 * SAMPLES);
            CHECK_INT(tap, loader_stop(takers.loader, &err), STATUS_OK);
        }
    });
    TEST(tap, "a cancelled loader lets everybody go", {
        struct loader_config config = config_of(fixture);
        struct takers takers = {0};
        struct error err = {0};
        pthread_t thread;
        config.epochs = 1000000;
        CHECK_INT(tap, loader_start(&takers.loader, &config, &err), STATUS_OK);
        struct batch *batch = loader_take(takers.loader, NULL);
        CHECK(tap, batch != NULL);
        loader_give_back(takers.loader, batch);
        loader_cancel(takers.loader);
        pthread_create(&thread, NULL, take_all, &takers);
        pthread_join(thread, NULL);
        CHECK_INT(tap, loader_stop(takers.loader, &err), STATUS_OK);
    });
}

static void test_supply(struct tap *tap, const struct fixture *fixture) {
    struct loader_config config = config_of(fixture);
    struct loader *loader;
    struct error err = {0};
    struct batch *held[2];
    config.ahead = 2;
    config.epochs = 1;
    CHECK_INT(tap, loader_start(&loader, &config, &err), STATUS_OK);
    struct supply *supply = loader_supply(loader);
    TEST(tap, "an impatient taker gets an empty batch while there is none", {
        double waited = 0;
        for (int i = 0; i < 2; i++)
            held[i] = supply_take(supply, SUPPLY_PATIENT, &waited);
        waited = 0;
        struct batch *empty = supply_take(supply, 0.01, &waited);
        CHECK_INT(tap, empty->n, 0);
        CHECK(tap, waited >= 0.01);
        supply_give_back(supply, empty);
    });
    TEST(tap, "and has missed nothing", {
        uint64_t next = held[1]->number + 1;
        for (int i = 0; i < 2; i++)
            supply_give_back(supply, held[i]);
        for (struct batch *batch; (batch = supply_take(supply, 0.001, NULL));) {
            if (batch->n > 0)
                CHECK_INT(tap, batch->number, next++);
            supply_give_back(supply, batch);
        }
        CHECK_INT(tap, next, 13);
        CHECK_INT(tap, supply_status(supply, &err), STATUS_OK);
    });
    loader_stop(loader, NULL);
}

// --- streams ------------------------------------------------------------------------------

static uint64_t stream(const struct fixture *fixture, struct loader_config config, uint64_t first,
                       uint64_t *count) {
    struct source_options options = {.labels = fixture->labels};
    struct classes classes = {0};
    struct error err = {0};
    config.dataset = NULL;
    config.names = &classes;
    if (source_open(&config.source, fixture->images, &options, &classes, &err))
        abort();
    uint64_t hash = run(config, first, count);
    source_close(config.source);
    classes_free(&classes);
    return hash;
}

static void test_stream(struct tap *tap, const struct fixture *fixture) {
    struct loader_config config = config_of(fixture);
    uint64_t count, wanted;
    config.shuffle = false;
    config.epochs = 1;
    wanted = run(config, 0, &count);
    TEST(tap, "a stream gives the samples of the set in its order, for any number of threads", {
        for (config.threads = 1; config.threads <= 3; config.threads++) {
            uint64_t got = stream(fixture, config, 0, &count);
            CHECK_INT(tap, count, 13);
            CHECK(tap, got == wanted);
        }
    });
    TEST(tap, "a stream whose last batch is full ends there", {
        config.batch = SAMPLES;
        config.threads = 2;
        stream(fixture, config, 0, &count);
        CHECK_INT(tap, count, 1);
        config.batch = 8;
    });
    TEST(tap, "a resumed stream passes over what was seen", {
        uint64_t tail = run(config, 5, &count);
        CHECK(tap, stream(fixture, config, 5, &count) == tail);
        CHECK_INT(tap, count, 8);
    });
}

// --- errors -------------------------------------------------------------------------------

static void check_error(struct tap *tap, const struct loader_config *config, const char *wanted) {
    struct loader *loader;
    struct error err = {0};
    CHECK_INT(tap, loader_start(&loader, config, &err), STATUS_OK);
    for (struct batch *batch; (batch = loader_take(loader, NULL));)
        loader_give_back(loader, batch);
    CHECK_INT(tap, loader_status(loader, NULL), STATUS_DATA);
    CHECK_INT(tap, loader_stop(loader, &err), STATUS_DATA);
    if (!strstr(err.text, wanted))
        FAIL(tap, "'%s' is not in '%s'", wanted, err.text);
}

static void test_errors(struct tap *tap, const struct fixture *fixture) {
    TEST(tap, "a picture of another shape ends the loader, and names both shapes", {
        struct loader_config config = config_of(fixture);
        config.input.channels = 3;
        check_error(tap, &config, "1x4x4");
        check_error(tap, &config, "3x4x4");
        config.threads = 3;
        check_error(tap, &config, "sample '");
    });
    TEST(tap, "a label that the model has no output for ends the loader", {
        struct loader_config config = config_of(fixture);
        config.input.classes = CLASSES - 1;
        check_error(tap, &config, "the label is 4 where the model has 4 classes");
    });
}

int main(void) {
    struct tap tap = {0};
    struct fixture fixture = {0};
    make(&fixture);
    test_permutation(&tap);
    test_order(&tap, &fixture);
    test_same(&tap, &fixture);
    test_takers(&tap, &fixture);
    test_supply(&tap, &fixture);
    test_stream(&tap, &fixture);
    test_errors(&tap, &fixture);
    unmake(&fixture);
    return tap_done(&tap);
}
