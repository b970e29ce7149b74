// Which parameter server has which bucket: even shares, the fewest moves, and no bucket without a
// member that has its values.
#include <stdlib.h>

#include "../helper/tap.h"
#include "cluster/partings.h"
#include "core/random.h"

enum { BUCKETS = 1024, SERVERS = 12, SLACK = 20 };

struct rig {
    struct placement placement;
    struct proto_place places[BUCKETS], before[BUCKETS];
    struct placement_server servers[SERVERS];
    uint32_t count;
    uint64_t epoch;
};

static void begin(struct rig *rig, uint32_t copies, uint32_t servers) {
    *rig = (struct rig){.placement = {.copies = copies, .count = BUCKETS}, .count = servers};
    rig->placement.places = rig->places;
    for (uint32_t i = 0; i < servers; i++)
        rig->servers[i] = (struct placement_server){.member = 10 + i, .heard = true};
    placement_assign(&rig->placement, rig->servers, servers, ++rig->epoch);
}

static void add_server(struct rig *rig) {
    uint32_t member = rig->servers[rig->count - 1].member + 1;
    rig->servers[rig->count++] = (struct placement_server){.member = member, .heard = true};
}

static void remove_server(struct rig *rig, uint32_t index) {
    uint32_t member = rig->servers[index].member;
    rig->count--;
    memmove(&rig->servers[index], &rig->servers[index + 1],
            (rig->count - index) * sizeof *rig->servers);
    placement_lose(&rig->placement, member, ++rig->epoch);
}

static bool fill(struct rig *rig) {
    return placement_fill(&rig->placement, rig->servers, rig->count, ++rig->epoch);
}

static bool propose(struct rig *rig, enum proto_change change, uint32_t bucket, uint32_t member) {
    const struct proto_proposal proposal = {
        .change = (uint16_t)change,
        .bucket = bucket,
        .epoch = rig->places[bucket].epoch,
        .primary = rig->places[bucket].primary,
        .member = member,
    };
    return placement_propose(&rig->placement, &proposal, rig->servers, rig->count, ++rig->epoch);
}

// All joiners are complete, until nothing moves any more.
static void finish(struct tap *tap, struct rig *rig) {
    int rounds = 0;
    do {
        for (uint32_t b = 0; b < BUCKETS; b++)
            if (rig->places[b].joiner != PROTO_NOBODY)
                CHECK(tap, propose(rig, PROTO_CHANGE_COMPLETE, b, rig->places[b].joiner));
    } while (fill(rig) && ++rounds < 100);
    CHECK(tap, rounds < 100);
}

static bool has(const struct proto_place *place, uint32_t member) {
    return place->primary == member || place->second == member || place->third == member;
}

static bool differ(const struct proto_place *place) {
    const uint32_t all[] = {place->primary, place->second, place->third, place->joiner};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            if (all[i] == all[k] && all[i] != PROTO_NOBODY)
                return false;
    return place->primary != PROTO_NOBODY;
}

// The difference between the server with the most and that with the fewest, of the roles.
static uint32_t spread(const struct rig *rig, bool primaries) {
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < rig->count; i++) {
        uint32_t n = 0;
        for (uint32_t b = 0; b < BUCKETS; b++)
            n += primaries ? rig->places[b].primary == rig->servers[i].member
                           : has(&rig->places[b], rig->servers[i].member);
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    return most - least;
}

static uint32_t short_of(const struct rig *rig, uint32_t members) {
    uint32_t n = 0;
    for (uint32_t b = 0; b < BUCKETS; b++)
        n += placement_members(&rig->places[b]) != members || !differ(&rig->places[b]);
    return n;
}

// Copies that the servers first..last have and did not have before.
static uint32_t moved_to(const struct rig *rig, uint32_t first, uint32_t last) {
    uint32_t moved = 0;
    for (uint32_t b = 0; b < BUCKETS; b++)
        for (uint32_t member = first; member <= last; member++)
            moved += has(&rig->places[b], member) && !has(&rig->before[b], member);
    return moved;
}

