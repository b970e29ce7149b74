// How long a worker's steps are beside those of others (remote/delta_steps.h).
#include <math.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/mem.h"
#include "remote/delta_steps.h"

static const char text[] = "input 50\n"
                           "dense units=30 rate=0.5\n"
                           "softmax units=4\n";

struct scene {
    struct model *model;
    struct optimizer optimizer;
    float *weights, *base, *news, *state;
    uint32_t random;
};

static float next(struct scene *s) {
    s->random = s->random * 1664525u + 1013904223u;
    return (float)(s->random >> 8) / (float)(1 << 24) - 0.5f;
}

// Steps and others' movements of these sizes, in directions that have nothing to do with each
// other.
static void open_scene(struct tap *tap, struct scene *s, float step, float others) {
    *s = (struct scene){.random = 1};
    CHECK_INT(tap, model_parse(&s->model, "test", text, NULL, 0, NULL), 0);
    size_t n = s->model->parameter_count;
    s->weights = mem_floats(n), s->base = mem_floats(n);
    s->news = mem_floats(n), s->state = mem_floats(n);
    for (size_t i = 0; i < n; i++) {
        s->base[i] = next(s);
        s->weights[i] = s->base[i] + step * next(s);
        s->news[i] = s->base[i] + others * next(s);
        s->state[i] = 1 + next(s);
    }
}

static void close_scene(struct scene *s) {
    free(s->weights), free(s->base), free(s->news), free(s->state);
    model_free(s->model);
}

// Samples of a mini-batch; and the weight of the first measure in the mean, its inverse.
enum { BATCH = 8, FIRST = 4 };

static struct delta_steps measured(const struct scene *s, float rate, int times) {
    struct delta_steps steps = {0};
    const struct delta_view view = {
        .model = s->model,
        .optimizer = &s->optimizer,
        .batch = BATCH,
        .rate = rate,
        .weights = s->weights,
        .base = s->base,
        .news = s->news,
        .squares = s->optimizer.rule == RULE_ADAGRAD ? s->state : NULL,
    };
    for (int i = 0; i < times; i++)
        delta_steps_measure(&steps, &view);
    return steps;
}

// The first dense layer has half of the rate.
static double rate_of(const struct scene *s, size_t i, double rate) {
    const struct layer *first = &s->model->layers[1];
    return i < first->biases.offset + first->biases.count ? rate / 2 : rate;
}

// By the definition, in double precision; `stretch` of the rate at each parameter.
static double excess(const struct scene *s, double rate,
                     double (*stretch)(const struct scene *, size_t)) {
    double squares = 0, sum = 0;
    for (size_t i = 0; i < s->model->parameter_count; i++) {
        double step = (double)s->weights[i] - (double)s->base[i];
        double others = (double)s->news[i] - (double)s->base[i];
        double share = 10 * BATCH * step * others / (rate_of(s, i, rate) * stretch(s, i));
        squares += step * step;
        sum += step * step * fmax(0, fmin(1, share));
    }
    return sum / squares;
}

static double plain(const struct scene *s, size_t i) {
    (void)s, (void)i;
    return 1;
}

// Two workers: a velocity moves the weights (1 - 0.9^2) / (1 - 0.9) as far.
static double with_velocity(const struct scene *s, size_t i) {
    (void)s, (void)i;
    return 1.9;
}

static double with_squares(const struct scene *s, size_t i) {
    return 1 / sqrt(2) / (sqrt((double)s->state[i]) + 0.1 / sqrt(2));
}

static void check_rule(struct tap *tap, struct optimizer optimizer,
                       double (*stretch)(const struct scene *, size_t)) {
    struct scene s;
    open_scene(tap, &s, 0.02f, 0.05f);
    s.optimizer = optimizer;
    const float rates[] = {0.001f, 0.01f, 0.1f, 1};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        CHECK_NEAR(tap, measured(&s, rates[i], 1).excess * FIRST,
                   excess(&s, (double)rates[i], stretch), 1e-5);
    close_scene(&s);
}

static void test_rules(struct tap *tap) {
    TEST(tap, "what is too much of a step: b |g D| of what points where the others went",
         { check_rule(tap, (struct optimizer){.rule = RULE_SGD}, plain); });
    TEST(tap, "the same with the velocities and the sums of squares of two workers", {
        const struct optimizer momentum = {.rule = RULE_MOMENTUM, .momentum = 0.9f, .learners = 2};
        const struct optimizer adagrad = {.rule = RULE_ADAGRAD, .epsilon = 0.1f, .learners = 2};
        check_rule(tap, momentum, with_velocity);
        check_rule(tap, adagrad, with_squares);
    });
}

