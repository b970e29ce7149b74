#include "core/party.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/cpu.h"
#include "core/gate.h"
#include "core/mem.h"

// Looks before a waiting member sleeps: with equal work the others come soon, and waking takes
// longer. Members that share processors do not look: the one they wait for may need this processor.
enum { LOOKS = 50000 };

enum place { OUT, COMING, IN }; // IN the round, or COMING to the next

struct party {
    pthread_mutex_t lock;
    party_begun *begun;
    void *self;
    int looks;
    // Changed under the lock.
    int in, arrived;            // in the round, and of them at what is due
    int coming, waiting;        // to the next one, and of them at its beginning
    bool left;                  // somebody has, in this round
    bool beginning;             // that is what those wait for who have arrived
    _Atomic bool whole;         // of the meeting that is over: what party_meet returns
    _Atomic unsigned over;      // beginnings and meetings
    struct gate gate;           // opened by each
    _Atomic enum place place[]; // of each member
};

struct party *party_open(int members, party_begun *begun, void *self) {
    struct party *party = mem_zeroed(1, sizeof *party + (size_t)members * sizeof party->place[0]);
    if (!party)
        return NULL;
    pthread_mutex_init(&party->lock, NULL);
    party->begun = begun;
    party->self = self;
    party->looks = members <= cpu_count() ? LOOKS : 0;
    return party;
}

void party_close(struct party *party) {
    if (!party)
        return;
    pthread_mutex_destroy(&party->lock);
    free(party);
}

bool party_has(const struct party *party, int member) {
    return atomic_load(&party->place[member]) == IN;
}

static void admit_waiting(struct party *party) {
    for (int i = 0; party->coming > 0; i++) {
        if (atomic_load(&party->place[i]) != COMING)
            continue;
        atomic_store(&party->place[i], IN);
        party->coming--;
        party->in++;
    }
    party->waiting = 0;
    party->left = false;
    if (party->begun)
        party->begun(party->self);
}

// Ends what is due when nobody is missing.
static void complete_meeting(struct party *party) {
    bool beginning = party->beginning || party->in == 0;
    if (party->arrived < party->in || party->in + party->coming == 0 ||
        (beginning && party->waiting < party->coming))
        return;
    if (beginning)
        admit_waiting(party);
    party->arrived = 0;
    party->beginning = false;
    atomic_store(&party->whole, !party->left);
    atomic_fetch_add(&party->over, 1);
    gate_open(&party->gate);
}

static bool meeting_is_over(const struct party *party, unsigned before) {
    return atomic_load(&party->over) != before;
}

static void await_meeting(struct party *party, unsigned before) {
    for (int i = 0; i < party->looks; i++)
        if (meeting_is_over(party, before))
            return;
    for (uint32_t seen = gate_look(&party->gate); !meeting_is_over(party, before);
         seen = gate_look(&party->gate))
        gate_wait(&party->gate, seen, -1);
}

// Called with the lock by who is in; gives it up.
static void arrive_at_meeting(struct party *party, bool beginning) {
    unsigned before = atomic_load(&party->over);
    party->arrived++;
    party->beginning = beginning;
    complete_meeting(party);
    pthread_mutex_unlock(&party->lock);
    await_meeting(party, before);
}

static void wait_for_admission(struct party *party, int member) {
    party->waiting++;
    complete_meeting(party);
    pthread_mutex_unlock(&party->lock);
    // It is not in where the others only meet.
    for (unsigned before = atomic_load(&party->over); !party_has(party, member);
         before = atomic_load(&party->over))
        await_meeting(party, before);
    // Whoever takes it in has the lock until the round has begun.
    pthread_mutex_lock(&party->lock);
    pthread_mutex_unlock(&party->lock);
}

void party_enter(struct party *party, int member) {
    pthread_mutex_lock(&party->lock);
    if (atomic_load(&party->place[member]) == OUT) {
        atomic_store(&party->place[member], COMING);
        party->coming++;
    }
    pthread_mutex_unlock(&party->lock);
}

void party_begin(struct party *party, int member) {
    pthread_mutex_lock(&party->lock);
    if (party_has(party, member))
        arrive_at_meeting(party, true);
    else
        wait_for_admission(party, member);
}

bool party_meet(struct party *party) {
    pthread_mutex_lock(&party->lock);
    arrive_at_meeting(party, false);
    return atomic_load(&party->whole);
}

void party_leave(struct party *party, int member) {
    pthread_mutex_lock(&party->lock);
    enum place place = atomic_exchange(&party->place[member], OUT);
    party->coming -= place == COMING;
    party->in -= place == IN;
    party->left |= place == IN;
    if (place != OUT)
        complete_meeting(party);
    pthread_mutex_unlock(&party->lock);
}
