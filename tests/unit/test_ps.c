// A parameter server's rules, one request after the other, against a second
// implementation: plain loops in double precision over the whole parameter space.
#include "../helper/heap.h"
#include "../helper/ps_stand.h"
#include "../helper/tap.h"
#include "core/error.h"

// --- the second implementation ----------------------------------------------------------

struct plain {
    const struct model *model;
    struct optimizer optimizer;
    double *w, *s[RULE_STATES], *average;
    uint64_t updates[RIG_SHARDS];
    size_t n;
};

static void plain_open(struct plain *plain, const struct rig *rig, struct optimizer optimizer,
                       const float *weights) {
    *plain = (struct plain){
        .model = rig->model,
        .optimizer = optimizer,
        .w = mem_zeroed(rig->n, sizeof(double)),
        .s = {mem_zeroed(rig->n, sizeof(double)), mem_zeroed(rig->n, sizeof(double))},
        .average = mem_zeroed(rig->n, sizeof(double)),
        .n = rig->n};
    for (size_t i = 0; i < rig->n; i++)
        plain->w[i] = (double)weights[i];
}

static void plain_close(struct plain *plain) {
    free(plain->w);
    free(plain->s[0]);
    free(plain->s[1]);
    free(plain->average);
}

// One parameter takes the step that its layer, and the rule's definition, ask for.
static void plain_step(struct plain *plain, size_t i, double g, double rate) {
    const struct optimizer *o = &plain->optimizer;
    const struct layer *layer = plain->model->layers;
    while (i < layer->weights.offset ||
           i >= layer->weights.offset + layer->weights.count + layer->biases.count)
        layer++;
    bool bias = i >= layer->biases.offset;
    double decay = bias ? 0 : layer->decay < 0 ? (double)o->decay : (double)layer->decay;
    double *w = &plain->w[i], *v = &plain->s[0][i], *s = &plain->s[1][i];
    double t = (double)plain->updates[i / PROTO_SHARD_FLOATS], epsilon = (double)o->epsilon;
    rate *= (double)layer->rate;
    if (o->rule == RULE_ADAMW)
        *w -= rate * decay * *w;
    else
        g += decay * *w;
    switch (o->rule) {
    case RULE_SGD:
        *w -= rate * g;
        break;
    case RULE_MOMENTUM:
        *v = o->momentum * *v + g;
        *w -= rate * *v;
        break;
    case RULE_NESTEROV:
        *v = o->momentum * *v + g;
        *w -= rate * (g + o->momentum * *v);
        break;
    case RULE_ADAGRAD:
        *v += g * g;
        *w -= rate * g / (sqrt(*v) + epsilon);
        break;
    case RULE_RMSPROP:
        *v = o->beta2 * *v + (1 - o->beta2) * g * g;
        *w -= rate * g / (sqrt(*v) + epsilon);
        break;
    case RULE_ADAM:
    case RULE_ADAMW:
        *v = o->momentum * *v + (1 - o->momentum) * g;
        *s = o->beta2 * *s + (1 - o->beta2) * g * g;
        *w -= rate * *v / (1 - pow(o->momentum, t)) / (sqrt(*s / (1 - pow(o->beta2, t))) + epsilon);
        break;
    }
}

// The first update gives the average its weight.
static void plain_average(struct plain *plain, size_t i) {
    double t = (double)plain->updates[i / PROTO_SHARD_FLOATS] - 1;
    double share = fmin((double)plain->optimizer.ema, t / (t + 9));
    plain->average[i] = share * plain->average[i] + (1 - share) * plain->w[i];
}

static double distance(const double *wanted, const float *got, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(wanted[i] - (double)got[i]));
    return most;
}

static double plain_distance(const struct plain *plain, const float *weights) {
    return distance(plain->w, weights, plain->n);
}

static void check_average(struct tap *tap, struct rig *rig, const struct plain *plain) {
    int place = PROTO_QUANTITY_STATE + optimizer_states(plain->optimizer.rule);
    float *now = mem_floats(rig->n);
    if (plain->optimizer.ema > 0) {
        CHECK_INT(tap, rig_read(rig, (enum proto_quantity)place, now, NULL), PROTO_REFUSAL_NONE);
        CHECK_NEAR(tap, distance(plain->average, now, rig->n), 0, 5e-5);
    }
    free(now);
}

// Pieces in ascending order, of some shards, as random as may be.
static uint32_t some_pieces(const struct rig *rig, uint64_t *seed, struct proto_piece *pieces,
                            const uint64_t *versions) {
    uint32_t count = 0;
    for (uint32_t shard = 0; shard < RIG_SHARDS; shard++) {
        uint64_t floats = rig_floats(rig, shard), begin = 0;
        while (next(seed) % 3 && begin < floats && count < RIG_PIECES) {
            uint64_t offset = begin + next(seed) % (floats - begin);
            uint64_t length = 1 + next(seed) % (floats - offset);
            pieces[count++] = (struct proto_piece){shard, (uint32_t)offset, (uint32_t)length,
                                                   RIG_EPOCH, versions[shard]};
            begin = offset + length;
        }
    }
    return count;
}

// The first piece of each shard begins with the shard: so each push is a step.
static void begin_shards(struct proto_piece *pieces, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || pieces[i].shard != pieces[i - 1].shard) {
            pieces[i].count += pieces[i].offset;
            pieces[i].offset = 0;
        }
}

// --- async ------------------------------------------------------------------------------

static void plain_push(struct plain *plain, enum proto_update kind,
                       const struct proto_piece *pieces, uint32_t count, const float *from,
                       const double rates[RIG_SHARDS]) {
    for (uint32_t k = 0; k < count; k++)
        plain->updates[pieces[k].shard] += k == 0 || pieces[k].shard != pieces[k - 1].shard;
    for (uint32_t k = 0; k < count; k++)
        for (size_t i = rig_place(&pieces[k]), n = i + pieces[k].count; i < n; i++) {
            if (kind == PROTO_UPDATE_DELTA)
                plain->w[i] += (double)from[i];
            else
                plain_step(plain, i, (double)from[i], rates[pieces[k].shard]);
            plain_average(plain, i);
        }
}

// Random pushes of random pieces on stale weights; whether modulated each by its staleness.
static void check_async(struct tap *tap, struct optimizer optimizer, bool each) {
    struct rig rig;
    struct plain plain;
    struct protocol protocol = {.modulate = each ? MODULATE_EACH : MODULATE_NONE};
    float *start = numbers(700000, 1, 0.5), *g = numbers(700000, 2, 0.1);
    if (!rig_open(&rig, tap, optimizer, protocol, 1, 2, start))
        return;
    plain_open(&plain, &rig, optimizer, start);
    uint64_t versions[RIG_SHARDS] = {1, 1, 1}, seen[RIG_SHARDS] = {1, 1, 1}, seed = 5;
    for (uint64_t sequence = 1; sequence <= 30; sequence++) {
        struct proto_piece pieces[RIG_PIECES];
        struct reply reply;
        uint32_t count = some_pieces(&rig, &seed, pieces, seen);
        enum proto_update kind = sequence % 3 ? PROTO_UPDATE_GRADIENT : PROTO_UPDATE_DELTA;
        double rates[RIG_SHARDS];
        bool touched[RIG_SHARDS] = {false};
        for (int s = 0; s < RIG_SHARDS; s++)
            rates[s] = each ? 0.1 / (1 + (double)(versions[s] - seen[s])) : 0.1;
        if (!count)
            continue;
        begin_shards(pieces, each ? count : 0);
        plain_push(&plain, kind, pieces, count, g, rates);
        rig_push(&rig, (struct shove){1, sequence, kind, 4, 0.1}, pieces, count, g, &reply);
        CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
        for (uint32_t i = 0; i < count; i++)
            touched[pieces[i].shard] = true;
        for (int s = 0; s < RIG_SHARDS; s++)
            versions[s] += touched[s];
        for (uint32_t i = 0; i < count; i++)
            CHECK_INT(tap, reply.versions[i], versions[pieces[i].shard]);
        if (sequence % 4 == 0) // a pull
            memcpy(seen, versions, sizeof seen);
    }
    float *now = mem_floats(rig.n);
    rig_read(&rig, PROTO_QUANTITY_WEIGHT, now, NULL);
    CHECK_NEAR(tap, plain_distance(&plain, now), 0, 2e-5);
    check_average(tap, &rig, &plain);
    free(now);
    free(start);
    free(g);
    plain_close(&plain);
    rig_close(&rig);
}

static void test_async(struct tap *tap) {
    for (int r = 0; r < RULES; r++) {
        char name[100];
        snprintf(name, sizeof name, "async: pieces of deltas and gradients, %s%s",
                 rule_names[rules[r].rule], rules[r].ema > 0 ? ", with an average" : "");
        TEST(tap, name, { check_async(tap, rules[r], false); });
    }
    TEST(tap, "async: each rate is divided by 1 + staleness (Rudra, footnote 3)",
         { check_async(tap, rules[0], true); });
}

