// Dense layers of every family that this machine has: each function against its
// definition in double precision, over awkward shapes and mini-batches; the step
// that never forms the gradient against the one that does, in whole nets; and
// several threads on the same weights.
#include <float.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "model/net.h"
#include "rule/optimizer.h"

// Largest difference allowed, relative to the sum of the magnitudes that are added
// up: a few units in the last place of a float, and what 10000 roundings come to.
#define TOLERANCE 5e-6

struct fixture {
    struct tap *tap;
    const struct kernels *k;
    int n, units, inputs, first;
    struct random random;
    float *x, *dy, *w, *begin, *state, *biases, *y, *dx, *dw, *scratch, *panels;
    float *there; // what errors are added to; NULL: nothing
    // By definition, and the sums of the magnitudes that are added.
    double *errors, *error_sizes, *gradient, *gradient_sizes;
};

static float *noise(struct fixture *f, size_t n) {
    float *x = mem_floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = random_normal(&f->random);
    return x;
}

static void define_errors(struct fixture *f) {
    for (int i = 0; i < f->n; i++)
        for (int u = 0; u < f->units; u++)
            for (int k = 0; k < f->inputs; k++) {
                double dy = (double)f->dy[i * f->units + u];
                double product = dy * (double)f->w[u * f->inputs + k];
                f->errors[i * f->inputs + k] += product;
                f->error_sizes[i * f->inputs + k] += fabs(product);
            }
}

static void define_gradient(struct fixture *f) {
    for (int i = 0; i < f->n; i++)
        for (int u = 0; u < f->units; u++)
            for (int k = 0; k < f->inputs; k++) {
                double dy = (double)f->dy[i * f->units + u];
                double product = dy * (double)f->x[i * f->inputs + k];
                f->gradient[u * f->inputs + k] += product;
                f->gradient_sizes[u * f->inputs + k] += fabs(product);
            }
}

static void fixture_fill(struct fixture *f) {
    size_t n = (size_t)f->n, units = (size_t)f->units, inputs = (size_t)f->inputs;
    f->random = random_stream(5, n, units * inputs);
    f->x = noise(f, n * inputs), f->dy = noise(f, n * units), f->w = noise(f, units * inputs);
    f->begin = noise(f, 2 * units * inputs), f->state = mem_floats(2 * units * inputs);
    f->biases = noise(f, units), f->y = noise(f, n * units);
    f->dx = noise(f, n * inputs), f->dw = noise(f, units * inputs);
    f->scratch = mem_floats(dense_scratch(f->n, f->inputs));
    f->panels = mem_floats(dense_step_scratch(f->n, f->units, f->inputs));
    f->errors = mem_zeroed(n * inputs, sizeof *f->errors);
    f->error_sizes = mem_zeroed(n * inputs, sizeof *f->error_sizes);
    f->gradient = mem_zeroed(units * inputs, sizeof *f->gradient);
    f->gradient_sizes = mem_zeroed(units * inputs, sizeof *f->gradient_sizes);
    define_errors(f);
    define_gradient(f);
}

static void fixture_free(struct fixture *f) {
    free(f->x), free(f->dy), free(f->w), free(f->begin), free(f->state);
    free(f->biases), free(f->y), free(f->dx), free(f->dw), free(f->scratch);
    free(f->panels), free(f->errors), free(f->error_sizes);
    free(f->gradient), free(f->gradient_sizes);
}

static void near(struct fixture *f, const char *what, size_t at, float got, double wanted,
                 double size) {
    if (!(fabs((double)got - wanted) <= TOLERANCE * (size + 1)))
        FAIL(f->tap, "%s of %s, %d x %d -> %d: [%zu] is %.9g, not %.9g", what, f->k->name, f->n,
             f->inputs, f->units, at, (double)got, wanted);
}

