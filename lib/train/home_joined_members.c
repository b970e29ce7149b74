// The members of a mini-batch, and how their rates go together.
#include "core/phaser.h"
#include "train/home_joined_internal.h"

// Expresses all rates as factors of the largest.
static void share_rates(struct joined *joined, int members) {
    float most = 0, sum = 0;
    for (int m = 0; m < members; m++)
        most = joined->members[m]->rate > most ? joined->members[m]->rate : most;
    for (int m = 0; m < members; m++) {
        struct joined_thread *member = joined->members[m];
        member->step = most;
        member->factor = most > 0 ? member->rate / most : 1;
        sum += member->factor;
    }
    for (int m = 0; m < members; m++)
        joined->members[m]->decays = sum;
}

void joined_number(void *self) {
    struct joined *joined = self;
    int members = 0, rows = 0;
    for (int i = 0; i < joined->config.threads; i++) {
        struct joined_thread *member = &joined->states[i];
        if (!phaser_has(joined->phaser, i))
            continue;
        member->place = members;
        member->row = rows;
        rows += member->samples;
        joined->members[members++] = member;
    }
    for (int m = 0; m < members; m++) {
        joined->members[m]->members = members;
        joined->members[m]->rows = rows;
    }
    share_rates(joined, members);
}

void joined_enter(struct home *home, int thread, int samples, float rate) {
    struct joined *joined = (struct joined *)home;
    struct joined_thread *member = &joined->states[thread];
    member->samples = samples;
    member->rate = rate;
    member->members = 0;
    member->due = true;
    phaser_enter(joined->phaser, thread);
}

bool joined_begin_pass(struct joined *joined, int thread) {
    struct joined_thread *member = &joined->states[thread];
    if (member->due)
        phaser_begin(joined->phaser, thread);
    member->due = false;
    return member->members > 1;
}

void joined_leave(struct home *home, int thread) {
    struct joined *joined = (struct joined *)home;
    phaser_leave(joined->phaser, thread);
    joined->states[thread].members = 0;
}

bool joined_meet(struct joined *joined, struct joined_thread *member) {
    if (!phaser_meet(joined->phaser))
        member->members = 0;
    return member->members > 1;
}
