// Decoding and encoding against pictures that libpng and libjpeg themselves write
// from known samples, and against damaged, truncated and oversized ones.
#include <stdlib.h>

#include <png.h>

#include "../helper/pictures.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "image/resize.h"

static const struct decode_options plain_options = {0};

static int decode(struct image *image, const void *data, size_t size, struct error *err) {
    return image_decode(image, data, size, &plain_options, err);
}

// --- PNG: every colour type, depth, interlacing and transparency -----------------

#define SIDE 13

struct png_case {
    int colour, depth;
    bool interlaced, transparent; // by tRNS
};

struct png_picture {
    unsigned samples[SIDE * SIDE * 4]; // as stored
    png_color palette[256];
    png_byte palette_alpha[256];
    unsigned key[3]; // the colour that tRNS makes transparent
    int channels;
};

static void png_collect(png_structp png, png_bytep data, size_t size) {
    bytes_append(png_get_io_ptr(png), data, size);
}

static void png_flush_nothing(png_structp png) {
    (void)png;
}

static void png_fill(struct png_picture *p, const struct png_case *c) {
    static const int channels[] = {[0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4};
    unsigned state = (unsigned)(c->colour * 100 + c->depth);
    p->channels = channels[c->colour];
    for (int i = 0; i < SIDE * SIDE * p->channels; i++)
        p->samples[i] = (noise(&state) ^ noise(&state) << 8) & ((1U << c->depth) - 1);
    for (int i = 0; i < 256; i++) {
        p->palette[i] =
            (png_color){(png_byte)noise(&state), (png_byte)noise(&state), (png_byte)noise(&state)};
        p->palette_alpha[i] = (png_byte)noise(&state);
    }
    for (int i = 0; i < 3; i++) // a pixel that is there
        p->key[i] = p->samples[5 * p->channels + (i < p->channels ? i : 0)];
}

static void png_pack_row(uint8_t *row, const unsigned *samples, int n, int depth) {
    memset(row, 0, (size_t)n * 2);
    for (int i = 0; i < n; i++)
        if (depth == 16)
            row[2 * i] = (uint8_t)(samples[i] >> 8), row[2 * i + 1] = (uint8_t)samples[i];
        else
            row[i * depth / 8] |= (uint8_t)(samples[i] << (8 - depth - i * depth % 8));
}

static void png_write_case(struct bytes *out, const struct png_picture *p,
                           const struct png_case *c) {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_color_16 key = {0, (png_uint_16)p->key[0], (png_uint_16)p->key[1], (png_uint_16)p->key[2],
                        (png_uint_16)p->key[0]};
    png_set_write_fn(png, out, png_collect, png_flush_nothing);
    png_set_IHDR(png, info, SIDE, SIDE, c->depth, c->colour,
                 c->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
    if (c->colour == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, p->palette, 1 << c->depth);
    if (c->transparent)
        png_set_tRNS(png, info, p->palette_alpha, c->colour == 3 ? 1 << c->depth : 0, &key);
    png_write_info(png, info);
    int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < SIDE; y++) {
            uint8_t row[SIDE * 8];
            png_pack_row(row, p->samples + y * SIDE * p->channels, SIDE * p->channels, c->depth);
            png_write_row(png, row);
        }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

// What pixel i looks like on white, by the definition in the PNG specification.
static void png_expect(double *colour, const struct png_picture *p, const struct png_case *c,
                       int i) {
    const unsigned *s = p->samples + i * p->channels;
    double most = (double)((1U << c->depth) - 1);
    double alpha = 1;
    if (c->colour == 3) {
        const png_color *entry = &p->palette[s[0]];
        colour[0] = entry->red, colour[1] = entry->green, colour[2] = entry->blue;
        alpha = c->transparent ? p->palette_alpha[s[0]] / 255.0 : 1;
    } else {
        bool gray = !(c->colour & PNG_COLOR_MASK_COLOR);
        bool keyed = s[0] == p->key[0];
        for (int k = 0; k < 3; k++) {
            colour[k] = s[gray ? 0 : k] * 255.0 / most;
            keyed = keyed && (gray || s[k] == p->key[k]);
        }
        if (c->colour & PNG_COLOR_MASK_ALPHA)
            alpha = s[p->channels - 1] / most;
        else if (c->transparent && keyed)
            alpha = 0;
    }
    for (int k = 0; k < 3; k++)
        colour[k] = colour[k] * alpha + 255 * (1 - alpha);
}

static void png_check(struct tap *tap, const struct png_case *c, int wanted_channels) {
    struct png_picture p;
    struct bytes file = {0};
    struct image image = {0};
    struct error err = {0};
    struct decode_options options = {.channels = wanted_channels};
    png_fill(&p, c);
    png_write_case(&file, &p, c);
    int status = image_decode(&image, file.data, file.size, &options, &err);
    bool gray = c->colour == 0 || c->colour == 4;
    int channels = wanted_channels ? wanted_channels : gray ? 1 : 3;
    double worst = 0;
    for (int i = 0; !status && i < SIDE * SIDE; i++) {
        double colour[3];
        png_expect(colour, &p, c, i);
        double luma = gray ? colour[0] : 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2];
        for (int k = 0; k < channels; k++)
            worst =
                fmax(worst, fabs(image.u8[i * channels + k] - (channels == 1 ? luma : colour[k])));
    }
    if (status || image.width != SIDE || image.height != SIDE || image.channels != channels ||
        worst > (channels == 1 && !gray ? 1.01 : 0.51))
        FAIL(tap,
             "colour type %d, depth %d, %sinterlaced, %stransparent, to %d channels: %s, off "
             "by %.2f",
             c->colour, c->depth, c->interlaced ? "" : "not ", c->transparent ? "" : "not ",
             wanted_channels, status ? err.text : "decoded", worst);
    image_free(&image);
    bytes_free(&file);
}

static void test_png(struct tap *tap) {
    TEST(tap, "PNG of every colour type, depth, interlacing and transparency", {
        static const int kinds[][2] = {{0, 1}, {0, 2},  {0, 4},  {0, 8}, {0, 16},
                                       {2, 8}, {2, 16}, {3, 1},  {3, 2}, {3, 4},
                                       {3, 8}, {4, 8},  {4, 16}, {6, 8}, {6, 16}};
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            for (int variant = 0; variant < 4; variant++)
                for (int channels = 0; channels <= 3; channels += channels ? 2 : 1) {
                    struct png_case c = {kinds[i][0], kinds[i][1], variant & 1, variant & 2};
                    if (!c.transparent || !(c.colour & PNG_COLOR_MASK_ALPHA))
                        png_check(tap, &c, channels);
                }
    });
}

// --- JPEG -------------------------------------------------------------------------

static void without_adobe(j_compress_ptr info) {
    info->write_Adobe_marker = FALSE;
}

static void test_jpeg_colours(struct tap *tap) {
    struct image ink = {0};
    struct image wanted = {0};
    struct image got = {0};
    struct bytes file = {0};
    draw(&ink, 40, 24, 4);
    image_shape(&wanted, 40, 24, 3, PIXEL_U8, NULL);
    static const struct {
        const char *name;
        J_COLOR_SPACE stored;
        bool adobe;
    } kinds[] = {{"CMYK with Adobe's marker", JCS_CMYK, true},
                 {"YCCK with Adobe's marker", JCS_YCCK, true},
                 {"CMYK without a marker", JCS_CMYK, false}};
    for (int k = 0; k < 3; k++) {
        char name[80];
        snprintf(name, sizeof name, "JPEG: %s becomes RGB", kinds[k].name);
        // Adobe stores 255 minus ink.
        for (size_t i = 0; i < image_values(&wanted); i++) {
            const uint8_t *pixel = ink.u8 + i / 3 * 4;
            int c = pixel[i % 3], black = pixel[3];
            int light = kinds[k].adobe ? c * black : (255 - c) * (255 - black);
            wanted.u8[i] = (uint8_t)(light / 255);
        }
        jpeg_write(&file, &ink, JCS_CMYK, kinds[k].stored, kinds[k].adobe ? NULL : without_adobe);
        TEST(tap, name, {
            struct error err = {0};
            CHECK_INT(tap, decode(&got, file.data, file.size, &err), STATUS_OK);
            CHECK(tap, largest_difference(&got, &wanted) <= 6);
        });
        bytes_free(&file);
    }
    image_free(&ink);
    image_free(&wanted);
    image_free(&got);
}

static void test_jpeg_kinds(struct tap *tap) {
    static const struct {
        const char *name;
        int channels;
        J_COLOR_SPACE from, stored;
        void (*adjust)(j_compress_ptr);
    } kinds[] = {
        {"JPEG: progressive", 3, JCS_RGB, JCS_YCbCr, jpeg_simple_progression},
        {"JPEG: gray", 1, JCS_GRAYSCALE, JCS_GRAYSCALE, NULL},
        {"JPEG: progressive gray", 1, JCS_GRAYSCALE, JCS_GRAYSCALE, jpeg_simple_progression},
        {"JPEG: RGB stored as RGB", 3, JCS_RGB, JCS_RGB, NULL},
        {"JPEG: a scan for each colour", 3, JCS_RGB, JCS_YCbCr, sequential_scans}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct image picture = {0};
        struct image got = {0};
        struct bytes file = {0};
        draw(&picture, 50, 35, kinds[k].channels);
        jpeg_write(&file, &picture, kinds[k].from, kinds[k].stored, kinds[k].adjust);
        TEST(tap, kinds[k].name, {
            CHECK_INT(tap, decode(&got, file.data, file.size, NULL), STATUS_OK);
            CHECK(tap, largest_difference(&got, &picture) <= 5);
            struct decode_options other = {.channels = kinds[k].channels == 1 ? 3 : 1};
            CHECK_INT(tap, image_decode(&got, file.data, file.size, &other, NULL), STATUS_OK);
            CHECK_INT(tap, got.channels, other.channels);
        });
        image_free(&picture);
        image_free(&got);
        bytes_free(&file);
    }
}

static void test_jpeg_scale(struct tap *tap) {
    TEST(tap, "JPEG is decoded small in the DCT, but never under what is needed", {
        static const struct {
            int least_width, least_height, width, height;
        } cases[] = {{0, 0, 400, 200},     {400, 200, 400, 200}, {201, 100, 400, 200},
                     {200, 100, 200, 100}, {100, 50, 100, 50},   {1, 1, 50, 25},
                     {60, 0, 100, 50},     {0, 101, 400, 200}};
        struct image picture = {0};
        struct image got = {0};
        struct bytes file = {0};
        draw(&picture, 400, 200, 3);
        encode(&file, &picture, CODEC_JPEG);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct decode_options options = {.least_width = cases[i].least_width,
                                             .least_height = cases[i].least_height};
            CHECK_INT(tap, image_decode(&got, file.data, file.size, &options, NULL), STATUS_OK);
            CHECK_INT(tap, got.width, cases[i].width);
            CHECK_INT(tap, got.height, cases[i].height);
        }
        image_free(&picture);
        image_free(&got);
        bytes_free(&file);
    });
}