static void check_forward(struct fixture *f, const float *biases) {
    f->k->dense->forward(f->y, f->x, f->w, biases, f->n, f->units, f->inputs, f->first, f->scratch);
    for (int i = 0; i < f->n; i++)
        for (int u = 0; u < f->units; u++) {
            double sum = biases ? (double)biases[u] : 0, size = fabs(sum);
            for (int k = 0; k < f->inputs; k++) {
                double product = (double)f->x[i * f->inputs + k] * (double)f->w[u * f->inputs + k];
                sum += product, size += fabs(product);
            }
            near(f, "dense", (size_t)(i * f->units + u), f->y[i * f->units + u], sum, size);
        }
}

static void check_errors(struct fixture *f, const char *what) {
    for (size_t i = 0; i < (size_t)f->n * (size_t)f->inputs; i++) {
        double there = f->there ? (double)f->there[i] : 0;
        near(f, what, i, f->dx[i], there + f->errors[i], fabs(there) + f->error_sizes[i]);
    }
}

static struct dense_errors errors_of(const struct fixture *f, bool errors, bool panels) {
    if (f->there)
        memcpy(f->dx, f->there, (size_t)f->n * (size_t)f->inputs * sizeof *f->dx);
    return (struct dense_errors){
        .dy = f->dy,
        .x = f->x,
        .dx = errors ? f->dx : NULL,
        .add = f->there != NULL,
        .n = f->n,
        .units = f->units,
        .inputs = f->inputs,
        .first = f->first,
        .scratch = panels ? f->panels : NULL,
    };
}

static void check_gradients(struct fixture *f) {
    struct dense_errors errors = errors_of(f, true, false);
    f->k->dense->back_input(&errors, f->w);
    check_errors(f, "dense_back_input");
    f->k->dense->back_weights(f->dw, &errors);
    for (size_t q = 0; q < (size_t)f->units * (size_t)f->inputs; q++)
        near(f, "dense_back_weights", q, f->dw[q], f->gradient[q], f->gradient_sizes[q]);
}

// What becomes of a weight and its states.
static void step(const struct update *u, double g, double *w, double state[2]) {
    double kept = (double)u->beta2, fresh = (double)u->fresh2;
    if (u->rule != RULE_ADAMW)
        g += (double)u->decay * *w;
    switch (u->rule) {
    case RULE_SGD:
        break;
    case RULE_MOMENTUM:
        g = state[0] = (double)u->momentum * state[0] + g;
        break;
    case RULE_NESTEROV:
        state[0] = (double)u->momentum * state[0] + g;
        g += (double)u->momentum * state[0];
        break;
    case RULE_ADAGRAD:
        kept = fresh = 1; // falls through
    case RULE_RMSPROP:
        state[0] = kept * state[0] + fresh * g * g;
        g /= sqrt(state[0]) + (double)u->epsilon;
        break;
    case RULE_ADAMW:
        *w -= (double)u->rate * (double)u->decay * *w; // falls through
    case RULE_ADAM:
        state[0] = (double)u->momentum * state[0] + (double)u->fresh * g;
        state[1] = kept * state[1] + fresh * g * g;
        *w -= (double)u->step * state[0] / ((double)u->root * sqrt(state[1]) + (double)u->epsilon);
        return;
    }
    *w -= (double)u->rate * g;
}

