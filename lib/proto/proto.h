// The wire in C: a struct for each message of messages.h, and one encoder and one
// decoder for all of them, driven by the same tables.
#ifndef ADAM_PROTO_PROTO_H
#define ADAM_PROTO_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/messages.h"

struct error;

// Where a member's number stands for nobody, and a place for nowhere.
#define PROTO_NOBODY UINT32_MAX
#define PROTO_NOWHERE UINT64_MAX

#define PROTO_AS_ROLE(number, NAME, name) PROTO_ROLE_##NAME = (number),
#define PROTO_AS_STATE(number, NAME, name) PROTO_STATE_##NAME = (number),
#define PROTO_AS_ORDER(number, NAME, name) PROTO_ORDER_##NAME = (number),
#define PROTO_AS_UPDATE(number, NAME, name) PROTO_UPDATE_##NAME = (number),
#define PROTO_AS_VALUE(number, NAME, name) PROTO_VALUE_##NAME = (number),
#define PROTO_AS_QUANTITY(number, NAME, name) PROTO_QUANTITY_##NAME = (number),
#define PROTO_AS_PAXOS(number, NAME, name) PROTO_PAXOS_##NAME = (number),
#define PROTO_AS_CHANGE(number, NAME, name) PROTO_CHANGE_##NAME = (number),
#define PROTO_AS_REFUSAL(number, NAME, name, text) PROTO_REFUSAL_##NAME = (number),
#define PROTO_AS_TYPE(number, NAME, name, answer, payload, text) PROTO_TYPE_##NAME = (number),

enum proto_role {
    PROTO_ROLES(PROTO_AS_ROLE) //
    PROTO_ROLES_END,
    PROTO_ROLE_LAST = PROTO_ROLES_END - 1
};
enum proto_state {
    PROTO_STATES(PROTO_AS_STATE) //
    PROTO_STATES_END,
    PROTO_STATE_LAST = PROTO_STATES_END - 1
};
enum proto_order {
    PROTO_ORDERS(PROTO_AS_ORDER) //
    PROTO_ORDERS_END,
    PROTO_ORDER_LAST = PROTO_ORDERS_END - 1
};
enum proto_update {
    PROTO_UPDATES(PROTO_AS_UPDATE) //
    PROTO_UPDATES_END,
    PROTO_UPDATE_LAST = PROTO_UPDATES_END - 1
};
enum proto_quantity {
    PROTO_QUANTITIES(PROTO_AS_QUANTITY) //
    PROTO_QUANTITIES_END,
    PROTO_QUANTITY_LAST = PROTO_QUANTITIES_END - 1
};
enum proto_value {
    PROTO_VALUES(PROTO_AS_VALUE) //
    PROTO_VALUES_END,
    PROTO_VALUE_LAST = PROTO_VALUES_END - 1
};
enum proto_paxos_step {
    PROTO_PAXOS_STEPS(PROTO_AS_PAXOS) //
    PROTO_PAXOS_END,
    PROTO_PAXOS_LAST = PROTO_PAXOS_END - 1
};
enum proto_change {
    PROTO_CHANGES(PROTO_AS_CHANGE) //
    PROTO_CHANGES_END,
    PROTO_CHANGE_LAST = PROTO_CHANGES_END - 1
};
enum proto_refusal { PROTO_REFUSAL_NONE, PROTO_REFUSALS(PROTO_AS_REFUSAL) };
enum proto_type { PROTO_TYPE_NONE, PROTO_MESSAGES(PROTO_AS_TYPE) };

struct proto_id {
    uint8_t bytes[16];
};
struct proto_text { // not NUL-terminated; may hold any bytes
    const char *at;
    uint32_t length;
};
struct proto_bytes {
    const uint8_t *at;
    uint32_t length;
};
struct proto_list { // `at` is an array of the record's structs
    const void *at;
    uint32_t count;
};

#define PROTO_C_U8 uint8_t
#define PROTO_C_U16 uint16_t
#define PROTO_C_U32 uint32_t
#define PROTO_C_U64 uint64_t
#define PROTO_C_F64 double
#define PROTO_C_ID struct proto_id
#define PROTO_C_TEXT struct proto_text
#define PROTO_C_BYTES struct proto_bytes
#define PROTO_MEMBER_FIELD(KIND, name, limit, text) PROTO_C_##KIND name;
#define PROTO_MEMBER_LIST(record, name, limit, text) struct proto_list name;

#define PROTO_RECORD_STRUCT(NAME, name)                                                            \
    struct proto_##name {                                                                          \
        PROTO_##NAME(PROTO_MEMBER_FIELD, PROTO_MEMBER_LIST)                                        \
    };
