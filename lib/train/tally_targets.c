// Counting of samples that have targets: how well their classes are ranked, or how far their
// numbers are from what they should be.
#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "train/evaluate.h"

// --- beginning ----------------------------------------------------------------------------

// Of FIGURE_MAP or FIGURE_R2.
static int init_targets(struct tally *tally, int outputs, enum figure figure, struct error *err) {
    *tally = (struct tally){.figure = figure, .classes = outputs};
    tally->outputs = mem_zeroed((size_t)outputs, sizeof *tally->outputs);
    return tally->outputs ? STATUS_OK : error_nomem(err);
}

int tally_open(struct tally *tally, const struct model *model, int targets, struct error *err) {
    if (targets == 0)
        return tally_init(tally, model_classes(model), err);
    enum figure figure = model_goal(model) == GOAL_CLASSES ? FIGURE_MAP : FIGURE_R2;
    return init_targets(tally, model_classes(model), figure, err);
}

// --- samples ------------------------------------------------------------------------------

// Sums that do not depend on how far from 0 the targets are (Welford 1962).
static void add_number(struct tally_output *output, double target, double error, double samples) {
    double before = target - output->mean;
    output->error += fabs(error);
    output->squares += error * error;
    output->mean += before / samples;
    output->spread += before * (target - output->mean);
}

static int make_room(struct tally *tally, struct error *err) {
    uint64_t room = tally->room ? tally->room + tally->room / 2 : 1024;
    size_t cells;
    if (tally->samples < tally->room)
        return STATUS_OK;
    struct tally_rank *ranks = NULL;
    if (!__builtin_mul_overflow(room, (uint64_t)tally->classes, &cells))
        ranks = mem_resize(tally->ranks, cells, sizeof *ranks);
    if (!ranks)
        return error_set(err, STATUS_IO, "out of memory for %llu scores of %d classes each",
                         (unsigned long long)room, tally->classes);
    tally->ranks = ranks;
    tally->room = room;
    return STATUS_OK;
}

static void add_classes(struct tally *tally, const float *scores, const float *targets) {
    struct tally_rank *row = tally->ranks + tally->samples * (uint64_t)tally->classes;
    for (int c = 0; c < tally->classes; c++) {
        bool wanted = targets[c] > 0;
        row[c] = (struct tally_rank){isnan(scores[c]) ? -INFINITY : scores[c], wanted};
        tally->outputs[c].wanted += wanted;
    }
}

int tally_add_targets(struct tally *tally, const float *scores, const float *targets,
                      struct error *err) {
    if (tally->figure == FIGURE_MAP) {
        if (make_room(tally, err))
            return err->status;
        add_classes(tally, scores, targets);
    }
    tally->samples++;
    for (int c = 0; tally->figure == FIGURE_R2 && c < tally->classes; c++)
        add_number(&tally->outputs[c], (double)targets[c], (double)scores[c] - (double)targets[c],
                   (double)tally->samples);
    return STATUS_OK;
}

// --- average precision --------------------------------------------------------------------

static int by_score(const void *a, const void *b) {
    float x = ((const struct tally_rank *)a)->score, y = ((const struct tally_rank *)b)->score;
    return x == y ? 0 : x > y ? -1 : 1;
}

// "AP = sum over n of (R_n - R_n-1) P_n", at each score that there is: samples of one score come
// together. `ranks` are in order.
static double average_precision(const struct tally_rank *ranks, uint64_t count, uint64_t wanted) {
    double sum = 0;
    uint64_t found = 0, before = 0;
    for (uint64_t i = 0; i < count; i++) {
        found += ranks[i].wanted;
        if (i + 1 < count && ranks[i + 1].score == ranks[i].score)
            continue;
        sum += (double)(found - before) / (double)wanted * (double)found / (double)(i + 1);
        before = found;
    }
    return sum;
}

int tally_settle(struct tally *tally, struct error *err) {
    if (tally->figure != FIGURE_MAP || tally->samples == 0)
        return STATUS_OK;
    struct tally_rank *column = mem_array(tally->samples, sizeof *column);
    if (!column)
        return error_nomem(err);
    for (int c = 0; c < tally->classes; c++) {
        struct tally_output *output = &tally->outputs[c];
        for (uint64_t i = 0; i < tally->samples; i++)
            column[i] = tally->ranks[i * (uint64_t)tally->classes + (uint64_t)c];
        qsort(column, tally->samples, sizeof *column, by_score);
        output->precision =
            output->wanted ? average_precision(column, tally->samples, output->wanted) : NAN;
    }
    free(column);
    return STATUS_OK;
}

// --- figures ------------------------------------------------------------------------------

double tally_precision(const struct tally *tally, int c) {
    return tally->samples ? tally->outputs[c].precision : NAN;
}

double tally_error(const struct tally *tally, int c) {
    return tally->samples ? tally->outputs[c].error / (double)tally->samples : 0;
}

double tally_r2(const struct tally *tally, int c) {
    const struct tally_output *output = &tally->outputs[c];
    if (output->spread > 0)
        return 1 - output->squares / output->spread;
    return output->squares > 0 ? 0 : 1;
}

// Over all outputs that have the figure.
static double mean_of(const struct tally *tally, double figure(const struct tally *, int)) {
    double sum = 0;
    int count = 0;
    for (int c = 0; c < tally->classes; c++) {
        double value = figure(tally, c);
        sum += isnan(value) ? 0 : value;
        count += !isnan(value);
    }
    return count ? sum / count : 0;
}

double tally_mean_error(const struct tally *tally) {
    return mean_of(tally, tally_error);
}

double tally_figure(const struct tally *tally) {
    return tally->figure == FIGURE_TOP1  ? tally_top1(tally)
           : tally->figure == FIGURE_MAP ? mean_of(tally, tally_precision)
                                         : mean_of(tally, tally_r2);
}
