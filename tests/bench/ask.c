// ask: predictions of a service over HTTP, as fast as it answers or at a fixed rate.
//
//   ask HOST PORT CONNECTIONS SECONDS RATE PICTURES FILE...
//
// Each connection has one request under way, of the next PICTURES files. RATE 0: it sends the next
// one as soon as it has its answer. Else requests are due in equal distances, and wait for a
// connection that is free; their time counts from when they were due. Prints answers a second, and
// the median and the 99th percentile of their times in milliseconds.
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "core/clock.h"

enum { CONNECTIONS = 512, TIMES = 1 << 22 };
#define PATIENCE 1.0 // seconds until it looks whether an answer came

struct text {
    char *bytes;
    size_t size;
};

struct line {
    int fd;
    bool asks;
    double since;
    size_t got;
    char answer[1 << 17];
};

static void fail(const char *what) {
    fprintf(stderr, "ask: %s: %s\n", what, strerror(errno));
    exit(1);
}

// A body that is a picture by itself, or has several, each a part behind this boundary.
#define PART "\r\n--part\r\nContent-Disposition: form-data; name=\"picture\"\r\n\r\n"
#define LAST_PART "\r\n--part--\r\n"
#define TYPE_PARTS "Content-Type: multipart/form-data; boundary=part\r\n"

static void add_bytes(struct text *text, const void *bytes, size_t size) {
    char *grown = realloc(text->bytes, text->size + size);
    if (!grown)
        fail("memory");
    text->bytes = grown;
    memcpy(grown + text->size, bytes, size);
    text->size += size;
}

static void add_file(struct text *text, const char *path) {
    static char picture[1 << 20];
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(picture, 1, sizeof picture, file) : 0;
    if (!n || fclose(file))
        fail(path);
    add_bytes(text, picture, n);
}

static struct text body_of(char *const *paths, int count) {
    struct text body = {0};
    for (int i = 0; i < count; i++) {
        if (count > 1)
            add_bytes(&body, PART, sizeof PART - 1);
        add_file(&body, paths[i]);
    }
    if (count > 1)
        add_bytes(&body, LAST_PART, sizeof LAST_PART - 1);
    return body;
}

static struct text request_of(char *const *paths, int count) {
    struct text body = body_of(paths, count), text = {0};
    char head[200];
    int length = snprintf(head, sizeof head,
                          "POST /predict HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n",
                          count > 1 ? TYPE_PARTS : "", body.size);
    add_bytes(&text, head, (size_t)length);
    add_bytes(&text, body.bytes, body.size);
    free(body.bytes);
    return text;
}

static int dial(const struct addrinfo *at) {
    int fd = socket(at->ai_family, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, at->ai_addr, at->ai_addrlen))
        fail("connect");
    return fd;
}

static void send_request(struct line *line, const struct text *text, double since) {
    if (send(line->fd, text->bytes, text->size, MSG_NOSIGNAL) != (ssize_t)text->size)
        fail("send");
    line->asks = true;
    line->since = since;
    line->got = 0;
}

// Whether the answer is whole.
static bool take_answer(struct line *line) {
    ssize_t n = recv(line->fd, line->answer + line->got, sizeof line->answer - 1 - line->got, 0);
    if (n <= 0)
        fail("an answer ended");
    line->got += (size_t)n;
    line->answer[line->got] = 0;
    const char *end = strstr(line->answer, "\r\n\r\n");
    const char *length = strstr(line->answer, "Content-Length: ");
    if (!end || !length ||
        line->got < (size_t)(end + 4 - line->answer) + strtoul(length + 16, NULL, 10))
        return false;
    if (strncmp(line->answer, "HTTP/1.1 200", 12) != 0) {
        fprintf(stderr, "ask: %s\n", line->answer);
        exit(1);
    }
    line->asks = false;
    return true;
}

