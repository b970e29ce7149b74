// Writing a checkpoint whose tensors all are here.
#include "run/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/utf8.h"
#include "run/checkpoint_internal.h"
#include "run/settings.h"
#include "store/scratch.h"

static void free_values(const struct checkpoint *checkpoint, float *values) {
    if (checkpoint->scratch)
        scratch_free(values);
    else
        free(values);
}

void checkpoint_drop_values(struct checkpoint *checkpoint) {
    free_values(checkpoint, checkpoint->parameters);
    free_values(checkpoint, checkpoint->state);
    checkpoint->parameters = checkpoint->state = NULL;
}

void checkpoint_free(struct checkpoint *checkpoint) {
    model_free(checkpoint->model);
    checkpoint_drop_values(checkpoint);
    classes_free(&checkpoint->classes);
    json_decref(checkpoint->run);
    free(checkpoint->directory);
    *checkpoint = (struct checkpoint){0};
}

// So many for each parameter.
static int take_values(float **values, const struct checkpoint *checkpoint, int each,
                       struct error *err) {
    const struct model *model = checkpoint->model;
    size_t n = (size_t)each * model->parameter_count;
    if (*values || each == 0)
        return STATUS_OK;
    if (checkpoint->scratch)
        return scratch_open(values, checkpoint->scratch, n, err);
    *values = mem_floats(n);
    return *values ? STATUS_OK
                   : error_set(err, STATUS_IO, "out of memory for the %zu parameters of %s",
                               model->parameter_count, model->name);
}

int checkpoint_make_room(struct checkpoint *checkpoint, bool state, struct error *err) {
    int kept = state ? optimizer_kept(&checkpoint->optimizer) : 0;
    int status = take_values(&checkpoint->parameters, checkpoint, 1, err);
    return status ? status : take_values(&checkpoint->state, checkpoint, kept, err);
}

float *checkpoint_average(const struct checkpoint *checkpoint) {
    size_t states = (size_t)optimizer_states(checkpoint->optimizer.rule);
    return checkpoint->optimizer.ema > 0 && checkpoint->state
               ? checkpoint->state + states * checkpoint->model->parameter_count
               : NULL;
}

const float *checkpoint_tested(const struct checkpoint *checkpoint) {
    const float *average = checkpoint_average(checkpoint);
    return average ? average : checkpoint->parameters;
}

// What goes on of `before`, into fresh memory of `after`; NULL where nothing is there.
static void turn_state(struct checkpoint *after, const struct checkpoint *before) {
    size_t n = after->model->parameter_count;
    bool same = before->optimizer.rule == after->optimizer.rule && before->state;
    const float *from = same ? checkpoint_tested(before) : before->parameters;
    float *average = checkpoint_average(after);
    if (same)
        memcpy(after->state, before->state,
               (size_t)optimizer_states(after->optimizer.rule) * n * sizeof *after->state);
    if (average)
        memcpy(average, from, n * sizeof *average);
}

int checkpoint_turn(struct checkpoint *checkpoint, const struct optimizer *next,
                    struct error *err) {
    struct checkpoint before = *checkpoint;
    bool same = before.optimizer.rule == next->rule &&
                optimizer_kept(&before.optimizer) == optimizer_kept(next);
    checkpoint->optimizer = *next;
    if (same || !before.parameters)
        return STATUS_OK;
    checkpoint->state = NULL;
    int status = checkpoint_make_room(checkpoint, true, err);
    if (!status && checkpoint->state)
        turn_state(checkpoint, &before);
    free_values(&before, before.state);
    return status;
}

bool checkpoint_lacks_state(struct checkpoint *checkpoint) {
    size_t states = (size_t)optimizer_states(checkpoint->optimizer.rule);
    if (!settings_lack_state(checkpoint->run))
        return false;
    if (checkpoint->state)
        memset(checkpoint->state, 0,
               states * checkpoint->model->parameter_count * sizeof *checkpoint->state);
    return true;
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
                         const struct named_lists *lists, struct file_sum *sum, struct error *err) {
    struct tensor *tensors = mem_array(lists->count * lists->each, sizeof *tensors);
    json_t *metadata = checkpoint_metadata(checkpoint);
    size_t n = 0;
    for (size_t l = 0; tensors && l < lists->count; l++) {
        const float *values = checkpoint_values(checkpoint, lists, l);
        for (size_t i = 0; i < lists->each; i++)
            tensors[n++] = named_tensor(&lists->named[l][i], values);
    }
    int status = tensors && metadata ? safetensors_write(fd, tensors, n, metadata, sum, err)
                                     : error_nomem(err);
    json_decref(metadata);
    free(tensors);
    return status;
}

static int write_model(const struct checkpoint *checkpoint, int fd, struct file_sum *sum,
                       struct error *err) {
    struct named_lists lists = {.count = 0};
    int status = checkpoint_check_names(&checkpoint->classes, err);
    if (!status)
        status = checkpoint_lists(&lists, checkpoint, err);
    if (!status)
        status = write_tensors(checkpoint, fd, &lists, sum, err);
    named_lists_free(&lists);
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

uint64_t checkpoint_bytes(const char *path) {
    struct stat about;
    char *file = NULL;
    if (asprintf(&file, "%s/" CHECKPOINT_FILE, path) < 0)
        return 0;
    uint64_t bytes = stat(file, &about) ? 0 : (uint64_t)about.st_size;
    free(file);
    return bytes;
}

int checkpoint_save(const struct checkpoint *checkpoint, const char *run, int keep,
                    struct error *err) {
    char *folder = NULL;
    int status = checkpoint_begin_folder(&folder, run, checkpoint->clock, err);
    if (!status)
        status = fill_folder(checkpoint, folder, err);
    if (!status)
        status = checkpoint_publish(folder, run, checkpoint, keep, err);
    return checkpoint_end_folder(folder, run, checkpoint->clock, status, err);
}
