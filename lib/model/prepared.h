// Weights that stay as they are over many passes, made ready for them: what the nets of
// all threads that predict with the same parameters share.
//
// Large dense layers are faster with something that is kept of their weights (kernels/dense.h,
// dense_kept_kernels): where bytes can be multiplied, 16 bits of each, for any mini-batch;
// elsewhere sums of them, which take 5/4 of their memory, for mini-batches of 128 samples and more.
// Convolutions of single samples are faster with kernels of Winograd's filtering, which take 4
// times the memory of weights of 3x3 (kernels/conv.h, conv_kept_kernels). Batch norms are folded
// into what is below them.
//
// Any thread may call prepared_now and prepared_pass, for a net of its own.
#ifndef ADAM_MODEL_PREPARED_H
#define ADAM_MODEL_PREPARED_H

#include <stdint.h>

#include "model/net.h"

struct error;

struct prepared;

// Samples a pass for prediction: 256 where large dense layers, of which something is kept, do
// most of the work of the model; else `few`.
int prepared_batch(const struct model *model, const struct kernels *kernels, int few);

// For passes of `least` to `most` samples, or fewer now and then, by nets of this model and these
// kernels. Nothing is computed yet. All must outlive it, and the parameters must not change as long
// as it is there.
int prepared_open(struct prepared **out, const struct model *model, const struct kernels *kernels,
                  const float *parameters, int least, int most, struct error *err);
void prepared_close(struct prepared *prepared);

// The parameters for passes of nets that fold (NET_FOLDED).
const float *prepared_parameters(const struct prepared *prepared);

// The net's passes use what is kept from now on. The first thread makes it, others wait for
// that. Without memory for it passes go on as they are.
void prepared_now(struct prepared *prepared, struct net *net);

// The same when mini-batch `number`, counted from 0, comes next and it is time. Preparing
// takes as long as some thousand samples or some passes save, so it is done when as many have
// passed: who predicts less loses nothing, and nobody loses more than it takes. That depends
// on the number alone, so scores do not depend on threads.
void prepared_pass(struct prepared *prepared, struct net *net, uint64_t number);

// Of one layer, for nets; NULL: none.
const float *prepared_kept(const struct prepared *prepared, const struct layer *layer);

#endif
