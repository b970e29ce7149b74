// What the parts of the import share. Inside lib/onnx only.
//
//   import.c          the whole: nodes in their order, the end of the graph, the checkpoint
//   import_file.c     bytes as messages
//   import_values.c   what the names of a graph stand for
//   import_node.c     the table of operators
//   import_draft.c    layers in the making
//   import_windows.c  convolutions and pools
//   import_dense.c    dense layers, and scores
//   import_same.c     nodes that compute nothing
//   import_norms.c    nodes that normalise
//   import_lcn.c      nodes that are one such layer together
//   import_curve.c    nodes that work on each value by itself
//   import_settle.c   the activations that those are
//   import_maps.c     one number for each map
//   import_input.c    what the graph takes, and how pictures become it
//   import_flat.c     flattening, and the arithmetic of shapes that leads to it
//   import_text.c     the model's text: names, lines
//   import_weights.c  the parameters of its layers
#ifndef ADAM_ONNX_IMPORT_INTERNAL_H
#define ADAM_ONNX_IMPORT_INTERNAL_H

#include "onnx/import.h"
#include "onnx/keep.h"

// Of onnx.pb-c.h.
typedef struct Onnx__AttributeProto Onnx__AttributeProto;
typedef struct Onnx__GraphProto Onnx__GraphProto;
typedef struct Onnx__ModelProto Onnx__ModelProto;
typedef struct Onnx__NodeProto Onnx__NodeProto;
typedef struct Onnx__TensorProto Onnx__TensorProto;

enum {
    PROBES = 91,          // places at which functions of single values are compared
    PROBES_NEAR = 81,     // the first of them: by quarters about 0
    IMPORT_RANK = 6,      // of tensors
    IMPORT_LAYERS = 9999, // beside the output
};

enum value_kind {
    VALUE_LATER,   // no node so far gives it
    VALUE_TENSOR,  // constant
    VALUE_LAYER,   // what a layer gives, or a function of each value of that
    VALUE_NUMBERS, // of a shape
};

// In VALUE_NUMBERS: however many samples there are.
#define NUMBER_BATCH INT64_MIN

struct value {
    const char *name;
    enum value_kind kind;
    int readers; // nodes, and the end of the graph
    bool shared; // it is not all that is made of its layer
    const Onnx__TensorProto *tensor;
    const Onnx__NodeProto *giver; // whose output it is; NULL: none
    const struct lcn *lcn;        // that the giver is a part of; NULL: none
    int layer;
    bool flat;                    // samples x values, not samples x maps x height x width
    int rows;                     // samples x rows x values; 0: not
    const double *curve;          // NULL: the layer's values; else at each probe
    int curve_number;             // of those that differ, in the order of their nodes, from 1
    const Onnx__NodeProto *maker; // of the curve
    const double *settled;        // the curve that it was; NULL: it was none
    int below;                    // of which layer
    bool unlike;                  // the curve is nothing that layers do
    const int64_t *numbers;       // of a shape
    size_t number_count;          //
};

// What a parameter is made of.
struct source {
    const Onnx__TensorProto *tensor; // NULL: zeros, or ones, or ones on the diagonal
    bool across;                     // its rows are columns
    bool diagonal, ones;
    float factor;
    int each; // parameters that have one value of the tensor; 0: 1
};

// A layer in the making.
struct draft {
    const char *type;
    const Onnx__NodeProto *node; // that it is named after; NULL: none
    const char *weight_name;     // as the file has it; NULL: none
    const char *name;
    const char *keys; // " maps=16 kernel=3"
    int groups;       // of a groupnorm
    int from[LAYER_INPUTS_MAX], from_count;
    struct shape out;
    const char *act; // that it applies itself: " act=relu"; NULL: none
    struct source weights, biases, statistics[LAYER_STATISTICS];
    int readers;   // layers that are used
    int stands_in; // for an activation that it took over: itself, or the layer
    bool used;
};

struct importing {
    struct keep keep;
    const char *path;
    const struct import_wish *wish;
    const Onnx__GraphProto *graph;
    int64_t opset;
    struct value *values; // in the order of their names
    size_t value_count;
    int curves;           // of values
    struct draft *drafts; // the input first
    int draft_count;
    bool ours;                  // adam wrote the file
    const char *end;            // the name of what the graph gives
    const char *scores;         // the operator that makes scores at its end; NULL: none
    const char *guessed_scores; // NULL: they are said
    double *factor;             // by channel: what the graph multiplies its input by; NULL: nothing
    double *summand;            // and what it adds then, by channel or to each value
    size_t summands;            //
    const Onnx__NodeProto *scaler; // the last node that does it
};

