// Shapes of all layers, and the flat space of their parameters.
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "model/cut.h"
#include "model/keys.h"
#include "model/script.h"
#include "model/share.h"

// Kernels count the values of a layer, and the inputs of one of its outputs, in
// an int; parameters fit in 4 TiB.
#define VALUES_MAX (1 << 30)
#define PARAMETERS_MAX ((size_t)1 << 40)

void shape_text(char text[SHAPE_TEXT], struct shape shape) {
    if (shape.h == 1 && shape.w == 1)
        snprintf(text, SHAPE_TEXT, "%d", shape.c);
    else
        snprintf(text, SHAPE_TEXT, "%dx%dx%d", shape.c, shape.h, shape.w);
}

// "conv 'c1' (line 6)", "input (line 2)"
static void layer_text(char *text, size_t size, const struct layer *layer) {
    if (strcmp(layer->name, layer->type->name) == 0)
        snprintf(text, size, "%s (line %d)", layer->name, layer->line);
    else
        snprintf(text, size, "%s '%s' (line %d)", layer->type->name, layer->name, layer->line);
}

static int misfit_error(const struct model *model, const struct script *script,
                        const struct layer *layer, const struct misfit *misfit, struct error *err) {
    const struct statement *statement = &script->statements[layer->index];
    const struct word *word = NULL;
    char fault[128] = "", source[128];
    if (misfit->key) {
        word = script_word(statement, misfit->key, strlen(misfit->key));
        const struct layer_key *key = key_find(layer->type, misfit->key, strlen(misfit->key));
        if (word)
            snprintf(fault, sizeof fault, "%s=%.*s ", misfit->key, SHOWN(word->value_length),
                     word->value);
        else if (key)
            snprintf(fault, sizeof fault, "%s=%s (the default) ", key->name, key->standard);
    }
    const struct word *at = word ? word : &statement->words[0];
    if (misfit->input < 0)
        return script_error_word(script, at, err, "%s: %sneeds %s", layer->type->name, fault,
                                 misfit->need);
    const struct layer *from = &model->layers[layer->from[misfit->input]];
    layer_text(source, sizeof source, from);
    return script_error_word(script, at, err, "%s: %sneeds %s, but %s gives %dx%dx%d",
                             layer->type->name, fault, misfit->need, source, from->out.c,
                             from->out.h, from->out.w);
}

static int check_size(const struct script *script, const struct layer *layer, struct error *err) {
    size_t pixels, values;
    char shape[SHAPE_TEXT];
    shape_text(shape, layer->out);
    if (layer->weights.fan_in > VALUES_MAX)
        return script_error_word(script, &script->statements[layer->index].words[0], err,
                                 "%s: each output reads %zu values, more than %d",
                                 layer->type->name, layer->weights.fan_in, VALUES_MAX);
    if (!__builtin_mul_overflow((size_t)layer->out.h, (size_t)layer->out.w, &pixels) &&
        !__builtin_mul_overflow(pixels, (size_t)layer->out.c, &values) && values <= VALUES_MAX)
        return STATUS_OK;
    return script_error_word(script, &script->statements[layer->index].words[0], err,
                             "%s: gives %s, more than %d values", layer->type->name, shape,
                             VALUES_MAX);
}

// Gives a block its place behind all before it. False when that is too much.
static bool place_parameter(struct parameter *parameter, size_t *end) {
    size_t count = parameter->rank > 0;
    for (int i = 0; i < parameter->rank; i++)
        if (__builtin_mul_overflow(count, (size_t)parameter->dims[i], &count))
            return false;
    parameter->count = count;
    parameter->offset = *end;
    return !__builtin_add_overflow(*end, count, end) && *end <= PARAMETERS_MAX;
}

static bool place_parameters(struct layer *layer, size_t *end) {
    bool fits = place_parameter(&layer->weights, end) && place_parameter(&layer->biases, end);
    for (int i = 0; fits && i < LAYER_STATISTICS; i++)
        fits = place_parameter(&layer->statistics[i], end);
    return fits;
}

// "units, inputs or none": what the layer may be cut by.
static void put_ways(char text[80], const struct layer *layer) {
    size_t used = 0;
    for (enum cut_way way = CUT_ROWS; way < CUT_NONE; way++)
        if (way != CUT_UNITS && share_may(layer, way))
            used += (size_t)snprintf(text + used, 80 - used, "%s%s", used ? ", " : "",
                                     cut_way_name(layer, way));
    snprintf(text + used, 80 - used, "%snone", used ? " or " : "");
}

static int check_cut(const struct script *script, const struct layer *layer, struct error *err) {
    enum cut_way way = layer->cut == CUT_UNITS ? CUT_MAPS : layer->cut;
    char ways[80];
    if (way == CUT_AUTO || share_may(layer, way))
        return STATUS_OK;
    const struct word *word = script_word(&script->statements[layer->index], "cut", 3);
    put_ways(ways, layer);
    return script_error_word(script, word, err, "%s: cut=%s is not for this layer, but %s",
                             layer->type->name, cut_names[layer->cut], ways);
}

static int resolve_layer(struct model *model, const struct script *script, struct layer *layer,
                         struct error *err) {
    struct shape in[LAYER_INPUTS_MAX];
    for (int i = 0; i < layer->from_count; i++)
        in[i] = model->layers[layer->from[i]].out;
    if (layer->from_count > 0)
        layer->in = in[0];
    struct misfit misfit = {0};
    if (!layer->type->shape(layer, in, &misfit))
        return misfit_error(model, script, layer, &misfit, err);
    layer->whole = layer->out;
    layer->region = region_all(&layer->out);
    int status = check_size(script, layer, err);
    if (status == STATUS_OK)
        status = check_cut(script, layer, err);
    if (status != STATUS_OK)
        return status;
    if (!place_parameters(layer, &model->parameter_count))
        return script_error_word(script, &script->statements[layer->index].words[0], err,
                                 "%s: the model has more than %zu parameters", layer->type->name,
                                 PARAMETERS_MAX);
    if (__builtin_add_overflow(model->connections, layer->connections, &model->connections))
        model->connections = UINT64_MAX;
    return STATUS_OK;
}

int shape_resolve(struct model *model, const struct script *script, struct error *err) {
    for (int i = 0; i < model->layer_count; i++) {
        int status = resolve_layer(model, script, &model->layers[i], err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}
