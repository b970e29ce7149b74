// Life of a link, asking and answering. A link ends in one place: when it is broken and
// the last operation of nng on it is over.
#include "net/link.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "net/link_internal.h"
#include "proto/kept.h"

enum { HEARTBEAT = 1000, SILENCE = 5000 };

// References.

void link_hold(struct link *link) {
    atomic_fetch_add(&link->references, 1);
}

static void link_free(struct link *link) {
    // Reaped in the background: this may be one of their own callbacks.
    if (link->receive)
        nng_aio_reap(link->receive);
    if (link->send)
        nng_aio_reap(link->send);
    if (link->timer)
        nng_aio_reap(link->timer);
    nng_stream_free(link->stream);
    proto_room_free(&link->in.records);
    free(link->in.staging);
    link_free_frames(link);
    pthread_mutex_destroy(&link->lock);
    free(link);
}

void link_drop(struct link *link) {
    if (atomic_fetch_sub(&link->references, 1) == 1)
        link_free(link);
}

// The end.

void link_end_request(struct link_request *request, int status, const char *why) {
    request->status = status;
    request->why = why;
    request->done(request);
}

static void link_end(struct link *link) {
    const struct link_handlers *handlers = &link->options.handlers;
    for (size_t i = 0; i < LINK_WINDOW; i++) {
        struct link_request *request = link->pending[i];
        if (request)
            link_end_request(request, request->status ? request->status : STATUS_UNAVAILABLE,
                             link->why);
    }
    buffer_drop(link->in.payload);
    if (atomic_load(&link->welcomed) && handlers->closed)
        handlers->closed(handlers->context, link, link->why);
    if (link->listener)
        listener_forget(link->listener, link);
    atomic_store(&link->ended, true);
    gate_open(&link->gate);
    link_drop(link);
}

void link_leave_active(struct link *link) {
    pthread_mutex_lock(&link->lock);
    bool last = --link->active == 0 && link->broken;
    pthread_mutex_unlock(&link->lock);
    if (last)
        link_end(link);
}

bool link_begin(struct link *link, nng_aio *aio, void (*operation)(nng_stream *, nng_aio *)) {
    pthread_mutex_lock(&link->lock);
    bool broken = link->broken;
    if (!broken)
        operation(link->stream, aio); // its callback comes on another thread
    pthread_mutex_unlock(&link->lock);
    return !broken;
}

void link_break(struct link *link, const char *why) {
    pthread_mutex_lock(&link->lock);
    bool first = !link->broken;
    link->broken = true;
    if (first)
        snprintf(link->why, sizeof link->why, "%s", why);
    pthread_mutex_unlock(&link->lock);
    if (!first)
        return;
    nng_stream_close(link->stream);
    nng_aio_cancel(link->timer);
    link_send_nothing(link);
}

// What helps, where nng's own words would not.
static const char *reason_text(const struct link *link, int reason) {
    switch (reason) {
    case NNG_ECLOSED:
    case NNG_ECONNSHUT:
        return atomic_load(&link->received) >= PROTO_FRAME
                   ? "the other side closed the connection"
                   : "the other side closed the connection without a word: it has too many "
                     "callers, or only one side speaks TLS";
    case NNG_ECRYPTO:
    case NNG_EPEERAUTH:
        return "a certificate was refused: do both --keys come from the same authority?";
    default:
        return nng_strerror(reason);
    }
}

void link_fail(struct link *link, int reason) {
    pthread_mutex_lock(&link->lock);
    if (!link->broken)
        link->reason = reason;
    pthread_mutex_unlock(&link->lock);
    link_break(link, reason_text(link, reason));
}

bool link_hung_up(struct link *link) {
    pthread_mutex_lock(&link->lock);
    int reason = link->reason;
    pthread_mutex_unlock(&link->lock);
    return reason == NNG_ECLOSED || reason == NNG_ECONNSHUT || reason == NNG_ECONNRESET;
}

