// PNM: alone, and as a stream whose pictures must be those that stand alone.
#include "../helper/fuzz_picture.h"
#include "core/error.h"

static void check_same(const struct image *image, const uint8_t *data, size_t size,
                       const struct decode_options *options) {
    struct image alone = {0};
    if (image_decode(&alone, data, size, options, NULL) ||
        image_bytes(&alone) != image_bytes(image) ||
        memcmp(alone.data, image->data, image_bytes(image)) != 0)
        abort();
    image_free(&alone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct decode_options options = {.max_pixels = FUZZ_PIXELS};
    struct image image = {0};
    if (codec_of(data, size) == CODEC_PNM)
        fuzz_picture(data, size);
    for (size_t at = 0, used; at < size; at += used) {
        struct error err = {0};
        int status = pnm_decode(&image, data + at, size - at, &used, &options, &err);
        if (used > size - at || (status && (used || !*err.text)))
            abort();
        if (status || used == 0)
            break;
        check_same(&image, data + at, used, &options);
    }
    image_free(&image);
    return 0;
}