// --- factors ----------------------------------------------------------------------------

// The gradient of the layer, formed.
static void form(const struct layer *layer, const float *errors, const float *inputs, int k,
                 float *gradient) {
    size_t rows = (size_t)layer->weights.dims[0], columns = (size_t)layer->weights.dims[1];
    for (size_t r = 0; r < rows; r++) {
        double bias = 0;
        for (int i = 0; i < k; i++)
            bias += (double)errors[(size_t)i * rows + r];
        gradient[layer->biases.offset + r] = (float)bias;
        for (size_t c = 0; c < columns; c++) {
            double sum = 0;
            for (int i = 0; i < k; i++)
                sum +=
                    (double)errors[(size_t)i * rows + r] * (double)inputs[(size_t)i * columns + c];
            gradient[layer->weights.offset + r * columns + c] = (float)sum;
        }
    }
}

// As factors, whole, in pieces, and as a gradient of some shard only.
static void check_factors(struct tap *tap, struct optimizer optimizer, int k, int which) {
    struct rig rig;
    struct plain plain;
    struct reply reply;
    float *start = numbers(700000, 1, 0.5), *g = mem_floats(700000);
    float *errors = numbers(700u * (size_t)k, 3, 0.05), *inputs = numbers(700u * (size_t)k, 4, 1);
    if (!rig_open(&rig, tap, optimizer, async, 1, 2, start))
        return;
    plain_open(&plain, &rig, optimizer, start);
    const struct layer *layer = &rig.model->layers[1 + which];
    form(layer, errors, inputs, k, g);
    struct proto_piece pieces[RIG_PIECES];
    const double rates[] = {0.1, 0.1, 0.1};
    uint32_t count = layer_pieces(layer, pieces, 1);
    for (uint64_t sequence = 1; sequence <= 3; sequence++) {
        if (sequence == 2) { // a part that ends within rows, of the last shard
            pieces[0] = pieces[count - 1];
            pieces[0].offset += 1234;
            pieces[0].count -= 3000;
            pieces[1] = pieces[0];
            pieces[1].offset += pieces[0].count + 10;
            pieces[1].count = 1001;
            count = 2;
        }
        plain_push(&plain, PROTO_UPDATE_GRADIENT, pieces, count, g, rates);
        push_factors(&rig, layer, (struct shove){1, sequence, 0, (uint32_t)k, 0.1}, pieces, count,
                     errors, inputs, &reply);
        reply_wait(&reply);
        CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
    }
    float *now = mem_floats(rig.n);
    rig_read(&rig, PROTO_QUANTITY_WEIGHT, now, NULL);
    CHECK_NEAR(tap, plain_distance(&plain, now), 0, 5e-5);
    check_average(tap, &rig, &plain);
    free(now);
    free(start);
    free(g);
    free(errors);
    free(inputs);
    plain_close(&plain);
    rig_close(&rig);
}

// Who pushes alone, on the newest weights: a layer as factors, then the rest. No push is late by
// another part of itself, so that the rate is that of fresh ones, and the bound does not refuse.
static void check_push_in_parts(struct tap *tap, struct rig *rig, struct plain *plain,
                                const float *g, const float *errors, const float *inputs) {
    const struct layer *layer = &rig->model->layers[1];
    const double rates[] = {0.1, 0.1, 0.1};
    uint64_t versions[RIG_SHARDS] = {1, 1, 1};
    for (uint64_t step = 0; step < 4; step++) {
        struct proto_piece pieces[RIG_PIECES], rest[RIG_PIECES];
        struct reply reply;
        uint32_t count = layer_pieces(layer, pieces, 1);
        uint32_t end = pieces[count - 1].offset + pieces[count - 1].count;
        rest[0] = rig_piece(1, end, PROTO_SHARD_FLOATS - end, versions[1]);
        rest[1] = rig_shard(rig, 2, versions[2]);
        for (uint32_t i = 0; i < count; i++)
            pieces[i].version = versions[pieces[i].shard];
        plain_push(plain, PROTO_UPDATE_GRADIENT, pieces, count, g, rates);
        plain_push(plain, PROTO_UPDATE_GRADIENT, rest, 2, g, rates);
        push_factors(rig, layer, (struct shove){1, 2 * step + 1, 0, 5, 0.1}, pieces, count, errors,
                     inputs, &reply);
        reply_wait(&reply);
        CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
        rig_push(rig, (struct shove){1, 2 * step + 2, 0, 5, 0.1}, rest, 2, g, &reply);
        CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
        versions[0] += 1, versions[1] += 2, versions[2] += 1;
    }
}

static void check_parts_fresh(struct tap *tap) {
    struct rig rig;
    struct plain plain;
    struct ps_figures figures;
    struct protocol protocol = {.modulate = MODULATE_EACH, .max_staleness = 1};
    float *start = numbers(700000, 1, 0.5), *g = numbers(700000, 2, 0.1);
    float *errors = numbers(700u * 5, 3, 0.05), *inputs = numbers(700u * 5, 4, 1);
    float *now = mem_floats(700000);
    if (rig_open(&rig, tap, rules[0], protocol, 1, 2, start)) {
        plain_open(&plain, &rig, rules[0], start);
        form(&rig.model->layers[1], errors, inputs, 5, g);
        check_push_in_parts(tap, &rig, &plain, g, errors, inputs);
        ps_figures(rig.ps, &figures);
        CHECK_INT(tap, figures.staleness_most, 0);
        rig_read(&rig, PROTO_QUANTITY_WEIGHT, now, NULL);
        CHECK_NEAR(tap, plain_distance(&plain, now), 0, 5e-5);
        plain_close(&plain);
    }
    rig_close(&rig);
    free(start), free(g), free(errors), free(inputs), free(now);
}

static void test_factors(struct tap *tap) {
    TEST(tap, "async: a push whose factors come in a message of their own is as fresh as another",
         { check_parts_fresh(tap); });
    TEST(tap, "factors do what the gradient would that they are factors of (Adam 3.2.6)", {
        const int samples[] = {1, 5, 40, 300};
        for (int i = 0; i < 4; i++)
            for (int layer = 0; layer < 2; layer++)
                check_factors(tap, rules[0], samples[i], layer);
        for (int r = 1; r < RULES; r++)
            check_factors(tap, rules[r], 7, 1);
    });
}

// --- batches ----------------------------------------------------------------------------

enum { MIXED = 14 };

// Pushes to the shard that has parts of two layers: d and g are deltas and gradients of all of
// it, D and G of some, s are gradients of less, f are factors, of all that it has of the layer, F
// of some rows.
static void push_mixed(struct rig *rig, char kind, uint64_t sequence, const float *values,
                       const float *errors, const float *inputs, struct reply *reply) {
    const struct layer *layer = &rig->model->layers[2];
    struct proto_piece pieces[RIG_PIECES] = {rig_shard(rig, 1, 1)};
    struct shove shove = {1, sequence, PROTO_UPDATE_GRADIENT, 5, 0.1 / (double)sequence};
    uint32_t count = 1;
    if (kind == 'f' || kind == 'F') {
        layer_pieces(layer, pieces, 1);
        pieces[0].offset += kind == 'F' ? 1234 : 0;
        pieces[0].count -= kind == 'F' ? 7000 : 0;
        push_factors(rig, layer, shove, pieces, 1, errors, inputs, reply);
        return;
    }
    if (kind == 'D' || kind == 'G' || kind == 's') {
        pieces[0] = rig_piece(1, 5, kind == 's' ? 3000 : 20000, 1);
        pieces[1] = rig_piece(1, 30001, 99999, 1);
        count = 2;
    }
    if (kind == 'd' || kind == 'D')
        shove.kind = PROTO_UPDATE_DELTA;
    rig_push_begin(rig, shove, pieces, count, values + 100 * sequence, reply);
}

// Weights and state after these pushes: all of them in one batch, or one after the other.
static void after_mixed(struct tap *tap, struct optimizer optimizer, const char *kinds, bool batch,
                        float *weights, float *state) {
    struct rig rig;
    struct hold hold;
    struct reply replies[MIXED];
    float *start = numbers(700000, 1, 0.5), *values = numbers(710000, 2, 0.1);
    float *errors = numbers(700u * 5, 3, 0.05), *inputs = numbers(700u * 5, 4, 1);
    if (!rig_open(&rig, tap, optimizer, async, 1, 1, start))
        return;
    hold_begin(&hold, &rig);
    if (!batch)
        hold_end(&hold);
    for (int i = 0; kinds[i]; i++) {
        push_mixed(&rig, kinds[i], (uint64_t)i + 2, values, errors, inputs, &replies[i]);
        if (!batch)
            reply_wait(&replies[i]);
    }
    hold_end(&hold);
    for (int i = 0; kinds[i]; i++) {
        reply_wait(&replies[i]);
        CHECK_INT(tap, replies[i].code, PROTO_REFUSAL_NONE);
        CHECK_INT(tap, replies[i].versions[0], i + 2);
    }
    rig_read(&rig, PROTO_QUANTITY_WEIGHT, weights, NULL);
    rig_read(&rig, PROTO_QUANTITY_STATE, state, NULL);
    rig_close(&rig);
    free(start);
    free(values);
    free(errors);
    free(inputs);
}

