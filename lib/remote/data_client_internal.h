// What the parts of the data client share. Inside lib/role/data_client*.c only.
#ifndef ADAM_REMOTE_DATA_CLIENT_INTERNAL_H
#define ADAM_REMOTE_DATA_CLIENT_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "member/patience.h"
#include "net/link.h"
#include "remote/data_client.h"

// Leases that their data server is to be told of; the first `telling` are on their way.
struct tidings {
    struct proto_lease_id *leases;
    size_t count, room, telling;
};

// A data server. It stays as long as the client, listed in the routes or not.
struct source {
    struct source *next;
    struct data_client *client;
    uint32_t member;
    bool listed; // in the newest routes
    char address[PROTO_ADDRESS_MAX + 1];

    struct link *link;    // NULL: none; made and closed by the dialling thread
    bool broken, dialled; // the link is; there was one before
    double next_dial, pause;
    char why[LINK_WHY]; // it does not serve, or ""

    bool known; // what follows
    struct proto_data data;
    size_t sample_bytes; // of a picture's values
    uint32_t epoch;      // that it serves
    bool over;           // all its epochs are
    uint64_t position;   // places handed out here, of the epoch
    uint32_t flying;     // requests for leases
    uint64_t awaited;    // samples that they ask for
    bool busy;           // it had nothing when it was asked last
    bool ending;         // as it waits for leases of this epoch to be finished
    double not_before;   // when it may be asked
    uint64_t idle_at;    // the last step in which it had nothing for us; 0: none

    struct tidings finished, returned; // until it has heard of them
    bool telling;                      // `finish` is on its way
    struct proto_finish finish;
    struct link_request finish_request;
    uint64_t received, sent; // of earlier links
};

// A lease, as long as batches of it are not finished.
struct grant {
    LIST_ENTRY(grant) others;
    struct source *source;
    uint64_t session, number;
    uint32_t left; // batches
    bool lost;     // what was learned of a batch of it is in no weights: it is given back
};

// Room for what one request brings, until the last batch of it is a slot's.
struct parcel {
    STAILQ_ENTRY(parcel) behind; // of those that arrived
    bool used;
    struct source *source;
    struct grant *grant;
    uint32_t batches, taken; // asked for, then those in it; and those that are slots'
    struct proto_batch answer;
    struct proto_lease asked;
    struct link_request request;
    char *raw; // the payload
    size_t raw_room;
};

enum slot_state { SLOT_FREE, SLOT_FILLED, SLOT_READY, SLOT_TAKEN };

struct slot {                  // room for a batch, and the batch in it
    STAILQ_ENTRY(slot) behind; // of those that are ready
    struct batch batch;
    enum slot_state state;
    struct grant *grant;
};

struct trained { // a batch that was given back
    uint64_t ordinal;
    struct grant *grant;
};

struct data_client {
    struct supply supply; // first: a client is one
    struct data_client_options options;
    pthread_t fetcher, dialler;
    bool fetching, dialling; // the threads run
    struct slot *slots;
    int slot_count;
    struct parcel *parcels; // each under way, with a batch or more of it not taken
    int parcel_count;
    struct input input; // the fetcher's

    pthread_mutex_t lock;             // of all that follows
    pthread_cond_t to_fetch, to_dial; // something changed for that thread
    pthread_cond_t changed;           // for those who take, and those who flush
    struct kept *routes;              // the newest; NULL: none yet
    struct source *sources;
    LIST_HEAD(grant_list, grant) grants;
    STAILQ_HEAD(parcel_queue, parcel) arrived;
    STAILQ_HEAD(slot_queue, slot) ready;
    int under_way; // batches that are asked for, arrived or ready
    uint32_t ready_count;
    int waiting;  // takers
    int flushing; // threads in data_client_flush
    bool closing, cancelled, over;
    bool began;     // an epoch, that of the figures
    uint64_t step;  // with `rounds`: of the next batch that is taken; 0: not known yet
    uint64_t clock; // of the weights that this worker has
    struct error err;
    uint64_t given_back, settled; // batches; the second is the highest mark
    struct trained *trained;      // given back, and neither finished nor lost
    size_t trained_first, trained_count, trained_room;
    double hurried; // when `idle` was called last
    struct patience patience;
    uint64_t wait_batches; // that had been taken when the wait began
    struct data_client_figures figures;
};

// All that follows, but the threads, under the lock.

// data_client.c
void client_fail(struct data_client *client, const struct error *why);
void client_wake(struct data_client *client); // everybody
// For `changed`, until then at most; INFINITY: for ever.
void client_wait_changed(struct data_client *client, double until);

// data_client_lease.c
struct grant *client_add_grant(struct data_client *client, const struct parcel *parcel);
// False: no memory, and the batch's lease will run out.
bool client_add_trained(struct data_client *client, struct trained trained);
// Of leases that are finished or given back. Lets go of the lock while it tells. False:
// there is nothing to tell.
bool client_tell(struct data_client *client);
// The data server is to hear of nothing more than what is on its way; how many leases that
// are finished it does not hear of.
uint64_t client_cut_tidings(struct source *source);
void client_free_leases(struct data_client *client);

// data_client_choose.c
// Epoch of the data server that is least far; UINT32_MAX: not known yet. False: all are through.
bool client_epoch(const struct data_client *client, uint32_t *epoch);
// Batches that one request asks for.
uint32_t client_together(const struct data_client *client, const struct source *source);
// Who is to be asked for more now; NULL: nobody. *soon: when somebody may be.
struct source *client_choose(const struct data_client *client, double now, double *soon);
// With `rounds`: nobody has anything for us in this step, our turn is without samples.
bool client_is_idle(const struct data_client *client);

// data_client_ask.c
// Asks for a batch or more if it can be done now, and lets go of the lock while it does.
bool client_ask(struct data_client *client, double now, double *soon);
// Nothing of it comes, or no more.
void client_release(struct data_client *client, struct parcel *parcel);

// data_client_convert.c. Makes a batch of what arrived, if there is room, and lets go of
// the lock while it does.
bool client_convert(struct data_client *client);

// data_client_supply.c
extern const struct supply_ops client_supply_ops;

// data_client_fetch.c
void *client_fetch(void *self);

// data_client_dial.c
void *client_dial(void *self);

#endif
