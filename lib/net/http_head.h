// What the head of a request over HTTP says of where it goes (RFC 9112, 3.2).
#ifndef ADAM_NET_HTTP_HEAD_H
#define ADAM_NET_HTTP_HEAD_H

#include <stdbool.h>

// The path in a request's target, with what follows it; the target ends at a blank, at the end of a
// line or at that of the text. Proxies may send an absolute one, "http://HOST/PATH", whose host
// then counts. NULL: it is absolute, and names no host.
const char *http_head_path(const char *target);
// Whether a request of HTTP/1.1, or of an earlier version, may name the host in so many lines: one
// whose host is not clear could be meant for another server.
bool http_head_may_have(bool earlier, int hosts);
// The same for a whole head. A blank before the colon of its lines is none of HTTP.
bool http_head_is_clear(const char *head);

#endif
