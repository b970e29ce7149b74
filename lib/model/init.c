// Initial values of the parameters.
#include <math.h>
#include <string.h>

#include "core/random.h"
#include "model/layer.h"

static const struct layer *first_reader(const struct model *model, const struct layer *layer) {
    for (int i = layer->index + 1; i < model->layer_count; i++)
        for (int j = 0; j < model->layers[i].from_count; j++)
            if (model->layers[i].from[j] == layer->index)
                return &model->layers[i];
    return NULL;
}

// Whether relu acts on what the layer gives: as its own act=relu, or as a line of
// its own behind it, perhaps with others between that neither learn nor activate.
static bool feeds_relu(const struct model *model, const struct layer *layer) {
    if (layer->act != ACT_LINEAR)
        return layer->act == ACT_RELU;
    const struct layer *reader = first_reader(model, layer);
    while (reader && !reader->type->trains && reader->act == ACT_LINEAR)
        reader = first_reader(model, reader);
    return reader && !reader->type->trains && reader->act == ACT_RELU;
}

// Whether what a layer reads comes from a dense layer, perhaps through others that do not learn.
static bool reads_dense(const struct model *model, const struct layer *layer) {
    do
        layer = &model->layers[layer->from[0]];
    while (layer->from_count > 0 && !layer->type->trains);
    return layer->units > 0;
}

// With He's rule, a layer whose inputs are correlated has outputs larger than its inputs, and
// max-pools give large, correlated numbers. The standard rule of dense layers makes them smaller
// again, so that the scores are small and error gradients still reach the layers below. Where the
// output layer reads convolutions, its own weights must be small.
static enum init init_kind(const struct model *model, const struct layer *layer, bool lively) {
    if (layer->init != INIT_DEFAULT)
        return layer->init;
    if (layer->type->output && !lively)
        return reads_dense(model, layer) ? INIT_STANDARD : INIT_SMALL;
    if (!feeds_relu(model, layer))
        return INIT_GLOROT;
    return layer->units > 0 && !lively ? INIT_STANDARD : INIT_HE;
}

enum { BLOCK = 4096 }; // weights made at once, while they are in the L1 cache

static void fill_normal(float *weights, size_t n, float deviation, struct random *random) {
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t count = n - i < BLOCK ? n - i : BLOCK;
        random_normals(random, weights + i, count);
        for (size_t j = i; j < i + count; j++)
            weights[j] *= deviation;
    }
}

static void fill_uniform(float *weights, size_t n, float half, struct random *random) {
    uint32_t words[BLOCK];
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t count = n - i < BLOCK ? n - i : BLOCK;
        random_words(random, words, count);
        for (size_t j = 0; j < count; j++)
            weights[i + j] = half * ((float)(words[j] >> 8) * 0x1p-23f - 1.0f);
    }
}

// Small scores give every class nearly the same probability, whatever the scale of the
// layers below: the first loss is ln(classes), and the first steps kill no unit.
#define SMALL 0.01

// He et al. 2015, eq. 10: "a zero-mean Gaussian distribution whose standard
// deviation is sqrt(2/n_l)". Glorot and Bengio 2010, eq. 16: uniform within
// +-sqrt(6)/sqrt(n_j + n_j+1); eq. 1, the "standard initialization": within +-1/sqrt(n_j).
static void fill_weights(const struct layer *layer, enum init kind, float *weights,
                         struct random *random) {
    size_t n = layer->weights.count;
    double in = (double)layer->weights.fan_in, out = (double)layer->weights.fan_out;
    switch (kind) {
    case INIT_HE:
        fill_normal(weights, n, (float)sqrt(2 / in), random);
        break;
    case INIT_STANDARD:
        fill_uniform(weights, n, (float)sqrt(1 / in), random);
        break;
    case INIT_SMALL:
        fill_normal(weights, n, (float)(SMALL * sqrt(1 / in)), random);
        break;
    case INIT_GLOROT:
    case INIT_DEFAULT:
        fill_uniform(weights, n, (float)sqrt(6 / (in + out)), random);
        break;
    case INIT_NORMAL:
        fill_normal(weights, n, layer->init_value, random);
        break;
    case INIT_UNIFORM:
        fill_uniform(weights, n, layer->init_value, random);
        break;
    case INIT_ZERO:
        memset(weights, 0, n * sizeof *weights);
        break;
    }
}

static void fill_parameters(const struct model *model, float *parameters, uint64_t seed,
                            bool lively) {
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        struct random random = random_stream(seed, hash_bytes("init", 4),
                                             hash_bytes(layer->name, strlen(layer->name)));
        fill_weights(layer, init_kind(model, layer, lively), parameters + layer->weights.offset,
                     &random);
        for (size_t j = 0; j < layer->biases.count; j++)
            parameters[layer->biases.offset + j] = layer->bias;
    }
}

void model_init(const struct model *model, float *parameters, uint64_t seed) {
    fill_parameters(model, parameters, seed, false);
}

void model_init_lively(const struct model *model, float *parameters, uint64_t seed) {
    fill_parameters(model, parameters, seed, true);
}
