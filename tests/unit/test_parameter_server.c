// A whole parameter server beside a controller of the test: who is welcome at which
// address, what is carried out and what refused, and what it tells about itself.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../helper/answers.h"
#include "../helper/controller.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "role/paramserver/parameter_server.h"
#include "run/checkpoint_parts.h"
#include "store/crc.h"
#include "store/map.h"

// Two shards: 300 x 1000 weights and 1000 biases and 10 x 1000 and 10.
static const char model_text[] = "input 1x1x300\ndense units=1000 act=relu\nsoftmax units=10\n";
enum { PARAMETERS = 300 * 1000 + 1000 + 10 * 1000 + 10, MEMBER = 3 };
enum { TRAINING, REPLICATION, ADMIN, ADDRESSES };

struct bench {
    struct tap *tap;
    struct controller controller;
    char address[ADDRESSES + 1][64]; // the last is the controller's
    struct parameter_server_options options;
    _Atomic bool stop;
    pthread_t thread;
    int status;
    struct error err;
    pthread_mutex_t lock;
    char said[1 << 16];
};

static bool wish(void *self) {
    return atomic_load(&((struct bench *)self)->stop);
}

static void hear(void *self, const char *text) {
    struct bench *bench = self;
    pthread_mutex_lock(&bench->lock);
    size_t length = strlen(bench->said);
    snprintf(bench->said + length, sizeof bench->said - length, "%s\n", text);
    pthread_mutex_unlock(&bench->lock);
}

static void *run(void *context) {
    struct bench *bench = context;
    bench->status = parameter_server_run(&bench->options, &bench->err);
    return NULL;
}

static void bench_init(struct bench *bench, struct tap *tap, const char *folder) {
    static const char *const names[] = {"t", "r", "a", "c"};
    *bench = (struct bench){.tap = tap};
    pthread_mutex_init(&bench->lock, NULL);
    for (int i = 0; i <= ADDRESSES; i++)
        snprintf(bench->address[i], sizeof bench->address[i], "ipc://%s/%s", folder, names[i]);
    bench->options = (struct parameter_server_options){
        .controller = bench->address[ADDRESSES],
        .name = "ps-a",
        .training = bench->address[TRAINING],
        .replication = bench->address[REPLICATION],
        .administration = bench->address[ADMIN],
        .ready = {.fd = -1},
        .threads = 2,
        .memory = 16 << 20, // a quarter for payloads: twice that of one push
        .hooks = {bench, wish, hear},
    };
    struct controller *c = &bench->controller;
    controller_init(c);
    c->model = model_text;
    c->settings = "optimizer=sgd\nrate=0.1\nprotocol=async\nmetrics-every=0.1\n";
}

static void bench_start(struct bench *bench) {
    if (pthread_create(&bench->thread, NULL, run, bench))
        abort();
}

// Puts all buckets on the server, and one worker into the run.
static void set_up_run(struct controller *c) {
    pthread_mutex_lock(&c->lock);
    c->parameters = PARAMETERS;
    c->buckets[0] = (struct proto_bucket){1, MEMBER, PROTO_NOBODY, PROTO_NOBODY};
    c->bucket_count = 1;
    c->routes_epoch = 1;
    c->members[0] = (struct proto_member){
        .member = 4, .role = PROTO_ROLE_WORKER, .state = PROTO_STATE_WORKING, .session = 44};
    c->member_count = 1;
    c->members_epoch = 1;
    pthread_mutex_unlock(&c->lock);
}

static struct proto_hello hello_of(enum proto_role role) {
    return (struct proto_hello){.role = (uint16_t)role, .name = proto_text("somebody")};
}

static int dial(struct link **link, const char *address, const struct proto_hello *hello,
                struct error *err) {
    const struct link_options options = {.silence = 0};
    return link_dial(link, address, &options, hello, 2000, NULL, err);
}

static void check_refused(struct bench *bench, int address, const struct proto_hello *hello,
                          const char *why) {
    struct link *link;
    struct error err = {0};
    if (!dial(&link, bench->address[address], hello, &err))
        link_close(link);
    if (!strstr(err.text, why))
        FAIL(bench->tap, "not %s: '%s'", why, err.text);
}

