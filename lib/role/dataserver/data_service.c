// A data service's beginning and end, and what its owner has it do: the controller's news
// are obeyed, and what has a time is looked after.
#include <math.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "member/sharers.h"
#include "role/dataserver/data_service_internal.h"

static const double tend_most = 1; // seconds
static const double still = 3;     // seconds without a word of this process: it stood still

// --- beginning and end -----------------------------------------------------------

int data_service_open(struct data_service **out, const struct data_service_options *options,
                      struct error *err) {
    struct data_service *service = mem_zeroed(1, sizeof *service);
    if (!service)
        return error_nomem(err);
    service->options = *options;
    LIST_INIT(&service->callers);
    pthread_mutex_init(&service->lock, NULL);
    *out = service;
    return STATUS_OK;
}

int data_service_begin(struct data_service *service, const struct data_service_run *run,
                       struct error *err) {
    service->run = *run;
    struct decode_options decode = {0};
    if (run->ops)
        ops_decode_hint(run->ops, &decode);
    picture_cache_hint(service->options.pictures, &decode);
    const struct dealer_options options = {
        .pictures = service->options.pictures,
        .ops = run->ops,
        .rules = run->rules,
        .seed = run->seed,
        .number = run->number,
        .batch = run->batch,
        .ahead = run->ahead,
        .threads = run->threads,
        .rounds = run->rounds,
    };
    int status = dealer_open(&service->dealer, &options, err);
    if (!status)
        status = service_find_place(service, err);
    if (!status)
        atomic_store(&service->begun, true);
    return status;
}

void data_service_close(struct data_service *service) {
    if (!service)
        return;
    if (atomic_load(&service->begun))
        service_tend_journal(service);
    journal_close(service->journal);
    dealer_close(service->dealer);
    pthread_mutex_destroy(&service->lock);
    free(service);
}

struct link_handlers data_service_handlers(struct data_service *service) {
    return (struct link_handlers){service, service_hello, service_request, service_closed};
}

// --- what has a time, and what the controller says -------------------------------

void data_service_rules(struct data_service *service, const struct lease_rules *rules) {
    dealer_rules(service->dealer, rules);
}

// The lock keeps others waiting until the leases know.
void service_notice_pause(struct data_service *service) {
    pthread_mutex_lock(&service->lock);
    double now = clock_seconds(), gap = service->seen > 0 ? now - service->seen : 0;
    service->seen = now;
    if (gap > still)
        dealer_paused(service->dealer, gap);
    pthread_mutex_unlock(&service->lock);
}

int data_service_tend(struct data_service *service, double *next, struct error *err) {
    double deadline;
    *next = tend_most;
    if (!atomic_load(&service->begun))
        return STATUS_OK;
    service_notice_pause(service);
    atomic_fetch_add(&service->again, dealer_expire(service->dealer, clock_seconds(), &deadline));
    if (deadline >= 0)
        *next = fmin(*next, deadline);
    service_tend_journal(service);
    return dealer_status(service->dealer, err);
}

static bool session_lives(const struct proto_status *status, uint64_t session) {
    const struct proto_member *members = status->members.at;
    for (uint32_t i = 0; i < status->members.count; i++)
        if (members[i].session == session)
            return members[i].state != PROTO_STATE_GONE;
    return false;
}

static int set_sharers(struct data_service *service, const struct proto_status *status,
                       struct error *err) {
    struct sharers sharers;
    int result = sharers_of(&sharers, status, true, err);
    if (!result)
        result = dealer_members(service->dealer, sharers.sessions, sharers.count, err);
    sharers_free(&sharers);
    return result;
}

int data_service_members(struct data_service *service, const struct proto_status *status,
                         struct error *err) {
    uint64_t session;
    size_t i = 0;
    if (!atomic_load(&service->begun))
        return STATUS_OK;
    while ((session = dealer_session(service->dealer, i)) > 0)
        if (session_lives(status, session))
            i++;
        else
            dealer_gone(service->dealer, session); // another takes its place in the list
    return service->run.rounds ? set_sharers(service, status, err) : STATUS_OK;
}

bool data_service_met_stranger(struct data_service *service) {
    return atomic_load(&service->begun) && dealer_met_stranger(service->dealer);
}

bool data_service_stop_wanted(const struct data_service *service) {
    return atomic_load(&service->stop_wanted);
}

// --- how it is doing -------------------------------------------------------------

struct data_service_figures data_service_figures(struct data_service *service) {
    struct data_service_figures figures = {
        .pictures = picture_cache_figures(service->options.pictures),
        .leases = atomic_load(&service->leases),
        .busy = atomic_load(&service->busy),
        .over = atomic_load(&service->over),
        .again = atomic_load(&service->again),
        .refused = atomic_load(&service->refused),
    };
    if (atomic_load(&service->begun))
        figures.dealer = dealer_figures(service->dealer);
    service_traffic(service, &figures.received, &figures.sent);
    return figures;
}
