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
    double w = start_of(i), v = 0, s = 0, epsilon = (double)o->epsilon;
    for (int step = 0; step < STEPS; step++) {
        double g = gradient_of(i, step) + (o->rule == RULE_ADAMW ? 0 : decay * w);
        switch (o->rule) {
        case RULE_SGD:
            w -= rate * g;
            break;
        case RULE_MOMENTUM:
            v = o->momentum * v + g;
            w -= rate * v;
            break;
        case RULE_NESTEROV:
            v = o->momentum * v + g;
            w -= rate * (g + o->momentum * v);
            break;
        case RULE_ADAGRAD:
            s += g * g;
            w -= rate * g / (sqrt(s) + epsilon);
            break;
        case RULE_RMSPROP:
            s = o->beta2 * s + (1 - o->beta2) * g * g;
            w -= rate * g / (sqrt(s) + epsilon);
            break;
        case RULE_ADAMW:
            w -= rate * decay * w; // falls through
        case RULE_ADAM:
            v = o->momentum * v + (1 - o->momentum) * g;
            s = o->beta2 * s + (1 - o->beta2) * g * g;
            w -= rate * v / (1 - pow(o->momentum, step + 1)) /
                 (sqrt(s / (1 - pow(o->beta2, step + 1))) + epsilon);
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

static void run(const struct optimizer *rule, const struct layer *layer, float *w, float rate,
                size_t part) {
    float state[RULE_STATES * ALL] = {0}, gradient[ALL];
    struct optimizer o = *rule;
    o.second = ALL;
    for (int i = 0; i < ALL; i++)
        w[i] = (float)start_of(i);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < ALL; i++)
            gradient[i] = (float)gradient_of(i, step);
        o.step = (uint64_t)step + 1;
        apply_in_parts(&o, layer, w, o.rule == RULE_SGD ? NULL : state,
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
    for (int rule = RULE_SGD; rule_names[rule]; rule++) {
        const struct optimizer o = {.rule = (enum rule)rule,
                                    .momentum = 0.9,
                                    .beta2 = 0.99,
                                    .decay = 0.05f,
                                    .epsilon = 1e-8f};
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
// w.grad = torch.tensor(g); optim.step(), with lr 0.1, momentum 0.9, alpha 0.99, betas (0.9,
// 0.999), eps 1e-10, weight_decay 0.01.
static void test_torch(struct tap *tap) {
    static const float gradients[3][2] = {{0.5f, 1}, {-0.25f, 2}, {1, -1}};
    static const struct {
        enum rule rule;
        double wanted[2];
    } rows[] = {
        {RULE_SGD, {0.87207794, -2.19360614}},      {RULE_MOMENTUM, {0.80655980, -2.53920984}},
        {RULE_ADAGRAD, {0.85542983, -2.14761829}},  {RULE_NESTEROV, {0.69818921, -2.67807869}},
        {RULE_RMSPROP, {-0.43042502, -3.46713565}}, {RULE_ADAM, {0.80461433, -2.23720314}},
        {RULE_ADAMW, {0.80478467, -2.23223671}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char name[64];
        snprintf(name, sizeof name, "%s agrees with torch.optim", rule_names[rows[r].rule]);
        TEST(tap, name, {
            struct optimizer o = {.rule = rows[r].rule,
                                  .momentum = 0.9,
                                  .beta2 = rows[r].rule == RULE_RMSPROP ? 0.99 : 0.999,
                                  .decay = 0.01f,
                                  .epsilon = 1e-10f,
                                  .second = 2};
            struct layer layer = {
                .rate = 1, .decay = -1, .weights = {.count = 2}, .biases = {.offset = 2}};
            float w[2] = {1, -2}, state[2 * RULE_STATES] = {0};
            for (o.step = 1; o.step <= 3; o.step++)
                optimizer_apply(&o, kernels_best(), &layer, optimizer_all(&layer), w, state,
                                gradients[o.step - 1], 0.1f);
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

static void test_lengths(struct tap *tap) {
    struct layer layer = some_layer();
    const size_t statistics = N + 2 + BIASES;
    float gradient[ALL + 2] = {[0] = 3, [N + 2] = 4, [N + 2 + BIASES] = 5, [N + 3 + BIASES] = NAN};
    layer.statistics[0] = (struct parameter){.offset = 3 + statistics, .count = 1};
    layer.statistics[1] = (struct parameter){.offset = 4 + statistics, .count = 1};
    TEST(tap, "the parts of a gradient have its length, in which running statistics do not count", {
        for (size_t most = 1; most <= statistics + 2; most++) {
            double squares = 0;
            for (size_t first = 0; first < statistics + 2; first += most) {
                size_t n = statistics + 2 - first < most ? statistics + 2 - first : most;
                squares += optimizer_length_squares(kernels_best(), &layer, (struct span){first, n},
                                                    gradient);
            }
            CHECK_NEAR(tap, squares, 25, 1e-9);
        }
    });
    TEST(tap, "running statistics are not scaled with a gradient that is too long", {
        const struct optimizer o = {.clip = 1};
        gradient[statistics + 1] = 7;
        optimizer_clip(&o, kernels_best(), &layer, gradient);
        CHECK_NEAR(tap, (double)gradient[0], 0.6, 1e-6);
        CHECK_NEAR(tap, (double)gradient[N + 2], 0.8, 1e-6);
        CHECK_NEAR(tap, (double)gradient[statistics], 5, 0);
        CHECK_NEAR(tap, (double)gradient[statistics + 1], 7, 0);
    });
}

enum { LEARNERS = 4 };

// How far one weight is moved by `steps` gradients, `first` and then `rest`, dealt in turns to
// learners with a state of their own.
static double moved(enum rule rule, unsigned learners, int steps, float first, float rest) {
    struct optimizer o = {.rule = rule,
                          .momentum = 0.9,
                          .beta2 = 0.99,
                          .epsilon = 1e-8f,
                          .learners = learners,
                          .second = LEARNERS};
    struct layer layer = {.rate = 1, .weights = {.count = 1}, .biases = {.offset = 1}};
    float w = 0, state[RULE_STATES * LEARNERS] = {0};
    for (int step = 0; step < steps; step++) {
        o.step = (unsigned)step / learners + 1;
        optimizer_apply(&o, kernels_best(), &layer, optimizer_all(&layer), &w,
                        &state[(unsigned)step % learners], step == 0 ? &first : &rest, 0.01f);
    }
    return -(double)w;
}

static void test_learners(struct tap *tap) {
    TEST(tap, "a gradient moves weights as far, and in as many mini-batches, by several learners", {
        const double far = 0.01 / (1 - 0.9);
        CHECK_NEAR(tap, moved(RULE_MOMENTUM, LEARNERS, 400, 1, 0), far, 1e-6);
        CHECK_NEAR(tap, moved(RULE_NESTEROV, LEARNERS, 400, 1, 0), far, 1e-6);
        for (int turns = 1; turns < 8; turns++)
            CHECK_NEAR(tap, moved(RULE_MOMENTUM, LEARNERS, turns * LEARNERS, 1, 0),
                       moved(RULE_MOMENTUM, 1, turns * LEARNERS, 1, 0), 1e-6);
    });
    TEST(tap, "steps by means are as long for each learner, and the means as old in mini-batches", {
        // Of gradients that are all alike so are the means, and corrected from the first step on.
        CHECK_NEAR(tap, moved(RULE_ADAM, 1, 40, 1, 1), 0.01 * 40, 1e-5);
        CHECK_NEAR(tap, moved(RULE_ADAM, LEARNERS, 40, 1, 1), 0.01 * 40, 1e-5);
        double one = moved(RULE_RMSPROP, 1, 4000, 1, 1);
        CHECK_NEAR(tap, moved(RULE_RMSPROP, LEARNERS, 4000, 1, 1), one, 0.01 * one);
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
    test_lengths(&tap);
    return tap_done(&tap);
}
