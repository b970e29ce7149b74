#include "launch/supervise_states.h"

#define BIT(state) (1u << (state))

bool phase_may_follow(enum phase from, enum phase to) {
    static const unsigned followers[PHASE_COUNT] = {
        [PHASE_RUNNING] = BIT(PHASE_ENDING),
        [PHASE_ENDING] = BIT(PHASE_TERMINATING) | BIT(PHASE_KILLING),
        [PHASE_TERMINATING] = BIT(PHASE_KILLING),
    };
    return followers[from] & BIT(to);
}

bool slot_state_may_follow(enum slot_state from, enum slot_state to) {
    static const unsigned followers[SLOT_STATE_COUNT] = {
        [SLOT_WAITING] = BIT(SLOT_STARTED) | BIT(SLOT_OVER),
        [SLOT_STARTED] = BIT(SLOT_WAITING) | BIT(SLOT_READY) | BIT(SLOT_LEFT) | BIT(SLOT_OVER),
        [SLOT_READY] = BIT(SLOT_WAITING) | BIT(SLOT_OVER),
        [SLOT_LEFT] = BIT(SLOT_WAITING) | BIT(SLOT_OVER),
    };
    return followers[from] & BIT(to);
}
