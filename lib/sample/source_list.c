// A list of paths, one a line or each ended by a zero byte.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "sample/source_kind.h"

enum { LONGEST_LINE = 1 << 16 };

struct list {
    char line[LONGEST_LINE + 1];
    uint64_t number;
};

static int open_list(struct source *source, struct error *err) {
    source->state = mem_zeroed(1, sizeof(struct list));
    return source->state ? STATUS_OK : error_nomem(err);
}

static void close_list(struct source *source) {
    free(source->state);
}

// The length of the next line, looking no further ahead than needed, so that a
// live pipe is answered line by line.
static int find_line_end(struct source *source, size_t *length, bool *ended, struct error *err) {
    const uint8_t *data;
    size_t got = 0;
    for (size_t n = 1; n <= LONGEST_LINE + 1; n++) {
        int status = stream_peek(source->stream, n, &data, &got, err);
        if (status)
            return status;
        *ended = got == n && data[n - 1] == (uint8_t)source->options.separator;
        *length = *ended ? n - 1 : got;
        if (*ended || got < n)
            return STATUS_OK;
    }
    struct list *list = source->state;
    return error_set(err, STATUS_DATA, "%s:%llu: a path of more than %d bytes",
                     stream_name(source->stream), (unsigned long long)list->number + 1,
                     LONGEST_LINE);
}

// The next line that is not empty, without its end.
static int read_line(struct source *source, bool *more, struct error *err) {
    struct list *list = source->state;
    size_t length, got;
    bool ended;
    do {
        int status = find_line_end(source, &length, &ended, err);
        if (!status)
            status = stream_read(source->stream, list->line, length + ended, &got, err);
        if (status)
            return status;
        if (list->number++ == 0) {
            size_t mark = text_mark(list->line, length);
            memmove(list->line, list->line + mark, length -= mark);
        }
        list->line[length] = 0;
        if (source->options.separator && length > 0 && list->line[length - 1] == '\r')
            list->line[--length] = 0;
        *more = length > 0;
    } while (!*more && ended);
    if (strlen(list->line) != length)
        return error_set(err, STATUS_DATA,
                         "%s:%llu: a zero byte in a path; is the list separated by zeros (-0)?",
                         stream_name(source->stream), (unsigned long long)list->number);
    return STATUS_OK;
}

static int label_of(struct source *source, struct sample *sample, const char *path,
                    const char *column, struct error *err) {
    if (source->options.label_from == LABEL_PARENT)
        return source_label_parent(source, sample, path, err);
    if (source->options.label_from != LABEL_COLUMN)
        return STATUS_OK;
    if (!column)
        return error_set(err, STATUS_SKIPPED, "no tab and class name behind the path");
    return source_label_text(source, sample, column, err);
}

static int list_next(struct source *source, struct sample *sample, bool *more, struct error *err) {
    struct list *list = source->state;
    int status = read_line(source, more, err);
    if (status || !*more)
        return status;
    char *column = NULL;
    if (source->options.label_from == LABEL_COLUMN && (column = strrchr(list->line, '\t')))
        *column++ = 0;
    if ((status = sample_path(sample, list->line, err)) ||
        (status = source_key_of(sample, list->line, err)))
        return status;
    status = label_of(source, sample, list->line, column, err);
    if (status == STATUS_DATA)
        return source_skipped(err);
    if (!status && !source->paths_only)
        status = source_file(sample, &source->options, err);
    return status;
}

const struct source_kind source_list = {
    .name = "list",
    .has_folders = true,
    .has_columns = true,
    .open = open_list,
    .next = list_next,
    .close = close_list,
};
