// A message of every kind, and its bytes as another program (Python's struct module,
// from the same values) wrote them.
#ifndef ADAM_TESTS_PROTO_GOLDEN_H
#define ADAM_TESTS_PROTO_GOLDEN_H

#include "proto/proto.h"

struct golden {
    uint16_t type;
    const void *message;
    const char *hex;
};

static const struct proto_hello golden_hello = {
    .role = 3,
    .run = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
    .model = 0x1122334455667788ull,
    .session = 5,
    .name = {"worker 3", 8},
};

static const struct proto_welcome golden_welcome = {
    .role = 1,
    .run = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
    .model = 0x1122334455667788ull,
    .session = 5,
    .window = 16,
    .name = {"ps 0", 4},
};

static const struct proto_leave golden_leave = {
    .session = 5,
    .reason = {"asked to", 8},
};

static const struct proto_refused golden_refused = {
    .code = 10,
    .detail = 7,
    .text = {"bucket 3 is in epoch 7", 22},
};

static const struct proto_held golden_held[] = {{1}, {70000}};
static const struct proto_join golden_join = {
    .role = 1,
    .threads = 16,
    .memory = 0x1000000000ull,
    .name = {"ps 0", 4},
    .training = {"tcp://10.0.0.1:7001", 19},
    .replication = {"tcp://10.0.1.1:7002", 19},
    .administration = {"ipc:///run/ps0", 14},
    .first = 500,
    .samples = 0x100000001ull,
    .whole = 0x100000203ull,
    .digest = 0x0badcafe,
    .classes = 1000,
    .stores = 1,
    .parts = 1,
    .held = {golden_held, 2},
};

static const struct proto_joined golden_joined = {
    .member = 4,
    .session = 0x102030405060708ull,
    .heartbeat = 500,
    .silence = 5000,
    .epoch = 7,
    .replica = 2,
    .partition = 1,
};

static const struct proto_heartbeat golden_heartbeat = {
    .session = 5,
    .state = 1,
    .clock = 1007,
    .samples = 64007,
    .pushes = 77,
    .pulls = 84,
    .refused = 7,
    .received = 0x200000000ull,
    .sent = 0x400000000ull,
    .epoch = 3.5,
    .rate = 1234.5,
    .loss = 0.25,
    .staleness = 1.5,
    .waiting = 0.125,
    .overlap = 0.75,
    .dirty_bytes = 0x800000,
    .at_risk = 1.25,
    .behind = 3,
    .waits_for = {"ps 1", 4},
};

static const struct proto_beat golden_beat = {
    .members = 3,
    .routes = 2,
    .settings = 9,
    .order = 1,
    .number = 12,
    .begun = 1,
};

static const struct proto_get_routes golden_get_routes = {
    .known = 2,
};

static const struct proto_server golden_routes_servers[] = {
    {.member = 1,
     .training = {"tcp://a:1", 9},
     .replication = {"tcp://b:2", 9},
     .administration = {"tcp://c:3", 9}},
    {.member = 2, .training = {"ipc:///x", 8}, .replication = {"", 0}, .administration = {"", 0}},
};

static const struct proto_server golden_routes_data_servers[] = {
    {.member = 5,
     .training = {"tcp://d:4", 9},
     .replication = {"", 0},
     .administration = {"tcp://e:5", 9}},
};

static const struct proto_bucket golden_routes_buckets[] = {
    {.epoch = 3, .primary = 1, .second = 2, .third = 0xffffffffu},
    {.epoch = 2, .primary = 2, .second = 0xffffffffu, .third = 0xffffffffu},
};

static const struct proto_routes golden_routes = {
    .epoch = 3,
    .parameters = 0x15d60u,
    .servers = {golden_routes_servers, 2},
    .data_servers = {golden_routes_data_servers, 1},
    .buckets = {golden_routes_buckets, 2},
};

static const struct proto_get_run golden_get_run = {
    .known = 8,
};

static const struct proto_run golden_run = {
    .version = 9,
    .model = {"input 28x28x1\nsoftmax 10\n", 25},
    .settings = {"rate=0.005\n", 11},
};

static const struct proto_paxos golden_paxos = {
    .step = 2,
    .from = 1,
    .to = 2,
    .ballot = 769,
    .accepted = 514,
    .version = 77,
    .time = 123456789,
    .state = {(const uint8_t *)"\000state\377", 7},
};

