// Three whole parameter servers that have copies of the same shards, beside a controller of the
// test, which says who is their primary.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "../helper/answers.h"
#include "../helper/controller.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "persist/files_system.h"
#include "persist/persist.h"
#include "role/paramserver/parameter_server.h"

// Two shards: 300 x 1000 weights and 1000 biases and 10 x 1000 and 10.
static const char model_text[] = "input 1x1x300\ndense units=1000 act=relu\nsoftmax units=10\n";
enum { PARAMETERS = 300 * 1000 + 1000 + 10 * 1000 + 10 };
enum { SERVERS = 3, WORKER = 44, NEVER = 1000000 };

struct server {
    struct cluster *cluster;
    uint32_t member; // 1, 2, 3
    char address[3][96], name[8], store[96];
    struct parameter_server_options options;
    _Atomic bool stop;
    bool runs;
    pthread_t thread;
    int status;
    struct error err;
};

struct cluster {
    struct tap *tap;
    struct controller controller;
    char address[96];
    struct server servers[SERVERS];
    float numbers[PARAMETERS], pulled[PARAMETERS];
};

static bool wish(void *self) {
    return atomic_load(&((struct server *)self)->stop);
}

static void hear(void *self, const char *text) {
    (void)self, (void)text;
}

static void *run(void *context) {
    struct server *server = context;
    server->status = parameter_server_run(&server->options, &server->err);
    return NULL;
}

// --- the cluster --------------------------------------------------------------------------

static const char durable[] = "optimizer=momentum\nmomentum=0.9\nrate=0.1\nprotocol=async\n"
                              "ack=durable\nmetrics-every=0.1\n";
static const char delayed[] = "optimizer=momentum\nmomentum=0.9\nrate=0.1\nprotocol=async\n"
                              "ack=replicated\nmetrics-every=0.2\n";

static bool has_store(const char *settings) {
    return settings == durable || settings == delayed;
}

static void server_start(struct cluster *cluster, uint32_t index, const char *folder) {
    static const char kinds[] = {'t', 'r', 'a'};
    struct server *server = &cluster->servers[index];
    server->cluster = cluster;
    server->member = index + 1;
    snprintf(server->name, sizeof server->name, "ps-%u", index);
    for (int i = 0; i < 3; i++)
        snprintf(server->address[i], sizeof server->address[i], "ipc://%s/%c%u", folder, kinds[i],
                 index);
    snprintf(server->store, sizeof server->store, "%s/store-%u", folder, index);
    server->options = (struct parameter_server_options){
        .controller = cluster->address,
        .name = server->name,
        .training = server->address[0],
        .replication = server->address[1],
        .administration = server->address[2],
        .ready = {.fd = -1},
        .threads = 2,
        .store = has_store(cluster->controller.settings) ? server->store : NULL,
        .owner = server->name,
        .flush = NEVER,
        .hooks = {server, wish, hear},
    };
    server->runs = true;
    if (pthread_create(&server->thread, NULL, run, server))
        abort();
    controller_await(&cluster->controller, &cluster->controller.joins, index + 1);
}

static void server_stop(struct server *server) {
    if (!server->runs)
        return;
    atomic_store(&server->stop, true);
    pthread_join(server->thread, NULL);
    server->runs = false;
}

// Under the lock: who the members are. Sessions are numbered as members are.
static void name_members(struct cluster *cluster) {
    struct controller *c = &cluster->controller;
    c->parameters = PARAMETERS;
    c->members[0] = (struct proto_member){
        .member = 9, .role = PROTO_ROLE_WORKER, .state = PROTO_STATE_WORKING, .session = WORKER};
    for (uint32_t i = 0; i < SERVERS; i++) {
        struct server *server = &cluster->servers[i];
        c->members[1 + i] = (struct proto_member){.member = server->member,
                                                  .role = PROTO_ROLE_PARAMETER_SERVER,
                                                  .session = server->member};
        c->servers[i] = (struct proto_server){.member = server->member,
                                              .training = proto_text(server->address[0]),
                                              .replication = proto_text(server->address[1]),
                                              .administration = proto_text(server->address[2])};
    }
    c->member_count = 1 + SERVERS;
    c->server_count = SERVERS;
    c->members_epoch = 1;
}

