// Nodes that are layers.
#include <inttypes.h>
#include <onnx.pb-c.h>
#include <string.h>

#include "core/error.h"
#include "onnx/import_internal.h"

enum { VALUES_MOST = 1 << 30, SIZE_MOST = 10000, MAPS_MOST = 1000000 };

// --- drafts -------------------------------------------------------------------------------

int import_shape(struct shape *out, int64_t c, int64_t h, int64_t w, struct error *err) {
    int64_t values;
    if (c < 1 || h < 1 || w < 1 || __builtin_mul_overflow(c, h, &values) ||
        __builtin_mul_overflow(values, w, &values) || values > VALUES_MOST)
        return error_set(err, STATUS_DATA,
                         "%" PRId64 "x%" PRId64 "x%" PRId64 " is no shape of 1 to %d values", c, h,
                         w, VALUES_MOST);
    *out = (struct shape){(int)c, (int)h, (int)w};
    return STATUS_OK;
}

int import_draft(struct importing *im, const Onnx__NodeProto *node, const char *type,
                 const struct value *from, struct draft **draft, struct error *err) {
    *draft = NULL;
    if (im->draft_count > IMPORT_LAYERS)
        return error_set(err, STATUS_DATA, "more than %d layers", IMPORT_LAYERS);
    int index = im->draft_count++;
    *draft = &im->drafts[index];
    **draft = (struct draft){.type = type, .node = node, .keys = "", .stands_in = index};
    if (from) {
        (*draft)->from[(*draft)->from_count++] = from->layer;
        (*draft)->out = import_out(im, from);
    }
    return STATUS_OK;
}

void import_gives_layer(struct importing *im, const Onnx__NodeProto *node,
                        const struct draft *draft, bool flat) {
    struct value *value = import_result(im, node);
    value->kind = VALUE_LAYER;
    value->layer = (int)(draft - im->drafts);
    value->flat = flat;
    value->maker = node;
}

void import_gives_same(struct importing *im, const Onnx__NodeProto *node,
                       const struct value *value) {
    struct value *result = import_result(im, node), same = *value;
    same.name = result->name;
    same.readers = result->readers;
    same.shared = value->shared || value->readers > 1;
    *result = same;
}

struct shape import_out(const struct importing *im, const struct value *value) {
    return im->drafts[value->layer].out;
}

// --- windows ------------------------------------------------------------------------------

struct sides {
    int64_t h, w;
};

struct window_of_node {
    struct sides kernel, stride, dilation, before, behind, out;
    struct sides reach; // from the first tap to the last
    bool up;            // rounded
};

static int read_sides(const Onnx__NodeProto *node, const char *name, int64_t least,
                      struct sides *sides, struct error *err) {
    const int64_t *values;
    size_t found;
    int status = import_ints(node, name, 2, &values, &found, err);
    if (status || !values)
        return status;
    for (int i = 0; i < 2; i++)
        if (values[i] < least || values[i] > SIZE_MOST)
            return error_set(err, STATUS_DATA, "attribute '%s' has %" PRId64, name, values[i]);
    *sides = (struct sides){values[0], values[1]};
    return STATUS_OK;
}

static int read_pads(const Onnx__NodeProto *node, struct window_of_node *window,
                     struct error *err) {
    const int64_t *pads;
    size_t found;
    int status = import_ints(node, "pads", 4, &pads, &found, err);
    if (status || !pads)
        return status;
    for (int i = 0; i < 4; i++)
        if (pads[i] < 0 || pads[i] > SIZE_MOST)
            return error_set(err, STATUS_DATA, "attribute 'pads' has %" PRId64, pads[i]);
    window->before = (struct sides){pads[0], pads[1]};
    window->behind = (struct sides){pads[2], pads[3]};
    return STATUS_OK;
}

// As many windows as there are strides: what that takes around the picture.
static void pad_same(int64_t in, int64_t kernel, int64_t stride, bool upper, int64_t *before,
                     int64_t *behind) {
    int64_t all = ((in + stride - 1) / stride - 1) * stride + kernel - in;
    all = all > 0 ? all : 0;
    *before = upper ? all / 2 : all - all / 2;
    *behind = all - *before;
}

static int read_auto_pad(struct importing *im, const Onnx__NodeProto *node, struct shape in,
                         struct window_of_node *w, struct error *err) {
    const char *way = import_word(im, node, "auto_pad");
    bool upper = !strcmp(way, "SAME_UPPER");
    if (!*way || !strcmp(way, "NOTSET"))
        return read_pads(node, w, err);
    if (upper || !strcmp(way, "SAME_LOWER")) {
        pad_same(in.h, w->reach.h, w->stride.h, upper, &w->before.h, &w->behind.h);
        pad_same(in.w, w->reach.w, w->stride.w, upper, &w->before.w, &w->behind.w);
        return STATUS_OK;
    }
    return !strcmp(way, "VALID") ? STATUS_OK
                                 : error_set(err, STATUS_DATA, "attribute 'auto_pad' is '%s'", way);
}