static void check_mixed(struct tap *tap, struct optimizer optimizer, const char *kinds) {
    float *batch[2] = {mem_floats(700000), mem_floats(700000)};
    float *each[2] = {mem_floats(700000), mem_floats(700000)};
    after_mixed(tap, optimizer, kinds, true, batch[0], batch[1]);
    after_mixed(tap, optimizer, kinds, false, each[0], each[1]);
    for (int i = 0; i < 2; i++)
        if (memcmp(batch[i], each[i], 700000 * sizeof(float)))
            FAIL(tap, "%s, %s of %s", rule_names[optimizer.rule], i ? "state" : "weights", kinds);
    free(batch[0]);
    free(batch[1]);
    free(each[0]);
    free(each[1]);
}

static void test_batches(struct tap *tap) {
    TEST(tap, "pushes that queue up do bit for bit what they do one after the other", {
        static const char *const kinds[] = {"gggggggdddddg", "dgdgDDGsGGgDgd", "ggfgdFFGgdfggg"};
        for (int r = 0; r < RULES; r++)
            for (int i = 0; i < 3; i++)
                check_mixed(tap, rules[r], kinds[i]);
    });
}

// --- hardsync, softsync -----------------------------------------------------------------

enum { WORKERS = 4 };
static const uint32_t turn_samples[WORKERS] = {16, 8, 24, 3};

struct round { // of pushes of all workers to all shards
    float *gradient[WORKERS];
    struct reply reply[WORKERS];
};

static void round_open(struct round *round, uint64_t seed) {
    for (int i = 0; i < WORKERS; i++)
        round->gradient[i] = numbers(700000, seed + (uint64_t)i, 0.1);
}

static void round_close(struct round *round) {
    for (int i = 0; i < WORKERS; i++)
        free(round->gradient[i]);
}

// One update by the mean of some workers' gradients with these weights.
static void plain_mean(struct plain *plain, const struct round *round, int first, int count,
                       double rate) {
    double samples = 0;
    for (int l = first; l < first + count; l++)
        samples += turn_samples[l];
    for (int s = 0; s < RIG_SHARDS; s++)
        plain->updates[s]++;
    for (size_t i = 0; i < plain->n; i++) {
        double g = 0;
        for (int l = first; l < first + count; l++)
            g += turn_samples[l] * (double)round->gradient[l][i] / samples;
        plain_step(plain, i, g, rate);
        plain_average(plain, i);
    }
}

static void check_hardsync(struct tap *tap, struct optimizer optimizer, uint64_t reference) {
    struct rig rig;
    struct plain plain;
    struct round round;
    struct protocol protocol = {.kind = PROTOCOL_HARDSYNC, .reference_batch = reference};
    float *start = numbers(700000, 1, 0.5), *now = mem_floats(700000);
    if (!rig_open(&rig, tap, optimizer, protocol, WORKERS, 2, start))
        return;
    plain_open(&plain, &rig, optimizer, start);
    double rate = reference ? 0.1 * sqrt(51 / (double)reference) : 0.1;
    for (uint64_t step = 1; step <= 3; step++) {
        round_open(&round, 10 * step);
        plain_mean(&plain, &round, 0, WORKERS, rate);
        for (int l = 0; l < WORKERS; l++) {
            if (l == WORKERS - 1)
                for (int i = 0; i < l; i++)
                    CHECK(tap, !atomic_load(&round.reply[i].done));
            push_all(&rig, (struct shove){(uint64_t)l + 1, step, 0, turn_samples[l], 0.1}, step,
                     round.gradient[l], &round.reply[l]);
        }
        for (int l = 0; l < WORKERS; l++) {
            reply_wait(&round.reply[l]);
            CHECK_INT(tap, round.reply[l].code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, round.reply[l].versions[2], step + 1);
        }
        round_close(&round);
    }
    rig_read(&rig, PROTO_QUANTITY_WEIGHT, now, NULL);
    CHECK_NEAR(tap, plain_distance(&plain, now), 0, optimizer.rule == RULE_SGD ? 1e-6 : 1e-5);
    check_average(tap, &rig, &plain);
    struct ps_figures figures;
    ps_figures(rig.ps, &figures);
    CHECK_INT(tap, figures.staleness_most, 0);
    CHECK_INT(tap, figures.pushes, 3 * WORKERS);
    CHECK_INT(tap, figures.updates, 3 * RIG_SHARDS);
    CHECK_INT(tap, figures.floats, 3 * WORKERS * rig.n);
    CHECK_INT(tap, figures.samples, 3 * 51);
    free(start);
    free(now);
    plain_close(&plain);
    rig_close(&rig);
}

static void test_hardsync(struct tap *tap) {
    for (int r = 0; r < RULES; r++) {
        char name[100];
        snprintf(name, sizeof name, "hardsync: one update by the mean of all (Rudra eq. 7), %s%s",
                 rule_names[rules[r].rule], rules[r].ema > 0 ? ", with an average" : "");
        TEST(tap, name, { check_hardsync(tap, rules[r], 0); });
    }
    TEST(tap, "hardsync: the rate times sqrt(lambda mu / B) (Rudra 3.2)",
         { check_hardsync(tap, rules[1], 128); });
}

// A push that nothing answers yet, sent again. The second time its shards have looked at all
// that was there when they said BUSY the first time.
static void check_waits(struct tap *tap, struct rig *rig, struct shove shove, uint64_t version) {
    for (int i = 0; i < 2; i++) {
        struct reply again;
        push_all(rig, shove, version, NULL, &again);
        reply_wait(&again);
        CHECK_INT(tap, again.code, PROTO_REFUSAL_BUSY);
    }
}

// A layer as factors, and the others as gradients, are one turn; so is one without samples.
static void test_turns(struct tap *tap) {
    TEST(tap, "hardsync: a turn may come in several messages, or without samples", {
        struct rig rig;
        struct plain plain;
        struct reply a, b, c;
        float *start = numbers(700000, 1, 0.5), *g = numbers(700000, 2, 0.1);
        float *errors = numbers(700u * 12, 3, 0.05), *inputs = numbers(700u * 12, 4, 1);
        float *now = mem_floats(700000);
        struct protocol protocol = {.kind = PROTOCOL_HARDSYNC};
        if (rig_open(&rig, tap, rules[1], protocol, 2, 2, start)) {
            plain_open(&plain, &rig, rules[1], start);
            const struct layer *layer = &rig.model->layers[1];
            form(layer, errors, inputs, 12, g); // the rest of g stays as it is
            for (size_t i = 0; i < rig.n; i++)
                plain_step(&plain, i, (double)g[i], 0.1);
            struct proto_piece pieces[RIG_PIECES];
            struct proto_piece rest[RIG_PIECES];
            uint32_t count = layer_pieces(layer, pieces, 1);
            uint32_t end = pieces[count - 1].offset + pieces[count - 1].count;
            rest[0] = rig_piece(1, end, PROTO_SHARD_FLOATS - end, 1);
            rest[1] = rig_shard(&rig, 2, 1);
            push_factors(&rig, layer, (struct shove){1, 1, 0, 12, 0.1}, pieces, count, errors,
                         inputs, &a);
            push_all(&rig, (struct shove){2, 1, 0, 0, 0.1}, 1, NULL, &b);
            check_waits(tap, &rig, (struct shove){2, 1, 0, 0, 0.1}, 1); // for the rest of a
            rig_push(&rig, (struct shove){1, 2, 0, 12, 0.1}, rest, 2, g, &c);
            reply_wait(&a);
            reply_wait(&b);
            CHECK_INT(tap, a.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, b.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, c.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, b.versions[1], 2);
            rig_read(&rig, PROTO_QUANTITY_WEIGHT, now, NULL);
            CHECK_NEAR(tap, plain_distance(&plain, now), 0, 2e-5);
            push_all(&rig, (struct shove){1, 3, 0, 0, 0.1}, 2, NULL, &a);
            push_all(&rig, (struct shove){2, 2, 0, 0, 0.1}, 2, NULL, &b);
            reply_wait(&a);
            reply_wait(&b);
            CHECK_INT(tap, a.versions[0], 3); // nobody had samples, and nobody hangs
            struct ps_figures figures;
            ps_figures(rig.ps, &figures);
            CHECK_INT(tap, figures.samples, 12); // of three messages with samples, or two pushes
            plain_close(&plain);
        }
        rig_close(&rig);
        free(start);
        free(g);
        free(errors);
        free(inputs);
        free(now);
    });
}

