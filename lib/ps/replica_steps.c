#include "ps/replica_steps.h"

#include <stdlib.h>

#include "core/mem.h"

// --- room -------------------------------------------------------------------------------

static struct step_replica *replica_of(const struct replica_steps *steps,
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
    struct step_replica *longer =
        mem_longer(steps->replicas, &steps->replica_room, steps->replica_count + 1, sizeof *longer);
    if (!longer)
        return false;
    steps->replicas = longer;
    steps->replicas[steps->replica_count++] =
        (struct step_replica){.number = atomic_load(&session->replica)};
    return true;
}

static struct step_part *part_of(const struct replica_steps *steps, const struct session *session,
                                 uint32_t place) {
    for (uint32_t i = 0; i < steps->part_count; i++) {
        struct step_part *part = &steps->parts[i];
        if (part->slot == session->slot && part->session == session->number && part->place == place)
            return part;
    }
    return NULL;
}

// One of a session that is over, in whose place this one is; else *most says whether it may have
// more of them.
static struct step_part *free_part(const struct replica_steps *steps, const struct session *session,
                                   bool *most) {
    uint32_t own = 0;
    for (uint32_t i = 0; i < steps->part_count; i++) {
        if (steps->parts[i].slot != session->slot)
            continue;
        if (steps->parts[i].session != session->number)
            return &steps->parts[i];
        own++;
    }
    *most = own >= PARTS_MOST;
    return NULL;
}

static bool add_part(struct replica_steps *steps, const struct session *session, uint32_t place) {
    const struct step_part fresh = {session->number, 0, session->slot, place, true};
    bool most = false;
    if (part_of(steps, session, place))
        return true;
    struct step_part *over = free_part(steps, session, &most);
    if (over || most) {
        if (over)
            *over = fresh;
        return true;
    }
    struct step_part *longer =
        mem_longer(steps->parts, &steps->part_room, steps->part_count + 1, sizeof *longer);
    if (!longer)
        return false;
    steps->parts = longer;
    steps->parts[steps->part_count++] = fresh;
    return true;
}

bool replica_steps_room(struct replica_steps *steps, const struct session *session,
                        uint32_t place) {
    if (!steps->at && !(steps->at = mem_zeroed(STEPS_KEPT, sizeof *steps->at)))
        return false;
    return add_part(steps, session, place) && add_replica(steps, session);
}

void replica_steps_free(struct replica_steps *steps) {
    free(steps->parts), free(steps->replicas), free(steps->at);
    *steps = (struct replica_steps){0};
}

// --- counting ---------------------------------------------------------------------------

// Steps that the part has had. One that is new goes on with the last one of its replica.
static uint64_t steps_before(const struct step_part *part, const struct step_replica *replica) {
    if (part->fresh)
        return replica->steps > 0 ? replica->steps - 1 : 0;
    return part->steps;
}

// Whether the push, which makes this version, begins a step.
static bool begins_step(struct replica_steps *steps, const struct session *session, uint32_t place,
                        uint64_t version) {
    struct step_replica *replica = replica_of(steps, session);
    struct step_part *part = part_of(steps, session, place);
    if (!replica || !part)
        return true;
    part->steps = steps_before(part, replica) + 1;
    part->fresh = false;
    if (part->steps <= replica->steps)
        return false;
    replica->steps = part->steps;
    replica->begun = version;
    replica->session = session->number;
    return true;
}

// Versions that were made otherwise, or elsewhere, are steps.
static void begin_anew(struct replica_steps *steps, uint64_t version) {
    if (version < steps->newest)
        steps->more = 0;
    steps->since = steps->newest = version;
    steps->within = 0;
}

void replica_steps_push(struct replica_steps *steps, const struct session *session, uint32_t place,
                        uint64_t version) {
    if (!steps->at)
        return;
    if (steps->newest + 1 != version)
        begin_anew(steps, version - 1);
    bool within = !begins_step(steps, session, place, version);
    steps->within += within;
    steps->more += within && replica_of(steps, session)->session != session->number;
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

// Whether the next push of the part goes on with a step that began behind this version.
static bool is_within(const struct replica_steps *steps, const struct session *session,
                      uint32_t place, uint64_t version) {
    const struct step_replica *replica = replica_of(steps, session);
    const struct step_part *part = part_of(steps, session, place);
    return replica && part && replica->begun > version &&
           steps_before(part, replica) + 1 == replica->steps;
}

uint64_t replica_steps_behind(const struct replica_steps *steps, const struct session *session,
                              uint32_t place, uint64_t version, uint64_t now) {
    uint64_t between = replica_steps_between(steps, version, now);
    if (!steps->at || steps->newest != now || between == 0)
        return between;
    return between - is_within(steps, session, place, version);
}
