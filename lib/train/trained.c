#include "train/trained.h"

#include <stdio.h>

#include "core/error.h"
#include "ops/ops.h"
#include "run/model_ops.h"

static int complete(struct trained *trained, const char *path, struct error *err) {
    const struct checkpoint *checkpoint = &trained->checkpoint;
    int status =
        trained_names(&trained->names, &checkpoint->classes, model_classes(checkpoint->model), err);
    if (status != STATUS_OK)
        return error_context(err, "%s", path);
    return model_ops_open(&trained->input, checkpoint->model, err);
}

int trained_open(struct trained *trained, const char *path, const char *const *sets,
                 size_t set_count, struct error *err) {
    *trained = (struct trained){0};
    int status = checkpoint_load(&trained->checkpoint, path, sets, set_count, false, err);
    return status ? status : complete(trained, path, err);
}

int trained_open_model(struct trained *trained, const char *path, const char *const *sets,
                       size_t set_count, struct error *err) {
    *trained = (struct trained){0};
    int status = checkpoint_load_model(&trained->checkpoint, path, sets, set_count, err);
    return status ? status : complete(trained, path, err);
}

void trained_close(struct trained *trained) {
    ops_free(trained->input);
    classes_free(&trained->names);
    checkpoint_free(&trained->checkpoint);
    *trained = (struct trained){0};
}

int trained_names(struct classes *out, const struct classes *given, int count, struct error *err) {
    int label, status = STATUS_OK;
    char number[32];
    *out = (struct classes){0};
    if (given->count > count)
        return error_set(err, STATUS_DATA, "there are %d class names for a model of %d classes",
                         given->count, count);
    for (int i = 0; i < given->count && status == STATUS_OK; i++)
        status = classes_label(out, given->names[i], &label, err);
    while (out->count < count && status == STATUS_OK) {
        snprintf(number, sizeof number, "%d", out->count);
        if (classes_find(out, number) >= 0) // a name that looks like another's number
            snprintf(number, sizeof number, "class %d", out->count);
        status = classes_label(out, number, &label, err);
    }
    if (status != STATUS_OK)
        classes_free(out);
    return status;
}
