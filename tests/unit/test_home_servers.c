// Homes on parameter servers: what training loops do through them is what they would do
// alone.
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../helper/fake_servers.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "remote/home_servers.h"
#include "train/loop.h"

enum { INPUTS = 12, CLASSES = 3, SAMPLES = 640, STEPS = 20, SEED = 5 };
enum { PARAMETERS = 20 * (INPUTS + 1) + CLASSES * 21 };

static const char text[] = "input 12\n"
                           "dense d1 units=20 act=tanh\n"
                           "softmax units=3\n";

// Samples in order, worker `index` of `workers` takes its share of each step.
struct feed {
    struct supply supply;
    struct batch batch[STEPS];
    int index, workers, mu, steps;
    atomic_int next;
    _Atomic uint64_t given; // batches given back
    float input[SAMPLES * INPUTS];
    int32_t label[SAMPLES];
    uint64_t draw[SAMPLES];
};

static struct feed *feed_of(struct supply *supply) {
    return (struct feed *)supply;
}

static struct batch *take(struct supply *supply, double patience, double *waited) {
    struct feed *feed = feed_of(supply);
    (void)patience, (void)waited;
    int next = atomic_fetch_add(&feed->next, 1);
    if (next >= feed->steps)
        return NULL;
    int first = (next * feed->workers + feed->index) * feed->mu;
    feed->batch[next] = (struct batch){
        .input = feed->input + (size_t)first * INPUTS,
        .label = feed->label + first,
        .draw = feed->draw + first,
        .n = feed->mu,
        .number = (uint64_t)next,
    };
    return &feed->batch[next];
}

static void give_back(struct supply *supply, struct batch *batch) {
    (void)batch;
    atomic_fetch_add(&feed_of(supply)->given, 1);
}

static void cancel(struct supply *supply) {
    atomic_store(&feed_of(supply)->next, feed_of(supply)->steps);
}

static int status(const struct supply *supply, struct error *err) {
    (void)supply, (void)err;
    return STATUS_OK;
}

static const struct supply_ops feed_ops = {take, give_back, give_back, cancel, status};

static void fill(struct feed *feed, int index, int workers, int mu) {
    uint32_t random = 1;
    *feed = (struct feed){
        .supply = {.ops = &feed_ops}, .index = index, .workers = workers, .mu = mu, .steps = STEPS};
    for (int i = 0; i < SAMPLES; i++) {
        for (int j = 0; j < INPUTS; j++) {
            random = random * 1664525u + 1013904223u;
            feed->input[i * INPUTS + j] = (float)(random >> 8) / (float)(1 << 24) - 0.5f;
        }
        feed->label[i] = i % CLASSES;
        feed->input[i * INPUTS + i % CLASSES] += 1;
    }
}

// More than one shard.
static const char wide[] = "input 300\n"
                           "dense d1 units=1000 act=tanh\n"
                           "softmax units=3\n";

struct scene {
    struct model *model;
    struct optimizer optimizer;
    struct schedule schedule;
    const struct kernels *kernels;
    struct fake fake;
};

static void open_scene_of(struct tap *tap, struct scene *s, const char *model) {
    *s = (struct scene){.schedule = {.rate = 0.1}, .kernels = kernels_best()};
    CHECK_INT(tap, model_parse(&s->model, "test", model, NULL, 0, NULL), STATUS_OK);
    CHECK(tap, fake_open(&s->fake, s->model->parameter_count));
    model_init_lively(s->model, s->fake.weights, SEED);
}

static void open_scene(struct tap *tap, struct scene *s) {
    open_scene_of(tap, s, text);
}

static void close_scene(struct scene *s) {
    fake_close(&s->fake);
    model_free(s->model);
}

static struct loop_config config_of(const struct scene *s, struct home *home, struct feed *feed,
                                    bool sync) {
    return (struct loop_config){
        .model = s->model,
        .kernels = s->kernels,
        .optimizer = &s->optimizer,
        .schedule = &s->schedule,
        .home = home,
        .supply = &feed->supply,
        .patience = SUPPLY_PATIENT,
        .pace = {.samples = SAMPLES, .batch = (uint64_t)feed->mu},
        .threads = sync ? 2 : 1,
        .batch = feed->mu,
        .sync = sync,
    };
}

// In a `crowd` the workers of that home are two and three while its threads train.
static void run_loop(struct tap *tap, const struct loop_config *config,
                     struct home_servers *crowd) {
    struct loop *loop;
    CHECK_INT(tap, loop_open(&loop, config, NULL), STATUS_OK);
    loop_start(loop, UINT64_MAX);
    for (size_t more = 0; !loop_wait(loop, crowd ? 0 : 10); more = !more)
        if (crowd)
            home_servers_sharers(crowd, 2 + more);
    loop_close(loop);
}

