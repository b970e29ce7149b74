// Checkpoints: RUN/ckpt-00012000/{model.safetensors,manifest.json}, the symlink
// RUN/latest, and RUN/DONE after the last (adam-checkpoint(5)).
#ifndef ADAM_TRAIN_CHECKPOINT_H
#define ADAM_TRAIN_CHECKPOINT_H

#include "core/json.h"
#include "data/sample.h"
#include "train/optimizer.h"

// Everything a run needs to go on, and everything adam-eval needs to predict.
// Owns all it points to; checkpoint_free releases it.
struct checkpoint {
    struct model *model;
    float *parameters; // model->parameter_count, aligned to MEM_ALIGN
    float *state;      // the same count, or NULL
    struct optimizer optimizer;
    struct classes classes;
    uint64_t clock;   // mini-batches applied
    uint64_t samples; // samples trained on
    double epoch;     // progress
    uint64_t seed;
    json_t *run; // the run's other settings (options as given, data digests), an object
};

// Into RUN/ckpt-CLOCK, whole or not at all, then RUN/latest; then removes all but
// the newest `keep` checkpoints (0: keeps all). STATUS_CANTCREATE, STATUS_IO.
int checkpoint_save(const struct checkpoint *checkpoint, const char *run, int keep,
                    struct error *err);

// `path` is a checkpoint's folder (or RUN/latest), a run folder, or a
// .safetensors file that we wrote. The CRC-32s of the manifest are checked
// before anything is believed; each length against the file's size. `sets` are
// applied to the stored model text. `state`: also the optimizer's state.
// STATUS_NOINPUT, STATUS_DATA.
int checkpoint_load(struct checkpoint *checkpoint, const char *path, const char *const *sets,
                    size_t set_count, bool state, struct error *err);
void checkpoint_free(struct checkpoint *checkpoint);

#endif
