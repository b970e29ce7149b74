// PNG by libpng behind our error handling and limits. Mutations seldom repair the
// CRC of a chunk, so it is repaired here: the bytes behind it are what matters.
#include <zlib.h>

#include "../helper/fuzz_picture.h"

enum { SIGNATURE = 8, CHUNK = 12 };

static uint32_t get32(const uint8_t *from) {
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static void repair(uint8_t *data, size_t size) {
    size_t at = SIGNATURE;
    while (size - at >= CHUNK && get32(data + at) <= size - at - CHUNK) {
        size_t length = get32(data + at);
        uint32_t crc = (uint32_t)crc32(0, data + at + 4, (uInt)(length + 4));
        for (size_t i = 0; i < 4; i++)
            data[at + 8 + length + i] = (uint8_t)(crc >> (24 - 8 * i));
        at += CHUNK + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = codec_of(data, size) == CODEC_PNG ? malloc(size) : NULL;
    if (!copy)
        return 0;
    fuzz_picture(data, size);
    memcpy(copy, data, size);
    repair(copy, size);
    fuzz_picture(copy, size);
    free(copy);
    return 0;
}
