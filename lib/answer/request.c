// From a request to its answer. A body is collected, its connection suspended until the batcher
// is done with it, and then the answer goes out.
#include <stdlib.h>
#include <string.h>

#include "answer/page.h"
#include "answer/service_internal.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/mem.h"
#include "net/http_head.h"

#define TYPE_JSON "application/json"
#define TYPE_METRICS "text/plain; version=0.0.4; charset=utf-8"

// --- answers --------------------------------------------------------------------------

const char error_memory[] = "{\"error\":\"out of memory\"}";

char *error_text(const char *why) {
    json_t *object = json_pack("{s:o}", "error", json_text(why));
    char *line = object ? json_line(object) : NULL;
    json_decref(object);
    return line;
}

struct answer {
    int code;
    const char *type, *text;
    size_t length;
    enum MHD_ResponseMemoryMode mode;
    const char *allow; // methods; NULL: they are not told
};

static enum MHD_Result reply(struct service *service, struct MHD_Connection *connection,
                             const struct answer *answer) {
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->length, (void *)(uintptr_t)answer->text, answer->mode);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (answer->allow)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, answer->allow);
    if (atomic_load(&service->ends))
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result result = MHD_queue_response(connection, (unsigned)answer->code, response);
    MHD_destroy_response(response);
    if (result == MHD_YES)
        figures_request(&service->figures, answer->code);
    return result;
}

// Of a text that stays.
static enum MHD_Result reply_text(struct service *service, struct MHD_Connection *connection,
                                  int code, const char *type, const char *text, size_t length) {
    return reply(service, connection,
                 &(struct answer){.code = code,
                                  .type = type,
                                  .text = text,
                                  .length = length,
                                  .mode = MHD_RESPMEM_PERSISTENT});
}

// Takes the text over; NULL: there was no memory for it.
static enum MHD_Result reply_own(struct service *service, struct MHD_Connection *connection,
                                 int code, const char *type, char *text, const char *allow) {
    if (!text)
        return reply_text(service, connection, MHD_HTTP_SERVICE_UNAVAILABLE, TYPE_JSON,
                          error_memory, strlen(error_memory));
    return reply(service, connection,
                 &(struct answer){.code = code,
                                  .type = type,
                                  .text = text,
                                  .length = strlen(text),
                                  .mode = MHD_RESPMEM_MUST_FREE,
                                  .allow = allow});
}

static int count_callers(const struct service *service) {
    size_t count = 0;
    for (int i = 0; i < service->talker_count; i++)
        count += atomic_load(&service->talkers[i].count);
    return (int)count;
}

static enum MHD_Result reply_page(struct service *service, struct MHD_Connection *connection,
                                  const char *url) {
    static const char alive[] = "ok\n";
    size_t length;
    const char *page = page_text(&length);
    if (!strcmp(url, "/"))
        return reply_text(service, connection, MHD_HTTP_OK, "text/html; charset=utf-8", page,
                          length);
    if (!strcmp(url, "/healthz"))
        return reply_text(service, connection, MHD_HTTP_OK, "text/plain", alive, sizeof alive - 1);
    return reply_own(service, connection, MHD_HTTP_OK, TYPE_METRICS,
                     figures_text(&service->figures, predictor_passes(service->predictor),
                                  count_callers(service)),
                     NULL);
}

static bool is_page(const char *url) {
    return !strcmp(url, "/") || !strcmp(url, "/healthz") || !strcmp(url, "/metrics");
}

// All but pictures for /predict.
static enum MHD_Result reply_other(struct service *service, struct MHD_Connection *connection,
                                   const char *url, const char *method) {
    bool get = !strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD);
    if (!strcmp(url, "/predict"))
        return reply_own(service, connection, MHD_HTTP_METHOD_NOT_ALLOWED, TYPE_JSON,
                         error_text("send a picture by POST"), MHD_HTTP_METHOD_POST);
    if (!is_page(url))
        return reply_own(service, connection, MHD_HTTP_NOT_FOUND, TYPE_JSON,
                         error_text("no such page: there are /predict, /metrics, /healthz and /"),
                         NULL);
    if (!get)
        return reply_own(service, connection, MHD_HTTP_METHOD_NOT_ALLOWED, TYPE_JSON,
                         error_text("only GET and HEAD of this page"), "GET, HEAD");
    return reply_page(service, connection, url);
}

// --- bodies ---------------------------------------------------------------------------

