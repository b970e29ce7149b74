#include "core/turn.h"

void turn_init(struct turn *turn) {
    *turn = (struct turn){.next = 0};
    pthread_mutex_init(&turn->lock, NULL);
    pthread_cond_init(&turn->moved, NULL);
}

void turn_free(struct turn *turn) {
    pthread_cond_destroy(&turn->moved);
    pthread_mutex_destroy(&turn->lock);
}

bool turn_begin(struct turn *turn, uint64_t number) {
    pthread_mutex_lock(&turn->lock);
    while (turn->next != number && !turn->broken)
        pthread_cond_wait(&turn->moved, &turn->lock);
    bool mine = !turn->broken;
    pthread_mutex_unlock(&turn->lock);
    return mine;
}

void turn_end(struct turn *turn) {
    pthread_mutex_lock(&turn->lock);
    turn->next++;
    pthread_cond_broadcast(&turn->moved);
    pthread_mutex_unlock(&turn->lock);
}

void turn_break(struct turn *turn) {
    pthread_mutex_lock(&turn->lock);
    turn->broken = true;
    pthread_cond_broadcast(&turn->moved);
    pthread_mutex_unlock(&turn->lock);
}
