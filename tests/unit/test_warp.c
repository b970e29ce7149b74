// Warps against bilinear sampling in double precision; displacement fields
// against a convolution by definition; pixels as floats.
#include <math.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/random.h"
#include "image/elastic.h"
#include "image/floats.h"
#include "image/warp.h"

static const char *const levels[] = {"ref", "avx2", "avx512"};

static void random_image(struct image *image, int w, int h, int channels, enum pixel type,
                         uint64_t seed) {
    struct random random = random_stream(seed, 1, 2);
    image_shape(image, w, h, channels, type, NULL);
    size_t n = image_values(image);
    for (size_t i = 0; i < n; i++)
        if (type == PIXEL_U8)
            image->u8[i] = (uint8_t)random_u32(&random);
        else
            image->f32[i] = random_range(&random, -3, 3);
}

static int mirrored(int i, int n) {
    while (i < 0 || i >= n)
        i = i < 0 ? -1 - i : 2 * n - 1 - i;
    return i;
}

static double pixel(const struct image *image, int x, int y, int c, enum border border,
                    double value) {
    int w = image->width, h = image->height;
    if (border == BORDER_VALUE && (x < 0 || x >= w || y < 0 || y >= h))
        return value;
    if (border == BORDER_EDGE) {
        x = x < 0 ? 0 : x >= w ? w - 1 : x;
        y = y < 0 ? 0 : y >= h ? h - 1 : y;
    } else if (border == BORDER_REFLECT) {
        x = mirrored(x, w), y = mirrored(y, h);
    }
    size_t i = ((size_t)y * (size_t)w + (size_t)x) * (size_t)image->channels + (size_t)c;
    return image->type == PIXEL_U8 ? image->u8[i] : (double)image->f32[i];
}

static double bilinear(const struct image *image, double x, double y, int c, enum border border,
                       double value) {
    int x0 = (int)floor(x), y0 = (int)floor(y);
    double u = x - x0, v = y - y0;
    return (1 - v) * ((1 - u) * pixel(image, x0, y0, c, border, value) +
                      u * pixel(image, x0 + 1, y0, c, border, value)) +
           v * ((1 - u) * pixel(image, x0, y0 + 1, c, border, value) +
                u * pixel(image, x0 + 1, y0 + 1, c, border, value));
}

// The largest distance of a warp from the reference.
static double distance(const struct image *to, const struct image *from, struct affine m,
                       const float *dx, const float *dy, enum border border, double value) {
    double worst = 0;
    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width; x++)
            for (int c = 0; c < to->channels; c++) {
                size_t at = (size_t)y * (size_t)to->width + (size_t)x;
                double u = x + (dx ? (double)dx[at] : 0), v = y + (dy ? (double)dy[at] : 0);
                double wanted = bilinear(from, m.a * u + m.b * v + m.c, m.d * u + m.e * v + m.f, c,
                                         border, value);
                worst = fmax(worst, fabs(pixel(to, x, y, c, BORDER_EDGE, 0) - wanted));
            }
    return worst;
}

static struct affine some_map(struct random *random) {
    struct affine m;
    double *v = (double *)&m;
    for (int i = 0; i < 6; i++)
        v[i] = (double)random_range(random, -1.5f, 1.5f);
    m.c = (double)random_range(random, -10, 40), m.f = (double)random_range(random, -10, 40);
    return m;
}

static bool same(const struct image *a, const struct image *b) {
    return a->width == b->width && a->height == b->height && a->channels == b->channels &&
           a->type == b->type && memcmp(a->data, b->data, image_bytes(a)) == 0;
}

