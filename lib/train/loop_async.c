// "we access and update the shared model weights locally without using locks.
//  Each thread computes weight updates and updates the shared model weights. This
//  introduces some races as well as potentially modifying weights based on stale
//  weight values that were used to compute the weight updates but have since been
//  changed by other threads. We are still able to train models to convergence
//  despite this since the weight updates are associative and commutative and
//  because neural networks are resilient and can overcome the small amount of
//  noise that this introduces." (Adam 3.2.2)
#include "train/loop_threads.h"

static void train_on_batch(struct seat *seat, const struct batch *batch) {
    double loss;
    if (solo_train(&seat->solo, batch, loop_rate(seat->loop, batch->number), &loss))
        seat_count(seat, batch->n, loss);
    else
        loop_diverge(seat, batch, loss / batch->n);
}

static void train_batches(struct seat *seat) {
    for (struct batch *batch; (batch = seat_take(seat));) {
        train_on_batch(seat, batch);
        supply_give_back(seat->loop->config.supply, batch);
    }
}

void loop_async(struct seat *seat) {
    struct home *home = seat->loop->config.home;
    train_batches(seat);
    solo_leave(&seat->solo);
    home->ops->settle(home, seat->index);
}
