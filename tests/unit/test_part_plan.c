// Which server writes which tensors of a checkpoint in parts.
#include <stdlib.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "role/controller/part_plan.h"
#include "run/checkpoint_tensors.h"

enum { BUCKETS = 16, SERVERS = 4 };

// Tensors of 1200000 and 1000, 500000 and 500, 300000 and 600, 6000 and 10 floats.
static const char model_text[] = "input 1x1x1200\ndense a units=1000\ndense b units=500\n"
                                 "dense c units=600\nsoftmax d units=10\n";
static const size_t sizes[] = {1200000, 1000, 500000, 500, 300000, 600, 6000, 10};
enum { TENSORS = 8 };

struct rig {
    struct model *model;
    struct proto_server servers[SERVERS];
    struct proto_bucket buckets[BUCKETS];
    struct proto_routes routes;
};

// Bucket i is that of server members[i % count], of 10, 11, ...
static void rig_init(struct rig *rig, const char *text, uint32_t servers, const uint32_t *members,
                     size_t count) {
    *rig = (struct rig){.routes = {.buckets = {rig->buckets, BUCKETS}}};
    if (model_parse(&rig->model, "a.net", text, NULL, 0, NULL))
        abort();
    for (uint32_t i = 0; i < servers; i++)
        rig->servers[i].member = 10 + i;
    for (uint32_t i = 0; i < BUCKETS; i++)
        rig->buckets[i] = (struct proto_bucket){1, members[i % count], PROTO_NOBODY, PROTO_NOBODY};
    rig->routes.servers = proto_list(rig->servers, servers);
}

static size_t floats_of(const struct planned_part *part) {
    size_t floats = 0;
    for (size_t i = 0; i < part->count; i++)
        floats += sizes[part->tensors[i]];
    return floats;
}

// Each tensor is in one part, and those of a part ascend.
static void check_whole(struct tap *tap, const struct part_plan *plan, size_t tensors) {
    size_t seen = 0, count = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        CHECK(tap, plan->parts[i].count > 0);
        for (size_t t = 0; t < plan->parts[i].count; t++, count++) {
            CHECK(tap, t == 0 || plan->parts[i].tensors[t] > plan->parts[i].tensors[t - 1]);
            seen |= (size_t)1 << plan->parts[i].tensors[t];
        }
    }
    CHECK_INT(tap, count, tensors);
    CHECK_INT(tap, seen, ((size_t)1 << tensors) - 1);
}

static void test_balance(struct tap *tap) {
    TEST(tap, "the largest tensor is alone, and the others make two parts of about one size", {
        static const uint32_t members[] = {10, 11, 12};
        struct part_plan plan;
        struct rig rig;
        rig_init(&rig, model_text, 3, members, 3);
        CHECK_INT(tap, part_plan_make(&plan, rig.model, &rig.routes, NULL), STATUS_OK);
        check_whole(tap, &plan, TENSORS);
        CHECK_INT(tap, plan.count, 3);
        size_t parts[3];
        for (uint32_t i = 0; i < 3; i++)
            parts[i] = floats_of(&plan.parts[i]);
        CHECK_INT(tap, parts[0] + parts[1] + parts[2], 2008110);
        for (uint32_t i = 0; i < 3; i++)
            CHECK(tap, parts[i] == 1200000 || parts[i] == 500000 || parts[i] == 308110);
        part_plan_free(&plan);
        model_free(rig.model);
    });
    TEST(tap, "servers that are no primary write nothing, nor those for which no tensor is left", {
        static const uint32_t members[] = {11, 13};
        struct part_plan plan;
        struct rig rig;
        rig_init(&rig, model_text, 4, members, 2);
        CHECK_INT(tap, part_plan_make(&plan, rig.model, &rig.routes, NULL), STATUS_OK);
        check_whole(tap, &plan, TENSORS);
        CHECK_INT(tap, plan.count, 2);
        CHECK_INT(tap, plan.parts[0].server->member, 11);
        CHECK_INT(tap, plan.parts[1].server->member, 13);
        part_plan_free(&plan);
        model_free(rig.model);
        static const uint32_t all[] = {10, 11, 12, 13};
        rig_init(&rig, "input 1x1x2\nsoftmax units=2\n", 4, all, 4);
        CHECK_INT(tap, part_plan_make(&plan, rig.model, &rig.routes, NULL), STATUS_OK);
        check_whole(tap, &plan, 2);
        CHECK_INT(tap, plan.count, 2);
        part_plan_free(&plan);
        model_free(rig.model);
    });
}

static void test_closeness(struct tap *tap) {
    TEST(tap, "of equals the one that has most of a tensor writes it", {
        static const uint32_t most[] = {12};
        static const uint32_t members[] = {10, 11, 12};
        struct part_plan plan;
        struct rig rig;
        rig_init(&rig, model_text, 3, members, 3);
        // The first tensor's shards, 0 to 4, are all of server 12.
        for (uint32_t shard = 0; shard < 5; shard++)
            rig.buckets[proto_bucket_of(shard, BUCKETS)].primary = most[0];
        CHECK_INT(tap, part_plan_make(&plan, rig.model, &rig.routes, NULL), STATUS_OK);
        check_whole(tap, &plan, TENSORS);
        CHECK_INT(tap, plan.parts[2].server->member, 12);
        CHECK_INT(tap, plan.parts[2].tensors[0], 0);
        CHECK_INT(tap, plan.parts[2].count, 1);
        part_plan_free(&plan);
        model_free(rig.model);
    });
}

static void test_refusal(struct tap *tap) {
    TEST(tap, "routes without servers, or to servers that are not in them, make no plan", {
        static const uint32_t strangers[] = {99};
        struct part_plan plan;
        struct rig rig;
        struct error err = {0};
        rig_init(&rig, model_text, 3, strangers, 1);
        CHECK_INT(tap, part_plan_make(&plan, rig.model, &rig.routes, &err), STATUS_UNAVAILABLE);
        CHECK_TEXT(tap, err.text, "no parameter server has the model");
        rig.routes.servers.count = 0;
        CHECK_INT(tap, part_plan_make(&plan, rig.model, &rig.routes, &err), STATUS_UNAVAILABLE);
        model_free(rig.model);
    });
    TEST(tap, "when memory is out there is no plan, and nothing is left", {
        static const uint32_t members[] = {10, 11, 12};
        struct rig rig;
        rig_init(&rig, model_text, 3, members, 3);
        long live = heap_live();
        bool failed = HEAP_FAILS;
        for (int n = 0; failed; n++) {
            struct part_plan plan;
            heap_fail_after(n);
            failed = part_plan_make(&plan, rig.model, &rig.routes, NULL) != STATUS_OK;
            heap_fail_after(-1);
            part_plan_free(&plan);
            CHECK_INT(tap, heap_live(), live);
        }
        model_free(rig.model);
    });
}

int main(void) {
    struct tap tap = {0};
    test_balance(&tap);
    test_closeness(&tap);
    test_refusal(&tap);
    return tap_done(&tap);
}
