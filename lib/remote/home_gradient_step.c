// Gradients. Two arrays of them, of which one is filled by the mini-batch in hand and the
// other is on its way. (hardsync waits for what is on its way, and has one.)
//
//   step:  wait until the gradient before is delivered; push this one;
//          wait for the weights that were asked for; use them from now on
//
// A gradient that is pushed is of push_every mini-batches: "accruedgradients +=
// gradient" (Downpour). It is kept as the mean of theirs, each by its learning rate, and goes
// with the sum of the rates, so that a step of sgd, decay with it, is as long as all of
// theirs. Adagrad's steps do not depend on the length of the gradient, and under softsync the
// servers take means of pushes: there it goes with the mean of the rates.
//
// "the pushGradient thread cannot start sending the current gradient before the previous
// one has been delivered. [...] In contrast, pullWeights thread has no such constraint"
// (Rudra 3.3). No thread of our own is needed: the network's move the bytes.
//
// Weights are asked for behind the push, which the servers therefore see first, and nobody
// computes meanwhile: so they are as new as they can be, and come where the old ones were.
//
// With overlap there are two arrays of weights, of which one is in use and the other is
// written by the pull under way. When to pull? Early, the weights are old when they are
// used, and gradients staler than they need be; late, the next mini-batch waits. So weights
// are asked for at the moment from which, by the measure of the steps before, they will
// just have come when the mini-batch is over.
//
// hardsync: "each learner [...] pulls the weights [...] calculates the gradients and pushes
// them", and the next step needs the weights that all gradients of this one have made: a
// pull of newer ones. Who has no samples in a step pushes none, so that nobody waits for
// him.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "kernels/dense.h"
#include "remote/home_factors.h"
#include "remote/home_gradient_internal.h"

#define LATELY 0.25 // weight of the last step in the means of durations
#define MARGIN 2.0  // pulls are asked for so many times their duration before the end

static bool is_softsync(const struct home_servers_config *config) {
    return config->protocol->kind == PROTOCOL_SOFTSYNC;
}

static double moving_mean(double mean, double last) {
    return mean > 0 ? mean + LATELY * (last - mean) : last;
}

// --- pulling --------------------------------------------------------------------------

static void ask_weights(struct gradient *gradient, bool newer) {
    const struct pull pull = {
        .quantity = PROTO_QUANTITY_WEIGHT,
        .into = gradient->weights[gradient->there],
        .stamps = gradient->stamps[gradient->there],
        .newer = newer,
    };
    gradient->asked = clock_seconds();
    exchange_pull(gradient->pull, &pull);
}

// The clocks of all shards go in step, but while an update is on its way from one to the
// next: the first one's is everybody's, of those that are used here.
static void report_turn(const struct gradient *gradient) {
    const struct home_servers_config *config = &gradient->common.config;
    const struct portion *portion = config->portion;
    size_t shard =
        portion && portion->used_count > 0 ? portion->used[0].span.first / PROTO_SHARD_FLOATS : 0;
    if (gradient_is_hardsync(config) && config->turn)
        config->turn(config->self, gradient->stamps[gradient->here][shard].version);
}

// Waits for what was asked for, and uses it from now on.
static bool take_weights(struct gradient *gradient, double *waited) {
    bool was_there = exchange_over(gradient->pull);
    if (!home_servers_await(&gradient->common, gradient->pull, NULL, waited))
        return false;
    if (!was_there)
        gradient->pull_mean = moving_mean(gradient->pull_mean, clock_seconds() - gradient->asked);
    int used = gradient->here;
    gradient->here = gradient->there;
    gradient->there = used;
    report_turn(gradient);
    return true;
}

// The threads look in each time that they begin a chunk of the mini-batch.
void gradient_pull_when_due(struct gradient *gradient) {
    int due = PULL_DUE;
    if (atomic_load_explicit(&gradient->pulling, memory_order_relaxed) == PULL_DUE &&
        clock_seconds() >= atomic_load(&gradient->pull_at) &&
        atomic_compare_exchange_strong(&gradient->pulling, &due, PULL_ASKED))
        ask_weights(gradient, false);
}

// At the end of the step weights are due: uses them from now on.
static bool end_pull(struct gradient *gradient, double *waited) {
    if (atomic_load(&gradient->pulling) == PULL_DUE)
        ask_weights(gradient, false);
    gradient->next_pull = atomic_load(&gradient->clock) + atomic_load(&gradient->common.pull_every);
    return take_weights(gradient, waited);
}

// Whether the step that begins ends with new weights, and from when on they are asked for.
static void plan_pull(struct gradient *gradient) {
    bool due = atomic_load(&gradient->clock) + 1 >= gradient->next_pull;
    double early = gradient->step_mean - MARGIN * gradient->pull_mean;
    gradient->begun = clock_seconds();
    atomic_store(&gradient->pull_at, !gradient_overlaps(&gradient->common.config) ? INFINITY
                                     : early > 0 ? gradient->begun + early
                                                 : gradient->begun);
    atomic_store(&gradient->pulling, due ? PULL_DUE : PULL_LATER);
}