// Sessions 1 and 2 are one replica, 3 and 4 the other: each has a part of every shard.
static void push_part(struct rig *rig, uint64_t session, uint64_t sequence, const float *values,
                      struct reply *reply) {
    struct proto_piece pieces[RIG_SHARDS];
    for (uint32_t shard = 0; shard < RIG_SHARDS; shard++) {
        struct proto_piece *piece = &pieces[shard];
        *piece = rig_shard(rig, shard, 1);
        uint32_t some = piece->count / 3;
        piece->offset = session % 2 ? 0 : some;
        piece->count = session % 2 ? some : piece->count - some;
    }
    rig_push_begin(rig, (struct shove){session, sequence, 0, 8, 0.1}, pieces, RIG_SHARDS, values,
                   reply);
}

// All pushes are on version 1. What both sessions push of a step is one step, and none by which
// the second one of them is late.
static void test_replica_staleness(struct tap *tap) {
    TEST(tap, "async: what the sessions of a replica push of a step is one step of staleness", {
        const uint64_t sessions[] = {1, 2};
        const uint32_t replicas[] = {5, 5};
        struct stand stand;
        struct reply reply;
        struct ps_figures figures;
        struct protocol bounded = {.max_staleness = 1};
        if (stand_open(&stand, tap, bounded, 2)) {
            CHECK_INT(tap, ps_members(stand.rig.ps, sessions, replicas, 2, NULL), STATUS_OK);
            for (uint64_t i = 0; i < 5; i++) {
                push_part(&stand.rig, 1 + i % 2, 1 + i / 2, stand.values, &reply);
                reply_wait(&reply);
                CHECK_INT(tap, reply.code, i < 4 ? PROTO_REFUSAL_NONE : PROTO_REFUSAL_TOO_STALE);
            }
            CHECK_INT(tap, reply.detail, 1);
            ps_figures(stand.rig.ps, &figures);
            CHECK_INT(tap, figures.staleness[0], 2 * RIG_SHARDS);
            CHECK_INT(tap, figures.staleness[1], 2 * RIG_SHARDS);
        }
        stand_close(&stand);
    });
}

// The second part of a step is corrected as the first is: by the steps that there were, and not by
// the pushes.
static void test_replica_rule(struct tap *tap) {
    TEST(tap, "async: to adam and averages, too, what sessions push of a step is one", {
        const uint64_t sessions[] = {1, 2};
        const uint32_t replicas[] = {5, 5};
        struct optimizer rule = {.rule = RULE_ADAM, .momentum = 0.9f, .beta2 = 0.999f};
        struct rig rig;
        struct plain plain;
        struct reply reply;
        rule.epsilon = 1e-8f;
        rule.ema = 0.99f;
        float *start = numbers(700000, 1, 0.5), *g = numbers(700000, 2, 0.1);
        float *now = mem_floats(700000);
        if (rig_open(&rig, tap, rule, async, 2, 2, start)) {
            CHECK_INT(tap, ps_members(rig.ps, sessions, replicas, 2, NULL), STATUS_OK);
            plain_open(&plain, &rig, rule, start);
            for (uint64_t step = 1; step <= 3; step++) {
                for (int s = 0; s < RIG_SHARDS; s++)
                    plain.updates[s]++;
                for (size_t i = 0; i < rig.n; i++) {
                    plain_step(&plain, i, (double)g[i], 0.1);
                    plain_average(&plain, i);
                }
                for (uint64_t session = 1; session <= 2; session++) {
                    push_part(&rig, session, step, g, &reply);
                    reply_wait(&reply);
                    CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
                }
            }
            rig_read(&rig, PROTO_QUANTITY_WEIGHT, now, NULL);
            CHECK_NEAR(tap, plain_distance(&plain, now), 0, 2e-5);
            check_average(tap, &rig, &plain);
            plain_close(&plain);
        }
        rig_close(&rig);
        free(start), free(g), free(now);
    });
}

static void test_replicas(struct tap *tap) {
    TEST(tap, "hardsync: the turn of a replica is what its sessions push together", {
        struct rig rig;
        struct plain plain;
        struct reply reply[4];
        float *start = numbers(700000, 1, 0.5),
              *g[2] = {numbers(700000, 2, 0.1), numbers(700000, 3, 0.1)};
        float *now = mem_floats(700000);
        const uint64_t sessions[] = {1, 2, 3, 4};
        const uint32_t replicas[] = {5, 5, 9, 9};
        struct protocol protocol = {.kind = PROTOCOL_HARDSYNC};
        if (rig_open(&rig, tap, rules[1], protocol, 4, 2, start)) {
            CHECK_INT(tap, ps_members(rig.ps, sessions, replicas, 4, NULL), STATUS_OK);
            plain_open(&plain, &rig, rules[1], start);
            for (size_t i = 0; i < rig.n; i++)
                plain_step(&plain, i, ((double)g[0][i] + (double)g[1][i]) / 2, 0.1);
            for (uint64_t session = 1; session <= 3; session++)
                push_part(&rig, session, 1, g[session > 2], &reply[session - 1]);
            rig_wait_queued(&rig, 3 * RIG_SHARDS);
            for (int i = 0; i < 3; i++)
                CHECK(tap, !atomic_load(&reply[i].done)); // the other replica lacks a part
            push_part(&rig, 4, 1, g[1], &reply[3]);
            for (int i = 0; i < 4; i++) {
                reply_wait(&reply[i]);
                CHECK_INT(tap, reply[i].code, PROTO_REFUSAL_NONE);
                CHECK_INT(tap, reply[i].versions[0], 2);
            }
            rig_read(&rig, PROTO_QUANTITY_WEIGHT, now, NULL);
            CHECK_NEAR(tap, plain_distance(&plain, now), 0, 2e-6);
            plain_close(&plain);
        }
        rig_close(&rig);
        free(start), free(g[0]), free(g[1]), free(now);
    });
}

// c = floor(4 / 2) = 2 pushes an update; both of the first are by the same worker.
static void check_softsync(struct tap *tap, struct optimizer optimizer,
                           enum protocol_modulate modulate) {
    struct rig rig;
    struct plain plain;
    struct round round;
    struct protocol protocol = {.kind = PROTOCOL_SOFTSYNC, .n = 2, .modulate = modulate};
    float *start = numbers(700000, 1, 0.5), *now = mem_floats(700000);
    if (!rig_open(&rig, tap, optimizer, protocol, WORKERS, 2, start))
        return;
    plain_open(&plain, &rig, optimizer, start);
    round_open(&round, 20);
    const uint64_t by[WORKERS] = {1, 1, 2, 4}, sequence[WORKERS] = {1, 2, 1, 1};
    double factors[2] = {1, 1}; // of the two updates, on weights of staleness 0 and 1
    if (modulate == MODULATE_MEAN)
        factors[0] = factors[1] = 0.5;
    if (modulate == MODULATE_EACH)
        factors[1] = 0.5;
    for (int l = 0; l < WORKERS; l++) {
        push_all(&rig, (struct shove){by[l], sequence[l], 0, turn_samples[l], 0.1}, 1,
                 round.gradient[l], &round.reply[l]);
        if (l % 2) {
            plain_mean(&plain, &round, l - 1, 2, 0.1 * factors[l / 2]);
            reply_wait(&round.reply[l - 1]);
            reply_wait(&round.reply[l]);
            CHECK_INT(tap, round.reply[l].code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, round.reply[l - 1].versions[0], 2 + l / 2);
        }
    }
    rig_read(&rig, PROTO_QUANTITY_WEIGHT, now, NULL);
    CHECK_NEAR(tap, plain_distance(&plain, now), 0, 1e-5);
    struct ps_figures figures;
    ps_figures(rig.ps, &figures);
    CHECK_INT(tap, figures.staleness_count, WORKERS * RIG_SHARDS);
    CHECK_INT(tap, figures.staleness_sum, 2 * RIG_SHARDS);
    CHECK_INT(tap, figures.staleness[1], 2 * RIG_SHARDS);
    CHECK_INT(tap, figures.staleness_most, 1);
    free(start);
    free(now);
    round_close(&round);
    plain_close(&plain);
    rig_close(&rig);
}