static void place(struct cluster *cluster, uint64_t epoch, uint32_t primary, uint32_t second,
                  uint32_t third) {
    struct controller *c = &cluster->controller;
    pthread_mutex_lock(&c->lock);
    name_members(cluster);
    for (uint32_t i = 0; i < CONTROLLER_BUCKETS; i++)
        c->buckets[i] = (struct proto_bucket){epoch, primary, second, third};
    c->bucket_count = CONTROLLER_BUCKETS;
    c->routes_epoch = epoch;
    pthread_mutex_unlock(&c->lock);
}

static struct cluster *cluster_open(struct tap *tap, const char *folder, const char *settings) {
    struct cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        abort();
    cluster->tap = tap;
    controller_init(&cluster->controller);
    cluster->controller.model = model_text;
    cluster->controller.settings = settings;
    cluster->controller.next_member = 1;
    snprintf(cluster->address, sizeof cluster->address, "ipc://%s/c", folder);
    controller_listen(&cluster->controller, tap, cluster->address);
    for (uint32_t i = 0; i < SERVERS; i++)
        server_start(cluster, i, folder);
    return cluster;
}

static void cluster_close(struct cluster *cluster) {
    for (uint32_t i = 0; i < SERVERS; i++)
        server_stop(&cluster->servers[i]);
    controller_free(&cluster->controller);
    free(cluster);
}

// --- asking -------------------------------------------------------------------------------

static struct link *dial_at(const char *address, enum proto_role role, uint64_t session) {
    const struct link_options options = {.silence = 0};
    const struct proto_hello hello = {
        .role = (uint16_t)role, .session = session, .name = proto_text("somebody")};
    struct link *link;
    while (link_dial(&link, address, &options, &hello, 2000, NULL, NULL))
        ;
    return link;
}

static struct link *dial(const struct server *server, enum proto_role role, uint64_t session) {
    return dial_at(server->address[role == PROTO_ROLE_PARAMETER_SERVER], role, session);
}

// The refusal's code, or 0.
static enum proto_refusal ask(struct link *link, uint16_t type, const void *message,
                              const float *payload, float *into, struct kept **kept) {
    const struct link_part part = {payload, PARAMETERS * sizeof(float)};
    struct link_request request = {.type = type,
                                   .message = message,
                                   .parts = &part,
                                   .part_count = payload != NULL,
                                   .into = into,
                                   .room = into ? PARAMETERS * sizeof(float) : 0};
    struct error err;
    enum proto_refusal code = answer_of(link, &request, kept, &err);
    return err.status ? PROTO_REFUSAL_STOPPING : code;
}

static void lay_out(struct proto_piece pieces[2], uint64_t epoch, uint64_t version) {
    pieces[0] = (struct proto_piece){0, 0, PROTO_SHARD_FLOATS, epoch, version};
    pieces[1] = (struct proto_piece){1, 0, PARAMETERS - PROTO_SHARD_FLOATS, epoch, version};
}

static void fill(struct cluster *cluster, float value) {
    for (size_t i = 0; i < PARAMETERS; i++)
        cluster->numbers[i] = value;
}

// Asks until it is granted: what must come first comes some time.
static void store(struct cluster *cluster, uint32_t index, uint64_t epoch, float value) {
    struct link *link = dial(&cluster->servers[index], PROTO_ROLE_CONTROLLER, 0);
    struct proto_piece pieces[2];
    lay_out(pieces, epoch, 1);
    const struct proto_store message = {.quantity = PROTO_QUANTITY_WEIGHT, .pieces = {pieces, 2}};
    fill(cluster, value);
    while (ask(link, PROTO_TYPE_STORE, &message, cluster->numbers, NULL, NULL))
        ;
    link_close(link);
}

