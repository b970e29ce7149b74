// Reading a checkpoint: nothing is believed before its CRC-32 is right, and no
// length before it is compared with what is there.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "run/checkpoint.h"
#include "run/checkpoint_tensors.h"
#include "store/crc.h"
#include "store/sealed.h"

// --- files ------------------------------------------------------------------------

struct bytes {
    unsigned char *data;
    size_t size;
};

static int read_open(struct bytes *bytes, int fd, const char *path, struct error *err) {
    struct stat stat_of;
    if (fstat(fd, &stat_of))
        return error_errno(err, STATUS_NOINPUT, "%s", path);
    if (!S_ISREG(stat_of.st_mode))
        return error_set(err, STATUS_NOINPUT, "%s is no file", path);
    bytes->data = mem_array((size_t)stat_of.st_size, 1);
    if (!bytes->data)
        return error_set(err, STATUS_IO, "out of memory for the %lld bytes of %s",
                         (long long)stat_of.st_size, path);
    while (bytes->size < (size_t)stat_of.st_size) {
        size_t left = (size_t)stat_of.st_size - bytes->size;
        ssize_t n = read(fd, bytes->data + bytes->size, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, STATUS_IO, "%s", path);
        if (n == 0)
            break;
        bytes->size += (size_t)n;
    }
    return STATUS_OK;
}

static int read_whole_file(struct bytes *bytes, const char *path, struct error *err) {
    *bytes = (struct bytes){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, STATUS_NOINPUT, "%s", path);
    int status = read_open(bytes, fd, path, err);
    close(fd);
    if (status) {
        free(bytes->data);
        bytes->data = NULL;
    }
    return status;
}

// --- manifest ---------------------------------------------------------------------

static const json_t *manifest_entry(const json_t *manifest, const char *name) {
    const json_t *files = json_object_get(manifest, "files");
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *entry = json_array_get(files, i);
        const char *entry_name = json_string_value(json_object_get(entry, "name"));
        if (entry_name && !strcmp(entry_name, name))
            return entry;
    }
    return NULL;
}

static int check_sum(const json_t *manifest, const struct bytes *bytes, struct error *err) {
    const json_t *entry = manifest_entry(manifest, CHECKPOINT_FILE);
    const char *crc = json_string_value(json_object_get(entry, "crc32"));
    const json_t *size = json_object_get(entry, "bytes");
    char found[16];
    if (!crc || !json_is_integer(size))
        return error_set(err, STATUS_DATA, "%s has no bytes and crc32 of it", CHECKPOINT_MANIFEST);
    if (json_integer_value(size) < 0 || (uint64_t)json_integer_value(size) != bytes->size)
        return error_set(err, STATUS_DATA, "it has %zu bytes where %s says %lld", bytes->size,
                         CHECKPOINT_MANIFEST, (long long)json_integer_value(size));
    snprintf(found, sizeof found, "%08" PRIx32, crc32_of(0, bytes->data, bytes->size));
    if (strcmp(found, crc) != 0)
        return error_set(err, STATUS_DATA, "it is damaged: its CRC-32 is %s where %s says %s",
                         found, CHECKPOINT_MANIFEST, crc);
    return STATUS_OK;
}

static int read_manifest(json_t **manifest, const char *path, struct error *err) {
    bool sealed;
    int status = sealed_read(manifest, &sealed, path, err);
    const json_t *version = json_object_get(*manifest, "v");
    if (!status && !sealed &&
        (!json_is_integer(version) || json_integer_value(version) >= CHECKPOINT_SEALED))
        status =
            error_set(err, STATUS_DATA, "%s: damaged: it lacks the CRC-32 in its last line", path);
    return status;
}

int checkpoint_manifest(json_t **manifest, const char *folder, struct error *err) {
    char *path = NULL;
    *manifest = NULL;
    if (asprintf(&path, "%s/%s", folder, CHECKPOINT_MANIFEST) < 0)
        return error_nomem(err);
    int status = access(path, F_OK) ? error_errno(err, STATUS_NOINPUT, "%s", path)
                                    : read_manifest(manifest, path, err);
    free(path);
    return status;
}

