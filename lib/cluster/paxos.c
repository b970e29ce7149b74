#include "cluster/paxos.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"

// A state that changes; its bytes are state_max long.
struct room {
    uint64_t version;
    uint32_t length;
    uint8_t *bytes;
};

struct paxos {
    struct paxos_config config;
    struct random random;

    // The acceptor: this is the record.
    uint64_t promised, accepted;
    struct room state;

    // Everybody: what is known of the others.
    enum paxos_standing standing;
    uint32_t leader;
    uint64_t followed; // until then a leader is not doubted
    uint64_t deadline; // of the next election, or of a leader's next heartbeat
    uint64_t seen;     // highest ballot heard of
    uint64_t now;      // of this step
    uint64_t led;    // when there was a leader last; at first the start, before which is not known
    uint32_t led_by; // who that was; PROTO_NOBODY

    // A candidate, then a leader: who promised, then who accepted. The ballot is `promised`.
    uint32_t votes;
    uint64_t best_accepted; // of the promises
    struct room best;
    bool ready;   // its first state is committed
    bool pending; // a proposal is on its way
    uint64_t heard[PAXOS_MEMBERS_MAX];
    uint64_t answered[PAXOS_MEMBERS_MAX]; // when what each answered was sent, under this ballot
    uint64_t inherited;                   // the latest `led` of those who promised

    bool known; // the newest committed state is known
    struct room committed;

    // Members without a record: this one; those that were blank while this one was, and what
    // it heard then of their starts; and the one that this leader's ballot is to admit.
    bool blank;
    uint32_t blanks;
    uint64_t starts[PAXOS_MEMBERS_MAX];
    uint32_t admitting;  // PROTO_NOBODY: none
    uint64_t admittance; // number of its start
};

static uint32_t owner_of(uint64_t ballot) {
    return (uint32_t)(ballot & 0xff);
}

static uint32_t bit_of(uint32_t member) {
    return 1u << member;
}

static uint32_t all_members(const struct paxos *p) {
    return bit_of(p->config.members) - 1;
}

static bool is_majority(const struct paxos *p, uint32_t votes) {
    return (uint32_t)__builtin_popcount(votes) > p->config.members / 2;
}

// "order accepts by (ballot, version)": a late older version of the same ballot must not
// replace a newer one.
static bool is_newer(uint64_t ballot, uint64_t version, uint64_t than_ballot,
                     uint64_t than_version) {
    return ballot != than_ballot ? ballot > than_ballot : version > than_version;
}

static void room_set(struct room *room, uint64_t version, const void *bytes, uint32_t length) {
    room->version = version;
    room->length = length;
    if (length > 0 && room->bytes != bytes)
        memcpy(room->bytes, bytes, length);
}

static struct paxos_state state_view(const struct room *room) {
    return (struct paxos_state){room->version, room->bytes, room->length};
}

static uint64_t election_timeout(struct paxos *p) {
    return p->config.election + random_below(&p->random, p->config.election);
}

// Messages.

static struct proto_paxos *message_to(struct paxos *p, struct paxos_output *out, uint32_t to,
                                      enum proto_paxos_step step) {
    struct proto_paxos *m = &out->messages[out->count++];
    *m = (struct proto_paxos){
        .step = (uint16_t)step,
        .from = p->config.id,
        .to = to,
        .ballot = p->promised,
        .accepted = p->accepted,
        .version = p->state.version,
        .time = p->now,
    };
    return m;
}

static void put_state(struct paxos *p, struct proto_paxos *m) {
    m->state = (struct proto_bytes){p->state.bytes, p->state.length};
}

static void send_accept(struct paxos *p, struct paxos_output *out, uint32_t to) {
    put_state(p, message_to(p, out, to, PROTO_PAXOS_ACCEPT));
}

// Also a leader's heartbeat. Until its first state is committed it names no ballot under
// which anything was.
static void send_commit(struct paxos *p, struct paxos_output *out, uint32_t to) {
    struct proto_paxos *m = message_to(p, out, to, PROTO_PAXOS_COMMIT);
    m->accepted = p->ready ? p->promised : 0;
    m->version = p->committed.version;
}

static void send_prepare(struct paxos *p, struct paxos_output *out, uint32_t to) {
    message_to(p, out, to, PROTO_PAXOS_PREPARE);
}

static void tell_start(struct paxos *p, struct paxos_output *out, uint32_t to,
                       enum proto_paxos_step step) {
    struct proto_paxos *m = message_to(p, out, to, step);
    m->accepted = p->config.start;
    m->version = p->starts[to];
}

