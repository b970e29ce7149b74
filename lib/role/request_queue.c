#include "role/request_queue.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"

enum { AGAIN = 100 }; // milliseconds after which one that was refused may ask again

void request_queue_open(struct request_queue *queue, struct gate *gate) {
    *queue = (struct request_queue){.gate = gate};
    queue->last = &queue->first;
    pthread_mutex_init(&queue->lock, NULL);
}

void queued_request_free(struct queued_request *queued) {
    link_drop(queued->link);
    kept_drop(queued->message);
    buffer_drop(queued->payload);
    free(queued);
}

void request_queue_close(struct request_queue *queue) {
    for (struct queued_request *queued; (queued = request_queue_take(queue));)
        queued_request_free(queued);
    pthread_mutex_destroy(&queue->lock);
}

static bool append_request(struct request_queue *queue, struct queued_request *queued) {
    pthread_mutex_lock(&queue->lock);
    bool room = queue->count < REQUEST_QUEUE_MOST;
    if (room) {
        *queue->last = queued;
        queue->last = &queued->next;
        queue->count++;
    }
    pthread_mutex_unlock(&queue->lock);
    return room;
}

void request_queue_add(struct request_queue *queue, struct link *link, uint64_t request,
                       uint16_t type, const union proto_message *message, struct buffer *payload) {
    struct queued_request *queued = mem_zeroed(1, sizeof *queued);
    if (queued && kept_make(&queued->message, type, message, NULL) == STATUS_OK) {
        link_hold(link);
        queued->link = link;
        queued->request = request;
        queued->type = type;
        if (payload)
            buffer_hold(payload);
        queued->payload = payload;
        if (append_request(queue, queued)) {
            gate_open(queue->gate);
            return;
        }
        queued_request_free(queued);
        queued = NULL;
    }
    free(queued);
    link_refuse(link, request, PROTO_REFUSAL_BUSY, AGAIN, "");
}

void request_queue_add_closed(struct request_queue *queue, struct link *link) {
    struct queued_request *queued = mem_zeroed(1, sizeof *queued);
    if (!queued)
        return;
    link_hold(link);
    queued->link = link;
    if (append_request(queue, queued))
        gate_open(queue->gate);
    else
        queued_request_free(queued);
}

struct queued_request *request_queue_take(struct request_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    struct queued_request *queued = queue->first;
    if (queued) {
        queue->first = queued->next;
        queue->count--;
        if (!queue->first)
            queue->last = &queue->first;
    }
    pthread_mutex_unlock(&queue->lock);
    return queued;
}
