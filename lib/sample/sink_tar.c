// Tar with two members a sample, "key.png" and "key.cls", as WebDataset has it; a
// copy has a third, "key.original", with the key of its original. A sample without a
// class has no "key.cls", or an empty one where its folder would be read as a class.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/keyset.h"
#include "sample/sink_kind.h"
#include "store/tar.h"

struct tar_sink {
    struct tar_writer *tar;
    struct keyset keys;
};

static int open_tar(struct sink *sink, struct error *err) {
    struct tar_sink *state = sink->state = mem_zeroed(1, sizeof *state);
    return state ? tar_writer_open(&state->tar, sink->output, err) : error_nomem(err);
}

static void free_tar(struct sink *sink) {
    struct tar_sink *state = sink->state;
    if (!state)
        return;
    tar_writer_abort(state->tar);
    keyset_free(&state->keys);
    free(state);
}

// A key as the beginning of a member's name, without what would change it on
// the way back or lead out of a folder: no "/" in front, no part that begins
// with a dot, no dot in the base name. NULL when out of memory.
static char *safe_key(const char *key) {
    key += strspn(key, "/");
    char *safe = mem_string(*key ? key : "_");
    if (!safe)
        return NULL;
    for (char *part = safe; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (*part == '.')
            *part = '_';
    }
    char *slash = strrchr(safe, '/');
    for (char *c = slash ? slash + 1 : safe; *c; c++)
        if (*c == '.')
            *c = '_';
    return safe;
}

static int put_member(struct tar_sink *state, const char *key, const char *extension,
                      const void *data, size_t size, struct error *err) {
    char *name = NULL;
    if (asprintf(&name, "%s.%s", key, extension) < 0)
        return error_nomem(err);
    int status = tar_writer_put(state->tar, name, data, size, err);
    free(name);
    return status;
}

// Of a copy: the key that its original has in an archive.
static int put_original(struct sink *sink, const struct sample *sample, const char *key,
                        struct error *err) {
    char *original = safe_key(sample_origin(sample));
    if (!original)
        return error_nomem(err);
    int status = strcmp(original, key) != 0
                     ? put_member(sink->state, key, "original", original, strlen(original), err)
                     : STATUS_OK;
    free(original);
    return status;
}

static int put_class(struct tar_sink *state, const char *key, const char *class,
                     struct error *err) {
    if (!class && !strchr(key, '/'))
        return STATUS_OK;
    return put_member(state, key, "cls", class ? class : "", class ? strlen(class) : 0, err);
}

static int put_sample(struct sink *sink, const struct sample *sample, const char *key,
                      struct error *err) {
    struct tar_sink *state = sink->state;
    const void *data;
    size_t size;
    enum codec codec;
    bool again;
    int status = sink_encode(sink, sample, &data, &size, &codec, err);
    if (!status)
        status = keyset_add(&state->keys, key, &again, err);
    if (!status && again)
        status = sink_refuse_twice(sink, key, err);
    if (!status)
        status = put_member(state, key, codec_extension(codec), data, size, err);
    if (!status)
        status = put_class(state, key, sink_class(sink, sample), err);
    return status ? status : put_original(sink, sample, key, err);
}

static int tar_put(struct sink *sink, const struct sample *sample, struct error *err) {
    char *key = safe_key(sample->key);
    int status = key ? put_sample(sink, sample, key, err) : error_nomem(err);
    free(key);
    return status;
}

static int tar_finish(struct sink *sink, struct error *err) {
    struct tar_sink *state = sink->state;
    struct tar_writer *tar = state->tar;
    state->tar = NULL;
    return tar_writer_close(tar, err);
}

const struct sink_kind sink_tar = {
    .name = "tar",
    .encoded = true,
    .codec = CODEC_PNG,
    .open = open_tar,
    .put = tar_put,
    .finish = tar_finish,
    .free = free_tar,
};
