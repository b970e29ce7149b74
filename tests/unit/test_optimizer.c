// The update rules over several steps, against closed forms in double precision
// and against numbers that torch.optim prints.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/mem.h"
#include "kernels/kernels.h"
#include "rule/optimizer.h"

enum { N = 37, BIASES = 5, STEPS = 4 };

// A layer of N weights and, behind a gap, BIASES biases.
static struct layer some_layer(void) {
    struct layer layer = {.rate = 1, .decay = -1};
    layer.weights = (struct parameter){.offset = 3, .count = N};
    layer.biases = (struct parameter){.offset = 3 + N + 2, .count = BIASES};
    return layer;
}

enum { ALL = 3 + N + 2 + BIASES };

static double start_of(int i) {
    return sin(i) * 0.5;
}

static double gradient_of(int i, int step) {
    return cos(i * 0.7 + step);
}

// The definition, one parameter at a time.
static double expected(const struct optimizer *o, int i, double rate, double decay) {
    double w = start_of(i), state = 0;
    for (int step = 0; step < STEPS; step++) {
        double g = gradient_of(i, step) + decay * w;
        switch (o->rule) {
        case RULE_SGD:
            w -= rate * g;
            break;
        case RULE_MOMENTUM:
            state = (double)o->momentum * state + g;
            w -= rate * state;
            break;
        case RULE_ADAGRAD:
            state += g * g;
            w -= rate * g / (sqrt(state) + (double)o->epsilon);
            break;
        }
    }
    return w;
}

// In spans of `part` parameters, which may end within the weights, the gap or the biases.
static void apply_in_parts(const struct optimizer *o, const struct layer *layer, float *w,
                           float *state, const float *gradient, float rate, size_t part) {
    struct span all = optimizer_all(layer), span = {0};
    for (; span.first < all.n; span.first += part) {
        span.n = all.n - span.first < part ? all.n - span.first : part;
        optimizer_apply(o, kernels_best(), layer, span, w, state, gradient, rate);
    }
}

static void run(const struct optimizer *o, const struct layer *layer, float *w, float rate,
                size_t part) {
    float state[ALL] = {0}, gradient[ALL];
    for (int i = 0; i < ALL; i++)
        w[i] = (float)start_of(i);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < ALL; i++)
            gradient[i] = (float)gradient_of(i, step);
        apply_in_parts(o, layer, w, o->rule == RULE_SGD ? NULL : state,
                       gradient + layer->weights.offset, rate, part);
    }
}

static void check_parts(struct tap *tap, const struct optimizer *o, const struct layer *layer,
                        double rate, double decay, size_t part) {
    float w[ALL];
    run(o, layer, w, 0.1f, part);
    for (int i = 0; i < ALL; i++) {
        size_t at = (size_t)i;
        bool weight = at >= layer->weights.offset && at < layer->weights.offset + N;
        bool bias = at >= layer->biases.offset;
        double wanted = weight ? expected(o, i, rate, decay)
                        : bias ? expected(o, i, rate, 0)
                               : start_of(i);
        CHECK_NEAR(tap, (double)w[i], wanted, 2e-6);
    }
}

static void check_layer(struct tap *tap, const struct optimizer *o, const struct layer *layer,
                        double rate, double decay) {
    static const size_t parts[] = {1, 7, 38, ALL};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        check_parts(tap, o, layer, rate, decay, parts[i]);
}

static void test_rules(struct tap *tap) {
    for (int rule = RULE_SGD; rule <= RULE_ADAGRAD; rule++) {
        const struct optimizer o = {
            .rule = (enum rule)rule, .momentum = 0.9f, .decay = 0.05f, .epsilon = 1e-8f};
        char name[128];
        snprintf(name, sizeof name, "%s: weights decay, biases do not, the gap stays",
                 rule_names[rule]);
        TEST(tap, name, {
            struct layer layer = some_layer();
            check_layer(tap, &o, &layer, 0.1, 0.05);
        });
        snprintf(name, sizeof name, "%s: a layer's own rate and decay win", rule_names[rule]);
        TEST(tap, name, {
            struct layer layer = some_layer();
            layer.rate = 0.5f;
            layer.decay = 0.2f;
            check_layer(tap, &o, &layer, 0.05, (double)0.2f);
        });
    }
}

