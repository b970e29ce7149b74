#include "core/columns.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/printable.h"

enum { CELL = 1024 }; // bytes: wider ones are cut

void columns_cell(struct columns *table, const char *format, ...) {
    char raw[CELL], text[CELL];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    printable_copy(text, sizeof text, raw, strlen(raw));
    grow_put(&table->cells, text, strlen(text) + 1);
}

// Columns that a text takes on a terminal: one for each character.
static int width_of(const char *text) {
    int width = 0;
    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

static void measure_widths(const struct columns *table, int *widths) {
    const struct grow *cells = &table->cells;
    size_t length;
    for (int c = 0; c < table->count; c++)
        widths[c] = (int)strlen(table->column[c].title);
    for (size_t at = 0, i = 0; at < cells->length; at += length + 1, i++) {
        int *width = &widths[i % (size_t)table->count];
        int wanted = width_of(cells->text + at);
        length = strlen(cells->text + at);
        *width = wanted > *width ? wanted : *width;
    }
}

static void end_line(struct grow *to) {
    while (to->length > 0 && to->text[to->length - 1] == ' ')
        to->length--;
    grow_put(to, "\n", 1);
}

static void put_cell(const struct columns *table, const int *widths, int c, const char *text,
                     struct grow *to) {
    int blanks = widths[c] - width_of(text);
    bool right = table->column[c].number;
    grow_format(to, "%*s%s%*s  ", right ? blanks : 0, "", text, right ? 0 : blanks, "");
    if (c == table->count - 1)
        end_line(to);
}

void columns_put(struct columns *table, struct grow *to) {
    int *widths = mem_zeroed((size_t)table->count, sizeof *widths);
    to->failed |= !widths || table->cells.failed;
    if (!to->failed) {
        const struct grow *cells = &table->cells;
        measure_widths(table, widths);
        for (int c = 0; c < table->count; c++)
            put_cell(table, widths, c, table->column[c].title, to);
        for (size_t at = 0, i = 0; at < cells->length; at += strlen(cells->text + at) + 1, i++)
            put_cell(table, widths, (int)(i % (size_t)table->count), cells->text + at, to);
    }
    free(widths);
    free(table->cells.text);
    table->cells = (struct grow){0};
}
