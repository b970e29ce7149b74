// Statistics as people and programs read them.
#ifndef ADAM_PREP_STAT_TABLE_H
#define ADAM_PREP_STAT_TABLE_H

#include "prep/statistics.h"

struct error;

// A name and a value a line, then a line for each class: label, samples, name.
// `picture` is the file with the mean of each pixel, or NULL. *text is the caller's, freed with
// free().
int stat_table_text(char **text, const struct statistics *statistics, const char *picture,
                    struct error *err);

// One JSON object and a newline; adam-prep(1) names the keys. STATUS_DATA when a
// class name is not UTF-8.
int stat_table_json(char **text, const struct statistics *statistics, const char *picture,
                    struct error *err);

// The mean of each pixel into the file `path`, a .npy array of one picture. As sink_close.
int stat_table_mean(const char *path, const struct statistics *statistics, bool force,
                    struct error *err);

#endif