// --- delivering -----------------------------------------------------------------------

static bool is_delivered(const struct gradient *gradient) {
    if (gradient->idle)
        return exchange_over(gradient->turn);
    bool over = exchange_over(gradient->push);
    for (int i = 0; i < gradient->factor_count; i++)
        over &= exchange_over(gradient->factors[i].push);
    return over;
}

// Waits until the gradient before is delivered.
static bool deliver_weights(struct gradient *gradient, double *waited) {
    struct home_servers *common = &gradient->common;
    bool stale;
    if (!gradient->pushing)
        return true;
    gradient->pushing = false;
    struct exchange *push = gradient->idle ? gradient->turn : gradient->push;
    bool delivered = home_servers_await(common, push, &stale, waited);
    for (int i = 0; delivered && !gradient->idle && i < gradient->factor_count; i++) {
        bool part;
        delivered = home_servers_await(common, gradient->factors[i].push, &part, waited);
        stale |= part;
    }
    if (delivered && stale) // so would be all that follows on these weights
        gradient->next_pull = 0;
    if (delivered && gradient->idle && !stale)
        home_servers_left(common, gradient->mark);
    else if (delivered)
        home_servers_pushed(common, gradient->mark, stale);
    return delivered;
}

// --- mini-batches that go together ------------------------------------------------------

// The share of the mini-batch in hand in the mean of those of the group.
float gradient_batch_share(const struct push_group *group, float rate) {
    double sum = group->rate + (double)rate;
    return sum > 0 ? (float)((double)rate / sum) : 1 / (float)(group->batches + 1);
}

// So many that their factors fit into one message.
static uint64_t fitting_distance(const struct gradient *gradient, uint64_t every) {
    uint64_t batch = (uint64_t)gradient->common.config.batch;
    for (int i = 0; i < gradient->factor_count; i++) {
        uint64_t most = factors_most(gradient->factors[i].layer) / batch;
        every = every < most ? every : most;
    }
    return every > 0 ? every : 1;
}

static bool grow_floats(float **floats, size_t n) {
    free(*floats);
    *floats = mem_floats(n);
    return *floats != NULL;
}

static bool reserve_factors(struct layer_factors *factors, int filled, size_t samples) {
    if (samples <= factors->room[filled])
        return true;
    factors->room[filled] = samples;
    return grow_floats(&factors->errors[filled],
                       samples * (size_t)factors->layer->weights.dims[0]) &&
           grow_floats(&factors->inputs[filled], samples * (size_t)factors->layer->weights.dims[1]);
}

// For the group that begins.
static int reserve_group(struct gradient *gradient, struct error *err) {
    struct push_group *group = &gradient->group;
    size_t samples = group->every * (size_t)gradient->common.config.batch;
    bool whole = true;
    for (int i = 0; whole && i < gradient->factor_count; i++)
        whole = reserve_factors(&gradient->factors[i], gradient->filled, samples);
    if (whole && gradient->factor_count > 0 && group->room < samples) {
        group->room = samples;
        whole = grow_floats(&group->rates, samples);
    }
    return whole
               ? STATUS_OK
               : error_set(err, STATUS_IO, "out of memory for the factors of %zu samples", samples);
}

int gradient_begin_group(struct gradient *gradient, struct error *err) {
    struct push_group *group = &gradient->group;
    group->every = fitting_distance(gradient, atomic_load(&gradient->common.push_every));
    group->batches = 0;
    group->samples = 0;
    group->rate = 0;
    return reserve_group(gradient, err);
}

// One more mini-batch is in.
static void add_batch(struct gradient *gradient, int samples, float rate) {
    struct push_group *group = &gradient->group;
    atomic_store(&gradient->hurry, false);
    if (group->batches++ == 0)
        memcpy(group->stamps, gradient->stamps[gradient->here],
               servers_shards(gradient->common.config.servers) * sizeof *group->stamps);
    for (int i = 0; gradient->factor_count > 0 && i < samples; i++)
        group->rates[group->samples + i] = rate;
    group->samples += samples;
    group->rate += (double)rate;
}

// As means of the mini-batches, whose error gradients are those of its own mean.
static void weigh_errors(const struct push_group *group, float *errors, size_t units) {
    if (group->batches == 1)
        return;
    for (int k = 0; k < group->samples; k++) {
        double weight =
            group->rate > 0 ? (double)group->rates[k] / group->rate : 1 / (double)group->batches;
        optimizer_scale(errors + (size_t)k * units, units, (float)weight);
    }
}

static double group_rate(const struct gradient *gradient) {
    const struct home_servers_config *config = &gradient->common.config;
    const struct push_group *group = &gradient->group;
    bool mean = is_softsync(config) || optimizer_is_adaptive(config->optimizer->rule);
    return mean ? group->rate / (double)group->batches : group->rate;
}

