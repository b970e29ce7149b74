// Who talks to callers: a thread with a daemon of HTTP, which hears the callers that it has
// accepted, and predicts for them itself what takes no longer than to wake another.
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer/service_internal.h"
#include "core/clock.h"
#include "core/error.h"

enum { HEAD_MOST = 32768 }; // bytes of memory for a request's line and headers
// Seconds for which silent callers are still heard once the service ends, so that who sends a
// request on an open connection right then has its answer.
#define FAREWELL 1.0

// --- who may come ---------------------------------------------------------------------

// Of so many callers, more than there are talkers, those that are this one's.
static size_t share_of(const struct talker *talker, size_t callers) {
    return callers / (size_t)talker->service->talker_count;
}

size_t talker_places(const struct talker *talker) {
    return share_of(talker, CALLERS);
}

// The talker that has the fewest callers.
static struct talker *find_idlest(struct service *service) {
    struct talker *idlest = &service->talkers[0];
    for (int i = 1; i < service->talker_count; i++)
        if (atomic_load(&service->talkers[i].count) < atomic_load(&idlest->count))
            idlest = &service->talkers[i];
    return idlest;
}

// Whether the next caller is this one's: nobody has fewer, and there is room. At the end nobody
// makes room.
static bool may_accept(const struct talker *talker) {
    size_t count = atomic_load(&talker->count);
    if (talker->rests)
        return false;
    if (atomic_load(&talker->service->ends))
        return talker->closes && count < talker_places(talker);
    return count < share_of(talker, CALLERS + CALLERS_BESIDE) &&
           count <= atomic_load(&find_idlest(talker->service)->count);
}

// Silent callers of all talkers make room: who has the fewest accepts, and may have none.
static void lack_descriptors(struct talker *talker) {
    struct service *service = talker->service;
    talker->rests = true;
    for (int i = 0; i < service->talker_count; i++)
        atomic_store(&service->talkers[i].lacks, true);
}

enum accepted {
    ACCEPTED,
    NONE_IN_LINE,
    FAILED, // there may be
};

static enum accepted accept_caller(struct talker *talker, int fd) {
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    int caller = accept4(fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (caller < 0 && errno == EAGAIN)
        return NONE_IN_LINE;
    if (caller >= 0)
        MHD_add_connection(talker->daemon, caller, (struct sockaddr *)&from, size);
    else if (errno != ECONNABORTED && errno != EINTR)
        lack_descriptors(talker);
    return caller >= 0 ? ACCEPTED : FAILED;
}

static void accept_callers(struct talker *talker) {
    enum accepted last = ACCEPTED;
    while (last == ACCEPTED && may_accept(talker))
        last = accept_caller(talker, talker->service->fd);
    struct talker *next = find_idlest(talker->service);
    if (last == ACCEPTED && next != talker)
        talker_wake(next);
}

// --- turns ----------------------------------------------------------------------------

void talker_wake(struct talker *talker) {
    const uint64_t one = 1;
    while (write(talker->wake, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

// Milliseconds until there is something to do by itself.
static int next_turn(const struct talker *talker) {
    MHD_UNSIGNED_LONG_LONG wait;
    if (talker->works || atomic_load(&talker->resumed))
        return 0;
    return MHD_get_timeout(talker->daemon, &wait) == MHD_YES && wait < TURN ? (int)wait : TURN;
}

// Waits for news, and answers what can be answered.
static int take_turn(struct talker *talker, struct error *err) {
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(talker->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd fds[] = {{.fd = info->epoll_fd, .events = POLLIN},
                           {.fd = talker->wake, .events = POLLIN},
                           {.fd = may_accept(talker) ? talker->service->fd : -1, .events = POLLIN}};
    uint64_t woken;
    if (poll(fds, 3, next_turn(talker)) < 0 && errno != EINTR)
        return error_errno(err, STATUS_IO, "cannot wait for requests");
    if (fds[1].revents && read(talker->wake, &woken, sizeof woken) < 0 && errno != EAGAIN &&
        errno != EINTR)
        return error_errno(err, STATUS_IO, "cannot wait for answers");
    atomic_store(&talker->resumed, false); // what was is seen to by what follows
    if (fds[2].revents)
        accept_callers(talker);
    if (MHD_run(talker->daemon) != MHD_YES)
        return error_set(err, STATUS_IO, "cannot serve HTTP");
    talker->works = talker->batcher && batcher_work(talker->batcher);
    return STATUS_OK;
}

// Nobody accepts callers any more, but those in line, as there are places for them. A socket that
// others have, too, goes on there, and so does the line.
static void close_line(struct talker *talker) {
    struct service *service = talker->service;
    enum accepted last = ACCEPTED;
    while (last == ACCEPTED && may_accept(talker))
        last = accept_caller(talker, service->fd);
    if (last != NONE_IN_LINE && !service->config.shared && clock_seconds() < talker->closed_by)
        return;
    talker->closes = false;
    close(service->fd);
    service->fd = -1;
}

// No talker waits for callers any more when the last one has heard of the end.
static void hear_end(struct talker *talker) {
    struct service *service = talker->service;
    if (!atomic_exchange(&service->ends, true))
        for (int i = 0; i < service->talker_count; i++)
            talker_wake(&service->talkers[i]);
    talker->closes = atomic_fetch_sub(&service->listening, 1) == 1;
    talker->closed_by = clock_seconds() + service->config.patience;
}

void talker_run(struct talker *talker) {
    const struct service *service = talker->service;
    double patience = service->config.patience;
    int status = STATUS_OK;
    while (!status && !atomic_load(&service->ends) && !service->config.stop()) {
        status = take_turn(talker, &talker->err);
        callers_sweep(talker, patience);
    }
    hear_end(talker);
    while (!status && (talker->closes || atomic_load(&talker->count) > 0)) {
        if (talker->closes)
            close_line(talker);
        status = take_turn(talker, &talker->err);
        callers_sweep(talker, patience < FAREWELL ? patience : FAREWELL);
    }
    talker->status = status;
}

// --- to begin and end -----------------------------------------------------------------

int talker_open(struct talker *talker, struct service *service, bool predicts, struct error *err) {
    talker->service = service;
    talker->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (talker->wake < 0)
        return error_errno(err, STATUS_IO, "cannot start to serve HTTP");
    if (predicts) {
        int status = batcher_open(&talker->batcher, service->predictor, 0, NULL, NULL, err);
        if (status)
            return status;
    }
    talker->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0,
                         NULL, NULL, request_handle, talker, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)(CALLERS + CALLERS_BESIDE), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                         (size_t)HEAD_MOST, MHD_OPTION_NOTIFY_CONNECTION, callers_notify, talker,
                         MHD_OPTION_NOTIFY_COMPLETED, request_completed, talker, MHD_OPTION_END);
    return talker->daemon ? STATUS_OK : error_set(err, STATUS_IO, "cannot start to serve HTTP");
}

void talker_close(struct talker *talker) {
    batcher_close(talker->batcher);
    if (talker->daemon)
        MHD_stop_daemon(talker->daemon);
    if (talker->wake >= 0)
        close(talker->wake);
}