// The weights of a worker alone.
static float *alone(struct tap *tap, const struct scene *s, int mu, bool sync) {
    float *weights = mem_floats(s->model->parameter_count);
    struct feed *feed = malloc(sizeof *feed);
    struct home *home;
    fill(feed, 0, 1, mu);
    model_init_lively(s->model, weights, SEED);
    const struct home_config local = {
        .model = s->model,
        .optimizer = &s->optimizer,
        .kernels = s->kernels,
        .parameters = weights,
        .threads = 1,
        .batch = mu,
    };
    CHECK_INT(tap, home_local(&home, &local, NULL), STATUS_OK);
    const struct loop_config config = config_of(s, home, feed, sync);
    run_loop(tap, &config, NULL);
    home->ops->close(home);
    free(feed);
    return weights;
}

// One worker, a thread of its own.
struct learner {
    struct scene *s;
    struct tap tap;
    struct feed feed;
    struct servers *servers;
    pthread_t thread;
    bool delta, overlap;
    bool crowd; // other workers come and go
    struct protocol protocol;
    double rate;         // 0: the scene's
    const char *factors; // NULL: none
    int mu;              // 0: 8
    int threads;         // 0: 1 with deltas, else 2
    uint64_t session, push_every, pull_every, applied, pushes,
        wanted; // samples whose factors the servers hear of
};

static uint64_t mark(void *self) {
    return atomic_load(&((struct learner *)self)->feed.given);
}

static void applied(void *self, uint64_t mark) {
    ((struct learner *)self)->applied = mark;
}

static int threads_of(const struct learner *learner) {
    return learner->threads > 0 ? learner->threads : learner->delta ? 1 : 2;
}

static struct home_servers *open_home(struct learner *learner) {
    struct scene *s = learner->s;
    struct home_servers *home = NULL;
    const struct home_servers_config config = {
        .model = s->model,
        .optimizer = &s->optimizer,
        .kernels = s->kernels,
        .servers = learner->servers,
        .threads = threads_of(learner),
        .batch = learner->feed.mu,
        .push_every = learner->push_every,
        .pull_every = learner->pull_every,
        .protocol = &learner->protocol,
        .overlap = learner->overlap,
        .factors = learner->factors ? learner->factors : "none",
        .self = learner,
        .mark = mark,
        .applied = applied,
    };
    int opened = (learner->delta ? home_delta_open : home_gradient_open)(&home, &config, NULL);
    CHECK_INT(&learner->tap, opened, STATUS_OK);
    return home;
}

// The routes are for kept_drop, after the servers were closed.
static struct kept *open_servers(struct learner *learner) {
    struct scene *s = learner->s;
    struct kept *routes = fake_routes(&s->fake);
    const struct servers_options options = {
        .hello = {.role = PROTO_ROLE_WORKER, .session = learner->session},
        .parameters = s->model->parameter_count};
    servers_open(&learner->servers, &options, NULL);
    servers_route(learner->servers, routes);
    return routes;
}

static void step_home(void *self, int samples, float rate) {
    home_servers_step(self, samples, rate);
}

static void *learn(void *self) {
    struct learner *learner = self;
    struct scene *s = learner->s;
    struct kept *routes = open_servers(learner);
    struct home_servers *home = open_home(learner);
    CHECK_INT(&learner->tap, home_servers_begin(home, NULL), STATUS_OK);
    struct loop_config config =
        config_of(s, home_servers_home(home), &learner->feed, home_servers_sync(home));
    config.threads = threads_of(learner);
    config.step = step_home;
    config.step_self = home;
    run_loop(&learner->tap, &config, learner->crowd ? home : NULL);
    CHECK_INT(&learner->tap, home_servers_flush(home, NULL), STATUS_OK);
    CHECK_INT(&learner->tap, learner->applied, STEPS);
    learner->pushes = home_servers_figures(home).pushes;
    home_servers_close(home);
    servers_close(learner->servers);
    kept_drop(routes);
    return NULL;
}

static void check_same(struct tap *tap, const struct scene *s, const float *wanted) {
    double most = 0;
    for (size_t i = 0; i < s->model->parameter_count; i++)
        most = fmax(most, fabs((double)(s->fake.weights[i] - wanted[i])));
    CHECK_NEAR(tap, most, 0, 1e-5);
}

static void test_hardsync(struct tap *tap, int break_one_in) {
    enum { LAMBDA = 4, MU = 8 };
    struct scene s;
    struct learner *learners = calloc(LAMBDA, sizeof *learners);
    open_scene(tap, &s);
    s.fake.collect = LAMBDA;
    float *wanted = alone(tap, &s, LAMBDA * MU, true);
    s.fake.break_one_in = break_one_in;
    for (int i = 0; i < LAMBDA; i++) {
        learners[i] = (struct learner){
            .s = &s, .protocol.kind = PROTOCOL_HARDSYNC, .session = (uint64_t)i, .push_every = 1};
        fill(&learners[i].feed, i, LAMBDA, MU);
        pthread_create(&learners[i].thread, NULL, learn, &learners[i]);
    }
    for (int i = 0; i < LAMBDA; i++) {
        pthread_join(learners[i].thread, NULL);
        CHECK_INT(tap, learners[i].tap.failed_here, 0);
    }
    CHECK_INT(tap, s.fake.version[0], 1 + STEPS);
    check_same(tap, &s, wanted);
    free(wanted);
    free(learners);
    close_scene(&s);
}