static void send_factors(struct gradient *gradient, struct layer_factors *factors) {
    const struct push_group *group = &gradient->group;
    float *errors = factors->errors[gradient->filled];
    weigh_errors(group, errors, (size_t)factors->layer->weights.dims[0]);
    factors->product = (struct dense_errors){
        .dy = errors,
        .x = factors->inputs[gradient->filled],
        .n = group->samples,
        .units = factors->layer->weights.dims[0],
        .inputs = factors->layer->weights.dims[1],
    };
    const struct push_factors push = {
        .layer = factors->layer,
        .errors = &factors->product,
        .rate = group_rate(gradient),
        .stamps = group->stamps,
    };
    exchange_push_factors(factors->push, &push);
}

static void send_push(struct gradient *gradient, struct exchange *exchange,
                      const struct push *push) {
    gradient->mark = home_servers_mark(&gradient->common);
    gradient->pushing = true;
    exchange_push(exchange, push);
}

// The group, as far as it is. The next one begins.
static void send_group(struct gradient *gradient) {
    const struct push push = {
        .kind = PROTO_UPDATE_GRADIENT,
        .samples = (uint32_t)gradient->group.samples,
        .rate = group_rate(gradient),
        .values = gradient->gradient[gradient->filled],
        .stamps = gradient->group.stamps,
    };
    struct error err = {0};
    gradient->idle = false;
    send_push(gradient, gradient->push, &push);
    for (int i = 0; i < gradient->factor_count; i++)
        send_factors(gradient, &gradient->factors[i]);
    gradient->filled = (gradient->filled + 1) % gradient->gradients;
    if (gradient_begin_group(gradient, &err))
        home_servers_fail(&gradient->common, &err);
}

// A turn without samples is of all parameters, in one push: its parts would come to a shard
// at different times, and a shard under softsync answers at once what need not wait.
static void send_empty_turn(struct gradient *gradient) {
    const struct push push = {
        .kind = PROTO_UPDATE_GRADIENT,
        .stamps = gradient->stamps[gradient->here],
    };
    gradient->idle = true;
    send_push(gradient, gradient->turn, &push);
}

// --- a step ---------------------------------------------------------------------------

static void step_hardsync(struct gradient *gradient, int samples, float rate, double *waited) {
    if (samples > 0) {
        add_batch(gradient, samples, rate);
        send_group(gradient);
    } else {
        send_empty_turn(gradient);
    }
    ask_weights(gradient, true);
    if (take_weights(gradient, waited))
        deliver_weights(gradient, waited);
}

// There are no samples just now: hears of the gradient before, and holds up nobody.
static void step_without_samples(struct gradient *gradient, double *waited) {
    bool softsync = is_softsync(&gradient->common.config);
    if (!is_delivered(gradient) || !deliver_weights(gradient, waited))
        return;
    if (gradient->group.batches > 0 && (softsync || atomic_load(&gradient->hurry)))
        send_group(gradient);
    else if (softsync)
        send_empty_turn(gradient);
    atomic_store(&gradient->hurry, false);
}

static void step_softsync(struct gradient *gradient, int samples, float rate, double *waited) {
    if (samples == 0) {
        step_without_samples(gradient, waited);
        return;
    }
    add_batch(gradient, samples, home_servers_rate(&gradient->common, rate));
    if (gradient->group.batches >= gradient->group.every) {
        if (!deliver_weights(gradient, waited))
            return;
        send_group(gradient);
    }
    if (atomic_load(&gradient->pulling) != PULL_LATER)
        end_pull(gradient, waited);
}

void gradient_step(struct home_servers *home, int samples, float rate) {
    struct gradient *gradient = (struct gradient *)home;
    double waited = 0;
    if (home_servers_status(&gradient->common, NULL))
        return;
    if (samples > 0)
        gradient->step_mean = moving_mean(gradient->step_mean, clock_seconds() - gradient->begun);
    if (gradient_is_hardsync(&gradient->common.config))
        step_hardsync(gradient, samples, rate, &waited);
    else
        step_softsync(gradient, samples, rate, &waited);
    home_servers_waited(&gradient->common, waited * gradient->common.config.threads);
    if (home_servers_status(&gradient->common, NULL))
        atomic_store(&gradient->pulling, PULL_LATER); // one may be under way for good
    else if (samples > 0 || gradient_is_hardsync(&gradient->common.config))
        plan_pull(gradient);
}

// --- for the owner ----------------------------------------------------------------------

int gradient_begin(struct home_servers *home, struct error *err) {
    struct gradient *gradient = (struct gradient *)home;
    ask_weights(gradient, false);
    if (!take_weights(gradient, NULL))
        return home_servers_status(home, err);
    gradient->next_pull = 1;
    plan_pull(gradient);
    return STATUS_OK;
}

int gradient_flush(struct home_servers *home, struct error *err) {
    struct gradient *gradient = (struct gradient *)home;
    int status = home_servers_status(home, err);
    if (status)
        return status; // no push begins any more: others may be under way for ever
    if (deliver_weights(gradient, NULL) && gradient->group.batches > 0) {
        send_group(gradient);
        deliver_weights(gradient, NULL);
    }
    return home_servers_status(home, err);
}

uint64_t gradient_every(struct home_servers *home) {
    return fitting_distance((struct gradient *)home, atomic_load(&home->push_every));
}
