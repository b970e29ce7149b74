// What a parameter server's core takes, up to the last value, and what it refuses from the next
// one on.
#include <float.h>

#include "../helper/ps_stand.h"
#include "../helper/tap.h"
#include "core/error.h"

enum { K = 3 }; // samples of factors

// --- rates --------------------------------------------------------------------------------

static enum proto_refusal push_at_rate(struct stand *stand, uint64_t sequence,
                                       enum proto_update kind, uint32_t samples, double rate) {
    const struct proto_piece piece = rig_piece(0, 0, 1, 1);
    struct reply reply;
    return rig_push(&stand->rig, (struct shove){1, sequence, kind, samples, rate}, &piece, 1,
                    samples ? stand->values : NULL, &reply);
}

static void test_rates(struct tap *tap) {
    struct stand stand;
    TEST(tap, "a rate is from 0 to 1e9", {
        if (stand_open(&stand, tap, async, 1)) {
            const enum proto_update delta = PROTO_UPDATE_DELTA;
            CHECK_INT(tap, push_at_rate(&stand, 1, delta, 1, 0), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, push_at_rate(&stand, 2, delta, 1, 1e9), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, push_at_rate(&stand, 3, delta, 1, 1.1e9), PROTO_REFUSAL_BAD_SETTING);
            CHECK_INT(tap, push_at_rate(&stand, 3, delta, 1, NAN), PROTO_REFUSAL_BAD_SETTING);
        }
        stand_close(&stand);
    });
    TEST(tap, "decay must not make weights grow: its product with the rate is at most 2", {
        if (stand_open(&stand, tap, async, 1)) {
            const enum proto_update gradient = PROTO_UPDATE_GRADIENT;
            CHECK_INT(tap, push_at_rate(&stand, 1, gradient, 1, 200), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, push_at_rate(&stand, 2, gradient, 1, 201), PROTO_REFUSAL_BAD_SETTING);
            CHECK_INT(tap, push_at_rate(&stand, 2, gradient, 0, 201), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, push_at_rate(&stand, 3, PROTO_UPDATE_DELTA, 1, 201), PROTO_REFUSAL_NONE);
        }
        stand_close(&stand);
    });
    TEST(tap, "also when hardsync makes the rate larger, by sqrt(lambda mu / B) (Rudra 3.2)", {
        struct protocol hard = {.kind = PROTOCOL_HARDSYNC, .reference_batch = 1};
        struct reply reply, good;
        if (stand_open(&stand, tap, hard, 4)) { // 4 x 16 samples: 8 times
            push_all(&stand.rig, (struct shove){1, 1, 0, 16, 25.1}, 1, stand.values, &reply);
            reply_wait(&reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_BAD_SETTING);
            push_all(&stand.rig, (struct shove){1, 1, 0, 16, 24.9}, 1, stand.values, &good);
            rig_wait_queued(&stand.rig, RIG_SHARDS);
        }
        stand_close(&stand);
    });
}

// --- numbers ------------------------------------------------------------------------------

static void test_numbers(struct tap *tap) {
    struct stand stand;
    struct reply reply;
    TEST(tap, "the largest number that may be pushed is 1e12", {
        if (stand_open(&stand, tap, async, 1)) {
            const struct proto_piece piece = rig_piece(1, 0, 9, 1);
            const struct shove shove = {1, 1, PROTO_UPDATE_DELTA, 1, 0};
            float *last = &stand.values[PROTO_SHARD_FLOATS + 8];
            *last = nextafterf(-PS_LARGEST, -INFINITY);
            rig_push(&stand.rig, shove, &piece, 1, stand.values, &reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NOT_FINITE);
            CHECK_INT(tap, reply.detail, 8);
            *last = -PS_LARGEST;
            CHECK_INT(tap, rig_push(&stand.rig, shove, &piece, 1, stand.values, &reply),
                      PROTO_REFUSAL_NONE);
        }
        stand_close(&stand);
    });
    TEST(tap, "what is stored need only be finite", {
        if (stand_open(&stand, tap, async, 1)) {
            stand.values[PROTO_SHARD_FLOATS + 8] = FLT_MAX;
            CHECK_INT(tap, rig_store(&stand.rig, PROTO_QUANTITY_WEIGHT, 2, stand.values),
                      PROTO_REFUSAL_NONE);
            stand.values[PROTO_SHARD_FLOATS + 8] = -INFINITY;
            CHECK_INT(tap, rig_store(&stand.rig, PROTO_QUANTITY_WEIGHT, 3, stand.values),
                      PROTO_REFUSAL_NOT_FINITE);
            stand.values[PROTO_SHARD_FLOATS + 8] = NAN;
            CHECK_INT(tap, rig_store(&stand.rig, PROTO_QUANTITY_WEIGHT, 3, stand.values),
                      PROTO_REFUSAL_NOT_FINITE);
            uint64_t versions[RIG_SHARDS] = {0};
            float *now = mem_floats(stand.rig.n);
            rig_read(&stand.rig, PROTO_QUANTITY_WEIGHT, now, versions);
            CHECK_INT(tap, versions[1], 2);
            CHECK(tap, now[PROTO_SHARD_FLOATS + 8] == FLT_MAX);
            free(now);
        }
        stand_close(&stand);
    });
}

