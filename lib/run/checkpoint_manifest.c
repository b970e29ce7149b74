// manifest.json: what is in a checkpoint's folder, with sizes and checksums.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/io.h"
#include "core/mem.h"
#include "run/checkpoint_internal.h"
#include "store/sealed.h"

// --- written ----------------------------------------------------------------------

static json_t *list_files(const struct checkpoint_file *files, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        char crc[16];
        snprintf(crc, sizeof crc, "%08" PRIx32, files[i].sum.crc);
        json_append(&list, json_pack("{s:s, s:I, s:s, s:s*}", "name", files[i].name, "bytes",
                                     (json_int_t)files[i].sum.bytes, "crc32", crc, "server",
                                     files[i].server));
    }
    return list;
}

// What servers need to find their parts; NULL when they are in the folder.
static json_t *parts_json(const struct checkpoint_draft *parts) {
    char token[CHECKPOINT_TOKEN_TEXT];
    if (!parts || !parts->run_id)
        return NULL;
    checkpoint_token_text(token, parts->token);
    return json_pack("{s:s, s:s}", "run", parts->run_id, "token", token);
}

static char *manifest_text(const struct checkpoint *checkpoint, const struct checkpoint_file *files,
                           size_t count, const struct checkpoint_draft *parts) {
    char *directory = getcwd(NULL, 0);
    json_t *manifest =
        json_pack("{s:i, s:s, s:s?, s:o, s:I, s:I, s:f, s:I, s:o, s:o*, s:O}", "v",
                  CHECKPOINT_SEALED, "version", ADAM_VERSION, "command", checkpoint->command,
                  "directory", directory ? json_text(directory) : json_null(), "clock",
                  (json_int_t)checkpoint->clock, "samples", (json_int_t)checkpoint->samples,
                  "epoch", checkpoint->epoch, "seed", (json_int_t)checkpoint->seed, "files",
                  list_files(files, count), "parts", parts_json(parts), "run", checkpoint->run);
    char *text = manifest ? sealed_text(manifest) : NULL;
    json_decref(manifest);
    free(directory);
    return text;
}

int checkpoint_write_manifest(const struct checkpoint *checkpoint, const char *folder,
                              const struct checkpoint_file *files, size_t count,
                              const struct checkpoint_draft *parts, struct error *err) {
    char *text = manifest_text(checkpoint, files, count, parts);
    struct file_sum sum;
    int status = text ? checkpoint_write_text(folder, CHECKPOINT_MANIFEST, text, &sum, err)
                      : error_nomem(err);
    free(text);
    return status;
}

// --- read -------------------------------------------------------------------------

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

const char *checkpoint_server_of(const json_t *manifest, const char *name) {
    return json_string_value(json_object_get(manifest_entry(manifest, name), "server"));
}

int checkpoint_check_sum(const json_t *manifest, const char *name, const struct content *file,
                         struct error *err) {
    const json_t *entry = manifest_entry(manifest, name);
    const char *crc = json_string_value(json_object_get(entry, "crc32"));
    const json_t *size = json_object_get(entry, "bytes");
    char found[16];
    if (!crc || !json_is_integer(size))
        return error_set(err, STATUS_DATA, "%s has no bytes and crc32 of it", CHECKPOINT_MANIFEST);
    if (json_integer_value(size) < 0 || (uint64_t)json_integer_value(size) != file->size)
        return error_set(err, STATUS_DATA, "it has %llu bytes where %s says %lld",
                         (unsigned long long)file->size, CHECKPOINT_MANIFEST,
                         (long long)json_integer_value(size));
    uint32_t sum;
    int status = content_crc(file, &sum, err);
    if (status)
        return status;
    snprintf(found, sizeof found, "%08" PRIx32, sum);
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
    struct stat about;
    int status = stat(path, &about) ? error_errno(err, STATUS_NOINPUT, "%s", path)
                 : !S_ISREG(about.st_mode) // a pipe would be waited for
                     ? error_set(err, STATUS_DATA, "%s: is no plain file", path)
                     : read_manifest(manifest, path, err);
    free(path);
    return status;
}