static int64_t count_windows(int64_t in, int64_t kernel, int64_t stride, int64_t before,
                             int64_t behind, bool up) {
    int64_t room = in + before + behind - kernel;
    if (room < 0)
        return 0;
    int64_t out = (room + (up ? stride - 1 : 0)) / stride + 1;
    return up && (out - 1) * stride >= in + before ? out - 1 : out; // sees nothing
}

// Windows begin where the padding does: behind the picture only their number counts.
static bool holds(const struct window_of_node *w, struct shape in, bool up) {
    return count_windows(in.h, w->reach.h, w->stride.h, w->before.h, w->before.h, up) == w->out.h &&
           count_windows(in.w, w->reach.w, w->stride.w, w->before.w, w->before.w, up) == w->out.w;
}

static int check_window(struct window_of_node *w, struct shape in, bool ceil, struct error *err) {
    w->out.h = count_windows(in.h, w->reach.h, w->stride.h, w->before.h, w->behind.h, ceil);
    w->out.w = count_windows(in.w, w->reach.w, w->stride.w, w->before.w, w->behind.w, ceil);
    if (w->out.h < 1 || w->out.w < 1)
        return error_set(err, STATUS_DATA,
                         "its window of %" PRId64 "x%" PRId64 " is larger than what it reads, "
                         "%dx%d",
                         w->reach.h, w->reach.w, in.h, in.w);
    w->up = !holds(w, in, false);
    if (w->before.h < w->reach.h && w->before.w < w->reach.w && (!w->up || holds(w, in, true)))
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "padding of %" PRId64 ",%" PRId64 " before and %" PRId64 ",%" PRId64
                     " behind is not supported: as much behind as before is, smaller than the "
                     "window, or as much as rounding up takes",
                     w->before.h, w->before.w, w->behind.h, w->behind.w);
}

static int64_t reach_of(int64_t kernel, int64_t dilation) {
    return (kernel - 1) * dilation + 1;
}

// The kernel is what it is where the attribute is left out.
static int read_window(struct importing *im, const Onnx__NodeProto *node, struct shape in,
                       struct window_of_node *w, struct error *err) {
    int64_t ceil = 0;
    w->stride = w->dilation = (struct sides){1, 1};
    int status = read_sides(node, "kernel_shape", 1, &w->kernel, err);
    if (!status)
        status = read_sides(node, "strides", 1, &w->stride, err);
    if (!status)
        status = read_sides(node, "dilations", 1, &w->dilation, err);
    if (!status)
        status = import_int(node, "ceil_mode", &ceil, err);
    w->reach =
        (struct sides){reach_of(w->kernel.h, w->dilation.h), reach_of(w->kernel.w, w->dilation.w)};
    if (!status)
        status = read_auto_pad(im, node, in, w, err);
    return status ? status : check_window(w, in, ceil != 0, err);
}

static const char *sides_key(struct importing *im, const char *key, struct sides sides) {
    return sides.h == sides.w
               ? keep_format(&im->keep, " %s=%" PRId64, key, sides.h)
               : keep_format(&im->keep, " %s=%" PRId64 "x%" PRId64, key, sides.h, sides.w);
}

static const char *window_keys(struct importing *im, const char *key,
                               const struct window_of_node *w, bool pool) {
    bool usual = pool ? w->stride.h == w->kernel.h && w->stride.w == w->kernel.w
                      : w->stride.h == 1 && w->stride.w == 1;
    bool dense = w->dilation.h == 1 && w->dilation.w == 1;
    return keep_format(&im->keep, "%s%s%s%s%s", sides_key(im, key, w->kernel),
                       usual ? "" : sides_key(im, "stride", w->stride),
                       dense ? "" : sides_key(im, "dilation", w->dilation),
                       w->before.h || w->before.w ? sides_key(im, "pad", w->before) : "",
                       w->up ? " round=up" : "");
}

// --- convolutions and pools ---------------------------------------------------------------

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

int import_check_count(const Onnx__TensorProto *tensor, int64_t wanted, struct error *err) {
    size_t count = tensor ? import_tensor_count(tensor) : (size_t)wanted;
    return count == (size_t)wanted
               ? STATUS_OK
               : error_set(err, STATUS_DATA, "'%.100s' has %zu values, not %" PRId64,
                           tensor->name ? tensor->name : "", count, wanted);
}

static int check_groups(const Onnx__TensorProto *weights, struct shape in, int64_t groups,
                        struct error *err) {
    int64_t maps = weights->dims[0], read = weights->dims[1];
    if (groups >= 1 && groups <= maps && maps <= MAPS_MOST && maps % groups == 0 &&
        in.c % groups == 0 && in.c / groups == read)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "%" PRId64 " groups of %" PRId64 " kernels for %" PRId64
                     " maps do not fit %d maps",
                     groups, maps, read, in.c);
}

