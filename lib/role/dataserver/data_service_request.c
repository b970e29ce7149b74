// Requests to a data service: who may ask what, and what the data are. Nothing waits: the
// handler is called by threads of the network.
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "role/dataserver/data_service_internal.h"

enum { NAMES_BYTES = PROTO_BODY_MAX / 2 }; // of names of classes in one answer

void service_refuse(const struct data_request *request, enum proto_refusal code, uint64_t detail,
                    const char *text) {
    if (code == PROTO_REFUSAL_BUSY || code == PROTO_REFUSAL_NOT_READY)
        atomic_fetch_add(&request->service->busy, 1);
    else if (code != PROTO_REFUSAL_EPOCH_OVER)
        atomic_fetch_add(&request->service->refused, 1);
    link_refuse(request->link, request->number, code, detail,
                text ? text : proto_refusal_text(code));
}

void service_put_off(const struct data_request *request, const char *why) {
    service_refuse(request, PROTO_REFUSAL_BUSY, SERVICE_NOT_YET, why);
}

void service_answer(const struct data_request *request, uint16_t type, const void *message) {
    struct error err = {0};
    if (link_answer(request->link, request->number, type, message, NULL, &err))
        service_put_off(request, err.text);
}

// --- what the data are -----------------------------------------------------------

// Names from label `first` on, as many as fit.
static uint32_t name_classes(const struct classes *classes, uint32_t first,
                             struct proto_named *names) {
    size_t bytes = 0;
    uint32_t n = 0;
    for (uint32_t i = first; i < (uint32_t)classes->count && n < 65536; i++, n++) {
        names[n].name = proto_text(classes->names[i]);
        bytes += sizeof(uint32_t) + names[n].name.length;
        if (bytes > NAMES_BYTES)
            break;
    }
    return n;
}

static void answer_data(const struct data_request *request, const struct proto_get_data *asked) {
    const struct data_service *service = request->service;
    const struct picture_cache *pictures = service->options.pictures;
    const struct classes *classes = picture_cache_classes(pictures);
    const struct dealer_shape shape = dealer_shape(service->dealer);
    struct proto_named *names = mem_array((size_t)classes->count + 1, sizeof *names);
    if (!names) {
        service_put_off(request, "out of memory");
        return;
    }
    const struct proto_data data = {
        .name = proto_text(service->options.name),
        .whole = picture_cache_whole(pictures),
        .first = picture_cache_first(pictures),
        .samples = picture_cache_count(pictures),
        .digest = picture_cache_digest(pictures),
        .classes = (uint32_t)classes->count,
        .channels = (uint32_t)shape.channels,
        .height = (uint32_t)shape.height,
        .width = (uint32_t)shape.width,
        .value = shape.type == PIXEL_U8 ? PROTO_VALUE_BYTE : PROTO_VALUE_FLOAT,
        .epoch = dealer_figures(service->dealer).epoch,
        .names = proto_list(names, name_classes(classes, asked->names, names)),
    };
    service_answer(request, PROTO_TYPE_DATA, &data);
    free(names);
}

// --- who asks what ---------------------------------------------------------------

// Which roles may ask what.
static bool may_ask(enum proto_role role, uint16_t type) {
    switch (type) {
    case PROTO_TYPE_LEASE:
    case PROTO_TYPE_FINISH:
    case PROTO_TYPE_HOLD:
    case PROTO_TYPE_LEAVE:
        return role == PROTO_ROLE_WORKER;
    case PROTO_TYPE_SET_CURSOR:
    case PROTO_TYPE_STOP:
        return role == PROTO_ROLE_CONTROLLER || role == PROTO_ROLE_ADMINISTRATOR;
    default:
        return true;
    }
}

// A worker asks in its own session, and needs one.
static enum proto_refusal check_request(const struct data_request *request, uint16_t type,
                                        const union proto_message *message, uint64_t *detail) {
    uint64_t session;
    *detail = type;
    if (!may_ask(request->caller->role, type))
        return PROTO_REFUSAL_WRONG_ROLE;
    if (proto_session(type, message, &session) && session == 0)
        return PROTO_REFUSAL_WRONG_SESSION;
    return link_check_session(request->link, type, message, detail);
}

static void serve_request(const struct data_request *request, uint16_t type,
                          const union proto_message *message) {
    struct data_service *service = request->service;
    switch (type) {
    case PROTO_TYPE_GET_DATA:
        answer_data(request, &message->get_data);
        break;
    case PROTO_TYPE_LEASE:
        service_answer_lease(request, &message->lease);
        break;
    case PROTO_TYPE_FINISH:
        service_answer_finish(request, &message->finish);
        break;
    case PROTO_TYPE_HOLD:
        service_answer_hold(request, &message->hold);
        break;
    case PROTO_TYPE_LEAVE:
        dealer_gone(service->dealer, message->leave.session);
        service_answer(request, PROTO_TYPE_DONE, NULL);
        break;
    case PROTO_TYPE_GET_CURSOR:
        service_answer_get_cursor(request);
        break;
    case PROTO_TYPE_SET_CURSOR:
        service_answer_set_cursor(request, &message->set_cursor);
        break;
    case PROTO_TYPE_STOP:
        atomic_store(&service->stop_wanted, true);
        service_answer(request, PROTO_TYPE_DONE, NULL);
        break;
    default:
        service_refuse(request, PROTO_REFUSAL_WRONG_ROLE, 0, "this is a data server");
        break;
    }
}

void service_request(void *context, struct link *link, uint64_t number, uint16_t type,
                     const union proto_message *message, struct buffer *payload) {
    const struct data_request request = {context, link, link_user(link), number};
    (void)payload;
    uint64_t detail;
    service_notice_pause(context);
    enum proto_refusal refusal = check_request(&request, type, message, &detail);
    if (refusal)
        service_refuse(&request, refusal, detail, NULL);
    else
        serve_request(&request, type, message);
}