static void test_length(struct tap *tap) {
    struct scene s;
    TEST(tap, "at low rates steps are as long as those of one process", {
        open_scene(tap, &s, 1e-5f, 3e-5f);
        struct delta_steps steps = measured(&s, 1e-4f, 100);
        CHECK(tap, delta_steps_length(&steps, 4) > 0.99f);
        close_scene(&s);
    });
    TEST(tap, "at first they are shorter by the root of the workers", {
        open_scene(tap, &s, 1e-5f, 3e-5f);
        for (int measures = 0; measures < 32; measures += 8) {
            struct delta_steps steps = measured(&s, 1e-4f, measures);
            CHECK_NEAR(tap, (double)delta_steps_length(&steps, 4), 0.5 + measures / 64.0, 0.01);
            CHECK_NEAR(tap, (double)delta_steps_length(&steps, 1), 1, 0.01);
        }
        close_scene(&s);
    });
    TEST(tap, "steps are shorter by six times the excess, and no shorter than shared ones", {
        struct delta_steps steps = {.excess = 0.05, .measures = 32};
        CHECK_NEAR(tap, (double)delta_steps_length(&steps, 4), 0.7, 1e-6);
        steps.excess = 0.1;
        CHECK_NEAR(tap, (double)delta_steps_length(&steps, 4), 0.4, 1e-6);
        CHECK_NEAR(tap, (double)delta_steps_length(&steps, 2), 0.5, 1e-6);
    });
    TEST(tap, "where all go the same way at a high rate, they share one step", {
        open_scene(tap, &s, 1, 3);
        for (size_t i = 0; i < s.model->parameter_count; i++)
            s.news[i] = s.base[i] + 3 * (s.weights[i] - s.base[i]);
        struct delta_steps steps = measured(&s, 0.1f, 100);
        CHECK_NEAR(tap, (double)delta_steps_length(&steps, 4), 0.25, 0);
        CHECK_NEAR(tap, (double)delta_steps_length(&steps, 2), 0.5, 0);
        close_scene(&s);
    });
    TEST(tap, "others that stand still, or go back, shorten nothing", {
        open_scene(tap, &s, 1, 0);
        CHECK_NEAR(tap, measured(&s, 0.1f, 1).excess, 0, 0);
        for (size_t i = 0; i < s.model->parameter_count; i++)
            s.news[i] = s.base[i] - (s.weights[i] - s.base[i]);
        CHECK_NEAR(tap, measured(&s, 0.1f, 1).excess, 0, 0);
        close_scene(&s);
    });
    TEST(tap, "who has not moved, or has no rate, or is not finite, measures nothing", {
        open_scene(tap, &s, 0, 1);
        CHECK_INT(tap, measured(&s, 0.1f, 1).measures, 0);
        s.weights[0] = INFINITY;
        CHECK_INT(tap, measured(&s, 0.1f, 1).measures, 0);
        close_scene(&s);
        open_scene(tap, &s, 1, 1);
        CHECK_INT(tap, measured(&s, 0, 1).measures, 0);
        close_scene(&s);
    });
    TEST(tap, "one measure among many changes little", {
        open_scene(tap, &s, 1, 0);
        struct delta_steps steps = measured(&s, 0.1f, 100);
        CHECK_INT(tap, steps.measures, 100);
        const struct delta_view view = {s.model,   &s.optimizer, BATCH,     0.1f,
                                        s.weights, s.base,       s.weights, NULL};
        delta_steps_measure(&steps, &view);
        CHECK_NEAR(tap, steps.excess, 1.0 / 16, 1e-3);
        close_scene(&s);
    });
}

// Of a large model lines are looked at that are spread over all of it.
static void test_large(struct tap *tap) {
    TEST(tap, "a large model is looked at in lines that are evenly spread", {
        struct scene s = {.random = 1};
        CHECK_INT(
            tap, model_parse(&s.model, "test", "input 700\nsoftmax units=500\n", NULL, 0, NULL), 0);
        size_t n = s.model->parameter_count;
        s.weights = mem_floats(n), s.base = mem_floats(n), s.news = mem_floats(n);
        for (size_t i = 0; i < n; i++) {
            s.weights[i] = 1;
            s.news[i] = i < n / 2 ? 1 : -1;
        }
        CHECK_NEAR(tap, measured(&s, 0.1f, 1).excess * FIRST, 0.5, 0.01);
        close_scene(&s);
    });
}

int main(void) {
    struct tap tap = {0};
    test_rules(&tap);
    test_length(&tap);
    test_large(&tap);
    return tap_done(&tap);
}