// Each thread's next step is by the rule of as many learners as there are then.
static void test_crowd(struct tap *tap) {
    struct scene s;
    struct learner *learner = calloc(1, sizeof *learner);
    open_scene(tap, &s);
    *learner =
        (struct learner){.s = &s, .delta = true, .crowd = true, .threads = 2, .push_every = 1};
    fill(&learner->feed, 0, 1, 1);
    learn(learner);
    CHECK_INT(tap, learner->tap.failed_here, 0);
    free(learner);
    close_scene(&s);
}

static void test_one(struct tap *tap, bool delta, uint64_t push_every) {
    enum { MU = 8 };
    struct scene s;
    struct learner *learner = calloc(1, sizeof *learner);
    open_scene(tap, &s);
    float *wanted = alone(tap, &s, MU, !delta);
    *learner = (struct learner){.s = &s, .delta = delta, .push_every = push_every};
    fill(&learner->feed, 0, 1, MU);
    learn(learner);
    CHECK_INT(tap, learner->tap.failed_here, 0);
    if (delta) { // what nobody else has changed need not be pulled
        check_same(tap, &s, wanted);
        CHECK_INT(tap, s.fake.unchanged, s.fake.pulls - 1);
    } else // gradients of older weights: each was applied, none is lost
        CHECK_INT(tap, s.fake.version[0], 1 + STEPS);
    free(wanted);
    free(learner);
    close_scene(&s);
}

static double largest_difference(const float *a, const float *b) {
    double most = 0;
    for (int i = 0; i < PARAMETERS; i++)
        most = fmax(most, fabs((double)(a[i] - b[i])));
    return most;
}

// The servers' weights and the pushes behind a run of one worker; the caller frees the former.
static float *run_one(struct tap *tap, struct learner as, uint64_t *pushes) {
    struct scene s;
    struct learner *learner = calloc(1, sizeof *learner);
    open_scene(tap, &s);
    *learner = as;
    learner->s = &s;
    fill(&learner->feed, 0, 1, as.mu > 0 ? as.mu : 8);
    if (as.rate > 0)
        s.schedule.rate = as.rate;
    learn(learner);
    CHECK_INT(tap, learner->tap.failed_here, 0);
    *pushes = learner->pushes;
    CHECK_INT(tap, s.fake.factor_samples, as.wanted);
    CHECK(tap, s.fake.floats >= PARAMETERS);
    float *weights = mem_floats(s.fake.floats);
    memcpy(weights, s.fake.weights, s.fake.floats * sizeof *weights);
    free(learner);
    close_scene(&s);
    return weights;
}

// Of the layers (12 x 20, 20 x 3) the first has fewer numbers in the products of up to 7
// samples, the second of up to 2.
static void test_factors(struct tap *tap, uint64_t every, uint64_t samples) {
    const struct learner floats = {.delta = true, .mu = 2, .push_every = every};
    struct learner factors = floats;
    uint64_t counted;
    factors.factors = "auto";
    factors.wanted = samples;
    float *wanted = run_one(tap, floats, &counted), *found = run_one(tap, factors, &counted);
    CHECK_INT(tap, counted, (STEPS + every - 1) / every);
    CHECK(tap, largest_difference(found, wanted) < 1e-5);
    free(wanted), free(found);
}

static void test_distance(struct tap *tap, struct learner as) {
    for (uint64_t every = 1; every <= STEPS + 1; every++) {
        uint64_t pushes;
        as.push_every = every;
        free(run_one(tap, as, &pushes));
        if (pushes != (STEPS + every - 1) / every)
            FAIL(tap, "%d mini-batches, a push every %d: %d pushes", STEPS, (int)every,
                 (int)pushes);
    }
}

// So small a rate that all gradients are nearly those of the first weights.
static void test_sum(struct tap *tap, struct learner as) {
    uint64_t pushes;
    as.rate = 1e-3;
    as.push_every = 1;
    as.wanted = as.factors ? STEPS * 8 : 0;
    float *each = run_one(tap, as, &pushes);
    as.push_every = 7;
    float *seven = run_one(tap, as, &pushes);
    as.rate = 1e-9;
    float *first = run_one(tap, as, &pushes);
    CHECK_INT(tap, pushes, 3);
    CHECK(tap, largest_difference(each, first) > 1e-3);
    CHECK(tap, largest_difference(seven, each) < 1e-4);
    free(each), free(seven), free(first);
}

// One worker, with the test as its loop.
struct lone {
    struct scene s;
    struct learner *learner;
    struct kept *routes;
    struct home_servers *home;
};

