// Weights that stay as they are over many passes, made ready for them: what the nets of
// all threads that predict with the same parameters share.
//
// Large dense layers are faster by sums of weights (kernels/kernels.h, dense_by_sums),
// which take 5/4 of the memory of those weights, for mini-batches of 128 samples and more.
//
// Any thread may call prepared_now and prepared_pass, for a net of its own.
#ifndef ADAM_MODEL_PREPARED_H
#define ADAM_MODEL_PREPARED_H

#include <stdint.h>

#include "model/net.h"

struct prepared;

// Samples a pass for prediction: 256 where large dense layers, which have sums at so many, do
// most of the work of the model; else `few`.
int prepared_batch(const struct model *model, const struct kernels *kernels, int few);

// For passes of at most `most` samples by nets of this model and these kernels. Nothing is
// computed yet. All must outlive it, and the parameters must not change as long as it is
// there.
int prepared_open(struct prepared **out, const struct model *model, const struct kernels *kernels,
                  const float *parameters, int most, struct error *err);
void prepared_close(struct prepared *prepared);

// The net's passes use the sums from now on. The first thread makes them, others wait for
// that. Without memory for them passes go on as they are.
void prepared_now(struct prepared *prepared, struct net *net);

// The same when mini-batch `number`, counted from 0, comes next and it is time. Making sums
// takes as long as some thousand samples save, so they are made when as many have passed:
// who predicts less loses nothing, and nobody loses more than they take. That depends on
// the number alone, so scores do not depend on threads.
void prepared_pass(struct prepared *prepared, struct net *net, uint64_t number);

// Of one layer, for nets; NULL: none.
const float *prepared_sums(const struct prepared *prepared, const struct layer *layer);

#endif
