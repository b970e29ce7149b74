// Sets of places, beside a plain table of which places are in.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/random.h"
#include "deal/ranges.h"

enum { PLACES = 40, ROUNDS = 3000 };

struct both {
    struct ranges ranges;
    bool in[PLACES];
};

// Ascending, disjoint, never touching, and of the same places.
static void check_same(struct tap *tap, const struct both *both) {
    bool in[PLACES] = {false};
    uint32_t behind = 0;
    int places = 0;
    for (size_t i = 0; i < both->ranges.count; i++) {
        struct range range = both->ranges.at[i];
        CHECK(tap, range.count > 0 && (i == 0 || range.first > behind));
        behind = range.first + range.count;
        CHECK(tap, behind <= PLACES);
        for (uint32_t p = range.first; p < behind && p < PLACES; p++)
            in[p] = true;
    }
    for (int p = 0; p < PLACES; p++) {
        CHECK_INT(tap, in[p], both->in[p]);
        places += both->in[p];
    }
    CHECK_INT(tap, ranges_places(&both->ranges), places);
}

static struct range draw(struct random *random) {
    uint32_t first = random_below(random, PLACES);
    return (struct range){first, random_below(random, PLACES - first + 1)};
}

static void add(struct tap *tap, struct both *both, struct range range) {
    CHECK(tap, ranges_reserve(&both->ranges, both->ranges.count + 1));
    ranges_add(&both->ranges, range);
    for (uint32_t i = range.first; i < range.first + range.count; i++)
        both->in[i] = true;
}

static void take(struct tap *tap, struct both *both, uint32_t most) {
    uint32_t first = 0, n = 0;
    while (first < PLACES && !both->in[first])
        first++;
    while (n < most && first + n < PLACES && both->in[first + n])
        both->in[first + n++] = false;
    struct range taken = {0};
    CHECK_INT(tap, ranges_take(&both->ranges, most, &taken), n > 0);
    CHECK_INT(tap, taken.count, n);
    CHECK(tap, n == 0 || taken.first == first);
}

static void test_random(struct tap *tap) {
    TEST(tap, "random sets have the places that were added and not taken", {
        struct random random = random_stream(8, 0, 0);
        struct both both = {0};
        for (int i = 0; i < ROUNDS; i++) {
            struct range range = draw(&random);
            if (random_below(&random, 2))
                add(tap, &both, (struct range){range.first, range.count < 4 ? range.count : 3});
            else
                take(tap, &both, random_below(&random, 5));
            check_same(tap, &both);
        }
        ranges_clear(&both.ranges);
        CHECK_INT(tap, ranges_places(&both.ranges), 0);
        ranges_free(&both.ranges);
        CHECK(tap, !both.ranges.at && both.ranges.room == 0);
    });
    TEST(tap, "ranges may reach to the last place that there can be", {
        struct ranges ranges = {0};
        CHECK(tap, ranges_reserve(&ranges, 2));
        ranges_add(&ranges, (struct range){UINT32_MAX - 4, 4});
        CHECK_INT(tap, ranges_places(&ranges), 4);
        ranges_add(&ranges, (struct range){0, UINT32_MAX - 4});
        CHECK_INT(tap, ranges.count, 1);
        CHECK_INT(tap, ranges_places(&ranges), UINT32_MAX);
        ranges_free(&ranges);
    });
}

static void test_room(struct tap *tap) {
    TEST(tap, "room grows by doubling at least, and is kept when it is enough", {
        struct ranges ranges = {0};
        CHECK(tap, ranges_reserve(&ranges, 10) && ranges.room == 10);
        CHECK(tap, ranges_reserve(&ranges, 10) && ranges.room == 10);
        CHECK(tap, ranges_reserve(&ranges, 11) && ranges.room == 20);
        CHECK(tap, ranges_reserve(&ranges, 50) && ranges.room == 50);
        ranges_free(&ranges);
    });
}

int main(void) {
    struct tap tap = {0};
    test_random(&tap);
    test_room(&tap);
    return tap_done(&tap);
}
