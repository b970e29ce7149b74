// The bounds of a controller's parts: how many members and servers there may be, who is forgotten,
// what a text may say, why a run ends, when a link was closed, and the words in which people are
// told of it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../helper/tap.h"
#include "cluster/cluster.h"
#include "cluster/figures.h"
#include "cluster/paxos.h"
#include "cluster/progress.h"
#include "cluster/vitals.h"
#include "core/error.h"

static struct cluster begin(void) {
    struct cluster cluster;
    const struct proto_id run = {{1}};
    if (cluster_open(&cluster, run, "a.net", "input 1x2x2\n", "rate=0.1\n", NULL, NULL))
        exit(2);
    return cluster;
}

static int join(struct cluster *cluster, enum proto_role role, const char *address,
                const struct cluster_member **member) {
    const struct proto_join message = {
        .role = (uint16_t)role, .name = proto_text("n07"), .training = proto_text(address)};
    return cluster_join(cluster, &message, member, NULL);
}

static uint32_t joined(struct cluster *cluster, enum proto_role role, const char *address) {
    const struct cluster_member *member;
    if (join(cluster, role, address, &member))
        exit(2);
    return member->number;
}

// --- members ------------------------------------------------------------------------------

static void test_members(struct tap *tap) {
    const struct cluster_member *member;
    TEST(tap, "a member is all that it said when it joined, whole numbers up to 2^63 - 1", {
        struct cluster c = begin();
        const struct proto_join message = {.role = PROTO_ROLE_DATA_SERVER,
                                           .threads = 3,
                                           .memory = UINT64_MAX,
                                           .first = INT64_MAX,
                                           .samples = 12,
                                           .name = proto_text("n07"),
                                           .training = proto_text("tcp://a:1"),
                                           .replication = proto_text("tcp://a:2"),
                                           .administration = proto_text("tcp://a:3")};
        CHECK_INT(tap, cluster_join(&c, &message, &member, NULL), STATUS_OK);
        CHECK_INT(tap, member->role, PROTO_ROLE_DATA_SERVER);
        CHECK_INT(tap, member->threads, 3);
        CHECK_INT(tap, member->memory, INT64_MAX);
        CHECK_INT(tap, member->first, INT64_MAX);
        CHECK_INT(tap, member->samples, 12);
        CHECK_TEXT(tap, member->training, "tcp://a:1");
        CHECK_TEXT(tap, member->replication, "tcp://a:2");
        CHECK_TEXT(tap, member->administration, "tcp://a:3");
        char name[128];
        cluster_name(name, member);
        CHECK_TEXT(tap, name, "data server 1 (n07)");
        cluster_free(&c);
    });
    TEST(tap, "2000 members may live, and one that goes makes room", {
        struct cluster c = begin();
        for (int i = 0; i < CLUSTER_MEMBERS_MAX; i++)
            joined(&c, PROTO_ROLE_WORKER, "");
        uint64_t epoch = c.members_epoch;
        CHECK_INT(tap, join(&c, PROTO_ROLE_WORKER, "", &member), STATUS_UNAVAILABLE);
        CHECK_INT(tap, c.member_count, CLUSTER_MEMBERS_MAX);
        CHECK_INT(tap, c.members_epoch, epoch);
        cluster_leave(&c, 7);
        CHECK_INT(tap, join(&c, PROTO_ROLE_WORKER, "", &member), STATUS_OK);
        CHECK_INT(tap, member->number, CLUSTER_MEMBERS_MAX + 1);
        cluster_free(&c);
    });
    TEST(tap, "only the same role at the same address is the same member", {
        struct cluster c = begin();
        joined(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:1");
        joined(&c, PROTO_ROLE_DATA_SERVER, "tcp://a:1");
        joined(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:11");
        CHECK_INT(tap, cluster_count(&c, PROTO_ROLE_PARAMETER_SERVER), 2);
        CHECK_INT(tap, cluster_count(&c, PROTO_ROLE_DATA_SERVER), 1);
        cluster_free(&c);
    });
    TEST(tap, "who joins again at the longest address is the same member", {
        struct cluster c = begin();
        char address[PROTO_ADDRESS_MAX + 1] = "tcp://";
        memset(address + 6, 'a', PROTO_ADDRESS_MAX - 6);
        joined(&c, PROTO_ROLE_DATA_SERVER, address);
        joined(&c, PROTO_ROLE_DATA_SERVER, address);
        CHECK_INT(tap, cluster_count(&c, PROTO_ROLE_DATA_SERVER), 1);
        cluster_free(&c);
    });
    TEST(tap, "workers of a model that is cut fill one replica after the other", {
        struct cluster c = begin();
        c.partitions = 3;
        for (uint32_t i = 0; i < 7; i++) {
            CHECK_INT(tap, join(&c, PROTO_ROLE_WORKER, "", &member), STATUS_OK);
            CHECK_INT(tap, member->replica, i / 3);
            CHECK_INT(tap, member->partition, i % 3);
        }
        CHECK(tap, cluster_replica_whole(&c, 1) && !cluster_replica_whole(&c, 2));
        char *text = cluster_write(&c);
        struct cluster copy;
        CHECK_INT(tap, cluster_read(&copy, text, strlen(text), NULL), STATUS_OK);
        CHECK_INT(tap, copy.partitions, 3);
        CHECK_INT(tap, copy.members[5].replica, 1);
        CHECK_INT(tap, copy.members[5].partition, 2);
        cluster_free(&copy);
        free(text);
        cluster_free(&c);
    });
    TEST(tap, "the others of a replica that trains are gone with one of them, until the run ends", {
        struct cluster c = begin();
        c.partitions = 2;
        for (int i = 0; i < 5; i++)
            joined(&c, PROTO_ROLE_WORKER, "");
        cluster_leave(&c, 5); // its replica was not whole
        CHECK_INT(tap, cluster_count(&c, PROTO_ROLE_WORKER), 4);
        CHECK_INT(tap, joined(&c, PROTO_ROLE_WORKER, ""), 6);
        CHECK_INT(tap, cluster_numbered(&c, 6)->replica, 2);
        cluster_leave(&c, 2);
        CHECK_INT(tap, cluster_count(&c, PROTO_ROLE_WORKER), 3);
        CHECK(tap, cluster_numbered(&c, 1)->gone && !cluster_numbered(&c, 3)->gone);
        // The replica that is begun comes first.
        joined(&c, PROTO_ROLE_WORKER, "");
        CHECK_INT(tap, cluster_numbered(&c, 7)->replica, 2);
        joined(&c, PROTO_ROLE_WORKER, "");
        CHECK_INT(tap, cluster_numbered(&c, 8)->replica, 0);
        c.stage = CLUSTER_DRAINING;
        cluster_leave(&c, 3);
        CHECK(tap, !cluster_numbered(&c, 4)->gone);
        cluster_free(&c);
        c = begin();
        c.partitions = 3;
        joined(&c, PROTO_ROLE_WORKER, "");
        joined(&c, PROTO_ROLE_WORKER, "");
        cluster_leave(&c, 1); // it did not train yet
        CHECK_INT(tap, cluster_count(&c, PROTO_ROLE_WORKER), 1);
        cluster_free(&c);
    });
    TEST(tap, "who is not there, or has gone, does not leave", {
        struct cluster c = begin();
        uint32_t number = joined(&c, PROTO_ROLE_DATA_SERVER, "tcp://a:1");
        cluster_leave(&c, number);
        uint64_t epoch = c.members_epoch;
        CHECK_INT(tap, c.routes_epoch, 0); // none yet, that could change
        cluster_leave(&c, number);
        cluster_leave(&c, 99);
        CHECK_INT(tap, c.members_epoch, epoch);
        cluster_free(&c);
    });
    TEST(tap, "a server that has buckets is never forgotten", {
        struct cluster c = begin();
        uint32_t number = joined(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:1");
        CHECK_INT(tap, cluster_assign(&c, NULL), STATUS_OK);
        cluster_leave(&c, number);
        for (int i = 0; i < 2 * CLUSTER_GONE_MAX; i++)
            cluster_leave(&c, joined(&c, PROTO_ROLE_WORKER, ""));
        CHECK(tap, cluster_lost(&c) && cluster_lost(&c)->number == number);
        CHECK_INT(tap, c.member_count, 1 + CLUSTER_GONE_MAX);
        cluster_free(&c);
    });
    TEST(tap, "of more servers than buckets the first have one each", {
        struct cluster c = begin();
        static struct proto_bucket buckets[CLUSTER_BUCKETS];
        char address[32];
        for (int i = 0; i <= CLUSTER_BUCKETS; i++) {
            snprintf(address, sizeof address, "tcp://a:%d", i + 1);
            joined(&c, PROTO_ROLE_PARAMETER_SERVER, address);
        }
        CHECK_INT(tap, cluster_assign(&c, NULL), STATUS_OK);
        CHECK_INT(tap, cluster_buckets(&c, buckets), CLUSTER_BUCKETS);
        for (uint32_t i = 0; i < CLUSTER_BUCKETS; i++)
            CHECK_INT(tap, buckets[i].primary, i + 1);
        CHECK(tap, cluster_serves(&c, CLUSTER_BUCKETS) && !cluster_serves(&c, CLUSTER_BUCKETS + 1));
        cluster_free(&c);
    });
    TEST(tap, "the end of the warm start is news to the members", {
        struct cluster c = begin();
        uint64_t epoch = c.members_epoch;
        CHECK(tap, !c.warm);
        cluster_warm(&c);
        CHECK(tap, c.warm && c.members_epoch == epoch + 1);
        cluster_free(&c);
    });
    TEST(tap, "a failure counts more than the user's wish, and the first of each counts", {
        struct cluster c = begin();
        cluster_blame(&c, STATUS_STOPPED, "wished", NULL);
        CHECK_INT(tap, c.status, STATUS_STOPPED);
        cluster_blame(&c, STATUS_IO, "failed", NULL);
        CHECK_INT(tap, c.status, STATUS_IO);
        CHECK_TEXT(tap, c.why, "failed");
        cluster_blame(&c, STATUS_DIVERGED, "later", NULL);
        CHECK_INT(tap, c.status, STATUS_IO);
        CHECK_TEXT(tap, c.why, "failed");
        cluster_free(&c);
    });
}

// --- the text -----------------------------------------------------------------------------

// Reads a state back; with `from`, this is replaced by `to` in its text, which has it.
static int reread(const struct cluster *c, const char *from, const char *to, struct cluster *back) {
    char *text = cluster_write(c), *changed = NULL;
    const char *at = text && from ? strstr(text, from) : text;
    if (!at || asprintf(&changed, "%.*s%s%s", (int)(at - text), text, from ? to : "",
                        at + (from ? strlen(from) : 0)) < 0)
        exit(2);
    int status = cluster_read(back, changed, strlen(changed), NULL);
    free(changed);
    free(text);
    return status;
}

static void test_text(struct tap *tap) {
    struct cluster back;
    TEST(tap, "a run that goes well comes back from its text, and nobody is in it who was not", {
        struct cluster c = begin();
        joined(&c, PROTO_ROLE_WORKER, "");
        CHECK_INT(tap, reread(&c, NULL, NULL, &back), STATUS_OK);
        CHECK(tap, back.status == STATUS_OK && !back.why);
        CHECK_INT(tap, cluster_count(&back, PROTO_ROLE_WORKER), 1);
        CHECK_INT(tap, cluster_count(&back, PROTO_ROLE_CONTROLLER), 0);
        CHECK(tap, !cluster_numbered(&back, 0) && !cluster_find(&back, 0));
        cluster_free(&back);
        cluster_free(&c);
    });
    TEST(tap, "who serves which samples comes back, and is needed", {
        struct cluster c = begin();
        const struct proto_join message = {
            .role = PROTO_ROLE_DATA_SERVER, .first = 40, .samples = 12, .name = proto_text("n07")};
        const struct cluster_member *member;
        CHECK_INT(tap, cluster_join(&c, &message, &member, NULL), STATUS_OK);
        CHECK_INT(tap, reread(&c, NULL, NULL, &back), STATUS_OK);
        CHECK_INT(tap, back.members[0].first, 40);
        CHECK_INT(tap, back.members[0].samples, 12);
        cluster_free(&back);
        CHECK_INT(tap, reread(&c, "\"samples\":12", "\"samples\":-1", &back), STATUS_DATA);
        CHECK_INT(tap, reread(&c, "\"first\":40", "\"first\":-1", &back), STATUS_DATA);
        CHECK_INT(tap, reread(&c, "\"memory\":0", "\"memory\":-1", &back), STATUS_DATA);
        cluster_free(&c);
    });
    TEST(tap, "a server for each bucket comes back", {
        struct cluster c = begin();
        char address[32];
        for (int i = 0; i < CLUSTER_BUCKETS; i++) {
            snprintf(address, sizeof address, "tcp://a:%d", i + 1);
            joined(&c, PROTO_ROLE_PARAMETER_SERVER, address);
        }
        CHECK_INT(tap, cluster_assign(&c, NULL), STATUS_OK);
        CHECK_INT(tap, reread(&c, NULL, NULL, &back), STATUS_OK);
        CHECK_INT(tap, back.place_count, CLUSTER_BUCKETS);
        cluster_free(&back);
        cluster_free(&c);
    });
    TEST(tap, "a text of another format, or without a list, is refused", {
        struct cluster c = begin();
        CHECK_INT(tap, reread(&c, "\"format\":2", "\"format\":1", &back), STATUS_DATA);
        CHECK_INT(tap, reread(&c, "\"members\":[]", "\"members\":{}", &back), STATUS_DATA);
        CHECK_INT(tap, reread(&c, "\"routes\":[]", "\"routes\":{}", &back), STATUS_DATA);
        CHECK_INT(tap, reread(&c, "\"parts\":[]", "\"parts\":{}", &back), STATUS_DATA);
        cluster_free(&c);
    });
}

// --- copies of the buckets ----------------------------------------------------------------

// A run with `count` parameter servers, members 1 and on, and three copies of each bucket.
static struct cluster begin_copies(int count) {
    struct cluster c = begin();
    char address[32];
    for (int i = 0; i < count; i++) {
        snprintf(address, sizeof address, "tcp://a:%d", i + 1);
        joined(&c, PROTO_ROLE_PARAMETER_SERVER, address);
    }
    c.copies = 3;
    if (cluster_assign(&c, NULL))
        exit(2);
    return c;
}

static bool silent(const void *self, const struct cluster_member *member) {
    return member->number == *(const uint32_t *)self;
}

static bool all_silent(const void *self, const struct cluster_member *member) {
    (void)self;
    return member != NULL;
}

static bool same_place(const struct proto_place *a, const struct proto_place *b) {
    return a->bucket == b->bucket && a->epoch == b->epoch && a->primary == b->primary &&
           a->second == b->second && a->third == b->third && a->joiner == b->joiner;
}

static void test_copies(struct tap *tap) {
    struct cluster c = begin_copies(4), back;
    static struct proto_bucket buckets[CLUSTER_BUCKETS];
    bool changed = false;
    TEST(tap, "with one copy a state is written as it was before there were copies", {
        struct cluster one = begin();
        joined(&one, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:1");
        CHECK_INT(tap, cluster_assign(&one, NULL), STATUS_OK);
        char *text = cluster_write(&one);
        CHECK(tap, strstr(text, "\"format\":2") != NULL);
        CHECK(tap, strstr(text, "\"routes\":[{\"first\":0,\"count\":1024,\"epoch\":1,"
                                "\"primary\":1}]") != NULL);
        CHECK(tap, !strstr(text, "copies") && !strstr(text, "draining"));
        free(text);
        cluster_free(&one);
    });
    TEST(tap, "the places of all copies come back", {
        c.places[7].joiner = c.places[7].second;
        c.places[7].second = c.places[7].third;
        c.places[7].third = PROTO_NOBODY;
        CHECK_INT(tap, cluster_drain(&c, 2, NULL), STATUS_OK);
        c.members[0].parts = true;
        CHECK_INT(tap, reread(&c, NULL, NULL, &back), STATUS_OK);
        CHECK_INT(tap, back.copies, 3);
        CHECK_INT(tap, back.place_count, CLUSTER_BUCKETS);
        for (uint32_t b = 0; b < CLUSTER_BUCKETS; b++)
            CHECK(tap, same_place(&back.places[b], &c.places[b]));
        CHECK(tap, back.members[1].draining && !back.members[0].draining);
        CHECK(tap, back.members[0].parts && !back.members[1].parts);
        cluster_free(&back);
        CHECK_INT(tap, cluster_buckets(&c, buckets), CLUSTER_BUCKETS);
        CHECK_INT(tap, buckets[9].second, c.places[9].second);
        CHECK_INT(tap, buckets[9].third, c.places[9].third);
    });
    TEST(tap, "places that make no sense are refused", {
        char wrong[64], *text = cluster_write(&c);
        snprintf(wrong, sizeof wrong, "\"second\":%u", c.places[0].second);
        CHECK(tap, strstr(text, wrong) != NULL);
        free(text);
        CHECK_INT(tap, reread(&c, wrong, "\"second\":1", &back), STATUS_DATA); // the primary
        CHECK_INT(tap, reread(&c, wrong, "\"second\":99", &back), STATUS_DATA);
        CHECK_INT(tap, reread(&c, wrong, "\"second\":-1", &back), STATUS_DATA);
        CHECK_INT(tap, reread(&c, wrong, "\"second\":4294967295", &back), STATUS_DATA);
        CHECK_INT(tap, reread(&c, "\"copies\":3", "\"copies\":0", &back), STATUS_DATA);
        CHECK_INT(tap, reread(&c, "\"copies\":3", "\"copies\":4", &back), STATUS_DATA);
        CHECK_INT(tap, reread(&c, "\"parts\":true", "\"parts\":1", &back), STATUS_DATA);
        CHECK_INT(tap, reread(&c, "\"draining\":true", "\"draining\":1", &back), STATUS_DATA);
    });
    TEST(tap, "the buckets of a server that is lost go to others, and routes are new", {
        uint64_t epoch = c.routes_epoch;
        uint32_t number = 1;
        CHECK_INT(tap, cluster_may_lose(&c, 4, silent, &number, &changed, NULL), STATUS_OK);
        CHECK(tap, changed);
        cluster_lose(&c, 1);
        CHECK_INT(tap, c.routes_epoch, epoch + 1);
        CHECK(tap, !cluster_serves(&c, 1) && !cluster_lost(&c));
        CHECK_INT(tap, c.places[0].epoch, epoch + 1);
        cluster_leave(&c, 1);
        cluster_lose(&c, 1);
        cluster_lose(&c, 99);
        CHECK_INT(tap, c.routes_epoch, epoch + 1);
    });
    TEST(tap, "joiners come, and are members when their primary says so", {
        uint64_t epoch = c.routes_epoch;
        CHECK_INT(tap, cluster_fill(&c, NULL, NULL, NULL, &changed, NULL), STATUS_OK);
        CHECK(tap, changed && c.routes_epoch == epoch + 1);
        uint32_t b = 0;
        while (c.places[b].joiner == PROTO_NOBODY)
            b++;
        const struct proto_proposal proposal = {PROTO_CHANGE_COMPLETE, b, c.places[b].epoch,
                                                c.places[b].primary, c.places[b].joiner};
        CHECK_INT(tap, cluster_propose(&c, &proposal, &changed, NULL), STATUS_OK);
        CHECK(tap, changed && c.routes_epoch == epoch + 2 && c.places[b].epoch == epoch + 2);
        CHECK(tap, c.places[b].joiner == PROTO_NOBODY);
        CHECK_INT(tap, cluster_propose(&c, &proposal, &changed, NULL), STATUS_OK);
        CHECK(tap, !changed && c.routes_epoch == epoch + 2);
    });
    TEST(tap, "only a parameter server that lives can be drained", {
        CHECK_INT(tap, cluster_drain(&c, 1, NULL), STATUS_USAGE);
        CHECK_INT(tap, cluster_drain(&c, 99, NULL), STATUS_USAGE);
        CHECK_INT(tap, cluster_drain(&c, joined(&c, PROTO_ROLE_WORKER, ""), NULL), STATUS_USAGE);
        CHECK_INT(tap, cluster_drain(&c, 3, NULL), STATUS_OK);
    });
    TEST(tap, "one that dies while it is drained, and comes back, is drained on", {
        uint32_t heir = joined(&c, PROTO_ROLE_PARAMETER_SERVER, "");
        CHECK(tap, cluster_serves(&c, 3));
        CHECK_INT(tap, cluster_succeed(&c, 3, heir, NULL, all_silent, NULL, NULL), STATUS_OK);
        CHECK(tap, cluster_serves(&c, heir) && !cluster_serves(&c, 3));
        CHECK(tap, c.members[c.member_count - 1].number == heir);
        CHECK(tap, c.members[c.member_count - 1].draining);
    });
    cluster_free(&c);
}

static void test_drained(struct tap *tap) {
    TEST(tap, "one that was drained, and has not left, is drained when it is started again", {
        struct cluster c = begin();
        uint32_t first = joined(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:1");
        c.members[c.member_count - 1].draining = true;
        cluster_leave(&c, first); // it was silent
        uint32_t again = joined(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:2");
        CHECK(tap, cluster_numbered(&c, again)->draining);
        uint32_t worker = joined(&c, PROTO_ROLE_WORKER, "");
        CHECK(tap, !cluster_numbered(&c, worker)->draining);
        cluster_retire(&c, again); // it leaves
        struct cluster back;
        CHECK(tap, cluster_numbered(&c, again)->left && !cluster_numbered(&c, worker)->left);
        CHECK_INT(tap, reread(&c, NULL, NULL, &back), STATUS_OK);
        CHECK(tap, cluster_numbered(&back, again)->left && !cluster_numbered(&back, worker)->left);
        cluster_free(&back);
        CHECK_INT(tap, reread(&c, "\"left\":true", "\"left\":1", &back), STATUS_DATA);
        uint32_t next = joined(&c, PROTO_ROLE_PARAMETER_SERVER, "tcp://a:3");
        CHECK(tap, !cluster_numbered(&c, next)->draining);
        cluster_retire(&c, 99);
        cluster_free(&c);
    });
}

static void test_progress(struct tap *tap) {
    TEST(tap, "no fewer samples than none were trained on", {
        struct cluster c = begin();
        struct part_progress p = {0};
        CHECK_INT(tap, progress_reserve(&p, &c, NULL), STATUS_OK);
        progress_follow(&p, &c);
        c.skipped = 5;
        CHECK_INT(tap, progress_samples(&p, &c), 0);
        progress_free(&p);
        cluster_free(&c);
    });
}

// --- heartbeats ---------------------------------------------------------------------------

static void test_vitals(struct tap *tap) {
    const int link = 0;
    TEST(tap, "who was heard of in the last three seconds closed its link itself", {
        struct vitals v = {0};
        const double after[] = {2.75, 3};
        for (int i = 0; i < 2; i++) {
            vitals_heard(&v, 1, 100);
            vitals_link(&v, 1, &link);
            vitals_closed(&v, &link, 100 + after[i]);
            CHECK_NEAR(tap, vitals_of(&v, 1)->closed, i == 0 ? 102.75 : 0, 0);
        }
        vitals_free(&v);
    });
    TEST(tap, "refused requests add up, those of nobody are nobody's", {
        struct vitals v = {0};
        vitals_heard(&v, 1, 100);
        CHECK(tap, !vitals_of(&v, 1)->told && isnan(vitals_of(&v, 1)->figures.loss));
        vitals_refused(&v, 1, 3);
        vitals_refused(&v, 1, 4);
        vitals_refused(&v, 2, 5);
        vitals_miss(&v, 2);
        vitals_beat(&v, 2, 5);
        vitals_forget(&v, 2);
        CHECK_INT(tap, vitals_of(&v, 1)->refused, 7);
        CHECK(tap, !vitals_of(&v, 1)->missed && !vitals_of(&v, 2));
        vitals_free(&v);
    });
}

// --- words --------------------------------------------------------------------------------

static void check_idle(struct tap *tap, const struct proto_status *status, const char *wanted) {
    char *text = figures_idle(status);
    CHECK_TEXT(tap, text, wanted);
    free(text);
}

static void test_idle(struct tap *tap) {
    struct proto_member members[12] = {
        {.role = PROTO_ROLE_CONTROLLER, .waits_for = proto_text("nobody")},
        {.member = 4,
         .role = PROTO_ROLE_WORKER,
         .name = proto_text("w"),
         .silent = 2000,
         .waits_for = proto_text("ps 1")},
        {.member = 5,
         .role = PROTO_ROLE_WORKER,
         .name = proto_text("v"),
         .silent = 2600,
         .waits_for = proto_text("ps 1")},
        {.member = 6,
         .role = PROTO_ROLE_WORKER,
         .name = proto_text("x"),
         .state = PROTO_STATE_GONE},
        {.member = 7, .role = PROTO_ROLE_WORKER, .name = proto_text("u")},
    };
    struct proto_status status = {.members = proto_list(members, 5)};
    TEST(tap, "of each worker that is there people hear whom it waits for, or that it is silent", {
        check_idle(tap, &status,
                   "worker 4 (w): ps 1; worker 5 (v): nothing heard of it for 3 s; "
                   "worker 7 (u): it names nobody");
        status.members.count = 1;
        check_idle(tap, &status, "there is no worker");
    });
    TEST(tap, "eight are named, and the others counted", {
        char wanted[400] = "";
        for (uint32_t i = 0; i < 10; i++) {
            members[i] = (struct proto_member){.member = i,
                                               .role = PROTO_ROLE_WORKER,
                                               .name = proto_text("w"),
                                               .waits_for = proto_text("p")};
            if (i < 8)
                snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted),
                         "%sworker %u (w): p", i > 0 ? "; " : "", i);
        }
        status.members.count = 8;
        check_idle(tap, &status, wanted);
        status.members.count = 10;
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "; and 2 more");
        check_idle(tap, &status, wanted);
    });
    TEST(tap, "controllers, which all are member 0, are told apart by their addresses", {
        const struct proto_member controllers[] = {
            {.role = PROTO_ROLE_CONTROLLER,
             .name = proto_text("training"),
             .address = proto_text("tcp://a:1")},
            {.role = PROTO_ROLE_CONTROLLER,
             .name = proto_text("standby"),
             .address = proto_text("tcp://b:1")},
            {.role = PROTO_ROLE_CONTROLLER,
             .name = proto_text("standby"),
             .address = proto_text("tcp://\"c")},
            {.member = 1,
             .role = PROTO_ROLE_WORKER,
             .name = proto_text("w"),
             .address = proto_text("tcp://d:1")},
        };
        const struct proto_status several = {.members = proto_list(controllers, 4)};
        char *text = figures_prometheus(&several);
        CHECK(tap, strstr(text, "adam_epoch{member=\"0\",role=\"controller\",name=\"training\","
                                "address=\"tcp://a:1\"} 0\n"));
        CHECK(tap, strstr(text, "name=\"standby\",address=\"tcp://b:1\"} 0\n"));
        CHECK(tap, strstr(text, "name=\"standby\",address=\"tcp://\\\"c\"} 0\n"));
        CHECK(tap, strstr(text, "adam_epoch{member=\"1\",role=\"worker\",name=\"w\"} 0\n"));
        free(text);
    });
    TEST(tap, "Prometheus hears of the run how long it is idle, and what is left out", {
        status.idle = 12;
        status.left_out = 0.25;
        char *text = figures_prometheus(&status);
        CHECK(tap, strstr(text, "\nadam_idle_seconds 12\n"));
        CHECK(tap, strstr(text, "\nadam_left_out_ratio 0.25\n"));
        free(text);
        status.left_out = NAN;
        text = figures_prometheus(&status);
        CHECK(tap, strstr(text, "\nadam_left_out_ratio 0\n"));
        free(text);
    });
}

static void test_line(struct tap *tap) {
    struct proto_member members[] = {
        {.role = PROTO_ROLE_CONTROLLER, .epoch = 1.5},
        {.member = 1, .role = PROTO_ROLE_DATA_SERVER, .rate = 400, .loss = 9, .waiting = 1},
        {.member = 2, .role = PROTO_ROLE_WORKER, .rate = 300, .loss = 2, .waiting = 0.5},
        {.member = 3, .role = PROTO_ROLE_WORKER, .rate = 100, .loss = NAN, .waiting = 0.1},
    };
    const struct proto_status status = {.members = proto_list(members, 4)};
    TEST(tap, "the line of a run is of its workers, and their loss of those who know it", {
        char line[FIGURES_LINE];
        figures_line(line, &status, 6);
        CHECK_TEXT(tap, line, "epoch 1.50 of 6  loss 2.0000  2 workers  400 images/s  wait 30%");
    });
    TEST(tap, "the table of a run that trains tells of no trouble", {
        char *table = figures_table(&status);
        CHECK(tap, table && !strstr(table, "nothing was trained") && !strstr(table, "left out"));
        free(table);
    });
}

// Of a member that has its vote, and promised nothing yet.
static const struct paxos_record new_record;

// --- the register -------------------------------------------------------------------------

// A member of three, which asks both others to prepare for this ballot.
static struct paxos *candidate_of_three(uint32_t id, uint64_t *ballot) {
    const struct paxos_config config = {
        .id = id, .members = 3, .heartbeat = 100, .election = 300, .state_max = 8};
    struct paxos *paxos;
    struct paxos_output out;
    if (paxos_open(&paxos, &config, &new_record, 0, NULL))
        exit(2);
    paxos_tick(paxos, 1000, &out);
    *ballot = out.messages[0].ballot;
    return paxos;
}

static void receive(struct paxos *paxos, enum proto_paxos_step step, uint32_t from, uint32_t to,
                    uint64_t ballot, uint64_t now, struct paxos_output *out) {
    const struct proto_paxos message = {.step = (uint16_t)step,
                                        .from = from,
                                        .to = to,
                                        .ballot = ballot,
                                        .accepted = step == PROTO_PAXOS_ACCEPTED ? ballot : 0};
    paxos_receive(paxos, &message, now, out);
}

static void test_ballots(struct tap *tap) {
    struct paxos_output out;
    uint64_t ballot;
    TEST(tap, "a leader whom somebody rejects goes on above the ballot that was promised there", {
        struct paxos *paxos = candidate_of_three(0, &ballot);
        receive(paxos, PROTO_PAXOS_PROMISE, 1, 0, ballot, 1000, &out);
        CHECK_INT(tap, paxos_standing(paxos), PAXOS_LEADER);
        const uint64_t promised = ballot + (UINT64_C(9) << 8) + 2;
        receive(paxos, PROTO_PAXOS_REJECT, 1, 0, promised, 1100, &out);
        CHECK_INT(tap, out.count, 2);
        CHECK_INT(tap, out.messages[0].step, PROTO_PAXOS_PREPARE);
        CHECK(tap, out.messages[0].ballot > promised);
        paxos_close(paxos);
    });
    TEST(tap, "strangers elect nobody", {
        struct paxos *paxos = candidate_of_three(0, &ballot);
        receive(paxos, PROTO_PAXOS_PROMISE, 3, 0, ballot, 1000, &out);
        CHECK_INT(tap, paxos_standing(paxos), PAXOS_CANDIDATE);
        paxos_close(paxos);
    });
    TEST(tap, "whose state a member accepts leads, whether it had asked before or not", {
        struct paxos *paxos = candidate_of_three(0, &ballot);
        receive(paxos, PROTO_PAXOS_ACCEPT, 1, 0, ballot + 0x101, 1000, &out);
        CHECK_INT(tap, paxos_leader(paxos), 1);
        CHECK_INT(tap, paxos_record(paxos).accepted, ballot + 0x101);
        CHECK_INT(tap, out.messages[0].step, PROTO_PAXOS_ACCEPTED);
        CHECK_INT(tap, out.messages[0].ballot, ballot + 0x101);
        receive(paxos, PROTO_PAXOS_COMMIT, 2, 0, ballot + 0x202, 1000, &out);
        CHECK_INT(tap, paxos_leader(paxos), 2);
        CHECK_INT(tap, paxos_standing(paxos), PAXOS_FOLLOWER);
        paxos_close(paxos);
    });
    TEST(tap, "a leader that has just sent a heartbeat ignores candidates", {
        struct paxos *paxos = candidate_of_three(0, &ballot);
        receive(paxos, PROTO_PAXOS_PROMISE, 1, 0, ballot, 1000, &out);
        paxos_tick(paxos, 1250, &out);
        CHECK_INT(tap, out.count, 2);
        receive(paxos, PROTO_PAXOS_PREPARE, 2, 0, ballot + 0x102, 1260, &out);
        CHECK_INT(tap, out.count, 0);
        CHECK_INT(tap, paxos_standing(paxos), PAXOS_LEADER);
        paxos_close(paxos);
    });
    TEST(tap, "a leader that any of the others answers is not alone", {
        for (uint32_t other = 0; other < 3; other++) {
            const uint32_t id = (other + 1) % 3;
            struct paxos *paxos = candidate_of_three(id, &ballot);
            receive(paxos, PROTO_PAXOS_PROMISE, other, id, ballot, 1000, &out);
            receive(paxos, PROTO_PAXOS_ACCEPTED, other, id, ballot, 1900, &out);
            paxos_tick(paxos, 2000, &out);
            CHECK_INT(tap, paxos_standing(paxos), PAXOS_LEADER);
            paxos_close(paxos);
        }
    });
}

static void test_alone(struct tap *tap) {
    TEST(tap, "a leader that no majority has answered for two election times leads no more", {
        const struct paxos_config config = {
            .id = 0, .members = 3, .heartbeat = 100, .election = 300, .state_max = 8};
        struct paxos *paxos;
        struct paxos_output out;
        CHECK_INT(tap, paxos_open(&paxos, &config, &new_record, 0, NULL), STATUS_OK);
        paxos_tick(paxos, 1000, &out);
        CHECK_INT(tap, out.count, 2); // it asks both to prepare
        const uint64_t ballot = out.messages[0].ballot;
        struct proto_paxos answer = {
            .step = PROTO_PAXOS_PROMISE, .from = 1, .to = 0, .ballot = ballot};
        paxos_receive(paxos, &answer, 1000, &out);
        answer.step = PROTO_PAXOS_ACCEPTED;
        answer.accepted = ballot;
        paxos_receive(paxos, &answer, 1100, &out);
        CHECK(tap, paxos_ready(paxos) && out.committed);
        paxos_tick(paxos, 1700, &out); // the other was heard of 600 ms ago
        CHECK_INT(tap, paxos_standing(paxos), PAXOS_LEADER);
        CHECK_INT(tap, out.count, 2);
        paxos_tick(paxos, 1800, &out);
        CHECK_INT(tap, paxos_standing(paxos), PAXOS_FOLLOWER);
        CHECK_INT(tap, paxos_leader(paxos), PROTO_NOBODY);
        CHECK(tap, !paxos_ready(paxos) && paxos_deadline(paxos) >= 1800 + 300);
        paxos_close(paxos);
    });
}

int main(void) {
    struct tap tap = {0};
    test_members(&tap);
    test_text(&tap);
    test_copies(&tap);
    test_drained(&tap);
    test_progress(&tap);
    test_vitals(&tap);
    test_idle(&tap);
    test_line(&tap);
    test_ballots(&tap);
    test_alone(&tap);
    return tap_done(&tap);
}