// --- EXIF orientation ---------------------------------------------------------------

static void exif_block(struct bytes *out, int orientation, bool big_endian) {
    static const uint8_t little[] = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0";
    static const uint8_t big[] = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01";
    uint8_t value[8] = {0}; // and the offset of the next directory: none
    value[big_endian] = (uint8_t)orientation;
    bytes_append(out, big_endian ? big : little, 18);
    bytes_append(out, value, 8);
}

static void jpeg_with_exif(struct bytes *out, const struct bytes *jpeg, int orientation) {
    struct bytes exif = {0};
    exif_block(&exif, orientation, orientation & 1);
    uint8_t head[] = {0xff, 0xe1, 0, (uint8_t)(exif.size + 8), 'E', 'x', 'i', 'f', 0, 0};
    bytes_append(out, jpeg->data, 2);
    bytes_append(out, head, sizeof head);
    bytes_append(out, exif.data, exif.size);
    bytes_append(out, jpeg->data + 2, jpeg->size - 2);
    bytes_free(&exif);
}

// Where the scene's pixel (x, y) of a w x h scene is stored, by the tag's text:
// "1: the 0th row is at the visual top, the 0th column at the visual left" etc.
static void stored_at(int orientation, int x, int y, int w, int h, int *column, int *row) {
    bool row_is_vertical = orientation >= 5; // the 0th row is at the visual left or right
    bool right = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    bool bottom = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    int across = right ? w - 1 - x : x, down = bottom ? h - 1 - y : y;
    *row = row_is_vertical ? across : down;
    *column = row_is_vertical ? down : across;
}