// Dials until it is welcome: what must come first comes some time.
static struct link *dial_until_welcome_at(struct bench *bench, int address, enum proto_role role,
                                          uint64_t session) {
    struct proto_hello hello = hello_of(role);
    struct error err;
    struct link *link;
    hello.session = session;
    do {
        err = (struct error){0};
    } while (dial(&link, bench->address[address], &hello, &err));
    return link;
}

static struct link *dial_until_welcome_as(struct bench *bench, enum proto_role role,
                                          uint64_t session) {
    return dial_until_welcome_at(bench, role == PROTO_ROLE_ADMINISTRATOR ? ADMIN : TRAINING, role,
                                 session);
}

static struct link *dial_until_welcome(struct bench *bench, enum proto_role role) {
    return dial_until_welcome_as(bench, role, 0);
}

// What a request was answered with; the refusal's code, or 0.
static enum proto_refusal ask(struct tap *tap, struct link *link, uint16_t type,
                              const void *message, const float *payload, size_t floats, float *into,
                              size_t room, struct kept **kept) {
    const struct link_part part = {payload, floats * sizeof(float)};
    struct link_request request = {.type = type,
                                   .message = message,
                                   .parts = &part,
                                   .part_count = floats > 0,
                                   .into = into,
                                   .room = room * sizeof(float)};
    struct error err;
    enum proto_refusal code = answer_of(link, &request, kept, &err);
    if (err.status)
        FAIL(tap, "%s", err.text);
    return code;
}

// Both shards.
static void lay_out(struct proto_piece pieces[2], uint64_t version) {
    pieces[0] = (struct proto_piece){0, 0, PROTO_SHARD_FLOATS, 1, version};
    pieces[1] = (struct proto_piece){1, 0, PARAMETERS - PROTO_SHARD_FLOATS, 1, version};
}

static enum proto_refusal store(struct bench *bench, struct link *link, const float *weights) {
    struct proto_piece pieces[2];
    lay_out(pieces, 1);
    const struct proto_store message = {.quantity = PROTO_QUANTITY_WEIGHT, .pieces = {pieces, 2}};
    return ask(bench->tap, link, PROTO_TYPE_STORE, &message, weights, PARAMETERS, NULL, 0, NULL);
}

static enum proto_refusal push(struct bench *bench, struct link *link, uint64_t session,
                               uint64_t sequence, const float *delta) {
    struct proto_piece pieces[2];
    lay_out(pieces, 1);
    const struct proto_push message = {.session = session,
                                       .sequence = sequence,
                                       .kind = PROTO_UPDATE_DELTA,
                                       .samples = 7,
                                       .pieces = {pieces, 2}};
    return ask(bench->tap, link, PROTO_TYPE_PUSH, &message, delta, PARAMETERS, NULL, 0, NULL);
}

static enum proto_refusal pull_as(struct bench *bench, struct link *link, uint64_t session,
                                  float *into) {
    struct proto_piece pieces[2];
    lay_out(pieces, 0);
    const struct proto_pull message = {.session = session, .pieces = {pieces, 2}};
    return ask(bench->tap, link, PROTO_TYPE_PULL, &message, NULL, 0, into, PARAMETERS, NULL);
}

static enum proto_refusal pull(struct bench *bench, struct link *link, float *into) {
    return pull_as(bench, link, 0, into);
}

static void test_early(struct bench *bench) {
    struct tap *tap = bench->tap;
    const struct proto_hello worker = hello_of(PROTO_ROLE_WORKER);
    struct link *admin = dial_until_welcome(bench, PROTO_ROLE_ADMINISTRATOR);
    TEST(tap, "before there is a controller workers are told to wait",
         { check_refused(bench, TRAINING, &worker, "not ready"); });
    TEST(tap, "and people that it is starting", {
        struct kept *status;
        CHECK_INT(tap,
                  ask(tap, admin, PROTO_TYPE_GET_STATUS, &(struct proto_get_status){0}, NULL, 0,
                      NULL, 0, &status),
                  0);
        const struct proto_member *self = status->message.status.members.at;
        CHECK_INT(tap, status->message.status.members.count, 1);
        CHECK_INT(tap, self->state, PROTO_STATE_STARTING);
        CHECK_INT(tap, self->role, PROTO_ROLE_PARAMETER_SERVER);
        kept_drop(status);
    });
    link_close(admin);
}

