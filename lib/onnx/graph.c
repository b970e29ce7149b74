#include "onnx/graph.h"

#include <onnx.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "onnx/keep.h"

struct graph {
    struct keep keep; // memory of all that follows
    struct list nodes, constants, inputs, outputs, notes;
};

struct graph_node {
    Onnx__NodeProto proto;
    struct list inputs, attributes;
    char *output;
};

// --- memory -------------------------------------------------------------------------------

const char *graph_format(struct graph *graph, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *kept = keep_vformat(&graph->keep, format, args);
    va_end(args);
    return kept;
}

float *graph_room(struct graph *graph, size_t floats) {
    return keep_room(&graph->keep, floats, sizeof(float));
}

struct graph *graph_open(void) {
    return mem_zeroed(1, sizeof(struct graph));
}

static void free_node(struct graph_node *node) {
    free(node->inputs.items);
    free(node->attributes.items);
}

void graph_close(struct graph *graph) {
    if (!graph)
        return;
    for (size_t i = 0; i < graph->nodes.count; i++)
        free_node(graph->nodes.items[i]);
    keep_free(&graph->keep);
    free(graph->nodes.items), free(graph->constants.items);
    free(graph->inputs.items), free(graph->outputs.items), free(graph->notes.items);
    free(graph);
}

// --- nodes --------------------------------------------------------------------------------

struct graph_node *graph_node(struct graph *graph, const char *op, const char *output) {
    struct graph_node *node = keep_room(&graph->keep, 1, sizeof *node);
    if (!node)
        return NULL;
    onnx__node_proto__init(&node->proto);
    node->proto.op_type = keep_text(&graph->keep, op);
    node->proto.name = node->output = keep_text(&graph->keep, output);
    keep_add(&graph->keep, &graph->nodes, node);
    return node;
}

const char *graph_output(const struct graph_node *node) {
    return node && node->output ? node->output : "";
}

void graph_input(struct graph *graph, struct graph_node *node, const char *name) {
    if (node)
        keep_add(&graph->keep, &node->inputs, keep_text(&graph->keep, name));
}

static Onnx__AttributeProto *add_attribute(struct graph *graph, struct graph_node *node,
                                           const char *name,
                                           Onnx__AttributeProto__AttributeType type) {
    Onnx__AttributeProto *attribute = node ? keep_room(&graph->keep, 1, sizeof *attribute) : NULL;
    if (!attribute)
        return NULL;
    onnx__attribute_proto__init(attribute);
    attribute->name = keep_text(&graph->keep, name);
    attribute->has_type = true;
    attribute->type = type;
    keep_add(&graph->keep, &node->attributes, attribute);
    return attribute;
}

