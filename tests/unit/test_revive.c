// What a run goes on from whose processes all died: its stores or its checkpoint. The run is of
// three shards and two servers; its record and its stores are written as the programs do.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "cluster/cluster.h"
#include "cluster/record.h"
#include "core/error.h"
#include "persist/files_system.h"
#include "persist/persist.h"
#include "revive/revive.h"
#include "store/sealed.h"

enum { SHARDS = 3, SERVERS = 2, PATH = 300, SEGMENT = 16 * PERSIST_BLOCK };

static const struct proto_id run = {{1, 2, 3, 0xff}};
static const char model[] = "input 1x28x28\ndense units=680 act=relu\nsoftmax units=10\n";

struct rig {
    char folder[PATH - 50];
    struct cluster cluster;
    struct revive_request request;
    struct revival revival;
    struct error err;
};

static void fail(const char *what) {
    perror(what);
    exit(2);
}

static void rig_path(const struct rig *rig, char path[PATH], const char *name) {
    snprintf(path, PATH, "%s/%s", rig->folder, name);
}

static void join_server(struct cluster *cluster, const char *name) {
    const struct cluster_member *member;
    const struct proto_join message = {.role = PROTO_ROLE_PARAMETER_SERVER,
                                       .name = proto_text(name),
                                       .training = proto_text(name),
                                       .stores = true};
    if (cluster_join(cluster, &message, &member, NULL))
        exit(2);
}

// The record of controller `number`, as one alone would have agreed on the state.
static void write_record(const struct rig *rig, const char *name) {
    const struct record_options alone = {.members = 1};
    struct paxos_output output;
    struct record *record;
    char path[PATH], *state = cluster_write(&rig->cluster);
    rig_path(rig, path, name);
    if (!state || record_open(&record, path, &alone, NULL) ||
        record_propose(record, state, &output, NULL))
        fail(path);
    record_close(record);
    free(state);
}

// Server `i` (from 0) stores a shard at a version.
static void write_shard(const struct rig *rig, size_t i, uint32_t shard, uint64_t version) {
    static const float weights[8] = {1, 2, 3};
    const struct persist_record record = {
        .shard = shard, .version = version, .floats = 8, .weights = weights};
    struct persist_owner owner = {0};
    struct files_system system;
    struct persist *persist;
    size_t durable;
    memcpy(owner.run, run.bytes, sizeof owner.run);
    snprintf(owner.server, sizeof owner.server, "%s", rig->request.names.items[i]);
    if (files_system_open(&system, rig->request.stores.items[i], NULL) ||
        persist_open(&persist, &system.files, &owner, SEGMENT, NULL) ||
        persist_write(persist, &record, 1, &durable, NULL) || persist_seal(persist, NULL))
        fail(rig->request.stores.items[i]);
    persist_close(persist);
    files_system_close(&system);
}

// The server that has a shard, from 0.
static size_t primary_of(const struct rig *rig, uint32_t shard) {
    const struct cluster *c = &rig->cluster;
    uint32_t number = c->places[proto_bucket_of(shard, (uint32_t)c->place_count)].primary;
    return strcmp(cluster_numbered(c, number)->name, "ps-1") != 0;
}

// A run that trains, of so many copies, whose servers have all at version 7.
static void rig_open(struct rig *rig, const char *settings, uint32_t copies) {
    *rig = (struct rig){0};
    const char *place = getenv("TMPDIR");
    snprintf(rig->folder, sizeof rig->folder, "%s/adam-test-XXXXXX", place ? place : "/tmp");
    if (!mkdtemp(rig->folder))
        fail(rig->folder);
    if (cluster_open(&rig->cluster, run, "a.net", model, settings, NULL, NULL))
        exit(2);
    rig->cluster.copies = copies;
    rig->request.folder = rig->folder;
    for (int i = 1; i <= SERVERS; i++) {
        words_format(&rig->request.names, "ps-%d", i);
        words_format(&rig->request.stores, "%s/ps-%d", rig->folder, i);
        join_server(&rig->cluster, rig->request.names.items[i - 1]);
    }
    words_format(&rig->request.records, "%s/controller.state", rig->folder);
    if (cluster_assign(&rig->cluster, NULL) || cluster_enter(&rig->cluster, CLUSTER_TRAINING, NULL))
        exit(2);
    write_record(rig, "controller.state");
    for (uint32_t s = 0; s < SHARDS; s++)
        write_shard(rig, primary_of(rig, s), s, 7);
}

static void rig_close(struct rig *rig) {
    char command[PATH + 16];
    snprintf(command, sizeof command, "rm -rf %s", rig->folder);
    if (system(command))
        fail(command);
    words_free(&rig->request.records);
    words_free(&rig->request.names);
    words_free(&rig->request.stores);
    revival_free(&rig->revival);
    cluster_free(&rig->cluster);
}

static bool look(struct rig *rig) {
    revival_free(&rig->revival);
    rig->err = (struct error){0};
    return !revive_look(&rig->revival, &rig->request, &rig->err) && rig->revival.stores;
}

