// Local contrast normalisation, which is several nodes, as adam-ctl export writes it:
//
//   mean        the mean over all maps, blurred by a Gaussian window, over what of it is inside
//   centred     the values less that
//   deviation   the root of the same mean of their squares
//   the layer   centred / the larger of deviation and alpha
//
// Such nodes are found before any is read, since none of them but the last is a layer.
#include <math.h>
#include <onnx.pb-c.h>
#include <string.h>

#include "core/error.h"
#include "onnx/import_internal.h"
#include "onnx/lcn_window.h"

#define NEAR 1e-6 // relative: how far rounding may lead

// --- which nodes --------------------------------------------------------------------------

// A local mean of what `maps` reads, and the names of its constants.
struct local_mean {
    const Onnx__NodeProto *maps, *blur, *mean;
    const char *window, *correction;
};

struct lcn {
    const Onnx__NodeProto *centred, *squares, *root, *divisor, *end;
    struct local_mean mean, variance;
    const char *least;
};

// The node of that operator and so many inputs that gives the value, which nodes read so often.
static const Onnx__NodeProto *giver(struct importing *im, const char *name, const char *op,
                                    size_t inputs, int readers) {
    const struct value *value = import_find_value(im, name);
    const Onnx__NodeProto *node = value ? value->giver : NULL;
    bool fits = node && value->readers == readers && import_is_operator(node, op) &&
                node->n_input == inputs && !strcmp(node->output[0], name);
    return fits ? node : NULL;
}

static bool same(const char *name, const char *other) {
    return strcmp(name, other) == 0;
}

static bool is_over_maps(const Onnx__NodeProto *node) {
    const int64_t *axes;
    size_t count;
    int64_t keep = 1;
    return !import_ints(node, "axes", 1, &axes, &count, NULL) && axes && *axes == 1 &&
           !import_int(node, "keepdims", &keep, NULL) && keep == 1;
}

// Whether padding alone is said: half of the window on all sides, as its constant will tell.
static bool is_padded(const Onnx__NodeProto *node) {
    const int64_t *pads;
    size_t count;
    return node->n_attribute == 1 && !import_ints(node, "pads", 4, &pads, &count, NULL) && pads &&
           pads[0] == pads[1] && pads[0] == pads[2] && pads[0] == pads[3];
}

static bool find_mean(struct importing *im, const char *name, struct local_mean *m) {
    m->mean = giver(im, name, "Mul", 2, 1);
    m->blur = m->mean ? giver(im, m->mean->input[0], "Conv", 2, 1) : NULL;
    m->maps = m->blur ? giver(im, m->blur->input[0], "ReduceMean", 1, 1) : NULL;
    if (!m->maps || !is_over_maps(m->maps) || !is_padded(m->blur))
        return false;
    m->window = m->blur->input[1];
    m->correction = m->mean->input[1];
    return true;
}

// The centred values are read three times: twice by their squares.
static bool find_lcn(struct importing *im, const Onnx__NodeProto *end, struct lcn *l) {
    *l = (struct lcn){.end = end};
    if (!import_is_operator(end, "Div") || end->n_input != 2 || end->n_output == 0 ||
        !*end->output[0])
        return false;
    l->centred = giver(im, end->input[0], "Sub", 2, 3);
    l->divisor = giver(im, end->input[1], "Max", 2, 1);
    l->root = l->divisor ? giver(im, l->divisor->input[0], "Sqrt", 1, 1) : NULL;
    if (!l->centred || !l->root || !find_mean(im, l->root->input[0], &l->variance) ||
        !find_mean(im, l->centred->input[1], &l->mean))
        return false;
    l->squares = giver(im, l->variance.maps->input[0], "Mul", 2, 1);
    l->least = l->divisor->input[1];
    return l->squares && same(l->squares->input[0], end->input[0]) &&
           same(l->squares->input[1], end->input[0]) &&
           same(l->mean.maps->input[0], l->centred->input[0]);
}

static void take_nodes(struct importing *im, const struct lcn *l) {
    const Onnx__NodeProto *const nodes[] = {
        l->mean.maps,     l->mean.blur,     l->mean.mean, l->centred, l->squares, l->variance.maps,
        l->variance.blur, l->variance.mean, l->root,      l->divisor, l->end};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        import_result(im, nodes[i])->lcn = l;
}