// Brighter to the right and downwards, so that a pixel more or less on a side shows.
static void draw_slope(struct image *image, int width, int height) {
    image_shape(image, width, height, 3, PIXEL_U8, NULL);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint8_t *rgb = image->u8 + (y * width + x) * 3;
            rgb[0] = (uint8_t)(x * 255 / width);
            rgb[1] = (uint8_t)(y * 255 / height);
            rgb[2] = (uint8_t)(255 - rgb[0]);
        }
}

static void resize_decoded(struct image *to, const struct bytes *file, int least, int width,
                           int height, struct tap *tap) {
    struct image decoded = {0};
    struct decode_options options = {.least_width = least, .least_height = least};
    CHECK_INT(tap, image_decode(&decoded, file->data, file->size, &options, NULL), STATUS_OK);
    CHECK_INT(tap, decoded.true_size.by > 1, least > 0);
    image_resize(to, &decoded, FILTER_BILINEAR, width, height, 0, 0, width, height, NULL);
    image_free(&decoded);
}

static void test_fractions(struct tap *tap) {
    TEST(tap, "what is decoded at a fraction is resized as the whole is, turned or not", {
        static const struct {
            int width, height, to_width, to_height;
        } sides[] = {{257, 259, 32, 32}, {129, 263, 32, 64}, {271, 130, 65, 32}};
        for (size_t s = 0; s < 3; s++) {
            struct image slope = {0};
            struct bytes jpeg = {0};
            draw_slope(&slope, sides[s].width, sides[s].height);
            encode(&jpeg, &slope, CODEC_JPEG);
            for (int o = 1; o <= 8; o++) {
                struct bytes turned = {0};
                struct image small = {0};
                struct image whole = {0};
                int width = o >= 5 ? sides[s].to_height : sides[s].to_width;
                int height = o >= 5 ? sides[s].to_width : sides[s].to_height;
                jpeg_with_exif(&turned, &jpeg, o);
                resize_decoded(&small, &turned, 32, width, height, tap);
                resize_decoded(&whole, &turned, 0, width, height, tap);
                CHECK(tap, largest_difference(&small, &whole) <= 3);
                bytes_free(&turned);
                image_free(&small);
                image_free(&whole);
            }
            bytes_free(&jpeg);
            image_free(&slope);
        }
    });
}

