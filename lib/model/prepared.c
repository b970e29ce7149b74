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
    int most;
    size_t *at;            // floats before those of each layer; the last: all
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

// Once: to reckon the sizes of convolutions takes longer than small layers do.
static void lay_out(struct prepared *p, int least) {
    for (int i = 0; i < p->model->layer_count; i++) {
        size_t few = kept_size(&p->model->layers[i], p->kernels, least);
        size_t many = kept_size(&p->model->layers[i], p->kernels, p->most);
        p->at[i + 1] = p->at[i] + (few > many ? few : many);
    }
}

int prepared_open(struct prepared **out, const struct model *model, const struct kernels *kernels,
                  const float *parameters, int least, int most, struct error *err) {
    struct prepared *p = mem_zeroed(1, sizeof *p);
    bool *suits = mem_zeroed((size_t)model->layer_count, sizeof *suits);
    size_t *at = mem_zeroed((size_t)model->layer_count + 1, sizeof *at);
    if (!p || !suits || !at) {
        free(p), free(suits), free(at);
        return error_nomem(err);
    }
    p->model = model;
    p->kernels = kernels;
    p->most = most;
    p->suits = suits;
    p->at = at;
    lay_out(p, least);
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
    free(p->at);
    free(p);
}

const float *prepared_kept(const struct prepared *p, const struct layer *layer) {
    bool any = p->kept && p->suits[layer->index];
    return any ? p->kept + p->at[layer->index] : NULL;
}

const float *prepared_parameters(const struct prepared *p) {
    return p->parameters;
}

static void prepare_weights(struct prepared *p) {
    p->made = true;
    p->kept = mem_untouched_floats(p->at[p->model->layer_count]);
    for (int i = 0; p->kept && i < p->model->layer_count; i++) {
        const struct layer *layer = &p->model->layers[i];
        if (p->at[i + 1] > p->at[i])
            p->suits[i] = layer->type->keep(p->kept + p->at[i], layer, p->kernels,
                                            p->parameters + layer->weights.offset);
    }
}

void prepared_now(struct prepared *p, struct net *net) {
    if (p->at[p->model->layer_count] == 0)
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
