// Frames on their way in. Headers and bodies are read into a staging area, payloads
// straight to where they belong.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "net/link_internal.h"

enum next { NEXT_READ, NEXT_FRAME, NEXT_PAUSE, NEXT_END }; // what a step leads to

static size_t staged_bytes(const struct receiver *in) {
    return in->end - in->start;
}

static bool is_answer(const struct receiver *in) {
    return in->frame.type & PROTO_ANSWER;
}

// Reads no more. A peer that was told why gets the time to hear it.
static enum next end_after_sending(struct link *link, const char *why) {
    pthread_mutex_lock(&link->lock);
    bool sending = link->sending;
    link->leaving = why;
    pthread_mutex_unlock(&link->lock);
    if (!sending)
        link_break(link, why);
    return NEXT_END;
}

static enum next break_link(struct link *link, const char *why) {
    link_break(link, why);
    return NEXT_END;
}

static void refuse_frame(struct link *link, enum proto_refusal code, uint64_t detail,
                         const char *text) {
    link_refuse(link, link->in.frame.request, code, detail, text);
}

// Passes over the rest of a frame, which is then answered by a refusal.
static enum next discard_payload(struct link *link, enum proto_refusal code, uint64_t detail,
                                 size_t left) {
    struct receiver *in = &link->in;
    in->refusal = code;
    in->detail = detail;
    in->left = left;
    in->stage = STAGE_DISCARD;
    return NEXT_FRAME;
}

// The request that this frame answers, which stays pending; NULL: none.
static struct link_request *answered_request(struct link *link) {
    const struct proto_frame *frame = &link->in.frame;
    pthread_mutex_lock(&link->lock);
    struct link_request *request = link->pending[frame->request % LINK_WINDOW];
    pthread_mutex_unlock(&link->lock);
    if (!request || request->number != frame->request)
        return NULL;
    if (frame->type != PROTO_TYPE_REFUSED && frame->type != proto_layout(request->type)->answer)
        return NULL;
    return request;
}

// Ends the request that it answers, and the link: the next such answer would be no better.
static enum next break_answer(struct link *link, const char *why) {
    struct link_request *request = answered_request(link);
    if (request)
        request->status = STATUS_DATA;
    return break_link(link, why);
}

static enum next take_header(struct link *link) {
    static const struct proto_limits friendly = {PROTO_BODY_MAX, PROTO_PAYLOAD_MAX};
    static const struct proto_limits strange = {PROTO_STRANGER_MAX, 0};
    struct receiver *in = &link->in;
    uint64_t detail;
    if (staged_bytes(in) < PROTO_FRAME)
        return NEXT_READ;
    if (proto_frame_get(&in->frame, in->staging + in->start, NULL))
        return break_link(link, "the other side does not speak adam's protocol");
    in->start += PROTO_FRAME;
    bool welcomed = atomic_load(&link->welcomed);
    enum proto_refusal refusal =
        proto_frame_check(&in->frame, welcomed ? &friendly : &strange, &detail);
    if (refusal == PROTO_REFUSAL_TOO_LARGE && is_answer(in))
        return break_answer(link, "its answer is larger than any may be");
    if (refusal == PROTO_REFUSAL_TOO_LARGE) {
        refuse_frame(link, refusal, detail, "the frame is too large");
        return end_after_sending(link, "it sent a frame that is too large");
    }
    if (!refusal && !welcomed && in->frame.type != PROTO_TYPE_HELLO)
        refusal = PROTO_REFUSAL_STRANGER;
    if (refusal)
        return discard_payload(link, refusal, detail, (size_t)in->frame.body + in->frame.payload);
    in->stage = STAGE_BODY;
    return NEXT_FRAME;
}

