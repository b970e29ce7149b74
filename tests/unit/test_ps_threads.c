// A parameter server's core under many workers at once, whose schedules are random. All
// numbers are small integers, so that sums are exact in whatever order they come: what is
// in the weights in the end says whether each push was applied exactly once.
#include <pthread.h>

#include "../helper/ps_rig.h"
#include "../helper/tap.h"
#include "core/ring.h"

enum { WORKERS = 4, FLOATS = 700000, PLACES = 64 };

static const struct optimizer plain_sgd = {.rule = RULE_SGD};

static uint64_t next(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

struct worker {
    struct rig *rig;
    pthread_t thread;
    uint64_t session, seed, pushes;
    long sums[RIG_SHARDS]; // of what was pushed to the first PLACES floats of each shard
    struct reply replies[8];
    bool failed, leaves;
};

static void fill(float *values, uint32_t shard, float value) {
    for (int i = 0; i < PLACES; i++)
        values[(size_t)shard * PROTO_SHARD_FLOATS + (size_t)i] = value;
}

// --- async: deltas, each sent again now and then ----------------------------------------

// The number of a push says which pieces it has and what is in them.
static uint32_t delta_pieces(const struct worker *worker, uint64_t sequence,
                             struct proto_piece pieces[RIG_SHARDS]) {
    uint32_t count = 0;
    for (uint32_t shard = 0; shard < RIG_SHARDS; shard++)
        if ((sequence * 7 + worker->session + shard) % 4)
            pieces[count++] = rig_piece(shard, 0, PLACES, 1);
    return count;
}

static void push_delta(struct worker *worker, float *values, uint64_t sequence,
                       struct reply *reply) {
    struct proto_piece pieces[RIG_SHARDS];
    uint32_t count = delta_pieces(worker, sequence, pieces);
    for (uint32_t i = 0; i < count; i++)
        fill(values, pieces[i].shard, (float)(sequence % 5));
    struct shove shove = {worker->session, sequence, PROTO_UPDATE_DELTA, 1, 0};
    rig_push_begin(worker->rig, shove, pieces, count, values, reply);
}

static void *push_deltas(void *context) {
    struct worker *worker = context;
    float *values = mem_floats(FLOATS);
    for (uint64_t sequence = 1; sequence <= worker->pushes; sequence++) {
        struct proto_piece pieces[RIG_SHARDS];
        uint32_t copies = 1 + next(&worker->seed) % 3, again = 0;
        for (uint32_t i = 0; i < copies; i++)
            push_delta(worker, values, sequence, &worker->replies[i]);
        for (uint32_t i = 0; i < copies; i++) {
            reply_wait(&worker->replies[i]);
            again += worker->replies[i].code == PROTO_REFUSAL_BUSY || worker->replies[i].repeated;
        }
        worker->failed = worker->failed || again != copies - 1;
        uint32_t count = delta_pieces(worker, sequence, pieces);
        for (uint32_t i = 0; i < count; i++)
            worker->sums[pieces[i].shard] += (long)(sequence % 5);
        if (sequence > 40) { // one that was answered long ago
            push_delta(worker, values, sequence - next(&worker->seed) % 40, &worker->replies[0]);
            reply_wait(&worker->replies[0]);
            worker->failed = worker->failed || !worker->replies[0].repeated;
        }
    }
    free(values);
    return NULL;
}

static void run_workers(struct worker *workers, void *(*work)(void *)) {
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
}

static void test_deltas(struct tap *tap) {
    TEST(tap, "async: every delta of every worker is in the weights once, in each shard", {
        struct rig rig;
        struct worker workers[WORKERS] = {0};
        float *weights = mem_floats(FLOATS);
        struct ps_figures figures;
        if (rig_open(&rig, tap, plain_sgd, (struct protocol){0}, WORKERS, 3, weights)) {
            for (int i = 0; i < WORKERS; i++)
                workers[i] = (struct worker){.rig = &rig,
                                             .session = (uint64_t)i + 1,
                                             .seed = (uint64_t)i + 77,
                                             .pushes = 400};
            run_workers(workers, push_deltas);
            rig_read(&rig, PROTO_QUANTITY_WEIGHT, weights, NULL);
            for (uint32_t shard = 0; shard < RIG_SHARDS; shard++) {
                long sum = 0;
                for (int i = 0; i < WORKERS; i++)
                    sum += workers[i].sums[shard];
                CHECK_INT(tap, weights[(size_t)shard * PROTO_SHARD_FLOATS], sum);
                CHECK_INT(tap, weights[(size_t)shard * PROTO_SHARD_FLOATS + PLACES - 1], sum);
                CHECK_INT(tap, weights[(size_t)shard * PROTO_SHARD_FLOATS + PLACES], 0);
            }
            for (int i = 0; i < WORKERS; i++)
                CHECK(tap, !workers[i].failed);
            ps_figures(rig.ps, &figures);
            CHECK_INT(tap, figures.queued, 0);
            CHECK_INT(tap, figures.pushes, WORKERS * 400);
            CHECK_INT(tap, figures.floats, figures.staleness_count * PLACES);
        }
        rig_close(&rig);
        free(weights);
    });
}

// --- hardsync, softsync: gradients of -1 ------------------------------------------------

static struct model *flat_model(struct model *model) { // without rates and decay of layers
    for (int i = 0; i < model->layer_count; i++) {
        model->layers[i].rate = 1;
        model->layers[i].decay = 0;
    }
    return model;
}

static void push_turn(struct worker *worker, uint64_t sequence, uint64_t version,
                      const float *values, struct reply *reply) {
    struct proto_piece pieces[RIG_SHARDS];
    struct shove shove = {worker->session, sequence, PROTO_UPDATE_GRADIENT, 2, 1};
    for (uint32_t i = 0; i < RIG_SHARDS; i++)
        pieces[i] = rig_shard(worker->rig, i, version);
    rig_push_begin(worker->rig, shove, pieces, RIG_SHARDS, values, reply);
}

// Pulls each version before it pushes on it; one worker vanishes halfway.
static void *push_hard(void *context) {
    struct worker *worker = context;
    float *values = mem_floats(FLOATS);
    struct reply pull, *push = &worker->replies[0];
    struct proto_piece piece;
    for (size_t i = 0; i < FLOATS; i++)
        values[i] = -1;
    for (uint64_t step = 1; step <= worker->pushes; step++) {
        piece = rig_piece(2, 0, 1, 0);
        rig_pull_begin(worker->rig, worker->session, PROTO_QUANTITY_WEIGHT, step, &piece, 1, &pull);
        reply_wait(&pull);
        float seen;
        rig_copy(&seen, pull.part[0].at, 1);
        worker->failed = worker->failed || seen != (float)(step - 1);
        if (worker->leaves && step == worker->pushes / 2) {
            const uint64_t left[] = {1, 2, 3};
            ps_members(worker->rig->ps, left, NULL, WORKERS - 1, NULL);
            break;
        }
        push_turn(worker, step, step, values, push);
        reply_wait(push);
        worker->failed =
            worker->failed || push->code != PROTO_REFUSAL_NONE || push->versions[1] != step + 1;
    }
    free(values);
    return NULL;
}

// Goes on with whatever is newest.
static void *push_soft(void *context) {
    struct worker *worker = context;
    float *values = mem_floats(FLOATS);
    uint64_t version = 1;
    for (size_t i = 0; i < FLOATS; i++)
        values[i] = -2;
    for (uint64_t step = 1; step <= worker->pushes; step++) {
        struct reply *push = &worker->replies[step % 4];
        if (step > 4) {
            reply_wait(push);
            worker->failed = worker->failed || push->code != PROTO_REFUSAL_NONE;
            version = push->versions[0];
        }
        push_turn(worker, step, version < 3 ? 1 : version - 2, values, push);
    }
    for (int i = 0; i < 4; i++)
        reply_wait(&worker->replies[i]);
    free(values);
    return NULL;
}

static void check_turns(struct tap *tap, struct protocol protocol, void *(*work)(void *),
                        uint64_t pushes, float expected) {
    struct rig rig;
    struct worker workers[WORKERS] = {0};
    float *weights = mem_floats(FLOATS);
    uint64_t versions[RIG_SHARDS];
    if (rig_open(&rig, tap, plain_sgd, protocol, WORKERS, 3, weights)) {
        flat_model(rig.model);
        for (int i = 0; i < WORKERS; i++)
            workers[i] = (struct worker){.rig = &rig,
                                         .session = (uint64_t)i + 1,
                                         .pushes = pushes,
                                         .leaves = i == WORKERS - 1};
        run_workers(workers, work);
        rig_read(&rig, PROTO_QUANTITY_WEIGHT, weights, versions);
        for (uint32_t shard = 0; shard < RIG_SHARDS; shard++) {
            size_t last = (size_t)shard * PROTO_SHARD_FLOATS + rig_floats(&rig, shard) - 1;
            CHECK_NEAR(tap, weights[(size_t)shard * PROTO_SHARD_FLOATS], expected, 0);
            CHECK_NEAR(tap, weights[last], expected, 0);
        }
        for (int i = 0; i < WORKERS; i++)
            CHECK(tap, !workers[i].failed);
    }
    rig_close(&rig);
    free(weights);
}

static void test_sync(struct tap *tap) {
    TEST(tap, "hardsync: every worker sees every version whole, also when one vanishes",
         { check_turns(tap, (struct protocol){.kind = PROTOCOL_HARDSYNC}, push_hard, 60, 60); });
    TEST(tap, "softsync: every push of every worker is in one update, and in no other", {
        struct protocol soft = {.kind = PROTOCOL_SOFTSYNC, .n = 2, .modulate = MODULATE_NONE};
        // 4 x 60 pushes of 2, in means of two
        check_turns(tap, soft, push_soft, 60, 4 * 60 * 2 / 2);
    });
}

// --- what workers do to each other ------------------------------------------------------

static _Atomic bool changing;

static void *change_rules(void *context) {
    struct rig *rig = context;
    const uint64_t sessions[] = {1, 2, 3, 4};
    const struct protocol kinds[] = {
        {.kind = PROTOCOL_HARDSYNC}, {.kind = PROTOCOL_SOFTSYNC, .n = 2}, {.kind = PROTOCOL_ASYNC}};
    for (int i = 0; atomic_load(&changing); i++) {
        ps_settings(rig->ps, &plain_sgd, &kinds[i % 3], true, NULL);
        ps_members(rig->ps, sessions, NULL, 4, NULL);
        sched_yield();
    }
    ps_settings(rig->ps, &plain_sgd, &kinds[2], true, NULL);
    return NULL;
}

// Pushes that may be refused, and pulls, until all is quiet.
static void *push_anyhow(void *context) {
    struct worker *worker = context;
    float *values = mem_floats(FLOATS);
    for (uint64_t step = 1; step <= worker->pushes; step++) {
        struct reply *push = &worker->replies[step % 8], pull;
        struct proto_piece piece = rig_piece((uint32_t)(step % RIG_SHARDS), 0, 9, 0);
        if (step > 8)
            reply_wait(push);
        rig_pull_begin(worker->rig, 1, PROTO_QUANTITY_WEIGHT, 0, &piece, 1, &pull);
        reply_wait(&pull);
        push_turn(worker, step, pull.versions[0], values, push);
        if (next(&worker->seed) % 4 == 0)
            sched_yield();
    }
    free(values);
    return NULL;
}

static void test_changes(struct tap *tap) {
    TEST(tap, "protocols change under pushes, and every push is answered", {
        struct rig rig;
        struct worker workers[WORKERS] = {0};
        pthread_t changer;
        float *weights = mem_floats(FLOATS);
        if (rig_open(&rig, tap, plain_sgd, (struct protocol){0}, WORKERS, 2, weights)) {
            atomic_store(&changing, true);
            for (int i = 0; i < WORKERS; i++)
                workers[i] = (struct worker){
                    .rig = &rig, .session = (uint64_t)i + 1, .seed = 3, .pushes = 100};
            pthread_create(&changer, NULL, change_rules, &rig);
            run_workers(workers, push_anyhow);
            atomic_store(&changing, false);
            pthread_join(changer, NULL);
            for (int i = 0; i < WORKERS; i++)
                for (int k = 0; k < 8; k++)
                    reply_wait(&workers[i].replies[k]);
            struct ps_figures figures;
            ps_figures(rig.ps, &figures);
            CHECK_INT(tap, figures.queued, 0);
        }
        rig_close(&rig);
        free(weights);
    });
}

// --- the ring ---------------------------------------------------------------------------

enum { NUMBERS = 20000 };

struct ring_user {
    struct ring *ring;
    pthread_t thread;
    uint32_t first;
    uint64_t sum;
};

static _Atomic uint32_t ring_left;

static void *ring_puts(void *context) {
    struct ring_user *user = context;
    for (uint32_t i = 0; i < NUMBERS; i++)
        while (!ring_put(user->ring, user->first + i))
            sched_yield();
    return NULL;
}

static void *ring_takes(void *context) {
    struct ring_user *user = context;
    for (uint32_t value; atomic_load(&ring_left);)
        if (ring_take(user->ring, &value)) {
            user->sum += value;
            atomic_fetch_sub(&ring_left, 1);
        } else {
            sched_yield();
        }
    return NULL;
}

struct put_over { // into the cell that a taker has not given back
    struct ring *ring;
    _Atomic bool begun, ended;
    bool put;
};

static void *put_over(void *context) {
    struct put_over *over = context;
    atomic_store(&over->begun, true);
    over->put = ring_put(over->ring, 4);
    atomic_store(&over->ended, true);
    return NULL;
}

// A taker of the number 0 is stopped when that is its own and the cell not free yet; others put
// and take what there is room for.
static void check_stopped_taker(struct tap *tap, struct ring *ring) {
    struct put_over over = {.ring = ring};
    pthread_t thread;
    uint32_t value;
    CHECK(tap, ring_open(ring, 4));
    CHECK(tap, ring_put(ring, 0));
    atomic_fetch_add(&ring->taken, 1);
    for (uint32_t i = 1; i < 4; i++)
        CHECK(tap, ring_put(ring, i) && ring_take(ring, &value) && value == i);
    pthread_create(&thread, NULL, put_over, &over);
    while (!atomic_load(&over.begun))
        sched_yield();
    for (int i = 0; i < 1000 && !atomic_load(&over.ended); i++)
        sched_yield();
    CHECK(tap, !atomic_load(&over.ended));
    atomic_store(&ring->cells[0].pass, 4); // it goes on
    pthread_join(thread, NULL);
    CHECK(tap, over.put && ring_take(ring, &value) && value == 4);
    ring_close(ring);
}

static void test_ring(struct tap *tap) {
    struct ring ring;
    TEST(tap, "who is stopped while it takes a number from a ring does not make it look full",
         { check_stopped_taker(tap, &ring); });
    TEST(tap, "a ring gives numbers in the order in which they came, and knows when it is full", {
        uint32_t value;
        CHECK(tap, ring_open(&ring, 5));
        for (uint32_t round = 0; round < 5; round++) {
            for (uint32_t i = 0; i < 8; i++)
                CHECK(tap, ring_put(&ring, round * 10 + i));
            CHECK(tap, !ring_put(&ring, 99));
            for (uint32_t i = 0; i < 8; i++)
                CHECK(tap, ring_take(&ring, &value) && value == round * 10 + i);
            CHECK(tap, !ring_take(&ring, &value));
        }
        ring_close(&ring);
        CHECK(tap, !ring_put(&ring, 1) && !ring_take(&ring, &value));
    });
    TEST(tap, "many threads put and take: nothing is lost or doubled", {
        struct ring_user puts[2];
        struct ring_user takes[2];
        CHECK(tap, ring_open(&ring, 16));
        atomic_store(&ring_left, 2 * NUMBERS);
        for (uint32_t i = 0; i < 2; i++) {
            puts[i] = (struct ring_user){.ring = &ring, .first = i * NUMBERS};
            takes[i] = puts[i];
            pthread_create(&puts[i].thread, NULL, ring_puts, &puts[i]);
            pthread_create(&takes[i].thread, NULL, ring_takes, &takes[i]);
        }
        for (int i = 0; i < 2; i++) {
            pthread_join(puts[i].thread, NULL);
            pthread_join(takes[i].thread, NULL);
        }
        uint64_t n = 2 * NUMBERS;
        CHECK_INT(tap, takes[0].sum + takes[1].sum, n * (n - 1) / 2);
        ring_close(&ring);
    });
}

int main(void) {
    struct tap tap = {0};
    test_ring(&tap);
    test_deltas(&tap);
    test_sync(&tap);
    test_changes(&tap);
    return tap_done(&tap);
}