static bool push(struct cluster *cluster, uint32_t index, uint64_t epoch, uint64_t sequence,
                 float value) {
    struct link *link = dial(&cluster->servers[index], PROTO_ROLE_WORKER, WORKER);
    struct proto_piece pieces[2];
    struct kept *kept = NULL;
    lay_out(pieces, epoch, 1);
    const struct proto_push message = {.session = WORKER,
                                       .sequence = sequence,
                                       .kind = PROTO_UPDATE_DELTA,
                                       .samples = 7,
                                       .pieces = {pieces, 2}};
    fill(cluster, value);
    while (ask(link, PROTO_TYPE_PUSH, &message, cluster->numbers, NULL, &kept)) {
        kept_drop(kept);
        kept = NULL;
    }
    bool repeated = kept->message.pushed.repeated;
    kept_drop(kept);
    link_close(link);
    return repeated;
}

// The version that both shards have; all weights must be the same.
static uint64_t pull(struct cluster *cluster, uint32_t index, uint64_t epoch, float wanted) {
    struct link *link = dial(&cluster->servers[index], PROTO_ROLE_WORKER, WORKER);
    struct proto_piece pieces[2];
    struct kept *kept = NULL;
    lay_out(pieces, epoch, 0);
    const struct proto_pull message = {.session = WORKER, .pieces = {pieces, 2}};
    while (ask(link, PROTO_TYPE_PULL, &message, NULL, cluster->pulled, &kept)) {
        kept_drop(kept);
        kept = NULL;
    }
    const struct proto_piece *got = kept->message.weights.pieces.at;
    uint64_t version = got[0].version < got[1].version ? got[0].version : got[1].version;
    size_t wrong = 0;
    for (size_t i = 0; i < PARAMETERS; i++)
        wrong += cluster->pulled[i] != wanted;
    CHECK_INT(cluster->tap, (int)wrong, 0);
    kept_drop(kept);
    link_close(link);
    return version;
}

// Bytes on the wire, as the one to which so many pushes came has them.
static uint64_t sent_by_primary(struct cluster *cluster, uint64_t pushes) {
    struct controller *c = &cluster->controller;
    for (uint64_t heard = atomic_load(&c->heartbeats) + 1;; heard++) {
        controller_await(c, &c->heartbeats, heard);
        pthread_mutex_lock(&c->lock);
        const struct proto_heartbeat figures = c->figures->message.heartbeat;
        pthread_mutex_unlock(&c->lock);
        if (figures.pushes == pushes)
            return figures.sent;
    }
}

// How many shards of the server have not all copies of their newest version.
static uint64_t behind(const struct server *server) {
    struct link *link = dial_at(server->address[2], PROTO_ROLE_CONTROLLER, 0);
    struct kept *kept = NULL;
    ask(link, PROTO_TYPE_GET_STATUS, &(struct proto_get_status){0}, NULL, NULL, &kept);
    const struct proto_member *self = kept->message.status.members.at;
    uint64_t shards = self->behind;
    kept_drop(kept);
    link_close(link);
    return shards;
}

// --- tests --------------------------------------------------------------------------------

static const char replicated[] = "optimizer=momentum\nmomentum=0.9\nrate=0.1\nprotocol=async\n"
                                 "ack=replicated\nmetrics-every=0.1\n";
static const char in_memory[] = "optimizer=sgd\nrate=0.1\nprotocol=async\nack=memory\n";

