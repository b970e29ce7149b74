#include "sample/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"

static int replace_text(char **text, const char *with, struct error *err) {
    char *copy = mem_string(with);
    if (!copy)
        return error_nomem(err);
    free(*text);
    *text = copy;
    return STATUS_OK;
}

int sample_key(struct sample *sample, const char *key, struct error *err) {
    return replace_text(&sample->key, key, err);
}

int sample_original(struct sample *sample, const char *key, struct error *err) {
    return replace_text(&sample->original, key, err);
}

const char *sample_origin(const struct sample *sample) {
    return sample->original && *sample->original ? sample->original : sample->key;
}

int sample_key_number(struct sample *sample, uint64_t number, struct error *err) {
    char key[24];
    snprintf(key, sizeof key, "%07llu", (unsigned long long)number);
    return sample_key(sample, key, err);
}

int sample_path(struct sample *sample, const char *path, struct error *err) {
    return replace_text(&sample->path, path, err);
}

int sample_path_number(struct sample *sample, const char *name, uint64_t number,
                       struct error *err) {
    size_t room = strlen(name) + sizeof ": sample 18446744073709551615";
    char *path = mem_resize(sample->path, room, 1);
    if (!path)
        return error_nomem(err);
    sample->path = path;
    snprintf(path, room, "%s: sample %llu", name, (unsigned long long)number);
    return STATUS_OK;
}

int sample_reserve(struct sample *sample, size_t size, struct error *err) {
    if (size <= sample->encoded_capacity)
        return STATUS_OK;
    uint8_t *encoded = mem_resize(sample->encoded, size, 1);
    if (!encoded)
        return error_nomem(err);
    sample->encoded = encoded;
    sample->encoded_capacity = size;
    return STATUS_OK;
}

int sample_decode(struct sample *sample, const struct decode_options *options, struct error *err) {
    if (sample->encoded_size == 0)
        return STATUS_OK;
    int status = image_decode(&sample->image, sample->encoded, sample->encoded_size, options, err);
    if (status)
        return error_context(err, "%s", sample->path ? sample->path : sample->key);
    sample->encoded_size = 0;
    return STATUS_OK;
}

void sample_swap(struct sample *a, struct sample *b) {
    struct sample t = *a;
    *a = *b;
    *b = t;
}

void sample_free(struct sample *sample) {
    free(sample->key);
    free(sample->original);
    free(sample->path);
    free(sample->encoded);
    image_free(&sample->image);
    *sample = (struct sample){0};
}
