// Initial values of the parameters.
#include <math.h>
#include <string.h>

#include "core/random.h"
#include "model/init.h"
#include "model/layer.h"

static const struct layer *first_reader(const struct model *model, const struct layer *layer) {
    for (int i = layer->index + 1; i < model->layer_count; i++)
        for (int j = 0; j < model->layers[i].from_count; j++)
            if (model->layers[i].from[j] == layer->index)
                return &model->layers[i];
    return NULL;
}

// relu, and those that are like it: what is far below 0 hardly counts.
static bool is_rectifier(enum act act) {
    return act != ACT_LINEAR && act != ACT_TANH && act != ACT_SIGMOID;
}

// Whether its outputs are sums of several inputs, by weights.
static bool mixes(const struct layer *layer) {
    return layer->type->trains && !layer->type->scales;
}

// Whether a rectifier acts on what the layer gives: as its own act=relu, or as a line of
// its own behind it, perhaps with others between that neither mix nor activate.
static bool feeds_rectifier(const struct model *model, const struct layer *layer) {
    if (layer->act != ACT_LINEAR)
        return is_rectifier(layer->act);
    const struct layer *reader = first_reader(model, layer);
    while (reader && !mixes(reader) && reader->act == ACT_LINEAR)
        reader = first_reader(model, reader);
    return reader && !mixes(reader) && is_rectifier(reader->act);
}

// Whether what a layer reads comes from a dense layer, perhaps through others that do not mix.
static bool reads_dense(const struct model *model, const struct layer *layer) {
    do
        layer = &model->layers[layer->from[0]];
    while (layer->from_count > 0 && !mixes(layer));
    return layer->units > 0;
}

// Whether what it gives is normalised first. Then the size of its weights is of no matter to the
// outputs, but steps are as many times larger, beside the weights, as the square of these is
// smaller.
static bool feeds_norm(const struct model *model, const struct layer *layer) {
    const struct layer *reader = first_reader(model, layer);
    return layer->act == ACT_LINEAR && reader && reader->type->normalises;
}

// With He's rule, a layer whose inputs are correlated has outputs larger than its inputs, and
// max-pools give large, correlated numbers. The standard rule of dense layers makes them smaller
// again, so that the scores are small and error gradients still reach the layers below. Where the
// output layer reads convolutions, its own weights must be small.
static enum init init_kind(const struct model *model, const struct layer *layer, bool lively) {
    if (layer->init != INIT_DEFAULT)
        return layer->init;
    if (layer->type->scales)
        return INIT_ONE;
    if (layer->type->output && !lively)
        return reads_dense(model, layer) ? INIT_STANDARD : INIT_SMALL;
    if (feeds_norm(model, layer) && !lively)
        return INIT_STANDARD;
    if (!feeds_rectifier(model, layer))
        return INIT_GLOROT;
    return layer->units > 0 && !lively ? INIT_STANDARD : INIT_HE;
}

static void fill_normal(float *weights, size_t n, float deviation, struct random *random) {
    random_normals(random, weights, n);
    for (size_t j = 0; j < n; j++)
        weights[j] *= deviation;
}

static void fill_uniform(float *weights, size_t n, float half, struct random *random) {
    uint32_t words[MODEL_FILLER_BLOCK];
    random_words(random, words, n);
    for (size_t j = 0; j < n; j++)
        weights[j] = half * ((float)(words[j] >> 8) * 0x1p-23f - 1.0f);
}

static void fill_same(float *to, size_t n, float value) {
    for (size_t i = 0; i < n; i++)
        to[i] = value;
}

// Small scores give every class nearly the same probability, whatever the scale of the
// layers below: the first loss is ln(classes), and the first steps kill no unit.
#define SMALL 0.01

// Inputs that deviate by more are not normalised.
#define NORMALISED 2

