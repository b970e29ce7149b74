// The wire: golden bytes of every message, and everything that a peer may get wrong.
#include <stdlib.h>

#include "../helper/heap.h"
#include "../helper/proto_golden.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "proto/kept.h"
#include "proto/samples.h"

enum { GOLDEN_COUNT = sizeof golden_messages / sizeof *golden_messages };
enum { BODY_ROOM = 4096 };

// The bytes that a hexadecimal text stands for, in memory of exactly their size, so that
// a sanitizer sees a read behind them. The caller frees.
static uint8_t *bytes_of(const char *hex, size_t *size) {
    *size = strlen(hex) / 2;
    uint8_t *bytes = malloc(*size ? *size : 1);
    if (!bytes)
        abort();
    for (size_t i = 0; i < *size; i++) {
        unsigned byte;
        sscanf(hex + 2 * i, "%2x", &byte);
        bytes[i] = (uint8_t)byte;
    }
    return bytes;
}

static const struct golden *golden_of(uint16_t type) {
    for (size_t i = 0; i < GOLDEN_COUNT; i++)
        if (golden_messages[i].type == type)
            return &golden_messages[i];
    return NULL;
}

// Encodes into `body`; 0 when it cannot be.
static size_t encoded(uint16_t type, const void *message, uint8_t body[BODY_ROOM]) {
    struct error err = {0};
    size_t size = 0;
    if (proto_measure(type, message, &size, &err) || size > BODY_ROOM)
        return 0;
    proto_encode(type, message, body);
    return size;
}

static void check_golden(struct tap *tap, const struct golden *golden) {
    union proto_message message;
    struct proto_room room = {0};
    struct error err = {0};
    uint8_t body[BODY_ROOM];
    const char *name = proto_message_name(golden->type);
    size_t size;
    uint8_t *wanted = bytes_of(golden->hex, &size);
    memset(&message, 0xa5, sizeof message);
    if (encoded(golden->type, golden->message, body) != size || memcmp(body, wanted, size) != 0)
        FAIL(tap, "%s is encoded otherwise", name);
    if (proto_decode(golden->type, wanted, size, &message, &room, &err))
        FAIL(tap, "%s is not decoded: %s", name, err.text);
    else if (encoded(golden->type, &message, body) != size || memcmp(body, wanted, size) != 0)
        FAIL(tap, "%s is decoded otherwise", name);
    proto_room_free(&room);
    free(wanted);
}

// Decodes into memory of the struct's size; whether what is behind it stays.
static bool stays_within(const struct golden *golden) {
    static const uint8_t behind[8] = {0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5};
    struct {
        union proto_message message;
        uint8_t more[sizeof behind];
    } to;
    struct proto_room room = {0};
    size_t size, wanted = proto_layout(golden->type)->size;
    uint8_t *body = bytes_of(golden->hex, &size);
    memset(&to, 0xa5, sizeof to);
    int status = proto_decode(golden->type, body, size, &to, &room, NULL);
    proto_room_free(&room);
    free(body);
    return !status && !memcmp((const char *)&to + wanted, behind, sizeof behind);
}

static void test_golden(struct tap *tap) {
    TEST(tap, "every message has its golden bytes, written and read", {
        for (size_t i = 0; proto_message(i); i++) {
            const struct golden *golden = golden_of(proto_message(i)->type);
            if (golden)
                check_golden(tap, golden);
            else
                FAIL(tap, "no golden bytes of %s", proto_message(i)->name);
        }
    });
    TEST(tap, "a message that is read takes no more than its struct", {
        for (size_t i = 0; i < GOLDEN_COUNT; i++)
            if (!stays_within(&golden_messages[i]))
                FAIL(tap, "%s is read beyond it", proto_message_name(golden_messages[i].type));
    });
    TEST(tap, "records of two lists lie where the fields say", {
        struct proto_routes routes;
        struct proto_room room = {0};
        size_t size;
        uint8_t *body = bytes_of(golden_of(PROTO_TYPE_ROUTES)->hex, &size);
        CHECK_INT(tap, proto_decode(PROTO_TYPE_ROUTES, body, size, &routes, &room, NULL), 0);
        const struct proto_server *server = routes.servers.at;
        const struct proto_bucket *bucket = routes.buckets.at;
        CHECK_INT(tap, routes.servers.count, 2);
        CHECK_INT(tap, server[1].member, 2);
        CHECK_INT(tap, server[0].replication.length, 9);
        CHECK(tap, memcmp(server[0].replication.at, "tcp://b:2", 9) == 0);
        CHECK_INT(tap, bucket[0].third, PROTO_NOBODY);
        CHECK_INT(tap, bucket[1].primary, 2);
        proto_room_free(&room);
        free(body);
    });
}