// --- factors ------------------------------------------------------------------------------

// Those of the second layer, which lies in two shards.
struct factor_case {
    struct stand stand;
    const struct layer *layer;
    float *errors, *inputs;
    struct proto_piece pieces[RIG_PIECES];
    uint32_t count;
};

static bool factors_open(struct factor_case *c, struct tap *tap) {
    if (!stand_open(&c->stand, tap, async, 1))
        return false;
    c->layer = &c->stand.rig.model->layers[1];
    c->errors = mem_floats(700 * K);
    c->inputs = mem_floats(700 * K);
    c->count = layer_pieces(c->layer, c->pieces, 1);
    return true;
}

static void factors_close(struct factor_case *c) {
    free(c->errors);
    free(c->inputs);
    stand_close(&c->stand);
}

static enum proto_refusal push_case(struct factor_case *c, uint64_t sequence, uint32_t samples,
                                    struct reply *reply) {
    push_factors(&c->stand.rig, c->layer, (struct shove){1, sequence, 0, samples, 0.1}, c->pieces,
                 c->count, c->errors, c->inputs, reply);
    reply_wait(reply);
    return reply->code;
}

static void test_factor_numbers(struct tap *tap) {
    struct factor_case c;
    struct reply reply;
    TEST(tap, "a number of factors that is none is found wherever it stands", {
        if (factors_open(&c, tap)) {
            size_t errors = K * (size_t)c.layer->weights.dims[0];
            size_t inputs = K * (size_t)c.layer->weights.dims[1];
            for (size_t i = 0; i < errors + inputs; i++) {
                float *at = i < errors ? &c.errors[i] : &c.inputs[i - errors];
                *at = NAN;
                push_case(&c, 1, K, &reply);
                if (reply.code != PROTO_REFUSAL_NOT_FINITE || reply.detail != i)
                    FAIL(tap, "%zu: %d, %llu", i, reply.code, (unsigned long long)reply.detail);
                *at = 0;
            }
            CHECK(tap, stand_untouched(&c.stand));
        }
        factors_close(&c);
    });
    TEST(tap, "no sum of their products may be above 1e12, nor one of the errors for biases", {
        const struct {
            float error, input;
            uint32_t samples;
            enum proto_refusal code;
        } table[] = {
            {5e11f, 0, 1, PROTO_REFUSAL_NONE},
            {5e11f, 0, 3, PROTO_REFUSAL_NOT_FINITE}, // biases
            {-5e11f, 2, 1, PROTO_REFUSAL_NOT_FINITE},
            {1, -5e11f, 1, PROTO_REFUSAL_NONE},
            {1, -5e11f, 3, PROTO_REFUSAL_NOT_FINITE},
            {1, 3e11f, 3, PROTO_REFUSAL_NONE},
            {0, 1e12f, 3, PROTO_REFUSAL_NONE},
        };
        if (factors_open(&c, tap)) {
            for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
                c.errors[7] = table[i].error;
                c.inputs[9] = table[i].input;
                if (push_case(&c, i + 1, table[i].samples, &reply) != table[i].code)
                    FAIL(tap, "%g x %g of %u: %d", (double)table[i].error, (double)table[i].input,
                         table[i].samples, reply.code);
            }
        }
        factors_close(&c);
    });
}

