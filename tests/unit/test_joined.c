// Threads that share passes over the weights of dense layers: what they compute, and that
// none of them waits for ever.
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/kernels.h"
#include "model/layer.h"
#include "train/loop.h"
#include "train/solo.h"

enum { INPUTS = 512, UNITS = 512, THREADS = 3, MOST = 24 };

// All of its layers are large enough to be joined.
static const char text[] = "input 512\n"
                           "dense d units=512\n"
                           "dense e units=640 act=tanh decay=0.1 rate=2\n"
                           "softmax s units=512\n";

struct scene {
    struct model *model;
    const struct kernels *kernels;
    struct optimizer optimizer;
    float *first, *weights; // before, and shared
    float *average;         // of these
    struct home *home;
};

static void open_scene(struct tap *tap, struct scene *s) {
    struct error err = {0};
    *s = (struct scene){.kernels = kernels_best(),
                        .optimizer = {.rule = RULE_SGD, .decay = 0.01f, .ema = 0.5f}};
    if (model_parse(&s->model, "test.net", text, NULL, 0, &err)) {
        FAIL(tap, "%s", err.text);
        exit(1);
    }
    size_t n = s->model->parameter_count;
    s->first = mem_floats(n), s->weights = mem_floats(n), s->average = mem_floats(n);
    model_init_lively(s->model, s->first, 1);
    memcpy(s->weights, s->first, n * sizeof(float));
    memcpy(s->average, s->first, n * sizeof(float));
    CHECK(tap, home_joins(s->model, &s->optimizer, THREADS, MOST));
    const struct home_config config = {
        .model = s->model,
        .optimizer = &s->optimizer,
        .kernels = s->kernels,
        .parameters = s->weights,
        .state = s->average,
        .since = 0 - UINT64_C(100), // so that the average's share is not that of a beginning
        .threads = THREADS,
        .batch = MOST,
    };
    CHECK_INT(tap, home_for_threads(&s->home, &config, &err), STATUS_OK);
}

static void close_scene(struct scene *s) {
    s->home->ops->close(s->home);
    model_free(s->model);
    free(s->first), free(s->weights), free(s->average);
}

// --- steps of several threads ---------------------------------------------------------

struct worker {
    struct scene *scene;
    struct solo solo;
    struct batch batch;
    float input[MOST * INPUTS], rate;
    int32_t label[MOST];
    pthread_t thread;
    bool trained;
};

static void open_worker(struct tap *tap, struct worker *w, struct scene *s, int thread, int n,
                        float rate) {
    struct random random = random_stream(7, (uint64_t)thread, 0);
    *w = (struct worker){.scene = s, .rate = rate};
    w->batch = (struct batch){.input = w->input, .label = w->label, .n = n};
    w->solo = (struct solo){.kernels = s->kernels,
                            .optimizer = &s->optimizer,
                            .home = s->home,
                            .thread = thread,
                            .gradient = mem_floats(s->model->parameter_count)};
    for (int i = 0; i < n * INPUTS; i++)
        w->input[i] = (float)random_normal(&random);
    for (int i = 0; i < n; i++)
        w->label[i] = (int32_t)random_below(&random, UNITS);
    CHECK_INT(tap, net_open(&w->solo.net, s->model, s->kernels, MOST, NET_TRAIN, NULL), STATUS_OK);
}

static void close_worker(struct worker *w) {
    net_close(w->solo.net);
    free(w->solo.gradient);
}

static void *one_step(void *self) {
    struct worker *w = self;
    double loss;
    w->trained = solo_train(&w->solo, &w->batch, w->rate, &loss);
    solo_leave(&w->solo);
    return NULL;
}

// What the worker's mini-batch alone would take off the first weights.
static void take_off(const struct worker *w, double *wanted) {
    struct scene *s = w->scene;
    net_shared(w->solo.net, NULL, NULL);
    net_offered(w->solo.net, NULL, NULL);
    net_forward(w->solo.net, s->first, w->input, w->batch.n, NULL, 0);
    net_backward(w->solo.net, s->first, w->label, 1.0f / (float)w->batch.n, w->solo.gradient, NULL,
                 NULL);
    for (int l = 1; l < s->model->layer_count; l++) {
        const struct layer *layer = &s->model->layers[l];
        struct update update = optimizer_weights_update(&s->optimizer, layer, w->rate);
        for (size_t i = 0; i < layer->weights.count + layer->biases.count; i++) {
            size_t at = layer->weights.offset + i;
            double decay = i < layer->weights.count ? (double)update.decay : 0;
            wanted[at] -=
                (double)update.rate * ((double)w->solo.gradient[at] + decay * (double)s->first[at]);
        }
    }
}

