// Deltas. Two arrays beside the weights W in use:
//
//   base    the servers' weights as last pulled, with all that was pushed since: what W has of them
//   moved   what is on its way: of a pull, the servers' weights where they are others than base
//           (news); of a push, the difference
//
//   pull    moved = the servers' weights
//   push    change = W - base; W += news - base; base = news + change; moved = change
//           (then what is in `moved` goes to the servers)
//
// That is one pass over memory. Where nothing was pulled, news is base. The servers add the change
// in the same arithmetic: a shard to which nobody else has pushed is known without being pulled,
// and W is written only where there is news, as every line that is written here is missed by the
// threads that train.
// Training goes on meanwhile: an update that comes between the reading and the writing of
// a weight is lost, as among Hogwild's threads; none counts twice.
//
// "limiting each model replica to request updated parameters only every n_fetch steps and
// send updated gradient values only every n_push steps (where n_fetch might not be equal to
// n_push)" (DistBelief's Downpour). Distances by cost are the least ones: while an exchange
// is under way, what is due next is put off, and grows. Distances that the user set are
// kept to: an exchange counts from where it was due, and not from when it was begun, and
// threads wait before they would be two distances ahead of it.
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/gate.h"
#include "core/hogwild.h"
#include "core/mem.h"
#include "remote/delta_factors.h"
#include "remote/delta_steps.h"
#include "remote/home_servers_internal.h"

// Exchanges by cost that the threads of a worker that trains alone are ahead of servers that do
// not answer. Beside others it is one: what a worker has not heard is what it will repeat.
enum { EXCHANGES_ALONE = 2 };
// Pushes with factors between two pulls of all weights, at least.
enum { UNSURE_MOST = 16 };

struct delta {
    struct home_servers common;
    struct home *local; // of the weights in use, for the threads
    float *weights, *state, *base, *moved;
    bool arrived; // `moved` is of a pull, and not in `weights` and `base` yet
    // Of `base` with what was pulled; 0 where it is not what the servers have.
    struct shard_stamp *stamps;
    struct growth growth;
    struct delta_factors *factors; // NULL: everything goes as it is
    atomic_bool keeps;             // products that are pushed then
    atomic_bool behind;            // a push was too stale: those that follow would be until a pull
    struct exchange *push, *pull;
    pthread_t thread; // that exchanges
    bool started;
    struct gate wanted;       // something for it to do
    struct gate over;         // a turn of it is
    _Atomic uint64_t samples; // of the mini-batches that the threads have added, and maybe more
    _Atomic uint64_t clock;   // these mini-batches
    _Atomic uint64_t due;     // the clock at which there is something to exchange
    _Atomic uint64_t settled; // the clock as of which both ways were exchanged
    _Atomic uint64_t flushes, flushed;
    atomic_bool hurry, closing;
    // The clock up to which that was begun. Changed by the exchanging thread.
    _Atomic uint64_t pushed, pulled;
    _Atomic float rate;   // of the threads' steps; written when it changes, as all threads read it
    _Atomic float length; // of those steps, beside what the schedule says: see delta_steps.h
    // The exchanging thread's own.
    int unsure;       // pushes with factors since all weights were pulled
    uint64_t counted; // samples of all pushes
    struct delta_steps steps;
};

// --- passes ---------------------------------------------------------------------------

enum { LINE = 16 }; // floats of a line of the cache

static inline void add_shift(float *restrict weights, const float shift[LINE], size_t n) {
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= shift[i] != 0;
    for (size_t i = 0; any && i < n; i++)
        weights[i] += shift[i];
}

// `moved` has news, which changes take the place of.
static inline void merge_line(float *restrict weights, float *restrict base, float *restrict moved,
                              size_t n) {
    float shift[LINE];
    for (size_t i = 0; i < n; i++) {
        float change = weights[i] - base[i], news = moved[i];
        shift[i] = news - base[i];
        base[i] = news + change;
        moved[i] = change;
    }
    add_shift(weights, shift, n);
}

