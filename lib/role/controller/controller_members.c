// What members tell: that they join, how they are, and that they leave.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/printable.h"
#include "role/controller/controller_answers_internal.h"
#include "role/controller/controller_internal.h"

static void tell_joined(struct controller *c, const struct cluster_member *member) {
    char name[128];
    cluster_name(name, member);
    if (*member->training)
        controller_say(c, "%s joined: %s", name, member->training);
    else
        controller_say(c, "%s joined", name);
}

// A data server without a part of the data has nothing to do. Before training begins there are
// none.
static bool wants_part(const struct cluster *cluster, const struct cluster_member *member) {
    return member->role == PROTO_ROLE_DATA_SERVER && cluster->part_count > 0;
}

static int succeed_server(const struct controller *c, struct cluster *next,
                          const struct proto_join *join, uint32_t before, uint32_t number,
                          struct error *why) {
    bool *lacks = controller_lacks(c, join);
    int status = lacks ? cluster_succeed(next, before, number, lacks, controller_is_unheard, c, why)
                       : error_nomem(why);
    free(lacks);
    return status;
}

// The member joins in the draft, and takes the part, or the shards, of member `before`. Its number,
// or 0 with the reason in `why`.
static uint32_t join_draft(const struct controller *c, struct cluster *next,
                           const struct proto_join *join, uint32_t before, struct error *why) {
    const struct cluster_member *member;
    if (cluster_join(next, join, &member, why))
        return 0;
    uint32_t number = member->number;
    bool part = wants_part(next, member);
    if (before && member->role == PROTO_ROLE_PARAMETER_SERVER &&
        succeed_server(c, next, join, before, number, why))
        return 0;
    if (!part && join->role == PROTO_ROLE_DATA_SERVER)
        cluster_outlive(next, number);
    return part && cluster_take_part(next, before, number, why) ? 0 : number;
}

static void tell_returned(struct controller *c, uint32_t before,
                          const struct cluster_member *member, const struct proto_join *join) {
    char name[128];
    cluster_name(name, member);
    vitals_forget(&c->vitals, before);
    if (join->stores && !join->held.count)
        controller_say(c, "%s has a store without any shard of this run", name);
    if (!cluster_serves(c->cluster, member->number)) {
        controller_say(c, "%s is back: others have all that %s", name,
                       join->held.count ? "is in its store" : "it had");
        return;
    }
    controller_say(c, "%s goes on with the store of parameter server %" PRIu32, name, before);
    controller_report(c, "ps_returned",
                      json_pack("{s:I, s:I, s:s}", "member", (json_int_t)member->number, "before",
                                (json_int_t)before, "name", member->name));
}

// What follows from it.
static int welcome_member(struct controller *c, uint32_t before, bool back,
                          const struct cluster_member *member, const struct proto_join *join,
                          struct error *err) {
    tell_joined(c, member);
    if (before && member->role == PROTO_ROLE_PARAMETER_SERVER)
        tell_returned(c, before, member, join);
    if (wants_part(c->cluster, member))
        controller_tell_part(c, before, member->number, back);
    return vitals_heard(&c->vitals, member->number, clock_seconds()) ? STATUS_OK : error_nomem(err);
}

static uint32_t epoch_for(const struct controller *c, const struct cluster_member *member) {
    const struct cluster_part *part = cluster_part_of(c->cluster, member->number);
    return part ? cluster_part_epoch(c->cluster, part) : 0;
}

// Whose part of the data, or whose shards, the joining member takes over: its number, 0: nobody's.
// *back: the run did without these samples until now. False: they are another's, and *why says so.
static bool find_heritage(const struct controller *c, const struct proto_join *join,
                          uint32_t *before, bool *back, const char **why) {
    const struct cluster_part *part = NULL;
    bool alive = false, vacant = true;
    *back = false;
    *before = 0;
    if (join->role == PROTO_ROLE_DATA_SERVER) {
        *why = "another data server serves these samples";
        vacant = cluster_vacant(c->cluster, join, controller_is_absent, c, &part);
        *before = part ? part->member : 0;
        *back = part ? part->out : controller_unserved(c) > 0;
    } else if (join->role == PROTO_ROLE_PARAMETER_SERVER) {
        *why = "another parameter server with a store has this name: give each its own --name";
        const struct cluster_member *stored = controller_returning(c, join, &alive);
        *before = stored && !alive ? stored->number : 0;
        vacant = !*before || controller_knows_others(c, *before);
        if (!vacant)
            *why = "it is not known yet whether other servers that have its shards live";
    }
    return vacant && !alive;
}

