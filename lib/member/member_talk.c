// What a member tells its controller over the link that there is, and what it hears. All by the
// member's thread, but member_report.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "member/member_internal.h"
#include "member/run_text.h"

enum { LINE_MOST = 1 << 16 }; // of a report

void member_tell_news(struct member *member) {
    gate_open(&member->news);
}

// --- the end -----------------------------------------------------------------

int member_end(struct member *member, const struct error *why) {
    pthread_mutex_lock(&member->lock);
    member->end = *why;
    error_context(&member->end, "controller");
    pthread_mutex_unlock(&member->lock);
    member_tell_news(member);
    return why->status;
}

// A refusal that patience mends is STATUS_SKIPPED. A controller that does not lead is left for the
// next one, with STATUS_UNAVAILABLE. Any other refusal ends the member.
static int refusal_status(struct member *member, const struct proto_refused *refused,
                          struct error *err) {
    int status = STATUS_UNAVAILABLE;
    if (refused->code == PROTO_REFUSAL_BUSY || refused->code == PROTO_REFUSAL_NOT_READY)
        status = STATUS_SKIPPED;
    if (refused->code == PROTO_REFUSAL_WRONG_SESSION || refused->code == PROTO_REFUSAL_STOPPING)
        status = STATUS_STOPPED;
    struct proto_text text =
        refused->text.length ? refused->text : proto_text(proto_refusal_text(refused->code));
    error_set(err, status, "%s: %s: %.*s", member->address, proto_refusal_name(refused->code),
              (int)text.length, text.at);
    bool ends = status != STATUS_SKIPPED && refused->code != PROTO_REFUSAL_NOT_LEADER;
    return ends ? member_end(member, err) : status;
}

// --- asking ------------------------------------------------------------------

int member_ask(struct member *member, uint16_t type, const void *message, struct kept **answer,
               struct error *err) {
    struct link_request request = {.type = type, .message = message};
    int status = link_call_kept(member->link, &request, answer, err);
    if (status || (*answer)->type != PROTO_TYPE_REFUSED)
        return status;
    status = refusal_status(member, &(*answer)->message.refused, err);
    kept_drop(*answer);
    *answer = NULL;
    return status;
}

// Asks for something that takes the place of what is there.
static int fetch_message(struct member *member, uint16_t type, const void *message,
                         struct kept **place, struct error *err) {
    struct kept *answer;
    int status = member_ask(member, type, message, &answer, err);
    if (status)
        return status;
    pthread_mutex_lock(&member->lock);
    struct kept *before = *place;
    *place = answer;
    pthread_mutex_unlock(&member->lock);
    kept_drop(before);
    member_tell_news(member);
    return STATUS_OK;
}

// Settings that cannot be read are told by the role, which needs all of them.
static void note_stay(struct member *member) {
    struct settings settings;
    char *text;
    if (run_settings(&settings, &text, &member->run->message.run, NULL))
        return;
    member->stay = settings.controller_patience;
    free(text);
}

static int fetch_run(struct member *member, struct error *err) {
    int status =
        fetch_message(member, PROTO_TYPE_GET_RUN, &(struct proto_get_run){0}, &member->run, err);
    if (!status)
        note_stay(member);
    return status;
}

// Nothing is said to be known: an answer is always whole.
static int fetch_changes(struct member *member, const struct proto_beat *beat, struct error *err) {
    int status = STATUS_OK;
    if (!member->run || member->run->message.run.version != beat->settings)
        status = fetch_run(member, err);
    if (!status && beat->routes > 0 &&
        (!member->routes || member->routes->message.routes.epoch != beat->routes))
        status = fetch_message(member, PROTO_TYPE_GET_ROUTES, &(struct proto_get_routes){0},
                               &member->routes, err);
    if (!status && member->options.members &&
        (!member->members || member->members->message.status.epoch != beat->members))
        status = fetch_message(member, PROTO_TYPE_GET_STATUS, &(struct proto_get_status){0},
                               &member->members, err);
    return status;
}

void member_hear_order(struct member *member, const struct proto_beat *beat) {
    pthread_mutex_lock(&member->lock);
    bool new = beat->order != PROTO_ORDER_NOTHING && beat->number > member->order.number;
    if (new) {
        member->order =
            (struct member_order){.order = (enum proto_order)beat->order, .number = beat->number};
        member->ordered = true;
    }
    pthread_mutex_unlock(&member->lock);
    if (new)
        member_tell_news(member);
}

int member_send_heartbeat(struct member *member, struct error *err) {
    const struct member_hooks *hooks = &member->options.hooks;
    uint64_t look = atomic_load(&member->looks);
    struct proto_heartbeat figures = {.state = PROTO_STATE_WORKING, .loss = NAN};
    if (hooks->figures) {
        figures.state = PROTO_STATE_STARTING;
        figures.session = member->identity.session;
        hooks->figures(hooks->self, &figures);
    }
    figures.session = member->identity.session;
    if (figures.waits_for.length > PROTO_ADDRESS_MAX)
        figures.waits_for.length = PROTO_ADDRESS_MAX;
    member->beaten = clock_seconds();
    struct kept *answer;
    int status = member_ask(member, PROTO_TYPE_HEARTBEAT, &figures, &answer, err);
    if (status)
        return status;
    atomic_store(&member->begun, answer->message.beat.begun != 0);
    status = fetch_changes(member, &answer->message.beat, err);
    if (!status)
        member_hear_order(member, &answer->message.beat);
    kept_drop(answer);
    if (!status && atomic_exchange(&member->looked, look) != look)
        member_tell_news(member);
    return status;
}