static const struct proto_piece golden_pull_pieces[] = {
    {.shard = 0, .offset = 0, .count = 0x40000u, .epoch = 1, .version = 99},
    {.shard = 1, .offset = 512, .count = 1024, .epoch = 2, .version = 98},
};

static const struct proto_pull golden_pull = {
    .session = 5,
    .quantity = 1,
    .least = 100,
    .pieces = {golden_pull_pieces, 2},
};

static const struct proto_piece golden_weights_pieces[] = {
    {.shard = 0, .offset = 0, .count = 0, .epoch = 1, .version = 99},
    {.shard = 1, .offset = 512, .count = 1024, .epoch = 2, .version = 101},
};

static const struct proto_weights golden_weights = {
    .pieces = {golden_weights_pieces, 2},
};

static const struct proto_piece golden_push_pieces[] = {
    {.shard = 1, .offset = 512, .count = 1024, .epoch = 2, .version = 98},
};

static const struct proto_push golden_push = {
    .session = 5,
    .sequence = 42,
    .kind = 1,
    .samples = 128,
    .rate = 0.05,
    .pieces = {golden_push_pieces, 1},
};

static const struct proto_piece golden_push_factors_pieces[] = {
    {.shard = 0, .offset = 5280, .count = 0x1f590u, .epoch = 1, .version = 98},
};

static const struct proto_push_factors golden_push_factors = {
    .session = 5,
    .sequence = 43,
    .samples = 128,
    .rate = 0.05,
    .rows = 400,
    .columns = 320,
    .weights = 5280,
    .biases = 0x208a0u,
    .pieces = {golden_push_factors_pieces, 1},
};

static const struct proto_piece golden_pushed_pieces[] = {
    {.shard = 1, .offset = 512, .count = 1024, .epoch = 2, .version = 102},
};

static const struct proto_pushed golden_pushed = {
    .sequence = 42,
    .repeated = 1,
    .pieces = {golden_pushed_pieces, 1},
};

static const struct proto_get_versions golden_get_versions = {
    .first = 3,
    .count = 9,
};

static const struct proto_piece golden_versions_pieces[] = {
    {.shard = 3, .offset = 0, .count = 0x40000u, .epoch = 1, .version = 7},
};

static const struct proto_versions golden_versions = {
    .pieces = {golden_versions_pieces, 1},
};

static const struct proto_piece golden_store_pieces[] = {
    {.shard = 3, .offset = 0, .count = 0x40000u, .epoch = 1, .version = 1},
};

static const struct proto_store golden_store = {
    .quantity = 1,
    .pieces = {golden_store_pieces, 1},
};

static const struct proto_get_data golden_get_data = {
    .names = 8,
};

static const struct proto_named golden_data_names[] = {
    {.name = {"cat", 3}},
    {.name = {"dog", 3}},
};

static const struct proto_data golden_data = {
    .name = {"train.arec", 10},
    .whole = 120000,
    .first = 60000,
    .samples = 60000,
    .digest = 0x12345678,
    .classes = 10,
    .channels = 1,
    .height = 28,
    .width = 29,
    .value = 1,
    .epoch = 6,
    .names = {golden_data_names, 2},
};

static const struct proto_lease golden_lease = {
    .session = 5,
    .epoch = 6,
    .samples = 64,
    .step = 77,
    .clock = 76,
};

static const struct proto_batch golden_batch = {
    .lease = 901,
    .deadline = 30000,
    .epoch = 6,
    .first = 57600,
    .samples = 64,
};

static const struct proto_lease_id golden_finish_leases[] = {
    {.lease = 900},
    {.lease = 901},
};

static const struct proto_lease_id golden_finish_returned[] = {
    {.lease = 899},
};

static const struct proto_finish golden_finish = {
    .session = 5,
    .leases = {golden_finish_leases, 2},
    .returned = {golden_finish_returned, 1},
};

static const struct proto_progress golden_progress = {
    .epoch = 6,
    .finished = 57664,
    .samples = 60000,
};

static const struct proto_range golden_cursor_finished[] = {
    {.first = 0, .count = 57664},
    {.first = 58000, .count = 64},
};

