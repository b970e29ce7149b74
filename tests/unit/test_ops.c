// Chains of operations: what is accepted, where mistakes are, what comes out.
// A picture whose values are its own coordinates shows where each pixel of a
// result was taken from.
#include <math.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/random.h"
#include "ops/op.h"

static const double RADIANS = 3.14159265358979323846 / 180;

static struct ops *parsed(struct tap *tap, const char *text) {
    struct error err = {0};
    struct ops *ops = NULL;
    size_t offset, length;
    if (ops_parse(&ops, text, 0, &offset, &length, &err))
        FAIL(tap, "'%s' is refused: %s", text, err.text);
    return ops;
}

// Applies `text` to the picture; the status of ops_apply.
static int apply(struct tap *tap, const char *text, struct image *image, uint64_t key,
                 struct error *err) {
    struct ops *ops = parsed(tap, text);
    struct ops_scratch *scratch = ops_scratch_new();
    int status = ops ? ops_apply(ops, scratch, image, (struct ops_draw){7, 3, key}, err) : -1;
    ops_scratch_free(scratch);
    ops_free(ops);
    return status;
}

static void must(struct tap *tap, const char *text, struct image *image, uint64_t key) {
    struct error err = {0};
    if (apply(tap, text, image, key, &err))
        FAIL(tap, "'%s' fails: %s", text, err.text);
}

static void noise_image(struct image *image, int w, int h, int channels, enum pixel type) {
    struct random random = random_stream(11, (uint64_t)w, (uint64_t)h);
    image_shape(image, w, h, channels, type, NULL);
    for (size_t i = 0; i < image_values(image); i++)
        if (type == PIXEL_U8)
            image->u8[i] = (uint8_t)random_u32(&random);
        else
            image->f32[i] = random_unit(&random);
}

// Channel 0 is x, channel 1 is y.
static void coordinates(struct image *image, int w, int h) {
    image_shape(image, w, h, 2, PIXEL_F32, NULL);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            image->f32[2 * (y * w + x)] = (float)x;
            image->f32[2 * (y * w + x) + 1] = (float)y;
        }
}

static double x_at(const struct image *image, int x, int y) {
    return (double)image->f32[2 * (y * image->width + x)];
}

static double y_at(const struct image *image, int x, int y) {
    return (double)image->f32[2 * (y * image->width + x) + 1];
}

// Where (x, y) of the result of `text` was taken from, in a w x h picture.
static void came_from(struct tap *tap, const char *text, int w, int h, int x, int y,
                      double wanted_x, double wanted_y) {
    struct image image = {0};
    coordinates(&image, w, h);
    must(tap, text, &image, 0);
    double got_x = x_at(&image, x, y), got_y = y_at(&image, x, y);
    if (fabs(got_x - wanted_x) > 1e-3 || fabs(got_y - wanted_y) > 1e-3)
        FAIL(tap, "'%s': (%d, %d) is taken from (%g, %g), not (%g, %g)", text, x, y, got_x, got_y,
             wanted_x, wanted_y);
    image_free(&image);
}

static bool same(const struct image *a, const struct image *b) {
    return a->width == b->width && a->height == b->height && a->channels == b->channels &&
           a->type == b->type && memcmp(a->data, b->data, image_bytes(a)) == 0;
}

// Parsing

static void test_accepted(struct tap *tap) {
    static const struct {
        const char *text;
        bool random;
    } chains[] = {
        {"", false},
        {" ; ;; ", false},
        {"resize 36; crop 32 random; hflip p=0.5; rotate 15", true},
        {"scale 1/255; mean 0.1307; std 0.3081", false},
        {"elastic alpha=34 sigma=4", true},
        {"translate 2; rotate 10", true},
        {"gray", false},
        {"affine rotate=10 scale=0.9..1.1 shear=5", true},
        {"brightness 0.2", true},
        {"cutout 8", true},
        {"noise 0.02", true},
        {"rotate =15;", false},
        {"rotate -5..20", true},
        {"rotate 15..15", false},
        {"rotate 15 p=0", false},
        {"hflip", false},
        {"hflip p=1", false},
        {"\thflip\n p=0.5 ;\r\nvflip", true},
        {"affine rotate==30 scale==2", false},
        {"affine", false},
        {"crop 32x24 center", false},
        {"resize 64x48 fill filter=lanczos", false},
        {"translate x=3", true},
        {"translate x==3 y=-2..-2", false},
        {"pad 4x2 border=reflect", false},
        {"mean 0.4914,0.4822,0.4465; std 0.2470,0.2435,0.2616", false},
        {"noise =0.1 p=0.25", true},
        {"solarize 0.5; posterize 3; autocontrast; equalize", false},
        {"solarize 0.5..1", true},
        {"shear x=10", true},
        {"shear x==10 y==-3", false},
        {"perspective 0.5", true},
        {"hue 20", true},
        {"randaugment", true},
        {"randaugment 1 0", true},
        {"erase area=0.1 aspect=1", true},
        {"erase noise p=0", false},
        {"blur 0.1..2", true},
        {"blur 1.5; sharpness =2", false},
        {"sharpness 0.9", true},
        {"hue =20", false},
    };
    TEST(tap, "chains are read, and known to draw numbers or not", {
        for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
            struct ops *ops = parsed(tap, chains[i].text);
            if (!ops)
                continue;
            if (ops_random(ops) != chains[i].random)
                FAIL(tap, "'%s' counts as %s", chains[i].text,
                     chains[i].random ? "fixed" : "random");
            ops_free(ops);
        }
    });
}

