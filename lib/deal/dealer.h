// Batches for others: made ready ahead of demand, handed out as leases.
//
// "The training data set is augmented by randomly applying a different transformation to
//  each image so that each training epoch effectively processes a different variant of the
//  same image. This is done in advance since some of the image transformations are compute
//  intensive and we want to immediately stream the transformed images to the model training
//  machines when requested." (Adam 3.1)
//
// A queue of batches in the order of the epoch is made by threads of the dealer's own; the
// first of the next epoch already while the leases of this one are finished. A batch is
// one buffer, counted by reference, which is sent from where it lies. Who asks never waits.
//
// Threads: all functions but dealer_open and dealer_close may be called by any thread at
// any time. They take one lock, and no time.
#ifndef ADAM_DEAL_DEALER_H
#define ADAM_DEAL_DEALER_H

#include "core/pool.h"
#include "deal/lease.h"
#include "deal/picture_cache.h"
#include "ops/ops.h"
#include "proto/samples.h"

struct error;

struct dealer;
struct proto_lease_id;

struct dealer_options { // what it points to outlives the dealer
    struct picture_cache *pictures;
    const struct ops *ops; // of each picture; may be NULL
    struct lease_rules rules;
    uint64_t seed;   // of order and operations
    uint64_t number; // of the first lease, see leases_open
    uint32_t batch;  // samples that are mostly asked for at once
    size_t ahead;    // bytes of samples that are made ahead of demand
    int threads;     // that make them; at least 1
    bool rounds;     // all workers share every step (deal/rounds.h)
};

// Mini-batches that are best handed out as one lease: fewer, larger messages where samples
// are small, yet a small part of the data set, so that at the end of an epoch nobody waits
// long for what another holds. `sample_bytes` are those of values and targets.
uint32_t dealer_together(uint64_t samples, uint32_t batch, size_t sample_bytes);

// What the pictures are after all operations, by the first one: all others must be alike.
struct dealer_shape {
    int channels, height, width;
    enum pixel type;
};

// STATUS_DATA when the first picture cannot be made.
int dealer_open(struct dealer **out, const struct dealer_options *options, struct error *err);
// No deal may be in anybody's hands.
void dealer_close(struct dealer *dealer);

struct dealer_shape dealer_shape(const struct dealer *dealer);

// A part of a batch, in anybody's hands until dealer_release.
struct leased_batch {
    struct lease lease;
    struct drawn_range drawn;
    struct buffer *buffer;
    struct proto_samples samples; // in the buffer; values as the shape says
};

enum dealer_answer {
    DEALER_ISSUED,     // leased
    DEALER_IDLE,       // nothing in this round
    DEALER_BUSY,       // not now; *detail: milliseconds after which to ask again
    DEALER_ENDING,     // the same: nothing of the epoch is left but what others have leased
    DEALER_EPOCH_OVER, // the epoch that was asked for; *detail: which is served now
    DEALER_ALL_OVER,   // all epochs are over
    DEALER_FAILED,     // dealer_status tells
};

struct dealer_request {
    uint64_t session;
    uint64_t step;    // that they are for, where workers share every step...
    uint64_t clock;   // ...of which those before this one are over
    uint32_t epoch;   // that the session works on
    uint32_t samples; // at most
};
// `now` is that of clock_seconds.
enum dealer_answer dealer_issue(struct dealer *dealer, const struct dealer_request *request,
                                double now, struct leased_batch *leased, uint64_t *detail);
void dealer_release(struct dealer *dealer, struct buffer *buffer);

// As the functions of deal/lease.h whose names they have.
bool dealer_finish(struct dealer *dealer, uint64_t session, uint64_t number, double now,
                   uint32_t *epoch, struct range *places);
uint32_t dealer_return(struct dealer *dealer, uint64_t session, uint64_t number);
// The session has these leases and no other: what else it was given is handed out again.
uint64_t dealer_lose_rest(struct dealer *dealer, uint64_t session,
                          const struct proto_lease_id *held, size_t count);
void dealer_gone(struct dealer *dealer, uint64_t session);
uint64_t dealer_expire(struct dealer *dealer, double now, double *next);
void dealer_paused(struct dealer *dealer, double seconds);
uint64_t dealer_session(struct dealer *dealer, size_t index);
// Who shares every step from now on, where workers do. Until this is known, and to others,
// nothing is leased.
int dealer_members(struct dealer *dealer, const uint64_t *sessions, size_t count,
                   struct error *err);
// Whether somebody asked since the last time who is no member.
bool dealer_met_stranger(struct dealer *dealer);
void dealer_rules(struct dealer *dealer, const struct lease_rules *rules);
// Copies the finished ranges, to be freed with free(); NULL when out of memory.
struct range *dealer_cursor(struct dealer *dealer, uint64_t *seed, uint32_t *epoch, size_t *count);
// As leases_set_cursor.
int dealer_set_cursor(struct dealer *dealer, uint64_t seed, uint32_t epoch,
                      const struct range *finished, size_t count, struct error *err);

// STATUS_OK until a picture could not be made.
int dealer_status(struct dealer *dealer, struct error *err);

struct dealer_figures {
    uint32_t epoch;
    bool done;
    double progress;   // in epochs
    uint64_t finished; // samples of the present epoch
    uint64_t leased;   // samples in all
    uint64_t made;     // samples in all
    uint64_t ready;    // samples that can be leased now, or in the next epoch
};
struct dealer_figures dealer_figures(struct dealer *dealer);

#endif