static const struct proto_cursor golden_cursor = {
    .seed = 1,
    .epoch = 6,
    .finished = {golden_cursor_finished, 2},
};

static const struct proto_lease_id golden_hold_leases[] = {{900}, {902}};
static const struct proto_hold golden_hold = {5, {golden_hold_leases, 2}};
static const struct proto_range golden_set_cursor_finished[] = {
    {.first = 0, .count = 57664},
};

static const struct proto_set_cursor golden_set_cursor = {
    .seed = 1,
    .epoch = 6,
    .finished = {golden_set_cursor_finished, 1},
};

static const struct proto_get_status golden_get_status = {
    .known = 2,
};

static const struct proto_member golden_status_members[] = {
    {.member = 1,
     .role = 1,
     .session = 6,
     .silent = 120,
     .name = {"ps 0", 4},
     .address = {"ipc:///run/ps0", 14},
     .state = 2,
     .clock = 1002,
     .samples = 64002,
     .pushes = 22,
     .pulls = 24,
     .refused = 2,
     .received = 0x200000000ull,
     .sent = 0x400000000ull,
     .epoch = 3.5,
     .rate = 1234.5,
     .loss = 0.25,
     .staleness = 1.5,
     .waiting = 0.125,
     .overlap = 0.75,
     .dirty_bytes = 0x800000,
     .at_risk = 1.25,
     .behind = 3,
     .waits_for = {"", 0}},
    {.member = 4,
     .role = 3,
     .session = 5,
     .silent = 80,
     .name = {"worker 3", 8},
     .address = {"", 0},
     .replica = 2,
     .partition = 1,
     .neighbours = {"tcp://n3:9", 10},
     .state = 1,
     .clock = 1001,
     .samples = 64001,
     .pushes = 11,
     .pulls = 12,
     .refused = 1,
     .received = 0x200000000ull,
     .sent = 0x400000000ull,
     .epoch = 3.5,
     .rate = 1234.5,
     .loss = 0.25,
     .staleness = 1.5,
     .waiting = 0.125,
     .overlap = 0.75,
     .dirty_bytes = 0x800000,
     .at_risk = 1.25,
     .behind = 3,
     .waits_for = {"ps 1", 4}},
};

static const struct proto_status golden_status = {
    .run = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
    .epoch = 3,
    .idle = 23,
    .left_out = 0.5,
    .members = {golden_status_members, 2},
};

static const struct proto_set golden_set = {
    .settings = {"rate=0.005", 10},
};

static const struct proto_save golden_save = {
    .number = 12,
    .path = {"run/checkpoint-12", 17},
};

static const struct proto_saved golden_saved = {
    .number = 12,
    .bytes = 0x57580u,
    .path = {"run/checkpoint-12/ps0.safetensors", 33},
};

static const struct proto_stop golden_stop = {
    .save = 1,
    .grace = 10000,
};

static const struct proto_report golden_report = {
    .session = 5,
    .line = {"{\"event\":\"train\"}", 17},
};

static const struct proto_get_metrics golden_get_metrics = {.from = 4096};

static const struct proto_metrics golden_metrics = {.size = 0x11000};

static const struct proto_drain golden_drain = {
    .name = {"ps-2", 4},
};

static const struct proto_tensor golden_tensors[] = {{0}, {3}, {70000}};

static const struct proto_token golden_kept[] = {{{{0x20, 0x21}}}, {{{0x30}}}};

static const struct proto_save_part golden_save_part = {
    .folder = {"/runs/.ckpt-7.tmp", 17},
    .token = {{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d,
               0x1e, 0x1f}},
    .part = 2,
    .parts = 3,
    .tensors = {golden_tensors, 3},
    .kept = {golden_kept, 2},
};

static const struct proto_read_part golden_read_part = {
    .run = {{0x40, 0x41}},
    .token = {{0x20, 0x21}},
    .part = 2,
    .parts = 3,
    .offset = 0x100000000,
    .bytes = 4194304,
};

static const struct proto_dropped golden_dropped[] = {{{{0x40, 0x41}}, {{0x20, 0x21}}},
                                                      {{{0x50}}, {{0x30}}}};

static const struct proto_drop_parts golden_drop_parts = {.checkpoints = {golden_dropped, 2}};

static const struct proto_part golden_part = {.size = 0x123456789};

static const struct proto_reached golden_reached[] = {{0, 41}, {70000, 0x100000002}};

