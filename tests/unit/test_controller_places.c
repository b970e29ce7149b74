// A whole controller, and parameter servers that are only links to it: leases, takeovers, servers
// that come, leave and are drained. It goes on in a run that trains already, whose state the test
// wrote.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "../helper/answers.h"
#include "../helper/tap.h"
#include "cluster/cluster.h"
#include "cluster/record.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/gate.h"
#include "net/link.h"
#include "proto/kept.h"
#include "role/controller/controller.h"

enum { SERVERS = 3, MOST = 4, COPIES = 3 }; // MOST: with the one that comes
static const double lease = CONTROLLER_LEASE / 1000.0;

struct bench {
    struct tap *tap;
    char folder[64], address[96], data_address[96];
    struct run_file file;
    pthread_t thread;
    int status;
    struct listener *data; // a data server, which is never ready
    struct link *data_link;
    struct link *servers[MOST]; // of members 1, 2...; then that of who comes
    uint64_t sessions[MOST];
    uint32_t numbers[MOST];
    struct link *admin;
    struct proto_place places[CLUSTER_BUCKETS]; // as the controller told last
    struct proto_places told;
};

// --- the controller -----------------------------------------------------------------------

static enum trainer_wish wish(void *self) {
    (void)self;
    return TRAINER_GO_ON;
}

static void show(void *self, const struct trainer_progress *progress) {
    (void)self, (void)progress;
}

static void say(void *self, const char *text) {
    (void)self, (void)text;
}

static void *lead(void *self) {
    struct bench *b = self;
    const struct controller_config config = {
        .file = &b->file,
        .folder = b->folder,
        .listen = b->address,
        .controllers = 1,
        .command = "test",
        .ready = {.fd = -1},
        .hooks = {b, wish, show, say},
    };
    b->status = controller_run(&config, NULL);
    return NULL;
}

// --- the state that it begins with --------------------------------------------------------

static void add_member(struct cluster *cluster, enum proto_role role, const char *name,
                       const char *address) {
    const struct cluster_member *member;
    const struct proto_join join = {.role = (uint16_t)role,
                                    .name = proto_text(name),
                                    .training = proto_text(address),
                                    .samples = 100,
                                    .stores = role == PROTO_ROLE_PARAMETER_SERVER};
    if (cluster_join(cluster, &join, &member, NULL))
        abort();
}

static char *make_state(struct bench *b) {
    static const char model[] = "input 1x1x4\nsoftmax units=2\n";
    struct cluster cluster;
    struct proto_id run = {{1}};
    char *settings = settings_text(&b->file.settings), name[16];
    if (!settings || cluster_open(&cluster, run, "a.net", model, settings, NULL, NULL))
        abort();
    for (int i = 1; i <= SERVERS; i++) {
        snprintf(name, sizeof name, "ps-%d", i);
        add_member(&cluster, PROTO_ROLE_PARAMETER_SERVER, name, "");
    }
    add_member(&cluster, PROTO_ROLE_DATA_SERVER, "serve-1", b->data_address);
    cluster.copies = COPIES;
    cluster.warm = true;
    if (cluster_assign(&cluster, NULL) || cluster_divide(&cluster, NULL) ||
        cluster_enter(&cluster, CLUSTER_TRAINING, NULL))
        abort();
    char *text = cluster_write(&cluster);
    cluster_free(&cluster);
    free(settings);
    return text;
}

static void write_state(struct bench *b) {
    const struct record_options options = {.members = 1};
    struct paxos_output out;
    struct record *record;
    char path[128], *text = make_state(b);
    snprintf(path, sizeof path, "%s/controller.state", b->folder);
    if (!text || record_open(&record, path, &options, NULL) ||
        record_propose(record, text, &out, NULL))
        abort();
    record_close(record);
    free(text);
}

// --- members ------------------------------------------------------------------------------

static enum proto_refusal welcome(void *context, struct link *link, const struct proto_hello *hello,
                                  struct proto_welcome *answer, uint64_t *detail) {
    (void)context, (void)link, (void)detail;
    *answer = (struct proto_welcome){.role = PROTO_ROLE_DATA_SERVER, .run = hello->run};
    return PROTO_REFUSAL_NONE;
}

