// Three controllers in one process, of which one at a time is cut off from the others.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/clock.h"
#include "core/error.h"
#include "role/controller/quorum.h"

enum { MEMBERS = 3, HELD = 16, STATE = 64 };

#define FIRST "{\"is\": 1}"
#define SECOND "{\"is\": 2}"
#define THIRD "{\"is\": 3}"

struct office {
    struct hall *hall;
    char address[64];
    struct quorum *quorum;
    struct listener *listener;
};

// A message that is late.
struct held {
    struct link *link;
    union proto_message message;
    char state[STATE];
};

struct hall {
    char folder[64];
    const char *addresses[MEMBERS];
    struct office offices[MEMBERS];
    _Atomic uint32_t cut;    // who is cut off; PROTO_NOBODY
    struct gate gate;        // opened when a leader was heard that is ready
    _Atomic uint64_t ballot; // the highest of such a leader
    uint64_t led;            // that of the one before
    _Atomic uint64_t asked;  // the highest ballot that a candidate asked for
    _Atomic bool undecided;  // promises are held
    pthread_mutex_t lock;    // of all that follows
    struct held held[HELD];
    size_t holds;
};

static void raise_ballot(struct hall *hall, _Atomic uint64_t *highest, uint64_t ballot) {
    uint64_t before = atomic_load(highest);
    while (ballot > before)
        if (atomic_compare_exchange_weak(highest, &before, ballot))
            gate_open(&hall->gate);
}

// Handlers of several links may be here at the same time.
static void note_leader(struct hall *hall, const struct proto_paxos *message) {
    if (message->step == PROTO_PAXOS_COMMIT && message->accepted == message->ballot)
        raise_ballot(hall, &hall->ballot, message->ballot);
}

// Keeps a promise for later; false: there is no reason to.
static bool hold_promise(struct hall *hall, struct link *link, const union proto_message *message) {
    const struct proto_bytes *state = &message->paxos.state;
    pthread_mutex_lock(&hall->lock);
    bool holds = atomic_load(&hall->undecided) && message->paxos.step == PROTO_PAXOS_PROMISE &&
                 hall->holds < HELD && state->length <= STATE;
    if (holds) {
        struct held *held = &hall->held[hall->holds++];
        *held = (struct held){.link = link, .message = *message};
        if (state->length)
            memcpy(held->state, state->at, state->length);
        held->message.paxos.state.at = (const uint8_t *)held->state;
    }
    pthread_mutex_unlock(&hall->lock);
    return holds;
}

static void release_promises(struct hall *hall) {
    pthread_mutex_lock(&hall->lock);
    atomic_store(&hall->undecided, false);
    for (size_t i = 0; i < hall->holds; i++) {
        const struct held *held = &hall->held[i];
        quorum_receive(hall->offices[held->message.paxos.to].quorum, held->link, &held->message);
    }
    hall->holds = 0;
    pthread_mutex_unlock(&hall->lock);
}

static enum proto_refusal welcome(void *context, struct link *link, const struct proto_hello *hello,
                                  struct proto_welcome *answer, uint64_t *detail) {
    (void)context, (void)detail;
    link_know(link);
    *answer = (struct proto_welcome){.role = PROTO_ROLE_CONTROLLER,
                                     .session = hello->session,
                                     .window = 16,
                                     .name = proto_text("controller")};
    return PROTO_REFUSAL_NONE;
}

static void hand_on(void *context, struct link *link, uint64_t request, uint16_t type,
                    const union proto_message *message, struct buffer *payload) {
    struct office *office = context;
    (void)request, (void)payload;
    uint32_t cut = atomic_load(&office->hall->cut);
    if (type == PROTO_TYPE_PAXOS && message->paxos.step == PROTO_PAXOS_PREPARE)
        raise_ballot(office->hall, &office->hall->asked, message->paxos.ballot);
    if (type != PROTO_TYPE_PAXOS || message->paxos.from == cut || message->paxos.to == cut)
        return;
    if (hold_promise(office->hall, link, message))
        return;
    quorum_receive(office->quorum, link, message);
    note_leader(office->hall, &message->paxos);
}

static void hall_open(struct tap *tap, struct hall *hall) {
    struct error err = {0};
    *hall = (struct hall){.cut = PROTO_NOBODY};
    snprintf(hall->folder, sizeof hall->folder, "%s/quorum-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(hall->folder))
        abort();
    pthread_mutex_init(&hall->lock, NULL);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct office *office = &hall->offices[i];
        *office = (struct office){.hall = hall};
        snprintf(office->address, sizeof office->address, "inproc://office-%p", (void *)office);
        hall->addresses[i] = office->address;
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const struct quorum_config config = {.folder = hall->folder,
                                             .addresses = hall->addresses,
                                             .members = MEMBERS,
                                             .id = i,
                                             .gate = &hall->gate};
        if (quorum_open(&hall->offices[i].quorum, &config, &err))
            FAIL(tap, "%s", err.text);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct office *office = &hall->offices[i];
        const struct link_options options = {.handlers = {office, welcome, hand_on, NULL}};
        if (listener_open(&office->listener, office->address, &options, NULL, &err))
            FAIL(tap, "%s", err.text);
    }
}

