#include "image/floats.h"

#include <string.h>

#include "core/cpu.h"
#include "core/error.h"
#include "image/floats_rows.h"

enum { TABLE = 256 }; // at most so many gains are spread out beside each other

static const struct floats_rows *rows_of_this_cpu(void) {
#if defined(__x86_64__)
    if (cpu_level() >= CPU_AVX2)
        return &floats_rows_avx2;
#endif
    return &floats_rows_ref;
}

int image_linear(struct image *to, const struct image *from, const float *gain, const float *offset,
                 int count, struct error *err) {
    int status = image_shape(to, from->width, from->height, from->channels, PIXEL_F32, err);
    if (status)
        return status;
    const struct floats_rows *rows = rows_of_this_cpu();
    float gains[TABLE], offsets[TABLE];
    // Whole periods of the channels, and whole registers.
    size_t block = (size_t)(TABLE / (16 * count) * 16 * count), n = image_values(from);
    for (size_t i = 0; i < block; i++)
        gains[i] = gain[i % (size_t)count], offsets[i] = offset[i % (size_t)count];
    for (size_t i = 0; i < n; i += block) {
        size_t m = n - i < block ? n - i : block;
        if (from->type == PIXEL_U8)
            rows->linear_u8(to->f32 + i, from->u8 + i, gains, offsets, m);
        else
            rows->linear_f32(to->f32 + i, from->f32 + i, gains, offsets, m);
    }
    return STATUS_OK;
}

static void copy_plane(float *to, const struct image *from, int channel, size_t pixels) {
    size_t step = (size_t)from->channels, at = (size_t)channel;
    for (size_t i = 0; i < pixels; i++, at += step)
        to[i] = from->type == PIXEL_U8 ? (float)from->u8[at] : from->f32[at];
}

void image_planes(float *to, const struct image *from) {
    size_t pixels = (size_t)from->width * (size_t)from->height;
    const struct floats_rows *rows = rows_of_this_cpu();
    if (from->channels == 1 && from->type == PIXEL_F32)
        memcpy(to, from->f32, pixels * sizeof *to);
    else if (from->channels == 3 && from->type == PIXEL_U8)
        rows->split_u8(to, to + pixels, to + 2 * pixels, from->u8, pixels);
    else if (from->channels == 3)
        rows->split_f32(to, to + pixels, to + 2 * pixels, from->f32, pixels);
    else
        for (int c = 0; c < from->channels; c++)
            copy_plane(to + (size_t)c * pixels, from, c, pixels);
}