// Of news and changes both; of changes alone; and of news alone.
HOGWILD static void merge_both(float *weights, float *base, float *moved, size_t n) {
    size_t i = 0;
    for (; i + LINE <= n; i += LINE)
        merge_line(weights + i, base + i, moved + i, LINE);
    merge_line(weights + i, base + i, moved + i, n - i);
}

HOGWILD static void merge_changes(const float *restrict weights, float *restrict base,
                                  float *restrict moved, size_t n) {
    for (size_t i = 0; i < n; i++) {
        moved[i] = weights[i] - base[i];
        base[i] += moved[i];
    }
}

HOGWILD static void merge_news(float *restrict weights, float *restrict base,
                               const float *restrict news, size_t n) {
    for (size_t i = 0; i < n; i++) {
        weights[i] += news[i] - base[i];
        base[i] = news[i];
    }
}

static void push_piece(void *self, size_t at, size_t n, bool came) {
    const struct delta *delta = self;
    if (came)
        merge_both(delta->weights + at, delta->base + at, delta->moved + at, n);
    else
        merge_changes(delta->weights + at, delta->base + at, delta->moved + at, n);
}

static void pull_piece(void *self, size_t at, size_t n, bool came) {
    const struct delta *delta = self;
    if (came)
        merge_news(delta->weights + at, delta->base + at, delta->moved + at, n);
}

// The changes are in `moved` then.
static void merge_for_push(struct delta *delta) {
    if (delta->arrived)
        exchange_pieces(delta->pull, push_piece, delta);
    else
        push_piece(delta, 0, delta->common.config.model->parameter_count, false);
    delta->arrived = false;
}

static void merge_pull(struct delta *delta) {
    if (delta->arrived)
        exchange_pieces(delta->pull, pull_piece, delta);
    delta->arrived = false;
}

// --- the exchanging thread ------------------------------------------------------------

// The servers do not have what `base` has: whatever they have is news.
static void forget_stamps(struct delta *delta) {
    size_t shards = servers_shards(delta->common.config.servers);
    for (size_t i = 0; i < shards; i++) {
        delta->stamps[i] = delta->growth.newest[i] = (struct shard_stamp){0};
        delta->growth.pushes[i] = 0;
    }
    delta->unsure = 0;
}

static bool is_shared(const struct delta *delta) {
    return atomic_load(&delta->common.sharers) > 1;
}

// `every`, or less at the beginning of training beside others.
static uint64_t distance_of(const struct delta *delta, const _Atomic uint64_t *every) {
    const struct home_servers *common = &delta->common;
    uint64_t usual = atomic_load(every);
    if (atomic_load(&common->exact) || !is_shared(delta))
        return usual;
    uint64_t most = home_delta_most(common->config.batch, atomic_load(&common->sharers),
                                    atomic_load(&delta->clock));
    return usual < most ? usual : most;
}

// Pushes are due `every` mini-batches behind the last one. Where threads have copies of the
// weights, one mini-batch later: so there always is a push behind the moment when they stop,
// and put into `weights` what their copies have.
static uint64_t push_due(struct delta *delta) {
    uint64_t apart = delta->local->apart;
    return atomic_load(&delta->pushed) + distance_of(delta, &delta->common.push_every) + apart;
}

static uint64_t pull_due(struct delta *delta) {
    if (atomic_load(&delta->behind))
        return atomic_load(&delta->pulled);
    return atomic_load(&delta->pulled) + distance_of(delta, &delta->common.pull_every);
}

// Whether distances are kept to: beside others, and where products are kept, for which there is
// no more room.
static bool is_strict(const struct delta *delta) {
    return atomic_load(&delta->common.exact) || is_shared(delta) || atomic_load(&delta->keeps);
}

// Where an exchange that is begun now counts from.
static uint64_t exchange_clock(struct delta *delta, const _Atomic uint64_t *last,
                               const _Atomic uint64_t *every) {
    uint64_t now = atomic_load(&delta->clock), due = atomic_load(last) + distance_of(delta, every);
    return is_strict(delta) && due < now ? due : now;
}

