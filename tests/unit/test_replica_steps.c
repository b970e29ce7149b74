// Steps of replicas that have several sessions (ps/replica_steps.h).
#include <stdlib.h>

#include "../helper/tap.h"
#include "ps/replica_steps.h"

// Sessions 0 and 1 are replica 5, 2 and 3 replica 9; they have the slots of their places.
struct scene {
    struct session session[4];
    struct replica_steps steps;
    uint64_t version;
};

static void open_scene(struct tap *tap, struct scene *s) {
    *s = (struct scene){.version = 1};
    for (uint32_t i = 0; i < 4; i++) {
        s->session[i].number = 100 + i;
        s->session[i].slot = i;
        atomic_store(&s->session[i].replica, i < 2 ? 5 : 9);
        CHECK(tap, replica_steps_room(&s->steps, &s->session[i], 0));
    }
}

static void push(struct scene *s, int session) {
    replica_steps_push(&s->steps, &s->session[session], 0, ++s->version);
}

static uint64_t since(const struct scene *s, uint64_t version) {
    return replica_steps_between(&s->steps, version, s->version);
}

static void test_whole(struct tap *tap) {
    struct scene s = {.version = 1};
    for (int i = 0; i < 3; i++)
        push(&s, 0);
    CHECK_INT(tap, since(&s, 1), 3);
    CHECK_INT(tap, since(&s, 4), 0);
    replica_steps_free(&s.steps);
}

static void test_parts(struct tap *tap) {
    struct scene s;
    open_scene(tap, &s);
    for (int i = 0; i < 4; i++)
        push(&s, i);
    CHECK_INT(tap, since(&s, 1), 2);
    CHECK_INT(tap, since(&s, 2), 1); // the first one's other half went on with a step
    CHECK_INT(tap, since(&s, 3), 1);
    CHECK_INT(tap, since(&s, 5), 0);
    for (int i = 0; i < 6; i++)
        push(&s, i < 3 ? 0 : 1); // one is ahead
    CHECK_INT(tap, since(&s, 5), 3);
    replica_steps_free(&s.steps);
}

// A worker that joins anew has another number, and its pushes are no older for that.
static void test_anew(struct tap *tap) {
    struct scene s;
    open_scene(tap, &s);
    for (int i = 0; i < 20; i++)
        push(&s, i % 2);
    uint64_t before = s.version;
    for (int i = 0; i < 2; i++)
        s.session[i].number = 200 + (uint64_t)i;
    for (int i = 0; i < 2; i++) {
        CHECK(tap, replica_steps_room(&s.steps, &s.session[i], 0));
        push(&s, i);
    }
    CHECK_INT(tap, s.steps.part_count, 4); // those of the ones before are gone
    CHECK(tap, since(&s, before) <= 1);
    before = s.version;
    for (int i = 0; i < 20; i++)
        push(&s, i % 2);
    CHECK_INT(tap, since(&s, before), 10);
    replica_steps_free(&s.steps);
}

// As a worker pushes of which some layers go as factors.
static void push_place(struct tap *tap, struct scene *s, int session, uint32_t place) {
    CHECK(tap, replica_steps_room(&s->steps, &s->session[session], place));
    replica_steps_push(&s->steps, &s->session[session], place, ++s->version);
}

static uint64_t behind(const struct scene *s, int session, uint32_t place, uint64_t version) {
    return replica_steps_behind(&s->steps, &s->session[session], place, version, s->version);
}

static void test_places(struct tap *tap) {
    struct scene s;
    open_scene(tap, &s);
    for (uint32_t i = 0; i < 30; i++)
        push_place(tap, &s, 2, 100 * (i % 3));
    CHECK_INT(tap, since(&s, 1), 10);
    CHECK_INT(tap, since(&s, 28), 1);
    for (uint32_t i = 0; i < 3; i++) { // in another order, and one of another replica between
        CHECK_INT(tap, behind(&s, 2, 200 - 100 * i, 31), i > 1);
        push_place(tap, &s, 2, 200 - 100 * i);
        if (i == 1)
            push_place(tap, &s, 0, 0);
    }
    CHECK_INT(tap, since(&s, 31), 2);
    CHECK_INT(tap, behind(&s, 2, 0, 31), 2);
    CHECK_INT(tap, behind(&s, 2, 0, s.version), 0);
    replica_steps_free(&s.steps);
}

static void test_many_places(struct tap *tap) {
    struct scene s;
    open_scene(tap, &s);
    for (uint32_t i = 0; i < 2 * PARTS_MOST; i++)
        push_place(tap, &s, 0, i);
    CHECK(tap, s.steps.part_count <= 4 * PARTS_MOST);
    CHECK_INT(tap, since(&s, 1), PARTS_MOST + 1);
    replica_steps_free(&s.steps);
}

static void test_elsewhere(struct tap *tap) {
    struct scene s;
    open_scene(tap, &s);
    push(&s, 0), push(&s, 1);
    s.version += 7; // by another server
    CHECK_INT(tap, since(&s, 3), 7);
    push(&s, 0), push(&s, 1);
    CHECK_INT(tap, since(&s, 10), 1);
    CHECK_INT(tap, since(&s, 3), 8);
    replica_steps_free(&s.steps);
}

static void test_old(struct tap *tap) {
    struct scene s;
    open_scene(tap, &s);
    for (int i = 0; i < 10 * STEPS_KEPT; i++)
        push(&s, i % 2);
    CHECK_INT(tap, since(&s, s.version - 100), 50);
    CHECK_INT(tap, since(&s, s.version - STEPS_KEPT + 2), STEPS_KEPT / 2 - 1);
    // What is not known any more is taken for steps: no push is less stale than it is.
    uint64_t old = since(&s, s.version - 2 * STEPS_KEPT);
    CHECK(tap, old > STEPS_KEPT && old <= 2 * STEPS_KEPT);
    replica_steps_free(&s.steps);
}

int main(void) {
    struct tap tap = {0};
    TEST(&tap, "of workers that have the whole model each push is a step", { test_whole(&tap); });
    TEST(&tap, "pushes of a replica's sessions are one step, also where one is ahead",
         { test_parts(&tap); });
    TEST(&tap, "a session that is new goes on where its replica is", { test_anew(&tap); });
    TEST(&tap, "what a session pushes of a step in parts is one step, and none behind itself",
         { test_places(&tap); });
    TEST(&tap, "of more parts than a model has each push is a step", { test_many_places(&tap); });
    TEST(&tap, "versions that others made are steps", { test_elsewhere(&tap); });
    TEST(&tap, "of the last versions it is exact, of those before not too little",
         { test_old(&tap); });
    return tap_done(&tap);
}
