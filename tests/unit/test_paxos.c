// The controllers' register, as a whole cluster in one process: virtual time, a network
// that loses, repeats, delays and reorders, members that crash at any point of a step and
// start again from what they had kept. Everything follows from the seed of a schedule.
//   PAXOS_SCHEDULES  how many schedules for each number of members (300)
//   PAXOS_SEED       the first of them (1)
#include <inttypes.h>
#include <stdlib.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "cluster/paxos.h"
#include "core/error.h"

enum {
    STATE = 24,       // bytes of a state: its version, its value, the value it was made from
    PACKET = 128,     // room for a message on the wire
    PACKETS = 200,    // on their way
    VERSIONS = 4096,  // that a schedule can commit
    LEADERS = 4096,   // commits remembered with their ballots
    EVENTS = 1500,    // of a schedule
    HEARTBEAT = 5,    // milliseconds of virtual time
    ELECTION = 20,    //
    PATIENCE = 20000, // milliseconds after which a healed cluster must have agreed
};

struct packet {
    uint32_t from, to;
    size_t size;
    uint8_t bytes[PACKET];
};

struct kept { // on a member's disk
    bool any;
    struct paxos_record record;
    uint8_t bytes[STATE];
};

struct member {
    struct paxos *paxos; // NULL: down
    struct kept kept;
    bool ran, wiped; // it had a record once; its disk was lost, and it is not back yet
    bool knows;
    uint64_t followed; // times that it did not lead any more
    uint64_t version;  // newest committed that it told of
};

struct ballot_commit {
    uint64_t ballot, low, high; // versions that its leader committed
};

struct leadership { // of a ballot
    uint64_t ballot, confirmed, inherited;
    uint32_t member;
    uint64_t followed;
};

struct cluster {
    uint64_t seed, now, values, starts, wipes;
    struct random random;
    uint32_t members;
    struct member member[PAXOS_MEMBERS_MAX];
    bool cut[PAXOS_MEMBERS_MAX][PAXOS_MEMBERS_MAX];
    struct packet packet[PACKETS];
    size_t packets;
    // How rough this schedule is, each in thousandths.
    uint32_t loss, repeat, crash, cutting, wipe;
    // What was committed, as anybody told.
    uint64_t chosen[VERSIONS];
    bool is_chosen[VERSIONS];
    uint64_t newest, commits;
    struct ballot_commit leader[LEADERS];
    size_t leaders;
    struct leadership leadership[LEADERS];
    size_t leaderships;
    struct proto_room room;
    char fault[256]; // the first one found
};

static void fault(struct cluster *c, const char *what, uint32_t member, uint64_t version) {
    if (!*c->fault)
        snprintf(c->fault, sizeof c->fault,
                 "%" PRIu32 " members, seed %" PRIu64 ": %.120s (member %" PRIu32
                 ", version %" PRIu64 ")",
                 c->members, c->seed, what, member, version);
}

// Of a member: they run alike, and were never set.
static uint64_t clock_of(const struct cluster *c, uint32_t i) {
    return c->now + 10000 * (PAXOS_MEMBERS_MAX - i);
}

static bool happens(struct cluster *c, uint32_t thousandths) {
    return random_below(&c->random, 1000) < thousandths;
}

// What must hold of every state that any member says is committed.
static void check_committed(struct cluster *c, uint32_t i) {
    struct paxos_state state;
    uint64_t word[3] = {0};
    struct member *member = &c->member[i];
    if (!paxos_committed(member->paxos, &state)) {
        fault(c, "nothing is committed", i, 0);
        return;
    }
    memcpy(word, state.bytes, state.length);
    if (state.version >= VERSIONS || state.version != word[0] || (state.version && !state.length)) {
        fault(c, "the state is not the one of its version", i, state.version);
        return;
    }
    if (c->is_chosen[state.version] && c->chosen[state.version] != word[1])
        fault(c, "two states are committed as the same version", i, state.version);
    if (state.version > 0 &&
        !(c->is_chosen[state.version - 1] && c->chosen[state.version - 1] == word[2]))
        fault(c, "a state was not made from the one before", i, state.version);
    if (member->knows && state.version <= member->version)
        fault(c, "a member went back, or told twice", i, state.version);
    member->knows = true;
    member->version = state.version;
    c->is_chosen[state.version] = true;
    c->chosen[state.version] = word[1];
    c->newest = state.version > c->newest ? state.version : c->newest;
    c->commits++;
}

