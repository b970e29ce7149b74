// The core of a parameter server (ps/ps.h) beside what bounds it: deltas and gradients beside
// the same additions in bare loops over the same memory by as many threads, factors, by one
// thread, beside OpenBLAS's product of the same shape, which applies nothing. Deltas and
// gradients come one to a shard, and then to the next one, or several to one, as where the
// pushes of several workers queue up: those are batched (Adam 3.3.1). In every round all
// take turns; what counts is the median of the rounds' ratios, of processor time (of all
// threads: that of who pushes is in it).
//   ps [--quick]    --quick: one short round, whose figures say little
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/error.h"

#include "core/gate.h"
#include "core/mem.h"
#include "kernels/blas/gemm.inc.h"
#include "kernels/tables.h"
#include "ps/ps.h"

enum { PAYLOADS = 64, THREADS_MOST = 2, ROUNDS_MOST = 9 };

struct effort {
    int rounds;
    double turn; // seconds of processor time, at least
};

struct server {
    struct model *model;
    struct ps *ps;
    struct optimizer optimizer;
    uint64_t sequence;
    uint32_t in_flight; // at most
    _Atomic uint32_t flying;
    struct gate gate;
};

static void die(const char *what) {
    fprintf(stderr, "ps: %s\n", what);
    exit(1);
}

