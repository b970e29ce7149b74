// The initial values of a model, one after the other: nobody need hold them all.
//
// Threads: a filler belongs to whoever fills with it.
#ifndef ADAM_MODEL_INIT_H
#define ADAM_MODEL_INIT_H

#include "core/random.h"
#include "model/model.h"

enum { MODEL_FILLER_BLOCK = 4096 }; // floats made at once, while they are in the L1 cache

struct model_filler {
    const struct model *model; // the caller's
    uint64_t seed;
    double share; // of He's deviation
    bool lively;
    int layer;          // that is being filled
    size_t done;        // floats of it that were made
    size_t given, made; // of the block
    struct random random;
    float block[MODEL_FILLER_BLOCK];
};

// The values of model_init from the first on.
struct model_filler model_filler(const struct model *model, uint64_t seed, double deviation);
// The next n floats in the order of the parameter space; at its end fewer.
void model_fill(struct model_filler *filler, float *into, size_t n);

#endif
