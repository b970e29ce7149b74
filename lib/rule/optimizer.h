// Update rules. State lies beside the parameters: one float a parameter for
// momentum and adagrad, none for sgd.
#ifndef ADAM_RULE_OPTIMIZER_H
#define ADAM_RULE_OPTIMIZER_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/update.h"
#include "model/model.h"

struct dense_errors;
struct kernels;

extern const char *const rule_names[]; // of enum rule (kernels/update.h), NULL-terminated

struct optimizer {
    enum rule rule;
    float momentum; // share of the last step that goes on
    float decay;    // weight decay where the layer does not say
    float epsilon;  // adagrad: added to the root
    float clip;     // gradient norm of a layer above which it is scaled down; 0: never
    // How many learners with a state of their own change the same weights by this rule; 0: one.
    // Each sees that share of the mini-batches only. So that all of them together do what one
    // state does with all mini-batches, a velocity fades as many times as fast, each gradient
    // moving the weights as far in the end, and a sum of squares stands for as many times as many.
    unsigned learners;
};

// What of the state a rule keeps, for checkpoints: "momentum", "adagrad" or NULL.
const char *optimizer_state_name(enum rule rule);

// Whether the layer's gradient is finite; what is not must not reach the weights.
bool optimizer_accepts(const struct kernels *kernels, const struct layer *layer,
                       const float *gradient);

// The same for a dense layer's gradient that is still a product: whether its values
// are certainly finite. False says that one has to look at the gradient itself.
bool optimizer_accepts_product(const struct kernels *kernels, const struct dense_errors *errors);

// Scales the layer's gradient down to the norm `clip`, where it is longer.
void optimizer_clip(const struct optimizer *optimizer, const struct kernels *kernels,
                    const struct layer *layer, float *gradient);
// The same where the sum of its squares is known: the factor to multiply it by.
float optimizer_clip_factor(const struct optimizer *optimizer, double squares);
void optimizer_scale(float *gradient, size_t n, float factor);

// A part of a layer's parameters: n of them, counted from weights.offset, the biases
// behind the weights.
struct span {
    size_t first, n;
};
struct span optimizer_all(const struct layer *layer);

// The step that the layer's weights, or its biases, take at this learning rate (times
// layer->rate). Weights decay, biases do not.
struct update optimizer_weights_update(const struct optimizer *optimizer, const struct layer *layer,
                                       float rate);
struct update optimizer_biases_update(const struct optimizer *optimizer, const struct layer *layer,
                                      float rate);

// Applies `gradient` (that of the whole layer, as laid out from weights.offset) to a
// part of the layer's parameters in `parameters` and `state` (whole arrays; state
// may be NULL for sgd), by the steps above. May race with other threads on purpose (Adam 3.2.2,
// core/hogwild.h).
void optimizer_apply(const struct optimizer *optimizer, const struct kernels *kernels,
                     const struct layer *layer, struct span span, float *parameters, float *state,
                     const float *gradient, float rate);

// The same with the product, in one pass over the weights that also writes
// errors->dx. It is not clipped: its norm is not known before.
void optimizer_apply_product(const struct optimizer *optimizer, const struct kernels *kernels,
                             const struct layer *layer, float *parameters, float *state,
                             const struct dense_errors *errors, const float *dbiases, float rate);

#endif
