// The choices of a training run, as on the command line of adam-worker. They are
// stored in each checkpoint, so that --resume goes on with them.
#ifndef ADAM_TRAIN_SETTINGS_H
#define ADAM_TRAIN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/json.h"
#include "ps/optimizer.h"
#include "train/schedule.h"

// Texts belong to others. {0} apart from settings_default is not meaningful.
struct settings {
    const char *data, *labels; // "-" is standard input
    const char *test, *test_labels;
    const char *from;  // kind of data and test; NULL: recognised
    const char *spool; // where standard input is kept for more epochs
    const char *ops;   // augmentation

    int64_t epochs; // 0: 10, or 1 from standard input
    int64_t batch;  // samples of a mini-batch
    bool sync;
    const char *optimizer; // NULL: sgd, or momentum when that is given
    double rate;
    const char *schedule;
    double warmup;   // epochs
    double momentum; // NAN: not given
    double decay, epsilon, clip;

    int64_t eval_every;           // epochs; 0: only at the end
    const char *checkpoint_every; // "1": epochs, "15m": minutes
    int64_t keep_last;
    double metrics_every; // seconds
    int64_t seed;
    int64_t threads; // 0: as many as there are processors
    int64_t loaders; // not stored: never changes the result
};

void settings_default(struct settings *settings);

// As an object of option names. What does not bear on the result (threads of a
// synchronous run, loaders) is left out. NULL when out of memory.
json_t *settings_write(const struct settings *settings);
// Sets what the object has; texts point into it.
void settings_read(struct settings *settings, const json_t *object);

// Calls `told` for each setting that differs between two objects, as text.
typedef void settings_told(void *self, const char *name, const char *before, const char *after);
void settings_compare(const json_t *before, const json_t *after, settings_told *told, void *self);

// The rule and the schedule that they describe. STATUS_USAGE.
int settings_optimizer(const struct settings *settings, struct optimizer *optimizer,
                       struct error *err);
int settings_schedule(const struct settings *settings, double epochs, struct schedule *schedule,
                      struct error *err);
// Either of *epochs and *seconds becomes positive, or none when the text is "0".
int settings_checkpoint_every(const struct settings *settings, double *epochs, double *seconds,
                              struct error *err);

#endif
