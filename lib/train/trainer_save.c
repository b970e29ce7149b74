// Checkpoints of a run on this machine.
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "train/trainer_internal.h"

// Names of a stream are known as far as it has been read.
static int collect_names(struct trainer *trainer, struct error *err) {
    if (!trainer->feed->source)
        return STATUS_OK;
    return loader_names(trainer->loader, &trainer->config->checkpoint.classes, err);
}

int trainer_name_last_good(const struct trainer *trainer, struct error *err) {
    struct error why = *err;
    if (trainer->saved == UINT64_MAX)
        return error_set(err, why.status, "%s; nothing was saved yet", why.text);
    return error_set(err, why.status, "%s; the last good checkpoint is %s/latest", why.text,
                     trainer->config->folder);
}

static int save_checkpoint(struct trainer *trainer, struct error *err) {
    const struct trainer_config *config = trainer->config;
    double before = clock_seconds();
    trainer_show(trainer, "saving");
    int status = collect_names(trainer, err);
    if (!status)
        status = checkpoint_save(&config->checkpoint, config->folder,
                                 (int)config->settings.keep_last, err);
    trainer->last_save = clock_seconds();
    if (status)
        return trainer_name_last_good(trainer, err);
    trainer->saved = trainer->number;
    trainer->changed = false;
    char *path = run_folder_checkpoint(config->folder, config->checkpoint.clock);
    trainer_report(trainer, "checkpoint",
                   json_pack("{s:s, s:f}", "path", path ? path : config->folder, "seconds",
                             trainer->last_save - before));
    free(path);
    return STATUS_OK;
}

int trainer_save(struct trainer *trainer, struct error *err) {
    const struct trainer_director *director = trainer->config->director;
    int status = STATUS_OK;
    if (trainer->saved != trainer->number || trainer->changed)
        status = save_checkpoint(trainer, err);
    if (status)
        return status;
    trainer->save = false;
    if (!director)
        return STATUS_OK;
    uint64_t clock = trainer->config->checkpoint.clock;
    char *path = run_folder_checkpoint(trainer->config->folder, clock);
    if (path)
        director->saved(director->self, path, clock);
    free(path);
    return path ? STATUS_OK : error_nomem(err);
}