// python3: w = torch.tensor([1., -2.]); for g in ([.5, 1.], [-.25, 2.], [1., -1.]):
// w.grad = torch.tensor(g); optim.step(), with lr 0.1, momentum 0.9 or Adagrad,
// weight_decay 0.01.
static void test_torch(struct tap *tap) {
    static const float gradients[3][2] = {{0.5f, 1}, {-0.25f, 2}, {1, -1}};
    static const struct {
        enum rule rule;
        double wanted[2];
    } rows[] = {
        {RULE_SGD, {0.87207794, -2.19360614}},
        {RULE_MOMENTUM, {0.80655980, -2.53920984}},
        {RULE_ADAGRAD, {0.85542983, -2.14761829}},
    };
    for (size_t r = 0; r < 3; r++) {
        char name[64];
        snprintf(name, sizeof name, "%s agrees with torch.optim", rule_names[rows[r].rule]);
        TEST(tap, name, {
            const struct optimizer o = {
                .rule = rows[r].rule, .momentum = 0.9f, .decay = 0.01f, .epsilon = 1e-10f};
            struct layer layer = {
                .rate = 1, .decay = -1, .weights = {.count = 2}, .biases = {.offset = 2}};
            float w[2] = {1, -2}, state[2] = {0};
            for (int step = 0; step < 3; step++)
                optimizer_apply(&o, kernels_best(), &layer, optimizer_all(&layer), w, state,
                                gradients[step], 0.1f);
            CHECK_NEAR(tap, (double)w[0], rows[r].wanted[0], 1e-6);
            CHECK_NEAR(tap, (double)w[1], rows[r].wanted[1], 1e-6);
        });
    }
}

static void test_guards(struct tap *tap) {
    struct layer layer = some_layer();
    float gradient[ALL] = {0};
    TEST(tap, "a gradient with one NaN or infinity is not accepted, wherever it is", {
        CHECK(tap, optimizer_accepts(kernels_best(), &layer, gradient));
        for (int i = 0; i < N + 2 + BIASES; i++) {
            bool gap = i == N || i == N + 1;
            gradient[i] = i % 2 ? NAN : -INFINITY;
            if (optimizer_accepts(kernels_best(), &layer, gradient) != gap)
                FAIL(tap, "place %d", i);
            gradient[i] = 0;
        }
    });
    TEST(tap, "a gradient longer than the limit is scaled to it, a shorter one is not", {
        const struct optimizer o = {.clip = 10};
        gradient[0] = 12, gradient[N + 2] = 16; // length 20
        optimizer_clip(&o, kernels_best(), &layer, gradient);
        CHECK_NEAR(tap, (double)gradient[0], 6, 1e-6);
        CHECK_NEAR(tap, (double)gradient[N + 2], 8, 1e-6);
        optimizer_clip(&o, kernels_best(), &layer, gradient);
        CHECK_NEAR(tap, (double)gradient[0], 6, 1e-5);
    });
}

enum { LEARNERS = 4 };

// How far one weight is moved by `steps` gradients, `first` and then `rest`, dealt in turns to
// learners with a state of their own.
static double moved(enum rule rule, unsigned learners, int steps, float first, float rest) {
    struct optimizer o = {.rule = rule, .momentum = 0.9f, .epsilon = 1e-8f};
    struct layer layer = {.rate = 1, .weights = {.count = 1}, .biases = {.offset = 1}};
    float w = 0, state[LEARNERS] = {0};
    o.learners = learners;
    for (int step = 0; step < steps; step++)
        optimizer_apply(&o, kernels_best(), &layer, optimizer_all(&layer), &w,
                        &state[(unsigned)step % learners], step == 0 ? &first : &rest, 0.01f);
    return -(double)w;
}

static void test_learners(struct tap *tap) {
    TEST(tap, "a gradient moves weights as far, and in as many mini-batches, by several learners", {
        const double far = 0.01 / (1 - 0.9);
        CHECK_NEAR(tap, moved(RULE_MOMENTUM, LEARNERS, 400, 1, 0), far, 1e-6);
        for (int turns = 1; turns < 8; turns++)
            CHECK_NEAR(tap, moved(RULE_MOMENTUM, LEARNERS, turns * LEARNERS, 1, 0),
                       moved(RULE_MOMENTUM, 1, turns * LEARNERS, 1, 0), 1e-6);
    });
    TEST(tap, "adagrad's steps become as short by several learners as by one", {
        double one = moved(RULE_ADAGRAD, 1, 4000, 1, 1);
        CHECK_NEAR(tap, moved(RULE_ADAGRAD, LEARNERS, 4000, 1, 1), one, 0.02 * one);
    });
}

int main(void) {
    struct tap tap = {0};
    test_learners(&tap);
    test_rules(&tap);
    test_torch(&tap);
    test_guards(&tap);
    return tap_done(&tap);
}
