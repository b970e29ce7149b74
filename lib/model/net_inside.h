// What a net is made of. Inside lib/model/net*.c only.
//
//   net_open.c      which buffers there are, and whom they serve
//   net_places.c    which of them lie in one place by turns
//   net_lend.c      error gradients that several layers have in one place
//   net_sums.c      what is added where it is made
//   net_layout.c    where in them one part of a pass reads and writes
//   net_bands.c     the same for some rows of it
//   net_team.c      passes of several threads, each a part of every layer
//   net_part.c      how many samples at a time
//   net_loss.c      the loss, and the error gradients that it begins with
//   net_targets.c   the same for samples that have other targets than a label
//   net.c           the passes
//   net_exchange.c  how they pass an exchange layer, step by step
//
// Layers that hold samples in blocks (kernels/kernels.h) and follow one another are a
// stack, which is passed part by part: a block, or some small ones, through all of its layers, then
// the next. A layer that looks at all samples together (batchnorm) begins a stack; the stack before
// shows it each part, as the last thing forward and the first back. "the working sets for the
// operations fit in the L3 cache" is what Adam 3.2.4 asks for; so what one layer writes the next
// finds in the L2 cache, and what nobody reads later takes the room of one part, however large the
// mini-batch is. Where one block of outputs is too large for that, layers up to a max pool go band
// by band.
#ifndef ADAM_MODEL_NET_INSIDE_H
#define ADAM_MODEL_NET_INSIDE_H

#include "core/mem.h"
#include "model/fuse.h"
#include "model/net.h"
#include "model/pass.h"

// What a layer has in this context: its part of the pass, and whether its error gradients
// are wanted (some layer at or below it learns). Where its layout differs
// from that of an input (model/layout.h), it reads a turned copy of that input and
// writes error gradients that are turned back.
struct node {
    struct pass pass; // of the part in hand
    struct fused fused;
    bool wanted, blocked;
    bool taken;                      // somebody took its gradient as a product (net_offer)
    uint32_t lends;                  // bits of the inputs whose error gradients are its own
    bool lent;                       // of a sum that reads it (net_lend.c),
    int borrows;                     // which is the only one that writes any; 0: it is not
    int readers;                     // layers that read its output,
    int writers;                     // and those that write its error gradients, if it wants any;
    bool undoes;                     // several: adding these up takes them through its relu,
    bool joined;                     // which the last to write, of two, does as it writes
    int joins, joins_input;          // it is that one: layer and input whose it adds; 0: it is not
    float *y, *dy, *kept, *common;   // of all samples
    float *turned[LAYER_INPUTS_MAX]; // copies of inputs
    float *errors[LAYER_INPUTS_MAX]; // where the error gradients of inputs go; NULL: nowhere
    // Of passes of net->n samples:
    int first, last; // the layers [first, last) of its stack, or itself alone
    int step;        // blocks of a part of its stack's pass
    int sums;        // the input, and one, whose outputs it makes itself as it adds; 0: none
    bool summed;     // it is that input
    int beside;      // the layer whose outputs lie at pass.beside; 0: none
    bool early;      // the stack before has it measure each part; see net_sees_together
    bool remade; // y, which it begins its stack with, is made again for each part that goes back;
    int remade_first;   // or, 0: none, the first of those made again before its stack goes back,
    int remade_next;    // and the one after this
    bool y_brief;       // y is read within its stack only, and before the next part:
    bool dy_brief;      // all parts lie in one place. The same of dy
    size_t kept_sample; // floats of `kept` for each sample
    int band;           // rows at a time of the outputs of the layer that begins; 0: all
    int rows;           // of those that are wanted
    int next;           // the layer that takes each band from this one,
    int prev;           // and that which gives it; 0: none
};

// A pass that was begun.
struct progress {
    enum net_pass pass;
    int at;   // the layer where the next stack begins, or that behind its last
    int step; // of the exchange at hand
    const float *parameters;
    float *gradient;
    net_ready *ready;
    void *self;
};

