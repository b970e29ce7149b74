// The controller's answers to its members and to people.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/record.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/printable.h"
#include "role/controller/controller_internal.h"
#include "role/controller/metrics_copy.h"
#include "run/live.h"

enum { AGAIN = 100 }; // milliseconds after which one that was put off may ask again

static enum proto_role role_of(const struct queued_request *queued) {
    return (enum proto_role)(uintptr_t)link_user(queued->link);
}

static int send_answer(const struct queued_request *queued, uint16_t type, const void *message) {
    struct error err = {0};
    if (link_answer(queued->link, queued->request, type, message, NULL, &err))
        link_refuse(queued->link, queued->request, PROTO_REFUSAL_TOO_LARGE, PROTO_BODY_MAX,
                    err.text);
    return STATUS_OK;
}

static int answer_done(const struct queued_request *queued) {
    return send_answer(queued, PROTO_TYPE_DONE, NULL);
}

static int refuse_request(const struct queued_request *queued, enum proto_refusal code,
                          const char *text) {
    link_refuse(queued->link, queued->request, code, 0, text);
    return STATUS_OK;
}

// --- members ----------------------------------------------------------------------------------

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

static bool keeps_parts(const struct settings *settings) {
    return !strcmp(settings->checkpoint_parts, "local");
}

// "checkpoint-parts = local": a server without a folder could keep no part of a checkpoint.
static bool lacks_folder(const struct controller *c, const struct proto_join *join) {
    return join->role == PROTO_ROLE_PARAMETER_SERVER && !join->parts && keeps_parts(&c->settings);
}

// One that has a part of the model is spoken to by the others of its replica.
static bool lacks_address(const struct controller *c, const struct proto_join *join) {
    return join->role == PROTO_ROLE_WORKER && c->cluster->partitions > 1 && !join->training.length;
}

