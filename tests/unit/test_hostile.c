// Servers that lie: what they answer is malformed, too large, of another number or another
// type, late, or comes twice. Who asked survives, believes nothing, and says whom it asked.
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "net/link.h"
#include "proto/proto.h"

enum { FLOATS = 100, ROOM = 4096 };

// A server of one connection, which welcomes and then answers a pull by these bytes.
struct liar {
    int fd;
    char address[64];
    pthread_t thread;
    uint8_t bytes[ROOM];
    size_t size;
    uint64_t asked; // the number of the pull
};

static size_t put_frame(uint8_t *at, uint16_t type, uint64_t request, const void *message,
                        size_t payload) {
    size_t body;
    if (proto_measure(type, message, &body, NULL) || PROTO_FRAME + body + payload > ROOM)
        abort();
    const struct proto_frame frame = {PROTO_VERSION, type, request, (uint32_t)body,
                                      (uint32_t)payload};
    proto_frame_put(at, &frame);
    proto_encode(type, message, at + PROTO_FRAME);
    memset(at + PROTO_FRAME + body, 0, payload);
    return PROTO_FRAME + body + payload;
}

static void read_frame(int fd, struct proto_frame *frame) {
    uint8_t bytes[ROOM];
    if (recv(fd, bytes, PROTO_FRAME, MSG_WAITALL) != PROTO_FRAME ||
        proto_frame_get(frame, bytes, NULL) || frame->body > ROOM ||
        recv(fd, bytes, frame->body, MSG_WAITALL) != (ssize_t)frame->body)
        abort();
}

static void *lie(void *context) {
    struct liar *liar = context;
    const struct proto_welcome welcome = {.role = PROTO_ROLE_PARAMETER_SERVER};
    struct proto_frame frame;
    uint8_t bytes[ROOM];
    int fd = accept(liar->fd, NULL, NULL);
    read_frame(fd, &frame);
    size_t size = put_frame(bytes, PROTO_TYPE_WELCOME, frame.request, &welcome, 0);
    if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
        abort();
    read_frame(fd, &frame);
    if (frame.request != liar->asked ||
        send(fd, liar->bytes, liar->size, MSG_NOSIGNAL) != (ssize_t)liar->size)
        abort();
    while (recv(fd, bytes, sizeof bytes, 0) > 0) // until it is hung up on
        continue;
    close(fd);
    return NULL;
}

static void liar_open(struct liar *liar) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    *liar = (struct liar){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .asked = 2};
    if (liar->fd < 0 || bind(liar->fd, (struct sockaddr *)&at, size) || listen(liar->fd, 1) ||
        getsockname(liar->fd, (struct sockaddr *)&at, &size))
        abort();
    snprintf(liar->address, sizeof liar->address, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
}

// The true answer: its frame, at `at`.
static size_t put_weights(uint8_t *at, uint64_t request, uint32_t floats) {
    struct proto_piece piece = {.count = floats, .version = 1};
    const struct proto_weights weights = {proto_list(&piece, 1)};
    return put_frame(at, PROTO_TYPE_WEIGHTS, request, &weights, floats * sizeof(float));
}

// Pulls once; then waits until nothing more comes. Returns how the first pull ended, and
// how the link did in `err`.
static int ask(struct liar *liar, struct error *err) {
    const struct proto_hello hello = {.role = PROTO_ROLE_WORKER};
    const struct link_options options = {.silence = 300};
    struct proto_piece piece = {.count = FLOATS};
    const struct proto_pull pull = {.pieces = proto_list(&piece, 1)};
    float *weights = malloc(FLOATS * sizeof *weights); // so that a sanitizer sees its ends
    struct link_request request = {
        .type = PROTO_TYPE_PULL, .message = &pull, .into = weights, .room = FLOATS * sizeof(float)};
    struct link *link;
    pthread_create(&liar->thread, NULL, lie, liar);
    int status = link_dial(&link, liar->address, &options, &hello, 5000, NULL, err);
    if (status || !weights)
        abort();
    status = link_call(link, &request, NULL, err);
    if (!status) // how it ends
        link_call(link, &request, NULL, err);
    link_close(link);
    pthread_join(liar->thread, NULL);
    close(liar->fd);
    free(weights);
    return status;
}