static void mark_exchange(struct delta *delta, _Atomic uint64_t *last, uint64_t clock) {
    atomic_store(last, clock);
    gate_open(&delta->over);
}

// Where the shards are what `base` has.
static void learn_stamps(struct delta *delta) {
    size_t shards = servers_shards(delta->common.config.servers);
    struct growth *growth = &delta->growth;
    for (size_t i = 0; i < shards; i++) {
        struct shard_stamp *stamp = &delta->stamps[i], newest = growth->newest[i];
        if (newest.epoch == stamp->epoch && newest.version == stamp->version + growth->pushes[i])
            *stamp = newest;
        growth->newest[i] = (struct shard_stamp){0};
        growth->pushes[i] = 0;
    }
}

static bool take_factors(struct delta *delta) {
    struct home_servers *common = &delta->common;
    if (!delta->factors)
        return false;
    bool any = delta_factors_take(delta->factors, atomic_load(&common->push_every) *
                                                      (uint64_t)common->config.batch);
    atomic_store(&delta->keeps, delta_factors_keeps(delta->factors));
    delta->unsure += any;
    return any;
}

static bool exchange_all(struct delta *delta, const struct push *push, bool *stale) {
    exchange_push(delta->push, push);
    return home_servers_await(&delta->common, delta->push, stale, NULL);
}

static bool exchange_factors(struct delta *delta, const struct push *push, bool *stale) {
    delta_factors_push(delta->factors, push);
    bool going = true;
    struct exchange *exchange;
    for (int i = 0; going && (exchange = delta_factors_exchange(delta->factors, i)); i++) {
        bool part = false;
        going = home_servers_await(&delta->common, exchange, &part, NULL);
        *stale |= part;
    }
    return going;
}

static void keep_piece(void *self, size_t at, size_t n, bool came) {
    const struct delta *delta = self;
    if (!came)
        memcpy(delta->moved + at, delta->base + at, n * sizeof *delta->moved);
}

// The servers' weights, whole: what was not pulled is as it was.
static const float *whole_news(struct delta *delta) {
    if (!delta->arrived)
        return delta->base;
    exchange_pieces(delta->pull, keep_piece, delta);
    return delta->moved;
}

// How long steps are beside others, by what they and the others did since the last push.
static void measure_steps(struct delta *delta) {
    const struct home_servers_config *config = &delta->common.config;
    size_t sharers = atomic_load(&delta->common.sharers);
    if (sharers <= 1 || !protocol_measures(config->protocol)) {
        atomic_store(&delta->length, 1);
        return;
    }
    struct optimizer rule = *config->optimizer;
    rule.learners = (unsigned)sharers;
    int squares = optimizer_squares(rule.rule);
    const struct delta_view view = {
        .model = config->model,
        .optimizer = &rule,
        .batch = config->batch,
        .rate = atomic_load(&delta->rate),
        .weights = delta->weights,
        .base = delta->base,
        .news = whole_news(delta),
        .squares =
            squares < 0 ? NULL : delta->state + (size_t)squares * config->model->parameter_count,
    };
    delta_steps_measure(&delta->steps, &view);
    atomic_store(&delta->length, delta_steps_length(&delta->steps, sharers));
}

// Samples of a push of the mini-batches up to this clock. The last one of an epoch may be short,
// and where others have been added meanwhile, these have their share of all.
static uint32_t count_samples(struct delta *delta, uint64_t clock) {
    uint64_t pushed = atomic_load(&delta->pushed), behind = atomic_load(&delta->clock) - pushed;
    uint64_t all = atomic_load(&delta->samples);
    uint64_t rest = all > delta->counted ? all - delta->counted : 0;
    uint64_t samples = rest * (clock - pushed) / behind;
    samples = samples < 1 ? 1 : samples < UINT32_MAX ? samples : UINT32_MAX;
    delta->counted += samples;
    return (uint32_t)samples;
}