static void test_mistakes(struct tap *tap) {
    static const struct {
        const char *text;
        size_t offset, length;
        const char *message;
    } mistakes[] = {
        {"rotat 5", 0, 5, "unknown operation 'rotat'; did you mean 'rotate'?"},
        {"gray; xyzzy", 6, 5, "unknown operation 'xyzzy'"},
        {"grey", 0, 4, "unknown operation 'grey'; did you mean 'gray'?"},
        {"gray hflip", 5, 5, "gray: 'hflip' is one value too many"},
        {"hflip; affine rotat=3", 14, 5,
         "affine: unknown parameter 'rotat'; did you mean 'rotate'?"},
        {"hflip P=0.5", 6, 1, "hflip: unknown parameter 'P'; did you mean 'p'?"},
        {"  crop ;", 2, 4, "crop: SIZE is missing; it is written 'crop SIZE [PLACE]'"},
        {"crop 0", 5, 1,
         "crop: SIZE is '0', not N or WIDTHxHEIGHT with whole numbers from 1 to 65535"},
        {"crop 3x", 5, 2,
         "crop: SIZE is '3x', not N or WIDTHxHEIGHT with whole numbers from 1 to 65535"},
        {"crop 3x4x5", 5, 5,
         "crop: SIZE is '3x4x5', not N or WIDTHxHEIGHT with whole numbers from 1 to 65535"},
        {"crop 65536", 5, 5,
         "crop: SIZE is '65536', not N or WIDTHxHEIGHT with whole numbers from 1 to 65535"},
        {"crop 8 randm", 7, 5,
         "crop: PLACE is 'randm', not one of centre, center, random; did you mean 'random'?"},
        {"crop 8 random 9", 14, 1, "crop: '9' is one value too many"},
        {"resize 8 filter=cubic", 16, 5,
         "resize: filter is 'cubic', not one of area, bilinear, lanczos"},
        {"hflip p=2", 8, 1, "hflip: p is '2', not a number from 0 to 1"},
        {"hflip p=", 8, 0, "hflip: p is '', not a number from 0 to 1"},
        {"hflip p=0.5 p=0.5", 12, 5, "hflip: p is given twice"},
        {"affine shear=1 shear=2", 15, 7, "affine: shear is given twice"},
        {"rotate 5..-5", 7, 5,
         "rotate: DEGREES is '5..-5', not N for -N..N, a range A..B, or =N for exactly N, from "
         "-360 "
         "to 360"},
        {"rotate -5", 7, 2,
         "rotate: DEGREES is '-5', not N for -N..N, a range A..B, or =N for exactly N, from -360 "
         "to "
         "360"},
        {"rotate nan", 7, 3,
         "rotate: DEGREES is 'nan', not N for -N..N, a range A..B, or =N for exactly N, from -360 "
         "to 360"},
        {"translate 1.5", 10, 3,
         "translate: PIXELS is '1.5', not N for -N..N, a range A..B, or =N for exactly N, in whole "
         "pixels from -65535 to 65535"},
        {"brightness 1.5", 11, 3,
         "brightness: FACTOR is '1.5', not N for 1-N..1+N, a range A..B, or =N for exactly N, from "
         "0 to 100"},
        {"noise -1", 6, 2,
         "noise: DEVIATION is '-1', not a number N, or a range A..B, from 0 to 100"},
        {"cutout 8 count=1.5", 15, 3, "cutout: count is '1.5', not a whole number from 1 to 1000"},
        {"std 0", 4, 1,
         "std: DEVIATION is '0', not one number, or one for each channel separated by commas, each "
         "from 1e-09 to 1e+09"},
        {"mean 1,,2", 5, 4,
         "mean: MEAN is '1,,2', not one number, or one for each channel separated by commas, each "
         "from -1e+09 to 1e+09"},
        {"elastic sigma=0", 14, 1,
         "elastic: sigma is '0', not a number N, or a range A..B, from 0.1 to 100"},
        {"hue 200", 4, 3,
         "hue: DEGREES is '200', not N for -N..N, a range A..B, or =N for exactly N, from -180 to "
         "180"},
        {"blur 0", 5, 1, "blur: SIGMA is '0', not a number N, or a range A..B, from 0.1 to 100"},
        {"sharpness 1.5", 10, 3,
         "sharpness: FACTOR is '1.5', not N for 1-N..1+N, a range A..B, or =N for exactly N, from "
         "0 to 100"},
        {"erase nois", 6, 4,
         "erase: WITH is 'nois', not one of fill, noise; did you mean 'noise'?"},
        {"erase area=0.1..1.5", 11, 8,
         "erase: area is '0.1..1.5', not a number N, or a range A..B, from 0 to 1"},
        {"erase aspect=0", 13, 1,
         "erase: aspect is '0', not a number N, or a range A..B, from 0.001 to 1000"},
        {"shear 10", 6, 2, "shear: '10' is one value too many"},
        {"shear y=85", 8, 2,
         "shear: y is '85', not N for -N..N, a range A..B, or =N for exactly N, from -80 to 80"},
        {"perspective 0.7", 12, 3,
         "perspective: DISTORTION is '0.7', not a number N, or a range A..B, from 0 to 0.6"},
        {"randaugment 0", 12, 1, "randaugment: N is '0', not a whole number from 1 to 100"},
        {"randaugment 2 31", 14, 2,
         "randaugment: M is '31', not a number N, or a range A..B, from 0 to 30"},
        {"posterize 0", 10, 1, "posterize: BITS is '0', not a whole number from 1 to 8"},
        {"posterize 2..4", 10, 4, "posterize: BITS is '2..4', not a whole number from 1 to 8"},
        {"solarize 128", 9, 3,
         "solarize: THRESHOLD is '128', not a number N, or a range A..B, from 0 to 1"},
        {"rot\033[31m", 0, 8, "unknown operation 'rot?[31m'"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0, 70,
         "unknown operation 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'"},
    };
    TEST(tap, "every mistake is named, with its place and what was perhaps meant", {
        for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
            struct error err = {0};
            struct ops *ops;
            size_t offset = 99, length = 99;
            CHECK_INT(tap, ops_parse(&ops, mistakes[i].text, 0, &offset, &length, &err),
                      STATUS_USAGE);
            CHECK(tap, ops == NULL);
            CHECK_TEXT(tap, err.text, mistakes[i].message);
            if (offset != mistakes[i].offset || length != mistakes[i].length)
                FAIL(tap, "'%s': at %zu+%zu", mistakes[i].text, offset, length);
        }
    });
    TEST(tap, "where chance is not allowed, the operation that draws is pointed at", {
        struct error err = {0};
        struct ops *ops;
        size_t offset, length;
        CHECK_INT(tap,
                  ops_parse(&ops, "gray; rotate 15 fill=3 ; hflip", OPS_DETERMINISTIC, &offset,
                            &length, &err),
                  STATUS_USAGE);
        CHECK(tap, offset == 6 && length == 16);
        CHECK_TEXT(tap, err.text,
                   "rotate: 'rotate 15 fill=3' draws random numbers, and here every picture must "
                   "always come out the same");
        CHECK_INT(tap,
                  ops_parse(&ops, "resize 8; rotate =15; crop 4; hflip", OPS_DETERMINISTIC, &offset,
                            &length, &err),
                  STATUS_OK);
        ops_free(ops);
    });
}