// No leader commits less than a leader with a lower ballot did, at whatever time.
static void check_leader(struct cluster *c, uint32_t i) {
    uint64_t ballot = paxos_record(c->member[i].paxos).promised, version = c->member[i].version;
    size_t at = 0;
    while (at < c->leaders && c->leader[at].ballot != ballot)
        at++;
    if (at == LEADERS)
        return;
    if (at == c->leaders)
        c->leader[c->leaders++] = (struct ballot_commit){ballot, version, version};
    c->leader[at].high = version;
    for (size_t k = 0; k < c->leaders; k++)
        if ((c->leader[k].ballot < ballot && c->leader[k].high > version) ||
            (c->leader[k].ballot > ballot && c->leader[k].low < version))
            fault(c, "a leader forgot what another had committed", i, version);
}

static struct leadership *leadership_of(struct cluster *c, uint64_t ballot) {
    size_t at = 0;
    while (at < c->leaderships && c->leadership[at].ballot != ballot)
        at++;
    if (at == LEADERS)
        return NULL;
    if (at == c->leaderships)
        c->leadership[c->leaderships++] = (struct leadership){.ballot = ballot};
    return &c->leadership[at];
}

// The member did not follow another meanwhile, nor start again.
static bool goes_on(const struct leadership *a, const struct leadership *b) {
    return a->member == b->member && a->followed == b->followed;
}

// No leader is confirmed after a time that one with a higher ballot has inherited.
static void check_confirmed(struct cluster *c, uint32_t i) {
    const struct paxos *paxos = c->member[i].paxos;
    c->member[i].followed += paxos_standing(paxos) == PAXOS_FOLLOWER;
    uint64_t ballot = paxos_record(paxos).promised;
    uint64_t confirmed = paxos_confirmed(paxos, clock_of(c, i));
    if (paxos_standing(paxos) != PAXOS_LEADER || confirmed == 0)
        return;
    struct leadership *own = leadership_of(c, ballot);
    if (!own)
        return;
    own->member = i;
    own->followed = c->member[i].followed;
    own->confirmed = confirmed - clock_of(c, i) + c->now;
    own->inherited = paxos_inherited(paxos) - clock_of(c, i) + c->now;
    for (size_t k = 0; k < c->leaderships; k++) {
        const struct leadership *other = &c->leadership[k];
        if (goes_on(other, own))
            continue;
        if ((other->ballot < ballot && other->confirmed > own->inherited) ||
            (other->ballot > ballot && own->confirmed > other->inherited))
            fault(c, "a leader is confirmed later than another knows", i, 0);
    }
}

static void keep_record(struct cluster *c, uint32_t i) {
    struct kept *kept = &c->member[i].kept;
    struct paxos_record record = paxos_record(c->member[i].paxos);
    if (kept->any && record.promised < kept->record.promised)
        fault(c, "a promise was taken back", i, record.state.version);
    if (record.accepted > record.promised)
        fault(c, "accepted without promise", i, record.state.version);
    kept->any = c->member[i].ran = true;
    c->member[i].wiped = false;
    kept->record = record;
    memcpy(kept->bytes, record.state.bytes, record.state.length);
    kept->record.state.bytes = kept->bytes;
}

static void send_packet(struct cluster *c, const struct proto_paxos *message) {
    struct error err = {0};
    // The oldest ones are late for good when the network is full.
    size_t at = c->packets < PACKETS ? c->packets++ : random_below(&c->random, PACKETS);
    struct packet *packet = &c->packet[at];
    if (proto_measure(PROTO_TYPE_PAXOS, message, &packet->size, &err) || packet->size > PACKET) {
        fault(c, "a message cannot be sent", message->from, message->version);
        c->packets--;
        return;
    }
    packet->from = message->from;
    packet->to = message->to;
    proto_encode(PROTO_TYPE_PAXOS, message, packet->bytes);
}

static void crash(struct cluster *c, uint32_t i) {
    paxos_close(c->member[i].paxos);
    c->member[i].paxos = NULL;
    c->member[i].knows = false;
    c->member[i].followed++;
}

