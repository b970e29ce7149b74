// One encoder and one decoder for all messages. Both walk over the table of a message
// twice: first to measure or to check, then to write or to fill.
#include <assert.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "proto/cursor.h"
#include "proto/proto.h"

static_assert(sizeof(struct proto_id) == 16, "an id is copied from and to the wire as it is");
static_assert(sizeof(double) == sizeof(uint64_t), "a number of the wire is either");

static size_t kind_bytes(enum proto_kind kind) { // on the wire; of texts and lists, the count
    switch (kind) {
    case PROTO_KIND_U8:
        return 1;
    case PROTO_KIND_U16:
        return 2;
    case PROTO_KIND_U64:
    case PROTO_KIND_F64:
        return 8;
    case PROTO_KIND_ID:
        return sizeof(struct proto_id);
    case PROTO_KIND_U32:
    case PROTO_KIND_TEXT:
    case PROTO_KIND_BYTES:
    case PROTO_KIND_LIST:
        return 4;
    }
    return 0;
}

static uint64_t integer_load(enum proto_kind kind, const void *from) {
    switch (kind) {
    case PROTO_KIND_U8:
        return *(const uint8_t *)from;
    case PROTO_KIND_U16:
        return *(const uint16_t *)from;
    case PROTO_KIND_U32:
        return *(const uint32_t *)from;
    default:
        return *(const uint64_t *)from;
    }
}

static void integer_store(enum proto_kind kind, void *to, uint64_t value) {
    switch (kind) {
    case PROTO_KIND_U8:
        *(uint8_t *)to = (uint8_t)value;
        break;
    case PROTO_KIND_U16:
        *(uint16_t *)to = (uint16_t)value;
        break;
    case PROTO_KIND_U32:
        *(uint32_t *)to = (uint32_t)value;
        break;
    default:
        *(uint64_t *)to = value;
    }
}

static bool exceeds_limit(const struct proto_field *field, uint64_t value) {
    return field->limit > 0 && value > field->limit;
}

static int beyond_limit(const struct proto_field *field, uint64_t value, struct error *err) {
    return error_set(err, STATUS_DATA, "%s: %" PRIu64 " is beyond %" PRIu64, field->name, value,
                     field->limit);
}

// Encoding.

static int encode_struct(const struct proto_layout *layout, const char *from, struct writer *writer,
                         struct error *err);

static int encode_list(const struct proto_field *field, const struct proto_list *list,
                       struct writer *writer, struct error *err) {
    const struct proto_layout *record = field->record();
    int status = STATUS_OK;
    writer_number(writer, list->count, 4);
    for (uint32_t i = 0; !status && i < list->count; i++)
        status = encode_struct(record, (const char *)list->at + i * record->size, writer, err);
    return status ? error_context(err, "%s", field->name) : STATUS_OK;
}

static void encode_bytes(const void *at, uint32_t length, struct writer *writer) {
    writer_number(writer, length, 4);
    writer_bytes(writer, at, length);
}

// The number of a field that a limit holds for: its value, its length or its count.
static uint64_t limited_number(const struct proto_field *field, const void *from) {
    switch (field->kind) {
    case PROTO_KIND_TEXT:
        return ((const struct proto_text *)from)->length;
    case PROTO_KIND_BYTES:
        return ((const struct proto_bytes *)from)->length;
    case PROTO_KIND_LIST:
        return ((const struct proto_list *)from)->count;
    case PROTO_KIND_F64:
    case PROTO_KIND_ID:
        return 0;
    default:
        return integer_load(field->kind, from);
    }
}

static int encode_field(const struct proto_field *field, const void *from, struct writer *writer,
                        struct error *err) {
    const struct proto_text *text = from;
    const struct proto_bytes *bytes = from;
    uint64_t number = limited_number(field, from);
    if (exceeds_limit(field, number))
        return beyond_limit(field, number, err);
    switch (field->kind) {
    case PROTO_KIND_F64:
        memcpy(&number, from, sizeof number);
        writer_number(writer, number, sizeof number);
        return STATUS_OK;
    case PROTO_KIND_ID:
        writer_bytes(writer, from, sizeof(struct proto_id));
        return STATUS_OK;
    case PROTO_KIND_TEXT:
        encode_bytes(text->at, text->length, writer);
        return STATUS_OK;
    case PROTO_KIND_BYTES:
        encode_bytes(bytes->at, bytes->length, writer);
        return STATUS_OK;
    case PROTO_KIND_LIST:
        return encode_list(field, from, writer, err);
    default:
        writer_number(writer, number, kind_bytes(field->kind));
        return STATUS_OK;
    }
}

static int encode_struct(const struct proto_layout *layout, const char *from, struct writer *writer,
                         struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < layout->count; i++)
        status = encode_field(&layout->fields[i], from + layout->fields[i].offset, writer, err);
    return status;
}

int proto_measure(uint16_t type, const void *message, size_t *size, struct error *err) {
    const struct proto_layout *layout = proto_layout(type);
    struct writer writer = {0};
    if (!layout)
        return error_set(err, STATUS_BUG, "there is no message 0x%04x", type);
    if (encode_struct(layout, message, &writer, err))
        return error_context(err, "%s", layout->name);
    if (writer.size > PROTO_BODY_MAX)
        return error_set(err, STATUS_DATA, "%s: %zu bytes are beyond %d", layout->name, writer.size,
                         PROTO_BODY_MAX);
    *size = writer.size;
    return STATUS_OK;
}