static void test_hostile(struct tap *tap) {
    static const char alphabet[] = "resizecoptaffine 0123456789x=.;,-+/p\t\n\"'\\\001\377";
    TEST(tap, "no text harms the parser, and a mistake lies within the text", {
        struct random random = random_stream(12, 0, 0);
        for (int i = 0; i < 50000; i++) {
            char text[64];
            size_t n = random_below(&random, sizeof text);
            for (size_t j = 0; j < n; j++)
                text[j] = alphabet[random_below(&random, sizeof alphabet - 1)];
            text[n] = 0;
            if (i % 3 == 0 && n > 20)
                memcpy(text, "affine scale=", 13);
            struct error err = {0};
            struct ops *ops;
            size_t offset, length;
            int status = ops_parse(&ops, text, 0, &offset, &length, &err);
            CHECK(tap, status == STATUS_OK || status == STATUS_USAGE);
            CHECK(tap, !status || (offset + length <= n && err.text[0]));
            ops_free(ops);
        }
    });
}

// The table

static void test_table(struct tap *tap) {
    TEST(tap, "the table is whole: names once, parameters in the synopsis, defaults readable", {
        size_t count;
        const struct op_info *table = ops_table(&count);
        for (size_t i = 0; i < count; i++) {
            CHECK(tap, table[i].parameter_count <= OP_VALUES_MOST);
            CHECK(tap, strncmp(table[i].synopsis, table[i].name, strlen(table[i].name)) == 0);
            CHECK(tap, table[i].what[0] && table[i].code && table[i].code->apply);
            for (size_t j = 0; j < i; j++)
                CHECK(tap, strcmp(table[i].name, table[j].name) != 0);
            char text[200];
            int used = snprintf(text, sizeof text, "%s", table[i].name);
            for (size_t j = 0; j < table[i].parameter_count; j++) {
                const struct op_parameter *p = &table[i].parameters[j];
                CHECK(tap, strstr(table[i].synopsis, p->name ? p->name : p->value));
                CHECK(tap, (p->kind == OP_WORD) == (p->words != NULL));
                if (p->name && p->default_text && *p->default_text)
                    used += snprintf(text + used, sizeof text - (size_t)used, " %s=%s", p->name,
                                     p->default_text);
                // What one of several must be given for is a number here.
                if (!p->name && (!p->default_text || p->kind == OP_LIST))
                    used +=
                        snprintf(text + used, sizeof text - (size_t)used, " %g", fmin(1, p->high));
            }
            ops_free(parsed(tap, text));
        }
    });
}

// Shapes

static void test_shapes(struct tap *tap) {
    static const char *const chains[] = {
        "resize 36",
        "resize 36 fit",
        "resize 36 fill",
        "resize 36 exact",
        "resize 20x30",
        "resize 20x30 fit",
        "resize 20x30 fill",
        "resize 200x3 exact",
        "crop 16 random",
        "crop 100",
        "pad 4x2; crop 40",
        "gray; pad 1",
        "gray p=0.5",
        "resize 1; pad 3",
        "mean 1,2,3",
        "resize 36; crop 32 random; hflip",
        "rotate 10",
        "elastic sigma=1",
        "resize 30x40 fill; crop 10; resize 7",
    };
    static const int sizes[][2] = {{48, 36}, {36, 48}, {10, 200}, {36, 36}, {1, 1}, {300, 299}};
    struct image image = {0};
    TEST(tap, "the shape is foretold, or the chain fails", {
        for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
            for (int s = 0; s < 6; s++)
                for (int c = 1; c <= 3; c += 2) {
                    int w = sizes[s][0], h = sizes[s][1], channels = c;
                    struct ops *ops = parsed(tap, chains[i]);
                    bool known = ops_shape(ops, &w, &h, &channels);
                    ops_free(ops);
                    noise_image(&image, sizes[s][0], sizes[s][1], c, PIXEL_U8);
                    int status = apply(tap, chains[i], &image, 1, NULL);
                    if (known != (status == STATUS_OK))
                        FAIL(tap, "'%s' of %dx%dx%d: %d", chains[i], c, sizes[s][1], sizes[s][0],
                             status);
                    else if (known &&
                             (image.width != w || image.height != h || image.channels != channels))
                        FAIL(tap, "'%s' of %dx%d gives %dx%d, not %dx%d", chains[i], sizes[s][0],
                             sizes[s][1], image.width, image.height, w, h);
                }
    });
    TEST(tap, "a shape that hangs on chance is not foretold", {
        static const char *const open[] = {"crop 8 p=0.5", "pad 2 p=0.1", "resize 9 p=0.9"};
        for (int i = 0; i < 3; i++) {
            int w = 30, h = 30, c = 3;
            struct ops *ops = parsed(tap, open[i]);
            CHECK(tap, !ops_shape(ops, &w, &h, &c));
            ops_free(ops);
        }
    });
    TEST(tap, "resize keeps the aspect as its mode says", {
        static const struct {
            const char *text;
            int w, h;
        } wanted[] = {
            {"resize 50", 100, 50},          {"resize 50 fit", 50, 25},
            {"resize 50 fill", 50, 50},      {"resize 50x60", 50, 60},
            {"resize 60x60 fit", 60, 30},    {"resize 300x20 fill", 300, 20},
            {"resize 1000x50 fit", 100, 50}, {"resize 3 exact", 3, 3},
        };
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            int w = 200, h = 100, c = 3;
            struct ops *ops = parsed(tap, wanted[i].text);
            CHECK(tap, ops_shape(ops, &w, &h, &c));
            CHECK_INT(tap, w, wanted[i].w);
            CHECK_INT(tap, h, wanted[i].h);
            ops_free(ops);
        }
    });
    TEST(tap, "only a resize in front allows decoding at a smaller size", {
        static const struct {
            const char *text;
            int w, h;
        } wanted[] = {
            {"resize 50", 50, 50},        {"resize 50x20 fill; gray", 50, 20},
            {"resize 50x20 fit", 50, 20}, {"crop 30; resize 9", 0, 0},
            {"resize 50 p=0.5", 0, 0},    {"", 0, 0},
        };
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            struct decode_options options = {0};
            struct ops *ops = parsed(tap, wanted[i].text);
            ops_decode_hint(ops, &options);
            CHECK_INT(tap, options.least_width, wanted[i].w);
            CHECK_INT(tap, options.least_height, wanted[i].h);
            ops_free(ops);
        }
    });
    TEST(tap, "what does not fit says so", {
        static const struct {
            const char *text, *message;
        } wanted[] = {
            {"crop 49", "crop: 49x49 does not fit into a picture of 48x36; resize or pad it first"},
            {"mean 1,2", "mean: 2 values for a picture of 3 channels"},
            {"pad 40000", "pad: a result of 80048x80036 pixels is too large (at most 65535 a side "
                          "and 100000000 in all)"},
            {"resize 20000x20000", "resize: a result of 20000x20000 pixels is too large (at most "
                                   "65535 a side and 100000000 in all)"},
        };
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            struct error err = {0};
            noise_image(&image, 48, 36, 3, PIXEL_U8);
            CHECK_INT(tap, apply(tap, wanted[i].text, &image, 0, &err), STATUS_DATA);
            CHECK_TEXT(tap, err.text, wanted[i].message);
        }
        struct error err = {0};
        noise_image(&image, 8, 8, 2, PIXEL_U8);
        CHECK_INT(tap, apply(tap, "gray", &image, 0, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "gray: a picture of 2 channels has no gray");
    });
    image_free(&image);
}

