// Nodes that normalise. A graph may do so in several: split the maps into groups, normalise each
// row, put them together again, multiply and add; all of that is one layer here.
#include <inttypes.h>
#include <onnx.pb-c.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "model/layer.h"
#include "onnx/import_internal.h"

enum { LRN_MOST = 10000 };

static const struct layer_key *find_key(const char *type, const char *key) {
    size_t count;
    const struct layer_type *const *types = layer_types(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; !strcmp(types[i]->name, type) && j < types[i]->key_count; j++)
            if (!strcmp(types[i]->keys[j].name, key))
                return &types[i]->keys[j];
    return NULL;
}

int import_key(struct importing *im, const char *type, const char *key, double number,
               const char **text, struct error *err) {
    const struct layer_key *row = find_key(type, key);
    const char *digits = import_number(im, number);
    double value = strtod(digits, NULL);
    *text = keep_format(&im->keep, " %s=%s", key, digits);
    return !row || (value >= row->low && value <= row->high)
               ? STATUS_OK
               : error_set(err, STATUS_DATA, "%s %s is not supported: %g to %g is", key, digits,
                           row->low, row->high);
}

static int put_real(struct importing *im, const Onnx__NodeProto *node, const char *name,
                    const char *type, const char *key, double standard, const char **text,
                    struct error *err) {
    *text = "";
    int status = import_real(node, name, &standard, err);
    return status ? status : import_key(im, type, key, standard, text, err);
}

int import_lrn(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    struct draft *draft;
    int64_t size = 0;
    const char *alpha, *beta, *k;
    int status = import_picture_operand(im, node, &x, err);
    if (!status)
        status = import_int(node, "size", &size, err);
    if (!status)
        status = put_real(im, node, "alpha", "lrn", "alpha", 0.0001, &alpha, err);
    if (!status)
        status = put_real(im, node, "beta", "lrn", "beta", 0.75, &beta, err);
    if (!status)
        status = put_real(im, node, "bias", "lrn", "k", 1, &k, err);
    if (!status && (size < 1 || size > LRN_MOST || size % 2 == 0))
        status =
            error_set(err, STATUS_DATA, "size %" PRId64 " is not supported: odd ones are", size);
    if (!status)
        status = import_draft(im, node, "lrn", x, &draft, err);
    if (status)
        return status;
    draft->keys = keep_format(&im->keep, " size=%" PRId64 "%s%s%s", size, alpha, beta, k);
    import_gives_layer(im, node, draft, false);
    return STATUS_OK;
}

