#include "member/sharers.h"

#include "core/error.h"
#include "core/mem.h"

static bool is_sharer(const struct proto_member *member) {
    return member->role == PROTO_ROLE_WORKER && member->state != PROTO_STATE_GONE &&
           member->state != PROTO_STATE_WAITING;
}

size_t sharers_count(const struct proto_status *status) {
    const struct proto_member *members = status->members.at;
    size_t count = 0;
    for (uint32_t i = 0; i < status->members.count; i++)
        count += members[i].role == PROTO_ROLE_WORKER && members[i].state != PROTO_STATE_GONE;
    return count;
}

int sharers_of(uint64_t **sessions, size_t *count, const struct proto_status *status,
               struct error *err) {
    const struct proto_member *members = status->members.at;
    *sessions = mem_array(status->members.count + 1, sizeof **sessions);
    *count = 0;
    if (!*sessions)
        return error_nomem(err);
    for (uint32_t i = 0; i < status->members.count; i++)
        if (is_sharer(&members[i]))
            (*sessions)[(*count)++] = members[i].session;
    return STATUS_OK;
}
