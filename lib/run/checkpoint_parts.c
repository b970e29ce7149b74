// Saving a checkpoint whose parts others write.
#include "run/checkpoint_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "run/checkpoint_internal.h"

// --- the draft --------------------------------------------------------------------

static int write_token(struct checkpoint_draft *draft, struct error *err) {
    char text[CHECKPOINT_TOKEN_TEXT];
    struct file_sum sum;
    if (getrandom(draft->token, sizeof draft->token, 0) != sizeof draft->token)
        return error_errno(err, STATUS_IO, "getrandom");
    checkpoint_token_text(text, draft->token);
    return checkpoint_write_text(draft->folder, CHECKPOINT_TOKEN_FILE, text, &sum, err);
}

int checkpoint_draft_open(struct checkpoint_draft *draft, const char *run, uint64_t clock,
                          struct error *err) {
    *draft = (struct checkpoint_draft){.run = run, .clock = clock};
    int status = checkpoint_begin_folder(&draft->folder, run, clock, err);
    if (!status)
        status = write_token(draft, err);
    if (!status && !(draft->path = realpath(draft->folder, NULL)))
        status = error_errno(err, STATUS_IO, "%s", draft->folder);
    return status ? checkpoint_draft_end(draft, status, err) : STATUS_OK;
}

int checkpoint_draft_end(struct checkpoint_draft *draft, int status, struct error *err) {
    free(draft->path);
    return checkpoint_end_folder(draft->folder, draft->run, draft->clock, status, err);
}

// --- the index --------------------------------------------------------------------

void checkpoint_part_name(char name[CHECKPOINT_PART_NAME], uint32_t part, uint32_t parts) {
    snprintf(name, CHECKPOINT_PART_NAME, "model-%05" PRIu32 "-of-%05" PRIu32 ".safetensors", part,
             parts);
}

// Adds the tensors of the parts to the map, and their bytes to *total. The map is NULL when memory
// is out.
static void map_tensors(json_t **map, uint64_t *total, const struct named_parameter *named,
                        const struct checkpoint_part *parts, uint32_t count) {
    char name[CHECKPOINT_PART_NAME];
    for (uint32_t part = 0; part < count; part++) {
        checkpoint_part_name(name, part + 1, count);
        for (size_t i = 0; i < parts[part].count; i++) {
            const struct named_parameter *tensor = &named[parts[part].tensors[i]];
            json_put(map, tensor->name, json_string(name));
            *total += tensor->parameter->count * sizeof(float);
        }
    }
}

// As `json.dumps(index, indent=2, sort_keys=True)` of Python writes it; NULL when out of memory.
static char *index_text(const struct checkpoint *checkpoint, json_t *map, uint64_t total) {
    json_t *metadata = checkpoint_metadata(checkpoint);
    json_put(&metadata, "total_size", json_integer((json_int_t)total));
    json_t *index = json_pack("{s:o, s:O}", "metadata", metadata, "weight_map", map);
    char *text = index ? json_dumps(index, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    json_decref(index);
    return text;
}

static int write_index(const struct checkpoint *checkpoint, const char *folder,
                       const struct checkpoint_part *parts, uint32_t count, struct file_sum *sum,
                       struct error *err) {
    struct named_lists lists;
    json_t *map = json_object();
    uint64_t total = 0;
    int status = named_lists_make(&lists, checkpoint->model, &checkpoint->optimizer, err);
    for (size_t l = 0; !status && l < lists.count; l++)
        map_tensors(&map, &total, lists.named[l], parts, count);
    named_lists_free(&lists);
    char *text = status || !map ? NULL : index_text(checkpoint, map, total);
    if (!status)
        status = text ? checkpoint_write_text(folder, CHECKPOINT_INDEX, text, sum, err)
                      : error_nomem(err);
    free(text);
    json_decref(map);
    return status;
}

// --- the whole --------------------------------------------------------------------

// The part is where it belongs, and as long as who wrote it says.
static int check_part(const char *folder, const struct checkpoint_file *file, struct error *err) {
    char *path = NULL;
    struct stat about;
    if (asprintf(&path, "%s/%s", folder, file->name) < 0)
        return error_nomem(err);
    int status = STATUS_OK;
    if (stat(path, &about))
        status = error_errno(err, STATUS_DATA, "%s", path);
    else if ((uint64_t)about.st_size != file->sum.bytes)
        status = error_set(err, STATUS_DATA, "%s has %lld bytes, and %" PRIu64 " were written",
                           path, (long long)about.st_size, file->sum.bytes);
    free(path);
    return status;
}

static int write_manifest(const struct checkpoint *checkpoint, const struct checkpoint_draft *draft,
                          const struct file_sum *index, const struct checkpoint_part *parts,
                          uint32_t count, struct error *err) {
    struct checkpoint_file *files = mem_array(count + 1, sizeof *files);
    char(*names)[CHECKPOINT_PART_NAME] = mem_array(count + 1, sizeof *names);
    int status = files && names ? STATUS_OK : error_nomem(err);
    for (uint32_t i = 0; !status && i < count; i++) {
        checkpoint_part_name(names[i], i + 1, count);
        files[i + 1] = (struct checkpoint_file){names[i], parts[i].sum, parts[i].server};
        if (!parts[i].server)
            status = check_part(draft->folder, &files[i + 1], err);
    }
    if (!status) {
        files[0] = (struct checkpoint_file){.name = CHECKPOINT_INDEX, .sum = *index};
        status = checkpoint_write_manifest(checkpoint, draft->folder, files, count + 1, draft, err);
    }
    free(names);
    free(files);
    return status;
}

static int remove_token(const char *folder, struct error *err) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, CHECKPOINT_TOKEN_FILE) < 0)
        return error_nomem(err);
    int status = unlink(path) ? error_errno(err, STATUS_IO, "cannot remove %s", path) : STATUS_OK;
    free(path);
    return status;
}

int checkpoint_draft_save(const struct checkpoint_draft *draft, const struct checkpoint *checkpoint,
                          const struct checkpoint_part *parts, uint32_t count, int keep,
                          struct error *err) {
    struct file_sum index;
    int status = checkpoint_check_names(&checkpoint->classes, err);
    if (!status)
        status = write_index(checkpoint, draft->folder, parts, count, &index, err);
    if (!status)
        status = write_manifest(checkpoint, draft, &index, parts, count, err);
    if (!status)
        status = remove_token(draft->folder, err);
    return status ? status : checkpoint_publish(draft->folder, draft->run, checkpoint, keep, err);
}
