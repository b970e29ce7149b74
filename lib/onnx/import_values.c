// What the names of a graph stand for: what nodes give, constants, the input.
#include <inttypes.h>
#include <onnx.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "onnx/import_internal.h"

static const char *text(const char *optional) {
    return optional ? optional : "";
}

const char *import_node_name(const Onnx__NodeProto *node) {
    if (node->name && *node->name)
        return node->name;
    return node->n_output > 0 ? node->output[0] : "";
}

// --- the table of values ------------------------------------------------------------------

static int compare_values(const void *a, const void *b) {
    const struct value *one = a, *other = b;
    return strcmp(one->name, other->name);
}

static void add_value(struct importing *im, const char *name, const Onnx__TensorProto *tensor,
                      const Onnx__NodeProto *giver) {
    if (*name)
        im->values[im->value_count++] = (struct value){.name = name,
                                                       .kind = tensor ? VALUE_TENSOR : VALUE_LATER,
                                                       .tensor = tensor,
                                                       .giver = giver};
}

static void sort_values(struct importing *im) {
    qsort(im->values, im->value_count, sizeof *im->values, compare_values);
}

// Before version 4 of the format constants are inputs, too.
static const char *only_input(struct importing *im, size_t *count) {
    const char *name = "";
    *count = 0;
    for (size_t i = 0; i < im->graph->n_input; i++)
        if (!import_find_value(im, text(im->graph->input[i]->name)) && (*count)++ == 0)
            name = text(im->graph->input[i]->name);
    return name;
}

static int check_names(const struct importing *im, struct error *err) {
    for (size_t i = 1; i < im->value_count; i++)
        if (!strcmp(im->values[i - 1].name, im->values[i].name))
            return error_set(err, STATUS_DATA, "'%.100s' is given twice", im->values[i].name);
    return STATUS_OK;
}

static void count_reader(struct importing *im, const char *name) {
    struct value *value = import_find_value(im, name);
    if (value)
        value->readers++;
}

static void count_readers(struct importing *im) {
    const Onnx__GraphProto *graph = im->graph;
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t j = 0; j < graph->node[i]->n_input; j++)
            count_reader(im, graph->node[i]->input[j]);
    for (size_t i = 0; i < graph->n_output; i++)
        count_reader(im, text(graph->output[i]->name));
}

int import_collect_values(struct importing *im, struct error *err) {
    const Onnx__GraphProto *graph = im->graph;
    size_t most = 1 + graph->n_initializer, inputs;
    for (size_t i = 0; i < graph->n_node; i++)
        most += graph->node[i]->n_output;
    im->values = keep_room(&im->keep, most, sizeof *im->values);
    if (!im->values)
        return error_nomem(err);
    for (size_t i = 0; i < graph->n_initializer; i++)
        add_value(im, text(graph->initializer[i]->name), graph->initializer[i], NULL);
    sort_values(im);
    add_value(im, only_input(im, &inputs), NULL, NULL);
    if (inputs != 1)
        return error_set(err, STATUS_DATA, "the graph takes %zu inputs; one is expected", inputs);
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t j = 0; j < graph->node[i]->n_output; j++)
            add_value(im, graph->node[i]->output[j], NULL, graph->node[i]);
    sort_values(im);
    count_readers(im);
    return check_names(im, err);
}

struct value *import_find_value(struct importing *im, const char *name) {
    const struct value wanted = {.name = name};
    return bsearch(&wanted, im->values, im->value_count, sizeof *im->values, compare_values);
}

struct value *import_result(struct importing *im, const Onnx__NodeProto *node) {
    return import_find_value(im, node->output[0]);
}

size_t import_rank(const struct value *value) {
    return value->flat ? 2 : value->rows ? 3 : 4;
}

bool import_is_first(const struct value *value, int64_t axis) {
    return axis == 1 || axis == 1 - (int64_t)import_rank(value);
}

