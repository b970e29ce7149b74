#include "role/paramserver/parameter_server.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "kernels/kernels.h"
#include "member/event.h"
#include "member/member.h"
#include "member/run_text.h"
#include "member/sharers.h"
#include "persist/files_system.h"
#include "role/paramserver/flusher.h"
#include "role/paramserver/parameter_paths.h"
#include "role/paramserver/part_saver.h"
#include "role/paramserver/replicator.h"
#include "role/paramserver/store_look.h"
#include "run/checkpoint.h"
#include "run/settings.h"

static const double lately = 1.0; // seconds over which rates are taken
enum {
    PAYLOADS = 1 << 30,
    MEBI = 1 << 20,
    PLACES = 250, // milliseconds from one asking for places to the next
};

// What it has done, at some time; figures "of late" are differences of two.
struct ps_reading {
    double time;
    struct ps_figures figures;
};

struct parameter_server {
    const struct parameter_server_options *o;
    struct paths *paths;
    struct member *member;
    _Atomic bool stop; // somebody asked for it by the network

    // Of the thread that runs it.
    struct model *model;
    struct settings settings;
    char *settings_text;                          // that `settings` points into
    struct kept *run, *routes, *members, *places; // that were obeyed last
    struct ps_reading reported;                   // by the last line of metrics
    double lacking;            // clock_seconds; since when shards lack weights; 0: none do
    size_t held;               // parameters
    struct files_system store; // folder -1: none
    struct flusher *flusher;
    uint32_t damaged;              // shards that the store could not give back
    struct replicator *replicator; // NULL until it serves
    struct part_saver *saver;      // the same

    pthread_mutex_t lock; // of all that follows, which other threads ask for
    struct ps *ps;
    struct ps_reading looked;
    double rate, staleness; // of late
    bool idle;              // the places give it no shard of the model
    bool copies;            // they give it some, whoever is their primary
    struct flusher_figures risk;
};

// --- how it is doing ---------------------------------------------------------

static double mean_staleness(const struct ps_figures *now, const struct ps_figures *before) {
    uint64_t count = now->staleness_count - before->staleness_count;
    return count ? (double)(now->staleness_sum - before->staleness_sum) / (double)count : 0;
}

static uint64_t refused_requests(const struct parameter_server *server,
                                 const struct ps_figures *figures) {
    uint64_t sum = paths_unwelcome(server->paths);
    for (size_t i = 0; i < sizeof figures->refused / sizeof *figures->refused; i++)
        sum += figures->refused[i];
    return sum;
}

// Bytes on the wire so far, of all links: of those to other servers once it serves.
static void count_traffic(const struct parameter_server *server, bool serves, uint64_t *received,
                          uint64_t *sent) {
    uint64_t more_received = 0, more_sent = 0;
    paths_traffic(server->paths, received, sent);
    if (serves)
        replicator_traffic(server->replicator, &more_received, &more_sent);
    *received += more_received;
    *sent += more_sent;
}

// Any thread may ask.
static void fill_figures(void *self, struct proto_heartbeat *figures) {
    struct parameter_server *server = self;
    struct ps_figures now = {0};
    pthread_mutex_lock(&server->lock);
    if (server->ps)
        ps_figures(server->ps, &now);
    bool has_model = server->ps != NULL, idle = server->idle, copies = server->copies;
    figures->rate = server->rate;
    figures->staleness = server->staleness;
    figures->dirty_bytes = server->risk.dirty_bytes;
    figures->at_risk = server->o->store ? server->risk.at_risk : NAN;
    pthread_mutex_unlock(&server->lock);
    bool has_weights = now.held > 0 ? now.version > 0 : copies;
    figures->state = (uint16_t)(!has_model    ? PROTO_STATE_STARTING
                                : has_weights ? PROTO_STATE_WORKING
                                              : PROTO_STATE_WAITING);
    if (has_model && !has_weights)
        figures->waits_for =
            proto_text(idle ? "nothing: it holds no shard" : "weights from the controller");
    figures->clock = now.version;
    figures->samples = now.samples;
    figures->pushes = now.pushes;
    figures->pulls = now.pulls;
    figures->behind = now.behind;
    figures->refused = refused_requests(server, &now);
    count_traffic(server, has_model, &figures->received, &figures->sent);
}

