// To whom batches go where all workers share every step (deal/rounds.h): each is kept for a
// seat in the round of a step, and dealt to who comes for it.
#include "deal/dealer_internal.h"

enum { BUSY_TURN = 5 }; // milliseconds, until a round is opened, or a member is known

static struct made *first_free(const struct dealer *dealer) {
    return pile_of(dealer, (struct seat){0});
}

void deal_free_seats(struct dealer *dealer) {
    struct made *made;
    TAILQ_FOREACH(made, &dealer->pile.batches, others) {
        const struct seated *member = rounds_member(&dealer->rounds, made->seat.session);
        if (made->seat.session > 0 && (!member || member->asked > made->seat.step))
            made->seat = (struct seat){0};
    }
}

// Batches go to the seats that are open, in order. Behind the last of the epoch there are
// none for the rest of the round.
static void fill_seats(struct dealer *dealer) {
    struct seat seat;
    while (rounds_first(&dealer->rounds, &seat)) {
        struct made *made = first_free(dealer);
        if (!made)
            break;
        made->seat = seat;
        rounds_fill(&dealer->rounds);
    }
    if (!leases_left(dealer->leases))
        rounds_close(&dealer->rounds);
}

// The round of this step, with who is a member now: as soon as the one before has its
// places, and if there are any for it.
static void open_round(struct dealer *dealer, uint64_t step) {
    struct error err = {0};
    struct seat seat;
    bool any = first_free(dealer) || leases_left(dealer->leases);
    if (any && !rounds_first(&dealer->rounds, &seat) && !rounds_open(&dealer->rounds, step, &err))
        fill_seats(dealer);
}

// A request may be repeated whose answer was lost.
static void take_again(struct dealer *dealer, struct seated *member, uint64_t step) {
    struct error err = {0};
    uint64_t lease = member->lease;
    if (lease == 0 || member->given != step || rounds_again(&dealer->rounds, member, &err))
        return;
    deal_take_back(dealer, member->session, lease);
}

// Who had places in a step of another data server may have those of the next step here
// before others come for the first one. Places that are with the later round do not come
// back while its members wait for the turns of these: they take them without samples.
// And who got places of a step from another may never come for those that are kept for it
// here: they are free again as soon as anybody knows that the step is over.
enum deal_answer deal_round(struct dealer *dealer, const struct deal_wish *wish, double now,
                            struct deal *deal, uint64_t *detail) {
    const struct seat seat = {wish->step, wish->session};
    struct seated *member = rounds_member(&dealer->rounds, wish->session);
    *detail = BUSY_TURN;
    if (!member) {
        dealer->stranger = true;
        return DEAL_BUSY;
    }
    take_again(dealer, member, wish->step);
    bool passed = rounds_reach(&dealer->rounds, member, wish->step);
    if (rounds_over(&dealer->rounds, wish->clock < wish->step ? wish->clock : wish->step) || passed)
        deal_free_seats(dealer);
    fill_seats(dealer);
    if (!rounds_opened(&dealer->rounds, wish->step))
        open_round(dealer, wish->step);
    if (!rounds_opened(&dealer->rounds, wish->step))
        return rounds_opened_later(&dealer->rounds, wish->step) ? DEAL_IDLE : DEAL_BUSY;
    struct made *made = pile_of(dealer, seat);
    if (!made && !rounds_is_open(&dealer->rounds, seat))
        return DEAL_IDLE;
    enum deal_answer answer = deal_made(dealer, wish, made, now, deal, detail);
    if (answer == DEAL_DONE) {
        member->given = wish->step;
        member->lease = deal->lease.number;
    }
    return answer;
}

int dealer_members(struct dealer *dealer, const uint64_t *sessions, size_t count,
                   struct error *err) {
    pthread_mutex_lock(&dealer->lock);
    int status = rounds_members(&dealer->rounds, sessions, count, err);
    deal_free_seats(dealer);
    pthread_mutex_unlock(&dealer->lock);
    return status;
}

bool dealer_met_stranger(struct dealer *dealer) {
    pthread_mutex_lock(&dealer->lock);
    bool met = dealer->stranger;
    dealer->stranger = false;
    pthread_mutex_unlock(&dealer->lock);
    return met;
}
