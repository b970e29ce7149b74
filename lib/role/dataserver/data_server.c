#include "role/dataserver/data_server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/random.h"
#include "member/event.h"
#include "member/member.h"
#include "member/run_text.h"
#include "role/dataserver/data_service.h"
#include "run/checkpoint.h"
#include "run/settings.h"

static const double lately = 1.0;       // seconds over which rates are taken
static const double lease_least = 10.0; // seconds that a lease has at least

// What it has done, at some time; figures "of late" are differences of two.
struct data_reading {
    double time;
    struct data_service_figures figures;
};

struct data_server {
    const struct data_server_options *o;
    struct picture_cache *pictures;
    struct ops *ops;
    struct data_service *service;
    struct listener *listener;
    struct member *member;
    struct settings settings;
    char *settings_text;        // that `settings` points into
    struct kept *run, *members; // that were obeyed last
    bool serving, done;         // the second: all epochs are over, and that was said
    double tend_at;
    struct data_reading reported, looked;
    _Atomic double rate, busy; // of late: samples a second, share of askers that came too early
};

static void say_text(void *self, const char *text) {
    const struct data_server *server = self;
    server->o->hooks.say(server->o->hooks.self, text);
}

// --- how it is doing ---------------------------------------------------------

// Any thread may ask.
static void fill_figures(void *self, struct proto_heartbeat *figures) {
    struct data_server *server = self;
    const struct data_service_figures now = data_service_figures(server->service);
    figures->state = now.dealer.done ? PROTO_STATE_WAITING : PROTO_STATE_WORKING;
    figures->clock = now.leases;
    figures->samples = now.dealer.leased;
    figures->refused = now.refused;
    figures->received = now.received;
    figures->sent = now.sent;
    figures->epoch = now.dealer.progress;
    figures->rate = atomic_load(&server->rate);
    figures->waiting = atomic_load(&server->busy);
}

static double share_of(uint64_t part, uint64_t rest) {
    return part + rest > 0 ? (double)part / (double)(part + rest) : 0;
}

static struct data_reading reading_now(struct data_server *server) {
    return (struct data_reading){clock_seconds(), data_service_figures(server->service)};
}

static void update_rates(struct data_server *server) {
    if (clock_seconds() < server->looked.time + lately)
        return;
    const struct data_reading now = reading_now(server), before = server->looked;
    uint64_t leased = now.figures.dealer.leased - before.figures.dealer.leased;
    atomic_store(&server->rate, (double)leased / (now.time - before.time));
    atomic_store(&server->busy, share_of(now.figures.busy - before.figures.busy,
                                         now.figures.leases - before.figures.leases));
    server->looked = now;
}

static void report_figures(struct data_server *server) {
    const struct data_reading now = reading_now(server), before = server->reported;
    const struct data_service_figures *f = &now.figures, *then = &before.figures;
    struct error err = {0};
    double seconds = now.time - before.time;
    json_t *fields =
        json_pack("{s:s, s:f, s:I, s:f, s:I, s:f, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:f}", //
                  "name", server->o->name,                                                       //
                  "epoch", f->dealer.progress,                                                   //
                  "samples", (json_int_t)f->dealer.leased,                                       //
                  "images_per_s", (double)(f->dealer.leased - then->dealer.leased) / seconds,    //
                  "ready", (json_int_t)f->dealer.ready,                                          //
                  "cache_hits",                                                                  //
                  share_of(f->pictures.hits - then->pictures.hits,
                           f->pictures.misses - then->pictures.misses),             //
                  "cache_bytes", (json_int_t)f->pictures.bytes,                     //
                  "leases", (json_int_t)f->leases,                                  //
                  "busy", (json_int_t)f->busy,                                      //
                  "wait", share_of(f->busy - then->busy, f->leases - then->leases), //
                  "again", (json_int_t)f->again,                                    //
                  "refused", (json_int_t)f->refused,                                //
                  "received", (json_int_t)f->received,                              //
                  "sent", (json_int_t)f->sent,                                      //
                  "seconds", seconds);
    if (event_report(server->member, PROTO_ROLE_DATA_SERVER, "serve", fields, &err))
        serving_say(&server->o->hooks, "a line of metrics is lost: %s", err.text);
    server->reported = now;
}

