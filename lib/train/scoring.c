#include "train/scoring.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "model/net_team.h"
#include "model/prepared.h"
#include "sample/sample.h"
#include "train/partition_processes.h"

// The caller has checked the labels.
static struct input_config input_of(const struct scoring_config *config) {
    const struct shape in = model_input(config->model)->out;
    return (struct input_config){
        .before = config->before,
        .input = config->input,
        .channels = in.c,
        .height = in.h,
        .width = in.w,
        .targets = config->targets,
        .hot = model_goal(config->model) == GOAL_CLASSES,
        .advise = true,
    };
}

int scoring_open(struct scoring *scoring, const struct scoring_config *config, struct error *err) {
    *scoring =
        (struct scoring){.config = *config, .input = input_of(config), .decode = config->decode};
    if (config->processes)
        scoring->config.exact = true;
    else if (config->batch == 0)
        scoring->config.batch = prepared_batch(config->model, config->kernels, SCORING_BATCH);
    input_decode_hint(&scoring->input, &scoring->decode); // a JPEG picture may be decoded smaller
    if (config->processes)
        return STATUS_OK;
    return prepared_open(&scoring->prepared, config->model, config->kernels, config->parameters,
                         config->few ? 1 : scoring->config.batch, scoring->config.batch, err);
}

void scoring_close(struct scoring *scoring) {
    prepared_close(scoring->prepared);
    *scoring = (struct scoring){0};
}

static int open_net(struct scorer *scorer, int threads, struct error *err) {
    const struct scoring_config *config = &scorer->scoring->config;
    enum net_mode mode = config->exact ? NET_PREDICT : NET_FOLDED;
    int status = net_open(&scorer->net, config->model, config->kernels, config->batch, mode, err);
    return status || threads == 1 ? status
                                  : net_team_open(&scorer->team, scorer->net, threads, err);
}

int scorer_open(struct scorer *scorer, const struct scoring *scoring, int threads,
                struct error *err) {
    const struct scoring_config *config = &scoring->config;
    size_t batch = (size_t)config->batch, values;
    *scorer = (struct scorer){.scoring = scoring};
    if (__builtin_mul_overflow(input_values(&scoring->input), batch, &values))
        return error_nomem(err);
    scorer->batch.label = mem_zeroed(batch, sizeof *scorer->batch.label);
    scorer->batch.input = mem_floats(values);
    if (config->targets > 0)
        scorer->batch.target = mem_array(batch, (size_t)config->targets * sizeof(float));
    if (!scorer->batch.label || !scorer->batch.input ||
        (config->targets > 0 && !scorer->batch.target))
        return error_nomem(err);
    if (input_open(&scorer->input, &scoring->input, err))
        return STATUS_IO;
    if (!config->processes)
        return open_net(scorer, threads, err);
    scorer->lane = partition_processes_lane(config->processes);
    return STATUS_OK;
}

void scorer_close(struct scorer *scorer) {
    net_team_close(scorer->team);
    net_close(scorer->net);
    input_close(&scorer->input);
    free(scorer->batch.label);
    free(scorer->batch.input);
    free(scorer->batch.target);
    *scorer = (struct scorer){0};
}

int scorer_add_picture(struct scorer *scorer, const struct image *picture, int32_t label,
                       const float *targets, struct error *err) {
    struct batch *batch = &scorer->batch;
    size_t count = (size_t)scorer->scoring->config.targets;
    batch->label[batch->n] = label;
    if (batch->target)
        memcpy(batch->target + (size_t)batch->n * count, targets, count * sizeof *targets);
    int status = input_put(&scorer->input, picture, 0, batch, batch->n, err);
    batch->n += status == STATUS_OK;
    return status;
}

void scorer_add_floats(struct scorer *scorer, const float *values) {
    struct batch *batch = &scorer->batch;
    size_t count = input_values(&scorer->scoring->input);
    batch->label[batch->n] = LABEL_NONE;
    memcpy(batch->input + (size_t)batch->n++ * count, values, count * sizeof *values);
}

static const float *pass_net(struct scorer *scorer, uint64_t number) {
    const struct scoring *scoring = scorer->scoring;
    const float *parameters = scoring->config.parameters;
    if (!scoring->config.exact) {
        prepared_pass(scoring->prepared, scorer->net, number);
        parameters = prepared_parameters(scoring->prepared);
    }
    if (scorer->batch.n > 0 && scorer->team)
        net_team_forward(scorer->team, parameters, scorer->batch.input, scorer->batch.n);
    else if (scorer->batch.n > 0)
        net_forward(scorer->net, parameters, scorer->batch.input, scorer->batch.n, NULL, 0);
    return net_scores(scorer->net);
}

int scorer_pass(struct scorer *scorer, uint64_t number, const float **scores, struct error *err) {
    if (scorer->net) {
        *scores = pass_net(scorer, number);
        return STATUS_OK;
    }
    *scores = NULL;
    scorer->loss = 0;
    return scorer->batch.n == 0
               ? STATUS_OK
               : partition_processes_pass(scorer->scoring->config.processes, scorer->lane,
                                          &scorer->batch, scores, &scorer->loss, err);
}

double scorer_loss(const struct scorer *scorer) {
    if (!scorer->net)
        return scorer->loss;
    net_targets(scorer->net, scorer->batch.target);
    return net_loss(scorer->net, scorer->batch.label);
}
