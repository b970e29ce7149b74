// Reading a checkpoint: nothing is believed before its CRC-32 is right, and no
// length before it is compared with what is there.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "run/checkpoint.h"
#include "run/checkpoint_internal.h"

enum { LINKS_MOST = 8 }; // one behind the other, of the system's 40

// --- in one file --------------------------------------------------------------------

static int get_tensors(const struct safetensors *file, const struct content *content,
                       const struct checkpoint *checkpoint, const struct checkpoint_wanted *wanted,
                       struct error *err) {
    struct named_lists lists;
    int status = checkpoint_lists(&lists, checkpoint, err);
    for (size_t l = 0; !status && checkpoint->parameters && l < lists.count; l++)
        for (size_t i = 0; !status && i < lists.each; i++)
            status = checkpoint_get_tensor(file, content, &lists.named[l][i],
                                           checkpoint_values(checkpoint, &lists, l), err);
    if (!status && wanted->values == VALUES_PORTION)
        status = checkpoint_get_portion(file, content, &lists, NULL, wanted, err);
    named_lists_free(&lists);
    return status;
}

// Nothing is reserved for values that are not there.
static int check_tensors(const struct safetensors *file, const struct checkpoint *checkpoint,
                         const struct checkpoint_wanted *wanted, struct error *err) {
    struct named_lists lists;
    const struct tensor *tensor;
    int status = checkpoint_wanted_lists(&lists, checkpoint, wanted, err);
    for (size_t l = 0; !status && checkpoint_wants_room(wanted) && l < lists.count; l++)
        for (size_t i = 0; !status && i < lists.each; i++)
            status = checkpoint_find_tensor(&tensor, file, &lists.named[l][i], err);
    named_lists_free(&lists);
    return status;
}

static int refuse_part(const struct safetensors *file, struct error *err) {
    return safetensors_text(file, "index")
               ? error_set(err, STATUS_DATA,
                           "it is a part of a checkpoint; give the folder with all of them")
               : STATUS_OK;
}

static int from_content(struct checkpoint *checkpoint, const struct content *content,
                        const struct checkpoint_wanted *wanted, struct error *err) {
    struct safetensors file;
    int status = safetensors_open(&file, content, err);
    if (status)
        return status;
    status = refuse_part(&file, err);
    if (!status && wanted->values != VALUES_PORTION)
        status = checkpoint_read_metadata(checkpoint, file.metadata, wanted, err);
    if (!status)
        status = check_tensors(&file, checkpoint, wanted, err);
    if (!status)
        status = checkpoint_wanted_room(checkpoint, wanted, err);
    if (!status)
        status = get_tensors(&file, content, checkpoint, wanted, err);
    safetensors_free(&file);
    return status;
}

static int load_whole(struct checkpoint *checkpoint, const char *file,
                      const struct content *content, const json_t *manifest,
                      const struct checkpoint_wanted *wanted, struct error *err) {
    int status =
        manifest ? checkpoint_check_sum(manifest, CHECKPOINT_FILE, content, err) : STATUS_OK;
    if (!status)
        status = checkpoint_check_kind(file, content, err);
    if (!status)
        status = from_content(checkpoint, content, wanted, err);
    return status == STATUS_DATA ? error_context(err, "%s", file) : status;
}

bool checkpoint_wants_room(const struct checkpoint_wanted *wanted) {
    return wanted->values == VALUES_STATE || wanted->values == VALUES_PARAMETERS;
}

int checkpoint_wanted_room(struct checkpoint *checkpoint, const struct checkpoint_wanted *wanted,
                           struct error *err) {
    return checkpoint_wants_room(wanted)
               ? checkpoint_make_room(checkpoint, wanted->values == VALUES_STATE, err)
               : STATUS_OK;
}

int checkpoint_wanted_lists(struct named_lists *lists, const struct checkpoint *checkpoint,
                            const struct checkpoint_wanted *wanted, struct error *err) {
    bool state = wanted->values == VALUES_STATE;
    return named_lists_make(lists, checkpoint->model, state ? &checkpoint->optimizer : NULL, err);
}

// --- where it is --------------------------------------------------------------------

static bool path_is_folder(const char *path) {
    struct stat stat_of;
    return stat(path, &stat_of) == 0 && S_ISDIR(stat_of.st_mode);
}

