#include "role/paramserver/parameter_paths.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/printable.h"
#include "net/link.h"

enum { OFFENCES = 64 }; // told apart; all others share the last

// What is served: set once.
struct served {
    struct ps *ps;
    struct proto_id run;
    uint64_t model;
};

struct path {
    struct paths *paths;
    enum path_kind kind;
    struct listener *listener;
};

// Who called. It lives as long as its link is open or a request of it is under way.
struct caller {
    struct path *path;
    struct link *link;
    enum proto_role role;
    uint64_t session;
    char name[PROTO_NAME_MAX + 1];
    _Atomic uint32_t references;
    struct caller *next, *previous; // of those whose links are open
};

// What one session was refused for one reason.
struct offence {
    enum proto_refusal code;
    uint64_t session;
    uint64_t count, told; // `told`: the count when it was said last
    char last[512];       // who asked what
};

struct paths {
    struct paths_options options;
    struct path path[PATH_COUNT];
    struct pool pool, replication; // of payloads
    struct served served;
    _Atomic(struct served *) serving; // NULL until there is something to serve
    _Atomic uint64_t unwelcome;
    _Atomic bool started;

    pthread_mutex_t lock; // of all that follows
    struct caller *callers;
    uint64_t received, sent; // by links that are no more
    struct offence offences[OFFENCES];
    int offence_count;
};

// --- complaints --------------------------------------------------------------

// What no program of the run does when all is well.
static bool is_wrong(enum proto_refusal code) {
    switch (code) {
    case PROTO_REFUSAL_WRONG_RUN:
    case PROTO_REFUSAL_WRONG_MODEL:
    case PROTO_REFUSAL_WRONG_ROLE:
    case PROTO_REFUSAL_WRONG_SESSION:
    case PROTO_REFUSAL_WRONG_SHAPE:
    case PROTO_REFUSAL_NOT_FINITE:
    case PROTO_REFUSAL_BAD_SETTING:
        return true;
    default:
        return false;
    }
}

// Under the lock.
static struct offence *offence_of(struct paths *paths, enum proto_refusal code, uint64_t session) {
    struct offence *offence = paths->offences, *end = offence + paths->offence_count;
    while (offence < end && (offence->code != code || offence->session != session))
        offence++;
    if (offence < paths->offences + OFFENCES) {
        paths->offence_count += offence == end;
        offence->session = session;
    } else {
        offence--;
        offence->session = 0;
    }
    offence->code = code;
    return offence;
}

static void note_offence(struct paths *paths, const struct caller *caller, uint16_t type,
                         enum proto_refusal code, uint64_t detail) {
    if (!is_wrong(code))
        return;
    pthread_mutex_lock(&paths->lock);
    struct offence *offence = offence_of(paths, code, caller->session);
    offence->count++;
    snprintf(offence->last, sizeof offence->last, "refused a %s of %s %s (%s): %s, detail %" PRIu64,
             proto_message_name(type), proto_role_name(caller->role), caller->name,
             link_address(caller->link), proto_refusal_name(code), detail);
    pthread_mutex_unlock(&paths->lock);
}

static bool is_due(const struct offence *offence) {
    return offence->count > 0 && offence->count >= 2 * offence->told;
}

bool paths_complaint(struct paths *paths, struct complaint *complaint) {
    bool found = false;
    pthread_mutex_lock(&paths->lock);
    for (int i = 0; !found && i < paths->offence_count; i++) {
        struct offence *offence = &paths->offences[i];
        found = is_due(offence);
        if (!found)
            continue;
        *complaint = (struct complaint){.code = offence->code,
                                        .session = offence->session,
                                        .count = offence->count - offence->told};
        snprintf(complaint->text, sizeof complaint->text, "%s; %" PRIu64 " so far", offence->last,
                 offence->count);
        offence->told = offence->count;
    }
    pthread_mutex_unlock(&paths->lock);
    return found;
}

uint64_t paths_unwelcome(const struct paths *paths) {
    return atomic_load(&paths->unwelcome);
}

// --- callers -----------------------------------------------------------------

static void caller_drop(struct caller *caller) {
    if (atomic_fetch_sub(&caller->references, 1) > 1)
        return;
    link_drop(caller->link);
    free(caller);
}

