// How a parameter server is doing: for heartbeats, for who asks it, and for the metrics.
#include <math.h>

#include "core/clock.h"
#include "core/error.h"
#include "member/event.h"
#include "role/paramserver/parameter_server_internal.h"

static const double lately = 1.0; // seconds over which rates are taken
enum {
    PAYLOADS = 1 << 30,
    MEBI = 1 << 20,
    PLACES = 250, // milliseconds from one asking for places to the next
};

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
void parameter_server_figures(void *self, struct proto_heartbeat *figures) {
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

void parameter_server_status(void *self, struct proto_member *member) {
    struct proto_heartbeat figures = {.loss = NAN};
    parameter_server_figures(self, &figures);
    PROTO_FIGURES(COPY_FIGURE)
}

// Looks now and then how fast it is of late.
void parameter_server_note_rates(struct parameter_server *server, double now) {
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

// --- lines of metrics --------------------------------------------------------

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

void parameter_server_report(struct parameter_server *server, double time) {
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
void parameter_server_report_refused(struct parameter_server *server,
                                     const struct complaint *complaint) {
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
