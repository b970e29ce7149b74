#include "net/http.h"

#include <nng/nng.h>
#include <nng/supplemental/http/http.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "net/address.h"
#include "proto/proto.h"

struct http {
    nng_http_server *server;
    bool started;
    pthread_mutex_t lock;
    char *text;
};

// In a thread of nng. The response is a copy: the page may change while it is sent.
static void answer(nng_aio *aio) {
    nng_http_handler *handler = nng_aio_get_input(aio, 1);
    struct http *http = nng_http_handler_get_data(handler);
    nng_http_res *response;
    int failed = nng_http_res_alloc(&response);
    if (failed) {
        nng_aio_finish(aio, failed);
        return;
    }
    pthread_mutex_lock(&http->lock);
    const char *text = http->text ? http->text : "";
    failed = nng_http_res_copy_data(response, text, strlen(text));
    pthread_mutex_unlock(&http->lock);
    if (!failed)
        failed = nng_http_res_set_header(response, "Content-Type",
                                         "text/plain; version=0.0.4; charset=utf-8");
    if (failed) {
        nng_http_res_free(response);
        nng_aio_finish(aio, failed);
        return;
    }
    nng_aio_set_output(aio, 0, response);
    nng_aio_finish(aio, 0);
}

static int add_page(struct http *http, const char *path) {
    nng_http_handler *handler;
    int failed = nng_http_handler_alloc(&handler, path, answer);
    if (failed)
        return failed;
    failed = nng_http_handler_set_data(handler, http, NULL);
    if (!failed)
        failed = nng_http_server_add_handler(http->server, handler);
    if (failed)
        nng_http_handler_free(handler);
    return failed;
}

static int start(struct http *http, const char *address, const char *path) {
    char text[PROTO_ADDRESS_MAX + 16];
    nng_url *url;
    snprintf(text, sizeof text, "http://%s", address);
    int failed = nng_url_parse(&url, text);
    if (failed)
        return failed;
    failed = nng_http_server_hold(&http->server, url);
    nng_url_free(url);
    if (!failed)
        failed = add_page(http, path);
    if (!failed)
        failed = nng_http_server_start(http->server);
    http->started = !failed;
    return failed;
}

static int check(const char *address, bool insecure, struct error *err) {
    char tcp[PROTO_ADDRESS_MAX + 16];
    if (snprintf(tcp, sizeof tcp, "tcp://%s", address) >= (int)sizeof tcp)
        return error_set(err, STATUS_USAGE, "--http: the address is too long");
    int status = address_check(tcp, false, insecure, err);
    return status ? error_context(err, "--http %s", address) : STATUS_OK;
}

int http_open(struct http **out, const char *address, bool insecure, const char *path,
              struct error *err) {
    int status = check(address, insecure, err);
    if (status)
        return status;
    struct http *http = mem_zeroed(1, sizeof *http);
    if (!http)
        return error_nomem(err);
    pthread_mutex_init(&http->lock, NULL);
    int failed = start(http, address, path);
    if (failed) {
        http_close(http);
        return error_set(err, STATUS_UNAVAILABLE, "--http %s: %s", address, nng_strerror(failed));
    }
    *out = http;
    return STATUS_OK;
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

void http_close(struct http *http) {
    if (!http)
        return;
    if (http->started)
        nng_http_server_stop(http->server);
    if (http->server)
        nng_http_server_release(http->server);
    pthread_mutex_destroy(&http->lock);
    free(http->text);
    free(http);
}
