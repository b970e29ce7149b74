#include "role/paramserver/parameter_paths.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/printable.h"
#include "role/paramserver/parameter_paths_internal.h"

// --- callers -----------------------------------------------------------------

void paths_caller_drop(struct caller *caller) {
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
    paths_caller_drop(caller);
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
    paths_note_offence(paths, caller, PROTO_TYPE_HELLO, code, *detail);
    paths_caller_drop(caller);
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
        .handlers = {path, hear_hello, paths_hear_request, hear_end},
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
