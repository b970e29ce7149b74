#include <assert.h>
#include <string.h>

#include "core/error.h"
#include "proto/cursor.h"
#include "proto/proto.h"

static const char magic[4] = "adam";

static_assert(PROTO_FRAME == sizeof magic + 2 + 2 + 8 + 4 + 4, "fields of a frame's header");

void proto_frame_put(uint8_t bytes[PROTO_FRAME], const struct proto_frame *frame) {
    struct writer writer = {.at = bytes};
    writer_bytes(&writer, magic, sizeof magic);
    writer_number(&writer, frame->version, 2);
    writer_number(&writer, frame->type, 2);
    writer_number(&writer, frame->request, 8);
    writer_number(&writer, frame->body, 4);
    writer_number(&writer, frame->payload, 4);
}

int proto_frame_get(struct proto_frame *frame, const uint8_t bytes[PROTO_FRAME],
                    struct error *err) {
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return error_set(err, STATUS_DATA, "this is not adam's protocol");
    struct cursor cursor = {bytes + sizeof magic, PROTO_FRAME - sizeof magic, false};
    frame->version = (uint16_t)cursor_number(&cursor, 2);
    frame->type = (uint16_t)cursor_number(&cursor, 2);
    frame->request = cursor_number(&cursor, 8);
    frame->body = (uint32_t)cursor_number(&cursor, 4);
    frame->payload = (uint32_t)cursor_number(&cursor, 4);
    return STATUS_OK;
}

static enum proto_refusal refuse(enum proto_refusal code, uint64_t because, uint64_t *detail) {
    *detail = because;
    return code;
}

enum proto_refusal proto_frame_check(const struct proto_frame *frame,
                                     const struct proto_limits *limits, uint64_t *detail) {
    const struct proto_layout *layout = proto_layout(frame->type);
    if (frame->body > limits->body)
        return refuse(PROTO_REFUSAL_TOO_LARGE, limits->body, detail);
    if (frame->payload > limits->payload)
        return refuse(PROTO_REFUSAL_TOO_LARGE, limits->payload, detail);
    if (frame->version != PROTO_VERSION)
        return refuse(PROTO_REFUSAL_VERSION, PROTO_VERSION, detail);
    if (!layout)
        return refuse(PROTO_REFUSAL_MESSAGE, frame->type, detail);
    if (frame->payload > 0 && !layout->payload)
        return refuse(PROTO_REFUSAL_MALFORMED, 0, detail);
    return refuse(PROTO_REFUSAL_NONE, 0, detail);
}