// A checkpoint, as far as its name and its manifest tell.
static void save(const struct rig *rig, const char *name, const char *about) {
    char path[PATH];
    json_t *manifest = NULL;
    rig_path(rig, path, name);
    if (mkdir(path, 0777))
        fail(path);
    size_t end = strlen(path);
    snprintf(path + end, sizeof path - end, "/manifest.json");
    if (json_read(&manifest, about, strlen(about), NULL) || sealed_write(path, manifest, NULL))
        fail(path);
    json_decref(manifest);
}

static void test_stores(struct tap *tap) {
    struct rig rig;
    rig_open(&rig, "protocol=async\n", 1);
    TEST(tap, "stores that have every shard of the run are gone on from, at their versions", {
        write_shard(&rig, primary_of(&rig, 1), 1, 9);
        CHECK(tap, look(&rig));
        CHECK(tap, rig.revival.known && !memcmp(&rig.revival.run, &run, sizeof run));
        CHECK_INT(tap, rig.revival.shard_count, SHARDS);
        CHECK_INT(tap, rig.revival.versions[0], 7);
        CHECK_INT(tap, rig.revival.versions[1], 9);
        CHECK_INT(tap, rig.revival.servers[primary_of(&rig, 1)].newest, 9);
    });
    TEST(tap, "a shard that its server does not have is named, though another server has it", {
        rig_close(&rig);
        rig_open(&rig, "protocol=async\n", 1);
        char command[PATH + 16];
        snprintf(command, sizeof command, "rm -r %s", rig.request.stores.items[1]);
        CHECK_INT(tap, system(command), 0);
        for (uint32_t s = 0; s < SHARDS; s++)
            write_shard(&rig, 0, s, 9);
        CHECK(tap, !look(&rig));
        CHECK(tap, strstr(rig.revival.why, "the stores lack ") != NULL);
        CHECK(tap, strstr(rig.revival.why, "ps-2") != NULL);
    });
    rig_close(&rig);
    TEST(tap, "of a bucket with two copies one store is enough", {
        rig_open(&rig, "protocol=async\n", 2);
        char command[PATH + 16];
        snprintf(command, sizeof command, "rm -rf %s", rig.request.stores.items[1]);
        CHECK_INT(tap, system(command), 0);
        for (uint32_t s = 0; s < SHARDS; s++)
            write_shard(&rig, 0, s, 8);
        CHECK(tap, look(&rig));
        CHECK_INT(tap, rig.revival.versions[2], 8);
        rig_close(&rig);
    });
    TEST(tap, "stores that are on other machines are gone on from unseen, by the record alone", {
        rig_open(&rig, "protocol=async\n", 1);
        char command[2 * PATH + 16];
        snprintf(command, sizeof command, "rm -rf %s %s", rig.request.stores.items[0],
                 rig.request.stores.items[1]);
        CHECK_INT(tap, system(command), 0);
        CHECK(tap, !look(&rig));
        rig.request.elsewhere = true;
        CHECK(tap, look(&rig));
        CHECK_INT(tap, rig.revival.shard_count, SHARDS);
        CHECK_INT(tap, rig.revival.versions[0], 0);
        rig_close(&rig);
    });
    TEST(tap, "stores of another run are none of this one", {
        rig_open(&rig, "protocol=async\n", 1);
        rig.cluster.run.bytes[0] = 77;
        write_record(&rig, "controller.state");
        CHECK(tap, !look(&rig));
        CHECK(tap, strstr(rig.revival.why, "the stores lack 3 of 3 shards") != NULL);
        CHECK(tap, strstr(rig.revival.why, "of another run") != NULL);
        rig_close(&rig);
    });
    TEST(tap, "a store that a process uses is not looked at", {
        struct files_system system;
        rig_open(&rig, "protocol=async\n", 1);
        CHECK_INT(tap, files_system_open(&system, rig.request.stores.items[0], NULL), STATUS_OK);
        CHECK_INT(tap, revive_look(&rig.revival, &rig.request, &rig.err), STATUS_UNAVAILABLE);
        files_system_close(&system);
        rig_close(&rig);
    });
}

static void test_checkpoint(struct tap *tap) {
    struct rig rig;
    rig_open(&rig, "protocol=async\n", 1);
    TEST(tap, "a checkpoint that has no shard at a newer version is not newer", {
        save(&rig, "ckpt-00000007", "{\"v\":2,\"run\":{\"versions\":[7,5,6]}}");
        CHECK(tap, look(&rig));
        CHECK_INT(tap, rig.revival.checkpoint, 7);
    });
    TEST(tap, "one shard that is newer there is named", {
        save(&rig, "ckpt-00000008", "{\"v\":2,\"run\":{\"versions\":[6,8,6]}}");
        CHECK(tap, !look(&rig));
        CHECK_TEXT(tap, rig.revival.why,
                   "shard 1 is at version 7 in the stores, and at 8 in the newest checkpoint");
        write_shard(&rig, primary_of(&rig, 1), 1, 8);
        CHECK(tap, look(&rig));
    });
    TEST(tap, "of a checkpoint that does not tell of each shard the newest counts", {
        save(&rig, "ckpt-00000009", "{\"v\":2,\"run\":{}}");
        CHECK(tap, !look(&rig));
        CHECK_TEXT(tap, rig.revival.why,
                   "the stores end at version 8, the newest checkpoint is of version 9");
        write_shard(&rig, primary_of(&rig, 2), 2, 9);
        CHECK(tap, look(&rig));
    });
    rig_close(&rig);
}

