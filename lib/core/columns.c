#include "core/columns.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

void columns_cell(struct columns *table, const char *format, ...) {
    va_list args;
    va_start(args, format);
    grow_vformat(&table->cells, format, args);
    va_end(args);
    grow_put(&table->cells, "", 1);
}

static void measure(const struct columns *table, int *widths) {
    const struct grow *cells = &table->cells;
    size_t length;
    for (int c = 0; c < table->count; c++)
        widths[c] = (int)strlen(table->column[c].title);
    for (size_t at = 0, i = 0; at < cells->length; at += length + 1, i++) {
        int *width = &widths[i % (size_t)table->count];
        length = strlen(cells->text + at);
        *width = (int)length > *width ? (int)length : *width;
    }
}

static void end_line(struct grow *to) {
    while (to->length > 0 && to->text[to->length - 1] == ' ')
        to->length--;
    grow_put(to, "\n", 1);
}

static void put(const struct columns *table, const int *widths, int c, const char *text,
                struct grow *to) {
    grow_format(to, "%*s  ", table->column[c].number ? widths[c] : -widths[c], text);
    if (c == table->count - 1)
        end_line(to);
}

void columns_put(struct columns *table, struct grow *to) {
    int *widths = mem_zeroed((size_t)table->count, sizeof *widths);
    to->failed |= !widths || table->cells.failed;
    if (!to->failed) {
        const struct grow *cells = &table->cells;
        measure(table, widths);
        for (int c = 0; c < table->count; c++)
            put(table, widths, c, table->column[c].title, to);
        for (size_t at = 0, i = 0; at < cells->length; at += strlen(cells->text + at) + 1, i++)
            put(table, widths, (int)(i % (size_t)table->count), cells->text + at, to);
    }
    free(widths);
    free(table->cells.text);
    table->cells = (struct grow){0};
}
