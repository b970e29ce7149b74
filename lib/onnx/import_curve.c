// Nodes that work on each value by itself. Whatever they are made of, what they make of a layer's
// values is a function of one number. It is not read but tried, at places on both sides of zero;
// import_settle.c says which layers give the same there.
#include <inttypes.h>
#include <math.h>
#include <onnx.pb-c.h>
#include <string.h>

#include "core/error.h"
#include "onnx/import_internal.h"

// By quarters about 0, and then far out on both sides, where the bounds are that a net may never
// reach here and reaches there.
static const double far_out[] = {1e2, 1e4, 1e6, 1e12, 1e30};

enum { PROBES_FAR = 2 * (int)(sizeof far_out / sizeof *far_out) };
_Static_assert(PROBES == PROBES_NEAR + PROBES_FAR, "a place for each");

double import_probe(int i) {
    int far = i - PROBES_NEAR;
    if (far < 0)
        return (i - PROBES_NEAR / 2) / 4.0;
    return far % 2 ? -far_out[far / 2] : far_out[far / 2];
}

// --- functions ----------------------------------------------------------------------------

static double *new_curve(struct importing *im) {
    return keep_room(&im->keep, PROBES, sizeof(double));
}

static double curve_at(const struct value *value, int i) {
    return value->curve ? value->curve[i] : import_probe(i);
}

static void give_curve(struct importing *im, const Onnx__NodeProto *node, const struct value *of,
                       const double *curve) {
    import_gives_same(im, node, of);
    struct value *result = import_result(im, node);
    result->curve = curve;
    result->curve_number = ++im->curves;
    result->maker = node;
}

struct numbers {
    double a, b;
};

static double apply(const char *op, double x, struct numbers n) {
    static const struct {
        const char *op;
        double (*function)(double);
    } plain[] = {{"Erf", erf}, {"Exp", exp}, {"Log", log}, {"Tanh", tanh}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(plain[i].op, op))
            return plain[i].function(x);
    if (!strcmp(op, "Relu"))
        return fmax(x, 0);
    if (!strcmp(op, "LeakyRelu"))
        return x < 0 ? n.a * x : x;
    if (!strcmp(op, "Elu"))
        return x < 0 ? n.a * expm1(x) : x;
    if (!strcmp(op, "Sigmoid"))
        return 1 / (1 + exp(-x));
    if (!strcmp(op, "Softplus"))
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    if (!strcmp(op, "HardSigmoid"))
        return fmax(0, fmin(1, n.a * x + n.b));
    if (!strcmp(op, "Gelu"))
        return x * (1 + erf(x * sqrt(0.5))) / 2;
    if (!strcmp(op, "HardSwish"))
        return x * fmax(0, fmin(1, x / 6 + 0.5));
    if (!strcmp(op, "Clip"))
        return fmin(fmax(x, n.a), n.b);
    return -x; // Neg
}

// A bound of Clip: an attribute before operator set 11, then an input.
static int read_bound(struct importing *im, const Onnx__NodeProto *node, size_t i, const char *name,
                      double *bound, struct error *err) {
    const Onnx__TensorProto *tensor;
    int status = import_real(node, name, bound, err);
    if (!status)
        status = import_tensor_operand(im, node, i, 0, &tensor, err);
    if (status || !tensor)
        return status;
    if (import_tensor_count(tensor) != 1)
        return error_set(err, STATUS_DATA, "a bound must be one number");
    *bound = (double)import_float(tensor, 0);
    return STATUS_OK;
}

// Gelu by erf, not by what comes near to it.
static int check_exact(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    const char *way = import_word(im, node, "approximate");
    return !*way || !strcmp(way, "none")
               ? STATUS_OK
               : error_set(err, STATUS_DATA, "approximate=\"%s\" is not supported: \"none\" is",
                           way);
}

static int read_numbers(struct importing *im, const Onnx__NodeProto *node, struct numbers *n,
                        struct error *err) {
    bool hard = !strcmp(node->op_type, "HardSigmoid");
    *n = (struct numbers){hard ? 0.2 : strcmp(node->op_type, "Elu") ? 0.01 : 1, 0.5};
    if (!strcmp(node->op_type, "Clip")) {
        *n = (struct numbers){-INFINITY, INFINITY};
        int status = read_bound(im, node, 1, "min", &n->a, err);
        return status ? status : read_bound(im, node, 2, "max", &n->b, err);
    }
    int status = check_exact(im, node, err);
    if (!status)
        status = import_real(node, "alpha", &n->a, err);
    return status ? status : import_real(node, "beta", &n->b, err);
}

// The values of a layer, or a function of them.
static int function_operand(struct importing *im, const Onnx__NodeProto *node, size_t i,
                            struct value **value, struct error *err) {
    int status = import_operand(im, node, i, value, err);
    if (status || (*value && (*value)->kind == VALUE_LAYER))
        return status;
    return error_set(err, STATUS_DATA, "input %zu must be made of the graph's input", i + 1);
}

int import_unary(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    struct numbers n;
    int status = function_operand(im, node, 0, &x, err);
    if (!status)
        status = read_numbers(im, node, &n, err);
    double *curve = status ? NULL : new_curve(im);
    if (!curve)
        return status ? status : error_nomem(err);
    for (int i = 0; i < PROBES; i++)
        curve[i] = apply(node->op_type, curve_at(x, i), n);
    give_curve(im, node, x, curve);
    return STATUS_OK;
}

