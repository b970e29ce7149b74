// Links beside plain sockets on loopback: messages of 1 MiB one way, and round trips of 64
// bytes, these beside REQ and REP of nng. In every round all take turns, so that other work
// on the machine falls on all of them; what counts is the median of the rounds' ratios.
// Processor time is of both ends together, and other work disturbs it less.
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

#include "core/error.h"
#include "core/gate.h"
#include "net/link.h"

enum { MESSAGE = 1 << 20, WINDOW = 8, ROUNDS = 9, CLIENTS = 2 };
static const int messages = 300, trips = 2000;

struct cost { // of a message or a round trip, in seconds
    double wall, busy;
};

static void die(const char *what) {
    perror(what);
    exit(1);
}

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static clockid_t clock_of(pid_t process) {
    clockid_t clock;
    if (clock_getcpuclockid(process, &clock))
        die("clock");
    return clock;
}

// Time since it was {0}, of this process and of those that it works with.
static struct cost elapsed(struct cost since, const clockid_t *others, int count) {
    struct cost now = {seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)};
    for (int i = 0; i < count; i++)
        now.busy += seconds(others[i]);
    return (struct cost){now.wall - since.wall, now.busy - since.busy};
}

static struct cost share(struct cost cost, int parts) {
    return (struct cost){cost.wall / parts, cost.busy / parts};
}

static char *memory(size_t bytes) {
    char *p = malloc(bytes);
    if (!p)
        die("malloc");
    memset(p, 1, bytes);
    return p;
}

// Plain sockets: in processes of their own, forked before the first call of nng.

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

// The other end: takes the messages, says so, and answers what is small.
static void raw_end(int fd, char *p) {
    for (int i = 0; i < messages; i++)
        whole(recv, fd, p, MESSAGE);
    whole(send_some, fd, p, 1);
    for (int i = 0; i < trips; i++) {
        whole(recv, fd, p, 64);
        whole(send_some, fd, p, 64);
    }
    whole(recv, fd, p, 1);
    _exit(0);
}

struct raw {
    struct cost bulk, trip;
};

static struct raw raw_round(void) {
    struct raw raw;
    int pair[2];
    char *p = memory(MESSAGE);
    connected(pair);
    pid_t child = fork();
    if (child == 0)
        raw_end(pair[1], p);
    clockid_t other = clock_of(child);
    struct cost start = elapsed((struct cost){0}, &other, 1);
    for (int i = 0; i < messages; i++)
        whole(send_some, pair[0], p, MESSAGE);
    whole(recv, pair[0], p, 1);
    raw.bulk = share(elapsed(start, &other, 1), messages);
    start = elapsed((struct cost){0}, &other, 1);
    for (int i = 0; i < trips; i++) {
        whole(send_some, pair[0], p, 64);
        whole(recv, pair[0], p, 64);
    }
    raw.trip = share(elapsed(start, &other, 1), trips);
    whole(send_some, pair[0], p, 1);
    waitpid(child, NULL, 0);
    close(pair[0]);
    close(pair[1]);
    free(p);
    return raw;
}

// Forks a round for every byte of `commands`.
static void raw_forever(int commands, int results) {
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(commands, &byte, 1) == 1) {
        pid_t child = fork();
        if (child == 0) {
            struct raw raw = raw_round();
            _exit(write(results, &raw, sizeof raw) < 0);
        }
        waitpid(child, NULL, 0);
    }
    _exit(0);
}

struct helper {
    pid_t process;
    int commands[2], results[2];
};

static void helper_start(struct helper *helper) {
    if (pipe(helper->commands) || pipe(helper->results))
        die("pipe");
    helper->process = fork();
    if (helper->process == 0)
        raw_forever(helper->commands[0], helper->results[1]);
}

