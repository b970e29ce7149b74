#include "rule/optimizer.h"

#include <float.h>
#include <math.h>

#include "kernels/dense.h"
#include "kernels/kernels.h"

const char *const rule_names[] = {"sgd",     "momentum", "adagrad", "nesterov",
                                  "rmsprop", "adam",     "adamw",   NULL};

// The names of adam's states are PyTorch's.
static const struct {
    struct optimizer_usual usual;
    const char *states[RULE_STATES];
    int squares;
} kept[] = {
    [RULE_SGD] = {{0.01, NAN, NAN}, {NULL, NULL}, -1},
    [RULE_MOMENTUM] = {{0.01, 0.9, NAN}, {"momentum", NULL}, -1},
    [RULE_ADAGRAD] = {{0.01, NAN, NAN}, {"adagrad", NULL}, 0},
    [RULE_NESTEROV] = {{0.01, 0.9, NAN}, {"nesterov", NULL}, -1},
    [RULE_RMSPROP] = {{0.001, NAN, 0.99}, {"rmsprop", NULL}, 0},
    [RULE_ADAM] = {{0.001, 0.9, 0.999}, {"adam.exp_avg", "adam.exp_avg_sq"}, 1},
    [RULE_ADAMW] = {{0.001, 0.9, 0.999}, {"adamw.exp_avg", "adamw.exp_avg_sq"}, 1},
};

struct optimizer_usual optimizer_usual(enum rule rule) {
    return kept[rule].usual;
}

const char *optimizer_state_name(enum rule rule, int state) {
    return state < RULE_STATES ? kept[rule].states[state] : NULL;
}

int optimizer_states(enum rule rule) {
    int count = 0;
    while (optimizer_state_name(rule, count))
        count++;
    return count;
}

int optimizer_kept(const struct optimizer *optimizer) {
    return optimizer_states(optimizer->rule) + (optimizer->ema > 0);
}

int optimizer_squares(enum rule rule) {
    return kept[rule].squares;
}

bool optimizer_is_adaptive(enum rule rule) {
    return optimizer_squares(rule) >= 0;
}

// Where the biases' part of a layer's gradient begins.
static size_t biases_at(const struct layer *layer) {
    return layer->biases.offset - layer->weights.offset;
}

// The statistics follow the biases.
static struct span statistics_of(const struct layer *layer) {
    size_t count = 0;
    for (int i = 0; i < LAYER_STATISTICS; i++)
        count += layer->statistics[i].count;
    return (struct span){biases_at(layer) + layer->biases.count, count};
}

bool optimizer_accepts(const struct kernels *kernels, const struct layer *layer,
                       const float *gradient) {
    return kernels->finite(gradient, layer->weights.count) &&
           kernels->finite(gradient + biases_at(layer),
                           layer->biases.count + statistics_of(layer).n);
}

// No sum of n products is more than n times the largest (NaN is no number less than
// any); nor is a bias's sum of error gradients, whose inputs are 1.
bool optimizer_accepts_product(const struct kernels *kernels, const struct dense_errors *errors) {
    size_t n = (size_t)errors->n;
    double error = (double)kernels->largest(errors->dy, n * (size_t)errors->units);
    double input = (double)kernels->largest(errors->x, n * (size_t)errors->inputs);
    return error * (input + 1) * (double)n < (double)FLT_MAX;
}

struct span optimizer_all(const struct layer *layer) {
    struct span statistics = statistics_of(layer);
    return (struct span){0, statistics.first + statistics.n};
}

// What of `span` lies in [first, first + n).
static struct span span_overlap(struct span span, size_t first, size_t n) {
    size_t begin = span.first > first ? span.first : first;
    size_t end = span.first + span.n < first + n ? span.first + span.n : first + n;
    return (struct span){begin, end > begin ? end - begin : 0};
}

// --- lengths of gradients -----------------------------------------------------------------

void optimizer_scale(float *gradient, size_t n, float factor) {
    for (size_t i = 0; i < n; i++)
        gradient[i] *= factor;
}

double optimizer_length_squares(const struct kernels *kernels, const struct layer *layer,
                                struct span span, const float *gradient) {
    struct span w = span_overlap(span, 0, layer->weights.count);
    struct span b = span_overlap(span, biases_at(layer), layer->biases.count);
    return kernels->sum_squares(gradient + w.first, w.n) +
           kernels->sum_squares(gradient + b.first, b.n);
}

float optimizer_clip_factor(const struct optimizer *optimizer, double squares) {
    double norm = sqrt(squares), most = (double)optimizer->clip;
    return optimizer->clip > 0 && norm > most ? (float)(most / norm) : 1;
}

void optimizer_shorten(const struct layer *layer, struct span span, float *gradient, float factor) {
    struct span w = span_overlap(span, 0, layer->weights.count);
    struct span b = span_overlap(span, biases_at(layer), layer->biases.count);
    if (factor >= 1)
        return;
    optimizer_scale(gradient + w.first, w.n, factor);
    optimizer_scale(gradient + b.first, b.n, factor);
}

void optimizer_clip(const struct optimizer *optimizer, const struct kernels *kernels,
                    const struct layer *layer, float *gradient) {
    struct span all = optimizer_all(layer);
    if (optimizer->clip <= 0)
        return;
    double squares = optimizer_length_squares(kernels, layer, all, gradient);
    optimizer_shorten(layer, all, gradient, optimizer_clip_factor(optimizer, squares));
}

// --- steps --------------------------------------------------------------------------------

// What goes on from one of a learner's own updates to its next has gone on for all in between.
static double go_on(double share, unsigned learners) {
    return learners > 1 ? pow(share, learners) : share;
}

