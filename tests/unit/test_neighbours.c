// The workers of a replica: pieces and mini-batches reach each other whole, and nothing that one of
// them sends is believed that cannot be.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/gate.h"
#include "core/mem.h"
#include "net/link.h"
#include "remote/neighbour_links.h"

enum { PARTITIONS = 3, PLACES = 2, EXCHANGES = 130, BATCH = 4, OUTPUTS = 5, PATIENT = 2000 };

static const struct proto_id run = {{1, 2, 3}};

struct scene {
    struct neighbour_links *links[PARTITIONS];
    struct neighbour workers[PARTITIONS];
};

static struct proto_hello hello_of(const struct neighbour *worker) {
    return (struct proto_hello){.role = PROTO_ROLE_WORKER,
                                .run = run,
                                .model = 7,
                                .session = worker->session,
                                .name = proto_text(worker->name)};
}

static struct neighbour_replica replica_of(const struct scene *s, int partition) {
    return (struct neighbour_replica){.hello = hello_of(&s->workers[partition]),
                                      .partition = partition,
                                      .partitions = PARTITIONS,
                                      .workers = s->workers,
                                      .places = PLACES,
                                      .flights = PLACES,
                                      .exchanges = EXCHANGES,
                                      .batch = BATCH,
                                      .outputs = OUTPUTS,
                                      .labels = true};
}

static void listen_all(struct tap *tap, struct scene *s) {
    *s = (struct scene){0};
    for (int p = 0; p < PARTITIONS; p++) {
        char address[64];
        snprintf(address, sizeof address, "inproc://neighbours-%d-%d", (int)getpid(), p);
        const struct neighbour_links_options options = {.listen = address};
        CHECK_INT(tap, neighbour_links_open(&s->links[p], &options, NULL), STATUS_OK);
        s->workers[p].session = 10 + (uint64_t)p;
        snprintf(s->workers[p].name, sizeof s->workers[p].name, "w%d", p);
        snprintf(s->workers[p].address, sizeof s->workers[p].address, "%s",
                 neighbour_links_address(s->links[p]));
    }
}

static void form(struct tap *tap, struct scene *s, int partition) {
    const struct neighbour_replica replica = replica_of(s, partition);
    CHECK_INT(tap, neighbour_links_form(s->links[partition], &replica, NULL), STATUS_OK);
}

static void await_whole(struct neighbour_links *links) {
    const struct neighbours *neighbours = neighbour_links_neighbours(links);
    for (uint32_t seen = gate_look(neighbours->gate); !neighbour_links_whole(links);
         seen = gate_look(neighbours->gate))
        gate_wait(neighbours->gate, seen, 0.1);
}

static void await_lost(struct neighbour_links *links) {
    const struct neighbours *neighbours = neighbour_links_neighbours(links);
    for (uint32_t seen = gate_look(neighbours->gate); !neighbours->lost(neighbours->self);
         seen = gate_look(neighbours->gate))
        gate_wait(neighbours->gate, seen, 0.1);
}

static void open_scene(struct tap *tap, struct scene *s) {
    listen_all(tap, s);
    for (int p = 0; p < PARTITIONS; p++)
        form(tap, s, p);
    for (int p = 0; p < PARTITIONS; p++)
        await_whole(s->links[p]);
}

static void close_scene(struct scene *s) {
    for (int p = 0; p < PARTITIONS; p++)
        neighbour_links_close(s->links[p]);
}

static const struct neighbours *side(const struct scene *s, int partition) {
    return neighbour_links_neighbours(s->links[partition]);
}

static const struct net_wire *wire(const struct scene *s, int partition, int place) {
    return side(s, partition)->wire(side(s, partition)->self, place);
}

static const float *await_piece(const struct scene *s, int at, int place, int exchange,
                                enum net_pass pass, int from, size_t count) {
    const struct net_wire *w = wire(s, at, place);
    const float *floats = NULL;
    for (uint32_t seen = gate_look(side(s, at)->gate);
         !(floats = w->receive(w->self, exchange, pass, from, count)) &&
         !side(s, at)->lost(side(s, at)->self);
         seen = gate_look(side(s, at)->gate))
        gate_wait(side(s, at)->gate, seen, 0.1);
    return floats;
}

// --- pieces ---------------------------------------------------------------------------------

