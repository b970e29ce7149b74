// Shared by the parts of a dealer. For lib/deal/dealer*.c only.
//
//   dealer.c         beginning and end, figures
//   dealer_make.c    makers: threads that make samples, and batches of them
//   dealer_queue.c   batches from when their places are drawn until all of them are leased
//   dealer_issue.c   handing out to who asks
//   dealer_rounds.c  to whom, where all workers share every step
//   dealer_lease.c   leases that are finished, or come back; the cursor
#ifndef ADAM_DEAL_DEALER_INTERNAL_H
#define ADAM_DEAL_DEALER_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "core/error.h"
#include "deal/dealer.h"
#include "deal/rounds.h"

// A batch in the queue. The range drawn, seed and buffer do not change. The maker owns the
// contents of the buffer, without the lock, until it is ready; then nobody changes them.
struct made_batch {
    TAILQ_ENTRY(made_batch) others;
    struct drawn_range drawn;
    uint64_t seed;
    struct buffer *buffer;
    bool ready;
    uint32_t leased;        // samples of it
    struct round_slot slot; // whose it is; of no session: anybody's
};

struct batch_queue {                                 // changed by dealer_queue.c only
    TAILQ_HEAD(made_batch_list, made_batch) batches; // by epoch and place
    size_t count, count_now; // in all, and of what is not for the next epoch
    uint64_t ready;          // samples on it that are made, and not leased
    bool no_memory;          // there was no memory for a batch
};

struct maker { // image and scratch are its thread's own
    struct dealer *dealer;
    pthread_t thread;
    struct image image;
    struct ops_scratch *scratch;
};

struct dealer {
    // Set by dealer_open, before there is another thread.
    struct dealer_options options;
    struct dealer_shape shape;
    size_t sample_bytes; // of its values
    uint32_t targets;    // numbers of a sample; 0: it has a label
    uint32_t batch;      // samples of a batch in the queue: of one or more mini-batches
    size_t queue_most;   // batches
    struct maker *makers;
    int started;
    struct pool pool; // of buffers; any thread's

    pthread_mutex_t lock; // of all that follows
    pthread_cond_t room;  // for another batch, or something to draw, or the end
    struct leases *leases;
    struct rounds rounds; // changed by dealer_rounds.c; dealer_lease.c says who goes
    bool stranger;        // one has asked
    uint64_t seed;        // of what is drawn
    struct batch_queue queue;
    bool closing;
    struct error err;
    uint64_t made, leased; // samples
    double busy_seconds;   // that the makers worked
};

// All that follows is called under the lock, where it does not say otherwise.

// dealer_make.c, by the owner, without the lock
// Shape and size of all samples are those of the first.
int makers_look(struct dealer *dealer, struct error *err);
int makers_start(struct dealer *dealer, struct error *err);
// Waits until they have ended.
void makers_stop(struct dealer *dealer);

// dealer_queue.c
// The samples in the buffer, laid out as on the wire. Without the lock, too.
struct proto_samples made_batch_samples(const struct dealer *dealer,
                                        const struct made_batch *batch);
// How large batches are, and how many there may be. Before the makers start.
int queue_open(struct dealer *dealer, struct error *err);
void queue_free(struct dealer *dealer); // when they have ended
// A batch that the caller makes. NULL: there is no room, or nothing to do.
struct made_batch *queue_draw(struct dealer *dealer);
// It is made.
void queue_ready(struct dealer *dealer, struct made_batch *batch);
// Removes batches of an epoch or era that has ended.
void queue_remove_void(struct dealer *dealer);
// The batch to lease next, made or not. NULL: nothing of this epoch is left.
struct made_batch *queue_first(const struct dealer *dealer);
// The first one of this slot.
struct made_batch *queue_find_slot(const struct dealer *dealer, struct round_slot slot);
// So many samples more of it are leased. With the last of them it is gone.
void queue_lease_out(struct dealer *dealer, struct made_batch *batch, uint32_t samples);

// dealer_issue.c
// Leases up to request->samples of the batch. DEALER_BUSY when it is NULL or not ready,
// DEALER_ENDING when it is NULL as all places of the epoch are leased.
enum dealer_answer dealer_issue_batch(struct dealer *dealer, const struct dealer_request *request,
                                      struct made_batch *batch, double now,
                                      struct leased_batch *leased, uint64_t *detail);

// dealer_rounds.c
enum dealer_answer dealer_issue_in_round(struct dealer *dealer,
                                         const struct dealer_request *request, double now,
                                         struct leased_batch *leased, uint64_t *detail);
// Gives back what was kept for those who have gone, or are past the step.
void dealer_free_slots(struct dealer *dealer);

// dealer_lease.c
// As leases_return, and the makers look.
uint32_t dealer_take_back(struct dealer *dealer, uint64_t session, uint64_t number);

#endif
