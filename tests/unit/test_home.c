// Homes of parameters: what threads add is in the shared weights, exactly once.
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/mem.h"
#include "kernels/kernels.h"
#include "train/home.h"

enum { N = 10, THREADS = 3, ROUNDS = 1000 };

// One layer of N parameters, which fills its model.
struct scene {
    struct layer layer;
    struct model model;
    struct optimizer optimizer;
    float shared[N], state[N], gradient[N];
    struct home *home;
};

static struct home_config config_of(struct scene *s, float *state, uint64_t clock, int threads,
                                    int batch) {
    return (struct home_config){
        .model = &s->model,
        .optimizer = &s->optimizer,
        .kernels = kernels_best(),
        .parameters = s->shared,
        .state = state,
        .clock = clock,
        .threads = threads,
        .batch = batch,
    };
}

static void open_scene(struct tap *tap, struct scene *s, enum rule rule, int batch) {
    struct error err = {0};
    *s = (struct scene){.layer = {.rate = 1, .decay = -1}, .optimizer = {.rule = rule}};
    s->layer.weights = (struct parameter){.offset = 0, .count = N - 2};
    s->layer.biases = (struct parameter){.offset = N - 2, .count = 2};
    s->model = (struct model){.layers = &s->layer, .layer_count = 1, .parameter_count = N};
    for (int i = 0; i < N; i++)
        s->gradient[i] = (float)(i + 1);
    const struct home_config config =
        config_of(s, rule == RULE_SGD ? NULL : s->state, 7, THREADS, batch);
    CHECK_INT(tap, home_copies(&s->home, &config, &err), STATUS_OK);
}

// One mini-batch: takes i + 1 off parameter i, when the rule is sgd.
static void step(struct scene *s, int thread) {
    s->home->ops->weights(s->home, thread);
    s->home->ops->add(s->home, thread, &s->layer, optimizer_all(&s->layer), s->gradient, 1);
    s->home->ops->add_clock(s->home, thread, 1);
}

static void check_all(struct tap *tap, const float *got, double times) {
    for (int i = 0; i < N; i++)
        CHECK_NEAR(tap, (double)got[i], times * (i + 1), 0);
}

static void test_merge(struct tap *tap) {
    TEST(tap, "a copy is merged after so many samples, and takes over what others added", {
        struct scene s;
        int batch = 8;
        open_scene(tap, &s, RULE_SGD, batch);
        int every = home_merge_batches(&s.model, THREADS, batch);
        for (int i = 1; i < every; i++)
            step(&s, 0), step(&s, 1);
        check_all(tap, s.shared, 0);
        check_all(tap, s.home->ops->weights(s.home, 0), 1 - every);
        step(&s, 0);
        check_all(tap, s.shared, -every);
        step(&s, 1);
        check_all(tap, s.shared, -2 * every);
        check_all(tap, s.home->ops->weights(s.home, 1), -2 * every);
        check_all(tap, s.home->ops->weights(s.home, 0), -every);
        CHECK_INT(tap, s.home->ops->clock(s.home), 7 + 2 * every);
        s.home->ops->close(s.home);
    });
    TEST(tap, "what a thread has when it stops is merged, and it begins anew", {
        struct scene s;
        open_scene(tap, &s, RULE_SGD, 1);
        step(&s, 2);
        s.home->ops->settle(s.home, 2);
        s.home->ops->settle(s.home, 1); // has done nothing
        check_all(tap, s.shared, -1);
        for (int i = 0; i < N; i++)
            s.shared[i] = (float)(10 * (i + 1));
        check_all(tap, s.home->ops->weights(s.home, 2), 10);
        s.home->ops->close(s.home);
    });
}

