// The core of replication by hand: three servers with one bucket of two shards, whose messages the
// tests carry. tests/sim has whole clusters at random.
#include <stdlib.h>

#include "../helper/heap.h"
#include "../helper/replica_serving.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "replica/replica.h"

enum { MEMBERS = 3, SHARDS = 2, BLOCKS = 4, QUEUE = 64, FOREVER = 1 << 30 };

struct replica_load {
    int references;
    uint64_t blocks;
    float values[BLOCKS];
};

struct stand {
    struct rig *rig;
    struct replica *replica;
    struct replica_host host;
    uint64_t lease; // as the replica has it
    float values[SHARDS][BLOCKS];
    uint64_t version[SHARDS];
    uint64_t untold[SHARDS];     // blocks, of pushes of which the replica does not know yet
    uint64_t replicated[SHARDS]; // version + 1; 0: never told
    int reads, installs, closed, outdated, kept;
    struct replica_stamp keep;
    struct proto_proposal proposal; // its last one
    bool no_memory;
};

struct rig {
    struct stand stands[MEMBERS];
    struct replica_message queue[QUEUE];
    int count;
    int loads; // that are held
    struct proto_proposal proposal;
    int proposals;
    uint64_t now;
};

// --- the host -----------------------------------------------------------------------------

static struct replica_load *host_read(void *self, uint32_t shard, uint64_t blocks,
                                      struct replica_read *read) {
    struct stand *s = self;
    struct replica_load *load = s->no_memory ? NULL : calloc(1, sizeof *load);
    if (!load)
        return NULL;
    load->references = 1;
    load->blocks = blocks | s->untold[shard];
    read->changed = s->untold[shard];
    read->version = s->version[shard];
    s->untold[shard] = 0;
    memcpy(load->values, s->values[shard], sizeof load->values);
    s->reads++;
    s->rig->loads++;
    return load;
}

static void host_install(void *self, uint32_t shard, struct replica_stamp stamp, uint64_t blocks,
                         bool whole, struct replica_load *load) {
    struct stand *s = self;
    (void)whole;
    for (int i = 0; i < BLOCKS; i++)
        if (blocks >> i & 1)
            s->values[shard][i] = load->values[i];
    s->version[shard] = stamp.version;
    s->installs++;
}

static void host_hold(void *self, struct replica_load *load) {
    (void)self;
    load->references++;
}

static void host_release(void *self, struct replica_load *load) {
    struct stand *s = self;
    if (--load->references > 0)
        return;
    s->rig->loads--;
    free(load);
}

static void host_keep(void *self, uint32_t shard, struct replica_stamp stamp,
                      struct replica_load *load) {
    struct stand *s = self;
    (void)shard, (void)load;
    s->keep = stamp;
    s->kept++;
}

static void host_send(void *self, const struct replica_message *m) {
    struct stand *s = self;
    if (s->rig->count == QUEUE)
        return;
    if (m->load)
        host_hold(self, m->load);
    s->rig->queue[s->rig->count++] = *m;
}

static void host_propose(void *self, const struct proto_proposal *proposal) {
    struct stand *s = self;
    s->rig->proposal = s->proposal = *proposal;
    s->rig->proposals++;
}

static void host_replicated(void *self, uint32_t shard, uint64_t version) {
    ((struct stand *)self)->replicated[shard] = version + 1;
}

static void host_closed(void *self, uint32_t shard) {
    (void)shard;
    ((struct stand *)self)->closed++;
}

static void host_outdated(void *self) {
    ((struct stand *)self)->outdated++;
}

// --- the rig ------------------------------------------------------------------------------

static const struct replica_options usual = {
    .shards = SHARDS,
    .buckets = 1,
    .pulse = 10,
    .silence = 50,
    .resend = 20,
    .patience = 100,
    .wholes = 2,
};

static struct proto_place place(uint64_t epoch, uint32_t primary, uint32_t second, uint32_t third,
                                uint32_t joiner) {
    return (struct proto_place){0, epoch, primary, second, third, joiner};
}

// Members are 0, 1, 2, but in messages and places of the tests they have these numbers.
enum { A = 10, B, C, NONE = -1 };

static struct stand *stand_of(struct rig *rig, uint32_t member) {
    return &rig->stands[member - A];
}

static void rig_open(struct rig *rig, const struct replica_options *options, bool durable) {
    *rig = (struct rig){.now = 1000};
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct stand *s = &rig->stands[i];
        struct replica_options own = *options;
        own.member = A + i;
        s->rig = rig;
        s->host = (struct replica_host){s,           host_read,    host_install,
                                        host_hold,   host_release, durable ? host_keep : NULL,
                                        host_send,   host_propose, host_replicated,
                                        host_closed, host_outdated};
        if (replica_open(&s->replica, &own, &s->host, rig->now, NULL))
            abort();
        s->lease = FOREVER;
        replica_lease(s->replica, s->lease);
    }
}

static void drop_message(struct rig *rig, int index) {
    if (rig->queue[index].load)
        host_release(&rig->stands[0], rig->queue[index].load);
    rig->count--;
    memmove(&rig->queue[index], &rig->queue[index + 1],
            (size_t)(rig->count - index) * sizeof *rig->queue);
}

static void drop_all(struct rig *rig) {
    while (rig->count > 0)
        drop_message(rig, 0);
}

static void deliver(struct rig *rig, int index) {
    struct replica_message m = rig->queue[index];
    if (m.load)
        host_hold(&rig->stands[0], m.load);
    drop_message(rig, index);
    replica_receive(stand_of(rig, m.to)->replica, &m, rig->now);
    if (m.load)
        host_release(&rig->stands[0], m.load);
}

// Carries all messages until none is left, but those to and from `deaf`.
static void settle(struct rig *rig, int deaf) {
    while (rig->count > 0)
        if ((int)rig->queue[0].to == deaf || (int)rig->queue[0].from == deaf)
            drop_message(rig, 0);
        else
            deliver(rig, 0);
}

