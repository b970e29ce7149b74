#include "store/safetensors.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "store/content.h"
#include "store/crc.h"

enum {
    LENGTH_BYTES = 8,
    DATA_ALIGN = 64,
    HEADER_MAX = 100 * 1000 * 1000, // the limit of the reference implementation
};
static_assert(LENGTH_BYTES == sizeof(uint64_t), "the length is one number");
static_assert(DATA_ALIGN % sizeof(float) == 0, "tensors are read in place");

static const char metadata_key[] = "__metadata__";

static const struct {
    const char *name;
    unsigned bytes;
} dtypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
    {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
    {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8},
};

// --- writing ------------------------------------------------------------------

int safetensors_write_data(int fd, const void *data, size_t size, struct file_sum *sum,
                           struct error *err) {
    const unsigned char *p = data;
    while (size > 0) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, STATUS_IO, "write");
        sum->crc = crc32_of(sum->crc, p, (size_t)n);
        sum->bytes += (uint64_t)n;
        p += n;
        size -= (size_t)n;
    }
    return STATUS_OK;
}

static json_t *entry_of(const struct tensor *tensor, uint64_t begin) {
    json_t *shape = json_array();
    for (int i = 0; i < tensor->rank; i++)
        json_append(&shape, json_integer((json_int_t)tensor->dims[i]));
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", tensor->dtype, "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)(begin + tensor->bytes));
}

// The JSON of the header; NULL when out of memory.
static char *header_json(const struct tensor *tensors, size_t count, json_t *metadata) {
    json_t *header = json_object();
    bool whole = header && (!metadata || !json_object_set(header, metadata_key, metadata));
    uint64_t begin = 0;
    for (size_t i = 0; whole && i < count; begin += tensors[i].bytes, i++)
        whole = !json_object_set_new(header, tensors[i].name, entry_of(&tensors[i], begin));
    char *text = whole ? json_line(header) : NULL;
    json_decref(header);
    return text;
}

// The same, padded with spaces so that the data behind it is aligned.
static char *header_text(const struct tensor *tensors, size_t count, json_t *metadata) {
    char *text = header_json(tensors, count, metadata);
    if (!text)
        return NULL;
    size_t length = strlen(text);
    size_t end = (LENGTH_BYTES + length + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
    char *padded = mem_resize(text, end - LENGTH_BYTES + 1, 1);
    if (!padded) {
        free(text);
        return NULL;
    }
    memset(padded + length, ' ', end - LENGTH_BYTES - length);
    padded[end - LENGTH_BYTES] = 0;
    return padded;
}

int safetensors_write_header(int fd, const struct tensor *tensors, size_t count, json_t *metadata,
                             struct file_sum *sum, struct error *err) {
    char *header = header_text(tensors, count, metadata);
    if (!header)
        return error_nomem(err);
    *sum = (struct file_sum){0};
    uint64_t length = htole64(strlen(header));
    int status = safetensors_write_data(fd, &length, sizeof length, sum, err);
    if (!status)
        status = safetensors_write_data(fd, header, strlen(header), sum, err);
    free(header);
    return status;
}

int safetensors_write(int fd, const struct tensor *tensors, size_t count, json_t *metadata,
                      struct file_sum *sum, struct error *err) {
    int status = safetensors_write_header(fd, tensors, count, metadata, sum, err);
    for (size_t i = 0; !status && i < count; i++)
        status = safetensors_write_data(fd, tensors[i].data, tensors[i].bytes, sum, err);
    return status;
}

// --- reading ------------------------------------------------------------------

static unsigned dtype_bytes(const char *name) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtypes[i].name, name))
            return dtypes[i].bytes;
    return 0;
}

