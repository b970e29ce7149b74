#include "model/affine.h"

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

void affine_forward(const struct pass *pass) {
    int units = pass->layer->units, inputs = pass->layer->weights.dims[1];
    pass->kernels->gemm(false, true, pass->n, units, inputs, 1, pass->x[0], inputs, pass->weights,
                        inputs, 0, pass->y, units);
    pass->kernels->bias_add(pass->y, pass->biases, pass->n, units, 1);
}

void affine_backward(const struct pass *pass) {
    int units = pass->layer->units, inputs = pass->layer->weights.dims[1];
    if (pass->dx[0])
        pass->kernels->gemm(false, false, pass->n, inputs, units, 1, pass->dy, units, pass->weights,
                            inputs, 0, pass->dx[0], inputs);
    pass->kernels->gemm(true, false, units, inputs, pass->n, 1, pass->dy, units, pass->x[0], inputs,
                        0, pass->dweights, inputs);
    pass->kernels->bias_sum(pass->dbiases, pass->dy, pass->n, units, 1);
}