int import_conv(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    const Onnx__TensorProto *weights, *biases = NULL;
    struct window_of_node w = {.up = false};
    struct draft *draft;
    struct shape out;
    int64_t groups = 1;
    int status = import_picture_operand(im, node, &x, err);
    if (!status)
        status = import_tensor_operand(im, node, 1, 4, &weights, err);
    if (!status && !weights)
        status = error_set(err, STATUS_DATA, "it has no weights");
    if (!status)
        status = import_tensor_operand(im, node, 2, 1, &biases, err);
    if (!status)
        status = import_int(node, "group", &groups, err);
    if (!status)
        status = check_groups(weights, import_out(im, x), groups, err);
    if (!status)
        status = import_check_count(biases, weights->dims[0], err);
    if (status)
        return status;
    w.kernel = (struct sides){weights->dims[2], weights->dims[3]};
    status = read_window(im, node, import_out(im, x), &w, err);
    if (!status && (w.kernel.h != weights->dims[2] || w.kernel.w != weights->dims[3]))
        status = error_set(err, STATUS_DATA, "'kernel_shape' is not that of the weights");
    if (!status)
        status = import_shape(&out, weights->dims[0], w.out.h, w.out.w, err);
    if (!status)
        status = import_draft(im, node, "conv", x, &draft, err);
    if (status)
        return status;
    draft->out = out;
    draft->weight_name = weights->name;
    draft->weights = (struct source){.tensor = weights, .factor = 1};
    draft->biases = (struct source){.tensor = biases, .factor = 1};
    draft->keys =
        keep_format(&im->keep, " maps=%d%s%s", out.c, window_keys(im, "kernel", &w, false),
                    groups > 1 ? keep_format(&im->keep, " groups=%" PRId64, groups) : "");
    import_gives_layer(im, node, draft, false);
    return STATUS_OK;
}

// --- pools --------------------------------------------------------------------------------

static bool is_padded(const struct window_of_node *w) {
    return w->before.h || w->before.w || w->behind.h || w->behind.w;
}

// What the pools have beside their windows.
static int check_pool(const Onnx__NodeProto *node, const struct window_of_node *w,
                      struct error *err) {
    int64_t counts = 0, p = 2;
    int status = import_int(node, "count_include_pad", &counts, err);
    if (!status)
        status = import_int(node, "p", &p, err);
    if (status)
        return status;
    if (w->dilation.h != 1 || w->dilation.w != 1)
        return error_set(err, STATUS_DATA, "dilations other than 1 are not supported in pools");
    if (counts && is_padded(w))
        return error_set(err, STATUS_DATA,
                         "'count_include_pad' with padding is not supported: means are over the "
                         "pixels that exist");
    return p == 2 ? STATUS_OK
                  : error_set(err, STATUS_DATA, "p=%" PRId64 " is not supported: 2 is", p);
}

int import_pool(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    const char *type = *node->op_type == 'M'   ? "maxpool"
                       : *node->op_type == 'A' ? "avgpool"
                                               : "l2pool";
    struct value *x;
    struct window_of_node w = {.up = false};
    struct draft *draft;
    struct shape out;
    int status = import_picture_operand(im, node, &x, err);
    if (!status && !import_attribute(node, "kernel_shape"))
        status = error_set(err, STATUS_DATA, "it has no kernel_shape");
    if (!status)
        status = read_window(im, node, import_out(im, x), &w, err);
    if (!status)
        status = check_pool(node, &w, err);
    if (!status)
        status = import_shape(&out, import_out(im, x).c, w.out.h, w.out.w, err);
    if (status)
        return status;
    bool nothing = w.kernel.h == 1 && w.kernel.w == 1 && w.stride.h == 1 && w.stride.w == 1;
    if (nothing && *type != 'l')
        return import_gives_same(im, node, x), STATUS_OK;
    status = import_draft(im, node, type, x, &draft, err);
    if (status)
        return status;
    draft->out = out;
    draft->keys = window_keys(im, "size", &w, true);
    import_gives_layer(im, node, draft, false);
    return STATUS_OK;
}

static int add_global_pool(struct importing *im, const Onnx__NodeProto *node, const char *type,
                           const struct value *x, bool flat, struct error *err) {
    struct draft *draft;
    int status = import_draft(im, node, type, x, &draft, err);
    if (status)
        return status;
    draft->out.h = draft->out.w = 1;
    draft->keys = " size=all";
    import_gives_layer(im, node, draft, flat);
    return STATUS_OK;
}

int import_global_pool(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    int status = import_picture_operand(im, node, &x, err);
    const char *type = strstr(node->op_type, "Max") ? "maxpool" : "avgpool";
    return status ? status : add_global_pool(im, node, type, x, false, err);
}

// A mean over height and width.
int import_reduce_mean(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    const int64_t *axes;
    size_t count;
    int64_t keep = 1;
    int status = import_picture_operand(im, node, &x, err);
    if (!status)
        status = import_int(node, "keepdims", &keep, err);
    if (!status)
        status = node->n_input > 1 ? import_numbers_operand(im, node, 1, &axes, &count, err)
                                   : import_ints(node, "axes", 0, &axes, &count, err);
    if (status)
        return status;
    return import_are_sides(axes, count)
               ? add_global_pool(im, node, "avgpool", x, !keep, err)
               : error_set(err, STATUS_DATA, "axes other than 2,3 are not supported");
}

// --- dense layers -------------------------------------------------------------------------

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

// --- what is nothing ----------------------------------------------------------------------

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
