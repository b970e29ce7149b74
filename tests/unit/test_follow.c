// An evaluator follows a run: copies of the weights when they are due, only what changed,
// the last ones in the end. Controller, parameter server and data server are the test's.
#include "../helper/controller.h"
#include "core/error.h"
#include "core/mem.h"
#include "role/follow.h"

static const char model[] = "input 1x20x20\ndense d1 units=700\nsoftmax units=3\n";
enum { PARAMETERS = 400 * 700 + 700 + 700 * 3 + 3, SHARDS = 2 };

// Both servers of the run: weights with a version for each shard, and names of classes.
struct server {
    struct listener *listener;
    pthread_mutex_t lock;
    float weights[PARAMETERS];
    uint64_t versions[SHARDS];
    struct link_part parts[SHARDS];
    int sent; // shards
};

static enum proto_refusal hear_hello(void *context, struct link *link,
                                     const struct proto_hello *hello, struct proto_welcome *welcome,
                                     uint64_t *detail) {
    (void)context, (void)link, (void)hello, (void)detail;
    welcome->role = PROTO_ROLE_PARAMETER_SERVER;
    welcome->window = 8;
    return PROTO_REFUSAL_NONE;
}

// One shard a request, as the client asks.
static void answer_pull(struct server *server, struct link *link, uint64_t request,
                        const struct proto_pull *pull) {
    struct proto_piece piece = *(const struct proto_piece *)pull->pieces.at;
    pthread_mutex_lock(&server->lock);
    bool changed = piece.version != server->versions[piece.shard];
    piece.version = server->versions[piece.shard];
    if (!changed)
        piece.count = 0;
    server->sent += changed;
    const struct link_payload payload = {.parts = &server->parts[piece.shard],
                                         .part_count = changed};
    const struct proto_weights weights = {.pieces = {&piece, 1}};
    link_answer(link, request, PROTO_TYPE_WEIGHTS, &weights, &payload, NULL);
    pthread_mutex_unlock(&server->lock);
}

static void answer_names(struct link *link, uint64_t request, const struct proto_get_data *asked) {
    static const struct proto_named names[] = {{{"cat", 3}}, {{"dog", 3}}, {{"eel", 3}}};
    // Two of them at once, then the one that is left.
    uint32_t count = asked->names == 0 ? 2 : 3 - asked->names;
    const struct proto_data data = {.classes = 3, .names = {names + asked->names, count}};
    link_answer(link, request, PROTO_TYPE_DATA, &data, NULL, NULL);
}

static void hear_request(void *context, struct link *link, uint64_t request, uint16_t type,
                         const union proto_message *message, struct buffer *payload) {
    (void)payload;
    if (type == PROTO_TYPE_PULL)
        answer_pull(context, link, request, &message->pull);
    else if (type == PROTO_TYPE_GET_DATA)
        answer_names(link, request, &message->get_data);
    else
        link_refuse(link, request, PROTO_REFUSAL_WRONG_ROLE, type, "not asked here");
}

static void server_start(struct tap *tap, struct server *server) {
    const struct link_options options = {.handlers = {server, hear_hello, hear_request, NULL}};
    struct error err = {0};
    pthread_mutex_init(&server->lock, NULL);
    for (size_t i = 0; i < PARAMETERS; i++)
        server->weights[i] = (float)i;
    server->parts[0] = (struct link_part){server->weights, PROTO_SHARD_FLOATS * sizeof(float)};
    server->parts[1] = (struct link_part){server->weights + PROTO_SHARD_FLOATS,
                                          (PARAMETERS - PROTO_SHARD_FLOATS) * sizeof(float)};
    server->versions[0] = 5;
    server->versions[1] = 7;
    if (listener_open(&server->listener, "inproc://servers", &options, NULL, &err))
        FAIL(tap, "%s", err.text);
}

static void server_stop(struct server *server) {
    listener_close(server->listener);
    pthread_mutex_destroy(&server->lock);
}

