#include "ps/replica_steps.h"

#include <stdlib.h>

#include "core/mem.h"

// --- room -------------------------------------------------------------------------------

static bool grow(struct step_count **list, uint32_t *room, uint32_t wanted) {
    uint32_t more = *room ? *room : 4;
    while (more < wanted)
        more *= 2;
    if (more == *room)
        return true;
    struct step_count *longer = mem_resize(*list, more, sizeof *longer);
    if (!longer)
        return false;
    for (uint32_t i = *room; i < more; i++)
        longer[i] = (struct step_count){0};
    *list = longer;
    *room = more;
    return true;
}

static struct step_count *replica_of(const struct replica_steps *steps,
                                     const struct session *session) {
    uint64_t number = atomic_load(&session->replica);
    for (uint32_t i = 0; i < steps->replica_count; i++)
        if (steps->replicas[i].number == number)
            return &steps->replicas[i];
    return NULL;
}

static bool add_replica(struct replica_steps *steps, const struct session *session) {
    if (replica_of(steps, session))
        return true;
    if (!grow(&steps->replicas, &steps->replica_room, steps->replica_count + 1))
        return false;
    steps->replicas[steps->replica_count++] =
        (struct step_count){.number = atomic_load(&session->replica)};
    return true;
}

bool replica_steps_room(struct replica_steps *steps, const struct session *session) {
    if (!steps->at && !(steps->at = mem_zeroed(STEPS_KEPT, sizeof *steps->at)))
        return false;
    return grow(&steps->sessions, &steps->session_count, session->slot + 1) &&
           add_replica(steps, session);
}

void replica_steps_free(struct replica_steps *steps) {
    free(steps->sessions), free(steps->replicas), free(steps->at);
    *steps = (struct replica_steps){0};
}

// --- counting ---------------------------------------------------------------------------

// Whether the push begins a step. A session that is new goes on with the last one.
static bool begins_step(struct replica_steps *steps, const struct session *session) {
    struct step_count *replica = replica_of(steps, session);
    if (!replica || session->slot >= steps->session_count)
        return true;
    struct step_count *own = &steps->sessions[session->slot];
    if (own->number != session->number)
        *own = (struct step_count){session->number, replica->steps > 0 ? replica->steps - 1 : 0};
    own->steps++;
    if (own->steps <= replica->steps)
        return false;
    replica->steps = own->steps;
    return true;
}

// Versions that were made otherwise, or elsewhere, are steps.
static void begin_anew(struct replica_steps *steps, uint64_t version) {
    steps->since = steps->newest = version;
    steps->within = 0;
}

void replica_steps_push(struct replica_steps *steps, const struct session *session,
                        uint64_t version) {
    if (!steps->at)
        return;
    if (steps->newest + 1 != version)
        begin_anew(steps, version - 1);
    steps->within += !begins_step(steps, session);
    steps->newest = version;
    steps->at[version % STEPS_KEPT] = steps->within;
}

// Of the pushes up to a version, how many went on with a step.
static uint64_t within_at(const struct replica_steps *steps, uint64_t version) {
    uint64_t oldest = steps->newest >= STEPS_KEPT ? steps->newest - STEPS_KEPT + 1 : 0;
    if (version <= steps->since)
        return 0;
    return steps->at[(version > oldest ? version : oldest) % STEPS_KEPT];
}

uint64_t replica_steps_between(const struct replica_steps *steps, uint64_t version, uint64_t now) {
    if (!steps->at || steps->newest != now)
        return now - version;
    return now - version - (steps->within - within_at(steps, version));
}