// Leaves the weights as they were.
static void check_step(struct fixture *f, enum rule rule, bool errors, bool panels) {
    size_t count = (size_t)f->units * (size_t)f->inputs;
    const struct update update = {.rule = rule,
                                  .rate = 0.1f,
                                  .decay = 0.03f,
                                  .momentum = 0.9f,
                                  .epsilon = 1e-3f,
                                  .beta2 = 0.7f,
                                  .fresh = 0.1f,
                                  .fresh2 = 0.3f,
                                  .step = 0.2f,
                                  .root = 1.2f,
                                  .second = count};
    struct dense_errors sent = errors_of(f, errors, panels);
    float *before = mem_array(count, sizeof *before), *state = mem_array(2 * count, sizeof *state);
    int states = optimizer_states(rule), squares = optimizer_squares(rule);
    memcpy(before, f->w, count * sizeof *before);
    for (size_t q = 0; q < 2 * count; q++) // a sum of squares has a sign
        f->state[q] = state[q] = 0.25f + fabsf(f->begin[q]);
    f->k->dense->step(f->w, states ? f->state : NULL, &sent, &update);
    if (errors)
        check_errors(f, "dense_step");
    for (size_t q = 0; q < count; q++) {
        double w = (double)before[q], s[2] = {(double)state[q], (double)state[count + q]};
        double size = f->gradient_sizes[q];
        step(&update, f->gradient[q], &w, s);
        near(f, rule_names[rule], q, f->w[q], w, size + fabs(w));
        for (int i = 0; i < states; i++)
            near(f, "state", q, f->state[(size_t)i * count + q], s[i],
                 i == squares ? size * size : size);
    }
    memcpy(f->w, before, count * sizeof *before);
    free(before), free(state);
}

// As one of several parts of a layer, whose errors are added up.
static void check_part(struct fixture *f) {
    f->there = noise(f, (size_t)f->n * (size_t)f->inputs);
    check_gradients(f);
    bool panels = dense_step_scratch(f->n, f->units, f->inputs) > 0;
    for (int rule = RULE_SGD; rule_names[rule]; rule++) {
        check_step(f, (enum rule)rule, true, false);
        if (panels)
            check_step(f, (enum rule)rule, true, true);
    }
    free(f->there);
    f->there = NULL;
}

static void check_shape(struct tap *tap, const struct kernels *k, int n, int units, int inputs) {
    struct fixture f = {.tap = tap, .k = k, .n = n, .units = units, .inputs = inputs};
    f.first = n % 3 * units / 3; // where threads that share the weights begin
    fixture_fill(&f);
    check_forward(&f, f.biases);
    check_forward(&f, NULL);
    check_gradients(&f);
    bool panels = dense_step_scratch(n, units, inputs) > 0;
    for (int rule = RULE_SGD; rule_names[rule]; rule++)
        for (int way = 0; way < (panels ? 4 : 2); way++)
            check_step(&f, (enum rule)rule, way % 2 == 0, way >= 2);
    check_part(&f);
    fixture_free(&f);
}

static void test_family(struct tap *tap, const struct kernels *k) {
    static const int shapes[][2] = {{1, 1},   {10, 3},   {33, 17},   {10, 400},
                                    {9, 440}, {130, 31}, {71, 1030}, {3, 9216}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int n = 1; n <= 19; n++)
            check_shape(tap, k, n, shapes[s][0], shapes[s][1]);
    static const int wide[] = {31, 32, 33, 64, 100, 257, 1024, 1025};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        check_shape(tap, k, wide[i], 45, 77);
    check_shape(tap, k, 1, 10000, 65);
    check_shape(tap, k, 4, 2100, 129);
    check_shape(tap, k, 150, 45, 1301);
    // Of weights that do not stay in the caches: rows of one part, and of several.
    check_shape(tap, k, 1, 1030, 1021);
    check_shape(tap, k, 4, 290, 4001);
    // With panels: of whole strips and not, of one part and of two.
    check_shape(tap, k, 32, 1024, 96);
    check_shape(tap, k, 45, 1031, 70);
    check_shape(tap, k, 260, 1025, 21);
}

