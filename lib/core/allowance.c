#include "core/allowance.h"

void allowance_open(struct allowance *a, uint64_t most) {
    *a = (struct allowance){.most = most};
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->given, NULL);
}

void allowance_close(struct allowance *a) {
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->given);
}

uint64_t allowance_take(struct allowance *a, uint64_t wanted) {
    uint64_t taken = wanted < a->most ? wanted : a->most;
    pthread_mutex_lock(&a->lock);
    uint64_t place = a->asked++;
    while (place != a->served || taken > a->most - a->used)
        pthread_cond_wait(&a->given, &a->lock);
    a->used += taken;
    a->served++;
    pthread_mutex_unlock(&a->lock);
    pthread_cond_broadcast(&a->given); // whose turn it is now may have its share at once
    return taken;
}

void allowance_give(struct allowance *a, uint64_t taken) {
    pthread_mutex_lock(&a->lock);
    a->used -= taken;
    pthread_mutex_unlock(&a->lock);
    pthread_cond_broadcast(&a->given);
}