struct net {
    const struct model *model;
    struct node *nodes;
    const struct kernels *kernels;
    struct arena arena;
    size_t brief;          // floats of scratch that all layers share
    float *turned_errors;  // of the inputs of one layer
    struct pass_sums sums; // of the part in hand
    float *block_gradient; // of one layer, from any block but the first
    enum net_mode mode;
    int most;
    bool turns;           // buffers may lie in one place by turns
    bool remakes;         // outputs that can be made again are not kept
    bool adds;            // the gradient, to what is there
    int n, lanes, blocks; // of the pass in hand: samples; see net_lanes; of all samples
    const float *input;
    const uint64_t *draw;
    const int32_t *other; // see net_mixed
    const float *share;
    const float *targets; // see net_targets
    net_watch *watch;
    void *watcher;
    net_offer *offer;
    void *taker;
    struct net_wire wire;
    struct progress progress;
};

// Blocks of a pass, for layers that have blocks; others know only whole passes.
struct block_range {
    int first, count;
};

static inline struct node *net_from(const struct net *net, const struct layer *layer, int j) {
    return &net->nodes[layer->from[j]];
}

static inline const struct node *net_output_node(const struct net *net) {
    return &net->nodes[net->model->layer_count - 1];
}

// Writes the error gradients of scale x the loss by the sums of the output layer.
void net_output_error(struct net *net, const int32_t *labels, float scale);

// Whether samples are to give their targets, or their labels taken for such: then these two.
bool net_has_targets(const struct net *net);
double net_target_loss(const struct net *net, const int32_t *labels);
void net_target_error(struct net *net, const int32_t *labels, float scale);

// What net_term_loss takes of each output, in the order of the scores: these, or, one against all,
// the sums that they are made of.
const float *net_terms(const struct net *net);
// The cross-entropy of an output whose target lies from 0 to 1.
double net_term_loss(bool one_vs_all, float term, float target);

// Whether the layer may be passed block by block where there are several: its weights
// are prepared, and their gradient is added up, for each block anew.
bool net_by_block(const struct layer *layer, int lanes);

// Whether the layer has to see all samples before it passes any (layer_type.measure).
bool net_sees_together(const struct net *net, const struct layer *layer);

// Whether large mini-batches are to go in parts; then there is room to add up any gradient.
bool net_in_parts(const struct model *model);

// Floats that input j of a layer takes in the layout of `reader`, at most.
size_t net_input_size(const struct net *net, const struct node *reader, const struct layer *layer,
                      int j);

// Takes the places of error gradients, and of outputs that are made again, from the arena. False:
// out of memory.
bool net_take_places(struct net *net);

// Whether the outputs of layer i are made anew for the backward pass, for any number of samples.
bool net_remakes(const struct net *net, int i);

// Floats of the outputs of layer i, at most; and the last layer that reads them, or of those that
// write error gradients of them the last; 0: there is none.
size_t net_output_size(const struct net *net, int i);
int net_last_reader(const struct net *net, int i, bool writes);

// Decides which error gradients lie in those of a sum, and where all have their buffers connects
// them.
void net_lend(struct net *net);
void net_connect_lent(struct net *net);

// Decides how n samples are laid out.
void net_lay_out(struct net *net, int n);
// Decides what is added where it is made, when all else is decided.
void net_lay_sums(struct net *net);
// Brings the pass of a layer to a part of the samples.
void net_view(struct net *net, struct node *node, struct block_range range);
// Parameters for the pass; `gradient` is that of the layer, or NULL.
void net_set_parameters(struct pass *pass, const float *parameters, float *gradient);
// Whether it wants inputs in another layout; copies these; and error gradients back.
bool net_turns_inputs(const struct net *net, const struct node *node);
void net_turn_inputs(const struct net *net, const struct node *node, struct block_range range);
void net_turn_errors(const struct net *net, const struct node *node, struct block_range range);

// Decides which layers go band by band, when all else is decided.
void net_lay_bands(struct net *net);
// Brings the pass, forward or backward, of such a layer to the band of the part, which is
// one block, that begins at this row.
void net_view_band(struct net *net, struct node *node, struct block_range range, int row,
                   enum net_pass pass);

// Of the pass in hand: that of an exchange layer, as far as it can. False: it waits. And adds up
// what the readers of a layer, two at least, have written for it; and takes it back through its
// relu where that is wanted.
bool net_exchange(struct net *net, struct node *node);
void net_gather_errors(const struct net *net, const struct node *node);

#endif
