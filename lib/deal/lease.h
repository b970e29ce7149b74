// Who trains on what: the owner of an epoch. It hands out the places of the epoch's order
// (data/order.h) as leases, each to one session until a deadline. What is not finished by
// then, or was a session's that has gone, is handed out again; what is finished is not.
//
// "We ensure that the same set of images are not skipped each epoch by randomizing the
//  image processing order for each epoch." (Adam 3.2.5)
//
// A pure bookkeeper: time is passed in (seconds of any clock that never jumps), there are
// no threads, files or sockets here. Its owner calls all functions, one at a time.
#ifndef ADAM_DEAL_LEASE_H
#define ADAM_DEAL_LEASE_H

#include "deal/ranges.h"

struct error;

struct lease_rules {
    uint64_t epochs;
    // "ending an epoch whenever a specified fraction of the images are completely
    //  processed [...] waiting for 75% of the model replicas to complete processing all
    //  their images before declaring the training epoch complete can speed training by up
    //  to 20% with no impact on the trained model's prediction accuracy" (Adam 3.2.5)
    // 1: every sample is finished in every epoch.
    double epoch_end;
    double least; // seconds that a lease has at least; longer where sessions are slow
};

struct leases;

// Of `count` places, 1 or more. Leases are numbered from `number` on: those of an owner
// that was started anew must not be taken for those of the one before.
int leases_open(struct leases **out, uint32_t count, uint64_t number,
                const struct lease_rules *rules, struct error *err);
void leases_close(struct leases *leases);
// Of fewer epochs than there have been the one that is under way is the last.
void leases_rules(struct leases *leases, const struct lease_rules *rules);

uint32_t leases_epoch(const struct leases *leases); // that is being served
bool leases_done(const struct leases *leases);      // all epochs are over
// Epochs that are over, and the finished part of the present one.
double leases_progress(const struct leases *leases);
uint64_t leases_finished(const struct leases *leases); // places of the present epoch

// Places that are to be made ready: of the present epoch, or, when all of it has been
// drawn, the beginning of the next. An era ends when the cursor is set: what was drawn in
// an earlier one can no longer be issued.
struct drawn_range {
    uint32_t era, epoch;
    struct range places;
};
// Up to `most` places; false: there are none. `ahead`: of the next epoch, too.
bool leases_draw(struct leases *leases, uint32_t most, bool ahead, struct drawn_range *drawn);
// Whether places of the present epoch were not drawn yet, or came back.
bool leases_left(const struct leases *leases);
// Whether what was drawn is of the present era and not of an epoch that is over, and
// whether it can be issued now.
bool leases_wants(const struct leases *leases, const struct drawn_range *drawn);
bool leases_now(const struct leases *leases, const struct drawn_range *drawn);

struct lease {
    uint64_t number;
    double deadline; // seconds from now
};
// Hands out what was drawn (a part of a drawn; each place once) and can be issued now.
int leases_issue(struct leases *leases, uint64_t session, const struct drawn_range *drawn,
                 double now, struct lease *lease, struct error *err);

// The lease is trained on. False when it is over, or was never that session's; then
// nothing changes. *epoch and *places are what was finished.
bool leases_finish(struct leases *leases, uint64_t session, uint64_t number, double now,
                   uint32_t *epoch, struct range *places);
// The session does not have what it was given, or did not train on it for good: how many
// places are handed out again. 0: the lease is over, or was never that session's; then
// nothing changes.
uint32_t leases_return(struct leases *leases, uint64_t session, uint64_t number);
// A session whose link was cut says which leases have reached it: it has this one (unless it is
// over, or was never that session's), then, that it has no other. Those are handed out again at
// once; how many places.
void leases_keep(struct leases *leases, uint64_t session, uint64_t number);
uint64_t leases_lose_rest(struct leases *leases, uint64_t session);
// What the session holds is handed out again, and nobody waits for it.
void leases_gone(struct leases *leases, uint64_t session);
// Takes back the leases whose deadlines have passed, and gives their sessions longer ones
// from now on; how many places. Seconds until the next deadline in *next, or below 0.
uint64_t leases_expire(struct leases *leases, double now, double *next);

// The owner stood still for so many seconds up to now, in which nobody could finish anything: what
// is out has as much longer, and was as much quicker.
void leases_paused(struct leases *leases, double seconds);

// How far it is, as a checkpoint remembers it. The ranges are the owner's.
const struct ranges *leases_cursor(const struct leases *leases);
// Goes on from there: all leases are over. STATUS_DATA when it does not fit the set.
int leases_set_cursor(struct leases *leases, uint32_t epoch, const struct range *finished,
                      size_t count, struct error *err);

// Sessions that hold leases, for who knows which of them live: number `index` from 0, or 0
// behind the last.
uint64_t leases_session(const struct leases *leases, size_t index);

#endif
