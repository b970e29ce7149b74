#include "train/beginning.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "store/sealed.h"

static char *metrics_path(const char *run) {
    char *path = NULL;
    return asprintf(&path, "%s/start.json", run) < 0 ? NULL : path;
}

bool beginning_only(const char *run) {
    char *path = metrics_path(run);
    bool only = path && run_folder_begun(run) && access(path, F_OK) == 0;
    free(path);
    return only;
}

int beginning_write(const struct checkpoint *checkpoint, const char *run, struct error *err) {
    char *path = metrics_path(run), *directory = getcwd(NULL, 0);
    json_t *start = json_pack("{s:i, s:s, s:s?, s:o, s:s, s:s, s:I, s:O}", "v", 1, "version",
                              ADAM_VERSION, "command", checkpoint->command, "directory",
                              directory ? json_text(directory) : json_null(), "model",
                              checkpoint->model->text, "model_name", checkpoint->model->name,
                              "seed", (json_int_t)checkpoint->seed, "run", checkpoint->run);
    int status = path && start ? sealed_write(path, start, err) : error_nomem(err);
    json_decref(start);
    free(directory);
    free(path);
    return status;
}

static int read_start_event(struct checkpoint *checkpoint, json_t *start, const char *const *sets,
                            size_t set_count, struct error *err) {
    const char *text = json_string_value(json_object_get(start, "model"));
    const char *name = json_string_value(json_object_get(start, "model_name"));
    const char *directory = json_string_value(json_object_get(start, "directory"));
    if (!text || !name)
        return error_set(err, STATUS_DATA, "it has no model");
    checkpoint->seed = (uint64_t)json_integer_value(json_object_get(start, "seed"));
    checkpoint->run = json_incref(json_object_get(start, "run"));
    checkpoint->directory = directory ? mem_string(directory) : NULL;
    return model_parse(&checkpoint->model, name, text, sets, set_count, err);
}

int beginning_read(struct checkpoint *checkpoint, const char *run, const char *const *sets,
                   size_t set_count, struct error *err) {
    bool sealed;
    json_t *start = NULL;
    char *path = metrics_path(run);
    *checkpoint = (struct checkpoint){0};
    int status = path ? sealed_read(&start, &sealed, path, err) : error_nomem(err);
    if (!status && !sealed)
        status =
            error_set(err, STATUS_DATA, "%s: damaged: it lacks the CRC-32 in its last line", path);
    else if (!status && read_start_event(checkpoint, start, sets, set_count, err))
        status = error_context(err, "%s", path);
    if (status)
        checkpoint_free(checkpoint);
    json_decref(start);
    free(path);
    return status;
}