// A file that was copied away on its own comes without its manifest.
static int check_manifest(struct checkpoint *checkpoint, const char *folder,
                          const struct bytes *bytes, bool needed, struct error *err) {
    struct error why = {0};
    json_t *manifest;
    int status = checkpoint_manifest(&manifest, folder, &why);
    if (!status)
        status = check_sum(manifest, bytes, err);
    else if (status != STATUS_NOINPUT || needed)
        error_set(err, status, "%s", why.text);
    else
        status = STATUS_OK;
    const char *directory = json_string_value(json_object_get(manifest, "directory"));
    checkpoint->directory = directory ? mem_string(directory) : NULL;
    json_decref(manifest);
    return status;
}

// --- metadata ---------------------------------------------------------------------

static int refuse_missing(const char *key, struct error *err) {
    return error_set(err, STATUS_DATA, "metadata '%s' is missing or wrong", key);
}

static int get_count(const struct safetensors *file, const char *key, uint64_t *value,
                     struct error *err) {
    const char *text = safetensors_text(file, key);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return refuse_missing(key, err);
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno || *end ? refuse_missing(key, err) : STATUS_OK;
}

static int get_json(const struct safetensors *file, const char *key, json_t **value,
                    struct error *err) {
    const char *text = safetensors_text(file, key);
    if (!text)
        return refuse_missing(key, err);
    int status = json_read(value, text, strlen(text), err);
    return status ? error_context(err, "metadata '%s'", key) : STATUS_OK;
}

static int get_classes(const struct safetensors *file, struct classes *classes, struct error *err) {
    json_t *names = NULL;
    int status = get_json(file, "classes", &names, err), label;
    if (!status && (!json_is_array(names) || json_array_size(names) > CLASSES_MAX))
        status = refuse_missing("classes", err);
    for (size_t i = 0; !status && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        status = name ? classes_label(classes, name, &label, err) : refuse_missing("classes", err);
        if (!status && (size_t)label != i)
            status = error_set(err, STATUS_DATA, "class name '%s' comes twice", name);
    }
    json_decref(names);
    return status;
}

static bool get_rule(const json_t *value, struct optimizer *optimizer) {
    const char *name = json_string_value(json_object_get(value, "rule"));
    for (int i = 0; name && rule_names[i]; i++) {
        if (strcmp(name, rule_names[i]) != 0)
            continue;
        optimizer->rule = (enum rule)i;
        optimizer->momentum = (float)json_number_value(json_object_get(value, "momentum"));
        optimizer->decay = (float)json_number_value(json_object_get(value, "decay"));
        optimizer->epsilon = (float)json_number_value(json_object_get(value, "epsilon"));
        optimizer->clip = (float)json_number_value(json_object_get(value, "clip"));
        return true;
    }
    return false;
}

static int get_optimizer(const struct safetensors *file, struct optimizer *optimizer,
                         struct error *err) {
    json_t *value = NULL;
    int status = get_json(file, "optimizer", &value, err);
    if (!status && !get_rule(value, optimizer))
        status = refuse_missing("optimizer", err);
    json_decref(value);
    return status;
}

static int get_epoch(const struct safetensors *file, double *epoch, struct error *err) {
    const char *text = safetensors_text(file, "epoch");
    if (!text || !text_real(text, strlen(text), epoch) || *epoch < 0)
        return refuse_missing("epoch", err);
    return STATUS_OK;
}

static int get_model(const struct safetensors *file, struct model **model, const char *const *sets,
                     size_t set_count, struct error *err) {
    const char *text = safetensors_text(file, "model"),
               *name = safetensors_text(file, "model_name");
    if (!text || !name)
        return refuse_missing("model", err);
    return model_parse(model, name, text, sets, set_count, err);
}

