// Chains of operations: whatever the text, a chain or a message with its place;
// and what is accepted is applied to small pictures. The text ends at the first
// newline; the bytes behind it are pixels.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "ops/op.h"

enum { WIDTH = 9, HEIGHT = 7, PIXELS_MOST = 1 << 18, CHAIN_MOST = 400 };

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

// Large results, also on the way, are the limit's matter (ops_apply refuses beyond
// it), not the fuzzer's.
static int within_reason(const struct ops *ops, int channels) {
    for (size_t n = 1; n <= ops->count; n++) {
        struct ops part = {.list = ops->list, .count = n};
        int width = WIDTH, height = HEIGHT, c = channels;
        if (ops_shape(&part, &width, &height, &c) && (int64_t)width * height * c > PIXELS_MOST)
            return 0;
    }
    return 1;
}

static void apply(const struct ops *ops, const uint8_t *pixels, size_t size, int channels) {
    struct image image = {0};
    struct error err = {0};
    struct ops_scratch *scratch = ops_scratch_new();
    int width = WIDTH, height = HEIGHT;
    if (scratch && within_reason(ops, channels) &&
        image_shape(&image, width, height, channels, PIXEL_U8, &err) == STATUS_OK) {
        memset(image.u8, 100, image_bytes(&image));
        memcpy(image.u8, pixels, smaller(size, image_bytes(&image)));
        int foretold = ops_shape(ops, &width, &height, &channels);
        int status = ops_apply(ops, scratch, &image, (struct ops_draw){1, size, 2}, &err);
        if (status ? !*err.text
                   : foretold && (image.width != width || image.height != height ||
                                  image.channels != channels))
            abort();
    }
    ops_scratch_free(scratch);
    image_free(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
    size_t length = smaller(newline ? (size_t)(newline - data) : size, CHAIN_MOST);
    char *text = malloc(length + 1);
    if (!text)
        return 0;
    memcpy(text, data, length);
    text[length] = 0;
    struct ops *ops;
    struct error err = {0};
    size_t offset, mistake;
    int status = ops_parse(&ops, text, 0, &offset, &mistake, &err);
    if (status && (ops || !*err.text || offset + mistake > strlen(text)))
        abort();
    const uint8_t *pixels = newline ? newline + 1 : data + size;
    for (int channels = 1; !status && channels <= 3; channels++)
        apply(ops, pixels, (size_t)(data + size - pixels), channels);
    ops_free(ops);
    free(text);
    return 0;
}
