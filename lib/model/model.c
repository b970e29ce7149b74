#include "model/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "model/script.h"

// The whole file, NUL-terminated, or as much as shows that it is too large.
static int read_text(char text[MODEL_TEXT_MAX + 2], FILE *file, const char *name,
                     struct error *err) {
    size_t length = fread(text, 1, MODEL_TEXT_MAX + 1, file);
    size_t mark = length > MODEL_TEXT_MAX ? 0 : text_mark(text, length);
    memmove(text, text + mark, length -= mark);
    text[length] = 0;
    if (ferror(file))
        return error_errno(err, STATUS_NOINPUT, "cannot read %s", name);
    if (strlen(text) < length)
        return error_set(err, STATUS_DATA, "%s: binary data: not a model file", name);
    return STATUS_OK;
}

static int read_file(struct model **out, FILE *file, const char *name, const char *const *sets,
                     size_t set_count, struct error *err) {
    char *text = mem_array(MODEL_TEXT_MAX + 2, 1);
    if (!text)
        return error_nomem(err);
    int status = read_text(text, file, name, err);
    if (status == STATUS_OK)
        status = model_parse(out, name, text, sets, set_count, err);
    free(text);
    return status;
}

int model_read(struct model **out, const char *path, const char *const *sets, size_t set_count,
               struct error *err) {
    *out = NULL;
    if (strcmp(path, "-") == 0)
        return read_file(out, stdin, "<stdin>", sets, set_count, err);
    FILE *file = fopen(path, "rbe");
    if (!file)
        return error_errno(err, STATUS_NOINPUT, "cannot open %s", path);
    int status = read_file(out, file, path, sets, set_count, err);
    fclose(file);
    return status;
}

static int point_at_value(const struct script *script, const struct layer *layer, const char *key,
                          size_t offset, size_t length, struct error *err) {
    const struct word *word = script_word(&script->statements[layer->index], key, strlen(key));
    if (!word || offset > word->value_length)
        return err->status;
    struct error why = *err;
    return script_error(script, word->value + offset, length, err, "%s: %s: %s", layer->type->name,
                        key, why.text);
}

int model_blame(const struct model *model, const struct layer *layer, const char *key,
                size_t offset, size_t length, struct error *err) {
    struct script script;
    int status = script_open(&script, model->name, model->text, err);
    if (status == STATUS_OK)
        status = point_at_value(&script, layer, key, offset, length, err);
    script_close(&script);
    return status;
}

void model_free(struct model *model) {
    if (!model)
        return;
    for (int i = 0; i < model->layer_count; i++) {
        key_free(&model->layers[i]);
        free(model->layers[i].name);
    }
    free(model->layers);
    free(model->text);
    free(model->name);
    free(model);
}

size_t shape_size(struct shape shape) {
    return (size_t)shape.c * (size_t)shape.h * (size_t)shape.w;
}

const struct layer *model_input(const struct model *model) {
    return &model->layers[0];
}

const struct layer *model_output(const struct model *model) {
    return &model->layers[model->layer_count - 1];
}

int model_classes(const struct model *model) {
    return model_output(model)->out.c;
}

enum goal model_goal(const struct model *model) {
    return model_output(model)->type->goal;
}

size_t layer_parameters(const struct layer *layer) {
    size_t count = layer->weights.count + layer->biases.count;
    for (int i = 0; i < LAYER_STATISTICS; i++)
        count += layer->statistics[i].count;
    return count;
}

int model_together(const struct model *model) {
    int most = 1;
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        if (layer_learns(layer) && layer->type->together > most)
            most = layer->type->together;
    }
    return most;
}

bool layer_learns(const struct layer *layer) {
    return layer->type->trains && layer->rate > 0;
}

int model_check_learns(const struct model *model, struct error *err) {
    for (int i = 0; i < model->layer_count; i++)
        if (layer_learns(&model->layers[i]))
            return STATUS_OK;
    return error_set(err, STATUS_USAGE, "all layers of %s are frozen: there is nothing to learn",
                     model->name);
}