static double busy(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// --- a server ---------------------------------------------------------------------------

static void landed(void *context, const struct ps_answer *answer) {
    struct server *server = context;
    if (answer->code != PROTO_REFUSAL_NONE)
        die(proto_refusal_name(answer->code));
    // Who pushes fills up what may fly, and sleeps until half of it, or all, has landed.
    uint32_t left = atomic_fetch_sub(&server->flying, 1) - 1;
    if (left == server->in_flight / 2 || left == 0)
        gate_open(&server->gate);
}

static void wait_below(struct server *server, uint32_t most) {
    for (uint32_t seen = gate_look(&server->gate); atomic_load(&server->flying) > most;
         seen = gate_look(&server->gate))
        gate_wait(&server->gate, seen, -1);
}

static uint32_t shards_of(const struct server *server) {
    return (uint32_t)((server->model->parameter_count + PROTO_SHARD_FLOATS - 1) /
                      PROTO_SHARD_FLOATS);
}

static struct proto_piece piece_of(const struct server *server, uint32_t shard) {
    size_t rest = server->model->parameter_count - (size_t)shard * PROTO_SHARD_FLOATS;
    return (struct proto_piece){
        .shard = shard,
        .count = rest < PROTO_SHARD_FLOATS ? (uint32_t)rest : PROTO_SHARD_FLOATS,
        .epoch = 1,
        .version = 1,
    };
}

static void store(struct server *server, struct buffer *payload) {
    for (uint32_t i = 0; i < shards_of(server); i++) {
        struct proto_piece piece = piece_of(server, i);
        payload->size = piece.count * sizeof(float);
        struct proto_store message = {PROTO_QUANTITY_WEIGHT, {&piece, 1}};
        atomic_fetch_add(&server->flying, 1);
        ps_store(server->ps, &message, payload, landed, server);
        wait_below(server, 0);
    }
    payload->size = PROTO_SHARD_FLOATS * sizeof(float);
}

static void server_open(struct server *server, int units, enum rule rule, int threads,
                        struct buffer *payload) {
    char text[200];
    struct error err = {0};
    snprintf(text, sizeof text, "input %dx1x1\ndense units=%d\nsoftmax units=2\n", units, units);
    server->optimizer = (struct optimizer){.rule = rule, .momentum = 0.9f, .decay = 1e-4f};
    if (model_parse(&server->model, "bench", text, NULL, 0, &err))
        die(err.text);
    struct ps_options options = {.model = server->model,
                                 .kernels = kernels_best(),
                                 .optimizer = server->optimizer,
                                 .threads = threads};
    const struct proto_place place = {
        .epoch = 1, .second = PROTO_NOBODY, .third = PROTO_NOBODY, .joiner = PROTO_NOBODY};
    const uint64_t session = 1;
    if (ps_open(&server->ps, &options, &err) || ps_members(server->ps, &session, NULL, 1, &err))
        die(err.text);
    ps_route(server->ps, &place, 1, 0);
    store(server, payload);
}

static void server_close(struct server *server) {
    ps_close(server->ps);
    model_free(server->model);
}

// --- deltas and gradients ---------------------------------------------------------------

struct flat { // pushes of whole shards, and the same in bare loops
    struct server server;
    enum proto_update kind;
    enum rule rule;
    int threads;
    uint32_t queued; // pushes to a shard behind each other
    struct buffer **payloads;
    float *weights, *state;
    const struct effort *effort;
    const char *name;
    double bytes; // that go through memory for each number
};

static void push_shard(struct flat *flat, struct proto_piece piece) {
    struct server *server = &flat->server;
    struct buffer *payload = flat->payloads[server->sequence % PAYLOADS];
    struct proto_push push = {1, ++server->sequence, (uint16_t)flat->kind, 1, 1e-3, {&piece, 1}};
    wait_below(server, server->in_flight - 1);
    atomic_fetch_add(&server->flying, 1);
    ps_push(server->ps, &push, payload, landed, server);
}

// Floats that were changed in a second.
static double push_flat(struct flat *flat) {
    struct server *server = &flat->server;
    double begin = busy(), floats = 0;
    do
        for (uint32_t i = 0; i < shards_of(server); i++) {
            struct proto_piece piece = piece_of(server, i);
            for (uint32_t j = 0; j < flat->queued && piece.count == PROTO_SHARD_FLOATS; j++) {
                push_shard(flat, piece);
                floats += piece.count;
            }
        }
    while (busy() - begin < flat->effort->turn);
    wait_below(server, 0);
    return floats / (busy() - begin);
}

struct looper { // a thread of the bare loops, with shards of its own
    struct flat *flat;
    pthread_t thread;
    size_t first, end;
    double begin, floats;
};

static void *loop_shards(void *self) {
    struct looper *looper = self;
    struct flat *flat = looper->flat;
    struct update update = flat->kind == PROTO_UPDATE_DELTA
                               ? (struct update){.rule = RULE_SGD, .rate = -1}
                               : optimizer_weights_update(&flat->server.optimizer,
                                                          &flat->server.model->layers[1], 1e-3f);
    size_t n = PROTO_SHARD_FLOATS, next = looper->first;
    do
        for (size_t i = looper->first; i < looper->end; i++) {
            kernels_best()->update(flat->weights + i * n, flat->state ? flat->state + i * n : NULL,
                                   flat->payloads[next++ % PAYLOADS]->data, n, &update);
            looper->floats += (double)n;
        }
    while (busy() - looper->begin < flat->effort->turn);
    return NULL;
}

static double loop_flat(struct flat *flat) {
    struct looper loopers[THREADS_MOST];
    size_t shards = shards_of(&flat->server) - 1, threads = (size_t)flat->threads;
    double begin = busy(), floats = 0;
    for (size_t i = 0; i < threads; i++) {
        loopers[i] = (struct looper){.flat = flat,
                                     .first = shards * i / threads,
                                     .end = shards * (i + 1) / threads,
                                     .begin = begin};
        if (pthread_create(&loopers[i].thread, NULL, loop_shards, &loopers[i]))
            die("cannot start a thread");
    }
    for (size_t i = 0; i < threads; i++) {
        pthread_join(loopers[i].thread, NULL);
        floats += loopers[i].floats;
    }
    return floats / (busy() - begin);
}

// --- factors ----------------------------------------------------------------------------

struct product {
    struct server server;
    const struct effort *effort;
    int samples, units;
    struct buffer *payload;
    float *gradient; // for OpenBLAS
};

// Multiply-adds in a second.
static double push_product(struct product *product) {
    struct server *server = &product->server;
    const struct layer *layer = &server->model->layers[1];
    size_t end = layer->weights.offset + layer->weights.count;
    struct proto_piece pieces[256];
    uint32_t count = 0;
    for (size_t at = 0; at < end; at += PROTO_SHARD_FLOATS) {
        pieces[count] = piece_of(server, count);
        if (end - at < pieces[count].count)
            pieces[count].count = (uint32_t)(end - at);
        count++;
    }
    double begin = busy(), done = 0;
    do {
        struct proto_push_factors push = {1,
                                          ++server->sequence,
                                          (uint32_t)product->samples,
                                          1e-3,
                                          (uint32_t)product->units,
                                          (uint32_t)product->units,
                                          layer->weights.offset,
                                          PROTO_NOWHERE,
                                          {pieces, count}};
        wait_below(server, server->in_flight - 1);
        atomic_fetch_add(&server->flying, 1);
        ps_push_factors(server->ps, &push, product->payload, landed, server);
        done += (double)product->samples * product->units * product->units;
    } while (busy() - begin < product->effort->turn);
    wait_below(server, 0);
    return done / (busy() - begin);
}

static double multiply(struct product *product) {
    int k = product->samples, n = product->units;
    const float *errors = product->payload->data, *inputs = errors + (size_t)k * (size_t)n;
    double begin = busy(), done = 0;
    do {
        blas_gemm(true, false, n, n, k, 1, errors, n, inputs, n, 0, product->gradient, n);
        done += (double)k * n * n;
    } while (busy() - begin < product->effort->turn);
    return done / (busy() - begin);
}

// --- figures ----------------------------------------------------------------------------

static int ascending(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(const double *values, int n) {
    double sorted[ROUNDS_MOST];
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    return sorted[n / 2];
}

static void random_fill(struct buffer *buffer, uint64_t seed) {
    float *at = buffer->data;
    for (size_t i = 0; i < buffer->size / sizeof *at; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        at[i] = ((float)(seed >> 40) / (float)(1 << 23) - 1) * 1e-3f;
    }
}

static void measure_flat(struct flat *flat) {
    static const double target = 0.85;
    int rounds = flat->effort->rounds;
    double ours[ROUNDS_MOST], loops[ROUNDS_MOST], ratios[ROUNDS_MOST];
    for (int i = 0; i < rounds; i++) {
        ours[i] = push_flat(flat);
        loops[i] = loop_flat(flat);
        ratios[i] = ours[i] / loops[i];
    }
    double ratio = median(ratios, rounds);
    printf("%-24s %7d %7d %8.2f %8.2f %8.1f %8.2f", flat->name, flat->threads, (int)flat->queued,
           median(ours, rounds) * 1e-9, median(loops, rounds) * 1e-9,
           median(loops, rounds) * flat->bytes * 1e-9, ratio);
    if (flat->queued > 1)
        printf(" %7.2f  %s", target, ratio >= target ? "met" : "missed");
    putchar('\n');
}

static void flat_one(struct flat flat, struct buffer **payloads) {
    flat.payloads = payloads;
    flat.server.in_flight = 16;
    server_open(&flat.server, 4096, flat.rule, flat.threads, payloads[0]);
    flat.weights = mem_floats(flat.server.model->parameter_count);
    flat.state = mem_floats(flat.server.model->parameter_count);
    if (!flat.weights || !flat.state)
        die("out of memory");
    measure_flat(&flat);
    free(flat.weights);
    free(flat.state);
    server_close(&flat.server);
}

static void flat_all(struct buffer **payloads, const struct effort *effort) {
    const struct flat rows[] = {
        {.kind = PROTO_UPDATE_DELTA, .rule = RULE_SGD, .name = "deltas", .bytes = 12},
        {.kind = PROTO_UPDATE_GRADIENT, .rule = RULE_SGD, .name = "gradients, sgd", .bytes = 12},
        {.kind = PROTO_UPDATE_GRADIENT,
         .rule = RULE_MOMENTUM,
         .name = "gradients, momentum",
         .bytes = 20},
        {.kind = PROTO_UPDATE_GRADIENT,
         .rule = RULE_ADAGRAD,
         .name = "gradients, adagrad",
         .bytes = 20},
    };
    const struct {
        int threads;
        uint32_t queued;
    } ways[] = {{1, 1}, {1, 4}, {2, 4}};
    printf("%-24s %7s %7s %8s %8s %8s %8s %7s\n", "1 MiB shards", "threads", "queued", "G/s",
           "bound", "GB/s", "of it", "target");
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            struct flat flat = rows[i];
            flat.effort = effort;
            flat.threads = ways[way].threads;
            flat.queued = ways[way].queued;
            flat_one(flat, payloads);
        }
}

static void measure_product(struct pool *pool, int samples, int units, struct buffer *payload,
                            const struct effort *effort) {
    static const double target = 0.7;
    struct product product = {
        .effort = effort, .server.in_flight = 4, .samples = samples, .units = units};
    double ours[ROUNDS_MOST], blas[ROUNDS_MOST], ratios[ROUNDS_MOST];
    product.gradient = mem_floats((size_t)units * (size_t)units);
    product.payload = pool_take(pool, 2 * (size_t)samples * (size_t)units * sizeof(float));
    if (!product.gradient || !product.payload)
        die("out of memory");
    random_fill(product.payload, 1);
    server_open(&product.server, units, RULE_SGD, 1, payload);
    for (int i = 0; i < effort->rounds; i++) {
        ours[i] = push_product(&product);
        blas[i] = multiply(&product);
        ratios[i] = ours[i] / blas[i];
    }
    char name[64];
    snprintf(name, sizeof name, "%d x %d x %d", samples, units, units);
    double ratio = median(ratios, effort->rounds);
    printf("%-24s %8.2f %8.1f %8.1f %8.1f %8.2f %7.2f  %s\n", name,
           median(ours, effort->rounds) / samples * 1e-9, median(ours, effort->rounds) * 1e-9,
           2 * median(ours, effort->rounds) * 1e-9, 2 * median(blas, effort->rounds) * 1e-9, ratio,
           target, ratio >= target ? "met" : "missed");
    server_close(&product.server);
    buffer_drop(product.payload);
    free(product.gradient);
}

static void product_all(struct pool *pool, struct buffer *payload, const struct effort *effort) {
    printf("\n%-24s %8s %8s %8s %8s %8s %7s\n", "factors", "G/s", "x k", "GFLOP/s", "OpenBLAS",
           "of it", "target");
    measure_product(pool, 64, 2560, payload, effort);
    measure_product(pool, 128, 2560, payload, effort);
    measure_product(pool, 256, 4096, payload, effort);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--quick") != 0)
        die("usage: ps [--quick]");
    bool quick = argc > 1;
    const struct effort effort =
        quick ? (struct effort){1, 0.01} : (struct effort){ROUNDS_MOST, 0.15};
    struct pool pool = {.limit = (size_t)1 << 30};
    struct buffer *payloads[PAYLOADS];
    for (int i = 0; i < PAYLOADS; i++) {
        if (!(payloads[i] = pool_take(&pool, PROTO_SHARD_FLOATS * sizeof(float))))
            die("out of memory");
        random_fill(payloads[i], (uint64_t)i);
    }
    printf("kernels: %s\n\n", kernels_best()->name);
    flat_all(payloads, &effort);
    if (blas_load())
        product_all(&pool, payloads[0], &effort);
    else
        puts("\nfactors: skip: no OpenBLAS");
    for (int i = 0; i < PAYLOADS; i++)
        buffer_drop(payloads[i]);
    pool_free(&pool);
    return 0;
}
