#include "ps/ps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/cpu.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/node.h"
#include "ps/ps_internal.h"

// --- memory -----------------------------------------------------------------------------

enum { HUGE_PAGE = 2 << 20, PAGE_SHARDS = HUGE_PAGE / (PROTO_SHARD_FLOATS * 4) };

// From a place where a huge page may begin.
static void *map_aligned(size_t bytes) {
    char *memory = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    size_t before = HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE;
    munmap(memory, before);
    if (before < HUGE_PAGE)
        munmap(memory + before + bytes, HUGE_PAGE - before);
    // cppcheck-suppress deallocret // only what lies before and behind is unmapped
    return memory + before;
}

float *ps_state(const struct ps *ps, int state) {
    return ps->state + (size_t)state * (ps->bytes / sizeof(float));
}

static void place_shards(const struct ps *ps, char *memory) {
    size_t shard = PROTO_SHARD_FLOATS * sizeof(float);
    for (uint32_t i = 0; i < ps->shard_count && ps->crew_count > 1; i++)
        node_place(memory + i * shard, shard, (int)(i % (uint32_t)ps->crew_count));
}

// Arrays over the whole parameter space, of which only what is touched takes memory.
static float *map_floats(const struct ps *ps, int arrays) {
    char *memory = map_aligned((size_t)arrays * ps->bytes);
    for (int i = 0; memory && i < arrays; i++)
        place_shards(ps, memory + (size_t)i * ps->bytes);
    return (float *)(void *)memory;
}

static void add_block(struct ps *ps, const struct layer *layer, const struct parameter *parameter,
                      enum tensor_kind kind) {
    if (parameter->count)
        ps->tensors[ps->tensor_count++] =
            (struct tensor){layer, kind, parameter->offset, parameter->offset + parameter->count};
}

static int compare_blocks(const void *a, const void *b) {
    const struct tensor *left = a, *right = b;
    return (left->begin > right->begin) - (left->begin < right->begin);
}

static bool make_blocks(struct ps *ps) {
    const struct model *model = ps->model;
    ps->tensors =
        mem_array((2 + LAYER_STATISTICS) * (size_t)model->layer_count, sizeof *ps->tensors);
    for (int i = 0; ps->tensors && i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        add_block(ps, layer, &layer->weights, TENSOR_WEIGHTS);
        add_block(ps, layer, &layer->biases, TENSOR_BIASES);
        for (int s = 0; s < LAYER_STATISTICS; s++)
            add_block(ps, layer, &layer->statistics[s], TENSOR_STATISTICS);
    }
    if (ps->tensors)
        qsort(ps->tensors, ps->tensor_count, sizeof *ps->tensors, compare_blocks);
    return ps->tensors != NULL;
}

static bool make_space(struct ps *ps, const struct optimizer *optimizer) {
    size_t shards = (ps->parameters + PROTO_SHARD_FLOATS - 1) / PROTO_SHARD_FLOATS;
    ps->shard_count = (uint32_t)shards;
    ps->bytes = (shards ? shards : 1) * PROTO_SHARD_FLOATS * sizeof(float);
    ps->states = optimizer_kept(optimizer);
    ps->shards = mem_zeroed(shards, sizeof *ps->shards);
    return ps->shards && make_blocks(ps) && (ps->weights = map_floats(ps, 1)) &&
           (!ps->states || (ps->state = map_floats(ps, ps->states)));
}

// --- threads ----------------------------------------------------------------------------

static void *serve_shards(void *context) {
    struct applier_thread *thread = context;
    struct crew *crew = thread->crew;
    struct ps *ps = crew->ps;
    if (ps->crew_count > 1)
        node_bind(crew->node);
    while (!atomic_load(&ps->stopping)) {
        uint32_t seen = gate_look(&crew->gate), shard;
        if (ring_take(&crew->ready, &shard))
            shard_serve(&thread->applier, shard);
        else if (!atomic_load(&ps->stopping))
            gate_wait(&crew->gate, seen, -1);
    }
    return NULL;
}

static bool make_crews(struct ps *ps, int threads) {
    int nodes = node_count();
    ps->crew_count = nodes < threads ? nodes : threads;
    ps->thread_count = threads;
    ps->crews = mem_zeroed((size_t)ps->crew_count, sizeof *ps->crews);
    ps->threads = mem_zeroed((size_t)threads, sizeof *ps->threads);
    if (!ps->crews || !ps->threads)
        return false;
    for (int i = 0; i < ps->crew_count; i++) {
        ps->crews[i].ps = ps;
        ps->crews[i].node = i;
    }
    return true;
}