// What of more than 16 samples each gives does not depend on its place (model/border.c).
static void test_places(struct tap *tap, const struct kernels *k) {
    for (int n = 17; n <= 70; n += 9) {
        struct fixture f = {.tap = tap, .k = k, .n = n, .units = 37, .inputs = 1301};
        fixture_fill(&f);
        size_t inputs = (size_t)f.inputs, units = (size_t)f.units, all = (size_t)n;
        float *turned = mem_array(all * inputs, sizeof *turned);
        float *y = mem_array(all * units, sizeof *y);
        for (size_t i = 0; i < all; i++)
            memcpy(turned + i * inputs, f.x + (all - 1 - i) * inputs, inputs * sizeof *turned);
        k->dense->forward(f.y, f.x, f.w, f.biases, n, f.units, f.inputs, 0, f.scratch);
        k->dense->forward(y, turned, f.w, f.biases, n, f.units, f.inputs, 0, f.scratch);
        for (size_t i = 0; i < all; i++)
            CHECK(tap, memcmp(y + i * units, f.y + (all - 1 - i) * units, units * sizeof *y) == 0);
        free(turned), free(y);
        fixture_free(&f);
    }
}

// --- by what is kept of weights ---------------------------------------------------

// What an output may lose, relative to the norm of its sample times that of its unit's weights
// divided by the root of the number of inputs: rms, and at most.
struct loss {
    double rms, most;
};

static const struct loss loss_strassen = {1.6e-6, 1.6e-5};     // 0.5e-7, 5e-7 at 1000 inputs
static const struct loss loss_fixed = {1.2e-4, 6e-4};          // of normal numbers
static const struct loss loss_fixed_most = {7e-4, 7e-4 * 5.5}; // of any that are let pass

static void check_kept(struct fixture *f, const float *biases, const struct loss *loss) {
    double squares = 0, scale = sqrt((double)f->inputs);
    for (int i = 0; i < f->n; i++)
        for (int u = 0; u < f->units; u++) {
            const float *x = f->x + i * f->inputs, *w = f->w + u * f->inputs;
            double sum = biases ? (double)biases[u] : 0, xs = sum * sum, ws = 1e-9;
            for (int k = 0; k < f->inputs; k++) {
                sum += (double)x[k] * (double)w[k];
                xs += (double)x[k] * (double)x[k], ws += (double)w[k] * (double)w[k];
            }
            float got = f->y[i * f->units + u];
            double lost = scale * fabs((double)got - sum) / (sqrt(xs * ws) + 1e-30);
            squares += lost * lost;
            if (!(lost <= loss->most))
                FAIL(f->tap, "%s, %d x %d -> %d by what is kept: (%d, %d) is %.9g, not %.9g",
                     f->k->name, f->n, f->inputs, f->units, i, u, (double)got, sum);
        }
    double rms = sqrt(squares / f->n / f->units);
    if (!(rms <= loss->rms))
        FAIL(f->tap, "%s, %d x %d -> %d by what is kept: loses %.2g, rms", f->k->name, f->n,
             f->inputs, f->units, rms);
}

struct keeping {
    float *kept, *scratch;
};

static struct keeping keeping_open(struct fixture *f) {
    size_t size = f->k->kept->size(f->n, f->units, f->inputs);
    CHECK(f->tap, size > 0 && size <= (size_t)f->units * (size_t)f->inputs / 4 * 5);
    return (struct keeping){noise(f, size),
                            noise(f, dense_kept_scratch(f->n, f->units, f->inputs))};
}

static void keeping_close(struct keeping *keeping) {
    free(keeping->kept), free(keeping->scratch);
}

static bool by_kept(struct fixture *f, const struct keeping *keeping, const float *biases) {
    return f->k->kept->forward(f->y, f->x, f->w, keeping->kept, biases, f->n, f->units, f->inputs,
                               keeping->scratch);
}

static void check_by_kept(struct tap *tap, const struct kernels *k, int n, int units, int inputs,
                          const struct loss *loss) {
    struct fixture f = {.tap = tap, .k = k, .n = n, .units = units, .inputs = inputs};
    fixture_fill(&f);
    struct keeping keeping = keeping_open(&f);
    CHECK(tap, k->kept->keep(keeping.kept, f.w, units, inputs));
    for (int biased = 0; biased < 2; biased++) {
        const float *biases = biased ? f.biases : NULL;
        CHECK(tap, by_kept(&f, &keeping, biases));
        check_kept(&f, biases, loss);
    }
    keeping_close(&keeping);
    fixture_free(&f);
}

