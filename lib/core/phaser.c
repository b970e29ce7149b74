#include "core/phaser.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/cpu.h"
#include "core/gate.h"
#include "core/mem.h"

// Looks before a waiting member sleeps: with equal work the others come soon, and waking takes
// longer. Members that share processors do not look: the one they wait for may need this processor.
enum { LOOKS = 50000 };

enum membership { OUT, COMING, IN }; // IN the round, or COMING to the next

struct phaser {
    pthread_mutex_t lock;
    phaser_begun *begun;
    void *self;
    int looks;
    // Changed under the lock.
    int in, arrived;                      // in the round, and of them at what is due
    int coming, waiting;                  // to the next one, and of them at its beginning
    bool left;                            // somebody has, in this round
    bool beginning;                       // that is what those wait for who have arrived
    _Atomic bool whole;                   // of the meeting that is over: what phaser_meet returns
    _Atomic unsigned over;                // beginnings and meetings
    struct gate gate;                     // opened by each
    _Atomic enum membership membership[]; // of each member
};

struct phaser *phaser_open(int members, phaser_begun *begun, void *self) {
    struct phaser *phaser =
        mem_zeroed(1, sizeof *phaser + (size_t)members * sizeof phaser->membership[0]);
    if (!phaser)
        return NULL;
    pthread_mutex_init(&phaser->lock, NULL);
    phaser->begun = begun;
    phaser->self = self;
    phaser->looks = members <= cpu_count() ? LOOKS : 0;
    return phaser;
}

void phaser_close(struct phaser *phaser) {
    if (!phaser)
        return;
    pthread_mutex_destroy(&phaser->lock);
    free(phaser);
}

bool phaser_has(const struct phaser *phaser, int member) {
    return atomic_load(&phaser->membership[member]) == IN;
}

static void admit_waiting(struct phaser *phaser) {
    for (int i = 0; phaser->coming > 0; i++) {
        if (atomic_load(&phaser->membership[i]) != COMING)
            continue;
        atomic_store(&phaser->membership[i], IN);
        phaser->coming--;
        phaser->in++;
    }
    phaser->waiting = 0;
    phaser->left = false;
    if (phaser->begun)
        phaser->begun(phaser->self);
}

// Ends what is due when nobody is missing.
static void complete_meeting(struct phaser *phaser) {
    bool beginning = phaser->beginning || phaser->in == 0;
    if (phaser->arrived < phaser->in || phaser->in + phaser->coming == 0 ||
        (beginning && phaser->waiting < phaser->coming))
        return;
    if (beginning)
        admit_waiting(phaser);
    phaser->arrived = 0;
    phaser->beginning = false;
    atomic_store(&phaser->whole, !phaser->left);
    atomic_fetch_add(&phaser->over, 1);
    gate_open(&phaser->gate);
}

static bool meeting_is_over(const struct phaser *phaser, unsigned before) {
    return atomic_load(&phaser->over) != before;
}

static void await_meeting(struct phaser *phaser, unsigned before) {
    for (int i = 0; i < phaser->looks; i++)
        if (meeting_is_over(phaser, before))
            return;
    for (uint32_t seen = gate_look(&phaser->gate); !meeting_is_over(phaser, before);
         seen = gate_look(&phaser->gate))
        gate_wait(&phaser->gate, seen, -1);
}

// Called with the lock by who is in; gives it up.
static void arrive_at_meeting(struct phaser *phaser, bool beginning) {
    unsigned before = atomic_load(&phaser->over);
    phaser->arrived++;
    phaser->beginning = beginning;
    complete_meeting(phaser);
    pthread_mutex_unlock(&phaser->lock);
    await_meeting(phaser, before);
}

static void wait_for_admission(struct phaser *phaser, int member) {
    phaser->waiting++;
    complete_meeting(phaser);
    pthread_mutex_unlock(&phaser->lock);
    // It is not in where the others only meet.
    for (unsigned before = atomic_load(&phaser->over); !phaser_has(phaser, member);
         before = atomic_load(&phaser->over))
        await_meeting(phaser, before);
    // Whoever takes it in has the lock until the round has begun.
    pthread_mutex_lock(&phaser->lock);
    pthread_mutex_unlock(&phaser->lock);
}

void phaser_enter(struct phaser *phaser, int member) {
    pthread_mutex_lock(&phaser->lock);
    if (atomic_load(&phaser->membership[member]) == OUT) {
        atomic_store(&phaser->membership[member], COMING);
        phaser->coming++;
    }
    pthread_mutex_unlock(&phaser->lock);
}

void phaser_begin(struct phaser *phaser, int member) {
    pthread_mutex_lock(&phaser->lock);
    if (phaser_has(phaser, member))
        arrive_at_meeting(phaser, true);
    else
        wait_for_admission(phaser, member);
}

bool phaser_meet(struct phaser *phaser) {
    pthread_mutex_lock(&phaser->lock);
    arrive_at_meeting(phaser, false);
    return atomic_load(&phaser->whole);
}

void phaser_leave(struct phaser *phaser, int member) {
    pthread_mutex_lock(&phaser->lock);
    enum membership was = atomic_exchange(&phaser->membership[member], OUT);
    phaser->coming -= was == COMING;
    phaser->in -= was == IN;
    phaser->left |= was == IN;
    if (was != OUT)
        complete_meeting(phaser);
    pthread_mutex_unlock(&phaser->lock);
}