static bool make_threads(struct ps *ps) {
    for (int i = 0; i < ps->crew_count; i++)
        if (!ring_open(&ps->crews[i].ready, ps->shard_count))
            return false;
    for (int i = 0; i < ps->thread_count; i++) {
        struct applier_thread *thread = &ps->threads[i];
        thread->crew = &ps->crews[i % ps->crew_count];
        thread->applier = (struct applier){ps, mem_floats(TILE_FLOATS)};
        if (!thread->applier.tile)
            return false;
    }
    return true;
}

static bool start_threads(struct ps *ps) {
    for (int i = 0; i < ps->thread_count; i++) {
        struct applier_thread *thread = &ps->threads[i];
        thread->started = pthread_create(&thread->id, NULL, serve_shards, thread) == 0;
        if (!thread->started)
            return false;
    }
    return true;
}

// --- open, close ------------------------------------------------------------------------

// Of all layers; biases do not decay.
static double most_decay(const struct model *model, const struct optimizer *optimizer) {
    double most = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const struct update update = optimizer_weights_update(optimizer, &model->layers[i], 1);
        double decay = (double)update.rate * (double)update.decay;
        most = model->layers[i].weights.count > 0 && decay > most ? decay : most;
    }
    return most;
}

// Under hardsync and softsync workers count on it that no step is lost.
static bool set_rules(struct ps *ps, const struct optimizer *optimizer,
                      const struct protocol *protocol, bool replicates) {
    struct rules *rules = mem_zeroed(1, sizeof *rules);
    if (!rules)
        return false;
    *rules =
        (struct rules){*optimizer, *protocol, most_decay(ps->model, optimizer),
                       replicates || protocol->kind != PROTOCOL_ASYNC, atomic_load(&ps->rules)};
    rules->optimizer.second = ps->bytes / sizeof(float);
    atomic_store(&ps->rules, rules);
    return true;
}

static int threads_of(const struct ps_options *options) {
    return options->threads > 0 ? options->threads : cpu_count();
}

int ps_open(struct ps **out, const struct ps_options *options, struct error *err) {
    struct ps *ps = mem_zeroed(1, sizeof *ps);
    *out = NULL;
    if (!ps)
        return error_nomem(err);
    ps->model = options->model;
    ps->kernels = options->kernels;
    ps->parameters = options->model->parameter_count;
    ps->since = options->since;
    ps->copies = options->copies;
    ps->durable = options->durable;
    ps->records.limit = RECORDS_MAX;
    if (!make_crews(ps, threads_of(options)) || !make_space(ps, &options->optimizer) ||
        !set_rules(ps, &options->optimizer, &options->protocol, options->replicates) ||
        !make_threads(ps) || !start_threads(ps)) {
        ps_close(ps);
        return error_set(err, STATUS_IO, "out of memory or threads for %zu parameters",
                         options->model->parameter_count);
    }
    *out = ps;
    return STATUS_OK;
}

static void join_threads(struct ps *ps) {
    atomic_store(&ps->stopping, true);
    for (int i = 0; i < ps->crew_count && ps->crews; i++)
        gate_open(&ps->crews[i].gate);
    for (int i = 0; i < ps->thread_count && ps->threads; i++)
        if (ps->threads[i].started)
            pthread_join(ps->threads[i].id, NULL);
}

// Alone by now: what was asked and not looked at is refused, then what was to wait.
static void end_shards(struct ps *ps) {
    uint32_t shard;
    for (int i = 0; i < ps->crew_count && ps->crews; i++)
        while (ring_take(&ps->crews[i].ready, &shard))
            shard_serve(&ps->threads[0].applier, shard);
    for (uint32_t i = 0; i < ps->shard_count && ps->shards; i++)
        shard_end(ps, &ps->shards[i]);
}