static void send_start(struct paxos *p, struct paxos_output *out, uint32_t to) {
    tell_start(p, out, to, p->config.rejoin ? PROTO_PAXOS_REJOIN : PROTO_PAXOS_BLANK);
}

static void send_others(struct paxos *p, struct paxos_output *out,
                        void (*send)(struct paxos *, struct paxos_output *, uint32_t)) {
    for (uint32_t i = 0; i < p->config.members; i++)
        if (i != p->config.id)
            send(p, out, i);
}

// The acceptor.

// A follower becomes a candidate, and that a leader; each may become a follower.
static void set_standing(struct paxos *p, enum paxos_standing next) {
    INVARIANT(next == PAXOS_FOLLOWER || next == p->standing + 1);
    p->standing = next;
}

static void become_follower(struct paxos *p, uint64_t now) {
    set_standing(p, PAXOS_FOLLOWER);
    p->ready = p->pending = false;
    p->deadline = now + election_timeout(p);
}

// Answers ballots below `ballot` no more. Whoever leads or stands under a lower one ends.
static void promise_ballot(struct paxos *p, uint64_t ballot, uint64_t now,
                           struct paxos_output *out) {
    if (ballot <= p->promised)
        return;
    p->promised = ballot;
    out->persist = true;
    become_follower(p, now);
}

static void accept_state(struct paxos *p, uint64_t version, const void *bytes, uint32_t length,
                         struct paxos_output *out) {
    p->accepted = p->promised;
    room_set(&p->state, version, bytes, length);
    out->persist = true;
}

// The accepted state is committed.
static void learn_value(struct paxos *p, struct paxos_output *out) {
    if (p->known && p->state.version <= p->committed.version)
        return;
    p->known = true;
    room_set(&p->committed, p->state.version, p->state.bytes, p->state.length);
    out->committed = true;
}

static bool is_stale(struct paxos *p, const struct proto_paxos *m, struct paxos_output *out) {
    if (m->ballot >= p->promised)
        return false;
    message_to(p, out, m->from, PROTO_PAXOS_REJECT);
    return true;
}

static void note_leader(struct paxos *p, uint32_t leader, uint64_t now) {
    p->led_by = leader;
    p->led = now;
}

static void receive_prepare(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                            struct paxos_output *out) {
    if (p->blank || is_stale(p, m, out))
        return;
    bool doubted = m->ballot > p->promised && m->from != p->leader;
    if (doubted && now < p->followed)
        return;
    promise_ballot(p, m->ballot, now, out);
    struct proto_paxos *promise = message_to(p, out, m->from, PROTO_PAXOS_PROMISE);
    put_state(p, promise);
    // Who led before it did is known to a leader.
    promise->time = m->from == p->led_by ? now : now - p->led;
}

// A member without a vote only learns who leads.
static bool is_onlooker(struct paxos *p, const struct proto_paxos *m) {
    if (p->blank)
        p->leader = m->from;
    return p->blank;
}

// The sender leads: no election for a while.
static void follow_sender(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                          struct paxos_output *out) {
    promise_ballot(p, m->ballot, now, out);
    p->leader = m->from;
    note_leader(p, m->from, now);
    p->followed = now + p->config.election;
    p->deadline = now + election_timeout(p);
}

static void send_accepted(struct paxos *p, const struct proto_paxos *m, struct paxos_output *out) {
    message_to(p, out, m->from, PROTO_PAXOS_ACCEPTED)->time = m->time;
}

static void receive_accept(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                           struct paxos_output *out) {
    if (is_onlooker(p, m) || is_stale(p, m, out))
        return;
    follow_sender(p, m, now, out);
    if (is_newer(m->ballot, m->version, p->accepted, p->state.version))
        accept_state(p, m->version, m->state.at, m->state.length, out);
    send_accepted(p, m, out);
}

static void receive_commit(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                           struct paxos_output *out) {
    if (is_onlooker(p, m) || is_stale(p, m, out))
        return;
    follow_sender(p, m, now, out);
    if (m->accepted == m->ballot && p->accepted == m->ballot && p->state.version == m->version)
        learn_value(p, out);
    send_accepted(p, m, out);
}

// The proposer.

static void commit_value(struct paxos *p, struct paxos_output *out) {
    p->ready = true;
    p->pending = false;
    learn_value(p, out);
    send_others(p, out, send_commit);
}