static void check_lie(struct tap *tap, struct liar *liar, int status, const char *why) {
    struct error err = {0};
    CHECK_INT(tap, ask(liar, &err), status);
    CHECK_INT(tap, err.status, STATUS_UNAVAILABLE);
    if (!strstr(err.text, why) || !strstr(err.text, liar->address))
        FAIL(tap, "not %s of %s: '%s'", why, liar->address, err.text);
}

// --- late ---------------------------------------------------------------------------------

static const uint8_t late_byte = 0x11, true_byte = 0x3f; // of the weights

static void send_bytes(int fd, const uint8_t *bytes, size_t size) {
    while (size > 0) { // a link that was given up takes nothing
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0)
            break;
        bytes += sent, size -= (size_t)sent;
    }
}

// Welcomes, and reads a pull that is not answered yet.
static int welcome_and_read(struct liar *liar, uint64_t *pull) {
    const struct proto_welcome welcome = {.role = PROTO_ROLE_PARAMETER_SERVER};
    struct proto_frame frame;
    uint8_t bytes[ROOM];
    int fd = accept(liar->fd, NULL, NULL);
    read_frame(fd, &frame);
    send_bytes(fd, bytes, put_frame(bytes, PROTO_TYPE_WELCOME, frame.request, &welcome, 0));
    read_frame(fd, &frame);
    *pull = frame.request;
    return fd;
}

static size_t put_filled(uint8_t *at, uint64_t request, uint8_t byte) {
    size_t size = put_weights(at, request, FLOATS);
    memset(at + size - FLOATS * sizeof(float), byte, FLOATS * sizeof(float));
    return size;
}

// Answers the first pull when it was given up and another is asked, by another link.
static void *answer_late(void *context) {
    struct liar *liar = context;
    uint64_t first, second;
    uint8_t bytes[ROOM];
    int before = welcome_and_read(liar, &first), now = welcome_and_read(liar, &second);
    send_bytes(before, bytes, put_filled(bytes, first, late_byte));
    if (liar->size > 0) // what belongs to the link before
        send_bytes(now, liar->bytes, liar->size);
    send_bytes(now, bytes, put_filled(bytes, second, true_byte));
    while (recv(now, bytes, sizeof bytes, 0) > 0)
        continue;
    close(before);
    close(now);
    return NULL;
}

// Pulls once by a link of its own; the weights' first byte is in *byte.
static int pull_once(const struct liar *liar, uint8_t *byte, struct error *err) {
    const struct proto_hello hello = {.role = PROTO_ROLE_WORKER};
    const struct link_options options = {.silence = 300};
    struct proto_piece piece = {.count = FLOATS};
    const struct proto_pull pull = {.pieces = proto_list(&piece, 1)};
    float *weights = calloc(FLOATS, sizeof *weights);
    struct link_request request = {
        .type = PROTO_TYPE_PULL, .message = &pull, .into = weights, .room = FLOATS * sizeof(float)};
    struct link *link;
    if (!weights || link_dial(&link, liar->address, &options, &hello, 5000, NULL, err))
        abort();
    int status = link_call(link, &request, NULL, err);
    link_close(link);
    memcpy(byte, weights, 1);
    free(weights);
    return status;
}