// Four workers in turn, each of which pulls behind its push: n updates pass until its next push,
// one of them before it pulls if its push was the last of the c that made the update.
static void check_staleness(struct tap *tap, uint32_t n) {
    enum { ROUNDS = 25 };
    struct rig rig;
    struct round round;
    struct protocol protocol = {.kind = PROTOCOL_SOFTSYNC, .n = n};
    uint32_t group = WORKERS / n;
    uint64_t version = 1, pulled[WORKERS] = {1, 1, 1, 1}, sum = 0;
    float *start = numbers(700000, 1, 0.5);
    if (!rig_open(&rig, tap, rules[0], protocol, WORKERS, 2, start))
        return;
    round_open(&round, 20);
    for (uint32_t push = 0; push < ROUNDS * WORKERS; push++) {
        uint32_t l = push % WORKERS;
        push_all(&rig, (struct shove){l + 1, push / WORKERS + 1, 0, 16, 0.01}, pulled[l],
                 round.gradient[l], &round.reply[l]);
        sum += version - pulled[l];
        if (push % group == group - 1) {
            for (uint32_t i = 0; i < group; i++)
                reply_wait(&round.reply[l - i]);
            version++;
        }
        pulled[l] = version;
    }
    struct ps_figures figures;
    ps_figures(rig.ps, &figures);
    CHECK_INT(tap, figures.staleness_count, ROUNDS * WORKERS * RIG_SHARDS);
    CHECK_INT(tap, figures.staleness_sum, sum * RIG_SHARDS);
    CHECK_INT(tap, figures.staleness_most, n - (group == 1));
    CHECK_NEAR(tap, (double)sum / (ROUNDS * WORKERS), n - 1.0 / group, 0.1);
    free(start);
    round_close(&round);
    rig_close(&rig);
}

static void test_softsync(struct tap *tap) {
    TEST(tap, "softsync: floor(lambda / n) pushes make an update (Rudra eq. 5)", {
        check_softsync(tap, rules[0], MODULATE_NONE);
        check_softsync(tap, rules[2], MODULATE_NONE);
    });
    TEST(tap, "softsync: the rate is divided by n whatever the rule (Rudra eq. 6)", {
        for (int r = 0; r < RULES; r++)
            check_softsync(tap, rules[r], MODULATE_MEAN);
    });
    TEST(tap, "softsync: or by 1 + staleness", { check_softsync(tap, rules[1], MODULATE_EACH); });
    TEST(tap, "softsync: of workers in turn, gradients are stale by n - 1 to n (Rudra 5.1)", {
        for (uint32_t n = 1; n <= WORKERS; n *= 2)
            check_staleness(tap, n);
    });
}

// --- exactly once, refusals -------------------------------------------------------------

static void test_once(struct tap *tap) {
    struct stand stand;
    struct reply reply;
    TEST(tap, "a push is applied once, in whatever order and however often it comes", {
        if (stand_open(&stand, tap, async, 2)) {
            const uint64_t order[] = {3, 1, 3, 70, 10, 7, 70, 10};
            const bool repeated[] = {0, 0, 1, 0, 0, 0, 1, 1};
            uint64_t version = 1;
            for (int i = 0; i < 8; i++) {
                version += !repeated[i];
                push_one(&stand, 1, order[i], 1, 1, &reply);
                CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
                CHECK_INT(tap, reply.repeated, repeated[i]);
                CHECK_INT(tap, reply.versions[0], version);
            }
            push_one(&stand, 1, 6, 1, 1, &reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_REPLAYED);
            CHECK_INT(tap, reply.detail, 70);
            push_one(&stand, 2, 3, 1, 1, &reply); // another session
            CHECK(tap, reply.code == PROTO_REFUSAL_NONE && !reply.repeated);
            push_one(&stand, 1, 6, 2, 1, &reply); // another shard
            CHECK(tap, reply.code == PROTO_REFUSAL_NONE && !reply.repeated);
            float *now = mem_floats(stand.rig.n);
            rig_read(&stand.rig, PROTO_QUANTITY_WEIGHT, now, NULL);
            size_t at = PROTO_SHARD_FLOATS + 5;
            CHECK_NEAR(tap, now[at], stand.weights[at] + 6 * stand.values[at], 1e-5);
            free(now);
            struct ps_figures figures;
            ps_figures(stand.rig.ps, &figures);
            CHECK_INT(tap, figures.repeated, 3);
            CHECK_INT(tap, figures.pushes, 7);
            CHECK_INT(tap, figures.refused[PROTO_REFUSAL_REPLAYED], 1);
        }
        stand_close(&stand);
    });
    TEST(tap, "a session that comes for one that is gone begins anew", {
        const uint64_t one[] = {1};
        const uint64_t other[] = {77};
        if (stand_open(&stand, tap, async, 0)) {
            ps_members(stand.rig.ps, one, NULL, 1, NULL);
            push_one(&stand, 1, 1, 0, 1, &reply);
            ps_members(stand.rig.ps, other, NULL, 1, NULL);
            push_one(&stand, 77, 1, 0, 1, &reply);
            CHECK(tap, reply.code == PROTO_REFUSAL_NONE && !reply.repeated);
            push_one(&stand, 77, 1, 0, 1, &reply);
            CHECK(tap, reply.code == PROTO_REFUSAL_NONE && reply.repeated);
            push_one(&stand, 1, 2, 0, 1, &reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_WRONG_SESSION);
        }
        stand_close(&stand);
    });
    TEST(tap, "a push that is sent again while it waits is told to ask again", {
        struct protocol hard = {.kind = PROTOCOL_HARDSYNC};
        struct reply first, again, other;
        if (stand_open(&stand, tap, hard, 2)) {
            push_all(&stand.rig, (struct shove){1, 1, 0, 8, 0.1}, 1, stand.values, &first);
            push_all(&stand.rig, (struct shove){1, 1, 0, 8, 0.1}, 1, stand.values, &again);
            reply_wait(&again);
            CHECK_INT(tap, again.code, PROTO_REFUSAL_BUSY);
            CHECK(tap, !atomic_load(&first.done));
            push_all(&stand.rig, (struct shove){2, 1, 0, 8, 0.1}, 1, stand.values, &other);
            reply_wait(&first);
            CHECK_INT(tap, first.code, PROTO_REFUSAL_NONE);
            push_all(&stand.rig, (struct shove){1, 1, 0, 8, 0.1}, 1, stand.values, &again);
            reply_wait(&again);
            CHECK(tap, again.code == PROTO_REFUSAL_NONE && again.repeated);
            reply_wait(&other);
        }
        stand_close(&stand);
    });
}

struct refusal {
    const char *name;
    struct shove shove;
    struct proto_piece pieces[2];
    uint32_t count;
    long payload; // floats more or fewer than the pieces say
    enum proto_refusal code;
    uint64_t detail;
};

