// Layers as nodes of ONNX. What has no operator of its own is made of several.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "model/layer.h"
#include "onnx/export_internal.h"
#include "onnx/lcn_window.h"

// --- parts of layers ----------------------------------------------------------------------

// The name of a value on the way: "c1.sums". No part has a dot, though layers may: what is behind
// the last one is the part, and no two layers share a name.
static const char *part_of(struct exporting *ex, const struct layer *layer, const char *part) {
    return graph_format(ex->graph, "%s.%s", layer->name, part);
}

static struct graph_node *unary(struct exporting *ex, const char *op, const char *output,
                                const char *x) {
    struct graph_node *node = graph_node(ex->graph, op, output);
    graph_input(ex->graph, node, x);
    return node;
}

static const char *binary(struct exporting *ex, const char *op, const char *output, const char *x,
                          const char *y) {
    struct graph_node *node = unary(ex, op, output, x);
    graph_input(ex->graph, node, y);
    return graph_output(node);
}

static const char *add_parameter(struct exporting *ex, const struct layer *layer, const char *what,
                                 const struct parameter *parameter, const int64_t *dims,
                                 size_t rank) {
    int64_t own[GRAPH_RANK];
    for (int i = 0; !dims && i < parameter->rank; i++)
        own[i] = parameter->dims[i];
    return graph_floats(ex->graph, part_of(ex, layer, what), dims ? dims : own,
                        dims ? rank : (size_t)parameter->rank, ex->parameters + parameter->offset);
}

// x Phi(x) = x (1 + erf(x / sqrt 2)) / 2
static const char *add_gelu(struct exporting *ex, const struct layer *layer, const char *x) {
    struct graph *g = ex->graph;
    const char *scaled =
        binary(ex, "Mul", part_of(ex, layer, "gelu_scaled"), x,
               graph_scalar(g, part_of(ex, layer, "gelu_scale"), (float)sqrt(0.5)));
    const char *erf = graph_output(unary(ex, "Erf", part_of(ex, layer, "gelu_erf"), scaled));
    const char *half = graph_scalar(g, part_of(ex, layer, "gelu_half"), 0.5f);
    const char *halved = binary(ex, "Mul", part_of(ex, layer, "gelu_halved"), erf, half);
    const char *share = binary(ex, "Add", part_of(ex, layer, "gelu_share"), halved, half);
    return binary(ex, "Mul", part_of(ex, layer, "gelu"), x, share);
}

static const char *add_silu(struct exporting *ex, const struct layer *layer, const char *x) {
    return binary(ex, "Mul", part_of(ex, layer, "silu"), x,
                  graph_output(unary(ex, "Sigmoid", part_of(ex, layer, "silu_gate"), x)));
}

static const char *add_relu6(struct exporting *ex, const struct layer *layer, const char *x) {
    struct graph_node *clip = unary(ex, "Clip", part_of(ex, layer, "relu6"), x);
    graph_input(ex->graph, clip, graph_scalar(ex->graph, part_of(ex, layer, "relu6_least"), 0));
    graph_input(ex->graph, clip, graph_scalar(ex->graph, part_of(ex, layer, "relu6_most"), 6));
    return graph_output(clip);
}

static const char *add_leaky(struct exporting *ex, const struct layer *layer, const char *x) {
    struct graph_node *leaky = unary(ex, "LeakyRelu", part_of(ex, layer, "leaky"), x);
    graph_float(ex->graph, leaky, "alpha", layer->slope);
    return graph_output(leaky);
}

static const char *add_activation(struct exporting *ex, const struct layer *layer, const char *x) {
    static const char *const plain[ACT_COUNT] = {
        [ACT_RELU] = "Relu",         [ACT_TANH] = "Tanh", [ACT_SIGMOID] = "Sigmoid",
        [ACT_SOFTPLUS] = "Softplus", [ACT_ELU] = "Elu",   [ACT_HARDSWISH] = "HardSwish",
    };
    switch (layer->act) {
    case ACT_LINEAR:
        return x;
    case ACT_LEAKY:
        return add_leaky(ex, layer, x);
    case ACT_RELU6:
        return add_relu6(ex, layer, x);
    case ACT_GELU:
        return add_gelu(ex, layer, x);
    case ACT_SILU:
        return add_silu(ex, layer, x);
    default:
        return graph_output(unary(ex, plain[layer->act], part_of(ex, layer, "act"), x));
    }
}

// --- windows ------------------------------------------------------------------------------