static void test_assign(struct tap *tap, struct rig *rig) {
    TEST(tap, "a new run has equal shares, and copies on different servers", {
        for (uint32_t servers = 1; servers <= SERVERS; servers++)
            for (uint32_t copies = 1; copies <= PLACEMENT_COPIES_MAX; copies++) {
                begin(rig, copies, servers);
                CHECK_INT(tap, short_of(rig, copies < servers ? copies : servers), 0);
                CHECK(tap, spread(rig, true) <= 1);
                CHECK(tap, !fill(rig) || spread(rig, false) > 1);
            }
    });
    TEST(tap, "the secondaries of a server's buckets are spread over all others", {
        begin(rig, 2, 5);
        for (uint32_t i = 1; i < 5; i++) {
            uint32_t n = 0;
            for (uint32_t b = 0; b < BUCKETS; b++)
                n += rig->places[b].primary == 10 && rig->places[b].second == 10 + i;
            CHECK(tap, n > BUCKETS / 5 / 4 - 2);
        }
    });
}

// Buckets whose servers are others than those of the bucket before.
static uint32_t changes(const struct rig *rig) {
    uint32_t n = 0;
    for (uint32_t b = 1; b < BUCKETS; b++)
        n += rig->places[b].primary != rig->places[b - 1].primary ||
             rig->places[b].second != rig->places[b - 1].second ||
             rig->places[b].third != rig->places[b - 1].third;
    return n;
}

// What the controllers agree on names each run of buckets once.
static void test_runs(struct tap *tap, struct rig *rig) {
    TEST(tap, "neighbouring buckets are on the same servers, whoever is lost, comes or drains", {
        for (uint32_t copies = 1; copies <= PLACEMENT_COPIES_MAX; copies++) {
            begin(rig, copies, 5);
            CHECK(tap, changes(rig) < 5 * 4);
            finish(tap, rig);
            if (copies > 1)
                remove_server(rig, 2);
            finish(tap, rig);
            CHECK(tap, changes(rig) < BUCKETS / 16);
            add_server(rig);
            finish(tap, rig);
            CHECK(tap, changes(rig) < BUCKETS / 8);
            rig->servers[1].draining = true;
            finish(tap, rig);
            CHECK(tap, changes(rig) < BUCKETS / 4);
        }
    });
}

static void test_lose(struct tap *tap, struct rig *rig) {
    begin(rig, 3, 6);
    finish(tap, rig);
    memcpy(rig->before, rig->places, sizeof rig->before);
    TEST(tap, "of a server that is gone another member takes over each bucket at once", {
        remove_server(rig, 2);
        for (uint32_t b = 0; b < BUCKETS; b++) {
            CHECK(tap, !has(&rig->places[b], 12));
            CHECK(tap, has(&rig->before[b], rig->places[b].primary));
            CHECK_INT(tap, rig->places[b].epoch == rig->epoch, has(&rig->before[b], 12));
        }
    });
    TEST(tap, "the others get its copies evenly, and nothing else moves", {
        finish(tap, rig);
        CHECK_INT(tap, short_of(rig, 3), 0);
        CHECK(tap, spread(rig, false) <= 1);
        CHECK(tap, spread(rig, true) <= 1);
        CHECK(tap, moved_to(rig, 10, 15) <= BUCKETS * 3 / 6 + SLACK);
    });
    TEST(tap, "a bucket whose only member is gone stays as it is", {
        begin(rig, 1, 2);
        placement_lose(&rig->placement, 10, ++rig->epoch);
        CHECK_INT(tap, rig->places[0].primary, 10);
        CHECK_INT(tap, rig->places[0].epoch, 1);
        rig->servers[0] = rig->servers[--rig->count];
        fill(rig);
        CHECK_INT(tap, rig->places[0].joiner, PROTO_NOBODY);
        CHECK(tap, placement_has(&rig->placement, 10));
    });
    TEST(tap, "while all members of a bucket are silent none is given up", {
        begin(rig, 2, 3);
        CHECK(tap, placement_may_lose(&rig->placement, 10, rig->servers, 3));
        rig->servers[1].heard = false;
        CHECK(tap, !placement_may_lose(&rig->placement, 10, rig->servers, 3));
        rig->servers[2].heard = false;
        CHECK(tap, placement_may_lose(&rig->placement, 99, rig->servers, 3));
    });
}

