// "we access and update the shared model weights locally without using locks.
//  Each thread computes weight updates and updates the shared model weights. This
//  introduces some races as well as potentially modifying weights based on stale
//  weight values that were used to compute the weight updates but have since been
//  changed by other threads. We are still able to train models to convergence
//  despite this since the weight updates are associative and commutative and
//  because neural networks are resilient and can overcome the small amount of
//  noise that this introduces." (Adam 3.2.2)
#include <math.h>

#include "train/loop_threads.h"

// One layer's gradient is whole: it goes to the weights at once, while the
// backward pass goes on below. One that is not finite is refused.
static void layer_ready(void *self, const struct layer *layer, const float *ready) {
    struct seat *seat = self;
    const struct loop_config *config = &seat->loop->config;
    float *gradient = seat->gradient + layer->weights.offset;
    if (atomic_load_explicit(&seat->loop->diverged, memory_order_relaxed))
        return;
    if (!optimizer_accepts(config->kernels, layer, ready)) {
        loop_diverge(seat->loop, NAN);
        return;
    }
    optimizer_clip(config->optimizer, config->kernels, layer, gradient);
    config->home->ops->add(config->home, seat->index, layer, optimizer_all(layer), gradient,
                           seat->rate);
}

// A dense layer's gradient need not be formed, unless its norm or its values have to
// be looked at first.
static bool layer_offered(void *self, const struct layer *layer, const struct dense_errors *errors,
                          const float *dbiases) {
    struct seat *seat = self;
    const struct loop_config *config = &seat->loop->config;
    if (!config->home->ops->add_product || config->optimizer->clip > 0 ||
        atomic_load_explicit(&seat->loop->diverged, memory_order_relaxed) ||
        !optimizer_accepts_product(config->kernels, errors))
        return false;
    config->home->ops->add_product(config->home, seat->index, layer, errors, dbiases, seat->rate);
    return true;
}

static void train(struct seat *seat, const struct batch *batch) {
    const struct loop_config *config = &seat->loop->config;
    const float *weights = config->home->ops->weights(config->home, seat->index);
    seat->rate = loop_rate(seat->loop, batch->number);
    net_forward(seat->net, weights, batch->input, batch->n, batch->draw, config->seed);
    double loss = net_loss(seat->net, batch->label);
    if (!isfinite(loss)) {
        loop_diverge(seat->loop, loss / batch->n);
        return;
    }
    net_offered(seat->net, layer_offered, seat);
    net_backward(seat->net, weights, batch->label, 1.0f / (float)batch->n, seat->gradient,
                 layer_ready, seat);
    if (atomic_load(&seat->loop->diverged))
        return;
    config->home->ops->add_clock(config->home, seat->index);
    seat_count(seat, batch->n, loss);
}

static void train_all(struct seat *seat) {
    for (struct batch *batch; (batch = seat_take(seat));) {
        train(seat, batch);
        supply_give_back(seat->loop->config.supply, batch);
    }
}

void loop_async(struct seat *seat) {
    struct home *home = seat->loop->config.home;
    train_all(seat);
    if (home->ops->settle)
        home->ops->settle(home, seat->index);
}
