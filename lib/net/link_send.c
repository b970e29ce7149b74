// Frames on their way out: one thread at a time hands them to nng, the bytes of many in
// one call, each from where it lies.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "net/link_internal.h"

enum {
    IOV_MAX_NNG = 8,  // that one operation of nng takes
    SPARE_HEAD = 256, // bytes of header and body of a spare frame
    SPARES_FIRST = 4, // that a link begins with
    SPARES_MOST = 32, // and keeps
};

// --- frames -----------------------------------------------------------------------------

static struct frame *take_spare(struct link *link) {
    pthread_mutex_lock(&link->lock);
    struct frame *frame = link->spare;
    if (frame) {
        link->spare = frame->next;
        link->spares--;
    }
    pthread_mutex_unlock(&link->lock);
    return frame;
}

static struct frame *new_frame(size_t head) {
    return mem_array(1, sizeof(struct frame) + (head > SPARE_HEAD ? head : SPARE_HEAD));
}

static struct frame *take_frame(struct link *link, size_t head) {
    struct frame *frame = head <= SPARE_HEAD ? take_spare(link) : NULL;
    if (!frame)
        frame = new_frame(head);
    if (!frame)
        return NULL;
    *frame = (struct frame){.head_size = head};
    memset(frame->head, 0, head);
    return frame;
}

void frame_free(struct link *link, struct frame *frame) {
    pthread_mutex_lock(&link->lock);
    bool spare = frame->head_size <= SPARE_HEAD && link->spares < SPARES_MOST;
    if (spare) {
        frame->next = link->spare;
        link->spare = frame;
        link->spares++;
    }
    pthread_mutex_unlock(&link->lock);
    if (!spare)
        free(frame);
}

bool link_spare_frames(struct link *link) {
    struct frame *frame = NULL;
    for (int i = 0; i < SPARES_FIRST && (frame = new_frame(0)); i++) {
        *frame = (struct frame){.head_size = 0};
        frame_free(link, frame);
    }
    return frame;
}

void link_free_frames(struct link *link) {
    for (struct frame *next; link->spare; link->spare = next) {
        next = link->spare->next;
        free(link->spare);
    }
}

struct frame *frame_make(struct link *link, uint16_t type, const void *message,
                         const struct link_payload *payload, struct error *err) {
    size_t body, bulk = 0;
    struct link_payload none = {0};
    payload = payload ? payload : &none;
    if (proto_measure(type, message, &body, err))
        return NULL;
    for (uint32_t i = 0; i < payload->part_count; i++)
        if (__builtin_add_overflow(bulk, payload->parts[i].size, &bulk))
            bulk = SIZE_MAX;
    if (bulk > PROTO_PAYLOAD_MAX || (bulk > 0 && !proto_layout(type)->payload)) {
        error_set(err, STATUS_DATA, "%s: a payload of %zu bytes", proto_message_name(type), bulk);
        return NULL;
    }
    struct frame *frame = take_frame(link, PROTO_FRAME + body);
    if (!frame) {
        error_nomem(err);
        return NULL;
    }
    const struct proto_frame header = {
        .version = PROTO_VERSION, .type = type, .body = (uint32_t)body, .payload = (uint32_t)bulk};
    proto_frame_put(frame->head, &header);
    proto_encode(type, message, frame->head + PROTO_FRAME);
    frame->payload = *payload;
    return frame;
}

void frame_number(struct frame *frame, uint64_t request) {
    struct proto_frame header;
    if (!proto_frame_get(&header, frame->head, NULL)) {
        header.request = request;
        proto_frame_put(frame->head, &header);
    }
}

size_t frame_burden(const struct frame *frame) {
    return sizeof *frame + frame->head_size + frame->payload.part_count * sizeof(struct link_part);
}

// --- sending ----------------------------------------------------------------------------

bool link_append(struct link *link, struct frame *frame) {
    if (link->last)
        link->last->next = frame;
    else
        link->first = frame;
    link->last = frame;
    if (link->sending)
        return false;
    link->sending = true;
    link->send_began = nng_clock();
    link->active++;
    return true;
}

// Piece `i` of a frame; false behind the last.
static bool frame_piece(const struct frame *frame, uint32_t i, struct link_part *piece) {
    if (i > frame->payload.part_count)
        return false;
    *piece =
        i == 0 ? (struct link_part){frame->head, frame->head_size} : frame->payload.parts[i - 1];
    return true;
}