static const char *header_of(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

// Of all bodies at a time; false: they hold too much already.
static bool hold_bytes(struct service *service, size_t bytes) {
    size_t before = atomic_fetch_add(&service->held, bytes);
    if (before + bytes <= HELD_BODIES * service->config.max_body)
        return true;
    atomic_fetch_sub(&service->held, bytes);
    return false;
}

// Room for so many bytes more, or the caller is refused.
static bool make_body_room(struct request *request, size_t more) {
    struct service *service = request->talker->service;
    size_t most = service->config.max_body, wanted = request->size + more;
    if (more > most || wanted > most) {
        caller_refuse(request->talker, request->caller, MHD_HTTP_CONTENT_TOO_LARGE,
                      "the request is larger than --max-body");
        return false;
    }
    if (wanted <= request->room)
        return true;
    size_t room = 2 * wanted < most ? 2 * wanted : most;
    bool fits = hold_bytes(service, room - request->room);
    char *data = fits ? mem_resize(request->data, room, 1) : NULL;
    if (fits && !data)
        atomic_fetch_sub(&service->held, room - request->room);
    if (!data) {
        caller_refuse(request->talker, request->caller, MHD_HTTP_SERVICE_UNAVAILABLE,
                      fits ? "out of memory" : "too many large requests at a time; try again");
        return false;
    }
    request->data = data;
    request->room = room;
    return true;
}

static void take_bytes(struct request *request, const char *data, size_t size) {
    if (request->caller->state == CALLER_REFUSED || !make_body_room(request, size))
        return;
    memcpy(request->data + request->size, data, size);
    request->size += size;
}

// A length that is too large is refused before any byte of it has come.
static enum MHD_Result begin_request(struct talker *talker, struct MHD_Connection *connection,
                                     struct caller *caller, const char *url, const char *version,
                                     void **context) {
    const char *length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    bool refused = caller->state == CALLER_REFUSED;
    const char *why;
    int code = refused ? MHD_HTTP_OK : framing_check(connection, url, version, &why);
    if (code != MHD_HTTP_OK) {
        caller_refuse(talker, caller, code, why);
        return MHD_NO;
    }
    struct request *request = refused ? NULL : mem_zeroed(1, sizeof *request);
    if (!request && !refused)
        caller_refuse(talker, caller, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    if (!request)
        return MHD_NO;
    *context = request;
    request->talker = talker;
    request->caller = caller;
    request->connection = connection;
    caller_turns(caller, CALLER_SENDS);
    if (length && strtoull(length, NULL, 10) > request->talker->service->config.max_body)
        make_body_room(request, SIZE_MAX);
    return MHD_YES;
}

// The connection goes on when there are scores.
static void predict_later(struct request *request) {
    struct batcher *own = request->talker->batcher;
    request->ask.open = prediction_open;
    request->ask.done = prediction_done;
    request->began = clock_seconds();
    caller_turns(request->caller, CALLER_WAITS);
    MHD_suspend_connection(request->connection);
    batcher_put(own && request->size <= SHORT_BODY ? own : request->talker->service->batcher,
                &request->ask);
}

static enum MHD_Result end_request(struct MHD_Connection *connection, struct request *request,
                                   const char *url, const char *method) {
    struct service *service = request->talker->service;
    bool post = !strcmp(method, MHD_HTTP_METHOD_POST), predict = !strcmp(url, "/predict");
    if (request->caller->state == CALLER_REFUSED)
        return MHD_NO;
    if (post && predict && !request->answered) {
        predict_later(request);
        return MHD_YES;
    }
    caller_turns(request->caller, CALLER_TAKES);
    if (!request->answered)
        return reply_other(service, connection, url, method);
    char *text = request->text;
    request->text = NULL;
    if (text && request->code == MHD_HTTP_OK)
        figures_predicted(&service->figures, request->ask.count, clock_seconds() - request->began);
    return reply_own(service, connection, request->code, TYPE_JSON, text, NULL);
}

enum MHD_Result request_handle(void *self, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **context) {
    struct request *request = *context;
    const union MHD_ConnectionInfo *of =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (!of || !of->socket_context)
        return MHD_NO;
    if (!request)
        return begin_request(self, connection, of->socket_context, url, version, context);
    if (*size == 0)
        return end_request(connection, request, http_head_path(url), method);
    take_bytes(request, data, *size);
    *size = 0;
    return MHD_YES;
}

void request_completed(void *self, struct MHD_Connection *connection, void **context,
                       enum MHD_RequestTerminationCode code) {
    struct request *request = *context;
    (void)self, (void)connection;
    if (!request)
        return;
    struct caller *caller = request->caller;
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK && caller->state != CALLER_REFUSED)
        figures_request(&request->talker->service->figures, 0);
    if (caller->state != CALLER_REFUSED)
        caller_turns(caller, CALLER_SILENT);
    atomic_fetch_sub(&request->talker->service->held, request->room);
    free(request->ask.samples);
    free(request->scores);
    body_free(&request->body);
    free(request->data);
    free(request->text);
    free(request);
    *context = NULL;
}