// Threads' copies of the weights may hold more than is in `weights` yet: what was marked
// is there when the threads stand still or wait for data, and else with the next push.
static bool push_delta(struct delta *delta) {
    struct home_servers *common = &delta->common;
    uint64_t mark = home_servers_mark(common);
    uint64_t clock = exchange_clock(delta, &delta->pushed, &common->push_every);
    if (clock == atomic_load(&delta->pushed)) {
        merge_pull(delta);
        home_servers_left(common, mark);
        return true;
    }
    bool factors = take_factors(delta);
    measure_steps(delta);
    merge_for_push(delta);
    const uint32_t samples = count_samples(delta, clock);
    mark_exchange(delta, &delta->pushed, clock);
    const struct push push = {
        .kind = PROTO_UPDATE_DELTA,
        .samples = samples,
        .values = delta->moved,
        .stamps = delta->stamps,
        .growth = &delta->growth,
    };
    bool stale = false;
    if (!(factors ? exchange_factors(delta, &push, &stale) : exchange_all(delta, &push, &stale)))
        return false;
    if (stale) {
        forget_stamps(delta);
        atomic_store(&delta->behind, true);
    } else {
        learn_stamps(delta);
    }
    home_servers_pushed(common, mark, stale);
    return true;
}

// All that the threads have done by now, in as many pushes as are due.
static bool push_all_deltas(struct delta *delta) {
    uint64_t now = atomic_load(&delta->clock);
    atomic_store(&delta->hurry, false);
    bool going = push_delta(delta);
    while (going && atomic_load(&delta->pushed) < now)
        going = push_delta(delta);
    return going;
}

// The servers' sums of products are what the threads made of them, but for roundings and what
// threads without locks lost: even who is alone hears of that now and then.
static bool fetch_weights(struct delta *delta) {
    const struct pull pull = {
        .quantity = PROTO_QUANTITY_WEIGHT, .into = delta->moved, .stamps = delta->stamps};
    mark_exchange(delta, &delta->pulled,
                  exchange_clock(delta, &delta->pulled, &delta->common.pull_every));
    atomic_store(&delta->behind, false);
    if (delta->unsure >= UNSURE_MOST)
        forget_stamps(delta);
    exchange_pull(delta->pull, &pull);
    delta->arrived = home_servers_await(&delta->common, delta->pull, NULL, NULL);
    return delta->arrived;
}

// Whether the threads are too far ahead of the servers.
static bool is_adrift(struct delta *delta) {
    struct home_servers *common = &delta->common;
    uint64_t push = distance_of(delta, &common->push_every);
    uint64_t pull = distance_of(delta, &common->pull_every);
    uint64_t now = atomic_load(&delta->clock), most = push > pull ? push : pull;
    if (!is_shared(delta))
        most *= EXCHANGES_ALONE;
    bool adrift = atomic_load(&common->exact)
                      ? now >= push_due(delta) + push || now >= pull_due(delta) + pull
                      : now - atomic_load(&delta->settled) > most;
    return adrift && !home_servers_status(common, NULL);
}

// One turn. False when an exchange failed: there will be no more.
static bool exchange_delta(struct delta *delta) {
    uint64_t now = atomic_load(&delta->clock), flushes = atomic_load(&delta->flushes);
    bool flush = flushes != atomic_load(&delta->flushed);
    bool all = flush || atomic_load(&delta->hurry), pushes = all || now >= push_due(delta);
    bool pulls = !flush && now >= pull_due(delta);
    bool going = !pulls || fetch_weights(delta);
    if (going && pushes)
        going = all ? push_all_deltas(delta) : push_delta(delta);
    else if (going && pulls)
        merge_pull(delta);
    atomic_store(&delta->flushed, flushes);
    uint64_t pushed = atomic_load(&delta->pushed), pulled = atomic_load(&delta->pulled);
    if (going) // as far as was begun, all is known to be there
        atomic_store(&delta->settled, pushed < pulled ? pushed : pulled);
    gate_open(&delta->over);
    return going;
}

// Also says to the training threads when there will be more.
static bool has_work(struct delta *delta) {
    uint64_t push = push_due(delta), pull = pull_due(delta), due = push < pull ? push : pull;
    atomic_store(&delta->due, due);
    return atomic_load(&delta->clock) >= due || atomic_load(&delta->hurry) ||
           atomic_load(&delta->flushes) != atomic_load(&delta->flushed);
}

