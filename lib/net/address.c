#include "net/address.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "proto/messages.h"

static const struct {
    const char *prefix;
    enum address_kind kind;
} schemes[] = {
    {"inproc://", ADDRESS_INPROC},
    {"ipc://", ADDRESS_IPC},
    {"tcp://", ADDRESS_TCP},
    {"tls+tcp://", ADDRESS_TLS},
};

// What follows the scheme, or NULL.
static const char *address_rest(const char *address, enum address_kind *kind) {
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t length = strlen(schemes[i].prefix);
        if (strncmp(address, schemes[i].prefix, length) == 0) {
            *kind = schemes[i].kind;
            return address + length;
        }
    }
    return NULL;
}

// Copies the host of HOST:PORT, without the brackets of [::1]. False when it is none.
static bool split_host(const char *rest, char *host, size_t room) {
    const char *colon = strrchr(rest, ':');
    int64_t port;
    if (!colon || colon == rest || !text_integer(colon + 1, strlen(colon + 1), &port) || port < 0 ||
        port > 65535)
        return false;
    size_t length = (size_t)(colon - rest);
    if (*rest == '[' && rest[length - 1] == ']') {
        rest++;
        length -= 2;
    } else if (memchr(rest, ':', length)) {
        return false;
    }
    if (length == 0 || length >= room)
        return false;
    memcpy(host, rest, length);
    host[length] = 0;
    return true;
}

bool address_host(const char *address, char host[PROTO_ADDRESS_MAX]) {
    enum address_kind kind;
    const char *rest = address_rest(address, &kind);
    return rest && !address_is_socket(kind) && split_host(rest, host, PROTO_ADDRESS_MAX);
}

bool address_is_socket(enum address_kind kind) {
    return kind == ADDRESS_INPROC || kind == ADDRESS_IPC;
}

int address_kind(const char *address, enum address_kind *kind, struct error *err) {
    char host[PROTO_ADDRESS_MAX];
    const char *rest = address_rest(address, kind);
    if (!rest)
        return error_set(err, STATUS_USAGE,
                         "'%s' is no address: tcp://HOST:PORT, tls+tcp://HOST:PORT, ipc://PATH or "
                         "inproc://NAME",
                         address);
    if (strlen(address) >= PROTO_ADDRESS_MAX)
        return error_set(err, STATUS_USAGE, "'%s' is too long for an address", address);
    bool socket = address_is_socket(*kind);
    if (socket ? !*rest : !split_host(rest, host, sizeof host))
        return error_set(err, STATUS_USAGE, "'%s' has no %s", address,
                         socket ? "name" : "HOST:PORT (an IPv6 host in brackets)");
    return STATUS_OK;
}

bool address_is_local(const char *address) {
    enum address_kind kind;
    struct in_addr v4;
    struct in6_addr v6;
    char host[PROTO_ADDRESS_MAX];
    if (address_rest(address, &kind) && address_is_socket(kind))
        return true;
    if (!address_host(address, host))
        return false;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcmp(host, "localhost") == 0;
}

bool address_is_any(const char *host) {
    struct in_addr v4;
    struct in6_addr v6;
    char bare[INET6_ADDRSTRLEN];
    size_t brackets = *host == '[', length = strlen(host);
    if (length < 2 * brackets || length >= sizeof bare)
        return false;
    snprintf(bare, sizeof bare, "%.*s", (int)(length - 2 * brackets), host + brackets);
    if (inet_pton(AF_INET, bare, &v4) == 1)
        return v4.s_addr == htonl(INADDR_ANY);
    if (inet_pton(AF_INET6, bare, &v6) == 1)
        return IN6_IS_ADDR_UNSPECIFIED(&v6);
    return strcmp(bare, "*") == 0;
}

int address_check(const char *address, bool keys, bool insecure, struct error *err) {
    enum address_kind kind;
    if (address_kind(address, &kind, err))
        return err ? err->status : STATUS_USAGE;
    if (kind == ADDRESS_TLS && !keys)
        return error_set(err, STATUS_USAGE, "'%s' needs keys: see adam-ctl(1), keys, and --keys",
                         address);
    if (kind == ADDRESS_TCP && !insecure && !address_is_local(address))
        return error_set(err, STATUS_USAGE,
                         "'%s' can be reached from other machines: use tls+tcp:// with --keys, or "
                         "say --insecure",
                         address);
    return STATUS_OK;
}
