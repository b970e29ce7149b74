// Threads that meet, come and go.
#include <pthread.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/phaser.h"
#include "core/random.h"

enum { MEMBERS = 4, ROUNDS = 3000, MEETINGS = 3 };

struct scene {
    struct phaser *phaser;
    // Written when a round begins, read in it: races are for the thread sanitizer to find.
    int round;
    bool in[MEMBERS];
    int largest, alone;
    // Each by one member, read by others behind the next meeting.
    int at[MEMBERS];
};

struct member {
    struct scene *scene;
    int index;
    pthread_t thread;
    int rounds, whole, parted, wrong;
};

static void begun(void *self) {
    struct scene *s = self;
    int in = 0;
    s->round++;
    for (int i = 0; i < MEMBERS; i++)
        in += s->in[i] = phaser_has(s->phaser, i);
    s->largest = in > s->largest ? in : s->largest;
    s->alone += in == 1;
}

// Whether all who began this round have said so.
static bool all_said(const struct scene *s, int what) {
    bool all = true;
    for (int i = 0; i < MEMBERS; i++)
        all &= !s->in[i] || s->at[i] == what;
    return all;
}

// One round; leaves before meeting number `last`.
static void round_of(struct member *member, int last) {
    struct scene *s = member->scene;
    phaser_enter(s->phaser, member->index);
    phaser_begin(s->phaser, member->index);
    int round = s->round;
    member->rounds++;
    for (int m = 0; m < MEETINGS; m++) {
        if (m == last) {
            phaser_leave(s->phaser, member->index);
            return;
        }
        s->at[member->index] = round * MEETINGS + m;
        if (!phaser_meet(s->phaser)) {
            member->parted++;
            return; // as all others do
        }
        member->wrong += !s->in[member->index] || s->round != round;
        member->wrong += !all_said(s, round * MEETINGS + m);
        phaser_meet(s->phaser);
        member->whole++;
    }
}

static void *come_and_go(void *self) {
    struct member *member = self;
    struct random random = random_stream(5, (uint64_t)member->index, 0);
    for (int i = 0; i < ROUNDS; i++) {
        round_of(member, (int)random_below(&random, 20));
        if (random_below(&random, 8) == 0)
            phaser_leave(member->scene->phaser, member->index);
        if (random_below(&random, 16) == 0) { // comes, but does not begin
            phaser_enter(member->scene->phaser, member->index);
            phaser_leave(member->scene->phaser, member->index);
        }
    }
    phaser_leave(member->scene->phaser, member->index);
    phaser_leave(member->scene->phaser, member->index); // is out
    return NULL;
}

static void test_all(struct tap *tap) {
    TEST(tap, "who is in is waited for, who is out is not, whatever the order", {
        struct scene s = {0};
        struct member members[MEMBERS];
        s.phaser = phaser_open(MEMBERS, begun, &s);
        for (int i = 0; i < MEMBERS; i++) {
            members[i] = (struct member){.scene = &s, .index = i};
            phaser_enter(s.phaser, i); // so that the first round is that of all
        }
        for (int i = 0; i < MEMBERS; i++)
            CHECK_INT(tap, pthread_create(&members[i].thread, NULL, come_and_go, &members[i]), 0);
        int whole = 0, parted = 0;
        for (int i = 0; i < MEMBERS; i++) {
            pthread_join(members[i].thread, NULL);
            CHECK_INT(tap, members[i].rounds, ROUNDS);
            CHECK_INT(tap, members[i].wrong, 0);
            CHECK(tap, !phaser_has(s.phaser, i));
            whole += members[i].whole, parted += members[i].parted;
        }
        CHECK(tap, whole > 0);
        CHECK(tap, parted > 0);
        CHECK_INT(tap, s.largest, MEMBERS);
        phaser_close(s.phaser);
    });
    TEST(tap, "one alone waits for nobody", {
        struct scene s = {0};
        struct member member = {.scene = &s, .index = 2};
        s.phaser = phaser_open(MEMBERS, begun, &s);
        for (int i = 0; i < 3; i++)
            round_of(&member, MEETINGS);
        CHECK_INT(tap, s.alone, 3);
        CHECK_INT(tap, member.whole, 3 * MEETINGS);
        CHECK(tap, phaser_has(s.phaser, 2) && !phaser_has(s.phaser, 0));
        phaser_close(s.phaser);
    });
}

int main(void) {
    struct tap tap = {0};
    test_all(&tap);
    return tap_done(&tap);
}
