// The controller's answers to its members and to people.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/printable.h"
#include "role/controller/controller_answers_internal.h"
#include "role/controller/controller_internal.h"
#include "role/controller/metrics_copy.h"
#include "run/live.h"

enum { AGAIN = 100 }; // milliseconds after which one that was put off may ask again

enum proto_role answers_role(const struct queued_request *queued) {
    return (enum proto_role)(uintptr_t)link_user(queued->link);
}

int answers_send(const struct queued_request *queued, uint16_t type, const void *message) {
    struct error err = {0};
    if (link_answer(queued->link, queued->request, type, message, NULL, &err))
        link_refuse(queued->link, queued->request, PROTO_REFUSAL_TOO_LARGE, PROTO_BODY_MAX,
                    err.text);
    return STATUS_OK;
}

int answers_done(const struct queued_request *queued) {
    return answers_send(queued, PROTO_TYPE_DONE, NULL);
}

int answers_refuse(const struct queued_request *queued, enum proto_refusal code, const char *text) {
    link_refuse(queued->link, queued->request, code, 0, text);
    return STATUS_OK;
}

// Answered when all of them are looked at.
static int take_proposals(struct controller *c, struct queued_request *queued) {
    uint64_t session = queued->message->message.propose.session;
    enum proto_refusal code = PROTO_REFUSAL_NONE;
    if (answers_role(queued) != PROTO_ROLE_PARAMETER_SERVER)
        code = PROTO_REFUSAL_WRONG_ROLE;
    else if (!cluster_find(c->cluster, session))
        code = PROTO_REFUSAL_WRONG_SESSION;
    if (code) {
        answers_refuse(queued, code, "");
        queued_request_free(queued);
        return STATUS_OK;
    }
    queued->next = c->proposals;
    c->proposals = queued;
    return STATUS_OK;
}

// --- what people want ---------------------------------------------------------------------------

bool answers_keep_parts(const struct settings *settings) {
    return !strcmp(settings->checkpoint_parts, "local");
}

// Who is to keep its parts from now on must have been started with a folder for them.
static int check_folders(const struct controller *c, const struct settings *next,
                         struct error *err) {
    bool begins = answers_keep_parts(next) && !answers_keep_parts(&c->settings);
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
        return answers_refuse(queued, PROTO_REFUSAL_BAD_SETTING, why.text);
    }
    int status = settle_change(c, text, err);
    live_one_line(lines);
    if (!status)
        controller_say(c, "set %s", lines);
    free(lines);
    free(text);
    return status ? status : answers_done(queued);
}

// Answered when it is written.
static int take_save(struct controller *c, struct queued_request *queued) {
    if (c->cluster->stage != CLUSTER_TRAINING) {
        answers_refuse(queued, PROTO_REFUSAL_NOT_READY, cluster_stage_name(c->cluster->stage));
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
        answers_done(queued);
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
    return code ? answers_refuse(queued, code, why) : answers_done(queued);
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
        return answers_refuse(queued, PROTO_REFUSAL_WRONG_SESSION, "");
    if (json_read(&line, report->line.at, report->line.length, &why))
        return answers_refuse(queued, PROTO_REFUSAL_MALFORMED, why.text);
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
    int status = text ? answers_done(queued)
                      : answers_refuse(queued, PROTO_REFUSAL_MALFORMED, "no event in it");
    free(text);
    json_decref(line);
    return status;
}

// Only those that stand by keep copies.
static int answer_get_metrics(const struct controller *c, const struct queued_request *queued) {
    if (answers_role(queued) != PROTO_ROLE_CONTROLLER)
        return answers_refuse(queued, PROTO_REFUSAL_WRONG_ROLE, "");
    metrics_copy_answer(c->config->folder, queued);
    return STATUS_OK;
}

// --- all ----------------------------------------------------------------------------------------

static int answer_one(struct controller *c, struct queued_request *queued, struct error *err) {
    switch (queued->type) {
    case PROTO_TYPE_JOIN:
        return controller_answer_join(c, queued, err);
    case PROTO_TYPE_HEARTBEAT:
        return controller_answer_heartbeat(c, queued, err);
    case PROTO_TYPE_LEAVE:
        return controller_answer_leave(c, queued, err);
    case PROTO_TYPE_GET_ROUTES:
        return controller_answer_get_routes(c, queued, err);
    case PROTO_TYPE_GET_RUN:
        return controller_answer_get_run(c, queued, err);
    case PROTO_TYPE_GET_STATUS:
        return controller_answer_get_status(c, queued, err);
    case PROTO_TYPE_REPORT:
        return answer_report(c, queued);
    case PROTO_TYPE_GET_METRICS:
        return answer_get_metrics(c, queued);
    case PROTO_TYPE_GET_PLACES:
        return controller_answer_get_places(c, queued);
    case PROTO_TYPE_DRAIN:
        return answer_drain(c, queued, err);
    default:
        return answers_refuse(queued, PROTO_REFUSAL_WRONG_ROLE, "a controller is not asked this");
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
            proto_message_name(queued->type), proto_role_name(answers_role(queued)),
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
    else if (is_for_people(queued->type) && answers_role(queued) != PROTO_ROLE_ADMINISTRATOR)
        answers_refuse(queued, PROTO_REFUSAL_WRONG_ROLE, "only an administrator may");
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
