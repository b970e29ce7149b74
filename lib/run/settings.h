// The choices of a training run: as on the command line of adam-worker, in the file of a
// run of many processes (adam-run(5)), and on the wire. They are stored in each
// checkpoint, so that --resume goes on with them. One table of keys serves all of these.
#ifndef ADAM_RUN_SETTINGS_H
#define ADAM_RUN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/json.h"
#include "rule/optimizer.h"
#include "rule/protocol.h"
#include "run/schedule.h"

struct error;

// Where the weights of asynchronous threads are; train/home.h says what each means.
enum home_kind { HOME_SHARED, HOME_COPIES, HOME_JOINED };
extern const char *const home_names[]; // "shared", "copies", "joined", NULL
// The kind of that name, which is one of them.
enum home_kind home_kind_named(const char *name);

// Texts belong to others. {0} apart from settings_default is not meaningful.
struct settings {
    const char *data, *labels; // "-" is standard input
    const char *test, *test_labels;
    const char *targets, *test_targets; // tables of them (sample/targets.h), in the place of labels
    const char *from;                   // kind of data and test; NULL: recognised
    const char *spool;                  // where standard input is kept for more epochs
    const char *ops;                    // augmentation
    double mixup, cutmix;               // alpha of mixing samples in each way; 0: not
    const char *init_from;              // checkpoint whose layers a fresh run begins with
    // SETTINGS_BALANCED, or a file: what a run begins with (train/class_weights.h); NULL: the
    // model's.
    const char *class_weights;

    int64_t epochs;     // 0: 10, or 1 from standard input
    int64_t last_epoch; // with which patience ends a run of many; 0: none; no one's choice
    int64_t batch;      // samples of a mini-batch
    bool sync;
    const char *home;      // of home_names; NULL: the fastest
    int64_t partitions;    // of the model (model/cut.h), each with a thread; 1: it is not cut
    int64_t in_flight;     // mini-batches, or parts of one, that they have at a time
    const char *optimizer; // NULL: sgd, or momentum when that is given
    double rate;           // NAN: not given
    const char *schedule;
    double warmup;          // epochs
    double momentum, beta2; // NAN: not given
    double decay, epsilon, clip;
    double ema;          // decay rate of an average of the weights; 0: none
    int64_t state_since; // the clock at which the optimizer's state was zeros; no one's choice

    double eval_every;            // epochs; 0: only at the end
    const char *checkpoint_every; // "1": epochs, "15m": minutes
    int64_t keep_last;
    int64_t patience;     // tests without a better one, after which the run ends; 0: any
    double metrics_every; // seconds
    int64_t seed;
    int64_t threads; // 0: as many as there are processors
    // Not stored: they never change the result.
    int64_t loaders;
    uint64_t frozen_memory; // bytes for what frozen layers give (train/frozen.h)

    // Of many processes (adam-consistency(7)).
    const char *model;        // its file
    const char *protocol;     // async, hardsync, softsync:N
    const char *push;         // delta or gradient
    int64_t push_every;       // mini-batches between two pushes; 0: by cost
    int64_t pull_every;       // mini-batches between two pulls; 0: as push_every
    const char *overlap;      // of gradients and computing: auto, yes or no
    const char *factors;      // auto, none, or names of layers: LAYER,...
    const char *modulate;     // mean, each or none
    int64_t reference_batch;  // of the rate x sqrt(samples / this); 0: batch, or measured
    int64_t max_staleness;    // of a push; 0: any
    const char *ack;          // when a push counts as done: memory, replicated or durable
    int64_t warm_start;       // samples during which one worker trains
    const char *on_peer_loss; // reform or stop
    const char *on_data_loss; // wait, end or continue
    // Seconds for which the run waits for a data server, and for a parameter server.
    double data_patience, server_patience;
    double controller_patience;    // seconds for which the members wait for the controller
    double silence;                // seconds after which a member that is not heard is missed
    double epoch_end;              // share of the replicas that must have finished theirs
    int64_t servers, data_servers; // that must be there before training starts
    int64_t copies;                // of each bucket on parameter servers, 1 to 3
    int64_t workers;               // the same; 0: the first one begins
    const char *checkpoint_parts;  // off: one file; shared, local: each server writes a part
};

#define SETTINGS_EMA_MOST 0.9999999 // below 1 also as a float
#define SETTINGS_BALANCED "auto"
#define SETTINGS_EPSILON 1e-8 // of rules that have one, where nothing is said
void settings_default(struct settings *settings);
// Numbers have the digits that checkpoints keep of them, so that a run goes on with the same.
void settings_round(struct settings *settings);

// Sets one key of a run of many processes, as a person chooses it, from text, which must outlive
// the settings. STATUS_USAGE: no such key, with the nearest one; a value that it cannot have; what
// a run keeps by itself, and a number where 0 only means that nobody has chosen.
int settings_choose(struct settings *settings, const char *key, const char *value,
                    struct error *err);
