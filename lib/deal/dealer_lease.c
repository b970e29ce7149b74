// What becomes of leases: they are finished, or their places come back to be handed out
// again. And the cursor, which is the account of those that are finished.
#include <string.h>

#include "core/mem.h"
#include "deal/dealer_internal.h"
#include "proto/proto.h"

// An epoch may have ended, or places have come back: the makers look.
static void unlock_changed(struct dealer *dealer) {
    queue_remove_void(dealer);
    pthread_cond_broadcast(&dealer->room);
    pthread_mutex_unlock(&dealer->lock);
}

bool dealer_finish(struct dealer *dealer, uint64_t session, uint64_t number, double now,
                   uint32_t *epoch, struct range *places) {
    pthread_mutex_lock(&dealer->lock);
    uint32_t present = leases_epoch(dealer->leases);
    bool open = leases_finish(dealer->leases, session, number, now, epoch, places);
    if (leases_epoch(dealer->leases) != present)
        unlock_changed(dealer);
    else
        pthread_mutex_unlock(&dealer->lock);
    return open;
}

uint32_t dealer_take_back(struct dealer *dealer, uint64_t session, uint64_t number) {
    uint32_t places = leases_return(dealer->leases, session, number);
    if (places > 0)
        pthread_cond_broadcast(&dealer->room);
    return places;
}

// Its slot in the round is not open again: the step went on without these places, which go
// to a later one.
uint32_t dealer_return(struct dealer *dealer, uint64_t session, uint64_t number) {
    pthread_mutex_lock(&dealer->lock);
    uint32_t places = dealer_take_back(dealer, session, number);
    pthread_mutex_unlock(&dealer->lock);
    return places;
}

uint64_t dealer_lose_rest(struct dealer *dealer, uint64_t session,
                          const struct proto_lease_id *held, size_t count) {
    pthread_mutex_lock(&dealer->lock);
    for (size_t i = 0; i < count; i++)
        leases_keep(dealer->leases, session, held[i].lease);
    uint64_t places = leases_lose_rest(dealer->leases, session);
    if (places > 0)
        pthread_cond_broadcast(&dealer->room);
    pthread_mutex_unlock(&dealer->lock);
    return places;
}

void dealer_gone(struct dealer *dealer, uint64_t session) {
    pthread_mutex_lock(&dealer->lock);
    leases_gone(dealer->leases, session);
    rounds_gone(&dealer->rounds, session);
    dealer_free_slots(dealer);
    unlock_changed(dealer);
}

uint64_t dealer_expire(struct dealer *dealer, double now, double *next) {
    pthread_mutex_lock(&dealer->lock);
    uint64_t places = leases_expire(dealer->leases, now, next);
    unlock_changed(dealer);
    return places;
}

void dealer_paused(struct dealer *dealer, double seconds) {
    pthread_mutex_lock(&dealer->lock);
    leases_paused(dealer->leases, seconds);
    pthread_mutex_unlock(&dealer->lock);
}

uint64_t dealer_session(struct dealer *dealer, size_t index) {
    pthread_mutex_lock(&dealer->lock);
    uint64_t session = leases_session(dealer->leases, index);
    pthread_mutex_unlock(&dealer->lock);
    return session;
}

void dealer_rules(struct dealer *dealer, const struct lease_rules *rules) {
    pthread_mutex_lock(&dealer->lock);
    leases_rules(dealer->leases, rules);
    unlock_changed(dealer);
}

struct range *dealer_cursor(struct dealer *dealer, uint64_t *seed, uint32_t *epoch, size_t *count) {
    pthread_mutex_lock(&dealer->lock);
    const struct ranges *cursor = leases_cursor(dealer->leases);
    struct range *copy = mem_array(cursor->count + 1, sizeof *copy);
    if (copy && cursor->count > 0)
        memcpy(copy, cursor->at, cursor->count * sizeof *copy);
    *seed = dealer->seed;
    *epoch = leases_epoch(dealer->leases);
    *count = cursor->count;
    pthread_mutex_unlock(&dealer->lock);
    return copy;
}

int dealer_set_cursor(struct dealer *dealer, uint64_t seed, uint32_t epoch,
                      const struct range *finished, size_t count, struct error *err) {
    pthread_mutex_lock(&dealer->lock);
    int status = leases_set_cursor(dealer->leases, epoch, finished, count, err);
    if (!status) {
        dealer->seed = seed;
        rounds_clear(&dealer->rounds);
    }
    unlock_changed(dealer);
    return status;
}