// "ack = durable": a server without a disk could acknowledge nothing.
static bool lacks_store(const struct controller *c, const struct proto_join *join) {
    return join->role == PROTO_ROLE_PARAMETER_SERVER && !join->stores &&
           !strcmp(c->settings.ack, "durable");
}

// "checkpoint-parts = local": a server without a folder could keep no part of a checkpoint.
static bool lacks_folder(const struct controller *c, const struct proto_join *join) {
    return join->role == PROTO_ROLE_PARAMETER_SERVER && !join->parts &&
           answers_keep_parts(&c->settings);
}

// One that has a part of the model is spoken to by the others of its replica.
static bool lacks_address(const struct controller *c, const struct proto_join *join) {
    return join->role == PROTO_ROLE_WORKER && c->cluster->partitions > 1 && !join->training.length;
}

int controller_answer_join(struct controller *c, struct queued_request *queued, struct error *err) {
    const struct proto_join *join = &queued->message->message.join;
    struct cluster *next;
    struct error why = {0};
    const char *taken;
    uint32_t before;
    bool back;
    if (c->cluster->stage >= CLUSTER_STOPPING)
        return answers_refuse(queued, PROTO_REFUSAL_STOPPING, "the run ends");
    if (join->role != answers_role(queued) || join->role == PROTO_ROLE_CONTROLLER ||
        join->role == PROTO_ROLE_ADMINISTRATOR)
        return answers_refuse(queued, PROTO_REFUSAL_WRONG_ROLE, "");
    if (lacks_store(c, join))
        return answers_refuse(queued, PROTO_REFUSAL_BAD_SETTING,
                              "the run has ack = durable: start the server with --store DIR");
    if (lacks_folder(c, join))
        return answers_refuse(queued, PROTO_REFUSAL_BAD_SETTING,
                              "the run has checkpoint-parts = local: start the server with "
                              "--checkpoints DIR");
    if (lacks_address(c, join))
        return answers_refuse(queued, PROTO_REFUSAL_BAD_SETTING,
                              "the run cuts its model over several workers, which talk to each "
                              "other: start them with --listen ADDRESS");
    if (cluster_check_data(c->cluster, join, &why))
        return answers_refuse(queued, PROTO_REFUSAL_BAD_SETTING, why.text);
    if (!find_heritage(c, join, &before, &back, &taken))
        return answers_refuse(queued, PROTO_REFUSAL_BUSY, taken);
    if (back)
        controller_account(c); // of the epochs that are over without it
    int status = controller_draft(c, &next, err);
    uint32_t number = status ? 0 : join_draft(c, next, join, before, &why);
    status = controller_commit(c, next, status ? status : why.status, err);
    if (why.status)
        return answers_refuse(queued, PROTO_REFUSAL_BUSY, why.text);
    const struct cluster_member *member = status ? NULL : cluster_numbered(c->cluster, number);
    if (status || (status = welcome_member(c, before, back, member, join, err)))
        return status;
    const struct proto_joined joined = {
        .member = member->number,
        .session = member->session,
        .heartbeat = CONTROLLER_HEARTBEAT,
        .silence = (uint32_t)(c->settings.silence * 1000),
        .epoch = epoch_for(c, member),
        .replica = member->replica,
        .partition = member->partition,
    };
    return answers_send(queued, PROTO_TYPE_JOINED, &joined);
}

// It has no bucket any more, and everybody was told.
static bool is_drained(const struct controller *c, const struct cluster_member *member) {
    const struct vital *vital = vitals_of(&c->vitals, member->number);
    return member->draining && vital && vital->drained;
}

// Whether somebody is there who would wait for it: a worker tells data servers what it trained on,
// and evaluators read from parameter servers, too.
static bool is_needed(const struct cluster *cluster, enum proto_role role) {
    bool workers = cluster_count(cluster, PROTO_ROLE_WORKER) > 0;
    bool evaluators = cluster_count(cluster, PROTO_ROLE_EVALUATOR) > 0;
    return (role == PROTO_ROLE_DATA_SERVER && workers) ||
           (role == PROTO_ROLE_PARAMETER_SERVER && (workers || evaluators));
}

// Servers stay until those who need them have left, or they are drained.
static enum proto_order order_for(const struct controller *c, const struct cluster_member *member) {
    const struct cluster *cluster = c->cluster;
    switch (cluster->stage) {
    case CLUSTER_DRAINING:
    case CLUSTER_SAVING:
        return member->role == PROTO_ROLE_WORKER ? PROTO_ORDER_STOP : PROTO_ORDER_NOTHING;
    case CLUSTER_STOPPING:
    case CLUSTER_OVER:
        return is_needed(cluster, member->role) ? PROTO_ORDER_NOTHING : PROTO_ORDER_STOP;
    default:
        return is_drained(c, member) ? PROTO_ORDER_LEAVE : PROTO_ORDER_NOTHING;
    }
}