static void test_reference(struct tap *tap, enum pixel type, double tolerance, const char *name) {
    static const int sizes[][2] = {{1, 1}, {2, 1}, {1, 3}, {2, 2}, {3, 5}, {28, 28}, {67, 41}};
    static const int channels[] = {1, 2, 3, 4, 5};
    struct random random = random_stream(4, 0, 0);
    struct image from = {0}, to = {0};
    TEST(tap, name, {
        for (int i = 0; i < 600; i++) {
            const int *size = sizes[i % 7];
            enum border border = (enum border)(i % 3);
            random_image(&from, size[0], size[1], channels[i % 5], type, (uint64_t)i);
            struct affine m = some_map(&random);
            CHECK_INT(tap, image_warp(&to, &from, 37, 29, m, border, 77, NULL), STATUS_OK);
            double d = distance(&to, &from, m, NULL, NULL, border, 77);
            if (d > tolerance)
                FAIL(tap, "picture %d (%dx%dx%d, border %d) is off by %g", i, from.channels,
                     size[1], size[0], (int)border, d);
        }
    });
    image_free(&from);
    image_free(&to);
}

static void test_variants(struct tap *tap) {
    struct image from = {0}, first = {0}, other = {0};
    TEST(tap, "every processor's variant gives the same bytes", {
        struct random random = random_stream(5, 0, 0);
        for (int i = 0; i < 300; i++) {
            random_image(&from, 3 + i % 90, 2 + i % 71, 3, PIXEL_U8, (uint64_t)i);
            struct affine m = some_map(&random);
            for (int l = 0; l < 3; l++) {
                setenv("ADAM_CPU", levels[l], 1);
                image_warp(l ? &other : &first, &from, 61, 47, m, BORDER_REFLECT, 0, NULL);
                CHECK(tap, !l || same(&first, &other));
            }
        }
        unsetenv("ADAM_CPU");
    });
    image_free(&from);
    image_free(&first);
    image_free(&other);
}

static void test_exact(struct tap *tap) {
    struct image from = {0}, to = {0}, back = {0};
    TEST(tap, "the identity copies, also where it is interpolated", {
        for (int type = PIXEL_U8; type <= PIXEL_F32; type++)
            for (int channels = 1; channels <= 4; channels++) {
                random_image(&from, 33, 17, channels, (enum pixel)type, 9);
                struct affine almost = affine_identity();
                almost.c = 1e-12; // not whole: goes through the interpolation
                image_warp(&to, &from, 33, 17, affine_identity(), BORDER_VALUE, 0, NULL);
                CHECK(tap, same(&to, &from));
                image_warp(&to, &from, 33, 17, almost, BORDER_EDGE, 0, NULL);
                CHECK(tap, same(&to, &from));
            }
    });
    TEST(tap, "two mirrors are none, and a whole move is a copy with its border", {
        random_image(&from, 20, 9, 3, PIXEL_U8, 3);
        struct affine mirror = {-1, 0, 19, 0, -1, 8};
        image_warp(&to, &from, 20, 9, mirror, BORDER_VALUE, 0, NULL);
        CHECK(tap, !same(&to, &from));
        image_warp(&back, &to, 20, 9, mirror, BORDER_VALUE, 0, NULL);
        CHECK(tap, same(&back, &from));
        for (int border = 0; border < 3; border++)
            for (int flip = -1; flip <= 1; flip += 2) {
                struct affine m = {flip, 0, flip < 0 ? 25 : -7, 0, 1, 3};
                image_warp(&to, &from, 41, 30, m, (enum border)border, 9, NULL);
                CHECK_NEAR(tap, distance(&to, &from, m, NULL, NULL, (enum border)border, 9), 0, 0);
            }
    });
    TEST(tap, "affine_then applies the second map's inverse first", {
        struct affine m = {1, 2, 3, 4, 5, 6}, n = {2, 0, 1, 0, 3, -1};
        struct affine both = affine_then(m, n);
        double x = 7, y = -2, u = 2 * x + 1, v = 3 * y - 1;
        CHECK_NEAR(tap, both.a * x + both.b * y + both.c, 1 * u + 2 * v + 3, 1e-12);
        CHECK_NEAR(tap, both.d * x + both.e * y + both.f, 4 * u + 5 * v + 6, 1e-12);
        CHECK(tap, !affine_whole(&both));
    });
    image_free(&from);
    image_free(&to);
    image_free(&back);
}