static void test_takeover(struct tap *tap, const char *folder) {
    TEST(tap, "what the primary acknowledged is on its copies when it is gone, and counts once", {
        struct cluster *cluster = cluster_open(tap, folder, replicated);
        place(cluster, 1, 1, 2, 3);
        store(cluster, 0, 1, 1);
        CHECK(tap, !push(cluster, 0, 1, 1, 2));
        CHECK(tap, !push(cluster, 0, 1, 2, 4));
        CHECK_INT(tap, pull(cluster, 0, 1, 7), 3);
        server_stop(&cluster->servers[0]);
        place(cluster, 2, 2, 3, PROTO_NOBODY);
        CHECK_INT(tap, pull(cluster, 1, 2, 7), 3);
        CHECK(tap, push(cluster, 1, 2, 2, 4)); // again
        CHECK(tap, !push(cluster, 1, 2, 3, 1));
        server_stop(&cluster->servers[1]);
        place(cluster, 3, 3, PROTO_NOBODY, PROTO_NOBODY);
        CHECK_INT(tap, pull(cluster, 2, 3, 8), 4);
        CHECK(tap, push(cluster, 2, 3, 3, 1));
        cluster_close(cluster);
    });
    TEST(tap, "who comes later is sent all of it", {
        struct cluster *cluster = cluster_open(tap, folder, replicated);
        place(cluster, 1, 1, PROTO_NOBODY, PROTO_NOBODY);
        store(cluster, 0, 1, 1);
        push(cluster, 0, 1, 1, 2);
        place(cluster, 2, 1, 3, PROTO_NOBODY);
        push(cluster, 0, 2, 2, 3); // on both, when it is answered
        server_stop(&cluster->servers[0]);
        place(cluster, 3, 3, PROTO_NOBODY, PROTO_NOBODY);
        CHECK_INT(tap, pull(cluster, 2, 3, 6), 3);
        cluster_close(cluster);
    });
    TEST(tap, "what it sends to its copies is among the bytes that it tells of", {
        struct cluster *cluster = cluster_open(tap, folder, replicated);
        place(cluster, 1, 1, 2, PROTO_NOBODY);
        store(cluster, 0, 1, 1);
        for (uint64_t i = 1; i <= 3; i++) // the copy had the second when the third came
            push(cluster, 0, 1, i, 1);
        CHECK(tap, sent_by_primary(cluster, 3) > 2 * sizeof cluster->numbers);
        cluster_close(cluster);
    });
    TEST(tap, "with ack=memory the copies follow", {
        struct cluster *cluster = cluster_open(tap, folder, in_memory);
        place(cluster, 1, 1, 2, PROTO_NOBODY);
        store(cluster, 0, 1, 1);
        for (uint64_t i = 1; i <= 20; i++)
            push(cluster, 0, 1, i, 1);
        CHECK_INT(tap, pull(cluster, 0, 1, 21), 21); // at once
        while (behind(&cluster->servers[0]))
            ;
        server_stop(&cluster->servers[0]);
        place(cluster, 2, 2, PROTO_NOBODY, PROTO_NOBODY);
        CHECK_INT(tap, pull(cluster, 1, 2, 21), 21);
        cluster_close(cluster);
    });
}

struct waiting_push {
    struct cluster *cluster;
    pthread_t thread;
    _Atomic bool done;
};

static void *push_and_wait(void *context) {
    struct waiting_push *waiting = context;
    push(waiting->cluster, 0, 1, 1, 2);
    atomic_store(&waiting->done, true);
    return NULL;
}

static void begin_push(struct cluster *cluster, struct waiting_push *waiting) {
    waiting->cluster = cluster;
    if (pthread_create(&waiting->thread, NULL, push_and_wait, waiting))
        abort();
}

