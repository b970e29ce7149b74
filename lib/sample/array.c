#include "sample/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"

// IDX is big-endian: 00 00, type, dimensions, then the sizes, 4 bytes each.
static const struct {
    uint8_t code;
    struct element element;
} idx_types[] = {
    {0x08, {'u', 1, true}}, {0x09, {'i', 1, true}}, {0x0b, {'i', 2, true}},
    {0x0c, {'i', 4, true}}, {0x0d, {'f', 4, true}}, {0x0e, {'f', 8, true}},
};
enum { IDX_TYPES = sizeof idx_types / sizeof *idx_types };

static int idx_type(uint8_t code) {
    for (int i = 0; i < IDX_TYPES; i++)
        if (idx_types[i].code == code)
            return i;
    return -1;
}

bool array_is_idx(const uint8_t *data, size_t size) {
    return size >= 4 && data[0] == 0 && data[1] == 0 && idx_type(data[2]) >= 0 && data[3] >= 1 &&
           data[3] <= ARRAY_DIMENSIONS && size >= 4 + 4 * (size_t)data[3];
}

static const uint8_t npy_magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

bool array_is_npy(const uint8_t *data, size_t size) {
    return size >= 10 && !memcmp(data, npy_magic, sizeof npy_magic);
}

// Checks that no product of the sizes overflows, in bytes.
static int check_sizes(struct array *array, const char *name, struct error *err) {
    uint64_t values = 1, bytes;
    bool overflow = false;
    for (int i = 1; i < array->dimensions; i++) {
        if (array->size[i] == 0)
            return error_set(err, STATUS_DATA, "%s: dimension %d has size 0", name, i + 1);
        overflow = overflow || __builtin_mul_overflow(values, array->size[i], &values);
    }
    array->item_values = values;
    if (overflow || __builtin_mul_overflow(values, (uint64_t)array->element.size, &bytes) ||
        __builtin_mul_overflow(bytes, array->size[0], &bytes))
        return error_set(err, STATUS_DATA, "%s: its dimensions are too large", name);
    return STATUS_OK;
}

static int take_header(struct stream *stream, void *data, size_t size, struct error *err) {
    size_t got;
    int status = stream_read(stream, data, size, &got, err);
    if (!status && got < size)
        return error_set(err, STATUS_DATA, "%s: ends within its header", stream_name(stream));
    return status;
}

int array_read_idx(struct array *array, struct stream *stream, struct error *err) {
    uint8_t head[4 + 4 * ARRAY_DIMENSIONS] = {0};
    int status = take_header(stream, head, 4, err);
    if (status)
        return status;
    if (head[0] || head[1] || idx_type(head[2]) < 0 || !head[3] || head[3] > ARRAY_DIMENSIONS)
        return error_set(err, STATUS_DATA,
                         "%s: no IDX header: %02x %02x %02x %02x, not 00 00 TYPE DIMENSIONS",
                         stream_name(stream), head[0], head[1], head[2], head[3]);
    *array = (struct array){.element = idx_types[idx_type(head[2])].element, .dimensions = head[3]};
    if ((status = take_header(stream, head + 4, 4 * (size_t)head[3], err)))
        return status;
    for (int i = 0; i < array->dimensions; i++) {
        const uint8_t *p = head + 4 + 4 * i;
        array->size[i] = (uint64_t)p[0] << 24 | (uint64_t)p[1] << 16 | (uint64_t)p[2] << 8 | p[3];
    }
    return check_sizes(array, stream_name(stream), err);
}

void array_write_idx(uint8_t header[ARRAY_HEADER_MAX], size_t *size, const struct array *array) {
    memset(header, 0, 4);
    header[2] = array->element.kind == 'f' ? 0x0d : 0x08;
    header[3] = (uint8_t)array->dimensions;
    for (int i = 0; i < array->dimensions; i++)
        for (int b = 0; b < 4; b++)
            header[4 + 4 * i + b] = (uint8_t)(array->size[i] >> (24 - 8 * b));
    *size = 4 + 4 * (size_t)array->dimensions;
}

// The text behind 'KEY': in the dictionary of a .npy header, or NULL.
static const char *npy_value(const char *text, const char *key) {
    char quoted[24];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(text, quoted);
    return at ? at + strlen(quoted) + strspn(at + strlen(quoted), " ") : NULL;
}

// strchr would find the end of `text` in any set.
static bool is_one_of(char c, const char *set) {
    return c && strchr(set, c);
}

// '<f4', '|u1', '>i2'...; a bool is read as 0 and 1.
static bool npy_element(struct element *element, const char *text) {
    if (!text || text[0] != '\'' || !is_one_of(text[1], "<>|=") || !is_one_of(text[2], "uifb") ||
        !is_one_of(text[3], "1248") || text[4] != '\'')
        return false;
    *element = (struct element){text[2] == 'b' ? 'u' : text[2], text[3] - '0', text[1] == '>'};
    return element->kind != 'f' || element->size > 1;
}