static struct caller *caller_make(struct path *path, struct link *link,
                                  const struct proto_hello *hello) {
    struct caller *caller = mem_zeroed(1, sizeof *caller);
    if (!caller)
        return NULL;
    caller->path = path;
    caller->link = link;
    caller->role = (enum proto_role)hello->role;
    caller->session = hello->session;
    printable_copy(caller->name, sizeof caller->name, hello->name.at, hello->name.length);
    atomic_init(&caller->references, 1);
    link_hold(link);
    return caller;
}

static void caller_enter(struct paths *paths, struct caller *caller) {
    pthread_mutex_lock(&paths->lock);
    caller->next = paths->callers;
    if (caller->next)
        caller->next->previous = caller;
    paths->callers = caller;
    pthread_mutex_unlock(&paths->lock);
    link_set_user(caller->link, caller);
}

static void count_traffic(const struct link *link, uint64_t *received, uint64_t *sent) {
    uint64_t in, out;
    link_traffic(link, &in, &out);
    *received += in;
    *sent += out;
}

static void caller_exit(struct paths *paths, struct caller *caller) {
    pthread_mutex_lock(&paths->lock);
    if (caller->next)
        caller->next->previous = caller->previous;
    if (caller->previous)
        caller->previous->next = caller->next;
    else
        paths->callers = caller->next;
    count_traffic(caller->link, &paths->received, &paths->sent);
    pthread_mutex_unlock(&paths->lock);
    caller_drop(caller);
}

void paths_traffic(struct paths *paths, uint64_t *received, uint64_t *sent) {
    pthread_mutex_lock(&paths->lock);
    *received = paths->received;
    *sent = paths->sent;
    for (const struct caller *caller = paths->callers; caller; caller = caller->next)
        count_traffic(caller->link, received, sent);
    pthread_mutex_unlock(&paths->lock);
}

// --- who is welcome ----------------------------------------------------------

static bool has_business(enum path_kind kind, uint32_t role) {
    switch (kind) {
    case PATH_TRAINING:
        return role == PROTO_ROLE_WORKER || role == PROTO_ROLE_EVALUATOR ||
               role == PROTO_ROLE_CONTROLLER || role == PROTO_ROLE_PARAMETER_SERVER;
    case PATH_REPLICATION:
        return role == PROTO_ROLE_PARAMETER_SERVER;
    default:
        return role == PROTO_ROLE_CONTROLLER || role == PROTO_ROLE_ADMINISTRATOR;
    }
}

static bool is_zero(const struct proto_id *id) {
    static const struct proto_id zero;
    return memcmp(id, &zero, sizeof zero) == 0;
}

static enum proto_refusal check_hello(const struct path *path, const struct served *served,
                                      const struct proto_hello *hello, uint64_t *detail) {
    if (!has_business(path->kind, hello->role))
        return PROTO_REFUSAL_WRONG_ROLE;
    if (!atomic_load(&path->paths->started))
        return PROTO_REFUSAL_NOT_READY;
    if (!served)
        return path->kind == PATH_TRAINING ? PROTO_REFUSAL_NOT_READY : PROTO_REFUSAL_NONE;
    if (!is_zero(&hello->run) && memcmp(&hello->run, &served->run, sizeof hello->run) != 0)
        return PROTO_REFUSAL_WRONG_RUN;
    *detail = served->model;
    if (hello->model != 0 && hello->model != served->model)
        return PROTO_REFUSAL_WRONG_MODEL;
    return PROTO_REFUSAL_NONE;
}

static void fill_welcome(const struct paths *paths, const struct served *served,
                         const struct proto_hello *hello, struct proto_welcome *welcome) {
    welcome->role = PROTO_ROLE_PARAMETER_SERVER;
    welcome->session = hello->session;
    welcome->window = LINK_WINDOW;
    welcome->name = proto_text(paths->options.name);
    if (!served)
        return;
    welcome->run = served->run;
    welcome->model = served->model;
}

