// Writing a checkpoint. "Files appear complete or not at all": all of it is
// written and synced under a temporary name, then the folder gets its own.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/utf8.h"
#include "run/checkpoint.h"
#include "run/checkpoint_tensors.h"
#include "store/output.h"
#include "store/sealed.h"

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

static json_t *text_number(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    return json_string(text);
}

static json_t *text_count(uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return json_string(text);
}

// A JSON value as text: the format's metadata are strings.
static json_t *text_json(json_t *value) {
    char *line = value ? json_line(value) : NULL;
    json_t *text = line ? json_string(line) : NULL;
    free(line);
    return text;
}

static json_t *class_names(const struct classes *classes) {
    json_t *names = json_array();
    for (int i = 0; i < classes->count; i++)
        json_append(&names, json_string(classes->names[i]));
    json_t *text = text_json(names);
    json_decref(names);
    return text;
}

static json_t *rule_json(const struct optimizer *optimizer) {
    json_t *rule =
        json_pack("{s:s, s:f, s:f, s:f, s:f}", "rule", rule_names[optimizer->rule], "momentum",
                  (double)optimizer->momentum, "decay", (double)optimizer->decay, "epsilon",
                  (double)optimizer->epsilon, "clip", (double)optimizer->clip);
    json_t *text = text_json(rule);
    json_decref(rule);
    return text;
}

static json_t *metadata_of(const struct checkpoint *checkpoint) {
    const char *ops = model_input(checkpoint->model)->ops;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", //
                     "format", CHECKPOINT_FORMAT, "version", ADAM_VERSION,           //
                     "model", checkpoint->model->text, "model_name", checkpoint->model->name,
                     "input_ops", ops ? ops : "",                    //
                     "classes", class_names(&checkpoint->classes),   //
                     "optimizer", rule_json(&checkpoint->optimizer), //
                     "clock", text_count(checkpoint->clock),         //
                     "samples", text_count(checkpoint->samples),     //
                     "epoch", text_number(checkpoint->epoch),        //
                     "seed", text_count(checkpoint->seed),           //
                     "run", text_json(checkpoint->run));
}

static struct tensor tensor_of(const struct named_parameter *named, const float *values) {
    struct tensor tensor = {
        .name = named->name,
        .dtype = "F32",
        .rank = named->parameter->rank,
        .data = values + named->parameter->offset,
        .bytes = named->parameter->count * sizeof *values,
    };
    for (int i = 0; i < tensor.rank; i++)
        tensor.dims[i] = (uint64_t)named->parameter->dims[i];
    return tensor;
}