static void test_exif(struct tap *tap) {
    TEST(tap, "EXIF orientations 1 to 8 are turned upright, in either byte order", {
        struct image stored = {0};
        struct image plain = {0};
        struct image upright = {0};
        struct bytes jpeg = {0};
        draw(&stored, 48, 30, 3);
        encode(&jpeg, &stored, CODEC_JPEG);
        decode(&plain, jpeg.data, jpeg.size, NULL);
        for (int o = 1; o <= 8; o++) {
            struct bytes turned = {0};
            jpeg_with_exif(&turned, &jpeg, o);
            CHECK_INT(tap, decode(&upright, turned.data, turned.size, NULL), STATUS_OK);
            CHECK_INT(tap, upright.width, o >= 5 ? 30 : 48);
            CHECK_INT(tap, upright.height, o >= 5 ? 48 : 30);
            int wrong = 0;
            for (int y = 0; y < upright.height; y++)
                for (int x = 0; x < upright.width; x++) {
                    int column;
                    int row;
                    stored_at(o, x, y, upright.width, upright.height, &column, &row);
                    wrong += memcmp(upright.u8 + (y * upright.width + x) * 3,
                                    plain.u8 + (row * 48 + column) * 3, 3) != 0;
                }
            CHECK_INT(tap, wrong, 0);
            struct decode_options small = {.least_width = o >= 5 ? 8 : 24,
                                           .least_height = o >= 5 ? 24 : 8};
            CHECK_INT(tap, image_decode(&upright, turned.data, turned.size, &small, NULL), 0);
            CHECK_INT(tap, o >= 5 ? upright.height : upright.width, 24);
            bytes_free(&turned);
        }
        image_free(&stored);
        image_free(&plain);
        image_free(&upright);
        bytes_free(&jpeg);
    });
    TEST(tap, "an EXIF block cut or damaged anywhere leaves the picture as it is stored", {
        struct image stored = {0};
        struct image got = {0};
        struct bytes jpeg = {0};
        draw(&stored, 48, 30, 3);
        encode(&jpeg, &stored, CODEC_JPEG);
        struct bytes turned = {0};
        jpeg_with_exif(&turned, &jpeg, 6);
        for (size_t at = 12; at < 30; at++) { // up to the value
            turned.data[at] ^= 0x55;
            CHECK_INT(tap, decode(&got, turned.data, turned.size, NULL), STATUS_OK);
            bool kept = got.width == 48 && got.height == 30;
            bool turned_still = got.width == 30 && got.height == 48; // a byte that does not matter
            CHECK(tap, kept || turned_still);
            turned.data[at] ^= 0x55;
        }
        image_free(&stored);
        image_free(&got);
        bytes_free(&jpeg);
        bytes_free(&turned);
    });
}

