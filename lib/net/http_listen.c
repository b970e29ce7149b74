#include "net/http_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"
#include "core/random.h"
#include "core/text.h"
#include "net/address.h"

enum {
    BACKLOG = 1024,
    FIRST_PASSED = 3, // SD_LISTEN_FDS_START
};

static int check_http_address(const char *option, const char *address, bool insecure,
                              struct error *err) {
    char tcp[PROTO_ADDRESS_MAX + 16];
    if (snprintf(tcp, sizeof tcp, "tcp://%s", address) >= (int)sizeof tcp)
        return error_set(err, STATUS_USAGE, "%s: the address is too long", option);
    if (address_check(tcp, false, true, err))
        return error_context(err, "%s %s", option, address);
    if (!insecure && !address_is_local(tcp)) // and there is no TLS
        return error_set(err, STATUS_USAGE,
                         "%s %s can be reached from other machines: say --insecure", option,
                         address);
    return STATUS_OK;
}

static int listen_error(const char *option, const char *address, const char *why,
                        struct error *err) {
    return error_set(err, STATUS_UNAVAILABLE, "%s %s: %s", option, address, why);
}

static int resolve_address(struct addrinfo **found, const char *option, const char *address,
                           struct error *err) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    const char *colon = strrchr(address, ':');
    char host[PROTO_ADDRESS_MAX];
    size_t length = colon ? (size_t)(colon - address) : 0;
    bool brackets = length >= 2 && address[0] == '[' && address[length - 1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(length - (brackets ? 2 : 0)), address + brackets);
    bool all = !*host || !strcmp(host, "*");
    int failed = getaddrinfo(all ? NULL : host, colon ? colon + 1 : "", &hints, found);
    return failed ? listen_error(option, address, gai_strerror(failed), err) : STATUS_OK;
}

int http_listen(int *fd, const char *option, const char *address, bool insecure,
                struct error *err) {
    struct addrinfo *at;
    *fd = -1;
    int one = 1, status = check_http_address(option, address, insecure, err);
    if (!status)
        status = resolve_address(&at, option, address, err);
    if (status)
        return status;
    *fd = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0 || setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(*fd, at->ai_addr, at->ai_addrlen) || listen(*fd, BACKLOG))
        status = listen_error(option, address, strerror(errno), err);
    freeaddrinfo(at);
    if (status && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

// Whether the variable of the environment is that number.
static bool variable_is(const char *name, int64_t wanted) {
    const char *text = getenv(name);
    int64_t number;
    return text && text_integer(text, strlen(text), &number) && number == wanted;
}

int http_place(int fd, char place[PROTO_ADDRESS_MAX], struct error *err) {
    struct sockaddr_storage own = {0};
    socklen_t size = sizeof own;
    char host[64], port[8];
    if (getsockname(fd, (struct sockaddr *)&own, &size) ||
        getnameinfo((struct sockaddr *)&own, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV))
        return error_set(err, STATUS_UNAVAILABLE, "the socket has no address");
    bool six = own.ss_family == AF_INET6;
    snprintf(place, PROTO_ADDRESS_MAX, "%s%s%s:%s", six ? "[" : "", host, six ? "]" : "", port);
    return STATUS_OK;
}

int http_inherit(int *fd, const char *option, bool insecure, struct error *err) {
    int listens = 0, domain = 0;
    socklen_t size = sizeof listens;
    char place[PROTO_ADDRESS_MAX];
    *fd = -1;
    if (!variable_is("LISTEN_PID", getpid()) || !variable_is("LISTEN_FDS", 1))
        return error_set(err, STATUS_USAGE,
                         "%s: this process was passed no socket, or more than one", option);
    if (getsockopt(FIRST_PASSED, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) || !listens ||
        getsockopt(FIRST_PASSED, SOL_SOCKET, SO_DOMAIN, &domain, &size) ||
        (domain != AF_INET && domain != AF_INET6))
        return error_set(err, STATUS_USAGE, "%s: what was passed is no TCP socket that listens",
                         option);
    int status = http_place(FIRST_PASSED, place, err);
    if (!status)
        status = check_http_address(option, place, insecure, err);
    if (!status &&
        (fcntl(FIRST_PASSED, F_SETFL, O_NONBLOCK) || fcntl(FIRST_PASSED, F_SETFD, FD_CLOEXEC)))
        status = error_errno(err, STATUS_UNAVAILABLE, "%s", option);
    *fd = status ? -1 : FIRST_PASSED;
    return status;
}

uint64_t http_origin(const struct sockaddr *from) {
    const struct sockaddr_in *four = (const void *)from;
    const struct sockaddr_in6 *six = (const void *)from;
    return from->sa_family == AF_INET6 ? hash_bytes(&six->sin6_addr, sizeof six->sin6_addr)
                                       : hash_bytes(&four->sin_addr, sizeof four->sin_addr);
}
