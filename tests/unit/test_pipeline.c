// The ordered parallel map: order, bounds, errors, stopping. Under SAN=thread
// this also shows that slots are handed over without races.
#include <sched.h>
#include <stdatomic.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/pipeline.h"

#define NEVER (-1)

struct slot {
    int number, result;
};

// Squares 0..count-1. Jobs fail where the numbers below say.
struct squares {
    int count, next;
    int read_fails, work_fails, write_fails;
    int written, wrong;
    int most_ahead; // jobs read but not written, at most
    int hold;       // the writer keeps still until so many are read
    atomic_int reads;
};

static int squares_read(void *context, void *piece, bool *more, struct error *err) {
    struct squares *s = context;
    struct slot *slot = piece;
    if (s->next == s->read_fails)
        return error_set(err, STATUS_NOINPUT, "read %d failed", s->next);
    *more = s->next < s->count;
    slot->number = s->next++;
    slot->result = NEVER;
    atomic_fetch_add(&s->reads, 1);
    return STATUS_OK;
}

static int squares_work(void *context, int worker, void *piece, struct error *err) {
    struct squares *s = context;
    struct slot *slot = piece;
    (void)worker;
    for (int i = slot->number * 7 % 5; i > 0; i--)
        sched_yield(); // so that jobs overtake each other
    if (slot->number == s->work_fails || slot->number == s->work_fails + 2)
        return error_set(err, STATUS_DATA, "job %d failed", slot->number);
    slot->result = slot->number * slot->number;
    return STATUS_OK;
}

static int squares_write(void *context, void *piece, struct error *err) {
    struct squares *s = context;
    struct slot *slot = piece;
    while (atomic_load(&s->reads) < s->hold)
        sched_yield();
    if (slot->number == s->write_fails)
        return error_set(err, STATUS_IO, "write %d failed", slot->number);
    int ahead = atomic_load(&s->reads) - s->written;
    s->most_ahead = ahead > s->most_ahead ? ahead : s->most_ahead;
    s->wrong += slot->number != s->written || slot->result != slot->number * slot->number;
    s->written++;
    return STATUS_OK;
}

static int run(struct squares *s, int threads, int slot_count, bool (*stopped)(void),
               struct error *err) {
    struct slot slots[64];
    struct pipeline pipeline = {
        .threads = threads,
        .slots = slots,
        .slot_size = sizeof *slots,
        .slot_count = slot_count,
        .context = s,
        .read = squares_read,
        .work = squares_work,
        .write = squares_write,
        .stopped = stopped,
    };
    return pipeline_run(&pipeline, err);
}

static struct squares squares(int count) {
    return (struct squares){
        .count = count, .read_fails = NEVER, .work_fails = -10, .write_fails = NEVER};
}

static bool always(void) {
    return true;
}

static void test_order(struct tap *tap) {
    TEST(tap, "results come in the order of reading, whatever the threads and slots", {
        int shapes[][2] = {{1, 1}, {1, 8}, {2, 3}, {4, 8}, {7, 64}, {8, 2}};
        for (int i = 0; i < 6; i++) {
            struct error err = {0};
            struct squares s = squares(2000);
            CHECK_INT(tap, run(&s, shapes[i][0], shapes[i][1], NULL, &err), STATUS_OK);
            CHECK_INT(tap, s.written, 2000);
            CHECK_INT(tap, s.wrong, 0);
        }
    });
    TEST(tap, "an empty input ends at once", {
        struct error err = {0};
        struct squares s = squares(0);
        CHECK_INT(tap, run(&s, 3, 4, NULL, &err), STATUS_OK);
        CHECK_INT(tap, s.written, 0);
    });
}

static void test_bounds(struct tap *tap) {
    TEST(tap, "a slow writer holds up the reader: never more jobs than slots, plus one being read",
         {
             struct error err = {0};
             struct squares s = squares(500);
             s.hold = 6; // the reader fills all slots before anything is written
             CHECK_INT(tap, run(&s, 2, 6, NULL, &err), STATUS_OK);
             CHECK_INT(tap, s.written, 500);
             CHECK(tap, s.most_ahead == 6 || s.most_ahead == 7);
         });
}

static void test_errors(struct tap *tap) {
    TEST(tap, "when a job fails, what was before it is written and its error comes back", {
        for (int threads = 1; threads < 5; threads++) {
            struct error err = {0};
            struct squares s = squares(1000);
            s.work_fails = 137; // and 139, which must not be heard of
            CHECK_INT(tap, run(&s, threads, 16, NULL, &err), STATUS_DATA);
            CHECK_TEXT(tap, err.text, "job 137 failed");
            CHECK_INT(tap, s.written, 137);
            CHECK_INT(tap, s.wrong, 0);
        }
    });
    TEST(tap, "when reading fails, all that was read is written first", {
        struct error err = {0};
        struct squares s = squares(1000);
        s.read_fails = 55;
        CHECK_INT(tap, run(&s, 3, 8, NULL, &err), STATUS_NOINPUT);
        CHECK_TEXT(tap, err.text, "read 55 failed");
        CHECK_INT(tap, s.written, 55);
    });
    TEST(tap, "when writing fails, the threads go home", {
        struct error err = {0};
        struct squares s = squares(1000000000);
        s.write_fails = 20;
        CHECK_INT(tap, run(&s, 3, 8, NULL, &err), STATUS_IO);
        CHECK_TEXT(tap, err.text, "write 20 failed");
        CHECK_INT(tap, s.written, 20);
    });
    TEST(tap, "a request to stop ends an endless run", {
        struct error err = {0};
        struct squares s = squares(1000000000);
        CHECK_INT(tap, run(&s, 3, 8, always, &err), STATUS_STOPPED);
    });
}

int main(void) {
    struct tap tap = {0};
    test_order(&tap);
    test_bounds(&tap);
    test_errors(&tap);
    return tap_done(&tap);
}