static void start(struct cluster *c, uint32_t i) {
    const struct paxos_config config = {
        .id = i,
        .members = c->members,
        .seed = c->seed ^ c->now,
        .heartbeat = HEARTBEAT,
        .election = ELECTION,
        .state_max = STATE,
        .start = ++c->starts,
        .rejoin = c->member[i].wiped,
    };
    struct kept *kept = &c->member[i].kept;
    struct error err = {0};
    if (paxos_open(&c->member[i].paxos, &config, kept->any ? &kept->record : NULL, clock_of(c, i),
                   &err))
        fault(c, err.text, i, 0);
}

// Who crashes before the cluster is founded may have to be told to rejoin.
static bool is_founded(const struct cluster *c) {
    for (uint32_t i = 0; i < c->members; i++)
        if (!c->member[i].ran)
            return false;
    return true;
}

// Does what a step asks for, unless the member crashes in the middle of it.
static void obey(struct cluster *c, uint32_t i, const struct paxos_output *out) {
    bool crashes = is_founded(c) && happens(c, c->crash);
    uint32_t point = random_below(&c->random, 4), sent = out->count;
    bool first = out->count > 0 && out->messages[0].step == PROTO_PAXOS_ACCEPT;
    for (uint32_t k = 0; first && k < sent; k++)
        send_packet(c, &out->messages[k]);
    if (crashes && point == 0) {
        crash(c, i);
        return;
    }
    if (out->persist)
        keep_record(c, i);
    if (crashes && sent > 0)
        sent = point == 1 ? 0 : random_below(&c->random, sent + 1);
    for (uint32_t k = 0; !first && k < sent; k++)
        send_packet(c, &out->messages[k]);
    if (out->committed) {
        check_committed(c, i);
        if (paxos_standing(c->member[i].paxos) == PAXOS_LEADER)
            check_leader(c, i);
    }
    check_confirmed(c, i);
    if (crashes)
        crash(c, i);
}

static void tick(struct cluster *c, uint32_t i) {
    struct paxos_output out;
    if (!c->member[i].paxos)
        return;
    paxos_tick(c->member[i].paxos, clock_of(c, i), &out);
    obey(c, i, &out);
}

static void deliver(struct cluster *c, size_t at, bool again) {
    struct packet packet = c->packet[at];
    struct proto_paxos message;
    struct paxos_output out;
    struct error err = {0};
    if (!again)
        c->packet[at] = c->packet[--c->packets];
    if (!c->member[packet.to].paxos || c->cut[packet.from][packet.to])
        return;
    if (proto_decode(PROTO_TYPE_PAXOS, packet.bytes, packet.size, &message, &c->room, &err)) {
        fault(c, err.text, packet.from, 0);
        return;
    }
    paxos_receive(c->member[packet.to].paxos, &message, clock_of(c, packet.to), &out);
    obey(c, packet.to, &out);
}

// A person replaces one disk at a time, and no member's before all have one.
static void wipe(struct cluster *c, uint32_t i) {
    for (uint32_t j = 0; j < c->members; j++)
        if (c->member[j].wiped)
            return;
    crash(c, i);
    c->member[i].kept.any = false;
    c->member[i].wiped = true;
    c->wipes++;
}

// The next version, made from what the member knows to be committed, if it can.
static void propose(struct cluster *c, uint32_t i) {
    struct paxos_output out;
    struct paxos_state state;
    if (!c->member[i].paxos || !paxos_ready(c->member[i].paxos) ||
        !paxos_committed(c->member[i].paxos, &state) || state.version + 1 >= VERSIONS)
        return;
    uint64_t word[3] = {state.version + 1, ++c->values, 0};
    if (state.version > 0)
        memcpy(&word[2], state.bytes + 8, 8);
    if (paxos_propose(c->member[i].paxos, word, STATE, clock_of(c, i), &out, NULL))
        fault(c, "a ready leader does not propose", i, state.version);
    obey(c, i, &out);
}

static void rough_event(struct cluster *c) {
    uint32_t i = random_below(&c->random, c->members), kind = random_below(&c->random, 100);
    c->now += random_below(&c->random, 3);
    if (kind < 60 && c->packets > 0) {
        size_t at = random_below(&c->random, (uint32_t)c->packets);
        if (happens(c, c->loss))
            c->packet[at] = c->packet[--c->packets];
        else
            deliver(c, at, happens(c, c->repeat));
    } else if (kind < 85) {
        tick(c, i);
    } else if (kind < 92) {
        propose(c, i);
    } else if (kind < 97) {
        if (!c->member[i].paxos)
            start(c, i);
        else if (is_founded(c) && happens(c, c->wipe))
            wipe(c, i);
    } else {
        uint32_t j = random_below(&c->random, c->members);
        c->cut[i][j] = happens(c, c->cutting);
    }
}

