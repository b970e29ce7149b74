// The parameter servers of a run, as those see them who push and pull: workers, the
// evaluator, the controller. Everything goes directly to the servers that the routes name,
// in many requests at once.
//
// An exchange is a list of spans of the parameter space that goes to or comes from the
// servers again and again. It is laid out once, in requests of at most one shard; after
// that nothing is allocated but what the link needs. Payloads are handed over by pointer:
// pushes are sent from where the numbers lie, pulls arrive where they are wanted
// (net/link.h).
//
// A request is re-sent until it is answered: when a link broke (with the same session and
// sequence, so that a server which had applied it does not do so again: "Pushes carry
// (session, sequence) and are applied once"), when a server is busy or has no weights yet,
// and by new routes when the old ones were refused. What was refused for good ends the
// exchange with an error that says what, where and why.
//
// That a push was applied before is good news only of one that was sent again after an
// answer was lost. Of any other it says that somebody else pushes in this session: the push
// was not applied, and no later one would be.
//
// Threads: servers_* may be called by any thread but servers_open and servers_close, which
// are the owner's. An exchange belongs to one thread at a time, which starts it and waits
// for it, while the client's own threads (one a server, that dials) and those of the
// network move its requests. What an exchange was started with stays untouched until it
// is over. Hooks are called by any of these threads, and must not wait.
#ifndef ADAM_REMOTE_SERVERS_CLIENT_H
#define ADAM_REMOTE_SERVERS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/kept.h"
#include "rule/optimizer.h"

struct error;

struct servers;
struct secrets; // net/secrets.h

struct servers_options {
    struct proto_hello hello; // role, run, model, session and name of this side
    size_t parameters;        // floats of the model
    const struct secrets *keys;
    bool insecure;
    void *self; // of the hooks
    // Routes were refused: newer ones than `epoch` are wanted, which servers_route brings.
    // Called now and then until they come. NULL: nobody looks them up.
    void (*stale)(void *self, uint64_t epoch);
    // A line for the user: whom an exchange waits for, once after ten seconds. NULL: silent.
    void (*say)(void *self, const char *text);
};

// Returns at once; servers are dialled when there is something for them.
int servers_open(struct servers **out, const struct servers_options *options, struct error *err);
// New routes (message.routes), of which it holds a reference. Older ones are passed over.
void servers_route(struct servers *servers, struct kept *routes);
// Ends all exchanges, now and later, with STATUS_STOPPED.
void servers_stop(struct servers *servers);
// No exchange may be open.
void servers_close(struct servers *servers);

struct servers_figures {     // since servers_open
    uint64_t pushes, pulls;  // exchanges that were carried out
    uint64_t refused;        // requests refused
    uint64_t pushes_refused; // pushes that were not carried out since a server refused them
    uint64_t unchanged;      // requests that need not be pulled, since nothing had changed
    uint64_t repeated;       // requests that a server had applied before
    uint64_t redials;        // links made anew
    uint64_t received, sent; // bytes on the wire
};
struct servers_figures servers_figures(struct servers *servers);

struct exchange;

enum exchange_way { EXCHANGE_PULL, EXCHANGE_PUSH, EXCHANGE_STORE };

// `spans` are floats of the parameter space, ascending, and copied.
int exchange_open(struct exchange **out, struct servers *servers, enum exchange_way way,
                  const struct span *spans, size_t count, struct error *err);
// Floats that lie elsewhere in arrays of numbers: float span.first is number `at` there.
struct placed_span {
    struct span span;
    size_t at;
};
// The same. Arrays of numbers below are laid out so, and their `first` is 0. STATUS_DATA: a shard
// would be pushed in more pieces than a message has.
int exchange_open_placed(struct exchange **out, struct servers *servers, enum exchange_way way,
                         const struct placed_span *spans, size_t count, struct error *err);
// Everything there is: {0, parameters}.
struct span servers_all(const struct servers *servers);
// Waits until it is over; for one that need not be carried out, call servers_stop before.
void exchange_close(struct exchange *exchange);

