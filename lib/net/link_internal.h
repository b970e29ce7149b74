// What the parts of a link share: link.c (life, asking and answering), link_send.c,
// link_receive.c, dial.c and listener.c.
#ifndef ADAM_NET_LINK_INTERNAL_H
#define ADAM_NET_LINK_INTERNAL_H

#include <nng/nng.h>
#include <nng/supplemental/util/platform.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/gate.h"
#include "net/debt.h"
#include "net/link.h"

struct error;

// A frame on its way out.
struct frame {
    struct frame *next;
    struct link_request *request; // that it asks, or NULL
    struct link_payload payload;
    uint32_t piece;   // that is being sent: 0 is the head, then come the payload's parts
    size_t done;      // bytes of it that were sent
    uint64_t answers; // the request that it answers; 0: none
    size_t head_size;
    uint8_t head[]; // header and body
};

enum stage { STAGE_HEADER, STAGE_BODY, STAGE_PAYLOAD, STAGE_DISCARD };

// Frames on their way in. Belongs to whichever thread handles what was received.
struct receiver {
    uint8_t *staging; // bytes start..end of room are there and not yet consumed
    size_t room, start, end;
    enum stage stage;
    struct proto_frame frame;
    enum proto_refusal refusal; // of the frame that is being discarded
    uint64_t detail;
    union proto_message message; // its texts point into the staging, its lists into the
    struct proto_room records;   // records
    struct buffer *payload;      // of a request
    uint8_t *to;                 // where the next byte of the payload goes
    size_t left;                 // bytes of the payload, or to discard, that did not come yet
    size_t copied;               // bytes of the payload that came staged, behind the body
};

struct link {
    struct link_options options;
    struct listener *listener; // NULL: dialled
    struct link *sibling;      // next of the listener's
    bool stranger;             // takes one of the listener's places for those; under its lock
    uint64_t origin;           // the address that called, as a hash
    nng_stream *stream;
    nng_aio *receive, *send, *timer;
    char address[PROTO_ADDRESS_MAX];
    uint32_t hello; // milliseconds from `opened` until it must be welcomed
    uint64_t opened;
    _Atomic uint32_t references;
    _Atomic(void *) user;
    _Atomic uint64_t heard, spoke; // when something came and went last
    _Atomic uint64_t received, sent;
    _Atomic uint64_t session; // of the other side; 0: none
    _Atomic bool welcomed, ended;
    _Atomic bool known; // something that it asked was answered, and not by a refusal
    struct gate gate;   // opened when ended
    struct receiver in;

    pthread_mutex_t lock; // of all that follows
    bool broken, sending;
    uint64_t send_began; // when `sending` became true
    const char *leaving; // why it is to be broken when all is sent; NULL: it is not
    int active;          // operations of nng under way
    char why[LINK_WHY];
    int reason;                 // nng's, where that broke it; 0: something else did
    struct frame *first, *last; // to be sent
    struct frame *spare;        // done with, for messages to come
    uint32_t spares;
    uint64_t number; // of the last request
    struct link_request *pending[LINK_WINDOW];
    struct debt debt;          // what was asked here, and not answered to the end
    struct link_request *held; // answered before it was known to be sent: reading waits for that
};

// link.c

// Takes the stream over, also when it fails. One reference is the caller's, one the
// link's own until it has ended.
int link_open(struct link **link, nng_stream *stream, const char *address,
              const struct link_options *options, struct listener *listener, uint32_t hello,
              struct error *err);
void link_start(struct link *link);
// As link_answer, but what is said makes nobody known: welcomes, pings and refusals.
int link_say(struct link *link, uint64_t request, uint16_t type, const void *message,
             const struct link_payload *payload, struct error *err);
void link_wait(struct link *link);
// The reason of nng as the link's end.
void link_fail(struct link *link, int reason);
// Whether the other side ended it without having sent anything.
bool link_was_turned_away(struct link *link);
// Begins to send or receive, unless the link is broken: nng 1.5.2 never ends what is begun
// on a stream that was closed.
bool link_begin(struct link *link, nng_aio *aio, void (*operation)(nng_stream *, nng_aio *));
// An operation of nng is over; the last one of a broken link ends it.
void link_leave_active(struct link *link);
// Ends a request that is no longer pending.
void link_end_request(struct link_request *request, int status, const char *why);

// link_send.c

// A frame of the link, from among its spare ones where it is of their size; for frame_free.
struct frame *frame_make(struct link *link, uint16_t type, const void *message,
                         const struct link_payload *payload, struct error *err);
void frame_free(struct link *link, struct frame *frame);
// The first spare ones: who waits for each answer needs no more. False: out of memory.
bool link_spare_frames(struct link *link);
void link_free_frames(struct link *link);
void frame_number(struct frame *frame, uint64_t request);
size_t frame_burden(const struct frame *frame); // memory that it keeps from being used
// Under the lock: appends; true when the caller must then call link_send_more.
bool link_append(struct link *link, struct frame *frame);
void link_send_more(struct link *link);
void link_sent(void *context); // the callback of `send`
// Gives up all that was to be sent; nothing is under way.
void link_send_nothing(struct link *link);

// link_receive.c

void link_receive_more(struct link *link);
void link_received(void *context); // the callback of `receive`
// Goes on after `held` is done.
void link_receive_again(struct link *link);

// listener.c

// It takes no place among strangers any more.
void listener_known(struct listener *listener, struct link *link);
void listener_forget(struct listener *listener, struct link *link);

#endif
