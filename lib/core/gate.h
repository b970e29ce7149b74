// Waiting without locks: an event count over the futex of Linux.
//
// The state that is waited for lives in the caller's atomics. Whoever waits looks
// at the gate, then at that state, and sleeps only when nothing was opened since:
//
//     for (uint32_t seen = gate_look(&gate); !ready(); seen = gate_look(&gate))
//         gate_wait(&gate, seen, -1);
//
// Whoever changes the state opens the gate afterwards. With nobody asleep both
// sides cost an atomic operation or two and no system call. All operations are
// sequentially consistent: either the opener sees the sleeper, or the sleeper
// sees that the gate was opened.
#ifndef ADAM_CORE_GATE_H
#define ADAM_CORE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gate { // {0} is a gate that was never opened
    _Atomic uint32_t opened;
    _Atomic uint32_t asleep;
    uint32_t looks; // of a thread before it sleeps; 0: some
    bool shared;    // it lies in memory that processes share (core/mem.h)
};

uint32_t gate_look(const struct gate *gate);
// Returns when the gate was opened after `seen` was read, at a signal, now and
// then for no reason, or after `seconds` (below 0: never). The caller looks again.
void gate_wait(struct gate *gate, uint32_t seen, double seconds);
// Wakes all who wait.
void gate_open(struct gate *gate);

// A barrier for `threads` threads. The last to arrive gets true and is then
// alone: the others wait until it calls barrier_end. So what must be done once
// between two phases is done there.
struct barrier {
    int threads;
    _Atomic int arrived;
    _Atomic uint32_t round;
    struct gate gate;
};

bool barrier_arrive(struct barrier *barrier);
void barrier_end(struct barrier *barrier);

#endif