// --- PNM --------------------------------------------------------------------------------

static void test_pnm(struct tap *tap) {
    static const struct {
        const char *name, *text;
        size_t size;
        int channels;
        uint8_t values[6];
    } cases[] = {
        {"P1, bits without spaces, comments",
         "P1\n# a\n3 #b\n 2\n101\n0 1#c\n1\n",
         0,
         1,
         {0, 255, 0, 255, 0, 0}},
        {"P2, maxval 4", "P2 3 2 4\n0 1 2\n3 4 0\n", 0, 1, {0, 64, 128, 191, 255, 0}},
        {"P3 without a final newline", "P3 2 1 255 1 2 3 4 5 6", 0, 3, {1, 2, 3, 4, 5, 6}},
        {"P3, maxval 65535",
         "P3 2 1 65535 0 65535 32768 128 129 257",
         0,
         3,
         {0, 255, 128, 0, 1, 1}},
        {"P4, rows end at a byte", "P4\n3 2\n\xa5\x7f", 0, 1, {0, 255, 0, 255, 0, 0}},
        {"P5, maxval 100", "P5 3 2 100\n\x00\x64\x32\x01\x02\x03", 17, 1, {0, 255, 128, 3, 5, 8}},
        {"P5, 16 bits", "P5 2 1 1000\n\x03\xe8\x01\xf4", 0, 1, {255, 128}},
        {"P6, comment right after the maxval",
         "P6 2 1 255#x\n\x01\x02\x03\x04\x05\x06",
         0,
         3,
         {1, 2, 3, 4, 5, 6}},
        {"P6, 16 bits", "P6 1 1 65535\n\xff\xff\x80\x00\x01\x01", 0, 3, {255, 128, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size = cases[i].size ? cases[i].size : strlen(cases[i].text);
        if (!strncmp(cases[i].text, "P6 1 1 65535", 12))
            size = 13 + 6;
        char name[80];
        snprintf(name, sizeof name, "PNM: %s", cases[i].name);
        TEST(tap, name, {
            struct image image = {0};
            struct error err = {0};
            CHECK_INT(tap, decode(&image, cases[i].text, size, &err), STATUS_OK);
            CHECK_INT(tap, image.channels, cases[i].channels);
            for (size_t v = 0; image.u8 && v < image_values(&image); v++)
                CHECK_INT(tap, image.u8[v], cases[i].values[v]);
            image_free(&image);
        });
    }
}

static void test_pnm_refused(struct tap *tap) {
    static const char *const cases[][2] = {
        {"P5 2 2 0\nabcd", "PNM: the maxval is 0"},
        {"P5 2 2 70000\nabcd", "PNM: byte 7: the maxval is more than 65535"},
        {"P5 x 2 255\nabcd", "PNM: byte 3: no width"},
        {"P5 2 -2 255\nabcd", "PNM: byte 5: no height"},
        {"P5 0 2 255\nabcd", "0x2 pixels: the picture is empty"},
        {"P2 2 1 9\n1 10\n", "PNM: byte 11: the value is more than 9"},
        {"P5 2 1 9\n\x09\x0a", "PNM: byte 10: the value 10 is more than the maxval 9"},
        {"P1 2 1\n12\n", "PNM: byte 8: no bit"},
        {"P5 2 2 255\nabc", "truncated PNM"},
        {"P5 2 2 255x\nabcd", "PNM: byte 10: no white space after the header"},
        {"P5 60000 60000 255\n", "60000x60000 pixels are more than the limit of 100000000"},
        {"P5 70000 1 255\n", "70000x1 pixels: a side is longer than 65535"},
        {"P5 99999999999999999999 1 255\n", "PNM: byte 3: the width is more than 999999999"},
        {"P7 2 2 255\n", "neither JPEG, PNG nor PNM"},
        {"", "empty, no picture"},
    };
    TEST(tap, "PNM that is wrong is refused with the reason", {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct image image = {0};
            struct error err = {0};
            CHECK_INT(tap, decode(&image, cases[i][0], strlen(cases[i][0]), &err), STATUS_DATA);
            CHECK_TEXT(tap, err.text, cases[i][1]);
            image_free(&image);
        }
    });
}

static void test_pnm_stream(struct tap *tap) {
    static const char stream[] =
        "P2 2 1 9 1 9\nP5 2 1 255\nabP1 2 1 10\nP4 2 1\n\x80P6 1 1 255\nabc";
    static const size_t lengths[] = {12, 13, 9, 8, 14};
    const size_t size = sizeof stream - 1;
    TEST(tap, "a stream of pictures is taken apart one by one", {
        struct image image = {0};
        size_t at = 0;
        for (int i = 0; i < 5; i++) {
            size_t used = 0;
            CHECK_INT(tap, pnm_decode(&image, stream + at, size - at, &used, &plain_options, NULL),
                      STATUS_OK);
            CHECK_INT(tap, used, lengths[i]);
            at += used;
            while (at < size && stream[at] == '\n') // behind a plain picture
                at++;
        }
        CHECK_INT(tap, at, size);
        image_free(&image);
    });
}

int main(void) {
    struct tap tap = {0};
    test_png(&tap);
    test_jpeg_colours(&tap);
    test_jpeg_kinds(&tap);
    test_jpeg_scale(&tap);
    test_exif(&tap);
    test_fractions(&tap);
    test_pnm(&tap);
    test_pnm_refused(&tap);
    test_pnm_stream(&tap);
    return tap_done(&tap);
}