static enum proto_refusal hear_hello(void *context, struct link *link,
                                     const struct proto_hello *hello, struct proto_welcome *welcome,
                                     uint64_t *detail) {
    struct path *path = context;
    struct paths *paths = path->paths;
    const struct served *served = atomic_load(&paths->serving);
    enum proto_refusal code = check_hello(path, served, hello, detail);
    struct caller *caller = caller_make(path, link, hello);
    if (!caller)
        return PROTO_REFUSAL_BUSY;
    if (code == PROTO_REFUSAL_NONE) {
        fill_welcome(paths, served, hello, welcome);
        caller_enter(paths, caller);
        return code;
    }
    atomic_fetch_add(&paths->unwelcome, 1);
    note_offence(paths, caller, PROTO_TYPE_HELLO, code, *detail);
    caller_drop(caller);
    return code;
}

static void hear_end(void *context, struct link *link, const char *why) {
    struct path *path = context;
    struct caller *caller = link_user(link);
    const struct paths_hooks *hooks = &path->paths->options.hooks;
    (void)why;
    if (path->kind == PATH_ADMIN)
        hooks->left(hooks->self, link);
    if (caller)
        caller_exit(path->paths, caller);
}

// --- requests and answers ----------------------------------------------------

// A request that lib/ps carries out, and then what its answer needs until it is sent.
struct call {
    struct caller *caller;
    uint64_t request;
    uint16_t type;
    uint64_t sequence; // of a push
    struct link_part parts[];
};

static void call_free(void *context) {
    struct call *call = context;
    caller_drop(call->caller);
    free(call);
}

static struct call *call_make(struct caller *caller, uint64_t request, uint16_t type) {
    struct call *call = malloc(sizeof *call);
    if (!call) {
        link_refuse(caller->link, request, PROTO_REFUSAL_BUSY, 100, "out of memory");
        return NULL;
    }
    atomic_fetch_add(&caller->references, 1);
    call->caller = caller;
    call->request = request;
    call->type = type;
    call->sequence = 0;
    return call;
}

static void refuse_request(struct caller *caller, uint64_t request, uint16_t type,
                           enum proto_refusal code, uint64_t detail, const char *text) {
    struct paths *paths = caller->path->paths;
    note_offence(paths, caller, type, code, detail);
    if (request)
        link_refuse(caller->link, request, code, detail, *text ? text : proto_refusal_text(code));
}

// Who is not answered for lack of memory hears of it by the end of the link.
static void send_answer(struct caller *caller, uint64_t request, uint16_t type, const void *message,
                        const struct link_payload *payload) {
    if (link_answer(caller->link, request, type, message, payload, NULL))
        link_break(caller->link, "out of memory");
}

// What nobody wants to hear is not carried out. (A push may be sent so.)
static bool is_pointless(uint64_t request, uint16_t type) {
    return request == 0 && (type == PROTO_TYPE_PULL || type == PROTO_TYPE_GET_VERSIONS);
}

// Sends the numbers from where they lie. The call grows by what says where that is.
static void answer_pull(struct call *call, const struct ps_answer *pulled) {
    const struct proto_weights weights = {proto_list(pulled->pieces, pulled->piece_count)};
    struct call *longer =
        realloc(call, sizeof *call + pulled->extent_count * sizeof(struct link_part));
    if (!longer) {
        refuse_request(call->caller, call->request, call->type, PROTO_REFUSAL_BUSY, 100,
                       "out of memory");
        call_free(call);
        return;
    }
    for (uint32_t i = 0; i < pulled->extent_count; i++)
        longer->parts[i] = (struct link_part){pulled->extents[i].at, pulled->extents[i].size};
    const struct link_payload payload = {longer->parts, pulled->extent_count, call_free, longer};
    struct caller *caller = longer->caller;
    atomic_fetch_add(&caller->references, 1); // the call may be gone before the answer returns
    send_answer(caller, longer->request, PROTO_TYPE_WEIGHTS, &weights, &payload);
    caller_drop(caller);
}

static void answer_push(const struct call *call, const struct ps_answer *pushed) {
    const struct proto_pushed message = {.sequence = call->sequence,
                                         .repeated = pushed->repeated,
                                         .pieces = {pushed->pieces, pushed->piece_count}};
    send_answer(call->caller, call->request, PROTO_TYPE_PUSHED, &message, NULL);
}

