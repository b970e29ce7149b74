#include "ps/history.h"

#include <stdlib.h>

#include "core/mem.h"

enum { HISTORY_BITS = 64 };

bool histories_room(struct histories *histories, const struct session *session) {
    if (session->slot < histories->count)
        return true;
    uint32_t count = histories->count ? histories->count : 4;
    while (count <= session->slot)
        count *= 2;
    struct push_history *at = mem_resize(histories->at, count, sizeof *at);
    if (!at)
        return false;
    for (uint32_t i = histories->count; i < count; i++)
        at[i] = (struct push_history){0};
    *histories = (struct histories){at, count};
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

void histories_free(struct histories *histories) {
    free(histories->at);
    *histories = (struct histories){0};
}
