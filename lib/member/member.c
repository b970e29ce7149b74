#include "member/member.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/gate.h"
#include "core/mem.h"
#include "member/patience.h"
#include "member/place.h"
#include "member/run_text.h"
#include "net/address.h"
#include "net/link.h"
#include "net/ready.h"

enum {
    DIAL = 2000,             // milliseconds that a controller has to welcome
    ANSWER = 10000,          // and to answer
    BEAT_LEAST = 10,         // of what it may ask for between heartbeats
    BEAT_MOST = 60000,       //
    WHY = ERROR_TEXT - 1024, // of a reason that goes into a sentence
    LINE_MOST = 1 << 16,     // of a report
};
static const double first_pause = 0.05, longest_pause = 2, leaving_time = 2;
// Of several controllers another leads soon: so long it is looked for, with no longer pauses.
static const double election = 10, election_pause = 0.2;

struct report {
    struct report *next;
    char line[];
};

struct member {
    struct member_options options;
    pthread_t thread;
    struct gate news; // for those who use the member
    struct gate work; // for its thread
    _Atomic bool closing, over;
    _Atomic uint64_t looks, looked;
    _Atomic bool begun; // as the last heartbeat said
    const char *reason; // why it leaves; set before `closing`

    // The thread's own.
    char address[PROTO_ADDRESS_MAX]; // of the controller that is dialled
    uint32_t turn, controllers;      // how many were dialled; how many there are
    struct patience patience;
    bool lost;     // and that was said
    double stay;   // seconds that it waits for a lost controller: the run's controller-patience
    double beaten; // when the last heartbeat went
    double placed; // when places were asked for last
    struct proto_proposal sending[MEMBER_PROPOSALS];

    pthread_mutex_t lock; // of all that follows
    bool joined;
    struct member_identity identity;
    struct kept *run, *routes, *members, *places;
    struct proto_proposal proposals[MEMBER_PROPOSALS];
    uint32_t proposal_count;
    bool places_wanted;
    struct member_order order;
    bool ordered; // `order` was not taken
    struct error end;
    struct report *first, *last;
    uint32_t reports;
    struct link *link; // for member_close to break
};

static void member_say(struct member *member, const char *text) {
    const struct member_hooks *hooks = &member->options.hooks;
    if (hooks->say)
        hooks->say(hooks->self, text);
}

static void tell_news(struct member *member) {
    gate_open(&member->news);
}

// --- the end -----------------------------------------------------------------