static void open_lone_of(struct tap *tap, struct lone *lone, const char *model, struct learner as,
                         int busy) {
    struct learner *learner = malloc(sizeof *learner);
    open_scene_of(tap, &lone->s, model);
    lone->s.fake.weights[0] = 0;
    lone->s.fake.busy = busy;
    *learner = as;
    learner->s = &lone->s;
    fill(&learner->feed, 0, 1, 1);
    lone->learner = learner;
    lone->routes = open_servers(learner);
    lone->home = open_home(learner);
    CHECK_INT(tap, home_servers_begin(lone->home, NULL), STATUS_OK);
    CHECK_INT(tap, lone->s.model->layers[1].weights.offset, 0);
}

static void open_lone_as(struct tap *tap, struct lone *lone, struct learner as, int busy) {
    open_lone_of(tap, lone, text, as, busy);
}

static void open_lone(struct tap *tap, struct lone *lone, uint64_t push_every) {
    open_lone_as(tap, lone, (struct learner){.delta = true, .push_every = push_every}, 0);
}

static void close_lone(struct tap *tap, struct lone *lone) {
    CHECK_INT(tap, lone->learner->tap.failed_here, 0);
    home_servers_close(lone->home);
    servers_close(lone->learner->servers);
    kept_drop(lone->routes);
    free(lone->learner);
    close_scene(&lone->s);
}

// Adds one to the first weight, as a mini-batch does.
static void step(const struct lone *lone) {
    struct home *home = home_servers_home(lone->home);
    const float gradient = -1;
    home->ops->add(home, 0, &lone->s.model->layers[1], (struct span){0, 1}, &gradient, 1);
    home->ops->add_clock(home, 0, 1);
}

// Mini-batches of 8 samples, of which every third one is short, are pushed two at a time: the
// servers hear of as many samples as there were.
static void test_short_batches(struct tap *tap) {
    enum { MU = 8, STEPS_HERE = 21 };
    struct lone lone;
    uint64_t samples = 0;
    open_lone_as(tap, &lone, (struct learner){.delta = true, .mu = MU, .push_every = 2}, 0);
    struct home *home = home_servers_home(lone.home);
    for (int i = 0; i < STEPS_HERE; i++) {
        int n = i % 3 == 2 ? 3 : MU;
        home->ops->add_clock(home, 0, n);
        samples += (uint64_t)n;
    }
    CHECK_INT(tap, home_servers_flush(lone.home, NULL), STATUS_OK);
    CHECK_INT(tap, lone.s.fake.delta_samples, samples);
    close_lone(tap, &lone);
}

static float first_weight(struct fake *fake) {
    pthread_mutex_lock(&fake->lock);
    float weight = fake->weights[0];
    pthread_mutex_unlock(&fake->lock);
    return weight;
}

// The servers answer nothing for a while: a worker without a limit takes all its steps then.
static void test_drift(struct tap *tap) {
    enum { BEHIND_MOST = 8, REFUSALS = 20 };
    struct lone lone;
    struct fake *fake = &lone.s.fake;
    open_lone(tap, &lone, 1);
    pthread_mutex_lock(&fake->lock);
    fake->busy = REFUSALS;
    pthread_mutex_unlock(&fake->lock);
    for (int made = 1; made <= 3 * BEHIND_MOST; made++) {
        step(&lone);
        float applied = first_weight(fake);
        if (applied < (float)(made - BEHIND_MOST))
            FAIL(tap, "after %d steps the servers have %g", made, (double)applied);
    }
    CHECK_INT(tap, home_servers_flush(lone.home, NULL), STATUS_OK);
    CHECK_NEAR(tap, first_weight(fake), 3 * BEHIND_MOST, 0);
    close_lone(tap, &lone);
}

// The same beside three others, with distances by cost: 16 samples of each at first.
static void test_drift_beside(struct tap *tap) {
    enum { DISTANCE = 16, REFUSALS = 20 };
    struct lone lone;
    struct fake *fake = &lone.s.fake;
    open_lone_as(tap, &lone, (struct learner){.delta = true, .protocol.modulate = MODULATE_NONE},
                 0);
    home_servers_sharers(lone.home, 4);
    pthread_mutex_lock(&fake->lock);
    fake->busy = REFUSALS;
    pthread_mutex_unlock(&fake->lock);
    for (int made = 1; made <= 6 * DISTANCE; made++) {
        step(&lone);
        float applied = first_weight(fake);
        if (applied < (float)(made - DISTANCE - 1))
            FAIL(tap, "after %d steps the servers have %g", made, (double)applied);
    }
    close_lone(tap, &lone);
}

static void step_and_flush(struct tap *tap, struct lone *lone, double weight) {
    step(lone);
    CHECK_INT(tap, home_servers_flush(lone->home, NULL), STATUS_OK);
    CHECK_NEAR(tap, first_weight(&lone->s.fake), weight, 1e-6);
}

