// Tests of a run on this machine, what was best, and when its patience is over.
#include <inttypes.h>

#include "core/clock.h"
#include "core/error.h"
#include "train/evaluate.h"
#include "train/events.h"
#include "train/trainer_internal.h"

bool trainer_is_impatient(const struct trainer *trainer) {
    int64_t patience = trainer->config->settings.patience;
    return patience > 0 && trainer->best.worse >= (uint64_t)patience;
}

static int stop_testing(void *self, const struct batch *batch, int i, const float *scores,
                        struct error *err) {
    struct trainer *trainer = self;
    (void)scores;
    if (i > 0 || batch->number % 16)
        return STATUS_OK;
    trainer_show(trainer, "testing");
    trainer_hear(trainer);
    if (!trainer->stop)
        return STATUS_OK;
    return error_set(err, STATUS_STOPPED, "stopped while testing");
}

// The best checkpoint so far is kept, and where none is better for long the run ends. A test that
// is done again, for its figures, does not count twice.
static int take_result(struct trainer *trainer, struct error *err) {
    struct checkpoint *checkpoint = &trainer->config->checkpoint;
    struct best *best = &trainer->best;
    trainer->owed = false;
    if (trainer->tested_at == checkpoint->clock)
        return STATUS_OK;
    trainer->save |= best_take(best, &trainer->tested);
    trainer->tested_at = checkpoint->clock;
    trainer->changed = true;
    if (trainer_is_impatient(trainer) && !trainer->ended) {
        trainer_say(trainer,
                    "%" PRIi64 " tests were not better than that of epoch %.4g: the run ends",
                    trainer->config->settings.patience, best->epoch);
        trainer->ended = trainer->impatient = true;
    }
    json_put(&checkpoint->run, "best", best_json(best));
    json_put(&checkpoint->run, "tested", json_integer((json_int_t)trainer->tested_at));
    return checkpoint->run ? STATUS_OK : error_nomem(err);
}

static int test_model(struct trainer *trainer, struct error *err) {
    struct tally tally;
    double before = clock_seconds();
    int status = tally_open(&tally, trainer->model, dataset_target_count(trainer->feed->test), err);
    if (status)
        return status;
    const struct evaluate_config how = {
        .model = trainer->model,
        .kernels = trainer->kernels,
        .parameters = checkpoint_tested(&trainer->config->checkpoint),
        .threads = trainer->threads,
        .each = stop_testing,
        .self = trainer,
    };
    status = feed_test(trainer->feed, &trainer->config->settings, &how, &tally, err);
    if (status == STATUS_OK) {
        trainer->tested = events_result(&tally, &trainer->config->checkpoint);
        char text[EVENTS_TEXT];
        events_eval_text(text, trainer->config->checkpoint.epoch, &tally);
        trainer_report(trainer, "eval", events_eval(&tally, clock_seconds() - before));
        trainer_say(trainer, "%s", text);
        status = take_result(trainer, err);
    }
    tally_free(&tally);
    return status;
}

int trainer_test(struct trainer *trainer, struct error *err) {
    struct checkpoint *checkpoint = &trainer->config->checkpoint;
    int status = trainer->stop ? STATUS_STOPPED : test_model(trainer, err);
    if (status != STATUS_STOPPED)
        return status;
    trainer->owed = true;
    json_put(&checkpoint->run, "owed", json_true());
    return checkpoint->run ? STATUS_OK : error_nomem(err);
}
