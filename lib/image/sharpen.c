#include <string.h>

#include "core/cpu.h"
#include "image/blur.h"
#include "image/sharpen_rows.h"

static const struct sharpen_rows *rows_of_this_cpu(void) {
#if defined(__x86_64__)
    if (cpu_level() >= CPU_AVX2)
        return &sharpen_rows_avx2;
#endif
    return &sharpen_rows_ref;
}

void image_sharpen(struct image *to, const struct image *from, double factor) {
    const struct sharpen_rows *rows = rows_of_this_cpu();
    long channels = from->channels, stride = from->width * channels;
    memcpy(to->data, from->data, image_bytes(from));
    for (int y = 1; y < from->height - 1 && from->width > 2; y++) {
        long first = y * stride + channels;
        int n = (int)(stride - 2 * channels);
        if (from->type == PIXEL_U8)
            rows->bytes(to->u8 + first, from->u8 + first, stride, channels, (float)factor, n);
        else
            rows->floats(to->f32 + first, from->f32 + first, stride, channels, (float)factor, n);
    }
}