static void test_come(struct tap *tap, struct rig *rig) {
    TEST(tap, "a server that comes gets its share, and no more moves than that", {
        for (uint32_t copies = 1; copies <= PLACEMENT_COPIES_MAX; copies++) {
            begin(rig, copies, 5);
            finish(tap, rig);
            memcpy(rig->before, rig->places, sizeof rig->before);
            add_server(rig);
            finish(tap, rig);
            CHECK_INT(tap, short_of(rig, copies), 0);
            CHECK(tap, spread(rig, false) <= 1 && spread(rig, true) <= 1);
            CHECK(tap, moved_to(rig, 10, 14) <= SLACK);
        }
    });
    TEST(tap, "a joiner is no member until the primary says that it is complete", {
        begin(rig, 2, 2);
        add_server(rig);
        fill(rig);
        uint32_t b = 0;
        while (rig->places[b].joiner == PROTO_NOBODY)
            b++;
        uint32_t primary = rig->places[b].primary, second = rig->places[b].second;
        placement_lose(&rig->placement, primary, ++rig->epoch);
        CHECK_INT(tap, rig->places[b].primary, second);
        CHECK_INT(tap, rig->places[b].joiner, 12);
        CHECK(tap, !propose(rig, PROTO_CHANGE_TAKE_OVER, b, 12));
        CHECK(tap, propose(rig, PROTO_CHANGE_COMPLETE, b, 12));
        CHECK(tap, rig->places[b].second == 12 && rig->places[b].joiner == PROTO_NOBODY);
    });
}

static void test_drain(struct tap *tap, struct rig *rig) {
    TEST(tap, "the buckets of a draining server move away, and it stays a member until then", {
        for (uint32_t copies = 1; copies <= PLACEMENT_COPIES_MAX; copies++) {
            begin(rig, copies, 5);
            finish(tap, rig);
            rig->servers[1].draining = true;
            fill(rig);
            CHECK(tap, placement_has(&rig->placement, 11));
            CHECK_INT(tap, short_of(rig, copies), 0);
            finish(tap, rig);
            CHECK(tap, !placement_has(&rig->placement, 11));
            CHECK_INT(tap, short_of(rig, copies), 0);
            rig->servers[1] = rig->servers[--rig->count];
            CHECK(tap, spread(rig, false) <= 2);
        }
    });
    TEST(tap, "where no other server is there, it keeps them", {
        begin(rig, 2, 2);
        rig->servers[0].draining = true;
        fill(rig);
        CHECK_INT(tap, short_of(rig, 2), 0);
        CHECK(tap, placement_has(&rig->placement, 10));
    });
}