void ps_close(struct ps *ps) {
    if (!ps)
        return;
    join_threads(ps);
    end_shards(ps);
    for (int i = 0; i < ps->thread_count && ps->threads; i++)
        free(ps->threads[i].applier.tile);
    for (int i = 0; i < ps->crew_count && ps->crews; i++)
        ring_close(&ps->crews[i].ready);
    for (struct rules *rules = atomic_load(&ps->rules), *before; rules; rules = before) {
        before = rules->before;
        free(rules);
    }
    if (ps->weights)
        munmap(ps->weights, ps->bytes);
    if (ps->state)
        munmap(ps->state, (size_t)ps->states * ps->bytes);
    members_free(&ps->members);
    pool_free(&ps->records);
    free(ps->tensors);
    free(ps->shards);
    free(ps->crews);
    free(ps->threads);
    free(ps);
}

// --- what the controller says -----------------------------------------------------------

static void call_held_shards(struct ps *ps) {
    for (uint32_t i = 0; i < ps->shard_count; i++)
        if (atomic_load(&ps->shards[i].held))
            shard_call(ps, i);
}

static void hint_page(float *array, uint32_t shard) {
    (void)madvise(array + shard_begin(shard), HUGE_PAGE, MADV_HUGEPAGE);
}

// Huge pages, which spare the tables of small ones, where all shards of one are held here: those
// of others must cost nothing. On several NUMA nodes the shards of one lie on different nodes.
static void hint_pages(const struct ps *ps) {
    for (uint32_t i = 0; i + PAGE_SHARDS <= ps->shard_count && ps->crew_count == 1;
         i += PAGE_SHARDS) {
        bool whole = true;
        for (uint32_t j = i; j < i + PAGE_SHARDS; j++)
            whole = whole && atomic_load(&ps->shards[j].held);
        if (whole) {
            hint_page(ps->weights, i);
            for (int state = 0; state < ps->states; state++)
                hint_page(ps_state(ps, state), i);
        }
    }
}

static bool has_others(const struct proto_place *place) {
    return place->second != PROTO_NOBODY || place->third != PROTO_NOBODY ||
           place->joiner != PROTO_NOBODY;
}

// From now on others have copies: which version all of them have is to be found out.
static void begin_copies(struct shard *shard) {
    if (atomic_load(&shard->copied))
        return;
    atomic_store(&shard->replicated, 0);
    atomic_store(&shard->copied, true);
}

// The shard sees at a new tenure who has it, and nobody asks for the new epoch before. Of one that
// goes, what is staged is not on all copies: it stays a copied one.
static void route_shard(const struct ps *ps, struct shard *shard, const struct proto_place *place,
                        uint32_t member) {
    bool holds = place->primary == member, held = atomic_load(&shard->held);
    if (holds && !held)
        atomic_store(&shard->replicated, 0);
    if (holds && (ps->durable || has_others(place)))
        begin_copies(shard);
    else if (holds)
        atomic_store(&shard->copied, false);
    if (holds)
        atomic_store(&shard->leased, has_others(place));
    atomic_store(&shard->held, holds);
    if (holds != held)
        atomic_fetch_add(&shard->tenure, 1);
    atomic_store(&shard->epoch, place->epoch);
}

void ps_route(struct ps *ps, const struct proto_place *places, uint32_t count, uint32_t member) {
    for (uint32_t i = 0; i < ps->shard_count && count; i++) {
        struct shard *shard = &ps->shards[i];
        bool held = atomic_load(&shard->held);
        route_shard(ps, shard, &places[proto_bucket_of(i, count)], member);
        if (held || atomic_load(&shard->held))
            shard_call(ps, i);
    }
    hint_pages(ps);
}

bool ps_withdraw(struct ps *ps, uint32_t shard, const struct proto_place *place, uint32_t member) {
    struct shard *s = &ps->shards[shard];
    bool copied = atomic_load(&s->copied);
    if (!atomic_load(&s->held))
        return false;
    if (place->primary != member) {
        atomic_store(&s->held, false);
        atomic_fetch_add(&s->tenure, 1);
        return true;
    }
    if (has_others(place)) {
        begin_copies(s);
        atomic_store(&s->leased, true);
    }
    return copied != atomic_load(&s->copied);
}

void ps_lease(struct ps *ps, double until) {
    atomic_store(&ps->lease, until);
}

void ps_replicated(struct ps *ps, uint32_t shard, uint64_t version) {
    atomic_store(&ps->shards[shard].replicated, version);
    shard_call(ps, shard);
}

int ps_settings(struct ps *ps, const struct optimizer *optimizer, const struct protocol *protocol,
                bool replicates, struct error *err) {
    if (optimizer->rule != atomic_load(&ps->rules)->optimizer.rule ||
        optimizer_kept(optimizer) != ps->states)
        return error_set(err, STATUS_USAGE,
                         "optimizer and ema: cannot change while training goes on");
    if (!set_rules(ps, optimizer, protocol, replicates))
        return error_nomem(err);
    call_held_shards(ps);
    return STATUS_OK;
}

