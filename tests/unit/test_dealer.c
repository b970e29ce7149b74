// What a worker gives back is dealt again: at once, once, and to whoever asks.
#include "../helper/dealer_rig.h"
#include "../helper/heap.h"
#include "core/error.h"

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

// A dealer of two pictures, each in a file of its own.
struct pair {
    char paths[3][TEMPFILE_PATH];
    struct dealer_options options;
};

static void pair_open(struct tap *tap, struct pair *pair, const void *first, size_t first_size,
                      const void *second, size_t second_size) {
    static const unsigned char label[] = {0, 0, 8, 1, 0, 0, 0, 1, 0}; // of either
    struct error err = {0};
    tempfile_write(pair->paths[0], first, first_size);
    tempfile_write(pair->paths[1], second, second_size);
    tempfile_write(pair->paths[2], label, sizeof label);
    const char *at[] = {pair->paths[0], pair->paths[1]};
    const struct picture_cache_options pictures = {
        .paths = at, .path_count = 2, .source = {.labels = pair->paths[2]}};
    pair->options = (struct dealer_options){.rules = {.epochs = 1, .epoch_end = 1, .least = 5},
                                            .batch = 2,
                                            .ahead = 1 << 16,
                                            .threads = 2};
    rig_must(tap, picture_cache_open(&pair->options.pictures, &pictures, &err), &err);
}

static void pair_close(struct pair *pair) {
    picture_cache_close(pair->options.pictures);
    for (int i = 0; i < 3; i++)
        unlink(pair->paths[i]);
}

// Deals both, or fails: as what, and why.
static enum dealer_answer pair_deal(struct tap *tap, const struct pair *pair,
                                    struct dealer **dealer, struct leased_batch *leased,
                                    struct error *err) {
    const struct dealer_request request = {.session = A, .samples = 2};
    enum dealer_answer answer = DEALER_BUSY;
    uint64_t detail;
    rig_must(tap, dealer_open(dealer, &pair->options, err), err);
    double until = clock_seconds() + 30;
    while (answer == DEALER_BUSY && clock_seconds() < until)
        answer = dealer_issue(*dealer, &request, 0, leased, &detail);
    dealer_status(*dealer, err);
    return answer;
}

static const unsigned char square[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4};
static const unsigned char reals[] = {
    0,    0,    0x0d, 3, 0,    0, 0, 1, 0,    0, 0, 2, 0,    0,    0, 2, // and 0.5, 0.5, 0.5, 0.5:
    0x3f, 0x00, 0,    0, 0x3f, 0, 0, 0, 0x3f, 0, 0, 0, 0x3f, 0x00, 0, 0};

static void test_shapes(struct tap *tap) {
    static const unsigned char flat[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2};
    static const unsigned char narrow[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 1, 2};
    static const unsigned char coloured[] = {0, 0, 8, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2,
                                             0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2};
    static const struct {
        const unsigned char *bytes;
        size_t size;
        const char *shape;
    } others[] = {{flat, sizeof flat, "is 1x1x2"},
                  {narrow, sizeof narrow, "is 1x2x1"},
                  {coloured, sizeof coloured, "is 3x2x2"}};
    struct dealer *dealer;
    struct leased_batch leased;
    struct pair pair;
    TEST(tap, "a picture of another shape than the first ends it, and both shapes are named", {
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            struct error err = {0};
            pair_open(tap, &pair, square, sizeof square, others[i].bytes, others[i].size);
            CHECK_INT(tap, pair_deal(tap, &pair, &dealer, &leased, &err), DEALER_FAILED);
            CHECK_INT(tap, err.status, STATUS_DATA);
            CHECK(tap, strstr(err.text, others[i].shape) && strstr(err.text, "first is 1x2x2"));
            dealer_close(dealer);
            pair_close(&pair);
        }
    });
    TEST(tap, "so does one of reals where the first is of bytes", {
        struct error err = {0};
        pair_open(tap, &pair, square, sizeof square, reals, sizeof reals);
        CHECK_INT(tap, pair_deal(tap, &pair, &dealer, &leased, &err), DEALER_FAILED);
        CHECK(tap, strstr(err.text, "has values beyond bytes"));
        dealer_close(dealer);
        pair_close(&pair);
    });
    TEST(tap, "where the first is of reals, bytes become such", {
        struct error err = {0};
        pair_open(tap, &pair, reals, sizeof reals, square, sizeof square);
        CHECK_INT(tap, pair_deal(tap, &pair, &dealer, &leased, &err), DEALER_ISSUED);
        float sum = 0;
        for (uint32_t i = 0; i < 2; i++)
            for (int p = 0; p < 4; p++)
                sum += ((const float *)proto_sample_values(&leased.samples, i))[p];
        CHECK_NEAR(tap, sum, 4 * 0.5 + (1 + 2 + 3 + 4), 0);
        dealer_release(dealer, leased.buffer);
        dealer_close(dealer);
        pair_close(&pair);
    });
    TEST(tap, "one whose first picture cannot be made does not open", {
        struct error err = {0};
        struct ops *ops;
        size_t offset, length;
        CHECK_INT(tap, ops_parse(&ops, "crop 3", 0, &offset, &length, NULL), STATUS_OK);
        pair_open(tap, &pair, square, sizeof square, square, sizeof square);
        pair.options.ops = ops;
        dealer = NULL;
        CHECK_INT(tap, dealer_open(&dealer, &pair.options, &err), STATUS_DATA);
        CHECK(tap, !dealer);
        pair_close(&pair);
        ops_free(ops);
    });
}

static void test_memory(struct tap *tap) {
    TEST(tap, "what it had is free when it is closed", {
        struct pair pair;
        struct dealer *dealer;
        struct leased_batch leased;
        struct error err = {0};
        struct ops *ops;
        size_t offset, length;
        CHECK_INT(tap, ops_parse(&ops, "scale 1/2", 0, &offset, &length, NULL), STATUS_OK);
        pair_open(tap, &pair, square, sizeof square, square, sizeof square);
        pair.options.ops = ops;
        long live[2];
        for (int i = 0; i < 2; i++) { // the system keeps something of its own for threads
            live[i] = heap_live();
            CHECK_INT(tap, pair_deal(tap, &pair, &dealer, &leased, &err), DEALER_ISSUED);
            dealer_release(dealer, leased.buffer);
            dealer_close(dealer);
        }
        CHECK_INT(tap, heap_live(), live[1]);
        pair_close(&pair);
        ops_free(ops);
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
    test_memory(&tap);
    test_together(&tap);
    return tap_done(&tap);
}
