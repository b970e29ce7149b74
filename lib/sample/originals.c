#include "sample/originals.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "store/stream.h"

static int compare_lines(const void *a, const void *b) {
    const struct original *x = a, *y = b;
    return strcmp(x->copy, y->copy);
}

static int read_text(struct originals *originals, const char *path, size_t *size,
                     struct error *err) {
    struct stream *stream;
    const uint8_t *data;
    int status = stream_open_regular(&stream, path, err);
    if (status)
        return error_context(err, "%s", path);
    status = stream_peek(stream, SIZE_MAX, &data, size, err);
    if (!status && !(originals->text = mem_zeroed(*size + 1, 1)))
        status = error_nomem(err);
    if (!status && *size > 0)
        memcpy(originals->text, data, *size);
    stream_close(stream);
    return status;
}

static size_t lines_of(const char *text, size_t size) {
    size_t lines = 1;
    for (const char *p = text; (p = memchr(p, '\n', size - (size_t)(p - text))); p++)
        lines++;
    return lines;
}

static int cut_lines(struct originals *originals, const char *path, size_t size,
                     struct error *err) {
    originals->items = mem_array(lines_of(originals->text, size), sizeof *originals->items);
    if (!originals->items)
        return error_nomem(err);
    for (char *rest = originals->text, *line; (line = strsep(&rest, "\n"));) {
        if (!*line && !rest)
            break;
        char *tab = strchr(line, '\t');
        if (!tab || tab == line || !tab[1])
            return error_set(err, STATUS_DATA, "%s:%zu: no key, tab and key of an original", path,
                             originals->count + 1);
        *tab = 0;
        originals->items[originals->count++] = (struct original){line, tab + 1};
    }
    qsort(originals->items, originals->count, sizeof *originals->items, compare_lines);
    return STATUS_OK;
}

int originals_read(struct originals *originals, const char *path, struct error *err) {
    size_t size = 0;
    *originals = (struct originals){0};
    int status = read_text(originals, path, &size, err);
    if (!status)
        status = cut_lines(originals, path, size, err);
    if (status)
        originals_free(originals);
    return status;
}

const char *originals_find(const struct originals *originals, const char *copy) {
    const struct original wanted = {.copy = copy};
    const struct original *found = originals->count
                                       ? bsearch(&wanted, originals->items, originals->count,
                                                 sizeof *originals->items, compare_lines)
                                       : NULL;
    return found ? found->original : NULL;
}

void originals_free(struct originals *originals) {
    free(originals->items);
    free(originals->text);
    *originals = (struct originals){0};
}
