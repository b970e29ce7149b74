// How many steps of replicas a shard has had, where replicas are of several sessions: each pushes
// what it has of a step, and all of these pushes together are one, as is the one push of a worker
// that has the whole model. So "staleness" means the same in both cases.
//
// A replica has had as many steps as the session of it that has pushed most often. Belongs to
// whoever has the shard.
#ifndef ADAM_PS_REPLICA_STEPS_H
#define ADAM_PS_REPLICA_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "ps/members.h"

struct step_count {
    uint64_t number, steps; // of a session, or of a replica
};

struct replica_steps {           // {0}: each version is a step
    struct step_count *sessions; // by slot
    struct step_count *replicas;
    uint32_t session_count, replica_count, replica_room;
    uint64_t since, newest; // versions from which, and up to which, pushes were looked at
    uint64_t within;        // of these, those that belong to a step which another push began
    uint64_t *at;           // `within` at each of the last STEPS_KEPT versions
};

// Of a push on weights that are older, pushes are taken for steps before as many versions.
enum { STEPS_KEPT = 256 };

// Makes room for a session and its replica. False: out of memory.
bool replica_steps_room(struct replica_steps *steps, const struct session *session);
// A push of the session makes this version. Where there is no room for it, it is a step.
void replica_steps_push(struct replica_steps *steps, const struct session *session,
                        uint64_t version);
// Steps from one version to another that is not older.
uint64_t replica_steps_between(const struct replica_steps *steps, uint64_t version, uint64_t now);
void replica_steps_free(struct replica_steps *steps);

#endif
