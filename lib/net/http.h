// A page that is read over HTTP, as Prometheus does: one path, whose text is set anew from
// time to time. Plain HTTP: who may not be read by everybody listens on loopback. A request
// must be answered within five seconds of the call, and callers are bounded: where all places
// are taken the newest takes that of the oldest (net/places.h).
//
// Threads: http_set may be called by any thread; readers get the text as it is then.
#ifndef ADAM_NET_HTTP_H
#define ADAM_NET_HTTP_H

#include <stdbool.h>

#include "proto/messages.h"

struct error;

struct http;

// Serves `path` at HOST:PORT. STATUS_USAGE when that is no such thing, or is beyond this
// machine and the user did not say `insecure`; STATUS_UNAVAILABLE when it cannot be had. The
// path must outlive it.
int http_open(struct http **out, const char *address, bool insecure, const char *path,
              struct error *err);
// "http://HOST:PORT", where it is served. STATUS_UNAVAILABLE.
int http_url(const struct http *http, char url[PROTO_ADDRESS_MAX], struct error *err);
// The page from now on; takes the text over. NULL leaves it as it is.
void http_set(struct http *http, char *text);
void http_close(struct http *http);

#endif