// Geometry

static void test_places(struct tap *tap) {
    double c = cos(30 * RADIANS), s = sin(30 * RADIANS), lean = tan(20 * RADIANS);
    TEST(tap, "each geometric operation takes pixels from where it should", {
        came_from(tap, "hflip", 20, 10, 3, 4, 16, 4);
        came_from(tap, "vflip", 20, 10, 3, 4, 3, 5);
        came_from(tap, "translate x==3 y==-2", 20, 10, 7, 4, 4, 6);
        came_from(tap, "translate =2 fill=-1", 20, 10, 1, 4, -1, -1);
        came_from(tap, "translate =2 border=edge", 20, 10, 0, 5, 0, 3);
        came_from(tap, "translate =2 border=reflect", 20, 10, 0, 5, 1, 3);
        came_from(tap, "crop 10x4", 21, 11, 2, 1, 7, 4);
        came_from(tap, "pad 3x2 border=reflect", 20, 10, 1, 0, 1, 1);
        came_from(tap, "pad 3 fill=9", 20, 10, 1, 5, 9, 9);
        // counterclockwise: what is right of the centre goes up, so the right shows what was below
        came_from(tap, "rotate =90", 21, 21, 15, 10, 10, 15);
        came_from(tap, "rotate =30", 41, 41, 30, 20, 20 + 10 * c, 20 + 10 * s);
        came_from(tap, "rotate =30", 41, 41, 20, 10, 20 + 10 * s, 20 - 10 * c);
        came_from(tap, "affine scale==2", 41, 41, 30, 20, 25, 20);
        // lines lean to the right: the top shows what was left of it
        came_from(tap, "affine shear==20", 41, 41, 20, 10, 20 - 10 * lean, 10);
        came_from(tap, "shear x==20", 41, 41, 20, 10, 20 - 10 * lean, 10);
        // and down: the right shows what was above it
        came_from(tap, "shear y==20", 41, 41, 30, 20, 30, 20 - 10 * lean);
        came_from(tap, "shear x==20 y==20", 41, 41, 30, 20, 30 - 10 * lean * lean, 20 - 10 * lean);
        came_from(tap, "affine rotate==30 scale==2", 41, 41, 30, 20, 20 + 5 * c, 20 + 5 * s);
    });
    TEST(tap, "perspective joins the map before it, with one interpolation", {
        // A picture of coordinates is linear, so interpolating it twice is harmless inside.
        struct image one = {0}, two = {0};
        coordinates(&one, 40, 40);
        must(tap, "translate 0; perspective 0.4", &one, 5);
        coordinates(&two, 40, 40);
        must(tap, "rotate =30; perspective 0.4", &two, 5);
        double u = x_at(&one, 20, 18) - 19.5, v = y_at(&one, 20, 18) - 19.5;
        CHECK(tap, fabs(u - 0.5) + fabs(v + 1.5) > 0.05); // it does move
        CHECK_NEAR(tap, x_at(&two, 20, 18), 19.5 + c * u - s * v, 1e-3);
        CHECK_NEAR(tap, y_at(&two, 20, 18), 19.5 + s * u + c * v, 1e-3);
        image_free(&one);
        image_free(&two);
    });
    TEST(tap, "operations in a row are one mapping, as if nothing were lost in between", {
        came_from(tap, "translate =3; rotate =30; hflip; crop 20", 41, 41, 5, 10, 20 + 5 * c - 3,
                  20 + 5 * s - 3);
        came_from(tap, "translate =30; translate =-30; rotate =0", 41, 41, 5, 10, 5, 10);
        came_from(tap, "affine scale==0.5; affine scale==2", 41, 41, 0, 0, 0, 0);
    });
    TEST(tap, "behind a crop or a pad, and with another border, the frame counts", {
        came_from(tap, "crop 11; translate =3 fill=-5", 41, 41, 1, 5, -5, -5);
        came_from(tap, "pad 2 fill=7; translate =3 border=edge", 41, 41, 0, 20, 7, 7);
        came_from(tap, "translate =3 fill=5; translate =3 fill=6", 41, 41, 1, 20, 6, 6);
        came_from(tap, "translate =3 fill=5; translate =3 fill=6", 41, 41, 4, 20, 5, 5);
    });
}