static void test_welcome(struct bench *bench) {
    struct tap *tap = bench->tap;
    struct proto_hello hello = hello_of(PROTO_ROLE_WORKER);
    TEST(tap, "a worker of another run, or of another model, is turned away", {
        hello.run = (struct proto_id){{9}};
        check_refused(bench, TRAINING, &hello, "wrong run");
        hello.run = bench->controller.run;
        hello.model = 12345;
        check_refused(bench, TRAINING, &hello, "wrong model");
    });
    TEST(tap, "each address is for some roles only", {
        hello = hello_of(PROTO_ROLE_WORKER);
        check_refused(bench, ADMIN, &hello, "wrong role");
        check_refused(bench, REPLICATION, &hello, "wrong role");
        hello = hello_of(PROTO_ROLE_DATA_SERVER);
        check_refused(bench, TRAINING, &hello, "wrong role");
    });
    TEST(tap, "another parameter server may pull, and nothing more", {
        struct link *other = dial_until_welcome(bench, PROTO_ROLE_PARAMETER_SERVER);
        float *numbers = calloc(PARAMETERS, sizeof *numbers);
        CHECK_INT(tap, pull(bench, other, numbers), PROTO_REFUSAL_NONE);
        CHECK(tap, numbers && numbers[0] != 0);
        CHECK_INT(tap, store(bench, other, numbers), PROTO_REFUSAL_WRONG_ROLE);
        CHECK_INT(tap, push(bench, other, 0, 1, numbers), PROTO_REFUSAL_WRONG_ROLE);
        link_close(other);
        free(numbers);
    });
}

static bool all_are(const float *weights, float wanted) {
    for (size_t i = 0; i < PARAMETERS; i++)
        if (weights[i] != wanted)
            return false;
    return true;
}

static void fill(float *numbers, float value) {
    for (size_t i = 0; i < PARAMETERS; i++)
        numbers[i] = value;
}

// Asks until word of something has come to the server.
#define UNTIL(wanted, call)                                                                        \
    do {                                                                                           \
    } while ((call) != (wanted))

static enum proto_refusal push_factors(struct bench *bench, struct link *link, uint64_t session) {
    struct proto_piece piece = {1, 0, 10, 1, 1};
    const struct proto_push_factors message = {.session = session,
                                               .sequence = 1,
                                               .samples = 1,
                                               .rows = 10,
                                               .columns = 1000,
                                               .pieces = {&piece, 1}};
    return ask(bench->tap, link, PROTO_TYPE_PUSH_FACTORS, &message, NULL, 0, NULL, 0, NULL);
}