void graph_int(struct graph *graph, struct graph_node *node, const char *name, int64_t value) {
    Onnx__AttributeProto *attribute =
        add_attribute(graph, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (!attribute)
        return;
    attribute->has_i = true;
    attribute->i = value;
}

void graph_float(struct graph *graph, struct graph_node *node, const char *name, float value) {
    Onnx__AttributeProto *attribute =
        add_attribute(graph, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (!attribute)
        return;
    attribute->has_f = true;
    attribute->f = value;
}

void graph_ints(struct graph *graph, struct graph_node *node, const char *name,
                const int64_t *values, size_t count) {
    Onnx__AttributeProto *attribute =
        add_attribute(graph, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t *copy = attribute ? keep_room(&graph->keep, count, sizeof *copy) : NULL;
    if (!copy)
        return;
    memcpy(copy, values, count * sizeof *copy);
    attribute->ints = copy;
    attribute->n_ints = count;
}

// --- constants ----------------------------------------------------------------------------

static const char *add_constant(struct graph *graph, const char *name, const int64_t *dims,
                                size_t rank, Onnx__TensorProto__DataType type, const void *values,
                                size_t bytes) {
    Onnx__TensorProto *tensor = keep_room(&graph->keep, 1, sizeof *tensor);
    int64_t *copy = keep_room(&graph->keep, rank + 1, sizeof *copy);
    if (!tensor || !copy)
        return "";
    onnx__tensor_proto__init(tensor);
    if (rank > 0)
        memcpy(copy, dims, rank * sizeof *copy);
    tensor->dims = copy;
    tensor->n_dims = rank;
    tensor->has_data_type = tensor->has_raw_data = true;
    tensor->data_type = (int32_t)type;
    tensor->raw_data = (ProtobufCBinaryData){bytes, (uint8_t *)values};
    tensor->name = keep_text(&graph->keep, name);
    keep_add(&graph->keep, &graph->constants, tensor);
    return tensor->name ? tensor->name : "";
}

const char *graph_floats(struct graph *graph, const char *name, const int64_t *dims, size_t rank,
                         const float *values) {
    size_t bytes = sizeof *values;
    for (size_t i = 0; i < rank; i++)
        bytes *= (size_t)dims[i];
    return add_constant(graph, name, dims, rank, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, values,
                        bytes);
}

const char *graph_numbers(struct graph *graph, const char *name, const int64_t *values,
                          size_t count) {
    const int64_t dim = (int64_t)count;
    int64_t *copy = keep_room(&graph->keep, count, sizeof *copy);
    if (!copy)
        return "";
    memcpy(copy, values, count * sizeof *copy);
    return add_constant(graph, name, &dim, 1, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, copy,
                        count * sizeof *copy);
}

const char *graph_scalar(struct graph *graph, const char *name, float value) {
    float *copy = graph_room(graph, 1);
    if (!copy)
        return "";
    *copy = value;
    return graph_floats(graph, name, NULL, 0, copy);
}

// --- what goes in and out -----------------------------------------------------------------

static void set_dimension(struct graph *graph, Onnx__TensorShapeProto__Dimension *dimension,
                          const int64_t *dim) {
    onnx__tensor_shape_proto__dimension__init(dimension);
    if (dim) {
        dimension->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dimension->dim_value = *dim;
    } else {
        dimension->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        dimension->dim_param = keep_text(&graph->keep, "N");
    }
}

static Onnx__TensorShapeProto *make_shape(struct graph *graph, const int64_t *dims, size_t rank) {
    Onnx__TensorShapeProto *shape = keep_room(&graph->keep, 1, sizeof *shape);
    Onnx__TensorShapeProto__Dimension *each = keep_room(&graph->keep, rank + 1, sizeof *each),
                                      **list;
    list = keep_room(&graph->keep, rank + 1, sizeof *list);
    if (!shape || !each || !list)
        return NULL;
    onnx__tensor_shape_proto__init(shape);
    for (size_t i = 0; i <= rank; i++) {
        set_dimension(graph, &each[i], i > 0 ? &dims[i - 1] : NULL);
        list[i] = &each[i];
    }
    shape->n_dim = rank + 1;
    shape->dim = list;
    return shape;
}

static void add_value(struct graph *graph, struct list *list, const char *name, const int64_t *dims,
                      size_t rank) {
    Onnx__ValueInfoProto *value = keep_room(&graph->keep, 1, sizeof *value);
    Onnx__TypeProto *type = keep_room(&graph->keep, 1, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = keep_room(&graph->keep, 1, sizeof *tensor);
    if (!value || !type || !tensor)
        return;
    onnx__value_info_proto__init(value);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    tensor->has_elem_type = true;
    tensor->elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    tensor->shape = make_shape(graph, dims, rank);
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    value->name = keep_text(&graph->keep, name);
    value->type = type;
    keep_add(&graph->keep, list, value);
}

void graph_takes(struct graph *graph, const char *name, const int64_t *dims, size_t rank) {
    add_value(graph, &graph->inputs, name, dims, rank);
}

void graph_gives(struct graph *graph, const char *name, const int64_t *dims, size_t rank) {
    add_value(graph, &graph->outputs, name, dims, rank);
}

void graph_note(struct graph *graph, const char *key, const char *value) {
    Onnx__StringStringEntryProto *note = keep_room(&graph->keep, 1, sizeof *note);
    if (!note)
        return;
    onnx__string_string_entry_proto__init(note);
    note->key = keep_text(&graph->keep, key);
    note->value = keep_text(&graph->keep, value);
    keep_add(&graph->keep, &graph->notes, note);
}

// --- the whole ----------------------------------------------------------------------------

// The lists have grown to what they are.
static void end_node(struct graph_node *node) {
    node->proto.input = (char **)node->inputs.items;
    node->proto.n_input = node->inputs.count;
    node->proto.output = &node->output;
    node->proto.n_output = 1;
    node->proto.attribute = (Onnx__AttributeProto **)node->attributes.items;
    node->proto.n_attribute = node->attributes.count;
}

static void fill_graph(Onnx__GraphProto *proto, struct graph *graph, const char *name) {
    onnx__graph_proto__init(proto);
    for (size_t i = 0; i < graph->nodes.count; i++)
        end_node(graph->nodes.items[i]);
    proto->name = keep_text(&graph->keep, name);
    proto->node = (Onnx__NodeProto **)graph->nodes.items; // each begins with its proto
    proto->n_node = graph->nodes.count;
    proto->initializer = (Onnx__TensorProto **)graph->constants.items;
    proto->n_initializer = graph->constants.count;
    proto->input = (Onnx__ValueInfoProto **)graph->inputs.items;
    proto->n_input = graph->inputs.count;
    proto->output = (Onnx__ValueInfoProto **)graph->outputs.items;
    proto->n_output = graph->outputs.count;
}

int graph_pack(struct graph *graph, const char *name, uint8_t **bytes, size_t *size,
               struct error *err) {
    Onnx__ModelProto model;
    Onnx__GraphProto proto;
    Onnx__OperatorSetIdProto opset, *opsets = &opset;
    onnx__model_proto__init(&model);
    onnx__operator_set_id_proto__init(&opset);
    fill_graph(&proto, graph, name);
    opset.domain = keep_text(&graph->keep, "");
    opset.has_version = true;
    opset.version = GRAPH_OPSET;
    model.has_ir_version = true;
    model.ir_version = ONNX__VERSION__IR_VERSION;
    model.opset_import = &opsets;
    model.n_opset_import = 1;
    model.producer_name = keep_text(&graph->keep, "adam");
    model.producer_version = keep_text(&graph->keep, ADAM_VERSION);
    model.graph = &proto;
    model.metadata_props = (Onnx__StringStringEntryProto **)graph->notes.items;
    model.n_metadata_props = graph->notes.count;
    if (graph->keep.failed)
        return error_nomem(err);
    *size = onnx__model_proto__get_packed_size(&model);
    if (*size > INT32_MAX)
        return error_set(err, STATUS_DATA, "%s has %zu bytes, of which an ONNX file holds 2 GiB",
                         name, *size);
    *bytes = mem_array(*size, 1);
    if (!*bytes)
        return error_nomem(err);
    onnx__model_proto__pack(&model, *bytes);
    return STATUS_OK;
}
