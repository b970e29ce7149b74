// Resampling against the definition written out in doubles, and the vector loops
// against the reference, bit for bit.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/cpu.h"
#include "core/error.h"
#include "image/resize.h"

#define PI 3.14159265358979323846

static const enum filter filters[] = {FILTER_AREA, FILTER_BILINEAR, FILTER_LANCZOS};
static const char *const names[] = {"area", "bilinear", "lanczos"};

static unsigned noise(unsigned *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

static void fill(struct image *image, int width, int height, int channels, enum pixel type) {
    unsigned state = (unsigned)(width * 31 + height * 7 + channels);
    image_shape(image, width, height, channels, type, NULL);
    for (size_t i = 0; i < image_values(image); i++)
        if (type == PIXEL_U8)
            image->u8[i] = (uint8_t)(noise(&state) % 3 ? noise(&state) : noise(&state) % 2 * 255);
        else
            image->f32[i] = (float)noise(&state) / 1000 - 20;
}

static int whole(struct image *to, const struct image *from, enum filter filter, int width,
                 int height) {
    return image_resize(to, from, filter, width, height, 0, 0, width, height, NULL);
}

static double value(const struct image *image, int x, int y, int c) {
    size_t i = ((size_t)y * (size_t)image->width + (size_t)x) * (size_t)image->channels + (size_t)c;
    return image->type == PIXEL_U8 ? image->u8[i] : (double)image->f32[i];
}

// The filter's weight of source sample i for a result centred at `centre`.
static double weight(enum filter filter, int i, double centre, double scale) {
    double widen = scale > 1 ? scale : 1;
    double x = fabs(i + 0.5 - centre) / widen;
    if (filter == FILTER_AREA) {
        double left = centre - scale / 2, right = centre + scale / 2;
        double overlap = fmin(right, i + 1) - fmax(left, i);
        return overlap > 0 ? overlap : 0;
    }
    if (filter == FILTER_BILINEAR)
        return x < 1 ? 1 - x : 0;
    if (x >= 3)
        return 0;
    return x == 0 ? 1 : sin(PI * x) / (PI * x) * sin(PI * x / 3) / (PI * x / 3);
}

// One result by the double sum over the whole picture.
static double expected(const struct image *from, enum filter filter, int width, int height, int x,
                       int y, int c) {
    double scale_x = (double)from->width / width, scale_y = (double)from->height / height;
    double sum = 0, weights = 0;
    for (int j = 0; j < from->height; j++) {
        double wy = weight(filter, j, (y + 0.5) * scale_y, scale_y);
        for (int i = 0; wy != 0 && i < from->width; i++) {
            double w = wy * weight(filter, i, (x + 0.5) * scale_x, scale_x);
            sum += w * value(from, i, j, c);
            weights += w;
        }
    }
    double result = sum / weights;
    return from->type == PIXEL_F32 ? result : result < 0 ? 0 : result > 255 ? 255 : result;
}

static double worst_error(const struct image *from, enum filter filter, int width, int height) {
    struct image to = {0};
    double worst = 0;
    if (whole(&to, from, filter, width, height))
        return HUGE_VAL;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < from->channels; c++)
                worst = fmax(worst, fabs(value(&to, x, y, c) -
                                         expected(from, filter, width, height, x, y, c)));
    image_free(&to);
    return worst;
}

static void test_definition(struct tap *tap) {
    static const int sizes[][4] = {{24, 18, 12, 9},  {31, 20, 13, 11}, {10, 7, 25, 19},
                                   {17, 40, 40, 17}, {50, 3, 7, 3},    {1, 1, 5, 4},
                                   {9, 5, 1, 1},     {60, 2, 61, 1}};
    for (int f = 0; f < 3; f++) {
        char name[80];
        snprintf(name, sizeof name, "%s is what its definition says", names[f]);
        TEST(tap, name, {
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                for (int channels = 1; channels <= 4; channels++) {
                    struct image from = {0};
                    fill(&from, sizes[s][0], sizes[s][1], channels, PIXEL_U8);
                    CHECK_NEAR(tap, worst_error(&from, filters[f], sizes[s][2], sizes[s][3]), 0,
                               0.53);
                    fill(&from, sizes[s][0], sizes[s][1], channels, PIXEL_F32);
                    CHECK_NEAR(tap, worst_error(&from, filters[f], sizes[s][2], sizes[s][3]), 0,
                               1e-4);
                    image_free(&from);
                }
        });
    }
}