// Decides where the payload goes.
static enum next place_payload(struct link *link) {
    struct receiver *in = &link->in;
    in->left = in->frame.payload;
    in->copied = 0;
    in->stage = STAGE_PAYLOAD;
    if (is_answer(in)) {
        struct link_request *request = answered_request(link);
        if (!request)
            return break_link(link, "it answered what was not asked");
        if (in->left > request->room)
            return break_answer(link, "its answer is larger than what was asked for");
        in->to = request->into;
    } else if (in->left > 0) {
        in->payload = link->options.pool ? pool_take(link->options.pool, in->left) : NULL;
        if (!in->payload) {
            in->start += in->frame.body;
            return discard_payload(link, PROTO_REFUSAL_BUSY, 100, in->left);
        }
        in->to = in->payload->data;
    }
    return NEXT_FRAME;
}

static enum next take_body(struct link *link) {
    struct receiver *in = &link->in;
    struct error err = {0};
    if (staged_bytes(in) < in->frame.body)
        return NEXT_READ;
    int status = proto_decode(in->frame.type, in->staging + in->start, in->frame.body, &in->message,
                              &in->records, &err);
    if (!status)
        return place_payload(link);
    if (is_answer(in))
        return break_link(link, err.text);
    return discard_payload(link, PROTO_REFUSAL_MALFORMED, 0,
                           (size_t)in->frame.body + in->frame.payload);
}

static enum next hear_hello(struct link *link) {
    const struct link_handlers *handlers = &link->options.handlers;
    const struct proto_hello *hello = &link->in.message.hello;
    struct proto_welcome welcome = {0};
    uint64_t detail = 0;
    enum proto_refusal refusal = PROTO_REFUSAL_WRONG_ROLE;
    if (handlers->hello && !atomic_load(&link->welcomed))
        refusal = handlers->hello(handlers->context, link, hello, &welcome, &detail);
    if (refusal) {
        refuse_frame(link, refusal, detail, proto_refusal_text(refusal));
        return end_after_sending(link, "it is not welcome");
    }
    atomic_store(&link->session, hello->session);
    atomic_store(&link->welcomed, true);
    link_say(link, link->in.frame.request, PROTO_TYPE_WELCOME, &welcome, NULL, NULL);
    return NEXT_FRAME;
}

static void hear_ping(struct link *link) {
    if (link->in.frame.request > 0)
        link_say(link, link->in.frame.request, PROTO_TYPE_DONE, NULL, NULL, NULL);
}

// Whether the request may be heard; if not it was refused, or the link is broken.
static bool note_request(struct link *link, enum next *next) {
    const struct proto_frame *frame = &link->in.frame;
    if (frame->request == 0)
        return true;
    pthread_mutex_lock(&link->lock);
    enum debt_verdict verdict = debt_add(&link->debt, frame->request, frame->body);
    pthread_mutex_unlock(&link->lock);
    if (verdict == DEBT_BEYOND)
        *next = break_link(link, "it asks more at a time than it may");
    else if (verdict == DEBT_BUSY)
        refuse_frame(link, PROTO_REFUSAL_BUSY, 100, "too many of your requests are under way");
    return verdict == DEBT_FINE;
}

static enum next hear_request(struct link *link) {
    const struct link_handlers *handlers = &link->options.handlers;
    struct receiver *in = &link->in;
    struct buffer *payload = in->payload;
    enum next next = NEXT_FRAME;
    in->payload = NULL;
    if (!note_request(link, &next))
        ;
    else if (in->frame.type == PROTO_TYPE_HELLO)
        next = hear_hello(link);
    else if (in->frame.type == PROTO_TYPE_PING)
        hear_ping(link);
    else if (handlers->request)
        handlers->request(handlers->context, link, in->frame.request, in->frame.type, &in->message,
                          payload);
    else
        refuse_frame(link, PROTO_REFUSAL_WRONG_ROLE, 0, "nothing is asked here");
    buffer_drop(payload);
    return next;
}

static enum next hear_answer(struct link *link) {
    struct receiver *in = &link->in;
    struct link_request *request = answered_request(link);
    if (!request)
        return break_link(link, "it answered what was not asked");
    request->answer_type = in->frame.type;
    request->answer = &in->message;
    request->received = in->frame.payload;
    pthread_mutex_lock(&link->lock);
    link->pending[request->number % LINK_WINDOW] = NULL;
    bool sent = request->sent;
    if (!sent)
        link->held = request;
    pthread_mutex_unlock(&link->lock);
    if (!sent)
        return NEXT_PAUSE;
    link_end_request(request, STATUS_OK, NULL);
    return NEXT_FRAME;
}

