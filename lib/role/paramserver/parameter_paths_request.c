// Requests that come by the paths of a parameter server, and their answers. Nothing waits: the
// handler is called by threads of the network.
#include <stdlib.h>

#include "core/mem.h"
#include "role/paramserver/parameter_paths_internal.h"

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
    paths_caller_drop(call->caller);
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
    paths_note_offence(paths, caller, type, code, detail);
    if (request)
        link_refuse(caller->link, request, code, detail, *text ? text : proto_refusal_text(code));
}

// Who is not answered for lack of memory hears of it by the end of the link.
static void send_answer(struct caller *caller, uint64_t request, uint16_t type, const void *message,
                        const struct link_payload *payload) {
    if (link_answer(caller->link, request, type, message, payload, NULL))
        link_break(caller->link, "out of memory");
}

// --- training ----------------------------------------------------------------

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
    paths_caller_drop(caller);
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

// --- administration ----------------------------------------------------------

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

// --- replication, and all ----------------------------------------------------

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

void paths_hear_request(void *context, struct link *link, uint64_t request, uint16_t type,
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
