// A table for people to read: columns as wide as their widest cell.
#ifndef ADAM_CORE_COLUMNS_H
#define ADAM_CORE_COLUMNS_H

#include "core/grow.h"

struct column {
    const char *title;
    bool number; // set to the right
};

// {.column = titles, .count = how many} begins a table.
struct columns {
    const struct column *column;
    int count;
    struct grow cells; // row by row, each ending in a NUL
};

// The next cell, from left to right and from row to row, made printable (core/printable.h).
void columns_cell(struct columns *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Puts titles and all full rows behind `to`, and frees the cells. That memory ran
// out shows in `to`.
void columns_put(struct columns *table, struct grow *to);

#endif
