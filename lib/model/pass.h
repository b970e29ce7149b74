// What a layer sees of a context during one pass. Inside lib/model only.
#ifndef ADAM_MODEL_PASS_H
#define ADAM_MODEL_PASS_H

#include <stdbool.h>

#include "kernels/conv.h"
#include "kernels/shapes.h"
#include "model/layer.h"
#include "model/net.h"

// Threads that share a pass (model/net_team.h).
struct pass_team {
    int threads;
    float *common; // scratch of all, as large as `brief`
    void (*meet)(void *self);
    void *self;
};

// What a layer has added up of what it wrote in the part of the pass in hand (kernels/conv.h).
struct pass_sums {
    struct conv_sums sums;
    int told; // the layer that is to have them next; 0: there are none
    enum net_pass pass;
    int at, n; // of these samples
};

struct pass {
    const struct layer *layer;
    const struct kernels *kernels;
    bool trains;         // a backward pass may follow
    enum act act;        // to apply to the outputs (model/fuse.h)
    float slope;         // of ACT_LEAKY
    bool undone;         // error gradients of the outputs have come through `act`, which is a relu
    enum act undoes;     // the relu that error gradients of the input are to pass, from which it
                         // came; ACT_LINEAR: none
    const float *more;   // what is to be added to them before, laid out as dx[0]; NULL: nothing
    int n;               // samples
    int lanes, blocks;   // samples in a block; 0: plain samples
    int thread, threads; // see net_set_thread
    net_share *share;    // NULL, or who may compute y of a dense layer
    void *sharer;
    struct pass_sums *sums; // of the context
    int tells, tells_back;  // the layer that wants sums of the outputs, or of what is written to
                            // dx[0]; 0: none does
    const float *beside;    // the latter with this, of the same shape; NULL: with x[0]
    int places;             // for samples: n, or lanes * blocks
    int at, all;            // the first of these samples, of all that are passed, in parts
    struct window window;   // of a layer that has one; in a pass of some rows (net_bands.c) theirs
    int row;                // of the layer's outputs, where that window's begin
    int first, end;         // maps or units of them that are to be written: all, but in a team
    const struct pass_team *team;     // NULL: this thread has the pass alone
    int number;                       // of this thread in it
    const float *x[LAYER_INPUTS_MAX]; // outputs of the layers it reads, places x in each
    struct shape in[LAYER_INPUTS_MAX];
    float *y;                      // places x out; the backward pass may overwrite it
    float *dx[LAYER_INPUTS_MAX];   // error gradients to write; NULL where nobody wants them
    float *dy;                     // error gradients of y; the backward pass may overwrite them
    const float *weights, *biases; // shared: other threads may write them meanwhile
    const float *statistics[LAYER_STATISTICS];
    const float *prepared;     // of the weights (net_prepared); NULL: nothing
    float *dweights, *dbiases; // gradients to write
    bool biases_lost;          // to the norm behind: their gradients are 0
    float *dstatistics[LAYER_STATISTICS];
    float scale;      // error gradients are those of the loss times this
    net_offer *offer; // NULL, or who may take dweights as a product ...
    void *taker;
    bool *taken;          // ... and whether it did
    float *kept, *brief;  // scratch, see layer_type.scratch
    float *common;        // the same of all parts, see layer_type.common
    const uint64_t *draw; // what the randomness of each sample depends on,
    uint64_t seed;        // or NULL: nothing is dropped
};

// dbiases; NULL, and they are 0: they are lost (and not the rounding that is left of their sums).
float *pass_felt_biases(const struct pass *pass);
// Offers the gradient as a product; true: somebody took it, and dx is written.
bool pass_offer(const struct pass *pass, const struct dense_errors *errors);

// The activation pass->act over a layer's outputs, with dropout behind it, and their adjoints.
// `kept`, of pass_kept_size floats, has the mask of a layer that drops, then the inputs of an
// activation whose adjoint reads them. A layer laid out in blocks that drops has as much brief
// scratch as a mask (pass_mask_size).
void pass_activate(const struct pass *pass, float *kept);
void pass_drop(const struct pass *pass, float *mask); // the dropout alone
void pass_activate_back(const struct pass *pass, float *kept);
// The scores, one against all, of the sums at y; `kept`, as large as y, has the sums afterwards, of
// which the loss is reckoned.
void pass_score(const struct pass *pass, float *kept);
// Waits for the other threads of the team, which wait for this one.
void pass_meet(const struct pass *pass);
// layer_type.cut of layers whose passes may be of any rows.
struct team_cut pass_team_cut_rows(const struct pass *pass);
// Adds pass->more to dx[0], takes it back through pass->undoes, and, where samples lie in blocks,
// tells pass->tells_back of it.
void pass_finish_errors(const struct pass *pass);
// The same, for a convolution of blocks to do as it writes dx[0].
struct conv_ends pass_ends(const struct pass *pass);
// Outputs that the pass writes, if it writes all maps.
size_t pass_outputs(const struct pass *pass);
// Outputs, of one block, above the rows in hand.
size_t pass_above(const struct pass *pass);
// Where the sums go that this pass is about to make for layer `told`; NULL: 0 wants none. And the
// sums that were made for this layer and the same samples, once; NULL: there are none.
const struct conv_sums *pass_tell_sums(const struct pass *pass, int told, enum net_pass of);
const struct conv_sums *pass_take_sums(const struct pass *pass, enum net_pass of);
// For n samples.
size_t pass_mask_size(const struct layer *layer, int n, bool train);
size_t pass_kept_size(const struct layer *layer, int n, bool train);

#endif