static void test_field(struct tap *tap) {
    enum { W = 31, H = 26 };
    static float dx[W * H], dy[W * H];
    struct image from = {0}, to = {0};
    TEST(tap, "a displacement field is added before the map", {
        struct random random = random_stream(6, 0, 0);
        for (int i = 0; i < 60; i++) {
            for (int j = 0; j < W * H; j++)
                dx[j] = random_range(&random, -9, 9), dy[j] = random_range(&random, -9, 9);
            enum pixel type = i % 2 ? PIXEL_F32 : PIXEL_U8;
            random_image(&from, 28, 28, 1 + i % 3, type, (uint64_t)i);
            struct affine m = some_map(&random);
            enum border border = (enum border)(i % 3);
            image_warp_field(&to, &from, W, H, m, dx, dy, border, 5, NULL);
            CHECK_NEAR(tap, distance(&to, &from, m, dx, dy, border, 5), 0,
                       type == PIXEL_U8 ? 1.6 : 1e-5);
        }
    });
    TEST(tap, "a field of infinities and no numbers stays within the picture's memory", {
        for (int j = 0; j < W * H; j++)
            dx[j] = j % 2 ? INFINITY : NAN, dy[j] = -dx[j];
        random_image(&from, 28, 28, 3, PIXEL_U8, 1);
        CHECK_INT(
            tap,
            image_warp_field(&to, &from, W, H, affine_identity(), dx, dy, BORDER_REFLECT, 0, NULL),
            STATUS_OK);
    });
    image_free(&from);
    image_free(&to);
}