// Nothing is lost any more: a leader must come, and what it proposes reach everybody.
static void heal(struct cluster *c) {
    uint64_t end = c->now + PATIENCE, before = c->newest;
    memset(c->cut, 0, sizeof c->cut);
    c->loss = c->repeat = c->crash = 0;
    for (uint32_t i = 0; i < c->members; i++)
        if (!c->member[i].paxos)
            start(c, i);
    for (; c->now < end && !*c->fault; c->now++) {
        uint32_t there = 0;
        for (uint32_t i = 0; i < c->members; i++) {
            tick(c, i);
            if (c->newest == before)
                propose(c, i);
            there += c->member[i].knows && c->member[i].version > before;
        }
        if (there == c->members)
            return;
        for (size_t n = c->packets; n > 0; n--)
            deliver(c, random_below(&c->random, (uint32_t)c->packets), false);
    }
    fault(c, "no agreement though nothing is lost", 0, c->newest);
}

// While no time passes, messages lead to fewer and fewer others.
static void fall_silent(struct cluster *c) {
    for (int n = 0; n < 10 * PACKETS && c->packets > 0 && !*c->fault; n++)
        deliver(c, 0, false);
    if (c->packets > 0)
        fault(c, "messages are answered without an end", c->packet[0].from, c->newest);
}

static void run_schedule(struct cluster *c) {
    c->random = random_stream(c->seed, c->members, 0);
    // Some schedules are calm, some are rough in one way, some in all.
    c->loss = random_below(&c->random, 2) * random_below(&c->random, 300);
    c->repeat = random_below(&c->random, 2) * random_below(&c->random, 400);
    c->crash = random_below(&c->random, 2) * random_below(&c->random, 60);
    c->cutting = random_below(&c->random, 2) * random_below(&c->random, 600);
    // Of two members none goes on without the other, so that none can admit it.
    c->wipe = c->members > 2 ? random_below(&c->random, 2) * random_below(&c->random, 300) : 0;
    c->is_chosen[0] = true; // the empty state, before anybody proposed
    for (uint32_t i = 0; i < c->members; i++)
        start(c, i);
    for (int event = 0; event < EVENTS && !*c->fault; event++)
        rough_event(c);
    heal(c);
    fall_silent(c);
    for (uint32_t i = 0; i < c->members; i++)
        crash(c, i);
    proto_room_free(&c->room);
}

