// The links of a data service: who calls, in which run and session, and what they carried.
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "role/dataserver/data_service_internal.h"

static bool same_run(const struct data_service *service, const struct proto_hello *hello) {
    static const struct proto_id any = {{0}};
    return !memcmp(&hello->run, &any, sizeof any) ||
           !memcmp(&hello->run, &service->run.run, sizeof any);
}

enum proto_refusal service_hello(void *context, struct link *link, const struct proto_hello *hello,
                                 struct proto_welcome *welcome, uint64_t *detail) {
    struct data_service *service = context;
    *detail = SERVICE_NOT_YET;
    if (!atomic_load(&service->begun))
        return PROTO_REFUSAL_NOT_READY;
    if (!same_run(service, hello))
        return PROTO_REFUSAL_WRONG_RUN;
    struct data_caller *caller = mem_zeroed(1, sizeof *caller);
    if (!caller)
        return PROTO_REFUSAL_BUSY;
    *caller = (struct data_caller){
        .link = link, .role = (enum proto_role)hello->role, .session = hello->session};
    link_set_user(link, caller);
    pthread_mutex_lock(&service->lock);
    LIST_INSERT_HEAD(&service->callers, caller, others);
    pthread_mutex_unlock(&service->lock);
    *welcome = (struct proto_welcome){
        .role = PROTO_ROLE_DATA_SERVER,
        .run = service->run.run,
        .model = service->run.model,
        .session = hello->session,
        .window = LINK_WINDOW,
        .name = proto_text(service->run.name),
    };
    return PROTO_REFUSAL_NONE;
}

void service_closed(void *context, struct link *link, const char *why) {
    struct data_service *service = context;
    struct data_caller *caller = link_user(link);
    uint64_t received, sent;
    (void)why;
    link_traffic(link, &received, &sent);
    pthread_mutex_lock(&service->lock);
    service->received += received;
    service->sent += sent;
    LIST_REMOVE(caller, others);
    pthread_mutex_unlock(&service->lock);
    free(caller);
}

void service_replace_others(struct data_service *service, const struct data_caller *caller) {
    struct data_caller *other;
    pthread_mutex_lock(&service->lock);
    LIST_FOREACH(other, &service->callers, others) {
        if (other != caller && other->session == caller->session)
            atomic_store(&other->replaced, true);
    }
    pthread_mutex_unlock(&service->lock);
}

void service_traffic(struct data_service *service, uint64_t *received, uint64_t *sent) {
    const struct data_caller *caller;
    pthread_mutex_lock(&service->lock);
    *received = service->received;
    *sent = service->sent;
    LIST_FOREACH(caller, &service->callers, others) {
        uint64_t in, out;
        link_traffic(caller->link, &in, &out);
        *received += in;
        *sent += out;
    }
    pthread_mutex_unlock(&service->lock);
}