// Arrays of numbers below are over the whole parameter space, or from float `first` of it on, where
// there is such a field; arrays of stamps have one for each shard of it (servers_shards).
size_t servers_shards(const struct servers *servers);

// Which weights of a shard: their version, and the epoch of the shard's bucket in which a server
// told it. Where a server was lost, and with it updates that no other had, versions go back: the
// server that follows, which has a later epoch, makes the same ones anew, of other weights.
struct shard_stamp {
    uint64_t epoch, version; // version 0: nothing
};

struct pull {
    enum proto_quantity quantity;
    float *into;
    // In: the stamps of what is there, so that what has not changed is not sent (Rudra
    // 3.2: "if the timestamp is as old as the local weights', then this learner does not
    // pull the weights"); all 0 for nothing. Out, when it is over: of what is there then.
    struct shard_stamp *stamps;
    bool newer;   // answered only when there are newer versions than those
    size_t first; // float that into[0] is; no span begins before it
};
void exchange_pull(struct exchange *exchange, const struct pull *pull);
// When it is over: shows all that it was about, numbers [at, at + n) of `into`, and whether they
// came with it. What did not is what it was: nothing was written there.
typedef void exchange_piece(void *self, size_t at, size_t n, bool came);
void exchange_pieces(const struct exchange *exchange, exchange_piece *piece, void *self);

// What the answers to pushes tell of their shards, each number for a shard of the parameter
// space: the newest stamp, and how many of the pushes it has now. Both grow with each
// exchange that is waited for. Where versions grew by these pushes alone, in one epoch, nobody
// else has changed the shard: the weights there are what they were with what was pushed.
struct growth {
    struct shard_stamp *newest;
    uint32_t *pushes;
};

struct push {
    enum proto_update kind;
    uint32_t samples; // 0: nothing but the sender's turn (hardsync); `values` may be NULL
    double rate;
    const float *values;
    const struct shard_stamp *stamps; // of the weights that it was computed on
    struct growth *growth;            // of deltas; NULL: nobody asks
};
// With the next sequence number.
void exchange_push(struct exchange *exchange, const struct push *push);

// A dense layer's gradient as its factors: "we can send the activation and error gradient
// vectors to the parameter servers where the matrix multiply can be performed locally to
// compute and apply the weight updates" (Adam 3.2.3). The spans of the exchange are the
// layer's parameters. `errors->dx` is not looked at.
struct push_factors {
    const struct layer *layer;
    const struct dense_errors *errors;
    double rate;
    const struct shard_stamp *stamps;
    struct growth *growth; // as above
};
void exchange_push_factors(struct exchange *exchange, const struct push_factors *push);

struct store {
    enum proto_quantity quantity;
    const float *values;
    const struct shard_stamp *stamps; // their versions are those that the shards have then
    size_t first;                     // float that values[0] is; no span begins before it
};
void exchange_store(struct exchange *exchange, const struct store *store);

// True when nothing of it is under way; any thread may ask.
bool exchange_over(const struct exchange *exchange);

// Waits until it is over. *waited (may be NULL) grows by the seconds. At once when it was
// never started.
//   STATUS_OK           carried out; of a push: applied
//   STATUS_SKIPPED      of a push: some or all of it was too stale, and was not applied; pull
//   STATUS_DIVERGED     of a push: not finite, refused whole
//   STATUS_STOPPED      servers_stop; the session is over, or not this client's alone: a
//                       worker joins anew
//   STATUS_UNAVAILABLE  refused for good: a peer is lost, another run, model or role
//   STATUS_DATA         refused for good: the shapes do not fit
int exchange_wait(struct exchange *exchange, double *waited, struct error *err);

// Whom it waits for: "parameter server 2 of 4: tcp://n07:7001: connection refused"; "" for
// nobody.
void servers_waits_for(struct servers *servers, char text[PROTO_ADDRESS_MAX]);

#endif