// The bytes that come next, of as many frames as fit in one operation.
static unsigned gather_parts(const struct link *link, nng_iov iov[IOV_MAX_NNG]) {
    struct link_part piece;
    unsigned n = 0;
    for (const struct frame *frame = link->first; frame; frame = frame->next) {
        size_t done = frame->done;
        for (uint32_t i = frame->piece; frame_piece(frame, i, &piece); i++, done = 0) {
            if (piece.size == done)
                continue;
            if (n == IOV_MAX_NNG)
                return n;
            iov[n].iov_buf = (char *)piece.at + done;
            iov[n++].iov_len = piece.size - done;
        }
    }
    return n;
}

static void continue_sending(struct link *link, size_t bytes);

void link_send_more(struct link *link) {
    nng_iov iov[IOV_MAX_NNG];
    pthread_mutex_lock(&link->lock);
    unsigned n = gather_parts(link, iov);
    pthread_mutex_unlock(&link->lock);
    nng_aio_set_iov(link->send, n, iov);
    if (!link_begin(link, link->send, nng_stream_send))
        continue_sending(link, 0);
}

// Under the lock: so many bytes more were sent. True when the whole frame was.
static bool frame_advance(struct frame *frame, size_t *bytes) {
    struct link_part piece;
    while (frame_piece(frame, frame->piece, &piece)) {
        size_t step = piece.size - frame->done < *bytes ? piece.size - frame->done : *bytes;
        *bytes -= step;
        frame->done += step;
        if (frame->done < piece.size)
            return false;
        frame->piece++;
        frame->done = 0;
    }
    return true;
}

// Takes what was sent, or with `all` everything, off the queue.
static struct frame *take_sent(struct link *link, size_t bytes, bool all) {
    struct frame *sent = link->first, **end = &sent;
    while (*end && (all || frame_advance(*end, &bytes)))
        end = &(*end)->next;
    link->first = *end;
    if (!link->first)
        link->last = NULL;
    *end = NULL;
    return sent;
}

// What was sent is no longer needed. A request whose answer was faster than the news that
// it was sent is done now, and reading goes on.
static void frame_end(struct link *link, struct frame *frame) {
    struct link_request *request = frame->request;
    bool held = false;
    if (request) {
        pthread_mutex_lock(&link->lock);
        request->sent = true;
        held = link->held == request;
        if (held)
            link->held = NULL;
        pthread_mutex_unlock(&link->lock);
    } else if (frame->payload.sent) {
        frame->payload.sent(frame->payload.context);
    }
    if (frame->answers > 0) {
        pthread_mutex_lock(&link->lock);
        debt_pay(&link->debt, frame->answers);
        pthread_mutex_unlock(&link->lock);
    }
    frame_free(link, frame);
    if (held) {
        link_end_request(request, STATUS_OK, NULL);
        link_receive_again(link);
    }
}

static void frames_end(struct link *link, struct frame *frames) {
    while (frames) {
        struct frame *next = frames->next;
        frame_end(link, frames);
        frames = next;
    }
}

void link_send_nothing(struct link *link) {
    pthread_mutex_lock(&link->lock);
    struct frame *frames = link->sending ? NULL : take_sent(link, 0, true);
    pthread_mutex_unlock(&link->lock);
    frames_end(link, frames);
}

// So many bytes were sent: goes on with what is left, unless the link is broken.
static void continue_sending(struct link *link, size_t bytes) {
    pthread_mutex_lock(&link->lock);
    struct frame *sent = take_sent(link, bytes, link->broken);
    bool more = link->first != NULL;
    const char *leaving = more ? NULL : link->leaving;
    link->sending = more;
    pthread_mutex_unlock(&link->lock);
    frames_end(link, sent);
    if (more) {
        link_send_more(link);
        return;
    }
    if (leaving)
        link_break(link, leaving);
    link_leave_active(link);
}

void link_sent(void *context) {
    struct link *link = context;
    int result = nng_aio_result(link->send);
    size_t bytes = nng_aio_count(link->send);
    atomic_fetch_add(&link->sent, bytes);
    if (result)
        link_fail(link, result);
    else
        atomic_store(&link->spoke, nng_clock());
    continue_sending(link, bytes);
}
