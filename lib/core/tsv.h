// Tab-separated values: one record a line, so that cut, awk and sort read them.
#ifndef ADAM_CORE_TSV_H
#define ADAM_CORE_TSV_H

#include <stdio.h>

// A value from outside; a tab, newline, carriage return or backslash in it is
// written \t \n \r \\.
void tsv_text(FILE *out, const char *text);

#endif
