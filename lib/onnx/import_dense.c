// Dense layers, and the scores at the end of a graph.
#include <inttypes.h>
#include <onnx.pb-c.h>
#include <string.h>

#include "core/error.h"
#include "onnx/import_internal.h"

// One for each unit, in the last dimension, of at most samples x units.
static int check_biases(const Onnx__TensorProto *biases, int64_t units, struct error *err) {
    int status = import_check_count(biases, units, err);
    if (status || !biases || biases->n_dims == 0)
        return status;
    return biases->n_dims <= 2 && biases->dims[biases->n_dims - 1] == units
               ? STATUS_OK
               : error_set(err, STATUS_DATA,
                           "'%.100s' is not a number for each of %" PRId64 " units",
                           biases->name ? biases->name : "", units);
}

// What follows the layer's name is its weights'.
static int add_dense(struct importing *im, const Onnx__NodeProto *node, const struct value *x,
                     struct source weights, struct source biases, struct error *err) {
    struct draft *draft;
    struct shape in = import_out(im, x), out;
    const Onnx__TensorProto *tensor = weights.tensor;
    int64_t read = tensor->dims[weights.across ? 0 : 1],
            units = tensor->dims[weights.across ? 1 : 0];
    if (!x->flat)
        return error_set(err, STATUS_DATA, "'%.100s' is not flat: samples x values are expected",
                         x->name);
    if ((size_t)read != shape_size(in))
        return error_set(err, STATUS_DATA, "weights for %" PRId64 " values do not fit %zu", read,
                         shape_size(in));
    int status = import_shape(&out, units, 1, 1, err);
    if (!status)
        status = check_biases(biases.tensor, units, err);
    if (!status)
        status = import_draft(im, node, "dense", x, &draft, err);
    if (status)
        return status;
    draft->out = out;
    draft->weight_name = tensor->name;
    draft->weights = weights;
    draft->biases = biases;
    draft->keys = keep_format(&im->keep, " units=%d", out.c);
    import_gives_layer(im, node, draft, true);
    return STATUS_OK;
}

static int dense_operands(struct importing *im, const Onnx__NodeProto *node, struct value **x,
                          const Onnx__TensorProto **weights, struct error *err) {
    int status = import_layer_operand(im, node, 0, x, err);
    if (!status)
        status = import_tensor_operand(im, node, 1, 2, weights, err);
    return status || *weights ? status : error_set(err, STATUS_DATA, "it has no weights");
}

int import_gemm(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    const Onnx__TensorProto *weights, *biases = NULL;
    int64_t across_x = 0, across = 0;
    double alpha = 1, beta = 1;
    int status = dense_operands(im, node, &x, &weights, err);
    if (!status)
        status = import_tensor_operand(im, node, 2, 0, &biases, err);
    if (!status)
        status = import_int(node, "transA", &across_x, err);
    if (!status)
        status = import_int(node, "transB", &across, err);
    if (!status)
        status = import_real(node, "alpha", &alpha, err);
    if (!status)
        status = import_real(node, "beta", &beta, err);
    if (!status && across_x)
        status = error_set(err, STATUS_DATA, "transA=1 is not supported");
    return status ? status
                  : add_dense(im, node, x,
                              (struct source){
                                  .tensor = weights, .across = !across, .factor = (float)alpha},
                              (struct source){.tensor = biases, .factor = (float)beta}, err);
}

int import_matmul(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    const Onnx__TensorProto *weights;
    int status = dense_operands(im, node, &x, &weights, err);
    return status ? status
                  : add_dense(im, node, x,
                              (struct source){.tensor = weights, .across = true, .factor = 1},
                              (struct source){.factor = 1}, err);
}

// At the end of a graph only, where the output layer has it.
int import_softmax(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    int64_t axis = im->opset < 13 ? 1 : -1;
    int status = import_layer_operand(im, node, 0, &x, err);
    if (!status)
        status = import_int(node, "axis", &axis, err);
    if (status)
        return status;
    struct shape in = import_out(im, x);
    bool single = x->flat || (in.h == 1 && in.w == 1);
    if (strcmp(node->output[0], im->end) != 0 || !single || !import_is_first(x, axis))
        return error_set(err, STATUS_DATA,
                         "it is supported only at the end of the graph, over the classes");
    im->scores = "softmax";
    import_gives_same(im, node, x);
    return STATUS_OK;
}
