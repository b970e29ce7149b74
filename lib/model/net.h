// A training context: everything one thread needs to pass samples through a
// model, allocated once.
//
// "Each thread allocates a training context for feed-forward evaluation and back
//  propagation. This training context stores the activations and weight update
//  values computed during back-propagation for each layer. The context is
//  pre-allocated to avoid heap locks while training." (Adam 3.2.1)
#ifndef ADAM_MODEL_NET_H
#define ADAM_MODEL_NET_H

#include "kernels/pass.h"
#include "model/model.h"

struct dense_errors;
struct error;
struct kernels;

struct net; // belongs to one thread

// NET_FOLDED: predicts by parameters in which batch norms are folded (model/fold.h).
enum net_mode { NET_PREDICT, NET_FOLDED, NET_TRAIN };

// For at most `most` samples a pass. The model and the kernels must outlive it.
int net_open(struct net **out, const struct model *model, const struct kernels *kernels, int most,
             enum net_mode mode, struct error *err);
void net_close(struct net *net);
// Bytes that net_open would allocate; SIZE_MAX when that does not fit.
size_t net_bytes(const struct model *model, int most, enum net_mode mode);

// How many of a mini-batch of n samples a net should pass forward and back at a time, so that
// "the working sets for the operations fit in the L3 cache" (Adam 3.2.4), and in the L2 cache
// where they can; n: all.
int net_part(const struct model *model, const struct kernels *kernels, int n);
// How many of n samples that are to be predicted a net should pass first: all, or, where a rest
// that fills no vector is faster by itself, those before it.
int net_first(const struct model *model, const struct kernels *kernels, int n);
// The most samples of a pass, and the floats of each.
int net_most(const struct net *net);
size_t net_sample(const struct net *net);
int net_outputs(const struct net *net); // classes, or numbers, of a sample

// This thread is number `thread` of `threads` that share weights without locks: in large
// layers it begins where the others are not, so that they do not wait for each other's
// cache lines. Sums of error gradients are added up in another order then. At first: 0 of 1.
void net_set_thread(struct net *net, int thread, int threads);

// Offered the forward pass of a dense layer over n samples: y (n x units) = W x + b for
// x (n x inputs). Who takes it, true, has written y.
typedef bool net_share(void *self, const struct layer *layer, float *y, const float *x, int n);
// From the next pass on; NULL: nobody takes any.
void net_shared(struct net *net, net_share *share, void *self);

// From the next pass on: what is kept of weights, which passes of this net are to be given
// (model/prepared.h), which must outlive them. Not with NET_TRAIN.
struct prepared;
void net_prepared(struct net *net, const struct prepared *prepared);

enum net_pass { NET_FORWARD, NET_BACKWARD };

// Told, for measuring, each time that a layer has done its part of a pass, the
// conversions that it needed included: first the input layer, when net_forward
// has begun; of the backward pass only layers whose error gradients somebody wants, before
// `ready`. What passes between two calls is the work of the layer of the second. Layers
// that are passed block by block are told of for each block.
typedef void net_watch(void *self, const struct layer *layer, enum net_pass pass);
// From the next pass on; NULL: nobody is told.
void net_watched(struct net *net, net_watch *watch, void *self);

// Useful multiply-adds of one layer in one pass of one sample: weights times what
// exists (padding does not), and in the backward pass only the gradients that are
// wanted: not the error gradients of inputs below which nothing learns.
uint64_t net_multiplies(const struct net *net, const struct layer *layer, enum net_pass pass);

// Of the last pass: how many samples the blocks of a layer hold; 0: plain samples.
int net_lanes(const struct net *net, const struct layer *layer);
// The way that the layer takes in that layout, for people; NULL: it has only one.
const char *net_way(const struct net *net, const struct layer *layer, enum conv_pass pass);

// The forward pass of n samples. `input` is n x channels x height x width.
// `parameters` (model->parameter_count floats) may be written by other threads
// meanwhile (core/hogwild.h). `draw` (n numbers) and `seed` decide what dropout
// drops; NULL: nothing is dropped, as in evaluation.
void net_forward(struct net *net, const float *parameters, const float *input, int n,
                 const uint64_t *draw, uint64_t seed);

// After net_forward: n x classes: probabilities (softmax), one-vs-all (logistic), or numbers
// (linear). Valid until the next call.
const float *net_scores(const struct net *net);
// After net_forward: the outputs of the last layer, whatever it is, n x channels x height x width.
void net_last_outputs(const struct net *net, float *to);

