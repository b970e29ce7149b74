#include "launch/supervise.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"
#include "launch/child.h"
#include "launch/supervise_states.h"
#include "launch/tail.h"

// Seconds. "child restarted with back-off 0.5...30 s, reset after 5 min; 5 crashes in 2 min
// -> stop".
static const double pause_first = 0.5, pause_most = 30, pause_session = 5, sound_after = 300;
static const double crash_window = 120, waiting_after = 10;
static const double grace_order = 10, grace_left = 5, grace_term = 5;
static const double connecting = 10, look_again = 0.05;
enum { CRASHES = LAUNCH_RETRIES, LAST_LINES = 10, SSH_FAILED = 255, WHY = 128 };

// A process of the plan.
struct slot {
    const struct process *process;
    char *log; // its file
    struct child child;
    enum slot_state state;
    int starts, retries, crashes;
    double started, next; // next: when it starts, while it waits
    double crashed[CRASHES];
    bool ended; // of a controller: it ended by itself, and was not started since
    int status; // with which
};

struct supervisor {
    const struct supervise_config *config;
    struct slot *slots; // the controllers are the first
    size_t count, controllers;
    int signals;   // signalfd
    bool stopping; // the user wants it to end...
    bool told;     // ...and the controller knows
    bool waited;   // the user was told that the controller is slow
    int by_signal; // that ended all at once
    enum phase phase;
    double deadline; // of the phase
    int status;      // of the run, once it is ending
    struct tail controller_logs[LAUNCH_CONTROLLERS];
    struct child down; // what tells the run to end, where several controllers are
    struct error *err;
};

