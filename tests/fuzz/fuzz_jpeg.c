// JPEG by libjpeg-turbo behind our error handling, limits and EXIF reader.
#include "../helper/fuzz_picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (codec_of(data, size) == CODEC_JPEG)
        fuzz_picture(data, size);
    return 0;
}
