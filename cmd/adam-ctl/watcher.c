#include "adam-ctl/watcher.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "adam-ctl/subcommand.h"
#include "cli/talk.h"
#include "cluster/figures.h"
#include "core/clock.h"
#include "core/error.h"
#include "member/place.h"
#include "net/secrets.h"
#include "proto/proto.h"

static const double every = 1; // seconds

static void draw(struct watcher *watcher, const struct proto_status *status) {
    char text[FIGURES_LINE];
    figures_line(text, status, watcher->epochs);
    if (!*text)
        return; // the talk says what is done before and after
    pthread_mutex_lock(&watcher->lock);
    progress_line(&watcher->progress, "%s", text);
    pthread_mutex_unlock(&watcher->lock);
}

// A controller that does not answer is away, or not there yet: the line stays as it is.
static void *ask(void *self) {
    const struct proto_get_status get = {.known = 0};
    struct watcher *watcher = self;
    double next = clock_seconds() + every;
    while (!watcher->over) {
        uint32_t seen = gate_look(&watcher->gate);
        double now = clock_seconds();
        struct kept *answer;
        if (now < next) {
            if (!watcher->over)
                gate_wait(&watcher->gate, seen, next - now);
            continue;
        }
        if (!admin_ask(&watcher->admin, PROTO_TYPE_GET_STATUS, &get, PROTO_TYPE_STATUS, &answer,
                       NULL)) {
            draw(watcher, &answer->message.status);
            kept_drop(answer);
        }
        next = now + every;
    }
    return NULL;
}

static bool start(struct watcher *watcher) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool started = !pthread_create(&watcher->thread, NULL, ask, watcher);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return started;
}

int watcher_open(struct watcher *watcher, const char *folder, const char *keys, bool insecure,
                 double epochs, bool quiet, struct error *err) {
    *watcher = (struct watcher){.lock = PTHREAD_MUTEX_INITIALIZER, .epochs = epochs};
    progress_start(&watcher->progress, quiet);
    if (quiet || !watcher->progress.terminal)
        return STATUS_OK;
    int status = place_keys(&watcher->keys, keys, err);
    if (status)
        return status;
    watcher->admin = (struct admin){folder, watcher->keys, insecure};
    watcher->asks = start(watcher); // without it there is talk alone
    return STATUS_OK;
}

void watcher_say(void *self, const char *text) {
    struct watcher *watcher = self;
    pthread_mutex_lock(&watcher->lock);
    progress_clear(&watcher->progress);
    talk_note(PROGRAM, "%s", text);
    pthread_mutex_unlock(&watcher->lock);
}

static bool is_progress(const char *line) {
    return !strncmp(line, "epoch ", strlen("epoch "));
}

void watcher_told(void *self, const char *lines) {
    struct watcher *watcher = self;
    if (watcher->progress.quiet)
        return;
    pthread_mutex_lock(&watcher->lock);
    progress_clear(&watcher->progress);
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        if (!watcher->asks || !is_progress(lines))
            talk_line(lines, length);
        lines += length + (lines[length] == '\n');
    }
    pthread_mutex_unlock(&watcher->lock);
}

void watcher_close(struct watcher *watcher) {
    watcher->over = true;
    gate_open(&watcher->gate);
    if (watcher->asks)
        pthread_join(watcher->thread, NULL);
    progress_clear(&watcher->progress);
    secrets_close(watcher->keys);
}
