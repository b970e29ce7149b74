// What was named as a checkpoint, and is none.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/utf8.h"
#include "run/checkpoint.h"
#include "sample/source.h"
#include "store/content.h"
#include "store/safetensors.h"

enum {
    TEXT_HEAD = 512, // bytes of a text that tell that it is one
    HEAD = 1 << 14,  // of any file, more than it takes to tell its kind
};

static bool is_text(const unsigned char *data, size_t size) {
    char head[TEXT_HEAD + 1];
    size_t length = size < TEXT_HEAD ? size : TEXT_HEAD;
    memcpy(head, data, length);
    head[length] = 0;
    if (strlen(head) < length)
        return false;
    const char *at = head;
    for (size_t bytes; *at && (bytes = utf8_length(at)) > 0;)
        at += bytes;
    return length - (size_t)(at - head) < 4; // of a character that the cut went through
}

// Kinds of inputs, in words.
static const char *describe_kind(const char *kind) {
    static const char *const words[][2] = {
        {"arec", "it holds samples as records (adam-records(5))"},
        {"tar", "it is a tar archive"},
        {"npy", "it is a .npy array"},
        {"idx", "it holds samples or labels as IDX"},
        {"image", "it is a picture"},
        {"pnm", "it is a picture"},
    };
    for (size_t i = 0; kind && i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i][0], kind))
            return words[i][1];
    return NULL;
}

static int check_head(const char *path, const unsigned char *data, size_t size, struct error *err) {
    if (safetensors_recognised(data, size))
        return STATUS_OK;
    const char *what = describe_kind(source_recognised(path, data, size));
    if (!what)
        what = size == 0             ? "it is empty"
               : is_text(data, size) ? "it is a text, such as a model without weights"
                                     : "it is no safetensors file";
    return error_set(err, STATUS_DATA,
                     "no checkpoint: %s; a run, a checkpoint's folder or its .safetensors file is "
                     "expected",
                     what);
}

int checkpoint_check_kind(const char *path, const struct content *content, struct error *err) {
    size_t size = content->size < HEAD ? (size_t)content->size : HEAD;
    unsigned char *head = mem_array(HEAD, 1);
    int status = head ? content_read(content, head, 0, size, err) : error_nomem(err);
    if (!status)
        status = check_head(path, head, size, err);
    free(head);
    return status;
}
