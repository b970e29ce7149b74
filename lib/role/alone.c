#include "role/alone.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "member/place.h"
#include "role/request_queue.h"
#include "run/live.h"

enum { WINDOW = 16 }; // requests of one caller in flight

static const double farewell = 2; // seconds for the last answers to leave

struct alone {
    const struct trainer_config *config;
    struct trainer_hooks user; // the hooks as the caller gave them
    struct trainer_director director;
    const char *name;
    char address[PROTO_ADDRESS_MAX];
    struct listener *listener; // NULL: nobody can find this run
    struct ready port;
    char *port_file;
    struct gate gate; // opened when a request came, or an answer has left
    struct request_queue queue;
    struct queued_request *changes, *saves, *stops; // in hand
    char *lines;                                    // of the change in hand
    _Atomic size_t leaving;                         // answers that have not left yet
    pthread_mutex_t lock;
    struct proto_member figures; // locked
};

static void say(const struct alone *alone, const char *text) {
    alone->user.say(alone->user.self, text);
}

// --- what is looked at: threads of the network --------------------------------------------------

// Whoever looks for a controller learns from the answer that this is none.
static enum proto_refusal welcome_caller(void *context, struct link *link,
                                         const struct proto_hello *hello,
                                         struct proto_welcome *answer, uint64_t *detail) {
    const struct alone *alone = context;
    (void)detail;
    link_set_user(link, (void *)(uintptr_t)hello->role);
    *answer = (struct proto_welcome){
        .role = PROTO_ROLE_WORKER,
        .session = hello->session,
        .window = WINDOW,
        .name = proto_text(alone->name),
    };
    return PROTO_REFUSAL_NONE;
}

static void answer_status(struct alone *alone, struct link *link, uint64_t request) {
    pthread_mutex_lock(&alone->lock);
    struct proto_member member = alone->figures;
    pthread_mutex_unlock(&alone->lock);
    member.name = proto_text(alone->name);
    member.address = proto_text(alone->address);
    const struct proto_status status = {.members = proto_list(&member, 1)};
    link_answer(link, request, PROTO_TYPE_STATUS, &status, NULL, NULL);
}

static void hear_request(void *context, struct link *link, uint64_t request, uint16_t type,
                         const union proto_message *message, struct buffer *payload) {
    struct alone *alone = context;
    (void)payload;
    if ((enum proto_role)(uintptr_t)link_user(link) != PROTO_ROLE_ADMINISTRATOR)
        link_refuse(link, request, PROTO_REFUSAL_WRONG_ROLE, 0, "only an administrator may");
    else if (type == PROTO_TYPE_GET_STATUS)
        answer_status(alone, link, request);
    else if (type == PROTO_TYPE_SET || type == PROTO_TYPE_SAVE || type == PROTO_TYPE_STOP)
        request_queue_add(&alone->queue, link, request, type, message, NULL);
    else
        link_refuse(link, request, PROTO_REFUSAL_WRONG_ROLE, 0,
                    "this process trains alone: it has no servers and no other members");
}

// --- what is asked: the thread that trains ------------------------------------------------------

static void append(struct queued_request **list, struct queued_request *queued) {
    while (*list)
        list = &(*list)->next;
    queued->next = NULL;
    *list = queued;
}

static struct queued_request *take_first(struct queued_request **list) {
    struct queued_request *first = *list;
    if (first)
        *list = first->next;
    return first;
}

static void take_requests(struct alone *alone) {
    for (struct queued_request *queued; (queued = request_queue_take(&alone->queue));)
        append(queued->type == PROTO_TYPE_SET    ? &alone->changes
               : queued->type == PROTO_TYPE_SAVE ? &alone->saves
                                                 : &alone->stops,
               queued);
}

// Whether somebody wants it to end at once.
static bool is_to_quit(const struct alone *alone) {
    for (const struct queued_request *stop = alone->stops; stop; stop = stop->next)
        if (!stop->message->message.stop.save)
            return true;
    return false;
}

