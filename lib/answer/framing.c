// Where a request ends. What a proxy before us may read in another way than we do is refused: it
// would take a part of one caller's body for the next request (RFC 9112, 5.1, 6.1 and 6.3).
#include <string.h>

#include "answer/service_internal.h"

struct framing {
    int lengths, encodings;
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
    if (!strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
        framing->encodings++;
        framing->chunked = value && !strcasecmp(value, "chunked");
    }
    return MHD_YES;
}

int framing_check(struct MHD_Connection *connection, const char **why) {
    struct framing framing = {0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, look_at_header, &framing);
    if (framing.blank) {
        *why = "a blank before the colon of a header";
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