static void hall_close(struct hall *hall) {
    char name[128];
    for (uint32_t i = 0; i < MEMBERS; i++)
        listener_close(hall->offices[i].listener);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        quorum_close(hall->offices[i].quorum);
        snprintf(name, sizeof name, "%s/controller-%u.state", hall->folder, i + 1);
        unlink(name);
        snprintf(name, sizeof name, "%s/controller-%u.state.lock", hall->folder, i + 1);
        unlink(name);
    }
    rmdir(hall->folder);
    pthread_mutex_destroy(&hall->lock);
}

// Who leads next: a ballot ends with its owner.
static uint32_t await_leader(struct hall *hall) {
    for (uint32_t seen = gate_look(&hall->gate); atomic_load(&hall->ballot) == hall->led;
         seen = gate_look(&hall->gate))
        gate_wait(&hall->gate, seen, -1);
    hall->led = atomic_load(&hall->ballot);
    return (uint32_t)(hall->led & 0xff);
}

static int propose(struct hall *hall, uint32_t id, const char *state) {
    struct agreement agreement = quorum_agreement(hall->offices[id].quorum);
    return agreement.propose(agreement.self, state, NULL);
}

// Until the controller `id` asks for a ballot that is higher than this.
static uint64_t await_candidate(struct hall *hall, uint32_t id, uint64_t ballot) {
    for (;;) {
        uint32_t seen = gate_look(&hall->gate);
        uint64_t asked = atomic_load(&hall->asked);
        if (asked > ballot && (asked & 0xff) == id)
            return asked;
        gate_wait(&hall->gate, seen, -1);
    }
}

struct proposal {
    struct hall *hall;
    uint32_t id;
    const char *state;
    int status;
    _Atomic bool over;
};

static void *make_proposal(void *context) {
    struct proposal *p = context;
    p->status = propose(p->hall, p->id, p->state);
    atomic_store(&p->over, true);
    gate_open(&p->hall->gate);
    return NULL;
}

// Has the leader propose while it takes a higher ballot, the promises for which come when it has
// been refused, or has been waiting for a while. False: the machine was too slow, and the others
// doubt this leader.
static bool propose_between_ballots(struct hall *hall, struct proposal *proposal) {
    uint32_t other = (proposal->id + 1) % MEMBERS;
    pthread_t thread;
    atomic_store(&hall->cut, other);
    uint64_t asked = await_candidate(hall, other, hall->led);
    atomic_store(&hall->undecided, true);
    atomic_store(&hall->cut, PROTO_NOBODY); // it refuses what the leader sends
    await_candidate(hall, proposal->id, asked);
    bool leads = quorum_leads(hall->offices[proposal->id].quorum);
    pthread_create(&thread, NULL, make_proposal, proposal);
    double until = clock_seconds() + 0.1;
    for (uint32_t seen = gate_look(&hall->gate);
         !atomic_load(&proposal->over) && clock_seconds() < until; seen = gate_look(&hall->gate))
        gate_wait(&hall->gate, seen, until - clock_seconds());
    leads = leads && quorum_leads(hall->offices[proposal->id].quorum);
    release_promises(hall);
    pthread_join(thread, NULL);
    return leads;
}

static void check_state(struct tap *tap, struct hall *hall, uint32_t id, const char *wanted) {
    uint64_t version;
    char *state = quorum_state(hall->offices[id].quorum, &version);
    if (!state || strcmp(state, wanted))
        FAIL(tap, "controller %u knows %s, not %s", id, state ? state : "nothing", wanted);
    free(state);
}

int main(void) {
    struct tap tap = {0};
    struct hall hall;
    uint32_t first, second;
    uint64_t version;
    hall_open(&tap, &hall);
    TEST(&tap, "a leader's state is agreed on", {
        first = await_leader(&hall);
        CHECK_INT(&tap, propose(&hall, first, FIRST), STATUS_OK);
        check_state(&tap, &hall, first, FIRST);
    });
    TEST(&tap, "what it proposes while it takes a higher ballot is agreed on", {
        struct proposal proposal = {.hall = &hall, .id = first, .state = FIRST};
        bool fair = propose_between_ballots(&hall, &proposal);
        for (first = await_leader(&hall); !fair; first = await_leader(&hall)) {
            free(quorum_state(hall.offices[first].quorum, &version));
            proposal = (struct proposal){.hall = &hall, .id = first, .state = FIRST};
            fair = propose_between_ballots(&hall, &proposal);
        }
        CHECK_INT(&tap, proposal.status, STATUS_OK);
    });
    TEST(&tap, "where it is cut off another leads, and goes on from that state", {
        atomic_store(&hall.cut, first);
        second = await_leader(&hall);
        check_state(&tap, &hall, second, FIRST);
        CHECK_INT(&tap, propose(&hall, second, SECOND), STATUS_OK);
    });
    TEST(&tap, "one that leads again proposes nothing that forgets what another agreed on", {
        for (uint32_t next = second; next != first; next = await_leader(&hall))
            atomic_store(&hall.cut, next);
        CHECK_INT(&tap, propose(&hall, first, THIRD), STATUS_UNAVAILABLE);
        check_state(&tap, &hall, first, SECOND);
        CHECK_INT(&tap, propose(&hall, first, THIRD), STATUS_OK);
    });
    hall_close(&hall);
    return tap_done(&tap);
}