bool import_are_sides(const int64_t *axes, size_t count) {
    if (!axes || count != 2)
        return false;
    int64_t one = axes[0] + (axes[0] < 0 ? 4 : 0), other = axes[1] + (axes[1] < 0 ? 4 : 0);
    return (one == 2 && other == 3) || (one == 3 && other == 2);
}

// --- inputs of nodes ----------------------------------------------------------------------

int import_operand(struct importing *im, const Onnx__NodeProto *node, size_t i,
                   struct value **value, struct error *err) {
    *value = NULL;
    if (i >= node->n_input || !*node->input[i])
        return STATUS_OK;
    *value = import_find_value(im, node->input[i]);
    if (*value && (*value)->kind != VALUE_LATER)
        return STATUS_OK;
    return error_set(err, STATUS_DATA, "reads '%.100s', which nothing before it gives",
                     node->input[i]);
}

static int refuse_operand(const Onnx__NodeProto *node, size_t i, const char *wanted,
                          struct error *err) {
    return error_set(err, STATUS_DATA, "input %zu%s%.100s%s must be %s", i + 1,
                     i < node->n_input ? ", '" : "", i < node->n_input ? node->input[i] : "",
                     i < node->n_input ? "'," : "", wanted);
}

int import_rows_operand(struct importing *im, const Onnx__NodeProto *node, size_t i,
                        struct value **value, struct error *err) {
    int status = import_operand(im, node, i, value, err);
    if (status)
        return status;
    if (!*value || (*value)->kind != VALUE_LAYER)
        return refuse_operand(node, i, "made of the graph's input", err);
    return import_settle(im, *value, err);
}

int import_layer_operand(struct importing *im, const Onnx__NodeProto *node, size_t i,
                         struct value **value, struct error *err) {
    int status = import_rows_operand(im, node, i, value, err);
    if (status || !(*value)->rows)
        return status;
    return error_set(err, STATUS_DATA,
                     "'%.100s' is split into %d rows, which only InstanceNormalization takes",
                     (*value)->name, (*value)->rows);
}

int import_check_picture(const struct value *value, struct error *err) {
    return value->flat ? error_set(err, STATUS_DATA,
                                   "'%.100s' is flat: maps, height and width are "
                                   "expected",
                                   value->name)
                       : STATUS_OK;
}

int import_picture_operand(struct importing *im, const Onnx__NodeProto *node, struct value **value,
                           struct error *err) {
    int status = import_layer_operand(im, node, 0, value, err);
    return status ? status : import_check_picture(*value, err);
}

// A layer may be read but once by another.
static int check_once(struct value *const *values, size_t i, struct error *err) {
    for (size_t j = 0; j < i; j++)
        if (values[j]->layer == values[i]->layer)
            return error_set(err, STATUS_DATA, "it reads '%.100s' twice, as inputs %zu and %zu",
                             values[i]->name, j + 1, i + 1);
    return STATUS_OK;
}

int import_layer_operands(struct importing *im, const Onnx__NodeProto *node,
                          struct value *values[LAYER_INPUTS_MAX], struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < node->n_input && i < LAYER_INPUTS_MAX; i++)
        status = import_layer_operand(im, node, i, &values[i], err);
    for (size_t i = 1; !status && i < node->n_input && i < LAYER_INPUTS_MAX; i++)
        status = check_once(values, i, err);
    return status;
}

int import_tensor_operand(struct importing *im, const Onnx__NodeProto *node, size_t i, size_t rank,
                          const Onnx__TensorProto **tensor, struct error *err) {
    struct value *value;
    size_t count;
    *tensor = NULL;
    int status = import_operand(im, node, i, &value, err);
    if (status || !value)
        return status;
    if (value->kind != VALUE_TENSOR)
        return refuse_operand(node, i, "a constant", err);
    if (rank && value->tensor->n_dims != rank)
        return error_set(err, STATUS_DATA, "'%.100s' has %zu dimensions, not %zu", value->name,
                         value->tensor->n_dims, rank);
    *tensor = value->tensor;
    status = import_check_tensor(value->tensor, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &count, err);
    return status ? error_context(err, "'%.100s'", value->name) : STATUS_OK;
}