// A worker that has trained far in a long distance is given a short one: what it waits for then
// is due at once, and not where the long one ends. `push_every` 0: by cost, beside others.
static void test_shorter(struct tap *tap, uint64_t push_every) {
    enum { LONG = 1000, MADE = 100 };
    struct lone lone;
    open_lone(tap, &lone, LONG);
    home_servers_sharers(lone.home, 4);
    step_and_flush(tap, &lone, 1);
    for (int made = 0; made < MADE; made++)
        step(&lone);
    home_servers_pace(lone.home, push_every, 0);
    home_servers_change(lone.home);
    step(&lone); // for ever, unless it is exchanged
    CHECK(tap, first_weight(&lone.s.fake) > 1);
    close_lone(tap, &lone);
}

static void test_rate(struct tap *tap) {
    struct lone lone;
    open_lone_as(tap, &lone, (struct learner){.delta = true, .protocol.reference_batch = 1}, 0);
    step_and_flush(tap, &lone, 1);
    home_servers_sharers(lone.home, 4);
    step_and_flush(tap, &lone, 1.5);
    lone.learner->protocol.reference_batch = 4;
    home_servers_change(lone.home);
    step_and_flush(tap, &lone, 1.75);
    lone.learner->protocol.reference_batch = 0;
    home_servers_change(lone.home);
    step_and_flush(tap, &lone, 2.75);
    close_lone(tap, &lone);
}

// Others move the first weight by one, and so does this worker: how far its step goes.
static double step_with_others(struct lone *lone) {
    struct fake *fake = &lone->s.fake;
    pthread_mutex_lock(&fake->lock);
    float before = fake->weights[0] += 1, now = before;
    fake->version[0]++;
    pthread_mutex_unlock(&fake->lock);
    step(lone);
    while ((now = first_weight(fake)) == before)
        sched_yield();
    return (double)(now - before);
}

static void test_length(struct tap *tap) {
    struct lone lone;
    double moved = 0;
    open_lone_as(tap, &lone, (struct learner){.delta = true, .push_every = 1}, 0);
    home_servers_sharers(lone.home, 4);
    CHECK_NEAR(tap, step_with_others(&lone), 1, 1e-5);
    for (int made = 0; made < 20; made++) {
        moved = step_with_others(&lone);
        CHECK(tap, moved < 0.75); // a late exchange shows the others' move to the next one
    }
    CHECK_NEAR(tap, moved, 0.25, 1e-5);
    lone.learner->protocol.modulate = MODULATE_NONE;
    home_servers_change(lone.home);
    step_with_others(&lone);
    CHECK_NEAR(tap, step_with_others(&lone), 1, 1e-5);
    lone.learner->protocol.modulate = MODULATE_MEAN;
    home_servers_change(lone.home);
    step_with_others(&lone);
    CHECK_NEAR(tap, step_with_others(&lone), 0.25, 1e-5);
    home_servers_sharers(lone.home, 1);
    step_with_others(&lone);
    CHECK_NEAR(tap, step_with_others(&lone), 1, 1e-5);
    close_lone(tap, &lone);
}

// Others have moved the weight far at the beginning, and stand still since: steps become whole.
static void test_still(struct tap *tap, uint64_t pull_every) {
    struct lone lone;
    struct fake *fake = &lone.s.fake;
    open_lone_as(tap, &lone,
                 (struct learner){.delta = true, .push_every = 1, .pull_every = pull_every}, 0);
    home_servers_sharers(lone.home, 4);
    pthread_mutex_lock(&fake->lock);
    fake->weights[0] -= 100;
    fake->version[0]++;
    pthread_mutex_unlock(&fake->lock);
    float before = 0, now = 0;
    for (int made = 0; made < 40; made++) {
        before = first_weight(fake);
        step(&lone);
        while ((now = first_weight(fake)) == before)
            sched_yield();
    }
    CHECK_NEAR(tap, (double)(now - before), 1, 1e-4);
    close_lone(tap, &lone);
}

static int count(struct fake *fake, const int *what) {
    pthread_mutex_lock(&fake->lock);
    int count = *what;
    pthread_mutex_unlock(&fake->lock);
    return count;
}

// --- shards of which some have changed ------------------------------------------------------

// Others add one to float `at`.
static void move_shard(struct fake *fake, size_t at) {
    pthread_mutex_lock(&fake->lock);
    fake->weights[at] += 1;
    fake->version[at / PROTO_SHARD_FLOATS]++;
    pthread_mutex_unlock(&fake->lock);
}

// Where the worker's weights and the servers' differ most; nothing is under way.
static double settled_difference(struct tap *tap, const struct lone *lone) {
    struct home *home = home_servers_home(lone->home);
    CHECK_INT(tap, home_servers_flush(lone->home, NULL), STATUS_OK);
    const float *weights = home->ops->weights(home, 0);
    double most = 0;
    for (size_t i = 0; i < lone->s.model->parameter_count; i++)
        most = fmax(most, fabs((double)(weights[i] - lone->s.fake.weights[i])));
    return most;
}