static void take_off_all(const struct scene *s, const struct worker *workers, int count,
                         double *wanted) {
    for (size_t i = 0; i < s->model->parameter_count; i++)
        wanted[i] = (double)s->first[i];
    for (int i = 0; i < count; i++)
        if (workers[i].trained)
            take_off(&workers[i], wanted);
}

static void check_weights(struct tap *tap, const struct scene *s, const double *wanted) {
    double worst = 0, moved = 0;
    for (size_t i = 0; i < s->model->parameter_count; i++) {
        double off = fabs((double)s->weights[i] - wanted[i]);
        double way = fabs((double)s->weights[i] - (double)s->first[i]);
        worst = off > worst || isnan(off) ? off : worst;
        moved = way > moved ? way : moved;
    }
    CHECK_NEAR(tap, worst, 0, 1e-6);
    CHECK(tap, moved > 1e-3);
}

// So many updates at once have moved it half of the way each.
static void check_average(struct tap *tap, const struct scene *s, int updates) {
    double kept = pow(0.5, updates), worst = 0;
    for (size_t i = 0; i < s->model->parameter_count; i++) {
        double wanted = kept * (double)s->first[i] + (1 - kept) * (double)s->weights[i];
        worst = fmax(worst, fabs((double)s->average[i] - wanted));
    }
    CHECK_NEAR(tap, worst, 0, 1e-6);
}

// Each of the first threads takes a step, all together.
static void step_all(struct tap *tap, struct scene *s, struct worker *workers, int count) {
    for (int t = 0; t < count; t++)
        s->home->meetings->enter(s->home, t, 0, 0);
    for (int t = 0; t < count; t++)
        CHECK_INT(tap, pthread_create(&workers[t].thread, NULL, one_step, &workers[t]), 0);
    for (int t = 0; t < count; t++)
        pthread_join(workers[t].thread, NULL);
}

static void check_step(struct tap *tap, const int *samples, const float *rates, int count,
                       bool broken) {
    struct scene s;
    static struct worker workers[THREADS];
    open_scene(tap, &s);
    double *wanted = calloc(s.model->parameter_count, sizeof *wanted);
    for (int t = 0; t < count; t++)
        open_worker(tap, &workers[t], &s, t, samples[t], rates[t]);
    if (broken)
        workers[0].input[3] = NAN;
    step_all(tap, &s, workers, count);
    for (int t = 0; t < count; t++)
        CHECK_INT(tap, workers[t].trained, !broken || t > 0);
    CHECK_INT(tap, s.home->ops->clock(s.home), count - broken);
    take_off_all(&s, workers, count, wanted);
    check_weights(tap, &s, wanted);
    check_average(tap, &s, count - broken);
    for (int t = 0; t < count; t++)
        close_worker(&workers[t]);
    free(wanted);
    close_scene(&s);
}

static void test_steps(struct tap *tap) {
    TEST(tap, "two threads of one sample each are the step by the sum of both gradients", {
        check_step(tap, (int[]){1, 1}, (float[]){0.1f, 0.1f}, 2, false);
    });
    TEST(tap, "mini-batches of other sizes, at other rates, and three threads", {
        check_step(tap, (int[]){3, 2}, (float[]){0.1f, 0.03f}, 2, false);
        check_step(tap, (int[]){MOST, 1}, (float[]){0.02f, 0.1f}, 2, false);
        check_step(tap, (int[]){1, 2, 7}, (float[]){0, 0.05f, 0.1f}, 3, false);
    });
    TEST(tap, "one alone", { check_step(tap, (int[]){2}, (float[]){0.1f}, 1, false); });
    TEST(tap, "a thread whose loss is not finite leaves the others alone", {
        check_step(tap, (int[]){2, 1}, (float[]){0.1f, 0.1f}, 2, true);
    });
}

// --- loops ----------------------------------------------------------------------------

enum { BATCHES = 90, SHORT = 7 };

// Mini-batches of random samples, each SHORT-th of a single one. Who asks without
// patience often gets none; who asks with it may wait for some turns of the processor.
struct source {
    struct supply supply;
    _Atomic int next, empty;
    int meagre; // of 4 that ask without patience, so many get nothing
    float input[BATCHES + 1][MOST * INPUTS / 4];
    int32_t label[MOST / 4];
    uint64_t draw[MOST / 4];
    struct batch batches[BATCHES];
};