static void say_line(struct supervisor *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say_line(struct supervisor *s, const char *format, ...) {
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

static void slot_enter(struct slot *slot, enum slot_state state) {
    INVARIANT(slot_state_may_follow(slot->state, state));
    slot->state = state;
}

// It starts in so many seconds.
static void slot_wait(struct slot *slot, double seconds) {
    slot_enter(slot, SLOT_WAITING);
    slot->next = clock_seconds() + seconds;
}

static bool slot_is_over(const struct slot *slot) {
    return slot->state == SLOT_LEFT || slot->state == SLOT_OVER;
}

// Nothing starts any more.
static void enter_phase(struct supervisor *s, enum phase phase, double seconds) {
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
static void tell_stop(struct supervisor *s) {
    const struct words *down = &s->config->plan->down;
    s->told = true;
    if (s->controllers == 1)
        child_signal(&s->slots[0].child, SIGTERM);
    else if (!s->down.pid && child_start(&s->down, down, false, s->slots[0].log, NULL))
        s->told = false;
}

// The run has a status: the processes that are left have `grace` seconds to end by themselves.
static void end_run(struct supervisor *s, int status, double grace) {
    s->status = status;
    if (s->phase == PHASE_RUNNING)
        enter_phase(s, PHASE_ENDING, grace);
}

// Something is lost without which the run cannot go on. The controller that leads has `grace`
// seconds to save what there is; with 0 there is nothing, and all end at once.
static void lose_run(struct supervisor *s, int status, double grace, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void lose_run(struct supervisor *s, int status, double grace, const char *format, ...) {
    char text[512];
    va_list args;
    if (s->phase != PHASE_RUNNING)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error_set(s->err, status, "%s", text);
    end_run(s, status, grace);
    if (grace > 0)
        tell_stop(s);
}

static void pass_deadline(struct supervisor *s) {
    if (s->phase == PHASE_ENDING)
        enter_phase(s, PHASE_TERMINATING, grace_term);
    else if (s->phase == PHASE_TERMINATING)
        enter_phase(s, PHASE_KILLING, grace_term);
}

// --- what processes do when they end ----------------------------------------------------

// A shell on another machine tells a signal by a status: 128 and its number.
static int status_there(int wait_status) {
    int number = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) - 128 : 0;
    return number > 0 && number <= SIGRTMAX ? W_EXITCODE(0, number) : wait_status;
}

static void describe_exit(char text[WHY], int wait_status, bool remote) {
    if (remote && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == SSH_FAILED)
        snprintf(text, WHY, "ended with status %d (no connection)", SSH_FAILED);
    else if (WIFSIGNALED(wait_status))
        snprintf(text, WHY, "was killed by signal %d (%s)", WTERMSIG(wait_status),
                 strsignal(WTERMSIG(wait_status)));
    else
        snprintf(text, WHY, "ended with status %d", WEXITSTATUS(wait_status));
}

static void show_last_words(struct supervisor *s, const struct slot *slot) {
    char *text = child_last_words(&slot->child, slot->log, LAST_LINES), *rest = NULL;
    // A terminal on another machine ends lines with both.
    for (char *line = text ? strtok_r(text, "\r\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\r\n", &rest))
        say_line(s, "%s| %s", slot->process->name, line);
    free(text);
}

// Counts a crash; whether there were too many of them lately.
static bool crash_again(struct slot *slot) {
    double now = clock_seconds(), *oldest = &slot->crashed[slot->crashes++ % CRASHES];
    bool many = slot->crashes > CRASHES && now - *oldest < crash_window;
    if (now - slot->started > sound_after)
        slot->retries = 0;
    slot->retries++;
    *oldest = now;
    return many;
}

static double pause_of(const struct slot *slot, double least) {
    double pause = ldexp(pause_first, slot->retries > 7 ? 7 : slot->retries - 1);
    return fmin(fmax(pause, least), pause_most);
}

static void start_again(struct supervisor *s, struct slot *slot, const char *why, double least) {
    double pause = pause_of(slot, least);
    slot_wait(slot, pause);
    say_line(s, "%s %s; starts again in %g s", slot->process->who, why, pause);
}

static const char hint[] = "; when the cause is removed, --resume goes on with ";

// A controller that is started again may have to begin anew. Processes that left then start again;
// in a run that only has to end they leave at once.
static void ask_members_back(struct supervisor *s) {
    for (size_t i = 1; i < s->count; i++) {
        struct slot *slot = &s->slots[i];
        if (slot->state == SLOT_LEFT && !s->stopping)
            slot_wait(slot, pause_session);
    }
}

// Of the controllers, those that ended by themselves and were not started since.
static size_t ended_controllers(const struct supervisor *s) {
    size_t ended = 0;
    for (size_t i = 0; i < s->controllers; i++)
        ended += s->slots[i].ended || slot_is_over(&s->slots[i]);
    return ended;
}

static bool is_majority(const struct supervisor *s, size_t controllers) {
    return controllers > s->controllers / 2;
}

static void controller_killed(struct supervisor *s, struct slot *slot, const char *why) {
    s->told = false; // who leads next may know nothing of it
    if (!crash_again(slot)) {
        start_again(s, slot, why, 0);
    } else if (s->controllers > 1 && !is_majority(s, ended_controllers(s) + 1)) {
        slot_enter(slot, SLOT_OVER);
        say_line(s, "%s %s after %d restarts; the others go on without it", slot->process->who, why,
                 CRASHES);
    } else {
        lose_run(s, STATUS_UNAVAILABLE, 0, "the controller %s after %d restarts; see %s%s%s", why,
                 CRASHES, slot->log, hint, s->config->folder);
    }
    if (s->controllers == 1)
        ask_members_back(s);
}

// When a majority of the controllers has ended by itself the run has, with the status of the last.
// Before that one may have been told to stop, or have lost its disk: it is started again.
static void controller_ended(struct supervisor *s, struct slot *slot, int wait_status,
                             const char *why) {
    tail_more(&s->controller_logs[slot - s->slots]);
    if (WIFSIGNALED(wait_status)) {
        controller_killed(s, slot, why);
        return;
    }
    int status = WEXITSTATUS(wait_status);
    slot->ended = true;
    if (!is_majority(s, ended_controllers(s))) {
        slot_wait(slot, pause_session);
        return;
    }
    bool orderly = status == STATUS_OK || status == STATUS_SKIPPED || status == STATUS_DIVERGED ||
                   status == STATUS_STOPPED;
    if (status != STATUS_OK && status != STATUS_STOPPED) // of which it has told
        error_set(s->err, status, "the controller %s; see %s", why, slot->log);
    // Who is still there has heard the order, or never found a controller.
    end_run(s, status, orderly ? grace_left : 0);
}

// A worker or a server goes for good, after so many restarts.
static void give_slot_up(struct supervisor *s, struct slot *slot, const char *why, int restarts,
                         int status) {
    enum proto_role role = slot->process->role;
    char often[32] = "";
    size_t left = 0;
    if (restarts)
        snprintf(often, sizeof often, " after %d restarts", restarts);
    slot_enter(slot, SLOT_OVER);
    for (size_t i = 0; i < s->count; i++)
        left += s->slots[i].process->role == role && !slot_is_over(&s->slots[i]);
    if (role == PROTO_ROLE_WORKER && left > 0)
        say_line(s, "%s %s%s; the run goes on without it", slot->process->who, why, often);
    else
        lose_run(s, status, grace_order, "%s %s%s; see %s%s%s", slot->process->who, why, often,
                 slot->log, restarts ? hint : "", restarts ? s->config->folder : "");
}

// What only needs to be started again: it was killed, or it lost its peers or its session.
static bool may_work(int wait_status) {
    if (WIFSIGNALED(wait_status))
        return true;
    switch (WEXITSTATUS(wait_status)) {
    case STATUS_UNAVAILABLE:
    case STATUS_BUG:
    case STATUS_IO:
    case STATUS_STOPPED:
    case SSH_FAILED: // the connection
        return true;
    default:
        return false;
    }
}

static void member_ended(struct supervisor *s, struct slot *slot, int wait_status,
                         const char *why) {
    bool exited = WIFEXITED(wait_status);
    int status = exited ? WEXITSTATUS(wait_status) : STATUS_UNAVAILABLE;
    enum launch_policy policy = launch_policy(slot->process->role);
    if ((exited && status == STATUS_OK) || s->stopping) {
        slot_enter(slot, SLOT_LEFT);
        return;
    }
    if (exited && status == STATUS_SKIPPED) { // as long as the run goes on
        slot_enter(slot, SLOT_OVER);
        say_line(s, "%s was drained, and has left; the run goes on without it", slot->process->who);
        return;
    }
    show_last_words(s, slot);
    if (!may_work(wait_status)) {
        give_slot_up(s, slot, why, 0, status);
    } else if (crash_again(slot) || (policy == LAUNCH_RETRY && slot->retries > LAUNCH_RETRIES)) {
        give_slot_up(s, slot, why, CRASHES, STATUS_UNAVAILABLE);
    } else {
        start_again(s, slot, why, exited && status == STATUS_STOPPED ? pause_session : 0);
    }
}

// Processes that use it end with it. Those that start before it is back connect by themselves.
static void connection_ended(struct supervisor *s, struct slot *slot) {
    if (s->stopping || crash_again(slot))
        slot_enter(slot, SLOT_OVER);
    else
        slot_wait(slot, pause_of(slot, 0));
}

static bool leads(const struct supervisor *s, const struct slot *slot) {
    return (size_t)(slot - s->slots) < s->controllers;
}

static void slot_ended(struct supervisor *s, struct slot *slot, int status) {
    char why[WHY];
    describe_exit(why, status, slot->process->remote);
    if (leads(s, slot))
        controller_ended(s, slot, status, why);
    else if (slot->process->socket)
        connection_ended(s, slot);
    else
        member_ended(s, slot, status, why);
    INVARIANT(slot->state == SLOT_WAITING || slot_is_over(slot));
}

// Connections are the last to go.
static void end_connections(struct supervisor *s) {
    for (size_t i = 0; i < s->count; i++)
        if (s->slots[i].child.pid && !s->slots[i].process->socket)
            return;
    for (size_t i = 0; i < s->count; i++)
        child_signal(&s->slots[i].child, SIGTERM);
}

static void look_for_ends(struct supervisor *s) {
    for (size_t i = 0; i < s->count; i++) {
        struct slot *slot = &s->slots[i];
        int status;
        if (!child_ended(&slot->child, &status))
            continue;
        if (slot->process->remote)
            status = status_there(status);
        if (s->phase == PHASE_RUNNING) {
            slot_ended(s, slot, status);
            continue;
        }
        slot_enter(slot, SLOT_OVER);
        if (i == 0 && s->controllers == 1 && s->phase == PHASE_ENDING)
            enter_phase(s, PHASE_TERMINATING, grace_term); // nobody will order the others to end
    }
    if (s->phase != PHASE_RUNNING)
        end_connections(s);
    int status;
    if (child_ended(&s->down, &status) && status)
        s->told = false; // nobody led
}

// --- starting ---------------------------------------------------------------------------

static void start_slot(struct supervisor *s, struct slot *slot) {
    bool first = slot == s->slots, tells = first && !slot->process->remote;
    slot->starts++;
    slot->ended = false;
    slot->started = clock_seconds();
    if (child_start(&slot->child, &slot->process->command, tells, slot->log, s->err)) {
        slot_enter(slot, SLOT_OVER);
        end_run(s, s->err->status, 0);
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
        bool leader = leads(s, slot);
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
        tell_stop(s);
}

static void take_stop(struct supervisor *s, int number) {
    if (s->stopping) {
        s->by_signal = number;
        error_set(s->err, STATUS_UNAVAILABLE, "ended at once; nothing was saved");
        end_run(s, STATUS_UNAVAILABLE, 0);
        if (s->phase != PHASE_KILLING)
            enter_phase(s, PHASE_KILLING, grace_term);
        return;
    }
    s->stopping = true;
    say_line(s,
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
        say_line(s, "waiting for the controller: not ready after %.0f s; see %s", waited,
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
        look_for_ends(s);
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