// Called by lib/ps.
static void carried_out(void *context, const struct ps_answer *result) {
    struct call *call = context;
    struct caller *caller = call->caller;
    const struct paths_hooks *hooks = &caller->path->paths->options.hooks;
    if (result->code == PROTO_REFUSAL_BUSY)
        hooks->look(hooks->self);
    if (result->code) {
        refuse_request(caller, call->request, call->type, result->code, result->detail,
                       result->text);
    } else if (call->request && call->type == PROTO_TYPE_PULL) {
        answer_pull(call, result);
        return;
    } else if (call->request && call->type == PROTO_TYPE_STORE) {
        send_answer(caller, call->request, PROTO_TYPE_DONE, NULL, NULL);
    } else if (call->request) {
        answer_push(call, result);
    }
    call_free(call);
}

static void tell_versions(struct caller *caller, struct ps *ps, uint64_t request,
                          const struct proto_get_versions *message) {
    struct proto_piece *pieces = mem_array(PROTO_PIECES_MAX, sizeof *pieces);
    if (!pieces) {
        refuse_request(caller, request, PROTO_TYPE_GET_VERSIONS, PROTO_REFUSAL_BUSY, 100,
                       "out of memory");
        return;
    }
    const struct proto_versions versions = {
        proto_list(pieces, ps_versions(ps, message->first, message->count, pieces))};
    if (request)
        send_answer(caller, request, PROTO_TYPE_VERSIONS, &versions, NULL);
    free(pieces);
}

static bool may_ask(enum proto_role role, uint16_t type) {
    switch (type) {
    case PROTO_TYPE_PULL:
    case PROTO_TYPE_GET_VERSIONS:
        return true;
    case PROTO_TYPE_PUSH:
    case PROTO_TYPE_PUSH_FACTORS:
        return role == PROTO_ROLE_WORKER;
    case PROTO_TYPE_STORE:
        return role == PROTO_ROLE_CONTROLLER;
    default:
        return false;
    }
}

static void hear_training(struct caller *caller, uint64_t request, uint16_t type,
                          const union proto_message *message, struct buffer *payload) {
    struct ps *ps = atomic_load(&caller->path->paths->serving)->ps;
    uint64_t detail = type;
    enum proto_refusal code = PROTO_REFUSAL_WRONG_ROLE;
    if (is_pointless(request, type))
        return;
    if (may_ask(caller->role, type))
        code = link_check_session(caller->link, type, message, &detail);
    if (code) {
        atomic_fetch_add(&caller->path->paths->unwelcome, 1);
        refuse_request(caller, request, type, code, detail, "");
        return;
    }
    if (type == PROTO_TYPE_GET_VERSIONS) {
        tell_versions(caller, ps, request, &message->get_versions);
        return;
    }
    struct call *call = call_make(caller, request, type);
    if (!call)
        return;
    if (type == PROTO_TYPE_PULL) {
        ps_pull(ps, &message->pull, carried_out, call);
    } else if (type == PROTO_TYPE_STORE) {
        ps_store(ps, &message->store, payload, carried_out, call);
    } else if (type == PROTO_TYPE_PUSH) {
        call->sequence = message->push.sequence;
        ps_push(ps, &message->push, payload, carried_out, call);
    } else {
        call->sequence = message->push_factors.sequence;
        ps_push_factors(ps, &message->push_factors, payload, carried_out, call);
    }
}

static void tell_status(struct caller *caller, uint64_t request) {
    struct paths *paths = caller->path->paths;
    const struct served *served = atomic_load(&paths->serving);
    struct proto_member self = {.member = PROTO_NOBODY,
                                .role = PROTO_ROLE_PARAMETER_SERVER,
                                .name = proto_text(paths->options.name),
                                .address = proto_text(paths_address(paths, PATH_ADMIN))};
    paths->options.hooks.status(paths->options.hooks.self, &self);
    struct proto_status status = {.members = proto_list(&self, 1)};
    if (served)
        status.run = served->run;
    if (request)
        send_answer(caller, request, PROTO_TYPE_STATUS, &status, NULL);
}

static void hear_save(struct caller *caller, uint64_t request, uint16_t type,
                      const union proto_message *message) {
    const struct paths *paths = caller->path->paths;
    const struct paths_hooks *hooks = &paths->options.hooks;
    if (type != PROTO_TYPE_READ_PART && caller->role != PROTO_ROLE_CONTROLLER)
        refuse_request(caller, request, type, PROTO_REFUSAL_WRONG_ROLE, type, "");
    else if (!atomic_load(&paths->serving))
        refuse_request(caller, request, type, PROTO_REFUSAL_NOT_READY, 100, "");
    else
        hooks->save(hooks->self, caller->link, request, type, message);
}

