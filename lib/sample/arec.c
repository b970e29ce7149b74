#include "sample/arec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/element.h"
#include "store/crc.h"

static void put_integer(uint8_t *bytes, uint64_t value, int size) {
    for (int i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_integer(const uint8_t *bytes, int size) {
    uint64_t value = 0;
    for (int i = size - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static const uint8_t magic[8] = {'a', 'd', 'a', 'm', 'r', 'e', 'c', '\n'};

static_assert(AREC_HEADER == sizeof magic + 2 + 2 + 4, "fields of a segment's header");
static_assert(AREC_CHUNK == 4 + 4 + 8 + 4 + 4, "fields of a chunk's header");
static_assert(AREC_HEADER % 8 == 0 && AREC_CHUNK % 8 == 0 && AREC_SAMPLE % 8 == 0,
              "bodies and data of samples begin at multiples of 8");

bool arec_is_segment(const uint8_t *data, size_t size) {
    return size >= sizeof magic && !memcmp(data, magic, sizeof magic);
}

void arec_header_encode(uint8_t bytes[AREC_HEADER]) {
    memcpy(bytes, magic, sizeof magic);
    put_integer(bytes + 8, AREC_VERSION, 2);
    put_integer(bytes + 10, 0, 2);
    put_integer(bytes + 12, crc32_of(0, bytes, 12), 4);
}

enum arec_header arec_header_check(const uint8_t *bytes, size_t size) {
    if (size < AREC_HEADER || !arec_is_segment(bytes, size) ||
        get_integer(bytes + 12, 4) != crc32_of(0, bytes, 12))
        return AREC_NO_HEADER;
    return get_integer(bytes + 8, 2) == AREC_VERSION ? AREC_GOOD_HEADER : AREC_OTHER_VERSION;
}

void arec_chunk_encode(uint8_t bytes[AREC_CHUNK], const struct arec_chunk *chunk) {
    put_integer(bytes, chunk->type, 4);
    put_integer(bytes + 4, chunk->number, 4);
    put_integer(bytes + 8, chunk->length, 8);
    put_integer(bytes + 16, chunk->crc, 4);
    put_integer(bytes + 20, crc32_of(0, bytes, 20), 4);
}

bool arec_chunk_decode(struct arec_chunk *chunk, const uint8_t *bytes, size_t size) {
    if (size < AREC_CHUNK || get_integer(bytes + 20, 4) != crc32_of(0, bytes, 20))
        return false;
    *chunk = (struct arec_chunk){
        .type = (uint32_t)get_integer(bytes, 4),
        .number = (uint32_t)get_integer(bytes + 4, 4),
        .length = get_integer(bytes + 8, 8),
        .crc = (uint32_t)get_integer(bytes + 16, 4),
    };
    return true;
}

unsigned arec_padding(uint64_t length) {
    return (unsigned)(-length & 7);
}

bool arec_is_encoded(enum arec_encoding encoding) {
    return encoding != AREC_U8 && encoding != AREC_F32;
}

// The key ends in at least one zero byte, and the data begins at a multiple of 8.
size_t arec_record_head(size_t key_length) {
    return AREC_SAMPLE + key_length + 1 + arec_padding(key_length + 1);
}

void arec_record_encode(uint8_t *bytes, const struct arec_record *record) {
    memset(bytes, 0, arec_record_head(record->key_length));
    put_integer(bytes, (uint32_t)record->label, 4);
    bytes[4] = (uint8_t)record->encoding;
    put_integer(bytes + 6, record->key_length, 2);
    put_integer(bytes + 8, (uint64_t)record->channels, 2);
    put_integer(bytes + 10, (uint64_t)record->height, 2);
    put_integer(bytes + 12, (uint64_t)record->width, 2);
    memcpy(bytes + AREC_SAMPLE, record->key, record->key_length);
}

// Whether the data has as many bytes as the shape needs.
static bool size_fits(const struct arec_record *record) {
    if (arec_is_encoded(record->encoding))
        return record->size > 0 && !record->channels && !record->height && !record->width;
    uint64_t values =
        (uint64_t)record->channels * (uint64_t)record->height * (uint64_t)record->width;
    return values > 0 && record->channels <= IMAGE_MAX_CHANNELS &&
           record->size == values * (record->encoding == AREC_F32 ? 4 : 1);
}

int arec_record_decode(struct arec_record *record, const uint8_t *body, uint64_t length,
                       struct error *err) {
    if (length < AREC_SAMPLE)
        return error_set(err, STATUS_DATA, "only %llu bytes", (unsigned long long)length);
    size_t key_length = get_integer(body + 6, 2), head = arec_record_head(key_length);
    if (length < head)
        return error_set(err, STATUS_DATA, "a key of %zu bytes in %llu", key_length,
                         (unsigned long long)length);
    *record = (struct arec_record){
        .label = (int32_t)(uint32_t)get_integer(body, 4),
        .encoding = body[4],
        .channels = (int)get_integer(body + 8, 2),
        .height = (int)get_integer(body + 10, 2),
        .width = (int)get_integer(body + 12, 2),
        .key = (const char *)body + AREC_SAMPLE,
        .key_length = key_length,
        .data = body + head,
        .size = length - head,
    };
    if (body[4] > AREC_PNM)
        return error_set(err, STATUS_DATA, "unknown encoding %d", body[4]);
    if (strnlen(record->key, key_length + 1) != key_length)
        return error_set(err, STATUS_DATA, "a key that holds a zero byte, or does not end in one");
    if (!size_fits(record))
        return error_set(err, STATUS_DATA, "%zu bytes of data for a sample of %dx%dx%d",
                         record->size, record->channels, record->height, record->width);
    return STATUS_OK;
}

int arec_record_image(struct image *image, const struct arec_record *record, struct error *err) {
    enum pixel type = record->encoding == AREC_F32 ? PIXEL_F32 : PIXEL_U8;
    int status = image_shape(image, record->width, record->height, record->channels, type, err);
    if (status)
        return status;
    if (type == PIXEL_U8)
        memcpy(image->u8, record->data, record->size);
    else
        element_floats(image->f32, record->data, image_values(image), (struct element){'f', 4, 0});
    return STATUS_OK;
}

// Makes the map reach `count` labels; those without a name are LABEL_NONE.
static int labels_grow(struct arec_labels *labels, int count, struct error *err) {
    if (count <= labels->count)
        return STATUS_OK;
    int32_t *map = mem_resize(labels->map, (size_t)count, sizeof *map);
    if (!map)
        return error_nomem(err);
    for (int i = labels->count; i < count; i++)
        map[i] = LABEL_NONE;
    labels->map = map;
    labels->count = count;
    return STATUS_OK;
}

int arec_classes_decode(struct arec_labels *labels, const uint8_t *body, uint64_t length,
                        struct classes *classes, struct error *err) {
    uint64_t first = length >= 8 ? get_integer(body, 4) : 0,
             count = length >= 8 ? get_integer(body + 4, 4) : 0;
    // Each name has at least one byte and its zero.
    if (length < 8 || first + count > CLASSES_MAX || 2 * count > length - 8 ||
        (count > 0 && body[length - 1] != 0))
        return error_set(err, STATUS_DATA, "damaged class names");
    int status = labels_grow(labels, (int)(first + count), err);
    const char *name = (const char *)body + 8, *end = (const char *)body + length;
    for (uint64_t i = 0; !status && i < count; i++) {
        int label;
        if (name == end)
            return error_set(err, STATUS_DATA, "damaged class names");
        if ((status = classes_label(classes, name, &label, err)))
            return status;
        if (labels->map[first + i] != LABEL_NONE && labels->map[first + i] != label)
            return error_set(err, STATUS_DATA, "label %llu has two names, '%s' and '%s'",
                             (unsigned long long)(first + i),
                             classes->names[labels->map[first + i]], name);
        labels->map[first + i] = label;
        name += strlen(name) + 1;
    }
    return status;
}

int arec_label(const struct arec_labels *labels, int32_t label, int32_t *mapped,
               struct error *err) {
    *mapped = label >= 0 && label < labels->count ? labels->map[label] : LABEL_NONE;
    if (*mapped == LABEL_NONE && label != LABEL_NONE)
        return error_set(err, STATUS_DATA, "label %d has no class name", label);
    return STATUS_OK;
}

void arec_labels_free(struct arec_labels *labels) {
    free(labels->map);
    *labels = (struct arec_labels){0};
}

void arec_entry_encode(uint8_t bytes[AREC_ENTRY], const struct arec_entry *entry) {
    put_integer(bytes, entry->offset, 8);
    put_integer(bytes + 8, (uint32_t)entry->label, 4);
    put_integer(bytes + 12, entry->key_crc, 4);
}

void arec_entry_decode(struct arec_entry *entry, const uint8_t bytes[AREC_ENTRY]) {
    *entry = (struct arec_entry){
        .offset = get_integer(bytes, 8),
        .label = (int32_t)(uint32_t)get_integer(bytes + 8, 4),
        .key_crc = (uint32_t)get_integer(bytes + 12, 4),
    };
}

void arec_tail_encode(uint8_t bytes[AREC_TAIL], const struct arec_tail *tail) {
    put_integer(bytes, tail->classes, 8);
    put_integer(bytes + 8, tail->index, 8);
    put_integer(bytes + 16, tail->samples, 8);
    put_integer(bytes + 24, tail->length, 8);
}

bool arec_tail_decode(struct arec_tail *tail, const uint8_t *body, uint64_t length) {
    if (length != AREC_TAIL)
        return false;
    *tail = (struct arec_tail){
        .classes = get_integer(body, 8),
        .index = get_integer(body + 8, 8),
        .samples = get_integer(body + 16, 8),
        .length = get_integer(body + 24, 8),
    };
    return true;
}
