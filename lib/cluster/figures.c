#include "cluster/figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/columns.h"
#include "core/grow.h"
#include "core/printable.h"

// A text of the wire, printable, in memory of its own.
struct plain {
    char text[PROTO_ADDRESS_MAX + 1];
};

static struct plain plain_of(struct proto_text from) {
    struct plain plain;
    printable_copy(plain.text, sizeof plain.text, from.at, from.length);
    return plain;
}

static const struct proto_member *members_of(const struct proto_status *status) {
    return status->members.at;
}

// --- a table --------------------------------------------------------------------------------

static void put_bytes(struct columns *table, uint64_t bytes) {
    static const char *const units[] = {"", "K", "M", "G", "T"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1000 && unit < 4; unit++)
        value /= 1000;
    columns_cell(table, unit ? "%.1f%s" : "%.0f%s", value, units[unit]);
}

static void put_real(struct columns *table, bool known, const char *format, double value) {
    char text[32];
    snprintf(text, sizeof text, format, value); // NOLINT: formats are those below
    columns_cell(table, "%s", known && isfinite(value) ? text : "-");
}

// Columns that not every run has.
struct extras {
    bool stores, copies, partitions;
};

static bool has_store(const struct proto_member *m) {
    return m->role == PROTO_ROLE_PARAMETER_SERVER && !isnan(m->at_risk);
}

static struct extras extras_of(const struct proto_status *status) {
    struct extras extras = {0};
    for (uint32_t i = 0; i < status->members.count; i++) {
        const struct proto_member *m = &members_of(status)[i];
        extras.stores |= has_store(m);
        extras.copies |= m->behind > 0;
        extras.partitions |= m->role == PROTO_ROLE_WORKER && m->partition > 0;
    }
    return extras;
}

static void put_extras(struct columns *table, const struct proto_member *m,
                       const struct extras *extras) {
    bool stores = has_store(m);
    if (extras->stores && stores)
        put_bytes(table, m->dirty_bytes);
    else if (extras->stores)
        columns_cell(table, "-");
    if (extras->stores)
        put_real(table, stores, "%.1fs", m->at_risk);
    if (extras->copies && m->role == PROTO_ROLE_PARAMETER_SERVER)
        columns_cell(table, "%" PRIu64, m->behind);
    else if (extras->copies)
        columns_cell(table, "-");
    if (extras->partitions && m->role == PROTO_ROLE_WORKER)
        columns_cell(table, "%" PRIu32 "/%" PRIu32, m->replica, m->partition);
    else if (extras->partitions)
        columns_cell(table, "-");
}

static void put_row(struct columns *table, const struct proto_member *m,
                    const struct extras *extras) {
    bool worker = m->role == PROTO_ROLE_WORKER;
    bool rated = worker || m->role == PROTO_ROLE_DATA_SERVER || m->rate > 0;
    bool server = m->role == PROTO_ROLE_PARAMETER_SERVER;
    columns_cell(table, "%s", proto_role_name(m->role));
    columns_cell(table, "%u", m->member);
    columns_cell(table, "%s", plain_of(m->name).text);
    columns_cell(table, "%s", proto_state_name(m->state));
    put_real(table, m->epoch > 0, "%.2f", m->epoch);
    put_real(table, rated, "%.0f", m->rate);
    put_real(table, worker, "%.4f", m->loss);
    put_real(table, server, "%.1f", m->staleness);
    put_real(table, worker, "%.0f%%", 100 * m->waiting);
    put_real(table, worker, "%.0f%%", 100 * m->overlap);
    columns_cell(table, "%" PRIu64, m->refused);
    put_bytes(table, m->received);
    put_bytes(table, m->sent);
    put_extras(table, m, extras);
    columns_cell(table, "%s", plain_of(m->waits_for).text);
}

static void put_trouble(struct grow *text, const struct proto_status *status) {
    if (status->idle > 0) {
        char *why = figures_idle(status);
        grow_format(text, "nothing was trained for %" PRIu32 " s: %s\n", status->idle,
                    why ? why : "");
        text->failed |= !why;
        free(why);
    }
    if (status->left_out > 0)
        grow_format(text, "%.3g%% of each epoch is left out\n", 100 * status->left_out);
}

