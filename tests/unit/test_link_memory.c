// A link in use allocates nothing: pieces of passes go and come (Adam 3.2.3) while the heap has no
// memory.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "core/gate.h"
#include "net/link.h"

enum { FLOATS = 5000, WARM = 64, ROUNDS = 200 };

static enum proto_refusal welcome(void *context, struct link *link, const struct proto_hello *hello,
                                  struct proto_welcome *answer, uint64_t *detail) {
    (void)context, (void)link, (void)hello, (void)answer, (void)detail;
    return PROTO_REFUSAL_NONE;
}

static void answer(void *context, struct link *link, uint64_t request, uint16_t type,
                   const union proto_message *message, struct buffer *payload) {
    (void)context, (void)type, (void)message;
    if (payload && payload->size == FLOATS * sizeof(float))
        link_answer(link, request, PROTO_TYPE_DONE, NULL, NULL, NULL);
    else
        link_refuse(link, request, PROTO_REFUSAL_WRONG_SHAPE, 0, "");
}

struct asking {
    struct link_request ask;
    struct gate gate;
    _Atomic bool over;
    bool good;
};

static void ended(struct link_request *request) {
    struct asking *asking = request->context;
    asking->good = !request->status && request->answer_type == PROTO_TYPE_DONE;
    atomic_store(&asking->over, true);
    gate_open(&asking->gate);
}

// What is asked with outlives the piece: who has said that it is over opens the gate behind that.
static bool send_piece(struct link *link, const float *floats) {
    static struct asking asking;
    atomic_store(&asking.over, false);
    const struct link_part part = {floats, FLOATS * sizeof *floats};
    const struct proto_exchange message = {.session = 1};
    asking.ask = (struct link_request){.type = PROTO_TYPE_EXCHANGE,
                                       .message = &message,
                                       .parts = &part,
                                       .part_count = 1,
                                       .done = ended,
                                       .context = &asking};
    if (link_ask(link, &asking.ask, NULL))
        return false;
    for (uint32_t seen = gate_look(&asking.gate); !atomic_load(&asking.over);
         seen = gate_look(&asking.gate))
        gate_wait(&asking.gate, seen, -1);
    return asking.good;
}

static void test_steady(struct tap *tap, const char *address) {
    static float floats[FLOATS];
    struct pool pool = {.limit = 1 << 24};
    const struct link_options server = {.handlers = {.hello = welcome, .request = answer},
                                        .pool = &pool};
    const struct link_options client = {.pool = &pool};
    const struct proto_hello hello = {.role = PROTO_ROLE_WORKER, .name = {"worker", 6}};
    struct listener *listener;
    struct link *link;
    int sent = 0;
    CHECK_INT(tap, listener_open(&listener, address, &server, NULL, NULL), STATUS_OK);
    CHECK_INT(tap, link_dial(&link, listener_address(listener), &client, &hello, 10000, NULL, NULL),
              STATUS_OK);
    for (int i = 0; i < WARM; i++)
        sent += send_piece(link, floats);
    heap_fail_after(0);
    for (int i = 0; i < ROUNDS; i++)
        sent += send_piece(link, floats);
    heap_fail_after(-1);
    CHECK_INT(tap, sent, WARM + ROUNDS);
    link_close(link);
    listener_close(listener);
    pool_free(&pool);
}

int main(void) {
    struct tap tap = {0};
    char folder[] = "/tmp/adam-link-XXXXXX", address[64], path[48];
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(address, sizeof address, "ipc://%s", path);
    TEST(&tap, "over TCP", { test_steady(&tap, "tcp://127.0.0.1:0"); });
    TEST(&tap, "over a Unix socket", { test_steady(&tap, address); });
    unlink(path);
    rmdir(folder);
    return tap_done(&tap);
}
