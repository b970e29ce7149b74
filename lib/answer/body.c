#include "answer/body.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "answer/body_internal.h"
#include "core/error.h"
#include "core/mem.h"

struct body_sample *body_add(struct body *body, const struct body_limits *limits,
                             struct error *err) {
    if (body->count >= limits->samples) {
        error_set(err, STATUS_DATA, "more than %d samples", limits->samples);
        return NULL;
    }
    size_t room = (size_t)body->count;
    if ((room & (room - 1)) == 0) { // 0 or a power of two: full
        struct body_sample *more =
            mem_resize(body->samples, room ? 2 * room : 1, sizeof *body->samples);
        if (!more) {
            error_nomem(err);
            return NULL;
        }
        body->samples = more;
    }
    struct body_sample *sample = &body->samples[body->count++];
    *sample = (struct body_sample){0};
    return sample;
}

static int read_picture(struct body *body, const char *data, size_t size,
                        const struct body_limits *limits, struct error *err) {
    struct body_sample *sample = body_add(body, limits, err);
    if (!sample)
        return err->status;
    sample->bytes = data;
    sample->size = size;
    return STATUS_OK;
}

// Whether a Content-Type is that, whatever its parameters.
static bool is_type(const char *type, const char *wanted) {
    size_t length = strlen(wanted);
    return type && strncasecmp(type, wanted, length) == 0 && strchr("; \t", type[length]);
}

static int read_typed(struct body *body, const char *type, const char *data, size_t size,
                      const struct body_limits *limits, struct error *err) {
    if (is_type(type, "application/json"))
        return body_read_json(body, data, size, limits, err);
    if (is_type(type, "multipart/form-data"))
        return body_read_multipart(body, type, data, size, limits, err);
    return read_picture(body, data, size, limits, err);
}

int body_read(struct body *body, const char *type, const char *data, size_t size,
              const struct body_limits *limits, struct error *err) {
    *body = (struct body){0};
    // Of nothing `data` may be NULL.
    int status = size > 0 ? read_typed(body, type, data, size, limits, err) : STATUS_OK;
    if (status == STATUS_OK && body->count == 0)
        status = error_set(err, STATUS_DATA, "there is no picture in it");
    if (status != STATUS_OK)
        body_free(body);
    return status;
}

void body_free(struct body *body) {
    for (int i = 0; i < body->count; i++)
        free(body->samples[i].floats);
    free(body->samples);
    free(body->decoded);
    *body = (struct body){0};
}