// Inputs from the second on, which have `wanted` values each.
static int norm_tensors(struct importing *im, const Onnx__NodeProto *node, size_t rank,
                        int64_t wanted, const Onnx__TensorProto **tensors, size_t count,
                        struct error *err) {
    for (size_t i = 0; i < count; i++) {
        int status = import_tensor_operand(im, node, i + 1, rank, &tensors[i], err);
        if (!status && !tensors[i])
            status = error_set(err, STATUS_DATA, "input %zu is left out", i + 2);
        if (!status)
            status = import_check_count(tensors[i], wanted, err);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static void give_scale(struct draft *draft, const Onnx__TensorProto *scale,
                       const Onnx__TensorProto *shift) {
    draft->weight_name = scale->name;
    draft->weights = (struct source){.tensor = scale, .factor = 1};
    draft->biases = (struct source){.tensor = shift, .factor = 1};
}

static int read_epsilon(struct importing *im, const Onnx__NodeProto *node, const char *type,
                        const char **key, struct error *err) {
    return put_real(im, node, "epsilon", type, "epsilon", 1e-5, key, err);
}

// --- of several samples -------------------------------------------------------------------

int import_refuse_training(struct error *err) {
    return error_set(err, STATUS_DATA,
                     "training_mode=1 is not supported: export the model in its mode of "
                     "evaluation");
}

// Before operator set 14 that was what said that it is in training.
static bool gives_statistics(const struct importing *im, const Onnx__NodeProto *node) {
    for (size_t i = 1; im->opset < 14 && i < node->n_output; i++)
        if (*node->output[i])
            return true;
    return false;
}

static int read_momentum(struct importing *im, const Onnx__NodeProto *node, const char **key,
                         struct error *err) {
    int64_t training = 0;
    double momentum = 0.9;
    int status = import_int(node, "training_mode", &training, err);
    if (!status && (training || gives_statistics(im, node)))
        status = import_refuse_training(err);
    if (!status)
        status = import_real(node, "momentum", &momentum, err);
    bool moves = momentum >= 0 && momentum < 0.999999;
    *key = moves ? keep_format(&im->keep, " momentum=%s", import_number(im, 1 - momentum)) : "";
    return status;
}

int import_batchnorm(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    struct draft *draft;
    const Onnx__TensorProto *tensors[2 + LAYER_STATISTICS];
    const char *epsilon, *momentum;
    int status = import_layer_operand(im, node, 0, &x, err);
    if (status)
        return status;
    struct shape in = import_out(im, x);
    if (x->flat && (in.h > 1 || in.w > 1))
        return import_check_picture(x, err);
    status = norm_tensors(im, node, 1, in.c, tensors, 2 + LAYER_STATISTICS, err);
    if (!status)
        status = read_epsilon(im, node, "batchnorm", &epsilon, err);
    if (!status)
        status = read_momentum(im, node, &momentum, err);
    if (!status)
        status = import_draft(im, node, "batchnorm", x, &draft, err);
    if (status)
        return status;
    give_scale(draft, tensors[0], tensors[1]);
    for (int i = 0; i < LAYER_STATISTICS; i++)
        draft->statistics[i] = (struct source){.tensor = tensors[2 + i], .factor = 1};
    draft->keys = keep_format(&im->keep, "%s%s", epsilon, momentum);
    import_gives_layer(im, node, draft, x->flat);
    return STATUS_OK;
}

// --- of one -------------------------------------------------------------------------------

static bool are_all(const Onnx__TensorProto *tensor, float number) {
    for (size_t i = 0; i < import_tensor_count(tensor); i++)
        if (import_float(tensor, i) != number)
            return false;
    return true;
}

// A norm of `groups`, with a scale and a shift for each of them or for `each` of their values;
// ones and zeros are left to nodes that follow.
static int add_groups(struct importing *im, const Onnx__NodeProto *node, const struct value *x,
                      int groups, const Onnx__TensorProto *const tensors[2], struct error *err) {
    struct draft *draft;
    const char *epsilon;
    int each = import_out(im, x).c / groups;
    int status = read_epsilon(im, node, "groupnorm", &epsilon, err);
    if (!status)
        status = import_draft(im, node, "groupnorm", x, &draft, err);
    if (status)
        return status;
    draft->keys = epsilon;
    draft->groups = groups;
    draft->weights = (struct source){.ones = true};
    if (!are_all(tensors[0], 1) || !are_all(tensors[1], 0)) {
        draft->weights = (struct source){.tensor = tensors[0], .factor = 1, .each = each};
        draft->biases = (struct source){.tensor = tensors[1], .factor = 1, .each = each};
    }
    import_gives_layer(im, node, draft, x->flat);
    import_result(im, node)->rows = x->rows;
    return STATUS_OK;
}

// Each map by itself, or each of the rows that a Reshape has made of them.
int import_instance_norm(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    const Onnx__TensorProto *tensors[2];
    int status = import_rows_operand(im, node, 0, &x, err);
    if (!status)
        status = import_check_picture(x, err);
    if (status)
        return status;
    int groups = x->rows ? x->rows : import_out(im, x).c;
    status = norm_tensors(im, node, 1, groups, tensors, 2, err);
    return status ? status : add_groups(im, node, x, groups, tensors, err);
}

int import_group_norm(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    const Onnx__TensorProto *tensors[2];
    int64_t groups = 0;
    int status = import_picture_operand(im, node, &x, err);
    if (!status)
        status = import_int(node, "num_groups", &groups, err);
    if (status)
        return status;
    int maps = import_out(im, x).c;
    if (groups < 1 || groups > maps || maps % groups)
        return error_set(err, STATUS_DATA, "%" PRId64 " groups do not fit %d maps", groups, maps);
    status = norm_tensors(im, node, 1, groups, tensors, 2, err);
    return status ? status : add_groups(im, node, x, (int)groups, tensors, err);
}

// Dimensions of 1 may stand before them.
bool import_is_of_values(const Onnx__TensorProto *tensor, struct shape shape) {
    size_t rank = tensor->n_dims;
    return rank >= 3 && import_tensor_count(tensor) == shape_size(shape) &&
           tensor->dims[rank - 3] == shape.c && tensor->dims[rank - 2] == shape.h &&
           tensor->dims[rank - 1] == shape.w;
}

// Whether it is left out, or has a number for each value of a sample in the sample's order.
static int check_sample(const struct importing *im, const struct value *x,
                        const Onnx__TensorProto *tensor, struct error *err) {
    struct shape shape = import_out(im, x);
    int status = import_check_count(tensor, (int64_t)shape_size(shape), err);
    if (status || !tensor)
        return status;
    size_t rank = tensor->n_dims;
    bool fits = x->flat ? rank > 0 && (size_t)tensor->dims[rank - 1] == shape_size(shape)
                        : import_is_of_values(tensor, shape);
    return fits && rank <= import_rank(x)
               ? STATUS_OK
               : error_set(err, STATUS_DATA, "'%.100s' has not the shape of a sample",
                           tensor->name ? tensor->name : "");
}

int import_layer_norm(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    struct draft *draft;
    const Onnx__TensorProto *scales[1], *shifts = NULL;
    const char *epsilon;
    int64_t axis = -1;
    int status = import_layer_operand(im, node, 0, &x, err);
    if (!status)
        status = import_int(node, "axis", &axis, err);
    if (status)
        return status;
    int64_t values = (int64_t)shape_size(import_out(im, x));
    if (!import_is_first(x, axis))
        return error_set(err, STATUS_DATA,
                         "axis %" PRId64 " is not supported: 1, all values of a sample, is", axis);
    status = norm_tensors(im, node, 0, values, scales, 1, err);
    if (!status)
        status = import_tensor_operand(im, node, 2, 0, &shifts, err);
    if (!status)
        status = check_sample(im, x, scales[0], err);
    if (!status)
        status = check_sample(im, x, shifts, err);
    if (!status)
        status = read_epsilon(im, node, "layernorm", &epsilon, err);
    if (!status)
        status = import_draft(im, node, "layernorm", x, &draft, err);
    if (status)
        return status;
    draft->keys = epsilon;
    give_scale(draft, scales[0], shifts);
    import_gives_layer(im, node, draft, x->flat);
    return STATUS_OK;
}

// --- scales and shifts that follow ----------------------------------------------------------

bool import_is_of_maps(const struct importing *im, const struct value *value,
                       const Onnx__TensorProto *tensor) {
    size_t rank = tensor->n_dims, behind = value->flat ? 1 : 3;
    struct shape shape = import_out(im, value);
    return (!value->flat || (shape.h == 1 && shape.w == 1)) && rank >= behind &&
           import_tensor_count(tensor) == (size_t)shape.c && tensor->dims[rank - behind] == shape.c;
}

// A norm of one group with a number for each value is of the other type; not once it has one for
// each map.
static bool may_be_layernorm(const struct draft *draft, const Onnx__TensorProto *tensor) {
    return draft->groups == 1 && !draft->weights.tensor && import_is_of_values(tensor, draft->out);
}

static bool fits_norm(const struct importing *im, const struct value *value,
                      const Onnx__TensorProto *tensor) {
    const struct draft *draft = &im->drafts[value->layer];
    if (!strcmp(draft->type, "layernorm"))
        return !value->flat && import_is_of_values(tensor, draft->out);
    return !strcmp(draft->type, "groupnorm") && (import_is_of_maps(im, value, tensor) ||
                                                 (!value->flat && may_be_layernorm(draft, tensor)));
}

bool import_takes_scale(struct importing *im, const Onnx__NodeProto *node,
                        const struct value *value, const Onnx__TensorProto *tensor) {
    struct draft *draft = &im->drafts[value->layer];
    bool times = *node->op_type == 'M';
    if ((!times && *node->op_type != 'A') || value->curve || value->shared || value->readers != 1 ||
        draft->biases.tensor || (times && draft->weights.tensor) || !fits_norm(im, value, tensor))
        return false;
    if (may_be_layernorm(draft, tensor)) {
        draft->type = "layernorm";
        draft->groups = 0;
    }
    *(times ? &draft->weights : &draft->biases) = (struct source){.tensor = tensor, .factor = 1};
    if (times)
        draft->weight_name = tensor->name;
    import_gives_same(im, node, value);
    return true;
}
