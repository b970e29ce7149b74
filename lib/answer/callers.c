// Who is connected, in which state, and for how long.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "answer/service_internal.h"
#include "core/clock.h"
#include "core/mem.h"
#include "net/http_listen.h"

enum { READING = 1000 }; // milliseconds for a refused caller to read why

static uint64_t now_ms(void) {
    return (uint64_t)(clock_seconds() * 1000);
}

void caller_turns(struct caller *caller, enum caller_state state) {
    caller->state = state;
    caller->place.since = now_ms();
}

void caller_refuse(struct talker *talker, struct caller *caller, int code, const char *why) {
    char head[256];
    char *text = error_text(why);
    const char *body = text ? text : error_memory;
    code = text ? code : MHD_HTTP_SERVICE_UNAVAILABLE;
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                     code, MHD_get_reason_phrase_for((unsigned)code), strlen(body));
    send(caller->fd, head, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE);
    send(caller->fd, body, strlen(body), MSG_NOSIGNAL | MSG_DONTWAIT);
    free(text);
    shutdown(caller->fd, SHUT_WR);
    figures_request(&talker->service->figures, code);
    caller_turns(caller, CALLER_REFUSED);
}

// One of those who have not asked anything yet goes; false: there is none that may.
static bool displace_one(struct talker *talker, uint64_t now) {
    struct place places[CALLERS + CALLERS_BESIDE];
    struct caller *whose[CALLERS + CALLERS_BESIDE];
    size_t count = 0;
    uint64_t wait;
    for (size_t i = 0; i < talker->count; i++) {
        struct caller *caller = talker->callers[i];
        if (caller->state == CALLER_SILENT || caller->state == CALLER_SENDS) {
            places[count] = caller->place;
            whose[count++] = caller;
        }
    }
    // Of no newcomer in particular: that of the most callers counts.
    size_t index = count ? places_choose(places, count, places[0].origin, now, &wait) : 0;
    if (index == count)
        return false;
    shutdown(whose[index]->fd, SHUT_RDWR);
    caller_turns(whose[index], CALLER_REFUSED);
    return true;
}

// As many go as there are beyond those who may stay, and have not been told to go. False: nobody.
static bool make_room(struct talker *talker, size_t places, uint64_t now) {
    bool any = false;
    size_t stay = 0;
    for (size_t i = 0; i < talker->count; i++)
        stay += talker->callers[i]->state != CALLER_REFUSED;
    while (stay > places && displace_one(talker, now)) {
        any = true;
        stay--;
    }
    return any;
}

// Where there are no descriptors one in four goes; nobody is accepted before they have left.
static void spare_descriptors(struct talker *talker, uint64_t now) {
    talker->rests = false;
    if (atomic_exchange(&talker->lacks, false))
        talker->rests = make_room(talker, talker->count - (talker->count + 3) / 4, now);
}

static void caller_comes(struct talker *talker, struct MHD_Connection *connection, void **context) {
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *from =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    bool room = talker->count < sizeof talker->callers / sizeof *talker->callers;
    struct caller *caller = room ? mem_zeroed(1, sizeof *caller) : NULL;
    *context = caller;
    if (!caller) { // it has no place, and its requests are not heard
        shutdown(fd->connect_fd, SHUT_RDWR);
        return;
    }
    caller->fd = fd->connect_fd;
    caller->place.origin = http_origin(from->client_addr);
    caller_turns(caller, CALLER_SILENT);
    talker->callers[talker->count++] = caller;
}

static void caller_goes(struct talker *talker, struct caller *caller) {
    for (size_t i = 0; i < talker->count; i++)
        if (talker->callers[i] == caller)
            talker->callers[i] = talker->callers[--talker->count];
    free(caller);
}

void callers_notify(void *self, struct MHD_Connection *connection, void **socket_context,
                    enum MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        caller_comes(self, connection, socket_context);
    else if (*socket_context)
        caller_goes(self, *socket_context);
}

// Whether a caller from whom something is to come has gone. The daemon's edge-triggered epoll may
// miss an end that arrives together with bytes before it.
static bool caller_went(const struct caller *caller) {
    char byte;
    return (caller->state == CALLER_SILENT || caller->state == CALLER_SENDS) &&
           recv(caller->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// Whether bytes have come since the caller is silent: of a line or headers that do not end. The
// system counts by ticks of its clock.
static bool has_begun(const struct caller *caller, uint64_t now) {
    enum { TICKS = 20 }; // milliseconds
    struct tcp_info about = {0};
    socklen_t size = sizeof about;
    return getsockopt(caller->fd, IPPROTO_TCP, TCP_INFO, &about, &size) == 0 &&
           about.tcpi_last_data_recv + TICKS < now - caller->place.since;
}

static void end_overdue(struct talker *talker, struct caller *caller, uint64_t now) {
    if (caller->state == CALLER_SENDS || (caller->state == CALLER_SILENT && has_begun(caller, now)))
        caller_refuse(talker, caller, MHD_HTTP_REQUEST_TIMEOUT,
                      "the request did not arrive in time");
    else
        shutdown(caller->fd, SHUT_RDWR);
}

void callers_sweep(struct talker *talker, double silence) {
    uint64_t now = now_ms();
    if (now - talker->swept < TURN)
        return;
    talker->swept = now;
    for (size_t i = 0; i < talker->count; i++) {
        struct caller *caller = talker->callers[i];
        double most = caller->state == CALLER_REFUSED  ? READING
                      : caller->state == CALLER_SILENT ? 1000 * silence
                                                       : 1000 * talker->service->config.patience;
        if (caller_went(caller))
            shutdown(caller->fd, SHUT_RDWR);
        else if (caller->state != CALLER_WAITS && (double)(now - caller->place.since) >= most)
            end_overdue(talker, caller, now);
    }
    make_room(talker, talker_places(talker), now);
    spare_descriptors(talker, now);
}