// --- factors of pieces --------------------------------------------------------------------

// The first layer, of which shard 0 is a part, and K samples of it.
struct first_layer {
    const struct layer *layer;
    float *errors, *inputs, *product;
};

static struct first_layer first_layer_of(const struct stand *stand) {
    const struct layer *layer = &stand->rig.model->layers[1];
    size_t rows = (size_t)layer->weights.dims[0], columns = (size_t)layer->weights.dims[1];
    struct first_layer first = {layer, numbers(K * rows, 3, 0.1), numbers(K * columns, 4, 1),
                                mem_floats(stand->rig.n)};
    for (size_t i = 0; i < rows * columns; i++) {
        double sum = 0;
        for (size_t k = 0; k < K; k++)
            sum += (double)first.errors[k * rows + i / columns] *
                   (double)first.inputs[k * columns + i % columns];
        first.product[i] = (float)sum;
    }
    return first;
}

static void first_layer_free(struct first_layer *first) {
    free(first->errors);
    free(first->inputs);
    free(first->product);
}

static void test_factor_pieces(struct tap *tap) {
    struct stand stand;
    struct reply reply;
    TEST(tap, "factors for a piece of their layer change that piece, and nothing around it", {
        static const uint32_t places[][2] = {
            {0, 1000}, {1205, PROTO_SHARD_FLOATS - 1205}, {0, 200000}, {400, 4000}};
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            const uint32_t begin = places[i][0], end = begin + places[i][1];
            const struct proto_piece piece = rig_piece(0, begin, end - begin, 1);
            if (stand_open(&stand, tap, async, 1)) {
                struct first_layer first = first_layer_of(&stand);
                float *now = mem_floats(stand.rig.n);
                push_factors(&stand.rig, first.layer, (struct shove){1, 1, 0, K, 0.1}, &piece, 1,
                             first.errors, first.inputs, &reply);
                reply_wait(&reply);
                CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
                rig_read(&stand.rig, PROTO_QUANTITY_WEIGHT, now, NULL);
                CHECK(tap, !memcmp(now, stand.weights, begin * sizeof(float)));
                CHECK(tap,
                      !memcmp(now + end, stand.weights + end, (stand.rig.n - end) * sizeof(float)));
                int same = 0;
                for (uint32_t k = begin; k < end; k++)
                    same += now[k] == stand.weights[k];
                CHECK(tap, same < 10);
                free(now);
                first_layer_free(&first);
            }
            stand_close(&stand);
        }
    });
}

// Shard 0 after an update by the mean of one worker's factors, or their product, and of another's
// gradient in one piece or more.
static float *mean_of_two(struct tap *tap, bool product, uint32_t cut) {
    static const struct protocol hard = {.kind = PROTOCOL_HARDSYNC};
    struct stand stand;
    struct reply replies[2];
    float *now = NULL;
    if (stand_open(&stand, tap, hard, 2)) {
        struct first_layer first = first_layer_of(&stand);
        const struct shove shove = {1, 1, 0, K, 0.1};
        const struct shove other = {2, 1, 0, 2 * K, 0.1};
        const struct proto_piece whole = rig_shard(&stand.rig, 0, 1);
        const struct proto_piece pieces[] = {rig_piece(0, 0, cut, 1),
                                             rig_piece(0, cut, whole.count - cut, 1)};
        if (product)
            rig_push_begin(&stand.rig, shove, &whole, 1, first.product, &replies[0]);
        else
            push_factors(&stand.rig, first.layer, shove, &whole, 1, first.errors, first.inputs,
                         &replies[0]);
        rig_wait_queued(&stand.rig, 1);
        rig_push_begin(&stand.rig, other, cut ? pieces : &whole, cut ? 2 : 1, stand.values,
                       &replies[1]);
        for (int i = 0; i < 2; i++) {
            reply_wait(&replies[i]);
            CHECK_INT(tap, replies[i].code, PROTO_REFUSAL_NONE);
        }
        now = mem_floats(stand.rig.n);
        rig_read(&stand.rig, PROTO_QUANTITY_WEIGHT, now, NULL);
        first_layer_free(&first);
    }
    stand_close(&stand);
    return now;
}

