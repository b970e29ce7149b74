// Parameter servers that come back with what they had on a disk ("delayed persistence", Adam
// 3.3.2). What they had not written yet is lost: "DNN models are capable of learning even in the
// presence of small amounts of lost updates". That holds where each push counts for itself. Where
// workers share steps (hardsync, softsync) a step that is lost would be waited for.
#include "core/clock.h"
#include "role/controller/controller_internal.h"

bool controller_can_return(const struct controller *c, const struct cluster_member *server) {
    struct protocol protocol;
    enum protocol_push push;
    bool trains = c->cluster->stage > CLUSTER_STARTING && c->cluster->stage < CLUSTER_STOPPING;
    return server->stores && trains && !settings_protocol(&c->settings, &protocol, &push, NULL) &&
           protocol.kind == PROTOCOL_ASYNC;
}

bool controller_waits_for_store(struct controller *c, const struct cluster_member *lost) {
    double now = clock_seconds();
    char name[128];
    if (!controller_can_return(c, lost))
        return false;
    if (c->lost_since == 0) {
        c->lost_since = now;
        cluster_name(name, lost);
        controller_say(c, "%s is gone, its shards are in its store; waiting for it for %.0f s",
                       name, c->settings.server_patience);
    }
    return now < c->lost_since + c->settings.server_patience;
}

const struct cluster_member *controller_returning(const struct controller *c,
                                                  const struct proto_join *join, bool *alive) {
    const struct cluster_member *before = cluster_stored(c->cluster, join);
    *alive = before && !controller_is_absent(c, before);
    return before && controller_can_return(c, before) ? before : NULL;
}