static void refuse(void *context, struct link *link, uint64_t request, uint16_t type,
                   const union proto_message *message, struct buffer *payload) {
    (void)context, (void)type, (void)message, (void)payload;
    link_refuse(link, request, PROTO_REFUSAL_NOT_READY, 0, "");
}

static struct link *dial(struct bench *b, enum proto_role role, uint64_t session) {
    const struct link_options options = {.silence = 60000};
    const struct proto_hello hello = {
        .role = (uint16_t)role, .session = session, .name = proto_text("somebody")};
    struct link *link;
    while (link_dial(&link, b->address, &options, &hello, 2000, NULL, NULL))
        usleep(10000); // it does not listen yet
    return link;
}

// The refusal's code, or none; `kept` (or NULL): the answer.
static enum proto_refusal ask(struct bench *b, struct link *link, uint16_t type,
                              const void *message, struct kept **kept) {
    struct link_request request = {.type = type, .message = message};
    struct error err;
    enum proto_refusal code = answer_of(link, &request, kept, &err);
    if (err.status) {
        FAIL(b->tap, "%s", err.text);
        abort();
    }
    return code;
}

static void beat(struct bench *b, int server) {
    const struct proto_heartbeat heartbeat = {.session = b->sessions[server]};
    ask(b, b->servers[server], PROTO_TYPE_HEARTBEAT, &heartbeat, NULL);
}

static void open_bench(struct bench *b, struct tap *tap, bool heard) {
    char conf[128];
    *b = (struct bench){.tap = tap, .folder = "/tmp/adam-places-XXXXXX"};
    if (!mkdtemp(b->folder))
        abort();
    snprintf(b->address, sizeof b->address, "ipc://%s/c", b->folder);
    snprintf(b->data_address, sizeof b->data_address, "ipc://%s/d", b->folder);
    snprintf(conf, sizeof conf, "%s/run.conf", b->folder);
    FILE *file = fopen(conf, "w");
    if (!file || fputs("model = a.net\ndata = d\ncopies = 3\n", file) < 0 || fclose(file) ||
        run_file_read(&b->file, conf, NULL))
        abort();
    write_state(b);
    const struct link_options options = {.handlers = {NULL, welcome, refuse, NULL}};
    if (listener_open(&b->data, b->data_address, &options, NULL, NULL) ||
        pthread_create(&b->thread, NULL, lead, b))
        abort();
    for (int i = 0; i < SERVERS; i++) {
        b->numbers[i] = (uint32_t)i + 1;
        b->sessions[i] = (uint64_t)i + 1;
        b->servers[i] = dial(b, PROTO_ROLE_PARAMETER_SERVER, b->sessions[i]);
        if (heard)
            beat(b, i);
    }
    b->admin = dial(b, PROTO_ROLE_ADMINISTRATOR, 0);
    b->data_link = dial(b, PROTO_ROLE_DATA_SERVER, SERVERS + 1);
}

static void leave(struct bench *b, struct link *link, uint64_t session) {
    const struct proto_leave message = {.session = session};
    ask(b, link, PROTO_TYPE_LEAVE, &message, NULL);
}

// When the last has left the controller ends, perhaps before its answer is read.
static void leave_at_the_end(struct link *link, uint64_t session) {
    const struct proto_leave message = {.session = session};
    struct link_request request = {.type = PROTO_TYPE_LEAVE, .message = &message};
    link_call(link, &request, NULL, NULL);
}

static void close_bench(struct bench *b) {
    const struct proto_stop stop = {.save = 0};
    CHECK_INT(b->tap, ask(b, b->admin, PROTO_TYPE_STOP, &stop, NULL), 0);
    for (int i = 0; i < MOST; i++)
        if (b->servers[i])
            leave_at_the_end(b->servers[i], b->sessions[i]);
    leave_at_the_end(b->data_link, SERVERS + 1);
    pthread_join(b->thread, NULL);
    CHECK_INT(b->tap, b->status, STATUS_STOPPED);
    for (int i = 0; i < MOST; i++)
        if (b->servers[i])
            link_close(b->servers[i]);
    link_close(b->admin);
    link_close(b->data_link);
    listener_close(b->data);
    run_file_free(&b->file);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", b->folder);
    if (system(command))
        abort();
}

// --- what they ask ------------------------------------------------------------------------