// A run that was killed before it pointed `latest` anywhere has its newest checkpoint.
char *checkpoint_folder(const char *path) {
    char *folder = NULL;
    struct stat about;
    const char *slash = strrchr(path, '/');
    if (!path_is_folder(path))
        return slash ? mem_text(path, slash > path ? (size_t)(slash - path) : 1) : mem_string(".");
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

// Where a link leads, as a path like that of the link; NULL: it is none, or out of memory.
static char *follow_link(const char *link) {
    char to[PATH_MAX], *path = NULL;
    ssize_t length = readlink(link, to, sizeof to - 1);
    const char *slash = strrchr(link, '/');
    if (length <= 0)
        return NULL;
    to[length] = 0;
    int around = slash && *to != '/' ? (int)(slash - link) + 1 : 0;
    return asprintf(&path, "%.*s%s", around, link, to) < 0 ? NULL : path;
}

// The folder of the checkpoint that the path leads to now; all that is read of it is of this one,
// though the run may point `latest` to another meanwhile.
static char *steady_folder(const char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *plain = mem_text(path, length), *folder = plain ? checkpoint_folder(plain) : NULL;
    free(plain);
    for (int links = 0; folder && links < LINKS_MOST; links++) {
        char *next = follow_link(folder);
        if (!next)
            break;
        free(folder);
        folder = next;
    }
    return folder;
}

// A file by the name of an index lists the parts.
static bool is_index(const char *file) {
    const char *slash = strrchr(file, '/');
    return !strcmp(slash ? slash + 1 : file, CHECKPOINT_INDEX);
}

static char *file_in(const char *folder, const char *name) {
    char *file = NULL;
    return asprintf(&file, "%s/%s", folder, name) < 0 ? NULL : file;
}

// Of a folder the one that is there: the whole model, or the index of its parts.
static char *file_of(const char *path, const char *folder) {
    const char *slash = strrchr(path, '/');
    if (!path_is_folder(path))
        return slash ? file_in(folder, slash + 1) : mem_string(path);
    char *index = file_in(folder, CHECKPOINT_INDEX);
    char *whole = file_in(folder, CHECKPOINT_FILE);
    bool parts = index && whole && access(whole, F_OK) && !access(index, F_OK);
    free(parts ? whole : index);
    return parts ? index : whole;
}

static bool is_same(const char *path, const char *folder) {
    struct stat one, other;
    return stat(path, &one) == 0 && stat(folder, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

// A folder that holds no file of a checkpoint is no checkpoint, and no run that has one.
static int no_checkpoint(const char *path, const char *folder, const char *file,
                         struct error *err) {
    if (access(file, F_OK) == 0 || errno != ENOENT || !path_is_folder(path) ||
        !is_same(path, folder))
        return STATUS_OK;
    return error_set(err, STATUS_NOINPUT, "%s: there is no checkpoint in this folder", path);
}

// A file that was copied away on its own comes without its manifest: then it is NULL.
static int take_manifest(json_t **manifest, struct checkpoint *checkpoint, const char *folder,
                         bool needed, struct error *err) {
    struct error why = {0};
    int status = checkpoint_manifest(manifest, folder, &why);
    if (status == STATUS_NOINPUT && !needed)
        status = STATUS_OK;
    else if (status)
        error_set(err, status, "%s", why.text);
    const char *directory = json_string_value(json_object_get(*manifest, "directory"));
    checkpoint->directory = directory ? mem_string(directory) : NULL;
    return status;
}

static int load_file(struct checkpoint *checkpoint, const char *path, const char *folder,
                     const char *file, const struct checkpoint_wanted *wanted, struct error *err) {
    struct content content = {.fd = -1};
    json_t *manifest = NULL;
    bool parts = is_index(file);
    int status = no_checkpoint(path, folder, file, err);
    if (!status && !parts)
        status = content_open(&content, file, err);
    if (!status)
        status = take_manifest(&manifest, checkpoint, folder, path_is_folder(path), err);
    if (!status)
        status = parts ? checkpoint_load_parts(checkpoint, file, manifest, wanted, err)
                       : load_whole(checkpoint, file, &content, manifest, wanted, err);
    json_decref(manifest);
    content_close(&content);
    return status;
}

static int load_path(struct checkpoint *checkpoint, const char *path, const char *folder,
                     const struct checkpoint_wanted *wanted, struct error *err) {
    char *file = file_of(path, folder);
    int status = file ? load_file(checkpoint, path, folder, file, wanted, err) : error_nomem(err);
    free(file);
    return status;
}

// A run that is being trained may have removed what the path led to, and leads elsewhere then.
static int load_steady(struct checkpoint *checkpoint, const char *path,
                       const struct checkpoint_wanted *wanted, struct error *err) {
    char *now = steady_folder(path), *folder = NULL;
    int status = now ? STATUS_NOINPUT : error_nomem(err);
    struct error why = {0};
    while (status && now && (!folder || strcmp(folder, now) != 0)) {
        checkpoint_free(checkpoint);
        *checkpoint = (struct checkpoint){.scratch = wanted->scratch};
        free(folder);
        folder = now;
        status = load_path(checkpoint, path, folder, wanted, &why);
        now = status ? steady_folder(path) : NULL;
    }
    if (status && folder)
        error_set(err, status, "%s", why.text);
    free(now);
    free(folder);
    return status;
}

static bool is_sound(const char *path) {
    static const struct checkpoint_wanted everything = {.values = VALUES_STATE};
    struct checkpoint checkpoint = {0};
    bool sound = load_steady(&checkpoint, path, &everything, NULL) == STATUS_OK;
    checkpoint_free(&checkpoint);
    return sound;
}

// Adds to the error which checkpoint of the run can be read.
static void name_sound(const char *run, struct error *err) {
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
}

void checkpoint_name_sound(const char *path, struct error *err) {
    char *run = err ? run_folder_of(path) : NULL;
    if (run)
        name_sound(run, err);
    free(run);
}

static int load_or_name_sound(struct checkpoint *checkpoint, const char *path,
                              const struct checkpoint_wanted *wanted, struct error *err) {
    *checkpoint = (struct checkpoint){0};
    int status = load_steady(checkpoint, path, wanted, err);
    if (status)
        checkpoint_free(checkpoint);
    // What is sound without `sets` is not damaged.
    if ((status != STATUS_DATA && status != STATUS_NOINPUT) || is_sound(path))
        return status;
    checkpoint_name_sound(path, err);
    return status;
}

int checkpoint_load(struct checkpoint *checkpoint, const char *path, const char *const *sets,
                    size_t set_count, bool state, struct error *err) {
    const struct checkpoint_wanted wanted = {
        .values = state ? VALUES_STATE : VALUES_PARAMETERS,
        .sets = sets,
        .set_count = set_count,
    };
    return load_or_name_sound(checkpoint, path, &wanted, err);
}

int checkpoint_load_into(struct checkpoint *checkpoint, const char *path, const char *scratch,
                         bool state, struct error *err) {
    const struct checkpoint_wanted wanted = {.values = state ? VALUES_STATE : VALUES_PARAMETERS,
                                             .scratch = scratch};
    return load_or_name_sound(checkpoint, path, &wanted, err);
}

// --- in partitions ------------------------------------------------------------------

char *checkpoint_resolve(const char *path) {
    char *folder = path_is_folder(path) ? checkpoint_folder(path) : mem_string(path);
    char *real = folder ? realpath(folder, NULL) : NULL;
    free(folder);
    return real;
}

int checkpoint_load_model(struct checkpoint *checkpoint, const char *path, const char *const *sets,
                          size_t set_count, struct error *err) {
    const struct checkpoint_wanted wanted = {.sets = sets, .set_count = set_count};
    return load_or_name_sound(checkpoint, path, &wanted, err);
}

int checkpoint_load_portion(float *own, const char *path, const struct checkpoint *loaded,
                            const struct cut *cut, int partition, struct error *err) {
    const struct checkpoint_wanted wanted = {
        .values = VALUES_PORTION,
        .cut = cut,
        .partition = partition,
        .own = own,
    };
    struct checkpoint checkpoint = {.model = loaded->model};
    char *folder = steady_folder(path);
    int status = folder ? load_path(&checkpoint, path, folder, &wanted, err) : error_nomem(err);
    free(folder);
    free(checkpoint.directory);
    return status;
}
