// What a worker gives back is dealt again: at once, once, and to whoever asks.
#include "../helper/dealer_rig.h"

enum { A = 11, B = 7, ALL = 4 };

static struct dealt ask(const struct dealer_rig *rig, uint64_t session) {
    return rig_ask(rig, session, 0, 0);
}

static void test_again(struct tap *tap) {
    TEST(tap, "a lease that is given back is dealt again at once, and once", {
        struct dealer_rig rig;
        struct dealt dealt[ALL];
        rig_open(tap, &rig, ALL, NULL, 0);
        for (uint32_t i = 0; i < ALL; i++) {
            dealt[i] = ask(&rig, A);
            CHECK(tap, is_batch(dealt[i], i));
        }
        CHECK_INT(tap, ask(&rig, B).answer, DEALER_ENDING);
        CHECK_INT(tap, dealer_return(rig.dealer, A, dealt[1].lease), RIG_BATCH);
        rig_made(tap, &rig, (2 * ALL + 1) * RIG_BATCH); // by one who then sleeps
        CHECK_INT(tap, dealer_return(rig.dealer, A, dealt[3].lease), RIG_BATCH);
        rig_made(tap, &rig, (2 * ALL + 2) * RIG_BATCH);
        struct dealt first = ask(&rig, B), second = ask(&rig, B);
        CHECK(tap, is_batch(first, 1) && is_batch(second, 3));
        CHECK_INT(tap, ask(&rig, B).answer, DEALER_ENDING);
        CHECK(tap, !rig_finish(&rig, dealt[1]) && !rig_finish(&rig, dealt[3]));
        CHECK(tap, rig_finish(&rig, dealt[0]) && rig_finish(&rig, dealt[2]));
        CHECK(tap, rig_finish(&rig, first));
        CHECK_INT(tap, dealer_figures(rig.dealer).epoch, 0);
        CHECK(tap, rig_finish(&rig, second));
        CHECK_INT(tap, dealer_figures(rig.dealer).epoch, 1);
        rig_close(&rig);
    });
}

static void test_others(struct tap *tap) {
    TEST(tap, "another's lease, one that is over, or never was, is not given back", {
        struct dealer_rig rig;
        rig_open(tap, &rig, 2, NULL, 0);
        struct dealt first = ask(&rig, A), second = ask(&rig, A);
        CHECK_INT(tap, dealer_return(rig.dealer, B, first.lease), 0);
        CHECK_INT(tap, dealer_return(rig.dealer, A, second.lease + 1), 0);
        CHECK_NEAR(tap, dealer_figures(rig.dealer).progress, 0, 0);
        CHECK(tap, rig_finish(&rig, first));
        CHECK_NEAR(tap, dealer_figures(rig.dealer).progress, 0.5, 0);
        CHECK_INT(tap, dealer_return(rig.dealer, A, first.lease), 0);
        CHECK_INT(tap, dealer_return(rig.dealer, A, second.lease), RIG_BATCH);
        CHECK_INT(tap, dealer_return(rig.dealer, A, second.lease), 0);
        CHECK_INT(tap, dealer_figures(rig.dealer).finished, RIG_BATCH);
        rig_close(&rig);
    });
}

// All that is dealt of the present epoch, each sample once: what `see` sees is added up.
typedef int see_sample(const struct dealer_rig *rig, const struct leased_batch *leased, uint32_t i);

static int deal_all(struct tap *tap, const struct dealer_rig *rig, see_sample *see, bool *seen) {
    const struct dealer_request request = {.session = A, .samples = RIG_BATCH};
    struct leased_batch leased;
    uint64_t detail;
    int wrong = 0;
    while (dealer_issue(rig->dealer, &request, clock_seconds(), &leased, &detail) ==
           DEALER_ISSUED) {
        for (uint32_t i = 0; i < leased.drawn.places.count; i++) {
            CHECK(tap, !seen[leased.samples.labels[i]]);
            seen[leased.samples.labels[i]] = true;
            wrong += see(rig, &leased, i);
        }
        dealer_release(rig->dealer, leased.buffer);
    }
    return wrong;
}

static int see_bytes(const struct dealer_rig *rig, const struct leased_batch *leased, uint32_t i) {
    const uint32_t label = (uint32_t)leased->samples.labels[i];
    const uint8_t *values = proto_sample_values(&leased->samples, i);
    int wrong = leased->samples.keys[i] != picture_cache_key_hash(rig->pictures, label);
    wrong += leased->samples.count != leased->drawn.places.count;
    wrong += leased->samples.value_bytes != RIG_SIDE * RIG_SIDE;
    wrong += values[0] != 255 - label;
    for (int p = 1; p < RIG_SIDE * RIG_SIDE; p++)
        wrong += values[p] != label;
    return wrong;
}

static int see_floats(const struct dealer_rig *rig, const struct leased_batch *leased, uint32_t i) {
    const uint32_t label = (uint32_t)leased->samples.labels[i];
    const float *values = proto_sample_values(&leased->samples, i);
    int wrong = leased->samples.keys[i] != picture_cache_key_hash(rig->pictures, label);
    wrong += fabsf(values[0] - (float)(255 - label) / 2) > 1e-6f;
    for (int p = 1; p < RIG_SIDE * RIG_SIDE; p++)
        wrong += fabsf(values[p] - (float)label / 2) > 1e-6f;
    return wrong;
}