#define COPY_FIGURE(KIND, name, limit, text) member->name = figures.name;

static void fill_status(void *self, struct proto_member *member) {
    struct proto_heartbeat figures = {.loss = NAN};
    fill_figures(self, &figures);
    PROTO_FIGURES(COPY_FIGURE)
}

// Looks now and then how fast it is of late.
static void update_rates(struct parameter_server *server, double now) {
    if (!server->ps || now < server->looked.time + lately)
        return;
    struct ps_reading reading = {.time = now};
    ps_figures(server->ps, &reading.figures);
    const struct ps_reading *before = &server->looked;
    pthread_mutex_lock(&server->lock);
    server->rate =
        (double)(reading.figures.samples - before->figures.samples) / (now - before->time);
    server->staleness = mean_staleness(&reading.figures, &before->figures);
    server->looked = reading;
    pthread_mutex_unlock(&server->lock);
}

// How many parts of pushes had which staleness since the last line: [0], [1], ... up to
// the greatest that there was.
static json_t *staleness_histogram(const struct ps_figures *now, const struct ps_figures *before) {
    size_t most = PS_STALENESS_MOST + 1;
    json_t *list = json_array();
    while (most > 0 && now->staleness[most - 1] == before->staleness[most - 1])
        most--;
    for (size_t i = 0; i < most; i++)
        json_append(&list, json_integer((json_int_t)(now->staleness[i] - before->staleness[i])));
    return list;
}

static void put_count(json_t **fields, const char *name, uint64_t count) {
    json_put(fields, name, json_integer((json_int_t)count));
}

// "the window of potential data loss" (Adam 3.3.2)
static void put_risk(const struct parameter_server *server, json_t **fields) {
    struct flusher_figures figures;
    if (!server->flusher)
        return;
    flusher_figures(server->flusher, &figures);
    put_count(fields, "dirty_bytes", figures.dirty_bytes);
    json_put(fields, "at_risk", json_real(figures.at_risk));
    put_count(fields, "flushed", figures.flushed);
    put_count(fields, "stored", figures.written);
    put_count(fields, "flush_failures", figures.failures);
}

static void report_figures(struct parameter_server *server, double time) {
    struct ps_reading reading = {.time = time};
    const struct ps_reading *before = &server->reported;
    uint64_t received, sent;
    struct error err = {0};
    if (!server->ps)
        return;
    ps_figures(server->ps, &reading.figures);
    const struct ps_figures *now = &reading.figures, *then = &before->figures;
    count_traffic(server, true, &received, &sent);
    json_t *fields = json_object();
    json_put(&fields, "name", json_text(server->o->name));
    put_count(&fields, "step", now->version);
    put_count(&fields, "samples", now->samples);
    put_count(&fields, "pushes", now->pushes);
    put_count(&fields, "repeated", now->repeated);
    put_count(&fields, "pulls", now->pulls);
    put_count(&fields, "unchanged", now->unchanged);
    put_count(&fields, "refused", refused_requests(server, now));
    put_count(&fields, "updates", now->updates);
    put_count(&fields, "queued", now->queued);
    put_count(&fields, "received", received);
    put_count(&fields, "sent", sent);
    json_put(&fields, "floats_per_s",
             json_number((double)(now->floats - then->floats) / (time - before->time)));
    json_put(&fields, "staleness", json_real(mean_staleness(now, then)));
    put_count(&fields, "staleness_max", now->staleness_most);
    json_put(&fields, "staleness_counts", staleness_histogram(now, then));
    put_risk(server, &fields);
    json_put(&fields, "seconds", json_real(time - before->time));
    if (event_report(server->member, PROTO_ROLE_PARAMETER_SERVER, "ps", fields, &err))
        serving_say(&server->o->hooks, "a line of metrics is lost: %s", err.text);
    server->reported = reading;
}

// Its user and the controller hear who sent what no sound program sends.
static void report_refused(struct parameter_server *server, const struct complaint *complaint) {
    struct error err = {0};
    serving_say(&server->o->hooks, "%s", complaint->text);
    json_t *fields =
        json_pack("{s:s, s:I, s:s, s:I, s:s}", "name", server->o->name, "session",
                  (json_int_t)complaint->session, "reason", proto_refusal_name(complaint->code),
                  "count", (json_int_t)complaint->count, "text", complaint->text);
    if (fields &&
        event_report(server->member, PROTO_ROLE_PARAMETER_SERVER, "refused", fields, &err))
        serving_say(&server->o->hooks, "a line of metrics is lost: %s", err.text);
}

