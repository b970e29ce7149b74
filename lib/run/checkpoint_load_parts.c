// A checkpoint in parts: the index says which file has which tensor, as Hugging Face's sharded
// checkpoints have it. Index and parts must agree on every tensor, whoever wrote them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "run/checkpoint_internal.h"

struct parts {
    const char *folder;
    const json_t *manifest;   // NULL: none
    const json_t *weight_map; // tensor: file
    const struct checkpoint *checkpoint;
    const struct checkpoint_wanted *wanted;
    struct named_lists lists; // of the tensors that are wanted
    uint64_t bytes;           // of the tensors in the parts that were read
};

// --- the index --------------------------------------------------------------------

// No name that leads out of the folder.
static bool is_file_name(const char *name) {
    return name && *name && *name != '.' && !strchr(name, '/');
}

static int check_index(const json_t *index, struct error *err) {
    const json_t *total = json_object_get(json_object_get(index, "metadata"), "total_size");
    json_t *weight_map = json_object_get(index, "weight_map"), *file;
    const char *tensor;
    if (!json_is_integer(total) || json_integer_value(total) < 0)
        return error_set(err, STATUS_DATA, "metadata 'total_size' is missing or wrong");
    if (!json_is_object(weight_map))
        return error_set(err, STATUS_DATA, "'weight_map' is missing or wrong");
    json_object_foreach(weight_map, tensor, file) {
        if (!is_file_name(json_string_value(file)))
            return error_set(err, STATUS_DATA,
                             "tensor '%s' is in no file of the checkpoint's folder", tensor);
    }
    return STATUS_OK;
}

static int check_listed(const struct parts *parts, size_t list, struct error *err) {
    const struct named_parameter *named = parts->lists.named[list];
    for (size_t i = 0; i < parts->lists.each; i++)
        if (!json_object_get(parts->weight_map, named[i].name))
            return error_set(err, STATUS_DATA, "tensor '%s' is missing", named[i].name);
    return STATUS_OK;
}

// --- a part -----------------------------------------------------------------------

static size_t count_listed(const struct parts *parts, const char *name) {
    json_t *weight_map = (json_t *)parts->weight_map, *file; // which is only read
    const char *tensor;
    size_t count = 0;
    json_object_foreach(weight_map, tensor, file) count += !strcmp(json_string_value(file), name);
    return count;
}

// A tensor is in the file that the index says, and in no other.
static int check_contents(struct parts *parts, const struct safetensors *file, const char *name,
                          struct error *err) {
    for (size_t i = 0; i < file->count; i++) {
        const struct tensor *tensor = &file->tensors[i];
        const char *listed = json_string_value(json_object_get(parts->weight_map, tensor->name));
        if (!listed || strcmp(listed, name) != 0)
            return error_set(err, STATUS_DATA, "tensor '%s' is in it, and in %s by the index",
                             tensor->name, listed ? listed : "no file");
        parts->bytes += tensor->bytes;
    }
    size_t listed = count_listed(parts, name);
    return file->count == listed
               ? STATUS_OK
               : error_set(err, STATUS_DATA, "it has %zu tensors, and %zu by the index",
                           file->count, listed);
}

static int get_listed(const struct parts *parts, const struct safetensors *file,
                      const struct content *content, const char *name, size_t list,
                      struct error *err) {
    const struct named_parameter *named = parts->lists.named[list];
    const struct tensor *tensor;
    bool room = parts->checkpoint->parameters;
    float *values = room ? checkpoint_values(parts->checkpoint, &parts->lists, list) : NULL;
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < parts->lists.each; i++) {
        const char *in = json_string_value(json_object_get(parts->weight_map, named[i].name));
        if (!strcmp(in, name))
            status = room ? checkpoint_get_tensor(file, content, &named[i], values, err)
                          : checkpoint_find_tensor(&tensor, file, &named[i], err);
    }
    return status;
}

static int get_portion(const struct parts *parts, const struct safetensors *file,
                       const struct content *content, const char *name, struct error *err) {
    const struct named_parameter *named = parts->lists.named[0];
    bool *here = mem_zeroed(parts->lists.each + 1, sizeof *here);
    if (!here)
        return error_nomem(err);
    for (size_t i = 0; i < parts->lists.each; i++) {
        const json_t *in = json_object_get(parts->weight_map, named[i].name);
        here[i] = !strcmp(json_string_value(in), name);
    }
    int status = checkpoint_get_portion(file, content, &parts->lists, here, parts->wanted, err);
    free(here);
    return status;
}

static int from_part(struct parts *parts, const struct content *content, const char *name,
                     struct error *err) {
    struct safetensors file;
    int status =
        parts->manifest ? checkpoint_check_sum(parts->manifest, name, content, err) : STATUS_OK;
    if (!status)
        status = safetensors_open(&file, content, err);
    if (status)
        return status;
    status = check_contents(parts, &file, name, err);
    for (size_t l = 0; !status && checkpoint_wants_room(parts->wanted) && l < parts->lists.count;
         l++)
        status = get_listed(parts, &file, content, name, l, err);
    if (!status && parts->wanted->values == VALUES_PORTION)
        status = get_portion(parts, &file, content, name, err);
    safetensors_free(&file);
    return status;
}

// A part that the run left where it was written is nothing damaged.
static int check_gathered(const struct parts *parts, const char *name, const char *path,
                          struct error *err) {
    const char *server = checkpoint_server_of(parts->manifest, name);
    if (!server || access(path, F_OK) == 0)
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE,
                     "%s is on the disk of parameter server '%s': adam-ctl gather brings it here",
                     path, server);
}

