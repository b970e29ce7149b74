// The member's thread: it dials controllers, joins the run, serves the link until that breaks, and
// dials again.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "member/member_internal.h"
#include "member/place.h"
#include "net/ready.h"

enum {
    DIAL = 2000,             // milliseconds that a controller has to welcome
    ANSWER = 10000,          // and to answer
    BEAT_LEAST = 10,         // of what it may ask for between heartbeats
    BEAT_MOST = 60000,       //
    WHY = ERROR_TEXT - 1024, // of a reason that goes into a sentence
};
static const double first_pause = 0.05, longest_pause = 2;
// Of several controllers another leads soon: so long it is looked for, with no longer pauses.
static const double election = 10, election_pause = 0.2;

static void member_say(struct member *member, const char *text) {
    const struct member_hooks *hooks = &member->options.hooks;
    if (hooks->say)
        hooks->say(hooks->self, text);
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
    return member_ask(member, PROTO_TYPE_JOIN, &join, answer, err);
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
    member_tell_news(member);
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
        status = member_send_heartbeat(member, err);
    if (!status)
        status = member_send_places(member, err);
    return status ? status : member_send_reports(member, err);
}

static double next_due(const struct member *member) {
    return fmin(member->beaten + beat_seconds(member), member_places_due(member));
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
    member_hear_order(member, &(struct proto_beat){
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
    int status = member_send_reports(member, &err);
    if (status && status != STATUS_SKIPPED)
        return;
    member_ask(member, PROTO_TYPE_LEAVE, &leave, &answer, &err);
    kept_drop(answer);
}

static double next_pause(const struct member *member, double pause) {
    double waited = clock_seconds() - member->patience.since;
    bool elects = member->controllers > 1 && waited < election;
    return fmin(2 * pause, elects ? election_pause : longest_pause);
}

void *member_thread(void *context) {
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
    member_tell_news(member);
    return NULL;
}