static float value_of(int from, int to, int place, int exchange, enum net_pass pass) {
    return (float)(((from * 3 + to) * PLACES + place) * EXCHANGES * 2 + exchange * 2 + (int)pass);
}

static void send_all(const struct scene *s, int from, int to, float *values) {
    for (int i = 0; i < PLACES * EXCHANGES * 2; i++) {
        int place = i % PLACES, exchange = i / PLACES % EXCHANGES;
        enum net_pass pass = i / PLACES / EXCHANGES ? NET_BACKWARD : NET_FORWARD;
        const struct net_wire *w = wire(s, from, place);
        values[i] = value_of(from, to, place, exchange, pass);
        w->send(w->self, exchange, pass, to, &values[i], 1);
    }
}

static int read_all(const struct scene *s, int from, int to) {
    int wrong = 0;
    for (int i = PLACES * EXCHANGES * 2 - 1; i >= 0; i--) {
        int place = i % PLACES, exchange = i / PLACES % EXCHANGES;
        enum net_pass pass = i / PLACES / EXCHANGES ? NET_BACKWARD : NET_FORWARD;
        const struct net_wire *w = wire(s, to, place);
        // Behind what a link has in flight, pieces come when those before them are read.
        const float *floats = w->receive(w->self, exchange, pass, from, 1);
        if (!floats)
            continue;
        wrong += fabsf(*floats - value_of(from, to, place, exchange, pass)) > 0;
        w->read(w->self, exchange, pass, from);
    }
    return wrong;
}

static int still_going(const struct scene *s, int from, int to) {
    int going = 0;
    for (int i = 0; i < PLACES * EXCHANGES * 2; i++) {
        const struct net_wire *w = wire(s, from, i % PLACES);
        going += !w->gone(w->self, i / PLACES % EXCHANGES,
                          i / PLACES / EXCHANGES ? NET_BACKWARD : NET_FORWARD, to);
    }
    return going;
}

static void test_pieces(struct tap *tap) {
    TEST(tap,
         "pieces of all places, exchanges and directions arrive, more than a link has in flight", {
             struct scene s;
             float values[PLACES * EXCHANGES * 2];
             open_scene(tap, &s);
             for (int from = 0; from < PARTITIONS; from++)
                 for (int to = 0; to < PARTITIONS; to++) {
                     int wrong = 0;
                     if (from == to)
                         continue;
                     send_all(&s, from, to, values);
                     while (still_going(&s, from, to) > 0) {
                         uint32_t seen = gate_look(side(&s, from)->gate);
                         wrong += read_all(&s, from, to);
                         gate_wait(side(&s, from)->gate, seen, 0.01);
                     }
                     CHECK_INT(tap, wrong, 0);
                 }
             for (int p = 0; p < PARTITIONS; p++)
                 CHECK_INT(tap, neighbour_links_status(s.links[p], NULL), STATUS_OK);
             close_scene(&s);
         });
    TEST(tap, "a piece has gone when it is read, and not before", {
        struct scene s;
        const float one = 1;
        open_scene(tap, &s);
        const struct net_wire *from = wire(&s, 0, 1);
        const struct net_wire *to = wire(&s, 2, 1);
        from->send(from->self, 3, NET_FORWARD, 2, &one, 1);
        CHECK(tap, await_piece(&s, 2, 1, 3, NET_FORWARD, 0, 1) != NULL);
        CHECK(tap, !from->gone(from->self, 3, NET_FORWARD, 2));
        CHECK(tap, from->gone(from->self, 3, NET_BACKWARD, 2));
        to->read(to->self, 3, NET_FORWARD, 0);
        for (uint32_t seen = gate_look(side(&s, 0)->gate);
             !from->gone(from->self, 3, NET_FORWARD, 2); seen = gate_look(side(&s, 0)->gate))
            gate_wait(side(&s, 0)->gate, seen, 0.1);
        CHECK(tap, !to->receive(to->self, 3, NET_FORWARD, 0, 1));
        close_scene(&s);
    });
    TEST(tap, "a piece of another size than is wanted ends it", {
        struct scene s;
        const float two[2] = {1, 2};
        struct error err = {0};
        open_scene(tap, &s);
        const struct net_wire *from = wire(&s, 0, 0);
        from->send(from->self, 0, NET_FORWARD, 1, two, 2);
        CHECK(tap, !await_piece(&s, 1, 0, 0, NET_FORWARD, 0, 1));
        CHECK_INT(tap, neighbour_links_status(s.links[1], &err), STATUS_STOPPED);
        CHECK(tap, strstr(err.text, "it sent a piece of another size") != NULL);
        close_scene(&s);
    });
}