// Takes the places that the controller tells; returns the lease.
static uint32_t look_as(struct bench *b, struct link *link, uint64_t session, uint64_t known) {
    const struct proto_get_places get = {.session = session, .known = known};
    struct kept *answer;
    CHECK_INT(b->tap, ask(b, link, PROTO_TYPE_GET_PLACES, &get, &answer), 0);
    b->told = answer->message.places;
    if (b->told.places.count == CLUSTER_BUCKETS)
        memcpy(b->places, b->told.places.at, sizeof b->places);
    kept_drop(answer);
    return b->told.lease;
}

static void look(struct bench *b) {
    look_as(b, b->admin, 0, 0);
}

// As a parameter server asks, for its lease.
static uint32_t renew(struct bench *b, uint32_t member) {
    return look_as(b, b->servers[member - 1], b->sessions[member - 1], 0);
}

static void take_over(struct bench *b, const struct proto_place *place, uint32_t member) {
    const struct proto_proposal proposal = {.change = PROTO_CHANGE_TAKE_OVER,
                                            .bucket = place->bucket,
                                            .epoch = place->epoch,
                                            .primary = place->primary,
                                            .member = member};
    const struct proto_propose message = {.session = b->sessions[member - 1],
                                          .proposals = {&proposal, 1}};
    CHECK_INT(b->tap, ask(b, b->servers[member - 1], PROTO_TYPE_PROPOSE, &message, NULL), 0);
}

// Whether a place is the member's, in whatever role.
static bool has(const struct proto_place *place, uint32_t member) {
    return place->primary == member || place->second == member || place->third == member ||
           place->joiner == member;
}

static uint32_t count_of(const struct bench *b, uint32_t member) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < CLUSTER_BUCKETS; i++)
        count += has(&b->places[i], member);
    return count;
}

// Joiners have copied what they were to copy, and their primaries say so.
static void complete(struct bench *b) {
    static struct proto_proposal proposals[CLUSTER_BUCKETS];
    uint32_t count = 0;
    look(b);
    for (uint32_t i = 0; i < CLUSTER_BUCKETS; i++) {
        const struct proto_place *place = &b->places[i];
        if (place->joiner != PROTO_NOBODY)
            proposals[count++] = (struct proto_proposal){.change = PROTO_CHANGE_COMPLETE,
                                                         .bucket = i,
                                                         .epoch = place->epoch,
                                                         .primary = place->primary,
                                                         .member = place->joiner};
    }
    const struct proto_propose message = {.session = b->sessions[0],
                                          .proposals = {proposals, count}};
    CHECK_INT(b->tap, ask(b, b->servers[0], PROTO_TYPE_PROPOSE, &message, NULL), 0);
    for (int i = 0; i < MOST; i++)
        if (b->servers[i])
            beat(b, i);
    look(b);
}

// --- tests --------------------------------------------------------------------------------

static void test_questions(struct bench *b) {
    struct tap *tap = b->tap;
    TEST(tap, "a parameter server is told all places, with a lease; a person without one", {
        CHECK_INT(tap, renew(b, 1), CONTROLLER_LEASE);
        CHECK_INT(tap, b->told.places.count, CLUSTER_BUCKETS);
        CHECK(tap, b->told.epoch > 0 && has(&b->places[5], 1));
        CHECK_INT(tap, look_as(b, b->admin, 0, 0), 0);
        CHECK_INT(tap, b->told.places.count, CLUSTER_BUCKETS);
    });
    TEST(tap, "who knows the newest places has the lease alone", {
        CHECK_INT(tap, look_as(b, b->servers[0], b->sessions[0], b->told.epoch), CONTROLLER_LEASE);
        CHECK_INT(tap, b->told.places.count, 0);
    });
    TEST(tap, "places and proposals are for parameter servers, in their own names", {
        struct link *worker = dial(b, PROTO_ROLE_WORKER, 0);
        struct proto_get_places get = {.session = 0};
        struct proto_propose propose = {.session = 0};
        CHECK_INT(tap, ask(b, worker, PROTO_TYPE_GET_PLACES, &get, NULL), PROTO_REFUSAL_WRONG_ROLE);
        CHECK_INT(tap, ask(b, worker, PROTO_TYPE_PROPOSE, &propose, NULL),
                  PROTO_REFUSAL_WRONG_ROLE);
        CHECK_INT(tap, ask(b, b->admin, PROTO_TYPE_PROPOSE, &propose, NULL),
                  PROTO_REFUSAL_WRONG_ROLE);
        get.session = propose.session = b->sessions[1];
        CHECK_INT(tap, ask(b, b->servers[0], PROTO_TYPE_GET_PLACES, &get, NULL),
                  PROTO_REFUSAL_WRONG_SESSION);
        CHECK_INT(tap, ask(b, b->servers[0], PROTO_TYPE_PROPOSE, &propose, NULL),
                  PROTO_REFUSAL_WRONG_SESSION);
        link_close(worker);
    });
}

