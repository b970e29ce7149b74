#include "model/affine.h"

#include "kernels/dense.h"
#include "kernels/kernels.h"

enum { UNITS_AT_ONCE = 16 }; // a cache line of outputs

bool affine_shape(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    *misfit = (struct misfit){0};
    size_t inputs = shape_size(in[0]), units = (size_t)layer->units;
    if (inputs > INT32_MAX) {
        misfit->key = "units";
        __builtin_strcpy(misfit->need, "an input of at most 2147483647 values");
        return false;
    }
    layer->out = (struct shape){layer->units, 1, 1};
    layer->weights = (struct parameter){.count = units * inputs,
                                        .dims = {layer->units, (int)inputs},
                                        .rank = 2,
                                        .fan_in = inputs,
                                        .fan_out = units};
    layer->biases = (struct parameter){.count = units, .dims = {layer->units}, .rank = 1};
    layer->connections = layer->useful = units * inputs;
    return true;
}

void affine_scratch(const struct layer *layer, int n, bool train, size_t *kept, size_t *brief) {
    (void)kept;
    int units = layer->units, inputs = layer->weights.dims[1];
    size_t forward = dense_scratch(n, inputs), step = dense_step_scratch(n, units, inputs);
    *brief = !train ? dense_kept_scratch(n, units, inputs) : forward < step ? step : forward;
}

size_t affine_kept_size(const struct layer *layer, const struct kernels *kernels, int n) {
    return kernels->kept->size(n, layer->units, layer->weights.dims[1]);
}

bool affine_keep(float *kept, const struct layer *layer, const struct kernels *kernels,
                 const float *weights) {
    return kernels->kept->keep(kept, weights, layer->units, layer->weights.dims[1]);
}

static bool by_kept(const struct pass *pass) {
    return pass->prepared && affine_kept_size(pass->layer, pass->kernels, pass->n) > 0;
}

int affine_first(const struct pass *pass, int units) {
    return (int)((int64_t)units * pass->thread / pass->threads) / UNITS_AT_ONCE * UNITS_AT_ONCE;
}

struct cut affine_cut(const struct pass *pass) {
    bool alone = pass->n == 1 && !by_kept(pass);
    return (struct cut){.maps = alone ? UNITS_AT_ONCE : 0,
                        .together = alone && pass->layer->type->output};
}

void affine_forward(const struct pass *pass) {
    if (pass->share && pass->share(pass->sharer, pass->layer, pass->y, pass->x[0], pass->n))
        return;
    const struct kernels *k = pass->kernels;
    int first = pass->first, units = pass->end - first, inputs = pass->layer->weights.dims[1];
    if (units == 0)
        return;
    if (by_kept(pass) && k->kept->forward(pass->y, pass->x[0], pass->weights, pass->prepared,
                                          pass->biases, pass->n, units, inputs, pass->brief))
        return;
    k->dense->forward(pass->y + first, pass->x[0], pass->weights + (size_t)first * (size_t)inputs,
                      pass->biases + first, pass->n, units, inputs, affine_first(pass, units),
                      pass->brief);
}

void affine_back(const struct pass *pass, struct dense_errors *errors) {
    bool learns = layer_learns(pass->layer);
    errors->first = affine_first(pass, errors->units);
    if (learns)
        pass->kernels->bias_sum(pass->dbiases, errors->dy, errors->n, errors->units, 1);
    if (learns && pass_offer(pass, errors))
        return;
    if (errors->dx)
        pass->kernels->dense->back_input(errors, pass->weights);
    if (learns)
        pass->kernels->dense->back_weights(pass->dweights, errors);
}

void affine_backward(const struct pass *pass) {
    struct dense_errors errors = {
        .dy = pass->dy,
        .x = pass->x[0],
        .dx = pass->dx[0],
        .n = pass->n,
        .units = pass->layer->units,
        .inputs = pass->layer->weights.dims[1],
        .scratch = pass->brief,
    };
    affine_back(pass, &errors);
}

const char *affine_way(const struct pass *pass, enum conv_pass part) {
    return by_kept(pass) ? pass->kernels->kept->way
                         : pass->kernels->dense->way(part == CONV_FORWARD, pass->n);
}