// (60000, 28, 28)
static bool npy_shape(struct array *array, const char *text) {
    if (!text || *text++ != '(')
        return false;
    while (array->dimensions < ARRAY_DIMENSIONS) {
        text += strspn(text, " ");
        if (*text == ')')
            break;
        if (*text < '0' || *text > '9')
            return false;
        uint64_t size = 0;
        for (; *text >= '0' && *text <= '9'; text++)
            if (__builtin_mul_overflow(size, (uint64_t)10, &size) ||
                __builtin_add_overflow(size, (uint64_t)(*text - '0'), &size))
                return false;
        array->size[array->dimensions++] = size;
        text += strspn(text, " ");
        text += *text == ',';
    }
    return *text == ')' && array->dimensions > 0;
}

static int npy_parse(struct array *array, const char *text, const char *name, struct error *err) {
    const char *order = npy_value(text, "fortran_order"), *type = npy_value(text, "descr");
    *array = (struct array){0};
    if (!order || strncmp(order, "False", 5) != 0)
        return error_set(err, STATUS_DATA, "%s: %s", name,
                         order && !strncmp(order, "True", 4)
                             ? "in Fortran order; numpy.ascontiguousarray makes it C order"
                             : "no 'fortran_order' in its header");
    if (!npy_element(&array->element, type))
        return error_set(err, STATUS_DATA,
                         "%s: values of type %.16s; numbers u, i and f of 1 to 8 "
                         "bytes can be read",
                         name, type ? type : "unknown");
    if (!npy_shape(array, npy_value(text, "shape")))
        return error_set(err, STATUS_DATA, "%s: no shape of 1 to %d dimensions in its header", name,
                         ARRAY_DIMENSIONS);
    return check_sizes(array, name, err);
}

// numpy/lib/format.py: \x93NUMPY, version, length of the header (2 bytes in
// version 1, 4 later), the header: a Python dictionary as text.
int array_read_npy(struct array *array, struct stream *stream, struct error *err) {
    enum { LONGEST = 1 << 16 };
    uint8_t head[12];
    int status = take_header(stream, head, 8, err);
    if (status)
        return status;
    if (memcmp(head, npy_magic, sizeof npy_magic) != 0 || head[6] < 1 || head[6] > 3)
        return error_set(err, STATUS_DATA, "%s: no .npy header of version 1 to 3",
                         stream_name(stream));
    size_t bytes = head[6] == 1 ? 2 : 4, length = 0;
    if ((status = take_header(stream, head + 8, bytes, err)))
        return status;
    for (size_t i = 0; i < bytes; i++)
        length |= (size_t)head[8 + i] << 8 * i;
    if (length > LONGEST)
        return error_set(err, STATUS_DATA, "%s: a header of %zu bytes", stream_name(stream),
                         length);
    char *text = mem_zeroed(length + 1, 1);
    if (!text)
        return error_nomem(err);
    status = take_header(stream, text, length, err);
    if (!status)
        status = npy_parse(array, text, stream_name(stream), err);
    free(text);
    return status;
}

// Padded with spaces, so that the data begins at a multiple of 64 bytes.
void array_write_npy(uint8_t header[ARRAY_HEADER_MAX], size_t *size, const struct array *array) {
    char shape[160];
    int n = 0;
    for (int i = 0; i < array->dimensions; i++)
        n += snprintf(shape + n, sizeof shape - (size_t)n, "%s%llu", i ? ", " : "",
                      (unsigned long long)array->size[i]);
    char text[ARRAY_HEADER_MAX - 10 + 1];
    const char *type = array->element.kind == 'f'   ? "<f4"
                       : array->element.kind == 'i' ? "<i8"
                                                    : "|u1";
    int length =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }",
                 type, shape, array->dimensions == 1 ? "," : "");
    size_t whole = (10 + (size_t)length + 1 + 63) / 64 * 64;
    memset(header, ' ', whole);
    memcpy(header, npy_magic, sizeof npy_magic);
    header[6] = 1;
    header[7] = 0;
    header[8] = (uint8_t)(whole - 10);
    header[9] = (uint8_t)((whole - 10) >> 8);
    memcpy(header + 10, text, (size_t)length);
    header[whole - 1] = '\n';
    *size = whole;
}

int array_shape(struct image *image, const struct array *array,
                const struct decode_options *options, const char *name, struct error *err) {
    uint64_t sides[3] = {1, 1, 1}; // height, width, channels
    switch (array->dimensions) {
    case 2:
        sides[1] = array->size[1];
        break;
    case 3:
    case 4:
        for (int i = 1; i < array->dimensions; i++)
            sides[i - 1] = array->size[i];
        break;
    default:
        return error_set(err, STATUS_DATA,
                         array->dimensions == 1
                             ? "%s: one dimension, so it holds labels and no pictures"
                             : "%s: more than 4 dimensions",
                         name);
    }
    for (int i = 0; i < 3; i++)
        if (sides[i] > IMAGE_MAX_SIDE)
            return error_set(err, STATUS_DATA, "%s: a side of %llu", name,
                             (unsigned long long)sides[i]);
    bool bytes = array->element.kind == 'u' && array->element.size == 1;
    int status = format_check_size(sides[1], sides[0], options, err);
    if (!status)
        status = image_shape(image, (int)sides[1], (int)sides[0], (int)sides[2],
                             bytes ? PIXEL_U8 : PIXEL_F32, err);
    return status ? error_context(err, "%s", name) : STATUS_OK;
}
