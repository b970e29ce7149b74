// What the controller says: the run, from which on it serves, the members, and who has which
// shards.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "kernels/kernels.h"
#include "member/run_text.h"
#include "member/sharers.h"
#include "role/paramserver/parameter_server_internal.h"
#include "role/paramserver/store_look.h"
#include "run/checkpoint.h"

enum {
    PAYLOADS = 1 << 30, // bytes of pushes under way, where nobody says how much memory there is
    MEBI = 1 << 20,
};

// --- the run -----------------------------------------------------------------

static int read_rules(const struct settings *settings, struct optimizer *optimizer,
                      struct protocol *protocol, struct error *err) {
    enum protocol_push push;
    int status = settings_optimizer(settings, optimizer, err);
    return status ? status : settings_protocol(settings, protocol, &push, err);
}

static void say_restored(const struct parameter_server *server,
                         const struct flusher_restored *restored) {
    const struct serving_hooks *hooks = &server->o->hooks;
    if (restored->shards)
        serving_say(hooks, "has %" PRIu32 " shards from its store, the newest of version %" PRIu64,
                    restored->shards, restored->version);
    if (restored->damaged)
        serving_say(hooks, "%" PRIu32 " shards are damaged in the store, the first is %" PRIu32,
                    restored->damaged, restored->first);
    if (restored->strange)
        serving_say(hooks, "%" PRIu32 " shards of the store do not fit the model and its optimizer",
                    restored->strange);
}

static bool is_durable(const struct parameter_server *server) {
    return !strcmp(server->settings.ack, "durable");
}

static int check_store(const struct parameter_server *server, struct error *err) {
    if (server->o->store || !is_durable(server))
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "the run acknowledges what is on a disk (ack = durable): name a folder for it "
                     "with --store");
}

static int make_way(struct parameter_server *server, const struct proto_id *run,
                    struct error *err) {
    const char *store = server->o->store;
    if (!server->o->aside || !store_is_of_another_run(&server->store.files, run))
        return STATUS_OK;
    files_system_close(&server->store);
    int status = run_folder_set_aside(store, err);
    if (!status)
        status = files_system_open(&server->store, store, err);
    if (!status)
        serving_say(&server->o->hooks, "what another run left in %s is now %s.old", store, store);
    return status;
}

// What the store has of this run goes into the shards, before they serve anybody.
static int open_flusher(struct parameter_server *server, struct ps *ps, int states,
                        const struct proto_id *run, struct error *err) {
    struct flusher_restored restored;
    struct flusher_options options = {
        .ps = ps,
        .files = &server->store.files,
        .parameters = server->model->parameter_count,
        .states = states,
        .every = server->o->flush,
        .durable = is_durable(server),
    };
    memcpy(options.owner.run, run->bytes, sizeof options.owner.run);
    snprintf(options.owner.server, sizeof options.owner.server, "%s", server->o->owner);
    int status = make_way(server, run, err);
    if (status)
        return status;
    status = flusher_open(&server->flusher, &options, &restored, err);
    if (status)
        return error_context(err, "%s", server->o->store);
    say_restored(server, &restored);
    server->damaged = restored.damaged;
    return STATUS_OK;
}

static int open_replicator(struct parameter_server *server, const struct ps_options *shards,
                           struct ps *ps, const struct member_identity *identity,
                           struct error *err) {
    const struct replicator_options options = {
        .ps = ps,
        .member = server->member,
        .identity = *identity,
        .name = server->o->name,
        .parameters = server->model->parameter_count,
        .states = optimizer_kept(&shards->optimizer),
        .replicates = shards->replicates,
        .keeper = server->flusher,
        .delayed = !is_durable(server),
        .keys = server->o->keys,
        .insecure = server->o->insecure,
    };
    return replicator_open(&server->replicator, &options, err);
}

static int open_saver(struct parameter_server *server, const struct optimizer *optimizer,
                      const struct member_identity *identity, struct error *err) {
    const struct part_saver_options options = {
        .model = server->model,
        .optimizer = *optimizer,
        .member = server->member,
        .identity = *identity,
        .name = server->o->name,
        .folder = server->o->checkpoints,
        .keys = server->o->keys,
        .insecure = server->o->insecure,
        .self = server,
        .say = parameter_server_say,
    };
    return part_saver_open(&server->saver, &options, err);
}

