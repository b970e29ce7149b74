// A member's beginning and end, and what those who use it read and want.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "member/member_internal.h"
#include "member/run_text.h"
#include "net/address.h"
#include "net/ready.h"

static const double leaving_time = 2; // seconds

// --- beginning and end -------------------------------------------------------

// Until the run's settings are known.
static double usual_stay(void) {
    struct settings settings;
    settings_default(&settings);
    return settings.controller_patience;
}

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
    for (struct report *report; (report = member_next_report(member));)
        free(report);
    kept_drop(member->run);
    kept_drop(member->routes);
    kept_drop(member->members);
    kept_drop(member->places);
    pthread_mutex_destroy(&member->lock);
    free(member);
}

// --- for those who use it ----------------------------------------------------

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