static void test_proposals(struct tap *tap, const char *folder) {
    TEST(tap, "a secondary that does not hear its primary asks to take over", {
        struct cluster *cluster = cluster_open(tap, folder, replicated);
        place(cluster, 1, 1, 2, PROTO_NOBODY);
        store(cluster, 0, 1, 1);
        server_stop(&cluster->servers[0]);
        controller_await(&cluster->controller, &cluster->controller.proposals, 1);
        pthread_mutex_lock(&cluster->controller.lock);
        struct proto_proposal proposal = cluster->controller.proposal;
        pthread_mutex_unlock(&cluster->controller.lock);
        CHECK_INT(tap, proposal.change, PROTO_CHANGE_TAKE_OVER);
        CHECK_INT(tap, proposal.member, 2);
        CHECK_INT(tap, proposal.primary, 1);
        CHECK_INT(tap, proposal.epoch, 1);
        cluster_close(cluster);
    });
    TEST(tap, "a primary whose copy does not answer asks to drop it, and waits until then", {
        struct cluster *cluster = cluster_open(tap, folder, replicated);
        struct waiting_push waiting = {0};
        place(cluster, 1, 1, 2, PROTO_NOBODY);
        store(cluster, 0, 1, 1);
        server_stop(&cluster->servers[1]);
        begin_push(cluster, &waiting);
        controller_await(&cluster->controller, &cluster->controller.proposals, 1);
        pthread_mutex_lock(&cluster->controller.lock);
        struct proto_proposal proposal = cluster->controller.proposal;
        pthread_mutex_unlock(&cluster->controller.lock);
        CHECK_INT(tap, proposal.change, PROTO_CHANGE_DROP);
        CHECK_INT(tap, proposal.member, 2);
        CHECK(tap, !atomic_load(&waiting.done));
        place(cluster, 2, 1, PROTO_NOBODY, PROTO_NOBODY);
        pthread_join(waiting.thread, NULL);
        CHECK_INT(tap, pull(cluster, 0, 2, 3), 2);
        cluster_close(cluster);
    });
}

// Whether the store of a server has all weights as this number, and the worker's pushes up to
// `sequence`: as it is now, while the server lives.
static bool is_stored(const struct server *server, float value, uint64_t sequence) {
    struct files_system folder = {.folder = -1};
    struct persist *persist = NULL;
    char copy[128], command[512];
    size_t wrong = 0, shards = 0;
    snprintf(copy, sizeof copy, "%s-copy", server->store);
    snprintf(command, sizeof command, "rm -rf %s && cp -r %s %s", copy, server->store, copy);
    if (system(command) || files_system_look(&folder, copy, NULL) ||
        persist_look(&persist, &folder.files, NULL))
        return false;
    for (uint32_t shard = 0; shard < 2; shard++) {
        struct persist_copy record;
        if (persist_read(persist, shard, &record, NULL))
            continue;
        shards++;
        for (uint32_t i = 0; i < record.record.floats; i++)
            wrong += record.record.weights[i] != value;
        wrong += record.record.push_count != 1 || record.record.pushes->high < sequence;
        persist_copy_free(&record);
    }
    persist_close(persist);
    files_system_close(&folder);
    return shards == 2 && wrong == 0;
}

static void forget_stores(const char *folder) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/store-*", folder);
    if (system(command))
        abort();
}

// Until something was proposed about the buckets of both shards. Returns what was proposed last.
static struct proto_proposal await_proposals(struct controller *c) {
    struct proto_proposal proposal;
    bool both = false;
    for (int n = 1; !both; n++) {
        controller_await(c, &c->proposals, n);
        pthread_mutex_lock(&c->lock);
        both = c->proposed[proto_bucket_of(0, CONTROLLER_BUCKETS)] &&
               c->proposed[proto_bucket_of(1, CONTROLLER_BUCKETS)];
        proposal = c->proposal;
        pthread_mutex_unlock(&c->lock);
    }
    return proposal;
}

// A byte of the first record.
static void damage_store(const struct server *server) {
    char path[128];
    snprintf(path, sizeof path, "%s/00000001.log", server->store);
    FILE *file = fopen(path, "r+b");
    if (!file || fseek(file, PERSIST_BLOCK + 100, SEEK_SET) || fputc(77, file) == EOF ||
        fclose(file))
        abort();
}

