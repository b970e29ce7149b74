// Partitions train what one thread that has all of the model trains: after twenty updates the
// weights, and what the optimizer keeps, are the same, whatever the number of partitions and of
// parts in flight.
#include <math.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/gate.h"
#include "core/mem.h"
#include "core/random.h"
#include "kernels/kernels.h"
#include "train/loop.h"
#include "train/neighbours.h"

enum { BATCH = 40, BATCHES = 20, LAST = 7, PARTITIONS = 5 }; // the last mini-batch is short
#define TOLERANCE 1e-5

// --- mini-batches that repeat themselves --------------------------------------------------

struct box {
    struct supply supply;
    struct batch batches[BATCHES];
    _Atomic int next, back, lost;
};

static struct batch *take(struct supply *supply, double patience, double *waited) {
    struct box *box = (struct box *)supply;
    (void)patience, (void)waited;
    int i = box->next++;
    return i < BATCHES ? &box->batches[i] : NULL;
}

static void give_back(struct supply *supply, struct batch *batch) {
    (void)batch;
    ((struct box *)supply)->back++;
}

static void lose(struct supply *supply, struct batch *batch) {
    (void)batch;
    ((struct box *)supply)->lost++;
}

static void cancel(struct supply *supply) {
    (void)supply;
}

static int status_of(const struct supply *supply, struct error *err) {
    (void)supply, (void)err;
    return STATUS_OK;
}

static const struct supply_ops ops = {take, give_back, lose, cancel, status_of};

static void box_open(struct box *box, const struct model *model) {
    size_t sample = shape_size(model_input(model)->out);
    struct random random = random_stream(7, 1, 0);
    *box = (struct box){.supply.ops = &ops};
    for (int b = 0; b < BATCHES; b++) {
        struct batch *batch = &box->batches[b];
        batch->n = b == BATCHES - 1 ? LAST : BATCH;
        batch->number = (uint64_t)b;
        batch->input = mem_floats(BATCH * sample);
        batch->label = mem_array(BATCH, sizeof *batch->label);
        batch->draw = mem_array(BATCH, sizeof *batch->draw);
        for (size_t i = 0; i < BATCH * sample; i++)
            batch->input[i] = random_normal(&random);
        for (int i = 0; i < BATCH; i++) {
            batch->label[i] = (int32_t)random_below(&random, (uint32_t)model_classes(model));
            batch->draw[i] = (uint64_t)(b * BATCH + i);
        }
    }
}

static void box_close(struct box *box) {
    for (int b = 0; b < BATCHES; b++)
        free(box->batches[b].input), free(box->batches[b].label), free(box->batches[b].draw);
}

// --- one training -------------------------------------------------------------------------

struct way {
    struct optimizer optimizer;
    float rate;
    bool sync;
    int partitions, in_flight; // 0 partitions: a thread has all of the model
};

struct trained {
    float *parameters, *state;
    double loss;
    uint64_t clock;
    bool diverged;
};

static void trained_free(struct trained *trained) {
    free(trained->parameters), free(trained->state);
}

// Half of the mini-batches, from where the home is; to->clock says where it is then.
static int run_half(struct trained *to, const struct loop_config *config, struct error *err) {
    struct loop *loop;
    int status = loop_open(&loop, config, err);
    if (status)
        return status;
    loop_start(loop, config->first + BATCHES / 4); // two rounds
    while (!loop_wait(loop, -1))
        continue;
    loop_start(loop, config->first + BATCHES / 2);
    while (!loop_wait(loop, -1))
        continue;
    to->loss += loop_sums(loop).loss;
    to->diverged |= loop_diverged(loop, NULL);
    to->clock = config->home->ops->clock(config->home);
    loop_close(loop);
    return STATUS_OK;
}

// By a home of its own, as if the run was resumed.
static int train_half(struct trained *to, const struct model *model, const struct way *way,
                      const struct cut *cut, struct box *box, struct error *err) {
    const struct schedule schedule = {.rate = way->rate};
    const struct home_config at = {.model = model,
                                   .optimizer = &way->optimizer,
                                   .kernels = kernels_best(),
                                   .parameters = to->parameters,
                                   .state = to->state,
                                   .clock = to->clock,
                                   .threads = 1,
                                   .batch = BATCH};
    struct home *home = NULL;
    int status = cut ? home_partitions(&home, &at, cut, err) : home_local(&home, &at, err);
    if (status)
        return status;
    const struct loop_config config = {.model = model,
                                       .kernels = kernels_best(),
                                       .optimizer = &way->optimizer,
                                       .schedule = &schedule,
                                       .home = home,
                                       .supply = &box->supply,
                                       .patience = SUPPLY_PATIENT,
                                       .pace = {.samples = BATCH * BATCHES, .batch = BATCH},
                                       .first = to->clock,
                                       .threads = cut ? way->partitions : 1,
                                       .batch = BATCH,
                                       .sync = way->sync,
                                       .seed = 5,
                                       .cut = cut,
                                       .in_flight = way->in_flight};
    status = run_half(to, &config, err);
    home->ops->close(home);
    return status;
}