static void test_requests(struct bench *bench, float *numbers, float *pulled) {
    struct tap *tap = bench->tap;
    struct link *controller = dial_until_welcome(bench, PROTO_ROLE_CONTROLLER);
    struct link *worker = dial_until_welcome_as(bench, PROTO_ROLE_WORKER, 44);
    struct link *later = dial_until_welcome_as(bench, PROTO_ROLE_WORKER, 45);
    fill(numbers, 1);
    TEST(tap, "only the controller sets weights", {
        CHECK_INT(tap, store(bench, worker, numbers), PROTO_REFUSAL_WRONG_ROLE);
        CHECK_INT(tap, push(bench, controller, 0, 1, numbers), PROTO_REFUSAL_WRONG_ROLE);
        UNTIL(PROTO_REFUSAL_NONE, store(bench, controller, numbers));
        CHECK_INT(tap, pull_as(bench, worker, 44, pulled), PROTO_REFUSAL_NONE);
        CHECK(tap, all_are(pulled, 1));
    });
    TEST(tap, "a push is added, and once only", {
        fill(numbers, 2);
        UNTIL(PROTO_REFUSAL_NONE, push(bench, worker, 44, 1, numbers));
        CHECK_INT(tap, push(bench, worker, 44, 1, numbers), PROTO_REFUSAL_NONE);
        CHECK_INT(tap, pull_as(bench, worker, 44, pulled), PROTO_REFUSAL_NONE);
        CHECK(tap, all_are(pulled, 3));
    });
    TEST(tap, "a number that is not finite spoils the whole push", {
        numbers[PARAMETERS - 1] = NAN;
        CHECK_INT(tap, push(bench, worker, 44, 2, numbers), PROTO_REFUSAL_NOT_FINITE);
        CHECK_INT(tap, pull_as(bench, worker, 44, pulled), PROTO_REFUSAL_NONE);
        CHECK(tap, all_are(pulled, 3));
    });
    TEST(tap, "nobody pushes or pulls as another: the true worker's next push is applied", {
        fill(numbers, 0);
        CHECK_INT(tap, push(bench, later, 44, 1000000000, numbers), PROTO_REFUSAL_WRONG_SESSION);
        CHECK_INT(tap, pull_as(bench, later, 44, pulled), PROTO_REFUSAL_WRONG_SESSION);
        CHECK_INT(tap, push_factors(bench, later, 44), PROTO_REFUSAL_WRONG_SESSION);
        CHECK_INT(tap, push(bench, worker, 44, 2, numbers), PROTO_REFUSAL_NONE);
        CHECK_INT(tap, pull_as(bench, worker, 44, pulled), PROTO_REFUSAL_NONE);
        CHECK(tap, all_are(pulled, 3));
    });
    fill(numbers, 1);
    TEST(tap, "who joins later is told to wait until word of it has come", {
        CHECK_INT(tap, push(bench, later, 45, 1, numbers), PROTO_REFUSAL_BUSY);
        pthread_mutex_lock(&bench->controller.lock);
        bench->controller.members[0].session = 45;
        bench->controller.members_epoch = 2;
        pthread_mutex_unlock(&bench->controller.lock);
        UNTIL(PROTO_REFUSAL_NONE, push(bench, later, 45, 1, numbers));
    });
    TEST(tap, "and who has left is refused",
         { CHECK_INT(tap, push(bench, worker, 44, 3, numbers), PROTO_REFUSAL_WRONG_SESSION); });
    TEST(tap, "versions are told", {
        const struct proto_get_versions all = {0, PROTO_PIECES_MAX};
        struct kept *kept;
        CHECK_INT(tap, ask(tap, worker, PROTO_TYPE_GET_VERSIONS, &all, NULL, 0, NULL, 0, &kept), 0);
        const struct proto_piece *pieces = kept->message.versions.pieces.at;
        CHECK_INT(tap, kept->message.versions.pieces.count, 2);
        CHECK_INT(tap, pieces[0].version, 4);
        CHECK_INT(tap, pieces[1].count, PARAMETERS - PROTO_SHARD_FLOATS);
        kept_drop(kept);
    });
    link_close(controller);
    link_close(worker);
    link_close(later);
}

static int connect_raw(const char *address) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", address + strlen("ipc://"));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to))
        abort();
    return fd;
}

static void test_hostile(struct bench *bench, float *pulled) {
    struct tap *tap = bench->tap;
    struct random random = random_stream(1, 2, 3);
    uint32_t words[512];
    for (int round = 0; round < 300; round++) {
        int fd = connect_raw(bench->address[round % ADDRESSES]);
        random_words(&random, words, 512);
        uint8_t *bytes = (uint8_t *)words;
        if (round % 2) // a header that looks like one, of a version that is spoken here
            proto_frame_put(bytes, &(struct proto_frame){.version = PROTO_VERSION,
                                                         .type = (uint16_t)words[100],
                                                         .request = words[101],
                                                         .body = words[102] % 4096,
                                                         .payload = words[103] % 4096});
        // It may have hung up already.
        if (send(fd, bytes, 1 + words[104] % sizeof words, MSG_NOSIGNAL) < 0)
            CHECK(tap, errno == EPIPE || errno == ECONNRESET);
        close(fd);
    }
    TEST(tap, "bytes of strangers harm nobody", {
        struct link *worker = dial_until_welcome(bench, PROTO_ROLE_WORKER);
        CHECK_INT(tap, pull(bench, worker, pulled), PROTO_REFUSAL_NONE);
        CHECK(tap, all_are(pulled, 4));
        link_close(worker);
    });
}

static void send_frame(int fd, uint16_t type, const void *message, uint32_t payload) {
    uint8_t frame[PROTO_FRAME + 512];
    size_t size;
    if (proto_measure(type, message, &size, NULL) || size > 512)
        abort();
    proto_frame_put(frame, &(struct proto_frame){.version = PROTO_VERSION,
                                                 .type = type,
                                                 .request = 1,
                                                 .body = (uint32_t)size,
                                                 .payload = payload});
    proto_encode(type, message, frame + PROTO_FRAME);
    if (send(fd, frame, PROTO_FRAME + size, MSG_NOSIGNAL) < 0)
        abort();
}

