#include "core/json.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "core/utf8.h"

// jansson calls a text wrong for which it has no memory, and may go on with one that it lost a part
// of: so it is given a document piece by piece, each while there is memory for what comes of it.
// The longest text is held twice while it grows, and once more; a value takes up to VALUE bytes for
// each that it has in the document.
enum { PIECE = 1 << 16, VALUE = 128 };

struct document {
    const char *text;
    size_t size, given, checked;
    bool short_of_memory;
};

static bool has_memory(struct document *document) {
    size_t size = document->size;
    if (document->given < document->checked)
        return true;
    document->checked = document->given + PIECE;
    return mem_has_room(4 * size + (size > PIECE ? PIECE * VALUE : 0));
}

static size_t give(void *buffer, size_t room, void *self) {
    struct document *document = self;
    size_t left = document->size - document->given, n = left < room ? left : room;
    document->short_of_memory |= !has_memory(document);
    if (document->short_of_memory)
        return (size_t)-1;
    memcpy(buffer, document->text + document->given, n);
    document->given += n;
    return n;
}

int json_read(json_t **out, const char *text, size_t size, struct error *err) {
    size_t mark = text_mark(text, size);
    struct document document = {.text = text + mark, .size = size - mark};
    json_error_t where;
    errno = 0;
    *out = json_load_callback(give, &document, JSON_REJECT_DUPLICATES, &where);
    if (*out)
        return STATUS_OK;
    // It says so by its code, or nothing at all, or calls it a mistake of the text.
    if (document.short_of_memory || json_error_code(&where) == json_error_out_of_memory ||
        !*where.text || errno == ENOMEM)
        return error_nomem(err);
    return error_set(err, STATUS_DATA, "JSON line %d, column %d: %s", where.line, where.column,
                     where.text);
}

char *json_line(const json_t *value) {
    return json_dumps(value, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(JSON_DIGITS) |
                                 JSON_ENCODE_ANY);
}

double json_kept(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.*g", JSON_DIGITS, value);
    return strtod(text, NULL);
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
