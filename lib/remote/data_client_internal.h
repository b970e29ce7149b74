// Shared by the parts of the data client. For lib/remote/data_client*.c only.
#ifndef ADAM_REMOTE_DATA_CLIENT_INTERNAL_H
#define ADAM_REMOTE_DATA_CLIENT_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "core/error.h"
#include "member/patience.h"
#include "net/link.h"
#include "remote/data_client.h"

// Leases to report to their data server. The first `reporting` have been sent.
struct lease_report {
    struct proto_lease_id *leases;
    size_t count, room, reporting;
};

// A data server as this client sees it. Lives as long as the client, listed or not.
struct data_peer {
    struct data_peer *next;
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
    size_t sample_bytes;    // of a picture's values
    uint32_t epoch;         // that it serves
    bool over;              // all its epochs are
    uint64_t position;      // places handed out here, of the epoch
    uint32_t in_flight;     // requests for leases
    uint64_t samples_asked; // samples that they ask for
    bool busy;              // it had nothing when it was asked last
    bool ending;            // as it waits for leases of this epoch to be finished
    double not_before;      // when it may be asked
    uint64_t idle_at;       // the last step in which it had nothing for us; 0: none

    struct lease_report finished, returned; // until it has acknowledged them
    bool reporting;                         // `finish` has been sent
    struct proto_finish finish;
    struct link_request finish_request;
    uint64_t received, sent; // of earlier links
};

// A lease that this worker holds, until all its batches are finished.
struct held_lease {
    LIST_ENTRY(held_lease) others;
    struct data_peer *server;
    uint64_t number;
    uint32_t left; // batches
    bool lost;     // a batch of it did not reach the weights: the lease is returned
};

// One request for batches and the buffer of its answer, in use until its last batch is in a slot.
struct fetch {
    STAILQ_ENTRY(fetch) behind; // of those that arrived
    bool used;
    struct data_peer *server;
    struct held_lease *lease;
    uint32_t batches, taken; // asked for, later received; moved to slots
    uint32_t targets;        // numbers of a sample that arrived; 0: it has a label
    struct proto_batch answer;
    struct proto_lease asked;
    struct link_request request;
    char *raw; // the payload
    size_t raw_room;
};

enum batch_slot_state { BATCH_FREE, BATCH_FILLED, BATCH_READY, BATCH_TAKEN };

struct batch_slot {                  // room for a batch, and the batch in it
    STAILQ_ENTRY(batch_slot) behind; // of those that are ready
    struct batch batch;
    float *targets; // room for them, where the model may learn such
    enum batch_slot_state state;
    struct held_lease *lease;
};

struct trained { // a batch that was given back
    uint64_t ordinal;
    struct held_lease *lease;
};

struct data_client {
    struct supply supply; // first: a client is one
    struct data_client_options options;
    pthread_t fetcher, dialler;
    bool fetching, dialling; // the threads run
    struct batch_slot *slots;
    int slot_count;
    struct fetch *fetches; // each under way, with a batch or more of it not taken
    int fetch_count;
    struct input input; // the fetcher's

    pthread_mutex_t lock;             // of all that follows
    pthread_cond_t to_fetch, to_dial; // something changed for that thread
    pthread_cond_t changed;           // for those who take, and those who flush
    struct kept *routes;              // the newest; NULL: none yet
    struct data_peer *servers;
    LIST_HEAD(held_lease_list, held_lease) leases;
    STAILQ_HEAD(fetch_queue, fetch) arrived;
    STAILQ_HEAD(slot_queue, batch_slot) ready;
    int under_way; // batches that are asked for, arrived or ready
    uint32_t ready_count;
    int waiting;  // takers
    int flushing; // threads in data_client_flush
    bool closing, cancelled, over;
    struct proto_data data; // of the first that told; `whole` 0: none yet. Its texts are nowhere
    bool began;             // an epoch, that of the figures
    uint64_t step;          // with `rounds`: of the next batch that is taken; 0: not known yet
    uint64_t clock;         // of the weights that this worker has
    struct error err;
    uint64_t given_back, settled; // batches; the second is the highest mark
    struct trained *trained;      // given back, and neither finished nor lost
    size_t trained_first, trained_count, trained_room;
    double hurried; // when `idle` was called last
    struct patience patience;
    uint64_t wait_batches; // that had been taken when the wait began
    struct data_client_figures figures;
};

// Call the functions below, except the threads, with the lock held.

// data_client.c
void client_fail(struct data_client *client, const struct error *why);
void client_wake(struct data_client *client); // all threads that wait
// Waits for `changed`, at most until this time (clock_seconds); INFINITY: without limit.
void client_wait_changed(struct data_client *client, double until);

// data_client_lease.c
struct held_lease *client_add_lease(struct data_client *client, const struct fetch *fetch);
// False: out of memory; the batch's lease will expire.
bool client_add_trained(struct data_client *client, struct trained trained);
// A batch of this lease was not trained on: the lease is returned when none of them is open.
void client_lose_batch(struct data_client *client, struct held_lease *lease);
// Reports finished and returned leases to one data server. Releases the lock while it sends.
// False: there is nothing to report.
bool client_report(struct data_client *client);
// Drops the reports that have not been sent. Returns how many of them were of finished leases.
uint64_t client_cut_reports(struct data_peer *server);
// The leases of this data server that it has not heard to be over: *count of them, to be freed
// with free(). NULL: out of memory.
struct proto_lease_id *client_held(const struct data_client *client, const struct data_peer *server,
                                   size_t *count);
void client_free_leases(struct data_client *client);

// data_client_choose.c
// *epoch: the earliest epoch of all data servers; UINT32_MAX: not known yet. False: all are over.
bool client_epoch(const struct data_client *client, uint32_t *epoch);
// Number of batches that one request asks for.
uint32_t client_together(const struct data_client *client, const struct data_peer *server);
// The data server to ask now, or NULL. *soon is lowered to the time when one may be asked.
struct data_peer *client_choose(const struct data_client *client, double now, double *soon);
// With `rounds`: true when no data server has samples for this worker in this step.
bool client_is_idle(const struct data_client *client);

// data_client_ask.c
// Requests batches from one data server, if one can be asked now. Releases the lock meanwhile.
bool client_ask(struct data_client *client, double now, double *soon);
// Makes the fetch free for another request.
void client_end_fetch(struct data_client *client, struct fetch *fetch);

// data_client_convert.c. Converts one batch that arrived, if a slot is free. Releases the lock
// meanwhile.
bool client_convert(struct data_client *client);

// data_client_supply.c
extern const struct supply_ops client_supply_ops;

// data_client_fetch.c
void *client_fetch(void *self);

// data_client_dial.c
void *client_dial(void *self);

#endif