// What a worker that is killed in the middle of a push leaves: half of one.
static void push_half(struct bench *bench, const float *numbers) {
    const struct proto_hello hello = hello_of(PROTO_ROLE_WORKER);
    struct proto_piece pieces[2];
    lay_out(pieces, 1);
    const struct proto_push message = {
        .session = 45, .sequence = 9, .kind = PROTO_UPDATE_DELTA, .pieces = {pieces, 2}};
    uint8_t welcome[PROTO_FRAME];
    int fd = connect_raw(bench->address[TRAINING]);
    send_frame(fd, PROTO_TYPE_HELLO, &hello, 0);
    if (recv(fd, welcome, sizeof welcome, MSG_WAITALL) != sizeof welcome)
        abort();
    send_frame(fd, PROTO_TYPE_PUSH, &message, PARAMETERS * sizeof(float));
    if (send(fd, numbers, PARAMETERS * sizeof(float) / 2, MSG_NOSIGNAL) < 0)
        abort();
    close(fd);
}

static void test_killed(struct bench *bench, float *numbers, float *pulled) {
    struct tap *tap = bench->tap;
    fill(numbers, 1);
    for (int i = 0; i < 50; i++)
        push_half(bench, numbers);
    TEST(tap, "of workers killed within a push nothing stays", {
        struct link *worker = dial_until_welcome_as(bench, PROTO_ROLE_WORKER, 45);
        CHECK_INT(tap, push(bench, worker, 45, 2, numbers), PROTO_REFUSAL_NONE);
        CHECK_INT(tap, pull_as(bench, worker, 45, pulled), PROTO_REFUSAL_NONE);
        CHECK(tap, all_are(pulled, 5));
        link_close(worker);
    });
}

// --- parts of checkpoints -----------------------------------------------------

// All of the model, and one too many.
static const struct proto_tensor dense[] = {{0}, {1}, {2}, {3}}, unknown[] = {{4}};

static struct proto_save_part order_of(const struct checkpoint_draft *draft,
                                       const struct proto_tensor *tensors, uint32_t count) {
    struct proto_save_part order = {
        .folder = proto_text(draft->path), .part = 1, .parts = 1, .tensors = {tensors, count}};
    memcpy(order.token.bytes, draft->token, sizeof order.token.bytes);
    return order;
}

static enum proto_refusal save_part(struct bench *bench, struct link *link,
                                    const struct proto_save_part *order, struct kept **kept) {
    return ask(bench->tap, link, PROTO_TYPE_SAVE_PART, order, NULL, 0, NULL, 0, kept);
}

static void check_part(struct bench *bench, const struct checkpoint_draft *draft,
                       const struct proto_part_saved *saved, float wanted) {
    struct tap *tap = bench->tap;
    char path[512];
    struct map map;
    struct safetensors file;
    const struct proto_reached *shards = saved->shards.at;
    snprintf(path, sizeof path, "%s/model-00001-of-00001.safetensors", draft->folder);
    CHECK_INT(tap, map_open(&map, path, NULL), STATUS_OK);
    CHECK_INT(tap, saved->bytes, map.size);
    CHECK_INT(tap, saved->crc, crc32_of(0, map.data, map.size));
    CHECK_INT(tap, saved->shards.count, 2);
    CHECK(tap, shards[0].shard == 0 && shards[1].shard == 1);
    CHECK(tap, shards[0].version == shards[1].version && shards[0].version > 1);
    CHECK_INT(tap, safetensors_parse(&file, map.data, map.size, NULL), STATUS_OK);
    CHECK_INT(tap, file.count, 4);
    size_t floats = 0;
    for (size_t i = 0; i < file.count; i++)
        for (size_t at = 0; at < file.tensors[i].bytes; at += sizeof(float), floats++) {
            float value;
            memcpy(&value, (const char *)file.tensors[i].data + at, sizeof value);
            if (value != wanted)
                FAIL(tap, "float %zu of %s is %g", at, file.tensors[i].name, (double)value);
        }
    CHECK_INT(tap, floats, PARAMETERS);
    safetensors_free(&file);
    map_close(&map);
}