uint64_t link_process(const struct link *link) {
    uint64_t process;
    return nng_stream_get_uint64(link->stream, NNG_OPT_IPC_PEER_PID, &process) ? 0 : process;
}

bool link_was_turned_away(struct link *link) {
    return atomic_load(&link->received) == 0 && link_hung_up(link);
}

void link_wait(struct link *link) {
    for (uint32_t seen = gate_look(&link->gate); !atomic_load(&link->ended);
         seen = gate_look(&link->gate))
        gate_wait(&link->gate, seen, -1);
}

void link_close(struct link *link) {
    if (!link)
        return;
    link_break(link, "closed");
    link_wait(link);
    link_drop(link);
}

// Silence.

// Something is to be sent, and nothing was taken for as long as a side may be silent.
static bool is_deaf(struct link *link, uint64_t now) {
    pthread_mutex_lock(&link->lock);
    bool waits = link->sending && now > link->send_began + link->options.silence;
    pthread_mutex_unlock(&link->lock);
    return waits && now > atomic_load(&link->spoke) + link->options.silence;
}

// Whether the other side, which is there, owes an answer for too long.
static bool is_owed(struct link *link, uint64_t now) {
    bool owed = false;
    pthread_mutex_lock(&link->lock);
    for (int i = 0; i < LINK_WINDOW && link->options.patience; i++)
        owed |= link->pending[i] && now > link->pending[i]->asked + link->options.patience;
    pthread_mutex_unlock(&link->lock);
    return owed;
}

static void check_silence(struct link *link) {
    uint64_t now = nng_clock(), heard = atomic_load(&link->heard);
    char why[64];
    if (now > heard + link->options.silence) {
        snprintf(why, sizeof why, "nothing was heard for %.1f s", (double)(now - heard) / 1000);
        link_break(link, why);
    } else if (is_deaf(link, now)) {
        link_break(link, "it does not read what it is sent");
    } else if (is_owed(link, now)) {
        snprintf(why, sizeof why, "it is there, and gave no answer for %.1f s",
                 link->options.patience / 1000.0);
        link_break(link, why);
    } else if (!atomic_load(&link->welcomed) && now > link->opened + link->hello) {
        link_break(link, "it did not say hello in time");
    } else if (now >= atomic_load(&link->spoke) + link->options.heartbeat) {
        link_say(link, 0, PROTO_TYPE_PING, NULL, NULL, NULL);
    }
}

// The timers of all links of a process end together: nng's thread (1.5.2) spins for up to a
// millisecond whenever a timer ends, and so does it once for all of them.
static void link_rest(struct link *link) {
    uint64_t period = link->options.heartbeat / 2 + 1;
    nng_sleep_aio((nng_duration)(period - nng_clock() % period), link->timer);
}

static void on_timer(void *context) {
    struct link *link = context;
    if (nng_aio_result(link->timer) == 0)
        check_silence(link);
    pthread_mutex_lock(&link->lock);
    bool broken = link->broken;
    if (!broken) // under the lock, so that whoever breaks the link finds it under way
        link_rest(link);
    pthread_mutex_unlock(&link->lock);
    if (broken)
        link_leave_active(link);
}

// The beginning.

static void set_defaults(struct link_options *options) {
    if (options->heartbeat == 0)
        options->heartbeat = HEARTBEAT;
    if (options->silence == 0)
        options->silence = SILENCE;
}

static int nng_failed(int code, struct error *err) {
    return error_set(err, code == NNG_ENOMEM ? STATUS_IO : STATUS_UNAVAILABLE, "%s",
                     nng_strerror(code));
}

static int link_make(struct link *link, struct error *err) {
    int code;
    if ((code = nng_aio_alloc(&link->receive, link_received, link)) ||
        (code = nng_aio_alloc(&link->send, link_sent, link)) ||
        (code = nng_aio_alloc(&link->timer, on_timer, link)))
        return nng_failed(code, err);
    link->in.room = LINK_STAGING;
    link->in.staging = mem_array(LINK_STAGING, 1);
    return link->in.staging && link_spare_frames(link) ? STATUS_OK : error_nomem(err);
}

