#include "adam-eval/serving.h"

#include <stdio.h>

#include "adam-eval/evaluation.h"
#include "answer/service.h"
#include "core/error.h"
#include "net/http_listen.h"
#include "net/ready.h"

#define SCHEME "http://"

enum {
    MAX_BODY = 32 << 20,
    PATIENCE = 30, // seconds
};

// The socket that --listen names.
static int open_socket(int *fd, const struct network *network, struct error *err) {
    const char *url = network->listen;
    if (option_is(url, "systemd"))
        return http_inherit(fd, "--listen systemd", network->insecure, err);
    if (strncmp(url, SCHEME, sizeof SCHEME - 1) != 0)
        return error_set(err, STATUS_USAGE, "--listen %s: give http://HOST:PORT, or systemd", url);
    return http_listen(fd, "--listen", url + sizeof SCHEME - 1, network->insecure, err);
}

// For scripts by the port file, for people as a note.
static int tell_place(const struct options *o, struct ready *ready, int fd, struct error *err) {
    char place[PROTO_ADDRESS_MAX], url[PROTO_ADDRESS_MAX + sizeof SCHEME];
    const char *urls[] = {url};
    int status = http_place(fd, place, err);
    if (status)
        return status;
    snprintf(url, sizeof url, SCHEME "%s", place);
    status = ready_tell(ready, urls, 1, err);
    if (!status && !o->quiet)
        talk_note(PROGRAM, "%s answers what is in a picture; Ctrl-C stops it", url);
    return status;
}

static struct service_config service_of(const struct evaluation *run) {
    const struct options *o = run->o;
    int classes = run->trained.names.count;
    return (struct service_config){
        .scoring = evaluation_scoring(run),
        .names = evaluation_names(run),
        .classes = classes,
        .top = o->top > classes ? classes
               : o->top         ? (int)o->top
                                : 1,
        .threads = (int)o->threads,
        .max_body = o->max_body < 0 ? MAX_BODY : (size_t)o->max_body,
        .patience = o->patience < 0 ? PATIENCE : o->patience,
        .shared = option_is(o->network.listen, "systemd"),
        .stop = stop_requested,
    };
}

static int serve_model(struct evaluation *run, struct ready *ready, struct error *err) {
    struct service *service = NULL;
    int fd, status = open_socket(&fd, &run->o->network, err);
    const struct service_config config = service_of(run);
    if (!status)
        status = service_open(&service, &config, fd, err);
    if (!status)
        status = tell_place(run->o, ready, fd, err);
    if (!status)
        status = service_run(service, err);
    // A socket of systemd is a successor's by now, and so is the file.
    if (service && !option_is(run->o->network.listen, "systemd"))
        ready_forget(ready);
    service_close(service);
    return status;
}

int serve_until_stopped(const struct options *o, struct error *err) {
    struct evaluation run = {.o = o, .list = -1};
    struct ready ready = {.port_file = o->network.port_file, .fd = NETWORK_NO_FD};
    stop_on_signals(true);
    int status = evaluation_open_model(&run, err);
    if (!status)
        status = evaluation_open_ops(&run, err);
    if (!status)
        status = serve_model(&run, &ready, err);
    evaluation_close(&run);
    return status;
}