static void fill_run(struct controller *c) {
    const struct proto_server server = {.member = 1, .training = proto_text("inproc://servers")};
    controller_init(c);
    c->model = model;
    c->routes_epoch = 4;
    c->parameters = PARAMETERS;
    c->servers[0] = c->data_servers[0] = server;
    c->server_count = c->source_count = 1;
    c->buckets[0] = (struct proto_bucket){
        .epoch = 4, .primary = 1, .second = PROTO_NOBODY, .third = PROTO_NOBODY};
    c->bucket_count = 1;
    // The controller knows how far the run is; what others say is their own part of it.
    c->members[0] =
        (struct proto_member){.role = PROTO_ROLE_CONTROLLER, .samples = 800, .epoch = 1.375};
    c->members[1] =
        (struct proto_member){.role = PROTO_ROLE_DATA_SERVER, .samples = 900, .epoch = 1.5};
    c->members[2] = (struct proto_member){.role = PROTO_ROLE_WORKER, .samples = 99, .epoch = 9};
    c->member_count = 3;
}

static bool go_on(void) {
    return false;
}

static bool stop_now(void) {
    return true;
}

static struct follow *start(struct tap *tap, double every, bool (*stop)(void)) {
    const struct follow_options options = {
        .member = {.controller = "inproc://controller", .name = "eval-1"},
        .every = every,
        .stop = stop,
    };
    struct follow *follow = NULL;
    struct error err = {0};
    if (follow_open(&follow, &options, &err))
        FAIL(tap, "%s", err.text);
    return follow;
}

static void check_weights(struct tap *tap, const struct follow_copy *copy,
                          const struct server *server) {
    size_t count = sizeof server->weights / sizeof *server->weights, alike = 0;
    while (alike < count && copy->parameters[alike] == server->weights[alike])
        alike++;
    CHECK_INT(tap, alike, count);
}

static void order_stop(struct controller *c) {
    pthread_mutex_lock(&c->lock);
    c->order = PROTO_ORDER_STOP;
    c->order_number = 1;
    pthread_mutex_unlock(&c->lock);
}

static void test_copies(struct tap *tap, struct controller *c, struct server *server) {
    struct follow *follow = start(tap, 0.01, go_on);
    struct follow_copy copy = {0};
    struct error err = {0};
    TEST(tap, "the first copy has the model, all weights, names of classes and how far it is", {
        CHECK_INT(tap, follow_next(follow, &copy, &err), STATUS_OK);
        CHECK_INT(tap, copy.model->parameter_count, PARAMETERS);
        check_weights(tap, &copy, server);
        CHECK_INT(tap, copy.names->count, 3);
        CHECK_TEXT(tap, copy.names->names[2], "eel");
        CHECK_INT(tap, copy.rank, 3);
        CHECK_INT(tap, copy.step, 7);
        CHECK_INT(tap, copy.samples, 800);
        CHECK(tap, copy.epoch == 1.375);
        CHECK(tap, !copy.last);
        CHECK_TEXT(tap, err.text, "");
    });
    TEST(tap, "the next one brings only what has changed", {
        pthread_mutex_lock(&server->lock);
        server->versions[1] = 9;
        server->weights[PARAMETERS - 1] = -1;
        server->sent = 0;
        pthread_mutex_unlock(&server->lock);
        CHECK_INT(tap, follow_next(follow, &copy, &err), STATUS_OK);
        check_weights(tap, &copy, server);
        CHECK_INT(tap, copy.step, 9);
        CHECK_INT(tap, server->sent, 1);
    });
    TEST(tap, "when the run is over there is a last copy, and the controller need not wait", {
        order_stop(c);
        while (!copy.last && !err.status)
            follow_next(follow, &copy, &err);
        CHECK_TEXT(tap, err.text, "");
        CHECK_INT(tap, c->leaves, 1);
        CHECK_TEXT(tap, c->left, "it has the last weights");
        check_weights(tap, &copy, server);
    });
    follow_close(follow);
}

static void test_stopping(struct tap *tap) {
    struct follow *follow = start(tap, 0.01, stop_now);
    struct follow_copy copy;
    struct error err = {0};
    TEST(tap, "who is asked to stop does so",
         { CHECK_INT(tap, follow_next(follow, &copy, &err), STATUS_STOPPED); });
    follow_close(follow);
}

int main(void) {
    struct tap tap = {0};
    struct controller c;
    struct server *server = mem_zeroed(1, sizeof *server);
    if (!server)
        return 1;
    fill_run(&c);
    controller_listen(&c, &tap, "inproc://controller");
    server_start(&tap, server);
    test_copies(&tap, &c, server);
    c.order = PROTO_ORDER_NOTHING;
    test_stopping(&tap);
    controller_free(&c);
    server_stop(server);
    free(server);
    return tap_done(&tap);
}