static void test_durable(struct tap *tap, const char *folder) {
    TEST(tap, "with ack=durable a push is answered when it is in the store of each copy", {
        struct cluster *cluster = cluster_open(tap, folder, durable);
        place(cluster, 1, 1, 2, 3);
        store(cluster, 0, 1, 1);
        CHECK(tap, !push(cluster, 0, 1, 1, 2));
        for (int i = 0; i < SERVERS; i++)
            CHECK(tap, is_stored(&cluster->servers[i], 3, 1));
        CHECK(tap, !push(cluster, 0, 1, 2, 4));
        for (int i = 0; i < SERVERS; i++)
            CHECK(tap, is_stored(&cluster->servers[i], 7, 2));
        CHECK_INT(tap, pull(cluster, 0, 1, 7), 3);
        cluster_close(cluster);
        forget_stores(folder);
    });
    TEST(tap, "without copies when it is in the server's own, also without a lease", {
        struct cluster *cluster = cluster_open(tap, folder, durable);
        place(cluster, 1, 1, PROTO_NOBODY, PROTO_NOBODY);
        store(cluster, 0, 1, 1);
        CHECK(tap, !push(cluster, 0, 1, 1, 2));
        CHECK(tap, is_stored(&cluster->servers[0], 3, 1));
        CHECK(tap, push(cluster, 0, 1, 1, 2)); // again
        CHECK_INT(tap, pull(cluster, 0, 1, 3), 2);
        cluster_close(cluster);
        forget_stores(folder);
    });
    TEST(tap, "and one that takes over goes on so", {
        struct cluster *cluster = cluster_open(tap, folder, durable);
        place(cluster, 1, 1, 2, PROTO_NOBODY);
        store(cluster, 0, 1, 1);
        push(cluster, 0, 1, 1, 2);
        server_stop(&cluster->servers[0]);
        place(cluster, 2, 2, 3, PROTO_NOBODY);
        CHECK(tap, push(cluster, 1, 2, 1, 2)); // again
        CHECK(tap, !push(cluster, 1, 2, 2, 4));
        CHECK(tap, is_stored(&cluster->servers[1], 7, 2));
        CHECK(tap, is_stored(&cluster->servers[2], 7, 2));
        cluster_close(cluster);
        forget_stores(folder);
    });
    TEST(tap, "with delayed persistence a server joins when what it copied is in its store", {
        struct cluster *cluster = cluster_open(tap, folder, delayed);
        place(cluster, 1, 1, PROTO_NOBODY, PROTO_NOBODY);
        store(cluster, 0, 1, 1);
        CHECK(tap, !push(cluster, 0, 1, 1, 2));
        CHECK(tap, !is_stored(&cluster->servers[0], 3, 1));
        pthread_mutex_lock(&cluster->controller.lock);
        cluster->controller.joiner = 2;
        pthread_mutex_unlock(&cluster->controller.lock);
        place(cluster, 2, 1, PROTO_NOBODY, PROTO_NOBODY);
        struct proto_proposal proposal = await_proposals(&cluster->controller);
        CHECK_INT(tap, proposal.change, PROTO_CHANGE_COMPLETE);
        CHECK_INT(tap, proposal.member, 2);
        CHECK(tap, is_stored(&cluster->servers[1], 3, 1));
        cluster_close(cluster);
        forget_stores(folder);
    });
    TEST(tap, "one whose disk has lost a shard that others have does not take it from them", {
        struct cluster *cluster = cluster_open(tap, folder, durable);
        struct server *server = &cluster->servers[0];
        place(cluster, 1, 1, 2, PROTO_NOBODY);
        store(cluster, 0, 1, 3);
        server_stop(server);
        damage_store(server);
        atomic_store(&server->stop, false);
        pthread_mutex_lock(&cluster->controller.lock);
        cluster->controller.next_member = server->member;
        pthread_mutex_unlock(&cluster->controller.lock);
        CHECK_INT(tap, parameter_server_run(&server->options, &server->err), STATUS_DATA);
        CHECK(tap, strstr(server->err.text, "others have copies of it"));
        place(cluster, 2, 2, PROTO_NOBODY, PROTO_NOBODY);
        CHECK_INT(tap, pull(cluster, 1, 2, 3), 1);
        cluster_close(cluster);
        forget_stores(folder);
    });
    TEST(tap, "a server without a store does not serve such a run", {
        struct cluster *cluster = cluster_open(tap, folder, in_memory);
        struct server *server = &cluster->servers[0];
        server_stop(server);
        pthread_mutex_lock(&cluster->controller.lock);
        cluster->controller.settings = durable;
        pthread_mutex_unlock(&cluster->controller.lock);
        server->options.store = NULL;
        atomic_store(&server->stop, false);
        CHECK_INT(tap, parameter_server_run(&server->options, &server->err), STATUS_USAGE);
        CHECK(tap, strstr(server->err.text, "--store"));
        cluster_close(cluster);
    });
}

