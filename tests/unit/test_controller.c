// What a controller is made of, without a network: the state of a run and its transitions,
// its text and hostile ones, silence by a clock that the test turns, the register's file,
// and the file of a run with its settings.
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "../helper/tempfile.h"
#include "cluster/agreed.h"
#include "cluster/figures.h"
#include "cluster/progress.h"
#include "cluster/record.h"
#include "cluster/vitals.h"
#include "core/error.h"
#include "run/run_file.h"
#include "store/crc.h"

static struct cluster begin(void) {
    struct cluster cluster;
    struct proto_id run = {{1, 2, 3, 0xff}};
    if (cluster_open(&cluster, run, "a.net", "input 1x2x2\n", "rate=0.1\n", NULL, NULL))
        exit(2);
    return cluster;
}

static const struct cluster_member *join(struct cluster *cluster, enum proto_role role,
                                         const char *address) {
    const struct cluster_member *member = NULL;
    const struct proto_join message = {
        .role = (uint16_t)role,
        .threads = 2,
        .memory = UINT64_MAX,
        .name = proto_text("n\"7\n"),
        .training = proto_text(address),
    };
    return cluster_join(cluster, &message, &member, NULL) ? NULL : member;
}

static bool same_text(const struct cluster *a, const struct cluster *b) {
    char *x = cluster_write(a), *y = cluster_write(b);
    bool same = x && y && !strcmp(x, y);
    free(x);
    free(y);
    return same;
}