// Sizes that halve into whole vectors, that leave over something in each direction, of
// several blocks of samples, and of inputs.
static void test_strassen(struct tap *tap, const struct kernels *k) {
    static const int shapes[][3] = {{128, 512, 1024}, {129, 513, 1025}, {159, 543, 1055},
                                    {300, 530, 1027}, {255, 700, 1056}, {131, 515, 2721}};
    CHECK(tap, k->kept->size(16, 10000, 10000) == 0 && k->kept->size(256, 10, 440) == 0);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        check_by_kept(tap, k, shapes[s][0], shapes[s][1], shapes[s][2], &loss_strassen);
}

// --- in fixed point ---------------------------------------------------------------

// Sizes that fill tiles and that do not, in each direction.
static void test_fixed(struct tap *tap, const struct kernels *k) {
    static const int shapes[][3] = {{1, 1024, 1024}, {2, 1025, 1025}, {3, 4000, 263},
                                    {4, 1039, 1030}, {5, 67, 16001},  {9, 2049, 513},
                                    {19, 1057, 999}, {130, 4099, 257}};
    CHECK(tap, k->kept->size(4, 1 << 19, 2) == 0 && k->kept->size(4, 64, 32769) == 0);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        check_by_kept(tap, k, shapes[s][0], shapes[s][1], shapes[s][2], &loss_fixed);
}

enum { FIXED_SAMPLES = 3, FIXED_UNITS = 1030, FIXED_INPUTS = 1021 };

static void fill(float *x, size_t n, float value) {
    for (size_t i = 0; i < n; i++)
        x[i] = value;
}

// Samples that have few values or one, of great and of small magnitude, and a unit without
// weights: what they lose is no more than others do.
static void test_fixed_values(struct tap *tap, const struct kernels *k) {
    struct fixture f = {.tap = tap, .k = k, .n = 9, .units = FIXED_UNITS, .inputs = FIXED_INPUTS};
    fixture_fill(&f);
    struct keeping keeping = keeping_open(&f);
    float *x = f.x;
    fill(x, FIXED_INPUTS, 0);
    fill(x += FIXED_INPUTS, FIXED_INPUTS, -3.25f);
    x += FIXED_INPUTS;
    for (int i = 0; i < FIXED_INPUTS; i++) {
        x[i] = (float)(i % 7 == 0);                                      // bits
        x[FIXED_INPUTS + i] *= 1e15f;                                    //
        x[2 * FIXED_INPUTS + i] *= 1e-15f;                               //
        x[3 * FIXED_INPUTS + i] = 1000 + x[3 * FIXED_INPUTS + i];        // far from zero
        x[4 * FIXED_INPUTS + i] = fmaxf(x[4 * FIXED_INPUTS + i] - 1, 0); // few are not zero
        x[5 * FIXED_INPUTS + i] = i == 5 ? 12 : x[5 * FIXED_INPUTS + i]; // one is large
        x[6 * FIXED_INPUTS + i] = -fabsf(x[6 * FIXED_INPUTS + i]);
    }
    fill(f.w, FIXED_INPUTS, 0);
    f.w[FIXED_INPUTS + 3] = -12; // one is large
    for (int i = 0; i < FIXED_INPUTS; i++) {
        f.w[2 * FIXED_INPUTS + i] *= 1e-15f;
        f.w[3 * FIXED_INPUTS + i] = i % 100 == 3 ? 1 : 0; // few are not zero
    }
    CHECK(tap, k->kept->keep(keeping.kept, f.w, f.units, f.inputs));
    CHECK(tap, by_kept(&f, &keeping, NULL));
    check_kept(&f, NULL, &loss_fixed_most);
    keeping_close(&keeping);
    fixture_free(&f);
}

