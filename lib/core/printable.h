// Text from outside that people read. Names of files, classes, hosts and members can hold
// anything, also what drives a terminal or forges a line of a log. Everything that is not plain
// UTF-8 is written as in C: \n, \t, \r, and \x1b byte by byte for other control characters (C0,
// DEL, C1), for marks that separate lines or turn the direction of text, and for damaged bytes.
#ifndef ADAM_CORE_PRINTABLE_H
#define ADAM_CORE_PRINTABLE_H

#include <stddef.h>
#include <stdio.h>

// A name or a line: writes text[0..length) into to[0..room), always terminated, cut between two
// characters where it does not fit.
void printable_copy(char *to, size_t room, const char *text, size_t length);

// The same for a message: tabs and ends of lines stay as they are.
void printable_lines(char *to, size_t room, const char *text, size_t length);

// A value of a table that programs read: a backslash is written \\, so that the text can be had
// back.
void printable_value(FILE *out, const char *text);

#endif
