// Links: requests and answers over every transport, payloads by pointer, and peers that
// misbehave, vanish or say nothing. A wait has no time limit of its own: the test
// runner's ends it.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/gate.h"
#include "net/keys.h"
#include "net/link.h"
#include "net/places.h"
#include "net/secrets.h"

enum { MEBI = 1 << 20, FLOATS = MEBI / 4, IN_FLIGHT = 64 };

// What is served: floats that are pushed to and pulled from, at once or late.
struct server {
    struct listener *listener;
    struct pool pool;
    float weights[FLOATS];
    struct link_part halves[2];
    _Atomic int pushes, closed, silent, released;
    struct gate gate;
    pthread_mutex_t ends; // links end at the same time
    char why[LINK_WHY];   // of the last that closed
    // Pulls that wait for a version are answered together, the last one first.
    int late_count;
    uint64_t late[IN_FLIGHT];
};

static void wait_for(struct gate *gate, _Atomic int *count, int wanted) {
    for (uint32_t seen = gate_look(gate); atomic_load(count) < wanted; seen = gate_look(gate))
        gate_wait(gate, seen, -1);
}

static enum proto_refusal hear_hello(void *context, struct link *link,
                                     const struct proto_hello *hello, struct proto_welcome *welcome,
                                     uint64_t *detail) {
    (void)context;
    (void)link;
    *detail = 77;
    welcome->session = 42;
    welcome->name = proto_text("server");
    return hello->model == 13 ? PROTO_REFUSAL_WRONG_MODEL : PROTO_REFUSAL_NONE;
}

static void released(void *context) {
    struct server *server = context;
    atomic_fetch_add(&server->released, 1);
    gate_open(&server->gate);
}

static void answer_pull(struct server *server, struct link *link, uint64_t request) {
    const struct proto_weights weights = {{0}};
    const struct link_payload payload = {server->halves, 2, released, server};
    link_answer(link, request, PROTO_TYPE_WEIGHTS, &weights, &payload, NULL);
}

static void hear_pull(struct server *server, struct link *link, uint64_t request,
                      const struct proto_pull *pull) {
    if (pull->least == 0) {
        answer_pull(server, link, request);
        return;
    }
    server->late[server->late_count++] = request;
    if (server->late_count == IN_FLIGHT)
        while (server->late_count > 0)
            answer_pull(server, link, server->late[--server->late_count]);
}

static void hear_push(struct server *server, struct link *link, uint64_t request,
                      const struct proto_push *push, const struct buffer *payload) {
    if (!payload || payload->size != sizeof server->weights) {
        link_refuse(link, request, PROTO_REFUSAL_WRONG_SHAPE, 0, "not the right number");
        return;
    }
    const float *update = payload->data;
    for (size_t i = 0; i < FLOATS; i++)
        server->weights[i] += update[i];
    atomic_fetch_add(&server->pushes, 1);
    const struct proto_pushed pushed = {.sequence = push->sequence};
    link_answer(link, request, PROTO_TYPE_PUSHED, &pushed, NULL, NULL);
}

// In more words than a refusal holds.
static void refuse_at_length(struct link *link, uint64_t request) {
    char text[2048] = "x";
    for (size_t i = 1; i + 3 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 3);
    link_refuse(link, request, PROTO_REFUSAL_WRONG_SHAPE, 0, text);
}

static void hear_request(void *context, struct link *link, uint64_t request, uint16_t type,
                         const union proto_message *message, struct buffer *payload) {
    if (type == PROTO_TYPE_PULL)
        hear_pull(context, link, request, &message->pull);
    else if (type == PROTO_TYPE_PUSH)
        hear_push(context, link, request, &message->push, payload);
    else if (type == PROTO_TYPE_LEAVE)
        refuse_at_length(link, request);
    else if (type != PROTO_TYPE_GET_RUN) // which is never answered
        link_refuse(link, request, PROTO_REFUSAL_WRONG_ROLE, type, "not here");
}

static void hear_end(void *context, struct link *link, const char *why) {
    struct server *server = context;
    (void)link;
    if (strncmp(why, "nothing was heard for ", 22) == 0)
        atomic_fetch_add(&server->silent, 1);
    pthread_mutex_lock(&server->ends);
    snprintf(server->why, sizeof server->why, "%s", why);
    pthread_mutex_unlock(&server->ends);
    atomic_fetch_add(&server->closed, 1);
    gate_open(&server->gate);
}