// The largest sums that there are: they fit in 32 bits.
static void test_fixed_most(struct tap *tap, const struct kernels *k) {
    struct fixture f = {.tap = tap, .k = k, .n = 2, .units = 64, .inputs = 32768};
    fixture_fill(&f);
    struct keeping keeping = keeping_open(&f);
    fill(f.x, 2 * 32768, 65535), fill(f.w, (size_t)64 * 32768, -1);
    f.x[77] = f.x[32768] = 0;
    fill(f.w + 32768, 32768, 32511.0f / 32639); // the largest low byte with the largest high one
    f.w[32768] = 1;
    CHECK(tap, k->kept->keep(keeping.kept, f.w, f.units, f.inputs));
    CHECK(tap, by_kept(&f, &keeping, NULL));
    check_kept(&f, NULL, &loss_fixed);
    keeping_close(&keeping);
    fixture_free(&f);
}

// Numbers that would leave others few bits, and what is none, are refused: y stays as it was.
static void test_fixed_refused(struct tap *tap, const struct kernels *k) {
    const float bad[] = {NAN, INFINITY, -INFINITY, 100, FLT_MAX, -FLT_MAX};
    struct fixture f = {
        .tap = tap, .k = k, .n = FIXED_SAMPLES, .units = FIXED_UNITS, .inputs = FIXED_INPUTS};
    fixture_fill(&f);
    struct keeping keeping = keeping_open(&f);
    CHECK(tap, k->kept->keep(keeping.kept, f.w, f.units, f.inputs));
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
        for (int at = 0; at < FIXED_INPUTS; at += FIXED_INPUTS - 1) { // first, last
            float *x = f.x + 2 * FIXED_INPUTS + at, *w = f.w + 1029 * FIXED_INPUTS + at;
            float before = *x, weight = *w;
            f.y[0] = 12345, *x = bad[b];
            CHECK(tap, !by_kept(&f, &keeping, NULL));
            CHECK(tap, f.y[0] == 12345);
            *x = before, *w = bad[b];
            CHECK(tap, !k->kept->keep(keeping.kept, f.w, f.units, f.inputs));
            *w = weight;
        }
    keeping_close(&keeping);
    fixture_free(&f);
}

// --- whole nets -------------------------------------------------------------------

struct trainer {
    const struct optimizer *optimizer;
    const struct kernels *k;
    float *parameters, *state;
    int taken;
};

static void take_gradient(void *self, const struct layer *layer, const float *gradient) {
    struct trainer *t = self;
    optimizer_apply(t->optimizer, t->k, layer, optimizer_all(layer), t->parameters, t->state,
                    gradient, 0.05f);
}

static bool take_product(void *self, const struct layer *layer, const struct dense_errors *errors,
                         const float *dbiases) {
    struct trainer *t = self;
    t->taken++;
    optimizer_apply_product(t->optimizer, t->k, layer, t->parameters, t->state, errors, dbiases,
                            0.05f);
    return true;
}