// Lines KEY=VALUE, all of them that have a value, to be freed with free(); NULL when out of
// memory.
char *settings_text(const struct settings *settings);
// Sets what the lines say, all or nothing. Cuts `text` into pieces, which must outlive the
// settings.
int settings_parse(struct settings *settings, char *text, struct error *err);
bool settings_known(const char *key); // whether it is one of a run of many processes
// Whether it has a meaning in these alone, and in adam-worker alone.
bool settings_is_of_many(const char *key);
bool settings_is_of_one(const char *key);
// Whether the key may change while a run of many processes goes on. False for unknown ones.
bool settings_live(const char *key);
// Whether a value of it is the path of a file: "auto" and "auto=0.1" mean none where they have
// another meaning.
bool settings_path(const char *key, const char *value, size_t length);
// Key `index` that a run of many processes has for people, from 0; NULL behind the last.
const char *settings_key(size_t index);
// The same of the keys that may change while it goes on.
const char *settings_live_key(size_t index);
// Whether a checkpoint can hold them: it is JSON, which is UTF-8. STATUS_USAGE.
int settings_check_texts(const struct settings *settings, struct error *err);
// The same of any text, or NULL, by the name that the user knows.
int settings_check_text(const char *name, const char *text, struct error *err);
// Whether there is something to mix where samples are to be mixed. STATUS_USAGE.
int settings_check_mixing(const struct settings *settings, struct error *err);
// Whether samples that have targets are not meant to have labels, too. STATUS_USAGE.
int settings_check_targets(const struct settings *settings, struct error *err);
// Whether what is said of tests is of tests that there are. STATUS_USAGE.
int settings_check_tests(const struct settings *settings, struct error *err);
// Whether what is said of partitions is of a model that is cut. STATUS_USAGE.
int settings_check_partitions(const struct settings *settings, struct error *err);
// All of these, and whether they make sense together. STATUS_USAGE.
int settings_check(const struct settings *settings, struct error *err);

// As an object of option names. What does not bear on the result (threads of a
// synchronous run, loaders) is left out, and so is what many processes would do, where it
// is as usual. NULL when out of memory.
json_t *settings_write(const struct settings *settings);
// Sets what the object has; texts point into it.
void settings_read(struct settings *settings, const json_t *object);

// Told of a setting, by its name, and two values of it.
typedef void settings_told(void *self, const char *name, const char *before, const char *after);
// Makes relative paths in the object absolute that begin in the folder `directory`: unless the
// file is missing there and present relative to where the process is. Calls `told` for each.
void settings_relocate(json_t *object, const char *directory, settings_told *told, void *self);

// Calls `told` for each setting that differs between two objects, as text.
void settings_compare(const json_t *before, const json_t *after, settings_told *told, void *self);

// The share of the training set that is held out for tests ("auto=0.1"); 0: none is, the test set
// is a file. STATUS_USAGE.
int settings_holdout(const struct settings *settings, double *share, struct error *err);

// Whether a run with this record, as checkpoints have it, left the state of its rule to workers,
// which pushed deltas: no checkpoint has it.
bool settings_lack_state(const json_t *run);
// They are those of a run of many processes that goes on from a checkpoint of this clock, of a run
// with the record `before`: of another rule the state does not go on, nor what the checkpoint lacks
// and servers keep now.
void settings_go_on(struct settings *settings, const json_t *before, uint64_t clock);

// Of a run with other settings than those of `before`: takes back what had a meaning beside those
// and has none beside these, such as values that another rule does not have; but not what `given`
// has, which somebody means.
void settings_fit(struct settings *settings, const struct settings *before,
                  const struct settings *given);

// Epochs of a run over a data set, along which its schedule lies; and those after which it ends,
// which are no more.
int64_t settings_epochs(const struct settings *settings);
int64_t settings_last_epoch(const struct settings *settings);
// The learning rate before its schedule: as given, or the usual one of the rule.
double settings_rate(const struct settings *settings);
// The rule and the schedule that they describe. STATUS_USAGE.
int settings_optimizer(const struct settings *settings, struct optimizer *optimizer,
                       struct error *err);
int settings_schedule(const struct settings *settings, double epochs, struct schedule *schedule,
                      struct error *err);
// Whether they can be obeyed where nobody knows how many samples an epoch has: no rate depends on
// how far it is, and nothing is done within it. STATUS_USAGE.
int settings_check_uncounted(const struct settings *settings, struct error *err);
// How updates become weights, and what workers send. STATUS_USAGE.
int settings_protocol(const struct settings *settings, struct protocol *protocol,
                      enum protocol_push *push, struct error *err);
// Which layers push factors: as the settings say, or none, where auto is asked for and something
// counts updates, which several messages a push would be.
const char *settings_factors(const struct settings *settings, const struct optimizer *optimizer,
                             const struct protocol *protocol);
// Whether workers compute while the weights come that they asked for. "auto": where staleness is
// bounded by the protocol it is worth a wait.
bool settings_overlap(const struct settings *settings, const struct protocol *protocol);
// Whether pushes are answered when all copies have them. Also where workers share steps, whatever
// `ack` says: a step waits for the copies then.
bool settings_await_copies(const struct settings *settings, const struct protocol *protocol);
// Either of *epochs and *seconds becomes positive, or none when the text is "0".
int settings_checkpoint_every(const struct settings *settings, double *epochs, double *seconds,
                              struct error *err);

#endif
