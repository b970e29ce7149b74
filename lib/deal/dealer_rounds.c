// To whom batches go where all workers share every step (deal/rounds.h): each is kept for a
// slot in the round of a step, and leased to who comes for it.
#include "core/error.h"
#include "deal/dealer_internal.h"

enum { BUSY_TURN = 5 }; // milliseconds, until a round is opened, or a member is known

static struct made_batch *first_free(const struct dealer *dealer) {
    return queue_find_slot(dealer, (struct round_slot){0});
}

void dealer_free_slots(struct dealer *dealer) {
    struct made_batch *batch;
    TAILQ_FOREACH(batch, &dealer->queue.batches, others) {
        const struct round_member *member = rounds_member(&dealer->rounds, batch->slot.session);
        if (batch->slot.session > 0 && (!member || member->asked > batch->slot.step))
            batch->slot = (struct round_slot){0};
    }
}

// Batches go to the slots that are open, in order. Behind the last of the epoch there are
// none for the rest of the round.
static void fill_slots(struct dealer *dealer) {
    struct round_slot slot;
    while (rounds_first(&dealer->rounds, &slot)) {
        struct made_batch *batch = first_free(dealer);
        if (!batch)
            break;
        batch->slot = slot;
        rounds_fill(&dealer->rounds);
    }
    if (!leases_left(dealer->leases))
        rounds_close(&dealer->rounds);
}

// The round of this step, with who is a member now: as soon as the one before has its
// places, and if there are any for it.
static void open_round(struct dealer *dealer, uint64_t step) {
    struct error err = {0};
    struct round_slot slot;
    bool any = first_free(dealer) || leases_left(dealer->leases);
    if (any && !rounds_first(&dealer->rounds, &slot) && !rounds_open(&dealer->rounds, step, &err))
        fill_slots(dealer);
}

// A request may be repeated whose answer was lost.
static void reopen_lost_slot(struct dealer *dealer, struct round_member *member, uint64_t step) {
    struct error err = {0};
    uint64_t lease = member->lease;
    if (lease == 0 || member->given != step || rounds_again(&dealer->rounds, member, &err))
        return;
    dealer_take_back(dealer, member->session, lease);
}

// Who had places in a step of another data server may have those of the next step here
// before others come for the first one. Places that are with the later round do not come
// back while its members wait for the turns of these: they take them without samples.
// And who got places of a step from another may never come for those that are kept for it
// here: they are free again as soon as anybody knows that the step is over.
enum dealer_answer dealer_issue_in_round(struct dealer *dealer,
                                         const struct dealer_request *request, double now,
                                         struct leased_batch *leased, uint64_t *detail) {
    const struct round_slot slot = {request->step, request->session};
    struct round_member *member = rounds_member(&dealer->rounds, request->session);
    *detail = BUSY_TURN;
    if (!member) {
        dealer->stranger = true;
        return DEALER_BUSY;
    }
    reopen_lost_slot(dealer, member, request->step);
    bool passed = rounds_reach(&dealer->rounds, member, request->step);
    if (rounds_over(&dealer->rounds,
                    request->clock < request->step ? request->clock : request->step) ||
        passed)
        dealer_free_slots(dealer);
    fill_slots(dealer);
    if (!rounds_opened(&dealer->rounds, request->step))
        open_round(dealer, request->step);
    if (!rounds_opened(&dealer->rounds, request->step))
        return rounds_opened_later(&dealer->rounds, request->step) ? DEALER_IDLE : DEALER_BUSY;
    struct made_batch *batch = queue_find_slot(dealer, slot);
    if (!batch && !rounds_is_open(&dealer->rounds, slot))
        return DEALER_IDLE;
    enum dealer_answer answer = dealer_issue_batch(dealer, request, batch, now, leased, detail);
    if (answer == DEALER_ISSUED) {
        member->given = request->step;
        member->lease = leased->lease.number;
    }
    return answer;
}

int dealer_members(struct dealer *dealer, const uint64_t *sessions, size_t count,
                   struct error *err) {
    pthread_mutex_lock(&dealer->lock);
    int status = rounds_members(&dealer->rounds, sessions, count, err);
    dealer_free_slots(dealer);
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