static int in_order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct asker {
    struct line *lines;
    int epoll;
    int connections, requests;
    struct text *texts; // of each request
    double rate;        // 0: without pause
    double begin;
    double *times;
    int asked, answers;
};

// When the next request is due.
static double next_due(const struct asker *a, double now) {
    return a->rate > 0 ? a->begin + a->asked / a->rate : now;
}

// Sends what is due, as far as connections are free; gives the seconds until the next is.
static double ask_due(struct asker *a, double now) {
    double due = next_due(a, now);
    bool idle = true;
    while (idle && due <= now) {
        int i = 0;
        while (i < a->connections && a->lines[i].asks)
            i++;
        idle = i < a->connections;
        if (idle)
            send_request(&a->lines[i], &a->texts[a->asked++ % a->requests], due);
        due = next_due(a, now);
    }
    return idle ? due - now : PATIENCE;
}

// Those that come within `wait` seconds.
static void hear_answers(struct asker *a, double wait) {
    struct epoll_event heard[CONNECTIONS];
    struct timespec most = {.tv_sec = (time_t)wait};
    most.tv_nsec = (long)((wait - (double)most.tv_sec) * 1e9);
    int count = epoll_pwait2(a->epoll, heard, CONNECTIONS, &most, NULL);
    if (count < 0)
        fail("epoll_pwait2");
    double now = clock_seconds();
    for (int i = 0; i < count; i++)
        if (take_answer(heard[i].data.ptr))
            a->times[a->answers++] = now - ((struct line *)heard[i].data.ptr)->since;
}

// Until then, or the first answer. Gives the seconds that it took.
static double ask_for(struct asker *a, double seconds) {
    double now = a->begin = clock_seconds();
    while ((now < a->begin + seconds && a->answers < TIMES - CONNECTIONS) || a->answers == 0) {
        hear_answers(a, ask_due(a, now));
        now = clock_seconds();
    }
    return now - a->begin;
}

static void open_line(struct asker *a, struct line *line, const struct addrinfo *at) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = line};
    line->fd = dial(at);
    if (epoll_ctl(a->epoll, EPOLL_CTL_ADD, line->fd, &event))
        fail("epoll_ctl");
}

static void open_asker(struct asker *a, char **argv, int pictures) {
    static struct line lines[CONNECTIONS];
    static double times[TIMES];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *at;
    a->lines = lines, a->times = times;
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    a->texts = calloc((size_t)a->requests, sizeof *a->texts);
    if (!a->texts || a->epoll < 0 || a->connections > CONNECTIONS ||
        getaddrinfo(argv[1], argv[2], &hints, &at))
        fail("cannot begin");
    for (int i = 0; i < a->requests; i++)
        a->texts[i] = request_of(argv + 7 + i * pictures, pictures);
    for (int i = 0; i < a->connections; i++)
        open_line(a, &lines[i], at);
    freeaddrinfo(at);
}

int main(int argc, char **argv) {
    int pictures = argc > 7 ? atoi(argv[6]) : 0;
    if (pictures < 1 || argc - 7 < pictures) {
        fputs("usage: ask HOST PORT CONNECTIONS SECONDS RATE PICTURES FILE...\n", stderr);
        return 2;
    }
    prctl(PR_SET_TIMERSLACK, 1UL); // it sleeps until the next request is due, and not 50 us longer
    struct asker a = {
        .connections = atoi(argv[3]), .requests = (argc - 7) / pictures, .rate = atof(argv[5])};
    open_asker(&a, argv, pictures);
    double seconds = ask_for(&a, atof(argv[4]));
    qsort(a.times, (size_t)a.answers, sizeof *a.times, in_order);
    printf("%.1f %.3f %.3f\n", a.answers / seconds, 1000 * a.times[a.answers / 2],
           1000 * a.times[a.answers * 99L / 100]);
    for (int i = 0; i < a.requests; i++)
        free(a.texts[i].bytes);
    free(a.texts);
    return 0;
}
