// What threads have together: never more than there is, and in the order of asking.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/allowance.h"

enum { MOST = 10, THREADS = 4, TURNS = 2000 };

struct asker {
    struct allowance *allowance;
    uint64_t wanted, taken;
    atomic_bool has;
    pthread_t thread;
};

static void *ask(void *self) {
    struct asker *asker = self;
    asker->taken = allowance_take(asker->allowance, asker->wanted);
    atomic_store(&asker->has, true);
    return NULL;
}

static uint64_t asked(struct allowance *allowance) {
    pthread_mutex_lock(&allowance->lock);
    uint64_t count = allowance->asked;
    pthread_mutex_unlock(&allowance->lock);
    return count;
}

// Begins to ask; returns when its place in line is known.
static void begin(struct asker *asker, struct allowance *allowance, uint64_t wanted) {
    uint64_t before = asked(allowance);
    *asker = (struct asker){.allowance = allowance, .wanted = wanted};
    if (pthread_create(&asker->thread, NULL, ask, asker))
        exit(2);
    while (asked(allowance) == before)
        sched_yield();
}

static void *take_and_give(void *self) {
    struct asker *asker = self;
    for (uint64_t i = 0; i < TURNS; i++) {
        uint64_t taken = allowance_take(asker->allowance, 1 + (asker->wanted + i) % (MOST + 2));
        pthread_mutex_lock(&asker->allowance->lock);
        if (asker->allowance->used > MOST)
            atomic_store(&asker->has, true);
        pthread_mutex_unlock(&asker->allowance->lock);
        allowance_give(asker->allowance, taken);
    }
    return NULL;
}

int main(void) {
    struct tap tap = {0};
    TEST(&tap, "who wants little waits behind who wants much", {
        struct allowance allowance;
        struct asker much, little;
        allowance_open(&allowance, MOST);
        uint64_t first = allowance_take(&allowance, 6);
        begin(&much, &allowance, 8);
        begin(&little, &allowance, 2);
        CHECK(&tap, !atomic_load(&much.has) && !atomic_load(&little.has));
        CHECK_INT(&tap, allowance.used, 6);
        allowance_give(&allowance, first);
        pthread_join(much.thread, NULL);
        pthread_join(little.thread, NULL);
        CHECK_INT(&tap, allowance.used, MOST);
        allowance_give(&allowance, much.taken);
        allowance_give(&allowance, little.taken);
        CHECK_INT(&tap, allowance.used, 0);
        allowance_close(&allowance);
    });
    TEST(&tap, "who wants more than there is gets all of it", {
        struct allowance allowance;
        allowance_open(&allowance, MOST);
        CHECK_INT(&tap, allowance_take(&allowance, 3 * MOST), MOST);
        allowance_give(&allowance, MOST);
        CHECK_INT(&tap, allowance_take(&allowance, 1), 1);
        allowance_close(&allowance);
    });
    TEST(&tap, "there is never more out than there is", {
        struct allowance allowance;
        struct asker askers[THREADS];
        allowance_open(&allowance, MOST);
        for (uint64_t i = 0; i < THREADS; i++) {
            askers[i] = (struct asker){.allowance = &allowance, .wanted = 3 * i};
            if (pthread_create(&askers[i].thread, NULL, take_and_give, &askers[i]))
                exit(2);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(askers[i].thread, NULL);
            CHECK(&tap, !atomic_load(&askers[i].has));
        }
        CHECK_INT(&tap, allowance.used, 0);
        allowance_close(&allowance);
    });
    return tap_done(&tap);
}