// --- mini-batches ---------------------------------------------------------------------------

static struct batch *await_flight(const struct scene *s, int at, uint64_t number, float *rate) {
    const struct neighbours *n = side(s, at);
    struct batch *batch;
    for (uint32_t seen = gate_look(n->gate); !(batch = n->hear(n->self, number, rate));
         seen = gate_look(n->gate))
        gate_wait(n->gate, seen, 0.1);
    return batch;
}

// Returns when the first one has heard of it.
static void give_back(const struct neighbours *first, const struct neighbours *n,
                      struct batch *batch, double loss, bool refused) {
    uint32_t seen = gate_look(first->gate);
    n->give_back(n->self, batch, loss, refused);
    while (gate_look(first->gate) == seen)
        gate_wait(first->gate, seen, 0.1);
}

static void test_flights(struct tap *tap) {
    TEST(tap, "mini-batches are heard without their inputs, and land with the losses of all", {
        struct scene s;
        uint64_t draw[BATCH] = {5, 6, 7, UINT64_MAX};
        int32_t label[BATCH] = {0, 4, 2, 3};
        int32_t other[BATCH] = {1, 1, 0, 4};
        float share[BATCH] = {0.5f, 0.25f, 1, 0};
        float target[3 * OUTPUTS];
        float rate = 0;
        double loss = 1;
        bool refused = false;
        for (int i = 0; i < 3 * OUTPUTS; i++)
            target[i] = (float)i;
        const struct batch mixed = {
            .label = label, .draw = draw, .other = other, .share = share, .n = BATCH};
        int32_t none[3] = {-1, -1, -1};
        const struct batch aimed = {.label = none, .draw = draw, .target = target, .n = 3};
        const struct batch empty = {.n = 0};
        open_scene(tap, &s);
        const struct neighbours *first = side(&s, 0);
        first->tell(first->self, 0, &mixed, 0.125f);
        first->tell(first->self, 1, &aimed, 0.25f);
        for (int p = 1; p < PARTITIONS; p++) {
            const struct neighbours *n = side(&s, p);
            CHECK(tap, !first->landed(first->self, 0, &loss, &refused));
            struct batch *batch = await_flight(&s, p, 0, &rate);
            CHECK_INT(tap, batch->n, BATCH);
            CHECK(tap, !batch->input && !batch->target);
            CHECK(tap, !memcmp(batch->draw, draw, sizeof draw));
            CHECK(tap, !memcmp(batch->label, label, sizeof label));
            CHECK(tap, !memcmp(batch->other, other, sizeof other));
            CHECK(tap, !memcmp(batch->share, share, sizeof share));
            CHECK_NEAR(tap, (double)rate, 0.125, 0);
            batch = await_flight(&s, p, 1, &rate);
            CHECK_INT(tap, batch->n, 3);
            CHECK(tap, !batch->other && !memcmp(batch->target, target, sizeof target));
            give_back(first, n, batch, 0, p == 1);
            give_back(first, n, await_flight(&s, p, 0, &rate), p, false);
        }
        for (uint32_t seen = gate_look(first->gate);
             !first->landed(first->self, 0, &loss, &refused); seen = gate_look(first->gate))
            gate_wait(first->gate, seen, 0.1);
        CHECK_NEAR(tap, loss, 1 + 1 + 2, 0);
        CHECK(tap, !refused);
        while (!first->landed(first->self, 1, &loss, &refused))
            continue;
        CHECK(tap, refused);
        first->tell(first->self, 2, &empty, 0);
        for (int p = 1; p < PARTITIONS; p++) {
            struct batch *batch = await_flight(&s, p, 2, &rate);
            CHECK_INT(tap, batch->n, 0);
            side(&s, p)->give_back(side(&s, p)->self, batch, 0, false);
        }
        close_scene(&s);
    });
    TEST(tap, "one that a partition forgets has not landed, whatever lands after it", {
        struct scene s;
        const struct batch empty = {.n = 0};
        float rate = 0;
        double loss = 0;
        bool refused = false;
        open_scene(tap, &s);
        const struct neighbours *first = side(&s, 0);
        first->tell(first->self, 0, &empty, 0);
        first->tell(first->self, 1, &empty, 0);
        for (int p = 1; p < PARTITIONS; p++) {
            const struct neighbours *n = side(&s, p);
            struct batch *batch = await_flight(&s, p, 0, &rate);
            if (p == 1)
                n->forget(n->self, batch);
            else
                n->give_back(n->self, batch, 0, false);
            CHECK(tap, !n->hear(n->self, 0, &rate));
            n->give_back(n->self, await_flight(&s, p, 1, &rate), 0, false);
        }
        for (uint32_t seen = gate_look(first->gate);
             !first->landed(first->self, 1, &loss, &refused); seen = gate_look(first->gate))
            gate_wait(first->gate, seen, 0.1);
        CHECK(tap, !first->landed(first->self, 0, &loss, &refused));
        close_scene(&s);
    });
}

