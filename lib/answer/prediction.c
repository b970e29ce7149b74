// What the samples of a request say. In threads of a batcher, or in its talker's; the request is
// theirs until its connection goes on.
#include <stdlib.h>

#include "answer/service_internal.h"
#include "core/error.h"
#include "core/json.h"
#include "core/mem.h"
#include "report/results.h"

// Who asked is wrong, or we cannot.
static int code_of(int status, int wrong) {
    return status == STATUS_DATA ? wrong : MHD_HTTP_SERVICE_UNAVAILABLE;
}

static int open_samples(struct request *request, struct error *err) {
    size_t classes = (size_t)request->talker->service->config.classes;
    size_t count = (size_t)request->body.count;
    struct predictor_sample *samples = mem_zeroed(count, sizeof *samples);
    request->ask.samples = samples;
    request->scores = mem_array(count * classes, sizeof *request->scores);
    if (!samples || !request->scores)
        return error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        const struct body_sample *from = &request->body.samples[i];
        samples[i].bytes = from->bytes;
        samples[i].size = from->size;
        samples[i].floats = from->floats;
        samples[i].scores = request->scores + i * classes;
    }
    request->ask.count = (int)count;
    return STATUS_OK;
}

bool prediction_open(struct ask *ask) {
    struct request *request = (struct request *)ask;
    struct error err = {0};
    const char *type = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
                                                   MHD_HTTP_HEADER_CONTENT_TYPE);
    int status = body_read(&request->body, type, request->data, request->size,
                           &request->talker->service->limits, &err);
    if (!status)
        status = open_samples(request, &err);
    if (!status)
        return true;
    ask->count = 0;
    request->code = code_of(status, MHD_HTTP_BAD_REQUEST);
    request->text = error_text(err.text);
    return false;
}

// The best classes of a sample, or its numbers.
static json_t *tell_sample(const struct service_config *config, const float *scores, int *top) {
    if (model_goal(config->scoring.model) == GOAL_NUMBERS)
        return json_pack("{s:o}", "outputs",
                         results_outputs(scores, config->classes, config->names));
    scores_top(scores, config->classes, top, config->top);
    return json_pack("{s:o}", "top", results_top(scores, top, config->top, config->names));
}

static char *tell_samples(const struct request *request) {
    const struct service_config *config = &request->talker->service->config;
    int *top = mem_array((size_t)config->top, sizeof *top);
    json_t *list = top ? json_array() : NULL;
    for (int i = 0; list && i < request->ask.count; i++)
        json_append(&list, tell_sample(config, request->ask.samples[i].scores, top));
    json_t *object = list ? json_pack("{s:o}", "predictions", list) : NULL;
    char *line = object ? json_line(object) : NULL;
    json_decref(object);
    free(top);
    return line;
}

// The first sample that has no scores, or -1.
static int find_failed(const struct ask *ask) {
    for (int i = 0; i < ask->count; i++)
        if (ask->samples[i].status != STATUS_OK)
            return i;
    return -1;
}

static void tell_failed(struct request *request, int index) {
    struct predictor_sample *sample = &request->ask.samples[index];
    if (request->ask.count > 1)
        error_context(&sample->why, "instance %d", index);
    request->code = code_of(sample->status, MHD_HTTP_UNPROCESSABLE_CONTENT);
    request->text = error_text(sample->why.text);
}

void prediction_done(struct ask *ask) {
    struct request *request = (struct request *)ask;
    int failed = find_failed(ask);
    if (failed >= 0) {
        tell_failed(request, failed);
    } else if (ask->count > 0) {
        request->code = MHD_HTTP_OK;
        request->text = tell_samples(request);
    }
    struct talker *talker = request->talker;
    request->answered = true;
    MHD_resume_connection(request->connection); // and the request may be gone
    atomic_store(&talker->resumed, true);
}
