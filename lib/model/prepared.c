#include "model/prepared.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/mem.h"
#include "model/affine.h"

enum {
    BATCH_MANY = 256,
    SAMPLES_BEFORE = 2048, // where 256 a pass gain an eighth, and sums take a pass
};

struct prepared {
    const struct model *model;
    const struct kernels *kernels;
    const float *parameters;
    int most;
    size_t size;           // floats of all sums
    pthread_mutex_t mutex; // owns the two below until `made`
    bool made;             // or tried
    float *sums;           // of one layer behind the other; NULL: no memory
};

int prepared_batch(const struct model *model, const struct kernels *kernels, int few) {
    uint64_t all = 0, by_sums = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        all += layer->useful;
        by_sums += affine_sums_size(layer, kernels, BATCH_MANY) ? layer->useful : 0;
    }
    return by_sums > all / 2 ? BATCH_MANY : few;
}

// Floats of the sums of all layers before number `end`.
static size_t sums_before(const struct prepared *p, int end) {
    size_t size = 0;
    for (int i = 0; i < end; i++)
        size += affine_sums_size(&p->model->layers[i], p->kernels, p->most);
    return size;
}

int prepared_open(struct prepared **out, const struct model *model, const struct kernels *kernels,
                  const float *parameters, int most, struct error *err) {
    struct prepared *p = mem_zeroed(1, sizeof *p);
    if (!p)
        return error_nomem(err);
    p->model = model;
    p->kernels = kernels;
    p->parameters = parameters;
    p->most = most;
    p->size = sums_before(p, model->layer_count);
    pthread_mutex_init(&p->mutex, NULL);
    *out = p;
    return STATUS_OK;
}

void prepared_close(struct prepared *p) {
    if (!p)
        return;
    pthread_mutex_destroy(&p->mutex);
    free(p->sums);
    free(p);
}

const float *prepared_sums(const struct prepared *p, const struct layer *layer) {
    bool any = p->sums && affine_sums_size(layer, p->kernels, p->most);
    return any ? p->sums + sums_before(p, layer->index) : NULL;
}

static void make(struct prepared *p) {
    p->made = true;
    p->sums = mem_untouched_floats(p->size);
    for (int i = 0; p->sums && i < p->model->layer_count; i++) {
        const struct layer *layer = &p->model->layers[i];
        if (affine_sums_size(layer, p->kernels, p->most))
            p->kernels->dense_sums(p->sums + sums_before(p, i),
                                   p->parameters + layer->weights.offset, layer->units,
                                   layer->weights.dims[1]);
    }
}

void prepared_now(struct prepared *p, struct net *net) {
    if (p->size == 0)
        return;
    pthread_mutex_lock(&p->mutex);
    if (!p->made)
        make(p);
    pthread_mutex_unlock(&p->mutex);
    if (p->sums)
        net_prepared(net, p);
}

void prepared_pass(struct prepared *p, struct net *net, uint64_t number) {
    if (number >= SAMPLES_BEFORE / (uint64_t)p->most)
        prepared_now(p, net);
}
