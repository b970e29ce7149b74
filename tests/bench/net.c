// Links beside plain sockets on loopback: 1 MiB messages one way, and round trips of 64
// bytes, these also beside REQ and REP of nng. Each figure is the median of several rounds in which
// all kinds take turns, so that other work on the machine falls on all of them.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/gate.h"
#include "net/link.h"

enum { MESSAGE = 1 << 20, WINDOW = 8, ROUNDS = 9, CLIENTS = 2 };
static const int messages = 400, trips = 2000;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *memory(size_t bytes) {
    char *p = malloc(bytes);
    if (!p)
        die("malloc");
    memset(p, 1, bytes);
    return p;
}

// Plain sockets.

static void whole(ssize_t (*move)(int, void *, size_t, int), int fd, char *p, size_t n) {
    while (n > 0) {
        ssize_t k = move(fd, p, n, 0);
        if (k <= 0)
            die("socket");
        p += k;
        n -= (size_t)k;
    }
}

static ssize_t send_some(int fd, void *p, size_t n, int flags) {
    return send(fd, p, n, flags);
}

static void connected(int pair[2]) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (bind(l, (struct sockaddr *)&at, size) || listen(l, 1) ||
        getsockname(l, (struct sockaddr *)&at, &size))
        die("listen");
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(pair[0], (struct sockaddr *)&at, size))
        die("connect");
    pair[1] = accept(l, NULL, NULL);
    close(l);
    for (int i = 0; i < 2; i++)
        setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

// Forked before the first call of nng, and for each round again.
static void raw_round(double *rate, double *trip) {
    int pair[2];
    char *p = memory(MESSAGE);
    connected(pair);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < messages; i++)
            whole(recv, pair[1], p, MESSAGE);
        whole(send_some, pair[1], p, 1);
        for (int i = 0; i < trips; i++) {
            whole(recv, pair[1], p, 64);
            whole(send_some, pair[1], p, 64);
        }
        _exit(0);
    }
    double start = now();
    for (int i = 0; i < messages; i++)
        whole(send_some, pair[0], p, MESSAGE);
    whole(recv, pair[0], p, 1);
    *rate = (double)MESSAGE * messages / (now() - start) * 1e-9;
    start = now();
    for (int i = 0; i < trips; i++) {
        whole(send_some, pair[0], p, 64);
        whole(recv, pair[0], p, 64);
    }
    *trip = (now() - start) / trips * 1e6;
    waitpid(child, NULL, 0);
    close(pair[0]);
    close(pair[1]);
    free(p);
}

// Links: a server that takes pushes and gives weights, in a process of its own.

static struct link_part shard = {NULL, MESSAGE};

static enum proto_refusal hear_hello(void *context, struct link *link,
                                     const struct proto_hello *hello, struct proto_welcome *welcome,
                                     uint64_t *detail) {
    (void)context, (void)link, (void)hello, (void)welcome, (void)detail;
    return PROTO_REFUSAL_NONE;
}

static void hear_request(void *context, struct link *link, uint64_t request, uint16_t type,
                         const union proto_message *message, struct buffer *payload) {
    static const struct proto_weights weights = {{0}};
    static const struct link_payload bulk = {&shard, 1, NULL, NULL};
    (void)context, (void)payload;
    if (type == PROTO_TYPE_PULL)
        link_answer(link, request, PROTO_TYPE_WEIGHTS, &weights, &bulk, NULL);
    else
        link_answer(link, request, PROTO_TYPE_PUSHED,
                    &(struct proto_pushed){.sequence = message->push.sequence}, NULL, NULL);
}

static void nng_die(int code) {
    if (code) {
        fprintf(stderr, "nng: %s\n", nng_strerror(code));
        exit(1);
    }
}

// Beside the links: what nng's own requests take.
static void echo_open(nng_socket *socket, char address[PROTO_ADDRESS_MAX]) {
    nng_listener listener;
    int port;
    nng_die(nng_rep0_open(socket));
    nng_die(nng_listen(*socket, address, &listener, 0));
    if (strncmp(address, "tcp", 3) == 0) {
        nng_die(nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port));
        snprintf(address, PROTO_ADDRESS_MAX, "tcp://127.0.0.1:%d", port);
    }
}

