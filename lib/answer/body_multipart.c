// multipart/form-data (RFC 7578, RFC 2046): parts between lines of "--BOUNDARY". The body is
// there as a whole, so that each part is used in its place.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "answer/body_internal.h"
#include "core/error.h"

enum { BOUNDARY_MOST = 70, HEAD_MOST = 8192 };

// Where the parser is, and what it looks for: "\r\n--BOUNDARY".
struct cursor {
    const char *at, *end;
    char mark[4 + BOUNDARY_MOST + 1];
    size_t mark_length;
};

// The parameter of the type: a token, or in quotes.
static int read_boundary(struct cursor *c, const char *type, struct error *err) {
    const char *name = strcasestr(type, "boundary=");
    const char *from = name ? name + sizeof "boundary=" - 1 : "";
    bool quoted = *from == '"';
    from += quoted;
    size_t length = strcspn(from, quoted ? "\"" : "; \t");
    if (length == 0 || length > BOUNDARY_MOST)
        return error_set(err, STATUS_DATA,
                         "multipart/form-data without a boundary of 1 to %d bytes", BOUNDARY_MOST);
    c->mark_length = (size_t)snprintf(c->mark, sizeof c->mark, "\r\n--%.*s", (int)length, from);
    return STATUS_OK;
}

static bool begins(const struct cursor *c, const char *with, size_t length) {
    return (size_t)(c->end - c->at) >= length && memcmp(c->at, with, length) == 0;
}

// The next mark from here on, or NULL; goes behind it.
static const char *pass_mark(struct cursor *c) {
    const char *mark = memmem(c->at, (size_t)(c->end - c->at), c->mark, c->mark_length);
    if (mark)
        c->at = mark + c->mark_length;
    return mark;
}

// Behind a mark: whether a part follows, as its line has no "--".
static int pass_line(struct cursor *c, bool *more, struct error *err) {
    *more = !begins(c, "--", 2);
    while (*more && c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
        c->at++;
    if (*more && !begins(c, "\r\n", 2))
        return error_set(err, STATUS_DATA, "the line of a boundary does not end");
    return STATUS_OK;
}

// Headers end with an empty line; the cursor is at the end of the line before the first.
static int pass_head(struct cursor *c, struct error *err) {
    size_t left = (size_t)(c->end - c->at);
    const char *end = memmem(c->at, left < HEAD_MOST ? left : HEAD_MOST, "\r\n\r\n", 4);
    if (!end)
        return error_set(err, STATUS_DATA, "the headers of a part do not end within %d bytes",
                         HEAD_MOST);
    c->at = end + 4;
    return STATUS_OK;
}

static int read_part(struct body *body, struct cursor *c, const struct body_limits *limits,
                     struct error *err) {
    int status = pass_head(c, err);
    if (status)
        return status;
    // An empty content shares its line's end with the head.
    c->at -= 2;
    const char *from = c->at + 2, *to = pass_mark(c);
    if (!to)
        return error_set(err, STATUS_DATA, "it ends within a part");
    struct body_sample *sample = body_add(body, limits, err);
    if (!sample)
        return err->status;
    sample->bytes = from;
    sample->size = to > from ? (size_t)(to - from) : 0;
    return STATUS_OK;
}

int body_read_multipart(struct body *body, const char *type, const char *data, size_t size,
                        const struct body_limits *limits, struct error *err) {
    struct cursor c = {.at = data, .end = data + size};
    bool more = false;
    int status = read_boundary(&c, type, err);
    if (status)
        return status;
    if (begins(&c, c.mark + 2, c.mark_length - 2))
        c.at += c.mark_length - 2;
    else if (!pass_mark(&c))
        return error_set(err, STATUS_DATA, "its boundary is not in it");
    status = pass_line(&c, &more, err);
    while (!status && more) {
        status = read_part(body, &c, limits, err);
        if (!status)
            status = pass_line(&c, &more, err);
    }
    return status;
}
