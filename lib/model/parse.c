// From the words of a model file to layers: keys, defaults, and who reads whom.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "model/script.h"

static int no_such_layer(const struct script *script, const struct layer *layer, const char *name,
                         size_t length, struct error *err) {
    int below = names_find(script, name, length);
    if (below >= 0)
        return script_error(
            script, name, length, err, "%s: '%s' is in line %d; a layer reads layers above it",
            layer->type->name, script->statements[below].name, script->statements[below].line);
    const char *near = names_nearest(script, name, length);
    return script_error(script, name, length ? length : 1, err, "%s: no layer named '%.*s'%s",
                        layer->type->name, SHOWN(length), name, text_hint(near).text);
}

static int add_from(const struct script *script, struct layer *layer, const char *name,
                    size_t length, struct error *err) {
    int from = names_find(script, name, length);
    if (from < 0 || from >= layer->index)
        return no_such_layer(script, layer, name, length, err);
    if (layer->from_count == layer->type->inputs_most)
        return script_error(script, name, length, err, "%s: reads %d layer%s at most",
                            layer->type->name, layer->type->inputs_most,
                            layer->type->inputs_most == 1 ? "" : "s");
    for (int i = 0; i < layer->from_count; i++)
        if (layer->from[i] == from)
            return script_error(script, name, length, err, "%s: '%.*s' is named twice",
                                layer->type->name, (int)length, name);
    layer->from[layer->from_count++] = from;
    return STATUS_OK;
}

// from=NAME or from=a,b
static int parse_from(const struct script *script, struct layer *layer, const struct word *word,
                      struct error *err) {
    const char *name = word->value, *end = name + word->value_length;
    for (;;) {
        const char *comma = memchr(name, ',', (size_t)(end - name));
        const char *stop = comma ? comma : end;
        int status = add_from(script, layer, name, (size_t)(stop - name), err);
        if (status != STATUS_OK || !comma)
            return status;
        name = comma + 1;
    }
}

static int unknown_key(const struct script *script, const struct layer *layer,
                       const struct word *word, struct error *err) {
    const char *near = key_nearest(layer->type, word->key, word->key_length);
    return script_error(script, word->start, word->key_length, err, "%s: unknown key '%.*s'%s",
                        layer->type->name, SHOWN(word->key_length), word->key,
                        text_hint(near).text);
}

static int parse_word(const struct script *script, struct layer *layer, const struct word *word,
                      struct error *err) {
    const struct layer_key *key = key_find(layer->type, word->key, word->key_length);
    if (!key)
        return unknown_key(script, layer, word, err);
    if (key->kind == KEY_LAYERS)
        return parse_from(script, layer, word, err);
    char why[KEY_WHY];
    int status = key_read(layer, key, word->value, word->value_length, why);
    if (status == STATUS_DATA)
        return script_error(script, word->value, word->value_length, err, "%s: %s=%.*s: %s",
                            layer->type->name, key->name, SHOWN(word->value_length), word->value,
                            why);
    return status == STATUS_OK ? STATUS_OK : error_nomem(err);
}

