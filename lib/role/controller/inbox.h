// Requests that came over links, for one thread to answer: threads of the network put them
// in and do not wait, the owner takes them out in their order and answers when it will.
#ifndef ADAM_ROLE_CONTROLLER_INBOX_H
#define ADAM_ROLE_CONTROLLER_INBOX_H

#include <pthread.h>

#include "core/gate.h"
#include "net/link.h"
#include "proto/kept.h"

struct letter { // owns its link's reference and its message
    struct letter *next;
    struct link *link;
    uint64_t request;
    uint16_t type;
    struct kept *message; // NULL: the link is closed (type 0)
};

struct inbox {
    struct gate *gate; // opened when something came
    pthread_mutex_t lock;
    struct letter *first, **last;
    size_t count;
};

#define INBOX_MOST 65536 // more are refused: busy

void inbox_open(struct inbox *inbox, struct gate *gate);
void inbox_close(struct inbox *inbox); // drops what is left
// For the request handler of a link: refuses when it cannot be kept.
void inbox_put(struct inbox *inbox, struct link *link, uint64_t request, uint16_t type,
               const union proto_message *message);
// For the closed handler of a link. Where there is no memory for it, its silence must tell.
void inbox_put_closed(struct inbox *inbox, struct link *link);
// The oldest, for letter_free; NULL: none.
struct letter *inbox_take(struct inbox *inbox);
void letter_free(struct letter *letter);

#endif
