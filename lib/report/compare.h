// Runs side by side: adam-ctl compare.
#ifndef ADAM_REPORT_COMPARE_H
#define ADAM_REPORT_COMPARE_H

#include "report/history.h"

// What runs can be sorted by, ended by NULL: titles of the table's columns.
extern const char *const compare_keys[];

// Puts the best first: by a column the highest or the lowest, whichever is better there; runs that
// lack it come last, and equal ones stay in their order. NULL: nothing moves.
void compare_sort(struct history *runs, size_t count, const char *key);

// A row for each run, as aligned columns for people, to be freed with free(); or an object
// {"runs": [...]}, with null for what a run lacks. NULL when out of memory.
char *compare_text(const struct history *runs, size_t count);
json_t *compare_json(const struct history *runs, size_t count);

#endif
