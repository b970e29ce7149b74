// What members and people ask: the routes, the places, the run, and the figures of all.
#include <math.h>
#include <stdlib.h>

#include "cluster/record.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "role/controller/controller_answers_internal.h"
#include "role/controller/controller_internal.h"

// Who asks, as far as it matters for what it may see.
static const struct cluster_member *reader_of(const struct queued_request *queued) {
    static const struct cluster_member reader = {.role = PROTO_ROLE_WORKER};
    enum proto_role role = answers_role(queued);
    return role == PROTO_ROLE_WORKER || role == PROTO_ROLE_EVALUATOR ? &reader : NULL;
}

int controller_answer_get_routes(struct controller *c, struct queued_request *queued,
                                 struct error *err) {
    const struct cluster_member *member = reader_of(queued);
    struct kept *routes;
    uint64_t epoch = controller_routes_epoch(c, member);
    if (queued->message->message.get_routes.known == epoch)
        return answers_send(queued, PROTO_TYPE_ROUTES, &(struct proto_routes){.epoch = epoch});
    int status = controller_routes(c, member, &routes, err);
    if (status)
        return status;
    answers_send(queued, PROTO_TYPE_ROUTES, &routes->message.routes);
    kept_drop(routes);
    return STATUS_OK;
}

// People see the buckets, too; only a parameter server has a lease.
int controller_answer_get_places(struct controller *c, struct queued_request *queued) {
    const struct proto_get_places *message = &queued->message->message.get_places;
    const struct cluster_member *server = cluster_find(c->cluster, message->session);
    enum proto_role role = answers_role(queued);
    struct proto_places places;
    if (role != PROTO_ROLE_PARAMETER_SERVER && role != PROTO_ROLE_ADMINISTRATOR)
        return answers_refuse(queued, PROTO_REFUSAL_WRONG_ROLE, "");
    if (role == PROTO_ROLE_PARAMETER_SERVER && !server)
        return answers_refuse(queued, PROTO_REFUSAL_WRONG_SESSION, "");
    controller_places(c, server, message->known, &places);
    return answers_send(queued, PROTO_TYPE_PLACES, &places);
}

int controller_answer_get_run(struct controller *c, struct queued_request *queued,
                              struct error *err) {
    const struct cluster *cluster = c->cluster;
    struct proto_run run = {.version = cluster->settings_version};
    if (queued->message->message.get_run.known != run.version) {
        run.model = proto_text(cluster->model);
        run.settings = proto_text(cluster->settings);
    }
    (void)err;
    return answers_send(queued, PROTO_TYPE_RUN, &run);
}

static void fill_figures(struct proto_member *out, const struct vital *vital) {
    const struct proto_heartbeat *f = &vital->figures;
    out->state = f->state;
    out->clock = f->clock;
    out->samples = f->samples;
    out->pushes = f->pushes;
    out->pulls = f->pulls;
    out->refused = f->refused > vital->refused ? f->refused : vital->refused;
    out->received = f->received;
    out->sent = f->sent;
    out->epoch = f->epoch;
    out->rate = f->rate;
    out->loss = f->loss;
    out->staleness = f->staleness;
    out->waiting = f->waiting;
    out->overlap = f->overlap;
    out->dirty_bytes = f->dirty_bytes;
    out->at_risk = f->at_risk;
    out->behind = f->behind;
    out->waits_for = proto_text(vital->waits_for);
}

static bool lacks_partitions(const struct controller *c, const struct cluster_member *member) {
    return member->role == PROTO_ROLE_WORKER && c->cluster->stage <= CLUSTER_TRAINING &&
           !cluster_replica_whole(c->cluster, member->replica);
}