// Parameters after some steps on random samples, whose products of `offered` layers are taken.
static float *train(struct tap *tap, const struct model *model, enum rule rule, int n,
                    int offered) {
    enum { STEPS = 5, SIZE = 2 * 6 * 5, MOST = 12 };
    const struct optimizer optimizer = {
        .rule = rule,
        .momentum = 0.9,
        .beta2 = 0.99,
        .decay = 0.01f,
        .epsilon = 1e-3f,
        .second = model->parameter_count,
    };
    struct error err = {0};
    struct net *net = NULL;
    struct trainer t = {.optimizer = &optimizer, .k = kernels_best()};
    float input[MOST * SIZE], *gradient = mem_floats(model->parameter_count);
    int32_t labels[MOST];
    t.parameters = mem_floats(model->parameter_count);
    t.state = mem_floats(2 * model->parameter_count);
    model_init_lively(model, t.parameters, 3);
    if (net_open(&net, model, t.k, n, NET_TRAIN, &err))
        FAIL(tap, "%s", err.text);
    net_offered(net, offered ? take_product : NULL, &t);
    struct random random = random_stream(8, 0, 0);
    for (int s = 0; s < STEPS && net; s++) {
        for (int i = 0; i < n * SIZE; i++)
            input[i] = random_normal(&random);
        for (int i = 0; i < n; i++)
            labels[i] = (int32_t)random_below(&random, 3);
        net_forward(net, t.parameters, input, n, NULL, 0);
        net_backward(net, t.parameters, labels, 1.0f / (float)n, gradient, take_gradient, &t);
    }
    CHECK_INT(tap, t.taken, offered * STEPS);
    net_close(net);
    free(gradient), free(t.state);
    return t.parameters;
}

// A net, in mini-batches of `least` to `most` samples; `layers` of it offer products.
static void test_net(struct tap *tap, const char *text, int layers, int least, int most) {
    struct error err = {0};
    struct model *model = NULL;
    if (model_parse(&model, "test.net", text, NULL, 0, &err)) {
        FAIL(tap, "%s", err.text);
        return;
    }
    for (int rule = RULE_SGD; rule_names[rule]; rule++)
        for (int n = least; n <= most; n += 3) {
            float *formed = train(tap, model, (enum rule)rule, n, 0);
            float *offered = train(tap, model, (enum rule)rule, n, layers);
            for (size_t i = 0; i < model->parameter_count; i++)
                if (!(fabsf(formed[i] - offered[i]) <= 2e-5f * (1 + fabsf(formed[i]))))
                    FAIL(tap, "%s, %d samples: parameter %zu is %.9g, not %.9g", rule_names[rule],
                         n, i, (double)offered[i], (double)formed[i]);
            free(formed), free(offered);
        }
    model_free(model);
}

static void test_nets(struct tap *tap) {
    test_net(tap,
             "input 2x6x5\nconv maps=3 kernel=3 act=tanh\ndense units=21 act=tanh rate=0.5\n"
             "dense units=40 act=relu decay=0.1\nsoftmax units=3\n",
             3, 1, 12);
    int rows = kernels_best()->lanes ? 3 : 0; // convolutions of few outputs (kernels/conv_rows.h)
    test_net(tap,
             "input 2x6x5\nconv maps=48 kernel=3 stride=2 act=relu\nconv maps=40 kernel=3 pad=1 "
             "act=tanh rate=0.5\nconv maps=72 kernel=1 act=relu\nsoftmax units=3\n",
             1 + rows, 1, 1);
    // Two layers pass two samples after the others: no product of theirs is of all samples.
    test_net(tap,
             "input 2x6x5\nconv maps=24 kernel=1 act=relu\nconv maps=1200 kernel=1 act=tanh\n"
             "conv maps=24 kernel=1 act=relu\nsoftmax units=3\n",
             rows > 0 ? 2 : 1, 4, 4);
}

// --- what is refused --------------------------------------------------------------

static void test_bounds(struct tap *tap) {
    const struct kernels *k = kernels_best();
    float dy[6] = {0.5f, -1, 0, 0.25f, 1, 0}, x[4] = {1, -2, 3, 0};
    const struct dense_errors errors = {.dy = dy, .x = x, .n = 2, .units = 3, .inputs = 2};
    CHECK(tap, optimizer_accepts_product(k, &errors));
    dy[3] = NAN;
    CHECK(tap, !optimizer_accepts_product(k, &errors));
    dy[3] = -INFINITY;
    CHECK(tap, !optimizer_accepts_product(k, &errors));
    dy[3] = FLT_MAX / 16;
    CHECK(tap, optimizer_accepts_product(k, &errors));
    x[2] = 16; // two such products may add up to more than a float holds
    CHECK(tap, !optimizer_accepts_product(k, &errors));
    x[2] = NAN;
    dy[3] = 0;
    CHECK(tap, !optimizer_accepts_product(k, &errors));
    x[0] = x[1] = x[2] = 0;
    dy[3] = FLT_MAX; // the sum that is the bias's gradient
    CHECK(tap, !optimizer_accepts_product(k, &errors));
}

