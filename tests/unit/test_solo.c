// A mini-batch by one thread: the update is that of the mean gradient of all its samples, however
// many of them pass through the net at a time.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/kernels.h"
#include "train/solo.h"

enum { BATCH = 43, INPUTS = 3 * 12 * 12, CLASSES = 4 };
#define RATE 0.5f
// Sums of BATCH gradients in two orders, of magnitudes of about 1.
#define TOLERANCE 2e-5

// Of few weights, so that it passes many samples in parts.
#define BELOW "input 3x12x12\nconv maps=8 kernel=3 pad=1 act=relu\nmaxpool size=2\n"
static const char model_text[] = BELOW "softmax units=4\n";

struct scene {
    struct model *model;
    float *parameters, *gradient;
    float input[BATCH * INPUTS];
    int32_t label[BATCH], other[BATCH]; // the second one where samples are mixed
    float share[BATCH];
    uint64_t draw[BATCH];
    float targets[BATCH * CLASSES];
    float *target; // these; NULL: samples have labels
};

static void open_model(struct scene *s, const char *text) {
    struct random random = random_stream(4, 2, 0);
    *s = (struct scene){0};
    if (model_parse(&s->model, "test.net", text, NULL, 0, NULL))
        abort();
    s->parameters = mem_floats(s->model->parameter_count);
    s->gradient = mem_floats(s->model->parameter_count);
    for (int i = 0; i < BATCH * INPUTS; i++)
        s->input[i] = random_normal(&random);
    for (int i = 0; i < BATCH; i++)
        s->label[i] = (int32_t)random_below(&random, CLASSES);
    for (int i = 0; i < BATCH; i++) {
        s->other[i] = (int32_t)random_below(&random, CLASSES);
        s->share[i] = random_unit(&random);
    }
}

static void open_scene(struct scene *s) {
    open_model(s, model_text);
}

static void open_numbers(struct scene *s) {
    open_model(s, BELOW "linear units=4\n");
    struct random random = random_stream(5, 2, 0);
    for (int i = 0; i < BATCH * CLASSES; i++)
        s->targets[i] = random_normal(&random);
    s->target = s->targets;
}

static void close_scene(struct scene *s) {
    free(s->parameters), free(s->gradient);
    model_free(s->model);
}

// The first n samples as one mini-batch, whole or in parts: what becomes of the parameters.
// Gives the loss.
static double train(struct tap *tap, struct scene *s, int n, bool whole) {
    struct optimizer optimizer = {.rule = RULE_SGD};
    struct batch batch = {.input = s->input,
                          .label = s->label,
                          .target = s->target,
                          .other = s->other,
                          .share = s->share,
                          .draw = s->draw,
                          .n = n};
    struct solo solo = {
        .kernels = kernels_best(), .optimizer = &optimizer, .gradient = s->gradient};
    double loss = 0;
    model_init_lively(s->model, s->parameters, 3);
    const struct home_config config = {
        .model = s->model,
        .optimizer = &optimizer,
        .kernels = solo.kernels,
        .parameters = s->parameters,
        .threads = 1,
        .batch = n,
    };
    CHECK_INT(tap, home_local(&solo.home, &config, NULL), STATUS_OK);
    int most = whole ? n : solo_part(solo.home, s->model, solo.kernels, n);
    CHECK(tap, whole || solo.kernels->lanes == 0 || most < n);
    CHECK_INT(tap, net_open(&solo.net, s->model, solo.kernels, most, NET_TRAIN, NULL), STATUS_OK);
    CHECK(tap, solo_train(&solo, &batch, RATE, &loss));
    net_close(solo.net);
    solo.home->ops->close(solo.home);
    return loss;
}

static void check_same(struct tap *tap, const struct scene *a, const struct scene *b) {
    for (size_t i = 0; i < a->model->parameter_count; i++)
        CHECK_NEAR(tap, (double)a->parameters[i], (double)b->parameters[i], TOLERANCE);
}

static void test_parts(struct tap *tap) {
    TEST(tap, "a mini-batch that passes in parts makes the update of one that passes whole", {
        struct scene whole, parts;
        open_scene(&whole);
        open_scene(&parts);
        double loss = train(tap, &whole, BATCH, true);
        CHECK_NEAR(tap, train(tap, &parts, BATCH, false), loss, 1e-4 * loss);
        check_same(tap, &whole, &parts);
        close_scene(&whole);
        close_scene(&parts);
    });
    TEST(tap, "samples that have targets do so, too", {
        struct scene whole, parts;
        open_numbers(&whole);
        open_numbers(&parts);
        double loss = train(tap, &whole, BATCH, true);
        CHECK_NEAR(tap, train(tap, &parts, BATCH, false), loss, 1e-4 * loss);
        check_same(tap, &whole, &parts);
        close_scene(&whole);
        close_scene(&parts);
    });
    TEST(tap, "a sample that comes many times in a mini-batch makes the update of coming once", {
        struct scene once, often;
        open_scene(&once);
        open_scene(&often);
        for (int i = 1; i < BATCH; i++) {
            memcpy(often.input + i * INPUTS, often.input, INPUTS * sizeof *often.input);
            often.label[i] = often.label[0];
            often.other[i] = often.other[0];
            often.share[i] = often.share[0];
        }
        double loss = train(tap, &once, 1, true);
        CHECK_NEAR(tap, train(tap, &often, BATCH, false), BATCH * loss, 1e-4 * BATCH * loss);
        check_same(tap, &once, &often);
        close_scene(&once);
        close_scene(&often);
    });
}

int main(void) {
    struct tap tap = {0};
    test_parts(&tap);
    return tap_done(&tap);
}
