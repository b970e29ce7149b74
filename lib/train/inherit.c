#include "train/inherit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

struct inheriting {
    const struct checkpoint *from;
    struct checkpoint *to;
    const char *path;
    void (*say)(void *self, const char *text);
    void *self;
    bool copies;
    int taken, layers;             // layers with parameters
    size_t taken_count, all_count; // parameters
};

static void say_line(const struct inheriting *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say_line(const struct inheriting *in, const char *format, ...) {
    char text[ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    in->say(in->self, text);
}

static const struct layer *find_layer(const struct model *model, const char *name) {
    for (int i = 0; i < model->layer_count; i++)
        if (!strcmp(model->layers[i].name, name))
            return &model->layers[i];
    return NULL;
}

static bool same_shape(const struct parameter *a, const struct parameter *b) {
    return a->rank == b->rank && a->count == b->count &&
           !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

// Parameters of a layer that are to have the same shape in both.
struct part {
    const char *what;
    const struct parameter *here, *there;
};

enum { PARTS = 2 + LAYER_STATISTICS };

static void list_parts(struct part parts[PARTS], const struct layer *layer,
                       const struct layer *other) {
    parts[0] = (struct part){"weights", &layer->weights, &other->weights};
    parts[1] = (struct part){"biases", &layer->biases, &other->biases};
    for (int i = 0; i < LAYER_STATISTICS; i++)
        parts[2 + i] =
            (struct part){"running statistics", &layer->statistics[i], &other->statistics[i]};
}

// NULL: all have the same shape.
static const struct part *find_other_shape(const struct part parts[PARTS]) {
    for (int i = 0; i < PARTS; i++)
        if (!same_shape(parts[i].here, parts[i].there))
            return &parts[i];
    return NULL;
}

// "10x1x5x5"
static void shape_text(char text[96], const struct parameter *parameter) {
    int used = 0;
    snprintf(text, 96, "%s", parameter->rank ? "" : "none");
    for (int i = 0; i < parameter->rank && used < 80; i++)
        used += snprintf(text + used, 96 - (size_t)used, "%s%d", i ? "x" : "", parameter->dims[i]);
}

static void say_other_shape(const struct inheriting *in, const struct layer *layer,
                            const struct part *part) {
    char here[96], there[96];
    shape_text(here, part->here);
    shape_text(there, part->there);
    say_line(in, "%s begins anew: its %s are %s, and %s in %s", layer->name, part->what, here,
             there, in->path);
}

static void copy_parts(const struct inheriting *in, const struct part parts[PARTS]) {
    for (int i = 0; i < PARTS; i++)
        memcpy(in->to->parameters + parts[i].here->offset,
               in->from->parameters + parts[i].there->offset,
               parts[i].here->count * sizeof *in->to->parameters);
}

static void take_layer(struct inheriting *in, const struct layer *layer) {
    const struct layer *other = find_layer(in->from->model, layer->name);
    size_t count = layer_parameters(layer);
    struct part parts[PARTS];
    const struct part *differs;
    in->layers++;
    in->all_count += count;
    if (!other) {
        say_line(in, "%s begins anew: %s has no such layer", layer->name, in->path);
        return;
    }
    list_parts(parts, layer, other);
    differs = find_other_shape(parts);
    if (differs) {
        say_other_shape(in, layer, differs);
        return;
    }
    if (in->copies)
        copy_parts(in, parts);
    in->taken++;
    in->taken_count += count;
}

static int take_layers(struct inheriting *in, struct error *err) {
    const struct model *model = in->to->model;
    for (int i = 0; i < model->layer_count; i++)
        if (layer_parameters(&model->layers[i]) > 0)
            take_layer(in, &model->layers[i]);
    if (!in->taken)
        return error_set(err, STATUS_DATA, "no layer of %s has name and shape of a layer of %s",
                         in->path, model->name);
    say_line(in, "%d of %d layers, %zu of %zu parameters, are those of %s", in->taken, in->layers,
             in->taken_count, in->all_count, in->path);
    return STATUS_OK;
}

static int take_from(struct inheriting *in, struct error *err) {
    struct checkpoint from = {0};
    in->from = &from;
    int status = checkpoint_load_into(&from, in->path, in->to->scratch, false, err);
    if (!status)
        status = take_layers(in, err);
    checkpoint_free(&from);
    return status ? error_context(err, "--init-from") : STATUS_OK;
}

int inherit_weights(struct checkpoint *to, const char *path, void (*say)(void *self, const char *),
                    void *self, struct error *err) {
    struct inheriting in = {.to = to, .path = path, .say = say, .self = self, .copies = true};
    return take_from(&in, err);
}

int inherit_check(struct checkpoint *to, const char *path, void (*say)(void *self, const char *),
                  void *self, struct error *err) {
    struct inheriting in = {.to = to, .path = path, .say = say, .self = self};
    return take_from(&in, err);
}