static int get_metadata(struct checkpoint *checkpoint, const struct safetensors *file,
                        const char *const *sets, size_t set_count, struct error *err) {
    const char *format = safetensors_text(file, "format");
    if (!format || strcmp(format, CHECKPOINT_FORMAT) != 0)
        return error_set(err, STATUS_DATA,
                         "it is not a checkpoint of adam (its metadata lack the model)");
    int status = get_model(file, &checkpoint->model, sets, set_count, err);
    if (!status)
        status = get_classes(file, &checkpoint->classes, err);
    if (!status)
        status = get_optimizer(file, &checkpoint->optimizer, err);
    if (!status)
        status = get_count(file, "clock", &checkpoint->clock, err);
    if (!status)
        status = get_count(file, "samples", &checkpoint->samples, err);
    if (!status)
        status = get_count(file, "seed", &checkpoint->seed, err);
    if (!status)
        status = get_epoch(file, &checkpoint->epoch, err);
    if (!status)
        status = get_json(file, "run", &checkpoint->run, err);
    return status;
}

// --- tensors ----------------------------------------------------------------------

// "10x1x5x5" into text.
static const char *shape_text(char text[128], int rank, const uint64_t *dims) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < rank && used < 100; i++)
        used += (size_t)snprintf(text + used, 128 - used, "%s%" PRIu64, i ? "x" : "", dims[i]);
    return text;
}

static bool same_shape(const struct tensor *tensor, const uint64_t *dims, int rank) {
    if (tensor->rank != rank || strcmp(tensor->dtype, "F32") != 0)
        return false;
    for (int i = 0; i < rank; i++)
        if (tensor->dims[i] != dims[i])
            return false;
    return true;
}

static int get_tensor(const struct safetensors *file, const struct named_parameter *named,
                      float *values, struct error *err) {
    const struct parameter *parameter = named->parameter;
    const struct tensor *tensor = safetensors_find(file, named->name);
    uint64_t dims[TENSOR_RANK_MAX];
    char wanted[128], found[128];
    if (!tensor)
        return error_set(err, STATUS_DATA, "tensor '%s' is missing", named->name);
    for (int i = 0; i < parameter->rank; i++)
        dims[i] = (uint64_t)parameter->dims[i];
    if (!same_shape(tensor, dims, parameter->rank))
        return error_set(err, STATUS_DATA, "tensor '%s' is %s %s where the model has F32 %s",
                         named->name, tensor->dtype, shape_text(found, tensor->rank, tensor->dims),
                         shape_text(wanted, parameter->rank, dims));
    memcpy(values + parameter->offset, tensor->data, parameter->count * sizeof *values);
    for (size_t i = 0; i < parameter->count; i++)
        if (!isfinite(values[parameter->offset + i]))
            return error_set(err, STATUS_DATA, "tensor '%s' has values that are no finite numbers",
                             named->name);
    return STATUS_OK;
}

static int get_tensors(const struct safetensors *file, const struct model *model,
                       const char *prefix, float **values, struct error *err) {
    struct named_parameter *named = NULL;
    size_t count = 0;
    *values = mem_floats(model->parameter_count);
    int status = *values ? named_parameters(&named, &count, model, prefix, err) : error_nomem(err);
    for (size_t i = 0; !status && i < count; i++)
        status = get_tensor(file, &named[i], *values, err);
    named_parameters_free(named, count);
    return status;
}

static int from_bytes(struct checkpoint *checkpoint, const struct bytes *bytes,
                      const char *const *sets, size_t set_count, bool state, struct error *err) {
    struct safetensors file;
    int status = safetensors_parse(&file, bytes->data, bytes->size, err);
    if (status)
        return status;
    status = get_metadata(checkpoint, &file, sets, set_count, err);
    if (!status)
        status = get_tensors(&file, checkpoint->model, NULL, &checkpoint->parameters, err);
    const char *rule = optimizer_state_name(checkpoint->optimizer.rule);
    if (!status && state && rule)
        status = get_tensors(&file, checkpoint->model, rule, &checkpoint->state, err);
    safetensors_free(&file);
    return status;
}

// --- where it is --------------------------------------------------------------------

static bool path_is_folder(const char *path) {
    struct stat stat_of;
    return stat(path, &stat_of) == 0 && S_ISDIR(stat_of.st_mode);
}