static void test_refusals(struct tap *tap) {
    const struct shove good = {1, 1, PROTO_UPDATE_GRADIENT, 4, 0.1};
    struct shove unnumbered = good, stranger = good, endless = good, negative = good,
                 growing = good;
    unnumbered.sequence = 0;
    stranger.session = 99;
    endless.rate = INFINITY;
    negative.rate = -0.1;
    growing.rate = 201; // times the decay of 0.01 of a layer
    const struct refusal table[] = {
        {"a shard beyond the model",
         good,
         {rig_piece(0, 0, 9, 1), rig_piece(3, 0, 9, 1)},
         2,
         0,
         PROTO_REFUSAL_WRONG_SHAPE,
         1},
        {"a piece beyond its shard",
         good,
         {rig_piece(2, 111900, 100, 1)},
         1,
         0,
         PROTO_REFUSAL_WRONG_SHAPE,
         0},
        {"an empty piece", good, {rig_piece(2, 0, 0, 1)}, 1, 0, PROTO_REFUSAL_WRONG_SHAPE, 0},
        {"no piece", good, {rig_piece(2, 0, 0, 1)}, 0, 0, PROTO_REFUSAL_WRONG_SHAPE, 0},
        {"pieces that overlap",
         good,
         {rig_piece(1, 0, 9, 1), rig_piece(1, 8, 9, 1)},
         2,
         0,
         PROTO_REFUSAL_WRONG_SHAPE,
         1},
        {"pieces that descend",
         good,
         {rig_piece(1, 0, 9, 1), rig_piece(0, 0, 9, 1)},
         2,
         0,
         PROTO_REFUSAL_WRONG_SHAPE,
         1},
        {"a payload too short", good, {rig_piece(1, 0, 9, 1)}, 1, -1, PROTO_REFUSAL_WRONG_SHAPE, 0},
        {"a payload too long", good, {rig_piece(1, 0, 9, 1)}, 1, 1, PROTO_REFUSAL_WRONG_SHAPE, 0},
        {"an older epoch",
         good,
         {rig_piece(0, 0, 9, 1), {1, 0, 9, RIG_EPOCH - 1, 1}},
         2,
         0,
         PROTO_REFUSAL_STALE_ROUTE,
         RIG_EPOCH},
        {"an epoch still unknown",
         good,
         {rig_piece(0, 0, 9, 1), {1, 0, 9, RIG_EPOCH + 1, 1}},
         2,
         0,
         PROTO_REFUSAL_BUSY,
         100},
        {"a version that never was",
         good,
         {rig_piece(0, 0, 9, 1), rig_piece(1, 0, 9, 2)},
         2,
         0,
         PROTO_REFUSAL_TOO_STALE,
         0},
        {"a session still unknown",
         stranger,
         {rig_piece(0, 0, 9, 1)},
         1,
         0,
         PROTO_REFUSAL_BUSY,
         100},
        {"a push without a number",
         unnumbered,
         {rig_piece(0, 0, 9, 1)},
         1,
         0,
         PROTO_REFUSAL_MALFORMED,
         0},
        {"a rate that is no number",
         endless,
         {rig_piece(0, 0, 9, 1)},
         1,
         0,
         PROTO_REFUSAL_BAD_SETTING,
         0},
        {"a negative rate", negative, {rig_piece(0, 0, 9, 1)}, 1, 0, PROTO_REFUSAL_BAD_SETTING, 0},
        {"a rate at which decay makes weights grow",
         growing,
         {rig_piece(0, 0, 9, 1)},
         1,
         0,
         PROTO_REFUSAL_BAD_SETTING,
         0},
    };
    struct stand stand;
    struct reply reply;
    if (!stand_open(&stand, tap, async, 1))
        return;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct refusal *r = &table[i];
        char name[100];
        snprintf(name, sizeof name, "refused, and nothing applied: %s", r->name);
        TEST(tap, name, {
            long floats = r->payload;
            for (uint32_t k = 0; k < r->count; k++)
                floats += r->pieces[k].count;
            struct buffer *payload = pool_take(&stand.rig.pool, (size_t)floats * sizeof(float));
            memset(payload->data, 0, payload->size);
            for (long k = 0; k < floats; k++)
                ((float *)payload->data)[k] = 1;
            struct proto_push push = {r->shove.session, r->shove.sequence, 0,
                                      r->shove.samples, r->shove.rate,     {r->pieces, r->count}};
            reply = (struct reply){0};
            ps_push(stand.rig.ps, &push, payload, reply_take, &reply);
            buffer_drop(payload);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, r->code);
            CHECK_INT(tap, reply.detail, r->detail);
            CHECK(tap, stand_untouched(&stand));
        });
    }
    TEST(tap, "refused, and nothing applied: a number that is not finite or huge, with its place", {
        const float bad[] = {NAN, INFINITY, -INFINITY, 3.4e38f, -1.1e12f};
        for (int i = 0; i < 5; i++) {
            size_t place = (size_t)PROTO_SHARD_FLOATS * 2 + 77;
            float was = stand.values[place];
            stand.values[place] = bad[i];
            push_all(&stand.rig, good, 1, stand.values, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NOT_FINITE);
            CHECK_INT(tap, reply.detail, place);
            CHECK(tap, stand_untouched(&stand));
            stand.values[place] = was;
        }
        struct ps_figures figures;
        ps_figures(stand.rig.ps, &figures);
        CHECK_INT(tap, figures.refused[PROTO_REFUSAL_NOT_FINITE], 5);
    });
    stand_close(&stand);
}

static void test_bad_factors(struct tap *tap) {
    struct stand stand;
    struct reply reply;
    if (!stand_open(&stand, tap, async, 1))
        return;
    const struct layer *layer = &stand.rig.model->layers[1];
    float *errors = numbers(700u * 3, 3, 1), *inputs = numbers(700u * 3, 4, 1);
    struct proto_piece pieces[RIG_PIECES];
    uint32_t count = layer_pieces(layer, pieces, 1);
    const struct shove shove = {1, 1, 0, 3, 0.1};
    TEST(tap, "factors that are not finite, or whose product may not be, are refused", {
        const float bad[] = {NAN, INFINITY, 3e38f, 9e11f};
        for (int i = 0; i < 4; i++) {
            inputs[333] = bad[i];
            push_factors(&stand.rig, layer, shove, pieces, count, errors, inputs, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NOT_FINITE);
            CHECK_INT(tap, reply.detail, i < 3 ? 3 * 700 + 333 : 0);
        }
        inputs[333] = 0;
        errors[42] = NAN;
        push_factors(&stand.rig, layer, shove, pieces, count, errors, inputs, &reply);
        reply_wait(&reply);
        CHECK_INT(tap, reply.detail, 42);
        errors[42] = 0;
        CHECK(tap, stand_untouched(&stand));
    });
    TEST(tap, "factors of no layer, or for another one's parameters, are refused", {
        struct proto_push_factors push = factors_of(layer, shove, pieces, count);
        struct proto_push_factors table[] = {push, push, push, push};
        const uint64_t piece[] = {0, 0, 0, 1};
        table[0].rows--;
        table[1].weights++;
        table[2].biases++;
        struct proto_piece beyond[2] = {pieces[0], pieces[1]};
        beyond[1].count++;
        table[3].pieces.at = beyond;
        for (int i = 0; i < 4; i++) {
            struct buffer *payload = factors_payload(&stand.rig, layer, 3, errors, inputs);
            reply = (struct reply){0};
            ps_push_factors(stand.rig.ps, &table[i], payload, reply_take, &reply);
            buffer_drop(payload);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_WRONG_SHAPE);
            CHECK_INT(tap, reply.detail, piece[i]);
        }
        CHECK(tap, stand_untouched(&stand));
    });
    free(errors);
    free(inputs);
    stand_close(&stand);
}

static void test_staleness_bound(struct tap *tap) {
    TEST(tap, "max_staleness: a push that is staler is refused", {
        struct stand stand;
        struct reply reply;
        struct protocol bounded = {.max_staleness = 2};
        if (stand_open(&stand, tap, bounded, 1)) {
            for (uint64_t i = 1; i <= 3; i++)
                CHECK_INT(tap, push_one(&stand, 1, i, 0, 1, &reply), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, push_one(&stand, 1, 4, 0, 1, &reply), PROTO_REFUSAL_TOO_STALE);
            CHECK_INT(tap, reply.detail, 2);
            CHECK_INT(tap, push_one(&stand, 1, 5, 0, 2, &reply), PROTO_REFUSAL_NONE);
        }
        stand_close(&stand);
    });
    TEST(tap, "max_staleness: a turn without samples counts, however old its weights are", {
        struct stand stand;
        struct reply reply;
        struct reply other;
        struct protocol bounded = {.kind = PROTOCOL_SOFTSYNC, .n = 1, .max_staleness = 1};
        if (stand_open(&stand, tap, bounded, 2)) {
            for (uint64_t i = 1; i <= 3; i++) {
                const struct shove turn = {1, i, 0, 8, 0.1};
                push_all(&stand.rig, turn, i, stand.values, &reply);
                push_all(&stand.rig, (struct shove){2, i, 0, 0, 0.1}, 1, NULL, &other);
                reply_wait(&other);
                CHECK_INT(tap, other.code, PROTO_REFUSAL_NONE);
                reply_wait(&reply);
                CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
            }
        }
        stand_close(&stand);
    });
    TEST(tap, "hardsync: pushes of other versions, second turns and deltas are refused", {
        struct stand stand;
        struct reply first, reply;
        struct protocol hard = {.kind = PROTOCOL_HARDSYNC};
        if (stand_open(&stand, tap, hard, 2)) {
            push_all(&stand.rig, (struct shove){1, 1, 0, 8, 0.1}, 1, stand.values, &first);
            push_all(&stand.rig, (struct shove){1, 2, 0, 8, 0.1}, 1, stand.values, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_TOO_STALE);
            push_all(&stand.rig, (struct shove){2, 1, 0, 8, 0.1}, 1, stand.values, &reply);
            reply_wait(&reply);
            reply_wait(&first);
            push_all(&stand.rig, (struct shove){2, 2, 0, 8, 0.1}, 1, stand.values, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_TOO_STALE);
            CHECK_INT(tap, push_one(&stand, 2, 3, 0, 2, &reply), PROTO_REFUSAL_BAD_SETTING);
        }
        stand_close(&stand);
    });
}

// --- who is there, what is held ---------------------------------------------------------

