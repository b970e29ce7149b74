// Handing out: of a batch that is made as many samples as are wished for become a deal, of
// one lease. Who comes too early is told when to come again.
#include <math.h>

#include "deal/dealer_internal.h"

enum { BUSY_LEAST = 2, BUSY_MOST = 500 }; // milliseconds

// When a batch will be there, by the makers' speed.
static uint64_t busy_time(const struct dealer *dealer) {
    double rate = dealer->busy_seconds > 0 ? (double)dealer->made / dealer->busy_seconds : 0;
    double wait = rate > 0 ? 1000.0 * dealer->batch / rate : BUSY_LEAST;
    return (uint64_t)fmin(fmax(wait, BUSY_LEAST), BUSY_MOST);
}

enum deal_answer deal_made(struct dealer *dealer, const struct deal_wish *wish, struct made *made,
                           double now, struct deal *deal, uint64_t *detail) {
    struct error err = {0};
    if (!made || !made->ready) {
        *detail = busy_time(dealer);
        return made || leases_left(dealer->leases) ? DEAL_BUSY : DEAL_ENDING;
    }
    uint32_t from = made->dealt, left = made->stretch.places.count - from;
    uint32_t n = wish->samples < left ? wish->samples : left;
    const struct proto_samples samples = made_samples(dealer, made);
    *deal = (struct deal){
        .stretch = made->stretch,
        .buffer = made->buffer,
        .samples = proto_samples_part(&samples, from, n),
    };
    deal->stretch.places = (struct range){made->stretch.places.first + from, n};
    if (leases_issue(dealer->leases, wish->session, &deal->stretch, now, &deal->lease, &err)) {
        *detail = BUSY_MOST;
        return DEAL_BUSY;
    }
    buffer_hold(deal->buffer);
    made->seat = (struct seat){0};
    dealer->dealt += n;
    pile_deal(dealer, made, n);
    return DEAL_DONE;
}

static enum deal_answer deal_locked(struct dealer *dealer, const struct deal_wish *wish, double now,
                                    struct deal *deal, uint64_t *detail) {
    if (dealer->err.status)
        return DEAL_FAILED;
    if (leases_done(dealer->leases))
        return DEAL_NONE;
    *detail = leases_epoch(dealer->leases);
    if (wish->epoch < *detail)
        return DEAL_OVER;
    *detail = BUSY_LEAST;
    if (wish->samples == 0)
        return DEAL_BUSY;
    if (dealer->options.rounds)
        return deal_round(dealer, wish, now, deal, detail);
    return deal_made(dealer, wish, pile_first(dealer), now, deal, detail);
}

enum deal_answer dealer_deal(struct dealer *dealer, const struct deal_wish *wish, double now,
                             struct deal *deal, uint64_t *detail) {
    pthread_mutex_lock(&dealer->lock);
    enum deal_answer answer = deal_locked(dealer, wish, now, deal, detail);
    pthread_mutex_unlock(&dealer->lock);
    return answer;
}

void dealer_release(struct dealer *dealer, struct buffer *buffer) {
    buffer_drop(buffer);
    pthread_mutex_lock(&dealer->lock);
    if (dealer->pile.dry)
        pthread_cond_signal(&dealer->room);
    pthread_mutex_unlock(&dealer->lock);
}