static void test_leases(struct bench *b) {
    struct tap *tap = b->tap;
    TEST(tap, "nobody takes over a bucket while its primary has a lease, and the first does after",
         {
             look(b);
             struct proto_place before = b->places[7];
             uint32_t heir = before.second;
             renew(b, before.primary);
             double asked = clock_seconds();
             do
                 take_over(b, &before, heir);
             while (look(b), b->places[7].primary == before.primary);
             CHECK(tap, clock_seconds() - asked >= lease * 0.99);
             CHECK_INT(tap, b->places[7].primary, heir);
             CHECK(tap,
                   b->places[7].epoch > before.epoch && !has(&b->places[7], before.primary) ==
                                                            (b->places[7].joiner == PROTO_NOBODY));
         });
    TEST(tap, "a primary that asks again and again is never replaced", {
        look(b);
        struct proto_place before = b->places[9];
        double until = clock_seconds() + 1.5 * lease;
        while (clock_seconds() < until) {
            renew(b, before.primary);
            take_over(b, &b->places[9], before.second);
        }
        look(b);
        CHECK_INT(tap, b->places[9].primary, before.primary);
    });
    TEST(tap, "what was proposed in another epoch of the bucket changes nothing", {
        complete(b);
        look(b);
        uint64_t epoch = b->places[11].epoch;
        struct proto_place stale = b->places[11];
        stale.epoch--;
        usleep((useconds_t)(1.1e6 * lease)); // the lease of its primary is over
        take_over(b, &stale, stale.second);
        look(b);
        CHECK_INT(tap, b->places[11].epoch, epoch);
    });
}

static enum proto_refusal drain(struct bench *b, struct link *link, const char *name) {
    const struct proto_drain message = {.name = proto_text(name)};
    return ask(b, link, PROTO_TYPE_DRAIN, &message, NULL);
}

// Server `i` joins under this name, perhaps once it is seen that another has gone.
static void join_server(struct bench *b, int i, const char *name, bool stores) {
    const struct proto_join join = {
        .role = PROTO_ROLE_PARAMETER_SERVER, .name = proto_text(name), .stores = stores};
    struct kept *joined;
    b->servers[i] = dial(b, PROTO_ROLE_PARAMETER_SERVER, 0);
    while (ask(b, b->servers[i], PROTO_TYPE_JOIN, &join, &joined) == PROTO_REFUSAL_BUSY)
        kept_drop(joined);
    b->sessions[i] = joined->message.joined.session;
    b->numbers[i] = joined->message.joined.member;
    kept_drop(joined);
    beat(b, i);
}