static void test_members(struct tap *tap) {
    struct stand stand;
    struct reply reply[3];
    struct protocol hard = {.kind = PROTOCOL_HARDSYNC};
    TEST(tap, "hardsync goes on without a worker that is gone, and drops what it had sent", {
        if (stand_open(&stand, tap, hard, 3)) {
            const uint64_t left[] = {1, 3};
            push_all(&stand.rig, (struct shove){1, 1, 0, 8, 0.1}, 1, stand.values, &reply[0]);
            push_all(&stand.rig, (struct shove){2, 1, 0, 8, 9.9}, 1, stand.values, &reply[1]);
            rig_wait_queued(&stand.rig, 2 * RIG_SHARDS);
            ps_members(stand.rig.ps, left, NULL, 2, NULL);
            reply_wait(&reply[1]);
            CHECK_INT(tap, reply[1].code, PROTO_REFUSAL_WRONG_SESSION);
            CHECK(tap, !atomic_load(&reply[0].done));
            push_all(&stand.rig, (struct shove){3, 1, 0, 8, 0.1}, 1, stand.values, &reply[2]);
            reply_wait(&reply[0]);
            reply_wait(&reply[2]);
            CHECK_INT(tap, reply[0].code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, reply[0].versions[2], 2);
            float *now = mem_floats(stand.rig.n);
            rig_read(&stand.rig, PROTO_QUANTITY_WEIGHT, now, NULL);
            float step = stand.values[0] + 0.001f * stand.weights[0];
            CHECK_NEAR(tap, now[0], stand.weights[0] - 0.05f * step, 1e-6);
            free(now);
            push_all(&stand.rig, (struct shove){2, 2, 0, 8, 0.1}, 2, stand.values, &reply[1]);
            reply_wait(&reply[1]);
            CHECK_INT(tap, reply[1].code, PROTO_REFUSAL_WRONG_SESSION);
        }
        stand_close(&stand);
    });
    TEST(tap, "hardsync updates at once when only the one that is gone was waited for", {
        if (stand_open(&stand, tap, hard, 3)) {
            const uint64_t left[] = {1, 2};
            push_all(&stand.rig, (struct shove){1, 1, 0, 8, 0.1}, 1, stand.values, &reply[0]);
            push_all(&stand.rig, (struct shove){2, 1, 0, 8, 0.1}, 1, stand.values, &reply[1]);
            ps_members(stand.rig.ps, left, NULL, 2, NULL);
            reply_wait(&reply[0]);
            reply_wait(&reply[1]);
            CHECK_INT(tap, reply[1].code, PROTO_REFUSAL_NONE);
            const uint64_t more[] = {1, 2, 4}; // and waits for those who come
            ps_members(stand.rig.ps, more, NULL, 3, NULL);
            push_all(&stand.rig, (struct shove){1, 2, 0, 8, 0.1}, 2, stand.values, &reply[0]);
            push_all(&stand.rig, (struct shove){2, 2, 0, 8, 0.1}, 2, stand.values, &reply[1]);
            push_all(&stand.rig, (struct shove){4, 1, 0, 0, 0.1}, 1, NULL, &reply[2]);
            reply_wait(&reply[2]);
            CHECK_INT(tap, reply[2].code, PROTO_REFUSAL_TOO_STALE);
            CHECK(tap, !atomic_load(&reply[0].done) && !atomic_load(&reply[1].done));
            push_all(&stand.rig, (struct shove){4, 2, 0, 8, 0.1}, 2, stand.values, &reply[2]);
            for (int i = 0; i < 3; i++) {
                reply_wait(&reply[i]);
                CHECK_INT(tap, reply[i].code, PROTO_REFUSAL_NONE);
            }
        }
        stand_close(&stand);
    });
    TEST(tap, "when the protocol becomes async, what was collected is applied", {
        if (stand_open(&stand, tap, hard, 3)) {
            push_all(&stand.rig, (struct shove){1, 1, 0, 8, 0.1}, 1, stand.values, &reply[0]);
            push_all(&stand.rig, (struct shove){2, 1, 0, 8, 0.1}, 1, stand.values, &reply[1]);
            rig_wait_queued(&stand.rig, 2 * RIG_SHARDS);
            ps_settings(stand.rig.ps, &rules[1], &async, true, NULL);
            for (int i = 0; i < 2; i++) {
                reply_wait(&reply[i]);
                CHECK_INT(tap, reply[i].code, PROTO_REFUSAL_NONE);
            }
            uint64_t versions[RIG_SHARDS] = {0};
            float *now = mem_floats(stand.rig.n);
            rig_read(&stand.rig, PROTO_QUANTITY_WEIGHT, now, versions);
            CHECK_INT(tap, versions[1], 3);
            free(now);
            CHECK_INT(tap, ps_settings(stand.rig.ps, &rules[0], &async, true, NULL), STATUS_USAGE);
        }
        stand_close(&stand);
    });
}

static void test_pulls(struct tap *tap) {
    struct stand stand;
    struct reply pull, push;
    TEST(tap, "a pull leaves out what the asker has", {
        if (stand_open(&stand, tap, async, 1)) {
            push_one(&stand, 1, 1, 1, 1, &push);
            struct proto_piece pieces[] = {rig_piece(0, 9, 100, 1), rig_piece(1, 9, 100, 1),
                                           rig_piece(2, 9, 100, 0)};
            rig_pull_begin(&stand.rig, 1, PROTO_QUANTITY_WEIGHT, 0, pieces, 3, &pull);
            reply_wait(&pull);
            CHECK_INT(tap, pull.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, pull.counts[0], 0);
            CHECK_INT(tap, pull.counts[1], 100);
            CHECK_INT(tap, pull.counts[2], 100);
            CHECK_INT(tap, pull.versions[1], 2);
            CHECK_INT(tap, pull.parts, 2);
            CHECK_INT(tap, pull.part[0].size, 400);
            struct proto_piece all[RIG_SHARDS];
            CHECK_INT(tap, ps_versions(stand.rig.ps, 1, 9, all), 2);
            CHECK_INT(tap, all[0].shard, 1);
            CHECK_INT(tap, all[0].version, 2);
            CHECK_INT(tap, all[1].count, rig_floats(&stand.rig, 2));
        }
        stand_close(&stand);
    });
    TEST(tap, "a pull of a least version waits for it in every shard", {
        if (stand_open(&stand, tap, async, 1)) {
            struct proto_piece pieces[] = {rig_piece(0, 9, 100, 1), rig_piece(2, 9, 100, 1)};
            rig_pull_begin(&stand.rig, 1, PROTO_QUANTITY_WEIGHT, 2, pieces, 2, &pull);
            push_one(&stand, 1, 1, 0, 1, &push);
            CHECK(tap, !atomic_load(&pull.done));
            push_one(&stand, 1, 2, 2, 1, &push);
            reply_wait(&pull);
            CHECK_INT(tap, pull.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, pull.versions[0], 2);
            CHECK_INT(tap, pull.versions[1], 2);
            CHECK_INT(tap, pull.parts, 2);
        }
        stand_close(&stand);
    });
    TEST(tap, "all who wait for a shard are answered when it has what each waits for", {
        struct reply waiting[3];
        const uint64_t least[] = {2, 3, 2};
        if (stand_open(&stand, tap, async, 1)) {
            struct proto_piece piece = rig_piece(0, 9, 100, 1);
            for (int i = 0; i < 3; i++)
                rig_pull_begin(&stand.rig, 1, PROTO_QUANTITY_WEIGHT, least[i], &piece, 1,
                               &waiting[i]);
            push_one(&stand, 1, 1, 0, 1, &push);
            reply_wait(&waiting[0]);
            reply_wait(&waiting[2]);
            CHECK(tap, !atomic_load(&waiting[1].done));
            push_one(&stand, 1, 2, 0, 2, &push);
            reply_wait(&waiting[1]);
            for (int i = 0; i < 3; i++)
                CHECK_INT(tap, waiting[i].code, PROTO_REFUSAL_NONE);
        }
        stand_close(&stand);
    });
    TEST(tap, "updates are counted, each shard's; a store is none, and takes the place of all", {
        struct ps_figures before;
        struct ps_figures after;
        if (stand_open(&stand, tap, async, 1)) {
            uint64_t versions[RIG_SHARDS] = {0};
            float *now = mem_floats(stand.rig.n);
            ps_figures(stand.rig.ps, &before);
            push_one(&stand, 1, 1, 0, 1, &push);
            push_one(&stand, 1, 2, 0, 2, &push);
            push_one(&stand, 1, 3, 1, 1, &push);
            ps_figures(stand.rig.ps, &after);
            CHECK_INT(tap, after.updates - before.updates, 3);
            CHECK_INT(tap, rig_store(&stand.rig, PROTO_QUANTITY_WEIGHT, 9, stand.values), 0);
            rig_read(&stand.rig, PROTO_QUANTITY_WEIGHT, now, versions);
            CHECK(tap, !memcmp(now, stand.values, stand.rig.n * sizeof *now));
            for (int i = 0; i < RIG_SHARDS; i++)
                CHECK_INT(tap, versions[i], 9);
            ps_figures(stand.rig.ps, &after);
            CHECK_INT(tap, after.updates - before.updates, 3);
            free(now);
        }
        stand_close(&stand);
    });
    TEST(tap, "who waits is told when its session, its shard or the server ends", {
        const enum proto_refusal codes[] = {PROTO_REFUSAL_WRONG_SESSION, PROTO_REFUSAL_STALE_ROUTE,
                                            PROTO_REFUSAL_STOPPING};
        for (int i = 0; i < 3; i++) {
            bool open = stand_open(&stand, tap, (struct protocol){.kind = PROTOCOL_HARDSYNC}, 2);
            struct proto_piece piece = rig_piece(0, 9, 100, 1);
            rig_pull_begin(&stand.rig, 1, PROTO_QUANTITY_WEIGHT, 5, &piece, 1, &pull);
            push_all(&stand.rig, (struct shove){1, 1, 0, 8, 0.1}, 1, stand.values, &push);
            rig_wait_queued(&stand.rig, RIG_SHARDS);
            if (open && i == 0)
                ps_members(stand.rig.ps, NULL, NULL, 0, NULL);
            if (open && i == 1)
                rig_route(&stand.rig, RIG_EPOCH + 1, RIG_MEMBER + 1);
            if (i < 2) {
                reply_wait(&pull);
                reply_wait(&push);
            }
            stand_close(&stand);
            CHECK(tap, atomic_load(&pull.done) && atomic_load(&push.done));
            CHECK_INT(tap, pull.code, codes[i]);
            CHECK_INT(tap, push.code, i == 1 ? PROTO_REFUSAL_NOT_HERE : codes[i]);
        }
    });
    TEST(tap, "the state of the update rule is pulled and stored like weights", {
        float *state = numbers(700000, 9, 1), *now = mem_floats(700000);
        struct rig rig;
        if (rig_open_empty(&rig, tap, rules[1], async, 1, 1)) {
            CHECK_INT(tap, rig_store(&rig, PROTO_QUANTITY_STATE, 5, state), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, rig_read(&rig, PROTO_QUANTITY_STATE, now, NULL),
                      PROTO_REFUSAL_NOT_READY);
            CHECK_INT(tap, rig_store(&rig, PROTO_QUANTITY_WEIGHT, 5, state), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, rig_read(&rig, PROTO_QUANTITY_STATE, now, NULL), PROTO_REFUSAL_NONE);
            CHECK(tap, memcmp(now, state, rig.n * sizeof(float)) == 0);
        }
        rig_close(&rig);
        if (rig_open(&rig, tap, rules[0], async, 1, 1, state))
            CHECK_INT(tap, rig_read(&rig, PROTO_QUANTITY_STATE, now, NULL),
                      PROTO_REFUSAL_BAD_SETTING);
        rig_close(&rig);
        free(state);
        free(now);
    });
}