static void test_refused(struct tap *tap) {
    struct image from = {0}, to = {0};
    struct error err = {0};
    TEST(tap, "maps that reach too far and sizes out of bounds are refused", {
        random_image(&from, 4, 4, 1, PIXEL_U8, 1);
        struct affine far = {1e9, 0, 0, 0, 1, 0}, nowhere = {NAN, 0, 0, 0, 1, 0};
        CHECK_INT(tap, image_warp(&to, &from, 4, 4, far, BORDER_VALUE, 0, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "a transformation reaches too far outside the picture");
        CHECK_INT(tap, image_warp(&to, &from, 4, 4, nowhere, BORDER_VALUE, 0, &err), STATUS_DATA);
        CHECK_INT(tap, image_warp(&to, &from, 70000, 4, affine_identity(), BORDER_VALUE, 0, &err),
                  STATUS_DATA);
    });
    TEST(tap, "a map far outside gives the fill, the edge, or the mirrored picture", {
        random_image(&from, 7, 5, 3, PIXEL_U8, 1);
        for (int border = 0; border < 3; border++)
            for (int side = -1; side <= 1; side += 2) {
                double c = side * 5e8;
                struct affine m = {1, 0, c + 0.5, 0, 1, 0};
                image_warp(&to, &from, 7, 5, m, (enum border)border, 300, NULL);
                m.c = fmod(c, 14) + 0.5; // the mirror repeats after 2 * 7
                if (border == BORDER_REFLECT)
                    CHECK_NEAR(tap, distance(&to, &from, m, NULL, NULL, BORDER_REFLECT, 0), 0, 1.6);
                if (border == BORDER_VALUE)
                    CHECK(tap, to.u8[0] == 255 && to.u8[104] == 255);
                if (border == BORDER_EDGE)
                    CHECK_INT(tap, to.u8[0], from.u8[c < 0 ? 0 : 18]);
            }
    });
    image_free(&from);
    image_free(&to);
}

// The sum over all pixels, with zeros outside, as the definition says.
static double convolved(const float *field, int w, int h, int x, int y, double sigma) {
    int radius = (int)ceil(3 * sigma);
    double sum = 0, norm = 0;
    for (int j = -radius; j <= radius; j++)
        norm += exp(-0.5 * j * j / (sigma * sigma));
    for (int v = 0; v < h; v++)
        for (int u = 0; u < w; u++)
            if (abs(u - x) <= radius && abs(v - y) <= radius)
                sum += exp(-0.5 * ((u - x) * (u - x) + (v - y) * (v - y)) / (sigma * sigma)) *
                       (double)field[v * w + u];
    return sum / (norm * norm);
}

static void test_elastic(struct tap *tap) {
    static const int shapes[][2] = {{28, 28}, {1, 1}, {5, 40}, {33, 7}};
    static const double sigmas[] = {0.1, 1, 4, 20};
    enum { MOST = 28 * 28 };
    static float dx[MOST], dy[MOST], again[MOST], raw[2][MOST];
    TEST(tap, "displacement fields are uniform noise convolved with a Gaussian", {
        for (int i = 0; i < 16; i++) {
            int w = shapes[i / 4][0], h = shapes[i / 4][1];
            double sigma = sigmas[i % 4];
            float *room = malloc(elastic_room(w, h, sigma) * sizeof *room);
            struct random random = random_stream(8, 0, (uint64_t)i), copy = random, third = random;
            for (int f = 0; f < 2; f++)
                for (int j = 0; j < w * h; j++)
                    raw[f][j] = 34 * (2 * random_unit(&copy) - 1);
            setenv("ADAM_CPU", "ref", 1);
            elastic_fields(dx, dy, room, w, h, sigma, 34, &random);
            for (int j = 0; j < w * h; j++) {
                CHECK_NEAR(tap, dx[j], convolved(raw[0], w, h, j % w, j / w, sigma), 1e-4);
                CHECK_NEAR(tap, dy[j], convolved(raw[1], w, h, j % w, j / w, sigma), 1e-4);
            }
            unsetenv("ADAM_CPU");
            elastic_fields(again, dy, room, w, h, sigma, 34, &third);
            CHECK(tap, memcmp(again, dx, (size_t)(w * h) * sizeof *dx) == 0);
            free(room);
        }
    });
}

static void test_floats(struct tap *tap) {
    struct image from = {0}, to = {0};
    TEST(tap, "gains and offsets follow the channels, whatever the processor", {
        float gain[16], offset[16];
        for (int i = 0; i < 16; i++)
            gain[i] = 0.01f * (float)(i + 1), offset[i] = (float)i - 3;
        for (int i = 0; i < 96; i++) {
            int channels = 1 + i % 16, count = i % 5 ? channels : 1;
            random_image(&from, 19 + i, 13, channels, i % 2 ? PIXEL_F32 : PIXEL_U8, (uint64_t)i);
            setenv("ADAM_CPU", levels[i % 3], 1);
            CHECK_INT(tap, image_linear(&to, &from, gain, offset, count, NULL), STATUS_OK);
            int wrong = 0;
            for (size_t j = 0; j < image_values(&from); j++) {
                size_t c = j % (size_t)count;
                float v = from.type == PIXEL_U8 ? from.u8[j] : from.f32[j];
                wrong += to.f32[j] != v * gain[c] + offset[c];
            }
            CHECK_INT(tap, wrong, 0);
        }
        unsetenv("ADAM_CPU");
    });
    TEST(tap, "planes hold every channel's pixels in order", {
        static float planes[8 * 200 * 11];
        for (int i = 0; i < 60; i++) {
            int channels = 1 + i % 5;
            random_image(&from, 100 + i, 11, channels, i % 2 ? PIXEL_F32 : PIXEL_U8, (uint64_t)i);
            setenv("ADAM_CPU", levels[i % 3], 1);
            image_planes(planes, &from);
            size_t n = (size_t)from.width * 11;
            int wrong = 0;
            for (size_t j = 0; j < n; j++)
                for (size_t c = 0; c < (size_t)channels; c++) {
                    size_t k = j * (size_t)channels + c;
                    float v = from.type == PIXEL_U8 ? from.u8[k] : from.f32[k];
                    wrong += planes[c * n + j] != v;
                }
            CHECK_INT(tap, wrong, 0);
        }
        unsetenv("ADAM_CPU");
    });
    image_free(&from);
    image_free(&to);
}

int main(void) {
    struct tap tap = {0};
    // Bytes: y in 1/128 of a pixel may be off by one level, then rounding.
    test_reference(&tap, PIXEL_U8, 1.6, "bytes are within 1.6 levels of exact bilinear sampling");
    test_reference(&tap, PIXEL_F32, 1e-4, "floats agree with exact bilinear sampling to 1e-4");
    test_variants(&tap);
    test_exact(&tap);
    test_field(&tap);
    test_refused(&tap);
    test_elastic(&tap);
    test_floats(&tap);
    return tap_done(&tap);
}
