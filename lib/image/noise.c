#include "image/noise.h"

#include "core/cpu.h"
#include "image/noise_rows.h"

static const struct noise_rows *rows_of_this_cpu(void) {
#if defined(__x86_64__)
    if (cpu_level() >= CPU_AVX2)
        return &noise_rows_avx2;
#endif
    return &noise_rows_ref;
}

void image_noise(struct image *image, double deviation, struct random *random) {
    enum { BLOCK = 1024 };
    const struct noise_rows *rows = rows_of_this_cpu();
    float normal[BLOCK];
    size_t n = image_values(image);
    for (size_t i = 0; i < n; i += BLOCK) {
        int count = n - i < BLOCK ? (int)(n - i) : BLOCK;
        random_normals(random, normal, (size_t)count);
        if (image->type == PIXEL_U8)
            rows->add_u8(image->u8 + i, normal, (float)(255 * deviation), count);
        else
            rows->add_f32(image->f32 + i, normal, (float)deviation, count);
    }
}