static const struct proto_part_saved golden_part_saved = {
    .bytes = 0x123456789,
    .crc = 0xcafebabe,
    .shards = {golden_reached, 2},
};

static const struct proto_applied golden_applied[] = {{5, 17, 0x1ffff}, {6, 2, 3}};

static const struct proto_prepare golden_prepare = {
    .from = 3,
    .shard = 70000,
    .epoch = 9,
    .base_epoch = 8,
    .base_version = 41,
    .stamp_epoch = 9,
    .stamp_version = 45,
    .blocks = 0x8000000000000005ull,
    .applied = {golden_applied, 2},
};

static const struct proto_prepared golden_prepared = {
    .from = 4,
    .shard = 70000,
    .epoch = 9,
    .asked_epoch = 9,
    .asked_version = 45,
    .stamp_epoch = 9,
    .stamp_version = 45,
    .committed_epoch = 8,
    .committed_version = 41,
};

static const struct proto_commit golden_commit = {
    .from = 3, .shard = 70000, .epoch = 9, .stamp_epoch = 9, .stamp_version = 45};

static const struct proto_pulse golden_pulse = {.from = 3};

static const struct proto_proposal golden_proposals[] = {
    {PROTO_CHANGE_TAKE_OVER, 7, 9, 3, 4},
    {PROTO_CHANGE_DROP, 1023, 12, 4, 6},
};

static const struct proto_propose golden_propose = {
    .session = 5,
    .proposals = {golden_proposals, 2},
};

static const struct proto_get_places golden_get_places = {.session = 5, .known = 12};

static const struct proto_place golden_place_list[] = {
    {0, 9, 3, 4, PROTO_NOBODY, 6},
    {1, 13, 4, 3, 6, PROTO_NOBODY},
};

static const struct proto_places golden_places = {
    .epoch = 13,
    .lease = 5000,
    .places = {golden_place_list, 2},
};

static const struct proto_fly golden_fly = {
    .session = 5,
    .number = 9,
    .samples = 32,
    .mixed = 1,
    .rate = 0.25,
};

static const struct proto_landed golden_landed = {.number = 9, .loss = 1.5, .refused = 1};

static const struct proto_exchange golden_exchange = {
    .session = 5,
    .place = 3,
    .exchange = 7,
    .back = 1,
};