static void refuse_parts(struct bench *bench, const struct checkpoint_draft *draft,
                         struct link *link) {
    struct tap *tap = bench->tap;
    struct kept *kept;
    struct proto_save_part order = order_of(draft, unknown, 1);
    CHECK_INT(tap, save_part(bench, link, &order, NULL), PROTO_REFUSAL_WRONG_SHAPE);
    const struct proto_tensor twice[] = {{1}, {1}};
    order = order_of(draft, twice, 2);
    CHECK_INT(tap, save_part(bench, link, &order, NULL), PROTO_REFUSAL_WRONG_SHAPE);
    order = order_of(draft, dense, 4);
    order.token.bytes[0] ^= 1;
    CHECK_INT(tap, save_part(bench, link, &order, &kept), PROTO_REFUSAL_STORAGE);
    char text[1200];
    snprintf(text, sizeof text, "ps-a: %s is not the folder that the controller made", draft->path);
    CHECK(tap, !strncmp(kept->message.refused.text.at, text, strlen(text)));
    kept_drop(kept);
    struct link *admin = dial_until_welcome(bench, PROTO_ROLE_ADMINISTRATOR);
    order = order_of(draft, dense, 4);
    CHECK_INT(tap, save_part(bench, admin, &order, NULL), PROTO_REFUSAL_WRONG_ROLE);
    link_close(admin);
}

static void nothing_more(struct link_request *request) {
    (void)request;
}

static void await_file(const struct checkpoint_draft *draft, bool there) {
    char path[512];
    snprintf(path, sizeof path, "%s/model-00001-of-00001.safetensors", draft->folder);
    while ((access(path, F_OK) == 0) != there)
        usleep(1000);
}

// Nobody is known who has the weights: it waits, until who ordered it is gone.
static void leave_part(struct bench *bench, const struct checkpoint_draft *draft) {
    struct link *link = dial_until_welcome_at(bench, ADMIN, PROTO_ROLE_CONTROLLER, 0);
    const struct proto_save_part order = order_of(draft, dense, 4);
    struct link_request request = {
        .type = PROTO_TYPE_SAVE_PART, .message = &order, .done = nothing_more};
    CHECK_INT(bench->tap, link_ask(link, &request, NULL), STATUS_OK);
    await_file(draft, true);
    link_close(link);
    await_file(draft, false);
}

static void name_server(struct bench *bench) {
    pthread_mutex_lock(&bench->controller.lock);
    bench->controller.servers[0] = (struct proto_server){
        MEMBER, proto_text(bench->address[TRAINING]), proto_text(bench->address[REPLICATION]),
        proto_text(bench->address[ADMIN])};
    bench->controller.server_count = 1;
    bench->controller.routes_epoch++;
    pthread_mutex_unlock(&bench->controller.lock);
}

static void test_parts(struct bench *bench, const char *folder, float wanted) {
    struct tap *tap = bench->tap;
    struct checkpoint_draft draft;
    struct error err = {0};
    struct link *link = dial_until_welcome_at(bench, ADMIN, PROTO_ROLE_CONTROLLER, 0);
    CHECK_INT(tap, checkpoint_draft_open(&draft, folder, 1, &err), STATUS_OK);
    TEST(tap, "parts are written for the controller only, into the folder that it made",
         { refuse_parts(bench, &draft, link); });
    TEST(tap, "a part that nobody waits for any more is not written, and nothing of it is left",
         { leave_part(bench, &draft); });
    TEST(tap, "a part of a checkpoint has the tensors that were ordered, whole", {
        const struct proto_save_part order = order_of(&draft, dense, 4);
        struct kept *kept;
        name_server(bench);
        CHECK_INT(tap, save_part(bench, link, &order, &kept), PROTO_REFUSAL_NONE);
        check_part(bench, &draft, &kept->message.part_saved, wanted);
        kept_drop(kept);
        CHECK_INT(tap, save_part(bench, link, &order, NULL), PROTO_REFUSAL_STORAGE);
    });
    link_close(link);
    err.status = STATUS_STOPPED;
    checkpoint_draft_end(&draft, STATUS_STOPPED, &err);
}

// --- what it tells ------------------------------------------------------------

static bool has_said(struct bench *bench, const char *what) {
    pthread_mutex_lock(&bench->lock);
    bool said = strstr(bench->said, what);
    pthread_mutex_unlock(&bench->lock);
    return said;
}

