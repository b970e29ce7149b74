// Who asked what no program of the run asks when all is well, for its user to hear.
#include <inttypes.h>
#include <stdio.h>

#include "role/paramserver/parameter_paths_internal.h"

// What no program of the run does when all is well.
static bool is_wrong(enum proto_refusal code) {
    switch (code) {
    case PROTO_REFUSAL_WRONG_RUN:
    case PROTO_REFUSAL_WRONG_MODEL:
    case PROTO_REFUSAL_WRONG_ROLE:
    case PROTO_REFUSAL_WRONG_SESSION:
    case PROTO_REFUSAL_WRONG_SHAPE:
    case PROTO_REFUSAL_NOT_FINITE:
    case PROTO_REFUSAL_BAD_SETTING:
        return true;
    default:
        return false;
    }
}

// Under the lock.
static struct offence *offence_of(struct paths *paths, enum proto_refusal code, uint64_t session) {
    struct offence *offence = paths->offences, *end = offence + paths->offence_count;
    while (offence < end && (offence->code != code || offence->session != session))
        offence++;
    if (offence < paths->offences + PATHS_OFFENCES) {
        paths->offence_count += offence == end;
        offence->session = session;
    } else {
        offence--;
        offence->session = 0;
    }
    offence->code = code;
    return offence;
}

void paths_note_offence(struct paths *paths, const struct caller *caller, uint16_t type,
                        enum proto_refusal code, uint64_t detail) {
    if (!is_wrong(code))
        return;
    pthread_mutex_lock(&paths->lock);
    struct offence *offence = offence_of(paths, code, caller->session);
    offence->count++;
    snprintf(offence->last, sizeof offence->last, "refused a %s of %s %s (%s): %s, detail %" PRIu64,
             proto_message_name(type), proto_role_name(caller->role), caller->name,
             link_address(caller->link), proto_refusal_name(code), detail);
    pthread_mutex_unlock(&paths->lock);
}

static bool is_due(const struct offence *offence) {
    return offence->count > 0 && offence->count >= 2 * offence->told;
}

bool paths_complaint(struct paths *paths, struct complaint *complaint) {
    bool found = false;
    pthread_mutex_lock(&paths->lock);
    for (int i = 0; !found && i < paths->offence_count; i++) {
        struct offence *offence = &paths->offences[i];
        found = is_due(offence);
        if (!found)
            continue;
        *complaint = (struct complaint){.code = offence->code,
                                        .session = offence->session,
                                        .count = offence->count - offence->told};
        snprintf(complaint->text, sizeof complaint->text, "%s; %" PRIu64 " so far", offence->last,
                 offence->count);
        offence->told = offence->count;
    }
    pthread_mutex_unlock(&paths->lock);
    return found;
}

uint64_t paths_unwelcome(const struct paths *paths) {
    return atomic_load(&paths->unwelcome);
}
