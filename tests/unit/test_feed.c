// The data of a run: its seed is what the order of the samples depends on.
#include <stdlib.h>

#include "../helper/tap.h"
#include "../helper/tempfile.h"
#include "core/error.h"
#include "core/random.h"
#include "train/feed.h"

enum { COUNT = 101, PIXELS = 4, BATCH = 8 };

static const char model_text[] = "input 1x2x2\nsoftmax units=2\n";

struct fixture {
    char images[TEMPFILE_PATH], labels[TEMPFILE_PATH];
    struct settings settings;
    struct model *model;
    struct feed *feed;
};

static void setup(struct tap *tap, struct fixture *f) {
    static const uint8_t image_head[] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, 2, 0, 0, 0, 2};
    static const uint8_t label_head[] = {0, 0, 8, 1, 0, 0, 0, COUNT};
    uint8_t images[sizeof image_head + COUNT * PIXELS] = {0}, labels[sizeof label_head + COUNT];
    memcpy(images, image_head, sizeof image_head);
    memcpy(labels, label_head, sizeof label_head);
    for (int i = 0; i < COUNT; i++)
        labels[sizeof label_head + i] = (uint8_t)(i % 2);
    tempfile_write(f->images, images, sizeof images);
    tempfile_write(f->labels, labels, sizeof labels);
    settings_default(&f->settings);
    f->settings.data = f->images;
    f->settings.labels = f->labels;
    f->settings.batch = BATCH;
    f->settings.loaders = 1;
    CHECK_INT(tap, model_parse(&f->model, "test.net", model_text, NULL, 0, NULL), STATUS_OK);
    CHECK_INT(tap,
              feed_open(&f->feed, &f->settings, f->model, NULL, &(struct source_hooks){0}, NULL),
              STATUS_OK);
}

static void cleanup(struct fixture *f) {
    feed_close(f->feed);
    model_free(f->model);
    unlink(f->images);
    unlink(f->labels);
}

// Which samples come in which order, and what their randomness depends on.
static uint64_t drain(struct loader *loader) {
    uint64_t hash = 0;
    for (struct batch *batch; (batch = loader_take(loader, NULL));) {
        size_t n = (size_t)batch->n;
        hash = hash_mix(hash, hash_bytes(batch->index, n * sizeof *batch->index));
        hash = hash_mix(hash, hash_bytes(batch->draw, n * sizeof *batch->draw));
        loader_give_back(loader, batch);
    }
    loader_stop(loader, NULL);
    return hash;
}

static uint64_t train_order(struct tap *tap, struct fixture *f, int64_t seed) {
    struct loader *loader;
    f->settings.seed = seed;
    CHECK_INT(tap, feed_train(f->feed, &f->settings, f->model, 2, 0, 1, &loader, NULL), STATUS_OK);
    return drain(loader);
}

static uint64_t look_order(struct tap *tap, struct fixture *f, int64_t seed) {
    struct loader *loader;
    f->settings.seed = seed;
    CHECK_INT(tap, feed_look(f->feed, &f->settings, f->model, BATCH, &loader, NULL), STATUS_OK);
    return drain(loader);
}

static void test_seed(struct tap *tap) {
    struct fixture f;
    setup(tap, &f);
    TEST(tap, "samples come in the order of the seed: the same for the same, another for another", {
        CHECK(tap, train_order(tap, &f, 1) == train_order(tap, &f, 1));
        CHECK(tap, train_order(tap, &f, 1) != train_order(tap, &f, 2));
        CHECK(tap, look_order(tap, &f, 1) == look_order(tap, &f, 1));
        CHECK(tap, look_order(tap, &f, 1) != look_order(tap, &f, 2));
    });
    cleanup(&f);
}

int main(void) {
    struct tap tap = {0};
    test_seed(&tap);
    return tap_done(&tap);
}