// The part of the payload that came with the header is copied; the rest is read in place.
static enum next take_payload(struct link *link) {
    struct receiver *in = &link->in;
    size_t at = in->start + in->frame.body + in->copied;
    size_t bytes = in->end - at < in->left ? in->end - at : in->left;
    if (bytes > 0) {
        memcpy(in->to, in->staging + at, bytes);
        in->to += bytes;
        in->left -= bytes;
        in->copied += bytes;
    }
    if (in->left > 0)
        return NEXT_READ;
    in->start += in->frame.body + in->copied;
    in->stage = STAGE_HEADER;
    return is_answer(in) ? hear_answer(link) : hear_request(link);
}

static enum next take_discarded(struct link *link) {
    struct receiver *in = &link->in;
    size_t bytes = staged_bytes(in) < in->left ? staged_bytes(in) : in->left;
    in->start += bytes;
    in->left -= bytes;
    if (in->left > 0)
        return NEXT_READ;
    in->stage = STAGE_HEADER;
    if (is_answer(in))
        return break_link(link, "it answered by a message that is not known here");
    refuse_frame(link, in->refusal, in->detail, proto_refusal_text(in->refusal));
    return NEXT_FRAME;
}

static enum next take_bytes(struct link *link) {
    switch (link->in.stage) {
    case STAGE_HEADER:
        return take_header(link);
    case STAGE_BODY:
        return take_body(link);
    case STAGE_PAYLOAD:
        return take_payload(link);
    case STAGE_DISCARD:
        return take_discarded(link);
    }
    return NEXT_END;
}

// Makes room behind what is staged: for the whole body, if one is being read.
static bool make_staging_room(struct receiver *in) {
    size_t wanted = in->stage == STAGE_BODY ? in->frame.body : PROTO_FRAME;
    if (in->start == in->end)
        in->start = in->end = 0;
    if (in->stage == STAGE_PAYLOAD || in->room - in->start >= wanted)
        return true;
    memmove(in->staging, in->staging + in->start, staged_bytes(in));
    in->end -= in->start;
    in->start = 0;
    if (in->room >= wanted)
        return true;
    uint8_t *staging = mem_resize(in->staging, wanted, 1);
    if (!staging)
        return false;
    in->staging = staging;
    in->room = wanted;
    return true;
}

// Where the next bytes go.
static unsigned receive_places(const struct receiver *in, nng_iov iov[2]) {
    unsigned n = 0;
    if (in->stage == STAGE_PAYLOAD) {
        iov[n].iov_buf = in->to;
        iov[n++].iov_len = in->left;
    }
    if (in->room > in->end) {
        iov[n].iov_buf = in->staging + in->end;
        iov[n++].iov_len = in->room - in->end;
    }
    return n;
}

void link_receive_more(struct link *link) {
    nng_iov iov[2];
    if (!make_staging_room(&link->in))
        link_break(link, "out of memory");
    nng_aio_set_iov(link->receive, receive_places(&link->in, iov), iov);
    if (!link_begin(link, link->receive, nng_stream_recv))
        link_leave_active(link);
}

void link_receive_again(struct link *link) {
    enum next next;
    do
        next = take_bytes(link);
    while (next == NEXT_FRAME);
    if (next == NEXT_READ)
        link_receive_more(link);
    else if (next == NEXT_END)
        link_leave_active(link);
}

void link_received(void *context) {
    struct link *link = context;
    struct receiver *in = &link->in;
    int result = nng_aio_result(link->receive);
    if (result) {
        link_fail(link, result);
        link_leave_active(link);
        return;
    }
    size_t bytes = nng_aio_count(link->receive);
    atomic_store(&link->heard, nng_clock());
    atomic_fetch_add(&link->received, bytes);
    if (in->stage == STAGE_PAYLOAD) {
        size_t direct = bytes < in->left ? bytes : in->left;
        in->to += direct;
        in->left -= direct;
        bytes -= direct;
    }
    in->end += bytes;
    link_receive_again(link);
}
