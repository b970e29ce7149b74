#include "deal/rounds.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"

void rounds_free(struct rounds *rounds) {
    free(rounds->members);
    free(rounds->open);
    free(rounds->steps);
    *rounds = (struct rounds){0};
}

// --- members ---------------------------------------------------------------------

struct round_member *rounds_member(const struct rounds *rounds, uint64_t session) {
    for (size_t i = 0; i < rounds->member_count; i++)
        if (rounds->members[i].session == session)
            return &rounds->members[i];
    return NULL;
}

// Open slots of those who are no members, or past the step, are none.
static void remove_dead_slots(struct rounds *rounds) {
    size_t n = 0;
    for (size_t i = 0; i < rounds->open_count; i++) {
        const struct round_slot slot = rounds->open[i];
        const struct round_member *member = rounds_member(rounds, slot.session);
        if (member && member->asked <= slot.step)
            rounds->open[n++] = slot;
    }
    rounds->open_count = n;
}

int rounds_members(struct rounds *rounds, const uint64_t *sessions, size_t count,
                   struct error *err) {
    struct round_member *members = mem_zeroed(count + 1, sizeof *members);
    if (!members)
        return error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        const struct round_member *before = rounds_member(rounds, sessions[i]);
        members[i] = before ? *before : (struct round_member){.session = sessions[i]};
    }
    free(rounds->members);
    rounds->members = members;
    rounds->member_count = count;
    remove_dead_slots(rounds);
    return STATUS_OK;
}

void rounds_gone(struct rounds *rounds, uint64_t session) {
    struct round_member *member = rounds_member(rounds, session);
    if (!member)
        return;
    struct round_member *end = rounds->members + --rounds->member_count;
    memmove(member, member + 1, (size_t)(end - member) * sizeof *member);
    remove_dead_slots(rounds);
}

// --- rounds ----------------------------------------------------------------------

// Forgets the rounds that all members are past.
static void forget_past_rounds(struct rounds *rounds) {
    uint64_t least = UINT64_MAX;
    size_t past = 0;
    for (size_t i = 0; i < rounds->member_count; i++)
        if (rounds->members[i].asked < least)
            least = rounds->members[i].asked;
    while (past < rounds->step_count && rounds->steps[past] < least)
        past++;
    rounds->step_count -= past;
    if (past > 0)
        memmove(rounds->steps, rounds->steps + past, rounds->step_count * sizeof *rounds->steps);
}

// Whether there may be slots of it before this step, which it has come to.
static bool note_step(struct round_member *member, uint64_t step) {
    if (step <= member->asked)
        return false;
    member->asked = step;
    return member->lease == 0 || member->given + 1 != step;
}

bool rounds_reach(struct rounds *rounds, struct round_member *member, uint64_t step) {
    bool passed = note_step(member, step);
    if (passed)
        remove_dead_slots(rounds);
    forget_past_rounds(rounds);
    return passed;
}

bool rounds_over(struct rounds *rounds, uint64_t step) {
    bool passed = false;
    for (size_t i = 0; i < rounds->member_count; i++)
        passed |= note_step(&rounds->members[i], step);
    if (passed)
        remove_dead_slots(rounds);
    return passed;
}

bool rounds_opened(const struct rounds *rounds, uint64_t step) {
    for (size_t i = rounds->step_count; i > 0 && rounds->steps[i - 1] >= step; i--)
        if (rounds->steps[i - 1] == step)
            return true;
    return false;
}

bool rounds_opened_later(const struct rounds *rounds, uint64_t step) {
    return rounds->step_count > 0 && rounds->steps[rounds->step_count - 1] > step;
}

static bool reserve_round(struct rounds *rounds) {
    size_t open = rounds->open_count + rounds->member_count, steps = rounds->step_count + 1;
    if (open > rounds->open_room) {
        struct round_slot *more = mem_resize(rounds->open, 2 * open, sizeof *more);
        if (!more)
            return false;
        rounds->open = more;
        rounds->open_room = 2 * open;
    }
    if (steps > rounds->step_room) {
        uint64_t *more = mem_resize(rounds->steps, 2 * steps, sizeof *more);
        if (!more)
            return false;
        rounds->steps = more;
        rounds->step_room = 2 * steps;
    }
    return true;
}

static void add_step(struct rounds *rounds, uint64_t step) {
    size_t at = rounds->step_count++;
    for (; at > 0 && rounds->steps[at - 1] > step; at--)
        rounds->steps[at] = rounds->steps[at - 1];
    rounds->steps[at] = step;
}

static void add_slot(struct rounds *rounds, struct round_slot slot) {
    size_t at = rounds->open_count++;
    for (; at > 0 && rounds->open[at - 1].step > slot.step; at--)
        rounds->open[at] = rounds->open[at - 1];
    rounds->open[at] = slot;
}

int rounds_open(struct rounds *rounds, uint64_t step, struct error *err) {
    if (!reserve_round(rounds))
        return error_nomem(err);
    if (!rounds_opened(rounds, step))
        add_step(rounds, step);
    for (size_t i = 0; i < rounds->member_count; i++)
        if (rounds->members[i].asked <= step)
            add_slot(rounds, (struct round_slot){step, rounds->members[i].session});
    return STATUS_OK;
}

int rounds_again(struct rounds *rounds, struct round_member *member, struct error *err) {
    if (!reserve_round(rounds))
        return error_nomem(err);
    add_slot(rounds, (struct round_slot){member->given, member->session});
    member->lease = 0;
    return STATUS_OK;
}

bool rounds_first(const struct rounds *rounds, struct round_slot *slot) {
    if (rounds->open_count == 0)
        return false;
    *slot = rounds->open[0];
    return true;
}

void rounds_fill(struct rounds *rounds) {
    rounds->open_count--;
    memmove(rounds->open, rounds->open + 1, rounds->open_count * sizeof *rounds->open);
}

bool rounds_is_open(const struct rounds *rounds, struct round_slot slot) {
    for (size_t i = 0; i < rounds->open_count; i++)
        if (rounds->open[i].step == slot.step && rounds->open[i].session == slot.session)
            return true;
    return false;
}

void rounds_close(struct rounds *rounds) {
    rounds->open_count = 0;
}

void rounds_clear(struct rounds *rounds) {
    rounds->open_count = rounds->step_count = 0;
}