static void test_mean_of_pieces(struct tap *tap) {
    TEST(tap, "a mean is the same of factors and of their product, of a gradient and of its pieces",
         {
             const uint32_t cuts[] = {0, 400, 5000, 100001};
             float *wanted = mean_of_two(tap, true, 0);
             for (int i = 0; i < 4; i++) {
                 float *now = mean_of_two(tap, false, cuts[i]);
                 float most = 0;
                 for (size_t k = 0; now && wanted && k < PROTO_SHARD_FLOATS; k++)
                     most = fmaxf(most, fabsf(now[k] - wanted[k]));
                 CHECK_NEAR(tap, most, 0, 1e-6);
                 free(now);
             }
             free(wanted);
         });
}

static enum proto_refusal push_message(struct factor_case *c, const struct proto_push_factors *push,
                                       size_t bytes_fewer, struct reply *reply) {
    struct buffer *payload = factors_payload(&c->stand.rig, c->layer, K, c->errors, c->inputs);
    payload->size -= bytes_fewer;
    *reply = (struct reply){0};
    ps_push_factors(c->stand.rig.ps, push, payload, reply_take, reply);
    buffer_drop(payload);
    reply_wait(reply);
    return reply->code;
}

static void test_factor_forms(struct tap *tap) {
    struct factor_case c;
    struct reply reply;
    TEST(tap, "factors of other columns, of a short payload, or for what lies before their layer", {
        if (factors_open(&c, tap)) {
            const struct shove shove = {1, 1, 0, K, 0.1};
            struct proto_push_factors push = factors_of(c.layer, shove, c.pieces, c.count);
            CHECK_INT(tap, push_message(&c, &push, 4, &reply), PROTO_REFUSAL_WRONG_SHAPE);
            push.columns--;
            CHECK_INT(tap, push_message(&c, &push, 4 * K, &reply), PROTO_REFUSAL_WRONG_SHAPE);
            push.columns++;
            c.pieces[0].offset--;
            c.pieces[0].count++;
            CHECK_INT(tap, push_message(&c, &push, 0, &reply), PROTO_REFUSAL_WRONG_SHAPE);
            CHECK_INT(tap, reply.detail, 0);
            CHECK(tap, stand_untouched(&c.stand));
        }
        factors_close(&c);
    });
    TEST(tap, "factors without biases change weights, and no piece may be of biases", {
        if (factors_open(&c, tap)) {
            const struct shove shove = {1, 1, 0, K, 0.1};
            struct proto_push_factors push = factors_of(c.layer, shove, c.pieces, c.count);
            struct proto_piece *last = &c.pieces[c.count - 1];
            float *now = mem_floats(c.stand.rig.n);
            c.errors[0] = c.inputs[0] = 1;
            push.biases = PROTO_NOWHERE;
            CHECK_INT(tap, push_message(&c, &push, 0, &reply), PROTO_REFUSAL_WRONG_SHAPE);
            CHECK_INT(tap, reply.detail, c.count - 1);
            last->count -= (uint32_t)c.layer->biases.count;
            CHECK_INT(tap, push_message(&c, &push, 0, &reply), PROTO_REFUSAL_NONE);
            rig_read(&c.stand.rig, PROTO_QUANTITY_WEIGHT, now, NULL);
            CHECK(tap, now[c.layer->weights.offset] != c.stand.weights[c.layer->weights.offset]);
            CHECK(tap,
                  !memcmp(now + c.layer->biases.offset, c.stand.weights + c.layer->biases.offset,
                          c.layer->biases.count * sizeof *now));
            free(now);
        }
        factors_close(&c);
    });
    TEST(tap, "only a matrix has factors: not the weights of a convolution", {
        static const char text[] = "input 2x8x8\nconv maps=4 kernel=3\nsoftmax units=2\n";
        struct model *model;
        struct ps *ps;
        struct error err = {0};
        if (model_parse(&model, "conv.net", text, NULL, 0, &err))
            FAIL(tap, "%s", err.text);
        const struct ps_options options = {.model = model,
                                           .kernels = kernels_best(),
                                           .optimizer = rules[0],
                                           .protocol = async,
                                           .threads = 1};
        const uint64_t session = 1;
        const struct proto_piece piece = rig_piece(0, 0, 1, 1);
        struct proto_push_factors push =
            factors_of(&model->layers[1], (struct shove){1, 1, 0, 0, 0.1}, &piece, 1);
        CHECK_INT(tap, ps_open(&ps, &options, &err), STATUS_OK);
        CHECK_INT(tap, ps_members(ps, &session, NULL, 1, &err), STATUS_OK);
        reply = (struct reply){0};
        ps_push_factors(ps, &push, NULL, reply_take, &reply);
        reply_wait(&reply);
        CHECK_INT(tap, reply.code, PROTO_REFUSAL_WRONG_SHAPE);
        ps_close(ps);
        model_free(model);
    });
}