static const struct golden golden_messages[] = {
    {PROTO_TYPE_HELLO, &golden_hello,
     "0300000102030405060708090a0b0c0d0e0f887766554433221105000000000000000800"
     "0000776f726b65722033"},
    {PROTO_TYPE_WELCOME, &golden_welcome,
     "0100000102030405060708090a0b0c0d0e0f887766554433221105000000000000001000"
     "00000400000070732030"},
    {PROTO_TYPE_PING, NULL, ""},
    {PROTO_TYPE_LEAVE, &golden_leave, "05000000000000000800000061736b656420746f"},
    {PROTO_TYPE_DONE, NULL, ""},
    {PROTO_TYPE_REFUSED, &golden_refused,
     "0a000700000000000000160000006275636b6574203320697320696e2065706f63682037"},
    {PROTO_TYPE_JOIN, &golden_join,
     "01001000000000000000100000000400000070732030130000007463703a2f2f31302e30"
     "2e302e313a37303031130000007463703a2f2f31302e302e312e313a373030320e000000"
     "6970633a2f2f2f72756e2f707330f401000000000000010000000100000003020000"
     "01000000fecaad0be803000001"
     "01020000000100000070110100"},
    {PROTO_TYPE_JOINED, &golden_joined,
     "040000000807060504030201f401000088130000070000000200000001000000"},
    {PROTO_TYPE_HEARTBEAT, &golden_heartbeat,
     "05000000000000000100ef0300000000000007fa0000000000004d000000000000005400"
     "000000000000070000000000000000000000020000000000000004000000000000000000"
     "0c4000000000004a9340000000000000d03f000000000000f83f000000000000c03f0000"
     "00000000e83f"
     "0000800000000000000000000000f43f0300000000000000"
     "0400000070732031"},
    {PROTO_TYPE_BEAT, &golden_beat,
     "03000000000000000200000000000000090000000000000001000c00000000000000"
     "01"},
    {PROTO_TYPE_GET_ROUTES, &golden_get_routes, "0200000000000000"},
    {PROTO_TYPE_ROUTES, &golden_routes,
     "0300000000000000605d0100000000000200000001000000090000007463703a2f2f613a"
     "31090000007463703a2f2f623a32090000007463703a2f2f633a33020000000800000069"
     "70633a2f2f2f7800000000000000000100000005000000090000007463703a2f2f643a34"
     "00000000090000007463703a2f2f653a3502000000030000000000000001000000020000"
     "00ffffffff020000000000000002000000ffffffffffffffff"},
    {PROTO_TYPE_GET_RUN, &golden_get_run, "0800000000000000"},
    {PROTO_TYPE_RUN, &golden_run,
     "090000000000000019000000696e70757420323878323878310a736f66746d6178203130"
     "0a0b000000726174653d302e3030350a"},
    {PROTO_TYPE_PAXOS, &golden_paxos,
     "02000100000002000000010300000000000002020000000000004d0000000000000015cd"
     "5b070000000007000000007374617465ff"},
    {PROTO_TYPE_PULL, &golden_pull,
     "050000000000000001006400000000000000020000000000000000000000000004000100"
     "000000000000630000000000000001000000000200000004000002000000000000006200"
     "000000000000"},
    {PROTO_TYPE_WEIGHTS, &golden_weights,
     "020000000000000000000000000000000100000000000000630000000000000001000000"
     "000200000004000002000000000000006500000000000000"},
    {PROTO_TYPE_PUSH, &golden_push,
     "05000000000000002a000000000000000100800000009a9999999999a93f010000000100"
     "0000000200000004000002000000000000006200000000000000"},
    {PROTO_TYPE_PUSH_FACTORS, &golden_push_factors,
     "05000000000000002b00000000000000800000009a9999999999a93f9001000040010000"
     "a014000000000000a0080200000000000100000000000000a014000090f5010001000000"
     "000000006200000000000000"},
    {PROTO_TYPE_PUSHED, &golden_pushed,
     "2a0000000000000001010000000100000000020000000400000200000000000000660000"
     "0000000000"},
    {PROTO_TYPE_GET_VERSIONS, &golden_get_versions, "0300000009000000"},
    {PROTO_TYPE_VERSIONS, &golden_versions,
     "0100000003000000000000000000040001000000000000000700000000000000"},
    {PROTO_TYPE_STORE, &golden_store,
     "01000100000003000000000000000000040001000000000000000100000000000000"},
    {PROTO_TYPE_GET_DATA, &golden_get_data, "08000000"},
    {PROTO_TYPE_DATA, &golden_data,
     "0a000000747261696e2e61726563c0d401000000000060ea00000000000060ea00000000"
     "0000785634120a000000010000001c0000001d0000000100060000000200000003000000"
     "63617403000000646f67"},
    {PROTO_TYPE_LEASE, &golden_lease,
     "050000000000000006000000400000004d000000000000004c00000000000000"},
    {PROTO_TYPE_BATCH, &golden_batch, "8503000000000000307500000600000000e100000000000040000000"},
    {PROTO_TYPE_FINISH, &golden_finish,
     "050000000000000002000000840300000000000085030000000000000100000083030000"
     "00000000"},
    {PROTO_TYPE_PROGRESS, &golden_progress, "0600000040e100000000000060ea000000000000"},
    {PROTO_TYPE_GET_CURSOR, NULL, ""},
    {PROTO_TYPE_CURSOR, &golden_cursor,
     "01000000000000000600000002000000000000000000000040e100000000000090e20000"
     "000000004000000000000000"},
    {PROTO_TYPE_SET_CURSOR, &golden_set_cursor,
     "01000000000000000600000001000000000000000000000040e1000000000000"},
    {PROTO_TYPE_HOLD, &golden_hold, "05000000000000000200000084030000000000008603000000000000"},
    {PROTO_TYPE_GET_STATUS, &golden_get_status, "0200000000000000"},
    {PROTO_TYPE_STATUS, &golden_status,
     "000102030405060708090a0b0c0d0e0f030000000000000017000000000000000000e03f"
     "0200000001000000010006000000000000007800000004000000707320300e0000006970"
     "633a2f2f2f72756e2f707330000000000000000000000000"
     "0200ea0300000000000002fa000000000000160000000000"
     "000018000000000000000200000000000000000000000200000000000000040000000000"
     "000000000c4000000000004a9340000000000000d03f000000000000f83f000000000000"
     "c03f000000000000e83f"
     "0000800000000000000000000000f43f0300000000000000"
     "0000000004000000030005000000000000005000000008000000"
     "776f726b657220330000000002000000010000000a0000007463703a2f2f6e333a39"
     "0100e90300000000000001fa0000000000000b0000000000"
     "00000c000000000000000100000000000000000000000200000000000000040000000000"
     "000000000c4000000000004a9340000000000000d03f000000000000f83f000000000000"
     "c03f000000000000e83f"
     "0000800000000000000000000000f43f0300000000000000"
     "0400000070732031"},
    {PROTO_TYPE_SET, &golden_set, "0a000000726174653d302e303035"},
    {PROTO_TYPE_SAVE, &golden_save, "0c000000000000001100000072756e2f636865636b706f696e742d3132"},
    {PROTO_TYPE_SAVED, &golden_saved,
     "0c0000000000000080750500000000002100000072756e2f636865636b706f696e742d31"
     "322f7073302e7361666574656e736f7273"},
    {PROTO_TYPE_STOP, &golden_stop, "0110270000"},
    {PROTO_TYPE_REPORT, &golden_report,
     "0500000000000000110000007b226576656e74223a22747261696e227d"},
    {PROTO_TYPE_GET_METRICS, &golden_get_metrics, "0010000000000000"},
    {PROTO_TYPE_METRICS, &golden_metrics, "0010010000000000"},
    {PROTO_TYPE_DRAIN, &golden_drain, "0400000070732d32"},
    {PROTO_TYPE_SAVE_PART, &golden_save_part,
     "110000002f72756e732f2e636b70742d372e746d70101112131415161718191a1b1c1d1e"
     "1f0200000003000000030000000000000003000000701101000200000020210000000000"
     "00000000000000000030000000000000000000000000000000"},
    {PROTO_TYPE_PART_SAVED, &golden_part_saved,
     "8967452301000000bebafeca020000000000000029000000000000007011010002000000"
     "01000000"},
    {PROTO_TYPE_READ_PART, &golden_read_part,
     "404100000000000000000000000000002021000000000000000000000000000002000000"
     "03000000000000000100000000004000"},
    {PROTO_TYPE_PART, &golden_part, "8967452301000000"},
    {PROTO_TYPE_DROP_PARTS, &golden_drop_parts,
     "02000000"
     "40410000000000000000000000000000"
     "20210000000000000000000000000000"
     "50000000000000000000000000000000"
     "30000000000000000000000000000000"},
    {PROTO_TYPE_PREPARE, &golden_prepare,
     "0300000070110100090000000000000008000000000000002900000000000000090000000000"
     "00002d0000000000000000050000000000008002000000050000000000000011000000000000"
     "00ffff010000000000060000000000000002000000000000000300000000000000"},
    {PROTO_TYPE_PREPARED, &golden_prepared,
     "0400000070110100090000000000000009000000000000002d00000000000000090000000000"
     "00002d0000000000000008000000000000002900000000000000"},
    {PROTO_TYPE_COMMIT, &golden_commit,
     "0300000070110100090000000000000009000000000000002d00000000000000"},
    {PROTO_TYPE_PULSE, &golden_pulse, "03000000"},
    {PROTO_TYPE_PROPOSE, &golden_propose,
     "050000000000000002000000000007000000090000000000000003000000040000000200ff03"
     "00000c000000000000000400000006000000"},
    {PROTO_TYPE_GET_PLACES, &golden_get_places, "05000000000000000c00000000000000"},
    {PROTO_TYPE_FLY, &golden_fly,
     "05000000000000000900000000000000200000000000000001000000000000d03f"},
    {PROTO_TYPE_LANDED, &golden_landed, "0900000000000000000000000000f83f01"},
    {PROTO_TYPE_EXCHANGE, &golden_exchange, "0500000000000000030000000700000001"},
    {PROTO_TYPE_PLACES, &golden_places,
     "0d0000000000000088130000020000000000000009000000000000000300000004000000ffff"
     "ffff06000000010000000d00000000000000040000000300000006000000ffffffff"},
};

#endif
