// "we access and update the shared model weights locally without using locks.
//  Each thread computes weight updates and updates the shared model weights. This
//  introduces some races as well as potentially modifying weights based on stale
//  weight values that were used to compute the weight updates but have since been
//  changed by other threads. We are still able to train models to convergence
//  despite this since the weight updates are associative and commutative and
//  because neural networks are resilient and can overcome the small amount of
//  noise that this introduces." (Adam 3.2.2)
#include "train/loop_threads.h"

static void train_on_batch(struct loop_thread *thread, const struct batch *batch) {
    double loss;
    struct batch read = *batch;
    read.input = loop_thread_input(thread, batch, 0, batch->n);
    if (solo_train(&thread->solo, &read, loop_rate(thread->loop, batch->number), &loss))
        loop_thread_count(thread, batch->n, loss);
    else
        loop_diverge(thread, batch, loss / batch->n);
}

static void train_batches(struct loop_thread *thread) {
    for (struct batch *batch; (batch = loop_thread_take(thread));) {
        train_on_batch(thread, batch);
        supply_give_back(thread->loop->config.supply, batch);
    }
}

void loop_async(struct loop_thread *thread) {
    struct home *home = thread->loop->config.home;
    train_batches(thread);
    solo_leave(&thread->solo);
    home->ops->settle(home, thread->index);
}