static void fill_member(const struct controller *c, struct proto_member *out,
                        const struct cluster_member *member, double now) {
    const struct vital *vital = vitals_of(&c->vitals, member->number);
    *out = (struct proto_member){
        .member = member->number,
        .role = (uint16_t)member->role,
        .session = member->session,
        .name = proto_text(member->name),
        .address = proto_text(member->administration),
        .state = PROTO_STATE_STARTING,
        .loss = NAN,
        .at_risk = NAN,
    };
    if (vital) {
        fill_figures(out, vital);
        out->silent = (uint32_t)((now - vital->heard) * 1000);
    }
    if (member->draining && !member->gone)
        out->waits_for =
            proto_text(cluster_serves(c->cluster, member->number) ? "its buckets to move away"
                                                                  : "nothing: it leaves the run");
    if (member->role == PROTO_ROLE_WORKER) {
        out->replica = member->replica;
        out->partition = member->partition;
        out->neighbours = proto_text(member->training);
    }
    if (lacks_partitions(c, member)) {
        out->state = PROTO_STATE_WAITING;
        out->waits_for = proto_text("workers for the other partitions of its replica");
    }
    if (controller_withholds(c, member)) {
        out->state = PROTO_STATE_WAITING;
        out->waits_for = proto_text("the end of the warm start");
    }
    if (member->gone) {
        out->state = PROTO_STATE_GONE;
        out->waits_for = proto_text("");
    }
}

// The controller is member 0, so that people see what it is at.
static void fill_controller(const struct controller *c, struct proto_member *out) {
    static const enum proto_state states[CLUSTER_STAGE_COUNT] = {
        [CLUSTER_STARTING] = PROTO_STATE_STARTING, [CLUSTER_TRAINING] = PROTO_STATE_WORKING,
        [CLUSTER_DRAINING] = PROTO_STATE_WAITING,  [CLUSTER_SAVING] = PROTO_STATE_SAVING,
        [CLUSTER_STOPPING] = PROTO_STATE_LEAVING,  [CLUSTER_OVER] = PROTO_STATE_LEAVING,
    };
    double epoch = controller_epoch(c);
    *out = (struct proto_member){
        .role = PROTO_ROLE_CONTROLLER,
        .name = proto_text(cluster_stage_name(c->cluster->stage)),
        .address = proto_text(doors_address(c->doors, c->config->id)),
        .state = (uint16_t)states[c->cluster->stage],
        .epoch = epoch,
        .samples = controller_samples(c),
        .loss = NAN,
        .at_risk = NAN,
        .waits_for = proto_text(c->waits_for),
    };
}

// One of the other controllers. A leader that is silent for as long is replaced.
static void fill_standby(const struct controller *c, struct proto_member *out, uint32_t id) {
    double silence = quorum_silence(c->doors->quorum, id);
    bool gone = silence < 0 || silence > 2 * RECORD_ELECTION / 1000.0;
    *out = (struct proto_member){
        .role = PROTO_ROLE_CONTROLLER,
        .name = proto_text("standby"),
        .address = proto_text(doors_address(c->doors, id)),
        .state = gone ? PROTO_STATE_GONE : PROTO_STATE_WAITING,
        .silent = silence > 0 ? (uint32_t)(silence * 1000) : 0,
        .loss = NAN,
        .at_risk = NAN,
    };
}

static size_t fill_controllers(const struct controller *c, struct proto_member *members) {
    size_t count = 1;
    fill_controller(c, members);
    for (uint32_t id = 0; id < c->config->controllers; id++)
        if (id != c->config->id)
            fill_standby(c, &members[count++], id);
    return count;
}

struct proto_member *controller_status(const struct controller *c, struct proto_status *status) {
    const struct cluster *cluster = c->cluster;
    size_t most = cluster->member_count + c->config->controllers;
    struct proto_member *members = mem_array(most, sizeof *members);
    double now = clock_seconds();
    if (!members)
        return NULL;
    size_t count = fill_controllers(c, members);
    for (size_t i = 0; i < cluster->member_count; i++)
        fill_member(c, &members[count++], &cluster->members[i], now);
    *status = (struct proto_status){
        .run = cluster->run,
        .epoch = cluster->members_epoch,
        .idle = (uint32_t)controller_idle(c),
        .left_out = controller_left_out(c),
        .members = proto_list(members, (uint32_t)count),
    };
    return members;
}

int controller_answer_get_status(struct controller *c, struct queued_request *queued,
                                 struct error *err) {
    const struct cluster *cluster = c->cluster;
    struct proto_status status = {.run = cluster->run, .epoch = cluster->members_epoch};
    if (queued->message->message.get_status.known == cluster->members_epoch)
        return answers_send(queued, PROTO_TYPE_STATUS, &status);
    struct proto_member *members = controller_status(c, &status);
    if (!members)
        return error_nomem(err);
    answers_send(queued, PROTO_TYPE_STATUS, &status);
    free(members);
    return STATUS_OK;
}
