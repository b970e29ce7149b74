// Functions of each value as layers. The activation that gives the same as the function at all
// places is the one that is meant; so is one that gives the same of another function, which the
// graph has, too, and which becomes layers in the same way: activations one after the other.
#include <math.h>
#include <onnx.pb-c.h>
#include <string.h>

#include "core/error.h"
#include "kernels/kernels.h"
#include "model/keys.h"
#include "onnx/import_internal.h"

#define NEAR 1e-5 // relative: how far rounding may lead

enum { DEEPEST = 64 }; // functions of functions

// What has overflowed far out says nothing: softplus made of Exp and Log does.
static bool is_near(const double *curve, const float *values) {
    for (int i = 0; i < PROBES; i++) {
        if (i >= PROBES_NEAR && !isfinite(curve[i]))
            continue;
        if (!(fabs(curve[i] - (double)values[i]) <= NEAR * (1 + fabs(curve[i]))))
            return false;
    }
    return true;
}

// What it is a function of: of the layer's values where that is NULL.
static double argument(const double *of, int i) {
    return of ? of[i] : import_probe(i);
}

// The places near 0 where the argument is least and largest.
static void find_ends(const double *of, int *least, int *largest) {
    *least = *largest = 0;
    for (int i = 0; i < PROBES_NEAR; i++) {
        *least = argument(of, i) < argument(of, *least) ? i : *least;
        *largest = argument(of, i) > argument(of, *largest) ? i : *largest;
    }
}

// --- which function -----------------------------------------------------------------------

static bool is_act(const double *curve, const double *of, enum act act, float slope) {
    float values[PROBES];
    for (int i = 0; i < PROBES; i++)
        values[i] = (float)argument(of, i);
    if (act != ACT_LINEAR)
        kernels_of(CPU_REF)->acts[act].forward(values, PROBES, slope);
    return is_near(curve, values);
}

// What is left of it below 0, as of leaky; -1 where that cannot be.
static float slope_of(const double *curve, const double *of) {
    int least, largest;
    find_ends(of, &least, &largest);
    double slope = curve[least] / argument(of, least);
    return argument(of, least) < 0 && slope >= 0 && slope <= 1 ? (float)slope : -1;
}

struct function {
    enum act act;           // ACT_COUNT: factor x + summand
    float slope;            // of ACT_LEAKY
    double factor, summand; //
};

static bool find_act(const double *curve, const double *of, struct function *f) {
    *f = (struct function){.slope = slope_of(curve, of)};
    for (int act = 0; act < ACT_COUNT; act++) {
        f->act = (enum act)act;
        if ((act != ACT_LEAKY || f->slope >= 0) && is_act(curve, of, f->act, f->slope))
            return true;
    }
    return false;
}

static bool find_line(const double *curve, const double *of, struct function *f) {
    float values[PROBES];
    int least, largest;
    find_ends(of, &least, &largest);
    double low = argument(of, least), high = argument(of, largest);
    if (!(high > low))
        return false;
    double factor = (curve[largest] - curve[least]) / (high - low);
    *f = (struct function){ACT_COUNT, 0, factor, curve[least] - factor * low};
    for (int i = 0; i < PROBES; i++)
        values[i] = (float)(factor * argument(of, i) + f->summand);
    return is_near(curve, values);
}

// --- its layers ---------------------------------------------------------------------------

static int add_activation(struct importing *im, struct value *value, const struct function *f,
                          struct error *err) {
    struct draft *draft;
    int status = import_draft(im, value->maker, act_names[f->act], value, &draft, err);
    if (status)
        return status;
    if (f->act == ACT_LEAKY)
        draft->keys = keep_format(&im->keep, " slope=%s", import_number(im, (double)f->slope));
    value->layer = (int)(draft - im->drafts);
    return STATUS_OK;
}

// `value` is that function of what it says is its layer.
static int add_function(struct importing *im, struct value *value, const struct function *f,
                        struct error *err) {
    int status = f->act == ACT_COUNT    ? import_line(im, value, f->factor, f->summand, err)
                 : f->act != ACT_LINEAR ? add_activation(im, value, f, err)
                                        : STATUS_OK;
    value->curve = NULL;
    return status;
}

