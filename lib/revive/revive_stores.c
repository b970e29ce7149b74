// The stores of a run's parameter servers.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/cluster.h"
#include "core/error.h"
#include "persist/files_system.h"
#include "persist/persist.h"
#include "revive/revive_internal.h"
#include "run/checkpoint.h"

// A store that is looked at.
struct look {
    struct files_system system;
    struct persist *persist;
};

static int look_open(struct look *look, const char *store, struct error *err) {
    *look = (struct look){.system = {.folder = -1}};
    int status = files_system_look(&look->system, store, err);
    return status ? status : persist_look(&look->persist, &look->system.files, err);
}

static void look_close(struct look *look) {
    persist_close(look->persist);
    files_system_close(&look->system);
}

static bool is_of_run(const struct look *look, const struct proto_id *run) {
    const struct persist_owner *owner = persist_owner(look->persist);
    return memcmp(owner->run, run->bytes, sizeof owner->run) == 0;
}

// --- one server -------------------------------------------------------------------------

// Its member in the record has been given buckets under this name.
static const struct cluster_member *named_member(const struct cluster *cluster, const char *name) {
    for (size_t i = 0; i < cluster->member_count; i++) {
        const struct cluster_member *member = &cluster->members[i];
        if (cluster_serves(cluster, member->number) && !strcmp(member->name, name))
            return member;
    }
    return NULL;
}

static bool has_bucket_of(const struct cluster *cluster, uint32_t number, uint32_t shard) {
    const struct proto_place *place =
        &cluster->places[proto_bucket_of(shard, (uint32_t)cluster->place_count)];
    return place->primary == number || place->second == number || place->third == number;
}

static void note_shard(struct revival *revival, struct revive_server *server,
                       const struct persist_entry *entry) {
    uint64_t *version = &revival->versions[entry->shard];
    if (!server->shards || entry->version < server->oldest)
        server->oldest = entry->version;
    if (entry->version > server->newest)
        server->newest = entry->version;
    if (entry->version > *version)
        *version = entry->version;
    server->shards++;
}

static void note_shards(struct revival *revival, struct revive_server *server,
                        const struct look *look, const struct cluster *cluster, uint32_t number) {
    size_t count;
    const struct persist_entry *entries = persist_entries(look->persist, &count);
    for (size_t i = 0; i < count; i++)
        if (!entries[i].damaged && entries[i].version && entries[i].shard < revival->shard_count &&
            has_bucket_of(cluster, number, entries[i].shard))
            note_shard(revival, server, &entries[i]);
}

// Reads what the store has; what stands against using it is the reason, if others lack it, too.
static int look_at_store(struct revival *revival, size_t i, const char *store,
                         const struct cluster *cluster, struct error *err) {
    const struct cluster_member *member = named_member(cluster, revival->servers[i].name);
    struct look look;
    struct error why = {0};
    if (!member)
        return STATUS_OK; // it had no shards
    int status = look_open(&look, store, &why);
    if (!status && !is_of_run(&look, &revival->run))
        status = error_set(&why, STATUS_DATA, "it is of another run");
    if (!status)
        status = persist_check(look.persist, &why);
    if (!status)
        note_shards(revival, &revival->servers[i], &look, cluster, member->number);
    else
        revive_not(revival, "%s: %s", store, why.text);
    look_close(&look);
    return status == STATUS_UNAVAILABLE ? error_set(err, status, "%s", why.text) : STATUS_OK;
}

// --- all of them ------------------------------------------------------------------------

// Each server that has shards comes back under its name.
static bool all_come_back(struct revival *revival, const struct cluster *cluster) {
    for (size_t i = 0; i < cluster->member_count; i++) {
        const struct cluster_member *member = &cluster->members[i];
        bool comes = !cluster_serves(cluster, member->number);
        for (size_t k = 0; k < revival->server_count && !comes; k++)
            comes = !strcmp(revival->servers[k].name, member->name);
        if (!comes)
            return revive_not(revival, "parameter server %s had shards, and is not started now",
                              member->name);
        if (!member->stores && cluster_serves(cluster, member->number))
            return revive_not(revival, "parameter server %s had no store", member->name);
    }
    return true;
}

static bool has_all_shards(struct revival *revival) {
    size_t missing = 0, first = 0;
    for (size_t i = revival->shard_count; i-- > 0;)
        if (!revival->versions[i]) {
            missing++;
            first = i;
        }
    if (!missing)
        return true;
    char reason[REVIVE_WHY / 2];
    const char *why = *revival->why ? revival->why : "not there, or damaged";
    snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1, why);
    return revive_not(revival, "the stores lack %zu of %zu shards, the first is %zu: %s", missing,
                      revival->shard_count, first, reason);
}

int revive_look_at_stores(struct revival *revival, const struct revive_request *request,
                          const struct cluster *cluster, bool *can, struct error *err) {
    int status = STATUS_OK;
    *can = cluster->place_count > 0 && all_come_back(revival, cluster);
    if (!*can || request->elsewhere)
        return STATUS_OK;
    for (size_t i = 0; i < revival->server_count && !status; i++)
        status = look_at_store(revival, i, request->stores.items[i], cluster, err);
    *can = !status && has_all_shards(revival);
    return status;
}

// --- out of the way ---------------------------------------------------------------------

int revive_set_aside(const char *store, const struct proto_id *run, struct error *err) {
    struct look look;
    struct error why = {0};
    if (access(store, F_OK))
        return errno == ENOENT ? STATUS_OK : error_errno(err, STATUS_CANTCREATE, "%s", store);
    int status = look_open(&look, store, &why);
    bool other = !status && run && !is_of_run(&look, run);
    look_close(&look);
    if (status == STATUS_NOINPUT)
        return STATUS_OK;
    if (status == STATUS_UNAVAILABLE)
        return error_set(err, status, "%s", why.text);
    if (other)
        return error_set(err, STATUS_CANTCREATE,
                         "%s is the store of another run: name another folder, or move it away",
                         store);
    return run_folder_set_aside(store, err);
}
