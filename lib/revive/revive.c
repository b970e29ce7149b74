#include "revive/revive.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"
#include "cluster/record.h"
#include "core/error.h"
#include "core/mem.h"
#include "model/model.h"
#include "revive/revive_internal.h"
#include "run/checkpoint.h"
#include "run/settings.h"

bool revive_not(struct revival *revival, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(revival->why, sizeof revival->why, format, args);
    va_end(args);
    return false;
}

// --- the record -------------------------------------------------------------------------

static bool is_newer(const struct record_glance *a, const struct record_glance *b) {
    return a->accepted != b->accepted ? a->accepted > b->accepted : a->version > b->version;
}

// The newest of the controllers' records, and how many can be read; *why tells of one that cannot.
static size_t newest_record(const struct words *records, struct record_glance *newest,
                            struct error *why) {
    size_t readable = 0;
    *newest = (struct record_glance){0};
    for (size_t i = 0; i < records->count; i++) {
        struct record_glance glance;
        if (record_look(records->items[i], &glance, why))
            continue;
        readable++;
        if (readable == 1 || is_newer(&glance, newest)) {
            free(newest->state);
            *newest = glance;
        } else {
            free(glance.state);
        }
    }
    return readable;
}

// What the controllers agreed on last. False: it cannot be known.
static bool read_record(struct revival *revival, const struct words *records,
                        struct cluster *cluster) {
    struct record_glance newest;
    struct error why = {0};
    size_t readable = newest_record(records, &newest, &why);
    bool found = newest.state != NULL;
    if (found && cluster_read(cluster, newest.state, strlen(newest.state), &why))
        found = revive_not(revival, "the record of the run cannot be used: %s", why.text);
    else if (!found)
        revive_not(revival, "there is no record of the run: %s",
                   why.status ? why.text : "it had not begun");
    free(newest.state);
    revival->known = found;
    if (found)
        revival->run = cluster->run;
    if (found && readable <= records->count / 2)
        return revive_not(revival, "only %zu of the %zu controllers' records can be read: %s",
                          readable, records->count, why.text);
    return found;
}

bool revive_run(const struct words *records, struct proto_id *run, bool *stored) {
    struct revival revival = {0};
    struct cluster cluster = {0};
    read_record(&revival, records, &cluster);
    *run = revival.run;
    *stored = false;
    for (size_t i = 0; i < cluster.member_count && cluster.stage < CLUSTER_STOPPING; i++)
        *stored |= cluster.members[i].stores;
    cluster_free(&cluster);
    return revival.known;
}

// --- the run ----------------------------------------------------------------------------

static bool pushes_count_alone(const struct cluster *cluster) {
    struct settings settings;
    struct protocol protocol;
    enum protocol_push push;
    char *text = mem_string(cluster->settings);
    settings_default(&settings);
    bool alone = text && !settings_parse(&settings, text, NULL) &&
                 !settings_protocol(&settings, &protocol, &push, NULL) &&
                 protocol.kind == PROTOCOL_ASYNC;
    free(text);
    return alone;
}

// Whether a controller that reads this record would wait for the stores.
static bool run_can_go_on(struct revival *revival, const struct cluster *cluster) {
    if (cluster->stage == CLUSTER_STARTING)
        return revive_not(revival, "the run had not begun to train");
    if (cluster->stage >= CLUSTER_STOPPING)
        return revive_not(revival, "the run was ended%s%s", cluster->why ? ": " : "",
                          cluster->why ? cluster->why : "");
    if (!pushes_count_alone(cluster))
        return revive_not(revival, "its workers share steps, and those that are lost would be "
                                   "waited for");
    return true;
}

static int make_room(struct revival *revival, const struct revive_request *request,
                     struct error *err) {
    revival->servers = mem_zeroed(request->names.count + 1, sizeof *revival->servers);
    if (!revival->servers)
        return error_nomem(err);
    revival->server_count = request->names.count;
    for (size_t i = 0; i < revival->server_count; i++)
        snprintf(revival->servers[i].name, sizeof revival->servers[i].name, "%s",
                 request->names.items[i]);
    return STATUS_OK;
}