static void test_members(struct tap *tap) {
    TEST(tap, "sessions and numbers are new at every joining, also at the same address", {
        struct cluster c = begin();
        uint64_t last = 0;
        for (int i = 0; i < 10; i++) {
            const struct cluster_member *m = join(&c, PROTO_ROLE_WORKER, "");
            CHECK(tap, m && m->session > last);
            last = m->session;
            if (i % 2)
                cluster_leave(&c, m->number);
        }
        CHECK_INT(tap, cluster_count(&c, PROTO_ROLE_WORKER), 5);
        cluster_free(&c);
    });
    TEST(tap, "who left is found no more, and every change raises the membership's epoch", {
        struct cluster c = begin();
        uint64_t epoch = c.members_epoch;
        uint64_t session = join(&c, PROTO_ROLE_WORKER, "")->session;
        CHECK(tap, c.members_epoch > epoch);
        epoch = c.members_epoch;
        cluster_leave(&c, cluster_find(&c, session)->number);
        CHECK(tap, c.members_epoch > epoch);
        CHECK(tap, !cluster_find(&c, session));
        cluster_free(&c);
    });
    TEST(tap, "who joins at an address takes the place of who had it", {
        struct cluster c = begin();
        uint32_t first = join(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:1")->number;
        join(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:2");
        join(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:1");
        CHECK_INT(tap, cluster_count(&c, PROTO_ROLE_PARAMETER_SERVER), 2);
        CHECK(tap, cluster_numbered(&c, first)->gone);
        cluster_free(&c);
    });
    TEST(tap, "of those who are gone only the last are remembered, and all who live", {
        struct cluster c = begin();
        join(&c, PROTO_ROLE_WORKER, "");
        for (int i = 0; i < 500; i++)
            cluster_leave(&c, join(&c, PROTO_ROLE_WORKER, "")->number);
        CHECK(tap, cluster_numbered(&c, 1) && !cluster_numbered(&c, 1)->gone);
        CHECK_INT(tap, c.member_count, 1 + CLUSTER_GONE_MAX);
        CHECK(tap, cluster_numbered(&c, 501));
        cluster_free(&c);
        c = begin();
        for (int i = 0; i < CLUSTER_GONE_MAX + 1; i++)
            cluster_leave(&c, join(&c, PROTO_ROLE_WORKER, "")->number);
        CHECK_INT(tap, c.member_count, CLUSTER_GONE_MAX);
        CHECK(tap, !cluster_numbered(&c, 1) && cluster_numbered(&c, 2));
        cluster_free(&c);
    });
}

// Buckets of one server, or the most that any two differ by.
static void test_routes(struct tap *tap) {
    TEST(tap, "buckets are dealt out equally, in a run for each server", {
        for (uint32_t servers = 1; servers <= 9; servers += 2) {
            struct cluster c = begin();
            struct proto_bucket buckets[CLUSTER_BUCKETS];
            uint32_t count[16] = {0}, changes = 0;
            char address[32];
            for (uint32_t i = 0; i < servers; i++) {
                snprintf(address, sizeof address, "tcp://a:%u", i + 1);
                join(&c, PROTO_ROLE_PARAMETER_SERVER, address);
                join(&c, PROTO_ROLE_WORKER, "");
            }
            CHECK_INT(tap, cluster_assign(&c, NULL), STATUS_OK);
            CHECK_INT(tap, cluster_buckets(&c, buckets), CLUSTER_BUCKETS);
            for (uint32_t b = 0; b < CLUSTER_BUCKETS; b++) {
                count[buckets[b].primary / 2]++;
                changes += b > 0 && buckets[b].primary != buckets[b - 1].primary;
                CHECK(tap, buckets[b].epoch > 0 && buckets[b].second == PROTO_NOBODY);
            }
            CHECK_INT(tap, changes, servers - 1);
            for (uint32_t i = 0; i < servers; i++)
                CHECK(tap, count[i] >= CLUSTER_BUCKETS / servers &&
                               count[i] <= CLUSTER_BUCKETS / servers + 1);
            cluster_free(&c);
        }
    });
    TEST(tap, "without a parameter server there are no routes", {
        struct cluster c = begin();
        join(&c, PROTO_ROLE_WORKER, "");
        CHECK_INT(tap, cluster_assign(&c, NULL), STATUS_UNAVAILABLE);
        CHECK_INT(tap, c.routes_epoch, 0);
        cluster_free(&c);
    });
    TEST(tap, "a server that has buckets is missed when it goes, another is not", {
        struct cluster c = begin();
        uint64_t first = join(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:1")->session;
        CHECK_INT(tap, cluster_assign(&c, NULL), STATUS_OK);
        uint64_t spare = join(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:2")->session;
        cluster_leave(&c, cluster_find(&c, spare)->number);
        CHECK(tap, !cluster_lost(&c));
        cluster_leave(&c, cluster_find(&c, first)->number);
        CHECK(tap, cluster_lost(&c) && cluster_lost(&c)->session == first);
        cluster_free(&c);
    });
    TEST(tap, "data servers that come and go raise the epoch of routes", {
        struct cluster c = begin();
        join(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:1");
        cluster_assign(&c, NULL);
        uint64_t epoch = c.routes_epoch;
        const struct cluster_member *source = join(&c, PROTO_ROLE_DATA_SERVER, "tcp://a:3");
        CHECK(tap, c.routes_epoch > epoch);
        epoch = c.routes_epoch;
        cluster_leave(&c, source->number);
        CHECK(tap, c.routes_epoch > epoch);
        cluster_free(&c);
    });
}

// --- parts of the data ------------------------------------------------------------------

static struct proto_join source_of(const char *address, uint64_t first, uint64_t samples) {
    return (struct proto_join){
        .role = PROTO_ROLE_DATA_SERVER,
        .training = proto_text(address),
        .first = first,
        .samples = samples,
        .whole = 1000,
        .digest = 0x0badcafe,
        .classes = 10,
    };
}

static bool is_gone(const void *self, const struct cluster_member *member) {
    (void)self;
    return member->gone;
}

// A run of two data servers, members 1 and 2, with 600 and 400 samples.
static struct cluster divided(void) {
    struct cluster c = begin();
    const struct cluster_member *member;
    const struct proto_join joins[] = {source_of("tcp://a:1", 0, 600),
                                       source_of("tcp://a:2", 600, 400)};
    if (cluster_join(&c, &joins[0], &member, NULL) || cluster_join(&c, &joins[1], &member, NULL) ||
        cluster_divide(&c, NULL))
        exit(2);
    return c;
}

// Who joins gets its part; its number, or 0: there is none for it.
static uint32_t take_part(struct cluster *c, const char *address, uint64_t first,
                          uint64_t samples) {
    const struct proto_join asked = source_of(address, first, samples);
    const struct cluster_part *part;
    const struct cluster_member *member;
    if (!cluster_vacant(c, &asked, is_gone, NULL, &part))
        return 0;
    if (cluster_join(c, &asked, &member, NULL) ||
        cluster_take_part(c, part ? part->member : 0, member->number, NULL))
        exit(2);
    return member->number;
}

static void test_parts(struct tap *tap) {
    TEST(tap, "a part stays while its data server is gone, until another serves its samples", {
        struct cluster c = divided();
        CHECK_INT(tap, cluster_samples(&c, false), 1000);
        CHECK_INT(tap, take_part(&c, "tcp://a:3", 600, 400), 0);
        cluster_leave(&c, 2);
        for (int i = 0; i < 2 * CLUSTER_GONE_MAX; i++)
            cluster_leave(&c, join(&c, PROTO_ROLE_WORKER, "")->number);
        CHECK(tap, cluster_part_of(&c, 2) && cluster_numbered(&c, 2));
        uint32_t next = take_part(&c, "tcp://a:3", 600, 400);
        CHECK(tap, next > 2 && cluster_part_of(&c, next) && !cluster_part_of(&c, 2));
        CHECK_INT(tap, c.part_count, 2);
        cluster_free(&c);
    });
    TEST(tap, "samples of which some are another's are no part, and nobody's before training", {
        struct cluster c = divided();
        CHECK_INT(tap, take_part(&c, "tcp://a:3", 599, 1), 0);
        CHECK_INT(tap, take_part(&c, "tcp://a:3", 500, 1000), 0);
        CHECK_INT(tap, take_part(&c, "tcp://a:3", 700, UINT64_MAX), 0);
        cluster_leave(&c, 2);
        CHECK_INT(tap, take_part(&c, "tcp://a:3", 600, 300), 0);
        c.part_count = 0;
        const struct proto_join all = source_of("tcp://a:3", 0, 1000),
                                rest = source_of("tcp://a:3", 600, 400);
        const struct cluster_part *part;
        const struct cluster_member *member;
        CHECK(tap, !cluster_vacant(&c, &all, is_gone, NULL, &part));
        CHECK(tap, cluster_vacant(&c, &rest, is_gone, NULL, &part) && !part);
        // One that is away is gone when its samples are another's.
        CHECK_INT(tap, cluster_join(&c, &all, &member, NULL), STATUS_OK);
        cluster_outlive(&c, member->number);
        CHECK_INT(tap, cluster_count(&c, PROTO_ROLE_DATA_SERVER), 1);
        cluster_free(&c);
    });
    TEST(tap, "who is started again at its address has its part at once", {
        struct cluster c = divided();
        uint64_t epoch = c.routes_epoch;
        uint32_t next = take_part(&c, "tcp://a:2", 600, 400);
        CHECK(tap, next > 2 && cluster_part_of(&c, next));
        CHECK(tap, cluster_numbered(&c, 2)->gone && c.routes_epoch > epoch);
        CHECK_INT(tap, c.part_count, 2);
        cluster_free(&c);
    });
    TEST(tap, "other samples are a new part, from the epoch on that the run is in", {
        struct cluster c = divided();
        cluster_part_told(&c.parts[0].epoch, 4.5);
        cluster_part_told(&c.parts[1].epoch, 4.25);
        uint32_t next = take_part(&c, "tcp://a:3", 1000, 50);
        CHECK_INT(tap, cluster_samples(&c, false), 1050);
        CHECK_INT(tap, cluster_part_epoch(&c, cluster_part_of(&c, next)), 4);
        CHECK_INT(tap, c.skipped, 4 * 50);
        cluster_free(&c);
    });
    TEST(tap, "who serves another data set than the run trains on is told of both", {
        struct cluster c = divided();
        struct error err = {0};
        struct proto_join same = source_of("tcp://a:3", 600, 400), join = same;
        CHECK_INT(tap, cluster_check_data(&c, &same, &err), STATUS_OK);
        join.whole = 1200;
        CHECK_INT(tap, cluster_check_data(&c, &join, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text,
                   "it serves another data set than the run's: 1200 samples, 10 classes or "
                   "targets, digest 0badcafe, where the run has 1000 samples, 10 classes or "
                   "targets, digest 0badcafe");
        join = same, join.digest++;
        CHECK_INT(tap, cluster_check_data(&c, &join, &err), STATUS_DATA);
        join = same, join.classes++;
        CHECK_INT(tap, cluster_check_data(&c, &join, &err), STATUS_DATA);
        join.role = PROTO_ROLE_WORKER;
        CHECK_INT(tap, cluster_check_data(&c, &join, &err), STATUS_OK);
        cluster_free(&c);
    });
    TEST(tap, "before training any data set may come, and behind older records the first", {
        struct cluster c = divided();
        struct proto_join other = source_of("tcp://a:3", 1000, 50);
        other.digest++;
        c.part_count = 0;
        CHECK_INT(tap, cluster_check_data(&c, &other, NULL), STATUS_OK);
        c.part_count = 2;
        c.data = (struct cluster_data){0};
        CHECK_INT(tap, cluster_check_data(&c, &other, NULL), STATUS_OK);
        take_part(&c, "tcp://a:3", 1000, 50);
        CHECK_INT(tap, cluster_check_data(&c, &other, NULL), STATUS_DATA);
        cluster_free(&c);
    });
    TEST(tap, "a part goes on in the epoch that the others show to be over, or were in", {
        struct cluster c = divided();
        CHECK(tap, cluster_part_told(&c.parts[1].epoch, 2.5) &&
                       !cluster_part_told(&c.parts[1].epoch, 2.75));
        CHECK(tap, !cluster_part_told(&c.parts[1].epoch, 0)); // started anew, and not serving yet
        CHECK_INT(tap, cluster_part_epoch(&c, &c.parts[1]), 2);
        cluster_part_told(&c.parts[0].epoch, 4); // which may have ended its epoch alone
        CHECK_INT(tap, cluster_part_epoch(&c, &c.parts[1]), 3);
        cluster_part_told(&c.parts[0].epoch, 4.1);
        CHECK_INT(tap, cluster_part_epoch(&c, &c.parts[1]), 4);
        cluster_free(&c);
    });
    TEST(tap, "a part that was left out comes back where the run is", {
        struct cluster c = divided();
        cluster_part_told(&c.parts[1].epoch, 1.5);
        cluster_leave_out(&c, 2);
        CHECK_INT(tap, cluster_samples(&c, true), 400);
        cluster_part_told(&c.parts[0].epoch, 7.5);
        uint32_t next = take_part(&c, "tcp://a:3", 600, 400);
        CHECK_INT(tap, cluster_samples(&c, true), 0);
        CHECK(tap, cluster_part_of(&c, next)->epoch == 7);
        cluster_free(&c);
    });
    TEST(tap, "a part that is left out had ended the epochs before the one that the others ended", {
        struct cluster c = divided();
        cluster_part_told(&c.parts[0].epoch, 18);
        cluster_part_told(&c.parts[1].epoch, 12.25); // its last report
        cluster_leave_out(&c, 2);
        CHECK_NEAR(tap, c.parts[1].epoch, 17, 0);
        take_part(&c, "tcp://a:3", 600, 400);
        CHECK_INT(tap, c.skipped, 400);
        cluster_free(&c);
    });
    TEST(tap, "what a part missed while it was left out is skipped, and nothing else", {
        struct cluster c = divided();
        cluster_part_told(&c.parts[0].epoch, 2);
        cluster_part_told(&c.parts[1].epoch, 1.5);
        uint32_t number = take_part(&c, "tcp://a:2", 600, 400);
        CHECK_INT(tap, c.skipped, 0); // workers waited for it
        cluster_leave_out(&c, number);
        number = take_part(&c, "tcp://a:3", 600, 400);
        cluster_part_told(&c.parts[1].epoch, 2.25);
        cluster_leave_out(&c, number);
        CHECK_INT(tap, c.skipped, 200); // the rest of epoch 1, which the other part has ended
        cluster_part_told(&c.parts[0].epoch, 7.5);
        CHECK_INT(tap, c.skipped, 200);
        take_part(&c, "tcp://a:4", 600, 400);
        CHECK_INT(tap, c.skipped, 200 + 1900);
        cluster_free(&c);
    });
}

// A state with all there can be in it.
static struct cluster rich(void) {
    struct cluster c = begin();
    join(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:1");
    join(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:2");
    cluster_assign(&c, NULL);
    join(&c, PROTO_ROLE_DATA_SERVER, "tcp://a:3");
    cluster_divide(&c, NULL);
    cluster_part_told(&c.parts[0].epoch, 2.25);
    c.skipped = 77;
    cluster_leave(&c, join(&c, PROTO_ROLE_WORKER, "")->number);
    cluster_settle(&c, "rate=0.2\nclip=1\n", NULL);
    cluster_enter(&c, CLUSTER_TRAINING, NULL);
    cluster_enter(&c, CLUSTER_DRAINING, NULL);
    cluster_blame(&c, STATUS_UNAVAILABLE, "somebody \"vanished\"", NULL);
    return c;
}

// Without what stands between these in its text.
static void cut_text(char *text, const char *from, const char *to) {
    char *at = strstr(text, from), *end = at ? strstr(at, to) : NULL;
    if (!end)
        exit(2);
    memmove(at, end + strlen(to), strlen(end + strlen(to)) + 1);
}

static bool reads(const char *text, size_t size) {
    struct cluster c;
    struct error err = {0};
    int status = cluster_read(&c, text, size, &err);
    if (!status)
        cluster_free(&c);
    return status == STATUS_OK;
}

// Replaces the first `from` by `to`, and tells whether that is still a state.
static bool reads_changed(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    char *changed = NULL;
    if (!at || asprintf(&changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) < 0)
        exit(2);
    bool good = reads(changed, strlen(changed));
    free(changed);
    return good;
}

static void test_text(struct tap *tap) {
    TEST(tap, "the state comes back from its text as it was", {
        struct cluster c = rich(), back;
        char *text = cluster_write(&c);
        CHECK_INT(tap, cluster_read(&back, text, strlen(text), NULL), STATUS_OK);
        CHECK(tap, same_text(&c, &back));
        CHECK_INT(tap, back.stage, CLUSTER_DRAINING);
        CHECK_INT(tap, back.status, STATUS_UNAVAILABLE);
        CHECK_TEXT(tap, back.why, "somebody \"vanished\"");
        CHECK_INT(tap, back.settings_version, 2);
        CHECK_INT(tap, back.skipped, 77);
        CHECK_TEXT(tap, back.members[0].training, "tcp://a:1");
        CHECK(tap, back.members[3].gone);
        const struct cluster_member *next = join(&back, PROTO_ROLE_WORKER, "");
        CHECK_INT(tap, next->session, 5);
        free(text);
        cluster_free(&c);
        cluster_free(&back);
    });
    TEST(tap, "a state that lost its end, at whatever byte, is refused", {
        struct cluster c = rich();
        char *text = cluster_write(&c);
        size_t size = strlen(text);
        for (size_t n = 0; n < size; n++)
            if (reads(text, n))
                FAIL(tap, "%zu bytes of %zu were taken for a state", n, size);
        free(text);
        cluster_free(&c);
    });
    TEST(tap, "a state that tells of no skipped samples, as older ones, has none", {
        struct cluster c = rich(), back;
        char *text = cluster_write(&c), *skipped = strstr(text, "\"skipped\":77,");
        memmove(skipped, skipped + 13, strlen(skipped + 13) + 1);
        CHECK_INT(tap, cluster_read(&back, text, strlen(text), NULL), STATUS_OK);
        CHECK_INT(tap, back.skipped, 0);
        free(text);
        cluster_free(&c);
        cluster_free(&back);
    });
    TEST(tap, "the data set comes back, and is unknown in older states", {
        struct cluster c = divided(), back;
        char *text = cluster_write(&c);
        struct proto_join other = source_of("tcp://a:3", 600, 400);
        other.digest++;
        CHECK_INT(tap, cluster_read(&back, text, strlen(text), NULL), STATUS_OK);
        CHECK(tap, same_text(&c, &back));
        CHECK_INT(tap, cluster_check_data(&back, &other, NULL), STATUS_DATA);
        CHECK_INT(tap, back.members[1].data.whole, 1000);
        cluster_free(&back);
        CHECK(tap, !reads_changed(text, "\"whole\":1000", "\"whole\":-1"));
        CHECK(tap, !reads_changed(text, "\"data\":{", "\"data\":[],\"x\":{"));
        for (int i = 0; i < 3; i++)
            cut_text(text, ",\"data\":{", "}");
        CHECK_INT(tap, cluster_read(&back, text, strlen(text), NULL), STATUS_OK);
        CHECK_INT(tap, back.data.whole, 0);
        CHECK_INT(tap, cluster_check_data(&back, &other, NULL), STATUS_OK);
        cluster_free(&back);
        free(text);
        cluster_free(&c);
    });
    TEST(tap, "states that make no sense are refused", {
        static const char *const changes[][2] = {
            {"\"format\":2", "\"format\":4"},
            {"\"format\":2", "\"format\":3"}, // which needs the number of copies
            {"\"parts\":[", "\"parts\":{},\"x\":["},
            {"\"epoch\":2.25", "\"epoch\":-1.0"},
            {"\"epoch\":2.25", "\"epoch\":\"2\""},
            {"\"out\":false", "\"out\":0"},
            {"\"member\":3,\"epoch\"", "\"member\":1,\"epoch\""},
            {"\"run\":\"01", "\"run\":\"0x"},
            {"\"run\":\"01", "\"run\":\""},
            {"\"run\":\"01", "\"run\":\"0101"},
            {"0000\",\"stage\"", "0000z\",\"stage\""},
            {"\"status\":69", "\"status\":256"},
            {"\"status\":69", "\"status\":69.0"},
            {"\"role\":1", "\"role\":\"1\""},
            {"\"first\":512", "\"first\":1025"},
            {"\"next_member\":5", "\"next_member\":4294967295"},
            {"\"next_member\":5", "\"next_member\":4"},
            {"\"finished\":false", "\"finished\":null"},
            {"\"model\":\"", "\"model\":null,\"x\":\""},
            {"\"model_name\":\"", "\"model_name\":null,\"x\":\""},
            {"\"resume\":null", "\"resume\":7"},
            {"\"training\":\"tcp", "\"training\":null,\"x\":\"tcp"},
            {"\"routes\":[", "\"routes\":{},\"x\":["},
            {"\"member\":3,\"epoch\"", "\"member\":9,\"epoch\""},
            {"\"epoch\":2.25", "\"epoch\":1e10"},
            {"draining", "dancing"},
            {"\"status\":69", "\"status\":-1"},
            {"\"status\":69", "\"status\":1e3"},
            {"\"next_session\":5", "\"next_session\":4"},
            {"\"next_member\":5", "\"next_member\":2"},
            {"\"member\":2", "\"member\":1"},
            {"\"session\":2", "\"session\":1"},
            {"\"session\":2", "\"session\":0"},
            {"\"role\":1", "\"role\":99"},
            {"\"skipped\":77", "\"skipped\":-1"},
            {"\"skipped\":77", "\"skipped\":1.5"},
            {"\"skipped\":77", "\"skipped\":null"},
            {"\"gone\":true", "\"gone\":1"},
            {"\"primary\":1", "\"primary\":3"},
            {"\"primary\":1", "\"primary\":77"},
            {"\"count\":512", "\"count\":511"},
            {"\"count\":512", "\"count\":513"},
            {"\"count\":512", "\"count\":0"},
            {"\"first\":512", "\"first\":0"},
            {"\"routes_epoch\":", "\"routes_epoch\":\"1\",\"x\":"},
            {"\"members\":[", "\"members\":{},\"x\":["},
            {"\"settings\":\"", "\"settings\":null,\"x\":\""},
            {"\"why\":\"", "\"why\":7,\"x\":\""},
            {"\"warm\":false", "\"warm\":false,\"warm\":true"},
        };
        struct cluster c = rich();
        char *text = cluster_write(&c);
        CHECK(tap, reads(text, strlen(text)));
        for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
            if (reads_changed(text, changes[i][0], changes[i][1]))
                FAIL(tap, "%s was taken for a state", changes[i][1]);
        free(text);
        cluster_free(&c);
    });
    TEST(tap, "the first reason for an end is the one that counts", {
        struct cluster c = begin();
        cluster_blame(&c, STATUS_UNAVAILABLE, "first", NULL);
        cluster_blame(&c, STATUS_STOPPED, "second", NULL);
        CHECK_INT(tap, c.status, STATUS_UNAVAILABLE);
        CHECK_TEXT(tap, c.why, "first");
        cluster_free(&c);
    });
}

// --- stages -----------------------------------------------------------------------------

static void test_stages(struct tap *tap) {
    TEST(tap, "a run goes through its stages in order or straight to its end, and never back", {
        static const char *const arrows[CLUSTER_STAGE_COUNT][CLUSTER_STAGE_COUNT + 1] = {
            {"training", "stopping"},
            {"draining", "stopping"},
            {"saving", "stopping"},
            {"stopping"},
            {"over"},
            {NULL},
        };
        for (int from = 0; from < CLUSTER_STAGE_COUNT; from++) {
            for (int to = 0; to < CLUSTER_STAGE_COUNT; to++) {
                struct cluster c = begin();
                struct error err = {0};
                const char *name = cluster_stage_name((enum cluster_stage)to);
                bool allowed = false;
                for (const char *const *a = arrows[from]; *a; a++)
                    allowed |= !strcmp(*a, name);
                c.stage = (enum cluster_stage)from;
                uint64_t order = c.order;
                int status = cluster_enter(&c, (enum cluster_stage)to, &err);
                CHECK_INT(tap, status, allowed ? STATUS_OK : STATUS_BUG);
                CHECK_INT(tap, c.stage, allowed ? to : from);
                CHECK_INT(tap, c.order, order + allowed);
                CHECK(tap, allowed || strstr(err.text, name));
                cluster_free(&c);
            }
        }
    });
    TEST(tap, "a run whose epochs are all done drains", {
        struct cluster c = begin();
        CHECK_INT(tap, cluster_finish(&c, NULL), STATUS_BUG);
        cluster_enter(&c, CLUSTER_TRAINING, NULL);
        CHECK_INT(tap, cluster_finish(&c, NULL), STATUS_OK);
        CHECK(tap, c.finished && c.stage == CLUSTER_DRAINING);
        cluster_free(&c);
    });
}

// --- the agreed state -------------------------------------------------------------------

static void test_copy(struct tap *tap) {
    TEST(tap, "a copy is the same, and what changes it does not change the state it is of", {
        struct cluster c = rich(), copy;
        char *before = cluster_write(&c);
        CHECK_INT(tap, cluster_copy(&copy, &c, NULL), STATUS_OK);
        CHECK(tap, same_text(&c, &copy));
        join(&copy, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:1");
        cluster_leave(&copy, 2);
        cluster_leave_out(&copy, 3);
        cluster_assign(&copy, NULL);
        cluster_settle(&copy, "rate=9\n", NULL);
        cluster_blame(&copy, STATUS_DIVERGED, "later", NULL);
        cluster_enter(&copy, CLUSTER_STOPPING, NULL);
        CHECK(tap, !same_text(&c, &copy));
        cluster_free(&copy);
        char *after = cluster_write(&c);
        CHECK_TEXT(tap, after, before);
        free(before);
        free(after);
        cluster_free(&c);
    });
}

static struct cluster *draft(const struct agreed *agreed) {
    struct cluster *next;
    if (agreed_draft(agreed, &next, NULL))
        exit(2);
    return next;
}

// The disk is full: no process may write to a file beyond its first byte.
static void fill_disk(bool full) {
    struct rlimit limit;
    signal(SIGXFSZ, full ? SIG_IGN : SIG_DFL);
    if (getrlimit(RLIMIT_FSIZE, &limit))
        exit(2);
    limit.rlim_cur = full ? 0 : limit.rlim_max;
    if (setrlimit(RLIMIT_FSIZE, &limit))
        exit(2);
}

static struct cluster *first_state(void) {
    struct cluster *first = malloc(sizeof *first);
    if (!first)
        exit(2);
    *first = rich();
    return first;
}

static const struct record_options alone = {.members = 1};

static int propose_to_record(void *self, const char *text, struct error *err) {
    struct paxos_output output;
    return record_propose(self, text, &output, err);
}

static int open_agreed(struct agreed *agreed, const char *path) {
    struct agreement agreement = {.propose = propose_to_record};
    struct record *record;
    size_t size = 0;
    int status = record_open(&record, path, &alone, NULL);
    if (status)
        return status;
    agreement.self = record;
    const char *state = record_state(record, &size);
    char *text = state ? strndup(state, size) : NULL;
    status = agreed_open(agreed, &agreement, text, NULL);
    free(text);
    return status;
}

static void close_agreed(struct agreed *agreed) {
    record_close(agreed->agreement.self);
    agreed_close(agreed);
}

static void test_agreed(struct tap *tap) {
    char path[TEMPFILE_PATH];
    tempfile_write(path, "", 0);
    unlink(path);
    TEST(tap, "the next state is adopted when it is agreed, and is there after a restart", {
        struct agreed agreed = {0};
        CHECK_INT(tap, open_agreed(&agreed, path), STATUS_OK);
        CHECK(tap, !agreed.state);
        CHECK_INT(tap, agreed_commit(&agreed, first_state(), STATUS_OK, NULL), STATUS_OK);
        struct cluster *next = draft(&agreed);
        CHECK_INT(tap, cluster_enter(next, CLUSTER_SAVING, NULL), STATUS_OK);
        CHECK_INT(tap, agreed.state->stage, CLUSTER_DRAINING);
        CHECK_INT(tap, agreed_commit(&agreed, next, STATUS_OK, NULL), STATUS_OK);
        CHECK_INT(tap, agreed.state->stage, CLUSTER_SAVING);
        close_agreed(&agreed);
        CHECK_INT(tap, open_agreed(&agreed, path), STATUS_OK);
        CHECK(tap, agreed.state && agreed.state->stage == CLUSTER_SAVING);
        close_agreed(&agreed);
    });
    TEST(tap, "what was agreed on and what was not is free in the end", {
        struct agreed agreed = {0};
        long before = heap_live();
        CHECK_INT(tap, open_agreed(&agreed, path), STATUS_OK);
        CHECK_INT(tap, agreed_commit(&agreed, draft(&agreed), STATUS_OK, NULL), STATUS_OK);
        CHECK_INT(tap, agreed_commit(&agreed, draft(&agreed), STATUS_BUG, NULL), STATUS_BUG);
        close_agreed(&agreed);
        CHECK_INT(tap, heap_live(), before);
    });
    TEST(tap, "a draft that could not be made changes nothing", {
        struct agreed agreed = {0};
        struct error err = {0};
        CHECK_INT(tap, open_agreed(&agreed, path), STATUS_OK);
        struct cluster *next = draft(&agreed);
        int status = cluster_enter(next, CLUSTER_TRAINING, &err);
        CHECK_INT(tap, agreed_commit(&agreed, next, status, &err), STATUS_BUG);
        CHECK_INT(tap, agreed.state->stage, CLUSTER_SAVING);
        CHECK_INT(tap, agreed_commit(&agreed, NULL, STATUS_IO, NULL), STATUS_IO);
        close_agreed(&agreed);
    });
    TEST(tap, "when the disk is full the state stays as it was, also after a restart", {
        struct agreed agreed = {0};
        struct error err = {0};
        CHECK_INT(tap, open_agreed(&agreed, path), STATUS_OK);
        const struct cluster *state = agreed.state;
        char *before = cluster_write(state);
        struct cluster *next = draft(&agreed);
        CHECK_INT(tap, cluster_enter(next, CLUSTER_STOPPING, NULL), STATUS_OK);
        fill_disk(true);
        CHECK_INT(tap, agreed_commit(&agreed, next, STATUS_OK, &err), STATUS_IO);
        fill_disk(false);
        CHECK(tap, agreed.state == state && strstr(err.text, path));
        char *after = cluster_write(agreed.state);
        CHECK_TEXT(tap, after, before);
        // A member that could not remember its promise makes no other.
        CHECK_INT(tap, agreed_commit(&agreed, draft(&agreed), STATUS_OK, NULL), STATUS_IO);
        close_agreed(&agreed);
        CHECK_INT(tap, open_agreed(&agreed, path), STATUS_OK);
        char *again = cluster_write(agreed.state);
        CHECK_TEXT(tap, again, before);
        free(before);
        free(after);
        free(again);
        close_agreed(&agreed);
    });
    unlink(path);
}

static void test_progress(struct tap *tap) {
    TEST(tap, "what data servers report is beside the state until the next one takes it along", {
        struct cluster c = divided(), next;
        struct part_progress p = {0};
        CHECK_INT(tap, progress_reserve(&p, &c, NULL), STATUS_OK);
        progress_follow(&p, &c);
        CHECK_INT(tap, p.count, 2);
        CHECK(tap, cluster_part_told(&p.parts[0].epoch, 1.5));
        p.parts[1].missing = 7;
        CHECK(tap, c.parts[0].epoch == 0);
        CHECK_INT(tap, cluster_copy(&next, &c, NULL), STATUS_OK);
        progress_apply(&p, &next);
        CHECK(tap, next.parts[0].epoch == 1.5 && c.parts[0].epoch == 0);
        take_part(&next, "tcp://a:3", 1000, 50);
        CHECK_INT(tap, progress_reserve(&p, &next, NULL), STATUS_OK);
        CHECK_INT(tap, p.count, 2);
        progress_follow(&p, &next);
        CHECK_INT(tap, p.count, 3);
        CHECK(tap, p.parts[0].epoch == 1.5 && p.parts[1].missing == 7);
        CHECK(tap, p.parts[2].epoch == next.parts[2].epoch && p.parts[2].missing == 0);
        progress_free(&p);
        cluster_free(&c);
        cluster_free(&next);
    });
    TEST(tap, "samples that were left out do not count as trained on", {
        struct cluster c = divided();
        struct part_progress p = {0};
        cluster_part_told(&c.parts[0].epoch, 2);
        cluster_part_told(&c.parts[1].epoch, 2);
        cluster_leave_out(&c, 2);
        cluster_part_told(&c.parts[0].epoch, 10);
        take_part(&c, "tcp://a:3", 600, 400);
        CHECK_INT(tap, progress_reserve(&p, &c, NULL), STATUS_OK);
        progress_follow(&p, &c);
        CHECK_INT(tap, progress_samples(&p, &c), 10 * 600 + 2 * 400);
        cluster_part_told(&p.parts[1].epoch, 10.5);
        CHECK_INT(tap, progress_samples(&p, &c), 10 * 600 + 2 * 400 + 200);
        progress_free(&p);
        cluster_free(&c);
    });
}

static void test_vitals(struct tap *tap) {
    TEST(tap, "who is silent for too long is found, and nobody else", {
        struct vitals v = {0};
        const struct proto_heartbeat beat = {.samples = 7, .waits_for = proto_text("x\ny")};
        vitals_heard(&v, 1, 100);
        vitals_heard(&v, 2, 105);
        CHECK(tap, !vitals_silent(&v, 8, 108));
        CHECK(tap, vitals_silent(&v, 8, 108.5) && vitals_silent(&v, 8, 108.5)->number == 1);
        CHECK(tap, vitals_tell(&v, 1, &beat, 108.5));
        CHECK(tap, !vitals_silent(&v, 8, 109));
        CHECK_INT(tap, vitals_of(&v, 1)->figures.samples, 7);
        CHECK_TEXT(tap, vitals_of(&v, 1)->waits_for, "x\\ny");
        CHECK(tap, vitals_silent(&v, 8, 114) && vitals_silent(&v, 8, 114)->number == 2);
        vitals_forget(&v, 2);
        CHECK(tap, !vitals_silent(&v, 8, 114) && !vitals_of(&v, 2));
        vitals_miss(&v, 1);
        CHECK(tap, !vitals_silent(&v, 8, 200) && vitals_of(&v, 1)->missed);
        vitals_heard(&v, 1, 200);
        CHECK(tap, vitals_silent(&v, 8, 209) && !vitals_of(&v, 1)->missed);
        vitals_free(&v);
    });
}

// Tells of a data server, and asks whether it gives more than 3 epochs.
static bool gives(struct vitals *vitals, enum proto_state state, double epoch) {
    const struct proto_heartbeat beat = {.state = (uint16_t)state, .epoch = epoch};
    return vitals_tell(vitals, 1, &beat, 100) && vitals_gives(vitals_of(vitals, 1), 3);
}

static void test_givers(struct tap *tap) {
    TEST(tap, "a data server that has not heard which epoch is the last gives more of them", {
        struct vitals v = {0};
        CHECK(tap, !vitals_gives(vitals_of(&v, 1), 3));
        CHECK(tap, gives(&v, PROTO_STATE_WORKING, 2.5));
        CHECK(tap, gives(&v, PROTO_STATE_WORKING, 4.5));
        CHECK(tap, gives(&v, PROTO_STATE_WORKING, 5)); // between two of them
        CHECK(tap, !gives(&v, PROTO_STATE_WAITING, 5));
        CHECK(tap, !gives(&v, PROTO_STATE_WAITING, 3));
        CHECK(tap, !gives(&v, PROTO_STATE_WORKING, 0)); // it has yet to hear where it was
        CHECK(tap, gives(&v, PROTO_STATE_WORKING, 3));
        vitals_miss(&v, 1);
        CHECK(tap, !vitals_gives(vitals_of(&v, 1), 3));
        vitals_free(&v);
    });
}

static void test_links(struct tap *tap) {
    const int one = 0, other = 0;
    TEST(tap, "a link that its end closed is told from one that fell silent", {
        struct vitals v = {0};
        vitals_heard(&v, 1, 100);
        vitals_heard(&v, 2, 100);
        vitals_link(&v, 1, &one);
        vitals_link(&v, 2, &other);
        vitals_closed(&v, &one, 101); // a moment after it was heard of
        CHECK(tap, vitals_of(&v, 1)->closed == 101 && !vitals_of(&v, 1)->link);
        CHECK(tap, vitals_of(&v, 2)->closed == 0 && vitals_of(&v, 2)->link == &other);
        vitals_closed(&v, &other, 110); // given up after a silence
        CHECK(tap, vitals_of(&v, 2)->closed == 0 && !vitals_of(&v, 2)->link);
        vitals_heard(&v, 1, 111); // it is back
        CHECK(tap, vitals_of(&v, 1)->closed == 0);
        vitals_link(&v, 9, &one); // nobody
        CHECK(tap, !vitals_of(&v, 9));
        vitals_free(&v);
    });
    TEST(tap, "a member knows the membership that it was told one beat ago", {
        struct vitals v = {0};
        vitals_heard(&v, 1, 100);
        vitals_beat(&v, 1, 5);
        CHECK_INT(tap, vitals_of(&v, 1)->knows_members, 0);
        vitals_beat(&v, 1, 6);
        CHECK_INT(tap, vitals_of(&v, 1)->knows_members, 5);
        vitals_beat(&v, 1, 6);
        CHECK_INT(tap, vitals_of(&v, 1)->knows_members, 6);
        vitals_free(&v);
    });
}

static void test_memory(struct tap *tap) {
    TEST(tap, "a state frees all that it has, and a copy that memory is out for all of it", {
        struct cluster c = rich(), back;
        struct proto_id run = {{7}};
        long before = heap_live();
        char *text = cluster_write(&c);
        CHECK_INT(tap, cluster_open(&back, run, "a", "b", "c", "d", NULL), STATUS_OK);
        CHECK_INT(tap, cluster_settle(&back, "e", NULL), STATUS_OK);
        CHECK_INT(tap, cluster_blame(&back, STATUS_IO, "f", NULL), STATUS_OK);
        cluster_free(&back);
        int failed = 1;
        for (int n = 0; failed && HEAP_FAILS; n++) {
            heap_fail_after(n);
            failed = cluster_read(&back, text, strlen(text), NULL);
            heap_fail_after(-1);
            if (failed)
                CHECK(tap, !back.members && !back.model);
            else
                CHECK(tap, n > 10 && same_text(&c, &back));
        }
        if (HEAP_FAILS)
            cluster_free(&back);
        free(text);
        CHECK_INT(tap, heap_live(), before);
        cluster_free(&c);
    });
    TEST(tap, "what there is no memory for does not change the state", {
        struct cluster c = rich(), none;
        struct proto_id run = {{7}};
        char *before = cluster_write(&c), *after;
        const struct proto_join message = {.role = PROTO_ROLE_WORKER};
        const struct cluster_member *member = NULL;
        for (int n = 0; HEAP_FAILS && n < 3; n++) {
            heap_fail_after(n);
            CHECK(tap, cluster_open(&none, run, "a", "b", "c", "d", NULL) == STATUS_IO);
            heap_fail_after(-1);
            cluster_free(&none);
        }
        struct cluster good = begin();
        heap_fail_after(0);
        int blamed = cluster_blame(&good, STATUS_IO, "full", NULL);
        int settled = cluster_settle(&c, "rate=0.3\n", NULL);
        char *none_written = cluster_write(&c);
        heap_fail_after(-1);
        CHECK_INT(tap, settled, HEAP_FAILS ? STATUS_IO : STATUS_OK);
        CHECK_INT(tap, blamed, HEAP_FAILS ? STATUS_IO : STATUS_OK);
        CHECK_INT(tap, good.status, HEAP_FAILS ? STATUS_OK : STATUS_IO);
        cluster_free(&good);
        CHECK(tap, !HEAP_FAILS || !none_written);
        free(none_written);
        for (int i = 0; HEAP_FAILS && i < 100; i++) { // until there is no room
            heap_fail_after(0);
            int status = cluster_join(&c, &message, &member, NULL);
            heap_fail_after(-1);
            if (status) {
                CHECK_INT(tap, status, STATUS_IO);
                break;
            }
            cluster_free(&c);
            c = rich();
            for (int j = 0; j <= i; j++)
                join(&c, PROTO_ROLE_WORKER, "");
            free(before);
            before = cluster_write(&c);
        }
        after = cluster_write(&c);
        CHECK(tap, !HEAP_FAILS || !strcmp(before, after));
        free(before);
        free(after);
        cluster_free(&c);
    });
}

// Members of each role with all their figures.
static const struct proto_member described[] = {
    {.role = PROTO_ROLE_CONTROLLER,
     .epoch = 1.5,
     .name = {"training", 8},
     .loss = NAN,
     .waiting = NAN,
     .overlap = NAN,
     .staleness = NAN,
     .state = PROTO_STATE_WORKING},
    {.member = 1,
     .role = PROTO_ROLE_PARAMETER_SERVER,
     .name = {"ps-1", 4},
     .staleness = 2.25,
     .loss = 0,
     .at_risk = NAN,
     .refused = 3,
     .received = 999,
     .sent = 1000,
     .state = PROTO_STATE_WORKING},
    {.member = 2,
     .role = PROTO_ROLE_DATA_SERVER,
     .name = {"serve-1", 7},
     .address = {"tcp://a:1", 9},
     .epoch = 0.5,
     .received = 1234567,
     .sent = 2500000000000,
     .state = PROTO_STATE_WAITING,
     .waits_for = {"ps-1", 4}},
    {.member = 3,
     .role = PROTO_ROLE_WORKER,
     .name = {"worker-1", 8},
     .rate = 300,
     .loss = 1,
     .waiting = 0.5,
     .overlap = 0.25,
     .silent = 1500,
     .clock = 4,
     .samples = 5,
     .pushes = 6,
     .pulls = 7,
     .sent = 5000000000000000,
     .state = PROTO_STATE_GONE},
    {.member = 4, .role = PROTO_ROLE_EVALUATOR, .name = {"eval", 4}, .rate = 0.5},
};

// clang-format off
static const char table_text[] =
    "ROLE              NO  NAME      STATE     EPOCH  RATE/S    LOSS  STALE  WAIT  OVERLAP  REFUSED  RECEIVED     SENT  WAITS FOR\n"
    "controller         0  training  working    1.50       -       -      -     -        -        0         0        0\n"
    "parameter server   1  ps-1      working       -       -       -    2.2     -        -        3       999     1.0K\n"
    "data server        2  serve-1   waiting    0.50       0       -      -     -        -        0      1.2M     2.5T  ps-1\n"
    "worker             3  worker-1  gone          -     300  1.0000      -   50%      25%        0         0  5000.0T\n"
    "evaluator          4  eval      starting      -       0       -      -     -        -        0         0        0\n"
    "nothing was trained for 12 s: there is no worker\n"
    "25% of each epoch is left out\n";
static const char stores_text[] =
    "ROLE              NO  NAME      STATE    EPOCH  RATE/S    LOSS  STALE  WAIT  OVERLAP  REFUSED  RECEIVED     SENT  DIRTY  AT RISK  BEHIND  WAITS FOR\n"
    "parameter server   1  ps-1      working      -       -       -    2.2     -        -        3       999     1.0K   2.0M     0.2s       0\n"
    "parameter server   1  ps-1      working      -       -       -    2.2     -        -        3       999     1.0K      -        -       7\n"
    "worker             3  worker-1  gone         -     300  1.0000      -   50%      25%        0         0  5000.0T      -        -       -\n";
static const char status_json[] =
    "{\"run\":\"01020000000000000000000000000000\",\"stage\":\"training\",\"epoch\":1.5,\"idle\":12,"
    "\"left_out\":0.25,\"members\":[{\"member\":0,\"role\":\"controller\",\"name\":\"training\","
    "\"address\":\"\",\"state\":\"working\",\"silent_ms\":0,\"clock\":0,\"samples\":0,\"pushes\":0,"
    "\"pulls\":0,\"refused\":0,\"received\":0,\"sent\":0,\"epoch\":1.5,\"rate\":0.0,\"loss\":null,"
    "\"staleness\":null,\"waiting\":null,\"overlap\":null,\"dirty_bytes\":0,\"at_risk\":0.0,\"behind\":0,\"replica\":0,\"partition\":0,\"waits_for\":\"\"},{\"member\":1,"
    "\"role\":\"parameter server\",\"name\":\"ps-1\",\"address\":\"\",\"state\":\"working\",\"silent_ms\":0,"
    "\"clock\":0,\"samples\":0,\"pushes\":0,\"pulls\":0,\"refused\":3,\"received\":999,\"sent\":1000,"
    "\"epoch\":0.0,\"rate\":0.0,\"loss\":0.0,\"staleness\":2.25,\"waiting\":0.0,\"overlap\":0.0,"
    "\"dirty_bytes\":0,\"at_risk\":null,\"behind\":0,\"replica\":0,\"partition\":0,\"waits_for\":\"\"},{\"member\":2,\"role\":\"data server\",\"name\":\"serve-1\","
    "\"address\":\"tcp://a:1\",\"state\":\"waiting\",\"silent_ms\":0,\"clock\":0,\"samples\":0,"
    "\"pushes\":0,\"pulls\":0,\"refused\":0,\"received\":1234567,\"sent\":2500000000000,\"epoch\":0.5,"
    "\"rate\":0.0,\"loss\":0.0,\"staleness\":0.0,\"waiting\":0.0,\"overlap\":0.0,\"dirty_bytes\":0,\"at_risk\":0.0,\"behind\":0,\"replica\":0,\"partition\":0,\"waits_for\":\"ps-1\"},"
    "{\"member\":3,\"role\":\"worker\",\"name\":\"worker-1\",\"address\":\"\",\"state\":\"gone\","
    "\"silent_ms\":1500,\"clock\":4,\"samples\":5,\"pushes\":6,\"pulls\":7,\"refused\":0,\"received\":0,"
    "\"sent\":5000000000000000,\"epoch\":0.0,\"rate\":300.0,\"loss\":1.0,\"staleness\":0.0,"
    "\"waiting\":0.5,\"overlap\":0.25,\"dirty_bytes\":0,\"at_risk\":0.0,\"behind\":0,\"replica\":0,\"partition\":0,\"waits_for\":\"\"},{\"member\":4,\"role\":\"evaluator\","
    "\"name\":\"eval\",\"address\":\"\",\"state\":\"starting\",\"silent_ms\":0,\"clock\":0,\"samples\":0,"
    "\"pushes\":0,\"pulls\":0,\"refused\":0,\"received\":0,\"sent\":0,\"epoch\":0.0,\"rate\":0.5,"
    "\"loss\":0.0,\"staleness\":0.0,\"waiting\":0.0,\"overlap\":0.0,\"dirty_bytes\":0,\"at_risk\":0.0,\"behind\":0,\"replica\":0,\"partition\":0,\"waits_for\":\"\"}]}";
// clang-format on

static void test_table(struct tap *tap) {
    struct proto_status status = {
        .run = {{1, 2}}, .members = proto_list(described, 5), .idle = 12, .left_out = 0.25};
    TEST(tap, "a table tells of each member what its role has, and what is amiss", {
        char *table = figures_table(&status);
        CHECK_TEXT(tap, table, table_text);
        free(table);
    });
    TEST(tap,
         "where a server has a store, the table tells what is at risk; where one is behind, that", {
             struct proto_member servers[] = {described[1], described[1], described[3]};
             servers[0].dirty_bytes = 2000000;
             servers[0].at_risk = 0.25;
             servers[1].behind = 7;
             status.members = proto_list(servers, 3);
             status.idle = 0;
             status.left_out = 0;
             char *table = figures_table(&status);
             CHECK_TEXT(tap, table, stores_text);
             free(table);
             status.members = proto_list(described, 5);
             status.idle = 12;
             status.left_out = 0.25;
         });
    TEST(tap, "JSON tells all", {
        json_t *object = figures_json(&status);
        char *text = json_line(object);
        CHECK_TEXT(tap, text, status_json);
        free(text);
        json_decref(object);
        status.left_out = NAN;
        status.members.count = 0;
        object = figures_json(&status);
        text = json_line(object);
        CHECK_TEXT(tap, text,
                   "{\"run\":\"01020000000000000000000000000000\",\"stage\":\"\",\"epoch\":null,"
                   "\"idle\":12,\"left_out\":0.0,\"members\":[]}");
        free(text);
        json_decref(object);
    });
    TEST(tap, "a waiting member, and only that, has a line of its own", {
        status.members.count = 5;
        char *waits = figures_waits(&status);
        CHECK_TEXT(tap, waits, "serve-1 waits for ps-1\n");
        free(waits);
        status.members.count = 0;
        waits = figures_waits(&status);
        CHECK_TEXT(tap, waits, "");
        free(waits);
    });
    TEST(tap, "Prometheus is told nothing of who is gone", {
        status.members.count = 5;
        char *text = figures_prometheus(&status);
        CHECK(tap, strstr(text, "adam_sent_bytes_total{member=\"2\",role=\"data server\","
                                "name=\"serve-1\"} 2.5e+12\n"));
        CHECK(tap, strstr(text, "# TYPE adam_clock_total counter\n"));
        CHECK(tap, !strstr(text, "member=\"3\""));
        CHECK(tap,
              strstr(text, "adam_epoch{member=\"0\",role=\"controller\",name=\"training\"} 1.5\n"));
        free(text);
    });
}

static void test_figures(struct tap *tap) {
    struct proto_member members[] = {
        {.role = PROTO_ROLE_CONTROLLER, .epoch = 1.5, .name = proto_text("training"), .loss = NAN},
        {.member = 1,
         .role = PROTO_ROLE_WORKER,
         .name = proto_text("w\"\\\n"),
         .rate = 300,
         .loss = 1,
         .waiting = 0.5,
         .silent = 1500},
        {.member = 2, .role = PROTO_ROLE_WORKER, .rate = 100, .loss = 3, .waiting = 0.1},
        {.member = 3, .role = PROTO_ROLE_WORKER, .loss = NAN, .waits_for = proto_text("x\033")},
    };
    struct proto_status status = {.members = proto_list(members, 4)};
    char line[FIGURES_LINE];
    TEST(tap, "a line tells the sum of workers that train, and their mean loss by samples", {
        figures_line(line, &status, 6);
        CHECK_TEXT(tap, line, "epoch 1.50 of 6  loss 1.5000  2 workers  400 images/s  wait 30%");
        members[2].rate = 0;
        members[1].loss = NAN;
        figures_line(line, &status, 0);
        CHECK_TEXT(tap, line, "epoch 1.50  1 worker  300 images/s  wait 50%");
        members[1].rate = 0.5;
        members[1].loss = 2;
        figures_line(line, &status, 0);
        CHECK_TEXT(tap, line, "epoch 1.50  loss 2.0000  1 worker  0 images/s  wait 50%");
        members[1].rate = NAN;
        figures_line(line, &status, 0);
        CHECK_TEXT(tap, line, "");
    });
    TEST(tap, "text of members is printable, and quoted for Prometheus", {
        char *waits = figures_waits(&status), *prom = figures_prometheus(&status);
        CHECK_TEXT(tap, waits, " waits for x\\x1b\n");
        CHECK(tap, strstr(prom, "adam_silent_seconds{member=\"1\",role=\"worker\","
                                "name=\"w\\\"\\\\\\\\n\"} 1.5\n"));
        CHECK(tap, strstr(prom, "adam_loss{member=\"3\",role=\"worker\",name=\"\"} NaN\n"));
        free(waits);
        free(prom);
    });
}

static char *read_whole(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    *size = f && text ? fread(text, 1, (1 << 16) - 1, f) : 0;
    if (f)
        fclose(f);
    return text;
}

static void write_whole(const char *path, const char *text, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(text, 1, size, f) != size || fclose(f))
        exit(2);
}

// A register's file of these fields, with apostrophes for quotes, and the sum over them.
static void write_sealed(const char *path, const char *fields) {
    char text[256];
    int n = snprintf(text, sizeof text, "{%s}", fields);
    for (char *at = text; (at = strchr(at, '\''));)
        *at = '"';
    uint32_t crc = crc32_of(0, text, (size_t)n);
    n +=
        snprintf(text + n - 1, sizeof text - (size_t)n, ",\"crc32\":\"%08" PRIx32 "\"}\n", crc) - 1;
    write_whole(path, text, (size_t)n);
}

static void test_record(struct tap *tap) {
    char path[TEMPFILE_PATH];
    struct paxos_output output;
    tempfile_write(path, "", 0);
    unlink(path);
    TEST(tap, "what was agreed on is there after a restart, with ever higher ballots", {
        struct record *record;
        size_t size = 0, before, after;
        CHECK_INT(tap, record_open(&record, path, &alone, NULL), STATUS_OK);
        CHECK(tap, !record_state(record, &size));
        CHECK_INT(tap, record_propose(record, "{\"a\":1}", &output, NULL), STATUS_OK);
        CHECK_INT(tap, record_propose(record, "{\"a\":2}", &output, NULL), STATUS_OK);
        record_close(record);
        char *first = read_whole(path, &before);
        CHECK_INT(tap, record_open(&record, path, &alone, NULL), STATUS_OK);
        const char *state = record_state(record, &size);
        CHECK(tap, state && size == 7 && !memcmp(state, "{\"a\":2}", 7));
        record_close(record);
        char *second = read_whole(path, &after);
        CHECK(tap, strcmp(first, second) != 0); // it promised a ballot of its own
        CHECK(tap, before > 0 && first[before - 1] == '\n');
        free(first);
        free(second);
    });
    TEST(tap, "a state that no message could carry is refused", {
        struct record *record;
        size_t most = (1 << 20) - 64, size = 0;
        char *state = malloc(most + 2);
        memset(state, '0', most + 2);
        memcpy(state, "{\"a\":\"", 6);
        memcpy(state + most - 2, "\"}", 3);
        CHECK_INT(tap, record_open(&record, path, &alone, NULL), STATUS_OK);
        CHECK_INT(tap, record_propose(record, state, &output, NULL), STATUS_OK);
        CHECK(tap, record_state(record, &size) && size == most);
        memcpy(state + most - 2, "0\"}", 4);
        CHECK_INT(tap, record_propose(record, state, &output, NULL), STATUS_DATA);
        CHECK(tap, record_state(record, &size) && size == most);
        CHECK_INT(tap, record_propose(record, "{\"a\":2}", &output, NULL), STATUS_OK);
        record_close(record);
        free(state);
    });
    TEST(tap, "a file with any byte changed, or without its end, is refused", {
        struct record *record;
        size_t size;
        char *text = read_whole(path, &size);
        for (size_t i = 0; i + 1 < size; i++) {
            text[i] ^= 1;
            write_whole(path, text, size);
            if (record_open(&record, path, &alone, NULL) == STATUS_OK) {
                FAIL(tap, "byte %zu changed: %s", i, text);
                record_close(record);
            }
            text[i] ^= 1;
        }
        for (size_t n = 0; n + 1 < size; n++) {
            write_whole(path, text, n);
            CHECK_INT(tap, record_open(&record, path, &alone, NULL), STATUS_DATA);
        }
        write_whole(path, text, size);
        CHECK_INT(tap, record_open(&record, path, &alone, NULL), STATUS_OK);
        record_close(record);
        free(text);
    });
    TEST(tap, "a file that memory does not suffice for is not called damaged", {
        struct record *record;
        struct error err;
        int status = STATUS_IO;
        for (int n = 0; status && HEAP_FAILS; n++) {
            err = (struct error){0};
            heap_fail_after(n);
            status = record_open(&record, path, &alone, &err);
            heap_fail_after(-1);
            if (status && (status != STATUS_IO || strstr(err.text, "damaged")))
                FAIL(tap, "memory for %d: status %d, %s", n, status, err.text);
        }
        if (HEAP_FAILS)
            record_close(record);
    });
    TEST(tap, "a file that cannot be reached is no new record", {
        struct record *record;
        char there[TEMPFILE_PATH + 2];
        struct error err = {0};
        snprintf(there, sizeof there, "%s.l", path);
        CHECK(tap, symlink(there, there) == 0); // a link to itself
        CHECK(tap, record_exists(there));
        CHECK_INT(tap, record_open(&record, there, &alone, &err), STATUS_NOINPUT);
        CHECK(tap, strstr(err.text, strerror(ELOOP)) != NULL);
        unlink(there);
        CHECK(tap, !record_exists(there));
    });
    TEST(tap, "a file that lacks one of its numbers is refused, also if its sum is right", {
        static const char *const lacking[] = {
            "'v':1,'accepted':256,'version':0,'state':null",
            "'v':1,'promised':256,'version':0,'state':null",
            "'v':1,'promised':256,'accepted':256,'state':null",
            "'v':1,'promised':256,'accepted':256,'version':0",
            "'promised':256,'accepted':256,'version':0,'state':null",
            "'v':2,'promised':256,'accepted':256,'version':0,'state':null",
            "'v':1,'promised':-1,'accepted':256,'version':0,'state':null",
        };
        struct record *record;
        for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) {
            write_sealed(path, lacking[i]);
            CHECK_INT(tap, record_open(&record, path, &alone, NULL), STATUS_DATA);
        }
        write_sealed(path, "'v':1,'promised':256,'accepted':256,'version':0,'state':null");
        CHECK_INT(tap, record_open(&record, path, &alone, NULL), STATUS_OK);
        record_close(record);
    });
    unlink(path);
}

// What run_file_read says of a text; "" when it is good.
static void mistake_in(const char *text, char said[ERROR_TEXT]) {
    char path[TEMPFILE_PATH];
    struct run_file file;
    struct error err = {0};
    tempfile_write(path, text, strlen(text));
    if (!run_file_read(&file, path, &err))
        run_file_free(&file);
    snprintf(said, ERROR_TEXT, "%s", *err.text ? err.text + strlen(path) : "");
    unlink(path);
}

#define A_LONG_WORD "a_word_that_is_longer_than_the_sixty_three_letters_of_a_name_of_a_layer"

static void test_run_file(struct tap *tap) {
    TEST(tap, "keys, comments, blanks, paths and overrides of layers are read", {
        static const char text[] =
            "# a comment\n\n  model = m.net  # behind\ndata=/abs/d.arec\r\n"
            "ops = 'a#b'\nc1.maps = 7\nprotocol = softsync:4\nrate = 1/8\n" A_LONG_WORD ".rate=2\n";
        char path[TEMPFILE_PATH], wanted[TEMPFILE_PATH + 8];
        struct run_file file;
        tempfile_write(path, text, sizeof text - 1);
        CHECK_INT(tap, run_file_read(&file, path, NULL), STATUS_OK);
        snprintf(wanted, sizeof wanted, "%.*s/m.net", (int)(strrchr(path, '/') - path), path);
        CHECK_TEXT(tap, file.settings.model, wanted);
        CHECK_TEXT(tap, file.settings.data, "/abs/d.arec");
        CHECK_TEXT(tap, file.settings.ops, "'a#b'");
        CHECK_TEXT(tap, file.settings.protocol, "softsync:4");
        CHECK_NEAR(tap, file.settings.rate, 0.125, 0);
        CHECK_INT(tap, file.set_count, 2);
        CHECK_TEXT(tap, file.sets[0], "c1.maps=7");
        CHECK_TEXT(tap, file.sets[1], A_LONG_WORD ".rate=2");
        static const char *const sets[] = {"rate=0.5", "rate", "sync=1"};
        CHECK_INT(tap, run_file_set(&file, &sets[0], 1, NULL), STATUS_OK);
        CHECK_NEAR(tap, file.settings.rate, 0.5, 0);
        CHECK_INT(tap, run_file_set(&file, &sets[1], 1, NULL), STATUS_USAGE);
        CHECK_INT(tap, run_file_set(&file, &sets[2], 1, NULL), STATUS_USAGE);
        run_file_free(&file);
        unlink(path);
    });
    TEST(tap, "what the file has goes where it means nothing beside what overrides it", {
        static const char text[] = "optimizer = adam\nmomentum = 0.8\nbeta2 = 0.99\n"
                                   "epsilon = 1e-3\nthreads = 3\nlabels = l\n";
        static const char *const sets[] = {"optimizer=rmsprop", "partitions=2", "data=d"};
        static const char *const own[] = {"optimizer=sgd", "beta2=0.9"};
        struct settings plain;
        char path[TEMPFILE_PATH];
        struct run_file file;
        settings_default(&plain);
        tempfile_write(path, text, sizeof text - 1);
        CHECK_INT(tap, run_file_read(&file, path, NULL), STATUS_OK);
        CHECK_INT(tap, run_file_set(&file, sets, 3, NULL), STATUS_OK);
        CHECK(tap, isnan(file.settings.momentum));
        CHECK_NEAR(tap, file.settings.beta2, 0.99, 0);
        CHECK_NEAR(tap, file.settings.epsilon, 1e-3, 0);
        CHECK_INT(tap, file.settings.threads, plain.threads);
        CHECK(tap, file.settings.labels);
        run_file_free(&file);
        CHECK_INT(tap, run_file_read(&file, path, NULL), STATUS_OK);
        CHECK_INT(tap, run_file_set(&file, own, 2, NULL), STATUS_OK);
        CHECK_NEAR(tap, file.settings.epsilon, plain.epsilon, 0);
        CHECK_NEAR(tap, file.settings.beta2, 0.9, 0); // somebody means it
        CHECK_INT(tap, file.settings.threads, 3);
        run_file_free(&file);
        unlink(path);
    });
    TEST(tap, "mistakes are named with line, column and a caret", {
        static const char *const mistakes[][2] = {
            {"\n rte = 1\n", ":2:2: error: unknown key 'rte'; did you mean 'rate'?\n"
                             "    2 |  rte = 1\n      |  ^~~"},
            {"rate = fast\n", ":1:8: error: rate is a number of 0 to 1e+09, not 'fast'\n"
                              "    1 | rate = fast\n      |        ^~~~"},
            {"batch = 0", ":1:9: error: batch is a whole number of 1 to 1e+06, not '0'\n"
                          "    1 | batch = 0\n      |         ^"},
            {"push = weights", ":1:8: error: push is one of delta, gradient, not 'weights'\n"
                               "    1 | push = weights\n      |        ^~~~~~~"},
            {"seed = 1\nseed = 2\n", ":2:1: error: 'seed' is set in line 1 already\n"
                                     "    2 | seed = 2\n      | ^~~~"},
            {"rate\n", ":1:1: error: expected KEY = VALUE\n    1 | rate\n      | ^~~~"},
            {" = 1\n", ":1:4: error: a key is missing before '='\n    1 |  = 1\n      |    ^"},
            {A_LONG_WORD " = 1\n",
             ":1:1: error: unknown key '" A_LONG_WORD "'\n    1 | " A_LONG_WORD
             " = 1\n      | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~"},
            {"rate = # none\n", ":1:1: error: 'rate' needs a value\n"
                                "    1 | rate = # none\n      | ^~~~"},
        };
        char said[ERROR_TEXT];
        for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
            mistake_in(mistakes[i][0], said);
            CHECK_TEXT(tap, said, mistakes[i][1]);
        }
    });
}

static void test_settings(struct tap *tap) {
    TEST(tap, "settings come back from their text as they were, to the last bit", {
        struct settings s, back;
        settings_default(&s);
        s.rate = 0.1 + 0.2;
        s.momentum = 0.9;
        s.test = "a b=c";
        s.push_every = 7;
        char *text = settings_text(&s), *copy = settings_text(&s);
        settings_default(&back);
        CHECK_INT(tap, settings_parse(&back, text, NULL), STATUS_OK);
        CHECK(tap, back.rate == 0.1 + 0.2 && back.momentum == 0.9);
        CHECK_TEXT(tap, back.test, "a b=c");
        CHECK_INT(tap, back.push_every, 7);
        char *again = settings_text(&back);
        CHECK_TEXT(tap, again, copy);
        free(text);
        free(copy);
        free(again);
    });
    TEST(tap, "lines are taken all or none", {
        struct settings s;
        char lines[] = "warmup=0.5\nbatch=none\n";
        settings_default(&s);
        CHECK_INT(tap, settings_parse(&s, lines, NULL), STATUS_USAGE);
        CHECK_NEAR(tap, s.warmup, 0, 0);
    });
    TEST(tap, "what many processes would do as usual is not in a checkpoint of one", {
        struct settings s;
        settings_default(&s);
        json_t *object = settings_write(&s);
        CHECK(tap, !json_object_get(object, "protocol") && json_object_get(object, "batch"));
        json_decref(object);
        s.protocol = "hardsync";
        object = settings_write(&s);
        CHECK(tap, json_object_get(object, "protocol"));
        json_decref(object);
    });
}

int main(void) {
    struct tap tap = {0};
    test_members(&tap);
    test_routes(&tap);
    test_parts(&tap);
    test_text(&tap);
    test_stages(&tap);
    test_copy(&tap);
    test_agreed(&tap);
    test_progress(&tap);
    test_vitals(&tap);
    test_givers(&tap);
    test_links(&tap);
    test_memory(&tap);
    test_figures(&tap);
    test_table(&tap);
    test_record(&tap);
    test_run_file(&tap);
    test_settings(&tap);
    return tap_done(&tap);
}
