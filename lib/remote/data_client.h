// The data servers of a run, as a worker sees them: batches for its training loop, asked
// for ahead of demand.
//
// "The model training machines request images in advance in batches using a background
//  thread so that the main training threads always have the required image data in
//  memory." (Adam 3.1)
//
// Batches come in leases: samples that this worker is to train on before a deadline. One is
// finished when what was learned of it is with the parameter servers, and not before, so
// that the samples of a worker that dies are handed to another:
//
//   training threads                     the worker's home
//   supply_take -> train -> give_back    mark = data_client_trained(client)
//                                        push what was trained, until it is acknowledged
//                                        data_client_finish(client, mark), or, when it was
//                                        refused for good, data_client_lose
//
// What is taken and never trained on, as all of a cut model had to pass it and a part was lost, is
// given back by supply_lose: no mark counts it.
//
// At the end of an epoch data servers hand out nothing until enough is finished (--epoch-end):
// a home must push what it holds when the training threads have nothing to do. The hook
// `idle` says so.
//
// Data servers are those of the routes. One that dies is dialled again, at its address of
// the newest routes, for ever; meanwhile the others serve. Batches come from all of them
// so that all are equally far, and a worker begins an epoch when all have ended the one
// before it.
//
// Threads: one converts what arrives into what the model reads and asks for more, one
// dials. All functions but data_client_open and data_client_close may be called by any
// thread at any time. Hooks are called by these two threads, and must not wait.
#ifndef ADAM_REMOTE_DATA_CLIENT_H
#define ADAM_REMOTE_DATA_CLIENT_H

#include "data/input.h"
#include "data/supply.h"
#include "proto/kept.h"

struct error;

struct data_client;
struct secrets; // net/secrets.h

struct data_client_options {   // what it points to outlives the client
    struct proto_hello hello;  // role, run, model, session and name of this side
    struct input_config input; // what the net reads, with the run's seed
    int batch;                 // samples asked for at once
    // Batches that are asked for beyond those in the takers' hands; at least 1.
    int ahead;
    // Whether a request may be for several batches (dealer_together), ahead of `ahead`: one
    // lease, which is finished when all of them are. Not with `rounds`.
    bool together;
    // All workers share every step (deal/rounds.h), by one taker: a batch is asked for at a
    // time, for the step after that of the last one taken; `ahead` is not looked at. Who
    // takes gets the empty batch when, and only when, all data servers said that there is
    // nothing for this worker in the step.
    bool rounds;
    int takers; // threads that may hold a batch each
    const struct secrets *keys;
    bool insecure;
    void *self; // of the hooks
    // All takers wait, and data servers wait for leases to be finished: push what there
    // is. Called now and then until it helps. NULL: nobody does.
    void (*idle)(void *self);
    // A line for the user: whom it waits for, once after ten seconds. NULL: silent.
    void (*say)(void *self, const char *text);
};

// Returns at once; batches come when data_client_route said from where.
int data_client_open(struct data_client **out, const struct data_client_options *options,
                     struct error *err);
// New routes (message.routes), of which it holds a reference. Older ones are passed over.
void data_client_route(struct data_client *client, struct kept *routes);
// The next batch to be taken is trained on weights of this clock. With `rounds` nothing is
// asked for before this is said for the first time.
void data_client_step(struct data_client *client, uint64_t clock);
// Gives its leases up at once, and frees everything. Takers must have returned.
void data_client_close(struct data_client *client);

// What the training loop takes from. NULL behind the last batch of the last epoch.
struct supply *data_client_supply(struct data_client *client);
// Whether all data servers are behind their last epoch. One that died before the controller had
// heard of that may come back in it: then there are batches again.
bool data_client_over(struct data_client *client);

// Batches that were given back so far, empty ones included: those that are trained on.
uint64_t data_client_trained(const struct data_client *client);
// The first `mark` batches that were, or are going to be, given back are with the
// parameter servers, but those that were lost. (A home that pushes before its loop gives
// back may be ahead.)
void data_client_finish(struct data_client *client, uint64_t mark);
// The same, but of the batches that were given back those from `from` on are not with them,
// and will not be: their leases are given back, for somebody to train on them.
void data_client_lose(struct data_client *client, uint64_t from, uint64_t mark);
// Waits until the data servers have heard of it, at most so long; before leaving. False:
// they have not.
bool data_client_flush(struct data_client *client, double seconds);

struct data_client_figures { // since data_client_open
    uint64_t total;          // samples of the whole data set; 0: not known yet
    uint32_t epoch;          // that it works on
    uint64_t batches, samples;
    uint64_t busy;           // requests that came too early
    uint64_t over;           // leases that were over before they were finished
    uint64_t redials;        // links made anew
    uint64_t received, sent; // bytes on the wire
    uint32_t ready;          // batches that can be taken now
};
struct data_client_figures data_client_figures(struct data_client *client);
// Whom it waits for: "data server ADDRESS: connection refused", or "" while batches come.
void data_client_waits_for(struct data_client *client, char text[PROTO_ADDRESS_MAX]);

#endif