static struct link_options server_options(struct server *server) {
    return (struct link_options){
        .handlers = {server, hear_hello, hear_request, hear_end},
        .pool = &server->pool,
        .heartbeat = 100,
        .silence = 1000,
    };
}

static struct server *server_start(struct tap *tap, const char *address, struct secrets *keys,
                                   const struct listener_limits *limits) {
    struct server *server = calloc(1, sizeof *server);
    struct error err = {0};
    if (!server)
        abort();
    pthread_mutex_init(&server->ends, NULL);
    server->pool.limit = 4 * MEBI;
    for (size_t i = 0; i < FLOATS; i++)
        server->weights[i] = (float)i;
    server->halves[0] = (struct link_part){server->weights, MEBI / 4};
    server->halves[1] = (struct link_part){server->weights + FLOATS / 4, MEBI - MEBI / 4};
    struct link_options options = server_options(server);
    options.keys = keys;
    if (listener_open(&server->listener, address, &options, limits, &err))
        FAIL(tap, "%s", err.text);
    return server;
}

static void server_stop(struct server *server) {
    listener_close(server->listener);
    pool_free(&server->pool);
    pthread_mutex_destroy(&server->ends);
    free(server);
}

static const struct proto_hello hello = {.role = PROTO_ROLE_WORKER, .name = {"worker", 6}};
static const struct link_options plain = {.heartbeat = 100, .silence = 1000};

static struct link *dial(struct tap *tap, const struct server *server,
                         const struct link_options *options) {
    struct proto_welcome welcome = {0};
    struct error err = {0};
    struct link *link;
    if (link_dial(&link, listener_address(server->listener), options, &hello, 5000, &welcome, &err))
        FAIL(tap, "%s", err.text);
    CHECK_INT(tap, welcome.session, 42);
    return link;
}

static int push(struct link *link, const float *update, size_t bytes, struct error *err) {
    const struct proto_push message = {.sequence = 9};
    const struct link_part parts[] = {{update, bytes / 2},
                                      {(const char *)update + bytes / 2, bytes - bytes / 2}};
    union proto_message answer;
    struct link_request request = {
        .type = PROTO_TYPE_PUSH, .message = &message, .parts = parts, .part_count = 2};
    int status = link_call(link, &request, &answer, err);
    return status ? status : answer.pushed.sequence == 9 ? STATUS_OK : STATUS_BUG;
}

static int pull(struct link *link, float *weights, struct error *err) {
    const struct proto_pull message = {0};
    struct link_request request = {
        .type = PROTO_TYPE_PULL, .message = &message, .into = weights, .room = MEBI};
    int status = link_call(link, &request, NULL, err);
    return status ? status : request.received == MEBI ? STATUS_OK : STATUS_BUG;
}

static void check_transport(struct tap *tap, const char *address, struct secrets *keys) {
    struct server *server = server_start(tap, address, keys, NULL);
    struct link_options options = plain;
    struct error err = {0};
    float *weights = calloc(FLOATS, sizeof *weights), *update = calloc(FLOATS, sizeof *update);
    if (!weights || !update)
        abort();
    options.keys = keys;
    struct link *link = dial(tap, server, &options);
    for (size_t i = 0; i < FLOATS; i++)
        update[i] = 0.5f;
    for (int i = 0; i < 10 && link; i++)
        CHECK_INT(tap, push(link, update, MEBI, &err), STATUS_OK);
    CHECK_INT(tap, link ? pull(link, weights, &err) : STATUS_BUG, STATUS_OK);
    int wrong = 0;
    for (size_t i = 0; i < FLOATS; i++)
        wrong += weights[i] != (float)i + 5;
    CHECK_INT(tap, wrong, 0);
    CHECK_TEXT(tap, err.text, "");
    if (link)
        wait_for(&server->gate, &server->released, 1);
    link_close(link);
    wait_for(&server->gate, &server->closed, link != NULL);
    CHECK_INT(tap, server->pushes, 10);
    CHECK(tap, server->pool.bytes <= 2 * MEBI);
    server_stop(server);
    free(weights);
    free(update);
}