// A pull brings the second shard, and not the first. With a push in the same turn
// or in a later one.
static void test_some_shards(struct tap *tap, uint64_t push_every, size_t sharers) {
    struct lone lone;
    struct fake *fake = &lone.s.fake;
    open_lone_of(tap, &lone, wide,
                 (struct learner){.delta = true, .push_every = push_every, .pull_every = 1}, 0);
    CHECK(tap, lone.s.model->parameter_count > PROTO_SHARD_FLOATS);
    home_servers_sharers(lone.home, sharers);
    float before = fake->weights[PROTO_SHARD_FLOATS], moved = 0;
    for (int made = 1; made <= 3; made++) {
        int pulls = fake->pulls;
        move_shard(fake, PROTO_SHARD_FLOATS);
        step(&lone);
        while (count(fake, &fake->pulls) <= pulls)
            sched_yield();
        CHECK_NEAR(tap, settled_difference(tap, &lone), 0, 1e-6);
        CHECK(tap, first_weight(fake) > moved);
        moved = first_weight(fake);
        CHECK_NEAR(tap, fake->weights[PROTO_SHARD_FLOATS], before + (float)made, 1e-5);
    }
    CHECK(tap, count(fake, &fake->unchanged) > 0);
    close_lone(tap, &lone);
}

// Another server has the shards: one weight is what it was before the last push, and the versions
// are as they were.
static void test_fail_over(struct tap *tap) {
    enum { PULL_EVERY = 4 };
    struct lone lone;
    struct fake *fake = &lone.s.fake;
    open_lone_of(tap, &lone, wide,
                 (struct learner){.delta = true, .push_every = 1, .pull_every = PULL_EVERY}, 0);
    step(&lone);
    CHECK_INT(tap, home_servers_flush(lone.home, NULL), STATUS_OK);
    fake_turn(fake);
    pthread_mutex_lock(&fake->lock);
    fake->weights[PROTO_SHARD_FLOATS] -= 1;
    int pulls = fake->pulls;
    pthread_mutex_unlock(&fake->lock);
    struct kept *routes = fake_routes(fake);
    servers_route(lone.learner->servers, routes);
    kept_drop(routes);
    for (int made = 1; made < PULL_EVERY; made++) {
        step(&lone);
        CHECK_INT(tap, home_servers_flush(lone.home, NULL), STATUS_OK);
    }
    while (count(fake, &fake->pulls) <= pulls)
        sched_yield();
    CHECK_NEAR(tap, settled_difference(tap, &lone), 0, 1e-6);
    close_lone(tap, &lone);
}

// --- memory ---------------------------------------------------------------------------------

static size_t bytes_in_use(void) {
    struct mallinfo2 all = mallinfo2();
    return all.uordblks + all.hblkhd;
}

// Arrays as long as the weights that a home takes are those that protocol_copies tells.
static void test_copies(struct tap *tap, struct learner as) {
    struct learner *learner = malloc(sizeof *learner);
    struct scene s = {.kernels = kernels_best()};
    CHECK_INT(tap, model_parse(&s.model, "test", "input 1000\nsoftmax units=2000\n", NULL, 0, NULL),
              STATUS_OK);
    size_t bytes = s.model->parameter_count * sizeof(float);
    const struct servers_options options = {.parameters = s.model->parameter_count};
    *learner = as;
    learner->s = &s;
    fill(&learner->feed, 0, 1, 1);
    CHECK_INT(tap, servers_open(&learner->servers, &options, NULL), STATUS_OK);
    size_t before = bytes_in_use();
    struct home_servers *home = open_home(learner);
    size_t taken = bytes_in_use() - before;
    enum protocol_push push = as.delta ? PUSH_DELTA : PUSH_GRADIENT;
    int copies = protocol_copies(&as.protocol, push, as.overlap);
    if (before > 0) // a sanitizer's malloc does not say
        CHECK_INT(tap, (taken + bytes / 2) / bytes, copies);
    home_servers_close(home);
    servers_close(learner->servers);
    free(learner);
    model_free(s.model);
}

static uint64_t distance(struct home_servers *home, size_t sharers) {
    home_servers_sharers(home, sharers);
    return home_servers_figures(home).push_every;
}

// Workers that have just begun tell each other more often.
static void test_beginning(struct tap *tap) {
    CHECK_INT(tap, home_delta_most(16, 4, 0), 1);
    CHECK_INT(tap, home_delta_most(16, 2, 0), 2);
    CHECK_INT(tap, home_delta_most(1, 4, 0), 16);
    CHECK_INT(tap, home_delta_most(1, 100, 0), 16);
    CHECK_INT(tap, home_delta_most(1, 4, 4096), 24);
    CHECK_INT(tap, home_delta_most(1, 4, 8192), 32);
    CHECK_INT(tap, home_delta_most(1, 2, 1000000), 64);
    CHECK_INT(tap, home_delta_most(1000, 2, 0), 1);
}

