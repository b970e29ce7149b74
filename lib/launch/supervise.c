#include "launch/supervise.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"
#include "launch/supervise_internal.h"

// Seconds.
static const double waiting_after = 10, connecting = 10, look_again = 0.05;

void supervise_say(struct supervisor *s, const char *format, ...) {
    struct grow text = {0};
    va_list args;
    va_start(args, format);
    grow_vformat(&text, format, args);
    va_end(args);
    char *line = grow_take(&text);
    if (line && s->config->hooks.say)
        s->config->hooks.say(s->config->hooks.self, line);
    free(line);
}

// --- states -----------------------------------------------------------------------------

void slot_enter(struct slot *slot, enum slot_state state) {
    INVARIANT(slot_state_may_follow(slot->state, state));
    slot->state = state;
}

// It starts in so many seconds.
void slot_wait(struct slot *slot, double seconds) {
    slot_enter(slot, SLOT_WAITING);
    slot->next = clock_seconds() + seconds;
}

bool slot_is_over(const struct slot *slot) {
    return slot->state == SLOT_LEFT || slot->state == SLOT_OVER;
}

bool supervise_leads(const struct supervisor *s, const struct slot *slot) {
    return (size_t)(slot - s->slots) < s->controllers;
}

// Nothing starts any more.
void supervise_enter(struct supervisor *s, enum phase phase, double seconds) {
    INVARIANT(phase_may_follow(s->phase, phase));
    s->phase = phase;
    s->deadline = clock_seconds() + seconds;
    for (size_t i = 0; i < s->count; i++)
        if (!s->slots[i].child.pid && s->slots[i].state != SLOT_OVER)
            slot_enter(&s->slots[i], SLOT_OVER);
    if (phase != PHASE_ENDING)
        for (size_t i = 0; i < s->count; i++)
            child_signal(&s->slots[i].child, phase == PHASE_KILLING ? SIGKILL : SIGTERM);
    if (phase == PHASE_KILLING)
        child_signal(&s->down, SIGKILL);
}

// --- ending -----------------------------------------------------------------------------

// The controller that leads saves the run and ends it. Of several nobody here knows which it is,
// but a command that finds it does.
void supervise_tell_stop(struct supervisor *s) {
    const struct words *down = &s->config->plan->down;
    s->told = true;
    if (s->controllers == 1)
        child_signal(&s->slots[0].child, SIGTERM);
    else if (!s->down.pid && child_start(&s->down, down, false, s->slots[0].log, NULL))
        s->told = false;
}

// The run has a status: the processes that are left have `grace` seconds to end by themselves.
void supervise_end(struct supervisor *s, int status, double grace) {
    s->status = status;
    if (s->phase == PHASE_RUNNING)
        supervise_enter(s, PHASE_ENDING, grace);
}

static void pass_deadline(struct supervisor *s) {
    if (s->phase == PHASE_ENDING)
        supervise_enter(s, PHASE_TERMINATING, SUPERVISE_GRACE);
    else if (s->phase == PHASE_TERMINATING)
        supervise_enter(s, PHASE_KILLING, SUPERVISE_GRACE);
}

// --- starting ---------------------------------------------------------------------------

static void start_slot(struct supervisor *s, struct slot *slot) {
    bool first = slot == s->slots, tells = first && !slot->process->remote;
    slot->starts++;
    slot->ended = false;
    slot->started = clock_seconds();
    if (child_start(&slot->child, &slot->process->command, tells, slot->log, s->err)) {
        slot_enter(slot, SLOT_OVER);
        supervise_end(s, s->err->status, 0);
    } else {
        slot_enter(slot, SLOT_STARTED);
        if (first && !tells) // members look for it
            slot_enter(slot, SLOT_READY);
    }
}

// Whether its connection is being made: those that start meanwhile would make their own.
static bool awaits_connection(const struct supervisor *s, const struct slot *slot) {
    const struct slot *connection = &s->slots[slot->process->through];
    return slot->process->through && connection->child.pid &&
           clock_seconds() < connection->started + connecting &&
           access(connection->process->socket, F_OK);
}

static void start_due(struct supervisor *s) {
    double now = clock_seconds();
    for (size_t i = 0; i < s->count && s->phase == PHASE_RUNNING; i++) {
        struct slot *slot = &s->slots[i];
        // The first time, a controller that cannot start is the only thing to report.
        bool leader = supervise_leads(s, slot);
        bool waits = !leader && s->slots[0].starts == 1 && s->slots[0].state != SLOT_READY;
        if (slot->state == SLOT_WAITING && slot->next <= now && !waits &&
            !(!leader && s->stopping) && !awaits_connection(s, slot))
            start_slot(s, slot);
    }
}

// --- signals and time -------------------------------------------------------------------

static void tell_controller(struct supervisor *s) {
    bool ready = s->controllers > 1 || s->slots[0].state == SLOT_READY;
    if (s->stopping && !s->told && ready && s->phase == PHASE_RUNNING)
        supervise_tell_stop(s);
}

static void take_stop(struct supervisor *s, int number) {
    if (s->stopping) {
        s->by_signal = number;
        error_set(s->err, STATUS_UNAVAILABLE, "ended at once; nothing was saved");
        supervise_end(s, STATUS_UNAVAILABLE, 0);
        if (s->phase != PHASE_KILLING)
            supervise_enter(s, PHASE_KILLING, SUPERVISE_GRACE);
        return;
    }
    s->stopping = true;
    supervise_say(
        s,
        "once more ends the run at once, without saving it"); // the rest the controller tells
    tell_controller(s);
}

