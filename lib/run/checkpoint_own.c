// Parts on the disk of the server that wrote them: DIR/RUN/TOKEN, a folder for each checkpoint.
#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "run/checkpoint_internal.h"
#include "store/output.h"

static_assert(CHECKPOINT_TOKEN_TEXT == 33, "names of folders are recognised by their length");

static bool token_read(uint8_t token[CHECKPOINT_TOKEN], const char *text) {
    if (!text || strlen(text) != CHECKPOINT_TOKEN_TEXT - 1 ||
        strspn(text, "0123456789abcdef") != CHECKPOINT_TOKEN_TEXT - 1)
        return false;
    for (int i = 0; i < CHECKPOINT_TOKEN; i++)
        sscanf(text + 2 * i, "%2hhx", &token[i]);
    return true;
}

// --- of who saves -----------------------------------------------------------------

bool checkpoint_manifest_token(const json_t *manifest, uint8_t run[CHECKPOINT_TOKEN],
                               uint8_t token[CHECKPOINT_TOKEN]) {
    const json_t *parts = json_object_get(manifest, "parts");
    return token_read(run, json_string_value(json_object_get(parts, "run"))) &&
           token_read(token, json_string_value(json_object_get(parts, "token")));
}

size_t checkpoint_own_list(const char *run, struct checkpoint_own *own, size_t most) {
    size_t clocks_count, count = 0;
    uint64_t *clocks = run_folder_clocks(run, &clocks_count);
    for (size_t i = 0; i < clocks_count && count < most; i++) {
        json_t *manifest = NULL;
        char *folder = run_folder_checkpoint(run, clocks[i]);
        if (folder && !checkpoint_manifest(&manifest, folder, NULL))
            count += checkpoint_manifest_token(manifest, own[count].run, own[count].token);
        json_decref(manifest);
        free(folder);
    }
    free(clocks);
    return count;
}

// --- of who keeps them ------------------------------------------------------------

static char *run_folder_own(const char *dir, const uint8_t run[CHECKPOINT_TOKEN]) {
    char text[CHECKPOINT_TOKEN_TEXT], *path = NULL;
    checkpoint_token_text(text, run);
    return asprintf(&path, "%s/%s", dir, text) < 0 ? NULL : path;
}

char *checkpoint_own_folder(const char *dir, const uint8_t run[CHECKPOINT_TOKEN],
                            const uint8_t token[CHECKPOINT_TOKEN]) {
    char text[CHECKPOINT_TOKEN_TEXT], *path = NULL, *around = run_folder_own(dir, run);
    checkpoint_token_text(text, token);
    if (around && asprintf(&path, "%s/%s", around, text) < 0)
        path = NULL;
    free(around);
    return path;
}

int checkpoint_own_make(const char *folder, const uint8_t token[CHECKPOINT_TOKEN],
                        struct error *err) {
    char text[CHECKPOINT_TOKEN_TEXT];
    struct file_sum sum;
    int status = run_folder_create(folder, err);
    if (!status)
        status = output_sync_name(folder, err);
    if (status)
        return status;
    checkpoint_token_text(text, token);
    return checkpoint_write_text(folder, CHECKPOINT_TOKEN_FILE, text, &sum, err);
}

void checkpoint_own_remove(const char *dir, const struct checkpoint_own *own) {
    char *folder = checkpoint_own_folder(dir, own->run, own->token);
    char *around = run_folder_own(dir, own->run);
    if (folder)
        run_folder_remove(folder);
    if (around)
        rmdir(around);
    free(around);
    free(folder);
}

static bool is_kept(const char *name, const uint8_t (*kept)[CHECKPOINT_TOKEN], size_t count) {
    char text[CHECKPOINT_TOKEN_TEXT];
    for (size_t i = 0; i < count; i++) {
        checkpoint_token_text(text, kept[i]);
        if (!strcmp(name, text))
            return true;
    }
    return false;
}

void checkpoint_own_prune(const char *dir, const uint8_t run[CHECKPOINT_TOKEN],
                          const uint8_t (*kept)[CHECKPOINT_TOKEN], size_t count) {
    char *path = run_folder_own(dir, run);
    DIR *folder = path ? opendir(path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        uint8_t token[CHECKPOINT_TOKEN];
        char *own = NULL;
        if (token_read(token, entry->d_name) && !is_kept(entry->d_name, kept, count) &&
            (own = checkpoint_own_folder(dir, run, token)))
            run_folder_remove(own);
        free(own);
    }
    if (folder)
        closedir(folder);
    free(path);
}