static void route(struct rig *rig, uint32_t member, struct proto_place p) {
    replica_route(stand_of(rig, member)->replica, &p, 1, rig->now);
}

static void route_all(struct rig *rig, struct proto_place p) {
    for (uint32_t member = A; member <= C; member++)
        route(rig, member, p);
}

static void push(struct rig *rig, uint32_t member, uint32_t shard, int block) {
    struct stand *s = stand_of(rig, member);
    s->values[shard][block] += 1;
    replica_applied(s->replica, shard, UINT64_C(1) << block, ++s->version[shard], rig->now);
}

static void tick_all(struct rig *rig, uint64_t by) {
    rig->now += by;
    for (uint32_t member = A; member <= C; member++)
        replica_tick(stand_of(rig, member)->replica, rig->now);
}

static bool same_values(struct rig *rig, uint32_t a, uint32_t b) {
    return !memcmp(stand_of(rig, a)->values, stand_of(rig, b)->values,
                   sizeof stand_of(rig, a)->values) &&
           !memcmp(stand_of(rig, a)->version, stand_of(rig, b)->version,
                   sizeof stand_of(rig, a)->version);
}

static bool is_replicated(struct rig *rig, uint32_t member, uint32_t shard) {
    struct stand *s = stand_of(rig, member);
    return replica_has_replicated(s->replica, shard, s->version[shard]);
}

static enum proto_refusal examine(struct rig *rig, uint32_t member, uint64_t epoch, bool pull) {
    const struct stand *s = stand_of(rig, member);
    return replica_serving(s->replica, 0, 0, epoch, pull, rig->now < s->lease);
}

// Nothing leaks.
static void rig_close(struct tap *tap, struct rig *rig) {
    drop_all(rig);
    for (int i = 0; i < MEMBERS; i++)
        replica_close(rig->stands[i].replica);
    CHECK_INT(tap, rig->loads, 0);
}

static const struct replica_message *queued(const struct rig *rig, enum replica_kind kind,
                                            uint32_t to) {
    for (int i = 0; i < rig->count; i++)
        if (rig->queue[i].kind == kind && rig->queue[i].to == to)
            return &rig->queue[i];
    return NULL;
}

// --- rounds -------------------------------------------------------------------------------

static void test_alone(struct tap *tap, struct rig *rig) {
    TEST(tap, "with one copy a push counts at once, and nothing is read or sent", {
        rig_open(rig, &usual, false);
        route_all(rig, place(1, A, NONE, NONE, NONE));
        drop_all(rig);
        push(rig, A, 0, 1);
        CHECK_INT(tap, rig->stands[0].replicated[0], 2);
        CHECK(tap, is_replicated(rig, A, 0));
        CHECK_INT(tap, replica_version(rig->stands[0].replica, 0), 1);
        CHECK_INT(tap, rig->stands[0].reads, 0);
        tick_all(rig, 10);
        CHECK_INT(tap, rig->count, 0);
        for (int i = 0; i < 20; i++)
            tick_all(rig, 10);
        CHECK_INT(tap, rig->proposals, 0);
        rig_close(tap, rig);
    });
}

static void test_round(struct tap *tap, struct rig *rig) {
    rig_open(rig, &usual, false);
    route_all(rig, place(1, A, B, C, NONE));
    settle(rig, NONE);
    TEST(tap, "a push counts when all members have prepared it", {
        push(rig, A, 0, 1);
        CHECK(tap, !is_replicated(rig, A, 0));
        settle(rig, C);
        CHECK(tap, !is_replicated(rig, A, 0));
        CHECK_INT(tap, replica_version(rig->stands[0].replica, 0), 0);
        tick_all(rig, 20);
        settle(rig, NONE);
        CHECK(tap, is_replicated(rig, A, 0));
        CHECK_INT(tap, rig->stands[0].replicated[0], 2);
        CHECK_INT(tap, replica_version(rig->stands[0].replica, 0), 1);
    });
    TEST(tap, "only a commit installs it, and the sums are equal", {
        push(rig, A, 1, 2);
        settle(rig, NONE);
        CHECK(tap, is_replicated(rig, A, 1));
        CHECK(tap, !same_values(rig, A, B));
        tick_all(rig, 10);
        settle(rig, NONE);
        CHECK(tap, same_values(rig, A, B) && same_values(rig, A, C));
        tick_all(rig, 10);
        CHECK(tap, !queued(rig, REPLICA_COMMIT, B));
        settle(rig, NONE);
    });
    TEST(tap, "pushes fold while a round is under way; the next round commits the one before", {
        int reads = rig->stands[0].reads;
        for (int i = 0; i < 5; i++)
            push(rig, A, 0, i % 2);
        CHECK_INT(tap, rig->stands[0].reads, reads + 1);
        settle(rig, NONE);
        CHECK_INT(tap, rig->stands[0].reads, reads + 2);
        CHECK_INT(tap, rig->stands[0].replicated[0], rig->stands[0].version[0] + 1);
        CHECK_INT(tap, rig->stands[1].version[0], 2); // the round of the first
    });
    TEST(tap, "only the blocks that changed are sent", {
        push(rig, A, 0, 3);
        const struct replica_message *m = queued(rig, REPLICA_PREPARE, B);
        CHECK(tap, m && m->blocks == 8 && m->load->blocks == 8 && !m->whole);
        settle(rig, NONE);
    });
    rig_close(tap, rig);
}

