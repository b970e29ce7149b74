// The one table of operations: parser, help, and what adam-ops(7) is held to.
#include "ops/op.h"

static const char *const mode_words[] = {"fit", "fill", "exact", NULL};
static const char *const filter_words[] = {"area", "bilinear", "lanczos", NULL};
static const char *const place_words[] = {"centre", "center", "random", NULL};
static const char *const with_words[] = {"fill", "noise", NULL};
static const char *const border_words[] = {"fill", "edge", "reflect", NULL};

// clang-format off
#define BORDER(standard) {"border", "BORDER", "what lies outside: the fill value, the nearest edge pixel, or the mirrored picture", standard, OP_WORD, 0, 0, border_words}
#define FILL {"fill", "VALUE", "the value put where there is no picture", "0", OP_REAL, -1e6, 1e6, NULL}

static const struct op_parameter probability = {"p", "P", "the probability that the operation is applied to a picture", "1", OP_REAL, 0, 1, NULL};

static const struct op_parameter resize_parameters[] = {
    {NULL, "SIZE", "the new size; a single number is the length of the shorter side, and the aspect is kept", NULL, OP_SIZE, 1, IMAGE_MAX_SIDE, NULL},
    {NULL, "MODE", "fit: inside SIZE; fill: cover SIZE and cut off what sticks out; exact: stretch to SIZE, as WIDTHxHEIGHT does without a MODE", "", OP_WORD, 0, 0, mode_words},
    {"filter", "FILTER", "how pixels are combined: area, bilinear or lanczos, all antialiased", "area", OP_WORD, 0, 0, filter_words},
};
static const struct op_parameter crop_parameters[] = {
    {NULL, "SIZE", "the size of the part that is kept", NULL, OP_SIZE, 1, IMAGE_MAX_SIDE, NULL},
    {NULL, "PLACE", "where the part lies: centre (or center), or random", "centre", OP_WORD, 0, 0, place_words},
};
static const struct op_parameter pad_parameters[] = {
    {NULL, "SIZE", "pixels added on every side; WIDTHxHEIGHT: at the sides, and above and below", NULL, OP_SIZE, 0, IMAGE_MAX_SIDE, NULL},
    BORDER("fill"), FILL,
};
static const struct op_parameter translate_parameters[] = {
    {NULL, "PIXELS", "whole pixels to move by, drawn anew for each direction", "0", OP_SHIFT, -IMAGE_MAX_SIDE, IMAGE_MAX_SIDE, NULL},
    {"x", "PIXELS", "to the right, instead of PIXELS", "", OP_SHIFT, -IMAGE_MAX_SIDE, IMAGE_MAX_SIDE, NULL},
    {"y", "PIXELS", "downwards, instead of PIXELS", "", OP_SHIFT, -IMAGE_MAX_SIDE, IMAGE_MAX_SIDE, NULL},
    BORDER("fill"), FILL,
};
static const struct op_parameter rotate_parameters[] = {
    {NULL, "DEGREES", "the angle, counterclockwise", NULL, OP_SPREAD, -360, 360, NULL},
    BORDER("fill"), FILL,
};
static const struct op_parameter affine_parameters[] = {
    {"rotate", "DEGREES", "the angle, counterclockwise", "0", OP_SPREAD, -360, 360, NULL},
    {"scale", "FACTOR", "the enlargement", "=1", OP_FACTOR, 0.01, 100, NULL},
    {"shear", "DEGREES", "how far vertical lines lean to the right", "0", OP_SPREAD, -80, 80, NULL},
    BORDER("fill"), FILL,
};
static const struct op_parameter shear_parameters[] = {
    {"x", "DEGREES", "how far vertical lines lean to the right", "0", OP_SPREAD, -80, 80, NULL},
    {"y", "DEGREES", "how far horizontal lines lean down", "0", OP_SPREAD, -80, 80, NULL},
    BORDER("fill"), FILL,
};
static const struct op_parameter perspective_parameters[] = {
    {NULL, "DISTORTION", "how far each corner may move inwards, as a share of half the side", NULL, OP_RANGE, 0, 0.6, NULL},
    BORDER("fill"), FILL,
};
static const struct op_parameter elastic_parameters[] = {
    {"alpha", "ALPHA", "the intensity of the deformation, in pixels before smoothing", "34", OP_RANGE, 0, 10000, NULL},
    {"sigma", "SIGMA", "the standard deviation of the smoothing Gaussian, in pixels", "4", OP_RANGE, 0.1, IMAGE_SIGMA_MOST, NULL},
    BORDER("fill"), FILL,
};
static const struct op_parameter brightness_parameters[] = {
    {NULL, "FACTOR", "what every value is multiplied by", NULL, OP_FACTOR, 0, 100, NULL},
};
static const struct op_parameter contrast_parameters[] = {
    {NULL, "FACTOR", "what every value's distance from the picture's mean is multiplied by", NULL, OP_FACTOR, 0, 100, NULL},
};
static const struct op_parameter saturation_parameters[] = {
    {NULL, "FACTOR", "what every value's distance from the pixel's gray is multiplied by", NULL, OP_FACTOR, 0, 100, NULL},
};
static const struct op_parameter hue_parameters[] = {
    {NULL, "DEGREES", "the angle on the circle of hues: 120 turns red into green", NULL, OP_SPREAD, -180, 180, NULL},
};
static const struct op_parameter noise_parameters[] = {
    {NULL, "DEVIATION", "the standard deviation, as a share of the full range", NULL, OP_RANGE, 0, 100, NULL},
};
static const struct op_parameter cutout_parameters[] = {
    {NULL, "SIZE", "the size of the rectangle", NULL, OP_SIZE, 1, IMAGE_MAX_SIDE, NULL},
    {"count", "N", "how many rectangles", "1", OP_COUNT, 1, 1000, NULL},
    FILL,
};
static const struct op_parameter erase_parameters[] = {
    {NULL, "WITH", "what is put there: the fill value, or uniform noise over the full range", "fill", OP_WORD, 0, 0, with_words},
    {"area", "SHARE", "the area of the rectangle as a share of the picture's", "0.02..0.4", OP_RANGE, 0, 1, NULL},
    {"aspect", "RATIO", "the height of the rectangle divided by its width", "0.3..3.33", OP_RANGE, 0.001, 1000, NULL},
    FILL,
};
static const struct op_parameter blur_parameters[] = {
    {NULL, "SIGMA", "the standard deviation of the Gaussian, in pixels", NULL, OP_RANGE, 0.1, IMAGE_SIGMA_MOST, NULL},
};
static const struct op_parameter sharpness_parameters[] = {
    {NULL, "FACTOR", "what every value's distance from the smoothed picture is multiplied by", NULL, OP_FACTOR, 0, 100, NULL},
};
static const struct op_parameter posterize_parameters[] = {
    {NULL, "BITS", "how many of the 8 bits of a value are kept, the highest", NULL, OP_COUNT, 1, 8, NULL},
};
static const struct op_parameter solarize_parameters[] = {
    {NULL, "THRESHOLD", "the lowest value that is inverted, as a share of the full range", NULL, OP_RANGE, 0, 1, NULL},
};
static const struct op_parameter randaugment_parameters[] = {
    {NULL, "N", "how many operations", "2", OP_COUNT, 1, 100, NULL},
    {NULL, "M", "their strength", "9", OP_RANGE, 0, RANDAUGMENT_MOST, NULL},
    BORDER("fill"), FILL,
};
static const struct op_parameter scale_parameters[] = {
    {NULL, "FACTOR", "what values are multiplied by", NULL, OP_LIST, -1e9, 1e9, NULL},
};
static const struct op_parameter mean_parameters[] = {
    {NULL, "MEAN", "what is subtracted", "", OP_LIST, -1e9, 1e9, NULL},
    {"file", "FILE", "a picture that is subtracted pixel by pixel, in a file that adam-prep could read; in the input of a model, which keeps the picture", "", OP_FILE, 0, 0, NULL},
    {"image", "PICTURE", "such a picture as a model keeps it: WIDTHxHEIGHTxCHANNELS:BASE64, little-endian floats", "", OP_IMAGE, 0, 0, NULL},
};
static const struct op_parameter std_parameters[] = {
    {NULL, "DEVIATION", "what values are divided by", NULL, OP_LIST, 1e-9, 1e9, NULL},
};