// Says it sooner or later: it looks ten times a second, and reports as often.
static void check_said(struct bench *bench, const char *what) {
    _Atomic uint64_t *reports = &bench->controller.reports;
    for (int i = 0; i < 50 && !has_said(bench, what); i++)
        controller_await(&bench->controller, reports, atomic_load(reports) + 1);
    if (!has_said(bench, what))
        FAIL(bench->tap, "nothing said of '%s' in: %s", what, bench->said);
}

static void test_tales(struct bench *bench) {
    struct tap *tap = bench->tap;
    struct controller *c = &bench->controller;
    TEST(tap, "its line of metrics has what the figures need", {
        pthread_mutex_lock(&c->lock);
        for (bool reported = false; !reported; reported = strstr(c->line, "\"pushes\":4")) {
            pthread_mutex_unlock(&c->lock);
            controller_await(c, &c->reports, atomic_load(&c->reports) + 1);
            pthread_mutex_lock(&c->lock);
        }
        CHECK(tap, strstr(c->line, "\"role\":\"parameter server\",\"rank\":3,\"event\":\"ps\""));
        CHECK(tap, strstr(c->line, "\"pushes\":4,\"repeated\":1"));
        pthread_mutex_unlock(&c->lock);
    });
    TEST(tap, "it says what it holds, and what it refused and whose", {
        check_said(bench, "holds 311010 parameters: 1.2 MiB of weights");
        check_said(bench, "refused a hello of worker somebody");
        check_said(bench, "refused a push of worker somebody");
        check_said(bench, "wrong session, detail 44");
    });
}

static void bench_order_end(struct bench *bench) {
    pthread_mutex_lock(&bench->controller.lock);
    bench->controller.order = PROTO_ORDER_STOP;
    bench->controller.order_number = 1;
    pthread_mutex_unlock(&bench->controller.lock);
    pthread_join(bench->thread, NULL);
}

static void test_life(struct tap *tap, const char *folder) {
    struct bench *bench = malloc(sizeof *bench);
    float *numbers = malloc(2 * PARAMETERS * sizeof *numbers), *pulled = numbers + PARAMETERS;
    if (!bench || !numbers)
        abort();
    bench_init(bench, tap, folder);
    bench_start(bench);
    test_early(bench);
    set_up_run(&bench->controller);
    controller_listen(&bench->controller, tap, bench->address[ADDRESSES]);
    test_requests(bench, numbers, pulled);
    test_welcome(bench);
    test_hostile(bench, pulled);
    test_killed(bench, numbers, pulled);
    test_parts(bench, folder, 5);
    test_tales(bench);
    bench_order_end(bench);
    TEST(tap, "it ends as the controller orders, and leaves", {
        CHECK_INT(tap, bench->status, STATUS_OK);
        CHECK_INT(tap, atomic_load(&bench->controller.leaves), 1);
        CHECK_TEXT(tap, bench->controller.left, "as ordered");
    });
    controller_free(&bench->controller);
    free(numbers);
    free(bench);
}

// Other ends: a wish, an administrator's, too little memory.
static void test_end(struct tap *tap, const char *folder, bool wished) {
    struct bench *bench = malloc(sizeof *bench);
    if (!bench)
        abort();
    bench_init(bench, tap, folder);
    bench_start(bench);
    if (wished) {
        atomic_store(&bench->stop, true);
    } else {
        struct link *admin = dial_until_welcome(bench, PROTO_ROLE_ADMINISTRATOR);
        CHECK_INT(tap,
                  ask(tap, admin, PROTO_TYPE_STOP, &(struct proto_stop){0}, NULL, 0, NULL, 0, NULL),
                  0);
        link_close(admin);
    }
    pthread_join(bench->thread, NULL);
    CHECK_INT(tap, bench->status, STATUS_STOPPED);
    free(bench);
}

static void test_memory(struct tap *tap, const char *folder) {
    struct bench *bench = malloc(sizeof *bench);
    if (!bench)
        abort();
    bench_init(bench, tap, folder);
    bench->options.memory = 1 << 20;
    set_up_run(&bench->controller);
    controller_listen(&bench->controller, tap, bench->address[ADDRESSES]);
    bench_start(bench);
    pthread_join(bench->thread, NULL);
    CHECK_INT(tap, bench->status, STATUS_IO);
    CHECK(tap, strstr(bench->err.text, "more than the 1.0 MiB of --memory") != NULL);
    controller_free(&bench->controller);
    free(bench);
}