static int member_end(struct member *member, const struct error *why) {
    pthread_mutex_lock(&member->lock);
    member->end = *why;
    error_context(&member->end, "controller");
    pthread_mutex_unlock(&member->lock);
    tell_news(member);
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

static int ask_controller(struct member *member, uint16_t type, const void *message,
                          struct kept **answer, struct error *err) {
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
    int status = ask_controller(member, type, message, &answer, err);
    if (status)
        return status;
    pthread_mutex_lock(&member->lock);
    struct kept *before = *place;
    *place = answer;
    pthread_mutex_unlock(&member->lock);
    kept_drop(before);
    tell_news(member);
    return STATUS_OK;
}

// Until the run's settings are known.
static double usual_stay(void) {
    struct settings settings;
    settings_default(&settings);
    return settings.controller_patience;
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

static void hear_order(struct member *member, const struct proto_beat *beat) {
    pthread_mutex_lock(&member->lock);
    bool new = beat->order != PROTO_ORDER_NOTHING && beat->number > member->order.number;
    if (new) {
        member->order =
            (struct member_order){.order = (enum proto_order)beat->order, .number = beat->number};
        member->ordered = true;
    }
    pthread_mutex_unlock(&member->lock);
    if (new)
        tell_news(member);
}

static int send_heartbeat(struct member *member, struct error *err) {
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
    int status = ask_controller(member, PROTO_TYPE_HEARTBEAT, &figures, &answer, err);
    if (status)
        return status;
    atomic_store(&member->begun, answer->message.beat.begun != 0);
    status = fetch_changes(member, &answer->message.beat, err);
    if (!status)
        hear_order(member, &answer->message.beat);
    kept_drop(answer);
    if (!status && atomic_exchange(&member->looked, look) != look)
        tell_news(member);
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
    int status = ask_controller(member, PROTO_TYPE_PROPOSE, &message, &answer, err);
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

static double places_due(const struct member *member) {
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
        tell_news(member);
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
    int status = ask_controller(member, PROTO_TYPE_GET_PLACES, &message, &answer, err);
    if (status)
        return status;
    if (hooks->lease && answer->message.places.lease)
        hooks->lease(hooks->self, member->placed + answer->message.places.lease / 1000.0);
    take_places(member, answer);
    return STATUS_OK;
}

// The lease before proposals: these are answered when all controllers have agreed.
static int send_about_places(struct member *member, struct error *err) {
    bool due = places_due(member) <= clock_seconds();
    int status = due ? fetch_places(member, err) : STATUS_OK;
    if (!status)
        status = send_proposals(member, err);
    return !status && take_wish(member) ? fetch_places(member, err) : status;
}

// --- reports -----------------------------------------------------------------

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

static struct report *first_report(struct member *member) {
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

static int send_reports(struct member *member, struct error *err) {
    struct report *report;
    int status = STATUS_OK;
    while (!status && (report = first_report(member))) {
        const struct proto_report message = {.session = member->identity.session,
                                             .line = proto_text(report->line)};
        struct kept *answer;
        status = ask_controller(member, PROTO_TYPE_REPORT, &message, &answer, err);
        kept_drop(answer);
        if (status)
            requeue_report(member, report);
        else
            free(report);
    }
    return status;
}

// --- joining -----------------------------------------------------------------

static struct proto_text text_or_none(const char *text) {
    return proto_text(text ? text : "");
}

static int ask_to_join(struct member *member, const struct proto_list *held, struct kept **answer,
                       struct error *err) {
    const struct member_options *o = &member->options;
    const struct proto_join join = {
        .role = (uint16_t)o->role,
        .threads = o->threads,
        .memory = o->memory,
        .name = text_or_none(o->name),
        .training = text_or_none(o->training),
        .replication = text_or_none(o->replication),
        .administration = text_or_none(o->administration),
        .first = o->first,
        .samples = o->samples,
        .whole = o->whole,
        .digest = o->digest,
        .classes = o->classes,
        .stores = o->stores,
        .parts = o->parts,
        .held = *held,
    };
    return ask_controller(member, PROTO_TYPE_JOIN, &join, answer, err);
}

static int join_run(struct member *member, const struct proto_welcome *welcome, struct error *err) {
    const struct member_hooks *hooks = &member->options.hooks;
    struct proto_held *shards = NULL;
    uint32_t count = 0;
    struct kept *answer;
    int status =
        hooks->held ? hooks->held(hooks->self, &welcome->run, &shards, &count, err) : STATUS_OK;
    if (!status) {
        const struct proto_list held = proto_list(shards, count);
        status = ask_to_join(member, &held, &answer, err);
    }
    free(shards);
    if (status)
        return status;
    const struct proto_joined *joined = &answer->message.joined;
    pthread_mutex_lock(&member->lock);
    member->identity = (struct member_identity){
        .run = welcome->run,
        .model = welcome->model,
        .session = joined->session,
        .member = joined->member,
        .heartbeat = joined->heartbeat,
        .silence = joined->silence,
        .epoch = joined->epoch,
        .replica = joined->replica,
        .partition = joined->partition,
    };
    member->joined = true;
    pthread_mutex_unlock(&member->lock);
    kept_drop(answer);
    tell_news(member);
    return STATUS_OK;
}

static int check_welcome(struct member *member, const struct proto_welcome *welcome,
                         struct error *err) {
    static const struct proto_id none;
    if (welcome->role == PROTO_ROLE_CONTROLLER && memcmp(&welcome->run, &none, sizeof none) == 0)
        return error_set(err, STATUS_UNAVAILABLE, "%s: it does not lead the run", member->address);
    if (welcome->role != PROTO_ROLE_CONTROLLER)
        error_set(err, STATUS_UNAVAILABLE, "%s: a %s answers there", member->address,
                  proto_role_name(welcome->role));
    else if (member->joined &&
             memcmp(&welcome->run, &member->identity.run, sizeof welcome->run) != 0)
        error_set(err, STATUS_UNAVAILABLE, "%s: it is of another run by now", member->address);
    else
        return STATUS_OK;
    return member_end(member, err);
}

static void set_link(struct member *member, struct link *link) {
    pthread_mutex_lock(&member->lock);
    member->link = link;
    pthread_mutex_unlock(&member->lock);
}

// The run is not claimed in the hello: who is told of another one can say so in the right
// words.
static int dial_controller(struct member *member, struct error *err) {
    const struct member_options *o = &member->options;
    const struct link_options options = {
        .keys = o->keys, .insecure = o->insecure, .patience = ANSWER};
    const struct proto_hello hello = {.role = (uint16_t)o->role,
                                      .session = member->identity.session,
                                      .name = text_or_none(o->name)};
    struct proto_welcome welcome;
    struct link *link;
    int status =
        ready_find(o->controller, member->turn, member->address, &member->controllers, err);
    if (!status)
        status = link_dial(&link, member->address, &options, &hello, DIAL, &welcome, err);
    if (status == STATUS_USAGE)
        member_end(member, err);
    if (status)
        return status;
    set_link(member, link);
    member->beaten = 0; // at once
    status = check_welcome(member, &welcome, err);
    if (!status && !member->joined)
        status = join_run(member, &welcome, err);
    return status;
}

static void drop_link(struct member *member) {
    struct link *link = member->link;
    set_link(member, NULL);
    link_close(link);
}

// --- the thread --------------------------------------------------------------

static bool goes_on(const struct member *member) {
    return !atomic_load(&member->closing) && member->end.status == STATUS_OK;
}

static bool has_work(struct member *member) {
    pthread_mutex_lock(&member->lock);
    bool work = member->first != NULL || member->proposal_count > 0 || member->places_wanted;
    pthread_mutex_unlock(&member->lock);
    return work || atomic_load(&member->looks) != atomic_load(&member->looked);
}

// Sleeps for so many seconds, unless it must close, or finds work that it `minds`.
static void pause_member(struct member *member, double seconds, bool minds) {
    double until = clock_seconds() + seconds;
    for (uint32_t seen = gate_look(&member->work); goes_on(member) && !(minds && has_work(member));
         seen = gate_look(&member->work)) {
        double left = until - clock_seconds();
        if (left <= 0)
            break;
        gate_wait(&member->work, seen, left);
    }
}

static double beat_seconds(const struct member *member) {
    uint32_t beat = member->identity.heartbeat;
    return (beat < BEAT_LEAST ? BEAT_LEAST : beat > BEAT_MOST ? BEAT_MOST : beat) / 1000.0;
}

static int send_what_is_due(struct member *member, struct error *err) {
    bool looks = atomic_load(&member->looks) != atomic_load(&member->looked);
    int status = STATUS_OK;
    if (looks || member->beaten + beat_seconds(member) <= clock_seconds())
        status = send_heartbeat(member, err);
    if (!status)
        status = send_about_places(member, err);
    return status ? status : send_reports(member, err);
}

static double next_due(const struct member *member) {
    return fmin(member->beaten + beat_seconds(member), places_due(member));
}

// Until the link breaks. What was put off waits for the next heartbeat.
static int serve_link(struct member *member, struct error *err) {
    while (goes_on(member)) {
        int status = send_what_is_due(member, err);
        if (status && status != STATUS_SKIPPED)
            return status;
        pause_member(member, next_due(member) - clock_seconds(), !status);
    }
    return STATUS_OK;
}

static void say_waiting(struct member *member, const struct error *err) {
    char text[ERROR_TEXT];
    size_t length = strlen(member->address);
    if (!patience_lost(&member->patience))
        return;
    if (length > 0 && !strncmp(err->text, member->address, length) && err->text[length] == ':')
        snprintf(text, sizeof text, "waiting for controller: no answer from %s (%.*s)",
                 member->address, WHY, err->text + length + 2);
    else
        snprintf(text, sizeof text, "waiting for controller: %.*s", WHY, err->text);
    member_say(member, text);
}

// A silent peer is named at once, not after a wait for it.
static void say_lost(struct member *member, const struct error *err) {
    char text[ERROR_TEXT];
    snprintf(text, sizeof text, "lost the controller: %.*s", WHY, err->text);
    member_say(member, text);
    member->lost = true;
}

static void say_found(struct member *member) {
    char text[PROTO_ADDRESS_MAX + 64];
    bool told = patience_found(&member->patience) || member->lost;
    member->lost = false;
    if (!told)
        return;
    snprintf(text, sizeof text, "found controller %s", member->address);
    member_say(member, text);
}

// The run is done, and this member did not hear the order to end: it stood still, or the
// network did.
static void order_end(struct member *member) {
    char text[ERROR_TEXT];
    snprintf(text, sizeof text, "the run is done and its controller is gone: it has left %s",
             member->options.controller + 1);
    member_say(member, text);
    hear_order(member, &(struct proto_beat){
                           .order = PROTO_ORDER_STOP,
                           .number = member->order.number + 1,
                       });
}

// Whether a member that has lost its controller gives it up: for ever is only what comes back.
static bool gives_up(struct member *member, const struct error *why) {
    struct error err;
    if (!member->joined)
        return false;
    if (place_is_done(member->options.controller)) {
        order_end(member);
        return true;
    }
    double waited = clock_seconds() - member->patience.since;
    if (member->patience.since == 0 || waited < member->stay)
        return false;
    error_set(&err, STATUS_UNAVAILABLE,
              "no answer for %.0f s, and controller-patience is %g s: %.*s", waited, member->stay,
              WHY, why->text);
    member_end(member, &err);
    return true;
}

// What is left to say, when there is somebody to hear it.
static void leave_run(struct member *member) {
    struct error err = {0};
    struct kept *answer;
    const struct proto_leave leave = {.session = member->identity.session,
                                      .reason = text_or_none(member->reason)};
    int status = send_reports(member, &err);
    if (status && status != STATUS_SKIPPED)
        return;
    ask_controller(member, PROTO_TYPE_LEAVE, &leave, &answer, &err);
    kept_drop(answer);
}

static double next_pause(const struct member *member, double pause) {
    double waited = clock_seconds() - member->patience.since;
    bool elects = member->controllers > 1 && waited < election;
    return fmin(2 * pause, elects ? election_pause : longest_pause);
}

static void *member_thread(void *context) {
    struct member *member = context;
    double pause = first_pause;
    while (goes_on(member)) {
        struct error err = {0};
        int status = dial_controller(member, &err);
        if (!status) {
            say_found(member);
            pause = first_pause;
            status = serve_link(member, &err);
            if (status && goes_on(member))
                say_lost(member, &err);
        }
        if (!status && member->reason && atomic_load(&member->closing))
            leave_run(member);
        if (member->link)
            drop_link(member);
        if (!goes_on(member))
            break;
        say_waiting(member, &err);
        if (gives_up(member, &err))
            break;
        // All controllers are dialled before it pauses.
        if (++member->turn % (member->controllers ? member->controllers : 1))
            continue;
        pause_member(member, pause, false);
        pause = next_pause(member, pause);
    }
    atomic_store(&member->over, true);
    tell_news(member);
    return NULL;
}

// --- for those who use it ----------------------------------------------------

static int check_addresses(const struct member_options *o, struct error *err) {
    char address[PROTO_ADDRESS_MAX];
    int status = STATUS_OK;
    for (uint32_t turn = 0, count = 1; !status && turn < count; turn++) {
        status = ready_find(o->controller, turn, address, &count, err);
        if (!status)
            status = address_check(address, o->keys, o->insecure, err);
    }
    return status;
}

static int check_options(const struct member_options *o, struct error *err) {
    if (!o->controller)
        return error_set(err, STATUS_USAGE, "no controller is named");
    if (o->name && strlen(o->name) > PROTO_NAME_MAX)
        return error_set(err, STATUS_USAGE, "the name '%s' is longer than %d letters", o->name,
                         PROTO_NAME_MAX);
    return *o->controller == '@' ? STATUS_OK : check_addresses(o, err);
}

int member_open(struct member **member, const struct member_options *options, struct error *err) {
    *member = NULL;
    int status = check_options(options, err);
    if (status)
        return status;
    struct member *m = mem_zeroed(1, sizeof *m);
    if (!m)
        return error_nomem(err);
    m->options = *options;
    m->stay = usual_stay();
    pthread_mutex_init(&m->lock, NULL);
    if (pthread_create(&m->thread, NULL, member_thread, m)) {
        pthread_mutex_destroy(&m->lock);
        free(m);
        return error_set(err, STATUS_IO, "cannot start a thread");
    }
    *member = m;
    return STATUS_OK;
}

static void break_link(struct member *member) {
    pthread_mutex_lock(&member->lock);
    if (member->link)
        link_break(member->link, "closing");
    pthread_mutex_unlock(&member->lock);
}

void member_close(struct member *member, const char *reason) {
    if (!member)
        return;
    double until = clock_seconds() + (reason ? leaving_time : 0);
    member->reason = reason;
    atomic_store(&member->closing, true);
    gate_open(&member->work);
    for (uint32_t seen = gate_look(&member->news); !atomic_load(&member->over);
         seen = gate_look(&member->news)) {
        double left = until - clock_seconds();
        if (left <= 0)
            break;
        gate_wait(&member->news, seen, left);
    }
    break_link(member);
    pthread_join(member->thread, NULL);
    for (struct report *report; (report = first_report(member));)
        free(report);
    kept_drop(member->run);
    kept_drop(member->routes);
    kept_drop(member->members);
    kept_drop(member->places);
    pthread_mutex_destroy(&member->lock);
    free(member);
}

uint32_t member_news(const struct member *member) {
    return gate_look(&member->news);
}

void member_wait(struct member *member, uint32_t seen, double seconds) {
    gate_wait(&member->news, seen, seconds);
}

int member_status(struct member *member, struct error *err) {
    pthread_mutex_lock(&member->lock);
    int status = member->end.status;
    if (status && err)
        *err = member->end;
    pthread_mutex_unlock(&member->lock);
    return status;
}

bool member_identity(struct member *member, struct member_identity *identity) {
    pthread_mutex_lock(&member->lock);
    bool joined = member->joined;
    *identity = member->identity;
    pthread_mutex_unlock(&member->lock);
    return joined;
}

static struct kept *hold_message(struct member *member, struct kept **place) {
    pthread_mutex_lock(&member->lock);
    struct kept *kept = *place;
    kept_hold(kept);
    pthread_mutex_unlock(&member->lock);
    return kept;
}

struct kept *member_run(struct member *member) {
    return hold_message(member, &member->run);
}

struct kept *member_routes(struct member *member) {
    return hold_message(member, &member->routes);
}

struct kept *member_members(struct member *member) {
    return hold_message(member, &member->members);
}

struct kept *member_places(struct member *member) {
    return hold_message(member, &member->places);
}

void member_look_places(struct member *member) {
    pthread_mutex_lock(&member->lock);
    member->places_wanted = member->options.places > 0;
    pthread_mutex_unlock(&member->lock);
    gate_open(&member->work);
}

void member_propose(struct member *member, const struct proto_proposal *proposals, uint32_t count) {
    pthread_mutex_lock(&member->lock);
    member->proposal_count = count < MEMBER_PROPOSALS ? count : MEMBER_PROPOSALS;
    memcpy(member->proposals, proposals, member->proposal_count * sizeof *proposals);
    pthread_mutex_unlock(&member->lock);
    gate_open(&member->work);
}

bool member_take_order(struct member *member, struct member_order *order) {
    pthread_mutex_lock(&member->lock);
    bool there = member->ordered;
    *order = member->order;
    member->ordered = false;
    pthread_mutex_unlock(&member->lock);
    return there;
}

bool member_begun(const struct member *member) {
    return atomic_load(&member->begun);
}

uint64_t member_look(struct member *member) {
    uint64_t look = atomic_fetch_add(&member->looks, 1) + 1;
    gate_open(&member->work);
    return look;
}

uint64_t member_looked(const struct member *member) {
    return atomic_load(&member->looked);
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