#define ROWS(name) name##_parameters, sizeof name##_parameters / sizeof *name##_parameters
#define NO_ROWS NULL, 0

static const struct op_info table[] = {
    {"resize", "resize SIZE [MODE] [filter=FILTER]", "resample to another size", false, ROWS(resize), &op_resize},
    {"crop", "crop SIZE [PLACE]", "keep a part", true, ROWS(crop), &op_crop},
    {"pad", "pad SIZE [border=BORDER] [fill=VALUE]", "add a border", false, ROWS(pad), &op_pad},
    {"translate", "translate [PIXELS] [x=PIXELS] [y=PIXELS] [border=BORDER] [fill=VALUE]", "move by whole pixels", true, ROWS(translate), &op_translate},
    {"hflip", "hflip", "mirror left and right", false, NO_ROWS, &op_hflip},
    {"vflip", "vflip", "mirror top and bottom", false, NO_ROWS, &op_vflip},
    {"rotate", "rotate DEGREES [border=BORDER] [fill=VALUE]", "turn around the centre", true, ROWS(rotate), &op_rotate},
    {"affine", "affine [rotate=DEGREES] [scale=FACTOR] [shear=DEGREES] [border=BORDER] [fill=VALUE]", "scale, shear and turn around the centre", true, ROWS(affine), &op_affine},
    {"shear", "shear [x=DEGREES] [y=DEGREES] [border=BORDER] [fill=VALUE]", "slant around the centre", true, ROWS(shear), &op_shear},
    {"perspective", "perspective DISTORTION [border=BORDER] [fill=VALUE]", "move each corner inwards, as if seen at an angle", true, ROWS(perspective), &op_perspective},
    {"elastic", "elastic [alpha=ALPHA] [sigma=SIGMA] [border=BORDER] [fill=VALUE]", "distort by a smooth random field", true, ROWS(elastic), &op_elastic},
    {"brightness", "brightness FACTOR", "make brighter or darker", true, ROWS(brightness), &op_brightness},
    {"contrast", "contrast FACTOR", "strengthen or weaken contrast", true, ROWS(contrast), &op_contrast},
    {"saturation", "saturation FACTOR", "strengthen or weaken colours", true, ROWS(saturation), &op_saturation},
    {"hue", "hue DEGREES", "turn colours round the circle of hues", true, ROWS(hue), &op_hue},
    {"noise", "noise DEVIATION", "add normal noise to every value", true, ROWS(noise), &op_noise},
    {"blur", "blur SIGMA", "smooth by a Gaussian", true, ROWS(blur), &op_blur},
    {"sharpness", "sharpness FACTOR", "strengthen or weaken edges", true, ROWS(sharpness), &op_sharpness},
    {"cutout", "cutout SIZE [count=N] [fill=VALUE]", "blank rectangles at random places", true, ROWS(cutout), &op_cutout},
    {"erase", "erase [WITH] [area=SHARE] [aspect=RATIO] [fill=VALUE]", "blank a rectangle of random size and place", true, ROWS(erase), &op_erase},
    {"gray", "gray", "turn colour into gray", false, NO_ROWS, &op_gray},
    {"invert", "invert", "turn into the negative", false, NO_ROWS, &op_invert},
    {"posterize", "posterize BITS", "reduce the number of levels", false, ROWS(posterize), &op_posterize},
    {"solarize", "solarize THRESHOLD", "invert bright values", true, ROWS(solarize), &op_solarize},
    {"autocontrast", "autocontrast", "stretch each channel to the full range", false, NO_ROWS, &op_autocontrast},
    {"equalize", "equalize", "make the levels of each channel equally frequent", false, NO_ROWS, &op_equalize},
    {"randaugment", "randaugment [N] [M] [border=BORDER] [fill=VALUE]", "N operations of strength M, drawn from a list", true, ROWS(randaugment), &op_randaugment},
    {"scale", "scale FACTOR", "multiply values; gives floats", false, ROWS(scale), &op_scale},
    {"mean", "mean [MEAN] [file=FILE] [image=PICTURE]", "subtract a mean, of each channel or of each pixel; gives floats", false, ROWS(mean), &op_mean},
    {"std", "std DEVIATION", "divide by a standard deviation; gives floats", false, ROWS(std), &op_std},
};
// clang-format on

const struct op_info *ops_table(size_t *count) {
    *count = sizeof table / sizeof *table;
    return table;
}

const char *ops_name(size_t index) {
    return index < sizeof table / sizeof *table ? table[index].name : NULL;
}

const struct op_parameter *ops_probability(void) {
    return &probability;
}
