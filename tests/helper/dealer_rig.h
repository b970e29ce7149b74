// For tests of dealers: one of few batches, all of them made, and the files that they are of.
#ifndef ADAM_TESTS_DEALER_RIG_H
#define ADAM_TESTS_DEALER_RIG_H

#include "core/clock.h"
#include "core/error.h"
#include "deal/dealer.h"
#include "tap.h"
#include "tempfile.h"

enum { RIG_SIDE = 2, RIG_BATCH = 8, RIG_BATCHES = 4 }; // the last: at most

struct dealer_rig {
    char images[TEMPFILE_PATH], labels[TEMPFILE_PATH];
    struct picture_cache *pictures;
    struct dealer *dealer;
};

static inline void rig_must(struct tap *tap, int status, const struct error *err) {
    CHECK_INT(tap, status, STATUS_OK);
    if (status)
        printf("# %s\n", err->text);
}

// Sample i has label i, and so have its pixels, but for the first, which is 255 - i.
static inline void rig_write(struct dealer_rig *rig, unsigned char n) {
    unsigned char images[16 + RIG_BATCHES * RIG_BATCH * RIG_SIDE * RIG_SIDE] = {
        0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, RIG_SIDE, 0, 0, 0, RIG_SIDE};
    unsigned char labels[8 + RIG_BATCHES * RIG_BATCH] = {0, 0, 8, 1, 0, 0, 0, n};
    for (unsigned char i = 0; i < n; i++) {
        memset(images + 16 + i * RIG_SIDE * RIG_SIDE, i, RIG_SIDE * RIG_SIDE);
        images[16 + i * RIG_SIDE * RIG_SIDE] = (unsigned char)(255 - i);
        labels[8 + i] = i;
    }
    tempfile_write(rig->images, images, 16 + (size_t)n * RIG_SIDE * RIG_SIDE);
    tempfile_write(rig->labels, labels, 8 + (size_t)n);
}

// Until so many samples were made in all.
static inline void rig_made(struct tap *tap, const struct dealer_rig *rig, uint64_t samples) {
    double until = clock_seconds() + 30;
    while (dealer_figures(rig->dealer).made < samples && clock_seconds() < until)
        usleep(100);
    CHECK_INT(tap, dealer_figures(rig->dealer).made, samples);
}

// Two epochs; with members these share every step. Everything is made when it returns, of
// this epoch and the next: a dealer that is busy then waits for its workers.
static inline void rig_open_with(struct tap *tap, struct dealer_rig *rig, uint32_t batches,
                                 const uint64_t *members, size_t count, const struct ops *ops) {
    struct error err = {0};
    const uint64_t samples = (uint64_t)batches * RIG_BATCH;
    rig_write(rig, (unsigned char)samples);
    const char *paths[] = {rig->images};
    const struct picture_cache_options pictures = {
        .paths = paths, .path_count = 1, .source = {.labels = rig->labels}, .cache = 1 << 20};
    rig_must(tap, picture_cache_open(&rig->pictures, &pictures, &err), &err);
    const struct dealer_options options = {
        .pictures = rig->pictures,
        .ops = ops,
        .rules = {.epochs = 2, .epoch_end = 1, .least = 5},
        .number = 1000,
        .batch = RIG_BATCH,
        .ahead = 1 << 16,
        .threads = 1,
        .rounds = count > 0,
    };
    rig_must(tap, dealer_open(&rig->dealer, &options, &err), &err);
    if (count > 0)
        rig_must(tap, dealer_members(rig->dealer, members, count, &err), &err);
    rig_made(tap, rig, 2 * samples);
}

static inline void rig_open(struct tap *tap, struct dealer_rig *rig, uint32_t batches,
                            const uint64_t *members, size_t count) {
    rig_open_with(tap, rig, batches, members, count, NULL);
}

static inline void rig_close(struct dealer_rig *rig) {
    dealer_close(rig->dealer);
    picture_cache_close(rig->pictures);
    unlink(rig->images);
    unlink(rig->labels);
}

struct dealt {
    enum dealer_answer answer;
    uint64_t session, lease;
    struct range places;
};

// What the session is told that has weights of this clock and asks for this step.
static inline struct dealt rig_ask(const struct dealer_rig *rig, uint64_t session, uint64_t step,
                                   uint64_t clock) {
    const struct dealer_request request = {
        .session = session, .step = step, .clock = clock, .epoch = 0, .samples = RIG_BATCH};
    struct leased_batch leased;
    uint64_t detail;
    struct dealt dealt = {.session = session};
    dealt.answer = dealer_issue(rig->dealer, &request, clock_seconds(), &leased, &detail);
    if (dealt.answer == DEALER_ISSUED) {
        dealt.lease = leased.lease.number;
        dealt.places = leased.drawn.places;
        dealer_release(rig->dealer, leased.buffer);
    }
    return dealt;
}

// Whether it is batch `n` of the epoch's order, whole.
static inline bool is_batch(struct dealt dealt, uint32_t n) {
    return dealt.answer == DEALER_ISSUED && dealt.places.first == n * RIG_BATCH &&
           dealt.places.count == RIG_BATCH;
}

static inline bool rig_finish(const struct dealer_rig *rig, struct dealt dealt) {
    uint32_t epoch;
    struct range places;
    return dealer_finish(rig->dealer, dealt.session, dealt.lease, clock_seconds(), &epoch, &places);
}

#endif
