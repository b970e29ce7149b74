// What every decoder promises for whatever bytes: a picture within the limits,
// every pixel of it written, or a status with a reason.
#ifndef ADAM_TESTS_FUZZ_PICTURE_H
#define ADAM_TESTS_FUZZ_PICTURE_H

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "image/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_PIXELS = 1 << 14 };

// Decoded twice into memory with other rubbish: a pixel that was not written shows.
static inline void fuzz_picture(const uint8_t *data, size_t size) {
    static const int channels[] = {0, 1, 3};
    struct decode_options options = {.max_pixels = FUZZ_PIXELS,
                                     .channels = channels[size % 3],
                                     .least_width = (int)(size / 3 % 4) * 10,
                                     .least_height = (int)(size / 12 % 4) * 10};
    struct image image[2] = {{0}};
    int status[2];
    for (int i = 0; i < 2; i++) {
        struct error err = {0};
        if (image_shape(&image[i], 128, FUZZ_PIXELS / 128, 3, PIXEL_U8, &err) == STATUS_OK)
            memset(image[i].data, i ? 0x55 : 0xaa, image[i].capacity);
        status[i] = image_decode(&image[i], data, size, &options, &err);
        if (status[i] ? !*err.text
                      : image[i].width < 1 || image[i].height < 1 ||
                            (uint64_t)image[i].width * (uint64_t)image[i].height > FUZZ_PIXELS ||
                            (options.channels && image[i].channels != options.channels))
            abort();
    }
    if (status[0] != status[1] ||
        (!status[0] && memcmp(image[0].data, image[1].data, image_bytes(&image[0])) != 0))
        abort();
    image_free(&image[0]);
    image_free(&image[1]);
}

#endif
