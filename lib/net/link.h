// A connection between two members of a run: frames of lib/proto in both directions,
// many requests in flight, answers in any order.
//
// "For non-local communication, we built our own network library [...] This library is
//  compatible with our data transfer mechanism and accepts a pointer to a block of
//  neurons whose output values need to be communicated across the network. [...] use
//  reference counting to ensure safety in the presence of asynchronous network IO."
// (Adam 3.2.3)
//
// Payloads are handed over by pointer. On their way out they are sent from where they
// lie; who asks or answers keeps them until it is told that they are no longer needed.
// On their way in, a request's payload is read straight into a pooled buffer, counted by
// reference, and an answer's straight to where the asker wants it. (Up to LINK_STAGING
// bytes of it may arrive together with a header, and are copied once.)
//
// Threads: all functions may be called by any thread, but not link_call, link_call_kept,
// link_close and listener_close from within a handler. Handlers are called by threads of
// the network, for one link one after the other; they must not wait, for nothing else is
// read from that link meanwhile. What is pending when a link breaks ends with
// STATUS_UNAVAILABLE, and with the reason in its error; a request whose answer broke it, being
// larger than `room` or than any may be, with STATUS_DATA.
//
// Who asks does not cost more than net/debt.h allows: more than twice LINK_WINDOW requests in
// flight end the link, and so does a side that takes nothing of what is sent to it for as long
// as it may be silent.
//
// Both sides send a ping when they have sent nothing for a while, and give the link up
// when they have received nothing for a longer while: a cut cable makes no event.
#ifndef ADAM_NET_LINK_H
#define ADAM_NET_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/pool.h"
#include "net/debt.h"
#include "proto/proto.h"

struct error;

#define LINK_STAGING 16384
#define LINK_WINDOW DEBT_WINDOW // requests of one side in flight
#define LINK_WHY 512

struct link;
struct kept;    // proto/kept.h
struct secrets; // net/secrets.h

struct link_part { // of a payload
    const void *at;
    size_t size;
};

// What the answering side may have to say for itself, and what it hears.
struct link_handlers {
    void *context;
    // Who calls. Fills the answer, or refuses: the link is closed then. NULL: nobody is
    // welcome on this side.
    enum proto_refusal (*hello)(void *context, struct link *link, const struct proto_hello *hello,
                                struct proto_welcome *welcome, uint64_t *detail);
    // A request, to be answered now or later, by any thread, with link_answer or
    // link_refuse; unless its number is 0. `message` is valid until the return, as is
    // `payload`, which may be NULL, unless it is held (buffer_hold). NULL: none is
    // answered on this side.
    void (*request)(void *context, struct link *link, uint64_t request, uint16_t type,
                    const union proto_message *message, struct buffer *payload);
    // The link is no more; who welcomed it forgets it. Called once, after all else.
    void (*closed)(void *context, struct link *link, const char *why);
};

struct link_options {
    struct link_handlers handlers;
    struct pool *pool;          // of the payloads that come with requests; NULL: none may
    uint32_t heartbeat;         // milliseconds of silence after which one pings (1000)
    uint32_t silence;           // milliseconds of silence after which one gives up (5000)
    uint32_t patience;          // the same for an answer, though it pings; 0: as long as it takes
    const struct secrets *keys; // of TLS; NULL: none
    bool insecure;              // beyond this machine without TLS, as the user said
};

// A request: the caller's, and left alone until it is done.
struct link_request {
    uint16_t type;
    const void *message;           // needed only until link_ask returns
    const struct link_part *parts; // of the payload, needed until it is done
    uint32_t part_count;
    void *into; // where the answer's payload goes
    size_t room;
    // Called once, when nothing of the request is needed any more.
    void (*done)(struct link_request *request);
    void *context;
    // How it ended. `answer` is valid within done().
    int status; // STATUS_OK: answered, perhaps by a refusal
    uint16_t answer_type;
    const union proto_message *answer;
    size_t received; // bytes at `into`
    const char *why; // when status is not STATUS_OK; valid within done()
    // The link's own.
    uint64_t number, asked;
    bool sent;
};

