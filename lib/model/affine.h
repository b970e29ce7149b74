// y = W x + b on flat vectors: what dense, softmax and logistic share.
#ifndef ADAM_MODEL_AFFINE_H
#define ADAM_MODEL_AFFINE_H

#include "model/pass.h"

struct dense_errors;

// out = units x 1 x 1, weights (units x inputs) and biases.
bool affine_shape(struct layer *layer, const struct shape *in, struct misfit *misfit);
// By units, or by inputs (layer_type.grain, share).
int affine_grain(const struct layer *layer, enum cut_way way);
void affine_share(struct share *share, const struct model *model);
void affine_scratch(const struct layer *layer, int n, bool train, size_t *kept, size_t *brief);
// As layer_type has it, by which passes of n samples are faster (kernels/dense.h,
// dense_kept_kernels).
size_t affine_kept_size(const struct layer *layer, const struct kernels *kernels, int n);
bool affine_keep(float *kept, const struct layer *layer, const struct kernels *kernels,
                 const float *weights);
struct team_cut affine_team_cut(const struct pass *pass);
void affine_forward(const struct pass *pass);
void affine_backward(const struct pass *pass);
// What comes of error gradients of which errors->dy, x, dx, n, units, inputs and scratch are given:
// dx, and the gradients of the layer's weights, unless somebody takes the product (net_offer), and
// biases.
void affine_back(const struct pass *pass, struct dense_errors *errors);
// Where this thread begins to pass over so many units: a whole cache line of outputs.
int affine_first(const struct pass *pass, int units);
const char *affine_way(const struct pass *pass, enum conv_pass part);

#endif
