// Bytes as messages of protocol buffers. Their reader calls itself for a message within a message,
// without end: how deep they go is looked at first.
#include <limits.h>
#include <onnx.pb-c.h>
#include <stdio.h>

#include "core/error.h"
#include "onnx/import_internal.h"

// A graph within an attribute of a node within a graph takes three.
enum { DEPTH_MOST = 32, WIRE_VARINT = 0, WIRE_EIGHT = 1, WIRE_BYTES = 2, WIRE_FOUR = 5 };

struct bytes {
    const uint8_t *at, *end;
};

static bool take_varint(struct bytes *bytes, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && bytes->at < bytes->end; shift += 7) {
        uint8_t byte = *bytes->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool take_bytes(struct bytes *bytes, uint64_t size, struct bytes *taken) {
    if (size > (uint64_t)(bytes->end - bytes->at))
        return false;
    *taken = (struct bytes){bytes->at, bytes->at + size};
    bytes->at += size;
    return true;
}

// What a field holds; of a message its bytes, else nothing.
static bool take_field(struct bytes *bytes, unsigned wire, struct bytes *inner) {
    uint64_t number;
    *inner = (struct bytes){bytes->at, bytes->at};
    switch (wire) {
    case WIRE_VARINT:
        return take_varint(bytes, &number);
    case WIRE_EIGHT:
        return take_bytes(bytes, 8, inner);
    case WIRE_FOUR:
        return take_bytes(bytes, 4, inner);
    case WIRE_BYTES:
        return take_varint(bytes, &number) && take_bytes(bytes, number, inner);
    default:
        return false;
    }
}

// Whether the message is whole, and the messages within go no deeper than that.
static bool is_shallow(const ProtobufCMessageDescriptor *message, struct bytes bytes, int depth) {
    while (bytes.at < bytes.end) {
        uint64_t tag;
        struct bytes inner;
        if (!take_varint(&bytes, &tag) || tag >> 3 > UINT_MAX ||
            !take_field(&bytes, (unsigned)tag & 7, &inner))
            return false;
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(message, (unsigned)(tag >> 3));
        if (field && field->type == PROTOBUF_C_TYPE_MESSAGE && (tag & 7) == WIRE_BYTES &&
            (depth == 0 || !is_shallow(field->descriptor, inner, depth - 1)))
            return false;
    }
    return true;
}

int import_unpack(Onnx__ModelProto **model, const char *name, const void *bytes, size_t size,
                  struct error *err) {
    const uint8_t *at = bytes;
    *model = NULL;
    if (size > INT32_MAX)
        return error_set(err, STATUS_DATA, "%s has %zu bytes, of which an ONNX file holds 2 GiB",
                         name, size);
    if (size > 0 &&
        is_shallow(&onnx__model_proto__descriptor, (struct bytes){at, at + size}, DEPTH_MOST))
        *model = onnx__model_proto__unpack(NULL, size, at);
    if (*model && (*model)->graph)
        return STATUS_OK;
    if (*model)
        onnx__model_proto__free_unpacked(*model, NULL);
    *model = NULL;
    return error_set(err, STATUS_DATA, "%s is no ONNX file, or damaged", name);
}