int link_open(struct link **link, nng_stream *stream, const char *address,
              const struct link_options *options, struct listener *listener, uint32_t hello,
              struct error *err) {
    struct link *l = *link = mem_zeroed(1, sizeof *l);
    if (!l) {
        nng_stream_free(stream);
        return error_nomem(err);
    }
    pthread_mutex_init(&l->lock, NULL);
    l->options = *options;
    set_defaults(&l->options);
    l->listener = listener;
    l->stream = stream;
    l->hello = hello;
    l->opened = nng_clock();
    l->heard = l->opened;
    l->spoke = l->opened;
    l->welcomed = !listener;
    l->references = 2;
    l->active = 2; // receiving, and the timer
    snprintf(l->address, sizeof l->address, "%s", address);
    nng_stream_set_bool(stream, NNG_OPT_TCP_NODELAY, true); // others do not know it
    int status = link_make(l, err);
    if (status) {
        link_free(l);
        *link = NULL;
    }
    return status;
}

void link_start(struct link *link) {
    link_rest(link);
    link_receive_more(link);
}

// Asking.

// Gives the request a number that none in flight has, and a place by it.
static bool place_request(struct link *link, struct link_request *request, struct frame *frame) {
    for (int tries = 0; tries < LINK_WINDOW; tries++) {
        uint64_t number = ++link->number;
        if (link->pending[number % LINK_WINDOW])
            continue;
        link->pending[number % LINK_WINDOW] = request;
        request->number = number;
        request->asked = nng_clock();
        frame_number(frame, number);
        return true;
    }
    return false;
}

int link_ask(struct link *link, struct link_request *request, struct error *err) {
    const struct link_payload payload = {.parts = request->parts,
                                         .part_count = request->part_count};
    struct frame *frame = frame_make(link, request->type, request->message, &payload, err);
    if (!frame)
        return err ? err->status : STATUS_DATA;
    frame->request = request;
    request->sent = false;
    request->status = STATUS_OK;
    bool placed = false, start = false;
    pthread_mutex_lock(&link->lock);
    bool broken = link->broken;
    if (!broken)
        placed = place_request(link, request, frame);
    if (placed)
        start = link_append(link, frame);
    pthread_mutex_unlock(&link->lock);
    if (start)
        link_send_more(link);
    if (placed)
        return STATUS_OK;
    frame_free(link, frame);
    return error_set(err, STATUS_UNAVAILABLE, "%s: %s", link->address,
                     broken ? link->why : "too many requests in flight");
}

struct waiting_call {
    struct link *link;
    union proto_message *answer;
    struct kept **kept; // takes the answer whole, whatever it is
    struct error *err;
    int status;
    _Atomic bool over;
};

static int refuse_request(const struct waiting_call *call, const struct proto_refused *refusal) {
    return error_set(call->err, STATUS_UNAVAILABLE, "%s: refused: %s: %.*s", call->link->address,
                     proto_refusal_name(refusal->code), (int)refusal->text.length,
                     refusal->text.at);
}

static void call_done(struct link_request *request) {
    struct waiting_call *call = request->context;
    struct link *link = call->link;
    call->status = STATUS_OK;
    if (request->status)
        call->status =
            error_set(call->err, STATUS_UNAVAILABLE, "%s: %s", link->address, request->why);
    else if (call->kept)
        call->status = kept_make(call->kept, request->answer_type, request->answer, call->err);
    else if (request->answer_type == PROTO_TYPE_REFUSED)
        call->status = refuse_request(call, &request->answer->refused);
    else if (call->answer)
        memcpy(call->answer, request->answer, proto_layout(request->answer_type)->size);
    atomic_store(&call->over, true); // from here on it may be gone, but the link is not
    gate_open(&link->gate);
}

