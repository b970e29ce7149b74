// Leases of a data service: batches go out from where they lie, and are finished or come back.
#include <math.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "role/dataserver/data_service_internal.h"

// --- out -------------------------------------------------------------------------

// A batch on its way out.
struct sending {
    struct dealer *dealer;
    struct buffer *buffer;
    struct link_part parts[4];
};

static void batch_sent(void *context) {
    struct sending *sending = context;
    dealer_release(sending->dealer, sending->buffer);
    free(sending);
}

static void send_batch(const struct data_request *request, const struct leased_batch *leased) {
    struct dealer *dealer = request->service->dealer;
    struct sending *sending = mem_zeroed(1, sizeof *sending);
    const struct proto_samples *samples = &leased->samples;
    uint32_t n = samples->count;
    if (!sending) { // the lease runs out, and its samples go to another
        dealer_release(dealer, leased->buffer);
        service_put_off(request, "out of memory");
        return;
    }
    *sending = (struct sending){
        .dealer = dealer,
        .buffer = leased->buffer,
        .parts = {{samples->keys, n * sizeof *samples->keys},
                  {samples->labels, n * sizeof *samples->labels},
                  {samples->targets, (size_t)n * samples->target_count * sizeof *samples->targets},
                  {samples->values, n * samples->value_bytes}},
    };
    const struct link_payload payload = {sending->parts, 4, batch_sent, sending};
    const struct proto_batch batch = {
        .lease = leased->lease.number,
        .deadline = (uint32_t)fmin(leased->lease.deadline * 1000, UINT32_MAX),
        .epoch = leased->drawn.epoch,
        .first = leased->drawn.places.first,
        .samples = n,
    };
    atomic_fetch_add(&request->service->leases, 1);
    if (link_answer(request->link, request->number, PROTO_TYPE_BATCH, &batch, &payload, NULL))
        service_refuse(request, PROTO_REFUSAL_TOO_LARGE, PROTO_PAYLOAD_MAX, NULL);
}

// A request that came late over a link which its session has replaced would be answered to nobody.
// Looked at after the lease is issued: what was issued before the session said what it holds came
// back with that.
static void send_or_take_back(const struct data_request *request, struct leased_batch *leased,
                              uint64_t session) {
    struct dealer *dealer = request->service->dealer;
    if (!atomic_load(&request->caller->replaced)) {
        send_batch(request, leased);
        return;
    }
    dealer_return(dealer, session, leased->lease.number);
    dealer_release(dealer, leased->buffer);
    service_put_off(request, "the session has called anew");
}

void service_answer_lease(const struct data_request *request, const struct proto_lease *asked) {
    struct dealer *dealer = request->service->dealer;
    struct error err = {0};
    const struct dealer_request wanted = {
        .session = asked->session,
        .step = asked->step,
        .clock = asked->clock,
        .epoch = asked->epoch,
        .samples = asked->samples,
    };
    struct leased_batch leased;
    uint64_t detail = 0;
    switch (dealer_issue(dealer, &wanted, clock_seconds(), &leased, &detail)) {
    case DEALER_ISSUED:
        send_or_take_back(request, &leased, asked->session);
        break;
    case DEALER_IDLE:
        service_answer(request, PROTO_TYPE_BATCH, &(struct proto_batch){.epoch = asked->epoch});
        break;
    case DEALER_BUSY:
        service_refuse(request, PROTO_REFUSAL_BUSY, detail, NULL);
        break;
    case DEALER_ENDING:
        service_refuse(request, PROTO_REFUSAL_NOT_READY, detail, NULL);
        break;
    case DEALER_EPOCH_OVER:
        service_refuse(request, PROTO_REFUSAL_EPOCH_OVER, detail, NULL);
        break;
    case DEALER_ALL_OVER:
        service_refuse(request, PROTO_REFUSAL_EPOCH_OVER, PROTO_NOWHERE, NULL);
        break;
    case DEALER_FAILED:
        dealer_status(dealer, &err);
        service_refuse(request, PROTO_REFUSAL_STORAGE, 0, err.text);
        break;
    }
}

// --- back ------------------------------------------------------------------------

static bool finish_lease(struct data_service *service, uint64_t session, uint64_t lease) {
    struct range places;
    uint32_t epoch;
    if (!dealer_finish(service->dealer, session, lease, clock_seconds(), &epoch, &places)) {
        atomic_fetch_add(&service->over, 1);
        return false;
    }
    service_note_finished(service, epoch, places); // before it is acknowledged
    return true;
}

static bool return_lease(struct data_service *service, uint64_t session, uint64_t lease) {
    uint32_t samples = dealer_return(service->dealer, session, lease);
    atomic_fetch_add(&service->again, samples);
    return samples > 0;
}

// The lease that a message names first; false: it names none.
static bool first_lease(const struct proto_finish *finish, uint64_t *lease) {
    const struct proto_list *list = finish->leases.count > 0 ? &finish->leases : &finish->returned;
    if (list->count == 0)
        return false;
    *lease = ((const struct proto_lease_id *)list->at)->lease;
    return true;
}

// What comes back is there before an epoch is found to be over.
void service_answer_finish(const struct data_request *request, const struct proto_finish *finish) {
    struct data_service *service = request->service;
    const struct proto_lease_id *finished = finish->leases.at, *returned = finish->returned.at;
    uint32_t open = 0;
    uint64_t first;
    for (uint32_t i = 0; i < finish->returned.count; i++)
        open += return_lease(service, finish->session, returned[i].lease);
    for (uint32_t i = 0; i < finish->leases.count; i++)
        open += finish_lease(service, finish->session, finished[i].lease);
    if (open == 0 && first_lease(finish, &first)) {
        service_refuse(request, PROTO_REFUSAL_LEASE_OVER, first, NULL);
        return;
    }
    const struct dealer_figures figures = dealer_figures(service->dealer);
    const struct proto_progress progress = {
        .epoch = figures.epoch,
        .finished = figures.finished,
        .samples = picture_cache_count(service->options.pictures),
    };
    service_answer(request, PROTO_TYPE_PROGRESS, &progress);
}

// What was lost with a link is handed out again at once, not when its deadline is over.
void service_answer_hold(const struct data_request *request, const struct proto_hold *hold) {
    struct data_service *service = request->service;
    service_replace_others(service, request->caller);
    atomic_fetch_add(&service->again, dealer_lose_rest(service->dealer, hold->session,
                                                       hold->leases.at, hold->leases.count));
    service_answer(request, PROTO_TYPE_DONE, NULL);
}
