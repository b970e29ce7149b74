#include "model/prepared.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "model/fold.h"
#include "model/layer.h"

enum {
    BATCH_MANY = 256,
    // Preparing has paid for itself after so many samples at BATCH_MANY a pass, or so many passes
    // of few samples.
    SAMPLES_BEFORE = 2048,
    PASSES_BEFORE = 32,
};

struct prepared {
    const struct model *model;
    const struct kernels *kernels;
    const float *parameters; // the caller's, or folded
    float *folded;           // NULL: there is nothing to fold
    int least, most;
    size_t size;           // floats of all layers
    pthread_mutex_t mutex; // owns those below until `made`
    bool made;             // or tried
    float *kept;           // of one layer behind the other; NULL: no memory
    bool *suits;           // of each layer, whether its weights do
};

static size_t kept_size(const struct layer *layer, const struct kernels *kernels, int n) {
    return layer->type->kept_size ? layer->type->kept_size(layer, kernels, n) : 0;
}

int prepared_batch(const struct model *model, const struct kernels *kernels, int few) {
    uint64_t all = 0, by_kept = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        bool matrix = layer->weights.rank == 2;
        all += layer->useful;
        by_kept += matrix && kept_size(layer, kernels, BATCH_MANY) ? layer->useful : 0;
    }
    return by_kept > all / 2 ? BATCH_MANY : few;
}

// Floats of a layer, for whichever passes.
static size_t kept_of(const struct prepared *p, int layer) {
    size_t least = kept_size(&p->model->layers[layer], p->kernels, p->least);
    size_t most = kept_size(&p->model->layers[layer], p->kernels, p->most);
    return least > most ? least : most;
}

// Floats of all layers before number `end`.
static size_t kept_before(const struct prepared *p, int end) {
    size_t size = 0;
    for (int i = 0; i < end; i++)
        size += kept_of(p, i);
    return size;
}

int prepared_open(struct prepared **out, const struct model *model, const struct kernels *kernels,
                  const float *parameters, int least, int most, struct error *err) {
    struct prepared *p = mem_zeroed(1, sizeof *p);
    bool *suits = mem_zeroed((size_t)model->layer_count, sizeof *suits);
    if (!p || !suits) {
        free(p), free(suits);
        return error_nomem(err);
    }
    p->model = model;
    p->kernels = kernels;
    p->least = least;
    p->most = most;
    p->suits = suits;
    p->size = kept_before(p, model->layer_count);
    pthread_mutex_init(&p->mutex, NULL);
    int status = fold_parameters(&p->folded, model, parameters, err);
    if (status) {
        prepared_close(p);
        return status;
    }
    p->parameters = p->folded ? p->folded : parameters;
    *out = p;
    return STATUS_OK;
}

void prepared_close(struct prepared *p) {
    if (!p)
        return;
    pthread_mutex_destroy(&p->mutex);
    free(p->kept);
    free(p->folded);
    free(p->suits);
    free(p);
}

const float *prepared_kept(const struct prepared *p, const struct layer *layer) {
    bool any = p->kept && p->suits[layer->index];
    return any ? p->kept + kept_before(p, layer->index) : NULL;
}

const float *prepared_parameters(const struct prepared *p) {
    return p->parameters;
}

static void prepare_weights(struct prepared *p) {
    p->made = true;
    p->kept = mem_untouched_floats(p->size);
    for (int i = 0; p->kept && i < p->model->layer_count; i++) {
        const struct layer *layer = &p->model->layers[i];
        if (kept_of(p, i))
            p->suits[i] = layer->type->keep(p->kept + kept_before(p, i), layer, p->kernels,
                                            p->parameters + layer->weights.offset);
    }
}

void prepared_now(struct prepared *p, struct net *net) {
    if (p->size == 0)
        return;
    pthread_mutex_lock(&p->mutex);
    if (!p->made)
        prepare_weights(p);
    pthread_mutex_unlock(&p->mutex);
    if (p->kept)
        net_prepared(net, p);
}

void prepared_pass(struct prepared *p, struct net *net, uint64_t number) {
    if (number >= PASSES_BEFORE || number * (uint64_t)p->most >= SAMPLES_BEFORE)
        prepared_now(p, net);
}
