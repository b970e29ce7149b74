#include "role/controller/doors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "member/place.h"

#define WINDOW 64 // requests of one member in flight

static bool is_alone(const struct doors *doors) {
    return doors->config->controllers == 1;
}

void doors_say(struct doors *doors, const char *text) {
    const struct trainer_hooks *hooks = &doors->config->hooks;
    pthread_mutex_lock(&doors->talk);
    hooks->say(hooks->self, text);
    pthread_mutex_unlock(&doors->talk);
}

const char *doors_address(const struct doors *doors, uint32_t id) {
    return is_alone(doors) ? listener_address(doors->listener) : doors->config->addresses[id];
}

// --- callers ------------------------------------------------------------------------------------

static void read_lead(struct doors *doors, struct proto_id *run, uint64_t *model_hash) {
    pthread_mutex_lock(&doors->lock);
    *run = doors->run;
    *model_hash = doors->model_hash;
    pthread_mutex_unlock(&doors->lock);
}

// Who does not lead welcomes everybody, and sends all on that is asked.
static enum proto_refusal check_caller(const struct proto_hello *hello, struct proto_id run,
                                       uint64_t model_hash) {
    static const struct proto_id any;
    bool leads = memcmp(&run, &any, sizeof any) != 0;
    if (leads && memcmp(&hello->run, &any, sizeof any) != 0 &&
        memcmp(&hello->run, &run, sizeof any) != 0)
        return PROTO_REFUSAL_WRONG_RUN;
    if (leads && hello->model && hello->model != model_hash)
        return PROTO_REFUSAL_WRONG_MODEL;
    return PROTO_REFUSAL_NONE;
}

static bool is_peer(const struct doors *doors, enum proto_role role) {
    return role == PROTO_ROLE_CONTROLLER && !is_alone(doors);
}

static enum proto_refusal welcome_caller(void *context, struct link *link,
                                         const struct proto_hello *hello,
                                         struct proto_welcome *answer, uint64_t *detail) {
    struct doors *doors = context;
    struct proto_id run;
    uint64_t model_hash;
    read_lead(doors, &run, &model_hash);
    bool peer = is_peer(doors, (enum proto_role)hello->role);
    *detail = model_hash;
    enum proto_refusal refusal = peer ? PROTO_REFUSAL_NONE : check_caller(hello, run, model_hash);
    if (peer && hello->model != quorum_hash(doors->quorum))
        refusal = PROTO_REFUSAL_WRONG_RUN;
    if (refusal)
        return refusal;
    if (peer)
        link_know(link);
    link_set_user(link, (void *)(uintptr_t)hello->role);
    *answer = (struct proto_welcome){
        .role = PROTO_ROLE_CONTROLLER,
        .run = run,
        .model = model_hash,
        .session = hello->session,
        .window = WINDOW,
        .name = proto_text("controller"),
    };
    return PROTO_REFUSAL_NONE;
}

static void queue_request(void *context, struct link *link, uint64_t request, uint16_t type,
                          const union proto_message *message, struct buffer *payload) {
    struct doors *doors = context;
    (void)payload;
    if (is_peer(doors, (enum proto_role)(uintptr_t)link_user(link)) && type == PROTO_TYPE_PAXOS)
        quorum_receive(doors->quorum, link, message);
    else
        request_queue_add(&doors->queue, link, request, type, message, NULL);
}

static void hung_up(void *context, struct link *link, const char *why) {
    struct doors *doors = context;
    (void)why;
    request_queue_add_closed(&doors->queue, link);
}

void doors_lead(struct doors *doors, struct proto_id run, uint64_t model_hash) {
    static const struct proto_id nobody;
    pthread_mutex_lock(&doors->lock);
    doors->run = run;
    doors->model_hash = model_hash;
    pthread_mutex_unlock(&doors->lock);
    if (doors->http && !is_alone(doors) && !memcmp(&run, &nobody, sizeof nobody))
        http_set(doors->http, mem_string("")); // the one that leads now tells the figures
}

void doors_send_away(struct doors *doors) {
    uint32_t leader = quorum_leader(doors->quorum);
    const char *address = leader < doors->config->controllers ? doors_address(doors, leader) : "";
    for (struct queued_request *queued; (queued = request_queue_take(&doors->queue));) {
        if (queued->message)
            link_refuse(queued->link, queued->request, PROTO_REFUSAL_NOT_LEADER, 0, address);
        queued_request_free(queued);
    }
}