// One worker alone, then in company, where it is told what holds at the beginning.
static void test_company(struct tap *tap) {
    struct lone lone;
    open_lone(tap, &lone, 0);
    CHECK_INT(tap, home_servers_figures(lone.home).push_every, 2048);
    step(&lone);
    CHECK_INT(tap, distance(lone.home, 2), 32);
    while (first_weight(&lone.s.fake) != 1)
        sched_yield();
    CHECK_INT(tap, distance(lone.home, 3), 21);
    CHECK_INT(tap, distance(lone.home, 4), 16);
    CHECK_INT(tap, distance(lone.home, 100), 16);
    CHECK_INT(tap, distance(lone.home, 1), 2048);
    home_servers_pace(lone.home, 7, 0);
    CHECK_INT(tap, distance(lone.home, 2), 7);
    close_lone(tap, &lone);
}

static void step_gradient(const struct lone *lone) {
    struct home *home = home_servers_home(lone->home);
    home->ops->add_clock(home, 0, 1);
    home_servers_step(lone->home, 1, 0.1f);
}

// A push is refused for good while weights are on their way, which never come. The threads
// compute on until somebody stops them, but ask for nothing more. (Servers that are busy at
// first make pulls seem slow, so that they are asked for at once.)
static void test_refused(struct tap *tap) {
    struct lone lone;
    struct fake *fake = &lone.s.fake;
    open_lone_as(tap, &lone, (struct learner){.overlap = true, .push_every = 1, .pull_every = 2},
                 5);
    struct home *home = home_servers_home(lone.home);
    home->ops->weights(home, 0);
    step_gradient(&lone);
    while (count(fake, &fake->pushes) < 1)
        sched_yield();
    pthread_mutex_lock(&fake->lock);
    fake->refuse = PROTO_REFUSAL_WRONG_SESSION;
    fake->mute = true;
    int pulls = fake->pulls;
    pthread_mutex_unlock(&fake->lock);
    step_gradient(&lone);
    while (count(fake, &fake->pulls) == pulls)
        home->ops->weights(home, 0);
    step_gradient(&lone);
    CHECK_INT(tap, home_servers_status(lone.home, NULL), STATUS_STOPPED);
    home->ops->weights(home, 0);
    step_gradient(&lone);
    home->ops->weights(home, 0);
    servers_stop(lone.learner->servers);
    CHECK_INT(tap, home_servers_flush(lone.home, NULL), STATUS_STOPPED);
    close_lone(tap, &lone);
    CHECK_INT(tap, fake->pulls, pulls + 1);
}

static void refuse_pushes(struct fake *fake, uint16_t code) {
    pthread_mutex_lock(&fake->lock);
    fake->refuse = code;
    pthread_mutex_unlock(&fake->lock);
}

// Others like it would be refused until the next pull, which is far away.
static void test_too_stale(struct tap *tap, bool delta) {
    struct lone lone;
    struct fake *fake = &lone.s.fake;
    open_lone_as(tap, &lone,
                 (struct learner){.delta = delta, .push_every = 1, .pull_every = 1000000}, 0);
    for (int i = 0; i < 3 && !delta; i++) // the first pull is due at once
        step_gradient(&lone);
    CHECK_INT(tap, home_servers_flush(lone.home, NULL), STATUS_OK);
    int pulls = count(fake, &fake->pulls);
    refuse_pushes(fake, PROTO_REFUSAL_TOO_STALE);
    for (int i = 0; i < 3; i++) {
        if (delta)
            step(&lone);
        else
            step_gradient(&lone);
    }
    while (delta && count(fake, &fake->pulls) == pulls)
        sched_yield();
    CHECK(tap, count(fake, &fake->pulls) > pulls);
    refuse_pushes(fake, 0);
    CHECK_INT(tap, home_servers_flush(lone.home, NULL), STATUS_OK);
    close_lone(tap, &lone);
}

// A mini-batch of one sample whose dense layer goes as its factors.
static void step_factors(const struct lone *lone) {
    enum { UNITS = 20 };
    static const float dy[UNITS], x[INPUTS];
    const struct dense_errors errors = {.dy = dy, .x = x, .n = 1, .units = UNITS, .inputs = INPUTS};
    struct home *home = home_servers_home(lone->home);
    const struct layer *layer = &lone->s.model->layers[1];
    home->ops->weights(home, 0);
    CHECK(&lone->learner->tap, home->products->takes(home, layer, true));
    home->products->add(home, 0, layer, &errors, NULL, 0, 0.1f);
    home->ops->add_clock(home, 0, 1);
    home_servers_step(lone->home, 1, 0.1f);
}

// What the threads compute until somebody stops them has no place in any push; and factors that
// are not answered yet are not sent anew.
static void test_refused_factors(struct tap *tap) {
    struct lone lone;
    struct fake *fake = &lone.s.fake;
    open_lone_as(tap, &lone, (struct learner){.overlap = true, .factors = "d1", .push_every = 1},
                 0);
    pthread_mutex_lock(&fake->lock);
    fake->refuse = PROTO_REFUSAL_WRONG_SESSION;
    fake->deaf = true;
    pthread_mutex_unlock(&fake->lock);
    while (!home_servers_status(lone.home, NULL))
        step_factors(&lone);
    for (int i = 0; i < 64; i++)
        step_factors(&lone);
    CHECK_INT(tap, home_servers_flush(lone.home, NULL), STATUS_STOPPED);
    servers_stop(lone.learner->servers);
    CHECK_INT(tap, home_servers_flush(lone.home, NULL), STATUS_STOPPED);
    close_lone(tap, &lone);
}

