// What was named as a checkpoint, and is none.
#include <string.h>

#include "core/error.h"
#include "core/utf8.h"
#include "run/checkpoint.h"
#include "sample/source.h"
#include "store/safetensors.h"

enum { HEAD = 512 }; // bytes of a text that tell that it is one

static bool is_text(const unsigned char *data, size_t size) {
    char head[HEAD + 1];
    size_t length = size < HEAD ? size : HEAD;
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

int checkpoint_check_kind(const char *path, const unsigned char *data, size_t size,
                          struct error *err) {
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
