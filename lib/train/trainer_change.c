// Settings that change while a run on this machine trains.
#include "core/error.h"
#include "run/live.h"
#include "train/trainer_internal.h"

// Of what may change, clip alone is not for every home.
static int check_home(const struct trainer *trainer, const struct settings *next,
                      const struct optimizer *rule, struct error *err) {
    if (trainer->cut || trainer->kind != HOME_JOINED)
        return STATUS_OK;
    int status = home_joined_check(trainer->model, rule, trainer->threads, (int)next->batch, err);
    if (!status || next->home)
        return status;
    return error_set(err, status,
                     "clip is not for threads that go together over large dense layers, as these "
                     "do unless --home says otherwise; stop the run, and --resume it with --clip");
}

static int check_change(const struct trainer *trainer, const struct settings *next,
                        const struct optimizer *rule, struct error *err) {
    int status = live_check_patience(next, err);
    if (!status)
        status = settings_check_tests(next, err);
    return status ? status : check_home(trainer, next, rule, err);
}

int trainer_schedule(const struct trainer *trainer, const struct settings *settings,
                     struct schedule *schedule, struct error *err) {
    int status = trainer->pace.samples > 0 ? STATUS_OK : settings_check_uncounted(settings, err);
    return status ? status : settings_schedule(settings, (double)trainer->epochs, schedule, err);
}

// All of it or nothing. The texts of the settings lie in the record of the run from now on.
static int apply_change(struct trainer *trainer, struct settings *next, struct error *err) {
    struct checkpoint *checkpoint = &trainer->config->checkpoint;
    struct optimizer rule;
    struct schedule schedule;
    double epochs, seconds;
    int status = settings_optimizer(next, &rule, err);
    if (!status)
        status = check_change(trainer, next, &rule, err);
    if (!status)
        status = trainer_schedule(trainer, next, &schedule, err);
    if (!status)
        status = settings_checkpoint_every(next, &epochs, &seconds, err);
    if (status)
        return status;
    json_t *record = settings_write(next);
    if (!record || json_object_set(checkpoint->run, "settings", record)) {
        json_decref(record);
        return error_nomem(err);
    }
    settings_read(next, record);
    json_decref(record);
    trainer->config->settings = *next;
    checkpoint->optimizer = rule;
    trainer->schedule = schedule;
    trainer->every_epochs = epochs;
    trainer->every_seconds = seconds;
    trainer->changed = true;
    return STATUS_OK;
}

void trainer_take_changes(struct trainer *trainer) {
    const struct trainer_director *director = trainer->config->director;
    struct settings next = trainer->config->settings;
    trainer->pause = false;
    while (director && director->change(director->self, &next)) {
        struct error refused = {0};
        apply_change(trainer, &next, &refused);
        director->changed(director->self, &refused);
        next = trainer->config->settings;
    }
}