static void test_exactness(struct tap *tap) {
    static const char *const nothing[] = {
        "hflip; hflip",   "vflip; rotate =180; hflip",
        "rotate =0",      "rotate =360",
        "affine",         "translate 0; crop 30x30",
        "pad 5; crop 30", "rotate =90; rotate =-90",
        "resize 30",      "elastic alpha=0",
        "brightness =1",  "contrast =1",
        "saturation =1",  "invert; invert",
        "noise 0",        "rotate 15 p=0",
        "posterize 8",    "solarize 0; invert",
        "hue 0",          "sharpness =1",
        "shear",          "perspective 0",
        "blur 0.1",       "erase area=0 noise",
    };
    struct image image = {0}, first = {0};
    TEST(tap, "what does nothing changes no byte", {
        for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
            for (int c = 1; c <= 3; c += 2) {
                noise_image(&first, 30, 30, c, PIXEL_U8);
                image_copy(&image, &first, NULL);
                must(tap, nothing[i], &image, 5);
                if (!same(&image, &first))
                    FAIL(tap, "'%s' changes a picture of %d channels", nothing[i], c);
            }
    });
    TEST(tap, "resize is image_resize, with its filter and place, and joins a crop", {
        static const struct {
            const char *text;
            enum filter filter;
            int full_w, full_h, left, top, w, h;
        } chains[] = {
            {"resize 20", FILTER_AREA, 30, 20, 0, 0, 30, 20},
            {"resize 20 filter=lanczos", FILTER_LANCZOS, 30, 20, 0, 0, 30, 20},
            {"resize 12x20 fill filter=bilinear", FILTER_BILINEAR, 30, 20, 9, 0, 12, 20},
            {"resize 30x10 fill", FILTER_AREA, 30, 20, 0, 5, 30, 10},
            {"resize 20; crop 8x6", FILTER_AREA, 30, 20, 11, 7, 8, 6},
            {"resize 20; crop 8x16; crop 8x6", FILTER_AREA, 30, 20, 11, 7, 8, 6},
            {"resize 30x10 fill; crop 8x6", FILTER_AREA, 30, 20, 11, 7, 8, 6},
        };
        struct image wanted = {0};
        for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
            noise_image(&first, 45, 30, 3, PIXEL_U8);
            CHECK_INT(tap,
                      image_resize(&wanted, &first, chains[i].filter, chains[i].full_w,
                                   chains[i].full_h, chains[i].left, chains[i].top, chains[i].w,
                                   chains[i].h, NULL),
                      STATUS_OK);
            must(tap, chains[i].text, &first, 0);
            if (!same(&first, &wanted))
                FAIL(tap, "'%s' is another picture", chains[i].text);
        }
        image_free(&wanted);
    });
    TEST(tap, "elastic joins the map before it, with one interpolation", {
        // A picture of coordinates is linear, so interpolating it twice is harmless inside.
        struct image two = {0};
        coordinates(&image, 40, 40);
        must(tap, "rotate =30; elastic alpha=8 sigma=4", &image, 5);
        coordinates(&two, 40, 40);
        must(tap, "elastic alpha=0; elastic alpha=8 sigma=4", &two, 5);
        double u = x_at(&two, 20, 18) - 19.5, v = y_at(&two, 20, 18) - 19.5;
        double c = cos(30 * RADIANS), s = sin(30 * RADIANS);
        CHECK(tap, fabs(u - 0.5) + fabs(v + 1.5) > 0.05); // it does bend
        CHECK_NEAR(tap, x_at(&image, 20, 18), 19.5 + c * u - s * v, 1e-3);
        CHECK_NEAR(tap, y_at(&image, 20, 18), 19.5 + s * u + c * v, 1e-3);
        image_free(&two);
    });
    image_free(&image);
    image_free(&first);
}

// Chance

struct spread {
    double low, high, mean, deviation;
};

static struct spread spread_of(const double *v, int n) {
    struct spread s = {v[0], v[0], 0, 0};
    for (int i = 0; i < n; i++) {
        s.low = fmin(s.low, v[i]), s.high = fmax(s.high, v[i]);
        s.mean += v[i] / n;
    }
    for (int i = 0; i < n; i++)
        s.deviation += (v[i] - s.mean) * (v[i] - s.mean) / n;
    s.deviation = sqrt(s.deviation);
    return s;
}

// Uniform over [low, high]: ends nearly reached and never passed, mean, deviation.
static void check_uniform(struct tap *tap, const char *text, const double *v, int n, double low,
                          double high) {
    struct spread s = spread_of(v, n);
    double width = high - low, near = 0.01 * width, slack = 1e-4 * width + 1e-6;
    if (s.low < low - slack || s.low > low + near || s.high > high + slack ||
        s.high < high - near || fabs(s.mean - (low + high) / 2) > 0.03 * width ||
        fabs(s.deviation - width / sqrt(12)) > 0.02 * width)
        FAIL(tap, "'%s': %g..%g, mean %g, deviation %g", text, s.low, s.high, s.mean, s.deviation);
}

enum { DRAWS = 2000 };

// What each draw of a chain does to the point 12 right of the centre.
static void test_ranges(struct tap *tap) {
    static double angle[DRAWS], length[DRAWS];
    static const struct {
        const char *text;
        double low, high; // degrees
        double shortest, longest;
    } chains[] = {
        {"rotate 15", -15, 15, 12, 12},
        {"rotate -5..20", -5, 20, 12, 12},
        {"affine rotate=10 scale=0.25", -10, 10, 12 / 1.25, 12 / 0.75},
        {"affine scale=0.8..1.2 rotate=0..30", 0, 30, 12 / 1.2, 12 / 0.8},
    };
    struct image image = {0};
    TEST(tap, "angles and scales are uniform in their ranges", {
        for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
            for (int k = 0; k < DRAWS; k++) {
                coordinates(&image, 61, 61);
                must(tap, chains[i].text, &image, (uint64_t)k);
                double x = x_at(&image, 42, 30) - 30, y = y_at(&image, 42, 30) - 30;
                angle[k] = atan2(y, x) / RADIANS, length[k] = 12 / hypot(x, y);
            }
            check_uniform(tap, chains[i].text, angle, DRAWS, chains[i].low, chains[i].high);
            if (chains[i].shortest < chains[i].longest)
                check_uniform(tap, chains[i].text, length, DRAWS, 12 / chains[i].longest,
                              12 / chains[i].shortest);
        }
    });
    image_free(&image);
}

// How often each of `kinds` came up, against equal shares.
static void check_even(struct tap *tap, const char *text, const int *counts, int kinds) {
    double expected = (double)DRAWS / kinds, squares = 0;
    for (int i = 0; i < kinds; i++)
        squares += (counts[i] - expected) * (counts[i] - expected) / expected;
    // Chi squared: mean kinds - 1, deviation sqrt(2 (kinds - 1)); five deviations.
    if (squares > kinds - 1 + 5 * sqrt(2.0 * (kinds - 1)))
        FAIL(tap, "'%s': chi squared %g over %d kinds", text, squares, kinds);
}