static int64_t pad_behind(int in, int out, int kernel, int stride, int pad) {
    int needed = (out - 1) * stride + kernel - in - pad;
    return needed > pad ? needed : pad;
}

// Padding says where the last window ends: no rounding is left to the reader.
static void set_window(struct exporting *ex, struct graph_node *node, const struct layer *layer) {
    const struct pair reach = layer_reach(layer);
    const int64_t kernel[] = {layer->kernel.h, layer->kernel.w},
                  stride[] = {layer->stride.h, layer->stride.w},
                  pads[] = {
                      layer->pad.h, layer->pad.w,
                      pad_behind(layer->in.h, layer->out.h, reach.h, layer->stride.h, layer->pad.h),
                      pad_behind(layer->in.w, layer->out.w, reach.w, layer->stride.w,
                                 layer->pad.w)};
    graph_ints(ex->graph, node, "kernel_shape", kernel, 2);
    graph_ints(ex->graph, node, "strides", stride, 2);
    graph_ints(ex->graph, node, "pads", pads, 4);
}

static const char *export_conv(struct exporting *ex, const struct layer *layer, const char *x) {
    struct graph_node *conv = unary(ex, "Conv", part_of(ex, layer, "sums"), x);
    graph_input(ex->graph, conv, add_parameter(ex, layer, "weight", &layer->weights, NULL, 0));
    graph_input(ex->graph, conv, add_parameter(ex, layer, "bias", &layer->biases, NULL, 0));
    const int64_t dilations[] = {layer->dilation.h, layer->dilation.w};
    set_window(ex, conv, layer);
    graph_ints(ex->graph, conv, "dilations", dilations, 2);
    graph_int(ex->graph, conv, "group", layer->groups);
    return graph_output(conv);
}

static struct graph_node *pool(struct exporting *ex, const struct layer *layer, const char *op,
                               const char *x) {
    struct graph_node *node = unary(ex, op, part_of(ex, layer, "pooled"), x);
    set_window(ex, node, layer);
    return node;
}

static const char *export_maxpool(struct exporting *ex, const struct layer *layer, const char *x) {
    return graph_output(pool(ex, layer, "MaxPool", x));
}

static const char *export_avgpool(struct exporting *ex, const struct layer *layer, const char *x) {
    struct graph_node *node = pool(ex, layer, "AveragePool", x);
    graph_int(ex->graph, node, "count_include_pad", 0);
    return graph_output(node);
}

static const char *export_l2pool(struct exporting *ex, const struct layer *layer, const char *x) {
    struct graph_node *node = pool(ex, layer, "LpPool", x);
    graph_int(ex->graph, node, "p", 2);
    return graph_output(node);
}

// --- norms --------------------------------------------------------------------------------

static const char *export_lrn(struct exporting *ex, const struct layer *layer, const char *x) {
    struct graph_node *lrn = unary(ex, "LRN", part_of(ex, layer, "normalised"), x);
    graph_int(ex->graph, lrn, "size", layer->size);
    graph_float(ex->graph, lrn, "alpha", layer->alpha);
    graph_float(ex->graph, lrn, "beta", layer->beta);
    graph_float(ex->graph, lrn, "bias", layer->bias_k);
    return graph_output(lrn);
}

static const char *export_batchnorm(struct exporting *ex, const struct layer *layer,
                                    const char *x) {
    struct graph_node *norm = unary(ex, "BatchNormalization", part_of(ex, layer, "normalised"), x);
    const struct parameter *const inputs[] = {&layer->weights, &layer->biases,
                                              &layer->statistics[0], &layer->statistics[1]};
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    for (int i = 0; i < 4; i++)
        graph_input(ex->graph, norm, add_parameter(ex, layer, names[i], inputs[i], NULL, 0));
    graph_float(ex->graph, norm, "epsilon", layer->alpha);
    return graph_output(norm);
}

static const char *scale_and_shift(struct exporting *ex, const struct layer *layer, const char *x,
                                   const int64_t *dims) {
    const char *scaled = binary(ex, "Mul", part_of(ex, layer, "scaled"), x,
                                add_parameter(ex, layer, "weight", &layer->weights, dims, 3));
    return binary(ex, "Add", part_of(ex, layer, "shifted"), scaled,
                  add_parameter(ex, layer, "bias", &layer->biases, dims, 3));
}

