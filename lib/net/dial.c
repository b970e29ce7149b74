#include <string.h>

#include "core/error.h"
#include "net/address.h"
#include "net/link_internal.h"
#include "net/local.h"
#include "net/secrets_internal.h"

// Milliseconds after which one that is turned away without a word dials again, for half of
// the time that it has.
enum { AGAIN = 50 };

static int dial_failed(const char *address, int code, struct error *err) {
    char host[PROTO_ADDRESS_MAX];
    if (code == NNG_EADDRINVAL && address_host(address, host))
        return error_set(err, STATUS_UNAVAILABLE,
                         "%s: the host name '%s' is not known here (no address found for it)",
                         address, host);
    return error_set(err, STATUS_UNAVAILABLE, "%s: %s", address, nng_strerror(code));
}

static int dial_stream(nng_stream **stream, nng_stream_dialer *dialer, const char *address,
                       uint32_t timeout, struct error *err) {
    nng_aio *aio;
    int code = nng_aio_alloc(&aio, NULL, NULL);
    if (code)
        return dial_failed(address, code, err);
    nng_aio_set_timeout(aio, (nng_duration)timeout);
    nng_stream_dialer_dial(dialer, aio);
    nng_aio_wait(aio);
    code = nng_aio_result(aio);
    *stream = code ? NULL : nng_aio_get_output(aio, 0);
    nng_aio_free(aio);
    return code ? dial_failed(address, code, err) : STATUS_OK;
}

static int connect_to(nng_stream **stream, const char *address, const struct link_options *options,
                      uint32_t timeout, struct error *err) {
    nng_stream_dialer *dialer;
    enum address_kind kind;
    char url[LOCAL_URL];
    address_kind(address, &kind, NULL);
    local_url(url, address, kind);
    int code = nng_stream_dialer_alloc(&dialer, url);
    if (code)
        return dial_failed(address, code, err);
    if (kind == ADDRESS_TLS)
        code = nng_stream_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, options->keys->client);
    int status =
        code ? dial_failed(address, code, err) : dial_stream(stream, dialer, address, timeout, err);
    nng_stream_dialer_close(dialer);
    nng_stream_dialer_free(dialer);
    if (status || local_is_allowed(*stream, kind))
        return status;
    nng_stream_free(*stream);
    return error_set(err, STATUS_UNAVAILABLE, "%s: another user's process listens there", address);
}

// Texts of an answer lie in what was received, which is gone by the time of the return.
static int say_hello(struct link *link, const struct proto_hello *hello,
                     struct proto_welcome *welcome, struct error *err) {
    union proto_message answer = {0};
    struct link_request request = {.type = PROTO_TYPE_HELLO, .message = hello};
    int status = link_call(link, &request, &answer, err);
    if (!status && welcome) {
        *welcome = answer.welcome;
        welcome->name = (struct proto_text){0};
    }
    return status;
}

// One connection and its hello, in what is left of the time. *turned_away: the other side hung
// up without a word, as one does that has more callers than places.
static int dial_once(struct link **link, const char *address, const struct link_options *options,
                     const struct proto_hello *hello, uint64_t until, struct proto_welcome *welcome,
                     bool *turned_away, struct error *err) {
    nng_stream *stream = NULL;
    uint64_t now = nng_clock();
    uint32_t left = until > now ? (uint32_t)(until - now) : 1;
    *turned_away = false;
    int status = connect_to(&stream, address, options, left, err);
    if (!status)
        status = link_open(link, stream, address, options, NULL, left, err);
    if (status)
        return status;
    link_start(*link);
    status = say_hello(*link, hello, welcome, err);
    if (status) {
        *turned_away = link_was_turned_away(*link);
        link_close(*link);
        *link = NULL;
    }
    return status;
}

int link_dial(struct link **link, const char *address, const struct link_options *options,
              const struct proto_hello *hello, uint32_t timeout, struct proto_welcome *welcome,
              struct error *err) {
    *link = NULL;
    int status = address_check(address, options->keys != NULL, options->insecure, err);
    if (status)
        return status;
    uint64_t begun = nng_clock(), until = begun + timeout, last = begun + timeout / 2;
    for (bool turned_away;;) {
        struct error why = {0};
        status = dial_once(link, address, options, hello, until, welcome, &turned_away, &why);
        if (status && turned_away && nng_clock() + AGAIN < last) {
            nng_msleep(AGAIN);
            continue;
        }
        if (status && err)
            *err = why;
        return status;
    }
}