static void test_whole_draws(struct tap *tap) {
    struct image image = {0};
    TEST(tap, "moves and crops are whole pixels, all equally likely", {
        static const struct {
            const char *text;
            int w, h, left, top; // the range of where the pixel (5, 5) of the result came from
        } chains[] = {
            {"translate 2", 5, 5, 3, 3},
            {"translate x=1..3 y=-1..0", 3, 2, 2, 5},
            {"translate 1 y==2", 3, 1, 4, 3},
            {"crop 16x14 random", 5, 7, 5, 5},
        };
        for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
            int counts[64] = {0};
            for (int k = 0; k < DRAWS; k++) {
                coordinates(&image, 20, 20);
                must(tap, chains[i].text, &image, (uint64_t)k);
                int x = (int)x_at(&image, 5, 5) - chains[i].left;
                int y = (int)y_at(&image, 5, 5) - chains[i].top;
                if (x < 0 || x >= chains[i].w || y < 0 || y >= chains[i].h)
                    FAIL(tap, "'%s': out of range: %d %d", chains[i].text, x, y);
                else
                    counts[y * chains[i].w + x]++;
            }
            check_even(tap, chains[i].text, counts, chains[i].w * chains[i].h);
        }
    });
    TEST(tap, "p is the share of pictures that are changed", {
        static const double shares[] = {0, 0.1, 0.5, 0.9, 1};
        for (int i = 0; i < 5; i++) {
            char text[40];
            int flipped = 0;
            snprintf(text, sizeof text, "hflip p=%g", shares[i]);
            for (int k = 0; k < DRAWS; k++) {
                coordinates(&image, 4, 1);
                must(tap, text, &image, (uint64_t)k);
                flipped += x_at(&image, 0, 0) == 3;
            }
            double deviation = sqrt(shares[i] * (1 - shares[i]) * DRAWS);
            CHECK_NEAR(tap, flipped, shares[i] * DRAWS, 5 * deviation);
        }
    });
    image_free(&image);
}

static void test_streams(struct tap *tap) {
    static const char *const chain =
        "translate 2; rotate 10; perspective 0.3; elastic alpha=20 sigma=3; crop 20 random; "
        "hflip p=0.5; brightness 0.3; hue 30; blur 0.5..1; sharpness 0.5; randaugment 3; "
        "noise 0.05; cutout 4; erase noise; scale 1/255";
    struct image a = {0}, b = {0};
    struct ops *ops = parsed(tap, chain);
    struct ops_scratch *used = ops_scratch_new();
    TEST(tap, "the result hangs on seed, epoch, key and chain, not on what was done before", {
        struct ops_draw draw = {1, 2, 3};
        struct ops_draw others[] = {{2, 2, 3}, {1, 3, 3}, {1, 2, 4}};
        noise_image(&a, 28, 28, 3, PIXEL_U8);
        CHECK_INT(tap, ops_apply(ops, used, &a, draw, NULL), STATUS_OK);
        for (int i = 0; i < 3; i++) {
            noise_image(&b, 28, 28, 3, PIXEL_U8);
            CHECK_INT(tap, ops_apply(ops, used, &b, others[i], NULL), STATUS_OK);
            CHECK(tap, !same(&a, &b));
        }
        struct ops_scratch *fresh = ops_scratch_new();
        noise_image(&b, 28, 28, 3, PIXEL_U8);
        CHECK_INT(tap, ops_apply(ops, fresh, &b, draw, NULL), STATUS_OK);
        CHECK(tap, same(&a, &b));
        ops_scratch_free(fresh);
    });
    TEST(tap, "and the processor's level changes no byte", {
        static const char *const levels[] = {"ref", "avx2", "avx512"};
        for (int i = 0; i < 3; i++) {
            setenv("ADAM_CPU", levels[i], 1);
            noise_image(&b, 28, 28, 3, PIXEL_U8);
            CHECK_INT(tap, ops_apply(ops, used, &b, (struct ops_draw){1, 2, 3}, NULL), STATUS_OK);
            CHECK(tap, same(&a, &b));
        }
        unsetenv("ADAM_CPU");
    });
    TEST(tap, "the same operation at two places draws twice", {
        int equal = 0;
        for (int k = 0; k < 200; k++) {
            coordinates(&a, 64, 8);
            must(tap, "crop 34x8 random; crop 4x8 random", &a, (uint64_t)k);
            // 31 places each; equal when the second crop starts where the first did
            double total = x_at(&a, 0, 0);
            equal += fmod(total, 2) == 0;
        }
        CHECK(tap, equal > 60 && equal < 140);
    });
    ops_scratch_free(used);
    ops_free(ops);
    image_free(&a);
    image_free(&b);
}

// Values

static int clamped(double v) {
    return (int)rint(v < 0 ? 0 : v > 255 ? 255 : v);
}

static double luma(const double *p) {
    return 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
}

// Each value op by its definition, in doubles, on pixel p of a picture with this mean luma.
static void by_definition(const char *text, double *p, int channels, double mean, double full) {
    double f = atof(strchr(text, '=') ? strchr(text, '=') + 1 : "0");
    double gray = channels == 3 ? luma(p) : p[0];
    for (int c = 0; c < channels; c++)
        if (text[0] == 'b')
            p[c] *= f;
        else if (text[0] == 'c')
            p[c] = mean + f * (p[c] - mean);
        else if (text[0] == 's')
            p[c] = gray + f * (p[c] - gray);
        else if (text[0] == 'i')
            p[c] = full - p[c];
        else
            p[c] = gray;
}