static int read_shape(struct tensor *tensor, const json_t *shape, uint64_t *bytes,
                      struct error *err) {
    *bytes = dtype_bytes(tensor->dtype);
    if (!*bytes)
        return error_set(err, STATUS_DATA, "tensor '%s': unknown dtype '%s'", tensor->name,
                         tensor->dtype);
    if (!json_is_array(shape) || json_array_size(shape) > TENSOR_RANK_MAX)
        return error_set(err, STATUS_DATA, "tensor '%s': shape must be a list of at most %d sizes",
                         tensor->name, TENSOR_RANK_MAX);
    tensor->rank = (int)json_array_size(shape);
    for (int i = 0; i < tensor->rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return error_set(err, STATUS_DATA, "tensor '%s': size %d of its shape is no count",
                             tensor->name, i);
        tensor->dims[i] = (uint64_t)json_integer_value(dim);
        if (__builtin_mul_overflow(*bytes, tensor->dims[i], bytes))
            return error_set(err, STATUS_DATA, "tensor '%s': its shape is too large", tensor->name);
    }
    return STATUS_OK;
}

static int read_place(struct tensor *tensor, json_int_t begin, json_int_t end, uint64_t data_offset,
                      uint64_t data_size, struct error *err) {
    if (begin < 0 || end < begin || (uint64_t)end > data_size)
        return error_set(
            err, STATUS_DATA, "tensor '%s': offsets %lld to %lld leave the %llu bytes of data",
            tensor->name, (long long)begin, (long long)end, (unsigned long long)data_size);
    tensor->offset = data_offset + (uint64_t)begin;
    tensor->bytes = (uint64_t)(end - begin);
    return STATUS_OK;
}

static int read_entry(struct tensor *tensor, const char *name, const json_t *entry,
                      uint64_t data_offset, uint64_t data_size, struct error *err) {
    const json_t *dtype = json_object_get(entry, "dtype");
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (!json_is_string(dtype) || json_object_size(entry) != 3 || json_array_size(offsets) != 2 ||
        !json_is_integer(begin) || !json_is_integer(end))
        return error_set(err, STATUS_DATA,
                         "tensor '%s' must have dtype, shape and two data_offsets", name);
    *tensor = (struct tensor){.name = name, .dtype = json_string_value(dtype)};
    uint64_t wanted;
    int status = read_shape(tensor, json_object_get(entry, "shape"), &wanted, err);
    if (!status)
        status = read_place(tensor, json_integer_value(begin), json_integer_value(end), data_offset,
                            data_size, err);
    if (!status && tensor->bytes != wanted)
        status =
            error_set(err, STATUS_DATA, "tensor '%s' has %llu bytes where its shape needs %llu",
                      name, (unsigned long long)tensor->bytes, (unsigned long long)wanted);
    return status;
}

static int by_place(const void *a, const void *b) {
    const struct tensor *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); // empty ones first
}

// The format's README: "The byte buffer needs to be entirely indexed, and cannot
// contain holes."
static int check_holes(const struct safetensors *file, uint64_t data_offset, uint64_t size,
                       struct error *err) {
    uint64_t end = 0;
    for (size_t i = 0; i < file->count; i++) {
        const struct tensor *tensor = &file->tensors[i];
        uint64_t begin = tensor->offset - data_offset;
        if (begin != end)
            return error_set(err, STATUS_DATA, "tensor '%s' begins at data byte %llu, not at %llu",
                             tensor->name, (unsigned long long)begin, (unsigned long long)end);
        end += tensor->bytes;
    }
    if (end != size)
        return error_set(err, STATUS_DATA, "the last %llu bytes of data belong to no tensor",
                         (unsigned long long)(size - end));
    return STATUS_OK;
}

static int check_metadata(json_t *metadata, struct error *err) {
    const char *key;
    json_t *value;
    if (metadata && !json_is_object(metadata))
        return error_set(err, STATUS_DATA, "%s is no object", metadata_key);
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value))
            return error_set(err, STATUS_DATA, "%s: '%s' is no string", metadata_key, key);
    }
    return STATUS_OK;
}

