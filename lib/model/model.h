// A model: layers, their shapes, and where their parameters lie. Written as one
// layer a line (adam-model(5)); immutable once read, so threads share it.
#ifndef ADAM_MODEL_MODEL_H
#define ADAM_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/activations.h"
#include "model/region.h"

struct error;

// The activations of one sample between two layers: channels x height x width.
// A flat vector is units x 1 x 1.
struct shape {
    int c, h, w;
};

size_t shape_size(struct shape shape); // c * h * w

enum init {
    INIT_DEFAULT,
    INIT_HE,
    INIT_STANDARD,
    INIT_GLOROT,
    INIT_SMALL,
    INIT_NORMAL,
    INIT_UNIFORM,
    INIT_ZERO,
    INIT_ONE
};
enum rounding { ROUND_DOWN, ROUND_UP };
// How the outputs of a layer are divided among partitions (model/cut.h): by rows; by maps, or units
// of a flat vector; by units each of which is the sum of what each partition makes of its inputs;
// or not at all.
enum cut_way { CUT_AUTO, CUT_ROWS, CUT_MAPS, CUT_UNITS, CUT_INPUTS, CUT_NONE };
enum loss_kind { LOSS_SQUARED, LOSS_HUBER };

struct pair { // height x width, of kernels, strides and paddings
    int h, w;
};

struct layer_type;
struct exchange;

#define LAYER_INPUTS_MAX 32
#define LAYER_STATISTICS 2

// A block of parameters in the flat space of the model ("Parameters are one
// flat space in layer order"). Its dimensions are those of PyTorch's tensors.
struct parameter {
    size_t offset, count;
    int dims[6], rank;
    size_t fan_in, fan_out; // for He and Glorot
};

struct reals {
    float *at; // NULL: none
    int count;
};

struct layer {
    const struct layer_type *type;
    char *name; // unique; "c1", or the type and its number in the file ("conv2")
    int line;   // in the model's text
    int index;  // in model.layers
    int stream; // of random numbers: its index in the whole model, also in a part (border.h)
    int from[LAYER_INPUTS_MAX], from_count; // indices of the layers it reads
    struct shape in, out;                   // in: of from[0]

    // Keys, as given or by default; which of them a type has is in its table.
    int maps, groups, units, size;
    struct pair kernel, stride, pad, dilation; // 0: that of a type without the key, as 1
    enum rounding round;
    enum act act;
    float slope;                // of ACT_LEAKY
    float alpha, beta, bias_k;  // of norms
    float momentum;             // of running statistics: what each mini-batch moves them by
    float dropout;              // share of outputs dropped in training
    float smoothing;            // share of a target that goes to all classes alike in training
    struct reals class_weights; // of the loss in training, one a class; none: all count alike
    enum loss_kind loss;        // of linear outputs
    float delta;                // of LOSS_HUBER: the error from which on it is linear
    enum init init;
    float init_value; // deviation of normal, half-width of uniform
    float bias;       // initial value of biases
    float rate;       // multiplier of the learning rate
    float decay;      // weight decay of this layer; below 0: that of the command line
    char *ops;        // input: operations on each picture
    enum cut_way cut; // over several partitions

    // Of a layer of a partition's model: what the uncut layer gives, and which of that this one
    // does. Else all of it.
    struct shape whole;
    struct region region;
    const struct exchange *exchange; // of a layer by which partitions exchange outputs; or NULL
    int partition;                   // of such a layer

    // One behind the other; count 0: none. Statistics, the running mean and variance of
    // batchnorm, are no part of the loss: their gradient is how far they are from those of the
    // mini-batch, whatever its scale, and they follow it by rule/optimizer.h.
    struct parameter weights, biases, statistics[LAYER_STATISTICS];
    uint64_t connections; // multiplies of one forward pass of one sample
    uint64_t useful;      // those of them that no padding makes zero
};

// Whether training changes it: it has parameters, and its rate is not 0. Else it is frozen.
bool layer_learns(const struct layer *layer);
// Floats of all its parameters, from weights.offset on.
size_t layer_parameters(const struct layer *layer);

struct model {
    char *name; // for messages: the path it was read from
    char *text; // as read, overrides applied: what a checkpoint stores
    struct layer *layers;
    int layer_count;
    size_t parameter_count;
    uint64_t connections;
    // Of a partition's model the whole one, by which all partitions choose their blocks; or NULL.
    const struct model *uncut;
};

// Reads text (NUL-terminated; CRLF and a byte-order mark are accepted).
enum { MODEL_TEXT_MAX = 1 << 20 }; // bytes of a model file

// `name` is for messages. Each of `sets` is "layer.key=value", applied over the
// text before it is checked. STATUS_DATA, with
//   mnist.net:7:14: error: conv: unknown key 'kernal'; did you mean 'kernel'?
//       7 | conv c1 maps=10 kernal=5
//         |                 ^~~~~~
// STATUS_USAGE for a mistake in `sets`. The last layer must be an output layer. *out is NULL after
// a failure.
// A path of "-" is standard input; STATUS_NOINPUT for a file that cannot be read.
int model_parse(struct model **out, const char *name, const char *text, const char *const *sets,
                size_t set_count, struct error *err);
int model_read(struct model **out, const char *path, const char *const *sets, size_t set_count,
               struct error *err);
void model_free(struct model *model);

// For whoever reads a value that the model only stores, as the input's ops: turns
// err, whose text says what is wrong with `length` bytes at `offset` of the value
// of this key of this layer, into a message with place, line and caret as above.
// STATUS_DATA.
int model_blame(const struct model *model, const struct layer *layer, const char *key,
                size_t offset, size_t length, struct error *err);

const struct layer *model_input(const struct model *model);
const struct layer *model_output(const struct model *model);
int model_classes(const struct model *model); // units of the output layer
// What a model learns of samples: their class (softmax), whether each is of this class and of that
// (logistic), or numbers (linear).
enum goal { GOAL_CLASS, GOAL_CLASSES, GOAL_NUMBERS };
enum goal model_goal(const struct model *model);
// Samples of a mini-batch that a layer looks at together (batchnorm), so that they are to be in one
// pass; 1: there is no such layer that learns.
int model_together(const struct model *model);
// STATUS_USAGE where no layer learns: who is to train it has nothing to do.
int model_check_learns(const struct model *model, struct error *err);

// Fills parameter_count floats with initial values, each layer from its own
// stream of `seed`: where relu follows He for convolutions and the standard rule for
// dense layers and where a norm follows, Glorot for the rest; for the output layer the standard
// rule where it reads a dense layer, else near zero; unless the layer says. `deviation` is that of
// the inputs: where it is more than 2, and no layer normalises, those of He are smaller.
void model_init(const struct model *model, float *parameters, uint64_t seed, double deviation);
// The same for measuring and comparing arithmetic: He or Glorot in all layers, so that
// scores and error gradients have the sizes that they have in training. An output layer near
// zero would hide mistakes in all layers.
void model_init_lively(const struct model *model, float *parameters, uint64_t seed);

// Whether a layer may have this name: letters, digits and a few signs.
bool model_layer_may_be(const char *name);

// Key `index`, from 0, of all that layers have, each once; NULL behind the last.
const char *model_key(size_t index);

#endif
