// Which pushes of each session a shard has applied: for each the highest sequence number,
// and a bit for each of the 63 before it. They lie by the slot of the session (members.h),
// and belong to whoever has the shard.
#ifndef ADAM_PS_HISTORY_H
#define ADAM_PS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "ps/members.h"

struct push_history {
    uint64_t session;
    uint64_t high, applied; // applied: bit i is number high - i
};

struct histories { // {0} knows of none
    struct push_history *at;
    uint32_t count;
    // Those of a copy that was restored, of sessions that nobody named here yet.
    struct push_history *restored;
    uint32_t restored_count;
};

enum history_finds { HISTORY_NEW, HISTORY_APPLIED, HISTORY_TOO_OLD };

// Makes room for the session, with what was restored of it, so that nothing that follows can fail.
// False: out of memory.
bool histories_room(struct histories *histories, const struct session *session);

// What is known of this push; *high is the highest number that was applied.
enum history_finds histories_find(const struct histories *histories, const struct session *session,
                                  uint64_t sequence, uint64_t *high);

// It is applied now; there is room.
void histories_mark(struct histories *histories, const struct session *session, uint64_t sequence);

// All that it knows, into an array of malloc that it makes longer where it must: *count of them.
// False: out of memory.
bool histories_copy(const struct histories *histories, struct push_history **at, uint32_t *count,
                    uint32_t *room);
// Knows these from now on, and nothing else. False: out of memory, nothing has changed.
bool histories_restore(struct histories *histories, const struct push_history *at, uint32_t count);

void histories_free(struct histories *histories);

#endif