static void test_again(struct tap *tap, struct rig *rig) {
    rig_open(rig, &usual, false);
    route_all(rig, place(1, A, B, C, NONE));
    settle(rig, NONE);
    TEST(tap, "what is not answered is sent again, after a while", {
        push(rig, A, 0, 0);
        settle(rig, C);
        CHECK_INT(tap, replica_bucket(rig->stands[0].replica, 0).shards, SHARDS);
        CHECK_INT(tap, replica_bucket(rig->stands[0].replica, 0).behind, 1);
        CHECK_INT(tap, replica_bucket(rig->stands[1].replica, 0).behind, 0);
        tick_all(rig, 10);
        CHECK(tap, !queued(rig, REPLICA_PREPARE, C));
        tick_all(rig, 10);
        CHECK(tap, queued(rig, REPLICA_PREPARE, C) && !queued(rig, REPLICA_PREPARE, B));
        settle(rig, NONE);
        CHECK_INT(tap, replica_bucket(rig->stands[0].replica, 0).behind, 0);
    });
    TEST(tap, "a commit is repeated until it is answered", {
        tick_all(rig, 10);
        drop_all(rig);
        const struct replica_message again = {.kind = REPLICA_PREPARED,
                                              .from = B,
                                              .to = A,
                                              .epoch = 1,
                                              .asked = {1, 1},
                                              .stamp = {1, 1}};
        replica_receive(rig->stands[0].replica, &again, rig->now);
        tick_all(rig, 10);
        CHECK(tap, queued(rig, REPLICA_COMMIT, B) && queued(rig, REPLICA_COMMIT, C));
        settle(rig, NONE);
        tick_all(rig, 10);
        CHECK(tap, !queued(rig, REPLICA_COMMIT, B) && !queued(rig, REPLICA_COMMIT, C));
        settle(rig, NONE);
    });
    TEST(tap, "the same place again changes nothing, and answers of strangers do not count", {
        route_all(rig, place(1, A, B, C, NONE));
        CHECK_INT(tap, rig->count, 0);
        route_all(rig, place(2, A, B, NONE, NONE));
        settle(rig, NONE);
        CHECK(tap, rig->stands[1].closed == 0 && rig->stands[2].closed == 0);
        push(rig, A, 0, 0);
        drop_all(rig);
        const struct replica_message strange = {.kind = REPLICA_PREPARED,
                                                .from = C,
                                                .to = A,
                                                .epoch = 2,
                                                .asked = {2, 2},
                                                .stamp = {2, 2}};
        replica_receive(rig->stands[0].replica, &strange, rig->now);
        CHECK(tap, !is_replicated(rig, A, 0));
        tick_all(rig, 20);
        settle(rig, NONE);
        CHECK(tap, is_replicated(rig, A, 0));
    });
    TEST(tap, "in a new epoch each is asked anew, whoever had its role before", {
        route(rig, A, place(3, A, C, NONE, NONE));
        CHECK_INT(tap, replica_bucket(rig->stands[0].replica, 0).behind, SHARDS);
        route(rig, C, place(3, A, C, NONE, NONE));
        settle(rig, NONE);
        CHECK_INT(tap, replica_bucket(rig->stands[0].replica, 0).behind, 0);
    });
    rig_close(tap, rig);
}

static void test_pulses(struct tap *tap, struct rig *rig) {
    TEST(tap, "a server gets one pulse, of however many buckets it has copies", {
        struct replica_options options = usual;
        options.buckets = 2;
        rig_open(rig, &options, false);
        struct proto_place second = place(1, A, B, NONE, NONE);
        second.bucket = 1;
        route_all(rig, place(1, A, B, NONE, NONE));
        route_all(rig, second);
        for (int i = 0; i < 2; i++, tick_all(rig, 10))
            settle(rig, NONE);
        CHECK(tap, rig->count == 1 && rig->queue[0].kind == REPLICA_PULSE);
        rig_close(tap, rig);
    });
    TEST(tap, "a primary whose lease is over is silent, so that a secondary takes its place", {
        rig_open(rig, &usual, false);
        route_all(rig, place(1, A, B, C, NONE));
        settle(rig, NONE);
        rig->stands[0].lease = rig->now + usual.silence;
        replica_lease(rig->stands[0].replica, rig->stands[0].lease);
        for (uint32_t passed = 0; passed < usual.silence; passed += 10, tick_all(rig, 10))
            settle(rig, NONE);
        CHECK_INT(tap, rig->proposals, 0);
        for (uint32_t passed = 0; passed <= usual.silence; passed += 10, tick_all(rig, 10))
            settle(rig, NONE);
        CHECK_INT(tap, rig->proposal.change, PROTO_CHANGE_TAKE_OVER);
        rig_close(tap, rig);
    });
}

static void test_interval(struct tap *tap, struct rig *rig) {
    TEST(tap, "rounds begin no more often than they may", {
        struct replica_options options = usual;
        options.interval = 30;
        rig_open(rig, &options, false);
        route_all(rig, place(1, A, B, C, NONE));
        settle(rig, NONE);
        push(rig, A, 0, 0);
        settle(rig, NONE);
        push(rig, A, 0, 0);
        CHECK(tap, !queued(rig, REPLICA_PREPARE, B));
        tick_all(rig, 30);
        CHECK(tap, queued(rig, REPLICA_PREPARE, B) != NULL);
        settle(rig, NONE);
        CHECK(tap, is_replicated(rig, A, 0));
        rig_close(tap, rig);
    });
}

static void test_late(struct tap *tap, struct rig *rig) {
    TEST(tap, "a prepare that was overtaken changes nothing", {
        rig_open(rig, &usual, false);
        route_all(rig, place(1, A, B, NONE, NONE));
        settle(rig, NONE);
        push(rig, A, 0, 0);
        struct replica_message old = rig->queue[0];
        CHECK(tap, old.kind == REPLICA_PREPARE && old.to == B);
        host_hold(&rig->stands[0], old.load);
        settle(rig, NONE);
        push(rig, A, 0, 1);
        settle(rig, NONE);
        replica_receive(rig->stands[1].replica, &old, rig->now);
        old.whole = true;
        replica_receive(rig->stands[1].replica, &old, rig->now);
        host_release(&rig->stands[0], old.load);
        settle(rig, NONE);
        CHECK_INT(tap, replica_stamp(rig->stands[1].replica, 0).version, 2);
        rig_close(tap, rig);
    });
}

// --- epochs -------------------------------------------------------------------------------