// Shards have copies when the replicator gave them routes, and not before.
static void tell_applied(void *self, uint32_t shard) {
    const struct parameter_server *server = self;
    replicator_applied(server->replicator, shard);
}

// The version of shards with fresh state: new weights have the first one.
static uint64_t first_version(const struct settings *settings) {
    return settings->state_since > 1 ? (uint64_t)settings->state_since : 1;
}

// The first time that it hears what is trained: from then on it serves.
static int begin_serving(struct parameter_server *server, const struct proto_run *run,
                         struct error *err) {
    struct member_identity identity;
    struct ps_options options = {.kernels = kernels_best(), .threads = (int)server->o->threads};
    struct ps *ps;
    options.copies = (struct ps_copies){server, tell_applied};
    int status = check_store(server, err);
    if (!status)
        status = run_model(&server->model, "model", run, err);
    if (!status)
        status = read_rules(&server->settings, &options.optimizer, &options.protocol, err);
    options.model = server->model;
    options.since = first_version(&server->settings);
    options.replicates = settings_await_copies(&server->settings, &options.protocol);
    options.durable = is_durable(server);
    if (!status)
        status = ps_open(&ps, &options, err);
    if (status)
        return status;
    member_identity(server->member, &identity);
    int states = optimizer_kept(&options.optimizer);
    if (server->o->store)
        status = open_flusher(server, ps, states, &identity.run, err);
    if (!status)
        status = open_saver(server, &options.optimizer, &identity, err);
    if (!status)
        status = open_replicator(server, &options, ps, &identity, err);
    if (status) {
        flusher_close(server->flusher, NULL);
        server->flusher = NULL;
        ps_close(ps);
        return status;
    }
    pthread_mutex_lock(&server->lock);
    server->ps = ps;
    server->reported.time = server->looked.time = clock_seconds();
    pthread_mutex_unlock(&server->lock);
    paths_serve(server->paths, ps, identity.run, identity.model);
    serving_say(&server->o->hooks, "member %" PRIu32 ": serves a model of %zu parameters",
                identity.member, server->model->parameter_count);
    return STATUS_OK;
}

static int change_settings(struct parameter_server *server, struct error *err) {
    struct optimizer optimizer;
    struct protocol protocol;
    int status = read_rules(&server->settings, &optimizer, &protocol, err);
    return status ? status
                  : ps_settings(server->ps, &optimizer, &protocol,
                                settings_await_copies(&server->settings, &protocol), err);
}

static int obey_run(struct parameter_server *server, const struct proto_run *run,
                    struct error *err) {
    char *text;
    int status = run_settings(&server->settings, &text, run, err);
    if (status)
        return status;
    free(server->settings_text);
    server->settings_text = text;
    return server->ps ? change_settings(server, err) : begin_serving(server, run, err);
}

static int obey_members(struct parameter_server *server, const struct proto_status *status,
                        struct error *err) {
    struct sharers sharers;
    int result = sharers_of(&sharers, status, false, err);
    if (!result)
        result = ps_members(server->ps, sharers.sessions, sharers.replicas, sharers.count, err);
    sharers_free(&sharers);
    if (result)
        return result;
    kept_hold(server->members);
    replicator_know(server->replicator, server->members);
    return STATUS_OK;
}

// --- routes and places -------------------------------------------------------

static bool has_role(const struct proto_place *place, uint32_t member) {
    return place->primary == member || place->second == member || place->third == member ||
           place->joiner == member;
}

// How many parameters are here, in whatever role.
static size_t held_floats(const struct parameter_server *server, const struct proto_list *places,
                          uint32_t member) {
    const struct proto_place *at = places->at;
    size_t all = server->model->parameter_count, floats = 0;
    for (size_t first = 0; first < all && places->count > 0; first += PROTO_SHARD_FLOATS) {
        uint32_t shard = (uint32_t)(first / PROTO_SHARD_FLOATS);
        if (has_role(&at[proto_bucket_of(shard, places->count)], member))
            floats += all - first < PROTO_SHARD_FLOATS ? all - first : PROTO_SHARD_FLOATS;
    }
    return floats;
}

uint64_t parameter_server_payloads(uint64_t memory) {
    return memory ? memory / 4 : PAYLOADS;
}

