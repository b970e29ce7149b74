// Requests that came over links, for one thread to answer. Threads of the network put them
// in and do not wait; the owner takes them out in order and answers each when it can.
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
void inbox_close(struct inbox *inbox); // drops the letters that are left
// For the request handler of a link: refuses the request when there is no room for it.
void inbox_put(struct inbox *inbox, struct link *link, uint64_t request, uint16_t type,
               const union proto_message *message);
// For the closed handler of a link. Does nothing when out of memory: the member's silence is
// noticed later.
void inbox_put_closed(struct inbox *inbox, struct link *link);
// The oldest letter, for letter_free; NULL: none.
struct letter *inbox_take(struct inbox *inbox);
void letter_free(struct letter *letter);

#endif