char *figures_table(const struct proto_status *status) {
    static const struct column usual[] = {
        {"ROLE", false},   {"NO", true},       {"NAME", false}, {"STATE", false}, {"EPOCH", true},
        {"RATE/S", true},  {"LOSS", true},     {"STALE", true}, {"WAIT", true},   {"OVERLAP", true},
        {"REFUSED", true}, {"RECEIVED", true}, {"SENT", true},
    };
    enum { USUAL = sizeof usual / sizeof *usual, MOST = USUAL + 5 };
    const struct extras extras = extras_of(status);
    struct column titles[MOST];
    struct columns table = {.column = titles, .count = USUAL};
    struct grow text = {0};
    memcpy(titles, usual, sizeof usual);
    if (extras.stores) {
        titles[table.count++] = (struct column){"DIRTY", true};
        titles[table.count++] = (struct column){"AT RISK", true};
    }
    if (extras.copies)
        titles[table.count++] = (struct column){"BEHIND", true};
    if (extras.partitions)
        titles[table.count++] = (struct column){"REPLICA/PARTITION", false};
    titles[table.count++] = (struct column){"WAITS FOR", false};
    for (uint32_t i = 0; i < status->members.count; i++)
        put_row(&table, &members_of(status)[i], &extras);
    columns_put(&table, &text);
    put_trouble(&text, status);
    return grow_take(&text);
}

char *figures_waits(const struct proto_status *status) {
    struct grow text = {0};
    grow_put(&text, "", 0);
    for (uint32_t i = 0; i < status->members.count; i++) {
        const struct proto_member *m = &members_of(status)[i];
        if (m->waits_for.length > 0)
            grow_format(&text, "%s waits for %s\n",
                        m->role == PROTO_ROLE_CONTROLLER ? "controller" : plain_of(m->name).text,
                        plain_of(m->waits_for).text);
    }
    return grow_take(&text);
}

// --- why nothing is trained -----------------------------------------------------------------

void figures_wait(char text[FIGURES_WAIT], const struct proto_member *worker) {
    static const uint32_t silent = 2000; // milliseconds: a heartbeat is missed
    const struct plain waits_for = plain_of(worker->waits_for);
    if (worker->silent > silent)
        snprintf(text, FIGURES_WAIT, "nothing heard of it for %.0f s", worker->silent * 1e-3);
    else
        snprintf(text, FIGURES_WAIT, "%s", *waits_for.text ? waits_for.text : "it names nobody");
}

static void put_wait(struct grow *text, const struct proto_member *m) {
    char wait[FIGURES_WAIT];
    figures_wait(wait, m);
    grow_format(text, "%s%s %u (%s): %s", text->length ? "; " : "", proto_role_name(m->role),
                m->member, plain_of(m->name).text, wait);
}

char *figures_idle(const struct proto_status *status) {
    enum { NAMED = 8 }; // a line that can still be read
    struct grow text = {0};
    uint32_t workers = 0;
    for (uint32_t i = 0; i < status->members.count; i++) {
        const struct proto_member *m = &members_of(status)[i];
        if (m->role != PROTO_ROLE_WORKER || m->state == PROTO_STATE_GONE)
            continue;
        if (workers++ < NAMED)
            put_wait(&text, m);
    }
    if (!workers)
        grow_format(&text, "there is no worker");
    if (workers > NAMED)
        grow_format(&text, "; and %" PRIu32 " more", workers - NAMED);
    return grow_take(&text);
}

// --- a line ---------------------------------------------------------------------------------

// Of all workers together.
struct sum {
    double epoch, rate, waiting, loss, weight;
    int workers;
};

static struct sum sum_workers(const struct proto_status *status) {
    struct sum sum = {0};
    for (uint32_t i = 0; i < status->members.count; i++) {
        const struct proto_member *m = &members_of(status)[i];
        // The first is who leads, or trains alone; those that stand by have 0.
        if ((i == 0 || m->role == PROTO_ROLE_CONTROLLER) && m->epoch > sum.epoch)
            sum.epoch = m->epoch;
        // The first of a replica speaks for all of it.
        if (m->role != PROTO_ROLE_WORKER || m->partition > 0 || !(m->rate > 0))
            continue;
        sum.workers++;
        sum.rate += m->rate;
        sum.waiting += m->waiting;
        sum.loss += isfinite(m->loss) ? m->loss * m->rate : 0;
        sum.weight += isfinite(m->loss) ? m->rate : 0;
    }
    return sum;
}