static void take_signals(struct supervisor *s) {
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD)
            take_stop(s, (int)info.ssi_signo);
}

static void look_if_ready(struct supervisor *s) {
    struct slot *lead = &s->slots[0];
    struct pollfd poll_of = {.fd = lead->child.ready, .events = POLLIN};
    double waited = clock_seconds() - lead->started;
    if (lead->child.ready >= 0 && poll(&poll_of, 1, 0) > 0) {
        if (child_is_ready(&lead->child))
            slot_enter(lead, SLOT_READY);
        tell_controller(s);
    } else if (lead->child.ready >= 0 && waited > waiting_after && !s->waited) {
        s->waited = true;
        supervise_say(s, "waiting for the controller: not ready after %.0f s; see %s", waited,
                      lead->log);
    }
}

// Milliseconds until something is due, at most one second: the log is followed.
static int time_left(const struct supervisor *s) {
    double now = clock_seconds(), next = now + 1;
    if (s->phase == PHASE_ENDING || s->phase == PHASE_TERMINATING)
        next = fmin(next, s->deadline);
    for (size_t i = 0; i < s->count; i++) {
        const struct slot *slot = &s->slots[i];
        if (slot->state != SLOT_WAITING)
            continue;
        if (slot->next > now)
            next = fmin(next, slot->next);
        else if (awaits_connection(s, slot))
            next = fmin(next, now + look_again);
    }
    return next > now ? (int)ceil((next - now) * 1000) : 0;
}

static bool any_left(const struct supervisor *s) {
    size_t left = 0;
    for (size_t i = 0; i < s->count; i++)
        left += s->slots[i].child.pid != 0;
    return left > 0 || s->down.pid || s->phase == PHASE_RUNNING;
}

static void watch_processes(struct supervisor *s) {
    while (any_left(s)) {
        start_due(s);
        struct pollfd polls[] = {{.fd = s->signals, .events = POLLIN},
                                 {.fd = s->slots[0].child.ready, .events = POLLIN}};
        poll(polls, 2, time_left(s));
        look_if_ready(s);
        supervise_look_for_ends(s);
        take_signals(s);
        tell_controller(s);
        for (size_t i = 0; i < s->controllers; i++)
            tail_more(&s->controller_logs[i]);
        if (s->phase != PHASE_RUNNING && clock_seconds() >= s->deadline)
            pass_deadline(s);
    }
}

// --- life -------------------------------------------------------------------------------

// What is to be caught: what the starter of this process ignores stays so.
static void wanted_signals(sigset_t *set) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction old;
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaddset(set, numbers[i]);
}

static int open_slots(struct supervisor *s, struct error *err) {
    const struct plan *plan = s->config->plan;
    s->slots = mem_zeroed(plan->count, sizeof *s->slots);
    if (!s->slots)
        return error_nomem(err);
    s->count = plan->count;
    s->controllers = plan->controllers;
    for (size_t i = 0; i < s->count; i++) {
        struct grow log = {0};
        grow_format(&log, "%s/" LAUNCH_LOGS "/%s.log", s->config->folder, plan->processes[i].name);
        s->slots[i].process = &plan->processes[i];
        s->slots[i].child.ready = -1;
        if (!(s->slots[i].log = grow_take(&log)))
            return error_nomem(err);
    }
    return STATUS_OK;
}

// What a killed controller or connection leaves: others would look for it there.
static void remove_places(const struct supervisor *s) {
    struct grow text = {0};
    grow_format(&text, "%s/" LAUNCH_PORT_FILE, s->config->folder);
    char *port_file = grow_take(&text);
    if (port_file)
        unlink(port_file);
    free(port_file);
    for (size_t i = 0; i < s->count; i++)
        if (s->slots[i].process->socket)
            unlink(s->slots[i].process->socket);
}

static void close_slots(struct supervisor *s) {
    for (size_t i = 0; i < s->count; i++)
        free(s->slots[i].log);
    free(s->slots);
}

int supervise_run(const struct supervise_config *config, int *by_signal, struct error *err) {
    struct error own = {0};
    struct supervisor s = {
        .config = config, .signals = -1, .down = {.ready = -1}, .err = err ? err : &own};
    sigset_t wanted;
    wanted_signals(&wanted);
    *by_signal = 0;
    int status = open_slots(&s, s.err);
    if (status == STATUS_OK &&
        (sigprocmask(SIG_BLOCK, &wanted, NULL) ||
         (s.signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK)) < 0))
        status = error_errno(s.err, STATUS_UNAVAILABLE, "cannot wait for signals");
    if (status == STATUS_OK) {
        for (size_t i = 0; i < s.controllers; i++)
            tail_open(&s.controller_logs[i], s.slots[i].log, config->hooks.told,
                      config->hooks.self);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        watch_processes(&s);
        prctl(PR_SET_CHILD_SUBREAPER, 0);
        for (size_t i = 0; i < s.controllers; i++)
            tail_close(&s.controller_logs[i]);
        remove_places(&s);
        status = s.status;
        *by_signal = s.by_signal;
    }
    if (s.signals >= 0)
        close(s.signals);
    close_slots(&s);
    return status;
}