static int decode_status(uint16_t type, const uint8_t *body, size_t size, struct error *err) {
    union proto_message message;
    struct proto_room room = {0};
    int status = proto_decode(type, body, size, &message, &room, err);
    proto_room_free(&room);
    return status;
}

static void check_lengths(struct tap *tap, const struct golden *golden) {
    struct error err = {0};
    size_t size;
    uint8_t *body = bytes_of(golden->hex, &size);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *part = malloc(cut ? cut : 1);
        if (!part)
            abort();
        memcpy(part, body, cut);
        if (decode_status(golden->type, part, cut, &err) != STATUS_DATA)
            FAIL(tap, "%s passes when cut to %zu of %zu bytes", proto_message_name(golden->type),
                 cut, size);
        else if (strstr(err.text, "too many"))
            FAIL(tap, "%s cut to %zu bytes has too many", proto_message_name(golden->type), cut);
        free(part);
    }
    uint8_t *more = calloc(size + 1, 1);
    if (!more)
        abort();
    memcpy(more, body, size);
    CHECK_INT(tap, decode_status(golden->type, more, size + 1, &err), STATUS_DATA);
    free(more);
    free(body);
}

static void test_damage(struct tap *tap) {
    struct error err = {0};
    TEST(tap, "a message cut anywhere, or with a byte more, is refused", {
        for (size_t i = 0; i < GOLDEN_COUNT; i++)
            check_lengths(tap, &golden_messages[i]);
    });
    TEST(tap, "a count that lies is refused before anything is allocated for it", {
        const uint8_t lies[] = {0xff, 0x0f, 0, 0, 1, 2, 3, 4};
        heap_fail_after(0);
        int status = decode_status(PROTO_TYPE_VERSIONS, lies, sizeof lies, &err);
        heap_fail_after(-1);
        CHECK_INT(tap, status, STATUS_DATA);
        CHECK_TEXT(tap, err.text, "versions: pieces: 4095 of them are not there");
    });
    TEST(tap, "so is one of which all but the last byte is there", {
        enum { PIECE_BYTES = 28, ALL = 4 + 2 * PIECE_BYTES };
        uint8_t body[ALL] = {2};
        CHECK_INT(tap, decode_status(PROTO_TYPE_VERSIONS, body, ALL, &err), STATUS_OK);
        CHECK_INT(tap, decode_status(PROTO_TYPE_VERSIONS, body, ALL - 1, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "versions: pieces: 2 of them are not there");
    });
    TEST(tap, "a number beyond its limit is refused by name", {
        uint8_t body[BODY_ROOM];
        size_t size = encoded(PROTO_TYPE_STOP, &golden_stop, body);
        body[0] = 2;
        CHECK_INT(tap, decode_status(PROTO_TYPE_STOP, body, size, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "stop: save: 2 is beyond 1");
    });
    TEST(tap, "a fault within a list names the record", {
        uint8_t body[BODY_ROOM];
        size_t size = encoded(PROTO_TYPE_PULL, &golden_pull, body);
        body[22 + 28 + 11] = 1; // the highest byte of the second piece's count
        CHECK_INT(tap, decode_status(PROTO_TYPE_PULL, body, size, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "pull: pieces 1: count: 16778240 is beyond 262144");
    });
    TEST(tap, "a number that is no message is refused", {
        CHECK_INT(tap, decode_status(0x0600, (const uint8_t *)"", 0, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "there is no message 0x0600");
    });
}

static void test_limits(struct tap *tap) {
    struct error err = {0};
    size_t size = 0;
    TEST(tap, "what is beyond a limit is not sent", {
        struct proto_hello hello = golden_hello;
        hello.name.length = PROTO_NAME_MAX + 1;
        CHECK_INT(tap, proto_measure(PROTO_TYPE_HELLO, &hello, &size, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "hello: name: 65 is beyond 64");
    });
    TEST(tap, "nor what is beyond the limit of a body altogether", {
        struct proto_member member = {0};
        struct proto_member *members = calloc(2048, sizeof member);
        char *text = calloc(PROTO_ADDRESS_MAX, 1);
        if (!members || !text)
            abort();
        for (int i = 0; i < 2048; i++) {
            members[i].address = (struct proto_text){text, PROTO_ADDRESS_MAX};
            members[i].waits_for = members[i].address;
        }
        struct proto_status status = {.members = proto_list(members, 2048)};
        CHECK_INT(tap, proto_measure(PROTO_TYPE_STATUS, &status, &size, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "status: 1400872 bytes are beyond 1048576");
        free(text);
        free(members);
    });
    TEST(tap, "out of memory is reported, and the room stays whole", {
        union proto_message message;
        struct proto_room room = {0};
        uint8_t *body = bytes_of(golden_of(PROTO_TYPE_ROUTES)->hex, &size);
        heap_fail_after(0);
        int status = proto_decode(PROTO_TYPE_ROUTES, body, size, &message, &room, &err);
        heap_fail_after(-1);
        CHECK_INT(tap, status, HEAP_FAILS ? STATUS_IO : STATUS_OK);
        CHECK(tap, !HEAP_FAILS || message.routes.servers.count == 0);
        CHECK_INT(tap, proto_decode(PROTO_TYPE_ROUTES, body, size, &message, &room, &err), 0);
        long live = heap_live();
        CHECK_INT(tap, proto_decode(PROTO_TYPE_ROUTES, body, size, &message, &room, &err), 0);
        CHECK_INT(tap, heap_live(), live);
        heap_fail_after(0); // it is large enough
        CHECK_INT(tap, proto_decode(PROTO_TYPE_ROUTES, body, size, &message, &room, NULL), 0);
        heap_fail_after(-1);
        proto_room_free(&room);
        CHECK(tap, !room.memory && room.size == 0);
        heap_fail_after(0);
        status = proto_decode(PROTO_TYPE_ROUTES, body, size, &message, &room, NULL);
        heap_fail_after(-1);
        CHECK_INT(tap, status, HEAP_FAILS ? STATUS_IO : STATUS_OK);
        proto_room_free(&room);
        free(body);
    });
    TEST(tap, "the shortest texts are sent", {
        struct proto_hello hello = golden_hello;
        union proto_message message;
        uint8_t body[256];
        hello.name = proto_text("a");
        CHECK_INT(tap, proto_measure(PROTO_TYPE_HELLO, &hello, &size, &err), STATUS_OK);
        proto_encode(PROTO_TYPE_HELLO, &hello, body);
        CHECK_INT(tap, proto_decode(PROTO_TYPE_HELLO, body, size, &message, NULL, &err), 0);
        CHECK_INT(tap, message.hello.name.length, 1);
        CHECK(tap, message.hello.name.at[0] == 'a');
        hello.name = proto_text(NULL);
        CHECK_INT(tap, hello.name.length, 0);
        CHECK_INT(tap, proto_measure(PROTO_TYPE_HELLO, &hello, &size, &err), STATUS_OK);
        proto_encode(PROTO_TYPE_HELLO, &hello, body);
        CHECK_INT(tap, proto_decode(PROTO_TYPE_HELLO, body, size, &message, NULL, &err), 0);
        CHECK_INT(tap, message.hello.name.length, 0);
    });
}

static const struct proto_limits friendly = {PROTO_BODY_MAX, PROTO_PAYLOAD_MAX};

static enum proto_refusal frame_refusal(struct proto_frame frame, struct proto_limits limits,
                                        uint64_t *detail) {
    return proto_frame_check(&frame, &limits, detail);
}

static void test_frames(struct tap *tap) {
    static const uint8_t golden[PROTO_FRAME] = {
        'a',  'd',  'a',  'm',  13,   0,    2, 3, 8, 7, 6, 5, 4, 3, 2, 1, //
        0x18, 0x17, 0x16, 0x15, 0x28, 0x27, 0, 0,
    };
    const struct proto_frame frame = {PROTO_VERSION, PROTO_TYPE_PUSH, 0x0102030405060708,
                                      0x15161718, 0x2728};
    uint8_t bytes[PROTO_FRAME];
    struct proto_frame got;
    struct error err = {0};
    uint64_t detail;
    TEST(tap, "the header of a frame has its golden bytes", {
        uint8_t more[PROTO_FRAME + 1] = {[PROTO_FRAME] = 0xa5};
        proto_frame_put(more, &frame);
        CHECK(tap, memcmp(more, golden, sizeof golden) == 0);
        CHECK_INT(tap, more[PROTO_FRAME], 0xa5);
        CHECK_INT(tap, proto_frame_get(&got, golden, &err), 0);
        CHECK_INT(tap, got.version, frame.version);
        CHECK_INT(tap, got.type, frame.type);
        CHECK_INT(tap, got.request, frame.request);
        CHECK_INT(tap, got.body, frame.body);
        CHECK_INT(tap, got.payload, frame.payload);
    });
    TEST(tap, "what does not begin as a frame is none", {
        memcpy(bytes, "GET / HTTP/1.1\r\nHost: a\r\n", sizeof bytes);
        CHECK_INT(tap, proto_frame_get(&got, bytes, &err), STATUS_DATA);
    });
    TEST(tap, "unknown versions and messages are told apart, and can be answered", {
        struct proto_frame other = {PROTO_VERSION + 1, 0x0101, 9, 10, 20};
        CHECK_INT(tap, frame_refusal(other, friendly, &detail), PROTO_REFUSAL_VERSION);
        CHECK_INT(tap, detail, PROTO_VERSION);
        other = (struct proto_frame){PROTO_VERSION, 0x0777, 9, 10, 20};
        CHECK_INT(tap, frame_refusal(other, friendly, &detail), PROTO_REFUSAL_MESSAGE);
        CHECK_INT(tap, detail, 0x0777);
    });
    TEST(tap, "lengths are held against what the peer may send, whatever the version", {
        struct proto_frame large = {9, PROTO_TYPE_PUSH, 1, 4097, 0};
        const struct proto_limits strange = {PROTO_STRANGER_MAX, 0};
        CHECK_INT(tap, frame_refusal(large, strange, &detail), PROTO_REFUSAL_TOO_LARGE);
        CHECK_INT(tap, detail, 4096);
        large = (struct proto_frame){PROTO_VERSION, PROTO_TYPE_PUSH, 1, 1, PROTO_PAYLOAD_MAX + 1u};
        CHECK_INT(tap, frame_refusal(large, friendly, &detail), PROTO_REFUSAL_TOO_LARGE);
        CHECK_INT(tap, detail, PROTO_PAYLOAD_MAX);
        large = (struct proto_frame){PROTO_VERSION, PROTO_TYPE_PUSH, 1, UINT32_MAX, UINT32_MAX};
        CHECK_INT(tap, frame_refusal(large, friendly, &detail), PROTO_REFUSAL_TOO_LARGE);
    });
    TEST(tap, "only messages that carry one may have a payload", {
        struct proto_frame pull = {PROTO_VERSION, PROTO_TYPE_PULL, 1, 100, 4};
        CHECK_INT(tap, frame_refusal(pull, friendly, &detail), PROTO_REFUSAL_MALFORMED);
        CHECK_INT(tap, detail, 0);
        pull.payload = 1;
        CHECK_INT(tap, frame_refusal(pull, friendly, &detail), PROTO_REFUSAL_MALFORMED);
        pull.payload = 0;
        detail = 7;
        CHECK_INT(tap, frame_refusal(pull, friendly, &detail), PROTO_REFUSAL_NONE);
        CHECK_INT(tap, detail, 0);
        struct proto_frame push = {PROTO_VERSION, PROTO_TYPE_PUSH, 1, PROTO_BODY_MAX,
                                   PROTO_PAYLOAD_MAX}; // as large as may be
        CHECK_INT(tap, frame_refusal(push, friendly, &detail), PROTO_REFUSAL_NONE);
    });
}

static void test_samples(struct tap *tap) {
    TEST(tap, "the samples of a batch have their golden bytes, whole and in part", {
        static const uint8_t golden[] = {
            1, 0, 0, 0,  0,   0,   0,   0,   2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, // keys
            4, 0, 0, 0,  255, 255, 255, 255, 6, 0, 0, 0, // labels
            7, 8, 9, 10, 11,  12,                        // values
        };
        uint64_t payload[(sizeof golden + 7) / 8] = {0};
        CHECK_INT(tap, proto_samples_bytes(3, 0, 2), sizeof golden);
        const struct proto_samples all = proto_samples_in(payload, 3, 0, 2);
        for (uint32_t i = 0; i < 3; i++) {
            all.keys[i] = i + 1;
            all.labels[i] = i == 1 ? -1 : (int32_t)i + 4;
            memcpy(proto_sample_values(&all, i), golden + 36 + 2 * i, 2);
        }
        CHECK_INT(tap, memcmp(payload, golden, sizeof golden), 0);
        const struct proto_samples part = proto_samples_part(&all, 1, 2);
        CHECK_INT(tap, part.count, 2);
        CHECK_INT(tap, part.keys[1], 3);
        CHECK_INT(tap, part.labels[0], -1);
        CHECK_INT(tap, *(uint8_t *)proto_sample_values(&part, 1), 11);
    });
}

static void test_targets(struct tap *tap) {
    TEST(tap, "targets lie behind the labels, whole and in part", {
        static const uint8_t golden[] = {
            1,   0,   0,   0,   0,   0,   0,   0,   2, 0, 0, 0,    0, 0, 0,   0,    // keys
            255, 255, 255, 255, 255, 255, 255, 255,                                 // labels
            0,   0,   128, 63,  0,   0,   0,   0,   0, 0, 0, 0xbf, 0, 0, 160, 0x40, // targets
            7,   8,   9,   10,                                                      // values
        };
        uint64_t payload[(sizeof golden + 7) / 8] = {0};
        CHECK_INT(tap, proto_samples_bytes(2, 2, 2), sizeof golden);
        memcpy(payload, golden, sizeof golden);
        const struct proto_samples all = proto_samples_in(payload, 2, 2, 2);
        const struct proto_samples last = proto_samples_part(&all, 1, 1);
        CHECK_NEAR(tap, all.targets[0], 1, 0);
        CHECK_NEAR(tap, last.targets[0], -0.5, 0);
        CHECK_NEAR(tap, last.targets[1], 5, 0);
        CHECK_INT(tap, last.labels[0], -1);
        CHECK_INT(tap, *(uint8_t *)proto_sample_values(&last, 0), 9);
    });
}

static void check_layout(struct tap *tap, const struct proto_layout *layout) {
    const struct proto_layout *answer = proto_layout(layout->answer);
    CHECK(tap, proto_layout(layout->type) == layout);
    CHECK(tap, layout->size <= sizeof(union proto_message));
    if (layout->type & PROTO_ANSWER)
        CHECK_INT(tap, layout->answer, 0);
    else if (layout->type != PROTO_TYPE_PAXOS)
        CHECK(tap, answer && answer->type & PROTO_ANSWER);
    int group = layout->type >> 8 & 0x7f;
    CHECK(tap, group >= 1 && group <= 7);
}

#define ONE(number, NAME, tag, answer, payload, text) +1
enum { MESSAGES = PROTO_MESSAGES(ONE) };

static void test_table(struct tap *tap) {
    TEST(tap, "numbers are used once, in their groups, and requests name their answers", {
        for (size_t i = 0; proto_message(i); i++) {
            check_layout(tap, proto_message(i));
            for (size_t j = 0; j < i; j++)
                CHECK(tap, proto_message(i)->type != proto_message(j)->type);
        }
        CHECK(tap, proto_message(MESSAGES - 1) && !proto_message(MESSAGES));
        CHECK(tap, !proto_message(MESSAGES + 1));
    });
    TEST(tap, "names are for people", {
        CHECK_TEXT(tap, proto_message_name(PROTO_TYPE_PUSH_FACTORS), "push_factors");
        CHECK_TEXT(tap, proto_message_name(0), "unknown message");
        CHECK_TEXT(tap, proto_refusal_name(PROTO_REFUSAL_NOT_FINITE), "not finite");
        CHECK_TEXT(tap, proto_refusal_name(999), "unknown refusal");
        CHECK_TEXT(tap, proto_role_name(PROTO_ROLE_WORKER), "worker");
        CHECK_TEXT(tap, proto_role_name(PROTO_ROLE_LAST + 1), "unknown role");
        CHECK_TEXT(tap, proto_state_name(PROTO_STATE_WAITING), "waiting");
        CHECK_TEXT(tap, proto_state_name(999), "unknown state");
        CHECK_TEXT(tap, proto_refusal_text(999), "");
        CHECK(tap, proto_refusal_text(PROTO_REFUSAL_BUSY)[0]);
        struct proto_id id;
        char text[PROTO_ID_TEXT];
        for (size_t i = 0; i < sizeof id.bytes; i++)
            id.bytes[i] = (uint8_t)(17 * i);
        proto_id_text(text, &id);
        CHECK_TEXT(tap, text, "00112233445566778899aabbccddeeff");
    });
    TEST(tap, "the session of a message is found where there is one", {
        const struct proto_push push = {.session = 0x0102030405060708};
        const struct proto_hello hello = {.session = 9}; // not its first field
        uint64_t session = 0;
        CHECK(tap, proto_session(PROTO_TYPE_PUSH, &push, &session));
        CHECK(tap, session == push.session);
        CHECK(tap, !proto_session(PROTO_TYPE_HELLO, &hello, &session));
        CHECK(tap, !proto_session(PROTO_TYPE_DONE, NULL, &session)); // no fields
        CHECK(tap, !proto_session(0x0777, &push, &session));
    });
}

static void test_buckets(struct tap *tap) {
    TEST(tap, "few shards and many spread evenly over the buckets", {
        int quarter[4] = {0};
        CHECK(tap, proto_bucket_of(0, 1024) / 512 != proto_bucket_of(1, 1024) / 512);
        for (uint32_t shard = 0; shard < 1000; shard++)
            quarter[proto_bucket_of(shard, 1024) / 256]++;
        for (int i = 0; i < 4; i++)
            CHECK(tap, quarter[i] >= 248 && quarter[i] <= 252);
        CHECK_INT(tap, proto_bucket_of(77, 1), 0);
    });
}

static void test_kept(struct tap *tap) {
    struct kept *kept = NULL, *other = NULL;
    struct error err = {0};
    long before;
    char name[] = "abc";
    struct proto_hello hello = golden_hello;
    hello.name = proto_text(name);
    TEST(tap, "what is kept is a copy, there until all who hold it have dropped it", {
        before = heap_live();
        CHECK_INT(tap, kept_make(&kept, PROTO_TYPE_HELLO, &hello, &err), STATUS_OK);
        memset(name, 'x', 3);
        CHECK_INT(tap, kept->type, PROTO_TYPE_HELLO);
        CHECK_INT(tap, kept->message.hello.name.length, 3);
        CHECK(tap, memcmp(kept->message.hello.name.at, "abc", 3) == 0);
        long one = heap_live();
        kept_hold(kept);
        kept_hold(kept);
        kept_drop(kept);
        kept_drop(kept);
        CHECK_INT(tap, heap_live(), one);
        CHECK(tap, memcmp(kept->message.hello.name.at, "abc", 3) == 0);
        kept_drop(kept);
        CHECK_INT(tap, heap_live(), before);
        kept_hold(NULL);
        kept_drop(NULL);
    });
    TEST(tap, "a list is kept with its records, which go with it", {
        before = heap_live();
        struct proto_server server = {.member = 7};
        const struct proto_routes routes = {.servers = proto_list(&server, 1)};
        CHECK_INT(tap, kept_make(&kept, PROTO_TYPE_ROUTES, &routes, &err), STATUS_OK);
        server.member = 8;
        CHECK_INT(tap, ((const struct proto_server *)kept->message.routes.servers.at)->member, 7);
        kept_drop(kept);
        CHECK_INT(tap, heap_live(), before);
    });
    TEST(tap, "what is newer takes the place of what is held, and it is told whether it is", {
        before = heap_live();
        kept = NULL;
        CHECK_INT(tap, kept_make(&other, PROTO_TYPE_HELLO, &hello, &err), STATUS_OK);
        kept_hold(other);
        CHECK(tap, kept_renew(&kept, other));
        CHECK(tap, kept == other);
        CHECK(tap, !kept_renew(&kept, other)); // the second reference
        CHECK_INT(tap, kept_make(&other, PROTO_TYPE_HELLO, &hello, &err), STATUS_OK);
        CHECK(tap, kept_renew(&kept, other)); // the first is gone
        CHECK(tap, kept == other);
        kept_drop(kept);
        CHECK_INT(tap, heap_live(), before);
    });
    TEST(tap, "what cannot be sent is not kept, nor what there is no memory for", {
        before = heap_live();
        struct proto_server server = {.member = 7};
        const struct proto_routes routes = {.servers = proto_list(&server, 1)};
        hello.name.length = PROTO_NAME_MAX + 1;
        kept = other;
        CHECK_INT(tap, kept_make(&kept, PROTO_TYPE_HELLO, &hello, &err), STATUS_DATA);
        CHECK(tap, !kept);
        for (int n = 0; HEAP_FAILS && n < 2; n++) {
            heap_fail_after(n);
            int status = kept_make(&kept, PROTO_TYPE_ROUTES, &routes, &err);
            heap_fail_after(-1);
            CHECK_INT(tap, status, STATUS_IO);
            CHECK(tap, !kept);
        }
        CHECK_INT(tap, heap_live(), before);
    });
}

int main(void) {
    struct tap tap = {0};
    test_kept(&tap);
    test_buckets(&tap);
    test_golden(&tap);
    test_damage(&tap);
    test_limits(&tap);
    test_frames(&tap);
    test_table(&tap);
    test_samples(&tap);
    test_targets(&tap);
    return tap_done(&tap);
}
