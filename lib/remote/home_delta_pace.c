// When deltas are exchanged.
//
// "limiting each model replica to request updated parameters only every n_fetch steps and
// send updated gradient values only every n_push steps (where n_fetch might not be equal to
// n_push)" (DistBelief's Downpour). Distances by cost are the least ones: while an exchange
// is under way, what is due next is put off, and grows. Distances that the user set are
// kept to: an exchange counts from where it was due, and not from when it was begun, and
// threads wait before they would be two distances ahead of it.
#include "remote/home_delta_internal.h"

// Exchanges by cost that the threads of a worker that trains alone are ahead of servers that do
// not answer. Beside others it is one: what a worker has not heard is what it will repeat.
enum { EXCHANGES_ALONE = 2 };

// --- distances --------------------------------------------------------------------------

static bool is_shared(const struct delta *delta) {
    return atomic_load(&delta->common.sharers) > 1;
}

// `every`, or less at the beginning of training beside others.
uint64_t delta_distance(const struct delta *delta, const _Atomic uint64_t *every) {
    const struct home_servers *common = &delta->common;
    uint64_t usual = atomic_load(every);
    if (atomic_load(&common->exact) || !is_shared(delta))
        return usual;
    uint64_t most = home_delta_most(common->config.batch, atomic_load(&common->sharers),
                                    atomic_load(&delta->clock));
    return usual < most ? usual : most;
}

// Pushes are due `every` mini-batches behind the last one. Where threads have copies of the
// weights, one mini-batch later: so there always is a push behind the moment when they stop,
// and put into `weights` what their copies have.
uint64_t delta_push_due(struct delta *delta) {
    uint64_t apart = delta->local->apart;
    return atomic_load(&delta->pushed) + delta_distance(delta, &delta->common.push_every) + apart;
}

uint64_t delta_pull_due(struct delta *delta) {
    if (atomic_load(&delta->behind))
        return atomic_load(&delta->pulled);
    return atomic_load(&delta->pulled) + delta_distance(delta, &delta->common.pull_every);
}

// Whether distances are kept to: beside others, and where products are kept, for which there is
// no more room.
static bool is_strict(const struct delta *delta) {
    return atomic_load(&delta->common.exact) || is_shared(delta) || atomic_load(&delta->keeps);
}

// Where an exchange that is begun now counts from.
uint64_t delta_exchange_clock(struct delta *delta, const _Atomic uint64_t *last,
                              const _Atomic uint64_t *every) {
    uint64_t now = atomic_load(&delta->clock),
             due = atomic_load(last) + delta_distance(delta, every);
    return is_strict(delta) && due < now ? due : now;
}

// Whether the threads are too far ahead of the servers.
bool delta_is_adrift(struct delta *delta) {
    struct home_servers *common = &delta->common;
    uint64_t push = delta_distance(delta, &common->push_every);
    uint64_t pull = delta_distance(delta, &common->pull_every);
    uint64_t now = atomic_load(&delta->clock), most = push > pull ? push : pull;
    if (!is_shared(delta))
        most *= EXCHANGES_ALONE;
    bool adrift = atomic_load(&common->exact)
                      ? now >= delta_push_due(delta) + push || now >= delta_pull_due(delta) + pull
                      : now - atomic_load(&delta->settled) > most;
    return adrift && !home_servers_status(common, NULL);
}

// --- by cost ----------------------------------------------------------------------------

// Fitted, in multiply-adds of training, over all processes: to send a weight's change to a server
// and apply it; and the fixed cost of an exchange, mostly waking threads.
enum { MULTIPLIES_A_WEIGHT = 600, MULTIPLIES_AN_EXCHANGE = 30000000 };
enum { PASSES = 3 };    // of a connection: forward, error gradients, gradient
enum { TRAINING = 24 }; // times as much work as exchanging
// "periodically sent to the parameter server machines when k (which is typically in the
// hundreds to thousands) images have been processed" (Adam 3.2.6): as many as that where
// nobody else trains.
enum { SAMPLES_ALONE = 2048 };
// What workers have not yet told each other acts like one step of the sum of all of it, which
// harms most at the beginning: together they hold back no more than so many samples at first,
// and more by one for each FADING that they have trained on, of which more than SHARERS workers
// have a SHARERS-th each.
enum { TOGETHER_FIRST = 64, TOGETHER_MOST = 128, FADING = 512, SHARERS = 4 };

static uint64_t every_by_cost(const struct model *model, int batch) {
    uint64_t exchange = model->parameter_count * (uint64_t)MULTIPLIES_A_WEIGHT;
    uint64_t training = model->connections * PASSES * (uint64_t)batch;
    uint64_t wanted = (exchange + MULTIPLIES_AN_EXCHANGE) * TRAINING;
    return training > 0 ? (wanted + training - 1) / training : 1;
}

uint64_t home_delta_most(int batch, size_t sharers, uint64_t trained) {
    uint64_t sharing = sharers < SHARERS ? sharers : SHARERS, size = (uint64_t)batch;
    uint64_t together = TOGETHER_FIRST + trained * size * sharing / FADING;
    uint64_t most = (together < TOGETHER_MOST ? together : TOGETHER_MOST) / (sharing * size);
    return most > 0 ? most : 1;
}

uint64_t home_delta_every(const struct model *model, int batch, size_t sharers) {
    bool alone = sharers <= 1;
    uint64_t every = every_by_cost(model, batch) * (alone ? SHARERS : 1);
    uint64_t most =
        alone ? SAMPLES_ALONE / (uint64_t)batch : home_delta_most(batch, sharers, UINT32_MAX);
    every = every < most ? every : most;
    return every > 0 ? every : 1;
}
