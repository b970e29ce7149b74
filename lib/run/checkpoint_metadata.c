// What a checkpoint tells of its run beside the numbers: texts, as safetensors has them.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "run/checkpoint_internal.h"

// --- written ----------------------------------------------------------------------

static json_t *text_number(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    return json_string(text);
}

static json_t *text_count(uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return json_string(text);
}

// A JSON value as text: the format's metadata are strings.
static json_t *text_json(json_t *value) {
    char *line = value ? json_line(value) : NULL;
    json_t *text = line ? json_string(line) : NULL;
    free(line);
    return text;
}

char *checkpoint_class_names(const struct classes *classes) {
    json_t *names = json_array();
    for (int i = 0; i < classes->count; i++)
        json_append(&names, json_string(classes->names[i]));
    char *line = names ? json_line(names) : NULL;
    json_decref(names);
    return line;
}

static json_t *class_names(const struct classes *classes) {
    char *line = checkpoint_class_names(classes);
    json_t *text = line ? json_string(line) : NULL;
    free(line);
    return text;
}

static json_t *rule_json(const struct optimizer *optimizer) {
    json_t *rule =
        json_pack("{s:s, s:f, s:f, s:f, s:f}", "rule", rule_names[optimizer->rule], "momentum",
                  optimizer->momentum, "decay", (double)optimizer->decay, "epsilon",
                  (double)optimizer->epsilon, "clip", (double)optimizer->clip);
    if (!isnan(optimizer_usual(optimizer->rule).beta2))
        json_put(&rule, "beta2", json_real(optimizer->beta2));
    if (optimizer->ema > 0)
        json_put(&rule, "ema", json_real((double)optimizer->ema));
    json_t *text = text_json(rule);
    json_decref(rule);
    return text;
}

json_t *checkpoint_metadata(const struct checkpoint *checkpoint) {
    const char *ops = model_input(checkpoint->model)->ops;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", //
                     "format", CHECKPOINT_FORMAT, "version", ADAM_VERSION,           //
                     "model", checkpoint->model->text, "model_name", checkpoint->model->name,
                     "input_ops", ops ? ops : "",                    //
                     "classes", class_names(&checkpoint->classes),   //
                     "optimizer", rule_json(&checkpoint->optimizer), //
                     "clock", text_count(checkpoint->clock),         //
                     "samples", text_count(checkpoint->samples),     //
                     "epoch", text_number(checkpoint->epoch),        //
                     "seed", text_count(checkpoint->seed),           //
                     "run", text_json(checkpoint->run));
}

// --- read -------------------------------------------------------------------------

static const char *text_of(const json_t *metadata, const char *key) {
    return json_string_value(json_object_get(metadata, key));
}

static int refuse_missing(const char *key, struct error *err) {
    return error_set(err, STATUS_DATA, "metadata '%s' is missing or wrong", key);
}

static int get_count(const json_t *metadata, const char *key, uint64_t *value, struct error *err) {
    const char *text = text_of(metadata, key);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return refuse_missing(key, err);
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno || *end ? refuse_missing(key, err) : STATUS_OK;
}

static int get_json(const json_t *metadata, const char *key, json_t **value, struct error *err) {
    const char *text = text_of(metadata, key);
    if (!text)
        return refuse_missing(key, err);
    int status = json_read(value, text, strlen(text), err);
    return status ? error_context(err, "metadata '%s'", key) : STATUS_OK;
}

static int get_classes(const json_t *metadata, struct classes *classes, struct error *err) {
    json_t *names = NULL;
    int status = get_json(metadata, "classes", &names, err), label;
    if (!status && (!json_is_array(names) || json_array_size(names) > CLASSES_MAX))
        status = refuse_missing("classes", err);
    for (size_t i = 0; !status && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        status = name ? classes_label(classes, name, &label, err) : refuse_missing("classes", err);
        if (!status && (size_t)label != i)
            status = error_set(err, STATUS_DATA, "class name '%s' comes twice", name);
    }
    json_decref(names);
    return status;
}

static bool get_rule(const json_t *value, struct optimizer *optimizer) {
    const char *name = json_string_value(json_object_get(value, "rule"));
    for (int i = 0; name && rule_names[i]; i++) {
        if (strcmp(name, rule_names[i]) != 0)
            continue;
        optimizer->rule = (enum rule)i;
        optimizer->momentum = json_number_value(json_object_get(value, "momentum"));
        optimizer->beta2 = json_number_value(json_object_get(value, "beta2"));
        optimizer->decay = (float)json_number_value(json_object_get(value, "decay"));
        optimizer->epsilon = (float)json_number_value(json_object_get(value, "epsilon"));
        optimizer->clip = (float)json_number_value(json_object_get(value, "clip"));
        optimizer->ema = (float)json_number_value(json_object_get(value, "ema"));
        return optimizer->ema >= 0 && optimizer->ema < 1;
    }
    return false;
}

static int get_optimizer(const json_t *metadata, struct optimizer *optimizer, struct error *err) {
    json_t *value = NULL;
    int status = get_json(metadata, "optimizer", &value, err);
    if (!status && !get_rule(value, optimizer))
        status = refuse_missing("optimizer", err);
    json_decref(value);
    return status;
}

static int get_epoch(const json_t *metadata, double *epoch, struct error *err) {
    const char *text = text_of(metadata, "epoch");
    if (!text || !text_real(text, strlen(text), epoch) || *epoch < 0)
        return refuse_missing("epoch", err);
    return STATUS_OK;
}

static int get_model(const json_t *metadata, struct model **model,
                     const struct checkpoint_wanted *wanted, struct error *err) {
    const char *text = text_of(metadata, "model"), *name = text_of(metadata, "model_name");
    if (!text || !name)
        return refuse_missing("model", err);
    return model_parse(model, name, text, wanted->sets, wanted->set_count, err);
}

int checkpoint_read_metadata(struct checkpoint *checkpoint, const json_t *metadata,
                             const struct checkpoint_wanted *wanted, struct error *err) {
    const char *format = text_of(metadata, "format");
    if (!format || strcmp(format, CHECKPOINT_FORMAT) != 0)
        return error_set(err, STATUS_DATA,
                         "it is not a checkpoint of adam (its metadata lack the model)");
    int status = get_model(metadata, &checkpoint->model, wanted, err);
    if (!status)
        status = get_classes(metadata, &checkpoint->classes, err);
    if (!status)
        status = get_optimizer(metadata, &checkpoint->optimizer, err);
    if (!status)
        status = get_count(metadata, "clock", &checkpoint->clock, err);
    if (!status)
        status = get_count(metadata, "samples", &checkpoint->samples, err);
    if (!status)
        status = get_count(metadata, "seed", &checkpoint->seed, err);
    if (!status)
        status = get_epoch(metadata, &checkpoint->epoch, err);
    if (!status)
        status = get_json(metadata, "run", &checkpoint->run, err);
    return status;
}
