#include "train/class_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/grow.h"
#include "core/io.h"
#include "core/mem.h"
#include "core/text.h"

enum { MOST = 1000000 }; // of a weight, as the key of the layer has it

// As many as the model has classes; below 0: not known yet.
static double *unknown_weights(const struct model *model) {
    int classes = model_classes(model);
    double *weights = mem_array((size_t)classes, sizeof *weights);
    for (int c = 0; weights && c < classes; c++)
        weights[c] = -1;
    return weights;
}

// --- auto ---------------------------------------------------------------------------------------

// Samples of each class; one that is of several counts in each.
static void count_samples(double *counts, int classes, const struct dataset *train) {
    int targets = dataset_target_count(train) < classes ? dataset_target_count(train) : classes;
    for (int c = 0; c < classes; c++)
        counts[c] = 0;
    for (uint32_t i = 0; i < dataset_count(train); i++) {
        int32_t label = dataset_label(train, i);
        for (int c = 0; c < targets; c++)
            counts[c] += (double)dataset_targets(train, i)[c];
        if (targets == 0 && label >= 0 && label < classes)
            counts[label]++;
    }
}

static void balance(double *weights, int classes, const struct dataset *train) {
    double samples = 0;
    int there = 0;
    count_samples(weights, classes, train);
    for (int c = 0; c < classes; c++) {
        samples += weights[c];
        there += weights[c] > 0;
    }
    for (int c = 0; c < classes; c++)
        weights[c] = weights[c] > 0 ? samples / (there * weights[c]) : 1;
}

// --- a file -------------------------------------------------------------------------------------

static int take_line(double *weights, const struct classes *names, int classes, char *line,
                     struct error *err) {
    char *tab = strrchr(line, '\t');
    double weight;
    if (!tab)
        return error_set(err, STATUS_DATA, "'%.100s' is not CLASS<TAB>WEIGHT", line);
    *tab = 0;
    if (!text_real(tab + 1, strlen(tab + 1), &weight) || weight < 0 || weight > MOST)
        return error_set(err, STATUS_DATA,
                         "the weight of '%.100s' is a number of 0 to %d, not '%.100s'", line, MOST,
                         tab + 1);
    int label = classes_find(names, line);
    if (label < 0 || label >= classes) {
        const char *near = text_nearest(line, strlen(line), (const char *const *)names->names,
                                        (size_t)names->count);
        return error_set(err, STATUS_DATA, "the training set has no class '%.100s'%s", line,
                         text_hint(near).text);
    }
    if (weights[label] >= 0)
        return error_set(err, STATUS_DATA, "class '%.100s' has a weight already", line);
    weights[label] = weight;
    return STATUS_OK;
}

static int take_lines(double *weights, const struct classes *names, int classes, FILE *file,
                      const char *path, struct error *err) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length = 0;
    int status = io_line(file, path, &line, &room, &length, err);
    for (int number = 1; !status && length >= 0; number++) {
        line[strcspn(line, "\r\n")] = 0;
        if (*line && take_line(weights, names, classes, line, err))
            status = error_context(err, "%s:%d", path, number);
        else
            status = io_line(file, path, &line, &room, &length, err);
    }
    free(line);
    for (int c = 0; c < classes; c++)
        weights[c] = weights[c] < 0 ? 1 : weights[c];
    return status;
}

static int read_weights(double *weights, const struct classes *names, int classes, const char *path,
                        struct error *err) {
    FILE *file = fopen(path, "re");
    if (!file)
        return error_errno(err, STATUS_NOINPUT, "--class-weights %s", path);
    int status = take_lines(weights, names, classes, file, path, err);
    fclose(file);
    return status;
}

// --- into the model -----------------------------------------------------------------------------

// As with --set: so one text is checked, stored and shown.
static int put_weights(struct model **model, const double *weights, struct error *err) {
    struct grow set = {0};
    struct model *next;
    grow_format(&set, "%s.class-weights=", model_output(*model)->name);
    for (int c = 0; c < model_classes(*model); c++)
        grow_format(&set, "%s%.9g", c ? "," : "", weights[c]);
    char *text = grow_take(&set);
    if (!text)
        return error_nomem(err);
    int status =
        model_parse(&next, (*model)->name, (*model)->text, (const char *const[]){text}, 1, err);
    free(text);
    if (status)
        return status;
    model_free(*model);
    *model = next;
    return STATUS_OK;
}

int class_weights_put(struct model **model, const char *wanted, const struct dataset *train,
                      struct error *err) {
    double *weights = unknown_weights(*model);
    int classes = model_classes(*model), status = STATUS_OK;
    if (!weights)
        return error_nomem(err);
    if (model_goal(*model) == GOAL_NUMBERS)
        status =
            error_set(err, STATUS_DATA, "class-weights: the outputs of %s are numbers, not classes",
                      (*model)->name);
    else if (!strcmp(wanted, SETTINGS_BALANCED))
        balance(weights, classes, train);
    else
        status = read_weights(weights, dataset_classes(train), classes, wanted, err);
    if (!status)
        status = put_weights(model, weights, err);
    free(weights);
    return status;
}

int class_weights_apply(struct model **model, const struct settings *settings,
                        const struct source_hooks *hooks, struct error *err) {
    const struct source_options options = {.from = settings->from,
                                           .labels = settings->labels,
                                           .targets = settings->targets,
                                           .hooks = *hooks};
    struct dataset *train;
    if (!settings->class_weights)
        return STATUS_OK;
    if (dataset_open(&train, settings->data, &options, true, NULL, err))
        return error_context(err, "class-weights needs the labels of the training set here");
    int status = class_weights_put(model, settings->class_weights, train, err);
    dataset_close(train);
    return status;
}