static void test_late(struct tap *tap) {
    struct liar liar;
    uint8_t first = 0, second = 0;
    TEST(tap, "an answer that comes when it was given up is not the next one's", {
        struct error err = {0};
        liar_open(&liar);
        pthread_create(&liar.thread, NULL, answer_late, &liar);
        CHECK_INT(tap, pull_once(&liar, &first, &err), STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "nothing was heard for"));
        CHECK_INT(tap, pull_once(&liar, &second, &err), STATUS_OK);
        CHECK_INT(tap, first, 0);
        CHECK_INT(tap, second, true_byte);
        pthread_join(liar.thread, NULL);
        close(liar.fd);
    });
    TEST(tap, "nor is it taken by the link that took the other's place", {
        struct error err = {0};
        liar_open(&liar);
        liar.size = put_filled(liar.bytes, 3, late_byte); // a second pull by the link before
        pthread_create(&liar.thread, NULL, answer_late, &liar);
        CHECK_INT(tap, pull_once(&liar, &first, &err), STATUS_UNAVAILABLE);
        CHECK_INT(tap, pull_once(&liar, &second, &err), STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "it answered what was not asked"));
        CHECK_INT(tap, second, 0);
        pthread_join(liar.thread, NULL);
        close(liar.fd);
    });
}

static void test_answers(struct tap *tap) {
    static const char not_asked[] = "it answered what was not asked";
    struct liar liar;
    TEST(tap, "an answer of another number is not taken", {
        liar_open(&liar);
        liar.size = put_weights(liar.bytes, 3, FLOATS);
        check_lie(tap, &liar, STATUS_UNAVAILABLE, not_asked);
        liar_open(&liar); // in the same place among those in flight
        liar.size = put_weights(liar.bytes, 2 + LINK_WINDOW, FLOATS);
        check_lie(tap, &liar, STATUS_UNAVAILABLE, not_asked);
    });
    TEST(tap, "an answer of another type is not taken", {
        liar_open(&liar);
        const struct proto_pushed pushed = {.sequence = 1};
        liar.size = put_frame(liar.bytes, PROTO_TYPE_PUSHED, 2, &pushed, 0);
        check_lie(tap, &liar, STATUS_UNAVAILABLE, not_asked);
    });
    TEST(tap, "an answer that is larger than its room is not taken", {
        liar_open(&liar);
        liar.size = put_weights(liar.bytes, 2, FLOATS + 1);
        check_lie(tap, &liar, STATUS_UNAVAILABLE, "its answer is larger than what was asked for");
    });
    TEST(tap, "a malformed answer is not taken", {
        liar_open(&liar);
        liar.size = put_weights(liar.bytes, 2, FLOATS);
        liar.bytes[PROTO_FRAME] = 200; // pieces that are not there
        check_lie(tap, &liar, STATUS_UNAVAILABLE, "weights: pieces: 200 of them are not there");
    });
    TEST(tap, "an answer that is no message, or no frame, is not taken", {
        liar_open(&liar);
        liar.size = put_weights(liar.bytes, 2, FLOATS);
        liar.bytes[6] = 0x66;
        check_lie(tap, &liar, STATUS_UNAVAILABLE, "answered by a message that is not known here");
        liar_open(&liar);
        liar.size = put_weights(liar.bytes, 2, FLOATS);
        liar.bytes[0] = 'b';
        check_lie(tap, &liar, STATUS_UNAVAILABLE, "does not speak adam's protocol");
    });
    TEST(tap, "an answer beyond all limits is not waited for", {
        liar_open(&liar);
        liar.size = PROTO_FRAME;
        proto_frame_put(liar.bytes, &(struct proto_frame){PROTO_VERSION, PROTO_TYPE_WEIGHTS, 2, 32,
                                                          UINT32_MAX});
        check_lie(tap, &liar, STATUS_UNAVAILABLE, "its answer is larger than any may be");
    });
    TEST(tap, "an answer that comes twice is taken once", {
        liar_open(&liar);
        liar.size = put_weights(liar.bytes, 2, FLOATS);
        liar.size += put_weights(liar.bytes + liar.size, 2, FLOATS);
        check_lie(tap, &liar, STATUS_OK, not_asked);
    });
    TEST(tap, "half an answer is not waited for without end", {
        liar_open(&liar);
        liar.size = put_weights(liar.bytes, 2, FLOATS) / 2;
        check_lie(tap, &liar, STATUS_UNAVAILABLE, "nothing was heard for");
    });
}

int main(void) {
    struct tap tap = {0};
    test_answers(&tap);
    test_late(&tap);
    return tap_done(&tap);
}
