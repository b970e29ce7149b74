// What is done when a process of a run ends: it starts again, the run goes on without it, or the
// run ends.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/invariant.h"
#include "launch/supervise_internal.h"

// Seconds. "child restarted with back-off 0.5...30 s, reset after 5 min; 5 crashes in 2 min
// -> stop".
static const double pause_first = 0.5, pause_most = 30, pause_session = 5, sound_after = 300;
static const double crash_window = 120;
static const double grace_order = 10, grace_left = 5;
enum { LAST_LINES = 10, SSH_FAILED = 255, WHY = 128 };

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
    supervise_end(s, status, grace);
    if (grace > 0)
        supervise_tell_stop(s);
}

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
        supervise_say(s, "%s| %s", slot->process->name, line);
    free(text);
}

// Counts a crash; whether there were too many of them lately.
static bool crash_again(struct slot *slot) {
    double now = clock_seconds(), *oldest = &slot->crashed[slot->crashes++ % SUPERVISE_CRASHES];
    bool many = slot->crashes > SUPERVISE_CRASHES && now - *oldest < crash_window;
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
    supervise_say(s, "%s %s; starts again in %g s", slot->process->who, why, pause);
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
        supervise_say(s, "%s %s after %d restarts; the others go on without it", slot->process->who,
                      why, SUPERVISE_CRASHES);
    } else {
        lose_run(s, STATUS_UNAVAILABLE, 0, "the controller %s after %d restarts; see %s%s%s", why,
                 SUPERVISE_CRASHES, slot->log, hint, s->config->folder);
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
    supervise_end(s, status, orderly ? grace_left : 0);
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
        supervise_say(s, "%s %s%s; the run goes on without it", slot->process->who, why, often);
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
        supervise_say(s, "%s was drained, and has left; the run goes on without it",
                      slot->process->who);
        return;
    }
    show_last_words(s, slot);
    if (!may_work(wait_status)) {
        give_slot_up(s, slot, why, 0, status);
    } else if (crash_again(slot) || (policy == LAUNCH_RETRY && slot->retries > LAUNCH_RETRIES)) {
        give_slot_up(s, slot, why, SUPERVISE_CRASHES, STATUS_UNAVAILABLE);
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

static void slot_ended(struct supervisor *s, struct slot *slot, int status) {
    char why[WHY];
    describe_exit(why, status, slot->process->remote);
    if (supervise_leads(s, slot))
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

void supervise_look_for_ends(struct supervisor *s) {
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
            supervise_enter(s, PHASE_TERMINATING,
                            SUPERVISE_GRACE); // nobody will order the others to end
    }
    if (s->phase != PHASE_RUNNING)
        end_connections(s);
    int status;
    if (child_ended(&s->down, &status) && status)
        s->told = false; // nobody led
}
