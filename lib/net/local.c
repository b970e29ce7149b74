#include "net/local.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void local_url(char url[LOCAL_URL], const char *address, enum address_kind kind) {
    if (kind == ADDRESS_INPROC)
        snprintf(url, LOCAL_URL, "abstract://adam-%ld-%s", (long)getpid(),
                 address + strlen("inproc://"));
    else
        snprintf(url, LOCAL_URL, "%s", address);
}

static bool peer_is(nng_stream *stream, const char *option, uint64_t wanted) {
    uint64_t found;
    return nng_stream_get_uint64(stream, option, &found) == 0 && found == wanted;
}

bool local_is_allowed(nng_stream *stream, enum address_kind kind) {
    if (!address_is_socket(kind))
        return true;
    return peer_is(stream, NNG_OPT_IPC_PEER_UID, geteuid()) &&
           (kind == ADDRESS_IPC || peer_is(stream, NNG_OPT_IPC_PEER_PID, (uint64_t)getpid()));
}