static void test_routes(struct tap *tap) {
    struct stand stand;
    struct reply reply;
    TEST(tap, "shards of other servers are not here, and those that come back are", {
        if (stand_open(&stand, tap, async, 1)) {
            struct proto_piece piece = rig_piece(0, 5, 1000, 1);
            struct shove shove = {1, 1, PROTO_UPDATE_DELTA, 1, 0};
            piece.epoch = RIG_EPOCH + 1;
            rig_route(&stand.rig, RIG_EPOCH + 1, RIG_MEMBER + 1);
            rig_push(&stand.rig, shove, &piece, 1, stand.values, &reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NOT_HERE);
            rig_route(&stand.rig, RIG_EPOCH + 2, RIG_MEMBER);
            rig_push(&stand.rig, shove, &piece, 1, stand.values, &reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_STALE_ROUTE);
            CHECK_INT(tap, reply.detail, RIG_EPOCH + 2);
            piece.epoch = RIG_EPOCH + 2;
            rig_push(&stand.rig, shove, &piece, 1, stand.values, &reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
        }
        stand_close(&stand);
    });
    TEST(tap, "a shard has weights when all of its floats were stored", {
        struct rig rig;
        float *values = numbers(700000, 1, 1);
        if (rig_open_empty(&rig, tap, rules[0], async, 1, 1)) {
            struct proto_piece halves[] = {rig_piece(2, 0, 60000, 3), rig_piece(2, 60000, 0, 3)};
            struct proto_piece pieces[1];
            halves[1].count = (uint32_t)rig_floats(&rig, 2) - 60000;
            for (int i = 0; i < 3; i++) { // the first one twice
                struct proto_store store = {PROTO_QUANTITY_WEIGHT, {&halves[i / 2], 1}};
                struct buffer *payload = rig_payload(&rig, &halves[i / 2], 1, values);
                CHECK_INT(tap, ps_versions(rig.ps, 0, 3, pieces), 0);
                reply = (struct reply){0};
                ps_store(rig.ps, &store, payload, reply_take, &reply);
                buffer_drop(payload);
                reply_wait(&reply);
                CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
            }
            CHECK_INT(tap, ps_versions(rig.ps, 0, 3, pieces), 1);
            CHECK_INT(tap, pieces[0].shard, 2);
            CHECK_INT(tap, pieces[0].version, 3);
            CHECK_INT(tap, rig_store(&rig, PROTO_QUANTITY_WEIGHT, 0, values),
                      PROTO_REFUSAL_WRONG_SHAPE);
        }
        rig_close(&rig);
        free(values);
    });
}

// --- words, memory ----------------------------------------------------------------------

static void test_words(struct tap *tap) {
    TEST(tap, "protocols are read and written, and nothing else is one; what they make of rates", {
        const char *good[] = {"async", "hardsync", "softsync:1", "softsync:30"};
        const char *bad[] = {"",           "Async",       "softsync",    "softsync:",
                             "softsync:0", "softsync:-1", "softsync:2x", "hardsync:2"};
        struct protocol protocol = {.max_staleness = 3};
        char text[PROTOCOL_TEXT];
        struct error err = {0};
        for (int i = 0; i < 4; i++) {
            CHECK_INT(tap, protocol_parse(&protocol, good[i], &err), STATUS_OK);
            protocol_name(&protocol, text);
            CHECK(tap, strcmp(text, good[i]) == 0);
        }
        CHECK_INT(tap, protocol.n, 30);
        CHECK_INT(tap, protocol.max_staleness, 3);
        for (int i = 0; i < 8; i++)
            CHECK_INT(tap, protocol_parse(&protocol, bad[i], &err), STATUS_USAGE);
        CHECK_INT(tap, protocol_turns(&protocol, 30), 1);
        protocol.reference_batch = 16;
        CHECK_NEAR(tap, protocol_update_factor(&protocol, 32), sqrt(60), 1e-9);
        CHECK_NEAR(tap, protocol_push_factor(&protocol, 16, 4), 1, 0);
        protocol.kind = PROTOCOL_HARDSYNC;
        CHECK_NEAR(tap, protocol_update_factor(&protocol, 32), sqrt(2), 1e-9);
        protocol.kind = PROTOCOL_ASYNC;
        CHECK_NEAR(tap, protocol_update_factor(&protocol, 32), 1, 0);
        CHECK_NEAR(tap, protocol_push_factor(&protocol, 16, 4), 0.5, 1e-9);
        CHECK_NEAR(tap, protocol_push_factor(&protocol, 64, 1), 2, 1e-9);
        CHECK_NEAR(tap, protocol_push_factor(&protocol, 16, 0), 1, 1e-9);
        protocol.reference_batch = 0;
        CHECK_NEAR(tap, protocol_push_factor(&protocol, 16, 4), 1, 0);
        protocol.kind = PROTOCOL_SOFTSYNC;
        protocol.n = 2;
        CHECK_INT(tap, protocol_turns(&protocol, 31), 15);
        CHECK_INT(tap, protocol_turns(&protocol, 1), 1);
    });
}

static void test_memory(struct tap *tap) {
    TEST(tap, "a server that runs out of memory does not open, and loses nothing", {
        struct model *model;
        struct ps *ps = NULL;
        int status = STATUS_IO;
        model_parse(&model, "rig.net", rig_text, NULL, 0, NULL);
        struct ps_options options = {.model = model,
                                     .kernels = kernels_best(),
                                     .optimizer = rules[1],
                                     .protocol = async,
                                     .threads = 2};
        for (int n = 0; HEAP_FAILS && status != STATUS_OK && n < 100; n++) {
            long before = heap_live();
            heap_fail_after(n);
            status = ps_open(&ps, &options, NULL);
            heap_fail_after(-1);
            if (status != STATUS_OK)
                CHECK_INT(tap, heap_live(), before);
        }
        if (HEAP_FAILS)
            CHECK_INT(tap, status, STATUS_OK);
        ps_close(ps);
        model_free(model);
        ps_close(NULL);
    });
}

int main(void) {
    struct tap tap = {0};
    test_words(&tap);
    test_async(&tap);
    test_factors(&tap);
    test_batches(&tap);
    test_hardsync(&tap);
    test_replicas(&tap);
    test_replica_staleness(&tap);
    test_replica_rule(&tap);
    test_turns(&tap);
    test_softsync(&tap);
    test_once(&tap);
    test_refusals(&tap);
    test_bad_factors(&tap);
    test_staleness_bound(&tap);
    test_members(&tap);
    test_pulls(&tap);
    test_routes(&tap);
    test_memory(&tap);
    return tap_done(&tap);
}