static void check_apart(struct tap *tap, const char *address) {
    struct server *server = server_start(tap, address, NULL, NULL);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "adam-%ld-%s",
                          (long)getpid(), address + strlen("inproc://"));
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    pid_t other = fork();
    if (other == 0) { // connects, and is hung up on
        char byte;
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        bool connected = connect(fd, (struct sockaddr *)&name, size) == 0;
        _exit(connected && read(fd, &byte, 1) == 0 ? 0 : 1);
    }
    int status = -1;
    CHECK_INT(tap, waitpid(other, &status, 0), other);
    CHECK_INT(tap, status, 0);
    server_stop(server);
}

static void test_transports(struct tap *tap, const char *folder) {
    char address[256];
    TEST(tap, "pushes and pulls go over TCP", { check_transport(tap, "tcp://127.0.0.1:0", NULL); });
    TEST(tap, "and over Unix sockets, which are for their user only", {
        struct stat file;
        snprintf(address, sizeof address, "ipc://%s/socket", folder);
        check_transport(tap, address, NULL);
        struct server *server = server_start(tap, address, NULL, NULL);
        CHECK_INT(tap, stat(address + strlen("ipc://"), &file), 0);
        CHECK_INT(tap, file.st_mode & 0777, 0600);
        server_stop(server);
    });
    TEST(tap, "and within a process, by a name that no other process reaches", {
        check_transport(tap, "inproc://server", NULL);
        check_apart(tap, "inproc://server");
    });
}

static struct secrets *keys_of(struct tap *tap, const char *folder, const char *name) {
    struct secrets *keys;
    struct error err = {0};
    if (secrets_open(&keys, folder, name, &err))
        FAIL(tap, "%s", err.text);
    return keys;
}

// Whoever dials with these options gets no answer.
static void check_turned_away(struct tap *tap, const char *address, struct secrets *keys) {
    struct link_options options = plain;
    struct link *link = NULL;
    struct error err = {0};
    options.keys = keys;
    CHECK_INT(tap, link_dial(&link, address, &options, &hello, 2000, NULL, &err),
              STATUS_UNAVAILABLE);
    CHECK(tap, link == NULL);
    printf("# %s\n", err.text);
}