static void hear_admin(struct caller *caller, uint64_t request, uint16_t type,
                       const union proto_message *message) {
    struct paths *paths = caller->path->paths;
    if (type == PROTO_TYPE_GET_STATUS) {
        tell_status(caller, request);
    } else if (type == PROTO_TYPE_STOP) {
        if (request)
            send_answer(caller, request, PROTO_TYPE_DONE, NULL, NULL);
        paths->options.hooks.stop(paths->options.hooks.self);
    } else if (type == PROTO_TYPE_SAVE_PART ||
               ((type == PROTO_TYPE_READ_PART || type == PROTO_TYPE_DROP_PARTS) && request)) {
        hear_save(caller, request, type, message);
    } else {
        refuse_request(caller, request, type, PROTO_REFUSAL_WRONG_ROLE, type,
                       "ask the controller of the run");
    }
}

static void hear_replication(struct caller *caller, uint64_t request, uint16_t type,
                             const union proto_message *message, struct buffer *payload) {
    const struct paths *paths = caller->path->paths;
    const struct paths_hooks *hooks = &paths->options.hooks;
    if (atomic_load(&paths->serving))
        hooks->replicate(hooks->self, caller->link, caller->session, request, type, message,
                         payload);
    else
        refuse_request(caller, request, type, PROTO_REFUSAL_NOT_READY, 100, "");
}

static void hear_request(void *context, struct link *link, uint64_t request, uint16_t type,
                         const union proto_message *message, struct buffer *payload) {
    const struct path *path = context;
    struct caller *caller = link_user(link);
    if (path->kind == PATH_TRAINING)
        hear_training(caller, request, type, message, payload);
    else if (path->kind == PATH_ADMIN)
        hear_admin(caller, request, type, message);
    else
        hear_replication(caller, request, type, message, payload);
}

// --- opening and closing -----------------------------------------------------

static struct pool *pool_of(struct paths *paths, enum path_kind kind) {
    return kind == PATH_TRAINING      ? &paths->pool
           : kind == PATH_REPLICATION ? &paths->replication
                                      : NULL;
}

static int path_open(struct paths *paths, enum path_kind kind, struct error *err) {
    const struct paths_options *o = &paths->options;
    struct path *path = &paths->path[kind];
    *path = (struct path){.paths = paths, .kind = kind};
    const struct link_options options = {
        .handlers = {path, hear_hello, hear_request, hear_end},
        .pool = pool_of(paths, kind),
        .keys = o->keys,
        .insecure = o->insecure,
    };
    return listener_open(&path->listener, o->addresses[kind], &options, NULL, err);
}

int paths_open(struct paths **paths, const struct paths_options *options, struct error *err) {
    *paths = NULL;
    struct paths *p = mem_zeroed(1, sizeof *p);
    if (!p)
        return error_nomem(err);
    p->options = *options;
    p->pool.limit = p->replication.limit = options->memory;
    pthread_mutex_init(&p->lock, NULL);
    int status = STATUS_OK;
    for (int i = 0; !status && i < PATH_COUNT; i++)
        status = path_open(p, (enum path_kind)i, err);
    if (status) {
        paths_close(p);
        paths_free(p);
    } else {
        *paths = p;
    }
    return status;
}

const char *paths_address(const struct paths *paths, enum path_kind kind) {
    return listener_address(paths->path[kind].listener);
}

void paths_start(struct paths *paths) {
    atomic_store(&paths->started, true);
}

void paths_serve(struct paths *paths, struct ps *ps, struct proto_id run, uint64_t model) {
    paths->served = (struct served){ps, run, model};
    atomic_store(&paths->serving, &paths->served);
}

void paths_close(struct paths *paths) {
    for (int i = 0; paths && i < PATH_COUNT; i++) {
        if (paths->path[i].listener)
            listener_close(paths->path[i].listener);
        paths->path[i].listener = NULL;
    }
}

void paths_free(struct paths *paths) {
    if (!paths)
        return;
    pool_free(&paths->pool);
    pool_free(&paths->replication);
    pthread_mutex_destroy(&paths->lock);
    free(paths);
}
