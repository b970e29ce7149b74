// RUN/metrics.jsonl: one JSON object a line, appended and flushed line by line
// (adam-metrics(5)). The file never ends a run: when a write fails, it is
// reported once and tried again at the next line.
#ifndef ADAM_RUN_METRICS_H
#define ADAM_RUN_METRICS_H

#include <stdbool.h>

#include "core/json.h"

struct error;

// Every line has v (1), t (seconds since 1970), role, rank, event, and for all
// but "start": step (mini-batches), epoch (real), samples. By event:
//   start       host, command, version, seed, threads, batch, mode, cpu, model,
//               parameters, connections, train {path, samples, digest}, test {...}, resumed
//   train       loss (mean since the last line), rate, images_per_s,
//               connections_per_s, wait (share of the threads' time, 0..1), seconds
//   eval        top1, top5, loss, samples_tested, seconds
//   checkpoint  path, seconds
//   nan         loss
//   stop        reason ("signal", "nan", "error"), error (a message, with "error")
//   done        seconds, top1
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