static int parse_words(const struct script *script, struct layer *layer, struct error *err) {
    const struct statement *statement = &script->statements[layer->index];
    for (int i = 1; i < statement->count; i++) {
        const struct word *word = &statement->words[i];
        if (!word->key) // the name
            continue;
        if (script_word(statement, word->key, word->key_length) != word)
            return script_error_word(script, word, err, "%s: key '%.*s' is given twice",
                                     layer->type->name, SHOWN(word->key_length), word->key);
        int status = parse_word(script, layer, word, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

// What must be there and is not.
static int check_required(const struct script *script, const struct layer *layer,
                          struct error *err) {
    const struct statement *statement = &script->statements[layer->index];
    const struct word *type = &statement->words[0];
    if (layer->type->inputs_most > 1 && layer->from_count == 0)
        return script_error_word(script, type, err, "%s: needs from=A,B: the layers to read",
                                 layer->type->name);
    const struct layer_key *key;
    for (size_t i = 0; (key = key_at(layer->type, i)); i++)
        if (!key->standard && !script_word(statement, key->name, strlen(key->name)))
            return script_error_word(script, type, err, "%s: needs %s=: %s", layer->type->name,
                                     key->name, key->what);
    return STATUS_OK;
}

// The input first and only there, an output last and only there.
static int check_order(const struct script *script, const struct layer *layer, bool last,
                       struct error *err) {
    const struct word *type = &script->statements[layer->index].words[0];
    const char *name = layer->type->name;
    if (type_is_input(layer->type) != (layer->index == 0))
        return script_error_word(script, type, err,
                                 layer->index ? "%s: only the first layer may be an input"
                                              : "%s: the first layer must be an input, as in "
                                                "'input 1x28x28'",
                                 name);
    if (layer->type->output != last)
        return script_error_word(script, type, err,
                                 last ? "%s: the last layer must be an output: softmax, logistic "
                                        "or linear"
                                      : "%s: an output layer must be the last",
                                 name);
    return STATUS_OK;
}

static int parse_layer(const struct script *script, struct layer *layer, bool last,
                       struct error *err) {
    layer->name = mem_string(script->statements[layer->index].name);
    int status = layer->name ? key_defaults(layer, err) : error_nomem(err);
    if (status == STATUS_OK)
        status = parse_words(script, layer, err);
    if (status == STATUS_OK)
        status = check_order(script, layer, last, err);
    if (status == STATUS_OK)
        status = check_required(script, layer, err);
    if (layer->from_count == 0 && layer->index > 0)
        layer->from[layer->from_count++] = layer->index - 1;
    return status;
}

static int parse_layers(struct model *model, const struct script *script, struct error *err) {
    if (script->count == 0)
        return error_set(err, STATUS_DATA, "%s:1:1: error: no layer in this file", script->name);
    model->layers = mem_zeroed((size_t)script->count, sizeof *model->layers);
    if (!model->layers)
        return error_nomem(err);
    for (int i = 0; i < script->count; i++) {
        struct layer *layer = &model->layers[model->layer_count++];
        layer->type = script->statements[i].type;
        layer->line = script->statements[i].line;
        layer->index = layer->stream = i;
        int status = parse_layer(script, layer, i == script->count - 1, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

// A layer whose output goes nowhere is a slip, most often of from=.
static int check_used(const struct model *model, const struct script *script, struct error *err) {
    bool *used = mem_zeroed((size_t)model->layer_count, sizeof *used);
    if (!used)
        return error_nomem(err);
    for (int i = 0; i < model->layer_count; i++)
        for (int j = 0; j < model->layers[i].from_count; j++)
            used[model->layers[i].from[j]] = true;
    int unused = 0;
    while (unused < model->layer_count - 1 && used[unused])
        unused++;
    free(used);
    if (unused == model->layer_count - 1)
        return STATUS_OK;
    return script_error_word(script, &script->statements[unused].words[0], err,
                             "%s: no layer reads '%s'", model->layers[unused].type->name,
                             model->layers[unused].name);
}

static int build_model(struct model *model, struct script *script, struct error *err) {
    int status = parse_layers(model, script, err);
    if (status == STATUS_OK)
        status = check_used(model, script, err);
    if (status == STATUS_OK)
        status = shape_resolve(model, script, err);
    if (status != STATUS_OK)
        return status;
    model->text = script->text;
    script->text = NULL;
    return STATUS_OK;
}

int model_parse(struct model **out, const char *name, const char *text, const char *const *sets,
                size_t set_count, struct error *err) {
    struct script script = {0};
    struct model *model = mem_zeroed(1, sizeof *model);
    *out = NULL;
    if (!model || !(model->name = mem_string(name))) {
        model_free(model);
        return error_nomem(err);
    }
    int status = script_open(&script, name, text, err);
    if (status == STATUS_OK)
        status = names_assign(&script, err);
    if (status == STATUS_OK)
        status = override_apply(&script, sets, set_count, err);
    if (status == STATUS_OK)
        status = build_model(model, &script, err);
    script_close(&script);
    if (status == STATUS_OK)
        *out = model;
    else
        model_free(model);
    return status;
}
