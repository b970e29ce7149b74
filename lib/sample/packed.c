#include "sample/packed.h"

#include <string.h>

#include "core/error.h"

// What stands in front; key, original, path (each with its zero) and data follow.
struct head {
    uint64_t data; // bytes of the encoded picture, or of the pixels
    uint32_t key, original, path;
    int32_t label, encoded;
    int32_t width, height, channels, type;
};

static struct head head_of(const struct sample *s) {
    struct head head = {
        .key = s->key ? (uint32_t)strlen(s->key) + 1 : 0,
        .original = s->original ? (uint32_t)strlen(s->original) + 1 : 0,
        .path = s->path ? (uint32_t)strlen(s->path) + 1 : 0,
        .label = s->label,
        .encoded = s->encoded_size > 0,
    };
    head.data = s->encoded_size;
    if (!head.encoded && s->image.data) {
        head.data = image_bytes(&s->image);
        head.width = s->image.width, head.height = s->image.height;
        head.channels = s->image.channels, head.type = (int32_t)s->image.type;
    }
    return head;
}

size_t packed_size(const struct sample *sample) {
    struct head head = head_of(sample);
    return sizeof head + head.key + head.original + head.path + head.data;
}

static uint8_t *append_bytes(uint8_t *to, const void *from, size_t size) {
    if (size)
        memcpy(to, from, size);
    return to + size;
}

void packed_write(uint8_t *to, const struct sample *sample) {
    struct head head = head_of(sample);
    to = append_bytes(to, &head, sizeof head);
    to = append_bytes(to, sample->key, head.key);
    to = append_bytes(to, sample->original, head.original);
    to = append_bytes(to, sample->path, head.path);
    append_bytes(to, head.encoded ? (const void *)sample->encoded : sample->image.data, head.data);
}

static int read_data(struct sample *sample, const struct head *head, const uint8_t *data,
                     struct error *err) {
    int status = STATUS_OK;
    if (head->encoded) {
        status = sample_reserve(sample, head->data, err);
        if (!status)
            append_bytes(sample->encoded, data, head->data);
        sample->encoded_size = status ? 0 : head->data;
    } else if (head->data) {
        sample->encoded_size = 0;
        status = image_shape(&sample->image, head->width, head->height, head->channels,
                             (enum pixel)head->type, err);
        if (!status && image_bytes(&sample->image) != head->data)
            status = error_set(err, STATUS_DATA, "a packed sample has another size than its shape");
        if (!status)
            append_bytes(sample->image.data, data, head->data);
    }
    return status;
}

int packed_read(struct sample *sample, const uint8_t *data, size_t size, struct error *err) {
    struct head head;
    if (size < sizeof head)
        return error_set(err, STATUS_DATA, "a packed sample is cut short");
    memcpy(&head, data, sizeof head);
    size_t texts = (size_t)head.key + head.original + head.path;
    if (size - sizeof head < texts || size - sizeof head - texts != head.data)
        return error_set(err, STATUS_DATA, "a packed sample has another size than it says");
    const char *key = (const char *)data + sizeof head, *original = key + head.key;
    const char *path = original + head.original;
    if ((head.key && key[head.key - 1]) || (head.original && original[head.original - 1]) ||
        (head.path && path[head.path - 1]))
        return error_set(err, STATUS_DATA, "a packed sample has a key without end");
    sample->label = head.label;
    int status = sample_key(sample, head.key ? key : "", err);
    if (!status)
        status = sample_original(sample, head.original ? original : "", err);
    if (!status)
        status = sample_path(sample, head.path ? path : "", err);
    return status ? status : read_data(sample, &head, data + sizeof head + texts, err);
}

int packed_copy(struct sample *to, const struct sample *from, struct error *err) {
    struct head head = head_of(from);
    to->label = from->label;
    int status = sample_key(to, from->key ? from->key : "", err);
    if (!status)
        status = sample_original(to, from->original ? from->original : "", err);
    if (!status)
        status = sample_path(to, from->path ? from->path : "", err);
    const void *data = head.encoded ? (const void *)from->encoded : from->image.data;
    return status ? status : read_data(to, &head, data, err);
}
