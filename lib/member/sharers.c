#include "member/sharers.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"

static bool is_worker(const struct proto_member *member) {
    return member->role == PROTO_ROLE_WORKER && member->state != PROTO_STATE_GONE;
}

size_t sharers_count(const struct proto_status *status) {
    const struct proto_member *members = status->members.at;
    size_t count = 0;
    for (uint32_t i = 0; i < status->members.count; i++)
        count += is_worker(&members[i]) && members[i].partition == 0;
    return count;
}

int sharers_of(struct sharers *sharers, const struct proto_status *status, bool first,
               struct error *err) {
    const struct proto_member *members = status->members.at;
    size_t most = status->members.count + 1;
    *sharers = (struct sharers){mem_array(most, sizeof *sharers->sessions),
                                mem_array(most, sizeof *sharers->replicas), 0};
    if (!sharers->sessions || !sharers->replicas)
        return error_nomem(err);
    for (uint32_t i = 0; i < status->members.count; i++) {
        const struct proto_member *member = &members[i];
        if (!is_worker(member) || member->state == PROTO_STATE_WAITING ||
            (first && member->partition > 0))
            continue;
        sharers->sessions[sharers->count] = member->session;
        sharers->replicas[sharers->count++] = member->replica;
    }
    return STATUS_OK;
}

void sharers_free(struct sharers *sharers) {
    free(sharers->sessions);
    free(sharers->replicas);
    *sharers = (struct sharers){0};
}