#define PROTO_MESSAGE_STRUCT(number, NAME, name, answer, payload, text)                            \
    PROTO_RECORD_STRUCT(NAME, name)
#define PROTO_MESSAGE_MEMBER(number, NAME, name, answer, payload, text) struct proto_##name name;

PROTO_RECORDS(PROTO_RECORD_STRUCT)
PROTO_MESSAGES(PROTO_MESSAGE_STRUCT)

union proto_message { // room for any
    PROTO_MESSAGES(PROTO_MESSAGE_MEMBER)
};

// The tables of messages.h, for those who look at fields one by one.
enum proto_kind {
    PROTO_KIND_U8,
    PROTO_KIND_U16,
    PROTO_KIND_U32,
    PROTO_KIND_U64,
    PROTO_KIND_F64,
    PROTO_KIND_ID,
    PROTO_KIND_TEXT,
    PROTO_KIND_BYTES,
    PROTO_KIND_LIST,
};

struct proto_layout;

struct proto_field {
    enum proto_kind kind;
    const char *name;
    size_t offset;                              // in the struct
    uint64_t limit;                             // as in the table
    const struct proto_layout *(*record)(void); // of a list
    const char *text;
};

struct proto_layout { // of a message or a record
    const char *name;
    const struct proto_field *fields;
    size_t count;
    size_t size; // of the struct
    // Of messages only:
    uint16_t type, answer;
    bool payload; // may carry one
    const char *text;
};

// NULL for a number that is no message of this version.
const struct proto_layout *proto_layout(uint16_t type);
// Message `index` of the page, from 0; NULL behind the last.
const struct proto_layout *proto_message(size_t index);

const char *proto_role_name(uint32_t role);    // "worker", or "unknown role"
const char *proto_state_name(uint32_t state);  // "waiting", or "unknown state"
const char *proto_refusal_name(uint32_t code); // "stale route", or "unknown refusal"
const char *proto_refusal_text(uint32_t code); // what the asker should know, or ""
const char *proto_message_name(uint16_t type); // "pull", or "unknown message"
// The session in whose name a request is made; false: its first field is none.
bool proto_session(uint16_t type, const void *message, uint64_t *session);
// In hexadecimal digits.
enum { PROTO_ID_TEXT = 2 * sizeof(struct proto_id) + 1 };
void proto_id_text(char text[PROTO_ID_TEXT], const struct proto_id *id);
struct proto_text proto_text(const char *text); // of a C string, which must outlive it
struct proto_list proto_list(const void *at, uint32_t count);

// "these shards are hashed into storage buckets that are distributed equally among the
//  parameter server machines" (Adam 3.3.1): the bucket of a shard, 0..count-1. Multiples
// of the golden ratio fall everywhere equally densely, so that also the few shards of a
// small model spread evenly.
uint32_t proto_bucket_of(uint32_t shard, uint32_t count);

// The header of a frame.
struct proto_frame {
    uint16_t version, type;
    uint64_t request;
    uint32_t body, payload;
};

void proto_frame_put(uint8_t bytes[PROTO_FRAME], const struct proto_frame *frame);
// STATUS_DATA when these bytes are no frame of any version: whoever sent them cannot be
// answered, nor can what follows be found.
int proto_frame_get(struct proto_frame *frame, const uint8_t bytes[PROTO_FRAME], struct error *err);

// What a receiver allows to a peer.
struct proto_limits {
    uint32_t body, payload;
};

// Why this frame must be refused before its body is read, with the detail that the
// refusal carries, or PROTO_REFUSAL_NONE. A refused frame's body and payload can be
// passed over, unless it is too large.
enum proto_refusal proto_frame_check(const struct proto_frame *frame,
                                     const struct proto_limits *limits, uint64_t *detail);

// Bytes that the body of `message` (the struct of `type`) takes. STATUS_DATA, naming the
// field, when a value is beyond its limit or the whole beyond PROTO_BODY_MAX.
int proto_measure(uint16_t type, const void *message, size_t *size, struct error *err);
// Writes what was measured.
void proto_encode(uint16_t type, const void *message, uint8_t *body);

// Where the records of a decoded message lie. One of {0} grows as needed and is used
// again and again by whoever reads a connection, so that in the end nothing is allocated.
struct proto_room {
    void *memory;
    size_t size;
};
void proto_room_free(struct proto_room *room);

// Decodes a body into the struct of `type`, wholly or not at all: every length and every
// limit is checked before it is believed, and no byte may be left over. Texts and bytes
// point into `body`, lists into `room`. STATUS_DATA names message and field.
int proto_decode(uint16_t type, const uint8_t *body, size_t size, void *message,
                 struct proto_room *room, struct error *err);

#endif
