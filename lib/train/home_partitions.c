// A home whose threads are partitions of one model (model/cut.h): each has the parameters of its
// own part, and what the optimizer keeps of them. They are those of the whole model when the home
// opens, and the whole model's are theirs when they have settled.
#include <stdatomic.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "train/home.h"

// Belongs to one thread.
struct own {
    float *parameters;
    float *state;              // arrays, one behind the other, as optimizer.h has them; NULL: none
    struct home_config config; // as that of a home of the part alone
    uint64_t updates;          // mini-batches that it has added
};

struct partitions {
    struct home home;
    struct home_config config; // of the whole model
    const struct cut *cut;
    struct own *own;
    int kept; // arrays of state
    _Atomic uint64_t clock;
};

static struct own *own_of(struct home *home, int thread) {
    return &((struct partitions *)home)->own[thread];
}

static const float *partitions_weights(struct home *home, int thread) {
    return own_of(home, thread)->parameters;
}

static struct optimizer own_rule(const struct own *own) {
    return home_rule(&own->config, own->updates);
}

static void partitions_add(struct home *home, int thread, const struct layer *layer,
                           struct span span, const float *gradient, float rate) {
    const struct own *own = own_of(home, thread);
    const struct optimizer rule = own_rule(own);
    optimizer_apply(&rule, own->config.kernels, layer, span, own->parameters, own->state, gradient,
                    rate);
}

static void partitions_add_product(struct home *home, int thread, const struct layer *layer,
                                   const struct dense_errors *errors, const float *dbiases,
                                   int first, float rate) {
    const struct own *own = own_of(home, thread);
    const struct optimizer rule = own_rule(own);
    (void)first;
    optimizer_apply_product(&rule, own->config.kernels, layer, own->parameters, own->state, errors,
                            dbiases, rate);
}

static void partitions_settle(struct home *home, int thread) {
    struct partitions *all = (struct partitions *)home;
    const struct own *own = own_of(home, thread);
    size_t count = own->config.model->parameter_count, whole = all->config.model->parameter_count;
    cut_give(all->cut, thread, all->config.parameters, own->parameters);
    for (size_t i = 0; i < (size_t)all->kept; i++)
        cut_give(all->cut, thread, all->config.state + i * whole, own->state + i * count);
}

static uint64_t partitions_clock(const struct home *home) {
    return atomic_load(&((const struct partitions *)home)->clock);
}

// Each counts what it has added; the first one's count is that of all.
static void partitions_add_clock(struct home *home, int thread, int samples) {
    (void)samples;
    own_of(home, thread)->updates++;
    if (thread == 0)
        atomic_fetch_add(&((struct partitions *)home)->clock, 1);
}

static void partitions_close(struct home *home) {
    struct partitions *all = (struct partitions *)home;
    for (int p = 0; all->own && p < cut_partitions(all->cut); p++) {
        free(all->own[p].parameters);
        free(all->own[p].state);
    }
    free(all->own);
    free(all);
}

static const struct home_ops partitions_ops = {
    .weights = partitions_weights,
    .add = partitions_add,
    .settle = partitions_settle,
    .clock = partitions_clock,
    .add_clock = partitions_add_clock,
    .close = partitions_close,
};

static const struct home_products partitions_products = {
    .takes = home_applies_product,
    .add = partitions_add_product,
};

static bool fill_own(const struct partitions *all, int partition) {
    struct own *own = &all->own[partition];
    const struct model *model = cut_model(all->cut, partition);
    size_t count = model->parameter_count, whole = all->config.model->parameter_count;
    size_t kept = (size_t)all->kept;
    own->config = all->config;
    own->config.model = model;
    own->config.threads = 1;
    own->updates = all->config.clock - all->config.since;
    own->parameters = mem_floats(count + 1);
    own->state = kept > 0 ? mem_floats(kept * count + 1) : NULL;
    if (!own->parameters || (kept > 0 && !own->state))
        return false;
    cut_take(all->cut, partition, own->parameters, all->config.parameters);
    for (size_t i = 0; i < kept; i++)
        cut_take(all->cut, partition, own->state + i * count, all->config.state + i * whole);
    return true;
}

int home_partitions(struct home **out, const struct home_config *config, const struct cut *cut,
                    struct error *err) {
    struct partitions *all = mem_zeroed(1, sizeof *all);
    if (!all)
        return error_nomem(err);
    *all = (struct partitions){
        .home = {.ops = &partitions_ops, .products = &partitions_products, .apart = true},
        .config = *config,
        .cut = cut,
        .own = mem_zeroed((size_t)cut_partitions(cut), sizeof *all->own),
        .kept = config->state ? optimizer_kept(config->optimizer) : 0,
        .clock = config->clock,
    };
    bool filled = all->own != NULL;
    for (int p = 0; filled && p < cut_partitions(cut); p++)
        filled = fill_own(all, p);
    if (!filled) {
        partitions_close(&all->home);
        return error_nomem(err);
    }
    *out = &all->home;
    return STATUS_OK;
}