// --- versions, numbers of pushes ----------------------------------------------------------

static void test_versions(struct tap *tap) {
    struct stand stand;
    struct reply reply;
    struct ps_figures figures;
    TEST(tap, "the staleness of a push is that of its oldest piece in the shard", {
        if (stand_open(&stand, tap, async, 1)) {
            const struct shove shove = {1, 9, PROTO_UPDATE_DELTA, 1, 0};
            for (uint64_t i = 1; i <= 3; i++)
                push_one(&stand, 1, i, 1, i, &reply);
            // They begin where those of the pushes before do: what begins elsewhere is a part of
            // the same step.
            struct proto_piece pieces[] = {rig_piece(1, 5, 1, 4), rig_piece(1, 9, 1, 5)};
            rig_push(&stand.rig, shove, pieces, 2, stand.values, &reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_TOO_STALE); // of a version that never was
            pieces[0].version = 2;
            pieces[1].version = 4;
            rig_push(&stand.rig, shove, pieces, 2, stand.values, &reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, reply.versions[0], 5);
            CHECK_INT(tap, reply.versions[1], 5);
            ps_figures(stand.rig.ps, &figures);
            CHECK_INT(tap, figures.staleness_sum, 2);
            CHECK_INT(tap, figures.staleness[2], 1);
        }
        stand_close(&stand);
    });
    TEST(tap, "hardsync allows no staleness, and says so", {
        const struct protocol hard = {.kind = PROTOCOL_HARDSYNC};
        const struct proto_piece old = rig_piece(0, 0, 1, 0);
        struct stand none;
        struct reply refused;
        if (stand_open(&none, tap, hard, 1)) {
            rig_push(&none.rig, (struct shove){1, 1, 0, 8, 0.1}, &old, 1, none.values, &refused);
            CHECK_INT(tap, refused.code, PROTO_REFUSAL_TOO_STALE);
            CHECK_INT(tap, refused.detail, 0);
        }
        stand_close(&none);
    });
    TEST(tap, "staleness is counted by value up to 254, and what is more together", {
        if (stand_open(&stand, tap, async, 1)) {
            for (uint64_t i = 1; i <= 260; i++)
                push_one(&stand, 1, i, 1, 1, &reply);
            ps_figures(stand.rig.ps, &figures);
            CHECK_INT(tap, figures.staleness_count, 260);
            CHECK_INT(tap, figures.staleness_sum, 259 * 260 / 2);
            CHECK_INT(tap, figures.staleness_most, 259);
            CHECK_INT(tap, figures.staleness[0], 1);
            CHECK_INT(tap, figures.staleness[PS_STALENESS_MOST - 1], 1);
            CHECK_INT(tap, figures.staleness[PS_STALENESS_MOST], 5);
        }
        stand_close(&stand);
    });
    TEST(tap, "of the 63 numbers before the highest it is known which were applied", {
        const uint64_t first[] = {1, 2, 3};
        const struct {
            uint64_t sequence;
            enum proto_refusal code;
            bool repeated;
        } table[] = {
            {66, PROTO_REFUSAL_NONE, false},    {3, PROTO_REFUSAL_NONE, true},
            {2, PROTO_REFUSAL_REPLAYED, false}, {130, PROTO_REFUSAL_NONE, false}, // 64 further
            {129, PROTO_REFUSAL_NONE, false},   {128, PROTO_REFUSAL_NONE, false},
            {127, PROTO_REFUSAL_NONE, false},   {67, PROTO_REFUSAL_NONE, false},
            {66, PROTO_REFUSAL_REPLAYED, false}};
        if (stand_open(&stand, tap, async, 1)) {
            for (int i = 0; i < 3; i++)
                push_one(&stand, 1, first[i], 1, 1, &reply);
            for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
                push_one(&stand, 1, table[i].sequence, 1, 1, &reply);
                CHECK_INT(tap, reply.code, table[i].code);
                CHECK_INT(tap, reply.repeated, table[i].repeated);
            }
        }
        stand_close(&stand);
    });
    TEST(tap, "of many sessions each has numbers of its own", {
        enum { MANY = 100 };
        uint64_t sessions[MANY];
        for (uint64_t i = 0; i < MANY; i++)
            sessions[i] = 1000 * (i + 1);
        if (stand_open(&stand, tap, async, 1)) {
            CHECK_INT(tap, ps_members(stand.rig.ps, sessions, NULL, MANY, NULL), STATUS_OK);
            for (int again = 0; again < 2; again++)
                for (int i = 0; i < MANY; i++) {
                    push_one(&stand, sessions[i], 1, 1, 1, &reply);
                    CHECK(tap, reply.code == PROTO_REFUSAL_NONE && reply.repeated == again);
                }
        }
        stand_close(&stand);
    });
}