static void test_state(struct tap *tap) {
    TEST(tap, "sums of squares add up over threads", {
        struct scene s;
        open_scene(tap, &s, RULE_ADAGRAD, 1);
        for (int t = 0; t < THREADS; t++)
            step(&s, t), step(&s, t);
        for (int t = 0; t < THREADS; t++)
            s.home->ops->settle(s.home, t);
        for (int i = 0; i < N; i++)
            CHECK_NEAR(tap, (double)s.state[i], 2.0 * THREADS * (i + 1) * (i + 1), 0);
        s.home->ops->close(s.home);
    });
    TEST(tap, "a velocity is one thread's, and fades with the mini-batches of all", {
        struct scene s;
        open_scene(tap, &s, RULE_MOMENTUM, 1);
        s.optimizer.momentum = 0.5f;
        for (int t = 0; t < THREADS; t++)
            step(&s, t), step(&s, t);
        for (int t = 0; t < THREADS; t++)
            s.home->ops->settle(s.home, t);
        const double momentum = pow(0.5, THREADS);
        check_all(tap, s.state, 1 + momentum);
        check_all(tap, s.shared, -(2 + momentum) * (1 - momentum) / (1 - 0.5) * THREADS);
        s.home->ops->close(s.home);
    });
}

struct runner {
    struct scene *scene;
    int thread;
};

static void *run(void *self) {
    const struct runner *runner = self;
    for (int i = 0; i < ROUNDS; i++)
        step(runner->scene, runner->thread);
    runner->scene->home->ops->settle(runner->scene->home, runner->thread);
    return NULL;
}

static void test_threads(struct tap *tap) {
    TEST(tap, "threads at once lose no update", {
        struct scene s;
        struct runner runners[THREADS];
        pthread_t threads[THREADS];
        open_scene(tap, &s, RULE_SGD, 15);
        for (int t = 0; t < THREADS; t++) {
            runners[t] = (struct runner){&s, t};
            CHECK_INT(tap, pthread_create(&threads[t], NULL, run, &runners[t]), 0);
        }
        for (int t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
        check_all(tap, s.shared, -(double)THREADS * ROUNDS);
        CHECK_INT(tap, s.home->ops->clock(s.home), 7 + THREADS * ROUNDS);
        s.home->ops->close(s.home);
    });
}

static void test_choice(struct tap *tap) {
    TEST(tap, "one thread, and mini-batches of 16 and more, are on the shared weights themselves", {
        struct scene s;
        struct error err = {0};
        // Threads, samples, useful multiply-adds of one; whether the weights are shared.
        static const int cases[][4] = {{1, 1, 0, 1},    {2, 16, 0, 1},    {2, 15, 0, 0},
                                       {2, 1, 0, 0},    {2, 16, 1000, 1}, {2, 15, 1000, 0},
                                       {1, 16, 1000, 1}};
        open_scene(tap, &s, RULE_SGD, 1);
        s.home->ops->close(s.home);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            s.layer.useful = (uint64_t)cases[i][2];
            const struct home_config config = config_of(&s, NULL, 0, cases[i][0], cases[i][1]);
            CHECK_INT(tap, home_for_threads(&s.home, &config, &err), STATUS_OK);
            CHECK_INT(tap, s.home->ops->weights(s.home, 0) == s.shared, cases[i][3]);
            s.home->ops->close(s.home);
        }
    });
}

static void test_kinds(struct tap *tap) {
    TEST(tap, "the home asked for is the home there is: one set of weights, or a copy a thread", {
        struct scene s;
        struct error err = {0};
        open_scene(tap, &s, RULE_SGD, 1);
        s.home->ops->close(s.home);
        for (int kind = HOME_SHARED; home_names[kind]; kind++) {
            const struct home_config config = config_of(&s, NULL, 0, 2, 1);
            CHECK_INT(tap, home_open(&s.home, (enum home_kind)kind, &config, &err), STATUS_OK);
            CHECK_INT(tap, s.home->ops->weights(s.home, 1) == s.shared, kind != HOME_COPIES);
            CHECK_INT(tap, s.home->meetings != NULL, kind == HOME_JOINED);
            s.home->ops->close(s.home);
        }
    });
}

int main(void) {
    struct tap tap = {0};
    test_merge(&tap);
    test_state(&tap);
    test_threads(&tap);
    test_choice(&tap);
    test_kinds(&tap);
    return tap_done(&tap);
}
