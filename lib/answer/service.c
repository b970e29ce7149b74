#include "answer/service.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer/service_internal.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"

enum { HEAD_MOST = 32768 }; // bytes of memory for a request's line and headers
// Seconds for which silent callers are still heard once the service ends, so that who sends a
// request on an open connection right then has its answer.
#define FAREWELL 1.0
// Multiply-adds of a picture that several threads share: of fewer, to wake them takes its time.
enum { SHARED_WORK = 1 << 26 };

static int start_daemon(struct service *service, struct error *err) {
    service->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, request_handle, service,
        MHD_OPTION_LISTEN_SOCKET, service->fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(CALLERS + CALLERS_BESIDE), MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_MOST,
        MHD_OPTION_NOTIFY_CONNECTION, callers_notify, service, MHD_OPTION_NOTIFY_COMPLETED,
        request_completed, service, MHD_OPTION_END);
    return service->daemon ? STATUS_OK : error_set(err, STATUS_IO, "cannot start to serve HTTP");
}

// Threads that share a picture which comes alone.
static int sharing_threads(const struct service_config *config) {
    const struct model *model = config->scoring.model;
    uint64_t work = 0;
    for (int i = 0; i < model->layer_count; i++)
        work += model->layers[i].useful;
    return work < SHARED_WORK ? 1 : config->threads;
}

// Connections that were suspended go on.
static void wake_up(void *self) {
    const struct service *service = self;
    const uint64_t one = 1;
    while (write(service->wake, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

int service_open(struct service **out, const struct service_config *config, int fd,
                 struct error *err) {
    struct service *service = mem_zeroed(1, sizeof *service);
    if (!service) {
        close(fd);
        return error_nomem(err);
    }
    service->config = *config;
    service->fd = fd;
    service->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int status = service->wake < 0 ? error_errno(err, STATUS_IO, "cannot start to serve HTTP")
                                   : predictor_open(&service->predictor, &config->scoring,
                                                    sharing_threads(config), err);
    if (!status)
        status = batcher_open(&service->batcher, service->predictor, config->threads, wake_up,
                              service, err);
    if (!status)
        status = start_daemon(service, err);
    if (status) {
        service_close(service);
        return status;
    }
    int samples = SCORES_MOST / config->classes;
    service->limits.values = predictor_values(service->predictor);
    service->limits.samples = samples < 1 ? 1 : samples < SAMPLES_MOST ? samples : SAMPLES_MOST;
    *out = service;
    return STATUS_OK;
}

void service_close(struct service *service) {
    if (!service)
        return;
    batcher_close(service->batcher); // no connection is suspended any more
    if (service->daemon)
        MHD_stop_daemon(service->daemon);
    else if (service->fd >= 0)
        close(service->fd);
    if (service->wake >= 0)
        close(service->wake);
    predictor_close(service->predictor);
    free(service);
}

// Waits for news, and answers what can be answered.
static int serve_turn(struct service *service, struct error *err) {
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(service->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    MHD_UNSIGNED_LONG_LONG wait;
    struct pollfd fds[] = {{.fd = info->epoll_fd, .events = POLLIN},
                           {.fd = service->wake, .events = POLLIN}};
    uint64_t woken;
    int most = TURN;
    if (MHD_get_timeout(service->daemon, &wait) == MHD_YES && wait < TURN)
        most = (int)wait;
    if (poll(fds, 2, most) < 0 && errno != EINTR)
        return error_errno(err, STATUS_IO, "cannot wait for requests");
    if (read(service->wake, &woken, sizeof woken) < 0 && errno != EAGAIN && errno != EINTR)
        return error_errno(err, STATUS_IO, "cannot wait for answers");
    if (MHD_run(service->daemon) != MHD_YES)
        return error_set(err, STATUS_IO, "cannot serve HTTP");
    return STATUS_OK;
}

// No more callers; those in line are still taken. A socket that others have, too, goes on there.
static void stop_listening(struct service *service) {
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    int fd = MHD_quiesce_daemon(service->daemon);
    service->ends = true;
    service->fd = -1;
    for (int caller; fd >= 0 && (caller = accept4(fd, (struct sockaddr *)&from, &size,
                                                  SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;
         size = sizeof from)
        MHD_add_connection(service->daemon, caller, (struct sockaddr *)&from, size);
    if (fd >= 0)
        close(fd);
}

int service_run(struct service *service, struct error *err) {
    double patience = service->config.patience;
    int status = STATUS_OK;
    while (!status && !service->config.stop()) {
        status = serve_turn(service, err);
        callers_sweep(service, patience);
    }
    if (!status)
        stop_listening(service);
    while (!status && service->count > 0) {
        status = serve_turn(service, err);
        callers_sweep(service, patience < FAREWELL ? patience : FAREWELL);
    }
    return status;
}