void figures_line(char text[FIGURES_LINE], const struct proto_status *status, double epochs) {
    struct sum sum = sum_workers(status);
    char of[32] = "", loss[32] = "";
    *text = 0;
    if (!sum.workers)
        return;
    if (epochs > 0)
        snprintf(of, sizeof of, " of %g", epochs);
    if (sum.weight > 0)
        snprintf(loss, sizeof loss, "loss %.4f  ", sum.loss / sum.weight);
    snprintf(text, FIGURES_LINE, "epoch %.2f%s  %s%d worker%s  %.0f images/s  wait %.0f%%",
             sum.epoch, of, loss, sum.workers, sum.workers == 1 ? "" : "s", sum.rate,
             100 * sum.waiting / sum.workers);
}

// --- JSON -----------------------------------------------------------------------------------

static json_t *real_json(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *member_json(const struct proto_member *m) {
    return json_pack("{s:I, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, "
                     "s:o, s:o, s:o, "
                     "s:o, s:I, s:o, s:I, s:I, s:I, s:s}",                                    //
                     "member", (json_int_t)m->member, "role", proto_role_name(m->role),       //
                     "name", plain_of(m->name).text, "address", plain_of(m->address).text,    //
                     "state", proto_state_name(m->state), "silent_ms", (json_int_t)m->silent, //
                     "clock", (json_int_t)m->clock, "samples", (json_int_t)m->samples,        //
                     "pushes", (json_int_t)m->pushes, "pulls", (json_int_t)m->pulls,          //
                     "refused", (json_int_t)m->refused, "received", (json_int_t)m->received,  //
                     "sent", (json_int_t)m->sent, "epoch", real_json(m->epoch), "rate",
                     real_json(m->rate), //
                     "loss", real_json(m->loss), "staleness", real_json(m->staleness), "waiting",
                     real_json(m->waiting), //
                     "overlap", real_json(m->overlap), "dirty_bytes", (json_int_t)m->dirty_bytes,
                     "at_risk", real_json(m->at_risk), "behind", (json_int_t)m->behind, "replica",
                     (json_int_t)m->replica, "partition", (json_int_t)m->partition, "waits_for",
                     plain_of(m->waits_for).text);
}

// Of a run of one process: what that is doing.
static json_t *stage_json(const struct proto_member *first) {
    if (!first)
        return json_string("");
    return json_string(first->role == PROTO_ROLE_CONTROLLER ? plain_of(first->name).text
                                                            : proto_state_name(first->state));
}

json_t *figures_json(const struct proto_status *status) {
    char run[PROTO_ID_TEXT];
    json_t *members = json_array();
    proto_id_text(run, &status->run);
    for (uint32_t i = 0; i < status->members.count; i++)
        json_append(&members, member_json(&members_of(status)[i]));
    const struct proto_member *first = status->members.count ? members_of(status) : NULL;
    return json_pack("{s:s, s:o, s:o, s:I, s:f, s:o}", "run", run, "stage", stage_json(first),
                     "epoch", first ? real_json(first->epoch) : json_null(), "idle",
                     (json_int_t)status->idle, "left_out",
                     isfinite(status->left_out) ? status->left_out : 0, "members", members);
}

// --- Prometheus -------------------------------------------------------------------------------

// G(field, unit, name, type, help): the value is the field times its unit.
#define GAUGES(G)                                                                                  \
    G(silent, 1e-3, "adam_silent_seconds", "gauge", "Time since the member was heard of.")         \
    G(state, 1, "adam_state", "gauge", "State of the member, as adam-protocol(5) numbers it.")     \
    G(clock, 1, "adam_clock_total", "counter", "Mini-batches trained on, or updates applied.")     \
    G(samples, 1, "adam_samples_total", "counter", "Samples trained on, applied or served.")       \
    G(pushes, 1, "adam_pushes_total", "counter", "Pushes sent or applied.")                        \
    G(pulls, 1, "adam_pulls_total", "counter", "Pulls asked for or answered.")                     \
    G(refused, 1, "adam_refused_total", "counter", "Requests refused, of a worker pushes.")        \
    G(received, 1, "adam_received_bytes_total", "counter", "Bytes received.")                      \
    G(sent, 1, "adam_sent_bytes_total", "counter", "Bytes sent.")                                  \
    G(epoch, 1, "adam_epoch", "gauge", "Epochs that are done, with the part of the present one.")  \
    G(rate, 1, "adam_samples_per_second", "gauge", "Samples a second, lately.")                    \
    G(loss, 1, "adam_loss", "gauge", "Mean training loss, lately.")                                \
    G(staleness, 1, "adam_staleness", "gauge", "Mean staleness of updates, lately.")               \
    G(waiting, 1, "adam_waiting_ratio", "gauge", "Share of time spent waiting for data, lately.")  \
    G(overlap, 1, "adam_overlap_ratio", "gauge", "Time of computing by that and waiting, lately.") \
    G(dirty_bytes, 1, "adam_dirty_bytes", "gauge", "Bytes that changed since they were stored.")   \
    G(at_risk, 1, "adam_at_risk_seconds", "gauge", "Age of the oldest change that is not stored.") \
    G(behind, 1, "adam_behind_shards", "gauge", "Shards whose newest values are not on all copies.")

#define GAUGE_VALUE(field, unit, name, type, help)                                                 \
    static double of_##field(const struct proto_member *member) {                                  \
        return (double)member->field * (unit);                                                     \
    }
