// How large a terminal is, and pages that are drawn on it in place. Used by cmd/ only.
#ifndef ADAM_CLI_TERMINAL_H
#define ADAM_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

struct terminal_size {
    int columns, rows;
};

// 80x24 where nobody knows.
struct terminal_size terminal_size(int fd);

// Draws lines of ASCII text over what the terminal shows, from its upper left corner. What
// does not fit is left out.
void terminal_page(FILE *out, struct terminal_size size, const char *text);

// Whether a line of the text is wider than the terminal.
bool terminal_cuts(struct terminal_size size, const char *text);

#endif
