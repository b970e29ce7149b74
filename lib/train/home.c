#include "train/home.h"

#include <stdio.h>

#include "core/error.h"

bool home_applies_product(const struct home *home, const struct layer *layer, bool sync) {
    (void)home;
    (void)layer;
    return !sync;
}

struct optimizer home_rule(const struct home_config *config, uint64_t updates) {
    struct optimizer rule = *config->optimizer;
    size_t count = config->learners ? atomic_load(config->learners) : 1;
    rule.learners = count > 1 ? (unsigned)count : 1;
    rule.sharers = rule.learners * (unsigned)config->threads;
    rule.step = updates + 1;
    rule.second = config->model->parameter_count;
    return rule;
}

void home_average(const struct home_config *config, uint64_t clock, unsigned updates, size_t first,
                  size_t n) {
    const struct optimizer rule = home_rule(config, clock - config->since - 1);
    optimizer_average(&rule, config->kernels, config->parameters, config->state, first, n, updates);
}

// By default.
static enum home_kind best_home(const struct model *model, const struct optimizer *optimizer,
                                int threads, int batch) {
    if (home_copies_pay(model, threads, batch))
        return HOME_COPIES;
    return home_joins(model, optimizer, threads, batch) ? HOME_JOINED : HOME_SHARED;
}

int home_choose(enum home_kind *kind, const struct settings *settings, const struct model *model,
                const struct optimizer *optimizer, int threads, struct error *err) {
    *kind = best_home(model, optimizer, threads, (int)settings->batch);
    if (!settings->home)
        return STATUS_OK;
    if (settings->sync)
        return error_set(err, STATUS_USAGE,
                         "--home is for threads without locks; leave out --home or --sync");
    *kind = home_kind_named(settings->home);
    return *kind == HOME_JOINED
               ? home_joined_check(model, optimizer, threads, (int)settings->batch, err)
               : STATUS_OK;
}

const char *home_text(char text[128], enum home_kind kind, const struct model *model, int threads,
                      int batch) {
    if (kind == HOME_COPIES)
        snprintf(text, 128,
                 "%d threads, each on a copy of the weights, merged every %d samples "
                 "(--home copies)",
                 threads, home_merge_batches(model, threads, batch) * batch);
    else
        snprintf(text, 128, "%d threads on one set of weights, %s (--home %s)", threads,
                 kind == HOME_SHARED ? "without locks" : "together over large dense layers",
                 home_names[kind]);
    return text;
}

int home_open(struct home **out, enum home_kind kind, const struct home_config *config,
              struct error *err) {
    switch (kind) {
    case HOME_COPIES:
        return home_copies(out, config, err);
    case HOME_JOINED:
        return home_joined(out, config, err);
    default:
        return home_local(out, config, err);
    }
}

int home_for_threads(struct home **out, const struct home_config *config, struct error *err) {
    enum home_kind best =
        best_home(config->model, config->optimizer, config->threads, config->batch);
    return home_open(out, best, config, err);
}