static void test_propose(struct tap *tap, struct rig *rig) {
    begin(rig, 3, 4);
    struct proto_place *place = &rig->places[0];
    TEST(tap, "a secondary takes over, and the primary is dropped", {
        uint32_t second = place->second, third = place->third;
        CHECK(tap, propose(rig, PROTO_CHANGE_TAKE_OVER, 0, third));
        CHECK_INT(tap, place->primary, third);
        CHECK_INT(tap, place->second, second);
        CHECK_INT(tap, place->third, PROTO_NOBODY);
        CHECK_INT(tap, place->epoch, rig->epoch);
    });
    TEST(tap, "a member that does not answer is dropped, but not the primary", {
        CHECK(tap, !propose(rig, PROTO_CHANGE_DROP, 0, place->primary));
        CHECK(tap, propose(rig, PROTO_CHANGE_DROP, 0, place->second));
        CHECK_INT(tap, placement_members(place), 1);
    });
    TEST(tap, "what is proposed about another epoch, primary or role changes nothing", {
        struct proto_place before = rig->places[1];
        uint32_t b = 1, p = before.primary, second = before.second;
        uint64_t epoch = before.epoch;
        const struct proto_proposal right = {PROTO_CHANGE_TAKE_OVER, b, epoch, p, second};
        const struct proto_proposal wrong[] = {
            {PROTO_CHANGE_TAKE_OVER, b, epoch + 1, p, second},
            {PROTO_CHANGE_TAKE_OVER, b, epoch - 1, p, second},
            {PROTO_CHANGE_TAKE_OVER, b, epoch, second, second},
            {PROTO_CHANGE_TAKE_OVER, b, epoch, p, p},
            {PROTO_CHANGE_TAKE_OVER, b, epoch, p, PROTO_NOBODY},
            {PROTO_CHANGE_TAKE_OVER, b, epoch, p, 77},
            {PROTO_CHANGE_TAKE_OVER, BUCKETS, epoch, p, second},
            {PROTO_CHANGE_COMPLETE, b, epoch, p, second},
            {PROTO_CHANGE_COMPLETE, b, epoch, p, PROTO_NOBODY},
            {PROTO_CHANGE_LAST + 1, b, epoch, p, second},
        };
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            CHECK(tap, !placement_propose(&rig->placement, &wrong[i], rig->servers, 4, 99));
        CHECK(tap, !memcmp(&rig->places[1], &before, sizeof before));
        CHECK(tap, placement_propose(&rig->placement, &right, rig->servers, 4, 99));
    });
}

// "A server is lost, comes, is drained, is complete" in any order: the primary of each bucket was
// a member before, and no server has two roles.
static void test_random(struct tap *tap, struct rig *rig) {
    TEST(tap, "whatever happens, the primary was a member before, or complete", {
        for (uint64_t seed = 1; seed <= 40; seed++) {
            struct random random = random_stream(seed, 0, 0);
            begin(rig, 1 + random_below(&random, 3), 3 + random_below(&random, 4));
            for (int i = 0; i < 60; i++) {
                uint32_t what = random_below(&random, 8), b = random_below(&random, BUCKETS);
                uint32_t completed = PROTO_NOBODY;
                memcpy(rig->before, rig->places, sizeof rig->before);
                if (what == 0 && rig->count < SERVERS)
                    add_server(rig);
                else if (what == 1 && rig->count > 3)
                    remove_server(rig, random_below(&random, rig->count));
                else if (what == 2)
                    rig->servers[random_below(&random, rig->count)].draining ^= true;
                else if (what == 3)
                    propose(rig, PROTO_CHANGE_TAKE_OVER, b, rig->places[b].second);
                else if (what == 4)
                    propose(rig, PROTO_CHANGE_COMPLETE, b, completed = rig->places[b].joiner);
                else
                    fill(rig);
                for (b = 0; b < BUCKETS; b++) {
                    const struct proto_place *place = &rig->places[b];
                    CHECK(tap, differ(place) && placement_members(place) <= 3);
                    CHECK(tap, has(&rig->before[b], place->primary) || place->primary == completed);
                    CHECK(tap, place->epoch >= rig->before[b].epoch);
                }
            }
        }
    });
}