// --- life ---------------------------------------------------------------------------------------

static int open_quorum(struct doors *doors, struct error *err) {
    const struct controller_config *config = doors->config;
    const struct quorum_config quorum = {
        .folder = config->folder,
        .addresses = config->addresses,
        .members = config->controllers,
        .id = config->id,
        .rejoin = config->rejoin,
        .keys = config->keys,
        .insecure = config->insecure,
        .gate = &doors->gate,
    };
    return quorum_open(&doors->quorum, &quorum, err);
}

static int open_listener(struct doors *doors, struct error *err) {
    const struct controller_config *config = doors->config;
    const struct link_options options = {
        .handlers = {.context = doors,
                     .hello = welcome_caller,
                     .request = queue_request,
                     .closed = hung_up},
        .keys = config->keys,
        .insecure = config->insecure,
    };
    const char *told = is_alone(doors) ? config->listen : config->addresses[config->id];
    char address[PROTO_ADDRESS_MAX];
    int status = place_address(address, "ctl", told, NULL, err);
    return status ? status : listener_open(&doors->listener, address, &options, NULL, err);
}

// Each controller tells the same: where all of them are.
static int tell_ready(struct doors *doors, struct error *err) {
    const char *own = listener_address(doors->listener);
    const char *const *addresses = is_alone(doors) ? &own : doors->config->addresses;
    int status = ready_tell(&doors->port, addresses, doors->config->controllers, err);
    doors->told = doors->config->ready;
    return status ? status : ready_tell(&doors->told, addresses, doors->config->controllers, err);
}

// One that was killed may have left the file.
static int open_page(struct doors *doors, struct error *err) {
    const struct controller_config *config = doors->config;
    char url[PROTO_ADDRESS_MAX];
    const char *urls[] = {url};
    unlink(doors->page_file);
    if (!config->http)
        return STATUS_OK;
    int status = http_open(&doors->http, config->http, config->insecure, "/metrics", err);
    if (!status)
        status = http_url(doors->http, url, err);
    return status ? status : ready_tell(&doors->page, urls, 1, err);
}

int doors_listen(struct doors *doors, struct error *err) {
    if (doors->listener)
        return STATUS_OK;
    int status = open_listener(doors, err);
    if (!status)
        status = open_page(doors, err);
    return status ? status : tell_ready(doors, err);
}

static char *page_file_of(const struct controller_config *config) {
    char *path = NULL;
    int length = config->controllers == 1
                     ? asprintf(&path, "%s/controller.http", config->folder)
                     : asprintf(&path, "%s/controller-%u.http", config->folder, config->id + 1);
    return length < 0 ? NULL : path;
}

int doors_init(struct doors *doors, const struct controller_config *config, struct error *err) {
    *doors = (struct doors){.config = config};
    request_queue_open(&doors->queue, &doors->gate);
    pthread_mutex_init(&doors->talk, NULL);
    pthread_mutex_init(&doors->lock, NULL);
    if (asprintf(&doors->port_file, "%s/controller.port", config->folder) < 0) {
        doors->port_file = NULL;
        return error_nomem(err);
    }
    doors->page_file = page_file_of(config);
    doors->port = (struct ready){.port_file = doors->port_file, .fd = -1};
    doors->page = (struct ready){.port_file = doors->page_file, .fd = -1};
    return doors->page_file ? STATUS_OK : error_nomem(err);
}

int doors_open(struct doors *doors, struct error *err) {
    int status = open_quorum(doors, err);
    return status || is_alone(doors) ? status : doors_listen(doors, err);
}

void doors_close(struct doors *doors, bool over) {
    listener_close(doors->listener);
    if (doors->http)
        ready_forget(&doors->page);
    http_close(doors->http);
    if (doors->listener && over) {
        unlink(doors->port_file); // whichever controller has written it
        ready_forget(&doors->told);
    }
    doors->listener = NULL;
    doors->http = NULL;
}

void doors_free(struct doors *doors) {
    doors_close(doors, false);
    quorum_close(doors->quorum);
    request_queue_close(&doors->queue);
    pthread_mutex_destroy(&doors->talk);
    pthread_mutex_destroy(&doors->lock);
    free(doors->port_file);
    free(doors->page_file);
}
