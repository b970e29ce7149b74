// Homes of the parameters on parameter servers: what train/home.h is to the training loop,
// and what a worker needs beside it. There are two.
//
// home_delta: "The first version locally computes and accumulates the weight updates in a
// buffer that is periodically sent to the parameter server machines when k (which is
// typically in the hundreds to thousands) images have been processed. The parameter server
// machines then directly apply these accumulated updates to the stored weights." (Adam
// 3.2.6). The threads train on weights in this process, without locks, as a worker alone
// does. Every push_every mini-batches a thread of the home's own takes what they have
// changed since the last time, pushes it, pulls what others have changed, and adds that to
// the weights in use. With distances by cost nobody waits for it, unless the servers do not
// answer: a copy that drifts too far from the others' harms more than a pause. A distance that
// was asked for is kept to: the threads wait where they would be two of them ahead.
//
// home_gradient: one learner of Rudra 3. Its threads share a mini-batch (train/loop.h,
// synchronous); the gradient goes to the servers, which apply it by the run's protocol,
// and the weights are only ever pulled. Gradients of push_every mini-batches go together
// ("accruedgradients", Downpour). With `overlap` pushes and pulls have two buffers
// each, so that "computing can continue without waiting for the communication [...] To use
// the newly received weights only requires a pointer swap" (Rudra 3.3). Without it, as in
// Rudra-base, "the learner does not proceed with the computation on the next mini-batch"
// until it has the weights that it asked for behind its push, and hardsync's next
// mini-batch needs the next weights.
//
// Threads: home_servers_* are called by the owner, while the loop's threads stand still
// where that is said. home_servers_status and _figures may be called by any.
#ifndef ADAM_REMOTE_HOME_SERVERS_H
#define ADAM_REMOTE_HOME_SERVERS_H

#include <stdbool.h>

#include "remote/portion.h"
#include "rule/protocol.h"
#include "train/home.h"

struct error;

struct home_servers;

struct home_servers_config { // what it points to must outlive the home
    const struct model *model;
    // Of a partition, whose model that is: where its parameters lie, of which it pushes those that
    // it gives. It pushes no factors. NULL: the servers have this model.
    const struct portion *portion;
    const struct optimizer *optimizer;
    const struct kernels *kernels;
    struct servers *servers;
    int threads, batch;
    // Mini-batches between two; 0: by cost; as pushes. hardsync pushes each mini-batch.
    uint64_t push_every, pull_every;
    // Its settings may change between home_servers_change's calls; its kind does not.
    const struct protocol *protocol;
    bool overlap;        // gradients: weights come while the threads compute
    const char *factors; // dense layers that push factors: auto, none, LAYER,...
    // Which samples are in a push, for whoever must know that they were applied: `mark` is
    // asked before what it holds is taken, `applied` told when it was acknowledged, or
    // `lost` when it was too stale: what came behind the mark before, `from`, is in no
    // weights. Called by one thread at a time. NULL: nobody wants to know.
    void *self;
    uint64_t (*mark)(void *self);
    void (*applied)(void *self, uint64_t mark);
    void (*lost)(void *self, uint64_t from, uint64_t mark);
    // hardsync: the next mini-batch is trained on weights of this clock. NULL: as above.
    void (*turn)(void *self, uint64_t clock);
};

// Deltas of parameters that several partitions have are pushed by one; the others know that they
// are on their way.
int home_delta_open(struct home_servers **out, const struct home_servers_config *config,
                    struct error *err);
int home_gradient_open(struct home_servers **out, const struct home_servers_config *config,
                       struct error *err);

// For the loop; whether that must be synchronous.
struct home *home_servers_home(struct home_servers *home);
bool home_servers_sync(const struct home_servers *home);

// Before the loop starts: waits for the first weights.
int home_servers_begin(struct home_servers *home, struct error *err);
// A mini-batch of `samples` at learning rate `rate` is complete: pushes and pulls what is due.
// 0 samples: no mini-batch came within the loop's patience. The loop's step function.
void home_servers_step(struct home_servers *home, int samples, float rate);
// When the loop has stopped: pushes what it has left, and waits until all is applied.
int home_servers_flush(struct home_servers *home, struct error *err);
// The loop waits for samples that come only when what was trained on is applied: push now.
// Any thread; does not wait.
void home_servers_hurry(struct home_servers *home);
// Other distances between pushes and pulls, from now on; any thread.
void home_servers_pace(struct home_servers *home, uint64_t push_every, uint64_t pull_every);
// The settings of the optimizer and of the protocol may have changed. While the threads stand
// still.
void home_servers_change(struct home_servers *home);
// So many workers share the model from now on, this one included: distances by cost and the
// protocol's factor of the rate are other ones, and those who came are told what was learned
// here. Any thread.
void home_servers_sharers(struct home_servers *home, size_t sharers);

// STATUS_OK as long as exchanges go well; else what exchange_wait said, and nothing is
// exchanged any more.
int home_servers_status(struct home_servers *home, struct error *err);

struct home_servers_figures { // since home_servers_begin
    double waited;            // seconds that computing waited for servers, all threads together
    uint64_t pushes;          // of samples, that were applied; each of one or more messages
    uint64_t too_stale;       // messages of pushes that were refused for that
    uint64_t push_every;      // mini-batches of a push, at present
};
struct home_servers_figures home_servers_figures(struct home_servers *home);

// After the loop is closed.
void home_servers_close(struct home_servers *home);

// Mini-batches between two exchanges of deltas such that their work is a small share of the
// training's, what is moved against what is multiplied. Where several share the model, at
// most home_delta_most of a long run: a copy that drifts further from the others' harms more
// than exchanges cost.
uint64_t home_delta_every(const struct model *model, int batch, size_t sharers);
// The mini-batches between two exchanges that each of `sharers` workers has at most, after it
// has trained on so many: 64 samples of all of them at first, which grow to 128 in the course
// of 32768. At least one.
uint64_t home_delta_most(int batch, size_t sharers, uint64_t trained);

#endif