// The same server once more, with the store that the one before left. `first`: it gets weights.
static void serve_with_store(struct tap *tap, const char *folder, const char *store_folder,
                             bool first, float *numbers, float *pulled) {
    struct bench *bench = malloc(sizeof *bench);
    if (!bench)
        abort();
    bench_init(bench, tap, folder);
    bench->options.memory = 0;
    bench->options.store = store_folder;
    bench->options.owner = "ps-a";
    bench->options.flush = 0.05;
    set_up_run(&bench->controller);
    controller_listen(&bench->controller, tap, bench->address[ADDRESSES]);
    bench_start(bench);
    struct link *controller = dial_until_welcome(bench, PROTO_ROLE_CONTROLLER);
    struct link *worker = dial_until_welcome_as(bench, PROTO_ROLE_WORKER, 44);
    fill(numbers, 1);
    if (first)
        UNTIL(PROTO_REFUSAL_NONE, store(bench, controller, numbers));
    UNTIL(PROTO_REFUSAL_NONE, push(bench, worker, 44, 1, numbers));
    UNTIL(PROTO_REFUSAL_NONE, push(bench, worker, 44, first ? 1 : 2, numbers));
    CHECK_INT(tap, pull_as(bench, worker, 44, pulled), PROTO_REFUSAL_NONE);
    CHECK(tap, all_are(pulled, first ? 2 : 3));
    if (!first)
        check_said(bench, "has 2 shards from its store, the newest of version 2");
    link_close(controller);
    link_close(worker);
    bench_order_end(bench);
    CHECK_INT(tap, bench->status, STATUS_OK);
    controller_free(&bench->controller);
    free(bench);
}

static void test_store(struct tap *tap, const char *folder) {
    float *numbers = malloc(2 * PARAMETERS * sizeof *numbers);
    char store_folder[64];
    snprintf(store_folder, sizeof store_folder, "%s/store", folder);
    if (!numbers)
        abort();
    serve_with_store(tap, folder, store_folder, true, numbers, numbers + PARAMETERS);
    serve_with_store(tap, folder, store_folder, false, numbers, numbers + PARAMETERS);
    free(numbers);
}

// Weights that the run begins with take their time. Once it has begun none come any more.
static void test_lacking(struct tap *tap, const char *folder) {
    struct bench *bench = malloc(sizeof *bench);
    char store_folder[64];
    snprintf(store_folder, sizeof store_folder, "%s/empty", folder);
    if (!bench)
        abort();
    bench_init(bench, tap, folder);
    struct controller *c = &bench->controller;
    bench->options.store = store_folder;
    bench->options.owner = "ps-a";
    bench->options.flush = 0.01;
    bench->options.memory = 0;
    c->settings = "optimizer=sgd\nrate=0.1\nprotocol=async\nserver-patience=0\n";
    set_up_run(c);
    controller_listen(c, tap, bench->address[ADDRESSES]);
    bench_start(bench);
    check_said(bench, "holds 311010 parameters");
    controller_await(c, &c->heartbeats, atomic_load(&c->heartbeats) + 10);
    CHECK_INT(tap, (long long)atomic_load(&c->leaves), 0);
    pthread_mutex_lock(&c->lock);
    c->begun = true;
    pthread_mutex_unlock(&c->lock);
    pthread_join(bench->thread, NULL);
    CHECK_INT(tap, bench->status, STATUS_DATA);
    CHECK(tap, strstr(bench->err.text, "has no weights for 2 of the 2 shards") != NULL);
    controller_free(c);
    free(bench);
}

int main(void) {
    struct tap tap = {0};
    char folder[] = "/tmp/adam-ps-XXXXXX", command[64];
    if (!mkdtemp(folder))
        return 1;
    test_life(&tap, folder);
    TEST(&tap, "a wish ends it, without a controller, too", { test_end(&tap, folder, true); });
    TEST(&tap, "and so does an administrator", { test_end(&tap, folder, false); });
    TEST(&tap, "what does not fit into its memory is said", { test_memory(&tap, folder); });
    TEST(&tap, "with a store it goes on where it was, and knows the pushes that it had",
         { test_store(&tap, folder); });
    TEST(&tap, "weights that its store lacks are missed when the run has begun, not before",
         { test_lacking(&tap, folder); });
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) ? 1 : tap_done(&tap);
}