// --- import_file.c -------------------------------------------------------------------------

// To be freed with onnx__model_proto__free_unpacked(model, NULL). STATUS_DATA.
int import_unpack(Onnx__ModelProto **model, const char *name, const void *bytes, size_t size,
                  struct error *err);

// --- import_values.c -----------------------------------------------------------------------

const char *import_node_name(const Onnx__NodeProto *node);
// Fills in im->values. STATUS_DATA: two have one name.
int import_collect_values(struct importing *im, struct error *err);
struct value *import_find_value(struct importing *im, const char *name); // or NULL
// What the node gives; import_node has seen that it is there.
struct value *import_result(struct importing *im, const Onnx__NodeProto *node);
// The dimensions of what a layer gives, with that of the samples.
size_t import_rank(const struct value *value);
// Whether the axis, counted from the front or from behind, is the one after that of the samples.
bool import_is_first(const struct value *value, int64_t axis);
// Whether the axes are height and width of samples x maps x height x width, so counted.
bool import_are_sides(const int64_t *axes, size_t count);
// The i-th input of a node; *value is NULL where it is left out. STATUS_DATA: nothing gives it.
int import_operand(struct importing *im, const Onnx__NodeProto *node, size_t i,
                   struct value **value, struct error *err);
// The same, one that must be what a layer gives, its function made a layer of its own; it may be
// split into rows.
int import_rows_operand(struct importing *im, const Onnx__NodeProto *node, size_t i,
                        struct value **value, struct error *err);
// The same, one that is not split.
int import_layer_operand(struct importing *im, const Onnx__NodeProto *node, size_t i,
                         struct value **value, struct error *err);
// The first of a node, one that is not flat.
int import_picture_operand(struct importing *im, const Onnx__NodeProto *node, struct value **value,
                           struct error *err);
int import_check_picture(const struct value *value, struct error *err);
// All inputs of a node, of as many layers, of which the table of operators allows so many.
int import_layer_operands(struct importing *im, const Onnx__NodeProto *node,
                          struct value *values[LAYER_INPUTS_MAX], struct error *err);
// The same, one that must be a constant of floats of this rank (0: any); NULL where it is left out.
int import_tensor_operand(struct importing *im, const Onnx__NodeProto *node, size_t i, size_t rank,
                          const Onnx__TensorProto **tensor, struct error *err);
// The same of whole numbers. They are kept.
int import_numbers_operand(struct importing *im, const Onnx__NodeProto *node, size_t i,
                           const int64_t **numbers, size_t *count, struct error *err);

// Whether the tensor is whole. *count: its values.
int import_check_tensor(const Onnx__TensorProto *tensor, int32_t type, size_t *count,
                        struct error *err);
// Whether it has `wanted` values, or is left out.
int import_check_count(const Onnx__TensorProto *tensor, int64_t wanted, struct error *err);
float import_float(const Onnx__TensorProto *tensor, size_t i); // of one that was checked
// Values of the tensor, which was checked.
size_t import_tensor_count(const Onnx__TensorProto *tensor);

// One of `count` values that are still to come, without dimensions unless it is a list; NULL when
// out of memory.
Onnx__TensorProto *import_new_tensor(struct importing *im, int32_t type, size_t count, bool list);

// Whether it is a whole number, or a float.
bool import_has_int(const Onnx__AttributeProto *attribute);
bool import_has_real(const Onnx__AttributeProto *attribute);
// An attribute, or *value as it was. STATUS_DATA: it is of another kind.
int import_int(const Onnx__NodeProto *node, const char *name, int64_t *value, struct error *err);
int import_real(const Onnx__NodeProto *node, const char *name, double *value, struct error *err);
// *values is NULL where it is left out; else there are `count`, or *found with count 0.
int import_ints(const Onnx__NodeProto *node, const char *name, size_t count, const int64_t **values,
                size_t *found, struct error *err);
// As few digits as tell this float from all others; kept.
const char *import_number(struct importing *im, double number);
// "" where it is left out; kept.
const char *import_word(struct importing *im, const Onnx__NodeProto *node, const char *name);
const Onnx__AttributeProto *import_attribute(const Onnx__NodeProto *node, const char *name);