GAUGES(GAUGE_VALUE)

static const struct gauge {
    const char *name, *type, *help;
    double (*value)(const struct proto_member *member);
} gauges[] = {
#define GAUGE_ROW(field, unit, name, type, help) {name, type, help, of_##field},
    GAUGES(GAUGE_ROW)};

// A value of a label: quotes, backslashes and ends of lines are escaped in this format.
static void put_label(struct grow *out, const char *name, const char *text) {
    grow_format(out, "%s=\"", name);
    for (; *text; text++)
        grow_format(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    grow_put(out, "\"", 1);
}

static void put_sample(struct grow *out, const struct gauge *gauge, const struct proto_member *m) {
    double value = gauge->value(m);
    char role[32];
    snprintf(role, sizeof role, "%s", proto_role_name(m->role));
    grow_format(out, "%s{member=\"%u\",", gauge->name, m->member);
    put_label(out, "role", role);
    grow_put(out, ",", 1);
    put_label(out, "name", plain_of(m->name).text);
    if (m->role == PROTO_ROLE_CONTROLLER && m->address.length) { // of several all are member 0
        grow_put(out, ",", 1);
        put_label(out, "address", plain_of(m->address).text);
    }
    if (isnan(value))
        grow_format(out, "} NaN\n");
    else
        grow_format(out, "} %.10g\n", value);
}

// Of the run as a whole.
static void put_run(struct grow *out, const struct proto_status *status) {
    grow_format(out,
                "# HELP adam_idle_seconds Time for which nothing was trained, though there is "
                "work; 0 below 10 s.\n"
                "# TYPE adam_idle_seconds gauge\n"
                "adam_idle_seconds %" PRIu32 "\n"
                "# HELP adam_left_out_ratio Share of each epoch that is left out.\n"
                "# TYPE adam_left_out_ratio gauge\n"
                "adam_left_out_ratio %.10g\n",
                status->idle, isfinite(status->left_out) ? status->left_out : 0);
}

char *figures_prometheus(const struct proto_status *status) {
    struct grow out = {0};
    put_run(&out, status);
    for (size_t g = 0; g < sizeof gauges / sizeof *gauges; g++) {
        grow_format(&out, "# HELP %s %s\n# TYPE %s %s\n", gauges[g].name, gauges[g].help,
                    gauges[g].name, gauges[g].type);
        for (uint32_t i = 0; i < status->members.count; i++)
            if (members_of(status)[i].state != PROTO_STATE_GONE)
                put_sample(&out, &gauges[g], &members_of(status)[i]);
    }
    return grow_take(&out);
}