static void test_values(struct tap *tap) {
    static const char *const chains[] = {"brightness =1.4", "brightness =0.3", "contrast =1.7",
                                         "contrast =0",     "saturation =0.2", "saturation =2.5",
                                         "invert",          "gray p=0.999"};
    struct image from = {0}, to = {0};
    TEST(tap, "brightness, contrast, saturation, invert and gray are as defined", {
        for (int i = 0; i < 32; i++) {
            const char *text = chains[i % 8];
            int channels = i & 8 ? 1 : 3;
            enum pixel type = i & 16 ? PIXEL_F32 : PIXEL_U8;
            double full = type == PIXEL_U8 ? 255 : 1, mean = 0, worst = 0;
            noise_image(&from, 31, 17, channels, type);
            image_copy(&to, &from, NULL);
            must(tap, text, &to, 1);
            size_t pixels = 31 * 17;
            for (int pass = 0; pass < 2; pass++)
                for (size_t k = 0; k < pixels; k++) {
                    double p[3];
                    for (int c = 0; c < channels; c++) {
                        size_t at = k * (size_t)channels + (size_t)c;
                        p[c] = type == PIXEL_U8 ? from.u8[at] : (double)from.f32[at];
                    }
                    if (pass == 0) {
                        mean += (channels == 3 ? luma(p) : p[0]) / (double)pixels;
                        continue;
                    }
                    by_definition(text, p, channels, mean, full);
                    for (int c = 0; c < channels; c++) {
                        size_t at = k * (size_t)channels + (size_t)c;
                        double got = type == PIXEL_U8 ? to.u8[at] : (double)to.f32[at];
                        double wanted = type == PIXEL_U8 ? clamped(p[c]) : p[c];
                        worst = fmax(worst, fabs(got - wanted));
                    }
                }
            // bytes: luma is rounded before it is used, 1.5 times as much for saturation 2.5
            if (worst > (type == PIXEL_U8 ? 2 : 1e-5))
                FAIL(tap, "'%s', %d channels, type %d: off by %g", text, channels, (int)type,
                     worst);
        }
    });
    TEST(tap, "gray has one channel, or keeps three when it is left to chance", {
        noise_image(&to, 8, 8, 3, PIXEL_U8);
        must(tap, "gray", &to, 0);
        CHECK_INT(tap, to.channels, 1);
        int changed = 0;
        for (int k = 0; k < 200; k++) {
            noise_image(&to, 8, 8, 3, PIXEL_U8);
            must(tap, "gray p=0.5", &to, (uint64_t)k);
            CHECK_INT(tap, to.channels, 3);
            changed += to.u8[0] == to.u8[1] && to.u8[3] == to.u8[5] && to.u8[6] == to.u8[7];
        }
        CHECK(tap, changed > 60 && changed < 140);
    });
    TEST(tap, "normalising gives (v * scale - mean) / std per channel, as floats", {
        static const double mean[] = {0.5, 0.25, 0.125}, std[] = {0.5, 0.2, 0.1};
        noise_image(&from, 9, 7, 3, PIXEL_U8);
        image_copy(&to, &from, NULL);
        must(tap, "scale 1/255; mean 0.5,0.25,0.125; std 0.5,0.2,0.1", &to, 0);
        CHECK_INT(tap, to.type, PIXEL_F32);
        for (size_t i = 0; i < image_values(&to); i++)
            CHECK_NEAR(tap, to.f32[i], (from.u8[i] / 255.0 - mean[i % 3]) / std[i % 3], 1e-5);
    });
    TEST(tap, "normalising in any order, and twice, is done in that order", {
        noise_image(&from, 9, 7, 3, PIXEL_U8);
        image_copy(&to, &from, NULL);
        must(tap, "mean 3; scale 0.5,1,2; std 4; mean 1; scale 10", &to, 0);
        for (size_t i = 0; i < image_values(&to); i++)
            CHECK_NEAR(tap, to.f32[i], ((from.u8[i] - 3) * (i % 3 == 0 ? 0.5 : i % 3) / 4 - 1) * 10,
                       1e-3);
    });
    TEST(tap, "operations behind normalising work on its floats", {
        noise_image(&from, 30, 30, 3, PIXEL_U8);
        image_copy(&to, &from, NULL);
        must(tap, "scale 1/255; invert; hflip; std 2; crop 30; mean -1", &to, 0);
        for (int i = 0; i < 3; i++)
            CHECK_NEAR(tap, to.f32[i], (1 - from.u8[29 * 3 + i] / 255.0) / 2 + 1, 1e-6);
    });
    image_free(&from);
    image_free(&to);
}

static void test_noise(struct tap *tap) {
    static double v[300 * 300];
    struct image image = {0};
    TEST(tap, "noise is normal, with the deviation asked for, on bytes and on floats", {
        for (int type = PIXEL_U8; type <= PIXEL_F32; type++) {
            image_shape(&image, 300, 300, 1, (enum pixel)type, NULL);
            int n = 300 * 300, beyond = 0;
            for (int i = 0; i < n; i++)
                if (type == PIXEL_U8)
                    image.u8[i] = 128;
                else
                    image.f32[i] = 0.5f;
            must(tap, "noise 0.05", &image, 3);
            for (int i = 0; i < n; i++)
                v[i] = type == PIXEL_U8 ? (image.u8[i] - 128) / 255.0 : (double)image.f32[i] - 0.5;
            struct spread s = spread_of(v, n);
            CHECK_NEAR(tap, s.mean, 0, 0.001);
            CHECK_NEAR(tap, s.deviation, 0.05, 0.001);
            for (int i = 0; i < n; i++)
                beyond += fabs(v[i]) > 0.1;
            CHECK_NEAR(tap, (double)beyond / n, 0.0455, 0.006); // two deviations
        }
    });
    TEST(tap, "noise stays within a byte", {
        noise_image(&image, 30, 30, 1, PIXEL_U8);
        must(tap, "noise 100", &image, 3);
        int extreme = 0;
        for (int i = 0; i < 900; i++)
            extreme += image.u8[i] == 0 || image.u8[i] == 255;
        CHECK(tap, extreme > 850);
    });
    image_free(&image);
}

static void test_cutout(struct tap *tap) {
    struct image image = {0};
    TEST(tap, "cutout blanks one rectangle around a centre inside the picture", {
        int centres[4] = {0};
        for (int k = 0; k < DRAWS; k++) {
            image_shape(&image, 24, 20, 1, PIXEL_U8, NULL);
            memset(image.u8, 200, 24 * 20);
            must(tap, "cutout 6x4 fill=7", &image, (uint64_t)k);
            int left = 99, right = -1, top = 99, bottom = -1, blank = 0;
            for (int i = 0; i < 24 * 20; i++)
                if (image.u8[i] == 7) {
                    int x = i % 24, y = i / 24;
                    left = x < left ? x : left, right = x > right ? x : right;
                    top = y < top ? y : top, bottom = y > bottom ? y : bottom;
                    blank++;
                }
            int w = right - left + 1, h = bottom - top + 1;
            CHECK_INT(tap, blank, w * h);
            CHECK(tap, w >= 3 && w <= 6 && h >= 2 && h <= 4);
            CHECK(tap, w == 6 || left == 0 || right == 23);
            centres[(left + right > 23) + 2 * (top + bottom > 19)]++;
        }
        for (int i = 0; i < 4; i++)
            CHECK(tap, centres[i] > DRAWS / 8);
    });
    TEST(tap, "several rectangles, all channels, and floats", {
        image_shape(&image, 40, 40, 3, PIXEL_F32, NULL);
        for (int i = 0; i < 4800; i++)
            image.f32[i] = 1;
        must(tap, "cutout 3 count=5 fill=-2.5", &image, 1);
        int blank = 0;
        for (int i = 0; i < 4800; i++)
            blank += image.f32[i] == -2.5f;
        CHECK(tap, blank > 27 && blank <= 135 && blank % 3 == 0);
    });
    image_free(&image);
}

