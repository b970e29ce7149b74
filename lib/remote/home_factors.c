#include "remote/home_factors.h"

#include <string.h>

#include "core/error.h"
#include "proto/proto.h"

// To move a float to a server, which is half of an exchange (home_delta_pace.c), costs as much
// as so many multiply-adds.
enum { MULTIPLIES_A_FLOAT = 300 };

static bool has_products(const struct layer *layer) {
    return layer->weights.rank == 2 && layer_learns(layer);
}

// Floats of k rows of error gradients and k of activations.
static uint64_t factors_floats(const struct layer *layer, int samples) {
    return (uint64_t)samples * (uint64_t)(layer->weights.dims[0] + layer->weights.dims[1]);
}

uint64_t factors_most(const struct layer *layer) {
    uint64_t most = PROTO_PAYLOAD_MAX / sizeof(float) / factors_floats(layer, 1);
    return most < PROTO_SHARD_FLOATS ? most : PROTO_SHARD_FLOATS;
}

static bool fits_request(const struct layer *layer, int samples) {
    return has_products(layer) && (uint64_t)samples <= factors_most(layer);
}

// The server multiplies what the worker need not.
static bool is_cheaper(const struct layer *layer, int samples) {
    uint64_t multiplies = (uint64_t)samples * layer->weights.count;
    return factors_floats(layer, samples) * MULTIPLIES_A_FLOAT + multiplies <
           (uint64_t)layer->weights.count * MULTIPLIES_A_FLOAT;
}

static int choose_named(bool *taken, const struct model *model, const char *name, size_t length,
                        int samples, struct error *err) {
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        if (strlen(layer->name) != length || memcmp(layer->name, name, length) != 0)
            continue;
        if (!fits_request(layer, samples))
            return error_set(err, STATUS_USAGE,
                             "factors: layer '%s' is not dense, is frozen, or is too large for %d "
                             "samples",
                             layer->name, samples);
        taken[i] = true;
        return STATUS_OK;
    }
    return error_set(err, STATUS_USAGE, "factors: the model has no layer '%.*s'", (int)length,
                     name);
}

int factors_choose(bool *taken, const struct model *model, const char *choice, int samples,
                   struct error *err) {
    bool cost = !choice || strcmp(choice, "auto") == 0;
    int status = STATUS_OK;
    for (int i = 0; i < model->layer_count; i++)
        taken[i] = cost && fits_request(&model->layers[i], samples) &&
                   is_cheaper(&model->layers[i], samples);
    if (cost || strcmp(choice, "none") == 0)
        return STATUS_OK;
    for (const char *name = choice; !status && *name;) {
        size_t length = strcspn(name, ",");
        status = choose_named(taken, model, name, length, samples, err);
        name += length + (name[length] == ',');
    }
    return status;
}

size_t factors_rest(const bool *taken, const struct model *model, struct span *spans) {
    size_t count = 0;
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        size_t first = layer->weights.offset, n = optimizer_all(layer).n;
        if (taken[i] || n == 0)
            continue;
        if (count > 0 && spans[count - 1].first + spans[count - 1].n == first)
            spans[count - 1].n += n;
        else
            spans[count++] = (struct span){first, n};
    }
    return count;
}
