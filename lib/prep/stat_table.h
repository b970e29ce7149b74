// Statistics as people and programs read them.
#ifndef ADAM_PREP_STAT_TABLE_H
#define ADAM_PREP_STAT_TABLE_H

#include "prep/statistics.h"

// A name and a value a line, then a line for each class: label, samples, name.
// *text is the caller's, freed with free().
int stat_table_text(char **text, const struct statistics *statistics, struct error *err);

// One JSON object and a newline; adam-prep(1) names the keys. STATUS_DATA when a
// class name is not UTF-8.
int stat_table_json(char **text, const struct statistics *statistics, struct error *err);

#endif