// --- stores and pulls ---------------------------------------------------------------------

static enum proto_refusal store(struct rig *rig, const struct proto_piece *pieces, uint32_t count,
                                const float *values, struct reply *reply) {
    const struct proto_store store = {PROTO_QUANTITY_WEIGHT, {pieces, count}};
    struct buffer *payload = rig_payload(rig, pieces, count, values);
    *reply = (struct reply){0};
    ps_store(rig->ps, &store, payload, reply_take, reply);
    buffer_drop(payload);
    reply_wait(reply);
    return reply->code;
}

static void test_stores(struct tap *tap) {
    TEST(tap, "a shard that was not stored in the order of its floats is not ready", {
        struct rig rig;
        struct reply reply;
        struct proto_piece piece;
        float *values = numbers(700000, 1, 1);
        if (rig_open_empty(&rig, tap, rules[0], async, 1, 1)) {
            const uint32_t floats = (uint32_t)rig_floats(&rig, 2);
            const struct proto_piece front = rig_piece(2, 0, 1000, 3);
            const struct proto_piece back[] = {rig_piece(2, 1000, 500, 3),
                                               rig_piece(2, 1500, floats - 1500, 3)};
            CHECK_INT(tap, store(&rig, back, 2, values, &reply), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, store(&rig, &front, 1, values, &reply), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, ps_versions(rig.ps, 0, 3, &piece), 0);
            CHECK_INT(tap, store(&rig, back, 2, values, &reply), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, ps_versions(rig.ps, 0, 2, &piece), 0);
            CHECK_INT(tap, ps_versions(rig.ps, 2, 1, &piece), 1);
            CHECK_INT(tap, piece.epoch, RIG_EPOCH);
            CHECK_INT(tap, piece.count, floats);
        }
        rig_close(&rig);
        free(values);
    });
    TEST(tap, "a piece of no version is not stored, and named", {
        struct stand stand;
        struct reply reply;
        if (stand_open(&stand, tap, async, 1)) {
            const struct proto_piece pieces[] = {rig_piece(1, 0, 5, 9), rig_piece(1, 5, 5, 0)};
            CHECK_INT(tap, store(&stand.rig, pieces, 2, stand.values, &reply),
                      PROTO_REFUSAL_WRONG_SHAPE);
            CHECK_INT(tap, reply.detail, 1);
            CHECK(tap, stand_untouched(&stand));
        }
        stand_close(&stand);
    });
}