// --- who is not of the replica, and who sends nonsense ------------------------------------------

static void ignore(struct link_request *request) {
    (void)request;
}

static int call(const struct scene *s, int at, uint64_t session, struct link **link) {
    const struct link_options options = {.handlers = {.context = NULL}};
    struct neighbour worker = {.session = session, .name = "liar"};
    const struct proto_hello hello = hello_of(&worker);
    struct proto_welcome welcome;
    return link_dial(link, s->workers[at].address, &options, &hello, PATIENT, &welcome, NULL);
}

// Partition 2 is a liar: it says this to partition 0.
static void lie(struct tap *tap, uint16_t type, const void *message, const void *payload,
                size_t size, int times, const char *why) {
    struct scene s;
    struct link *link;
    struct error err = {0};
    struct link_part part = {payload, size};
    struct link_request asks[2];
    listen_all(tap, &s);
    form(tap, &s, 0);
    form(tap, &s, 1);
    while (call(&s, 0, s.workers[2].session, &link))
        continue;
    for (int i = 0; i < times; i++) {
        asks[i] = (struct link_request){.type = type,
                                        .message = message,
                                        .parts = &part,
                                        .part_count = size > 0,
                                        .done = ignore};
        CHECK_INT(tap, link_ask(link, &asks[i], &err), STATUS_OK);
    }
    await_lost(s.links[0]);
    CHECK_INT(tap, neighbour_links_status(s.links[0], &err), STATUS_STOPPED);
    if (!strstr(err.text, why))
        FAIL(tap, "'%s' is not '%s'", err.text, why);
    link_close(link);
    close_scene(&s);
}

static void test_lies(struct tap *tap) {
    const float one = 1;
    struct proto_exchange piece = {.session = 12};
    TEST(tap, "a worker that is not of the replica, or of another run, is not welcome", {
        struct scene s;
        struct link *link;
        listen_all(tap, &s);
        CHECK_INT(tap, call(&s, 0, 12, &link), STATUS_UNAVAILABLE); // it knows nobody yet
        form(tap, &s, 0);
        CHECK_INT(tap, call(&s, 0, 99, &link), STATUS_UNAVAILABLE);
        CHECK_INT(tap, call(&s, 0, 10, &link), STATUS_UNAVAILABLE);
        CHECK_INT(tap, neighbour_links_status(s.links[0], NULL), STATUS_OK);
        close_scene(&s);
    });
    TEST(tap, "pieces of no pass, a second one before the first is read, and none at all", {
        piece.place = PLACES;
        lie(tap, PROTO_TYPE_EXCHANGE, &piece, &one, sizeof one, 1, "a piece of no pass");
        piece.place = 0, piece.exchange = EXCHANGES;
        lie(tap, PROTO_TYPE_EXCHANGE, &piece, &one, sizeof one, 1, "a piece of no pass");
        piece.exchange = 1;
        lie(tap, PROTO_TYPE_EXCHANGE, &piece, &one, 0, 1, "a piece of no pass");
        lie(tap, PROTO_TYPE_EXCHANGE, &piece, &one, sizeof one, 2,
            "before the one before was read");
    });
    TEST(tap, "a mini-batch that is not of the first partition", {
        const struct proto_fly fly = {.session = 12};
        lie(tap, PROTO_TYPE_FLY, &fly, NULL, 0, 1, "a mini-batch that cannot be");
    });
    TEST(tap, "who closes the connection is lost to the others, by name", {
        struct scene s;
        struct error err = {0};
        open_scene(tap, &s);
        neighbour_links_close(s.links[1]);
        s.links[1] = NULL;
        await_lost(s.links[0]);
        await_lost(s.links[2]);
        neighbour_links_status(s.links[2], &err);
        CHECK(tap, strstr(err.text, "partition 1 of its model, w1 at inproc://") == err.text);
        close_scene(&s);
    });
}