static void test_epochs(struct tap *tap, struct rig *rig) {
    rig_open(rig, &usual, false);
    route_all(rig, place(1, A, B, C, NONE));
    settle(rig, NONE);
    TEST(tap, "a member refuses a lower epoch, and the sender asks for places", {
        route(rig, B, place(2, B, C, NONE, NONE));
        drop_all(rig);
        push(rig, A, 0, 0);
        settle(rig, C);
        CHECK_INT(tap, replica_stamp(rig->stands[1].replica, 0).version, 0);
        CHECK(tap, rig->stands[0].outdated > 0);
        CHECK(tap, !is_replicated(rig, A, 0));
    });
    TEST(tap, "of a higher epoch nothing is believed before the controllers tell of it", {
        int outdated = rig->stands[2].outdated;
        tick_all(rig, 20);
        settle(rig, A);
        CHECK(tap, rig->stands[2].outdated > outdated);
        CHECK_INT(tap, examine(rig, B, 2, true), PROTO_REFUSAL_NOT_READY);
    });
    TEST(tap, "requests are served in the present epoch, by the primary, under its lease", {
        CHECK_INT(tap, examine(rig, A, 1, true), PROTO_REFUSAL_NONE);
        CHECK_INT(tap, examine(rig, A, 2, true), PROTO_REFUSAL_BUSY);
        CHECK_INT(tap, examine(rig, B, 1, false), PROTO_REFUSAL_STALE_ROUTE);
        CHECK_INT(tap, examine(rig, B, 2, false), PROTO_REFUSAL_NONE);
        CHECK_INT(tap, examine(rig, C, 1, false), PROTO_REFUSAL_NOT_HERE);
        rig->stands[0].lease = rig->now;
        CHECK_INT(tap, examine(rig, A, 1, false), PROTO_REFUSAL_BUSY);
    });
    TEST(tap, "older places are ignored", {
        route(rig, B, place(1, A, B, C, NONE));
        CHECK_INT(tap, replica_bucket(rig->stands[1].replica, 0).place.epoch, 2);
        CHECK_INT(tap, replica_bucket(rig->stands[1].replica, 0).role, REPLICA_PRIMARY);
    });
    TEST(tap, "a prepare is for members, and from the primary", {
        struct replica_load load = {.references = 100};
        struct replica_message m = {.kind = REPLICA_PREPARE,
                                    .from = B,
                                    .to = C,
                                    .epoch = 1,
                                    .stamp = {1, 1},
                                    .blocks = 1,
                                    .load = &load};
        replica_receive(rig->stands[2].replica, &m, rig->now);
        m.to = A;
        replica_receive(rig->stands[0].replica, &m, rig->now);
        m = (struct replica_message){.kind = REPLICA_PREPARE,
                                     .from = A,
                                     .to = C,
                                     .epoch = 1,
                                     .stamp = {1, 1},
                                     .blocks = 1}; // without its load
        replica_receive(rig->stands[2].replica, &m, rig->now);
        m.shard = SHARDS;
        replica_receive(rig->stands[2].replica, &m, rig->now);
        CHECK_INT(tap, replica_stamp(rig->stands[2].replica, 0).version, 0);
        CHECK_INT(tap, load.references, 100);
    });
    rig_close(tap, rig);
}

// --- roles --------------------------------------------------------------------------------

static void test_takeover(struct tap *tap, struct rig *rig) {
    rig_open(rig, &usual, false);
    route_all(rig, place(1, A, B, C, NONE));
    settle(rig, NONE);
    push(rig, A, 0, 0);
    settle(rig, NONE); // prepared everywhere, and committed nowhere but at A
    push(rig, A, 1, 1);
    settle(rig, C); // prepared by B alone
    push(rig, A, 1, 2);
    TEST(tap, "the new primary commits all that it has prepared", {
        route(rig, B, place(2, B, C, NONE, NONE));
        CHECK_INT(tap, rig->stands[1].version[0], 1);
        CHECK_INT(tap, rig->stands[1].version[1], 1);
        CHECK(tap, rig->stands[1].values[0][0] == 1 && rig->stands[1].values[1][1] == 1);
    });
    TEST(tap, "and tells no version before the others have the same", {
        CHECK_INT(tap, examine(rig, B, 2, true), PROTO_REFUSAL_NOT_READY);
        CHECK(tap, !is_replicated(rig, B, 0) && !is_replicated(rig, B, 1));
        route(rig, C, place(2, B, C, NONE, NONE));
        for (int i = 0; i < 3; i++, tick_all(rig, 20))
            settle(rig, A);
        CHECK_INT(tap, examine(rig, B, 2, true), PROTO_REFUSAL_NONE);
        CHECK(tap, is_replicated(rig, B, 0) && is_replicated(rig, B, 1));
        CHECK(tap, same_values(rig, B, C));
    });
    TEST(tap, "who had not prepared the last round is sent that, and nothing is read anew", {
        CHECK_INT(tap, rig->stands[1].reads, 0);
        CHECK(tap, rig->stands[2].values[1][1] == 1);
    });
    TEST(tap, "the old one learns that its pushes will not count, and keeps its values", {
        CHECK_INT(tap, rig->stands[0].closed, 0);
        route(rig, A, place(3, B, C, NONE, A));
        CHECK_INT(tap, rig->stands[0].closed, SHARDS);
        CHECK(tap, rig->stands[0].values[1][2] == 1);
        CHECK_INT(tap, replica_stamp(rig->stands[0].replica, 1).version, 2);
    });
    TEST(tap, "until it is given those of the new one", {
        push(rig, B, 1, 3); // the same version as the old one's last push
        route(rig, B, place(3, B, C, NONE, A));
        route(rig, C, place(3, B, C, NONE, A));
        for (int i = 0; i < 4; i++, tick_all(rig, 20))
            settle(rig, NONE);
        CHECK(tap, same_values(rig, A, B) && same_values(rig, B, C));
        CHECK(tap, rig->stands[0].values[1][2] == 0 && rig->stands[0].values[1][3] == 1);
    });
    rig_close(tap, rig);
}

