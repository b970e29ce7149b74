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
    const struct noise_rows *rows = rows_of_this_cpu();
    uint32_t words[NOISE_BLOCK];
    float normal[NOISE_BLOCK];
    size_t n = image_values(image);
    for (size_t i = 0; i < n; i += NOISE_BLOCK) {
        random_words(random, words, NOISE_BLOCK);
        rows->normal(normal, words);
        int count = n - i < NOISE_BLOCK ? (int)(n - i) : NOISE_BLOCK;
        if (image->type == PIXEL_U8)
            rows->add_u8(image->u8 + i, normal, (float)(255 * deviation), count);
        else
            rows->add_f32(image->f32 + i, normal, (float)deviation, count);
    }
}