static enum trainer_wish wish(void *self) {
    struct alone *alone = self;
    enum trainer_wish own = alone->user.wish(alone->user.self);
    take_requests(alone);
    if (is_to_quit(alone))
        return TRAINER_QUIT;
    if (own == TRAINER_STOP || alone->stops)
        return TRAINER_STOP;
    if (own == TRAINER_SAVE || alone->saves)
        return TRAINER_SAVE;
    return alone->changes ? TRAINER_PAUSE : TRAINER_GO_ON;
}

static void show(void *self, const struct trainer_progress *now) {
    struct alone *alone = self;
    bool saves = now->doing && !strcmp(now->doing, "saving");
    pthread_mutex_lock(&alone->lock);
    struct proto_member *figures = &alone->figures;
    figures->state = saves ? PROTO_STATE_SAVING : PROTO_STATE_WORKING;
    figures->clock = now->clock;
    figures->samples = now->samples;
    figures->epoch = now->epoch;
    figures->rate = now->doing ? 0 : now->samples_per_s;
    figures->loss = now->samples_per_s > 0 ? now->loss : NAN;
    figures->waiting = now->waiting;
    pthread_mutex_unlock(&alone->lock);
    alone->user.progress(alone->user.self, now);
}

static void tell_user(void *self, const char *text) {
    say(self, text);
}

// The lines are the caller's, cut into pieces by the settings that lie in them.
static int change_settings(struct settings *settings, char *lines, struct error *err) {
    struct settings next = *settings;
    int status = live_check_keys(lines, true, err);
    if (!status)
        status = settings_parse(&next, lines, err);
    settings_round(&next);
    if (!status)
        status = settings_check(&next, err);
    if (!status)
        status = live_check_rule(settings, &next, err);
    if (!status)
        *settings = next;
    return status;
}

static void say_change(const struct alone *alone, const struct proto_text *given) {
    char text[ERROR_TEXT];
    snprintf(text, sizeof text, "set %.*s", (int)given->length, given->at);
    live_one_line(text);
    say(alone, text);
}

static void changed(void *self, const struct error *refused) {
    struct alone *alone = self;
    struct queued_request *queued = take_first(&alone->changes);
    if (refused->status) {
        link_refuse(queued->link, queued->request, PROTO_REFUSAL_BAD_SETTING, 0, refused->text);
    } else {
        say_change(alone, &queued->message->message.set.settings);
        link_answer(queued->link, queued->request, PROTO_TYPE_DONE, NULL, NULL, NULL);
    }
    queued_request_free(queued);
}

static char *copy_text(const struct proto_text *text) {
    char *copy = mem_array((size_t)text->length + 1, 1);
    if (copy && text->length)
        memcpy(copy, text->at, text->length);
    if (copy)
        copy[text->length] = 0;
    return copy;
}

// The first change that is none to refuse.
static bool change(void *self, struct settings *settings) {
    struct alone *alone = self;
    take_requests(alone);
    while (alone->changes) {
        const struct proto_text *given = &alone->changes->message->message.set.settings;
        struct error refused = {0};
        free(alone->lines);
        alone->lines = copy_text(given);
        int status = alone->lines ? change_settings(settings, alone->lines, &refused)
                                  : error_nomem(&refused);
        if (!status)
            return true;
        changed(alone, &refused);
    }
    return false;
}

static void saved(void *self, const char *path, uint64_t clock) {
    struct alone *alone = self;
    const struct proto_saved answer = {
        .number = clock, .bytes = checkpoint_bytes(path), .path = proto_text(path)};
    for (struct queued_request *queued; (queued = take_first(&alone->saves));) {
        link_answer(queued->link, queued->request, PROTO_TYPE_SAVED, &answer, NULL, NULL);
        queued_request_free(queued);
    }
}

// --- the end: all that is left is answered ------------------------------------------------------