static int64_t number_at(const Onnx__TensorProto *tensor, size_t i) {
    int64_t number;
    if (!tensor->has_raw_data)
        return tensor->int64_data[i];
    memcpy(&number, tensor->raw_data.data + i * sizeof number, sizeof number);
    return number;
}

static int tensor_numbers(struct importing *im, const struct value *value, const int64_t **numbers,
                          size_t *count, struct error *err) {
    int status =
        import_check_tensor(value->tensor, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, count, err);
    if (status)
        return error_context(err, "'%.100s'", value->name);
    int64_t *copy = keep_room(&im->keep, *count + 1, sizeof *copy);
    if (!copy)
        return error_nomem(err);
    for (size_t i = 0; i < *count; i++)
        copy[i] = number_at(value->tensor, i);
    *numbers = copy;
    return STATUS_OK;
}

int import_numbers_operand(struct importing *im, const Onnx__NodeProto *node, size_t i,
                           const int64_t **numbers, size_t *count, struct error *err) {
    struct value *value;
    *numbers = NULL;
    *count = 0;
    int status = import_operand(im, node, i, &value, err);
    if (status || !value)
        return status;
    if (value->kind == VALUE_TENSOR)
        return tensor_numbers(im, value, numbers, count, err);
    if (value->kind != VALUE_NUMBERS)
        return refuse_operand(node, i, "whole numbers that the file tells", err);
    *numbers = value->numbers;
    *count = value->number_count;
    return STATUS_OK;
}

// --- tensors ------------------------------------------------------------------------------

static const char *type_name(int32_t type) {
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(&onnx__tensor_proto__data_type__descriptor, type);
    return value ? value->name : "unknown";
}

static int count_values(const Onnx__TensorProto *tensor, size_t *count, struct error *err) {
    *count = 1;
    if (tensor->n_dims > IMPORT_RANK)
        return error_set(err, STATUS_DATA, "it has %zu dimensions", tensor->n_dims);
    for (size_t i = 0; i < tensor->n_dims; i++)
        if (tensor->dims[i] < 1 || tensor->dims[i] > INT32_MAX ||
            __builtin_mul_overflow(*count, (size_t)tensor->dims[i], count))
            return error_set(err, STATUS_DATA, "dimension %zu is %" PRId64, i + 1, tensor->dims[i]);
    return STATUS_OK;
}