static struct raw raw_apart(const struct helper *helper) {
    struct raw raw;
    if (write(helper->commands[1], "g", 1) < 0 ||
        read(helper->results[0], &raw, sizeof raw) != sizeof raw)
        die("helper");
    return raw;
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

static struct cost echo_trip(const char *address, clockid_t server) {
    nng_socket socket;
    nng_msg *message;
    nng_die(nng_req0_open(&socket));
    nng_die(nng_dial(socket, address, NULL, 0));
    nng_die(nng_msg_alloc(&message, 64));
    struct cost start = elapsed((struct cost){0}, &server, 1);
    for (int i = 0; i < trips; i++) {
        nng_die(nng_sendmsg(socket, message, 0));
        nng_die(nng_recvmsg(socket, &message, 0));
    }
    struct cost took = share(elapsed(start, &server, 1), trips);
    nng_msg_free(message);
    nng_close(socket);
    return took;
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

static struct cost bulk(struct client *clients, int count, uint16_t type, clockid_t server) {
    struct cost start = elapsed((struct cost){0}, &server, 1);
    for (int i = 0; i < count; i++)
        client_start(&clients[i], type);
    for (int i = 0; i < count; i++)
        client_wait(&clients[i]);
    return share(elapsed(start, &server, 1), messages * count);
}

// A push of 16 bytes is a frame of 77, its answer one of 37; near enough to 64.
static struct cost round_trip(struct client *client, clockid_t server) {
    const struct proto_push push = {.sequence = 1};
    const struct link_part part = {client->memory, 16};
    struct cost start = elapsed((struct cost){0}, &server, 1);
    for (int i = 0; i < trips; i++) {
        struct link_request request = {
            .type = PROTO_TYPE_PUSH, .message = &push, .parts = &part, .part_count = 1};
        if (link_call(client->link, &request, NULL, NULL))
            die("call");
    }
    return share(elapsed(start, &server, 1), trips);
}

// Rounds and results.

enum kind { PUSH, PULL, PUSH2, PULL2, RAW, TRIP, NNG_TRIP, RAW_TRIP, KINDS };

static void measure(struct cost costs[KINDS], struct client *clients,
                    const struct addresses *addresses, pid_t server, const struct helper *helper) {
    clockid_t clock = clock_of(server);
    struct raw raw = raw_apart(helper);
    costs[RAW] = raw.bulk;
    costs[RAW_TRIP] = raw.trip;
    costs[PUSH] = bulk(clients, 1, PROTO_TYPE_PUSH, clock);
    costs[PULL] = bulk(clients, 1, PROTO_TYPE_PULL, clock);
    costs[PUSH2] = bulk(clients, 2, PROTO_TYPE_PUSH, clock);
    costs[PULL2] = bulk(clients, 2, PROTO_TYPE_PULL, clock);
    costs[TRIP] = round_trip(&clients[0], clock);
    costs[NNG_TRIP] = echo_trip(addresses->echo, clock);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median over the rounds: of a cost, or of its ratio to another.
static double median(struct cost costs[ROUNDS][KINDS], enum kind kind, int other, bool busy) {
    double values[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        const struct cost *cost = &costs[r][kind], *to = other < 0 ? NULL : &costs[r][other];
        values[r] = busy ? cost->busy / (to ? to->busy : 1) : cost->wall / (to ? to->wall : 1);
    }
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

static const char *verdict(double ratio, double target, bool met) {
    static char text[32];
    snprintf(text, sizeof text, met ? "met" : "%.0f%% of it", 100 * ratio / target);
    return text;
}

static void report_bulk(const char *scheme, struct cost costs[ROUNDS][KINDS]) {
    static const struct {
        const char *name;
        double target;
    } rows[] = {[PUSH] = {"1 worker pushes", 0.85},
                [PULL] = {"1 worker pulls", 0.8},
                [PUSH2] = {"2 workers push", 0.85},
                [PULL2] = {"2 workers pull", 0.8}};
    printf("\n%-22s %8s %8s %8s %7s\n", scheme, "GB/s", "of TCP", "(cpu)", "target");
    for (int i = PUSH; i <= PULL2; i++) {
        double ratio = 1 / median(costs, i, RAW, false);
        printf("%-22s %8.2f %8.2f %8.2f %7.2f  %s\n", rows[i].name,
               MESSAGE * 1e-9 / median(costs, i, -1, false), ratio, 1 / median(costs, i, RAW, true),
               rows[i].target, verdict(ratio, rows[i].target, ratio >= rows[i].target));
    }
    printf("%-22s %8.2f\n", "plain TCP", MESSAGE * 1e-9 / median(costs, RAW, -1, false));
}

static void report_trips(struct cost costs[ROUNDS][KINDS]) {
    static const double target = 1.5;
    static const char *const names[] = {
        [TRIP] = "64 bytes and back", [NNG_TRIP] = "nng REQ and REP", [RAW_TRIP] = "plain TCP"};
    double ratio = median(costs, TRIP, NNG_TRIP, false);
    printf("%-22s %8s %8s %8s %7s\n", "", "us", "of nng", "(cpu)", "target");
    for (int i = TRIP; i <= RAW_TRIP; i++) {
        printf("%-22s %8.1f %8.2f %8.2f", names[i], 1e6 * median(costs, i, -1, false),
               median(costs, i, NNG_TRIP, false), median(costs, i, NNG_TRIP, true));
        if (i == TRIP)
            printf(" %7.2f  %s", target, verdict(ratio, target, ratio <= target));
        printf("\n");
    }
}

static void compare(const char *scheme, const struct addresses *addresses, pid_t server,
                    const struct helper *helper) {
    static struct client clients[CLIENTS];
    static struct cost costs[ROUNDS][KINDS];
    for (int i = 0; i < CLIENTS; i++)
        client_open(&clients[i], addresses->link);
    for (int r = 0; r < ROUNDS; r++)
        measure(costs[r], clients, addresses, server, helper);
    report_bulk(scheme, costs);
    report_trips(costs);
    for (int i = 0; i < CLIENTS; i++) {
        link_close(clients[i].link);
        free(clients[i].memory);
    }
}

int main(void) {
    static const char *const schemes[] = {"tcp://127.0.0.1:0", "ipc:///tmp/adam-bench-%d-%s"};
    struct addresses addresses[2];
    struct helper helper;
    pid_t servers[2];
    helper_start(&helper);
    for (int i = 0; i < 2; i++)
        servers[i] = serve(schemes[i], &addresses[i]);
    for (int i = 0; i < 2; i++) {
        compare(i ? "Unix socket" : "TCP", &addresses[i], servers[i], &helper);
        kill(servers[i], SIGTERM);
        waitpid(servers[i], NULL, 0);
    }
    unlink(addresses[1].link + strlen("ipc://"));
    unlink(addresses[1].echo + strlen("ipc://"));
    kill(helper.process, SIGTERM);
    waitpid(helper.process, NULL, 0);
    return 0;
}
