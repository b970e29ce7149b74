// RUN/metrics.jsonl: one JSON object a line, appended and flushed line by line
// (adam-metrics(5)). The file never ends a run: of writes that fail one after the other the first
// is STATUS_IO, and the others are STATUS_OK; each line is tried anew.
#ifndef ADAM_RUN_METRICS_H
#define ADAM_RUN_METRICS_H

#include <stdbool.h>

#include "core/json.h"

struct error;

// Which events there are, and what each line has beside v, t, role, rank and event, is in the
// manual.
struct metrics;

// STATUS_CANTCREATE, also when another process has it open: one run has one writer. With `shared`
// others may have it open that share it, too: the controllers of one run.
int metrics_open(struct metrics **out, const char *path, const char *role, int rank, bool shared,
                 struct error *err);
// Adds v, t, role, rank and event in front and writes the line. Takes over the
// reference to `fields`, also on failure. May be called by several threads.
int metrics_write(struct metrics *metrics, const char *event, json_t *fields, struct error *err);
// Writes a line that is there already, as another process of the run made it.
int metrics_put(struct metrics *metrics, const char *line, struct error *err);
void metrics_close(struct metrics *metrics);

// Puts a copy of another process's metrics in the place of those at `path`, unless these begin with
// all of the copy; does nothing when there is no copy. STATUS_CANTCREATE, STATUS_IO.
int metrics_adopt(const char *path, const char *copy, struct error *err);

// Such a line, without its newline, to be freed with free(); NULL when out of memory.
// Takes over the reference to `fields`.
char *metrics_line(const char *role, int rank, const char *event, json_t *fields);

#endif
