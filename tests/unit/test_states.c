// Which states of a supervised run and of its processes follow which, and what an invariant does
// that is broken.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/invariant.h"
#include "launch/supervise_states.h"

// How the program ends that breaks one, as waitpid has it.
static int break_invariant(bool wanted) {
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (wanted)
            setenv("ADAM_INVARIANTS", "1", 1);
        else
            unsetenv("ADAM_INVARIANTS");
        INVARIANT(getpid() == 0);
        _exit(7);
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

int main(void) {
    struct tap tap = {0};
    TEST(&tap, "a run ends, is terminated and is killed, in that order, and never goes back", {
        static const bool arrows[PHASE_COUNT][PHASE_COUNT] = {
            // running, ending, terminating, killing
            {false, true, false, false},
            {false, false, true, true},
            {false, false, false, true},
            {false, false, false, false},
        };
        for (int from = 0; from < PHASE_COUNT; from++)
            for (int to = 0; to < PHASE_COUNT; to++)
                if (phase_may_follow((enum phase)from, (enum phase)to) != arrows[from][to])
                    FAIL(&tap, "phase %d to %d", from, to);
    });
    TEST(&tap, "a process waits, starts, and waits again, leaves or is over for good", {
        static const bool arrows[SLOT_STATE_COUNT][SLOT_STATE_COUNT] = {
            // waiting, started, ready, left, over
            {false, true, false, false, true},   {true, false, true, true, true},
            {true, false, false, false, true},   {true, false, false, false, true},
            {false, false, false, false, false},
        };
        for (int from = 0; from < SLOT_STATE_COUNT; from++)
            for (int to = 0; to < SLOT_STATE_COUNT; to++)
                if (slot_state_may_follow((enum slot_state)from, (enum slot_state)to) !=
                    arrows[from][to])
                    FAIL(&tap, "state %d to %d", from, to);
    });
    TEST(&tap, "a broken invariant ends the program in tests, and in no other place", {
        int status = break_invariant(true); // a signal, or what a sanitizer makes of it
        CHECK(&tap, status != -1 && !(WIFEXITED(status) && WEXITSTATUS(status) == 7));
        status = break_invariant(false);
        CHECK(&tap, WIFEXITED(status) && WEXITSTATUS(status) == 7);
    });
    return tap_done(&tap);
}