static void test_same_primary(struct tap *tap, struct rig *rig) {
    TEST(tap, "in a new epoch the same primary goes on with its round, without who was dropped", {
        rig_open(rig, &usual, false);
        route_all(rig, place(1, A, B, C, NONE));
        settle(rig, NONE);
        push(rig, A, 0, 0);
        settle(rig, C);
        CHECK(tap, !is_replicated(rig, A, 0));
        route(rig, A, place(2, A, B, NONE, NONE));
        route(rig, B, place(2, A, B, NONE, NONE));
        settle(rig, C);
        CHECK(tap, is_replicated(rig, A, 0));
        CHECK_INT(tap, examine(rig, A, 2, true), PROTO_REFUSAL_NONE);
        CHECK_INT(tap, replica_stamp(rig->stands[1].replica, 0).epoch, 1);
        rig_close(tap, rig);
    });
    TEST(tap, "who was dropped keeps what it has installed, and no load", {
        rig_open(rig, &usual, false);
        route_all(rig, place(1, A, B, C, NONE));
        settle(rig, NONE);
        push(rig, A, 0, 0);
        settle(rig, NONE);
        tick_all(rig, 10);
        settle(rig, NONE);
        push(rig, A, 0, 1);
        settle(rig, NONE);
        CHECK_INT(tap, replica_stamp(rig->stands[2].replica, 0).version, 2);
        route(rig, C, place(2, A, B, NONE, NONE));
        CHECK_INT(tap, replica_stamp(rig->stands[2].replica, 0).version, 1);
        CHECK(tap, rig->stands[2].values[0][0] == 1);
        rig_close(tap, rig);
    });
}

static void test_joiner(struct tap *tap, struct rig *rig) {
    rig_open(rig, &usual, false);
    route_all(rig, place(1, A, B, NONE, NONE));
    settle(rig, NONE);
    push(rig, A, 0, 0);
    push(rig, A, 1, 1);
    settle(rig, NONE);
    TEST(tap, "a joiner is given whole shards, and counts when it has all of them", {
        route_all(rig, place(2, A, B, NONE, C));
        while (rig->count > 0) // shard 1 is late
            if (rig->queue[0].to == C && rig->queue[0].shard == 1)
                drop_message(rig, 0);
            else
                deliver(rig, 0);
        tick_all(rig, 10);
        drop_all(rig);
        CHECK_INT(tap, rig->proposals, 0);
        push(rig, A, 1, 2);
        settle(rig, C);
        CHECK(tap, !is_replicated(rig, A, 1)); // it was sent the shard: it is waited for a while
        tick_all(rig, 100);
        settle(rig, C);
        CHECK(tap, is_replicated(rig, A, 1));
    });
    TEST(tap, "then the primary proposes it, and waits for it in every round", {
        rig->proposals = 0;
        for (int i = 0; i < 12; i++, tick_all(rig, 20))
            settle(rig, NONE);
        CHECK(tap, rig->proposals > 0);
        CHECK_INT(tap, rig->proposal.change, PROTO_CHANGE_COMPLETE);
        CHECK_INT(tap, rig->proposal.member, C);
        CHECK_INT(tap, rig->proposal.epoch, 2);
        push(rig, A, 0, 3);
        for (int i = 0; i < 8; i++, tick_all(rig, 20))
            settle(rig, C);
        CHECK(tap, !is_replicated(rig, A, 0));
        for (int i = 0; i < 2; i++, tick_all(rig, 20))
            settle(rig, NONE);
        CHECK(tap, is_replicated(rig, A, 0));
        CHECK(tap, same_values(rig, A, C));
    });
    TEST(tap, "but not for the joiner of a later epoch", {
        route_all(rig, place(3, A, C, NONE, B));
        settle(rig, B);
        push(rig, A, 0, 1);
        for (int i = 0; i < 8; i++, tick_all(rig, 20))
            settle(rig, B);
        CHECK(tap, is_replicated(rig, A, 0));
    });
    rig_close(tap, rig);
}

static void test_wholes(struct tap *tap, struct rig *rig) {
    TEST(tap, "whole shards are copied a few at a time", {
        struct replica_options options = usual;
        options.wholes = 1;
        rig_open(rig, &options, false);
        route_all(rig, place(1, A, NONE, NONE, NONE));
        push(rig, A, 0, 0);
        push(rig, A, 1, 0);
        route_all(rig, place(2, A, NONE, NONE, C));
        for (int i = 0; i < 2; i++) // asked, and found to be behind
            while (rig->count > 0 &&
                   !(rig->queue[0].kind == REPLICA_PREPARE && rig->queue[0].whole))
                deliver(rig, 0);
        CHECK_INT(tap, rig->stands[0].reads, 1);
        for (int i = 0; i < 3; i++, tick_all(rig, 20))
            settle(rig, NONE);
        CHECK_INT(tap, rig->stands[0].reads, 2);
        CHECK(tap, same_values(rig, A, C));
        rig_close(tap, rig);
    });
}

// The threads that apply pushes are ahead of who tells the replica.
static void push_untold(struct rig *rig, uint32_t member, uint32_t shard, int block) {
    struct stand *s = stand_of(rig, member);
    s->values[shard][block] += 1;
    s->version[shard]++;
    s->untold[shard] |= UINT64_C(1) << block;
}