// --- places ------------------------------------------------------------------

static uint32_t take_proposals(struct member *member) {
    pthread_mutex_lock(&member->lock);
    uint32_t count = member->proposal_count;
    memcpy(member->sending, member->proposals, count * sizeof *member->sending);
    member->proposal_count = 0;
    member->places_wanted |= count > 0;
    pthread_mutex_unlock(&member->lock);
    return count;
}

static int send_proposals(struct member *member, struct error *err) {
    uint32_t count = take_proposals(member);
    struct kept *answer;
    const struct proto_propose message = {.session = member->identity.session,
                                          .proposals = {member->sending, count}};
    if (!count)
        return STATUS_OK;
    int status = member_ask(member, PROTO_TYPE_PROPOSE, &message, &answer, err);
    kept_drop(answer);
    return status;
}

static bool take_wish(struct member *member) {
    pthread_mutex_lock(&member->lock);
    bool wanted = member->places_wanted;
    member->places_wanted = false;
    pthread_mutex_unlock(&member->lock);
    return wanted;
}

double member_places_due(const struct member *member) {
    return member->options.places ? member->placed + member->options.places / 1000.0 : INFINITY;
}

// Takes over a list that is newer: an empty one says that none is.
static void take_places(struct member *member, struct kept *answer) {
    struct kept *before = answer;
    pthread_mutex_lock(&member->lock);
    if (answer->message.places.places.count > 0) {
        before = member->places;
        member->places = answer;
    }
    pthread_mutex_unlock(&member->lock);
    kept_drop(before);
    if (before != answer)
        member_tell_news(member);
}

// The lease counts from the asking, so that it is over here before it is for the controller.
static int fetch_places(struct member *member, struct error *err) {
    const struct member_hooks *hooks = &member->options.hooks;
    const struct proto_get_places message = {
        .session = member->identity.session,
        .known = member->places ? member->places->message.places.epoch : 0,
    };
    struct kept *answer;
    member->placed = clock_seconds();
    int status = member_ask(member, PROTO_TYPE_GET_PLACES, &message, &answer, err);
    if (status)
        return status;
    if (hooks->lease && answer->message.places.lease)
        hooks->lease(hooks->self, member->placed + answer->message.places.lease / 1000.0);
    take_places(member, answer);
    return STATUS_OK;
}

// The lease before proposals: these are answered when all controllers have agreed.
int member_send_places(struct member *member, struct error *err) {
    bool due = member_places_due(member) <= clock_seconds();
    int status = due ? fetch_places(member, err) : STATUS_OK;
    if (!status)
        status = send_proposals(member, err);
    return !status && take_wish(member) ? fetch_places(member, err) : status;
}

// --- reports -----------------------------------------------------------------

struct report {
    struct report *next;
    char line[];
};

static struct report *unlink_first(struct member *member) {
    struct report *report = member->first;
    if (!report)
        return NULL;
    member->first = report->next;
    if (!member->first)
        member->last = NULL;
    member->reports--;
    return report;
}

struct report *member_next_report(struct member *member) {
    pthread_mutex_lock(&member->lock);
    struct report *report = unlink_first(member);
    pthread_mutex_unlock(&member->lock);
    return report;
}

// A report that did not arrive is the first again.
static void requeue_report(struct member *member, struct report *report) {
    pthread_mutex_lock(&member->lock);
    report->next = member->first;
    member->first = report;
    if (!member->last)
        member->last = report;
    member->reports++;
    pthread_mutex_unlock(&member->lock);
}

int member_send_reports(struct member *member, struct error *err) {
    struct report *report;
    int status = STATUS_OK;
    while (!status && (report = member_next_report(member))) {
        const struct proto_report message = {.session = member->identity.session,
                                             .line = proto_text(report->line)};
        struct kept *answer;
        status = member_ask(member, PROTO_TYPE_REPORT, &message, &answer, err);
        kept_drop(answer);
        if (status)
            requeue_report(member, report);
        else
            free(report);
    }
    return status;
}

int member_report(struct member *member, const char *line, struct error *err) {
    size_t size = strlen(line) + 1;
    if (size > LINE_MOST)
        return error_set(err, STATUS_DATA, "a line of metrics has %zu bytes", size - 1);
    struct report *report = malloc(sizeof *report + size);
    if (!report)
        return error_nomem(err);
    report->next = NULL;
    memcpy(report->line, line, size);
    pthread_mutex_lock(&member->lock);
    struct report *oldest = member->reports >= MEMBER_REPORTS ? unlink_first(member) : NULL;
    if (member->last)
        member->last->next = report;
    else
        member->first = report;
    member->last = report;
    member->reports++;
    pthread_mutex_unlock(&member->lock);
    free(oldest);
    gate_open(&member->work);
    return STATUS_OK;
}
