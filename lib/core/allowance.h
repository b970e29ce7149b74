// So much of something for all threads together, such as memory: who wants more than is left waits,
// in the order of asking, so that who wants much is not passed over for ever.
#ifndef ADAM_CORE_ALLOWANCE_H
#define ADAM_CORE_ALLOWANCE_H

#include <pthread.h>
#include <stdint.h>

struct allowance {
    pthread_mutex_t lock; // of all below
    pthread_cond_t given;
    uint64_t most, used;
    uint64_t asked, served; // how many have asked, and got it
};

void allowance_open(struct allowance *a, uint64_t most);
void allowance_close(struct allowance *a);
// Waits until there is so much, or all of it for who wants more than there is. What it took, for
// allowance_give.
uint64_t allowance_take(struct allowance *a, uint64_t wanted);
void allowance_give(struct allowance *a, uint64_t taken);

#endif
