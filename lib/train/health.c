#include "train/health.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "kernels/kernels.h"

enum {
    WINDOW_LEAST = 2000, // samples of a window: an epoch, within these limits
    WINDOW_MOST = 50000,
    LOOK_BATCH = 32, // samples to look at the units with
    LOOK_BATCHES = 8,
};

#define NEAR_CHANCE 0.01 // of ln(classes)
#define DEAD_SHARE 0.5   // of a layer's units: some of them rest in any net
#define LARGE_INPUT 10.0f

bool health_due(struct health *health, struct loop_sums now, uint64_t epoch, int classes) {
    uint64_t window = epoch < WINDOW_LEAST ? WINDOW_LEAST : epoch;
    uint64_t samples = now.samples - health->from.samples;
    if (health->said || samples < (window < WINDOW_MOST ? window : WINDOW_MOST))
        return false;
    double loss = (now.loss - health->from.loss) / (double)samples, chance = log(classes);
    bool first = !health->looked;
    health->stays = classes > 1 && fabs(loss - chance) <= NEAR_CHANCE * chance ? loss : 0;
    health->from = now;
    health->looked = true;
    return first || health->stays > 0;
}

// --- units that give nothing ------------------------------------------------------------

// The biases of all layers, by whether their gradient was ever anything but 0: a unit that gives
// 0 for a sample has none. Of those that have none whatever their units give nothing is known.
struct look {
    const struct health_view *view;
    struct net *net;
    float *gradient;
    bool *alive; // of all biases, layer by layer; or not known
    int samples;
    float largest; // input
};

static size_t count_biases(const struct model *model) {
    size_t count = 0;
    for (int i = 0; i < model->layer_count; i++)
        count += model->layers[i].biases.count;
    return count;
}

static void mark_alive(struct look *look) {
    const struct model *model = look->view->model;
    bool *alive = look->alive;
    for (int i = 0; i < model->layer_count; i++) {
        const struct parameter *biases = &model->layers[i].biases;
        bool felt = net_feels_biases(look->net, &model->layers[i]);
        for (size_t j = 0; j < biases->count; j++)
            alive[j] = alive[j] || !felt || look->gradient[biases->offset + j] != 0;
        alive += biases->count;
    }
}

static void examine_batch(struct look *look, const struct batch *batch) {
    const struct health_view *view = look->view;
    size_t inputs = (size_t)batch->n * net_sample(look->net);
    float largest = view->kernels->largest(batch->input, inputs);
    look->largest = largest > look->largest ? largest : look->largest;
    net_forward(look->net, view->parameters, batch->input, batch->n, NULL, 0);
    net_targets(look->net, batch->target);
    net_loss(look->net, batch->label);
    net_backward(look->net, view->parameters, batch->label, 1.0f / (float)batch->n, look->gradient,
                 NULL, NULL);
    mark_alive(look);
    look->samples += batch->n;
}

static void look_at_samples(struct look *look) {
    const struct health_view *view = look->view;
    struct loader *loader;
    if (feed_look(view->feed, view->settings, view->model, LOOK_BATCH, &loader, NULL))
        return;
    for (int i = 0; i < LOOK_BATCHES; i++) {
        struct batch *batch = loader_take(loader, NULL);
        if (!batch)
            break;
        examine_batch(look, batch);
        loader_give_back(loader, batch);
    }
    loader_stop(loader, NULL);
}

// The layer nearest to the output of which at least half of the units are dead: those below learn
// nothing from them. NULL: none; no layer at all where not even the output has error gradients.
static const struct layer *find_dead(const struct look *look, size_t *dead) {
    const struct model *model = look->view->model;
    const bool *alive = look->alive + count_biases(model);
    for (int i = model->layer_count - 1; i >= 0; i--) {
        const struct layer *layer = &model->layers[i];
        alive -= layer->biases.count;
        *dead = 0;
        for (size_t j = 0; j < layer->biases.count; j++)
            *dead += !alive[j];
        if (*dead > 0 && (double)*dead >= DEAD_SHARE * (double)layer->biases.count)
            return layer == model_output(model) ? NULL : layer;
    }
    return NULL;
}

static void open_look(struct look *look) {
    const struct model *model = look->view->model;
    look->gradient = mem_untouched_floats(model->parameter_count);
    look->alive = mem_zeroed(count_biases(model) + 1, sizeof *look->alive);
    if (look->gradient && look->alive &&
        net_open(&look->net, model, look->view->kernels, LOOK_BATCH, NET_TRAIN, NULL) == STATUS_OK)
        look_at_samples(look);
}

static void close_look(struct look *look) {
    net_close(look->net);
    free(look->gradient);
    free(look->alive);
}

// --- what is said -----------------------------------------------------------------------

static const char scale_hint[] = "scale them, as in ops='scale 1/255' of the input; adam-prep stat "
                                 "prints the mean and deviation of the data";

static void explain_dead(const struct look *look, const struct layer *layer, size_t dead,
                         char text[HEALTH_TEXT], size_t used) {
    char *rest = text + used;
    size_t room = HEALTH_TEXT - used;
    double rate = look->view->rate;
    if (layer)
        used = (size_t)snprintf(rest, room,
                                "%zu of the %zu units of layer %s give 0 for each of %d samples, "
                                "and no longer learn; the rate (%g) is probably too high: begin "
                                "anew with a lower --rate or a --warmup",
                                dead, layer->biases.count, layer->name, look->samples, rate);
    else if (look->largest <= LARGE_INPUT)
        used = (size_t)snprintf(rest, room,
                                "the rate (%g) is probably too low or too high, or labels do not "
                                "belong to their pictures",
                                rate);
    else
        used = 0;
    if (look->largest > LARGE_INPUT && used < room)
        snprintf(rest + used, room - used, "%sinputs go up to %g: %s", layer ? "; " : "",
                 (double)look->largest, scale_hint);
}

bool health_explain(struct health *health, const struct health_view *view, char text[HEALTH_TEXT]) {
    struct look look = {.view = view};
    size_t dead = 0, used;
    open_look(&look);
    const struct layer *layer = look.samples > 0 ? find_dead(&look, &dead) : NULL;
    health->said = layer || health->stays > 0;
    used = (size_t)snprintf(text, HEALTH_TEXT, "warning: ");
    if (health->stays > 0)
        used += (size_t)snprintf(text + used, HEALTH_TEXT - used,
                                 "the loss stays at %.4g, as of guessing among %d classes: ",
                                 health->stays, view->classes);
    if (health->said)
        explain_dead(&look, layer, dead, text, used);
    close_look(&look);
    return health->said;
}

bool health_classes(char text[HEALTH_TEXT], const struct model *model, int classes) {
    const struct layer *output = model_output(model);
    snprintf(text, HEALTH_TEXT,
             "warning: the training set has %d class%s, but the last layer of %.500s (line %d) has "
             "%d units: is it the right set?",
             classes, classes == 1 ? "" : "es", model->name, output->line, model_classes(model));
    return classes < model_classes(model);
}

void health_advise(char text[HEALTH_TEXT], float largest) {
    if (!isfinite(largest))
        snprintf(text, HEALTH_TEXT,
                 "its inputs are not all finite numbers: look at the data, not at the rate");
    else if (largest > LARGE_INPUT)
        snprintf(text, HEALTH_TEXT, "its inputs go up to %g: %s; or try a lower --rate",
                 (double)largest, scale_hint);
    else
        snprintf(text, HEALTH_TEXT, "try a lower --rate, a --warmup or --clip");
}