int ps_members(struct ps *ps, const uint64_t *sessions, const uint32_t *replicas, size_t count,
               struct error *err) {
    if (!members_set(&ps->members, sessions, replicas, count))
        return error_nomem(err);
    call_held_shards(ps);
    return STATUS_OK;
}

void ps_pause(struct ps *ps, bool paused) {
    atomic_store(&ps->paused, paused);
}

// --- asking -----------------------------------------------------------------------------

uint32_t ps_stamps(const struct ps *ps, uint32_t first, uint32_t count,
                   struct proto_piece pieces[]) {
    uint32_t n = 0;
    for (uint32_t i = first; i < ps->shard_count && i - first < count; i++) {
        const struct shard *shard = &ps->shards[i];
        if (atomic_load(&shard->ready))
            pieces[n++] = (struct proto_piece){
                .shard = i,
                .count = (uint32_t)shard_floats(ps, i),
                .epoch = atomic_load(&shard->changed),
                .version = atomic_load(&shard->version),
            };
    }
    return n;
}

uint32_t ps_versions(const struct ps *ps, uint32_t first, uint32_t count,
                     struct proto_piece pieces[]) {
    uint32_t n = 0;
    for (uint32_t i = first; i < ps->shard_count && i - first < count; i++) {
        const struct shard *shard = &ps->shards[i];
        if (atomic_load(&shard->held) && atomic_load(&shard->ready) && shard_told(ps, shard))
            pieces[n++] = (struct proto_piece){
                .shard = i,
                .count = (uint32_t)shard_floats(ps, i),
                .epoch = atomic_load(&shard->epoch),
                .version = shard_told(ps, shard),
            };
    }
    return n;
}

void counters_staleness(struct counters *counters, uint64_t staleness) {
    uint64_t most = atomic_load(&counters->staleness_most);
    while (staleness > most &&
           !atomic_compare_exchange_weak(&counters->staleness_most, &most, staleness))
        ;
    atomic_fetch_add(&counters->staleness_count, 1);
    atomic_fetch_add(&counters->staleness_sum, staleness);
    atomic_fetch_add(
        &counters->staleness[staleness < PS_STALENESS_MOST ? staleness : PS_STALENESS_MOST], 1);
}

static void count_shards(const struct ps *ps, struct ps_figures *figures) {
    uint64_t floats = 0;
    for (uint32_t i = 0; i < ps->shard_count; i++) {
        const struct shard *shard = &ps->shards[i];
        uint64_t version = atomic_load(&shard->held) ? atomic_load(&shard->version) : 0;
        figures->held += atomic_load(&shard->held);
        figures->ready += atomic_load(&shard->held) && atomic_load(&shard->ready);
        figures->behind += atomic_load(&shard->held) && version > shard_replicated(shard);
        figures->version = version > figures->version ? version : figures->version;
        floats += atomic_load(&shard->held) ? shard_floats(ps, i) : 0;
    }
    if (floats > 0)
        figures->samples = atomic_load(&ps->counters.sample_floats) / floats;
}

void ps_figures(const struct ps *ps, struct ps_figures *figures) {
    const struct counters *counters = &ps->counters;
    *figures = (struct ps_figures){
        .pushes = atomic_load(&counters->pushes),
        .repeated = atomic_load(&counters->repeated),
        .pulls = atomic_load(&counters->pulls),
        .unchanged = atomic_load(&counters->unchanged),
        .updates = atomic_load(&counters->updates),
        .floats = atomic_load(&counters->floats),
        .dropped = atomic_load(&counters->dropped),
        .queued = atomic_load(&counters->queued),
        .staleness_count = atomic_load(&counters->staleness_count),
        .staleness_sum = atomic_load(&counters->staleness_sum),
        .staleness_most = atomic_load(&counters->staleness_most),
    };
    for (size_t i = 0; i < sizeof figures->refused / sizeof *figures->refused; i++)
        figures->refused[i] = atomic_load(&counters->refused[i]);
    for (size_t i = 0; i <= PS_STALENESS_MOST; i++)
        figures->staleness[i] = atomic_load(&counters->staleness[i]);
    count_shards(ps, figures);
}
