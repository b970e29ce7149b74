// A share of the simulated schedules (tests/sim): whole clusters, in which everything may fail.
//   SIM_SCHEDULES  how many (10000)
//   SIM_SEED       the first of them (1)
#include <inttypes.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "../sim/sim.h"

enum { GROUPS = 10 };

static uint64_t setting(const char *name, uint64_t usual) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : usual;
}

static void test_schedules(struct tap *tap, struct world *world) {
    uint64_t schedules = setting("SIM_SCHEDULES", 10000), seed = setting("SIM_SEED", 1), pushes = 0;
    for (uint64_t group = 0; group < GROUPS && !*world->fault; group++) {
        uint64_t end = seed + (schedules + GROUPS - 1) / GROUPS;
        TEST(tap, "clusters that fail keep what they acknowledged, and go on", {
            for (; seed < end && world_run(world, seed, false); seed++)
                pushes += world->acknowledged;
            if (*world->fault)
                FAIL(tap, "%s", world->fault);
        });
    }
    TEST(tap, "and their pushes were acknowledged", { CHECK(tap, pushes >= schedules); });
}

// Each showed a defect once.
static void test_known_schedules(struct tap *tap, struct world *world) {
    static const uint64_t seeds[] = {
        2059070, // a primary that was replaced and came back counted on values it had not kept
        2069576, // what a leader proposes that is not one any more was taken for what it does
    };
    TEST(tap, "schedules that have shown a defect pass", {
        for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
            if (!world_run(world, seeds[i], false))
                FAIL(tap, "%s", world->fault);
    });
}

int main(void) {
    struct tap tap = {0};
    struct world *world = calloc(1, sizeof *world);
    if (!world)
        abort();
    test_known_schedules(&tap, world);
    test_schedules(&tap, world);
    free(world);
    return tap_done(&tap);
}
