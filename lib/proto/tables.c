// The tables of messages.h as data.
#include <stdio.h>
#include <string.h>

#include "proto/proto.h"

// Each layout is in a function of its own, where HERE is its struct. An entry behind the
// last field lets a message have none.
#define FIELD(KIND, field, limit, text)                                                            \
    {PROTO_KIND_##KIND, #field, offsetof(HERE, field), limit, NULL, text},
#define LIST(record, field, limit, text)                                                           \
    {PROTO_KIND_LIST, #field, offsetof(HERE, field), limit, layout_##record, text},
#define LAYOUT(NAME, tag, number, reply, bulk, meaning)                                            \
    static const struct proto_layout *layout_##tag(void) {                                         \
        typedef struct proto_##tag HERE;                                                           \
        static const struct proto_field fields[] = {PROTO_##NAME(FIELD, LIST){.name = NULL}};      \
        static const struct proto_layout layout = {                                                \
            .name = #tag,                                                                          \
            .fields = fields,                                                                      \
            .count = sizeof fields / sizeof *fields - 1,                                           \
            .size = sizeof(HERE),                                                                  \
            .type = (number),                                                                      \
            .answer = (reply),                                                                     \
            .payload = (bulk),                                                                     \
            .text = meaning,                                                                       \
        };                                                                                         \
        return &layout;                                                                            \
    }
#define RECORD(NAME, tag) LAYOUT(NAME, tag, 0, 0, 0, NULL)
#define MESSAGE(number, NAME, tag, answer, payload, text)                                          \
    LAYOUT(NAME, tag, number, PROTO_TYPE_##answer, payload, text)

PROTO_RECORDS(RECORD)
PROTO_MESSAGES(MESSAGE)

#define LAYOUT_OF(number, NAME, tag, answer, payload, text) layout_##tag,
static const struct proto_layout *(*const layouts[])(void) = {PROTO_MESSAGES(LAYOUT_OF)};

const struct proto_layout *proto_message(size_t index) {
    return index < sizeof layouts / sizeof *layouts ? layouts[index]() : NULL;
}

const struct proto_layout *proto_layout(uint16_t type) {
#define CASE(number, NAME, tag, answer, payload, text)                                             \
    case number:                                                                                   \
        return layout_##tag();
    switch (type) {
        PROTO_MESSAGES(CASE)
    default:
        return NULL;
    }
}

#define NAME_OF(number, NAME, name)                                                                \
    case number:                                                                                   \
        return name;

const char *proto_role_name(uint32_t role) {
    switch (role) {
        PROTO_ROLES(NAME_OF)
    default:
        return "unknown role";
    }
}

const char *proto_state_name(uint32_t state) {
    switch (state) {
        PROTO_STATES(NAME_OF)
    default:
        return "unknown state";
    }
}

const char *proto_refusal_name(uint32_t code) {
#define REFUSAL_NAME(number, NAME, name, text) NAME_OF(number, NAME, name)
    switch (code) {
        PROTO_REFUSALS(REFUSAL_NAME)
    default:
        return "unknown refusal";
    }
}

const char *proto_refusal_text(uint32_t code) {
#define REFUSAL_TEXT(number, NAME, name, text) NAME_OF(number, NAME, text)
    switch (code) {
        PROTO_REFUSALS(REFUSAL_TEXT)
    default:
        return "";
    }
}

const char *proto_message_name(uint16_t type) {
    const struct proto_layout *layout = proto_layout(type);
    return layout ? layout->name : "unknown message";
}

bool proto_session(uint16_t type, const void *message, uint64_t *session) {
    const struct proto_layout *layout = proto_layout(type);
    if (!layout || layout->count == 0 || strcmp(layout->fields[0].name, "session") != 0)
        return false;
    memcpy(session, message, sizeof *session);
    return true;
}

void proto_id_text(char text[PROTO_ID_TEXT], const struct proto_id *id) {
    for (size_t i = 0; i < sizeof id->bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", id->bytes[i]);
}

struct proto_text proto_text(const char *text) {
    return (struct proto_text){text, text ? (uint32_t)strnlen(text, UINT32_MAX) : 0};
}

struct proto_list proto_list(const void *at, uint32_t count) {
    return (struct proto_list){at, count};
}

uint32_t proto_bucket_of(uint32_t shard, uint32_t count) {
    uint32_t place = shard * 0x9e3779b9u; // of the 2^32 parts of a circle
    return (uint32_t)((uint64_t)place * count >> 32);
}