static void *exchange_thread(void *self) {
    struct delta *delta = self;
    bool going = true;
    for (uint32_t seen = gate_look(&delta->wanted); !atomic_load(&delta->closing);
         seen = gate_look(&delta->wanted)) {
        if (!going || !has_work(delta))
            gate_wait(&delta->wanted, seen, -1);
        else
            going = exchange_delta(delta);
    }
    return NULL;
}

// --- the loop's view ------------------------------------------------------------------

static struct home *local_of(struct home *home) {
    return ((struct delta *)home)->local;
}

static float delta_rate(struct home *home, float rate) {
    struct delta *delta = (struct delta *)home;
    float taken = home_servers_rate(&delta->common, rate) * atomic_load(&delta->length);
    if (atomic_load_explicit(&delta->rate, memory_order_relaxed) != taken)
        atomic_store_explicit(&delta->rate, taken, memory_order_relaxed);
    return taken;
}

static const float *delta_weights(struct home *home, int thread) {
    struct home *local = local_of(home);
    return local->ops->weights(local, thread);
}

static void delta_add(struct home *home, int thread, const struct layer *layer, struct span span,
                      const float *gradient, float rate) {
    struct home *local = local_of(home);
    struct delta_factors *factors = ((struct delta *)home)->factors;
    if (factors)
        delta_factors_spoil(factors, layer);
    local->ops->add(local, thread, layer, span, gradient, delta_rate(home, rate));
}

static bool delta_takes_product(const struct home *home, const struct layer *layer, bool sync) {
    const struct home *local = ((const struct delta *)home)->local;
    return local->products->takes(local, layer, sync);
}

static void delta_add_product(struct home *home, int thread, const struct layer *layer,
                              const struct dense_errors *errors, const float *dbiases, int first,
                              float rate) {
    struct home *local = local_of(home);
    struct delta_factors *factors = ((struct delta *)home)->factors;
    rate = delta_rate(home, rate);
    if (factors)
        delta_factors_add(factors, layer, errors, rate);
    local->products->add(local, thread, layer, errors, dbiases, first, rate);
}

static void delta_enter(struct home *home, int thread, int samples, float rate) {
    struct home *local = local_of(home);
    if (local->meetings)
        local->meetings->enter(local, thread, samples, delta_rate(home, rate));
}

static bool delta_forward(struct home *home, int thread, const struct layer *layer, float *y,
                          const float *x, int n) {
    struct home *local = local_of(home);
    return local->meetings && local->meetings->forward(local, thread, layer, y, x, n);
}

// Before the thread waits: what it has added must be in the next push.
static void delta_leave(struct home *home, int thread) {
    struct home *local = local_of(home);
    if (local->meetings)
        local->meetings->leave(local, thread);
    local->ops->settle(local, thread);
}

static uint64_t delta_clock(const struct home *home) {
    return atomic_load(&((const struct delta *)home)->clock);
}

// The servers have not answered for so long that the weights here would drift away from
// the others': wait for them. (exchange_wait names them.)
static void await_exchange(struct delta *delta, int thread) {
    struct home_servers *common = &delta->common;
    if (!is_adrift(delta))
        return;
    delta_leave(&common->home, thread);
    gate_open(&delta->wanted); // it may be due by a distance that was shortened since
    double begun = clock_seconds();
    for (uint32_t seen = gate_look(&delta->over); is_adrift(delta); seen = gate_look(&delta->over))
        gate_wait(&delta->over, seen, -1);
    home_servers_waited(common, clock_seconds() - begun);
}

static void delta_add_clock(struct home *home, int thread, int samples) {
    struct delta *delta = (struct delta *)home;
    struct home *local = delta->local;
    local->ops->add_clock(local, thread, samples);
    atomic_fetch_add(&delta->samples, (uint64_t)samples);
    uint64_t now = atomic_fetch_add(&delta->clock, 1) + 1;
    if (now >= atomic_load(&delta->due))
        gate_open(&delta->wanted);
    await_exchange(delta, thread);
}

