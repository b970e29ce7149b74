#include "role/paramserver/parameter_server.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "model/model.h"
#include "role/paramserver/parameter_server_internal.h"
#include "role/paramserver/store_look.h"

enum { PLACES = 250 }; // milliseconds from one asking for places to the next

void parameter_server_say(void *self, const char *text) {
    const struct parameter_server *server = self;
    server->o->hooks.say(server->o->hooks.self, text);
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
    int status = parameter_server_obey(server, err);
    double now = clock_seconds();
    if (!status && server->flusher)
        status = look_for_weights(server, now, err);
    if (status)
        return status;
    parameter_server_note_rates(server, now);
    if (server->ps && now >= server->reported.time + server->settings.metrics_every)
        parameter_server_report(server, now);
    while (paths_complaint(server->paths, &complaint))
        parameter_server_report_refused(server, &complaint);
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
        .memory = parameter_server_payloads(o->memory),
        .hooks = {server, look_up_members, parameter_server_status, ask_to_stop, hear_save,
                  hear_left, hear_replication},
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
        .hooks = {server, parameter_server_say, parameter_server_figures,
                  o->store ? list_held : NULL, take_lease},
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
        parameter_server_report(server, clock_seconds());
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
