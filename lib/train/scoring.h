// From pictures to the scores that a model gives them: decoding, operations, the pass through
// the net. All who predict do it here, so that a picture has the same scores everywhere.
#ifndef ADAM_TRAIN_SCORING_H
#define ADAM_TRAIN_SCORING_H

#include "data/input.h"
#include "model/net.h"
#include "ops/ops.h"

struct error;
struct partition_processes;
struct prepared;

enum { SCORING_BATCH = 32 }; // samples a pass, unless more are faster

// The caller keeps what it points to; the parameters must not change.
struct scoring_config {
    const struct model *model;
    const struct kernels *kernels;
    const float *parameters;
    const struct ops *before; // operations before the model's own; may be NULL
    const struct ops *input;  // the model's input operations; may be NULL
    struct decode_options decode;
    int targets; // numbers that samples have as targets; 0: a label at most
    int batch;   // samples a pass at most; 0: 256 where that is faster, else 32
    bool exact;  // never by prepared weights (model/prepared.h)
    bool few;    // passes will often be of single samples
    // In which the model is, with lanes for all scorers and passes of `batch` samples, in the place
    // of the parameters; NULL: it is here.
    struct partition_processes *processes;
};

// What all threads share. Plain to read; {0} is not open, and can be closed.
struct scoring {
    struct scoring_config config;
    struct input_config input;
    struct decode_options decode; // of pictures, which may be decoded smaller than they are
    struct prepared *prepared;
};

// It must stay where it is until scoring_close. STATUS_IO: out of memory.
int scoring_open(struct scoring *scoring, const struct scoring_config *config, struct error *err);
void scoring_close(struct scoring *scoring);

// What one thread owns: a mini-batch that is filled, and the net that it passes through. {0} is
// not open, and can be closed.
struct scorer {
    const struct scoring *scoring;
    struct net *net; // NULL: the model is in other processes, too; then the next two
    int lane;
    double loss;           // of the last pass
    struct net_team *team; // that shares its passes of one sample; NULL: this thread has them alone
    struct input input;
    struct batch batch; // what was added since the last pass; .n of them
};

// `threads`: that share a pass of one sample (model/net_team.h); 1: nobody shares. STATUS_IO: out
// of memory, or a thread cannot be started.
int scorer_open(struct scorer *scorer, const struct scoring *scoring, int threads,
                struct error *err);
void scorer_close(struct scorer *scorer);

// Adds a sample to the mini-batch, which has room. Where samples have targets it has them, too. The
// picture is decoded, before any operation;
// the floats are channels x height x width, as after all operations. A sample that fails is
// not added: STATUS_DATA, STATUS_IO.
int scorer_add_picture(struct scorer *scorer, const struct image *picture, int32_t label,
                       const float *targets, struct error *err);
void scorer_add_floats(struct scorer *scorer, const float *values);

// Passes the mini-batch, which may be empty, as number `number` of all threads, counted from 0
// (prepared_pass). Gives batch.n x classes scores, valid until the next call; what is added next
// begins a new mini-batch once batch.n is 0 again. STATUS_UNAVAILABLE: of a model in several
// processes one is gone.
int scorer_pass(struct scorer *scorer, uint64_t number, const float **scores, struct error *err);
// The sum of the losses of that mini-batch, by its labels or targets (net_loss).
double scorer_loss(const struct scorer *scorer);

#endif