static void echo_forever(nng_socket socket) {
    nng_msg *message;
    for (;;) {
        nng_die(nng_recvmsg(socket, &message, 0));
        nng_die(nng_sendmsg(socket, message, 0));
    }
}

static double echo_trip(const char *address) {
    nng_socket socket;
    nng_msg *message;
    nng_die(nng_req0_open(&socket));
    nng_die(nng_dial(socket, address, NULL, 0));
    nng_die(nng_msg_alloc(&message, 64));
    double start = now();
    for (int i = 0; i < trips; i++) {
        nng_die(nng_sendmsg(socket, message, 0));
        nng_die(nng_recvmsg(socket, &message, 0));
    }
    double end = now();
    nng_msg_free(message);
    nng_close(socket);
    return (end - start) / trips * 1e6;
}

struct addresses {
    char link[PROTO_ADDRESS_MAX], echo[PROTO_ADDRESS_MAX];
};

static pid_t serve(const char *scheme, struct addresses *addresses) {
    int told[2];
    if (pipe(told))
        die("pipe");
    pid_t child = fork();
    if (child > 0) {
        if (read(told[0], addresses, sizeof *addresses) < 0)
            die("read");
        return child;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct pool pool = {.limit = 256ul << 20};
    struct link_options options = {.handlers = {NULL, hear_hello, hear_request, NULL},
                                   .pool = &pool};
    struct listener *listener;
    struct error err = {0};
    nng_socket echo;
    snprintf(addresses->link, sizeof addresses->link, scheme, (int)getpid(), "link");
    snprintf(addresses->echo, sizeof addresses->echo, scheme, (int)getpid(), "echo");
    shard.at = memory(MESSAGE);
    if (listener_open(&listener, addresses->link, &options, NULL, &err)) {
        fprintf(stderr, "%s\n", err.text);
        _exit(1);
    }
    snprintf(addresses->link, sizeof addresses->link, "%s", listener_address(listener));
    echo_open(&echo, addresses->echo);
    if (write(told[1], addresses, sizeof *addresses) < 0)
        _exit(1);
    echo_forever(echo);
    return 0;
}

struct client {
    struct link *link;
    uint16_t type;
    struct link_request request[WINDOW];
    struct link_part part;
    char *memory; // of WINDOW messages
    _Atomic int left, over;
    struct gate gate;
};

static void ask(struct link_request *request);

static void answered(struct link_request *request) {
    struct client *client = request->context;
    if (request->status)
        die(request->why);
    ask(request);
    if (atomic_fetch_add(&client->over, 1) + 1 == messages)
        gate_open(&client->gate);
}

static void ask(struct link_request *request) {
    static const struct proto_pull pull = {0};
    static const struct proto_push push = {.sequence = 1};
    struct client *client = request->context;
    if (atomic_fetch_sub(&client->left, 1) <= 0)
        return;
    if (client->type == PROTO_TYPE_PULL)
        request->message = &pull;
    else
        request->message = &push;
    if (link_ask(client->link, request, NULL))
        die("ask");
}

static void client_open(struct client *client, const char *address) {
    static const struct link_options options = {.heartbeat = 1000};
    static const struct proto_hello hello = {0};
    struct error err = {0};
    memset(client, 0, sizeof *client);
    if (link_dial(&client->link, address, &options, &hello, 5000, NULL, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    client->memory = memory((size_t)WINDOW * MESSAGE);
    client->part = (struct link_part){client->memory, MESSAGE};
}

static void client_start(struct client *client, uint16_t type) {
    client->type = type;
    atomic_store(&client->over, 0);
    atomic_store(&client->left, messages);
    for (int i = 0; i < WINDOW; i++) {
        client->request[i] = (struct link_request){
            .type = type,
            .parts = &client->part,
            .part_count = type == PROTO_TYPE_PUSH,
            .into = client->memory + (size_t)i * MESSAGE,
            .room = MESSAGE,
            .done = answered,
            .context = client,
        };
        ask(&client->request[i]);
    }
}

static void client_wait(struct client *client) {
    for (uint32_t seen = gate_look(&client->gate); atomic_load(&client->over) < messages;
         seen = gate_look(&client->gate))
        gate_wait(&client->gate, seen, -1);
}

static double bulk(struct client *clients, int count, uint16_t type) {
    double start = now();
    for (int i = 0; i < count; i++)
        client_start(&clients[i], type);
    for (int i = 0; i < count; i++)
        client_wait(&clients[i]);
    return (double)MESSAGE * messages * count / (now() - start) * 1e-9;
}

// A frame there is 24 + 24 bytes, a pushed back 24 + 13; near enough to 64.
static double round_trip(struct client *client) {
    const struct proto_push push = {.sequence = 1};
    const struct link_part part = {client->memory, 16};
    double start = now();
    for (int i = 0; i < trips; i++) {
        struct link_request request = {
            .type = PROTO_TYPE_PUSH, .message = &push, .parts = &part, .part_count = 1};
        if (link_call(client->link, &request, NULL, NULL))
            die("call");
    }
    return (now() - start) / trips * 1e6;
}

// Results.

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

enum kind { RAW, PUSH, PULL, PUSH2, PULL2, RAW_TRIP, NNG_TRIP, TRIP, KINDS };

static void raw_only(int to) {
    double result[2];
    raw_round(&result[0], &result[1]);
    if (write(to, result, sizeof result) < 0)
        _exit(1);
    _exit(0);
}

// In a process that has not called nng: it must not be forked after that.
static void raw_apart(double *rate, double *trip, int to_helper, int from_helper) {
    double result[2];
    if (write(to_helper, "g", 1) < 0 || read(from_helper, result, sizeof result) < 0)
        die("helper");
    *rate = result[0];
    *trip = result[1];
}

static void helper(int commands, int results) {
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(commands, &byte, 1) == 1) {
        pid_t child = fork();
        if (child == 0)
            raw_only(results);
        waitpid(child, NULL, 0);
    }
    _exit(0);
}

static void report(const char *scheme, double times[KINDS][ROUNDS]) {
    double m[KINDS];
    for (int i = 0; i < KINDS; i++)
        m[i] = median(times[i]);
    printf("%s: raw TCP %.2f GB/s; push %.2f (%.2f of it), pull %.2f (%.2f); two workers: "
           "push %.2f (%.2f), pull %.2f (%.2f); 64 bytes: raw TCP %.1f us, nng "
           "REQ/REP %.1f us, link %.1f us\n",
           scheme, m[RAW], m[PUSH], m[PUSH] / m[RAW], m[PULL], m[PULL] / m[RAW], m[PUSH2],
           m[PUSH2] / m[RAW], m[PULL2], m[PULL2] / m[RAW], m[RAW_TRIP], m[NNG_TRIP], m[TRIP]);
}

int main(void) {
    static const char *const schemes[] = {"tcp://127.0.0.1:0", "ipc:///tmp/adam-bench-%d-%s"};
    struct addresses addresses[2];
    static double times[KINDS][ROUNDS];
    pid_t servers[2];
    int commands[2], results[2];
    if (pipe(commands) || pipe(results))
        die("pipe");
    pid_t apart = fork();
    if (apart == 0)
        helper(commands[0], results[1]);
    for (int i = 0; i < 2; i++)
        servers[i] = serve(schemes[i], &addresses[i]);
    for (int s = 0; s < 2; s++) {
        static struct client clients[CLIENTS];
        for (int i = 0; i < CLIENTS; i++)
            client_open(&clients[i], addresses[s].link);
        for (int r = 0; r < ROUNDS; r++) {
            raw_apart(&times[RAW][r], &times[RAW_TRIP][r], commands[1], results[0]);
            times[PUSH][r] = bulk(clients, 1, PROTO_TYPE_PUSH);
            times[PULL][r] = bulk(clients, 1, PROTO_TYPE_PULL);
            times[PUSH2][r] = bulk(clients, 2, PROTO_TYPE_PUSH);
            times[PULL2][r] = bulk(clients, 2, PROTO_TYPE_PULL);
            times[TRIP][r] = round_trip(&clients[0]);
            times[NNG_TRIP][r] = echo_trip(addresses[s].echo);
        }
        report(s ? "ipc" : "tcp", times);
        for (int i = 0; i < CLIENTS; i++) {
            link_close(clients[i].link);
            free(clients[i].memory);
        }
        kill(servers[s], SIGTERM);
        waitpid(servers[s], NULL, 0);
    }
    unlink(addresses[1].link + strlen("ipc://"));
    unlink(addresses[1].echo + strlen("ipc://"));
    kill(apart, SIGTERM);
    waitpid(apart, NULL, 0);
    return 0;
}
