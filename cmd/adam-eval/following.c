#include "adam-eval/following.h"

#include <stdio.h>
#include <stdlib.h>

#include "adam-eval/evaluation.h"
#include "core/clock.h"
#include "core/error.h"
#include "member/place.h"
#include "role/follow.h"
#include "run/metrics.h"
#include "run/model_ops.h"
#include "train/events.h"

static void say_waiting(void *self, const char *text) {
    (void)self;
    talk_note(PROGRAM, "%s", text);
}

static int follow_controller(struct follow **follow, const struct options *o,
                             const struct secrets *keys, const char *own_name, struct error *err) {
    const struct follow_options options = {
        .member = {.controller = o->network.controller,
                   .name = own_name,
                   .threads = (uint32_t)o->threads,
                   .keys = keys,
                   .insecure = o->network.insecure,
                   .hooks = {.say = o->quiet ? NULL : say_waiting}},
        .every = o->every,
        .stop = stop_requested,
    };
    return follow_open(follow, &options, err);
}

// As the lines of a run's metrics (adam-metrics(5)).
static int print_test(const struct evaluation *run, const struct follow_copy *copy, double seconds,
                      struct error *err) {
    const struct tally *tally = &run->tally;
    json_t *test = events_eval(tally, seconds);
    json_t *fields = json_pack("{s:I, s:f, s:I}", "step", (json_int_t)copy->step, "epoch",
                               copy->epoch, "samples", (json_int_t)copy->samples);
    if (!test || json_object_update(fields, test)) {
        json_decref(fields);
        fields = NULL;
    }
    json_decref(test);
    char *line = fields ? metrics_line("evaluator", (int)copy->rank, "eval", fields) : NULL;
    if (!line)
        return error_nomem(err);
    puts(line);
    free(line);
    return fflush(stdout) ? error_errno(err, STATUS_IO, "cannot write to standard output")
                          : STATUS_OK;
}

static int test_samples(struct evaluation *run, const struct classes *names, struct error *err) {
    int classes = model_classes(run->model);
    int status = tally_open(&run->tally, run->model, run->o->targets ? classes : 0, err);
    if (status == STATUS_OK)
        status = model_ops_open(&run->trained.input, run->model, err);
    if (status == STATUS_OK)
        status = evaluation_open_ops(run, err);
    if (status == STATUS_OK && names->count > 0)
        status = trained_names(&run->classes, names, classes, err);
    if (status == STATUS_OK)
        status = evaluation_open_source(run, err);
    run->predictions = false;
    if (status == STATUS_OK)
        status = evaluation_predict(run, err);
    if (status == STATUS_OK && run->tally.samples == 0)
        status = error_set(err, STATUS_DATA, "%s: there is no sample to count", run->o->data);
    return status;
}

static void say_test(const struct tally *tally, double epoch) {
    char text[EVENTS_TEXT];
    events_eval_text(text, epoch, tally);
    if (tally->figure == FIGURE_TOP1)
        snprintf(text, sizeof text, "epoch %.4g: top-1 %.2f%% of %llu samples, loss %.4g", epoch,
                 100 * tally_top1(tally), (unsigned long long)tally->samples, tally_loss(tally));
    talk_note(PROGRAM, "%s", text);
}

// Samples are read anew, so that the data may be of any kind and size.
static int test_copy(const struct options *o, const struct follow_copy *copy, bool *skipped,
                     struct error *err) {
    struct evaluation run = {
        .o = o, .list = -1, .model = copy->model, .parameters = copy->parameters};
    double before = clock_seconds();
    int status = test_samples(&run, copy->names, err);
    if (status == STATUS_OK)
        status = print_test(&run, copy, clock_seconds() - before, err);
    if (status == STATUS_OK && !o->quiet)
        say_test(&run.tally, copy->epoch);
    *skipped |= run.left_out;
    evaluation_close(&run);
    return status;
}

int follow_until_done(const struct options *o, struct error *err) {
    struct secrets *keys = NULL;
    struct follow *follow = NULL;
    struct follow_copy copy = {0};
    bool skipped = false;
    char room[NETWORK_NAME_MAX];
    stop_on_signals(true);
    int status = place_keys(&keys, o->network.keys, err);
    if (status == STATUS_OK)
        status = follow_controller(&follow, o, keys, network_name(&o->network, room), err);
    while (status == STATUS_OK && !copy.last) {
        status = follow_next(follow, &copy, err);
        if (status == STATUS_OK)
            status = test_copy(o, &copy, &skipped, err);
    }
    follow_close(follow);
    secrets_close(keys);
    return status == STATUS_OK && skipped ? STATUS_SKIPPED : status;
}