// Whether so many parameters fit; said when it is not as before.
static int take_parameters(struct parameter_server *server, size_t floats, struct error *err) {
    struct optimizer optimizer;
    int status = settings_optimizer(&server->settings, &optimizer, err);
    if (status)
        return status;
    int states = optimizer_kept(&optimizer);
    uint64_t bytes = (uint64_t)floats * sizeof(float) * (uint64_t)(1 + states);
    uint64_t memory = server->o->memory, payloads = parameter_server_payloads(memory);
    uint64_t copies = server->o->store ? flusher_memory(server->model->parameter_count, states) : 0;
    if (memory && bytes + payloads + copies > memory)
        return error_set(err, STATUS_IO,
                         "weights and state take %.1f MiB here, pushes under way %.1f MiB and "
                         "copies for the store %.1f MiB: more than the %.1f MiB of --memory",
                         (double)bytes / MEBI, (double)payloads / MEBI, (double)copies / MEBI,
                         (double)memory / MEBI);
    if (floats != server->held)
        serving_say(&server->o->hooks, "holds %zu parameters: %.1f MiB of weights%s", floats,
                    (double)bytes / MEBI, states ? " and state" : "");
    server->held = floats;
    return STATUS_OK;
}

// A model of fewer shards than there are buckets may leave a server without any.
static void note_idleness(struct parameter_server *server, bool idle) {
    if (idle && !server->idle)
        serving_say(&server->o->hooks, "idle: holds no shard of the model");
    pthread_mutex_lock(&server->lock);
    server->idle = idle;
    server->copies = !idle;
    pthread_mutex_unlock(&server->lock);
}

static int obey_routes(struct parameter_server *server, const struct proto_routes *routes,
                       struct error *err) {
    if (routes->parameters != server->model->parameter_count)
        return error_set(err, STATUS_DATA,
                         "the controller counts %" PRIu64 " parameters of the model, here are %zu",
                         routes->parameters, server->model->parameter_count);
    part_saver_route(server->saver, server->routes);
    return replicator_meet(server->replicator, routes, err);
}

// A primary brings all copies to what it has: who lost a shard to its disk must not be one.
static int check_damage(const struct parameter_server *server, const struct proto_list *places,
                        uint32_t member, struct error *err) {
    const struct proto_place *at = places->at;
    size_t all = server->model->parameter_count;
    struct proto_piece stamp;
    for (uint32_t shard = 0; (size_t)shard * PROTO_SHARD_FLOATS < all && server->damaged; shard++) {
        const struct proto_place *place = &at[proto_bucket_of(shard, places->count)];
        bool copied = place->second != PROTO_NOBODY || place->third != PROTO_NOBODY;
        if (place->primary == member && copied && !ps_stamps(server->ps, shard, 1, &stamp))
            return error_set(err, STATUS_DATA,
                             "shard %" PRIu32 " is damaged in %s; others have copies of it", shard,
                             server->o->store);
    }
    return STATUS_OK;
}

static int obey_places(struct parameter_server *server, const struct proto_list *places,
                       struct error *err) {
    struct member_identity identity;
    member_identity(server->member, &identity);
    size_t floats = held_floats(server, places, identity.member);
    int status = take_parameters(server, floats, err);
    if (!status && places->count)
        status = check_damage(server, places, identity.member, err);
    if (status)
        return status;
    note_idleness(server, floats == 0);
    if (server->flusher)
        flusher_route(server->flusher, places->count);
    kept_hold(server->places);
    return replicator_route(server->replicator, server->places, err);
}

// Who the others are is known before anything is asked of them.
int parameter_server_obey(struct parameter_server *server, struct error *err) {
    int status = STATUS_OK;
    if (kept_renew(&server->run, member_run(server->member)))
        status = obey_run(server, &server->run->message.run, err);
    if (status || !server->ps)
        return status;
    if (kept_renew(&server->members, member_members(server->member)))
        status = obey_members(server, &server->members->message.status, err);
    if (!status && kept_renew(&server->routes, member_routes(server->member)))
        status = obey_routes(server, &server->routes->message.routes, err);
    if (!status && kept_renew(&server->places, member_places(server->member)))
        status = obey_places(server, &server->places->message.places.places, err);
    return status;
}