static void test_untold(struct tap *tap, struct rig *rig) {
    TEST(tap, "a push that was read before it was told is in that round, with its blocks", {
        rig_open(rig, &usual, false);
        route_all(rig, place(1, A, B, NONE, NONE));
        settle(rig, NONE);
        push_untold(rig, A, 0, 1);
        push(rig, A, 0, 0); // version 2
        settle(rig, NONE);
        CHECK_INT(tap, replica_stamp(rig->stands[1].replica, 0).version, 2);
        CHECK(tap, is_replicated(rig, A, 0));
        tick_all(rig, usual.pulse);
        settle(rig, NONE);
        CHECK(tap, rig->stands[1].values[0][1] == rig->stands[0].values[0][1]);
        int reads = rig->stands[0].reads;
        replica_applied(rig->stands[0].replica, 0, 0, 2, rig->now);
        settle(rig, NONE);
        CHECK_INT(tap, rig->stands[0].reads, reads);
        rig_close(tap, rig);
    });
    TEST(tap,
         "who is sent all of a shard while a round is under way has the stamp of what was read", {
             rig_open(rig, &usual, false);
             route_all(rig, place(1, A, B, NONE, NONE));
             settle(rig, NONE);
             push(rig, A, 0, 0);
             settle(rig, NONE);
             push(rig, A, 0, 0);
             push_untold(rig, A, 0, 1);
             route_all(rig, place(2, A, B, C, NONE)); // C has nothing: all is read
             settle(rig, NONE);
             for (uint32_t i = 1; i < MEMBERS; i++)
                 CHECK_INT(tap, replica_stamp(rig->stands[i].replica, 0).version, 3);
             tick_all(rig, usual.pulse);
             settle(rig, NONE);
             CHECK(tap, rig->stands[1].values[0][1] == rig->stands[0].values[0][1]);
             CHECK(tap, is_replicated(rig, A, 0));
             rig_close(tap, rig);
         });
}

static void test_busy(struct tap *tap, struct rig *rig) {
    TEST(tap, "who joins a bucket whose shards are pushed to all the time is complete, too", {
        rig_open(rig, &usual, false);
        route_all(rig, place(1, A, B, NONE, NONE));
        settle(rig, NONE);
        push(rig, A, 0, 0);
        settle(rig, NONE);
        route_all(rig, place(2, A, B, NONE, C));
        for (int i = 0; i < 12; i++) {
            for (uint32_t shard = 0; shard < SHARDS; shard++)
                push(rig, A, shard, i % BLOCKS);
            tick_all(rig, 20); // in the middle of a round of each
            settle(rig, NONE);
        }
        CHECK(tap, rig->proposals > 0);
        CHECK_INT(tap, rig->proposal.change, PROTO_CHANGE_COMPLETE);
        CHECK_INT(tap, rig->proposal.member, C);
        rig_close(tap, rig);
    });
}

static void test_dense(struct tap *tap, struct rig *rig) {
    TEST(tap, "rounds that change all blocks are no copies: all of them begin at once", {
        struct replica_options options = usual;
        options.wholes = 1;
        rig_open(rig, &options, false);
        route_all(rig, place(1, A, B, NONE, NONE));
        settle(rig, NONE);
        for (uint32_t shard = 0; shard < SHARDS; shard++)
            replica_applied(rig->stands[0].replica, shard, REPLICA_ALL,
                            ++rig->stands[0].version[shard], rig->now);
        CHECK_INT(tap, rig->stands[0].reads, SHARDS);
        settle(rig, NONE);
        CHECK(tap, is_replicated(rig, A, 0) && is_replicated(rig, A, 1));
        rig_close(tap, rig);
    });
}

// A and B are primaries that lost touch: each member of the new epoch has values of its own.
static void test_members_behind(struct tap *tap, struct rig *rig) {
    TEST(tap, "members that are behind are sent one shard after the other, without waiting", {
        struct replica_options options = usual;
        options.wholes = 1;
        rig_open(rig, &options, false);
        route(rig, B, place(1, B, NONE, NONE, NONE));
        push(rig, B, 0, 0);
        push(rig, B, 1, 0);
        route(rig, A, place(2, A, NONE, NONE, NONE));
        push(rig, A, 0, 1);
        push(rig, A, 1, 1);
        route_all(rig, place(3, A, B, NONE, NONE));
        settle(rig, NONE);
        CHECK_INT(tap, rig->stands[0].reads, SHARDS);
        CHECK(tap, is_replicated(rig, A, 0) && is_replicated(rig, A, 1));
        tick_all(rig, 10);
        settle(rig, NONE);
        CHECK(tap, same_values(rig, A, B));
        rig_close(tap, rig);
    });
}

static void test_restore(struct tap *tap, struct rig *rig) {
    TEST(tap, "a server that comes back with a shard as it is now is not sent it", {
        rig_open(rig, &usual, false);
        route_all(rig, place(1, A, NONE, NONE, NONE));
        push(rig, A, 0, 0);
        push(rig, A, 1, 0);
        replica_restore(rig->stands[2].replica, 0, (struct replica_stamp){1, 1});
        replica_restore(rig->stands[2].replica, 1, (struct replica_stamp){2, 1});
        route_all(rig, place(3, A, NONE, NONE, C));
        settle(rig, NONE);
        CHECK_INT(tap, rig->stands[0].reads, 1);
        for (int i = 0; i < 3; i++, tick_all(rig, 10))
            settle(rig, NONE);
        CHECK_INT(tap, rig->proposal.change, PROTO_CHANGE_COMPLETE);
        rig_close(tap, rig);
    });
    TEST(tap, "a joiner of a bucket without shards counts when it has answered a pulse", {
        struct replica_options options = usual;
        options.buckets = 2; // shard 0 and shard 1 are in the first and the second
        options.shards = 1;
        rig_open(rig, &options, false);
        struct proto_place second = place(1, A, NONE, NONE, C);
        second.bucket = 1;
        route_all(rig, second);
        for (int i = 0; i < 3; i++, tick_all(rig, 10))
            settle(rig, C);
        CHECK_INT(tap, rig->proposals, 0);
        for (int i = 0; i < 3; i++, tick_all(rig, 10))
            settle(rig, NONE);
        CHECK_INT(tap, rig->proposal.change, PROTO_CHANGE_COMPLETE);
        CHECK_INT(tap, rig->proposal.bucket, 1);
        rig_close(tap, rig);
    });
}

// --- silence ------------------------------------------------------------------------------