// What each draw of randaugment may be at strength 12 for a picture of 40x20, in torchvision's
// numbers: 0.4 of the most, here and there in both directions.
static const char *const policy[][2] = {
    {""},
    {"autocontrast"},
    {"equalize"},
    {"rotate =12 fill=9", "rotate =-12 fill=9"},
    {"solarize 0.6"},
    {"saturation =1.36", "saturation =0.64"},
    {"posterize 6"},
    {"contrast =1.36", "contrast =0.64"},
    {"brightness =1.36", "brightness =0.64"},
    {"sharpness =1.36", "sharpness =0.64"},
    {"shear x==6.8427734 fill=9", "shear x==-6.8427734 fill=9"},
    {"shear y==6.8427734 fill=9", "shear y==-6.8427734 fill=9"},
    {"translate x==7 fill=9", "translate x==-7 fill=9"},
    {"translate y==4 fill=9", "translate y==-4 fill=9"},
};
enum { POLICIES = sizeof policy / sizeof *policy };

// A picture that every operation of the policy changes in another way.
static void policy_picture(struct image *image) {
    noise_image(image, 40, 20, 3, PIXEL_U8);
    for (size_t i = 0; i < image_values(image); i++)
        image->u8[i] = (uint8_t)(20 + image->u8[i] * (i % 3 + 2) / 6);
}

// The picture after those of `first` and then `second`; false when one has no such direction.
static bool policy_result(struct tap *tap, struct image *image, int first, int second) {
    const char *one = policy[first / 2][first % 2], *two = policy[second / 2][second % 2];
    char text[100];
    if (!one || !two)
        return false;
    snprintf(text, sizeof text, "%s; %s", one, two);
    policy_picture(image);
    must(tap, text, image, 0);
    return true;
}

static void test_randaugment(struct tap *tap) {
    struct image image = {0}, wanted[2 * POLICIES] = {0}, two = {0};
    for (int i = 0; i < 2 * POLICIES; i++)
        policy_result(tap, &wanted[i], i, 0);
    TEST(tap, "randaugment is one of its operations, with the strength asked for", {
        int counts[POLICIES] = {0}, first = 0, directions = 0;
        for (int k = 0; k < DRAWS; k++) {
            policy_picture(&image);
            must(tap, "randaugment 1 12 fill=9", &image, (uint64_t)k);
            int found = 0;
            while (found < 2 * POLICIES && !same(&image, &wanted[found]))
                found++;
            if (found == 2 * POLICIES) {
                FAIL(tap, "picture %d is none of them", k);
                continue;
            }
            counts[found / 2]++;
            directions += policy[found / 2][1] != NULL;
            first += policy[found / 2][1] && found % 2 == 0;
        }
        check_even(tap, "randaugment 1 12", counts, POLICIES);
        CHECK_NEAR(tap, first, directions / 2.0, 2.5 * sqrt(directions));
    });
    TEST(tap, "and of two, one after the other", {
        for (int k = 0; k < 60; k++) {
            policy_picture(&image);
            must(tap, "randaugment 2 12 fill=9", &image, (uint64_t)k);
            bool found = false;
            for (int i = 0; i < 4 * POLICIES * POLICIES && !found; i++)
                found = policy_result(tap, &two, i / (2 * POLICIES), i % (2 * POLICIES)) &&
                        same(&image, &two);
            if (!found)
                FAIL(tap, "picture %d is no two of them", k);
        }
    });
    TEST(tap, "randaugment refuses floats, whatever it would draw", {
        for (int k = 0; k < 30; k++) {
            struct error err = {0};
            noise_image(&image, 9, 9, 3, PIXEL_F32);
            CHECK_INT(tap, apply(tap, "randaugment", &image, (uint64_t)k, &err), STATUS_DATA);
            CHECK_TEXT(tap, err.text,
                       "randaugment: this picture's values are floats, and it works on bytes; put "
                       "it before scale, mean and std");
        }
    });
    for (int i = 0; i < 2 * POLICIES; i++)
        image_free(&wanted[i]);
    image_free(&image);
    image_free(&two);
}

static void test_deviation(struct tap *tap) {
    static const struct {
        const char *text;
        double deviation;
    } chains[] = {
        {"", 63.75},
        {"mean 125.3,123,113.9", 63.75},
        {"scale 1/255; mean 0.5; std 0.25", 1},
        {"scale 1/255; mean 0.1,0.2,0.3; std 0.25,0.5,1", 7.0 / 12},
        {"resize 5 exact; invert; scale 2", 127.5},
    };
    TEST(tap, "how far values deviate behind a chain is foretold", {
        for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
            struct ops *ops = parsed(tap, chains[i].text);
            struct error err = {0};
            double deviation;
            CHECK_INT(tap, ops_deviation(&deviation, ops, 8, 6, 3, &err), STATUS_OK);
            CHECK_NEAR(tap, deviation, chains[i].deviation, 1e-5);
            ops_free(ops);
        }
        struct ops *ops = parsed(tap, "mean 1,2,3");
        struct error err = {0};
        double deviation;
        CHECK_INT(tap, ops_deviation(&deviation, ops, 8, 6, 1, &err), STATUS_DATA);
        ops_free(ops);
    });
}

int main(void) {
    struct tap tap = {0};
    test_accepted(&tap);
    test_mistakes(&tap);
    test_hostile(&tap);
    test_table(&tap);
    test_shapes(&tap);
    test_places(&tap);
    test_exactness(&tap);
    test_ranges(&tap);
    test_whole_draws(&tap);
    test_streams(&tap);
    test_values(&tap);
    test_noise(&tap);
    test_cutout(&tap);
    test_randaugment(&tap);
    test_deviation(&tap);
    return tap_done(&tap);
}