static int train(struct trained *to, const struct model *model, const struct way *way,
                 const float *poison, struct error *err) {
    size_t count = model->parameter_count;
    size_t kept = (size_t)optimizer_kept(&way->optimizer);
    struct box box;
    struct cut *cut = NULL;
    *to = (struct trained){.parameters = mem_floats(count),
                           .state = kept ? mem_zeroed(kept * count, sizeof(float)) : NULL};
    model_init_lively(model, to->parameters, 3);
    box_open(&box, model);
    if (poison)
        box.batches[BATCHES / 2].input[3] = *poison;
    int status = way->partitions ? cut_open(&cut, model, way->partitions, BATCH, err) : STATUS_OK;
    for (int half = 0; !status && !to->diverged && half < 2; half++)
        status = train_half(to, model, way, cut, &box, err);
    int came = box.back + box.lost;
    if (!status && came != (box.next < BATCHES ? box.next : BATCHES))
        status = error_set(err, STATUS_BUG, "%d of %d mini-batches came back", came, box.next);
    cut_close(cut);
    box_close(&box);
    return status;
}

// --- whole and cut ------------------------------------------------------------------------

static bool near(double a, double b) {
    return fabs(a - b) <= TOLERANCE * (1 + fabs(b));
}

static void compare_floats(struct tap *tap, const char *what, const float *a, const float *b,
                           size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!near((double)a[i], (double)b[i])) {
            FAIL(tap, "%s %zu is %g, not %g", what, i, (double)a[i], (double)b[i]);
            return;
        }
}

static void compare(struct tap *tap, const struct model *model, const struct way *way,
                    const struct trained *whole) {
    struct trained cut;
    struct error err = {0};
    size_t count = model->parameter_count;
    int failed = tap->failed_here;
    if (train(&cut, model, way, NULL, &err))
        FAIL(tap, "%s", err.text);
    compare_floats(tap, "parameter", cut.parameters, whole->parameters, count);
    compare_floats(tap, "state", cut.state, whole->state,
                   count * (size_t)optimizer_kept(&way->optimizer));
    CHECK_INT(tap, (int)cut.clock, BATCHES);
    CHECK_INT(tap, cut.diverged, false);
    if (!near(cut.loss, whole->loss))
        FAIL(tap, "the loss is %g, not %g", cut.loss, whole->loss);
    if (tap->failed_here > failed)
        printf("# above: %d partitions, %d in flight\n", way->partitions, way->in_flight);
    trained_free(&cut);
}

static void check_way(struct tap *tap, const char *name, const char *text, struct way way,
                      int in_flight) {
    struct model *model;
    struct error err = {0};
    struct trained whole = {0};
    if (model_parse(&model, "test.net", text, NULL, 0, &err) ||
        train(&whole, model, &way, NULL, &err))
        FAIL(tap, "%s", err.text);
    for (way.partitions = 1; way.partitions <= PARTITIONS; way.partitions++)
        for (way.in_flight = 1; way.in_flight <= in_flight; way.in_flight += 3)
            compare(tap, model, &way, &whole);
    trained_free(&whole);
    model_free(model);
    tap_result(tap, name);
}

#define CONVOLUTIONS                                                                               \
    "input 3x15x14\nconv maps=8 kernel=3 pad=1 act=relu cut=rows\nmaxpool size=2\n"                \
    "conv maps=10 kernel=3 pad=1 act=relu cut=maps\nconv maps=6 kernel=3 cut=rows act=tanh\n"      \
    "dense units=24 act=relu dropout=0.3 cut=inputs\nsoftmax units=7\n"
#define DENSE                                                                                      \
    "input 40\ndense units=64 act=tanh\ndense units=48 act=relu cut=units\n"                       \
    "dense units=33 act=sigmoid cut=inputs\nlogistic units=9\n"
#define LOCAL                                                                                      \
    "input 2x13x12\nlocal maps=4 kernel=3 stride=2 act=relu\nlcn size=3\nl2pool size=2\n"          \
    "batchnorm rate=0\nconv maps=5 kernel=1 rate=2 cut=rows\nsoftmax units=4\n"