static int count_shards(struct revival *revival, const struct cluster *cluster, struct error *err) {
    struct model *model;
    int status = model_parse(&model, cluster->model_name, cluster->model, NULL, 0, err);
    if (status)
        return status;
    revival->shard_count = (model->parameter_count + PROTO_SHARD_FLOATS - 1) / PROTO_SHARD_FLOATS;
    model_free(model);
    revival->versions = mem_zeroed(revival->shard_count + 1, sizeof *revival->versions);
    return revival->versions ? STATUS_OK : error_nomem(err);
}

static void find_checkpoint(struct revival *revival, const char *folder) {
    size_t count;
    uint64_t *clocks = run_folder_clocks(folder, &count);
    revival->checkpoint = count ? clocks[0] : 0;
    free(clocks);
}

// --- the checkpoint ---------------------------------------------------------------------

static bool no_shard_is_older(struct revival *revival, const json_t *saved) {
    for (size_t i = 0; i < revival->shard_count; i++) {
        uint64_t version = (uint64_t)json_integer_value(json_array_get(saved, i));
        if (revival->versions[i] < version)
            return revive_not(revival,
                              "shard %zu is at version %" PRIu64 " in the stores, and at %" PRIu64
                              " in the newest checkpoint",
                              i, revival->versions[i], version);
    }
    return true;
}

// Of a checkpoint that does not tell of each shard, the newest.
static bool newest_is_newer(struct revival *revival) {
    uint64_t newest = 0;
    for (size_t i = 0; i < revival->shard_count; i++)
        newest = revival->versions[i] > newest ? revival->versions[i] : newest;
    return newest >= revival->checkpoint ||
           revive_not(revival,
                      "the stores end at version %" PRIu64
                      ", the newest checkpoint is of version %" PRIu64,
                      newest, revival->checkpoint);
}

// A checkpoint whose manifest cannot be read is none to go on from.
static bool is_newest(struct revival *revival, const char *folder) {
    json_t *manifest = NULL;
    char *path = revival->checkpoint ? run_folder_checkpoint(folder, revival->checkpoint) : NULL;
    bool told = path && !checkpoint_manifest(&manifest, path, NULL);
    const json_t *saved = json_object_get(json_object_get(manifest, "run"), "versions");
    bool newest = !told ? true
                  : json_array_size(saved) == revival->shard_count
                      ? no_shard_is_older(revival, saved)
                      : newest_is_newer(revival);
    json_decref(manifest);
    free(path);
    return newest;
}

int revive_look(struct revival *revival, const struct revive_request *request, struct error *err) {
    struct cluster cluster = {0};
    *revival = (struct revival){0};
    find_checkpoint(revival, request->folder);
    int status = make_room(revival, request, err);
    bool can = !status && read_record(revival, &request->records, &cluster) &&
               run_can_go_on(revival, &cluster);
    if (can)
        status = count_shards(revival, &cluster, err);
    if (can && !status)
        status = revive_look_at_stores(revival, request, &cluster, &can, err);
    revival->stores = can && !status && (request->elsewhere || is_newest(revival, request->folder));
    cluster_free(&cluster);
    return status;
}

void revival_free(struct revival *revival) {
    free(revival->servers);
    free(revival->versions);
    *revival = (struct revival){0};
}

// --- for the metrics --------------------------------------------------------------------

static json_t *versions_json(const struct revival *revival) {
    json_t *list = json_array();
    for (size_t i = 0; i < revival->shard_count; i++)
        json_append(&list, json_integer((json_int_t)revival->versions[i]));
    return list;
}

static json_t *servers_json(const struct revival *revival) {
    json_t *list = json_array();
    for (size_t i = 0; i < revival->server_count; i++) {
        const struct revive_server *server = &revival->servers[i];
        json_append(&list,
                    json_pack("{s:s, s:I, s:I, s:I}", "name", server->name, "shards",
                              (json_int_t)server->shards, "oldest", (json_int_t)server->oldest,
                              "newest", (json_int_t)server->newest));
    }
    return list;
}

json_t *revival_json(const struct revival *revival) {
    json_t *fields = json_object();
    json_put(&fields, "from", json_text(revival->stores ? "stores" : "checkpoint"));
    json_put(&fields, "checkpoint", json_integer((json_int_t)revival->checkpoint));
    if (!revival->stores)
        json_put(&fields, "why", json_text(revival->why));
    json_put(&fields, "servers", servers_json(revival));
    json_put(&fields, "versions", versions_json(revival));
    return fields;
}