static void test_moves(struct bench *b) {
    struct tap *tap = b->tap;
    TEST(tap, "a server is not drained where too few are left, nor by who is no administrator", {
        CHECK_INT(tap, drain(b, b->admin, "ps-9"), PROTO_REFUSAL_NOT_HERE);
        CHECK_INT(tap, drain(b, b->admin, "ps-1"), PROTO_REFUSAL_BUSY);
        CHECK_INT(tap, drain(b, b->servers[0], "ps-1"), PROTO_REFUSAL_WRONG_ROLE);
    });
    TEST(tap, "a server that comes has an equal share, when that is copied", {
        join_server(b, SERVERS, "ps-4", false);
        do
            complete(b);
        while (count_of(b, b->numbers[SERVERS]) < CLUSTER_BUCKETS * COPIES / MOST);
        CHECK_INT(tap, count_of(b, b->numbers[SERVERS]), CLUSTER_BUCKETS * COPIES / MOST);
    });
    TEST(tap, "a server that is drained gives all away; each bucket keeps its copies meanwhile", {
        CHECK_INT(tap, drain(b, b->admin, "ps-2"), PROTO_REFUSAL_NONE);
        CHECK_INT(tap, drain(b, b->admin, "ps-2"), PROTO_REFUSAL_NONE); // sent again
        do {
            complete(b);
            for (uint32_t i = 0; i < CLUSTER_BUCKETS; i++)
                CHECK(tap, b->places[i].third != PROTO_NOBODY);
        } while (count_of(b, 2) > 0);
        CHECK_INT(tap, drain(b, b->admin, "ps-1"), PROTO_REFUSAL_BUSY);
    });
    TEST(tap, "a drained server that leaves is simply gone", {
        uint64_t epoch = b->told.epoch;
        leave(b, b->servers[1], b->sessions[1]);
        link_close(b->servers[1]);
        b->servers[1] = NULL;
        complete(b);
        CHECK_INT(tap, b->told.epoch, epoch);
    });
    TEST(tap, "when a server is lost others have its buckets at once, and the run goes on", {
        leave(b, b->servers[2], b->sessions[2]);
        link_close(b->servers[2]);
        b->servers[2] = NULL;
        do
            complete(b);
        while (count_of(b, 3) > 0);
        for (uint32_t i = 0; i < CLUSTER_BUCKETS; i++) {
            CHECK(tap, has(&b->places[i], 1) && has(&b->places[i], b->numbers[SERVERS]));
            CHECK(tap, b->places[i].third == PROTO_NOBODY);
        }
    });
}

static void test_return(struct bench *b) {
    struct tap *tap = b->tap;
    TEST(tap, "a server that comes back with its store is no member where another was heard", {
        beat(b, 0);
        link_close(b->servers[0]); // killed
        join_server(b, 0, "ps-1", true);
        do {
            look(b);
            for (uint32_t i = 0; i < CLUSTER_BUCKETS; i++) {
                CHECK(tap, b->places[i].primary == b->numbers[SERVERS] && !has(&b->places[i], 1));
                CHECK(tap, b->places[i].second == PROTO_NOBODY);
            }
            beat(b, SERVERS);
        } while (b->places[0].joiner != b->numbers[0]); // it copies what it lacks
    });
}

// Asks once whether server `i` may join; what the controller says against it, or "".
static void try_to_join(struct bench *b, int i, const char *name, char why[128]) {
    const struct proto_join join = {
        .role = PROTO_ROLE_PARAMETER_SERVER, .name = proto_text(name), .stores = true};
    struct kept *answer;
    bool refused = ask(b, b->servers[i], PROTO_TYPE_JOIN, &join, &answer) != PROTO_REFUSAL_NONE;
    const struct proto_text text = refused ? answer->message.refused.text : proto_text("");
    snprintf(why, 128, "%.*s", (int)text.length, text.at);
    if (!refused) {
        b->sessions[i] = answer->message.joined.session;
        b->numbers[i] = answer->message.joined.member;
    }
    kept_drop(answer);
}

static void test_early_return(struct bench *b) {
    struct tap *tap = b->tap;
    char why[128];
    TEST(tap, "a controller that has just begun to lead hears the others before one comes back", {
        beat(b, 0);
        link_close(b->servers[0]); // killed
        b->servers[0] = dial(b, PROTO_ROLE_PARAMETER_SERVER, 0);
        do // until it is seen that it was killed
            try_to_join(b, 0, "ps-1", why);
        while (strstr(why, "this name"));
        CHECK(tap, strstr(why, "not known yet"));
        int beats = 0;
        do { // until that one has outlived it: two may have come to grief at once
            beat(b, 1);
            beats++;
            try_to_join(b, 0, "ps-1", why);
        } while (strstr(why, "not known yet"));
        CHECK(tap, !*why && beats > 1);
        look(b);
        for (uint32_t i = 0; i < CLUSTER_BUCKETS; i++)
            CHECK(tap, has(&b->places[i], 2) && b->places[i].primary != b->numbers[0] &&
                           b->places[i].second != b->numbers[0]);
    });
}

int main(void) {
    struct tap tap = {0};
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    open_bench(b, &tap, true);
    test_questions(b);
    test_leases(b);
    test_moves(b);
    test_return(b);
    close_bench(b);
    open_bench(b, &tap, false);
    test_early_return(b);
    close_bench(b);
    free(b);
    return tap_done(&tap);
}