int main(void) {
    struct tap tap = {0};
    // "the configurations (sigma, mu, lambda) = (0, mu0 lambda0, 1) and (0, mu0, lambda0) are
    //  equivalent" (Rudra 5.3, eq. 7)
    TEST(&tap, "four workers under hardsync are one with a mini-batch four times as large",
         { test_hardsync(&tap, 0); });
    TEST(&tap, "so they are while links break at random moments", { test_hardsync(&tap, 10); });
    TEST(&tap, "one worker's deltas make of the servers' weights what it has alone",
         { test_one(&tap, true, 1); });
    TEST(&tap, "so they do when they are pushed every seven mini-batches",
         { test_one(&tap, true, 7); });
    TEST(&tap, "who pushes deltas is at most eight exchanges ahead of servers that do not answer",
         { test_drift(&tap); });
    TEST(&tap,
         "one keeps back 2048 samples, several 128 together; who comes hears what is held back",
         { test_company(&tap); });
    TEST(&tap, "beside others it is at most one ahead", { test_drift_beside(&tap); });
    TEST(&tap, "servers hear of as many samples as there were where mini-batches are short",
         { test_short_batches(&tap); });
    TEST(&tap, "a distance that was shortened holds at once", { test_shorter(&tap, 10); });
    TEST(&tap, "so does one by cost", { test_shorter(&tap, 0); });
    TEST(&tap, "the rate of a delta is divided by the root of the workers and of the reference",
         { test_rate(&tap); });
    TEST(&tap, "steps get shorter where others go the same way (delta_steps.h)",
         { test_length(&tap); });
    TEST(&tap, "and are whole where others stand still",
         { test_still(&tap, 1), test_still(&tap, 3); });
    TEST(&tap, "workers tell each other more often at first", { test_beginning(&tap); });
    TEST(&tap, "pushes of deltas are the mini-batches divided by their distance, rounded up",
         { test_distance(&tap, (struct learner){.delta = true}); });
    TEST(&tap, "so they are with three threads without locks",
         { test_distance(&tap, (struct learner){.delta = true, .threads = 3}); });
    TEST(&tap, "and pushes of gradients", { test_distance(&tap, (struct learner){0}); });
    TEST(&tap, "a gradient of seven mini-batches changes the weights as seven of one do",
         { test_sum(&tap, (struct learner){0}); });
    TEST(&tap, "so do the products of seven mini-batches",
         { test_sum(&tap, (struct learner){.factors = "d1", .mu = 8}); });
    TEST(&tap, "of six samples the deltas of a dense layer go as products where that is shorter",
         { test_factors(&tap, 3, 2 * STEPS); });
    TEST(&tap, "of two those of both layers do", { test_factors(&tap, 1, 4 * STEPS); });
    TEST(&tap, "of twenty those of none", { test_factors(&tap, 10, 0); });
    TEST(&tap, "gradients that overlap computing are all applied", { test_one(&tap, false, 1); });
    TEST(&tap, "of some shards others' changes come, and this worker's go with the same exchange",
         { test_some_shards(&tap, 1, 1); });
    TEST(&tap, "or with a later one", { test_some_shards(&tap, 100, 1); });
    TEST(&tap, "so they do where steps are measured", { test_some_shards(&tap, 1, 2); });
    TEST(&tap, "what is lost with a server is lost to who pushed it, whatever the versions are",
         { test_fail_over(&tap); });
    TEST(&tap, "deltas need three copies of the weights",
         { test_copies(&tap, (struct learner){.delta = true}); });
    TEST(&tap, "hardsync needs two", {
        test_copies(&tap, (struct learner){.protocol.kind = PROTOCOL_HARDSYNC, .overlap = true});
    });
    TEST(&tap, "softsync needs three, and four where pulls overlap", {
        test_copies(&tap, (struct learner){.protocol = {.kind = PROTOCOL_SOFTSYNC, .n = 1}});
        test_copies(&tap, (struct learner){.protocol = {.kind = PROTOCOL_SOFTSYNC, .n = 1},
                                           .overlap = true});
    });
    TEST(&tap, "other workers come and go while threads train", { test_crowd(&tap); });
    TEST(&tap, "who was refused as too stale pulls before its time",
         { test_too_stale(&tap, true), test_too_stale(&tap, false); });
    TEST(&tap, "who was refused for good asks for nothing more, and ends", { test_refused(&tap); });
    TEST(&tap, "so does who pushes factors, and keeps those of no mini-batch after it",
         { test_refused_factors(&tap); });
    return tap_done(&tap);
}