// RUN, RUN/latest and a checkpoint's folder all lead to the folder of a
// checkpoint, a file to the folder it lies in. A run that was killed before it pointed `latest`
// anywhere has its newest checkpoint. NULL when out of memory.
static char *folder_of(const char *path) {
    char *folder = NULL;
    struct stat about;
    const char *slash = strrchr(path, '/');
    if (!path_is_folder(path))
        return slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1) : mem_string(".");
    if (asprintf(&folder, "%s/latest", path) < 0)
        return NULL;
    if (lstat(folder, &about) == 0)
        return folder;
    free(folder);
    size_t count;
    uint64_t *clocks = run_folder_clocks(path, &count);
    folder = count > 0 ? run_folder_checkpoint(path, clocks[0]) : mem_string(path);
    free(clocks);
    return folder;
}

static char *file_of(const char *path, const char *folder) {
    char *file = NULL;
    if (!path_is_folder(path))
        return mem_string(path);
    return asprintf(&file, "%s/%s", folder, CHECKPOINT_FILE) < 0 ? NULL : file;
}

// A folder that holds no file of a checkpoint is no checkpoint, and no run that has one.
static int no_checkpoint(const char *path, const char *folder, const char *file,
                         struct error *err) {
    if (access(file, F_OK) == 0 || errno != ENOENT || !path_is_folder(path) ||
        strcmp(path, folder) != 0)
        return STATUS_OK;
    return error_set(err, STATUS_NOINPUT, "%s: there is no checkpoint in this folder", path);
}

static int load_tensors(struct checkpoint *checkpoint, const char *path, const char *folder,
                        const char *file, const char *const *sets, size_t set_count, bool state,
                        struct error *err) {
    struct bytes bytes;
    int status = no_checkpoint(path, folder, file, err);
    if (!status)
        status = read_whole_file(&bytes, file, err);
    if (status)
        return status;
    status = check_manifest(checkpoint, folder, &bytes, path_is_folder(path), err);
    if (!status)
        status = checkpoint_check_kind(file, bytes.data, bytes.size, err);
    if (!status)
        status = from_bytes(checkpoint, &bytes, sets, set_count, state, err);
    free(bytes.data);
    return status == STATUS_DATA ? error_context(err, "%s", file) : status;
}

static int load_path(struct checkpoint *checkpoint, const char *path, const char *const *sets,
                     size_t set_count, bool state, struct error *err) {
    *checkpoint = (struct checkpoint){0};
    char *folder = folder_of(path), *file = folder ? file_of(path, folder) : NULL;
    int status = file ? load_tensors(checkpoint, path, folder, file, sets, set_count, state, err)
                      : error_nomem(err);
    if (status)
        checkpoint_free(checkpoint);
    free(file);
    free(folder);
    return status;
}

static bool is_sound(const char *path) {
    struct checkpoint checkpoint;
    bool sound = load_path(&checkpoint, path, NULL, 0, true, NULL) == STATUS_OK;
    checkpoint_free(&checkpoint);
    return sound;
}

// Adds to the error which checkpoint of the run can be read.
static int name_sound(const char *run, struct error *err) {
    size_t count;
    uint64_t *clocks = run_folder_clocks(run, &count);
    char *sound = NULL;
    for (size_t i = 0; i < count && !sound; i++) {
        sound = run_folder_checkpoint(run, clocks[i]);
        if (sound && !is_sound(sound)) {
            free(sound);
            sound = NULL;
        }
    }
    struct error why = *err;
    if (sound)
        error_set(err, why.status, "%s; the newest sound checkpoint is %s: give that instead",
                  why.text, sound);
    else if (count > 0)
        error_set(err, why.status, "%s; no other checkpoint in %s is sound", why.text, run);
    free(sound);
    free(clocks);
    return err->status;
}

int checkpoint_load(struct checkpoint *checkpoint, const char *path, const char *const *sets,
                    size_t set_count, bool state, struct error *err) {
    int status = load_path(checkpoint, path, sets, set_count, state, err);
    // What is sound without `sets` is not damaged.
    if ((status != STATUS_DATA && status != STATUS_NOINPUT) || is_sound(path))
        return status;
    char *run = run_folder_of(path);
    if (run)
        status = name_sound(run, err);
    free(run);
    return status;
}