static int answer_join(struct controller *c, struct queued_request *queued, struct error *err) {
    const struct proto_join *join = &queued->message->message.join;
    struct cluster *next;
    struct error why = {0};
    const char *taken;
    uint32_t before;
    bool back;
    if (c->cluster->stage >= CLUSTER_STOPPING)
        return refuse_request(queued, PROTO_REFUSAL_STOPPING, "the run ends");
    if (join->role != role_of(queued) || join->role == PROTO_ROLE_CONTROLLER ||
        join->role == PROTO_ROLE_ADMINISTRATOR)
        return refuse_request(queued, PROTO_REFUSAL_WRONG_ROLE, "");
    if (lacks_store(c, join))
        return refuse_request(queued, PROTO_REFUSAL_BAD_SETTING,
                              "the run has ack = durable: start the server with --store DIR");
    if (lacks_folder(c, join))
        return refuse_request(queued, PROTO_REFUSAL_BAD_SETTING,
                              "the run has checkpoint-parts = local: start the server with "
                              "--checkpoints DIR");
    if (lacks_address(c, join))
        return refuse_request(queued, PROTO_REFUSAL_BAD_SETTING,
                              "the run cuts its model over several workers, which talk to each "
                              "other: start them with --listen ADDRESS");
    if (cluster_check_data(c->cluster, join, &why))
        return refuse_request(queued, PROTO_REFUSAL_BAD_SETTING, why.text);
    if (!find_heritage(c, join, &before, &back, &taken))
        return refuse_request(queued, PROTO_REFUSAL_BUSY, taken);
    if (back)
        controller_account(c); // of the epochs that are over without it
    int status = controller_draft(c, &next, err);
    uint32_t number = status ? 0 : join_draft(c, next, join, before, &why);
    status = controller_commit(c, next, status ? status : why.status, err);
    if (why.status)
        return refuse_request(queued, PROTO_REFUSAL_BUSY, why.text);
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
    return send_answer(queued, PROTO_TYPE_JOINED, &joined);
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
                  : refuse_request(queued, PROTO_REFUSAL_PEER_LOST,
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

static int answer_heartbeat(struct controller *c, struct queued_request *queued,
                            struct error *err) {
    const struct proto_heartbeat *figures = &queued->message->message.heartbeat;
    const struct cluster_member *member = cluster_find(c->cluster, figures->session);
    if (!member)
        return refuse_request(queued, PROTO_REFUSAL_WRONG_SESSION, "");
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
    return send_answer(queued, PROTO_TYPE_BEAT, &beat);
}

static int answer_leave(struct controller *c, struct queued_request *queued, struct error *err) {
    const struct proto_leave *message = &queued->message->message.leave;
    const struct cluster_member *member = cluster_find(c->cluster, message->session);
    char name[128], reason[PROTO_ADDRESS_MAX + 1];
    if (!member)
        return refuse_request(queued, PROTO_REFUSAL_WRONG_SESSION, "");
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
    return answer_done(queued);
}

// --- what there is to know ----------------------------------------------------------------------

// Who asks, as far as it matters for what it may see.
static const struct cluster_member *reader_of(const struct queued_request *queued) {
    static const struct cluster_member reader = {.role = PROTO_ROLE_WORKER};
    enum proto_role role = role_of(queued);
    return role == PROTO_ROLE_WORKER || role == PROTO_ROLE_EVALUATOR ? &reader : NULL;
}

static int answer_get_routes(struct controller *c, struct queued_request *queued,
                             struct error *err) {
    const struct cluster_member *member = reader_of(queued);
    struct kept *routes;
    uint64_t epoch = controller_routes_epoch(c, member);
    if (queued->message->message.get_routes.known == epoch)
        return send_answer(queued, PROTO_TYPE_ROUTES, &(struct proto_routes){.epoch = epoch});
    int status = controller_routes(c, member, &routes, err);
    if (status)
        return status;
    send_answer(queued, PROTO_TYPE_ROUTES, &routes->message.routes);
    kept_drop(routes);
    return STATUS_OK;
}

// People see the buckets, too; only a parameter server has a lease.
static int answer_get_places(struct controller *c, struct queued_request *queued) {
    const struct proto_get_places *message = &queued->message->message.get_places;
    const struct cluster_member *server = cluster_find(c->cluster, message->session);
    enum proto_role role = role_of(queued);
    struct proto_places places;
    if (role != PROTO_ROLE_PARAMETER_SERVER && role != PROTO_ROLE_ADMINISTRATOR)
        return refuse_request(queued, PROTO_REFUSAL_WRONG_ROLE, "");
    if (role == PROTO_ROLE_PARAMETER_SERVER && !server)
        return refuse_request(queued, PROTO_REFUSAL_WRONG_SESSION, "");
    controller_places(c, server, message->known, &places);
    return send_answer(queued, PROTO_TYPE_PLACES, &places);
}

// Answered when all of them are looked at.
static int take_proposals(struct controller *c, struct queued_request *queued) {
    uint64_t session = queued->message->message.propose.session;
    enum proto_refusal code = PROTO_REFUSAL_NONE;
    if (role_of(queued) != PROTO_ROLE_PARAMETER_SERVER)
        code = PROTO_REFUSAL_WRONG_ROLE;
    else if (!cluster_find(c->cluster, session))
        code = PROTO_REFUSAL_WRONG_SESSION;
    if (code) {
        refuse_request(queued, code, "");
        queued_request_free(queued);
        return STATUS_OK;
    }
    queued->next = c->proposals;
    c->proposals = queued;
    return STATUS_OK;
}

static int answer_get_run(struct controller *c, struct queued_request *queued, struct error *err) {
    const struct cluster *cluster = c->cluster;
    struct proto_run run = {.version = cluster->settings_version};
    if (queued->message->message.get_run.known != run.version) {
        run.model = proto_text(cluster->model);
        run.settings = proto_text(cluster->settings);
    }
    (void)err;
    return send_answer(queued, PROTO_TYPE_RUN, &run);
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

static int answer_get_status(struct controller *c, struct queued_request *queued,
                             struct error *err) {
    const struct cluster *cluster = c->cluster;
    struct proto_status status = {.run = cluster->run, .epoch = cluster->members_epoch};
    if (queued->message->message.get_status.known == cluster->members_epoch)
        return send_answer(queued, PROTO_TYPE_STATUS, &status);
    struct proto_member *members = controller_status(c, &status);
    if (!members)
        return error_nomem(err);
    send_answer(queued, PROTO_TYPE_STATUS, &status);
    free(members);
    return STATUS_OK;
}

// --- what people want ---------------------------------------------------------------------------

// Who is to keep its parts from now on must have been started with a folder for them.
static int check_folders(const struct controller *c, const struct settings *next,
                         struct error *err) {
    bool begins = keeps_parts(next) && !keeps_parts(&c->settings);
    for (size_t i = 0; begins && i < c->cluster->member_count; i++) {
        const struct cluster_member *member = &c->cluster->members[i];
        char name[128];
        cluster_name(name, member);
        if (!member->gone && member->role == PROTO_ROLE_PARAMETER_SERVER && !member->parts)
            return error_set(err, STATUS_USAGE,
                             "checkpoint-parts = local: %s was started without --checkpoints DIR, "
                             "a folder for its parts",
                             name);
    }
    return STATUS_OK;
}

// The settings as they are, then the lines: the last one counts.
static int changed_settings(const struct controller *c, const char *lines, char **text,
                            struct error *err) {
    struct settings next;
    char *all = NULL;
    settings_default(&next);
    if (asprintf(&all, "%s%s", c->cluster->settings, lines) < 0)
        return error_nomem(err);
    int status = settings_parse(&next, all, err);
    settings_round(&next);
    if (!status)
        status = settings_check(&next, err);
    if (!status)
        status = live_check_rule(&c->settings, &next, err);
    if (!status)
        status = live_check_factors(&c->settings, &next, err);
    if (!status)
        status = live_check_patience(&next, err);
    if (!status)
        status = check_folders(c, &next, err);
    if (!status && !(*text = settings_text(&next)))
        status = error_nomem(err);
    free(all);
    return status;
}

static int settle_change(struct controller *c, const char *text, struct error *err) {
    struct cluster *next;
    int status = controller_draft(c, &next, err);
    if (!status)
        status = cluster_settle(next, text, err);
    status = controller_commit(c, next, status, err);
    return status ? status : controller_settle(c, text, err);
}

int controller_change(struct controller *c, const char *lines, struct error *err) {
    char *text;
    int status = changed_settings(c, lines, &text, err);
    if (status)
        return status;
    status = settle_change(c, text, err);
    free(text);
    return status;
}

static int answer_set(struct controller *c, struct queued_request *queued, struct error *err) {
    const struct proto_text *given = &queued->message->message.set.settings;
    struct error why = {0};
    char *lines = NULL, *text = NULL;
    if (asprintf(&lines, "%.*s", (int)given->length, given->at) < 0)
        return error_nomem(err);
    if (live_check_keys(lines, false, &why) || changed_settings(c, lines, &text, &why)) {
        free(lines);
        return refuse_request(queued, PROTO_REFUSAL_BAD_SETTING, why.text);
    }
    int status = settle_change(c, text, err);
    live_one_line(lines);
    if (!status)
        controller_say(c, "set %s", lines);
    free(lines);
    free(text);
    return status ? status : answer_done(queued);
}

// Answered when it is written.
static int take_save(struct controller *c, struct queued_request *queued) {
    if (c->cluster->stage != CLUSTER_TRAINING) {
        refuse_request(queued, PROTO_REFUSAL_NOT_READY, cluster_stage_name(c->cluster->stage));
        queued_request_free(queued);
        return STATUS_OK;
    }
    queued->next = c->saves;
    c->saves = queued;
    return STATUS_OK;
}

static int take_stop(struct controller *c, struct queued_request *queued) {
    if (queued->message->message.stop.save)
        c->stop_wanted = true;
    else
        c->stop_now = true;
    queued->next = c->stops;
    c->stops = queued;
    return STATUS_OK;
}

void controller_answer_stops(struct controller *c) {
    for (struct queued_request **at = &c->stops, *queued; (queued = *at);) {
        bool saves = queued->message->message.stop.save;
        if (c->cluster->stage < (saves ? CLUSTER_DRAINING : CLUSTER_STOPPING)) {
            at = &queued->next;
            continue;
        }
        *at = queued->next;
        answer_done(queued);
        queued_request_free(queued);
    }
}

static int answer_drain(struct controller *c, struct queued_request *queued, struct error *err) {
    const struct proto_text *given = &queued->message->message.drain.name;
    char name[PROTO_NAME_MAX + 1], why[512];
    enum proto_refusal code;
    printable_copy(name, sizeof name, given->at, given->length);
    int status = controller_drain(c, name, &code, why, err);
    if (status)
        return status;
    return code ? refuse_request(queued, code, why) : answer_done(queued);
}

// A parameter server refused what no sound program sends. The user hears of it, and the row
// of who sent it has it, whatever that tells of itself.
static void hear_refused(struct controller *c, const struct cluster_member *server,
                         const json_t *line) {
    const char *text = json_string_value(json_object_get(line, "text"));
    json_int_t session = json_integer_value(json_object_get(line, "session"));
    json_int_t count = json_integer_value(json_object_get(line, "count"));
    const struct cluster_member *sender = cluster_find(c->cluster, (uint64_t)session);
    char name[128], of[160] = "", plain[ERROR_TEXT];
    if (server->role != PROTO_ROLE_PARAMETER_SERVER || !text || count < 1)
        return;
    if (sender) {
        vitals_refused(&c->vitals, sender->number, (uint64_t)count);
        cluster_name(name, sender);
        snprintf(of, sizeof of, "; it is %s", name);
    }
    cluster_name(name, server);
    printable_copy(plain, sizeof plain, text, strlen(text));
    controller_say(c, "%s %s%s", name, plain, of);
}

// Lines are written as they came when they are what adam-metrics(5) says of all lines.
static int answer_report(struct controller *c, struct queued_request *queued) {
    const struct proto_report *report = &queued->message->message.report;
    struct error why = {0};
    json_t *line = NULL;
    const struct cluster_member *sender = cluster_find(c->cluster, report->session);
    if (!sender)
        return refuse_request(queued, PROTO_REFUSAL_WRONG_SESSION, "");
    if (json_read(&line, report->line.at, report->line.length, &why))
        return refuse_request(queued, PROTO_REFUSAL_MALFORMED, why.text);
    const char *event = json_string_value(json_object_get(line, "event"));
    char *text =
        event ? json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(13))
              : NULL;
    if (text && metrics_put(c->metrics, text, &why))
        controller_say(c, "warning: %s; the run goes on", why.text);
    if (text && !strcmp(event, "nan") && !c->diverged) {
        cluster_name(c->diverging, sender);
        c->diverged = true;
    }
    if (text && !strcmp(event, "refused"))
        hear_refused(c, sender, line);
    int status = text ? answer_done(queued)
                      : refuse_request(queued, PROTO_REFUSAL_MALFORMED, "no event in it");
    free(text);
    json_decref(line);
    return status;
}

// Only those that stand by keep copies.
static int answer_get_metrics(const struct controller *c, const struct queued_request *queued) {
    if (role_of(queued) != PROTO_ROLE_CONTROLLER)
        return refuse_request(queued, PROTO_REFUSAL_WRONG_ROLE, "");
    metrics_copy_answer(c->config->folder, queued);
    return STATUS_OK;
}

// --- all ----------------------------------------------------------------------------------------

static int answer_one(struct controller *c, struct queued_request *queued, struct error *err) {
    switch (queued->type) {
    case PROTO_TYPE_JOIN:
        return answer_join(c, queued, err);
    case PROTO_TYPE_HEARTBEAT:
        return answer_heartbeat(c, queued, err);
    case PROTO_TYPE_LEAVE:
        return answer_leave(c, queued, err);
    case PROTO_TYPE_GET_ROUTES:
        return answer_get_routes(c, queued, err);
    case PROTO_TYPE_GET_RUN:
        return answer_get_run(c, queued, err);
    case PROTO_TYPE_GET_STATUS:
        return answer_get_status(c, queued, err);
    case PROTO_TYPE_REPORT:
        return answer_report(c, queued);
    case PROTO_TYPE_GET_METRICS:
        return answer_get_metrics(c, queued);
    case PROTO_TYPE_GET_PLACES:
        return answer_get_places(c, queued);
    case PROTO_TYPE_DRAIN:
        return answer_drain(c, queued, err);
    default:
        return refuse_request(queued, PROTO_REFUSAL_WRONG_ROLE, "a controller is not asked this");
    }
}

// Who asks in the name of another is told, and named: at once, then when they have doubled.
static bool is_impostor(struct controller *c, const struct queued_request *queued) {
    uint64_t session;
    if (link_check_session(queued->link, queued->type, &queued->message->message, &session) ==
        PROTO_REFUSAL_NONE)
        return false;
    link_refuse(queued->link, queued->request, PROTO_REFUSAL_WRONG_SESSION, session,
                proto_refusal_text(PROTO_REFUSAL_WRONG_SESSION));
    c->impostors++;
    if ((c->impostors & (c->impostors - 1)) == 0)
        controller_say(
            c, "refused a %s of a %s (%s): session %" PRIu64 " is not its own; %" PRIu64 " so far",
            proto_message_name(queued->type), proto_role_name(role_of(queued)),
            link_address(queued->link), session, c->impostors);
    return true;
}

static bool is_for_people(uint16_t type) {
    return type == PROTO_TYPE_SET || type == PROTO_TYPE_SAVE || type == PROTO_TYPE_STOP ||
           type == PROTO_TYPE_DRAIN;
}

void controller_put_off(const struct queued_request *queued) {
    link_refuse(queued->link, queued->request, PROTO_REFUSAL_BUSY, AGAIN,
                "this controller ends, or leads no more");
}

void controller_put_off_all(struct queued_request **waiting) {
    for (struct queued_request *queued; (queued = *waiting);) {
        *waiting = queued->next;
        controller_put_off(queued);
        queued_request_free(queued);
    }
}

int controller_answer(struct controller *c, struct queued_request *queued, struct error *err) {
    int status = STATUS_OK;
    if (!queued->message)
        vitals_closed(&c->vitals, queued->link, clock_seconds());
    else if (is_impostor(c, queued))
        ;
    else if (is_for_people(queued->type) && role_of(queued) != PROTO_ROLE_ADMINISTRATOR)
        refuse_request(queued, PROTO_REFUSAL_WRONG_ROLE, "only an administrator may");
    else if (queued->type == PROTO_TYPE_SAVE)
        return take_save(c, queued);
    else if (queued->type == PROTO_TYPE_STOP)
        return take_stop(c, queued);
    else if (queued->type == PROTO_TYPE_PROPOSE)
        return take_proposals(c, queued);
    else if (queued->type == PROTO_TYPE_SET)
        status = answer_set(c, queued, err);
    else
        status = answer_one(c, queued, err);
    if (status)
        controller_put_off(queued);
    queued_request_free(queued);
    return status;
}
