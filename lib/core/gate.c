#include "core/gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// How often a thread looks before it sleeps: phases of a synchronous mini-batch
// end within microseconds of each other, and a system call costs as much.
enum { LOOKS = 200 };

static long futex_call(struct gate *gate, int operation, uint32_t value,
                       const struct timespec *timeout) {
    int among = gate->shared ? 0 : FUTEX_PRIVATE_FLAG;
    return syscall(SYS_futex, &gate->opened, operation | among, value, timeout, NULL, 0);
}

uint32_t gate_look(const struct gate *gate) {
    return atomic_load(&gate->opened);
}

void gate_wait(struct gate *gate, uint32_t seen, double seconds) {
    uint32_t looks = gate->looks ? gate->looks : LOOKS;
    for (uint32_t i = 0; i < looks; i++)
        if (atomic_load(&gate->opened) != seen)
            return;
    struct timespec timeout = {.tv_sec = (time_t)seconds};
    timeout.tv_nsec = (long)((seconds - (double)timeout.tv_sec) * 1e9);
    atomic_fetch_add(&gate->asleep, 1);
    // The kernel compares and sleeps in one step: an opening in between is seen.
    futex_call(gate, FUTEX_WAIT, seen, seconds < 0 ? NULL : &timeout);
    atomic_fetch_sub(&gate->asleep, 1);
}

void gate_open(struct gate *gate) {
    atomic_fetch_add(&gate->opened, 1);
    if (atomic_load(&gate->asleep) > 0)
        futex_call(gate, FUTEX_WAKE, INT32_MAX, NULL);
}

bool barrier_arrive(struct barrier *barrier) {
    uint32_t round = atomic_load(&barrier->round);
    if (atomic_fetch_add(&barrier->arrived, 1) + 1 == barrier->threads)
        return true;
    for (uint32_t seen = gate_look(&barrier->gate); atomic_load(&barrier->round) == round;
         seen = gate_look(&barrier->gate))
        gate_wait(&barrier->gate, seen, -1);
    return false;
}

void barrier_end(struct barrier *barrier) {
    atomic_store(&barrier->arrived, 0);
    atomic_fetch_add(&barrier->round, 1);
    gate_open(&barrier->gate);
}