static const char *reshape(struct exporting *ex, const struct layer *layer, const char *part,
                           const char *x, const int64_t *dims, size_t rank) {
    const char *shape = graph_numbers(
        ex->graph, graph_format(ex->graph, "%s.%s_shape", layer->name, part), dims, rank);
    return binary(ex, "Reshape", part_of(ex, layer, part), x, shape);
}

// Each group as one channel, which InstanceNormalization takes by itself.
static const char *normalise_groups(struct exporting *ex, const struct layer *layer, const char *x,
                                    int groups) {
    struct graph *g = ex->graph;
    const int64_t apart[] = {0, groups, -1}, dim = groups;
    float *ones = graph_room(g, (size_t)groups), *zeros = graph_room(g, (size_t)groups);
    for (int i = 0; ones && i < groups; i++)
        ones[i] = 1;
    struct graph_node *norm = unary(ex, "InstanceNormalization", part_of(ex, layer, "normalised"),
                                    reshape(ex, layer, "groups", x, apart, 3));
    graph_input(g, norm, ones ? graph_floats(g, part_of(ex, layer, "ones"), &dim, 1, ones) : "");
    graph_input(g, norm, zeros ? graph_floats(g, part_of(ex, layer, "zeros"), &dim, 1, zeros) : "");
    graph_float(g, norm, "epsilon", layer->alpha);
    return graph_output(norm);
}

static const char *export_groupnorm(struct exporting *ex, const struct layer *layer,
                                    const char *x) {
    const int64_t whole[] = {0, layer->out.c, layer->out.h, layer->out.w},
                  dims[] = {layer->out.c, 1, 1};
    const char *apart = normalise_groups(ex, layer, x, layer->groups);
    return scale_and_shift(ex, layer, reshape(ex, layer, "together", apart, whole, 4), dims);
}

static const char *export_layernorm(struct exporting *ex, const struct layer *layer,
                                    const char *x) {
    const int64_t whole[] = {0, layer->out.c, layer->out.h, layer->out.w},
                  dims[] = {layer->out.c, layer->out.h, layer->out.w};
    const char *apart = normalise_groups(ex, layer, x, 1);
    return scale_and_shift(ex, layer, reshape(ex, layer, "together", apart, whole, 4), dims);
}

static const char *add_window(struct exporting *ex, const struct layer *layer) {
    int size = layer->size;
    const int64_t dims[] = {1, 1, size, size};
    float *weights = graph_room(ex->graph, (size_t)size * (size_t)size);
    if (!weights)
        return "";
    lcn_window(weights, size);
    return graph_floats(ex->graph, part_of(ex, layer, "window"), dims, 4, weights);
}

static const char *add_correction(struct exporting *ex, const struct layer *layer) {
    int h = layer->in.h, w = layer->in.w;
    const int64_t dims[] = {1, h, w};
    float *factors = graph_room(ex->graph, (size_t)h * (size_t)w);
    if (!factors)
        return "";
    lcn_correction(factors, layer->size, h, w);
    return graph_floats(ex->graph, part_of(ex, layer, "correction"), dims, 3, factors);
}

// The weighted mean over the window and all maps.
static const char *local_mean(struct exporting *ex, const struct layer *layer, const char *part,
                              const char *x, const char *window, const char *correction) {
    const int64_t axis = 1,
                  pads[] = {layer->size / 2, layer->size / 2, layer->size / 2, layer->size / 2};
    struct graph_node *maps =
        unary(ex, "ReduceMean", graph_format(ex->graph, "%s.%s_maps", layer->name, part), x);
    graph_ints(ex->graph, maps, "axes", &axis, 1);
    graph_int(ex->graph, maps, "keepdims", 1);
    struct graph_node *blur =
        unary(ex, "Conv", graph_format(ex->graph, "%s.%s_blurred", layer->name, part),
              graph_output(maps));
    graph_input(ex->graph, blur, window);
    graph_ints(ex->graph, blur, "pads", pads, 4);
    return binary(ex, "Mul", part_of(ex, layer, part), graph_output(blur), correction);
}

static const char *export_lcn(struct exporting *ex, const struct layer *layer, const char *x) {
    const char *window = add_window(ex, layer), *correction = add_correction(ex, layer);
    const char *mean = local_mean(ex, layer, "mean", x, window, correction);
    const char *centred = binary(ex, "Sub", part_of(ex, layer, "centred"), x, mean);
    const char *squares = binary(ex, "Mul", part_of(ex, layer, "squares"), centred, centred);
    const char *variance = local_mean(ex, layer, "variance", squares, window, correction);
    const char *root = graph_output(unary(ex, "Sqrt", part_of(ex, layer, "deviation"), variance));
    const char *least = graph_scalar(ex->graph, part_of(ex, layer, "least"), layer->alpha);
    return binary(ex, "Div", part_of(ex, layer, "normalised"), centred,
                  binary(ex, "Max", part_of(ex, layer, "divisor"), root, least));
}

