#include "train/home.h"

const char *const home_names[] = {"shared", "copies", "joined", NULL};

enum home_kind home_best(const struct model *model, const struct optimizer *optimizer, int threads,
                         int batch) {
    if (home_copies_pay(model, threads, batch))
        return HOME_COPIES;
    return home_joins(model, optimizer, threads, batch) ? HOME_JOINED : HOME_SHARED;
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