// --- what the controller says ------------------------------------------------

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

static void say_text(void *self, const char *text) {
    const struct parameter_server *server = self;
    server->o->hooks.say(server->o->hooks.self, text);
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
        .say = say_text,
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

static uint64_t payload_bytes(uint64_t memory) {
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
    uint64_t memory = server->o->memory, payloads = payload_bytes(memory);
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
static int obey_controller(struct parameter_server *server, struct error *err) {
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

// --- its life ----------------------------------------------------------------

static void look_up_members(void *self) {
    const struct parameter_server *server = self;
    member_look(server->member);
}

static void hear_replication(void *self, struct link *link, uint64_t session, uint64_t request,
                             uint16_t type, const union proto_message *message,
                             struct buffer *payload) {
    const struct parameter_server *server = self;
    replicator_hear(server->replicator, link, session, request, type, message, payload);
}

static void hear_save(void *self, struct link *link, uint64_t request, uint16_t type,
                      const union proto_message *message) {
    const struct parameter_server *server = self;
    part_saver_hear(server->saver, link, request, type, message);
}

// Also of links that came before it serves anything.
static void hear_left(void *self, const struct link *link) {
    struct parameter_server *server = self;
    pthread_mutex_lock(&server->lock);
    struct part_saver *saver = server->ps ? server->saver : NULL;
    pthread_mutex_unlock(&server->lock);
    if (saver)
        part_saver_left(saver, link);
}

// By the member's thread.
static void take_lease(void *self, double until) {
    struct parameter_server *server = self;
    pthread_mutex_lock(&server->lock);
    if (server->ps) { // and so a replicator
        ps_lease(server->ps, until);
        replicator_lease(server->replicator, until);
    }
    pthread_mutex_unlock(&server->lock);
}

// By the member's thread, before it has joined: nobody else uses the store yet.
static int list_held(void *self, const struct proto_id *run, struct proto_held **shards,
                     uint32_t *count, struct error *err) {
    const struct parameter_server *server = self;
    return store_list(&server->store.files, run, shards, count, err);
}

static void ask_to_stop(void *self) {
    struct parameter_server *server = self;
    atomic_store(&server->stop, true);
}

static bool stop_wanted(void *self) {
    const struct parameter_server *server = self;
    return atomic_load(&server->stop);
}

static void mind_store(struct parameter_server *server) {
    struct flusher_figures risk;
    char text[FLUSHER_NEWS];
    flusher_watch(server->flusher);
    flusher_figures(server->flusher, &risk);
    pthread_mutex_lock(&server->lock);
    server->risk = risk;
    pthread_mutex_unlock(&server->lock);
    while (flusher_news(server->flusher, text))
        serving_say(&server->o->hooks, "%s", text);
}

// The run gives weights once, at its start. A server that came back with a store that lacks some of
// its shards would wait for them for ever.
static int look_for_weights(struct parameter_server *server, double now, struct error *err) {
    struct ps_figures figures;
    ps_figures(server->ps, &figures);
    bool lacks = figures.ready < figures.held && member_begun(server->member);
    server->lacking = !lacks ? 0 : server->lacking > 0 ? server->lacking : now;
    if (!lacks || now < server->lacking + server->settings.server_patience)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "%s has no weights for %" PRIu64 " of the %" PRIu64 " shards that are held "
                     "here, and nobody gave them",
                     server->o->store, figures.held - figures.ready, figures.held);
}

static int serve_once(void *self, struct error *err) {
    struct parameter_server *server = self;
    struct complaint complaint;
    int status = obey_controller(server, err);
    double now = clock_seconds();
    if (!status && server->flusher)
        status = look_for_weights(server, now, err);
    if (status)
        return status;
    update_rates(server, now);
    if (server->ps && now >= server->reported.time + server->settings.metrics_every)
        report_figures(server, now);
    while (paths_complaint(server->paths, &complaint))
        report_refused(server, &complaint);
    if (server->flusher)
        mind_store(server);
    return STATUS_OK;
}

// --- beginning and end -------------------------------------------------------

static int open_paths(struct parameter_server *server, struct error *err) {
    const struct parameter_server_options *o = server->o;
    const struct paths_options options = {
        .addresses = {o->training, o->replication, o->administration},
        .name = o->name,
        .keys = o->keys,
        .insecure = o->insecure,
        .memory = payload_bytes(o->memory),
        .hooks = {server, look_up_members, fill_status, ask_to_stop, hear_save, hear_left,
                  hear_replication},
    };
    int status = paths_open(&server->paths, &options, err);
    if (!status)
        paths_start(server->paths);
    return status;
}

static int open_member(struct parameter_server *server, struct error *err) {
    const struct parameter_server_options *o = server->o;
    const struct member_options options = {
        .role = PROTO_ROLE_PARAMETER_SERVER,
        .controller = o->controller,
        .name = o->name,
        .threads = o->threads,
        .memory = o->memory,
        .training = paths_address(server->paths, PATH_TRAINING),
        .replication = paths_address(server->paths, PATH_REPLICATION),
        .administration = paths_address(server->paths, PATH_ADMIN),
        .keys = o->keys,
        .insecure = o->insecure,
        .stores = o->store != NULL,
        .parts = o->checkpoints != NULL,
        .members = true,
        .places = PLACES,
        .hooks = {server, say_text, fill_figures, o->store ? list_held : NULL, take_lease},
    };
    return member_open(&server->member, &options, err);
}

static int open_server(void *self, struct member **member, struct error *err) {
    struct parameter_server *server = self;
    int status = STATUS_OK;
    if (server->o->store)
        status = files_system_open(&server->store, server->o->store, err);
    if (!status && server->o->checkpoints)
        status = part_saver_make_folder(server->o->checkpoints, err);
    if (!status)
        status = open_paths(server, err);
    if (!status)
        status = open_member(server, err);
    *member = server->member;
    return status;
}

static int tell_ready(void *self, struct ready *ready, struct error *err) {
    struct parameter_server *server = self;
    const char *addresses[PATH_COUNT];
    for (int i = 0; i < PATH_COUNT; i++)
        addresses[i] = paths_address(server->paths, (enum path_kind)i);
    serving_say(&server->o->hooks,
                "listens at %s (training), %s (replication), %s (administration)",
                addresses[PATH_TRAINING], addresses[PATH_REPLICATION], addresses[PATH_ADMIN]);
    return ready_tell(ready, addresses, PATH_COUNT, err);
}

// What changed last goes to the store. Who is stopped and run again goes on with that: no other end
// needs it.
static int end_store(struct parameter_server *server, int status, struct error *err) {
    struct error why = {0};
    if (flusher_close(server->flusher, &why) && status == STATUS_STOPPED)
        *err = why;
    else if (why.status)
        serving_say(&server->o->hooks, "%s", why.text);
    server->flusher = NULL;
    files_system_close(&server->store);
    return status == STATUS_STOPPED && why.status ? why.status : status;
}

// Nobody asks any more, then nothing is applied any more, then the run is left.
static int end_server(void *self, int status, struct error *err) {
    struct parameter_server *server = self;
    struct ps *ps = server->ps;
    if (server->member && ps)
        report_figures(server, clock_seconds());
    paths_close(server->paths);
    part_saver_close(server->saver);
    replicator_close(server->replicator);
    status = end_store(server, status, err);
    pthread_mutex_lock(&server->lock);
    server->ps = NULL;
    pthread_mutex_unlock(&server->lock);
    ps_close(ps);
    serving_leave(server->member, status, err);
    replicator_free(server->replicator); // nobody asks for its figures any more
    paths_free(server->paths);
    kept_drop(server->run);
    kept_drop(server->routes);
    kept_drop(server->members);
    kept_drop(server->places);
    model_free(server->model);
    free(server->settings_text);
    pthread_mutex_destroy(&server->lock);
    return status;
}

int parameter_server_run(const struct parameter_server_options *options, struct error *err) {
    static const struct serving_role role = {open_server, tell_ready, stop_wanted, serve_once,
                                             end_server};
    struct parameter_server server = {.o = options, .store = {.folder = -1}};
    pthread_mutex_init(&server.lock, NULL);
    return serving_run(&role, &server, &options->hooks, &options->ready, err);
}