// Asks and waits until call_done was called.
static int call_wait(struct waiting_call *call, struct link_request *request) {
    struct link *link = call->link;
    struct link_request own = *request;
    own.done = call_done;
    own.context = call;
    int status = link_ask(link, &own, call->err);
    if (status)
        return status;
    for (uint32_t seen = gate_look(&link->gate); !atomic_load(&call->over);
         seen = gate_look(&link->gate))
        gate_wait(&link->gate, seen, -1);
    request->status = own.status;
    request->answer_type = own.answer_type;
    request->received = own.received;
    return call->status;
}

int link_call(struct link *link, struct link_request *request, union proto_message *answer,
              struct error *err) {
    struct waiting_call call = {.link = link, .answer = answer, .err = err};
    return call_wait(&call, request);
}

int link_call_kept(struct link *link, struct link_request *request, struct kept **answer,
                   struct error *err) {
    struct waiting_call call = {.link = link, .kept = answer, .err = err};
    *answer = NULL;
    return call_wait(&call, request);
}

// Answering.

int link_say(struct link *link, uint64_t request, uint16_t type, const void *message,
             const struct link_payload *payload, struct error *err) {
    struct frame *frame = frame_make(link, type, message, payload, err);
    bool start = false;
    if (frame) {
        frame_number(frame, request);
        if (type == PROTO_TYPE_JOINED) // before the other side can ask in its name
            atomic_store(&link->session, ((const struct proto_joined *)message)->session);
        pthread_mutex_lock(&link->lock);
        bool broken = link->broken;
        frame->answers = request;
        debt_answer(&link->debt, request, frame_burden(frame));
        if (!broken)
            start = link_append(link, frame);
        pthread_mutex_unlock(&link->lock);
        if (start)
            link_send_more(link);
        if (!broken)
            return STATUS_OK;
        frame_free(link, frame);
    }
    if (payload && payload->sent)
        payload->sent(payload->context);
    return frame ? STATUS_OK : err ? err->status : STATUS_DATA;
}

void link_know(struct link *link) {
    if (link->listener && !atomic_exchange(&link->known, true))
        listener_known(link->listener, link);
}

int link_answer(struct link *link, uint64_t request, uint16_t type, const void *message,
                const struct link_payload *payload, struct error *err) {
    if (request > 0 && type != PROTO_TYPE_REFUSED)
        link_know(link);
    return link_say(link, request, type, message, payload, err);
}

// As much of it as a refusal holds, without a part of a letter at its end: who asked would wait for
// ever for a message that cannot be sent.
static struct proto_text refusal_text(const char *text) {
    struct proto_text all = proto_text(text);
    if (all.length <= PROTO_REASON_MAX)
        return all;
    all.length = PROTO_REASON_MAX;
    while (all.length > 0 && (text[all.length] & 0xc0) == 0x80) // no letter begins there
        all.length--;
    return all;
}

void link_refuse(struct link *link, uint64_t request, enum proto_refusal code, uint64_t detail,
                 const char *text) {
    const struct proto_refused refusal = {
        .code = (uint16_t)code, .detail = detail, .text = refusal_text(text)};
    if (request > 0)
        link_say(link, request, PROTO_TYPE_REFUSED, &refusal, NULL, NULL);
}

const char *link_address(const struct link *link) {
    return link->address;
}

void link_set_user(struct link *link, void *user) {
    atomic_store(&link->user, user);
}

void *link_user(const struct link *link) {
    return atomic_load(&link->user);
}

enum proto_refusal link_check_session(const struct link *link, uint16_t type,
                                      const union proto_message *message, uint64_t *detail) {
    uint64_t session;
    *detail = 0;
    if (!proto_session(type, message, &session) || session == atomic_load(&link->session))
        return PROTO_REFUSAL_NONE;
    *detail = session;
    return PROTO_REFUSAL_WRONG_SESSION;
}

void link_traffic(const struct link *link, uint64_t *received, uint64_t *sent) {
    *received = atomic_load(&link->received);
    *sent = atomic_load(&link->sent);
}