// --- dense layers, outputs, joins ---------------------------------------------------------

static const char *export_dense(struct exporting *ex, const struct layer *layer, const char *x) {
    struct graph_node *flat = unary(ex, "Flatten", part_of(ex, layer, "flat"), x);
    graph_int(ex->graph, flat, "axis", 1);
    struct graph_node *gemm = unary(ex, "Gemm", part_of(ex, layer, "sums"), graph_output(flat));
    graph_input(ex->graph, gemm, add_parameter(ex, layer, "weight", &layer->weights, NULL, 0));
    graph_input(ex->graph, gemm, add_parameter(ex, layer, "bias", &layer->biases, NULL, 0));
    graph_int(ex->graph, gemm, "transB", 1);
    // Flat vectors have height and width here, as all values between layers.
    const int64_t dims[] = {0, layer->out.c, 1, 1};
    return layer->type->output ? graph_output(gemm)
                               : reshape(ex, layer, "units", graph_output(gemm), dims, 4);
}

static const char *export_softmax(struct exporting *ex, const struct layer *layer, const char *x) {
    struct graph_node *softmax = unary(ex, "Softmax", "scores", export_dense(ex, layer, x));
    graph_int(ex->graph, softmax, "axis", 1);
    return graph_output(softmax);
}

static const char *export_numbers(struct exporting *ex, const struct layer *layer, const char *x) {
    return graph_output(unary(ex, "Identity", "scores", export_dense(ex, layer, x)));
}

static const char *export_logistic(struct exporting *ex, const struct layer *layer, const char *x) {
    return graph_output(unary(ex, "Sigmoid", "scores", export_dense(ex, layer, x)));
}

static struct graph_node *join(struct exporting *ex, const struct layer *layer, const char *op) {
    struct graph_node *node = graph_node(ex->graph, op, part_of(ex, layer, "joined"));
    for (int i = 0; i < layer->from_count; i++)
        graph_input(ex->graph, node, ex->values[layer->from[i]]);
    return node;
}

static const char *export_concat(struct exporting *ex, const struct layer *layer, const char *x) {
    struct graph_node *concat = join(ex, layer, "Concat");
    (void)x;
    graph_int(ex->graph, concat, "axis", 1);
    return graph_output(concat);
}

static const char *export_add(struct exporting *ex, const struct layer *layer, const char *x) {
    (void)x;
    return graph_output(join(ex, layer, "Sum"));
}

// Dropout does nothing outside training, and the others are activations alone.
static const char *export_nothing(struct exporting *ex, const struct layer *layer, const char *x) {
    (void)ex, (void)layer;
    return x;
}

// --- the table ----------------------------------------------------------------------------

typedef const char *exporter(struct exporting *ex, const struct layer *layer, const char *x);

static exporter *exporter_of(const struct layer_type *type) {
    static const struct {
        const char *type;
        exporter *export;
    } rows[] = {
        {"conv", export_conv},
        {"maxpool", export_maxpool},
        {"avgpool", export_avgpool},
        {"l2pool", export_l2pool},
        {"lrn", export_lrn},
        {"lcn", export_lcn},
        {"batchnorm", export_batchnorm},
        {"groupnorm", export_groupnorm},
        {"layernorm", export_layernorm},
        {"dense", export_dense},
        {"softmax", export_softmax},
        {"logistic", export_logistic},
        {"concat", export_concat},
        {"add", export_add},
        {"dropout", export_nothing},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].type, type->name))
            return rows[i].export;
    // Both that are called linear: the activation, and the output.
    return type->activation ? export_nothing : type->output ? export_numbers : NULL;
}

int export_layer(struct exporting *ex, const struct layer *layer, struct error *err) {
    exporter *export = exporter_of(layer->type);
    if (!export)
        return error_set(err, STATUS_DATA, "layer '%s': ONNX has no operator like %s", layer->name,
                         layer->type->name);
    const char *x = ex->values[layer->from[0]];
    ex->values[layer->index] = add_activation(ex, layer, export(ex, layer, x));
    return STATUS_OK;
}
