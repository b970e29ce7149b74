#include "ps/history.h"

#include <stdlib.h>

#include "core/mem.h"

enum { HISTORY_BITS = 64 };

// What was restored of the session has its slot from now on.
static void adopt_restored(struct histories *histories, const struct session *session) {
    struct push_history *at = &histories->at[session->slot];
    for (uint32_t i = 0; i < histories->restored_count && at->session != session->number; i++)
        if (histories->restored[i].session == session->number) {
            *at = histories->restored[i];
            histories->restored[i].session = 0;
        }
}

static bool make_room(struct histories *histories, const struct session *session) {
    struct push_history *at =
        mem_longer(histories->at, &histories->count, session->slot + 1, sizeof *at);
    if (at)
        histories->at = at;
    return at != NULL;
}

bool histories_room(struct histories *histories, const struct session *session) {
    if (!make_room(histories, session))
        return false;
    adopt_restored(histories, session);
    return true;
}

enum history_finds histories_find(const struct histories *histories, const struct session *session,
                                  uint64_t sequence, uint64_t *high) {
    const struct push_history *history = &histories->at[session->slot];
    *high = history->session == session->number ? history->high : 0;
    if (sequence > *high)
        return HISTORY_NEW;
    if (*high - sequence >= HISTORY_BITS)
        return HISTORY_TOO_OLD;
    return history->applied >> (*high - sequence) & 1 ? HISTORY_APPLIED : HISTORY_NEW;
}

void histories_mark(struct histories *histories, const struct session *session, uint64_t sequence) {
    struct push_history *history = &histories->at[session->slot];
    if (history->session != session->number)
        *history = (struct push_history){.session = session->number};
    if (sequence > history->high) {
        uint64_t by = sequence - history->high;
        history->applied = by < HISTORY_BITS ? history->applied << by : 0;
        history->high = sequence;
    }
    if (history->high - sequence < HISTORY_BITS)
        history->applied |= UINT64_C(1) << (history->high - sequence);
}

// Appends those that are of a session; returns how many there are then.
static uint32_t append_known(struct push_history *to, uint32_t n, const struct push_history *from,
                             uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (from[i].session)
            to[n++] = from[i];
    return n;
}

bool histories_copy(const struct histories *histories, struct push_history **at, uint32_t *count,
                    uint32_t *room) {
    uint32_t most = histories->count + histories->restored_count;
    if (most > *room) {
        struct push_history *more = mem_resize(*at, most, sizeof *more);
        if (!more)
            return false;
        *at = more;
        *room = most;
    }
    *count = append_known(*at, 0, histories->at, histories->count);
    *count = append_known(*at, *count, histories->restored, histories->restored_count);
    return true;
}

bool histories_restore(struct histories *histories, const struct push_history *at, uint32_t count) {
    struct push_history *restored = mem_array(count ? count : 1, sizeof *restored);
    if (!restored)
        return false;
    append_known(restored, 0, at, count);
    histories_free(histories);
    histories->restored = restored;
    histories->restored_count = count;
    return true;
}

void histories_free(struct histories *histories) {
    free(histories->at);
    free(histories->restored);
    *histories = (struct histories){0};
}
