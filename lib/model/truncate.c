#include "model/truncate.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/grow.h"
#include "core/mem.h"
#include "model/script.h"

// Layers read layers above them in the file.
static bool *find_needed(const struct model *model, const struct layer *at) {
    bool *needed = mem_zeroed((size_t)model->layer_count, sizeof *needed);
    if (!needed)
        return NULL;
    needed[at->index] = true;
    for (int i = at->index; i >= 0; i--)
        for (int j = 0; needed[i] && j < model->layers[i].from_count; j++)
            needed[model->layers[i].from[j]] = true;
    return needed;
}

// With its name, which would be another one among fewer layers.
static void put_statement(struct grow *text, const struct statement *statement) {
    bool input = type_is_input(statement->type);
    grow_format(text, "%s%s%s", statement->type->name, input ? "" : " ",
                input ? "" : statement->name);
    for (int i = 1; i < statement->count; i++) {
        const struct word *word = &statement->words[i];
        if (word->key) // all but the name
            grow_format(text, " %.*s", (int)word->length, word->start);
    }
    grow_format(text, "\n");
}

// Without `from` a layer reads the one above it, which is needed as it is.
static char *truncate_text(const struct script *script, const bool *needed,
                           const struct model *model, const struct layer *at) {
    struct grow text = {0};
    for (int i = 0; i <= at->index; i++)
        if (needed[i])
            put_statement(&text, &script->statements[i]);
    grow_format(&text, "softmax %s units=1 from=%s\n", model_output(model)->name, at->name);
    return grow_take(&text);
}

static int truncate_model(struct model **out, const bool *needed, const struct model *model,
                          const struct layer *at, struct error *err) {
    struct script script;
    int status = script_open(&script, model->name, model->text, err);
    if (status)
        return status;
    status = names_assign(&script, err);
    char *text = status ? NULL : truncate_text(&script, needed, model, at);
    if (!status)
        status = text ? model_parse(out, model->name, text, NULL, 0, err) : error_nomem(err);
    free(text);
    script_close(&script);
    return status;
}

static void copy_parameter(float *to, const struct parameter *put, const float *from,
                           const struct parameter *take) {
    if (take->count)
        memcpy(to + put->offset, from + take->offset, take->count * sizeof *to);
}

// The layers that are needed have kept their order.
static float *take_parameters(const struct model *truncated, const bool *needed,
                              const struct model *model, const float *from) {
    float *parameters = mem_floats(truncated->parameter_count);
    const struct layer *layer = truncated->layers;
    if (!parameters)
        return NULL;
    memset(parameters, 0, truncated->parameter_count * sizeof *parameters);
    for (int i = 0; i < model->layer_count; i++) {
        if (!needed[i])
            continue;
        copy_parameter(parameters, &layer->weights, from, &model->layers[i].weights);
        copy_parameter(parameters, &layer->biases, from, &model->layers[i].biases);
        for (int k = 0; k < LAYER_STATISTICS; k++)
            copy_parameter(parameters, &layer->statistics[k], from,
                           &model->layers[i].statistics[k]);
        layer++;
    }
    return parameters;
}

int model_truncate(struct model **out, float **parameters, const struct model *model,
                   const float *from, const struct layer *at, struct error *err) {
    bool *needed = find_needed(model, at);
    int status = needed ? truncate_model(out, needed, model, at, err) : error_nomem(err);
    if (!status && !(*parameters = take_parameters(*out, needed, model, from))) {
        model_free(*out);
        *out = NULL;
        status = error_nomem(err);
    }
    free(needed);
    return status;
}