// Has a state accepted under this leader's ballot, by itself first.
static void propose_value(struct paxos *p, uint64_t version, const void *bytes, uint32_t length,
                          struct paxos_output *out) {
    accept_state(p, version, bytes, length, out);
    p->pending = true;
    p->votes = bit_of(p->config.id);
    if (is_majority(p, p->votes))
        commit_value(p, out);
    else
        send_others(p, out, send_accept);
}

// "on takeover adopt the highest (ballot, version) of a majority and re-commit it before
// serving".
static void become_leader(struct paxos *p, uint64_t now, struct paxos_output *out) {
    set_standing(p, PAXOS_LEADER);
    p->leader = p->config.id;
    p->followed = now + p->config.election;
    p->deadline = now + p->config.heartbeat;
    for (uint32_t i = 0; i < p->config.members; i++) {
        p->heard[i] = now;
        p->answered[i] = 0;
    }
    propose_value(p, p->best.version, p->best.bytes, p->best.length, out);
}

// "persist own ballot before sending prepare": the output's order sees to that.
static void begin_campaign(struct paxos *p, uint64_t now, struct paxos_output *out) {
    uint64_t highest = p->seen > p->promised ? p->seen : p->promised;
    if (p->standing != PAXOS_LEADER) // that one knows what it did itself
        p->inherited = p->led;
    promise_ballot(p, ((highest >> 8) + 1) << 8 | p->config.id, now, out);
    set_standing(p, PAXOS_CANDIDATE);
    p->leader = PROTO_NOBODY;
    p->admitting = PROTO_NOBODY;
    p->votes = bit_of(p->config.id);
    p->best_accepted = p->accepted;
    room_set(&p->best, p->state.version, p->state.bytes, p->state.length);
    if (is_majority(p, p->votes))
        become_leader(p, now, out);
    else
        send_others(p, out, send_prepare);
}

// What is on its way for long counts from its arrival: later is safe.
static void note_led(struct paxos *p, const struct proto_paxos *m, uint64_t now) {
    uint64_t led = now - (m->time < now ? m->time : now);
    if (led > p->inherited)
        p->inherited = led;
}

static void receive_promise(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                            struct paxos_output *out) {
    if (p->standing != PAXOS_CANDIDATE || m->ballot != p->promised)
        return;
    p->votes |= bit_of(m->from);
    note_led(p, m, now);
    if (is_newer(m->accepted, m->version, p->best_accepted, p->best.version)) {
        p->best_accepted = m->accepted;
        room_set(&p->best, m->version, m->state.at, m->state.length);
    }
    if (is_majority(p, p->votes))
        become_leader(p, now, out);
}

// All the others have accepted the state under the ballot that is new since it asked.
static void admit_member(struct paxos *p, struct paxos_output *out) {
    if (p->admitting == PROTO_NOBODY || p->pending ||
        (p->votes | bit_of(p->admitting)) != all_members(p))
        return;
    struct proto_paxos *m = message_to(p, out, p->admitting, PROTO_PAXOS_ADMIT);
    put_state(p, m);
    m->accepted = p->admittance;
}

static void receive_accepted(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                             struct paxos_output *out) {
    if (p->standing != PAXOS_LEADER || m->ballot != p->promised)
        return;
    p->heard[m->from] = now;
    if (m->time <= now && m->time > p->answered[m->from])
        p->answered[m->from] = m->time;
    if (m->accepted != p->promised || m->version != p->state.version) {
        send_accept(p, out, m->from); // it missed the last one
        return;
    }
    p->votes |= bit_of(m->from);
    if (p->admitting == m->from)
        p->admitting = PROTO_NOBODY;
    if (p->pending && is_majority(p, p->votes))
        commit_value(p, out);
    admit_member(p, out);
}

// Somebody promised a higher ballot. A leader that still has the others goes on under a
// higher one at once; a candidate leaves the field for a random while.
static void receive_reject(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                           struct paxos_output *out) {
    if (m->ballot > p->seen)
        p->seen = m->ballot;
    if (m->ballot <= p->promised)
        return;
    if (p->standing == PAXOS_LEADER)
        begin_campaign(p, now, out);
    else if (p->standing == PAXOS_CANDIDATE)
        become_follower(p, now);
}

// Members without a record.

// It has its vote.
static void end_blankness(struct paxos *p, uint64_t now, struct paxos_output *out) {
    p->blank = false;
    p->leader = PROTO_NOBODY;
    p->deadline = now + election_timeout(p);
    out->persist = true;
}

