#include "image/hue.h"

#include "core/cpu.h"
#include "image/hue_rows.h"

enum { BLOCK = 256 };

// Pixels of one block, a plane each channel.
struct planes {
    float r[BLOCK], g[BLOCK], b[BLOCK];
};

static hue_row *row_of_this_cpu(void) {
#if defined(__x86_64__)
    if (cpu_level() >= CPU_AVX2)
        return hue_row_avx2;
#endif
    return hue_row_ref;
}

static void split_u8(struct planes *to, const uint8_t *from, int n) {
    for (int i = 0; i < n; i++, from += 3)
        to->r[i] = from[0], to->g[i] = from[1], to->b[i] = from[2];
}

static void split_f32(struct planes *to, const float *from, int n) {
    for (int i = 0; i < n; i++, from += 3)
        to->r[i] = from[0], to->g[i] = from[1], to->b[i] = from[2];
}

// Between the lowest and the highest byte that there was: only rounded.
static uint8_t rounded(float v) {
    return (uint8_t)(int)(v + 0.5f);
}

static void join_u8(uint8_t *to, const struct planes *from, int n) {
    for (int i = 0; i < n; i++, to += 3)
        to[0] = rounded(from->r[i]), to[1] = rounded(from->g[i]), to[2] = rounded(from->b[i]);
}

static void join_f32(float *to, const struct planes *from, int n) {
    for (int i = 0; i < n; i++, to += 3)
        to[0] = from->r[i], to[1] = from->g[i], to[2] = from->b[i];
}

void image_turn_hue(struct image *image, double degrees) {
    struct planes planes;
    hue_row *turn_row = row_of_this_cpu();
    float turn = (float)(degrees / 60 + (degrees < 0 ? 6 : 0));
    size_t pixels = (size_t)image->width * (size_t)image->height;
    for (size_t i = 0; i < pixels; i += BLOCK) {
        int n = pixels - i < BLOCK ? (int)(pixels - i) : BLOCK;
        if (image->type == PIXEL_U8)
            split_u8(&planes, image->u8 + 3 * i, n);
        else
            split_f32(&planes, image->f32 + 3 * i, n);
        turn_row(planes.r, planes.g, planes.b, turn, n);
        if (image->type == PIXEL_U8)
            join_u8(image->u8 + 3 * i, &planes, n);
        else
            join_f32(image->f32 + 3 * i, &planes, n);
    }
}
