// The thread that exchanges deltas: its passes over the arrays, its pushes and its pulls.
//
// Two arrays beside the weights W in use:
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
#include <string.h>

#include "core/hogwild.h"
#include "remote/home_delta_internal.h"

// Pushes with factors between two pulls of all weights, at least.
enum { UNSURE_MOST = 16 };

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

// --- pushes and pulls -------------------------------------------------------------------

// The servers do not have what `base` has: whatever they have is news.
static void forget_stamps(struct delta *delta) {
    size_t shards = servers_shards(delta->common.config.servers);
    for (size_t i = 0; i < shards; i++) {
        delta->stamps[i] = delta->growth.newest[i] = (struct shard_stamp){0};
        delta->growth.pushes[i] = 0;
    }
    delta->unsure = 0;
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

bool delta_take_factors(struct delta *delta) {
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
    uint64_t clock = delta_exchange_clock(delta, &delta->pushed, &common->push_every);
    if (clock == atomic_load(&delta->pushed)) {
        merge_pull(delta);
        home_servers_left(common, mark);
        return true;
    }
    bool factors = delta_take_factors(delta);
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
bool delta_fetch(struct delta *delta) {
    const struct pull pull = {
        .quantity = PROTO_QUANTITY_WEIGHT, .into = delta->moved, .stamps = delta->stamps};
    mark_exchange(delta, &delta->pulled,
                  delta_exchange_clock(delta, &delta->pulled, &delta->common.pull_every));
    atomic_store(&delta->behind, false);
    if (delta->unsure >= UNSURE_MOST)
        forget_stamps(delta);
    exchange_pull(delta->pull, &pull);
    delta->arrived = home_servers_await(&delta->common, delta->pull, NULL, NULL);
    return delta->arrived;
}

// --- the thread -------------------------------------------------------------------------

// One turn. False when an exchange failed: there will be no more.
static bool exchange_delta(struct delta *delta) {
    uint64_t now = atomic_load(&delta->clock), flushes = atomic_load(&delta->flushes);
    bool flush = flushes != atomic_load(&delta->flushed);
    bool all = flush || atomic_load(&delta->hurry), pushes = all || now >= delta_push_due(delta);
    bool pulls = !flush && now >= delta_pull_due(delta);
    bool going = !pulls || delta_fetch(delta);
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
    uint64_t push = delta_push_due(delta), pull = delta_pull_due(delta),
             due = push < pull ? push : pull;
    atomic_store(&delta->due, due);
    return atomic_load(&delta->clock) >= due || atomic_load(&delta->hurry) ||
           atomic_load(&delta->flushes) != atomic_load(&delta->flushed);
}

void *delta_exchange_thread(void *self) {
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
