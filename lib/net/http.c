// One thread looks at all connections with poll(2). Each carries one request and its answer.
#include "net/http.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "net/http_head.h"
#include "net/http_listen.h"
#include "net/places.h"

enum {
    CALLERS = 256,
    HEAD = 4096,     // bytes of a request
    DEADLINE = 5000, // milliseconds from the call to the end of the answer
    REST = 100,      // milliseconds, when the process has no descriptors left
};

struct http_caller {
    int fd;
    struct place place; // .since: when it called
    size_t got;         // bytes of `head`
    char *reply;        // NULL: the request is not whole yet
    size_t size, sent;
    char head[HEAD + 1];
};

struct http {
    int fd, wake; // listens; an eventfd that ends the thread
    pthread_t thread;
    bool started;
    const char *path;
    pthread_mutex_t lock; // of `text`
    char *text;
    // The thread's own.
    struct http_caller *callers[CALLERS];
    size_t count;
    uint64_t rests_until;
};

static uint64_t now_ms(void) {
    return (uint64_t)(clock_seconds() * 1000);
}

// --- requests and answers -------------------------------------------------------------

static char *make_reply(const char *status, const char *text, bool body, size_t *size) {
    char *reply = NULL;
    int n = asprintf(&reply,
                     "HTTP/1.1 %s\r\n"
                     "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                     "Content-Length: %zu\r\n"
                     "Connection: close\r\n\r\n%s",
                     status, strlen(text), body ? text : "");
    *size = n < 0 ? 0 : (size_t)n;
    return n < 0 ? NULL : reply;
}

static char *page_of(struct http *http, bool body, size_t *size) {
    pthread_mutex_lock(&http->lock);
    char *reply = make_reply("200 OK", http->text ? http->text : "", body, size);
    pthread_mutex_unlock(&http->lock);
    return reply;
}

// Of the request's first line: "GET /metrics?x HTTP/1.1".
static char *reply_to(struct http *http, const char *head, size_t *size) {
    bool get = !strncmp(head, "GET ", 4), look = !strncmp(head, "HEAD ", 5);
    const char *path = http_head_path(head + (get ? 4 : 5));
    size_t length = path ? strcspn(path, " ?\r\n") : 0;
    if (!path || !http_head_is_clear(head))
        return make_reply("400 Bad Request", "name the host once\n", !look, size);
    if (!get && !look)
        return make_reply("405 Method Not Allowed\r\nAllow: GET, HEAD", "only GET and HEAD\n", true,
                          size);
    if (length != strlen(http->path) || strncmp(path, http->path, length) != 0)
        return make_reply("404 Not Found", "no such page\n", get, size);
    return page_of(http, get, size);
}

// True while there is more to come.
static bool read_request(struct http *http, struct http_caller *caller) {
    ssize_t n = recv(caller->fd, caller->head + caller->got, HEAD - caller->got, 0);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    caller->got += (size_t)n;
    caller->head[caller->got] = 0;
    bool whole = strstr(caller->head, "\r\n\r\n") || strstr(caller->head, "\n\n");
    if (!whole && caller->got < HEAD)
        return true;
    caller->reply = whole ? reply_to(http, caller->head, &caller->size)
                          : make_reply("431 Request Header Fields Too Large", "too large\n", true,
                                       &caller->size);
    return caller->reply != NULL;
}

static bool send_reply(struct http_caller *caller) {
    ssize_t n =
        send(caller->fd, caller->reply + caller->sent, caller->size - caller->sent, MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    caller->sent += (size_t)n;
    return caller->sent < caller->size;
}

// --- callers --------------------------------------------------------------------------

static void drop_caller(struct http *http, size_t index) {
    struct http_caller *caller = http->callers[index];
    close(caller->fd);
    free(caller->reply);
    free(caller);
    http->callers[index] = http->callers[--http->count];
}

// Where all places are taken, whose is a newcomer's, or how long there will be none. Before it
// is accepted its address is not known: that of the most callers counts.
static bool make_room_for_caller(struct http *http, uint64_t now, uint64_t *wait) {
    struct place places[CALLERS];
    *wait = 0;
    if (http->count < CALLERS)
        return true;
    for (size_t i = 0; i < http->count; i++)
        places[i] = http->callers[i]->place;
    size_t index = places_choose(places, http->count, places[0].origin, now, wait);
    if (index < http->count)
        drop_caller(http, index);
    return index < CALLERS;
}

static void accept_stream(struct http *http, uint64_t now) {
    struct sockaddr_storage from = {0};
    socklen_t size = sizeof from;
    int fd = accept4(http->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct http_caller *caller = fd < 0 ? NULL : mem_zeroed(1, sizeof *caller);
    if (!caller) {
        if (fd >= 0)
            close(fd);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED))
            http->rests_until = now + REST;
        return;
    }
    caller->fd = fd;
    caller->place = (struct place){http_origin((struct sockaddr *)&from), now};
    http->callers[http->count++] = caller;
}

