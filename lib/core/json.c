#include "core/json.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/utf8.h"

int json_read(json_t **out, const char *text, size_t size, struct error *err) {
    json_error_t where;
    *out = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
    if (*out)
        return STATUS_OK;
    // It says so by its code, or nothing at all.
    if (json_error_code(&where) == json_error_out_of_memory || !*where.text)
        return error_nomem(err);
    return error_set(err, STATUS_DATA, "JSON line %d, column %d: %s", where.line, where.column,
                     where.text);
}

char *json_line(const json_t *value) {
    return json_dumps(value, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9) |
                                 JSON_ENCODE_ANY);
}

json_t *json_text(const char *bytes) {
    char *clean = utf8_clean(bytes);
    json_t *value = clean ? json_string(clean) : NULL;
    free(clean);
    return value;
}

json_t *json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

void json_append(json_t **list, json_t *value) {
    if (json_array_append_new(*list, value) == 0)
        return;
    json_decref(*list);
    *list = NULL;
}

void json_put(json_t **object, const char *name, json_t *value) {
    if (json_object_set_new(*object, name, value) == 0)
        return;
    json_decref(*object);
    *object = NULL;
}
