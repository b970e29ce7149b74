// Checkpoints: RUN/ckpt-00012000/{model.safetensors,manifest.json}, the symlink
// RUN/latest, and RUN/DONE after the last (adam-checkpoint(5)). Where others write its tensors it
// is in parts (run/checkpoint_parts.h).
#ifndef ADAM_RUN_CHECKPOINT_H
#define ADAM_RUN_CHECKPOINT_H

#include <stdbool.h>

#include "core/json.h"
#include "rule/optimizer.h"
#include "sample/sample.h"

struct content;
struct error;

// Everything a run needs to go on, and everything adam-eval needs to predict. Where an average of
// the weights is kept, it takes the place of the weights when it is saved, and when it is loaded
// without state: so whoever predicts has it (adam-checkpoint(5)).
// Owns all it points to; checkpoint_free releases it.
struct checkpoint {
    struct model *model;
    float *parameters; // model->parameter_count, aligned to MEM_ALIGN
    float *state; // as many for each array that the optimizer keeps, one behind the other; or NULL
    struct optimizer optimizer;
    struct classes classes;
    uint64_t clock;   // mini-batches applied
    uint64_t samples; // samples trained on
    double epoch;     // progress
    uint64_t seed;
    const char *scratch; // folder where parameters and state lie on the disk (store/scratch.h), as
                         // there may be more of them than memory; not owned. NULL: in memory
    json_t *run;         // settings and data digests, an object
    char *directory;     // as loaded: where relative paths of the settings begin, or NULL
    const char *command; // the command line, for the manifest; not owned, may be NULL
};

// Of the model's file in a checkpoint at `path`; 0: it is in parts, or not there.
uint64_t checkpoint_bytes(const char *path);
// Into RUN/ckpt-CLOCK, whole or not at all, then RUN/latest, and RUN/best to that which
// checkpoint->run names as the best (run/best.h); then removes all but that and the newest `keep`
// checkpoints up to this one (0: keeps all). STATUS_CANTCREATE, STATUS_IO.
int checkpoint_save(const struct checkpoint *checkpoint, const char *run, int keep,
                    struct error *err);

// `path` is a checkpoint's folder (or RUN/latest), a run folder, a .safetensors
// file that we wrote, or the index of parts. The CRC-32s of the manifest are checked
// before anything is believed; each length against the file's size. `sets` are
// applied to the stored model text. `state`: also the optimizer's state.
// STATUS_NOINPUT, STATUS_DATA; where it is a checkpoint that is damaged or gone, the error
// names the newest sound one of the same run.
int checkpoint_load(struct checkpoint *checkpoint, const char *path, const char *const *sets,
                    size_t set_count, bool state, struct error *err);
// The same; parameters and state lie in files of the folder `scratch`, unless it is NULL.
int checkpoint_load_into(struct checkpoint *checkpoint, const char *path, const char *scratch,
                         bool state, struct error *err);
// All of it but its tensors, without any of which it is otherwise as sound; `parameters` is NULL.
int checkpoint_load_model(struct checkpoint *checkpoint, const char *path, const char *const *sets,
                          size_t set_count, struct error *err);
// Of such a checkpoint what predicts of one partition of its model, into memory of the caller: so
// nobody holds all of it. STATUS_NOINPUT, STATUS_DATA.
struct cut;
int checkpoint_load_portion(float *own, const char *path, const struct checkpoint *loaded,
                            const struct cut *cut, int partition, struct error *err);
