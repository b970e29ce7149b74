#include "train/home.h"

#include <stdio.h>

enum home_kind home_best(const struct model *model, const struct optimizer *optimizer, int threads,
                         int batch) {
    if (home_copies_pay(model, threads, batch))
        return HOME_COPIES;
    return home_joins(model, optimizer, threads, batch) ? HOME_JOINED : HOME_SHARED;
}

int home_choose(enum home_kind *kind, const struct settings *settings, const struct model *model,
                const struct optimizer *optimizer, int threads, struct error *err) {
    *kind = home_best(model, optimizer, threads, (int)settings->batch);
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

const char *home_text(char text[128], enum home_kind kind, const struct model *model, int threads) {
    if (kind == HOME_COPIES)
        snprintf(text, 128,
                 "%d threads, each on a copy of the weights, merged every %d samples "
                 "(--home copies)",
                 threads, home_merge_samples(model, threads));
    else
        snprintf(text, 128, "%d threads on one set of weights, %s (--home %s)", threads,
                 kind == HOME_SHARED ? "without locks" : "together over large dense layers",
                 home_names[kind]);
    return text;
}

int home_open(struct home **out, enum home_kind kind, const struct model *model,
              const struct optimizer *optimizer, const struct kernels *kernels, float *parameters,
              float *state, uint64_t clock, int threads, int batch, struct error *err) {
    switch (kind) {
    case HOME_COPIES:
        return home_copies(out, model, optimizer, kernels, parameters, state, clock, threads, batch,
                           err);
    case HOME_JOINED:
        return home_joined(out, model, optimizer, kernels, parameters, clock, threads, batch, err);
    default:
        return home_local(out, model, optimizer, kernels, parameters, state, clock, err);
    }
}

int home_for_threads(struct home **out, const struct model *model,
                     const struct optimizer *optimizer, const struct kernels *kernels,
                     float *parameters, float *state, uint64_t clock, int threads, int batch,
                     struct error *err) {
    return home_open(out, home_best(model, optimizer, threads, batch), model, optimizer, kernels,
                     parameters, state, clock, threads, batch, err);
}