// --- what the controller says ------------------------------------------------

static int read_settings(struct data_server *server, const struct proto_run *run,
                         struct error *err) {
    char *text;
    int status = run_settings(&server->settings, &text, run, err);
    if (status)
        return status;
    free(server->settings_text);
    server->settings_text = text;
    return STATUS_OK;
}

static struct lease_rules lease_rules_of(const struct settings *settings) {
    return (struct lease_rules){
        .epochs = (uint64_t)settings_last_epoch(settings),
        .epoch_end = settings->epoch_end,
        .least = lease_least,
    };
}

static int parse_ops(struct data_server *server, const char *text, struct error *err) {
    size_t offset, length;
    int status = ops_parse(&server->ops, text, 0, &offset, &length, err);
    if (status == STATUS_USAGE)
        error_context(err, "operations '%s': at '%.*s'", text, (int)length, text + offset);
    return status;
}

// The first time that it hears what is trained: from then on it serves.
static int begin_serving(struct data_server *server, struct error *err) {
    const struct data_server_options *o = server->o;
    const struct settings *settings = &server->settings;
    struct member_identity identity;
    struct protocol protocol;
    enum protocol_push push;
    member_identity(server->member, &identity);
    int status = settings_protocol(settings, &protocol, &push, err);
    if (!status && !server->ops && settings->ops)
        status = parse_ops(server, settings->ops, err);
    if (status)
        return status;
    const struct data_service_run run = {
        .run = identity.run,
        .model = identity.model,
        .name = o->name,
        .ops = server->ops,
        .rules = lease_rules_of(settings),
        .seed = (uint64_t)settings->seed,
        // A session is never used again: neither are leases numbered from its hash.
        .number = hash_mix(identity.session, identity.member),
        .batch = (uint32_t)settings->batch,
        .ahead = (size_t)o->ahead,
        .threads = o->threads,
        .rounds = protocol.kind == PROTOCOL_HARDSYNC,
        .cursor = o->cursor,
        .epoch = identity.epoch,
    };
    status = data_service_begin(server->service, &run, err);
    if (status)
        return status;
    server->serving = true;
    server->reported = server->looked = reading_now(server);
    serving_say(&server->o->hooks,
                "member %" PRIu32 ": serves samples %" PRIu32 "..%" PRIu64 " of %" PRIu64,
                identity.member, picture_cache_first(server->pictures),
                (uint64_t)picture_cache_first(server->pictures) +
                    picture_cache_count(server->pictures),
                picture_cache_whole(server->pictures));
    return STATUS_OK;
}

static int obey_run(struct data_server *server, struct error *err) {
    int status = read_settings(server, &server->run->message.run, err);
    if (status)
        return status;
    if (!server->serving)
        return begin_serving(server, err);
    const struct lease_rules rules = lease_rules_of(&server->settings);
    data_service_rules(server->service, &rules);
    return STATUS_OK;
}

static int obey_controller(struct data_server *server, struct error *err) {
    if (kept_renew(&server->run, member_run(server->member)) && obey_run(server, err))
        return err->status;
    if (server->serving && kept_renew(&server->members, member_members(server->member)))
        return data_service_members(server->service, &server->members->message.status, err);
    return STATUS_OK;
}

// --- its life ----------------------------------------------------------------

static void say_done(struct data_server *server) {
    const struct dealer_figures figures = data_service_figures(server->service).dealer;
    if (figures.done && !server->done)
        serving_say(&server->o->hooks, "all epochs are served: %" PRIu64 " samples",
                    figures.leased);
    // The controller hears of it now, not with the next heartbeat.
    if (figures.done && !server->done)
        member_look(server->member);
    server->done = figures.done;
}

static int tend_service(struct data_server *server, struct error *err) {
    double next, now = clock_seconds();
    if (!server->serving)
        return STATUS_OK;
    say_done(server);
    if (data_service_met_stranger(server->service))
        member_look(server->member);
    update_rates(server);
    if (now >= server->reported.time + server->settings.metrics_every)
        report_figures(server);
    if (now < server->tend_at)
        return STATUS_OK;
    int status = data_service_tend(server->service, &next, err);
    server->tend_at = now + next;
    return status;
}