// --- a first partition that lies ------------------------------------------------------------

struct liar {
    struct listener *listener;
    _Atomic(struct link *) link;
};

static enum proto_refusal welcome_all(void *context, struct link *link,
                                      const struct proto_hello *hello,
                                      struct proto_welcome *welcome, uint64_t *detail) {
    struct liar *liar = context;
    (void)detail;
    *welcome = (struct proto_welcome){.role = PROTO_ROLE_WORKER, .session = hello->session};
    link_hold(link);
    liar->link = link;
    return PROTO_REFUSAL_NONE;
}

static void lie_of_flight(struct tap *tap, const struct proto_fly *fly, const void *payload,
                          size_t size) {
    struct scene s;
    struct liar liar = {NULL, NULL};
    struct error err = {0};
    listen_all(tap, &s);
    const struct link_options options = {.handlers = {.context = &liar, .hello = welcome_all}};
    snprintf(s.workers[0].address, sizeof s.workers[0].address, "inproc://liar-%d", (int)getpid());
    CHECK_INT(tap, listener_open(&liar.listener, s.workers[0].address, &options, NULL, NULL),
              STATUS_OK);
    form(tap, &s, 1);
    while (!liar.link)
        usleep(1000);
    struct link_part part = {payload, size};
    struct link_request ask = {.type = PROTO_TYPE_FLY,
                               .message = fly,
                               .parts = &part,
                               .part_count = size > 0,
                               .done = ignore};
    while (link_ask(liar.link, &ask, &err)) // it is not welcome before its hello is answered
        usleep(1000);
    await_lost(s.links[1]);
    neighbour_links_status(s.links[1], &err);
    if (!strstr(err.text, "a mini-batch that cannot be"))
        FAIL(tap, "%s", err.text);
    link_drop(liar.link);
    listener_close(liar.listener);
    close_scene(&s);
}

static void test_false_flights(struct tap *tap) {
    struct {
        uint64_t draw;
        int32_t label;
        float target[OUTPUTS - 1];
    } sample = {1, OUTPUTS, {0}};
    const size_t labelled = sizeof sample.draw + sizeof sample.label;
    struct proto_fly fly = {.session = 10, .samples = 1, .rate = 0.1};
    TEST(tap, "labels beyond the classes, or none where there are no targets", {
        lie_of_flight(tap, &fly, &sample, labelled);
        sample.label = -1;
        lie_of_flight(tap, &fly, &sample, labelled);
        sample.label = 1;
    });
    TEST(tap, "more samples than a mini-batch has, or than come, and payloads of none", {
        const uint8_t many[(BATCH + 1) * (sizeof(uint64_t) + sizeof(int32_t))] = {0};
        fly.samples = BATCH + 1;
        lie_of_flight(tap, &fly, many, sizeof many);
        fly.samples = 2;
        lie_of_flight(tap, &fly, &sample, labelled);
        fly.samples = 0;
        lie_of_flight(tap, &fly, &sample, labelled);
        fly.samples = 1;
        fly.targets = OUTPUTS - 1;
        lie_of_flight(tap, &fly, &sample, sizeof sample);
        fly.targets = 0;
    });
    TEST(tap, "rates that are none", {
        fly.rate = NAN;
        lie_of_flight(tap, &fly, &sample, labelled);
        fly.rate = -1;
        lie_of_flight(tap, &fly, &sample, labelled);
    });
}

int main(void) {
    struct tap tap = {0};
    test_pieces(&tap);
    test_flights(&tap);
    test_lies(&tap);
    test_false_flights(&tap);
    return tap_done(&tap);
}
