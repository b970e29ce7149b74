// Handing out: of a batch that is made as many samples as are wished for become a deal, of
// one lease. Who comes too early is told when to come again.
#include <math.h>

#include "core/error.h"
#include "deal/dealer_internal.h"

enum { BUSY_LEAST = 2, BUSY_MOST = 500 }; // milliseconds

// When a batch will be there, by the makers' speed.
static uint64_t expected_wait(const struct dealer *dealer) {
    double rate = dealer->busy_seconds > 0 ? (double)dealer->made / dealer->busy_seconds : 0;
    double wait = rate > 0 ? 1000.0 * dealer->batch / rate : BUSY_LEAST;
    return (uint64_t)fmin(fmax(wait, BUSY_LEAST), BUSY_MOST);
}

enum dealer_answer dealer_issue_batch(struct dealer *dealer, const struct dealer_request *request,
                                      struct made_batch *batch, double now,
                                      struct leased_batch *leased, uint64_t *detail) {
    struct error err = {0};
    if (!batch || !batch->ready) {
        *detail = expected_wait(dealer);
        return batch || leases_left(dealer->leases) ? DEALER_BUSY : DEALER_ENDING;
    }
    uint32_t from = batch->leased, left = batch->drawn.places.count - from;
    uint32_t n = request->samples < left ? request->samples : left;
    const struct proto_samples samples = made_batch_samples(dealer, batch);
    *leased = (struct leased_batch){
        .drawn = batch->drawn,
        .buffer = batch->buffer,
        .samples = proto_samples_part(&samples, from, n),
    };
    leased->drawn.places = (struct range){batch->drawn.places.first + from, n};
    if (leases_issue(dealer->leases, request->session, &leased->drawn, now, &leased->lease, &err)) {
        *detail = BUSY_MOST;
        return DEALER_BUSY;
    }
    buffer_hold(leased->buffer);
    batch->slot = (struct round_slot){0};
    dealer->leased += n;
    queue_lease_out(dealer, batch, n);
    return DEALER_ISSUED;
}

static enum dealer_answer answer_request(struct dealer *dealer,
                                         const struct dealer_request *request, double now,
                                         struct leased_batch *leased, uint64_t *detail) {
    if (dealer->err.status)
        return DEALER_FAILED;
    if (leases_done(dealer->leases))
        return DEALER_ALL_OVER;
    *detail = leases_epoch(dealer->leases);
    if (request->epoch < *detail)
        return DEALER_EPOCH_OVER;
    *detail = BUSY_LEAST;
    if (request->samples == 0)
        return DEALER_BUSY;
    if (dealer->options.rounds)
        return dealer_issue_in_round(dealer, request, now, leased, detail);
    return dealer_issue_batch(dealer, request, queue_first(dealer), now, leased, detail);
}

enum dealer_answer dealer_issue(struct dealer *dealer, const struct dealer_request *request,
                                double now, struct leased_batch *leased, uint64_t *detail) {
    pthread_mutex_lock(&dealer->lock);
    enum dealer_answer answer = answer_request(dealer, request, now, leased, detail);
    pthread_mutex_unlock(&dealer->lock);
    return answer;
}

void dealer_release(struct dealer *dealer, struct buffer *buffer) {
    buffer_drop(buffer);
    pthread_mutex_lock(&dealer->lock);
    if (dealer->queue.no_memory)
        pthread_cond_signal(&dealer->room);
    pthread_mutex_unlock(&dealer->lock);
}
