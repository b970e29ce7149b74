// Three controllers in one process, of which one at a time is cut off from the others.
#include <stdlib.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "role/controller/quorum.h"

enum { MEMBERS = 3 };

#define FIRST "{\"is\": 1}"
#define SECOND "{\"is\": 2}"
#define THIRD "{\"is\": 3}"

struct office {
    struct hall *hall;
    char address[64];
    struct quorum *quorum;
    struct listener *listener;
};

struct hall {
    char folder[64];
    const char *addresses[MEMBERS];
    struct office offices[MEMBERS];
    _Atomic uint32_t cut;    // who is cut off; PROTO_NOBODY
    struct gate gate;        // opened when a leader was heard that is ready
    _Atomic uint64_t ballot; // the highest of such a leader
    uint64_t led;            // that of the one before
};

// Handlers of several links may be here at the same time.
static void note_leader(struct hall *hall, const struct proto_paxos *message) {
    uint64_t highest = atomic_load(&hall->ballot);
    bool leads = message->step == PROTO_PAXOS_COMMIT && message->accepted == message->ballot;
    while (leads && message->ballot > highest)
        if (atomic_compare_exchange_weak(&hall->ballot, &highest, message->ballot))
            gate_open(&hall->gate);
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
    if (type != PROTO_TYPE_PAXOS || message->paxos.from == cut || message->paxos.to == cut)
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
    hall_open(&tap, &hall);
    TEST(&tap, "a leader's state is agreed on", {
        first = await_leader(&hall);
        CHECK_INT(&tap, propose(&hall, first, FIRST), STATUS_OK);
        check_state(&tap, &hall, first, FIRST);
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