// Connects, says hello and waits for the welcome, at most so many milliseconds in all. Who is
// turned away without a word dials again for a while: others took all places for strangers.
// STATUS_UNAVAILABLE with address and reason, also when the hello is refused.
// STATUS_USAGE when the address is none, or asks for what net/address.h forbids.
// Texts of `welcome` are cut off: they do not outlive it.
int link_dial(struct link **link, const char *address, const struct link_options *options,
              const struct proto_hello *hello, uint32_t timeout, struct proto_welcome *welcome,
              struct error *err);

// Sends it; done() will be called. When it returns otherwise than STATUS_OK nothing was
// sent and done() will not be called: STATUS_DATA when a field is beyond its limit,
// STATUS_UNAVAILABLE when the link is broken, or LINK_WINDOW requests are in flight.
int link_ask(struct link *link, struct link_request *request, struct error *err);
// The same, and waits until it is done. A refusal, or no answer that can be used, is
// STATUS_UNAVAILABLE here, in words; `answer` is a copy, whose texts and lists are cut off, unless
// it is NULL.
int link_call(struct link *link, struct link_request *request, union proto_message *answer,
              struct error *err);
// The same, and gives the whole answer: whatever it is, also a refusal. kept_drop it.
int link_call_kept(struct link *link, struct link_request *request, struct kept **answer,
                   struct error *err);

// What an answer's payload needs: parts which stay as they are until sent() is called,
// once, whether they were sent or not.
struct link_payload {
    const struct link_part *parts;
    uint32_t part_count;
    void (*sent)(void *context);
    void *context;
};

// Answers a request, or with number 0 sends what needs no answer; payload may be NULL. A
// link that is broken swallows it: whoever asked is gone.
int link_answer(struct link *link, uint64_t request, uint16_t type, const void *message,
                const struct link_payload *payload, struct error *err);
void link_refuse(struct link *link, uint64_t request, enum proto_refusal code, uint64_t detail,
                 const char *text);

// Who called is known, though it asked nothing that was granted: strangers do not displace it.
void link_know(struct link *link);

// The link's memory: a handler that will answer later holds it.
void link_hold(struct link *link);
void link_drop(struct link *link);

// Breaks it, ends all that is pending, waits until the last handler returned, and drops
// the caller's reference.
void link_close(struct link *link);
// Breaks it, and does not wait. For handlers.
void link_break(struct link *link, const char *why);

// Whether the other side ended the connection.
bool link_hung_up(struct link *link);
const char *link_address(const struct link *link); // of the other side, as far as it is known
// The number of the process at the other end of a Unix socket; 0: it is not known.
uint64_t link_process(const struct link *link);
void link_set_user(struct link *link, void *user); // the owner's own pointer
void *link_user(const struct link *link);
// Whether a request that came over the link is made in the link's own session: the one that
// the hello named, or that this side gave it since by `joined`. If not, *detail is the
// session that the request names.
enum proto_refusal link_check_session(const struct link *link, uint16_t type,
                                      const union proto_message *message, uint64_t *detail);
// Bytes on the wire so far.
void link_traffic(const struct link *link, uint64_t *received, uint64_t *sent);

// Who waits for links.

struct listener;

struct listener_limits {
    uint32_t links;     // at the same time (1024)
    uint32_t strangers; // of them, that were granted no request yet (256): net/places.h
    uint32_t hello;     // milliseconds that a stranger has for its hello (5000)
};

// Listens at the address, exactly as told; of tcp, port 0 is any that is free. A limit of
// 0 is its default. STATUS_UNAVAILABLE when the address cannot be had, STATUS_USAGE as
// link_dial.
int listener_open(struct listener **listener, const char *address,
                  const struct link_options *options, const struct listener_limits *limits,
                  struct error *err);
// Where it listens: the address as told, with the port that it got.
const char *listener_address(const struct listener *listener);
// Closes all its links, and waits for them.
void listener_close(struct listener *listener);

#endif
