// The life of a controller: it stands by, leads when the others agree that it does, and ends with
// the run.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "role/controller/controller_internal.h"
#include "role/controller/metrics_copy.h"

#define TICK 0.1 // seconds between two looks at what is wished

// Seconds for which a controller that knows of the run's end tells the others of it.
static const double farewell = 1;

// What a controller that stands by has seen and said.
struct standby {
    struct doors *doors;
    struct patience patience;
    uint32_t leader;  // that was named last; PROTO_NOBODY
    uint64_t version; // of the state that was looked at last
    bool lacks_record;
    bool took_part; // in a run that was not over
    struct metrics_copy *metrics;
};

static void standby_say(const struct standby *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void standby_say(const struct standby *s, const char *format, ...) {
    char text[ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    doors_say(s->doors, text);
}

// --- what there is to say -----------------------------------------------------------------------

static void name_leader(struct standby *s) {
    uint32_t leader = quorum_leader(s->doors->quorum);
    const struct controller_config *config = s->doors->config;
    if (leader == s->leader || leader >= config->controllers || leader == config->id)
        return;
    s->leader = leader;
    standby_say(s, "controller %u stands by: controller %u leads, %s", config->id + 1, leader + 1,
                doors_address(s->doors, leader));
}

static void say_blankness(struct standby *s) {
    if (s->lacks_record || !quorum_lacks_record(s->doors->quorum))
        return;
    s->lacks_record = true;
    standby_say(s,
                "controller %u has no record of the run that the others have, and so no vote; "
                "if its disk was lost, start it with --rejoin",
                s->doors->config->id + 1);
}

// Who was not heard of lately: "controller 1 (ADDRESS), controller 3 (ADDRESS)".
static void list_silent(const struct standby *s, char text[1024]) {
    const struct controller_config *config = s->doors->config;
    size_t used = 0;
    *text = 0;
    for (uint32_t i = 0; i < config->controllers && used < 1024; i++) {
        double silence = quorum_silence(s->doors->quorum, i);
        if (i != config->id && (silence < 0 || silence > 2))
            used += (size_t)snprintf(text + used, 1024 - used, "%scontroller %u (%s)",
                                     used ? ", " : "", i + 1, config->addresses[i]);
    }
}

static void say_waiting(struct standby *s) {
    char silent[1024];
    if (quorum_leader(s->doors->quorum) != PROTO_NOBODY) {
        patience_found(&s->patience);
    } else if (patience_lost(&s->patience)) {
        list_silent(s, silent);
        standby_say(s, "waiting for controllers: no majority of %u agrees on a leader%s%s",
                    s->doors->config->controllers, *silent ? "; nothing is heard of " : "", silent);
    }
}

// --- standing by --------------------------------------------------------------------------------

// Whether the newest state is the end of this controller's run. A run that was stopped or lost
// before this controller began is one to go on from, by whoever leads (controller_open.c).
static bool is_end(struct standby *s, const struct cluster *cluster) {
    bool over = cluster->stage == CLUSTER_OVER;
    s->took_part |= !over;
    return over && (s->took_part || (cluster->finished && !s->doors->config->resume));
}

// Whether the run has ended, as its newest state says; *err has how.
static int look_for_end(struct standby *s, bool *over, struct error *err) {
    uint64_t version;
    char *text = quorum_state(s->doors->quorum, &version);
    struct cluster cluster = {0};
    int status = STATUS_OK;
    if (text && version != s->version) {
        s->version = version;
        status = cluster_read(&cluster, text, strlen(text), err);
        *over = !status && is_end(s, &cluster);
        if (*over && cluster.status)
            status = error_set(err, cluster.status, "%s", cluster.why ? cluster.why : "");
        cluster_free(&cluster);
    }
    free(text);
    return status;
}

static int look_for_stop(const struct standby *s, struct error *err) {
    const struct trainer_hooks *hooks = &s->doors->config->hooks;
    if (hooks->wish(hooks->self) != TRAINER_STOP)
        return STATUS_OK;
    return error_set(err, STATUS_STOPPED,
                     "controller %u was told to stop while it stood by; the run goes on without it",
                     s->doors->config->id + 1);
}

static void copy_metrics(struct standby *s) {
    struct error err = {0};
    if (metrics_copy_look(s->metrics, s->doors->quorum, &err))
        standby_say(s, "warning: no copy of the run's metrics: %s; tried again", err.text);
}

static void look_around(struct standby *s) {
    doors_send_away(s->doors);
    copy_metrics(s);
    name_leader(s);
    say_blankness(s);
    say_waiting(s);
}

// Until it may lead, the run is over, or it is told to stop.
static int stand_by(struct standby *s, bool *over, struct error *err) {
    struct quorum *quorum = s->doors->quorum;
    s->leader = PROTO_NOBODY;
    for (;;) {
        uint32_t seen = gate_look(&s->doors->gate);
        int status = quorum_status(quorum, err);
        if (!status)
            status = look_for_end(s, over, err);
        if (!status && !*over && !quorum_ready(quorum))
            status = look_for_stop(s, err);
        if (status || *over || quorum_ready(quorum))
            return status;
        look_around(s);
        gate_wait(&s->doors->gate, seen, TICK);
    }
}

static int lead(struct standby *s, bool *over, struct error *err) {
    struct error why = {0};
    const struct controller_config *config = s->doors->config;
    s->took_part = true;
    standby_say(s, "controller %u of %u leads", config->id + 1, config->controllers);
    int status = controller_lead(s->doors, over, &why);
    if (status == STATUS_UNAVAILABLE && !*over && !quorum_status(s->doors->quorum, NULL)) {
        standby_say(s, "controller %u leads no more", config->id + 1);
        return STATUS_OK;
    }
    *err = why;
    return status;
}

// Those that stand by hear that the run is over before this controller is gone.
static void tell_end(struct doors *doors) {
    double until = clock_seconds() + farewell;
    for (double left; (left = until - clock_seconds()) > 0;)
        gate_wait(&doors->gate, gate_look(&doors->gate), left);
}

static int take_turns(struct doors *doors, struct metrics_copy *metrics, bool *over,
                      struct error *err) {
    struct standby standby = {.doors = doors, .metrics = metrics};
    int status = STATUS_OK;
    while (!status && !*over) {
        status = stand_by(&standby, over, err);
        if (!status && !*over)
            status = lead(&standby, over, err);
    }
    if (*over)
        tell_end(doors);
    return status;
}

// A mistake in RUN.conf is told before anybody waits for this controller.
static int prepare_standby(const struct controller_config *config, struct error *err) {
    int status = controller_check_file(config->file, err);
    return status ? status : run_folder_create(config->folder, err);
}

int controller_run(const struct controller_config *config, struct error *err) {
    struct doors doors;
    struct metrics_copy *metrics = NULL;
    struct error own = {0};
    bool alone = controller_is_alone(config), over = false;
    int status = doors_init(&doors, config, &own);
    if (!status && !alone)
        status = prepare_standby(config, &own);
    if (!status && !alone)
        status = metrics_copy_open(&metrics, config->folder, config->id, &doors.gate, &own);
    if (!status)
        status = doors_open(&doors, &own);
    if (!status)
        status =
            alone ? controller_lead(&doors, &over, &own) : take_turns(&doors, metrics, &over, &own);
    doors_close(&doors, over);
    doors_free(&doors);
    metrics_copy_close(metrics);
    if (status && err)
        *err = own;
    return status;
}
