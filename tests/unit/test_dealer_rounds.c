// A data server whose workers share every step: nobody waits for good for places of another
// who does not come for them.
#include "../helper/tap.h"
#include "../helper/tempfile.h"
#include "core/clock.h"
#include "data/dealer.h"

enum { SIDE = 2, BATCH = 8, BATCHES_MOST = 3 };
enum { A = 11, B = 7, C = 23 }; // sessions, in the order of their seats

struct table { // a dealer of an epoch of few batches, and the files that they are of
    char images[TEMPFILE_PATH], labels[TEMPFILE_PATH];
    struct stock *stock;
    struct dealer *dealer;
};

static void must(struct tap *tap, int status, const struct error *err) {
    CHECK_INT(tap, status, STATUS_OK);
    if (status)
        printf("# %s\n", err->text);
}

static void write_data(struct table *table, unsigned char n) {
    unsigned char images[16 + BATCHES_MOST * BATCH * SIDE * SIDE] = {0, 0, 8, 3,    0, 0, 0, n,
                                                                     0, 0, 0, SIDE, 0, 0, 0, SIDE};
    unsigned char labels[8 + BATCHES_MOST * BATCH] = {0, 0, 8, 1, 0, 0, 0, n};
    tempfile_write(table->images, images, 16 + (size_t)n * SIDE * SIDE);
    tempfile_write(table->labels, labels, 8 + (size_t)n);
}

// Everything is made when it returns, of this epoch and the next: a dealer that is busy then
// waits for its workers.
static void open_table(struct tap *tap, struct table *table, int batches) {
    static const uint64_t sessions[] = {A, B, C};
    struct error err = {0};
    const uint64_t samples = (uint64_t)batches * BATCH;
    write_data(table, (unsigned char)samples);
    const char *paths[] = {table->images};
    const struct stock_options stock = {
        .paths = paths, .path_count = 1, .source = {.labels = table->labels}, .cache = 1 << 20};
    must(tap, stock_open(&table->stock, &stock, &err), &err);
    const struct dealer_options options = {
        .stock = table->stock,
        .rules = {.epochs = 2, .epoch_end = 1, .least = 5},
        .number = 1000,
        .batch = BATCH,
        .ahead = 1 << 16,
        .threads = 1,
        .rounds = true,
    };
    must(tap, dealer_open(&table->dealer, &options, &err), &err);
    must(tap, dealer_members(table->dealer, sessions, 3, &err), &err);
    while (dealer_figures(table->dealer).ready < 2 * samples)
        usleep(1000);
}

static void close_table(struct table *table) {
    dealer_close(table->dealer);
    stock_close(table->stock);
    unlink(table->images);
    unlink(table->labels);
}

// What the session is told that has weights of this clock and asks for this step.
static enum deal_answer ask(const struct table *table, uint64_t session, uint64_t step,
                            uint64_t clock) {
    const struct deal_wish wish = {
        .session = session, .step = step, .clock = clock, .epoch = 0, .samples = BATCH};
    struct deal deal;
    uint64_t detail;
    enum deal_answer answer = dealer_deal(table->dealer, &wish, clock_seconds(), &deal, &detail);
    if (answer == DEAL_DONE)
        dealer_release(table->dealer, deal.buffer);
    return answer;
}

static void test_order(struct tap *tap) {
    TEST(tap, "a round has a batch for each member, as far as there are any", {
        struct table table;
        open_table(tap, &table, 2);
        CHECK_INT(tap, ask(&table, C, 5, 5), DEAL_IDLE);
        CHECK_INT(tap, ask(&table, B, 5, 5), DEAL_DONE);
        CHECK_INT(tap, ask(&table, A, 5, 5), DEAL_DONE);
        close_table(&table);
    });
}

static void test_absent(struct tap *tap) {
    TEST(tap, "the last places, kept for one who got others elsewhere, go to the next step", {
        struct table table;
        open_table(tap, &table, 1);
        CHECK_INT(tap, ask(&table, B, 5, 5), DEAL_IDLE);
        CHECK_INT(tap, ask(&table, C, 5, 5), DEAL_IDLE);
        // Who asks ahead does not know yet whether the other comes.
        CHECK_INT(tap, ask(&table, B, 6, 5), DEAL_BUSY);
        // By now it has taken its turn, and will not come.
        CHECK_INT(tap, ask(&table, B, 6, 6), DEAL_IDLE);
        CHECK_INT(tap, ask(&table, C, 6, 6), DEAL_IDLE);
        CHECK_INT(tap, ask(&table, C, 7, 7), DEAL_IDLE);
        CHECK_INT(tap, ask(&table, A, 7, 7), DEAL_DONE);
        close_table(&table);
    });
    TEST(tap, "a clock beyond the step that is asked for is not believed", {
        struct table table;
        open_table(tap, &table, 3);
        CHECK_INT(tap, ask(&table, B, 5, 900), DEAL_DONE);
        CHECK_INT(tap, ask(&table, A, 5, 5), DEAL_DONE);
        CHECK_INT(tap, ask(&table, C, 5, 5), DEAL_DONE);
        close_table(&table);
    });
}

static void test_later(struct tap *tap) {
    TEST(tap, "nobody waits for the last places that went to the next step", {
        struct table table;
        open_table(tap, &table, 1);
        // It had places of step 5 elsewhere.
        CHECK_INT(tap, ask(&table, A, 6, 5), DEAL_DONE);
        CHECK_INT(tap, ask(&table, B, 5, 5), DEAL_IDLE);
        CHECK_INT(tap, ask(&table, C, 5, 5), DEAL_IDLE);
        close_table(&table);
    });
}

int main(void) {
    struct tap tap = {0};
    test_order(&tap);
    test_absent(&tap);
    test_later(&tap);
    return tap_done(&tap);
}
