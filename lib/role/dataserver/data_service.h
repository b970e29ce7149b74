// What a data server answers: the data messages of proto/messages.h over links of any
// listener, on behalf of a dealer (deal/dealer.h). It never waits for anything: batches
// that are ready go out from where they lie, and who comes too early is told when to come
// again ("They use asynchronous IO to process incoming requests", Adam 3.1).
//
// Before data_service_begin everybody is told to come again.
//
// Threads: handlers are called by those of the network. All other functions are the
// owner's, but data_service_stop_wanted and data_service_figures, which are anybody's.
#ifndef ADAM_ROLE_DATASERVER_DATA_SERVICE_H
#define ADAM_ROLE_DATASERVER_DATA_SERVICE_H

#include "deal/dealer.h"
#include "deal/journal.h"
#include "net/link.h"

struct error;

struct data_service;

struct data_service_options { // what it points to outlives the service
    const char *name;         // of the data set, for people
    struct picture_cache *pictures;
    // A line for the user, by any thread; it must not wait. NULL: silent.
    void (*say)(void *self, const char *text);
    void *self;
};

int data_service_open(struct data_service **out, const struct data_service_options *options,
                      struct error *err);
// All listeners with its handlers must be closed.
void data_service_close(struct data_service *service);

// The handlers' context, hello, request and closed, for link_options.
struct link_handlers data_service_handlers(struct data_service *service);

struct data_service_run { // what it points to outlives the service
    struct proto_id run;
    uint64_t model;
    const char *name; // of this server, for people
    const struct ops *ops;
    struct lease_rules rules;
    uint64_t seed;
    uint64_t number; // of the first lease, see leases_open
    uint32_t batch;
    size_t ahead;
    int threads;
    bool rounds;        // all workers share every step (deal/rounds.h)
    const char *cursor; // file of the journal; NULL: none
    uint32_t epoch;     // earlier ones are over in the run
};

// From now on it serves. With a journal of this run it goes on from there, unless the run is
// in a later epoch. Statuses as
// dealer_open and journal_open.
int data_service_begin(struct data_service *service, const struct data_service_run *run,
                       struct error *err);
void data_service_rules(struct data_service *service, const struct lease_rules *rules);

// Looks after what has a time: leases that are over, the journal. Seconds after which it
// is to be called again. STATUS_OK unless a picture could not be made, and nothing goes on.
int data_service_tend(struct data_service *service, double *next, struct error *err);
// Who is in the run (message.status of a controller): what sessions hold that are gone is
// handed out again, and the workers among them share every step, where they do, but those
// that the controller has wait.
int data_service_members(struct data_service *service, const struct proto_status *status,
                         struct error *err);
// Whether a worker asked of which that was not said yet; once.
bool data_service_met_stranger(struct data_service *service);
// The controller, or a person, has sent `stop`.
bool data_service_stop_wanted(const struct data_service *service);

struct data_service_figures {
    struct dealer_figures dealer; // zeros before it has begun
    struct picture_cache_figures pictures;
    uint64_t leases;         // handed out
    uint64_t busy;           // requests that were told to come again
    uint64_t over;           // leases that were over when they were finished
    uint64_t again;          // samples handed out again: leases that were over, or given back
    uint64_t refused;        // requests refused for other reasons
    uint64_t received, sent; // bytes on the wire, of links that have ended, too
};
struct data_service_figures data_service_figures(struct data_service *service);

#endif