// The sender was blank while this member was, if it knows the number of this start.
static void meet_blank(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                       struct paxos_output *out) {
    p->starts[m->from] = m->accepted;
    if (m->version != p->config.start)
        return;
    p->blanks |= bit_of(m->from);
    if ((p->blanks | bit_of(p->config.id)) == all_members(p))
        end_blankness(p, now, out);
}

// A member that has its vote by now confirms that it was blank, too; which nobody answers.
static void receive_blank(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                          struct paxos_output *out) {
    if (p->blank)
        meet_blank(p, m, now, out);
    else if (p->starts[m->from] == m->accepted)
        tell_start(p, out, m->from, PROTO_PAXOS_WAS_BLANK);
}

static void receive_was_blank(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                              struct paxos_output *out) {
    if (p->blank)
        meet_blank(p, m, now, out);
}

// The ballot that admits the sender must be new since it asked, which it does until then.
static void receive_rejoin(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                           struct paxos_output *out) {
    receive_blank(p, m, now, out);
    bool asked = p->admitting == m->from && p->admittance == m->accepted;
    if (p->standing != PAXOS_LEADER || !p->ready || p->pending || asked)
        return;
    *out = (struct paxos_output){0};
    begin_campaign(p, now, out);
    p->admitting = m->from;
    p->admittance = m->accepted;
}

static void receive_admit(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                          struct paxos_output *out) {
    if (!p->blank || !p->config.rejoin || m->accepted != p->config.start)
        return;
    end_blankness(p, now, out);
    follow_sender(p, m, now, out);
    accept_state(p, m->version, m->state.at, m->state.length, out);
    send_accepted(p, m, out);
}

static bool is_plausible(const struct paxos *p, const struct proto_paxos *m) {
    uint32_t members = p->config.members;
    bool owned = m->step == PROTO_PAXOS_PREPARE || m->step == PROTO_PAXOS_ACCEPT ||
                 m->step == PROTO_PAXOS_COMMIT || m->step == PROTO_PAXOS_ADMIT;
    return m->to == p->config.id && m->from < members && m->from != m->to &&
           owner_of(m->ballot) < members && (!owned || owner_of(m->ballot) == m->from) &&
           m->state.length <= p->config.state_max;
}

static void begin_step(struct paxos *p, uint64_t now) {
    p->now = now;
    if (p->standing == PAXOS_LEADER)
        note_leader(p, p->config.id, now);
}

void paxos_receive(struct paxos *p, const struct proto_paxos *m, uint64_t now,
                   struct paxos_output *out) {
    static void (*const receive[])(struct paxos *, const struct proto_paxos *, uint64_t,
                                   struct paxos_output *) = {
        [PROTO_PAXOS_PREPARE] = receive_prepare, [PROTO_PAXOS_PROMISE] = receive_promise,
        [PROTO_PAXOS_ACCEPT] = receive_accept,   [PROTO_PAXOS_ACCEPTED] = receive_accepted,
        [PROTO_PAXOS_REJECT] = receive_reject,   [PROTO_PAXOS_COMMIT] = receive_commit,
        [PROTO_PAXOS_BLANK] = receive_blank,     [PROTO_PAXOS_REJOIN] = receive_rejoin,
        [PROTO_PAXOS_ADMIT] = receive_admit,     [PROTO_PAXOS_WAS_BLANK] = receive_was_blank,
    };
    *out = (struct paxos_output){0};
    begin_step(p, now);
    if (m->step < sizeof receive / sizeof *receive && is_plausible(p, m))
        receive[m->step](p, m, now, out);
}

// A leader that a majority does not answer leaves the field: clients must look elsewhere.
static bool is_alone(const struct paxos *p, uint64_t now) {
    uint32_t votes = bit_of(p->config.id);
    for (uint32_t i = 0; i < p->config.members; i++)
        if (now - p->heard[i] <= 2ull * p->config.election)
            votes |= bit_of(i);
    return !is_majority(p, votes);
}

void paxos_tick(struct paxos *p, uint64_t now, struct paxos_output *out) {
    *out = (struct paxos_output){0};
    begin_step(p, now);
    if (now < p->deadline)
        return;
    if (p->blank) {
        p->deadline = now + p->config.heartbeat;
        send_others(p, out, send_start);
    } else if (p->standing != PAXOS_LEADER) {
        begin_campaign(p, now, out);
    } else if (is_alone(p, now)) {
        p->leader = PROTO_NOBODY;
        become_follower(p, now);
    } else {
        p->followed = now + p->config.election;
        p->deadline = now + p->config.heartbeat;
        send_others(p, out, send_commit);
    }
}