static void test_strangers(struct tap *tap, const char *folder) {
    TEST(tap, "no server speaks for another one", {
        struct cluster *cluster = cluster_open(tap, folder, replicated);
        place(cluster, 1, 1, 2, 3);
        store(cluster, 0, 1, 1);
        struct link *link = dial(&cluster->servers[1], PROTO_ROLE_PARAMETER_SERVER, 3);
        const struct proto_commit commit = {.from = 1, .epoch = 1};
        CHECK_INT(tap, ask(link, PROTO_TYPE_COMMIT, &commit, NULL, NULL, NULL),
                  PROTO_REFUSAL_WRONG_SESSION);
        const struct proto_pulse pulse = {.from = 3};
        CHECK_INT(tap, ask(link, PROTO_TYPE_PULSE, &pulse, NULL, NULL, NULL), PROTO_REFUSAL_NONE);
        const struct proto_prepare prepare = {.from = 3,
                                              .epoch = 1,
                                              .stamp_epoch = 1,
                                              .stamp_version = 9,
                                              .whole = 1,
                                              .blocks = UINT64_MAX};
        CHECK_INT(tap, ask(link, PROTO_TYPE_PREPARE, &prepare, NULL, NULL, NULL),
                  PROTO_REFUSAL_BUSY); // it has not the payload that it tells of
        const struct proto_commit old = {.from = 3, .epoch = 0};
        CHECK_INT(tap, ask(link, PROTO_TYPE_COMMIT, &old, NULL, NULL, NULL),
                  PROTO_REFUSAL_STALE_ROUTE);
        link_close(link);
        cluster_close(cluster);
    });
}

static void pass_over(struct link_request *request) {
    (void)request;
}

static void test_early(struct tap *tap, const char *folder) {
    TEST(tap, "what a new primary says before its role is known here waits for word of it", {
        struct cluster *cluster = cluster_open(tap, folder, replicated);
        place(cluster, 1, 1, 2, 3);
        store(cluster, 0, 1, 1);
        struct link *link = dial(&cluster->servers[1], PROTO_ROLE_PARAMETER_SERVER, 3);
        for (uint64_t epoch = 2; epoch < 8; epoch++) {
            const struct proto_commit commit = {.from = 3, .epoch = epoch};
            place(cluster, epoch, 3, 2, 1);
            CHECK_INT(tap, ask(link, PROTO_TYPE_COMMIT, &commit, NULL, NULL, NULL),
                      PROTO_REFUSAL_NONE);
        }
        link_close(link);
        cluster_close(cluster);
    });
    TEST(tap, "and ends with the server when that never comes", {
        struct cluster *cluster = cluster_open(tap, folder, replicated);
        place(cluster, 1, 1, 2, 3);
        store(cluster, 0, 1, 1);
        struct link *link = dial(&cluster->servers[1], PROTO_ROLE_PARAMETER_SERVER, 3);
        const struct proto_commit commit = {.from = 3, .epoch = 9};
        const struct proto_pulse pulse = {.from = 3};
        struct link_request early = {
            .type = PROTO_TYPE_COMMIT, .message = &commit, .done = pass_over};
        CHECK_INT(tap, link_ask(link, &early, NULL), STATUS_OK);
        CHECK_INT(tap, ask(link, PROTO_TYPE_PULSE, &pulse, NULL, NULL, NULL), PROTO_REFUSAL_NONE);
        cluster_close(cluster);
        link_close(link);
    });
}

int main(void) {
    struct tap tap = {0};
    char folder[] = "/tmp/adam-ps-XXXXXX", command[64];
    if (!mkdtemp(folder))
        return 1;
    test_takeover(&tap, folder);
    test_proposals(&tap, folder);
    test_durable(&tap, folder);
    test_strangers(&tap, folder);
    test_early(&tap, folder);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) ? 1 : tap_done(&tap);
}