// What He's deviation, by which layers neither raise nor lower what passes them, is multiplied with
// where inputs are not normalised, and no layer does it. A layer's gradient has what all
// the others multiply by: it is that of inputs that deviate by 1 when each of them takes its share.
// Not below the standard rule, with which such a net begins elsewhere.
static double he_share(const struct model *model, double deviation) {
    int mixing = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        if (layer->type->normalises)
            return 1;
        mixing += mixes(layer);
    }
    double share = mixing > 1 && deviation > NORMALISED ? pow(deviation, -1.0 / (mixing - 1)) : 1;
    return share > sqrt(1.0 / 6) ? share : sqrt(1.0 / 6);
}

// He et al. 2015, eq. 10: "a zero-mean Gaussian distribution whose standard
// deviation is sqrt(2/n_l)". Glorot and Bengio 2010, eq. 16: uniform within
// +-sqrt(6)/sqrt(n_j + n_j+1); eq. 1, the "standard initialization": within +-1/sqrt(n_j).
static void fill_weights(const struct layer *layer, enum init kind, double share, float *weights,
                         size_t n, struct random *random) {
    double in = (double)layer->weights.fan_in, out = (double)layer->weights.fan_out;
    switch (kind) {
    case INIT_HE:
        fill_normal(weights, n, (float)(share * sqrt(2 / in)), random);
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
    case INIT_ONE:
        fill_same(weights, n, 1);
        break;
    }
}

// --- one after the other ----------------------------------------------------------------

struct model_filler model_filler(const struct model *model, uint64_t seed, double deviation) {
    return (struct model_filler){.model = model, .seed = seed, .share = he_share(model, deviation)};
}

static void begin_layer(struct model_filler *f, const struct layer *layer) {
    f->random =
        random_stream(f->seed, hash_bytes("init", 4), hash_bytes(layer->name, strlen(layer->name)));
}

// The parameter of the layer that has its float number `at`. Statistics begin as those of inputs
// that are normalised already.
static const struct parameter *parameter_at(const struct layer *layer, size_t at, float *value) {
    size_t place = layer->weights.offset + at;
    const struct parameter *const all[] = {&layer->weights, &layer->biases, &layer->statistics[0],
                                           &layer->statistics[1]};
    const float values[] = {NAN, layer->bias, 0, 1};
    size_t i = 0;
    while (place >= all[i]->offset + all[i]->count)
        i++;
    *value = values[i];
    return all[i];
}

// The next floats of the layer, all of one parameter.
static void make_block(struct model_filler *f, const struct layer *layer) {
    float value;
    const struct parameter *parameter = parameter_at(layer, f->done, &value);
    size_t end = parameter->offset + parameter->count - layer->weights.offset;
    size_t n = end - f->done < MODEL_FILLER_BLOCK ? end - f->done : MODEL_FILLER_BLOCK;
    if (f->done == 0)
        begin_layer(f, layer);
    if (parameter == &layer->weights)
        fill_weights(layer, init_kind(f->model, layer, f->lively),
                     layer->init == INIT_DEFAULT ? f->share : 1, f->block, n, &f->random);
    else
        fill_same(f->block, n, value);
    f->done += n;
    f->given = 0;
    f->made = n;
}

// False: there are no more.
static bool next_block(struct model_filler *f) {
    while (f->layer < f->model->layer_count) {
        const struct layer *layer = &f->model->layers[f->layer];
        if (f->done < layer_parameters(layer)) {
            make_block(f, layer);
            return true;
        }
        f->layer++;
        f->done = 0;
    }
    return false;
}

void model_fill(struct model_filler *f, float *into, size_t n) {
    while (n > 0 && (f->given < f->made || next_block(f))) {
        size_t left = f->made - f->given, count = left < n ? left : n;
        memcpy(into, f->block + f->given, count * sizeof *into);
        f->given += count;
        into += count;
        n -= count;
    }
}

void model_init(const struct model *model, float *parameters, uint64_t seed, double deviation) {
    struct model_filler filler = model_filler(model, seed, deviation);
    model_fill(&filler, parameters, model->parameter_count);
}

void model_init_lively(const struct model *model, float *parameters, uint64_t seed) {
    struct model_filler filler = model_filler(model, seed, 1);
    filler.lively = true;
    model_fill(&filler, parameters, model->parameter_count);
}
