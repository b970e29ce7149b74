#include "train/solo.h"

#include <math.h>

static bool training_is_over(const struct solo *solo) {
    return solo->refused ||
           (solo->stopped && atomic_load_explicit(solo->stopped, memory_order_relaxed));
}

int solo_part(const struct home *home, const struct model *model, const struct kernels *kernels,
              int batch) {
    return home->meetings ? batch : net_part(model, kernels, batch);
}

void solo_set_thread(const struct solo *solo, int threads) {
    if (!solo->home->apart)
        net_set_thread(solo->net, solo->thread, threads);
}

void solo_leave(const struct solo *solo) {
    if (solo->home->meetings)
        solo->home->meetings->leave(solo->home, solo->thread);
}

static bool layer_shared(void *self, const struct layer *layer, float *y, const float *x, int n) {
    struct solo *solo = self;
    return solo->home->meetings->forward(solo->home, solo->thread, layer, y, x, n);
}

static void layer_ready(void *self, const struct layer *layer, const float *ready) {
    struct solo *solo = self;
    float *gradient = solo->gradient + layer->weights.offset;
    if (training_is_over(solo))
        return;
    if (!optimizer_accepts(solo->kernels, layer, ready)) {
        solo->refused = true;
        return;
    }
    optimizer_clip(solo->optimizer, solo->kernels, layer, gradient);
    solo->home->ops->add(solo->home, solo->thread, layer, optimizer_all(layer), gradient,
                         solo->rate);
    if (solo->added)
        solo->added(solo->added_self, layer, gradient);
}

// A dense layer's gradient need not be formed, unless its norm or its values have to
// be looked at first.
static bool layer_offered(void *self, const struct layer *layer, const struct dense_errors *errors,
                          const float *dbiases) {
    struct solo *solo = self;
    const struct home_products *products = solo->home->products;
    if (!products || solo->optimizer->clip > 0 || !products->takes(solo->home, layer, false))
        return false;
    if (training_is_over(solo) || !optimizer_accepts_product(solo->kernels, errors)) {
        solo_leave(solo);
        return false;
    }
    products->add(solo->home, solo->thread, layer, errors, dbiases, 0, solo->rate);
    return true;
}

// Samples [at, at + n) of the mini-batch; its gradient is complete with the last ones. Gives
// their loss.
static double train_part(struct solo *solo, const struct batch *batch, const float *weights, int at,
                         int n) {
    struct net *net = solo->net;
    const int32_t *labels = batch->label + at;
    bool whole = n == batch->n, last = at + n == batch->n;
    net_forward(net, weights, batch->input + (size_t)at * net_sample(net), n, batch->draw + at,
                solo->seed);
    net_mixed(net, batch->other ? batch->other + at : NULL,
              batch->share ? batch->share + at : NULL);
    net_targets(net, batch_target(batch, at, net_outputs(net)));
    double loss = net_loss(net, labels);
    if (!isfinite(loss))
        return loss;
    net_adds(net, at > 0);
    net_offered(net, whole ? layer_offered : NULL, solo);
    net_backward(net, weights, labels, 1.0f / (float)batch->n, solo->gradient,
                 last ? layer_ready : NULL, solo);
    return loss;
}

bool solo_train(struct solo *solo, const struct batch *batch, float rate, double *loss) {
    struct home *home = solo->home;
    const float *weights = home->ops->weights(home, solo->thread);
    solo->rate = rate;
    solo->refused = false;
    if (home->meetings)
        home->meetings->enter(home, solo->thread, batch->n, rate);
    net_shared(solo->net, home->meetings ? layer_shared : NULL, solo);
    *loss = 0;
    for (int at = 0, n; at < batch->n && isfinite(*loss); at += n) {
        n = batch->n - at < net_most(solo->net) ? batch->n - at : net_most(solo->net);
        *loss += train_part(solo, batch, weights, at, n);
    }
    if (!isfinite(*loss)) {
        solo_leave(solo);
        return false;
    }
    if (solo->refused)
        *loss = NAN;
    if (training_is_over(solo))
        return false;
    home->ops->add_clock(home, solo->thread, batch->n);
    return true;
}
