#include "core/json.h"

int json_read(json_t **out, const char *text, size_t size, struct error *err) {
    json_error_t where;
    *out = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
    if (*out)
        return STATUS_OK;
    return error_set(err, STATUS_DATA, "JSON line %d, column %d: %s", where.line, where.column,
                     where.text);
}

char *json_line(const json_t *value) {
    return json_dumps(value, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9) |
                                 JSON_ENCODE_ANY);
}

void json_append(json_t **list, json_t *value) {
    if (json_array_append_new(*list, value) == 0)
        return;
    json_decref(*list);
    *list = NULL;
}