static void serve_stream(struct http *http, const struct pollfd *polled, size_t count,
                         uint64_t now) {
    for (size_t i = count; i-- > 0;) { // from the end, since drop_caller takes the last one's place
        struct http_caller *caller = http->callers[i];
        bool stays = now < caller->place.since + DEADLINE;
        if (stays && polled[i].revents)
            stays = caller->reply ? send_reply(caller) : read_request(http, caller);
        if (!stays)
            drop_caller(http, i);
    }
}

// --- the thread -----------------------------------------------------------------------

static int next_deadline(const struct http *http, uint64_t now, uint64_t wait) {
    uint64_t least = wait > 0 ? wait : DEADLINE;
    for (size_t i = 0; i < http->count; i++) {
        uint64_t end = http->callers[i]->place.since + DEADLINE;
        uint64_t left = end > now ? end - now : 0;
        least = left < least ? left : least;
    }
    return (int)least + 1;
}

static void *serve_callers(void *context) {
    struct http *http = context;
    struct pollfd polled[CALLERS + 2];
    for (;;) {
        uint64_t now = now_ms(), wait = 0;
        size_t count = http->count;
        for (size_t i = 0; i < count; i++)
            polled[i] = (struct pollfd){http->callers[i]->fd,
                                        http->callers[i]->reply ? POLLOUT : POLLIN, 0};
        bool rests = now < http->rests_until;
        if (rests)
            wait = http->rests_until - now;
        polled[count] = (struct pollfd){http->wake, POLLIN, 0};
        polled[count + 1] = (struct pollfd){rests ? -1 : http->fd, POLLIN, 0};
        if (poll(polled, count + 2, next_deadline(http, now, wait)) < 0 && errno != EINTR)
            break;
        if (polled[count].revents)
            break;
        now = now_ms();
        bool called = polled[count + 1].revents;
        serve_stream(http, polled, count, now);
        if (called && make_room_for_caller(http, now, &wait))
            accept_stream(http, now);
        else if (called)
            http->rests_until = now + wait;
    }
    while (http->count > 0)
        drop_caller(http, http->count - 1);
    return NULL;
}

// --- beginning and end ----------------------------------------------------------------

int http_open(struct http **out, const char *address, bool insecure, const char *path,
              struct error *err) {
    struct http *http = mem_zeroed(1, sizeof *http);
    if (!http)
        return error_nomem(err);
    pthread_mutex_init(&http->lock, NULL);
    http->path = path;
    http->fd = -1;
    http->wake = eventfd(0, EFD_CLOEXEC);
    int status = http->wake < 0 ? error_errno(err, STATUS_IO, "--http %s", address)
                                : http_listen(&http->fd, "--http", address, insecure, err);
    if (!status && pthread_create(&http->thread, NULL, serve_callers, http))
        status = error_set(err, STATUS_IO, "--http %s: cannot start a thread", address);
    http->started = !status;
    if (status)
        http_close(http);
    else
        *out = http;
    return status;
}

int http_url(const struct http *http, char url[PROTO_ADDRESS_MAX], struct error *err) {
    static const char scheme[] = "http://";
    char place[PROTO_ADDRESS_MAX];
    int status = http_place(http->fd, place, err);
    if (!status)
        snprintf(url, PROTO_ADDRESS_MAX, "%s%.*s", scheme, (int)(PROTO_ADDRESS_MAX - sizeof scheme),
                 place);
    return status;
}

void http_set(struct http *http, char *text) {
    if (!text)
        return;
    pthread_mutex_lock(&http->lock);
    char *before = http->text;
    http->text = text;
    pthread_mutex_unlock(&http->lock);
    free(before);
}

static void end_thread(struct http *http) {
    const uint64_t one = 1;
    while (write(http->wake, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    pthread_join(http->thread, NULL);
}

void http_close(struct http *http) {
    if (!http)
        return;
    if (http->started)
        end_thread(http);
    if (http->fd >= 0)
        close(http->fd);
    if (http->wake >= 0)
        close(http->wake);
    pthread_mutex_destroy(&http->lock);
    free(http->text);
    free(http);
}