static void test_properties(struct tap *tap) {
    TEST(tap, "the same size gives the same pixels", {
        for (int f = 0; f < 3; f++)
            for (int type = PIXEL_U8; type <= PIXEL_F32; type++) {
                struct image from = {0};
                struct image to = {0};
                fill(&from, 37, 21, 3, (enum pixel)type);
                CHECK_INT(tap, whole(&to, &from, filters[f], 37, 21), STATUS_OK);
                CHECK_INT(tap, memcmp(to.data, from.data, image_bytes(&from)), 0);
                image_free(&from);
                image_free(&to);
            }
    });
    TEST(tap, "a plain surface stays what it is, at any scale", {
        static const int sizes[][2] = {{1, 1}, {3, 1000}, {255, 7}, {65535, 1}, {100, 100}};
        for (int f = 0; f < 3; f++)
            for (int level = 0; level <= 255; level += 51)
                for (size_t s = 0; s < 5; s++) {
                    struct image from = {0};
                    struct image to = {0};
                    image_shape(&from, 100, 100, 3, PIXEL_U8, NULL);
                    memset(from.u8, level, image_bytes(&from));
                    CHECK_INT(tap, whole(&to, &from, filters[f], sizes[s][0], sizes[s][1]), 0);
                    int wrong = 0;
                    for (size_t i = 0; i < image_values(&to); i++)
                        wrong += to.u8[i] != level;
                    CHECK_INT(tap, wrong, 0);
                    image_free(&from);
                    image_free(&to);
                }
    });
    TEST(tap, "the longest row becomes its mean", {
        struct image from = {0};
        struct image to = {0};
        double sum = 0;
        fill(&from, IMAGE_MAX_SIDE, 1, 1, PIXEL_U8);
        for (int i = 0; i < IMAGE_MAX_SIDE; i++)
            sum += from.u8[i];
        CHECK_INT(tap, whole(&to, &from, FILTER_AREA, 1, 1), STATUS_OK);
        CHECK_NEAR(tap, to.u8[0], sum / IMAGE_MAX_SIDE, 1);
        image_free(&from);
        image_free(&to);
    });
}

static void test_part(struct tap *tap) {
    TEST(tap, "a part is the same as that part of the whole", {
        for (int f = 0; f < 3; f++)
            for (int type = PIXEL_U8; type <= PIXEL_F32; type++) {
                struct image from = {0};
                struct image all = {0};
                struct image part = {0};
                fill(&from, 90, 61, 3, (enum pixel)type);
                whole(&all, &from, filters[f], 47, 33);
                CHECK_INT(tap, image_resize(&part, &from, filters[f], 47, 33, 11, 5, 30, 20, NULL),
                          STATUS_OK);
                size_t row = image_bytes(&part) / 20;
                size_t pixel = row / 30;
                int wrong = 0;
                for (size_t y = 0; y < 20; y++)
                    wrong += memcmp((char *)part.data + y * row,
                                    (char *)all.data + ((y + 5) * 47 + 11) * pixel, row) != 0;
                CHECK_INT(tap, wrong, 0);
                image_free(&from);
                image_free(&all);
                image_free(&part);
            }
    });
    TEST(tap, "sizes out of bounds and parts outside are refused", {
        static const int cases[][6] = {{0, 5, 0, 0, 1, 1},  {5, 70000, 0, 0, 1, 1},
                                       {5, 5, -1, 0, 2, 2}, {5, 5, 0, 4, 2, 2},
                                       {5, 5, 0, 0, 0, 1},  {5, 5, 3, 0, 2147483647, 1}};
        struct image from = {0};
        struct image to = {0};
        fill(&from, 4, 4, 1, PIXEL_U8);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct error err = {0};
            const int *c = cases[i];
            CHECK_INT(
                tap,
                image_resize(&to, &from, FILTER_AREA, c[0], c[1], c[2], c[3], c[4], c[5], &err),
                STATUS_DATA);
            CHECK(tap, err.text[0]);
        }
        image_free(&from);
        image_free(&to);
    });
}

static void compare_level(struct tap *tap, const char *level, const int *shape) {
    struct image from = {0}, reference = {0}, to = {0};
    for (int type = PIXEL_U8; type <= PIXEL_F32; type++)
        for (int f = 0; f < 3; f++) {
            fill(&from, shape[0], shape[1], shape[4], (enum pixel)type);
            setenv("ADAM_CPU", "ref", 1);
            whole(&reference, &from, filters[f], shape[2], shape[3]);
            setenv("ADAM_CPU", level, 1);
            whole(&to, &from, filters[f], shape[2], shape[3]);
            if (memcmp(to.data, reference.data, image_bytes(&reference)) != 0)
                FAIL(tap, "%s, %s, %dx%d to %dx%d, %d channels: other bits", names[f],
                     type == PIXEL_U8 ? "u8" : "f32", shape[0], shape[1], shape[2], shape[3],
                     shape[4]);
        }
    image_free(&from);
    image_free(&reference);
    image_free(&to);
}

static void test_levels(struct tap *tap) {
    unsetenv("ADAM_CPU");
    const enum cpu_level best = cpu_level();
    for (enum cpu_level level = CPU_AVX2; level <= CPU_AVX512; level++) {
        char name[80];
        snprintf(name, sizeof name, "%s gives the bits of the reference%s", cpu_level_name(level),
                 level > best ? " # skip this processor has not got it" : "");
        unsigned state = 7;
        TEST(tap, name, {
            for (int i = 0; i < 120 && level <= best; i++) {
                int shape[5] = {1 + (int)noise(&state) % 150, 1 + (int)noise(&state) % 60,
                                1 + (int)noise(&state) % 120, 1 + (int)noise(&state) % 60,
                                1 + i % 5};
                compare_level(tap, cpu_level_name(level), shape);
            }
        });
    }
    unsetenv("ADAM_CPU");
}

int main(void) {
    struct tap tap = {0};
    test_definition(&tap);
    test_properties(&tap);
    test_part(&tap);
    test_levels(&tap);
    return tap_done(&tap);
}