// --- sums, products and the like ----------------------------------------------------------

static double combine(char op, double x, double y) {
    return op == 'A' ? x + y : op == 'S' ? x - y : op == 'M' ? x * y : x / y;
}

// One number, or the same function's argument: NULL is a number.
static int combine_curves(struct importing *im, const Onnx__NodeProto *node,
                          const struct value *operands[2], double number, struct error *err) {
    const struct value *of = operands[0] ? operands[0] : operands[1];
    double *curve = new_curve(im);
    if (!curve)
        return error_nomem(err);
    for (int i = 0; i < PROBES; i++)
        curve[i] = combine(*node->op_type, operands[0] ? curve_at(operands[0], i) : number,
                           operands[1] ? curve_at(operands[1], i) : number);
    give_curve(im, node, of, curve);
    return STATUS_OK;
}

// A number for each unit of a layer without biases: samples x units, or samples x maps x 1 x 1.
static bool are_biases(const struct importing *im, const struct value *value,
                       const Onnx__TensorProto *tensor) {
    const struct draft *draft = &im->drafts[value->layer];
    bool dense = !strcmp(draft->type, "dense");
    return (dense || !strcmp(draft->type, "conv")) && !value->curve && !value->shared &&
           value->readers == 1 && !draft->biases.tensor && import_is_of_maps(im, value, tensor);
}

static int combine_tensor(struct importing *im, const Onnx__NodeProto *node,
                          const struct value *operands[2], const Onnx__TensorProto *tensor,
                          struct error *err) {
    const struct value *value = operands[0] ? operands[0] : operands[1];
    bool single = import_tensor_count(tensor) == 1;
    size_t rank = import_rank(value);
    if (tensor->n_dims > rank)
        return error_set(err, STATUS_DATA,
                         "a constant of %zu dimensions makes more of the %zu of "
                         "'%.100s'",
                         tensor->n_dims, rank, value->name);
    if (value->rows && !single)
        return error_set(err, STATUS_DATA,
                         "'%.100s' is split into %d rows: only one number is "
                         "supported",
                         value->name, value->rows);
    bool alone = !value->shared && value->readers == 1;
    if (value->layer == 0 && operands[0] && !value->curve && !value->rows && alone)
        return import_scale(im, node, value, tensor, err);
    if (import_takes_scale(im, node, value, tensor))
        return STATUS_OK;
    if (*node->op_type == 'A' && are_biases(im, value, tensor)) {
        im->drafts[value->layer].biases = (struct source){.tensor = tensor, .factor = 1};
        import_gives_same(im, node, value);
        return STATUS_OK;
    }
    if (single)
        return combine_curves(im, node, operands, (double)import_float(tensor, 0), err);
    if (strchr("MA", *node->op_type) && import_is_of_maps(im, value, tensor))
        return import_each_map(im, node, value, tensor, err);
    return error_set(err, STATUS_DATA,
                     "a constant for each value is not supported; Mul and Add with one for each "
                     "map are");
}

int import_binary(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *values[2];
    const struct value *operands[2] = {NULL, NULL};
    const Onnx__TensorProto *tensor = NULL;
    for (size_t i = 0; i < 2; i++) {
        int status = import_operand(im, node, i, &values[i], err);
        if (!status && values[i] && values[i]->kind == VALUE_TENSOR)
            status = import_tensor_operand(im, node, i, 0, &tensor, err);
        else if (!status)
            status = function_operand(im, node, i, &values[i], err);
        if (status)
            return status;
        operands[i] = values[i]->kind == VALUE_LAYER ? values[i] : NULL;
    }
    if (!operands[0] && !operands[1])
        return error_set(err, STATUS_DATA, "both of its inputs are constants");
    // What commutes has its constant behind.
    bool commutes = *node->op_type == 'A' || *node->op_type == 'M';
    if (commutes && !operands[0])
        operands[0] = operands[1], operands[1] = NULL;
    if (tensor)
        return combine_tensor(im, node, operands, tensor, err);
    if (operands[0]->rows != operands[1]->rows)
        return error_set(err, STATUS_DATA, "one of its inputs is split into rows");
    if (operands[0]->flat != operands[1]->flat)
        return error_set(err, STATUS_DATA, "one of its inputs is flat, the other is not");
    if (operands[0]->layer == operands[1]->layer && (operands[0]->curve || operands[1]->curve))
        return combine_curves(im, node, operands, 0, err);
    return *node->op_type == 'A'
               ? import_sum(im, node, err)
               : error_set(err, STATUS_DATA, "of two layers it is not supported: Add is");
}

int import_sum(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *values[LAYER_INPUTS_MAX];
    struct draft *draft;
    int status = import_layer_operands(im, node, values, err);
    if (!status)
        status = import_draft(im, node, "add", values[0], &draft, err);
    if (status)
        return status;
    for (size_t i = 1; i < node->n_input; i++) {
        struct shape a = draft->out, b = import_out(im, values[i]);
        if (a.c != b.c || a.h != b.h || a.w != b.w || values[0]->flat != values[i]->flat)
            return error_set(err, STATUS_DATA, "%dx%dx%d and %dx%dx%d are of two shapes", a.c, a.h,
                             a.w, b.c, b.h, b.w);
        draft->from[draft->from_count++] = values[i]->layer;
    }
    import_gives_layer(im, node, draft, values[0]->flat);
    return STATUS_OK;
}