static void remove_keys(const char *folder) {
    static const char *const names[] = {"ca.crt", "ca.key", "server.pem", "worker.pem"};
    char path[256];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void test_tls(struct tap *tap, const char *folder) {
    static const char *const names[] = {"server", "worker"};
    char ours[128], theirs[128], path[256];
    struct error err = {0};
    snprintf(ours, sizeof ours, "%s/ours", folder);
    snprintf(theirs, sizeof theirs, "%s/theirs", folder);
    TEST(tap, "an authority signs keys, one after the other, and overwrites none", {
        CHECK_INT(tap, keys_make(ours, names, 1, 30, &err), STATUS_OK);
        CHECK_INT(tap, keys_make(ours, names + 1, 1, 30, &err), STATUS_OK);
        CHECK_INT(tap, keys_make(theirs, names, 2, 30, &err), STATUS_OK);
        CHECK_INT(tap, keys_make(ours, names, 2, 30, &err), STATUS_CANTCREATE);
        const char *bad[] = {"../x"};
        CHECK_INT(tap, keys_make(ours, bad, 1, 30, &err), STATUS_USAGE);
    });
    struct secrets *server_keys = keys_of(tap, ours, "server");
    struct secrets *worker_keys = keys_of(tap, ours, "worker");
    struct secrets *strange_keys = keys_of(tap, theirs, "worker");
    TEST(tap, "pushes and pulls go over TLS with certificates of both sides",
         { check_transport(tap, "tls+tcp://127.0.0.1:0", server_keys); });
    TEST(tap, "who has a certificate of another authority, or none, is turned away", {
        struct server *server = server_start(tap, "tls+tcp://127.0.0.1:0", server_keys, NULL);
        const char *address = listener_address(server->listener);
        struct link_options options = plain;
        options.keys = worker_keys;
        struct link *link = dial(tap, server, &options);
        check_turned_away(tap, address, strange_keys);
        check_turned_away(tap, address + strlen("tls+"), NULL);
        link_close(link);
        server_stop(server);
    });
    TEST(tap, "a key that others may read is refused", {
        struct secrets *keys;
        snprintf(path, sizeof path, "%s/worker.pem", ours);
        CHECK_INT(tap, chmod(path, 0640), 0);
        CHECK_INT(tap, secrets_open(&keys, ours, "worker", &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "others may read this key") != NULL);
        CHECK_INT(tap, secrets_open(&keys, ours, "nobody", &err), STATUS_NOINPUT);
    });
    secrets_close(server_keys);
    secrets_close(worker_keys);
    secrets_close(strange_keys);
    remove_keys(ours);
    remove_keys(theirs);
}

// Many requests at once, done in any order.
struct many {
    _Atomic int done, wrong;
    struct gate gate;
};

static void one_done(struct link_request *request) {
    struct many *many = request->context;
    const float *weights = request->into;
    if (request->status || request->received != MEBI || weights[FLOATS - 1] != FLOATS - 1)
        atomic_fetch_add(&many->wrong, 1);
    atomic_fetch_add(&many->done, 1);
    gate_open(&many->gate);
}

static void test_many(struct tap *tap) {
    struct server *server = server_start(tap, "tcp://127.0.0.1:0", NULL, NULL);
    struct link *link = dial(tap, server, &plain);
    static struct link_request request[IN_FLIGHT];
    struct many *many = calloc(1, sizeof *many);
    float *weights = calloc(IN_FLIGHT, MEBI);
    struct error err = {0};
    if (!many || !weights)
        abort();
    TEST(tap, "many requests are in flight, and are answered in another order", {
        const struct proto_pull late = {.least = 1};
        for (int i = 0; i < IN_FLIGHT; i++) {
            request[i] = (struct link_request){.type = PROTO_TYPE_PULL,
                                               .message = &late,
                                               .into = weights + (size_t)i * FLOATS,
                                               .room = MEBI,
                                               .done = one_done,
                                               .context = many};
            CHECK_INT(tap, link_ask(link, &request[i], &err), STATUS_OK);
        }
        wait_for(&many->gate, &many->done, IN_FLIGHT);
        CHECK_INT(tap, many->wrong, 0);
        wait_for(&server->gate, &server->released, IN_FLIGHT);
    });
    TEST(tap, "a refusal arrives in words", {
        CHECK_INT(tap, push(link, weights, 12, &err), STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "refused: wrong shape: not the right number") != NULL);
    });
    TEST(tap, "of a refusal in very many words as many arrive as it holds", {
        struct link_request long_one = {.type = PROTO_TYPE_LEAVE,
                                        .message = &(struct proto_leave){.session = 0}};
        char last[ERROR_TEXT];
        CHECK_INT(tap, link_call(link, &long_one, NULL, &err), STATUS_UNAVAILABLE);
        // 512 letters of two bytes, of which the last would be cut.
        snprintf(last, sizeof last, "%s", strstr(err.text, "x\xc3\xa9"));
        CHECK_INT(tap, strlen(last), 1 + 2 * 511);
        CHECK_TEXT(tap, last + 1 + 2 * 510, "\xc3\xa9");
    });
    TEST(tap, "what cannot be sent is not", {
        struct link_request bad = {.type = PROTO_TYPE_STOP,
                                   .message = &(struct proto_stop){.save = 2}};
        CHECK_INT(tap, link_call(link, &bad, NULL, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "stop: save: 2 is beyond 1");
        struct link_part part = {weights, 4};
        bad = (struct link_request){.type = PROTO_TYPE_PING, .parts = &part, .part_count = 1};
        CHECK_INT(tap, link_call(link, &bad, NULL, &err), STATUS_DATA);
    });
    TEST(tap, "when buffers run out the sender is told to come again", {
        struct buffer *all[4];
        for (int i = 0; i < 4; i++)
            all[i] = pool_take(&server->pool, MEBI);
        CHECK_INT(tap, push(link, weights, MEBI, &err), STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "refused: busy") != NULL);
        for (int i = 0; i < 4; i++)
            buffer_drop(all[i]);
        CHECK_INT(tap, push(link, weights, MEBI, &err), STATUS_OK);
    });
    TEST(tap, "what is pending when the other side closes ends with the reason", {
        struct link_request never = {
            .type = PROTO_TYPE_GET_RUN, .message = &(struct proto_get_run){0}, .done = one_done};
        struct many *pending = calloc(1, sizeof *pending);
        if (!pending)
            abort();
        never.context = pending;
        never.into = weights;
        CHECK_INT(tap, link_ask(link, &never, &err), STATUS_OK);
        listener_close(server->listener);
        server->listener = NULL;
        wait_for(&pending->gate, &pending->done, 1);
        CHECK_INT(tap, never.status, STATUS_UNAVAILABLE);
        CHECK_INT(tap, push(link, weights, 12, &err), STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "the other side closed the connection") != NULL);
        link_close(link);
        free(pending);
    });
    server_stop(server);
    free(weights);
    free(many);
}