static void test_succession(struct tap *tap) {
    TEST(tap, "a server that comes back under another number has its places, and nobody else's", {
        struct rig rig;
        begin(&rig, 2, 3);
        memcpy(rig.before, rig.places, sizeof rig.places);
        for (uint32_t i = 0; i < 3; i++)
            rig.servers[i].heard = false; // all came to grief at once
        CHECK(tap, placement_succeed(&rig.placement, 11, 99, NULL, rig.servers, 3, ++rig.epoch));
        for (uint32_t b = 0; b < BUCKETS; b++) {
            const struct proto_place *was = &rig.before[b], *is = &rig.places[b];
            bool had = was->primary == 11 || was->second == 11;
            CHECK(tap, is->primary == (was->primary == 11 ? 99 : was->primary));
            CHECK(tap, is->second == (was->second == 11 ? 99 : was->second));
            CHECK(tap, is->epoch == (had ? rig.epoch : was->epoch));
        }
        CHECK(tap, !placement_has(&rig.placement, 11));
        CHECK(tap, !placement_succeed(&rig.placement, 11, 98, NULL, rig.servers, 3, ++rig.epoch));
    });
    TEST(tap, "where another member was heard, who comes back has no place: that one is newer", {
        struct rig rig;
        begin(&rig, 2, 3);
        memcpy(rig.before, rig.places, sizeof rig.places);
        rig.servers[0].heard = rig.servers[1].heard = false; // 10 and 11: 12 lives
        CHECK(tap, placement_succeed(&rig.placement, 11, 99, NULL, rig.servers, 3, ++rig.epoch));
        for (uint32_t b = 0; b < BUCKETS; b++) {
            const struct proto_place *was = &rig.before[b], *is = &rig.places[b];
            bool had = has(was, 11), other = has(was, 12);
            CHECK(tap, has(is, 99) == (had && !other) && !has(is, 11));
            CHECK(tap, !had || !other || is->primary == 12);
        }
    });
}

static void test_lacking(struct tap *tap) {
    TEST(tap, "who comes back without values leaves them to a member that may have them", {
        struct rig rig;
        bool lacks[BUCKETS];
        begin(&rig, 2, 3);
        memcpy(rig.before, rig.places, sizeof rig.places);
        for (uint32_t b = 0; b < BUCKETS; b++)
            lacks[b] = b % 2;
        for (uint32_t i = 0; i < 3; i++)
            rig.servers[i].heard = false;
        CHECK(tap, placement_succeed(&rig.placement, 11, 99, lacks, rig.servers, 3, ++rig.epoch));
        for (uint32_t b = 0; b < BUCKETS; b++) {
            const struct proto_place *was = &rig.before[b], *is = &rig.places[b];
            bool had = has(was, 11);
            CHECK(tap, has(is, 99) == (had && !lacks[b]) && !has(is, 11));
            CHECK(tap, placement_members(is) == (had && lacks[b] ? 1 : 2) && differ(is));
            CHECK(tap, is->epoch == (had ? rig.epoch : was->epoch));
        }
        // The others come back, too.
        CHECK(tap, placement_succeed(&rig.placement, 10, 98, NULL, rig.servers, 3, ++rig.epoch));
        CHECK(tap, placement_succeed(&rig.placement, 12, 97, NULL, rig.servers, 3, ++rig.epoch));
        for (uint32_t b = 0; b < BUCKETS; b++)
            CHECK(tap, has(&rig.places[b], 98) == has(&rig.before[b], 10));
    });
    TEST(tap, "where nobody else can have them it has its place, and lacks them", {
        struct rig rig;
        bool lacks[BUCKETS];
        memset(lacks, true, sizeof lacks);
        begin(&rig, 1, 2);
        CHECK(tap, placement_succeed(&rig.placement, 11, 99, lacks, rig.servers, 2, ++rig.epoch));
        for (uint32_t b = 0; b < BUCKETS; b++)
            CHECK(tap, rig.places[b].primary != 11);
        CHECK(tap, placement_has(&rig.placement, 99));
    });
}