// --- import_draft.c ------------------------------------------------------------------------

// Whether all values together are few enough; sets *out.
int import_shape(struct shape *out, int64_t c, int64_t h, int64_t w, struct error *err);
// A new layer that reads that of `from` (NULL: none), and what it gives as the node's result.
int import_draft(struct importing *im, const Onnx__NodeProto *node, const char *type,
                 const struct value *from, struct draft **draft, struct error *err);
void import_gives_layer(struct importing *im, const Onnx__NodeProto *node,
                        const struct draft *draft, bool flat);
// The node gives what it takes.
void import_gives_same(struct importing *im, const Onnx__NodeProto *node,
                       const struct value *value);
struct shape import_out(const struct importing *im, const struct value *value);

typedef int importer(struct importing *im, const Onnx__NodeProto *node, struct error *err);
importer import_conv, import_pool, import_global_pool, import_reduce_mean, import_gemm,
    import_matmul, import_softmax, import_same, import_dropout, import_pad, import_constant;
importer import_lrn, import_batchnorm, import_instance_norm, import_group_norm, import_layer_norm;
importer import_flatten, import_reshape, import_squeeze, import_unsqueeze, import_shape_of,
    import_gather, import_concat, import_cast;
importer import_unary, import_binary, import_sum;

// " key=NUMBER" for a layer of this type, kept. STATUS_DATA: the type does not take such numbers.
int import_key(struct importing *im, const char *type, const char *key, double number,
               const char **text, struct error *err);

// Finds those nodes that are a local contrast normalisation together; that to which a node belongs,
// or NULL; and makes a layer of it at its last node. STATUS_DATA: its numbers are others.
int import_find_lcns(struct importing *im, struct error *err);
const struct lcn *import_lcn_of(struct importing *im, const Onnx__NodeProto *node);
int import_lcn(struct importing *im, const struct lcn *l, const Onnx__NodeProto *node,
               struct error *err);

// A number for each map, or for each unit of what is flat.
bool import_is_of_maps(const struct importing *im, const struct value *value,
                       const Onnx__TensorProto *tensor);
// A number for each value of the shape.
bool import_is_of_values(const Onnx__TensorProto *tensor, struct shape shape);
// Whether the node's factors or summands are those of the norm before it. If so they become that.
bool import_takes_scale(struct importing *im, const Onnx__NodeProto *node,
                        const struct value *value, const Onnx__TensorProto *tensor);
// Multiplies each map by a number of its own, or adds one, as a layer.
int import_each_map(struct importing *im, const Onnx__NodeProto *node, const struct value *value,
                    const Onnx__TensorProto *tensor, struct error *err);

// The error of a node that learns as the graph is run.
int import_refuse_training(struct error *err);

// factor x + summand of each value x of a layer as a layer; `value` is what that gives afterwards.
int import_line(struct importing *im, struct value *value, double factor, double summand,
                struct error *err);

// What precedes an error of a node. STATUS_DATA.
int import_context(const struct importing *im, const Onnx__NodeProto *node, struct error *err);
// Whether it is that operator of ONNX itself.
bool import_is_operator(const Onnx__NodeProto *node, const char *op);
// Adds layers, or more to what is known of values. STATUS_DATA.
int import_node(struct importing *im, const Onnx__NodeProto *node, struct error *err);

// The i-th place at which functions are compared.
double import_probe(int i);
// A function of the layer's values as a layer, or several; `value` is what they give afterwards.
int import_settle(struct importing *im, struct value *value, struct error *err);
// Whether it ends with that function. If so `value` is what that is applied to.
bool import_drops_sigmoid(struct importing *im, struct value *value);

// The first draft. STATUS_DATA: the graph takes no pictures.
int import_input(struct importing *im, struct error *err);
// What the node, the only one that reads it, does with the input becomes a part of its operations.
int import_scale(struct importing *im, const Onnx__NodeProto *node, const struct value *value,
                 const Onnx__TensorProto *tensor, struct error *err);
// The operations of the input, kept. *guessed: nobody has told them.
int import_ops(struct importing *im, const char **ops, bool *guessed, struct error *err);

// The text of the model, to be freed with free(). Drafts have their names afterwards.
int import_text(struct importing *im, const char *ops, char **text, struct error *err);
// The parameters of the model that was read from that text.
int import_weights(const struct importing *im, const struct model *model, float *parameters,
                   struct error *err);

#endif