// The samples of a pass are normalised together, however many are in flight.
#define NORMED                                                                                     \
    "input 2x9x8\nconv maps=6 kernel=3 cut=rows\nbatchnorm act=relu cut=maps\n"                    \
    "conv maps=4 kernel=1 cut=maps\nbatchnorm act=relu cut=maps\ndense units=20 cut=inputs\n"      \
    "batchnorm act=relu\nsoftmax units=5\n"

static void check_rules(struct tap *tap) {
    const struct optimizer sgd = {.rule = RULE_SGD, .decay = 0.001f};
    const struct optimizer momentum = {.rule = RULE_MOMENTUM, .momentum = 0.9, .ema = 0.9f};
    const struct optimizer clipped = {.rule = RULE_MOMENTUM, .momentum = 0.5, .clip = 0.05f};
    const struct optimizer adam = {
        .rule = RULE_ADAMW, .momentum = 0.9, .beta2 = 0.99, .epsilon = 1e-4f, .decay = 0.01f};
    check_way(tap, "sgd, in parts", CONVOLUTIONS, (struct way){sgd, 0.02f, true, 0, 0}, 4);
    check_way(tap, "momentum, in parts", DENSE, (struct way){momentum, 0.01f, true, 0, 0}, 4);
    check_way(tap, "clipped, in parts", CONVOLUTIONS, (struct way){clipped, 0.05f, true, 0, 0}, 4);
    check_way(tap, "adamw, in parts", LOCAL, (struct way){adam, 0.001f, true, 0, 0}, 4);
    check_way(tap, "batch norms, in parts", NORMED, (struct way){momentum, 0.01f, true, 0, 0}, 4);
    check_way(tap, "sgd, one mini-batch at a time", DENSE, (struct way){sgd, 0.02f, false, 0, 0},
              1);
    check_way(tap, "momentum, one at a time", CONVOLUTIONS,
              (struct way){momentum, 0.01f, false, 0, 0}, 1);
    check_way(tap, "clipped, one at a time", LOCAL, (struct way){clipped, 0.05f, false, 0, 0}, 1);
    check_way(tap, "clipped batch norms, one at a time", NORMED,
              (struct way){clipped, 0.05f, false, 0, 0}, 1);
}

// --- several at a time, and mistakes --------------------------------------------------------

static void check_flights(struct tap *tap) {
    struct model *model;
    struct error err = {0};
    struct trained cut = {0};
    const struct way way = {{.rule = RULE_SGD}, 0.01f, false, 3, 4};
    if (model_parse(&model, "test.net", CONVOLUTIONS, NULL, 0, &err) ||
        train(&cut, model, &way, NULL, &err))
        FAIL(tap, "%s", err.text);
    CHECK_INT(tap, (int)cut.clock, BATCHES);
    CHECK_INT(tap, cut.diverged, false);
    CHECK(tap, kernels_best()->finite(cut.parameters, model->parameter_count));
    trained_free(&cut);
    model_free(model);
    tap_result(tap, "four mini-batches in flight all land");
}

// A pixel that is not a number makes the loss one: everybody stops.
static void check_divergence(struct tap *tap, bool sync, int in_flight) {
    struct model *model;
    struct error err = {0};
    struct trained cut = {0};
    float poison = NAN;
    const struct way way = {{.rule = RULE_SGD}, 0.01f, sync, 3, in_flight};
    if (model_parse(&model, "test.net", CONVOLUTIONS, NULL, 0, &err) ||
        train(&cut, model, &way, &poison, &err))
        FAIL(tap, "%s", err.text);
    CHECK_INT(tap, cut.diverged, true);
    CHECK(tap, kernels_best()->finite(cut.parameters, model->parameter_count));
    trained_free(&cut);
    model_free(model);
}

// --- other processes that are lost ----------------------------------------------------------

enum { IN_FLIGHT = 4 };

// The other partition, which lands some mini-batches and is then lost.
struct other {
    struct neighbours neighbours;
    struct net_wire wire;
    struct gate gate;
    struct box *box;
    _Atomic int flying, forgotten, landed;
};

static bool gone(void *self, int exchange, enum net_pass pass, int to) {
    (void)self, (void)exchange, (void)pass, (void)to;
    return true;
}

static void send_nowhere(void *self, int exchange, enum net_pass pass, int to, const float *floats,
                         size_t count) {
    (void)self, (void)exchange, (void)pass, (void)to, (void)floats, (void)count;
}

static const float *receive_nothing(void *self, int exchange, enum net_pass pass, int from,
                                    size_t count) {
    (void)self, (void)exchange, (void)pass, (void)from, (void)count;
    return NULL;
}

static const struct net_wire *wire_of(void *self, int place) {
    (void)place;
    return &((struct other *)self)->wire;
}