void proto_encode(uint16_t type, const void *message, uint8_t *body) {
    struct writer writer = {.at = body};
    encode_struct(proto_layout(type), message, &writer, NULL);
}

// Decoding. Records of lists lie one list behind the other in the room.

struct decoder {
    struct cursor cursor;
    char *room;  // NULL while checking
    size_t used; // of the room, or wanted
};

static int decode_struct(const struct proto_layout *layout, struct decoder *decoder, char *to,
                         struct error *err);

#define RECORD_MEMBER(NAME, name) struct proto_##name name;
union record { // room for any
    PROTO_RECORDS(RECORD_MEMBER)
};

// The fewest bytes that a record takes on the wire.
static size_t record_least(const struct proto_layout *record) {
    size_t bytes = 0;
    for (size_t i = 0; i < record->count; i++)
        bytes += kind_bytes(record->fields[i].kind);
    return bytes;
}

static int decode_list(const struct proto_field *field, struct decoder *decoder, uint32_t count,
                       void *to, struct error *err) {
    const struct proto_layout *record = field->record();
    // Held against what is there before it is believed: then the room that it takes is
    // at most a small multiple of the body.
    if ((uint64_t)count * record_least(record) > decoder->cursor.left)
        return error_set(err, STATUS_DATA, "%s: %" PRIu32 " of them are not there", field->name,
                         count);
    char *records = decoder->room ? decoder->room + decoder->used : NULL;
    union record scratch; // of one while checking
    decoder->used += count * record->size;
    decoder->used += -decoder->used % alignof(max_align_t);
    for (uint32_t i = 0; i < count; i++)
        if (decode_struct(record, decoder, records ? records + i * record->size : (char *)&scratch,
                          err))
            return error_context(err, "%s %" PRIu32, field->name, i);
    *(struct proto_list *)to = (struct proto_list){records, records ? count : 0};
    return STATUS_OK;
}

static int decode_field(const struct proto_field *field, struct decoder *decoder, void *to,
                        struct error *err) {
    struct cursor *cursor = &decoder->cursor;
    if (field->kind == PROTO_KIND_ID) {
        const uint8_t *id = cursor_bytes(cursor, sizeof(struct proto_id));
        if (id)
            memcpy(to, id, sizeof(struct proto_id));
        return STATUS_OK;
    }
    uint64_t number = cursor_number(cursor, kind_bytes(field->kind));
    if (exceeds_limit(field, number)) // reals have none
        return beyond_limit(field, number, err);
    switch (field->kind) {
    case PROTO_KIND_F64:
        memcpy(to, &number, sizeof number);
        return STATUS_OK;
    case PROTO_KIND_TEXT:
        *(struct proto_text *)to =
            (struct proto_text){(const char *)cursor_bytes(cursor, number), (uint32_t)number};
        return STATUS_OK;
    case PROTO_KIND_BYTES:
        *(struct proto_bytes *)to =
            (struct proto_bytes){cursor_bytes(cursor, number), (uint32_t)number};
        return STATUS_OK;
    case PROTO_KIND_LIST:
        return decode_list(field, decoder, (uint32_t)number, to, err);
    default:
        integer_store(field->kind, to, number);
        return STATUS_OK;
    }
}

static int decode_struct(const struct proto_layout *layout, struct decoder *decoder, char *to,
                         struct error *err) {
    for (size_t i = 0; i < layout->count; i++) {
        const struct proto_field *field = &layout->fields[i];
        if (decode_field(field, decoder, to + field->offset, err))
            return STATUS_DATA;
        if (decoder->cursor.failed)
            return error_set(err, STATUS_DATA, "%s: the message ends before it", field->name);
    }
    return STATUS_OK;
}

static int room_make(struct proto_room *room, size_t size, struct error *err) {
    if (size <= room->size)
        return STATUS_OK;
    void *memory = realloc(room->memory, size);
    if (!memory)
        return error_nomem(err);
    room->memory = memory;
    room->size = size;
    return STATUS_OK;
}

void proto_room_free(struct proto_room *room) {
    free(room->memory);
    *room = (struct proto_room){0};
}

int proto_decode(uint16_t type, const uint8_t *body, size_t size, void *message,
                 struct proto_room *room, struct error *err) {
    const struct proto_layout *layout = proto_layout(type);
    if (!layout)
        return error_set(err, STATUS_DATA, "there is no message 0x%04x", type);
    struct decoder decoder = {.cursor = {body, size, false}};
    if (decode_struct(layout, &decoder, message, err))
        return error_context(err, "%s", layout->name);
    if (decoder.cursor.left > 0)
        return error_set(err, STATUS_DATA, "%s: %zu bytes too many", layout->name,
                         decoder.cursor.left);
    if (decoder.used == 0)
        return STATUS_OK;
    if (room_make(room, decoder.used, err))
        return err ? err->status : STATUS_IO;
    decoder = (struct decoder){.cursor = {body, size, false}, .room = room->memory};
    return decode_struct(layout, &decoder, message, err);
}