static uint64_t number_from(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_schedules(struct tap *tap, uint32_t members, struct cluster *c) {
    uint64_t first = number_from("PAXOS_SEED", 1), count = number_from("PAXOS_SCHEDULES", 300);
    uint64_t commits = 0, leaders = 0, wipes = 0;
    char name[80];
    snprintf(name, sizeof name, "%" PRIu32 " members agree, whatever is lost and crashes", members);
    TEST(tap, name, {
        for (uint64_t seed = first; seed < first + count && !*c->fault; seed++) {
            memset(c, 0, sizeof *c);
            c->seed = seed;
            c->members = members;
            run_schedule(c);
            commits += c->commits;
            leaders += c->leaders;
            wipes += c->wipes;
        }
        if (*c->fault)
            FAIL(tap, "%s", c->fault);
        else
            printf("# %" PRIu64 " schedules, %" PRIu64 " commits seen, %" PRIu64
                   " leaders, %" PRIu64 " disks lost\n",
                   count, commits, leaders, wipes);
        CHECK(tap, commits > 10 * count && leaders >= count);
    });
}

// Each showed a defect once.
static void test_known_schedules(struct tap *tap, struct cluster *c) {
    static const uint64_t seeds[] = {
        // Answers under two ballots confirmed a leader by a majority that neither had.
        1057285, 2000006};
    TEST(tap, "schedules that have shown a defect pass", {
        for (size_t i = 0; i < sizeof seeds / sizeof *seeds && !*c->fault; i++) {
            memset(c, 0, sizeof *c);
            c->seed = seeds[i];
            c->members = 5;
            run_schedule(c);
        }
        CHECK_TEXT(tap, c->fault, "");
    });
}

// One member by hand.

static const struct paxos_config alone = {
    .id = 0, .members = 1, .heartbeat = 100, .election = 300, .state_max = 8};

static void test_alone(struct tap *tap) {
    struct paxos *paxos;
    struct paxos_output out;
    struct paxos_state state;
    struct error err = {0};
    TEST(tap, "one member alone leads at once, and commits what it proposes", {
        CHECK_INT(tap, paxos_open(&paxos, &alone, NULL, 1000, &err), 0);
        CHECK(tap, !paxos_ready(paxos) && !paxos_committed(paxos, &state));
        paxos_tick(paxos, paxos_deadline(paxos), &out);
        CHECK(tap, out.persist && out.committed && out.count == 0);
        CHECK_INT(tap, paxos_leader(paxos), 0);
        CHECK_INT(tap, paxos_propose(paxos, "one", 3, 1001, &out, &err), 0);
        CHECK(tap, out.persist && out.committed && out.count == 0);
        CHECK(tap, paxos_committed(paxos, &state) && state.version == 1 && state.length == 3);
    });
    TEST(tap, "a state that is too large is refused",
         { CHECK_INT(tap, paxos_propose(paxos, "nine bytes", 9, 1002, &out, &err), STATUS_DATA); });
    TEST(tap, "it starts again with what it had kept", {
        struct paxos *again;
        struct paxos_record record = paxos_record(paxos);
        CHECK_INT(tap, paxos_open(&again, &alone, &record, 5000, &err), 0);
        paxos_tick(again, 5000, &out);
        CHECK(tap, paxos_committed(again, &state) && state.version == 1);
        CHECK(tap, memcmp(state.bytes, "one", 3) == 0);
        CHECK(tap, paxos_record(again).promised > record.promised);
        paxos_close(again);
    });
    paxos_close(paxos);
}

static const struct paxos_record new_record; // promises nothing, as a founding leaves it

// Five members by hand: carries all messages until none is left, but those to `deaf`.
static void settle(struct paxos *member[5], struct paxos_output *out, uint32_t deaf, uint64_t now) {
    for (uint32_t i = 0; i < out->count; i++) {
        struct paxos_output answer;
        if (out->messages[i].to == deaf)
            continue;
        paxos_receive(member[out->messages[i].to], &out->messages[i], now, &answer);
        settle(member, &answer, deaf, now);
    }
}

static void test_deaf(struct tap *tap) {
    struct paxos_config config = alone;
    struct paxos *member[5] = {NULL};
    struct paxos_output out;
    uint64_t now = 1000;
    config.members = 5;
    for (config.id = 0; config.id < 5; config.id++)
        CHECK_INT(tap, paxos_open(&member[config.id], &config, &new_record, 0, NULL), 0);
    TEST(tap, "a member that hears nobody does not unseat the leader", {
        paxos_tick(member[0], now, &out);
        settle(member, &out, 4, now);
        CHECK(tap, paxos_ready(member[0]));
        for (int round = 0; round < 5; round++) {
            paxos_tick(member[4], paxos_deadline(member[4]), &out);
            settle(member, &out, 4, now);
        }
        CHECK(tap, paxos_ready(member[0]));
        CHECK_INT(tap, paxos_record(member[0]).promised, 0x100);
        CHECK_INT(tap, paxos_leader(member[1]), 0);
    });
    TEST(tap, "when it hears again, the leader goes on under a higher ballot at once", {
        now = paxos_deadline(member[0]);
        paxos_tick(member[0], now, &out);
        settle(member, &out, PROTO_NOBODY, now);
        CHECK(tap, paxos_ready(member[0]));
        CHECK(tap, paxos_record(member[0]).promised > 0x500);
        for (int i = 0; i < 5; i++) {
            CHECK_INT(tap, paxos_leader(member[i]), 0);
            CHECK_INT(tap, paxos_record(member[i]).promised, paxos_record(member[0]).promised);
        }
    });
    for (int i = 0; i < 5; i++)
        paxos_close(member[i]);
}

// The one message of this step to this member, or NULL.
static const struct proto_paxos *message_of(const struct paxos_output *out, uint16_t step,
                                            uint32_t to) {
    for (uint32_t i = 0; i < out->count; i++)
        if (out->messages[i].step == step && out->messages[i].to == to)
            return &out->messages[i];
    return NULL;
}

// Member 0 of five leads; then three answer it, then nobody.
static void test_confirmed(struct tap *tap) {
    struct paxos_config config = alone;
    struct paxos *member[5] = {NULL};
    struct paxos_output out, answer, ignored;
    config.members = 5;
    for (config.id = 0; config.id < 5; config.id++)
        CHECK_INT(tap, paxos_open(&member[config.id], &config, &new_record, 0, NULL), 0);
    paxos_tick(member[0], 1000, &out);
    settle(member, &out, PROTO_NOBODY, 1000);
    TEST(tap, "a leader is confirmed as of when it sent what a majority answered", {
        CHECK_INT(tap, paxos_confirmed(member[0], 1050), 1000);
        paxos_tick(member[0], 1100, &out);
        settle(member, &out, 4, 1150);
        CHECK_INT(tap, paxos_confirmed(member[0], 1150), 1100);
        paxos_tick(member[0], 1250, &out);
        CHECK_INT(tap, paxos_confirmed(member[0], 1299), 1100);
        CHECK_INT(tap, paxos_confirmed(member[1], 1299), 0);
    });
    TEST(tap, "answers to what it has not sent yet confirm nothing", {
        for (uint32_t i = 1; i < 5; i++) {
            const struct proto_paxos liar = {.step = PROTO_PAXOS_ACCEPTED,
                                             .from = i,
                                             .ballot = paxos_record(member[0]).promised,
                                             .accepted = paxos_record(member[0]).promised,
                                             .version = paxos_record(member[0]).state.version,
                                             .time = 9999999};
            paxos_receive(member[0], &liar, 1300, &ignored);
        }
        CHECK_INT(tap, paxos_confirmed(member[0], 1300), 1100);
    });
    TEST(tap, "the next leader knows when that one was heard last", {
        uint64_t now = paxos_deadline(member[2]);
        paxos_tick(member[2], now, &out);
        settle(member, &out, 0, now + 100);
        CHECK_INT(tap, paxos_standing(member[2]), PAXOS_LEADER);
        CHECK_INT(tap, paxos_inherited(member[2]), 1150);
    });
    TEST(tap, "under a higher ballot answers to the one before confirm nothing", {
        const struct proto_paxos reject = {.step = PROTO_PAXOS_REJECT, .from = 4, .ballot = 0x904};
        paxos_receive(member[0], &reject, 1310, &out);
        uint64_t ballot = paxos_record(member[0]).promised;
        CHECK(tap, ballot > reject.ballot);
        for (uint32_t i = 1; i < 3; i++) {
            const struct proto_paxos promise = {
                .step = PROTO_PAXOS_PROMISE, .from = i, .ballot = ballot};
            paxos_receive(member[0], &promise, 1320, &out);
        }
        CHECK_INT(tap, paxos_standing(member[0]), PAXOS_LEADER);
        for (uint32_t i = 1; i < 3; i++) {
            CHECK_INT(tap, paxos_confirmed(member[0], 1330), 0);
            paxos_receive(member[i], message_of(&out, PROTO_PAXOS_ACCEPT, i), 1330, &answer);
            paxos_receive(member[0], message_of(&answer, PROTO_PAXOS_ACCEPTED, 0), 1330, &ignored);
        }
        CHECK_INT(tap, paxos_confirmed(member[0], 1330), 1320);
    });
    for (int i = 0; i < 5; i++)
        paxos_close(member[i]);
}

// Member 0 of five leads; member 4 lost its disk, and asks for its vote.
static void test_rejoin(struct tap *tap) {
    struct paxos_config config = alone;
    struct paxos *member[5] = {NULL};
    struct paxos_output out;
    uint64_t now = 1000, ballot;
    config.members = 5;
    for (config.id = 0; config.id < 5; config.id++)
        CHECK_INT(tap, paxos_open(&member[config.id], &config, &new_record, 0, NULL), 0);
    paxos_tick(member[0], now, &out);
    settle(member, &out, PROTO_NOBODY, now);
    ballot = paxos_record(member[0]).promised;
    paxos_close(member[4]);
    config.id = 4;
    config.rejoin = true;
    config.start = 77;
    CHECK_INT(tap, paxos_open(&member[4], &config, NULL, now, NULL), 0);
    TEST(tap, "who lost its record has no vote", {
        CHECK(tap, paxos_blank(member[4]));
        struct proto_paxos prepare = {
            .step = PROTO_PAXOS_PREPARE, .from = 1, .to = 4, .ballot = 0x701};
        paxos_receive(member[4], &prepare, now, &out);
        CHECK(tap, out.count == 0 && !out.persist);
    });
    TEST(tap, "the leader admits it under a ballot that is new since it asked", {
        paxos_tick(member[4], now, &out);
        const struct proto_paxos *rejoin = message_of(&out, PROTO_PAXOS_REJOIN, 0);
        CHECK(tap, rejoin != NULL);
        struct proto_paxos asked = *rejoin;
        paxos_receive(member[0], &asked, now, &out);
        CHECK(tap, paxos_record(member[0]).promised > ballot);
    });
    TEST(tap, "a majority of the others is not enough for that", {
        settle(member, &out, 3, now);
        CHECK(tap, paxos_ready(member[0]));
        CHECK(tap, paxos_blank(member[4]));
    });
    TEST(tap, "when all others have the state it has its vote, and no lower ballot counts", {
        now = paxos_deadline(member[0]);
        paxos_tick(member[0], now, &out);
        settle(member, &out, PROTO_NOBODY, now);
        CHECK(tap, !paxos_blank(member[4]));
        CHECK_INT(tap, paxos_record(member[4]).promised, paxos_record(member[0]).promised);
        CHECK_INT(tap, paxos_record(member[4]).accepted, paxos_record(member[0]).accepted);
    });
    TEST(tap, "an admittance that was meant for an earlier start is late", {
        struct proto_paxos admit = {
            .step = PROTO_PAXOS_ADMIT, .from = 0, .to = 4, .ballot = 0x900, .accepted = 77};
        paxos_close(member[4]);
        config.start = 78;
        CHECK_INT(tap, paxos_open(&member[4], &config, NULL, now, NULL), 0);
        paxos_receive(member[4], &admit, now, &out);
        CHECK(tap, paxos_blank(member[4]) && !out.persist);
        admit.accepted = 78;
        paxos_receive(member[4], &admit, now, &out);
        CHECK(tap, !paxos_blank(member[4]) && out.persist);
    });
    for (int i = 0; i < 5; i++)
        paxos_close(member[i]);
}

// Members 1 and 2 say to member 0 that they are, or were, blank; in answer to its start of this
// number.
static void tell_blank(struct paxos *paxos, uint64_t start) {
    struct proto_paxos blank = {
        .step = PROTO_PAXOS_BLANK, .from = 1, .to = 0, .accepted = 21, .version = start};
    struct paxos_output out;
    paxos_receive(paxos, &blank, 0, &out);
    blank.step = PROTO_PAXOS_WAS_BLANK;
    blank.from = 2;
    paxos_receive(paxos, &blank, 0, &out);
}

static void test_blank(struct tap *tap) {
    struct paxos_config config = alone;
    struct paxos *paxos = NULL;
    struct paxos_output out;
    config.members = 3;
    config.start = 12;
    CHECK_INT(tap, paxos_open(&paxos, &config, NULL, 0, NULL), 0);
    TEST(tap, "that others were blank during an earlier start gives no vote", {
        tell_blank(paxos, 11);
        CHECK(tap, paxos_blank(paxos));
    });
    TEST(tap, "that all others were blank during this start does", {
        tell_blank(paxos, 12);
        CHECK(tap, !paxos_blank(paxos));
    });
    TEST(tap, "who has its vote confirms once that it was blank, and answers no confirmation", {
        struct proto_paxos blank = {
            .step = PROTO_PAXOS_BLANK, .from = 1, .to = 0, .accepted = 21, .version = 12};
        paxos_receive(paxos, &blank, 0, &out);
        const struct proto_paxos *answer = message_of(&out, PROTO_PAXOS_WAS_BLANK, 1);
        CHECK(tap, out.count == 1 && answer);
        CHECK(tap, answer && answer->accepted == 12 && answer->version == 21);
        blank.step = PROTO_PAXOS_WAS_BLANK;
        paxos_receive(paxos, &blank, 0, &out);
        CHECK_INT(tap, out.count, 0);
    });
    TEST(tap, "nor does it confirm anything to a start that it knew nothing of then", {
        const struct proto_paxos blank = {
            .step = PROTO_PAXOS_BLANK, .from = 1, .to = 0, .accepted = 22, .version = 12};
        paxos_receive(paxos, &blank, 0, &out);
        CHECK_INT(tap, out.count, 0);
    });
    paxos_close(paxos);
}

static void test_refusals(struct tap *tap) {
    struct paxos *paxos = NULL;
    struct paxos_output out;
    struct error err = {0};
    TEST(tap, "configurations and records that make no sense are refused", {
        struct paxos_config config = alone;
        config.members = PAXOS_MEMBERS_MAX + 1;
        CHECK_INT(tap, paxos_open(&paxos, &config, NULL, 0, &err), STATUS_USAGE);
        config = alone;
        config.id = 1;
        CHECK_INT(tap, paxos_open(&paxos, &config, NULL, 0, &err), STATUS_USAGE);
        config = alone;
        config.heartbeat = 0;
        CHECK_INT(tap, paxos_open(&paxos, &config, NULL, 0, &err), STATUS_USAGE);
        config.heartbeat = config.election = 1;
        CHECK_INT(tap, paxos_open(&paxos, &config, NULL, 0, &err), STATUS_USAGE);
        struct paxos_record record = {.promised = 1, .state = {1, NULL, 9}};
        CHECK_INT(tap, paxos_open(&paxos, &alone, &record, 0, &err), STATUS_DATA);
        CHECK(tap, paxos == NULL);
        config.election = 2;
        CHECK_INT(tap, paxos_open(&paxos, &config, NULL, 0, &err), STATUS_OK);
        paxos_close(paxos);
    });
    TEST(tap, "what no member would send is ignored", {
        struct paxos_config config = alone;
        config.members = 3;
        CHECK_INT(tap, paxos_open(&paxos, &config, NULL, 0, &err), 0);
        const struct proto_paxos odd[] = {
            {.step = PROTO_PAXOS_PREPARE, .from = 3, .to = 0, .ballot = 0x103},
            {.step = PROTO_PAXOS_PREPARE, .from = 1, .to = 2, .ballot = 0x101},
            {.step = PROTO_PAXOS_PREPARE, .from = 1, .to = 0, .ballot = 0x102},
            {.step = PROTO_PAXOS_ACCEPT, .from = 1, .to = 0, .ballot = 0x102},
            {.step = PROTO_PAXOS_COMMIT, .from = 1, .to = 0, .ballot = 0x102},
            {.step = PROTO_PAXOS_ACCEPT, .from = 0, .to = 0, .ballot = 0x100},
            {.step = PROTO_PAXOS_LAST + 1, .from = 1, .to = 0, .ballot = 0x101},
            {.step = PROTO_PAXOS_ACCEPT,
             .from = 1,
             .to = 0,
             .ballot = 0x101,
             .state = {(const uint8_t *)"nine bytes", 9}},
        };
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            paxos_receive(paxos, &odd[i], 1, &out);
            CHECK(tap, out.count == 0 && !out.persist && !out.committed);
        }
        CHECK_INT(tap, paxos_propose(paxos, "x", 1, 1, &out, &err), STATUS_UNAVAILABLE);
        paxos_close(paxos);
    });
    TEST(tap, "out of memory is reported, and nothing leaks", {
        long live = heap_live();
        int status = STATUS_IO;
        for (int n = 0; status && HEAP_FAILS; n++) {
            heap_fail_after(n);
            status = paxos_open(&paxos, &alone, NULL, 0, &err);
            heap_fail_after(-1);
            CHECK(tap, status == (n < 4 ? STATUS_IO : STATUS_OK));
        }
        if (HEAP_FAILS)
            paxos_close(paxos);
        CHECK_INT(tap, heap_live(), live);
    });
}

int main(void) {
    struct tap tap = {0};
    struct cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        abort();
    // Those that are used first: a mutant (tests/helper/paxos_mutants) ends at its first fault.
    static const uint32_t members[] = {3, 5, 7, 2, 4, 6, 1};
    for (size_t i = 0; i < sizeof members / sizeof *members && !*cluster->fault; i++)
        test_schedules(&tap, members[i], cluster);
    if (!*cluster->fault)
        test_known_schedules(&tap, cluster);
    test_alone(&tap);
    test_deaf(&tap);
    test_confirmed(&tap);
    test_rejoin(&tap);
    test_blank(&tap);
    test_refusals(&tap);
    free(cluster);
    return tap_done(&tap);
}