// The checkpoint that a path leads to now, as a path that goes on leading there when the run saves
// others. Free with free(); NULL: there is none, or out of memory.
char *checkpoint_resolve(const char *path);
// Adds to the error of a checkpoint that cannot be read which of the same run can. err may be NULL.
void checkpoint_name_sound(const char *path, struct error *err);
// The folder of the checkpoint that a path leads to, as checkpoint_load takes it: that of RUN, of
// RUN/latest, itself, or the one that a file lies in. Free with free(); NULL when out of memory.
char *checkpoint_folder(const char *path);
// The manifest of a checkpoint's folder, a new reference. STATUS_NOINPUT; STATUS_DATA: damaged.
int checkpoint_manifest(json_t **manifest, const char *folder, struct error *err);
void checkpoint_free(struct checkpoint *checkpoint);
// Frees the parameters and the state, which are NULL then.
void checkpoint_drop_values(struct checkpoint *checkpoint);
// Memory for the parameters and, with `state`, for what its optimizer keeps of them, of zeros; what
// is there stays. STATUS_IO.
int checkpoint_make_room(struct checkpoint *checkpoint, bool state, struct error *err);
// The average of the weights, NULL: it has none; and what is tested: the average, or the weights.
float *checkpoint_average(const struct checkpoint *checkpoint);
const float *checkpoint_tested(const struct checkpoint *checkpoint);
// Gives it another optimizer. What its rule and its average have goes on under the same rule; else
// the state is zeros (or NULL), and the average begins at the weights, if there are any. STATUS_IO.
int checkpoint_turn(struct checkpoint *checkpoint, const struct optimizer *next, struct error *err);
// Whether it lacks the state of its optimizer, which workers kept (settings_lack_state): what is
// there is zeros from now on. An average stays.
bool checkpoint_lacks_state(struct checkpoint *checkpoint);
// STATUS_DATA when the name of a class is not UTF-8: metadata are JSON, and hold no other.
int checkpoint_check_names(const struct classes *classes, struct error *err);
// The names as a list in JSON, as metadata hold them, to be freed with free(). NULL: out of memory,
// or one is not UTF-8.
char *checkpoint_class_names(const struct classes *classes);
// STATUS_DATA when the file `path`, of which this is the content, is of another kind than a
// checkpoint's: of which one, as far as that can be told, and what is expected.
int checkpoint_check_kind(const char *path, const struct content *content, struct error *err);

// --- the run folder -----------------------------------------------------------

// Makes the folder `path` unless it is there, and those around it. STATUS_CANTCREATE.
int run_folder_create(const char *path, struct error *err);

// A folder whose run is being written by another process is refused (STATUS_CANTCREATE).
int run_folder_free(const char *run, struct error *err);
// The same, and one whose run has a checkpoint. `resumes`: the command could go on with it.
int run_folder_check(const char *run, bool resumes, struct error *err);
// Makes the folder if there is none; removes the run in it if there is one and it is free.
int run_folder_make(const char *run, struct error *err);
// Whether the run in the folder has a checkpoint.
bool run_folder_saved(const char *run);
// Whether a run began in the folder and ended before it had saved a checkpoint.
bool run_folder_begun(const char *run);

// The name of a checkpoint within the run: "RUN/ckpt-00012000"; free with free().
char *run_folder_checkpoint(const char *run, uint64_t clock);
// The folder of the run that a path leads into: of RUN itself, RUN/latest, RUN/best, a checkpoint
// RUN/ckpt-N or a file in it. Else `path`. Free with free(); NULL when out of memory.
char *run_folder_of(const char *path);
// The clocks of all checkpoints, newest first; free with free(). NULL: there is none.
uint64_t *run_folder_clocks(const char *run, size_t *count);
// Removes all but the newest `keep` (0: keeps all) of the checkpoints up to `clock` and the one to
// which RUN/best points, and what killed runs left half done. Newer checkpoints belong to a run
// that went on from an older one instead: they stay.
void run_folder_prune(const char *run, int keep, uint64_t clock);
// RUN/DONE, with the line `text` in it; or takes it away, for a run that goes on.
int run_folder_done(const char *run, const char *text, struct error *err);
bool run_folder_is_done(const char *run);
int run_folder_not_done(const char *run, struct error *err);
// A folder of plain files, and the files. What cannot be removed stays.
void run_folder_remove(const char *path);
// Renames such a folder to PATH.old, of which an earlier one is removed. STATUS_CANTCREATE.
int run_folder_set_aside(const char *path, struct error *err);

#endif