static int read_header(struct safetensors *file, uint64_t data_offset, uint64_t data_size,
                       struct error *err) {
    if (!json_is_object(file->header))
        return error_set(err, STATUS_DATA, "the header is no object");
    file->metadata = json_object_get(file->header, metadata_key);
    file->tensors = mem_zeroed(json_object_size(file->header), sizeof *file->tensors);
    if (!file->tensors)
        return error_nomem(err);
    int status = check_metadata(file->metadata, err);
    const char *name;
    json_t *entry;
    json_object_foreach(file->header, name, entry) {
        if (status)
            return status;
        if (entry == file->metadata)
            continue;
        status =
            read_entry(&file->tensors[file->count++], name, entry, data_offset, data_size, err);
    }
    if (status)
        return status;
    qsort(file->tensors, file->count, sizeof *file->tensors, by_place);
    return check_holes(file, data_offset, data_size, err);
}

bool safetensors_recognised(const void *bytes, size_t size) {
    const unsigned char *p = bytes;
    return size > LENGTH_BYTES && p[LENGTH_BYTES] == '{';
}

// Of a file of `size` bytes, of which those at `p` are the first.
static int check_length(uint64_t *length, const unsigned char *p, uint64_t size,
                        struct error *err) {
    if (size < LENGTH_BYTES)
        return error_set(err, STATUS_DATA, "%llu bytes are too few for a safetensors file",
                         (unsigned long long)size);
    memcpy(length, p, LENGTH_BYTES);
    *length = le64toh(*length);
    if (*length > HEADER_MAX || *length > size - LENGTH_BYTES)
        return error_set(err, STATUS_DATA,
                         "the header is said to have %llu bytes, but the file has %llu",
                         (unsigned long long)*length, (unsigned long long)size);
    return STATUS_OK;
}

// The header has `length` bytes, in a file of `size`.
static int parse_header(struct safetensors *out, const char *header, uint64_t length, uint64_t size,
                        struct error *err) {
    uint64_t data_offset = LENGTH_BYTES + length;
    if (length == 0 || *header != '{')
        return error_set(err, STATUS_DATA, "the header does not begin with '{'");
    int status = json_read(&out->header, header, length, err);
    if (!status)
        status = read_header(out, data_offset, size - data_offset, err);
    if (status)
        safetensors_free(out);
    return status;
}

int safetensors_parse(struct safetensors *out, const void *bytes, size_t size, struct error *err) {
    const unsigned char *p = bytes;
    uint64_t length;
    *out = (struct safetensors){0};
    int status = check_length(&length, p, size, err);
    if (!status)
        status = parse_header(out, (const char *)p + LENGTH_BYTES, length, size, err);
    for (size_t i = 0; i < out->count; i++)
        out->tensors[i].data = p + out->tensors[i].offset;
    return status;
}

int safetensors_open(struct safetensors *out, const struct content *content, struct error *err) {
    unsigned char first[LENGTH_BYTES] = {0};
    uint64_t length;
    size_t known = content->size < LENGTH_BYTES ? (size_t)content->size : LENGTH_BYTES;
    *out = (struct safetensors){0};
    int status = content_read(content, first, 0, known, err);
    if (!status)
        status = check_length(&length, first, content->size, err);
    if (status)
        return status;
    char *header = mem_array((size_t)length + 1, 1);
    status = header ? content_read(content, header, LENGTH_BYTES, (size_t)length, err)
                    : error_nomem(err);
    if (!status)
        status = parse_header(out, header, length, content->size, err);
    free(header);
    return status;
}

void safetensors_free(struct safetensors *file) {
    free(file->tensors);
    json_decref(file->header);
    *file = (struct safetensors){0};
}

const struct tensor *safetensors_find(const struct safetensors *file, const char *name) {
    for (size_t i = 0; i < file->count; i++)
        if (!strcmp(file->tensors[i].name, name))
            return &file->tensors[i];
    return NULL;
}

const char *safetensors_text(const struct safetensors *file, const char *key) {
    return json_string_value(json_object_get(file->metadata, key));
}