static void delta_settle(struct home *home, int thread) {
    struct home *local = local_of(home);
    local->ops->settle(local, thread);
}

static void delta_close(struct home *home) {
    struct delta *delta = (struct delta *)home;
    atomic_store(&delta->closing, true);
    gate_open(&delta->wanted);
    if (delta->started)
        pthread_join(delta->thread, NULL);
    delta_factors_close(delta->factors);
    exchange_close(delta->push);
    exchange_close(delta->pull);
    if (delta->local)
        delta->local->ops->close(delta->local);
    free(delta->weights), free(delta->state), free(delta->base);
    free(delta->moved), free(delta->stamps);
    free(delta->growth.newest), free(delta->growth.pushes);
    home_servers_free(&delta->common);
    free(delta);
}

static const struct home_ops delta_ops = {
    .weights = delta_weights,
    .add = delta_add,
    .settle = delta_settle,
    .clock = delta_clock,
    .add_clock = delta_add_clock,
    .close = delta_close,
};

static const struct home_products delta_products = {
    .takes = delta_takes_product,
    .add = delta_add_product,
};

static const struct home_meetings delta_meetings = {
    .enter = delta_enter,
    .forward = delta_forward,
    .leave = delta_leave,
};

// --- the owner's view -----------------------------------------------------------------

static int delta_begin(struct home_servers *home, struct error *err) {
    struct delta *delta = (struct delta *)home;
    size_t n = home->config.model->parameter_count;
    if (!fetch_weights(delta))
        return home_servers_status(home, err);
    for (size_t i = 0; i < n; i++)
        delta->weights[i] = delta->base[i] = delta->moved[i];
    delta->arrived = false;
    take_factors(delta); // there are none yet
    if (pthread_create(&delta->thread, NULL, exchange_thread, delta))
        return error_set(err, STATUS_IO, "cannot start a thread to exchange weights");
    delta->started = true;
    return STATUS_OK;
}

static int delta_flush(struct home_servers *home, struct error *err) {
    struct delta *delta = (struct delta *)home;
    uint64_t wanted = atomic_fetch_add(&delta->flushes, 1) + 1;
    gate_open(&delta->wanted);
    for (uint32_t seen = gate_look(&delta->over);
         atomic_load(&delta->flushed) < wanted && !home_servers_status(home, NULL);
         seen = gate_look(&delta->over))
        gate_wait(&delta->over, seen, -1);
    return home_servers_status(home, err);
}

static void delta_hurry(struct home_servers *home) {
    struct delta *delta = (struct delta *)home;
    atomic_store(&delta->hurry, true);
    gate_open(&delta->wanted);
}

static void delta_change(struct home_servers *home) {
    struct delta *delta = (struct delta *)home;
    if (delta->factors)
        delta_factors_change(delta->factors);
}

static uint64_t delta_every(struct home_servers *home) {
    return distance_of((struct delta *)home, &home->push_every);
}

static int open_arrays(struct delta *delta, struct error *err) {
    const struct home_servers_config *config = &delta->common.config;
    size_t n = config->model->parameter_count;
    size_t states = (size_t)optimizer_states(config->optimizer->rule);
    delta->weights = mem_floats(n);
    delta->base = mem_floats(n);
    delta->moved = mem_floats(n);
    delta->state = states ? mem_floats(states * n) : NULL;
    size_t shards = servers_shards(config->servers) + 1;
    delta->stamps = mem_zeroed(shards, sizeof *delta->stamps);
    delta->growth.newest = mem_zeroed(shards, sizeof *delta->growth.newest);
    delta->growth.pushes = mem_zeroed(shards, sizeof *delta->growth.pushes);
    if (delta->weights && delta->base && delta->moved && delta->stamps && delta->growth.newest &&
        delta->growth.pushes && (!states || delta->state))
        return STATUS_OK;
    return error_set(err, STATUS_IO, "out of memory for %zu weights and their differences", n);
}

