// What the parts of a dealer share. Inside lib/data/dealer*.c only.
//
//   dealer.c         beginning and end, figures
//   dealer_make.c    makers: threads that make samples, and batches of them
//   dealer_pile.c    batches from when their places are drawn until all of them are dealt
//   dealer_deal.c    handing out to who asks
//   dealer_rounds.c  to whom, where all workers share every step
//   dealer_lease.c   leases that are finished, or come back; the cursor
#ifndef ADAM_DEAL_DEALER_INTERNAL_H
#define ADAM_DEAL_DEALER_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "deal/dealer.h"
#include "deal/rounds.h"

// A batch on the pile. Its stretch, seed and buffer stay as they are. What is in the buffer
// is its maker's, without the lock, until it is ready, and then nobody's to change.
struct made {
    TAILQ_ENTRY(made) others;
    struct stretch stretch;
    uint64_t seed;
    struct buffer *buffer;
    bool ready;
    uint32_t dealt;   // samples of it
    struct seat seat; // whose it is; of no session: anybody's
};

struct pile {                            // changed by dealer_pile.c only
    TAILQ_HEAD(made_list, made) batches; // by epoch and place
    size_t height, height_now;           // in all, and of what is not for the next epoch
    uint64_t ready;                      // samples on it that are made, and not dealt
    bool dry;                            // there was no memory for a batch
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
    uint32_t batch;      // samples of a batch on the pile: of one or more mini-batches
    size_t pile_most;    // batches
    struct maker *makers;
    int started;
    struct pool pool; // of buffers; any thread's

    pthread_mutex_t lock; // of all that follows
    pthread_cond_t room;  // for another batch, or something to draw, or the end
    struct leases *leases;
    struct rounds rounds; // changed by dealer_rounds.c; dealer_lease.c says who goes
    bool stranger;        // one has asked
    uint64_t seed;        // of what is drawn
    struct pile pile;
    bool closing;
    struct error err;
    uint64_t made, dealt; // samples
    double busy_seconds;  // that the makers worked
};

// All that follows is called under the lock, where it does not say otherwise.

// dealer_make.c, by the owner, without the lock
// Shape and size of all samples are those of the first.
int makers_look(struct dealer *dealer, struct error *err);
int makers_start(struct dealer *dealer, struct error *err);
// Waits until they have ended.
void makers_stop(struct dealer *dealer);

// dealer_pile.c
// The samples in the buffer, laid out as on the wire. Without the lock, too.
struct proto_samples made_samples(const struct dealer *dealer, const struct made *made);
// How large batches are, and how many there may be. Before the makers start.
int pile_open(struct dealer *dealer, struct error *err);
void pile_free(struct dealer *dealer); // when they have ended
// A batch that the caller makes. NULL: there is no room, or nothing to do.
struct made *pile_draw(struct dealer *dealer);
// It is made.
void pile_ready(struct dealer *dealer, struct made *made);
// Takes off what is void: an epoch, or an era, may have ended.
void pile_sweep(struct dealer *dealer);
// What is to be dealt first, made or not. NULL: nothing of this epoch.
struct made *pile_first(const struct dealer *dealer);
// The first one of this seat.
struct made *pile_of(const struct dealer *dealer, struct seat seat);
// So many samples more of it are dealt. With the last of them it is gone.
void pile_deal(struct dealer *dealer, struct made *made, uint32_t samples);

// dealer_deal.c
// Of this batch as many samples as are wished for; DEAL_BUSY when it is NULL or not ready,
// DEAL_ENDING when it is NULL as all places of the epoch are leased.
enum deal_answer deal_made(struct dealer *dealer, const struct deal_wish *wish, struct made *made,
                           double now, struct deal *deal, uint64_t *detail);

// dealer_rounds.c
enum deal_answer deal_round(struct dealer *dealer, const struct deal_wish *wish, double now,
                            struct deal *deal, uint64_t *detail);
// Gives back what was kept for those who have gone, or are past the step.
void deal_free_seats(struct dealer *dealer);

// dealer_lease.c
// As leases_return, and the makers look.
uint32_t deal_take_back(struct dealer *dealer, uint64_t session, uint64_t number);

#endif
