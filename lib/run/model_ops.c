#include "run/model_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/mem.h"
#include "model/layer.h"
#include "run/checkpoint.h"
#include "sample/source.h"

static int parse_chain(struct ops **out, const struct model *model, unsigned flags,
                       struct error *err) {
    const struct layer *input = model_input(model);
    size_t offset, length;
    *out = NULL;
    const char *text = input->ops ? input->ops : "";
    int status = ops_parse(out, text, OPS_DETERMINISTIC | flags, &offset, &length, err);
    return status == STATUS_USAGE ? model_blame(model, input, "ops", offset, length, err) : status;
}

int model_ops_open(struct ops **out, const struct model *model, struct error *err) {
    return parse_chain(out, model, 0, err);
}

int model_ops_deviation(double *deviation, const struct model *model, struct error *err) {
    struct shape in = model_input(model)->out;
    struct ops *ops = NULL;
    *deviation = 1;
    if (in.h == 1 || in.w == 1)
        return STATUS_OK;
    int status = model_ops_open(&ops, model, err);
    if (status)
        return status;
    status = ops_deviation(deviation, ops, in.w, in.h, in.c, err);
    ops_free(ops);
    if (status == STATUS_DATA) { // they make the input of other pictures
        *deviation = 1;
        status = STATUS_OK;
    }
    return status;
}

// The first picture of a file of any kind, as a word of a chain.
static int read_picture_word(char **word, const char *path, struct error *err) {
    struct classes classes = {0};
    struct sample sample = {0};
    struct source *source = NULL;
    bool more = false;
    int status = source_open(&source, path, NULL, &classes, err);
    if (!status)
        status = source_next(source, &sample, &more, err);
    if (!status && !more)
        status = error_set(err, STATUS_DATA, "%s: holds no picture", path);
    if (!status)
        status = sample_decode(&sample, &(struct decode_options){0}, err);
    if (!status && !(*word = ops_picture(&sample.image)))
        status = error_nomem(err);
    source_close(source);
    sample_free(&sample);
    classes_free(&classes);
    return status == STATUS_SKIPPED ? error_set(err, STATUS_DATA, "%s: cannot be used", path)
                                    : status;
}

// `ops` with the parameter "file=FILE" at `offset` replaced by the picture.
static int embed_picture_file(char **out, const char *ops, size_t offset, size_t length,
                              struct error *err) {
    enum { KEY = sizeof "file=" - 1 };
    char *path = mem_text(ops + offset + KEY, length - KEY), *word = NULL;
    *out = NULL;
    int status = path ? read_picture_word(&word, path, err) : error_nomem(err);
    if (!status && asprintf(out, "%.*s%s%s", (int)offset, ops, word, ops + offset + length) < 0)
        status = error_nomem(err);
    free(word);
    free(path);
    return status;
}

// The model with another text for the operations of its input.
static int replace_ops(struct model **model, const char *ops, struct error *err) {
    struct model *fresh = NULL;
    char *set = NULL;
    if (asprintf(&set, "%s.ops=%s", model_input(*model)->name, ops) < 0)
        return error_nomem(err);
    const char *sets[] = {set};
    int status = model_parse(&fresh, (*model)->name, (*model)->text, sets, 1, err);
    free(set);
    if (status)
        return status;
    model_free(*model);
    *model = fresh;
    return STATUS_OK;
}

// Puts the picture of the first file in; *more is false when no operation names one.
static int embed_picture(struct model **model, bool *more, struct error *err) {
    struct ops *ops;
    char *text = NULL;
    size_t offset, length;
    int status = parse_chain(&ops, *model, OPS_FILES, err);
    *more = !status && ops_file(ops, &offset, &length);
    if (*more)
        status = embed_picture_file(&text, model_input(*model)->ops, offset, length, err);
    if (*more && !status)
        status = replace_ops(model, text, err);
    free(text);
    ops_free(ops);
    return status;
}

static bool is_checkpoint(const char *path) {
    static const char end[] = ".safetensors";
    struct stat about;
    size_t length = strlen(path);
    return (!stat(path, &about) && S_ISDIR(about.st_mode)) ||
           (length >= sizeof end && !strcmp(path + length - (sizeof end - 1), end));
}

// Its weights need not fit what `sets` make of it.
static int read_checkpoint(struct model **out, const char *path, const char *const *sets,
                           size_t set_count, struct error *err) {
    struct checkpoint checkpoint = {0};
    *out = NULL;
    int status = checkpoint_load(&checkpoint, path, NULL, 0, false, err);
    if (!status)
        status = model_parse(out, path, checkpoint.model->text, sets, set_count, err);
    checkpoint_free(&checkpoint);
    return status;
}

int model_ops_read(struct model **out, const char *path, const char *const *sets, size_t set_count,
                   struct error *err) {
    int status =
        (is_checkpoint(path) ? read_checkpoint : model_read)(out, path, sets, set_count, err);
    bool more = !status && model_input(*out)->ops;
    while (!status && more)
        status = embed_picture(out, &more, err);
    if (status && *out) {
        model_free(*out);
        *out = NULL;
    }
    return status;
}
