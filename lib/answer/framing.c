// Where a request ends, and whose it is. What a proxy before us may read in another way than we do
// is refused: it would take a part of one caller's body for the next request (RFC 9112, 5.1, 6.1
// and 6.3), or what is meant for another server for ours (3.2).
#include <string.h>

#include "answer/service_internal.h"
#include "net/http_head.h"

struct framing {
    int lengths, encodings, hosts;
    bool blank; // before the colon of a header
    bool chunked;
};

static enum MHD_Result look_at_header(void *self, enum MHD_ValueKind kind, const char *name,
                                      const char *value) {
    struct framing *framing = self;
    size_t length = strlen(name);
    (void)kind;
    framing->blank |= length > 0 && strchr(" \t", name[length - 1]);
    framing->lengths += !strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH);
    framing->hosts += !strcasecmp(name, MHD_HTTP_HEADER_HOST);
    if (!strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
        framing->encodings++;
        framing->chunked = value && !strcasecmp(value, "chunked");
    }
    return MHD_YES;
}

int framing_check(struct MHD_Connection *connection, const char *url, const char *version,
                  const char **why) {
    struct framing framing = {0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, look_at_header, &framing);
    if (framing.blank) {
        *why = "a blank before the colon of a header";
        return MHD_HTTP_BAD_REQUEST;
    }
    if (!http_head_path(url) ||
        !http_head_may_have(!strcmp(version, MHD_HTTP_VERSION_1_0), framing.hosts)) {
        *why = "name the host once";
        return MHD_HTTP_BAD_REQUEST;
    }
    if (framing.lengths + framing.encodings > 1) {
        *why = "more than one Content-Length or Transfer-Encoding";
        return MHD_HTTP_BAD_REQUEST;
    }
    if (framing.encodings > 0 && !framing.chunked) {
        *why = "no Transfer-Encoding but chunked is known";
        return MHD_HTTP_NOT_IMPLEMENTED;
    }
    return MHD_HTTP_OK;
}
