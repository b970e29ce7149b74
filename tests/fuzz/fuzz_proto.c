// The wire: a frame, then the decoder of its message. What is decoded must be encoded to
// the same bytes, so no two bodies mean the same.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "proto/proto.h"

static void read_body(uint16_t type, const uint8_t *body, size_t size) {
    union proto_message message;
    struct proto_room room = {0};
    struct error err = {0};
    size_t again;
    if (proto_decode(type, body, size, &message, &room, &err)) {
        if (!*err.text)
            abort();
    } else {
        if (proto_measure(type, &message, &again, &err) || again != size)
            abort();
        uint8_t *copy = malloc(size + 1);
        if (copy)
            proto_encode(type, &message, copy);
        if (copy && memcmp(copy, body, size) != 0)
            abort();
        free(copy);
    }
    proto_room_free(&room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct proto_limits limits = {PROTO_BODY_MAX, PROTO_PAYLOAD_MAX};
    struct proto_frame frame;
    struct error err = {0};
    uint64_t detail;
    if (size < PROTO_FRAME || proto_frame_get(&frame, data, &err))
        return 0;
    uint8_t header[PROTO_FRAME];
    proto_frame_put(header, &frame);
    if (memcmp(header, data, PROTO_FRAME) != 0)
        abort();
    if (!proto_frame_check(&frame, &limits, &detail) && size - PROTO_FRAME >= frame.body)
        read_body(frame.type, data + PROTO_FRAME, frame.body);
    else
        read_body(frame.type, data + PROTO_FRAME, size - PROTO_FRAME);
    return 0;
}