static int load_part(struct parts *parts, const char *name, struct error *err) {
    char *path = NULL;
    struct content content = {.fd = -1};
    if (asprintf(&path, "%s/%s", parts->folder, name) < 0)
        return error_nomem(err);
    int status = check_gathered(parts, name, path, err);
    if (!status)
        status = content_open(&content, path, err);
    if (!status && from_part(parts, &content, name, err))
        status = error_context(err, "%s", path);
    content_close(&content);
    free(path);
    return status;
}

// --- all of them ------------------------------------------------------------------

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The names of files in the index, each as often as it has tensors, in order; free it with free().
static const char **list_files(const struct parts *parts) {
    json_t *weight_map = (json_t *)parts->weight_map, *file; // which is only read
    const char **names = mem_array(json_object_size(weight_map) + 1, sizeof *names);
    const char *tensor;
    size_t count = 0;
    if (!names)
        return NULL;
    json_object_foreach(weight_map, tensor, file) names[count++] = json_string_value(file);
    qsort(names, count, sizeof *names, by_text);
    return names;
}

static int open_parts(struct parts *parts, const struct checkpoint *checkpoint,
                      const struct checkpoint_wanted *wanted, struct error *err) {
    int status = checkpoint_wanted_lists(&parts->lists, checkpoint, wanted, err);
    for (size_t l = 0; !status && l < parts->lists.count; l++)
        status = check_listed(parts, l, err);
    return status;
}

// Bytes of the file; 0: there is none.
static uint64_t size_of(const struct parts *parts, const char *name) {
    char *path = NULL;
    struct stat about;
    bool known = asprintf(&path, "%s/%s", parts->folder, name) >= 0 && stat(path, &about) == 0;
    free(path);
    return known ? (uint64_t)about.st_size : 0;
}

// Whether the parts are large enough for the values that are wanted.
static bool may_hold(const struct parts *parts, const char **names) {
    uint64_t bytes = 0, wanted = parts->lists.count * parts->checkpoint->model->parameter_count;
    for (size_t i = 0; i < json_object_size(parts->weight_map); i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            bytes += size_of(parts, names[i]);
    return bytes / sizeof(float) >= wanted;
}

static int load_each(struct parts *parts, const char **names, struct error *err) {
    int status = STATUS_OK;
    parts->bytes = 0;
    for (size_t i = 0; !status && i < json_object_size(parts->weight_map); i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            status = load_part(parts, names[i], err);
    return status;
}

// Nothing is reserved for values that are not there: then the parts themselves say what is wrong.
static int load_all(struct parts *parts, struct checkpoint *checkpoint, struct error *err) {
    const char **names = list_files(parts);
    int status = names ? STATUS_OK : error_nomem(err);
    if (!status && checkpoint_wants_room(parts->wanted) && !may_hold(parts, names))
        status = load_each(parts, names, err);
    if (!status)
        status = checkpoint_wanted_room(checkpoint, parts->wanted, err);
    if (!status)
        status = load_each(parts, names, err);
    free(names);
    return status;
}

static int check_total(const struct parts *parts, const json_t *metadata, struct error *err) {
    uint64_t total = (uint64_t)json_integer_value(json_object_get(metadata, "total_size"));
    if (parts->bytes == total)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "the parts have %llu bytes of tensors, and 'total_size' is %llu",
                     (unsigned long long)parts->bytes, (unsigned long long)total);
}

// Errors of parts name their files already.
static int load_indexed(struct checkpoint *checkpoint, struct parts *parts, const json_t *index,
                        const char *path, const struct checkpoint_wanted *wanted,
                        struct error *err) {
    const json_t *metadata = json_object_get(index, "metadata");
    int status = check_index(index, err);
    if (!status) {
        parts->weight_map = json_object_get(index, "weight_map");
        if (wanted->values != VALUES_PORTION)
            status = checkpoint_read_metadata(checkpoint, metadata, wanted, err);
    }
    if (!status)
        status = open_parts(parts, checkpoint, wanted, err);
    if (status)
        return status == STATUS_DATA ? error_context(err, "%s", path) : status;
    status = load_all(parts, checkpoint, err);
    if (!status && check_total(parts, metadata, err))
        status = error_context(err, "%s", path);
    return status;
}

static int read_json(json_t **index, const struct content *content, struct error *err) {
    char *text = mem_array((size_t)content->size + 1, 1);
    int status =
        text ? content_read(content, text, 0, (size_t)content->size, err) : error_nomem(err);
    if (!status)
        status = json_read(index, text, (size_t)content->size, err);
    free(text);
    return status;
}

static int read_index(json_t **index, const char *path, const json_t *manifest, struct error *err) {
    struct content content;
    int status = content_open(&content, path, err);
    if (status)
        return status;
    if (manifest)
        status = checkpoint_check_sum(manifest, CHECKPOINT_INDEX, &content, err);
    if (!status)
        status = read_json(index, &content, err);
    content_close(&content);
    return status == STATUS_DATA ? error_context(err, "%s", path) : status;
}

int checkpoint_load_parts(struct checkpoint *checkpoint, const char *path, const json_t *manifest,
                          const struct checkpoint_wanted *wanted, struct error *err) {
    json_t *index = NULL;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? mem_text(path, (size_t)(slash - path)) : mem_string(".");
    struct parts parts = {
        .folder = folder, .manifest = manifest, .checkpoint = checkpoint, .wanted = wanted};
    int status = folder ? read_index(&index, path, manifest, err) : error_nomem(err);
    if (!status)
        status = load_indexed(checkpoint, &parts, index, path, wanted, err);
    named_lists_free(&parts.lists);
    json_decref(index);
    free(folder);
    return status;
}