static void refuse_all(struct queued_request **list, enum proto_refusal code, const char *why) {
    for (struct queued_request *queued; (queued = take_first(list));) {
        link_refuse(queued->link, queued->request, code, 0, why);
        queued_request_free(queued);
    }
}

static void has_left(void *context) {
    struct alone *alone = context;
    atomic_fetch_sub(&alone->leaving, 1);
    gate_open(&alone->gate);
}

// The run is at its end, as they wished: saved, or done.
static void answer_stops(struct alone *alone) {
    const struct link_payload last = {.sent = has_left, .context = alone};
    for (struct queued_request *queued; (queued = take_first(&alone->stops));) {
        atomic_fetch_add(&alone->leaving, 1);
        link_answer(queued->link, queued->request, PROTO_TYPE_DONE, NULL, &last, NULL);
        queued_request_free(queued);
    }
}

static void say_farewell(struct alone *alone, int status, const struct error *err) {
    const char *why = status && status != STATUS_STOPPED ? err->text : "the run ends";
    take_requests(alone);
    refuse_all(&alone->changes, PROTO_REFUSAL_STOPPING, why);
    refuse_all(&alone->saves, PROTO_REFUSAL_STORAGE, why);
    if (status && status != STATUS_STOPPED)
        refuse_all(&alone->stops, PROTO_REFUSAL_STOPPING, why);
    answer_stops(alone);
    double end = clock_seconds() + farewell;
    for (uint32_t seen = gate_look(&alone->gate);
         atomic_load(&alone->leaving) && clock_seconds() < end; seen = gate_look(&alone->gate))
        gate_wait(&alone->gate, seen, end - clock_seconds());
}

// --- life ---------------------------------------------------------------------------------------

static int open_listener(struct alone *alone, struct error *err) {
    const struct link_options options = {
        .handlers = {.context = alone, .hello = welcome_caller, .request = hear_request}};
    int status = place_address(alone->address, "worker", NULL, NULL, err);
    return status ? status : listener_open(&alone->listener, alone->address, &options, NULL, err);
}

static int tell_port(struct alone *alone, struct error *err) {
    const char *address = alone->address;
    return ready_tell(&alone->port, &address, 1, err);
}

// One that was killed may have left its own file.
static void begun(void *self) {
    struct alone *alone = self;
    struct error err = {0};
    char text[ERROR_TEXT + 64];
    if (asprintf(&alone->port_file, "%s/controller.port", alone->config->folder) < 0) {
        alone->port_file = NULL;
        return;
    }
    alone->port = (struct ready){.port_file = alone->port_file, .fd = -1};
    unlink(alone->port_file);
    if (open_listener(alone, &err) || tell_port(alone, &err)) {
        snprintf(text, sizeof text, "warning: adam-ctl cannot direct this run: %s", err.text);
        say(alone, text);
    }
}

static void open_alone(struct alone *alone, struct trainer_config *config, const char *name) {
    *alone = (struct alone){
        .config = config,
        .user = config->hooks,
        .director = {alone, begun, change, changed, saved},
        .name = name,
        .figures =
            {.member = 1, .role = PROTO_ROLE_WORKER, .loss = NAN, .at_risk = NAN, .overlap = 1},
    };
    request_queue_open(&alone->queue, &alone->gate);
    pthread_mutex_init(&alone->lock, NULL);
    config->hooks = (struct trainer_hooks){alone, wish, show, tell_user};
    config->director = &alone->director;
}

static void close_alone(struct alone *alone) {
    listener_close(alone->listener);
    request_queue_close(&alone->queue);
    pthread_mutex_destroy(&alone->lock);
    free(alone->port_file);
    free(alone->lines);
}

int alone_run(struct trainer_config *config, const char *name, struct error *err) {
    struct alone alone;
    struct error own = {0};
    open_alone(&alone, config, name);
    int status = trainer_run(config, &own);
    if (alone.port_file)
        ready_forget(&alone.port);
    say_farewell(&alone, status, &own);
    close_alone(&alone);
    if (status && err)
        *err = own;
    return status;
}