static void tell(void *self, uint64_t number, const struct batch *batch, float rate) {
    (void)number, (void)batch, (void)rate;
    ((struct other *)self)->flying++;
}

static bool has_landed(void *self, uint64_t number, double *loss, bool *refused) {
    (void)self, (void)number, (void)loss, (void)refused;
    return false;
}

static struct batch *hear(void *self, uint64_t number, float *rate) {
    struct other *other = self;
    *rate = 0.01f;
    if (number >= IN_FLIGHT)
        return NULL;
    other->flying++;
    return &other->box->batches[number];
}

static void tell_landed(void *self, struct batch *batch, double loss, bool refused) {
    (void)batch, (void)loss, (void)refused;
    ((struct other *)self)->landed++;
}

static void forget(void *self, struct batch *batch) {
    (void)batch;
    ((struct other *)self)->forgotten++;
}

static bool is_lost(void *self) {
    return ((struct other *)self)->flying == IN_FLIGHT;
}

static void other_open(struct other *other, int partition, struct box *box) {
    *other = (struct other){
        .neighbours = {.self = other,
                       .partition = partition,
                       .gate = &other->gate,
                       .wire = wire_of,
                       .tell = tell,
                       .landed = has_landed,
                       .hear = hear,
                       .give_back = tell_landed,
                       .forget = forget,
                       .lost = is_lost},
        .wire = {gone, send_nowhere, receive_nothing, NULL, other},
        .box = box,
    };
}

// One of two processes, whose other one dies while so many mini-batches are in flight.
static int train_beside(struct other *other, const struct model *model, const struct cut *cut,
                        int partition, struct box *box, struct error *err) {
    const struct optimizer optimizer = {.rule = RULE_SGD};
    const struct schedule schedule = {.rate = 0.01f};
    const struct model *part = cut_model(cut, partition);
    float *parameters = mem_zeroed(part->parameter_count + 1, sizeof *parameters);
    const struct home_config at = {.model = part,
                                   .optimizer = &optimizer,
                                   .kernels = kernels_best(),
                                   .parameters = parameters,
                                   .threads = 1,
                                   .batch = BATCH};
    struct home *home = NULL;
    struct loop *loop = NULL;
    int status = home_local(&home, &at, err);
    other_open(other, partition, box);
    const struct loop_config config = {.model = model,
                                       .kernels = kernels_best(),
                                       .optimizer = &optimizer,
                                       .schedule = &schedule,
                                       .home = home,
                                       .supply = partition ? NULL : &box->supply,
                                       .patience = SUPPLY_PATIENT,
                                       .pace = {.samples = BATCH * BATCHES, .batch = BATCH},
                                       .threads = 1,
                                       .batch = BATCH,
                                       .cut = cut,
                                       .in_flight = IN_FLIGHT,
                                       .neighbours = &other->neighbours};
    if (!status)
        status = loop_open(&loop, &config, err);
    if (!status) {
        loop_start(loop, UINT64_MAX);
        while (!loop_wait(loop, -1))
            continue;
        loop_close(loop);
    }
    if (home)
        home->ops->close(home);
    free(parameters);
    return status;
}

static void check_lost(struct tap *tap, int partition, int back, int lost, int forgotten) {
    struct model *model;
    struct cut *cut;
    struct error err = {0};
    struct box box;
    struct other other;
    if (model_parse(&model, "test.net", DENSE, NULL, 0, &err) ||
        cut_open(&cut, model, 2, BATCH, &err)) {
        FAIL(tap, "%s", err.text);
        return;
    }
    box_open(&box, model);
    if (train_beside(&other, model, cut, partition, &box, &err))
        FAIL(tap, "%s", err.text);
    CHECK_INT(tap, other.flying, IN_FLIGHT);
    CHECK_INT(tap, box.back, back);
    CHECK_INT(tap, box.lost, lost);
    CHECK_INT(tap, other.landed, 0);
    CHECK_INT(tap, other.forgotten, forgotten);
    box_close(&box);
    cut_close(cut);
    model_free(model);
}

int main(void) {
    struct tap tap = {0};
    check_rules(&tap);
    check_flights(&tap);
    TEST(&tap, "a loss that is no number ends the training of all", {
        check_divergence(&tap, true, 1);
        check_divergence(&tap, true, 4);
        check_divergence(&tap, false, 1);
        check_divergence(&tap, false, 4);
    });
    TEST(&tap, "what is in flight when a partition is lost does not count as trained on",
         check_lost(&tap, 0, 0, IN_FLIGHT, 0););
    TEST(&tap, "and the first partition is not told that it landed",
         check_lost(&tap, 1, 0, 0, IN_FLIGHT););
    return tap_done(&tap);
}
