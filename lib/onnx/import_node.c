// The table of operators: what each may be given, and what makes a layer of it.
#include <inttypes.h>
#include <onnx.pb-c.h>
#include <string.h>

#include "core/error.h"
#include "core/grow.h"
#include "onnx/import_internal.h"

// A word of the attributes of a row, as a whole.
static bool lists(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *at = words; length > 0 && (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

static const struct row {
    const char *op;
    importer *import;
    size_t least, most;     // inputs
    const char *attributes; // that are understood
} rows[] = {
    {"Add", import_binary, 2, 2, ""},
    {"AveragePool", import_pool, 1, 1,
     "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"},
    {"BatchNormalization", import_batchnorm, 5, 5, "epsilon momentum training_mode"},
    {"Cast", import_cast, 1, 1, "to saturate"},
    {"Clip", import_unary, 1, 3, "min max"},
    {"Concat", import_concat, 1, LAYER_INPUTS_MAX, "axis"},
    {"Constant", import_constant, 0, 0, "value value_float value_floats value_int value_ints"},
    {"Conv", import_conv, 2, 3, "auto_pad dilations group kernel_shape pads strides"},
    {"Div", import_binary, 2, 2, ""},
    {"Dropout", import_dropout, 1, 3, "ratio seed"},
    {"Elu", import_unary, 1, 1, "alpha"},
    {"Erf", import_unary, 1, 1, ""},
    {"Exp", import_unary, 1, 1, ""},
    {"Flatten", import_flatten, 1, 1, "axis"},
    {"Gather", import_gather, 2, 2, "axis"},
    {"Gelu", import_unary, 1, 1, "approximate"},
    {"Gemm", import_gemm, 2, 3, "alpha beta transA transB"},
    {"GlobalAveragePool", import_global_pool, 1, 1, ""},
    {"GlobalMaxPool", import_global_pool, 1, 1, ""},
    {"GroupNormalization", import_group_norm, 3, 3, "epsilon num_groups"},
    {"HardSigmoid", import_unary, 1, 1, "alpha beta"},
    {"HardSwish", import_unary, 1, 1, ""},
    {"Identity", import_same, 1, 1, ""},
    {"InstanceNormalization", import_instance_norm, 3, 3, "epsilon"},
    {"LRN", import_lrn, 1, 1, "alpha beta bias size"},
    {"LayerNormalization", import_layer_norm, 2, 3, "axis epsilon stash_type"},
    {"LeakyRelu", import_unary, 1, 1, "alpha"},
    {"Log", import_unary, 1, 1, ""},
    {"LogSoftmax", import_softmax, 1, 1, "axis"},
    {"LpPool", import_pool, 1, 1, "auto_pad ceil_mode dilations kernel_shape p pads strides"},
    {"MatMul", import_matmul, 2, 2, ""},
    {"MaxPool", import_pool, 1, 1,
     "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"},
    {"Mul", import_binary, 2, 2, ""},
    {"Neg", import_unary, 1, 1, ""},
    {"Pad", import_pad, 1, 4, "mode pads value"},
    {"ReduceMean", import_reduce_mean, 1, 2, "axes keepdims noop_with_empty_axes"},
    {"Relu", import_unary, 1, 1, ""},
    {"Reshape", import_reshape, 2, 2, "allowzero"},
    {"Shape", import_shape_of, 1, 1, ""},
    {"Sigmoid", import_unary, 1, 1, ""},
    {"Softmax", import_softmax, 1, 1, "axis"},
    {"Softplus", import_unary, 1, 1, ""},
    {"Squeeze", import_squeeze, 1, 2, "axes"},
    {"Sub", import_binary, 2, 2, ""},
    {"Sum", import_sum, 1, LAYER_INPUTS_MAX, ""},
    {"Tanh", import_unary, 1, 1, ""},
    {"Unsqueeze", import_unsqueeze, 1, 2, "axes"},
};

enum { ROWS = sizeof rows / sizeof *rows };

static const char *op_of(const Onnx__NodeProto *node) {
    return node->op_type ? node->op_type : "";
}

static bool is_foreign(const Onnx__NodeProto *node) {
    return node->domain && *node->domain && strcmp(node->domain, "ai.onnx") != 0;
}

bool import_is_operator(const Onnx__NodeProto *node, const char *op) {
    return !is_foreign(node) && !strcmp(op_of(node), op);
}

static const struct row *find_row(const Onnx__NodeProto *node) {
    for (size_t i = 0; i < ROWS; i++)
        if (import_is_operator(node, rows[i].op))
            return &rows[i];
    return NULL;
}

static int refuse_operator(const Onnx__NodeProto *node, struct error *err) {
    struct grow list = {0};
    for (size_t i = 0; i < ROWS; i++)
        grow_format(&list, "%s%s", i ? ", " : "", rows[i].op);
    char *text = grow_take(&list);
    int status = text ? error_set(err, STATUS_DATA, "the operator is not supported%s%.100s; %s are",
                                  is_foreign(node) ? ", of the domain " : "",
                                  is_foreign(node) ? node->domain : "", text)
                      : error_nomem(err);
    free(text);
    return status;
}

static int check_node(const struct row *row, const Onnx__NodeProto *node, struct error *err) {
    if (node->n_input < row->least || node->n_input > row->most)
        return error_set(err, STATUS_DATA, "it has %zu inputs, not %zu to %zu", node->n_input,
                         row->least, row->most);
    if (node->n_output < 1 || !*node->output[0])
        return error_set(err, STATUS_DATA, "it gives nothing");
    for (size_t i = 0; i < node->n_attribute; i++)
        if (!lists(row->attributes, node->attribute[i]->name ? node->attribute[i]->name : ""))
            return error_set(err, STATUS_DATA, "its attribute '%.100s' is not supported",
                             node->attribute[i]->name ? node->attribute[i]->name : "");
    return STATUS_OK;
}

int import_context(const struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    return error_context(err, "node '%.100s', %.60s of operator set %" PRId64,
                         import_node_name(node), op_of(node), im->opset);
}

static int import_operator(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    const struct row *row = find_row(node);
    int status = row ? check_node(row, node, err) : refuse_operator(node, err);
    return status ? status : row->import(im, node, err);
}

int import_node(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    const struct lcn *lcn = import_lcn_of(im, node);
    int status = lcn ? import_lcn(im, lcn, node, err) : import_operator(im, node, err);
    if (!status && im->keep.failed)
        return error_nomem(err);
    return status == STATUS_DATA ? import_context(im, node, err) : status;
}
