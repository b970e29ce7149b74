// How many steps of replicas a shard has had, where a step is of several pushes: those of the
// sessions of a replica, of which each pushes what it has, and those that a session makes of it
// where layers go as factors. All of these together are one step, as is the one push of a worker
// that has the whole model. So "staleness" means the same in all cases.
//
// A session pushes the same parts of a shard in each step, and a part is known by the place where
// it begins. A replica has had as many steps as the part that was pushed most often. Belongs to
// whoever has the shard.
#ifndef ADAM_PS_REPLICA_STEPS_H
#define ADAM_PS_REPLICA_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "ps/members.h"

struct step_part { // of a shard, as a session pushes it
    uint64_t session, steps;
    uint32_t slot, place; // of the session; where the part begins
    bool fresh;           // not pushed yet
};

struct step_replica {
    uint64_t number, steps;
    uint64_t begun; // the version that the last step began with, and by which session
    uint64_t session;
};

struct replica_steps { // {0}: each version is a step
    struct step_part *parts;
    struct step_replica *replicas;
    uint32_t part_count, part_room, replica_count, replica_room;
    uint64_t since, newest; // versions from which, and up to which, pushes were looked at
    uint64_t within;        // of these, those that belong to a step which another push began
    uint64_t *at;           // `within` at each of the last STEPS_KEPT versions
    uint64_t more;          // all pushes ever that went on with a step of another session
};

// Of a push on weights that are older, pushes are taken for steps before as many versions.
enum { STEPS_KEPT = 256 };
// Parts of a shard that a session may have. Of more of them each push is a step.
enum { PARTS_MOST = 64 };

// Makes room for a part of a session, and for its replica. False: out of memory.
bool replica_steps_room(struct replica_steps *steps, const struct session *session, uint32_t place);
// A push of the part makes this version. Where there is no room for it, it is a step.
void replica_steps_push(struct replica_steps *steps, const struct session *session, uint32_t place,
                        uint64_t version);
// Steps from one version to another that is not older.
uint64_t replica_steps_between(const struct replica_steps *steps, uint64_t version, uint64_t now);
// The same, without the step that the next push of the part goes on with: how stale that push is.
uint64_t replica_steps_behind(const struct replica_steps *steps, const struct session *session,
                              uint32_t place, uint64_t version, uint64_t now);
void replica_steps_free(struct replica_steps *steps);

#endif