// --- threads ----------------------------------------------------------------------

enum { THREADS = 2, ROUNDS = 50, UNITS = 37, INPUTS = 70, SAMPLES = 4 };

struct shared {
    const struct kernels *k;
    float *w, *biases;
};

// The threads' samples are all alike, so that each step is w -= c whatever w is:
// however the threads' steps fall, a weight has gone down by at least the rounds of
// one thread's steps less what was lost, and at most by all of them.
static void *hammer(void *self) {
    const struct shared *s = self;
    float x[SAMPLES * INPUTS], dy[SAMPLES * UNITS], dx[SAMPLES * INPUTS], y[SAMPLES * UNITS];
    for (int i = 0; i < SAMPLES * INPUTS; i++)
        x[i] = 1;
    for (int i = 0; i < SAMPLES * UNITS; i++)
        dy[i] = 1;
    const struct dense_errors errors = {
        .dy = dy, .x = x, .dx = dx, .n = SAMPLES, .units = UNITS, .inputs = INPUTS};
    const struct update update = {.rule = RULE_SGD, .rate = 0.25f};
    for (int r = 0; r < ROUNDS; r++) {
        s->k->dense->forward(y, x, s->w, s->biases, SAMPLES, UNITS, INPUTS, 0, NULL);
        s->k->dense->step(s->w, NULL, &errors, &update);
    }
    return NULL;
}

static void test_threads(struct tap *tap, const struct kernels *k) {
    struct shared shared = {k, mem_floats((size_t)(UNITS * INPUTS)), mem_floats((size_t)UNITS)};
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, hammer, &shared);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int i = 0; i < UNITS * INPUTS; i++) {
        float steps = -shared.w[i] / (SAMPLES * 0.25f);
        if (!(steps >= 1 && steps <= THREADS * ROUNDS))
            FAIL(tap, "weight %d of %s has gone %g steps", i, k->name, (double)steps);
    }
    free(shared.w), free(shared.biases);
}

int main(void) {
    struct tap tap = {0};
    for (int level = CPU_REF; level <= CPU_AVX512_VNNI; level++) {
        const struct kernels *k = kernels_of((enum cpu_level)level);
        if (!k)
            continue;
        char name[128];
        snprintf(name, sizeof name, "%s: every function is what its definition says", k->name);
        TEST(&tap, name, { test_family(&tap, k); });
        snprintf(name, sizeof name, "%s: a sample gives the same at any place", k->name);
        if (k->lanes)
            TEST(&tap, name, { test_places(&tap, k); });
        if (k->lanes && strcmp(k->kept->way, "strassen") == 0) {
            snprintf(name, sizeof name, "%s: fewer products give the same", k->name);
            TEST(&tap, name, { test_strassen(&tap, k); });
        } else if (k->lanes) {
            snprintf(name, sizeof name, "%s: products of bytes give nearly the same", k->name);
            TEST(&tap, name, {
                test_fixed(&tap, k);
                test_fixed_values(&tap, k);
                test_fixed_most(&tap, k);
                test_fixed_refused(&tap, k);
            });
        }
        snprintf(name, sizeof name, "%s: threads may share the weights", k->name);
        TEST(&tap, name, { test_threads(&tap, k); });
    }
    TEST(&tap, "steps that never form the gradient train as those that do", { test_nets(&tap); });
    TEST(&tap, "a product that may leave the floats is not taken", { test_bounds(&tap); });
    return tap_done(&tap);
}