int import_find_lcns(struct importing *im, struct error *err) {
    for (size_t i = 0; i < im->graph->n_node; i++) {
        struct lcn found, *kept;
        if (!find_lcn(im, im->graph->node[i], &found))
            continue;
        kept = keep_room(&im->keep, 1, sizeof *kept);
        if (!kept)
            return error_nomem(err);
        *kept = found;
        take_nodes(im, kept);
    }
    return STATUS_OK;
}

const struct lcn *import_lcn_of(struct importing *im, const Onnx__NodeProto *node) {
    const struct value *value = node->n_output > 0 ? import_find_value(im, node->output[0]) : NULL;
    return value ? value->lcn : NULL;
}

// --- their numbers ------------------------------------------------------------------------

// A constant, and whether it has these dimensions.
static int read_constant(struct importing *im, const char *name, const int64_t *dims, size_t rank,
                         const Onnx__TensorProto **tensor, struct error *err) {
    const struct value *value = import_find_value(im, name);
    size_t count;
    if (!value || value->kind != VALUE_TENSOR)
        return error_set(err, STATUS_DATA, "'%.100s' must be a constant", name);
    *tensor = value->tensor;
    int status = import_check_tensor(*tensor, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &count, err);
    bool fits = !status && (*tensor)->n_dims == rank;
    for (size_t i = 0; fits && i < rank; i++)
        fits = (*tensor)->dims[i] == dims[i];
    if (!status && !fits)
        status = error_set(err, STATUS_DATA, "it has not the shape of such a constant");
    return status ? error_context(err, "'%.100s'", name) : STATUS_OK;
}

static int compare(const char *name, const Onnx__TensorProto *tensor, const float *wanted,
                   struct error *err) {
    for (size_t i = 0; i < import_tensor_count(tensor); i++)
        if (!(fabs((double)(import_float(tensor, i) - wanted[i])) <= NEAR * (double)wanted[i]))
            return error_set(err, STATUS_DATA,
                             "'%.100s' has other numbers than those of lcn in adam-model(5)", name);
    return STATUS_OK;
}

static int check_mean(struct importing *im, const struct local_mean *m, int size,
                      struct shape shape, struct error *err) {
    const int64_t window_dims[] = {1, 1, size, size}, correction_dims[] = {1, shape.h, shape.w};
    const Onnx__TensorProto *window, *correction;
    int status = read_constant(im, m->window, window_dims, 4, &window, err);
    if (!status)
        status = read_constant(im, m->correction, correction_dims, 3, &correction, err);
    if (status)
        return status;
    float *weights = keep_room(&im->keep, import_tensor_count(window), sizeof *weights);
    float *factors = keep_room(&im->keep, import_tensor_count(correction), sizeof *factors);
    if (!weights || !factors)
        return error_nomem(err);
    lcn_window(weights, size);
    lcn_correction(factors, size, shape.h, shape.w);
    status = compare(m->window, window, weights, err);
    return status ? status : compare(m->correction, correction, factors, err);
}

// Of the window, which is as wide as the padding says.
static int read_size(const struct lcn *l, int *size, struct error *err) {
    const int64_t *pads;
    size_t count;
    int status = import_ints(l->mean.blur, "pads", 4, &pads, &count, err);
    if (!status && (*pads < 0 || *pads > LCN_SIZE_MOST / 2))
        status = error_set(err, STATUS_DATA, "its window is of 1x1 to %dx%d places", LCN_SIZE_MOST,
                           LCN_SIZE_MOST);
    *size = status ? 0 : 2 * (int)*pads + 1;
    return status;
}

int import_lcn(struct importing *im, const struct lcn *l, const Onnx__NodeProto *node,
               struct error *err) {
    struct value *x;
    struct draft *draft;
    const Onnx__TensorProto *least;
    const char *alpha;
    int size;
    if (node != l->end)
        return STATUS_OK;
    int status = import_picture_operand(im, l->centred, &x, err);
    if (!status)
        status = read_size(l, &size, err);
    if (!status)
        status = check_mean(im, &l->mean, size, import_out(im, x), err);
    if (!status)
        status = check_mean(im, &l->variance, size, import_out(im, x), err);
    if (!status)
        status = read_constant(im, l->least, NULL, 0, &least, err);
    if (!status)
        status = import_key(im, "lcn", "alpha", (double)import_float(least, 0), &alpha, err);
    if (!status)
        status = import_draft(im, l->end, "lcn", x, &draft, err);
    if (status)
        return status;
    draft->keys = keep_format(&im->keep, " size=%d%s", size, alpha);
    import_gives_layer(im, l->end, draft, false);
    return STATUS_OK;
}