static void test_silence(struct tap *tap, struct rig *rig) {
    TEST(tap, "a secondary that does not hear the primary proposes to take over", {
        rig_open(rig, &usual, false);
        route_all(rig, place(7, A, B, NONE, NONE));
        for (int i = 0; i < 10; i++, tick_all(rig, 10))
            settle(rig, NONE);
        CHECK_INT(tap, rig->proposals, 0);
        for (int i = 0; i < 6; i++, tick_all(rig, 10))
            drop_all(rig);
        CHECK(tap, rig->proposals > 0);
        CHECK_INT(tap, rig->proposal.change, PROTO_CHANGE_TAKE_OVER);
        CHECK_INT(tap, rig->proposal.member, B);
        CHECK_INT(tap, rig->proposal.epoch, 7);
        CHECK_INT(tap, rig->proposal.primary, A);
        rig_close(tap, rig);
    });
    TEST(tap, "what is wanted is proposed at each tick, and no longer", {
        rig_open(rig, &usual, false);
        route_all(rig, place(7, A, B, NONE, NONE));
        for (int i = 0; i < 6; i++, tick_all(rig, 10))
            drop_all(rig);
        for (int i = 0; i < 3; i++, tick_all(rig, 10)) {
            drop_all(rig);
            CHECK(tap, rig->proposals > 0);
            rig->proposals = 0;
        }
        settle(rig, NONE);
        tick_all(rig, 10);
        settle(rig, NONE);
        rig->proposals = 0;
        tick_all(rig, 10);
        CHECK_INT(tap, rig->proposals, 0);
        rig_close(tap, rig);
    });
    TEST(tap, "a primary proposes to drop who does not answer, and waits until it is dropped", {
        rig_open(rig, &usual, false);
        route_all(rig, place(7, A, B, C, NONE));
        settle(rig, NONE);
        push(rig, A, 0, 0);
        for (int i = 0; i < 12; i++, tick_all(rig, 10))
            settle(rig, C);
        CHECK(tap, !is_replicated(rig, A, 0));
        CHECK_INT(tap, rig->stands[0].proposal.change, PROTO_CHANGE_DROP);
        CHECK_INT(tap, rig->stands[0].proposal.member, C);
        rig_close(tap, rig);
    });
    TEST(tap, "and a joiner that does not, at each tick, also while pushes go on", {
        rig_open(rig, &usual, false);
        route_all(rig, place(1, A, B, NONE, NONE));
        settle(rig, NONE);
        route_all(rig, place(2, A, B, NONE, C));
        for (int i = 0; i < 30; i++) {
            for (uint32_t shard = 0; shard < SHARDS; shard++)
                push(rig, A, shard, 0);
            settle(rig, C);
            rig->proposals = 0;
            tick_all(rig, 10);
            settle(rig, C);
            CHECK(tap, i < 20 || (rig->proposals > 0 && rig->proposal.change == PROTO_CHANGE_DROP &&
                                  rig->proposal.member == C));
        }
        rig_close(tap, rig);
    });
}

// --- storage and memory -------------------------------------------------------------------

static void test_durable(struct tap *tap, struct rig *rig) {
    TEST(tap, "where pushes are to be durable, each server answers when it has kept them", {
        rig_open(rig, &usual, true);
        route_all(rig, place(1, A, B, NONE, NONE));
        settle(rig, NONE);
        push(rig, A, 0, 0);
        settle(rig, NONE);
        CHECK(tap, rig->stands[0].kept == 1 && rig->stands[1].kept == 1);
        CHECK(tap, !is_replicated(rig, A, 0));
        replica_kept(rig->stands[0].replica, 0, rig->stands[0].keep, rig->now);
        settle(rig, NONE);
        CHECK(tap, !is_replicated(rig, A, 0));
        replica_kept(rig->stands[1].replica, 0, (struct replica_stamp){0, 9}, rig->now);
        settle(rig, NONE);
        CHECK(tap, !is_replicated(rig, A, 0));
        replica_kept(rig->stands[1].replica, 0, rig->stands[1].keep, rig->now);
        settle(rig, NONE);
        CHECK(tap, is_replicated(rig, A, 0));
        push(rig, A, 0, 0);
        settle(rig, NONE);
        replica_kept(rig->stands[1].replica, 0, rig->stands[1].keep, rig->now);
        settle(rig, NONE);
        CHECK(tap, !is_replicated(rig, A, 0));
        replica_kept(rig->stands[0].replica, 0, rig->stands[0].keep, rig->now);
        CHECK(tap, is_replicated(rig, A, 0));
        rig_close(tap, rig);
    });
    TEST(tap, "and one whose disk is slow is waited for as long as it answers pulses", {
        rig_open(rig, &usual, true);
        route_all(rig, place(1, A, B, NONE, NONE));
        settle(rig, NONE);
        push(rig, A, 0, 0);
        replica_kept(rig->stands[0].replica, 0, rig->stands[0].keep, rig->now);
        for (int i = 0; i < 30; i++) {
            settle(rig, NONE);
            tick_all(rig, 10);
        }
        CHECK_INT(tap, rig->proposals, 0);
        CHECK(tap, !is_replicated(rig, A, 0));
        for (int i = 0; i < 15; i++) {
            settle(rig, B);
            tick_all(rig, 10);
        }
        CHECK(tap, rig->proposals > 0);
        CHECK(tap, rig->proposal.change == PROTO_CHANGE_DROP ||
                       rig->proposal.change == PROTO_CHANGE_TAKE_OVER);
        rig_close(tap, rig);
    });
    TEST(tap, "and one that is replaced and becomes the primary again waits for its own", {
        rig_open(rig, &usual, true);
        route_all(rig, place(1, A, B, NONE, NONE));
        settle(rig, NONE);
        push(rig, A, 0, 0);
        settle(rig, NONE);
        const struct replica_stamp before = rig->stands[0].keep;
        push(rig, A, 0, 1);
        route(rig, A, place(2, B, A, NONE, NONE));
        route(rig, A, place(3, A, NONE, NONE, NONE));
        CHECK(tap, !is_replicated(rig, A, 0));
        replica_kept(rig->stands[0].replica, 0, before, rig->now);
        CHECK(tap, !is_replicated(rig, A, 0));
        replica_kept(rig->stands[0].replica, 0, rig->stands[0].keep, rig->now);
        CHECK(tap, is_replicated(rig, A, 0));
        rig_close(tap, rig);
    });
    TEST(tap, "but one that has no copy any more has nothing to keep, and may join again", {
        rig_open(rig, &usual, true);
        route_all(rig, place(1, A, B, NONE, NONE));
        settle(rig, NONE);
        push(rig, A, 0, 0);
        settle(rig, NONE);
        replica_kept(rig->stands[1].replica, 0, rig->stands[1].keep, rig->now);
        push(rig, A, 0, 1);
        int kept = rig->stands[0].kept;
        route_all(rig, place(2, B, NONE, NONE, NONE));
        CHECK_INT(tap, rig->stands[0].kept, kept);
        route_all(rig, place(3, B, NONE, NONE, A));
        for (int i = 0; i < 4; i++, tick_all(rig, 10))
            settle(rig, NONE);
        CHECK_INT(tap, rig->stands[0].kept, kept + 1);
        rig_close(tap, rig);
    });
}

