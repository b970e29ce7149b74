// What a type of layer is: its keys, its shape rule, and its computation.
// One file a type, lib/model/layer_*.c, each defining one layer_type; the table
// of all is layer_types(). Inside lib/model only.
#ifndef ADAM_MODEL_LAYER_H
#define ADAM_MODEL_LAYER_H

#include "core/mem.h"
#include "kernels/pass.h"
#include "model/model.h"

struct kernels;

enum key_kind {
    KEY_INT,    // int, between low and high
    KEY_PAIR,   // struct pair: "5" or "5x3" (height x width), each between low and high; where
                // there are choices, their first stands for 0x0
    KEY_REAL,   // float, between low and high
    KEY_CHOICE, // enum, index into choices
    KEY_TEXT,   // char *
    KEY_REALS,  // struct reals: "0.5,2", each between low and high; empty: none
    KEY_INIT,   // init and init_value: he, standard, glorot, small, normal:0.01, uniform:0.1, zero
    KEY_SHAPE,  // struct shape: "1x28x28", or "440"; may be written without its key
    KEY_LAYERS, // from and from_count: names of layers above, "a" or "a,b"
};

// One key of a layer's line. The table serves the parser, the messages and the
// check of adam-model(5).
struct layer_key {
    const char *name;
    enum key_kind kind;
    size_t offset; // of the member in struct layer
    double low, high;
    const char *standard;       // text of the default; NULL: the key is required
    const char *const *choices; // NULL-terminated
    const char *what;           // one line for the manual
};

// Why a shape does not fit: "KEY=... needs NEED, but INPUT gives CxHxW".
struct misfit {
    const char *key; // whose value is at fault, or NULL for the layer itself
    int input;       // which of the layer's inputs; -1: no input is to blame
    char need[160];  // "an input of at least 5x5"
};

// Which memory layouts a layer's passes understand (kernels/kernels.h, "Blocks").
enum layer_layout {
    LAYOUT_PLAIN,  // plain samples only
    LAYOUT_FOLLOW, // that of its inputs
    LAYOUT_BLOCKS, // blocks, where they are faster
};

struct share;
struct pass; // one layer's view of a context: see net.h

// How several threads share a forward pass of one block, or of one sample (model/net_team.h): in
// multiples of so many maps or units (pass.first), or else of so many rows of a block
// (pass.window). {0}: one of them does it. together: the pass meets the others' (pass_meet), so
// that all are called, who have no part as well. finer: several parts for each thread cost no more
// than one.
struct team_cut {
    int maps, rows;
    bool together, finer;
};

struct layer_type {
    const char *name; // "conv"
    const char *what; // one line
    const struct layer_key *keys;
    size_t key_count;
    bool trains;     // has parameters: also takes init, bias, rate, decay
    bool scales;     // each of its weights scales values by themselves: they begin with 1
    bool normalises; // what it gives deviates by about 1, whatever it reads
    bool output;     // ends a model: softmax, logistic, linear
    enum goal goal;  // of an output
    bool stops;      // no error gradients pass it
    bool sum;        // of its inputs, whose error gradients are those of its outputs
    int together;    // samples that it looks at together where it learns; 0: each by itself
    enum layer_layout layout;
    int inputs_most; // 1, or LAYER_INPUTS_MAX for concat and add; 0 for input
    // For model/fuse.h: an activation and nothing else; a maximum of inputs; a bit
    // (1u << ACT_...) for each activation that it can apply to its outputs itself; and
    // what its backward pass reads, besides the outputs that an activation asks for.
    bool activation, maximum;
    unsigned acts;
    bool back_reads_x, back_reads_y;
    bool back_keeps_dy; // it changes dy for an activation or dropout at most
    bool back_over_x;   // it has read all that it wants of x where it writes dx, which may be there
    bool remakes;       // in a backward pass forward makes y again; dx does not need it
    bool tells_sums;    // it can tell sums of what it writes, see pass.tells
    bool undoes_relu; // it can take error gradients back through the relu below it, see pass.undoes
    bool undoes_bound; // and one that has an upper bound
    bool adds_errors;  // it can add others' error gradients of its input to its own, see pass.more
    bool bands;        // its passes may be of some rows of one block (pass.window)
    bool pixelwise;    // an output, or error gradient, depends on its own pixel of all maps alone

    // From in[] (layer->from_count shapes) and the keys: out, weights, biases and statistics
    // (dims, count, fans; not offset), connections, useful. False with *misfit filled.
    bool (*shape)(struct layer *layer, const struct shape *in, struct misfit *misfit);

    // How it may be cut (model/share.h): rows, maps or units that stay together, 0: not so; NULL:
    // not at all. And what a partition has of it by share->way, where that is some of it, from
    // share->makes: needs, which are as that at first, and the keys and parameters of
    // share->layer, which are those of the uncut layer at first; NULL: no more than that.
    int (*grain)(const struct layer *layer, enum cut_way way);
    void (*share)(struct share *share, const struct model *model);

    // Floats of scratch one pass of at most n places needs, kept from forward to
    // backward (`kept`) or only within a call (`brief`, shared by all layers).
    void (*scratch)(const struct layer *layer, int n, bool train, size_t *kept, size_t *brief);

    void (*forward)(const struct pass *pass);
    // The same, for whose outputs are only added to `more`: their sum, or its relu, to `sum`, which
    // both are laid out as y. NULL: it cannot.
    void (*forward_sum)(const struct pass *pass, float *sum, const float *more, bool relu);
    // Adds nothing: writes the gradients of inputs and parameters.
    void (*backward)(const struct pass *pass);
    // Of one that looks at samples together, where it learns: it is shown all parts of the samples
    // before any goes forward, and all of the error gradients before any goes back, and then writes
    // the gradients of its parameters. And the floats of pass.common for at most n places.
    void (*measure)(const struct pass *pass);
    void (*measure_back)(const struct pass *pass);
    size_t (*common)(const struct layer *layer, int n);
    struct team_cut (*team_cut)(const struct pass *pass); // NULL: {0}
    // What is kept of weights that do not change, for passes of n samples (model/prepared.h):
    // floats, 0 where it is nothing; and makes it. False: not of these weights.
    size_t (*kept_size)(const struct layer *layer, const struct kernels *kernels, int n);
    bool (*keep)(float *kept, const struct layer *layer, const struct kernels *kernels,
                 const float *weights);
    // The way that it takes in the layout of the pass, where there are several.
    const char *(*way)(const struct pass *pass, enum conv_pass part);
};

// Every activation.
enum { ACTS_ALL = (1u << ACT_COUNT) - 1 };

// Layers of partitions' models (model/cut_models.c), which no text has.
extern const struct layer_type layer_exchange, layer_biases, layer_extremes;
extern const struct layer_type layer_dense;
// The outputs of a model, of partitions that have some of its classes or numbers.
const struct layer_type *layer_joined(enum goal goal);

// Rows and columns from the first tap of the layer's kernel to its last: dilation spreads them.
struct pair layer_reach(const struct layer *layer);

const struct layer_type *const *layer_types(size_t *count);
// `from`, which every type but input has, and keys of every type with parameters.
const struct layer_key *layer_common_keys(size_t *count);

#endif