static int serve_once(void *self, struct error *err) {
    struct data_server *server = self;
    int status = obey_controller(server, err);
    return status ? status : tend_service(server, err);
}

static bool stop_wanted(void *self) {
    const struct data_server *server = self;
    return data_service_stop_wanted(server->service);
}

// --- beginning and end -------------------------------------------------------

static int open_data(struct data_server *server, struct error *err) {
    const struct data_server_options *o = server->o;
    const struct picture_cache_options options = {
        .paths = o->paths,
        .path_count = o->path_count,
        .source = o->source,
        .part = o->part,
        .parts = o->parts,
        .cache = o->cache,
    };
    int status = o->ops ? parse_ops(server, o->ops, err) : STATUS_OK;
    if (!status)
        status = picture_cache_open(&server->pictures, &options, err);
    if (!status)
        status = checkpoint_check_names(picture_cache_classes(server->pictures), err);
    if (status)
        return status;
    serving_say(&server->o->hooks, "%s%s: %" PRIu64 " samples %s %d %s", o->paths[0],
                o->path_count > 1 ? " and others" : "", picture_cache_whole(server->pictures),
                o->source.targets ? "with" : "of", picture_cache_classes(server->pictures)->count,
                o->source.targets ? "targets" : "classes");
    const struct data_service_options service = {o->paths[0], server->pictures, say_text, server};
    return data_service_open(&server->service, &service, err);
}

static int open_listener(struct data_server *server, struct error *err) {
    const struct data_server_options *o = server->o;
    const struct link_options options = {
        .handlers = data_service_handlers(server->service),
        .keys = o->keys,
        .insecure = o->insecure,
    };
    return listener_open(&server->listener, o->listen, &options, NULL, err);
}

static int open_member(struct data_server *server, struct error *err) {
    const struct data_server_options *o = server->o;
    const char *address = listener_address(server->listener);
    const struct member_options options = {
        .role = PROTO_ROLE_DATA_SERVER,
        .controller = o->controller,
        .name = o->name,
        .threads = (uint32_t)o->threads,
        .memory = o->cache,
        .training = address,
        .administration = address,
        .first = picture_cache_first(server->pictures),
        .samples = picture_cache_count(server->pictures),
        .whole = picture_cache_whole(server->pictures),
        .digest = picture_cache_digest(server->pictures),
        .classes = (uint32_t)picture_cache_classes(server->pictures)->count,
        .keys = o->keys,
        .insecure = o->insecure,
        .members = true,
        .hooks = {server, say_text, fill_figures},
    };
    return member_open(&server->member, &options, err);
}

static int open_server(void *self, struct member **member, struct error *err) {
    struct data_server *server = self;
    int status = open_data(server, err);
    if (!status)
        status = open_listener(server, err);
    if (!status)
        status = open_member(server, err);
    *member = server->member;
    return status;
}

static int tell_ready(void *self, struct ready *ready, struct error *err) {
    struct data_server *server = self;
    const char *address = listener_address(server->listener);
    serving_say(&server->o->hooks, "listens at %s", address);
    return ready_tell(ready, &address, 1, err);
}

// Nobody asks any more, then the run is left.
static int end_server(void *self, int status, struct error *err) {
    struct data_server *server = self;
    if (server->serving)
        report_figures(server);
    listener_close(server->listener);
    serving_leave(server->member, status, err);
    data_service_close(server->service);
    picture_cache_close(server->pictures);
    ops_free(server->ops);
    kept_drop(server->run);
    kept_drop(server->members);
    free(server->settings_text);
    return status;
}

int data_server_run(const struct data_server_options *options, struct error *err) {
    static const struct serving_role role = {open_server, tell_ready, stop_wanted, serve_once,
                                             end_server};
    struct data_server server = {.o = options};
    return serving_run(&role, &server, &options->hooks, &options->ready, err);
}