static void test_samples(struct tap *tap) {
    TEST(tap, "a batch has the key, the label and the pixels of each of its samples", {
        struct dealer_rig rig;
        bool seen[ALL * RIG_BATCH] = {false};
        rig_open(tap, &rig, ALL, NULL, 0);
        CHECK_INT(tap, deal_all(tap, &rig, see_bytes, seen), 0);
        for (int i = 0; i < ALL * RIG_BATCH; i++)
            CHECK(tap, seen[i]);
        CHECK_INT(tap, dealer_figures(rig.dealer).leased, ALL * RIG_BATCH);
        CHECK_INT(tap, dealer_status(rig.dealer, NULL), STATUS_OK);
        rig_close(&rig);
    });
    TEST(tap, "operations are applied, and what they give is floats", {
        struct dealer_rig rig;
        struct ops *ops;
        bool seen[ALL * RIG_BATCH] = {false};
        size_t offset, length;
        CHECK_INT(tap, ops_parse(&ops, "scale 1/2", 0, &offset, &length, NULL), STATUS_OK);
        rig_open_with(tap, &rig, ALL, NULL, 0, ops);
        CHECK_INT(tap, dealer_shape(rig.dealer).type, PIXEL_F32);
        CHECK_INT(tap, deal_all(tap, &rig, see_floats, seen), 0);
        for (int i = 0; i < ALL * RIG_BATCH; i++)
            CHECK(tap, seen[i]);
        rig_close(&rig);
        ops_free(ops);
    });
}

static void test_little(struct tap *tap) {
    TEST(tap, "however little it may make ahead, it deals: also batches smaller than a buffer", {
        struct dealer_rig rig;
        rig_open(tap, &rig, ALL, NULL, 0);
        const struct dealer_options options = {.pictures = rig.pictures,
                                               .rules = {.epochs = 1, .epoch_end = 1, .least = 5},
                                               .batch = 1,
                                               .threads = 1};
        const struct dealer_request request = {.session = A, .samples = 1};
        struct dealer *dealer;
        struct leased_batch leased;
        uint64_t detail;
        CHECK_INT(tap, dealer_open(&dealer, &options, NULL), STATUS_OK);
        double until = clock_seconds() + 30;
        for (int i = 0; i < ALL * RIG_BATCH && clock_seconds() < until;) {
            if (dealer_issue(dealer, &request, clock_seconds(), &leased, &detail) != DEALER_ISSUED)
                continue;
            dealer_release(dealer, leased.buffer);
            i++;
        }
        CHECK_INT(tap, dealer_figures(dealer).leased, ALL * RIG_BATCH);
        dealer_close(dealer);
        rig_close(&rig);
    });
}

// Pictures of 2x2 and then of 1x2.
static void test_shapes(struct tap *tap) {
    TEST(tap, "a picture of another shape than the first ends it, and both shapes are named", {
        static const unsigned char square[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0,
                                               0, 2, 0, 0, 0, 2, 1, 2, 3, 4};
        static const unsigned char flat[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2};
        static const unsigned char label[] = {0, 0, 8, 1, 0, 0, 0, 1, 0}; // of either
        char paths[3][TEMPFILE_PATH];
        tempfile_write(paths[0], square, sizeof square);
        tempfile_write(paths[1], flat, sizeof flat);
        tempfile_write(paths[2], label, sizeof label);
        const char *at[] = {paths[0], paths[1]};
        const struct picture_cache_options pictures = {
            .paths = at, .path_count = 2, .source = {.labels = paths[2]}};
        struct dealer_options options = {.rules = {.epochs = 1, .epoch_end = 1, .least = 5},
                                         .batch = 2,
                                         .ahead = 1 << 16,
                                         .threads = 2};
        const struct dealer_request request = {.session = A, .samples = 2};
        struct dealer *dealer;
        struct leased_batch leased;
        struct error err = {0};
        uint64_t detail;
        CHECK_INT(tap, picture_cache_open(&options.pictures, &pictures, &err), STATUS_OK);
        CHECK_INT(tap, dealer_open(&dealer, &options, &err), STATUS_OK);
        double until = clock_seconds() + 30;
        while (!dealer_status(dealer, &err) && clock_seconds() < until)
            usleep(100);
        CHECK_INT(tap, dealer_status(dealer, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "is 1x1x2") && strstr(err.text, "the first is 1x2x2"));
        CHECK_INT(tap, dealer_issue(dealer, &request, 0, &leased, &detail), DEALER_FAILED);
        dealer_close(dealer);
        picture_cache_close(options.pictures);
        unlink(paths[0]), unlink(paths[1]), unlink(paths[2]);
    });
}

static void test_together(struct tap *tap) {
    TEST(tap, "small mini-batches are leased together, at most 16, and a small part of the data", {
        CHECK_INT(tap, dealer_together(1 << 20, 8, 1), 16);
        CHECK_INT(tap, dealer_together(256 * 8 * 5, 8, 1), 5);
        CHECK_INT(tap, dealer_together(256 * 8 * 5 - 1, 8, 1), 4);
        CHECK_INT(tap, dealer_together(100, 8, 1), 1);
        CHECK_INT(tap, dealer_together(1 << 20, 8, (256 << 10) / 8 / 3 - PROTO_SAMPLE_HEAD), 3);
        CHECK_INT(tap, dealer_together(1 << 20, 8, 1 << 20), 1);
    });
}

int main(void) {
    struct tap tap = {0};
    test_again(&tap);
    test_others(&tap);
    test_samples(&tap);
    test_little(&tap);
    test_shapes(&tap);
    test_together(&tap);
    return tap_done(&tap);
}