static void test_run(struct tap *tap) {
    struct rig rig;
    TEST(tap, "workers that share steps would wait for what is lost: the checkpoint", {
        rig_open(&rig, "protocol=hardsync\n", 1);
        CHECK(tap, !look(&rig));
        CHECK(tap, strstr(rig.revival.why, "share steps") != NULL);
        rig_close(&rig);
    });
    TEST(tap, "a run that is over has its last weights in the checkpoint, with the reason", {
        rig_open(&rig, "protocol=async\n", 1);
        CHECK_INT(tap, cluster_blame(&rig.cluster, STATUS_STOPPED, "enough", NULL), STATUS_OK);
        CHECK_INT(tap, cluster_enter(&rig.cluster, CLUSTER_STOPPING, NULL), STATUS_OK);
        write_record(&rig, "controller.state");
        CHECK(tap, !look(&rig));
        CHECK_TEXT(tap, rig.revival.why, "the run was ended: enough");
        rig_close(&rig);
    });
    TEST(tap, "a server that had shards and is not started is named", {
        rig_open(&rig, "protocol=async\n", 1);
        free(rig.request.names.items[1]);
        rig.request.names.items[1] = strdup("ps-3");
        CHECK(tap, !look(&rig));
        CHECK_TEXT(tap, rig.revival.why,
                   "parameter server ps-2 had shards, and is not started now");
        rig_close(&rig);
    });
}

static void test_records(struct tap *tap) {
    struct rig rig;
    rig_open(&rig, "protocol=async\n", 1);
    TEST(tap, "of three controllers two records are enough, and one is not", {
        words_format(&rig.request.records, "%s/b", rig.folder);
        words_format(&rig.request.records, "%s/c", rig.folder);
        CHECK(tap, !look(&rig));
        CHECK(tap, strstr(rig.revival.why, "only 1 of the 3 controllers' records") != NULL);
        write_record(&rig, "b");
        CHECK(tap, look(&rig));
    });
    TEST(tap, "the newest of them counts: a run that one knows to be over is over", {
        CHECK_INT(tap, cluster_enter(&rig.cluster, CLUSTER_STOPPING, NULL), STATUS_OK);
        write_record(&rig, "b");
        CHECK(tap, !look(&rig));
        CHECK_TEXT(tap, rig.revival.why, "the run was ended");
    });
    TEST(tap, "whose run it was is known without the stores, and whether it had some", {
        struct proto_id found;
        bool stored;
        CHECK(tap, revive_run(&rig.request.records, &found, &stored));
        CHECK(tap, !memcmp(&found, &run, sizeof run) && !stored);
        rig_close(&rig);
        rig_open(&rig, "protocol=async\n", 1);
        CHECK(tap, revive_run(&rig.request.records, &found, &stored) && stored);
        unlink(rig.request.records.items[0]);
        CHECK(tap, !revive_run(&rig.request.records, &found, &stored));
    });
    rig_close(&rig);
}

static void test_aside(struct tap *tap) {
    const struct proto_id other = {{9}};
    struct rig rig;
    char old[PATH];
    rig_open(&rig, "protocol=async\n", 1);
    const char *store = rig.request.stores.items[0];
    rig_path(&rig, old, "ps-1.old");
    TEST(tap, "the store of another run stays where it is", {
        CHECK_INT(tap, revive_set_aside(store, &other, &rig.err), STATUS_CANTCREATE);
        CHECK(tap, strstr(rig.err.text, "the store of another run") && !access(store, F_OK));
    });
    TEST(tap, "that of the run is moved away, and replaces what was moved before", {
        CHECK_INT(tap, revive_set_aside(store, &run, NULL), STATUS_OK);
        CHECK(tap, access(store, F_OK) && !access(old, F_OK));
        write_shard(&rig, 0, 0, 8);
        CHECK_INT(tap, revive_set_aside(store, NULL, NULL), STATUS_OK);
        CHECK(tap, access(store, F_OK) && !access(old, F_OK));
    });
    TEST(tap, "where there is none nothing happens", {
        CHECK_INT(tap, revive_set_aside(store, &run, NULL), STATUS_OK);
        CHECK_INT(tap, mkdir(store, 0777), 0);
        CHECK_INT(tap, revive_set_aside(store, &run, NULL), STATUS_OK);
        CHECK(tap, !access(store, F_OK));
    });
    rig_close(&rig);
}

int main(void) {
    struct tap tap = {0};
    test_stores(&tap);
    test_checkpoint(&tap);
    test_run(&tap);
    test_records(&tap);
    test_aside(&tap);
    return tap_done(&tap);
}