static struct batch *source_take(struct supply *supply, double patience, double *waited) {
    struct source *source = (struct source *)supply;
    (void)waited;
    int next = atomic_load(&source->next);
    if (patience < 1 && next < BATCHES &&
        (atomic_fetch_add(&source->empty, 1) * 7 + next) % 4 < source->meagre)
        return &supply->empty;
    for (int i = 0; patience > 1 && i < next % 5; i++)
        sched_yield();
    next = atomic_fetch_add(&source->next, 1);
    return next < BATCHES ? &source->batches[next] : NULL;
}

static void source_give_back(struct supply *supply, struct batch *batch) {
    (void)supply, (void)batch;
}

static void source_cancel(struct supply *supply) {
    atomic_store(&((struct source *)supply)->next, BATCHES);
}

static int source_status(const struct supply *supply, struct error *err) {
    (void)supply, (void)err;
    return STATUS_OK;
}

static const struct supply_ops source_ops = {source_take, source_give_back, source_give_back,
                                             source_cancel, source_status};

static struct source *open_source(int meagre, int broken) {
    struct source *source = calloc(1, sizeof *source);
    struct random random = random_stream(9, 0, 0);
    source->supply.ops = &source_ops;
    source->meagre = meagre;
    for (int b = 0; b < BATCHES; b++) {
        for (int i = 0; i < MOST * INPUTS / 4; i++)
            source->input[b][i] = (float)random_normal(&random);
        source->input[b][0] = b == broken ? NAN : 0;
        source->batches[b] = (struct batch){.input = source->input[b],
                                            .label = source->label,
                                            .draw = source->draw,
                                            .n = b % SHORT ? MOST / 4 : 1,
                                            .number = (uint64_t)b};
    }
    return source;
}

static struct loop *open_loop(struct tap *tap, struct scene *s, struct source *source,
                              const struct schedule *schedule) {
    struct error err = {0};
    struct loop *loop = NULL;
    const struct loop_config config = {
        .model = s->model,
        .kernels = s->kernels,
        .optimizer = &s->optimizer,
        .schedule = schedule,
        .home = s->home,
        .supply = &source->supply,
        .patience = SUPPLY_PATIENT,
        .pace = {.samples = MOST * BATCHES / 4, .batch = MOST / 4},
        .threads = THREADS,
        .batch = MOST / 4,
    };
    if (loop_open(&loop, &config, &err)) {
        FAIL(tap, "%s", err.text);
        exit(1);
    }
    return loop;
}

static void wait_loop(struct loop *loop) {
    while (!loop_wait(loop, 10))
        continue;
}

static const struct schedule falling = {.kind = SCHEDULE_COSINE, .rate = 0.01, .total = 1};

static void test_loops(struct tap *tap) {
    TEST(tap, "all mini-batches are trained on, however often a thread waits for one", {
        for (int meagre = 0; meagre <= 4; meagre++) {
            struct scene s;
            open_scene(tap, &s);
            struct source *source = open_source(meagre, -1);
            struct loop *loop = open_loop(tap, &s, source, &falling);
            loop_start(loop, UINT64_MAX);
            wait_loop(loop);
            CHECK(tap, loop_exhausted(loop));
            CHECK_INT(tap, s.home->ops->clock(s.home), BATCHES);
            loop_close(loop);
            free(source);
            close_scene(&s);
        }
    });
    TEST(tap, "threads that are stopped after any number of mini-batches stop, and go on", {
        struct scene s;
        open_scene(tap, &s);
        struct source *source = open_source(1, -1);
        struct loop *loop = open_loop(tap, &s, source, &falling);
        for (uint64_t until = 0; until < BATCHES; until += until % 5 + 1) {
            loop_start(loop, until);
            wait_loop(loop);
            CHECK_INT(tap, loop_next(loop), until);
        }
        loop_start(loop, UINT64_MAX);
        loop_pause(loop);
        wait_loop(loop);
        loop_close(loop);
        free(source);
        close_scene(&s);
    });
    TEST(tap, "a loss that is not finite stops all of them", {
        struct scene s;
        open_scene(tap, &s);
        struct source *source = open_source(1, BATCHES / 2);
        struct loop *loop = open_loop(tap, &s, source, &falling);
        loop_start(loop, UINT64_MAX);
        wait_loop(loop);
        CHECK(tap, loop_diverged(loop, NULL));
        CHECK(tap, s.kernels->finite(s.weights, s.model->parameter_count));
        loop_close(loop);
        free(source);
        close_scene(&s);
    });
}

int main(void) {
    struct tap tap = {0};
    test_steps(&tap);
    test_loops(&tap);
    return tap_done(&tap);
}