// A peer by hand.

static int raw_connect(const char *address) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to))
        abort();
    return fd;
}

static void raw_write(int fd, const void *data, size_t size) {
    for (const char *at = data; size > 0;) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        at += n;
        size -= (size_t)n;
    }
}

static void raw_frame(int fd, struct proto_frame frame, const void *body, size_t size) {
    uint8_t header[PROTO_FRAME];
    proto_frame_put(header, &frame);
    raw_write(fd, header, sizeof header);
    raw_write(fd, body, size);
}

static bool raw_read(int fd, void *to, size_t size) {
    for (size_t at = 0; at < size;) {
        ssize_t n = recv(fd, (char *)to + at, size - at, 0);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static void raw_skip(int fd, size_t size) {
    uint8_t bytes[4096];
    for (size_t part;
         size > 0 && raw_read(fd, bytes, part = size < sizeof bytes ? size : sizeof bytes);)
        size -= part;
}

// The next frame that is no ping; its type is 0 when the connection ends instead.
static struct proto_frame raw_answer(int fd, uint8_t body[PROTO_STRANGER_MAX]) {
    struct proto_frame frame = {0};
    uint8_t header[PROTO_FRAME];
    do
        if (!raw_read(fd, header, sizeof header) || proto_frame_get(&frame, header, NULL) ||
            frame.body > PROTO_STRANGER_MAX || !raw_read(fd, body, frame.body))
            return (struct proto_frame){0};
    while (frame.type == PROTO_TYPE_PING);
    return frame;
}

static void check_refusal(struct tap *tap, int fd, uint64_t request, enum proto_refusal code) {
    uint8_t body[PROTO_STRANGER_MAX];
    struct proto_frame frame = raw_answer(fd, body);
    CHECK_INT(tap, frame.type, PROTO_TYPE_REFUSED);
    CHECK_INT(tap, frame.request, request);
    CHECK_INT(tap, body[0] | body[1] << 8, code);
}

static void raw_hello(int fd, uint64_t model) {
    struct proto_hello message = {.model = model};
    uint8_t body[256];
    size_t size;
    if (proto_measure(PROTO_TYPE_HELLO, &message, &size, NULL) || size > sizeof body)
        abort();
    proto_encode(PROTO_TYPE_HELLO, &message, body);
    raw_frame(fd, (struct proto_frame){PROTO_VERSION, PROTO_TYPE_HELLO, 1, (uint32_t)size, 0}, body,
              size);
}

static int raw_welcomed(struct tap *tap, const char *address) {
    uint8_t body[PROTO_STRANGER_MAX];
    int fd = raw_connect(address);
    raw_hello(fd, 0);
    CHECK_INT(tap, raw_answer(fd, body).type, PROTO_TYPE_WELCOME);
    return fd;
}

static void test_raw(struct tap *tap) {
    const struct listener_limits limits = {.hello = 300, .strangers = 3};
    struct server *server = server_start(tap, "tcp://127.0.0.1:0", NULL, &limits);
    const char *address = listener_address(server->listener);
    uint8_t body[PROTO_STRANGER_MAX] = {0};
    TEST(tap, "an unknown version or message is answered, and the next one is heard", {
        int fd = raw_welcomed(tap, address);
        raw_frame(fd, (struct proto_frame){PROTO_VERSION + 6, 0x0101, 2, 100, 50}, body, 150);
        check_refusal(tap, fd, 2, PROTO_REFUSAL_VERSION);
        raw_frame(fd, (struct proto_frame){PROTO_VERSION, 0x0666, 3, 100, 50}, body, 150);
        check_refusal(tap, fd, 3, PROTO_REFUSAL_MESSAGE);
        raw_frame(fd, (struct proto_frame){PROTO_VERSION, PROTO_TYPE_PULL, 4, 3, 0}, body, 3);
        check_refusal(tap, fd, 4, PROTO_REFUSAL_MALFORMED);
        raw_frame(fd, (struct proto_frame){PROTO_VERSION, PROTO_TYPE_PING, 5, 0, 0}, body, 0);
        CHECK_INT(tap, raw_answer(fd, body).type, PROTO_TYPE_DONE);
        close(fd);
    });
    TEST(tap, "a frame that comes byte by byte, and many in one, are the same", {
        int fd = raw_welcomed(tap, address);
        uint8_t ping[3 * PROTO_FRAME];
        for (int i = 0; i < 3; i++)
            proto_frame_put(
                ping + (size_t)i * PROTO_FRAME,
                &(struct proto_frame){PROTO_VERSION, PROTO_TYPE_PING, 10u + (unsigned)i, 0, 0});
        raw_write(fd, ping, sizeof ping);
        for (size_t i = 0; i < PROTO_FRAME; i++)
            raw_write(fd, ping + i, 1);
        const uint64_t wanted[] = {10, 11, 12, 10};
        for (int i = 0; i < 4; i++)
            CHECK_INT(tap, raw_answer(fd, body).request, wanted[i]);
        close(fd);
    });
    TEST(tap, "whoever did not say hello is told to, and may send little", {
        int fd = raw_connect(address);
        raw_frame(fd, (struct proto_frame){PROTO_VERSION, PROTO_TYPE_PING, 2, 0, 0}, body, 0);
        check_refusal(tap, fd, 2, PROTO_REFUSAL_STRANGER);
        raw_frame(fd, (struct proto_frame){PROTO_VERSION, PROTO_TYPE_HELLO, 3, 4097, 0}, body, 0);
        check_refusal(tap, fd, 3, PROTO_REFUSAL_TOO_LARGE);
        CHECK_INT(tap, raw_answer(fd, body).type, 0);
        close(fd);
    });
    TEST(tap, "a hello that is refused ends the connection", {
        int fd = raw_connect(address);
        raw_hello(fd, 13);
        check_refusal(tap, fd, 1, PROTO_REFUSAL_WRONG_MODEL);
        CHECK_INT(tap, raw_answer(fd, body).type, 0);
        close(fd);
    });
    TEST(tap, "what is no frame, or is announced beyond all limits, ends it too", {
        int fd = raw_welcomed(tap, address);
        raw_write(fd, "GET / HTTP/1.1\r\nHost: example\r\n\r\n", 33);
        CHECK_INT(tap, raw_answer(fd, body).type, 0);
        close(fd);
        fd = raw_welcomed(tap, address);
        raw_frame(fd,
                  (struct proto_frame){PROTO_VERSION, PROTO_TYPE_PUSH, 9, UINT32_MAX, UINT32_MAX},
                  body, 0);
        check_refusal(tap, fd, 9, PROTO_REFUSAL_TOO_LARGE);
        CHECK_INT(tap, raw_answer(fd, body).type, 0);
        close(fd);
        fd = raw_welcomed(tap, address);
        raw_frame(fd, (struct proto_frame){PROTO_VERSION, PROTO_TYPE_WEIGHTS, 9, 4, 0}, body, 4);
        CHECK_INT(tap, raw_answer(fd, body).type, 0);
        close(fd);
    });
    TEST(tap, "strangers who say nothing are few, and do not stay", {
        int idle[3];
        for (int i = 0; i < 3; i++)
            idle[i] = raw_connect(address);
        int fd = raw_connect(address);
        CHECK_INT(tap, raw_answer(fd, body).type, 0);
        close(fd);
        for (int i = 0; i < 3; i++) {
            CHECK_INT(tap, raw_answer(idle[i], body).type, 0);
            close(idle[i]);
        }
        close(raw_welcomed(tap, address));
    });
    TEST(tap, "a newcomer takes the place of the oldest stranger, and only that", {
        const struct listener_limits patient = {.hello = 60000, .strangers = 3};
        struct server *other = server_start(tap, "tcp://127.0.0.1:0", NULL, &patient);
        int idle[3];
        for (int i = 0; i < 3; i++) {
            idle[i] = raw_connect(listener_address(other->listener));
            usleep(2000); // they come in this order
        }
        int fd = raw_welcomed(tap, listener_address(other->listener));
        CHECK_INT(tap, raw_answer(idle[0], body).type, 0);
        for (int i = 1; i < 3; i++)
            CHECK(tap, recv(idle[i], body, 1, MSG_PEEK | MSG_DONTWAIT) != 0); // a ping or nothing
        close(fd);
        for (int i = 0; i < 3; i++)
            close(idle[i]);
        server_stop(other);
    });
    TEST(tap, "a hello and pings keep no place; what was asked and granted does", {
        const struct listener_limits patient = {.hello = 60000, .strangers = 3};
        struct server *other = server_start(tap, "tcp://127.0.0.1:0", NULL, &patient);
        const char *there = listener_address(other->listener);
        int known = raw_welcomed(tap, there), idle[4];
        struct proto_piece piece = {.count = 1};
        const struct proto_pull pull = {.pieces = {&piece, 1}};
        size_t size;
        proto_measure(PROTO_TYPE_PULL, &pull, &size, NULL);
        proto_encode(PROTO_TYPE_PULL, &pull, body);
        raw_frame(known, (struct proto_frame){PROTO_VERSION, PROTO_TYPE_PULL, 2, (uint32_t)size, 0},
                  body, size);
        const struct proto_frame weights = raw_answer(known, body);
        CHECK_INT(tap, weights.type, PROTO_TYPE_WEIGHTS);
        raw_skip(known, weights.payload);
        for (int i = 0; i < 4; i++) {
            idle[i] = raw_welcomed(tap, there);
            raw_frame(idle[i], (struct proto_frame){PROTO_VERSION, PROTO_TYPE_PING, 3, 0, 0}, body,
                      0);
            CHECK_INT(tap, raw_answer(idle[i], body).type, PROTO_TYPE_DONE);
        }
        CHECK_INT(tap, raw_answer(idle[0], body).type, 0);
        for (int i = 1; i < 4; i++)
            CHECK(tap, recv(idle[i], body, 1, MSG_PEEK | MSG_DONTWAIT) != 0);
        CHECK(tap, recv(known, body, 1, MSG_PEEK | MSG_DONTWAIT) != 0);
        for (int i = 0; i < 4; i++)
            close(idle[i]);
        close(known);
        server_stop(other);
    });
    TEST(tap, "who asks without end and takes no answer is given up, by name", {
        int before = atomic_load(&server->closed), fd = raw_welcomed(tap, address);
        struct proto_frame ping = {PROTO_VERSION, PROTO_TYPE_PING, 7, 0, 0};
        uint8_t bytes[PROTO_FRAME];
        proto_frame_put(bytes, &ping);
        // Until the answers fill what lies between the two, and none is sent any more.
        while (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
            continue;
        wait_for(&server->gate, &server->closed, before + 1);
        CHECK(tap, strstr(server->why, "it asks more at a time than it may"));
        close(fd);
    });
    TEST(tap, "who takes nothing of an answer is given up, though it goes on to speak", {
        int before = atomic_load(&server->closed), fd = raw_welcomed(tap, address);
        struct proto_piece piece = {.count = FLOATS};
        const struct proto_pull pull = {.pieces = {&piece, 1}};
        size_t size;
        proto_measure(PROTO_TYPE_PULL, &pull, &size, NULL);
        proto_encode(PROTO_TYPE_PULL, &pull, body);
        for (unsigned i = 0; i < 20; i++) // more than lies between the two
            raw_frame(
                fd, (struct proto_frame){PROTO_VERSION, PROTO_TYPE_PULL, 1 + i, (uint32_t)size, 0},
                body, size);
        uint8_t ping[PROTO_FRAME];
        proto_frame_put(ping, &(struct proto_frame){PROTO_VERSION, PROTO_TYPE_PING, 0, 0, 0});
        while (atomic_load(&server->closed) == before) {
            send(fd, ping, sizeof ping, MSG_NOSIGNAL);
            usleep(20000);
        }
        CHECK_TEXT(tap, server->why, "it does not read what it is sent");
        close(fd);
    });
    TEST(tap, "a peer that falls silent is given up by name", {
        int fd = raw_welcomed(tap, address);
        wait_for(&server->gate, &server->silent, 1);
        close(fd);
    });
    server_stop(server);
}

// Of places taken at these times by these addresses a newcomer of `origin` gets `wanted`.
static void check_place(struct tap *tap, const struct place *places, uint64_t origin,
                        size_t wanted) {
    uint64_t wait;
    CHECK_INT(tap, places_choose(places, 5, origin, 10000, &wait), wanted);
}

static void test_places(struct tap *tap) {
    TEST(tap, "who has most places gives one up, the oldest; of equals the newcomer's address", {
        const struct place places[] = {{1, 50}, {2, 30}, {2, 40}, {3, 10}, {2, 20}};
        check_place(tap, places, 1, 4);
        check_place(tap, places, 2, 4);
        check_place(tap, places, 9, 4);
        const struct place others[] = {{1, 50}, {1, 60}, {2, 40}, {2, 30}, {3, 10}};
        check_place(tap, others, 1, 0);
        check_place(tap, others, 2, 3);
        const struct place apart[] = {{1, 50}, {2, 60}, {3, 40}, {4, 30}, {5, 10}};
        check_place(tap, apart, 3, 2);
        check_place(tap, apart, 9, 0);
    });
    TEST(tap, "everybody has a moment before another takes its place", {
        const struct place places[] = {{1, 9800}, {1, 9900}};
        uint64_t wait;
        CHECK_INT(tap, places_choose(places, 2, 1, 9900, &wait), 2);
        CHECK_INT(tap, wait, PLACES_STAY - 100);
        CHECK_INT(tap, places_choose(places, 2, 1, 9800 + PLACES_STAY, &wait), 0);
    });
}

// A server that accepts, and never says a word.
static void test_silence(struct tap *tap) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) || listen(fd, 5) ||
        getsockname(fd, (struct sockaddr *)&at, &size))
        abort();
    char address[64];
    struct link *link;
    struct error err = {0};
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
    TEST(tap, "whoever dials a silent server hears of it", {
        CHECK_INT(tap, link_dial(&link, address, &plain, &hello, 3000, NULL, &err),
                  STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "nothing was heard for") != NULL);
        CHECK(tap, strstr(err.text, address) != NULL && link == NULL);
    });
    close(fd);
    TEST(tap, "and whoever dials nobody", {
        CHECK_INT(tap, link_dial(&link, address, &plain, &hello, 3000, NULL, &err),
                  STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, address) != NULL && strstr(err.text, "efused") != NULL);
    });
}

static void test_patience(struct tap *tap) {
    TEST(tap, "a side that is there and does not answer is given up, where that is asked for", {
        struct link_options patient = plain;
        struct error err = {0};
        struct server *server = server_start(tap, "tcp://127.0.0.1:0", NULL, NULL);
        struct link_request never = {.type = PROTO_TYPE_GET_RUN,
                                     .message = &(struct proto_get_run){0}};
        patient.patience = 300;
        struct link *link = dial(tap, server, &patient);
        CHECK_INT(tap, link_call(link, &never, NULL, &err), STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "it is there, and gave no answer for 0.3 s") != NULL);
        link_close(link);
        server_stop(server);
    });
}

int main(void) {
    struct tap tap = {0};
    char folder[] = "/tmp/adam-test-XXXXXX";
    if (!mkdtemp(folder))
        abort();
    test_transports(&tap, folder);
    test_tls(&tap, folder);
    test_many(&tap);
    test_patience(&tap);
    test_raw(&tap);
    test_places(&tap);
    test_silence(&tap);
    rmdir(folder);
    return tap_done(&tap);
}