static void test_pulls(struct tap *tap) {
    struct stand stand;
    struct reply reply;
    TEST(tap, "a pull has the floats of its pieces, in their order, whichever that is", {
        if (stand_open(&stand, tap, async, 1)) {
            const struct proto_piece pieces[] = {rig_piece(1, 9, 100, 0), rig_piece(0, 5, 3, 7)};
            rig_pull_begin(&stand.rig, 1, PROTO_QUANTITY_WEIGHT, 0, pieces, 2, &reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
            CHECK_INT(tap, reply.parts, 2);
            CHECK(tap, !memcmp(reply.part[0].at, stand.weights + PROTO_SHARD_FLOATS + 9, 400));
            CHECK(tap, !memcmp(reply.part[1].at, stand.weights + 5, 12));
            CHECK_INT(tap, reply.part[1].size, 12);
        }
        stand_close(&stand);
    });
    TEST(tap, "an answer of more than a payload may have is refused", {
        enum { PIECES = PROTO_PAYLOAD_MAX / (4 * PROTO_SHARD_FLOATS) };
        struct proto_piece pieces[PIECES + 1];
        if (stand_open(&stand, tap, async, 1)) {
            for (uint32_t i = 0; i < PIECES; i++)
                pieces[i] = rig_piece(0, 0, PROTO_SHARD_FLOATS, 0);
            pieces[PIECES] = rig_piece(1, 0, 1, 0);
            rig_pull_begin(&stand.rig, 1, PROTO_QUANTITY_WEIGHT, 0, pieces, PIECES, &reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
            rig_pull_begin(&stand.rig, 1, PROTO_QUANTITY_WEIGHT, 0, pieces, PIECES + 1, &reply);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_TOO_LARGE);
            CHECK_INT(tap, reply.detail, PROTO_PAYLOAD_MAX);
        }
        stand_close(&stand);
    });
    TEST(tap, "what was pulled, and what had not changed, is counted", {
        if (stand_open(&stand, tap, async, 1)) {
            struct ps_figures before;
            struct ps_figures after;
            const struct proto_piece pieces[] = {rig_piece(0, 0, 9, 1), rig_piece(1, 0, 9, 0),
                                                 rig_piece(2, 0, 9, 1)};
            ps_figures(stand.rig.ps, &before);
            rig_pull_begin(&stand.rig, 1, PROTO_QUANTITY_WEIGHT, 0, pieces, 3, &reply);
            ps_figures(stand.rig.ps, &after);
            CHECK_INT(tap, after.pulls - before.pulls, 1);
            CHECK_INT(tap, after.unchanged - before.unchanged, 2);
            CHECK_INT(tap, after.held, RIG_SHARDS);
            CHECK_INT(tap, after.version, 1);
            push_one(&stand, 1, 1, 1, 1, &reply);
            ps_figures(stand.rig.ps, &after);
            CHECK_INT(tap, after.version, 2);
        }
        stand_close(&stand);
    });
}

static void test_many_parts(struct tap *tap) {
    TEST(tap, "a pull that waits may name two shards in turn, however often", {
        enum { MANY = 300 };
        struct proto_piece pieces[MANY];
        struct stand stand;
        struct reply reply;
        if (stand_open(&stand, tap, async, 1)) {
            for (uint32_t i = 0; i < MANY; i++)
                pieces[i] = rig_piece(i % 2, i, 1, 0);
            for (uint32_t count = 1; count <= MANY; count++) {
                rig_pull_begin(&stand.rig, 1, PROTO_QUANTITY_WEIGHT, 1, pieces, count, &reply);
                reply_wait(&reply);
                CHECK_INT(tap, reply.code, PROTO_REFUSAL_NONE);
                CHECK_INT(tap, reply.parts, count);
                for (uint32_t i = 0; i < count && i < RIG_PIECES; i++)
                    CHECK(tap,
                          *(const float *)reply.part[i].at == stand.weights[rig_place(&pieces[i])]);
            }
        }
        stand_close(&stand);
    });
}

int main(void) {
    struct tap tap = {0};
    test_rates(&tap);
    test_numbers(&tap);
    test_factor_numbers(&tap);
    test_factor_pieces(&tap);
    test_mean_of_pieces(&tap);
    test_factor_forms(&tap);
    test_versions(&tap);
    test_stores(&tap);
    test_pulls(&tap);
    test_many_parts(&tap);
    return tap_done(&tap);
}