// The joiner of each bucket whose primary is `one` is dropped if it is `other`, and the same the
// other way round; else it is complete.
static uint32_t answer_parted(struct tap *tap, struct rig *rig, uint32_t one, uint32_t other) {
    uint32_t dropped = 0;
    for (uint32_t b = 0; b < BUCKETS; b++) {
        const struct proto_place *place = &rig->places[b];
        bool parted = (place->primary == one && place->joiner == other) ||
                      (place->primary == other && place->joiner == one);
        if (place->joiner == PROTO_NOBODY)
            continue;
        dropped += parted;
        CHECK(tap,
              propose(rig, parted ? PROTO_CHANGE_DROP : PROTO_CHANGE_COMPLETE, b, place->joiner));
    }
    return dropped;
}

static void drop_parted(struct tap *tap, struct rig *rig, uint32_t one, uint32_t other) {
    for (uint32_t b = 0; b < BUCKETS; b++) {
        const struct proto_place *place = &rig->places[b];
        if (place->primary == one && has(place, other))
            CHECK(tap, propose(rig, PROTO_CHANGE_DROP, b, other));
        else if (place->primary == other && has(place, one))
            CHECK(tap, propose(rig, PROTO_CHANGE_DROP, b, one));
    }
}

static void test_parted(struct tap *tap, struct rig *rig) {
    const struct placement_parting parting = {11, 12, 0};
    TEST(tap, "who was dropped by a primary that does not reach it is not given to it again", {
        for (uint32_t copies = 2; copies <= PLACEMENT_COPIES_MAX; copies++) {
            begin(rig, copies, copies + 1);
            finish(tap, rig);
            drop_parted(tap, rig, 11, 12);
            rig->placement.parted = &parting;
            rig->placement.parted_count = 1;
            int rounds = 0;
            while (fill(rig) && ++rounds < 100)
                CHECK_INT(tap, answer_parted(tap, rig, 11, 12), 0);
            CHECK(tap, rounds > 0 && rounds < 100);
            CHECK_INT(tap, short_of(rig, copies), 0);
            drop_parted(tap, rig, 11, 12); // nothing
            CHECK_INT(tap, short_of(rig, copies), 0);
        }
    });
    TEST(tap, "where nobody else is there it is", {
        begin(rig, 2, 2);
        CHECK(tap, propose(rig, PROTO_CHANGE_DROP, 0, rig->places[0].second));
        const struct placement_parting both = {10, 11, 0};
        rig->placement.parted = &both;
        rig->placement.parted_count = 1;
        CHECK(tap, fill(rig));
        CHECK(tap, rig->places[0].joiner != PROTO_NOBODY);
    });
}

static void test_partings(struct tap *tap) {
    TEST(tap, "partings end, are renewed, and of too many the first to end are forgotten", {
        struct partings p = {0};
        partings_add(&p, 1, 2, 10);
        partings_add(&p, 2, 1, 20);
        CHECK_INT(tap, p.count, 1);
        partings_add(&p, 3, 4, 15);
        partings_expire(&p, 15);
        CHECK(tap, p.count == 1 && placement_parts(&p.items[0], 1, 2));
        for (uint32_t i = 0; i < PLACEMENT_PARTINGS; i++)
            partings_add(&p, 100, 200 + i, 30);
        CHECK_INT(tap, p.count, PLACEMENT_PARTINGS);
        partings_expire(&p, 20); // it was (1, 2)
        CHECK_INT(tap, p.count, PLACEMENT_PARTINGS);
        partings_expire(&p, 30);
        CHECK_INT(tap, p.count, 0);
    });
}

int main(void) {
    struct tap tap = {0};
    struct rig *rig = calloc(1, sizeof *rig);
    if (!rig)
        abort();
    test_assign(&tap, rig);
    test_runs(&tap, rig);
    test_lose(&tap, rig);
    test_come(&tap, rig);
    test_drain(&tap, rig);
    test_propose(&tap, rig);
    test_random(&tap, rig);
    test_parted(&tap, rig);
    free(rig);
    test_succession(&tap);
    test_lacking(&tap);
    test_partings(&tap);
    return tap_done(&tap);
}