static int open_local(struct delta *delta, struct error *err) {
    const struct home_servers_config *config = &delta->common.config;
    const struct home_config local = {
        .model = config->model,
        .optimizer = config->optimizer,
        .learners = &delta->common.sharers, // the state of the rule is this worker's
        .kernels = config->kernels,
        .parameters = delta->weights,
        .state = delta->state,
        .threads = config->threads,
        .batch = config->batch,
    };
    return home_for_threads(&delta->local, &local, err);
}

static int open_parts(struct delta *delta, struct error *err) {
    const struct home_servers_config *config = &delta->common.config;
    int status = open_arrays(delta, err);
    if (!status && !config->portion)
        status = delta_factors_open(&delta->factors, config, err);
    if (!status)
        status = home_servers_exchange(&delta->push, config, EXCHANGE_PUSH, err);
    if (!status)
        status = home_servers_exchange(&delta->pull, config, EXCHANGE_PULL, err);
    return status ? status : open_local(delta, err);
}

int home_delta_open(struct home_servers **out, const struct home_servers_config *config,
                    struct error *err) {
    struct delta *delta = mem_zeroed(1, sizeof *delta);
    if (!delta)
        return error_nomem(err);
    delta->common.home =
        (struct home){.ops = &delta_ops, .products = &delta_products, .meetings = &delta_meetings};
    delta->common.begin = delta_begin;
    delta->common.flush = delta_flush;
    delta->common.hurry = delta_hurry;
    delta->common.change = delta_change;
    delta->common.every = delta_every;
    atomic_store(&delta->length, 1);
    home_servers_init(&delta->common, config);
    int status = open_parts(delta, err);
    if (status)
        delta_close(&delta->common.home);
    else
        *out = &delta->common;
    return status;
}

// Fitted, in multiply-adds of training, over all processes: to send a weight's change to a server
// and apply it; and the fixed cost of an exchange, mostly waking threads.
enum { MULTIPLIES_A_WEIGHT = 600, MULTIPLIES_AN_EXCHANGE = 30000000 };
enum { PASSES = 3 };    // of a connection: forward, error gradients, gradient
enum { TRAINING = 24 }; // times as much work as exchanging
// "periodically sent to the parameter server machines when k (which is typically in the
// hundreds to thousands) images have been processed" (Adam 3.2.6): as many as that where
// nobody else trains.
enum { SAMPLES_ALONE = 2048 };
// What workers have not yet told each other acts like one step of the sum of all of it, which
// harms most at the beginning: together they hold back no more than so many samples at first,
// and more by one for each FADING that they have trained on, of which more than SHARERS workers
// have a SHARERS-th each.
enum { TOGETHER_FIRST = 64, TOGETHER_MOST = 128, FADING = 512, SHARERS = 4 };

static uint64_t every_by_cost(const struct model *model, int batch) {
    uint64_t exchange = model->parameter_count * (uint64_t)MULTIPLIES_A_WEIGHT;
    uint64_t training = model->connections * PASSES * (uint64_t)batch;
    uint64_t wanted = (exchange + MULTIPLIES_AN_EXCHANGE) * TRAINING;
    return training > 0 ? (wanted + training - 1) / training : 1;
}

uint64_t home_delta_most(int batch, size_t sharers, uint64_t trained) {
    uint64_t sharing = sharers < SHARERS ? sharers : SHARERS, size = (uint64_t)batch;
    uint64_t together = TOGETHER_FIRST + trained * size * sharing / FADING;
    uint64_t most = (together < TOGETHER_MOST ? together : TOGETHER_MOST) / (sharing * size);
    return most > 0 ? most : 1;
}

uint64_t home_delta_every(const struct model *model, int batch, size_t sharers) {
    bool alone = sharers <= 1;
    uint64_t every = every_by_cost(model, batch) * (alone ? SHARERS : 1);
    uint64_t most =
        alone ? SAMPLES_ALONE / (uint64_t)batch : home_delta_most(batch, sharers, UINT32_MAX);
    every = every < most ? every : most;
    return every > 0 ? every : 1;
}
