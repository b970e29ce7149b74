#include "adam-worker/starting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adam-worker/options.h"
#include "adam-worker/talker.h"
#include "core/error.h"
#include "core/mem.h"
#include "model/differences.h"
#include "run/model_ops.h"
#include "train/beginning.h"

// --freeze PATTERN is an override like others.
static int freeze_layers(struct options *o, struct error *err) {
    const char **sets = mem_resize(o->set.items, o->set.count + o->freeze.count + 1, sizeof *sets);
    if (!sets)
        return error_nomem(err);
    o->set.items = sets;
    for (size_t i = 0; i < o->freeze.count; i++)
        words_format(&o->frozen, "%s.rate=0", o->freeze.items[i]);
    if (o->frozen.failed)
        return error_nomem(err);
    for (size_t i = 0; i < o->frozen.count; i++)
        sets[o->set.count++] = o->frozen.items[i];
    return STATUS_OK;
}

static void say_anew(void *self, const char *folder) {
    char text[1200];
    snprintf(text, sizeof text,
             "note: the run in %s ended before its first checkpoint; it begins anew", folder);
    talker_say(self, text);
}

static void say_path(void *self, const char *name, const char *before, const char *after) {
    char text[2400];
    snprintf(text, sizeof text, "note: --%s %s is %s, as the run was started there", name, before,
             after);
    talker_say(self, text);
}

static void say_difference(void *self, const char *name, const char *before, const char *after) {
    char text[1200];
    snprintf(text, sizeof text, "--%s is %s now, was %s", name, after, before);
    talker_say(self, text);
}

// The model as it was, before overrides that are given now.
static int load_model(struct checkpoint *before, const struct options *o, bool resumed,
                      struct error *err) {
    return resumed ? checkpoint_load_model(before, o->resume, NULL, 0, err)
                   : beginning_read(before, o->folder, NULL, 0, err);
}

// Overrides are settings, too.
static int say_overrides(const struct options *o, const struct trainer_config *config,
                         struct talker *talker, struct error *err) {
    struct checkpoint before = {0};
    char text[MODEL_DIFFERENCE];
    int line = 0;
    if (o->set.count == 0)
        return STATUS_OK;
    int status = load_model(&before, o, config->resumed, err);
    while (!status &&
           model_difference(text, before.model->text, config->checkpoint.model->text, &line))
        talker_say(talker, text);
    checkpoint_free(&before);
    return status;
}

// A run that was killed before its first checkpoint begins anew.
static int load(struct options *o, struct trainer_config *config, struct talker *talker,
                struct error *err) {
    struct checkpoint *checkpoint = &config->checkpoint;
    o->folder = run_folder_of(o->resume);
    config->folder = o->folder;
    if (!o->folder)
        return error_nomem(err);
    config->resumed = !beginning_only(o->folder);
    if (config->resumed)
        return checkpoint_load(checkpoint, o->resume, o->set.items, o->set.count, true, err);
    int status = run_folder_check(o->folder, true, err);
    if (!status)
        status = beginning_read(checkpoint, o->folder, o->set.items, o->set.count, err);
    if (!status)
        say_anew(talker, o->folder);
    return status;
}

// Relative paths of the settings begin in the folder in which the run was started.
static void find_files(struct talker *talker, const struct checkpoint *checkpoint,
                       json_t *settings) {
    char *here = getcwd(NULL, 0);
    if (here && checkpoint->directory && strcmp(here, checkpoint->directory) != 0)
        settings_relocate(settings, checkpoint->directory, say_path, talker);
    free(here);
}

// The stored settings, over which the command line is read once more: what is
// given there wins.
static int resume(struct options *o, struct trainer_config *config, struct talker *talker, int argc,
                  char **argv, struct error *err) {
    int operand;
    int status = load(o, config, talker, err);
    if (!status)
        status = say_overrides(o, config, talker, err);
    if (status)
        return status;
    json_t *stored = json_object_get(config->checkpoint.run, "settings");
    if (json_object_size(stored) == 0) // adam-ctl import made it
        return error_set(err, STATUS_USAGE,
                         "nothing was trained in %s that could go on; --init-from begins with its "
                         "weights",
                         o->resume);
    find_files(talker, &config->checkpoint, stored);
    const struct settings given = o->settings;
    settings_default(&o->settings);
    settings_read(&o->settings, stored);
    free(o->set.items);
    free(o->freeze.items);
    o->set = o->freeze = (struct option_list){0};
    const struct settings before = o->settings;
    if (options_parse(o, argc, argv, &operand, err) != CLI_RUN)
        return STATUS_USAGE;
    config->weigh = o->settings.class_weights != before.class_weights; // given anew
    settings_fit(&o->settings, &before, &given);
    status = options_check_settings(&o->settings, &given, err);
    if (status)
        return status;
    json_t *now = settings_write(&o->settings);
    if (!now)
        return error_nomem(err);
    settings_compare(stored, now, say_difference, talker);
    json_decref(now);
    config->checkpoint.seed = (uint64_t)o->settings.seed;
    return STATUS_OK;
}

static int start(struct options *o, struct trainer_config *config, struct talker *talker,
                 struct error *err) {
    const char *model = o->model ? o->model : o->settings.init_from;
    int status = settings_check_text("out", o->out, err);
    if (!status)
        status = settings_check_text("model", model, err);
    if (!status && !o->force)
        status = run_folder_check(o->out, true, err);
    if (!status)
        status = model_ops_read(&config->checkpoint.model, model, o->set.items, o->set.count, err);
    if (!status && !o->force && run_folder_begun(o->out))
        say_anew(talker, o->out);
    config->checkpoint.seed = (uint64_t)o->settings.seed;
    config->weigh = true;
    config->folder = o->out;
    return status;
}

int starting_prepare(struct options *o, struct trainer_config *config, struct talker *talker,
                     int argc, char **argv, struct error *err) {
    int status = freeze_layers(o, err);
    if (status)
        return status;
    return o->resume ? resume(o, config, talker, argc, argv, err) : start(o, config, talker, err);
}