// What is left to be had of a mean that began at 0; all of it after many steps.
static double correction(double share, uint64_t step) {
    return step > 0 ? 1 - pow(share, (double)step) : 1;
}

static void set_velocity(struct update *update, const struct optimizer *o) {
    double momentum = go_on(o->momentum, o->learners);
    if (o->learners > 1 && o->momentum < 1)
        update->rate *= (float)((1 - momentum) / (1 - o->momentum));
    update->momentum = (float)momentum;
}

static void set_sum(struct update *update, const struct optimizer *o) {
    float root = sqrtf((float)(o->learners > 1 ? o->learners : 1));
    update->rate /= root;
    update->epsilon /= root;
}

static void set_means(struct update *update, const struct optimizer *o) {
    double momentum = go_on(o->momentum, o->learners), beta2 = go_on(o->beta2, o->learners);
    update->momentum = (float)momentum;
    update->beta2 = (float)beta2;
    update->fresh = (float)(1 - momentum);
    update->fresh2 = (float)(1 - beta2);
    update->step = (float)((double)update->rate / correction(momentum, o->step));
    update->root = (float)(1 / sqrt(correction(beta2, o->step)));
    update->second = o->second;
}

struct update optimizer_weights_update(const struct optimizer *optimizer, const struct layer *layer,
                                       float rate) {
    struct update update = {
        .rule = optimizer->rule,
        .rate = rate * layer->rate,
        .decay = layer->decay < 0 ? optimizer->decay : layer->decay,
        .epsilon = optimizer->epsilon,
    };
    switch (optimizer->rule) {
    case RULE_SGD:
        break;
    case RULE_MOMENTUM:
    case RULE_NESTEROV:
        set_velocity(&update, optimizer);
        break;
    case RULE_ADAGRAD:
        set_sum(&update, optimizer);
        break;
    case RULE_RMSPROP:
    case RULE_ADAM:
    case RULE_ADAMW:
        set_means(&update, optimizer);
        break;
    }
    return update;
}

struct update optimizer_biases_update(const struct optimizer *optimizer, const struct layer *layer,
                                      float rate) {
    struct update update = optimizer_weights_update(optimizer, layer, rate);
    update.decay = 0;
    return update;
}

struct update optimizer_statistics_update(const struct optimizer *optimizer,
                                          const struct layer *layer) {
    unsigned sharers = optimizer->sharers > 1 ? optimizer->sharers : 1;
    float rate = layer_learns(layer) ? layer->momentum / (float)sharers : 0;
    return (struct update){.rule = RULE_SGD, .rate = rate};
}

// What goes on of the average over an update.
static double average_share(const struct optimizer *o) {
    double before = (double)o->step - 1;
    return o->step > 0 ? fmin((double)o->ema, before / (before + 9)) : (double)o->ema;
}

void optimizer_average(const struct optimizer *optimizer, const struct kernels *kernels,
                       const float *parameters, float *state, size_t first, size_t n,
                       unsigned updates) {
    if (optimizer->ema <= 0)
        return;
    float *average = state + (size_t)optimizer_states(optimizer->rule) * optimizer->second;
    float share = (float)(1 - pow(average_share(optimizer), updates));
    kernels->average(average + first, parameters + first, n, share);
}

// What the rule has of the parameter at `offset`.
static float *state_at(const struct optimizer *optimizer, float *state, size_t offset) {
    return optimizer_states(optimizer->rule) ? state + offset : NULL;
}

// Applies an update to n parameters from `first` on.
static void apply_part(const struct optimizer *optimizer, const struct kernels *kernels,
                       float *parameters, float *state, size_t first, size_t n,
                       const float *gradient, const struct update *update) {
    kernels->update(parameters + first, state_at(optimizer, state, first), gradient, n, update);
    optimizer_average(optimizer, kernels, parameters, state, first, n, 1);
}

void optimizer_apply(const struct optimizer *optimizer, const struct kernels *kernels,
                     const struct layer *layer, struct span span, float *parameters, float *state,
                     const float *gradient, float rate) {
    struct update weights = optimizer_weights_update(optimizer, layer, rate);
    struct update biases = optimizer_biases_update(optimizer, layer, rate);
    size_t begin = layer->weights.offset;
    struct span all = statistics_of(layer);
    struct span w = span_overlap(span, 0, layer->weights.count);
    struct span b = span_overlap(span, biases_at(layer), layer->biases.count);
    struct span s = span_overlap(span, all.first, all.n);
    apply_part(optimizer, kernels, parameters, state, begin + w.first, w.n, gradient + w.first,
               &weights);
    apply_part(optimizer, kernels, parameters, state, begin + b.first, b.n, gradient + b.first,
               &biases);
    if (s.n == 0)
        return;
    struct update statistics = optimizer_statistics_update(optimizer, layer);
    apply_part(optimizer, kernels, parameters, state, begin + s.first, s.n, gradient + s.first,
               &statistics);
}

void optimizer_apply_product(const struct optimizer *optimizer, const struct kernels *kernels,
                             const struct layer *layer, float *parameters, float *state,
                             const struct dense_errors *errors, const float *dbiases, float rate) {
    const struct parameter *w = &layer->weights, *b = &layer->biases;
    struct update weights = optimizer_weights_update(optimizer, layer, rate);
    struct update biases = optimizer_biases_update(optimizer, layer, rate);
    kernels->dense->step(parameters + w->offset, state_at(optimizer, state, w->offset), errors,
                         &weights);
    optimizer_average(optimizer, kernels, parameters, state, w->offset, w->count, 1);
    apply_part(optimizer, kernels, parameters, state, b->offset, b->count, dbiases, &biases);
}