static void say_back(struct controller *c, const struct cluster_member *member) {
    const struct vital *vital = vitals_of(&c->vitals, member->number);
    char name[128];
    cluster_name(name, member);
    if (vital && vital->missed)
        controller_say(c, "%s is back", name);
}

static int let_member_leave(struct controller *c, uint32_t number, struct error *err) {
    struct cluster *next;
    int status = controller_draft(c, &next, err);
    if (!status)
        cluster_retire(next, number);
    status = controller_commit(c, next, status, err);
    if (!status)
        vitals_forget(&c->vitals, number);
    return status;
}

// A worker that pushes to a parameter server that is gone would only wait for it.
static int dismiss_member(struct controller *c, struct queued_request *queued,
                          const struct cluster_member *member, struct error *err) {
    int status = let_member_leave(c, member->number, err);
    return status ? status
                  : answers_refuse(queued, PROTO_REFUSAL_PEER_LOST,
                                   c->cluster->why ? c->cluster->why : "");
}

// A controller that is started again must know how many whole epochs are done.
static int agree_on_progress(struct controller *c, struct error *err) {
    struct cluster *next;
    int status = controller_draft(c, &next, err);
    return controller_commit(c, next, status, err);
}

// Whether one more whole epoch is over.
static bool look_at_progress(struct controller *c, const struct cluster_member *member,
                             const struct proto_heartbeat *figures) {
    const struct vital *before = vitals_of(&c->vitals, member->number);
    const struct cluster_part *part = cluster_part_of(c->cluster, member->number);
    double *told = part ? &controller_progress(c, part)->epoch : NULL;
    double epoch = part ? *told : 0;
    bool whole = part && cluster_part_told(told, figures->epoch);
    bool trained = member->role == PROTO_ROLE_WORKER && figures->samples > 0 &&
                   (!before || figures->samples != before->figures.samples);
    if (trained || (part && *told > epoch))
        controller_trained(c);
    return whole;
}

int controller_answer_heartbeat(struct controller *c, struct queued_request *queued,
                                struct error *err) {
    const struct proto_heartbeat *figures = &queued->message->message.heartbeat;
    const struct cluster_member *member = cluster_find(c->cluster, figures->session);
    if (!member)
        return answers_refuse(queued, PROTO_REFUSAL_WRONG_SESSION, "");
    if (member->role == PROTO_ROLE_WORKER && cluster_lost(c->cluster) &&
        c->cluster->stage == CLUSTER_STOPPING)
        return dismiss_member(c, queued, member, err);
    say_back(c, member);
    if (look_at_progress(c, member, figures)) {
        int status = agree_on_progress(c, err);
        if (status)
            return status;
        member = cluster_find(c->cluster, figures->session);
    }
    if (!vitals_tell(&c->vitals, member->number, figures, clock_seconds()))
        return error_nomem(err);
    vitals_link(&c->vitals, member->number, queued->link);
    enum proto_order order = order_for(c, member);
    const struct proto_beat beat = {
        .members = c->cluster->members_epoch,
        .routes = controller_routes_epoch(c, member),
        .settings = c->cluster->settings_version,
        .order = (uint16_t)order,
        .number = order == PROTO_ORDER_NOTHING ? 0 : c->cluster->order,
        .begun = c->cluster->stage > CLUSTER_STARTING && c->cluster->stage < CLUSTER_STOPPING,
    };
    vitals_beat(&c->vitals, member->number, beat.members);
    return answers_send(queued, PROTO_TYPE_BEAT, &beat);
}

int controller_answer_leave(struct controller *c, struct queued_request *queued,
                            struct error *err) {
    const struct proto_leave *message = &queued->message->message.leave;
    const struct cluster_member *member = cluster_find(c->cluster, message->session);
    char name[128], reason[PROTO_ADDRESS_MAX + 1];
    if (!member)
        return answers_refuse(queued, PROTO_REFUSAL_WRONG_SESSION, "");
    const struct cluster_member left = *member; // which may be forgotten at once
    bool broken = cluster_breaks_replica(c->cluster, member);
    cluster_name(name, member);
    printable_copy(reason, sizeof reason, message->reason.at, message->reason.length);
    int status = let_member_leave(c, left.number, err);
    if (status)
        return status;
    controller_say(c, "%s left%s%s", name, *reason ? ": " : "", reason);
    if (broken)
        controller_tell_broken(c, &left);
    controller_tell_loss(c, &left);
    return answers_done(queued);
}
