// Requests that came over links, for one thread to answer. Threads of the network put them
// in and do not wait; the owner takes them out in order and answers each when it can.
#ifndef ADAM_ROLE_REQUEST_QUEUE_H
#define ADAM_ROLE_REQUEST_QUEUE_H

#include <pthread.h>

#include "core/gate.h"
#include "net/link.h"
#include "proto/kept.h"

struct queued_request { // owns its references: of link, message and payload
    struct queued_request *next;
    struct link *link;
    uint64_t request;
    uint16_t type;
    struct kept *message;   // NULL: the link is closed (type 0)
    struct buffer *payload; // NULL: none
};

struct request_queue {
    struct gate *gate; // opened when something came
    pthread_mutex_t lock;
    struct queued_request *first, **last;
    size_t count;
};

#define REQUEST_QUEUE_MOST 65536 // more are refused: busy

void request_queue_open(struct request_queue *queue, struct gate *gate);
void request_queue_close(struct request_queue *queue); // drops the requests that are left
// For the request handler of a link: refuses the request when there is no room for it.
void request_queue_add(struct request_queue *queue, struct link *link, uint64_t request,
                       uint16_t type, const union proto_message *message, struct buffer *payload);
// For the closed handler of a link. Does nothing when out of memory: the member's silence is
// noticed later.
void request_queue_add_closed(struct request_queue *queue, struct link *link);
// The oldest request, for queued_request_free; NULL: none.
struct queued_request *request_queue_take(struct request_queue *queue);
void queued_request_free(struct queued_request *queued);

#endif
