// Update rules (kernels/update.h), and the average of the weights that they make.
//
// What is kept of each parameter lies beside the parameters, in arrays as long as theirs: first the
// rule's state, none for sgd, two for adam and adamw, one for the others; then the average, if one
// is wanted.
#ifndef ADAM_RULE_OPTIMIZER_H
#define ADAM_RULE_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/update.h"
#include "model/model.h"

struct dense_errors;
struct kernels;

extern const char *const rule_names[]; // of enum rule (kernels/update.h), NULL-terminated

struct optimizer {
    enum rule rule;
    double momentum; // coefficient; of adam and adamw beta1, the decay rate of the mean gradient
    double beta2;    // rmsprop, adam, adamw: decay rate of the mean of squared gradients
    float decay;     // weight decay where the layer does not say
    float epsilon;   // adagrad, rmsprop, adam, adamw: added to the root
    float clip;      // gradient norm of a layer above which it is scaled down; 0: never
    float ema;       // decay rate of the average of the weights; 0: none is kept
    // How many learners with a state of their own change the same weights by this rule; 0: one.
    // Each sees that share of the mini-batches only. So that all of them together do what one
    // state does with all mini-batches, a velocity fades as many times as fast, each gradient
    // moving the weights as far in the end, and a sum of squares stands for as many times as many.
    unsigned learners;
    // How many threads and workers change the same running statistics, each by mini-batches of its
    // own; 0: one. Each moves them by that share, so that they stay the mean of as many as one
    // would make of them, and moves of many at once do not go too far.
    unsigned sharers;
    // Of adam and adamw, whose means begin at 0: the number of the update in hand since then, from
    // 1; 0: any later one.
    uint64_t step;
    size_t second; // floats from a parameter's place in one array to that in the next
};

// Arrays of state that a rule keeps, at most RULE_STATES.
enum { RULE_STATES = 2 };
int optimizer_states(enum rule rule);
// These, and the average behind them where there is one: at most KEPT_MOST.
enum { KEPT_MOST = RULE_STATES + 1 };
int optimizer_kept(const struct optimizer *optimizer);
// What an array of state is, for checkpoints: "momentum", "adam.exp_avg_sq"; NULL: the rule has
// none.
const char *optimizer_state_name(enum rule rule, int state);
// The settings of a rule where nothing is said; NAN: it does not have such a one.
struct optimizer_usual {
    double rate, momentum, beta2;
};
struct optimizer_usual optimizer_usual(enum rule rule);
// Whether steps are as long whatever the gradient's length is: those of the mean of some gradients
// are as long as those of each.
bool optimizer_is_adaptive(enum rule rule);
// The state from which the root is taken by which a step is divided; -1: there is none.
int optimizer_squares(enum rule rule);

// Whether the layer's gradient is finite; what is not must not reach the weights.
bool optimizer_accepts(const struct kernels *kernels, const struct layer *layer,
                       const float *gradient);

// The same for a dense layer's gradient that is still a product: whether its values
// are certainly finite. False says that one has to look at the gradient itself.
bool optimizer_accepts_product(const struct kernels *kernels, const struct dense_errors *errors);

// A part of a layer's parameters: n of them, counted from weights.offset, the biases
// behind the weights.
struct span {
    size_t first, n;
};
struct span optimizer_all(const struct layer *layer);

// Scales the layer's gradient down to the norm `clip`, where it is longer. The norm is that of
// weights and biases together: what running statistics have is no gradient of the loss, neither
// counts nor is scaled.
void optimizer_clip(const struct optimizer *optimizer, const struct kernels *kernels,
                    const struct layer *layer, float *gradient);
// The same by parts of the layer, of `gradient`, that of the whole layer: what they add to the sum
// of its squares; the factor by which that is scaled; and scales them.
double optimizer_length_squares(const struct kernels *kernels, const struct layer *layer,
                                struct span span, const float *gradient);
float optimizer_clip_factor(const struct optimizer *optimizer, double squares);
void optimizer_shorten(const struct layer *layer, struct span span, float *gradient, float factor);

// Multiplies n numbers.
void optimizer_scale(float *gradient, size_t n, float factor);

// The step that the layer's weights, or its biases, take at this learning rate (times
// layer->rate). Weights decay, biases do not. And that of running statistics, which have no state.
struct update optimizer_weights_update(const struct optimizer *optimizer, const struct layer *layer,
                                       float rate);
struct update optimizer_biases_update(const struct optimizer *optimizer, const struct layer *layer,
                                      float rate);
struct update optimizer_statistics_update(const struct optimizer *optimizer,
                                          const struct layer *layer);

// Moves the average of parameters [first, first + n), if one is kept: they have had `updates`
// updates since it moved last, of which optimizer->step is the newest. At the first update of all
// it becomes the weights, and goes on with a share that grows up to optimizer->ema, with t updates
// before this one t / (t + 9). Arrays as below. May race with other threads on purpose.
void optimizer_average(const struct optimizer *optimizer, const struct kernels *kernels,
                       const float *parameters, float *state, size_t first, size_t n,
                       unsigned updates);

// Applies `gradient` (that of the whole layer, as laid out from weights.offset) to a
// part of the layer's parameters in `parameters` and of what is kept of them in `state` (whole
// arrays; NULL where nothing is kept; else one follows the other at optimizer->second), by the
// steps above, and moves their average.
// May race with other threads on purpose (Adam 3.2.2, core/hogwild.h).
void optimizer_apply(const struct optimizer *optimizer, const struct kernels *kernels,
                     const struct layer *layer, struct span span, float *parameters, float *state,
                     const float *gradient, float rate);

// The same with the product, in one pass over the weights that also writes
// errors->dx. It is not clipped: its norm is not known before.
void optimizer_apply_product(const struct optimizer *optimizer, const struct kernels *kernels,
                             const struct layer *layer, float *parameters, float *state,
                             const struct dense_errors *errors, const float *dbiases, float rate);

#endif
