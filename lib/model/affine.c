#include "model/affine.h"

#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "model/share.h"

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

int affine_grain(const struct layer *layer, enum cut_way way) {
    (void)layer;
    return way == CUT_MAPS || way == CUT_INPUTS;
}

// The weights of some inputs, which are a region of what the layer reads.
static void share_inputs(struct share *share) {
    const struct shape *in = &share->layer.in;
    const struct region *some = &share->needs[0];
    int units = share->layer.units;
    share->boxes[0] = (struct box){.rank = 4,
                                   .dims = {units, in->c, in->h, in->w},
                                   .low = {0, some->c0, some->r0, 0},
                                   .high = {units, some->c1, some->r1, in->w}};
    share->layer.weights.dims[1] = (int)region_size(some, in->w);
    share->layer.biases = (struct parameter){0}; // of what all partitions' sums are together
    share->boxes[1] = (struct box){0};
}

void affine_share(struct share *share, const struct model *model) {
    const struct layer *layer = &share->layer;
    if (share->way == CUT_INPUTS) {
        share_inputs(share);
        return;
    }
    share->needs[0] = region_all(&model->layers[layer->from[0]].out);
    share->layer.units = share->makes.c1 - share->makes.c0;
    share_first(share, 0, share->makes.c0, share->makes.c1);
    share_first(share, 1, share->makes.c0, share->makes.c1);
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
    return pass->prepared && pass->layer->biases.count > 0 &&
           affine_kept_size(pass->layer, pass->kernels, pass->n) > 0;
}

int affine_first(const struct pass *pass, int units) {
    return (int)((int64_t)units * pass->thread / pass->threads) / UNITS_AT_ONCE * UNITS_AT_ONCE;
}

struct team_cut affine_team_cut(const struct pass *pass) {
    bool alone = pass->n == 1 && !by_kept(pass);
    return (struct team_cut){.maps = alone ? UNITS_AT_ONCE : 0,
                             .together = alone && pass->layer->type->output};
}

// From unit `first` on; NULL where the layer has none: it is cut by inputs.
static const float *biases_from(const struct pass *pass, int first) {
    return pass->layer->biases.count > 0 ? pass->biases + first : NULL;
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
                      biases_from(pass, first), pass->n, units, inputs, affine_first(pass, units),
                      pass->brief);
}

void affine_back(const struct pass *pass, struct dense_errors *errors) {
    bool learns = layer_learns(pass->layer);
    errors->first = affine_first(pass, errors->units);
    float *felt = learns && pass->layer->biases.count > 0 ? pass_felt_biases(pass) : NULL;
    if (felt)
        pass->kernels->bias_sum(felt, errors->dy, errors->n, errors->units, 1);
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