static int write_tensors(const struct checkpoint *checkpoint, int fd,
                         const struct named_parameter *named, const struct named_parameter *states,
                         size_t count, struct file_sum *sum, struct error *err) {
    struct tensor *tensors = mem_array(2 * count, sizeof *tensors);
    json_t *metadata = metadata_of(checkpoint);
    size_t n = 0;
    for (size_t i = 0; tensors && i < count; i++)
        tensors[n++] = tensor_of(&named[i], checkpoint->parameters);
    for (size_t i = 0; tensors && states && i < count; i++)
        tensors[n++] = tensor_of(&states[i], checkpoint->state);
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

// --- manifest.json ----------------------------------------------------------------

static char *manifest_of(const struct checkpoint *checkpoint, const struct file_sum *sum) {
    char crc[16], *directory = getcwd(NULL, 0);
    snprintf(crc, sizeof crc, "%08" PRIx32, sum->crc);
    json_t *manifest =
        json_pack("{s:i, s:s, s:s?, s:s?, s:I, s:I, s:f, s:I, s:[{s:s, s:I, s:s}], s:O}", "v",
                  CHECKPOINT_SEALED, "version", ADAM_VERSION, "command", checkpoint->command,
                  "directory", directory, "clock", (json_int_t)checkpoint->clock, "samples",
                  (json_int_t)checkpoint->samples, "epoch", checkpoint->epoch, "seed",
                  (json_int_t)checkpoint->seed, "files", "name", CHECKPOINT_FILE, "bytes",
                  (json_int_t)sum->bytes, "crc32", crc, "run", checkpoint->run);
    char *text = manifest ? sealed_text(manifest) : NULL;
    json_decref(manifest);
    free(directory);
    return text;
}

static int write_manifest(int fd, const char *text, struct error *err) {
    if (!text)
        return error_nomem(err);
    if (dprintf(fd, "%s", text) < 0)
        return error_errno(err, STATUS_IO, "write");
    return STATUS_OK;
}

// --- the folder -------------------------------------------------------------------

static int open_in(const char *folder, const char *name, int *fd, struct error *err) {
    int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *fd = at < 0 ? -1 : openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int status =
        *fd < 0 ? error_errno(err, STATUS_CANTCREATE, "cannot create %s/%s", folder, name) : 0;
    if (at >= 0)
        close(at);
    return status;
}

static int sync_and_close(int fd, int status, struct error *err) {
    if (!status && fsync(fd))
        status = error_errno(err, STATUS_IO, "sync");
    if (close(fd) && !status)
        status = error_errno(err, STATUS_IO, "close");
    return status;
}

static int fill_folder(const struct checkpoint *checkpoint, const char *folder, struct error *err) {
    int fd;
    struct file_sum sum = {0};
    int status = open_in(folder, CHECKPOINT_FILE, &fd, err);
    if (status)
        return status;
    status = sync_and_close(fd, write_model(checkpoint, fd, &sum, err), err);
    if (!status)
        status = open_in(folder, CHECKPOINT_MANIFEST, &fd, err);
    if (status)
        return status;
    char *text = manifest_of(checkpoint, &sum);
    status = sync_and_close(fd, write_manifest(fd, text, err), err);
    free(text);
    if (status)
        return status;
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? error_errno(err, STATUS_IO, "cannot sync folder %s", folder)
                  : sync_and_close(fd, STATUS_OK, err);
}

// Gives the complete folder its name. One of the same name (a run that was
// resumed and stopped at the same clock) changes places with it first.
static int publish_folder(const char *temporary, const char *path, struct error *err) {
    if (access(path, F_OK))
        return output_rename(temporary, path, false, err);
    int status = output_exchange(temporary, path, err);
    if (!status)
        run_folder_remove(temporary);
    return status;
}

// RUN/latest -> ckpt-00012000, replaced in one step.
static int point_latest(const char *run, const char *path, struct error *err) {
    char *latest = NULL, *temporary = NULL;
    if (asprintf(&latest, "%s/latest", run) < 0)
        return error_nomem(err);
    temporary = output_temporary(latest, 0);
    int status = temporary ? STATUS_OK : error_nomem(err);
    if (!status)
        unlink(temporary);
    if (!status && symlink(strrchr(path, '/') + 1, temporary))
        status = error_errno(err, STATUS_CANTCREATE, "cannot create %s", temporary);
    if (!status)
        status = output_rename(temporary, latest, true, err);
    free(temporary);
    free(latest);
    return status;
}

static int save_at(const struct checkpoint *checkpoint, const char *run, const char *path,
                   const char *temporary, struct error *err) {
    if (mkdir(temporary, 0777))
        return error_errno(err, STATUS_CANTCREATE, "cannot create %s", temporary);
    int status = fill_folder(checkpoint, temporary, err);
    if (!status)
        status = publish_folder(temporary, path, err);
    if (status)
        run_folder_remove(temporary);
    return status ? status : point_latest(run, path, err);
}

int checkpoint_save(const struct checkpoint *checkpoint, const char *run, int keep,
                    struct error *err) {
    char *path = run_folder_checkpoint(run, checkpoint->clock);
    char *temporary = path ? output_temporary(path, 0) : NULL;
    int status = STATUS_IO;
    if (temporary) {
        run_folder_remove(temporary);
        status = save_at(checkpoint, run, path, temporary, err);
        if (status)
            error_context(err, "cannot save %s", path);
        else
            run_folder_prune(run, keep, checkpoint->clock);
    } else {
        status = error_nomem(err);
    }
    free(temporary);
    free(path);
    return status;
}
