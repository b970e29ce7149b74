// Lines of metrics that runs of one process and of many have in common.
#ifndef ADAM_TRAIN_EVENTS_H
#define ADAM_TRAIN_EVENTS_H

#include "run/checkpoint.h"
#include "run/metrics.h"
#include "train/evaluate.h"

struct error;

// Writes a line that tells where the run is: step, epoch and samples of the checkpoint in
// the making, then the fields. Takes over the reference to `fields`.
int events_write(struct metrics *metrics, const struct checkpoint *checkpoint, const char *event,
                 json_t *fields, struct error *err);
// The fields of an "eval" line, and those of them that the tally's figure brings.
json_t *events_eval(const struct tally *tally, double seconds);
json_t *events_figures(const struct tally *tally);
// "epoch 3: test accuracy 98.42% (9842 of 10000), loss 0.05"
#define EVENTS_TEXT 160
void events_eval_text(char text[EVENTS_TEXT], double epoch, const struct tally *tally);
// A test of a checkpoint, as struct best has it.
struct best events_result(const struct tally *tally, const struct checkpoint *checkpoint);
// {"top1": VALUE} or another figure, null where the run was never tested ({0} but for the figure).
json_t *events_last(const struct best *last);
// RUN/DONE, with that.
int events_done(const char *folder, const struct checkpoint *checkpoint, const struct best *last,
                struct error *err);

#endif
