// Writing a checkpoint whose tensors all are here.
#include "run/checkpoint.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/utf8.h"
#include "run/checkpoint_internal.h"

void checkpoint_free(struct checkpoint *checkpoint) {
    model_free(checkpoint->model);
    free(checkpoint->parameters);
    free(checkpoint->state);
    classes_free(&checkpoint->classes);
    json_decref(checkpoint->run);
    free(checkpoint->directory);
    *checkpoint = (struct checkpoint){0};
}

int checkpoint_check_names(const struct classes *classes, struct error *err) {
    for (int i = 0; i < classes->count; i++)
        if (!utf8_is_valid(classes->names[i]))
            return error_set(err, STATUS_DATA, "the name of class '%s' is not UTF-8",
                             classes->names[i]);
    return STATUS_OK;
}

// --- model.safetensors ----------------------------------------------------------

static int write_tensors(const struct checkpoint *checkpoint, int fd,
                         const struct named_parameter *named, const struct named_parameter *states,
                         size_t count, struct file_sum *sum, struct error *err) {
    struct tensor *tensors = mem_array(2 * count, sizeof *tensors);
    json_t *metadata = checkpoint_metadata(checkpoint);
    size_t n = 0;
    for (size_t i = 0; tensors && i < count; i++)
        tensors[n++] = named_tensor(&named[i], checkpoint->parameters);
    for (size_t i = 0; tensors && states && i < count; i++)
        tensors[n++] = named_tensor(&states[i], checkpoint->state);
    int status = tensors && metadata ? safetensors_write(fd, tensors, n, metadata, sum, err)
                                     : error_nomem(err);
    json_decref(metadata);
    free(tensors);
    return status;
}

static int write_model(const struct checkpoint *checkpoint, int fd, struct file_sum *sum,
                       struct error *err) {
    const char *state = checkpoint->state ? optimizer_state_name(checkpoint->optimizer.rule) : NULL;
    struct named_parameter *named = NULL, *states = NULL;
    size_t count = 0;
    int status = checkpoint_check_names(&checkpoint->classes, err);
    if (!status)
        status = named_parameters(&named, &count, checkpoint->model, NULL, err);
    if (!status && state)
        status = named_parameters(&states, &count, checkpoint->model, state, err);
    if (!status)
        status = write_tensors(checkpoint, fd, named, states, count, sum, err);
    named_parameters_free(named, count);
    named_parameters_free(states, count);
    return status;
}

// --- the folder -------------------------------------------------------------------

static int fill_folder(const struct checkpoint *checkpoint, const char *folder, struct error *err) {
    struct checkpoint_file file = {.name = CHECKPOINT_FILE};
    int fd;
    int status = checkpoint_create(folder, CHECKPOINT_FILE, &fd, err);
    if (status)
        return status;
    status = checkpoint_sync(fd, write_model(checkpoint, fd, &file.sum, err), err);
    return status ? status : checkpoint_write_manifest(checkpoint, folder, &file, 1, NULL, err);
}

int checkpoint_save(const struct checkpoint *checkpoint, const char *run, int keep,
                    struct error *err) {
    char *folder = NULL;
    int status = checkpoint_begin_folder(&folder, run, checkpoint->clock, err);
    if (!status)
        status = fill_folder(checkpoint, folder, err);
    if (!status)
        status = checkpoint_publish(folder, run, checkpoint->clock, keep, err);
    return checkpoint_end_folder(folder, run, checkpoint->clock, status, err);
}
