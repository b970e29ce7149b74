// Nodes that compute nothing: what they take they give, or a constant.
#include <onnx.pb-c.h>
#include <string.h>

#include "core/error.h"
#include "onnx/import_internal.h"

int import_same(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    int status = import_operand(im, node, 0, &x, err);
    if (status)
        return status;
    if (!x)
        return error_set(err, STATUS_DATA, "its input is left out");
    import_gives_same(im, node, x);
    return STATUS_OK;
}

// One truth value.
static bool is_false(const Onnx__TensorProto *tensor) {
    if (tensor->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__BOOL)
        return false;
    return tensor->has_raw_data ? tensor->raw_data.len == 1 && !tensor->raw_data.data[0]
                                : tensor->n_int32_data == 1 && !tensor->int32_data[0];
}

// Nothing outside training.
int import_dropout(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *training;
    int status = import_operand(im, node, 2, &training, err);
    if (status)
        return status;
    if (training && !(training->kind == VALUE_TENSOR && is_false(training->tensor)))
        return import_refuse_training(err);
    return import_same(im, node, err);
}

// PyTorch writes one of zeros before each average pool.
int import_pad(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    const int64_t *pads;
    size_t count;
    int status = node->n_input > 1 ? import_numbers_operand(im, node, 1, &pads, &count, err)
                                   : import_ints(node, "pads", 0, &pads, &count, err);
    for (size_t i = 0; !status && i < count; i++)
        if (pads[i] != 0)
            status = error_set(err, STATUS_DATA,
                               "it is supported with zeros only; convolutions and pools have "
                               "padding of their own");
    return status ? status : import_same(im, node, err);
}

// A number or a list of them, as the tensor that it stands for.
static const Onnx__TensorProto *tensor_of(struct importing *im, Onnx__AttributeProto *attribute) {
    bool floats = import_has_real(attribute) || attribute->n_floats > 0;
    size_t list = floats ? attribute->n_floats : attribute->n_ints;
    if (!floats && !import_has_int(attribute) && list == 0)
        return NULL;
    Onnx__TensorProto *tensor = import_new_tensor(
        im, floats ? ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT : ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
        list ? list : 1, list > 0);
    if (tensor && floats) {
        tensor->float_data = list ? attribute->floats : &attribute->f;
        tensor->n_float_data = list ? list : 1;
    } else if (tensor) {
        tensor->int64_data = list ? attribute->ints : &attribute->i;
        tensor->n_int64_data = list ? list : 1;
    }
    return tensor;
}

int import_constant(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    Onnx__AttributeProto *attribute = node->n_attribute == 1 ? node->attribute[0] : NULL;
    const Onnx__TensorProto *tensor = attribute && attribute->t ? attribute->t
                                      : attribute               ? tensor_of(im, attribute)
                                                                : NULL;
    if (!tensor)
        return error_set(err, STATUS_DATA, "it is no tensor, number or list of numbers");
    struct value *value = import_result(im, node);
    value->kind = VALUE_TENSOR;
    value->tensor = tensor;
    return STATUS_OK;
}