// The function of `value`'s layer that another one is, which the graph has before it; or NULL.
static const double *function_before(const struct value *value, const struct value *other) {
    if (other->kind != VALUE_LAYER || other->curve_number == 0 ||
        other->curve_number >= value->curve_number)
        return NULL;
    if (other->curve)
        return other->layer == value->layer ? other->curve : NULL;
    return other->below == value->layer ? other->settled : NULL;
}

typedef bool finder(const double *curve, const double *of, struct function *f);

static int settle(struct importing *im, struct value *value, int depth, struct error *err);

static int refuse(const struct value *value, struct error *err) {
    return error_set(err, STATUS_DATA,
                     "'%.100s' is a function of each value that is none of the activations of "
                     "adam-model(5)",
                     value->name);
}

// As a function of another one. STATUS_DATA: it is none.
static int settle_on(struct importing *im, struct value *value, finder *find, int depth,
                     struct error *err) {
    struct function f;
    for (size_t i = 0; i < im->value_count; i++) {
        struct value *other = &im->values[i];
        const double *of = function_before(value, other);
        if (!of || !find(value->curve, of, &f))
            continue;
        int status = settle(im, other, depth + 1, err);
        if (!status)
            value->layer = other->layer;
        if (status != STATUS_DATA)
            return status ? status : add_function(im, value, &f, err);
    }
    return STATUS_DATA;
}

// As the sum of two functions of its layer. STATUS_DATA: it is none.
static int settle_sum(struct importing *im, struct value *value, int depth, struct error *err) {
    struct value *terms[2];
    struct draft *draft;
    if (strcmp(value->maker->op_type, "Add") != 0)
        return STATUS_DATA;
    for (size_t i = 0; i < 2; i++) {
        terms[i] = import_find_value(im, value->maker->input[i]);
        if (terms[i]->kind != VALUE_LAYER)
            return STATUS_DATA;
        int status = settle(im, terms[i], depth + 1, err);
        if (status)
            return status;
    }
    if (terms[0]->layer == terms[1]->layer)
        return STATUS_DATA;
    int status = import_draft(im, value->maker, "add", terms[0], &draft, err);
    if (status)
        return status;
    draft->from[draft->from_count++] = terms[1]->layer;
    value->layer = (int)(draft - im->drafts);
    value->curve = NULL;
    return STATUS_OK;
}

static int settle_curve(struct importing *im, struct value *value, int depth, struct error *err) {
    struct function f;
    if (find_act(value->curve, NULL, &f) || find_line(value->curve, NULL, &f))
        return add_function(im, value, &f, err);
    if (value->unlike || depth == DEEPEST)
        return refuse(value, err);
    int status = settle_on(im, value, find_act, depth, err);
    if (status == STATUS_DATA)
        status = settle_on(im, value, find_line, depth, err);
    if (status == STATUS_DATA)
        status = settle_sum(im, value, depth, err);
    return status == STATUS_DATA ? refuse(value, err) : status;
}

static int settle(struct importing *im, struct value *value, int depth, struct error *err) {
    const double *curve = value->curve;
    int below = value->layer;
    if (!curve)
        return STATUS_OK;
    int status = settle_curve(im, value, depth, err);
    value->unlike = status == STATUS_DATA;
    if (!status)
        value->settled = curve, value->below = below;
    return status;
}

int import_settle(struct importing *im, struct value *value, struct error *err) {
    return settle(im, value, 0, err);
}

bool import_drops_sigmoid(struct importing *im, struct value *value) {
    if (!value->curve)
        return false;
    if (is_act(value->curve, NULL, ACT_SIGMOID, 0)) {
        value->curve = NULL;
        return true;
    }
    if (strcmp(value->maker->op_type, "Sigmoid") != 0)
        return false;
    const struct value *x = import_find_value(im, value->maker->input[0]);
    value->layer = x->layer;
    value->curve = x->curve;
    value->curve_number = x->curve_number;
    value->maker = x->maker;
    return true;
}