static void test_delayed(struct tap *tap, struct rig *rig) {
    struct replica_options options = usual;
    struct stand *joiner = stand_of(rig, C);
    options.delayed = true;
    rig_open(rig, &options, true);
    route_all(rig, place(1, A, B, NONE, NONE));
    settle(rig, NONE);
    push(rig, A, 0, 0);
    settle(rig, NONE);
    TEST(tap, "where persistence is delayed, pushes need not be kept", {
        CHECK(tap, is_replicated(rig, A, 0));
        CHECK(tap, rig->stands[0].kept == 0 && rig->stands[1].kept == 0);
    });
    TEST(tap, "but a joiner has kept what it was sent whole before it counts", {
        route_all(rig, place(2, A, B, NONE, C));
        for (int i = 0; i < 4; i++, tick_all(rig, 10))
            settle(rig, NONE);
        CHECK_INT(tap, joiner->kept, 1);
        replica_kept(joiner->replica, 0, (struct replica_stamp){0, 9}, rig->now); // of before
        for (int i = 0; i < 4; i++, tick_all(rig, 10))
            settle(rig, NONE);
        CHECK_INT(tap, rig->proposals, 0);
        replica_kept(joiner->replica, 0, joiner->keep, rig->now);
        for (int i = 0; i < 4; i++, tick_all(rig, 10))
            settle(rig, NONE);
        CHECK(tap, rig->proposals > 0);
        CHECK_INT(tap, rig->proposal.change, PROTO_CHANGE_COMPLETE);
    });
    TEST(tap, "and need not keep what changes it then", {
        push(rig, A, 0, 1);
        settle(rig, NONE);
        CHECK_INT(tap, joiner->kept, 1);
        CHECK(tap, is_replicated(rig, A, 0));
    });
    rig_close(tap, rig);
}

static void test_memory(struct tap *tap, struct rig *rig) {
    TEST(tap, "a round that finds no memory begins later", {
        rig_open(rig, &usual, false);
        route_all(rig, place(1, A, B, NONE, NONE));
        settle(rig, NONE);
        rig->stands[0].no_memory = true;
        push(rig, A, 0, 0);
        settle(rig, NONE);
        CHECK(tap, !is_replicated(rig, A, 0));
        rig->stands[0].no_memory = false;
        tick_all(rig, 10);
        settle(rig, NONE);
        CHECK(tap, is_replicated(rig, A, 0));
        rig_close(tap, rig);
    });
    TEST(tap, "options that make no sense, and memory that is out, are reported", {
        struct replica *replica = NULL;
        struct error err = {0};
        struct replica_options options = usual;
        long live = heap_live();
        int status = STATUS_IO;
        uint32_t *const needed[] = {&options.shards,  &options.buckets, &options.pulse,
                                    &options.silence, &options.resend,  &options.patience,
                                    &options.wholes};
        for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
            options = usual;
            *needed[i] = 0;
            CHECK_INT(tap, replica_open(&replica, &options, &rig->stands[0].host, 0, &err),
                      STATUS_USAGE);
            *needed[i] = 1;
            CHECK_INT(tap, replica_open(&replica, &options, &rig->stands[0].host, 0, &err),
                      STATUS_OK);
            replica_close(replica);
        }
        for (int n = 0; status && HEAP_FAILS; n++) {
            heap_fail_after(n);
            status = replica_open(&replica, &usual, &rig->stands[0].host, 0, &err);
            heap_fail_after(-1);
            CHECK(tap, status == (n < 4 ? STATUS_IO : STATUS_OK));
        }
        replica_close(HEAP_FAILS ? replica : NULL);
        CHECK_INT(tap, heap_live(), live);
    });
}

int main(void) {
    struct tap tap = {0};
    struct rig *rig = calloc(1, sizeof *rig);
    if (!rig)
        abort();
    test_alone(&tap, rig);
    test_round(&tap, rig);
    test_again(&tap, rig);
    test_pulses(&tap, rig);
    test_interval(&tap, rig);
    test_late(&tap, rig);
    test_epochs(&tap, rig);
    test_takeover(&tap, rig);
    test_same_primary(&tap, rig);
    test_joiner(&tap, rig);
    test_wholes(&tap, rig);
    test_untold(&tap, rig);
    test_busy(&tap, rig);
    test_dense(&tap, rig);
    test_members_behind(&tap, rig);
    test_restore(&tap, rig);
    test_silence(&tap, rig);
    test_durable(&tap, rig);
    test_delayed(&tap, rig);
    test_memory(&tap, rig);
    free(rig);
    return tap_done(&tap);
}
