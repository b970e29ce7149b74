// Records: as a stream, and mapped with their index. Bytes that change nothing
// but a CRC-32 are rare, so the last byte chooses to set the CRC-32s right.
#include "source_input.h"

#include "core/error.h"
#include "sample/arec.h"
#include "store/crc.h"

static void put32(uint8_t *bytes, uint32_t value) {
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

// Walks over the chunks as their lengths say, and makes every CRC-32 fit.
static void mend(uint8_t *data, size_t size) {
    if (size < AREC_HEADER)
        return;
    put32(data + 12, crc32_of(0, data, 12));
    for (size_t at = AREC_HEADER; size - at >= AREC_CHUNK;) {
        size_t length = data[at + 8] | (size_t)data[at + 9] << 8, left = size - at - AREC_CHUNK;
        length = length < left ? length : left;
        put32(data + at + 16, crc32_of(0, data + at + AREC_CHUNK, length));
        put32(data + at + 20, crc32_of(0, data + at, 20));
        length += arec_padding(length);
        at += AREC_CHUNK + (length < left ? length : left);
    }
}

static void read_dataset(const char *path) {
    struct source_options options = {.from = "arec", .max_bytes = 1 << 20};
    struct dataset *dataset;
    struct image image = {0};
    struct error err = {0};
    if (dataset_open(&dataset, path, &options, false, NULL, &err)) {
        if (!*err.text)
            abort();
        return;
    }
    for (uint32_t i = 0; i < dataset_count(dataset); i++) {
        if (dataset_label(dataset, i) >= dataset_classes(dataset)->count ||
            !dataset_key(dataset, i))
            abort();
        dataset_image(dataset, i, &(struct decode_options){.max_pixels = 1 << 16}, &image, &err);
    }
    image_free(&image);
    dataset_close(dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[INPUT_PATH];
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    if (size > 0 && data[size - 1] & 1)
        mend(copy, size - 1);
    input_file(path, copy, size > 0 ? size - 1 : 0);
    input_read(path, "arec");
    read_dataset(path);
    free(copy);
    return 0;
}
