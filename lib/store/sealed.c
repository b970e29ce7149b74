#include "store/sealed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "store/crc.h"
#include "store/output.h"
#include "store/stream.h"

enum {
    SIZE_MOST = 4 << 20, // of a file that is read
    SEAL = sizeof "  \"crc32\": \"01234567\"\n}\n" - 1,
};

// The lines behind `size` bytes of text.
static void seal_of(char seal[SEAL + 1], const char *text, size_t size) {
    snprintf(seal, SEAL + 1, "  \"crc32\": \"%08" PRIx32 "\"\n}\n", crc32_of(0, text, size));
}

char *sealed_text(const json_t *object) {
    char *body =
        json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(JSON_DIGITS));
    size_t size = body ? strlen(body) : 0; // ends in "\n}", which becomes ",\n"
    char *text = size > 2 ? realloc(body, size + SEAL + 1) : NULL;
    if (!text) {
        free(body);
        return NULL;
    }
    memcpy(text + size - 2, ",\n", 2);
    seal_of(text + size, text, size);
    return text;
}

static bool is_sealed(const char *text, size_t size) {
    char seal[SEAL + 1];
    if (size < SEAL)
        return false;
    seal_of(seal, text, size - SEAL);
    return memcmp(text + size - SEAL, seal, SEAL) == 0;
}

int sealed_write(const char *path, const json_t *object, struct error *err) {
    char *text = sealed_text(object);
    int status = text ? output_whole(path, true, text, strlen(text), err) : error_nomem(err);
    free(text);
    return status;
}

static int parse_sealed(json_t **out, bool *sealed, const char *text, size_t size,
                        struct error *err) {
    int status = json_read(out, text, size, err);
    *sealed = !status && is_sealed(text, size);
    if (status || *sealed || !json_object_get(*out, "crc32"))
        return status;
    json_decref(*out);
    *out = NULL;
    return error_set(err, STATUS_DATA, "damaged: its CRC-32 is not the one in its last line");
}

int sealed_read(json_t **out, bool *sealed, const char *path, struct error *err) {
    struct stream *stream = NULL;
    char *text = mem_array(SIZE_MOST, 1);
    size_t size = 0;
    *out = NULL;
    int status = text ? stream_open(&stream, path, err) : error_nomem(err);
    if (!status)
        status = stream_read(stream, text, SIZE_MOST, &size, err);
    if (!status && parse_sealed(out, sealed, text, size, err))
        status = error_context(err, "%s", path);
    stream_close(stream);
    free(text);
    return status;
}