int paxos_propose(struct paxos *p, const void *state, uint32_t length, uint64_t now,
                  struct paxos_output *out, struct error *err) {
    *out = (struct paxos_output){0};
    if (length > p->config.state_max)
        return error_set(err, STATUS_DATA, "the controllers' state has %u bytes, at most %u fit",
                         length, p->config.state_max);
    if (!paxos_ready(p))
        return error_set(err, STATUS_UNAVAILABLE, "this controller cannot propose now");
    begin_step(p, now);
    p->deadline = now + p->config.heartbeat;
    propose_value(p, p->state.version + 1, state, length, out);
    return STATUS_OK;
}

// Life.

static int check_message(const struct paxos_config *config, const struct paxos_record *record,
                         struct error *err) {
    if (config->members < 1 || config->members > PAXOS_MEMBERS_MAX ||
        config->id >= config->members || config->heartbeat < 1 ||
        config->election <= config->heartbeat)
        return error_set(err, STATUS_USAGE, "controller %u of %u, heartbeat %u ms, election %u ms",
                         config->id, config->members, config->heartbeat, config->election);
    if (record && (record->state.length > config->state_max || record->accepted > record->promised))
        return error_set(err, STATUS_DATA, "the controller's record is not one of this run");
    return STATUS_OK;
}

static bool rooms_open(struct paxos *p) {
    struct room *rooms[] = {&p->state, &p->best, &p->committed};
    for (int i = 0; i < 3; i++)
        if (!(rooms[i]->bytes = mem_zeroed(p->config.state_max + 1ul, 1)))
            return false;
    return true;
}

int paxos_open(struct paxos **paxos, const struct paxos_config *config,
               const struct paxos_record *record, uint64_t now, struct error *err) {
    *paxos = NULL;
    if (check_message(config, record, err))
        return err ? err->status : STATUS_USAGE;
    struct paxos *p = mem_zeroed(1, sizeof *p);
    if (!p)
        return error_nomem(err);
    p->config = *config;
    if (!rooms_open(p)) {
        paxos_close(p);
        return error_nomem(err);
    }
    p->random = random_stream(config->seed, config->id, record ? record->promised : 0);
    p->leader = p->admitting = p->led_by = PROTO_NOBODY;
    p->led = now;
    p->blank = !record && config->members > 1;
    p->deadline = p->blank || config->members == 1 ? now : now + election_timeout(p);
    if (record) {
        p->promised = record->promised;
        p->accepted = record->accepted;
        room_set(&p->state, record->state.version, record->state.bytes, record->state.length);
    }
    *paxos = p;
    return STATUS_OK;
}

void paxos_close(struct paxos *p) {
    if (!p)
        return;
    free(p->state.bytes);
    free(p->best.bytes);
    free(p->committed.bytes);
    free(p);
}

uint64_t paxos_deadline(const struct paxos *p) {
    return p->deadline;
}

struct paxos_record paxos_record(const struct paxos *p) {
    return (struct paxos_record){p->promised, p->accepted, state_view(&p->state)};
}

enum paxos_standing paxos_standing(const struct paxos *p) {
    return p->standing;
}

bool paxos_blank(const struct paxos *p) {
    return p->blank;
}

// When it had sent all that this member answered.
static uint64_t answered_by(const struct paxos *p, uint32_t member, uint64_t now) {
    return member == p->config.id ? now : p->answered[member];
}

// The latest time that a majority reaches.
uint64_t paxos_confirmed(const struct paxos *p, uint64_t now) {
    uint64_t latest = 0;
    for (uint32_t i = 0; i < p->config.members; i++) {
        uint64_t time = answered_by(p, i, now);
        uint32_t votes = 0;
        for (uint32_t k = 0; k < p->config.members; k++)
            votes |= answered_by(p, k, now) >= time ? bit_of(k) : 0;
        if (is_majority(p, votes) && time > latest)
            latest = time;
    }
    return p->standing == PAXOS_LEADER ? latest : 0;
}

uint64_t paxos_inherited(const struct paxos *p) {
    return p->inherited;
}

bool paxos_ready(const struct paxos *p) {
    return p->standing == PAXOS_LEADER && p->ready && !p->pending;
}

uint32_t paxos_leader(const struct paxos *p) {
    return p->leader;
}

bool paxos_committed(const struct paxos *p, struct paxos_state *state) {
    if (p->known)
        *state = state_view(&p->committed);
    return p->known;
}
