// What the two homes share. Inside lib/remote only.
#ifndef ADAM_REMOTE_HOME_SERVERS_INTERNAL_H
#define ADAM_REMOTE_HOME_SERVERS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/error.h"
#include "remote/home_servers.h"

struct home_servers { // each home's own struct begins with this
    struct home home;
    struct home_servers_config config;
    bool sync;
    int (*begin)(struct home_servers *home, struct error *err);
    void (*step)(struct home_servers *home, int samples, float rate); // NULL: nothing to do
    int (*flush)(struct home_servers *home, struct error *err);
    void (*hurry)(struct home_servers *home);
    void (*change)(struct home_servers *home);
    uint64_t (*every)(struct home_servers *home); // mini-batches of the next push
    _Atomic uint64_t push_every, pull_every;      // in use
    atomic_bool exact;                            // as the user wants them, not by cost
    _Atomic uint64_t pushes;                      // that were applied
    _Atomic size_t sharers; // changed under the lock, as are config's distances
    _Atomic float factor;   // the protocol's, of each push's rate
    uint64_t marked;        // of the last push whose end is known
    _Atomic double waited;
    _Atomic uint64_t too_stale;
    atomic_int status;    // of exchanges; once it is not STATUS_OK it stays
    pthread_mutex_t lock; // of err, and of the pace
    struct error err;
};

void home_servers_init(struct home_servers *home, const struct home_servers_config *config);
void home_servers_free(struct home_servers *home);

// An exchange of all that the home pulls or pushes.
int home_servers_exchange(struct exchange **out, const struct home_servers_config *config,
                          enum exchange_way way, struct error *err);

// The learning rate of a push, where the schedule says `rate`.
float home_servers_rate(const struct home_servers *home, float rate);

// Waits until the exchange is over. True: it was carried out, or was too stale (*stale, may
// be NULL), which is counted. False: it failed, and so has the home.
bool home_servers_await(struct home_servers *home, struct exchange *exchange, bool *stale,
                        double *waited);
// It failed for a reason of its own.
void home_servers_fail(struct home_servers *home, const struct error *why);
void home_servers_waited(struct home_servers *home, double seconds);
// What was trained on by now; and what became of a push that held this: it was applied, or
// it was too stale. By one thread. home_servers_left: the same where nothing had to be pushed.
uint64_t home_servers_mark(const struct home_servers *home);
void home_servers_left(struct home_servers *home, uint64_t mark);
void home_servers_pushed(struct home_servers *home, uint64_t mark, bool stale);

#endif