int import_check_tensor(const Onnx__TensorProto *tensor, int32_t type, size_t *count,
                        struct error *err) {
    bool floats = type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    size_t each = floats ? sizeof(float) : sizeof(int64_t), bytes;
    if (tensor->n_external_data > 0 ||
        tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return error_set(err, STATUS_DATA,
                         "its values are in another file (external data), which "
                         "is not supported: save the model as one file");
    if (tensor->data_type != type)
        return error_set(err, STATUS_DATA, "its values are %s; %s is supported",
                         type_name(tensor->data_type), type_name(type));
    int status = count_values(tensor, count, err);
    if (status)
        return status;
    if (tensor->segment || __builtin_mul_overflow(*count, each, &bytes))
        return error_set(err, STATUS_DATA, "it is in pieces, or too large");
    size_t there = tensor->has_raw_data ? tensor->raw_data.len
                   : floats             ? tensor->n_float_data * each
                                        : tensor->n_int64_data * each;
    return there == bytes
               ? STATUS_OK
               : error_set(err, STATUS_DATA, "it has %zu bytes of values, not %zu", there, bytes);
}

size_t import_tensor_count(const Onnx__TensorProto *tensor) {
    size_t count = 1;
    for (size_t i = 0; i < tensor->n_dims; i++)
        count *= (size_t)tensor->dims[i];
    return count;
}

int import_check_count(const Onnx__TensorProto *tensor, int64_t wanted, struct error *err) {
    size_t count = tensor ? import_tensor_count(tensor) : (size_t)wanted;
    return count == (size_t)wanted
               ? STATUS_OK
               : error_set(err, STATUS_DATA, "'%.100s' has %zu values, not %" PRId64,
                           tensor->name ? tensor->name : "", count, wanted);
}

Onnx__TensorProto *import_new_tensor(struct importing *im, int32_t type, size_t count, bool list) {
    Onnx__TensorProto *tensor = keep_room(&im->keep, 1, sizeof *tensor);
    int64_t *dims = keep_room(&im->keep, 1, sizeof *dims);
    if (!tensor || !dims)
        return NULL;
    onnx__tensor_proto__init(tensor);
    *dims = (int64_t)count;
    tensor->dims = dims;
    tensor->n_dims = list;
    tensor->data_type = type;
    return tensor;
}

float import_float(const Onnx__TensorProto *tensor, size_t i) {
    float value;
    if (!tensor->has_raw_data)
        return tensor->float_data[i];
    memcpy(&value, tensor->raw_data.data + i * sizeof value, sizeof value);
    return value;
}

// --- attributes ---------------------------------------------------------------------------

const Onnx__AttributeProto *import_attribute(const Onnx__NodeProto *node, const char *name) {
    for (size_t i = 0; i < node->n_attribute; i++)
        if (!strcmp(text(node->attribute[i]->name), name))
            return node->attribute[i];
    return NULL;
}

static int refuse_attribute(const char *name, const char *wanted, struct error *err) {
    return error_set(err, STATUS_DATA, "attribute '%s' must be %s", name, wanted);
}

// A writer of proto3 leaves out what is 0, and tells the type.
bool import_has_int(const Onnx__AttributeProto *attribute) {
    return attribute->has_i ||
           (attribute->has_type && attribute->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
}

bool import_has_real(const Onnx__AttributeProto *attribute) {
    return attribute->has_f ||
           (attribute->has_type && attribute->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
}

int import_int(const Onnx__NodeProto *node, const char *name, int64_t *value, struct error *err) {
    const Onnx__AttributeProto *attribute = import_attribute(node, name);
    if (attribute && !import_has_int(attribute))
        return refuse_attribute(name, "a whole number", err);
    *value = attribute ? attribute->i : *value;
    return STATUS_OK;
}

int import_real(const Onnx__NodeProto *node, const char *name, double *value, struct error *err) {
    const Onnx__AttributeProto *attribute = import_attribute(node, name);
    if (attribute && !import_has_real(attribute))
        return refuse_attribute(name, "a number", err);
    *value = attribute ? (double)attribute->f : *value;
    return STATUS_OK;
}

int import_ints(const Onnx__NodeProto *node, const char *name, size_t count, const int64_t **values,
                size_t *found, struct error *err) {
    const Onnx__AttributeProto *attribute = import_attribute(node, name);
    *values = NULL;
    *found = 0;
    if (!attribute)
        return STATUS_OK;
    *values = attribute->ints;
    *found = attribute->n_ints;
    if (attribute->n_ints > 0 && (count == 0 || attribute->n_ints == count))
        return STATUS_OK;
    return error_set(err, STATUS_DATA, "attribute '%s' has %zu numbers, not %zu", name,
                     attribute->n_ints, count);
}

const char *import_number(struct importing *im, double number) {
    char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if ((float)strtod(text, NULL) == (float)number)
            break;
    }
    return keep_format(&im->keep, "%s", text);
}

const char *import_word(struct importing *im, const Onnx__NodeProto *node, const char *name) {
    const Onnx__AttributeProto *attribute = import_attribute(node, name);
    if (!attribute || !attribute->has_s)
        return "";
    int length = attribute->s.len < 64 ? (int)attribute->s.len : 64;
    return keep_format(&im->keep, "%.*s", length, (const char *)attribute->s.data);
}