// Sum over the n samples of the cross-entropy against labels[0..n), in training smoothed, and each
// class weighted, as the output layer asks; a sample whose label is below 0 (it has none) adds
// nothing. Of samples that have other targets see net_targets. Of a partition's net the share of
// its own outputs; 0: it has none.
double net_loss(const struct net *net, const int32_t *labels);

// Offered the gradient of a dense layer before it is computed, as the product that
// it is (kernels/dense.h), with that of the biases. Who takes it, true, has written
// errors->dx and sees to the update; `ready` is not told then. "we can send the
// activation and error gradient vectors [...] where the matrix multiply can be
// performed locally to compute and apply the weight updates" (Adam 3.2.3)
typedef bool net_offer(void *self, const struct layer *layer, const struct dense_errors *errors,
                       const float *dbiases);
// From the next backward pass on; NULL: nobody takes products.
void net_offered(struct net *net, net_offer *offer, void *self);

// Of the next losses and backward passes: sample i has its label by share[i] alone, and by the rest
// other[i]. Both valid until they are set anew; NULL: the label has all of it.
void net_mixed(struct net *net, const int32_t *other, const float *share);

// Of the next losses and backward passes: what the samples have as targets in the place of labels,
// n x outputs, valid until they are set anew; NULL: their labels. To logistic outputs they say of
// each class, by 1 or 0 or what lies between, whether the sample is of it; to linear ones what they
// are to give. The loss of a sample is then
//   logistic  the sum over the classes of the one-vs-all cross-entropies, smoothed, and weighted
//             by the class, as the output layer asks
//   linear    the mean over the outputs of the squares of the errors, or of Huber's losses
// Linear outputs take a label for 1 where it is and 0 elsewhere.
void net_targets(struct net *net, const float *targets);

// Told as soon as the gradient of one layer's parameters is complete, last layer
// first, so that updates and sending overlap the rest of the backward pass.
typedef void net_ready(void *self, const struct layer *layer, const float *gradient);

// From the next backward pass on: adds to `gradient` what else it would write there. Only
// of models for which net_part() would not have all samples at once.
void net_adds(struct net *net, bool adds);

// The backward pass of the last net_forward (NET_TRAIN only): writes into
// `gradient` (parameter_count floats) the gradient of scale * loss, but of frozen layers
// (layer_learns). It ends at the lowest layer that learns: without any it does nothing. `ready` may
// be NULL; it may change the parameters of the layer it is told about.
void net_backward(struct net *net, const float *parameters, const int32_t *labels, float scale,
                  float *gradient, net_ready *ready, void *self);

// Of the last pass: whether the layer's biases have a gradient. Not where it is frozen, and then
// nothing is written there; nor where what they add is taken away again by the norm behind, and
// then it is 0.
bool net_feels_biases(const struct net *net, const struct layer *layer);

// --- partitions -------------------------------------------------------------------------
//
// The net of a partition (model/cut.h) waits in its passes for what others send: "We use a dataflow
// framework to trigger progress on individual images based on arrival of data from remote machines"
// (Adam 3.2.5). So its thread begins a pass, and goes on with it, or with that of another net, when
// something has come.

// What carries pieces of an exchange from partition to partition.
struct net_wire {
    // Whether what was sent last in this exchange, pass and direction has gone: its floats are the
    // net's to write.
    bool (*gone)(void *self, int exchange, enum net_pass pass, int to);
    // Takes `count` floats, which stay as they are until they have gone.
    void (*send)(void *self, int exchange, enum net_pass pass, int to, const float *floats,
                 size_t count);
    // `count` floats that `from` has sent; NULL: not yet. `read` says that they have been read.
    const float *(*receive)(void *self, int exchange, enum net_pass pass, int from, size_t count);
    void (*read)(void *self, int exchange, enum net_pass pass, int from);
    void *self;
};
// From the next pass on.
void net_wired(struct net *net, const struct net_wire *wire);

// As net_forward and net_backward, whose arguments stay valid until the pass is done.
// net_backward's `ready` is told meanwhile.
void net_begin_forward(struct net *net, const float *parameters, const float *input, int n,
                       const uint64_t *draw, uint64_t seed);
void net_begin_backward(struct net *net, const float *parameters, const int32_t *labels,
                        float scale, float *gradient, net_ready *ready, void *self);
// Goes on with the pass that was begun. False: it waits for another partition.
bool net_go(struct net *net);

#endif
