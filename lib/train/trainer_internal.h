// The parts of a run on this machine: trainer.c leads it from one stretch to the next. All is
// called by the thread that runs it; the loop's own threads see none of it.
#ifndef ADAM_TRAIN_TRAINER_INTERNAL_H
#define ADAM_TRAIN_TRAINER_INTERNAL_H

#include "kernels/kernels.h"
#include "run/best.h"
#include "run/metrics.h"
#include "train/feed.h"
#include "train/frozen.h"
#include "train/health.h"
#include "train/loop.h"
#include "train/trainer.h"

struct trainer {
    struct trainer_config *config;
    const struct model *model;
    const struct kernels *kernels;
    struct feed *feed;
    json_t *before; // record of the run that goes on: the settings' texts lie in it
    struct schedule schedule;
    enum home_kind kind;
    struct cut *cut; // NULL: the model is not cut
    struct home *home;
    struct frozen *frozen; // NULL: all layers are passed each time
    struct loader *loader;
    struct loop *loop;
    struct metrics *metrics;
    struct pace pace;
    int threads;
    uint64_t epochs;
    uint64_t number, last;              // the mini-batch to train on next; the one behind the end
    uint64_t first_samples;             // trained on before this process
    uint64_t saved;                     // the mini-batch before which that was done last
    double every_epochs, every_seconds; // checkpoints
    double started, trained, last_save; // seconds
    struct loop_sums reported;          // as of the last "train" line
    struct health health;
    bool examine; // the threads pause for a look at their units
    double reported_trained;
    struct trainer_progress late;
    uint64_t heard;     // samples when a stream was last heard of
    double heard_at;    // when that was; INFINITY: its silence was said
    struct best tested; // the last test
    struct best best;
    uint64_t tested_at; // the clock of the newest test; UINT64_MAX: none is known
    bool owed;          // a stop came before a test that is due here
    bool stop, save, ended;
    bool quit;      // it stops without saving
    bool pause;     // the director has a change
    bool changed;   // since the last checkpoint
    bool impatient; // it ended before its last epoch was over
};

// --- trainer_open.c -------------------------------------------------------------------

int trainer_open(struct trainer *trainer, struct error *err);
void trainer_close(struct trainer *trainer);
// 0: samples have targets, and no label to be guessed.
int trainer_classes(const struct trainer *trainer);

// --- trainer_report.c -----------------------------------------------------------------

// A line for the user.
void trainer_say(const struct trainer *trainer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// How the threads share the model, and what is amiss with it.
void trainer_say_start(const struct trainer *trainer);
// A line of metrics.jsonl; what cannot be written never ends a run. `fields` is taken over.
void trainer_report(struct trainer *trainer, const char *event, json_t *fields);
void trainer_report_start(struct trainer *trainer);
// Training since the last such line, if there was any.
void trainer_report_train(struct trainer *trainer);
// How far the run is; `doing` as in struct trainer_progress.
void trainer_show(struct trainer *trainer, const char *doing);
// What the caller wishes holds until it is done.
void trainer_hear(struct trainer *trainer);
// Where the run stands, from the sums of the loop.
void trainer_locate(struct trainer *trainer);
// The learning rate of a mini-batch.
double trainer_rate(const struct trainer *trainer, uint64_t batch_number);

// --- trainer_test.c -------------------------------------------------------------------

// A test that is due. One that a stop prevents is the first thing that the run does when it goes
// on: its checkpoint says so.
int trainer_test(struct trainer *trainer, struct error *err);
// Whether too many tests were not better than the best.
bool trainer_is_impatient(const struct trainer *trainer);

// --- trainer_save.c -------------------------------------------------------------------

// A checkpoint of what there is now, unless that is on the disk.
int trainer_save(struct trainer *trainer, struct error *err);
// Adds to an error which checkpoint is good; its status.
int trainer_name_last_good(const struct trainer *trainer, struct error *err);

// --- trainer_change.c -----------------------------------------------------------------

// While no thread trains: what the director wants, if anything.
void trainer_take_changes(struct trainer *trainer);
// The rates of `settings`; what cannot be obeyed without the number of samples is refused.
int trainer_schedule(const struct trainer *trainer, const struct settings *settings,
                     struct schedule *schedule, struct error *err);

#endif
